"""The checker: recomputes from the raw data all that a result and its certificate claim.

It shares no code with what found them: the files of the checker import nothing of the package but `mipfs.data`,
`mipfs.readers` and one another. Accepted means: the status, the objective and the bound that stand in the JSON are
proven, for the problem that `Report.statement` says in words, and `predict` uses what the data has.

    statement.py     the problem (P) and its set S          classifier.py   the incumbent and its objective
    dual_vectors.py  feasible dual vectors, their scores    leaves.py       the tree and its least bound
    few.py           the atoms that a plain proof rests on  near.py         near-optimal supports
    verdict.py       status, bound and gap                  relaxed.py      the upper side of a relaxation
    decided.py       what is decided of single atoms
    exact.py         margins in rational arithmetic         rounding.py     readers of numbers
    regulariser.py   the term of a weight where not ½w²      bounded.py      bounds on the weights
    words.py         (P) in words, and the data's description
    without.py       what the leaves prove without bounds on the weights
    workers.py       who does pieces of the tree
    known.py         the names that a result may use        reading.py      how a raw table became columns
    scaling.py       the stated shift and scale of the columns, which define the problem
    in_unit.py       columns whose squares leave floating point
    completions.py   many dual vectors about one selection with one more feature
    derived.py       rows that follow from those of S
    monomials.py     products of features, and those that nobody holds
    made.py, maps.py columns that are made of features

Rounding: α = k·2^−q is exact; every sum of n products is off by at most γ_n Σ|terms| in whatever order it was
taken, γ_n = n·u/(1 − n·u), u = 2^−53, and by 2^−1074 per product for what underflows; leaf sums are `math.fsum`,
rounded down. A column far from zero is moved to its mean before ω is summed: y'α = 0 is an integer identity, so that
this changes nothing, and the error is that of the column's spread. Where the error of the objective is more than 1e-11
of it, its margins are computed in rational arithmetic; one that is still more than 1e-9 off is refused.
Assumed: sqrt is correctly rounded, and NumPy's log, log1p and exp are within 4 ulp.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from mipfs.check import classifier, derived, words
from mipfs.check import made as functions
from mipfs.check.decided import check_decided
from mipfs.check.dual_vectors import Duals
from mipfs.check.few import over_few
from mipfs.check.in_unit import in_unit, in_users, in_users_words
from mipfs.check.known import check_arrays, check_known, rules_of
from mipfs.check.leaves import CoverTree, least_bound
from mipfs.check.monomials import StatedMonomials
from mipfs.check.near import NearOptimal
from mipfs.check.reading import check_reading, reading_in_words, without_table
from mipfs.check.relaxed import check_relaxation, unshown_upper_side
from mipfs.check.rounding import Arrays, Document, absent_or, refusal_reason, require
from mipfs.check.scaling import REMEDY, by_rules
from mipfs.check.stated import list_believed
from mipfs.check.statement import Statement
from mipfs.check.verdict import STATUSES, judge_result
from mipfs.check.without import beside
from mipfs.check.workers import ALONE, LeafWorkers
from mipfs.data.instance import Instance

Reading = tuple[type[Statement], type[Duals]]
NEVER = {
    "trace": "the history of the run (driver, command, trace, counters, seconds, settings, stop reason, versions)",
    "validated": "the classifier of lowest validation error",
    "conflict": "that the conflicting rows are a smallest set",
    "calibration": "the probabilities, which are estimated",
}
"""What stands in a result and is not checked."""
BOUND = "the bound, the gap, and any list of near-optimal supports: there is no certificate"


@dataclass(frozen=True)
class Report:
    """What the checker found.

    Attributes
    ----------
    accepted, reason : bool, and what is wrong in one line, "" when accepted
    bound : float, the certified lower bound: that of the certificate, after all leaves were found to reach it
    objective, gap : float, of (P) at the selected features, recomputed, inf without any; relative to the bound
    result_bound : float, the result's own, above the certified one by 1e-9 of it at most
    status : str, of the result
    asked : float, the gap up to which it calls itself optimal
    statement : tuple of str, the problem that was checked, in words
    differs, unchecked : tuple of str
        What differs from what the data's own description asks for, and what stands in the result and was not checked.
    relaxation, listed, decided : tuple of str
        What was recomputed of a relaxation, of a list of near-optimal supports, and of what the proof decides of single
        features, in words; empty without any.
    bound_without_box : float
        Where weights have bounds other than signs: what the same leaves prove of the problem without any, else -inf.
        That the optimum reaches no bound says nothing about that problem.
    """

    accepted: bool
    reason: str
    bound: float = -math.inf
    objective: float = math.inf
    gap: float = math.inf
    result_bound: float = -math.inf
    n_leaves: int = 0
    n_duals: int = 0
    seconds: float = 0.0
    status: str = ""
    asked: float = 0.0
    statement: tuple[str, ...] = ()
    differs: tuple[str, ...] = ()
    unchecked: tuple[str, ...] = ()
    relaxation: tuple[str, ...] = ()
    listed: tuple[str, ...] = ()
    decided: tuple[str, ...] = ()
    bound_without_box: float = -math.inf


def check(
    document: Document,
    arrays: Arrays,
    data: Instance,
    reading: Reading = (Statement, Duals),
    given: Mapping[str, Any] | None = None,
    workers: LeafWorkers = ALONE,
) -> Report:
    """Check a result and its proof against the data.

    Parameters
    ----------
    document : mapping, the JSON of a result with its entry "certificate"
    arrays : mapping, what the sidecar holds
    data : Instance, as the problem was solved: the same file, scaled in the same way
    reading : subclasses of Statement and Duals, for a loss that is none of `Statement.LOSSES`
    given : mapping {"rows", "extra"}, optional
        The rows that must hold beside those of the data, and no others, as the JSON of a result has them.
    workers : LeafWorkers, optional
        Who does pieces of the tree, and who hears how many leaves are done.
    """
    begin = time.perf_counter()
    found = dict[str, Any]()
    reason = refusal_reason(lambda: _check(document, arrays, data, reading, given, found, workers))
    return Report(not reason, reason, **in_users(found), seconds=time.perf_counter() - begin)


def check_unproven(document: Document, data: Instance, given: Mapping[str, Any] | None = None) -> Report:
    """Check all that a result states but its proof, of which nothing is at hand; parameters as those of `check`."""
    begin = time.perf_counter()
    found = dict[str, Any]()

    def without_proof() -> None:
        asked = {"kind": "tree", "bound": None, "gap": document["params"]["gap"]}
        read = read_on_data({**document, "certificate": asked}, {}, data, (Statement, Duals), given, found)
        entry = document.get("certificate")
        said = absent_or(document["bound"] if entry is None else entry["bound"], -math.inf, "the certificate's bound")
        judge_result(read.document, read.incumbent, said)  # that its own numbers fit one another
        found["unchecked"] += (BOUND, *read.statement.forgiven_in_words())

    reason = refusal_reason(without_proof)
    return Report(not reason, reason, **in_users(found), seconds=time.perf_counter() - begin)


class StatedOnData(NamedTuple):
    """What a result states, read on the data, all but the proof."""

    document: Document
    arrays: Arrays
    statement: Statement
    incumbent: classifier.StatedClassifier
    made: StatedMonomials | None


def read_on_data(
    document: Document,
    arrays: Arrays,
    data: Instance,
    reading: Reading,
    given: Mapping[str, Any] | None,
    found: dict[str, Any],
) -> StatedOnData:
    """Compare what a result states with the data; what the report has of it is entered in `found`."""
    status, certificate = document["status"], document["certificate"]
    require(status in STATUSES, f"the status {status!r} is unknown")
    check_known(document)
    check_arrays(document, arrays)
    data = by_rules(data, rules_of(document))
    functions.require_data(document, data)
    check_reading(document, functions.table_of(data))
    table, scaled = functions.on_scale(document, arrays, data)
    stated = document
    document, arrays, scaled, found["exponent"] = in_unit(document, arrays, scaled)
    data = scaled.data
    require(certificate["kind"] in ("tree", "relaxation"), f"no certificate of kind {certificate['kind']!r} is known")
    made = StatedMonomials(document, data) if "kind" in ((document.get("atoms") or {}).get("made") or {}) else None
    if made is not None:
        require(scaled.lengths is None, f"products of columns on another scale are not known: {REMEDY}")
        document = made.document
        data = made.data
    statement = reading[0](document, data)
    statement.scaled = scaled
    derived.append(statement, certificate.get("derived", ()))
    said = in_users_words(statement, stated) if found["exponent"] else statement
    described = words.in_words(said, reading_in_words(document, table))
    described = described if made is None else made.in_words(described)
    found |= {"status": status, "statement": described, "differs": words.compare(said, given)}
    statement.require_costs(stated)
    require(not (found["exponent"] and statement.has_extra_costs), "no costs of extra variables go with far columns")
    incumbent = classifier.read(statement, document)
    functions.check_inputs(document, data, incumbent.chosen)
    found |= {"objective": incumbent.objective, "unchecked": tuple(NEVER[name] for name in NEVER if document.get(name))}
    found["unchecked"] += without_table(document, table)
    if certificate.get("found") is not None:
        found["unchecked"] += ("the bound that the run itself found, before its certificate was cut to a size",)
    found["unchecked"] += (*unshown_upper_side(document), *list_believed(document["params"]))
    near = document.get("near_optimal")
    if near is not None and any(entry.get("ties") for entry in near["supports"]):
        found["unchecked"] += ("how many larger supports only add features of weight 0",)
    return StatedOnData(document, arrays, statement, incumbent, made)


def _check(
    document: Document,
    arrays: Arrays,
    data: Instance,
    reading: Reading,
    given: Mapping[str, Any] | None,
    found: dict[str, Any],
    workers: LeafWorkers,
) -> None:
    document, arrays, statement, incumbent, made = read_on_data(document, arrays, data, reading, given, found)
    data = statement.data
    certificate, status, near = document["certificate"], document["status"], document.get("near_optimal")
    listed = None if near is None else NearOptimal(statement, near, incumbent)
    bound = absent_or(
        certificate["bound"], math.inf if status == "INFEASIBLE" else -math.inf, "the certificate's bound"
    )
    tree = CoverTree(arrays, statement.p, statement.whole)
    duals = reading[1](statement, arrays)
    level = statement.unit(bound if listed is None or not listed.complete else max(bound, listed.least))
    what = over_few(statement, duals, tree) if listed is None else (statement, duals, tree)
    least, leaf = least_bound(*what, arrays, listed, workers, level)
    rest = math.inf if made is None else made.bound(statement, duals, arrays, level)
    duals.check_rest(workers)
    proven = statement.reported(min(least, rest))
    who = f"leaf {leaf}" if least <= rest else "what is not held"
    if statement.margin == "unit" and not statement.has_extra_costs:  # no loss, penalty or square is negative
        proven = max(proven, 0.0)
    found |= {"n_leaves": tree.n_leaves, "n_duals": duals.count}
    require(proven >= bound, f"{who} proves only {proven!r}, less than the claimed bound {bound!r}")
    found |= {"bound": bound}
    found |= judge_result(document, incumbent, bound)
    require(certificate["kind"] == "tree" or tree.has_one_dual, "a relaxation has one dual vector at all leaves")
    found |= {"relaxation": check_relaxation(document, statement, bound)}
    if listed is not None:
        found |= {"listed": listed.bound_below(duals, workers)}
        if statement.has_extra_costs:
            found["unchecked"] += ("that extra variables beside a listed support have no cheaper values",)
    found |= {"decided": check_decided(document, statement, duals, tree, arrays, incumbent.chosen)}
    found["unchecked"] += statement.forgiven_in_words()
    found |= beside(statement, document, arrays, data, reading, bound, workers)
