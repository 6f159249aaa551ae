"""The checker: recomputes from the raw data all that a result and its certificate claim.

It shares no code with what found them: the files of the checker import nothing of the package but `mipfs.data`,
`mipfs.readers` and one another. Accepted means: the status, the objective and the bound that stand in the JSON are
proven, for the problem that `Report.statement` says in words, and `predict` uses what the data has.

    statement.py     the problem (P) and its set S          classifier.py   the incumbent and its objective
    dual_vectors.py  feasible dual vectors, their scores    leaves.py       the tree and its least bound
    few.py           the atoms that a plain proof rests on  near.py         near-optimal supports
    verdict.py       status, bound and gap
    decided.py       what is decided of single atoms        possible.py     the way through the tree for that
    one_more.py      (leaf) with one atom more fixed        row_by_row.py   what rows fix by themselves
    rounding.py      readers of numbers
    regulariser.py   the term of a weight where not ½w²      bounded.py      bounds on the weights
    words.py         (P) in words, and the data's description
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

Also here: what the leaves of a proof show of the same problem without the bounds on its weights.

That no weight of an optimum reaches its bound says nothing about the problem without the bounds: another selection may
need larger weights. Its bound is that of the same dual vectors with ½ω² in the place of h(ω) ≤ ½ω², which is no larger.
A node that is screened up to a level proves that level at most; the level at which both meet is searched.

Also here: the relaxation of a result: its upper side is the value of (P) at a σ that the relaxation allows,
recomputed.

    cᵀσ + ½ Σ w_j²/(Σ_g λ_g² σ_g) + L(m)   ≥   the value of the relaxation, for every w and b

σ is a mixture of selections of S, each with values of the extra variables that allow it: then the value is one over the
hull of S. Or it meets the rows of S itself, 0 ≤ σ ≤ 1; of a row of cardinality and forced atoms alone that is the same.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from mipfs.check import classifier, derived, words
from mipfs.check import made as functions
from mipfs.check.bounded import BoundedRidge
from mipfs.check.classifier import place_weights, require_certain, value
from mipfs.check.decided import check_decided
from mipfs.check.dual_vectors import Duals
from mipfs.check.few import over_few
from mipfs.check.in_unit import in_unit, in_users, in_users_words
from mipfs.check.known import check_arrays, check_known, rules_of
from mipfs.check.leaves import CoverTree, least_bound
from mipfs.check.monomials import StatedMonomials
from mipfs.check.near import NearOptimal
from mipfs.check.reading import check_reading, reading_in_words, without_table
from mipfs.check.rounding import (
    NEAR,
    Array,
    Arrays,
    CertificateError,
    Document,
    Integers,
    absent_or,
    number,
    refusal_reason,
    require,
)
from mipfs.check.scaling import REMEDY, ScaledData, by_rules
from mipfs.check.stated import list_believed
from mipfs.check.statement import Statement
from mipfs.check.steps import SCREEN
from mipfs.check.verdict import STATUSES, is_below_within_rounding, judge_result, require_closed_gap
from mipfs.check.workers import ALONE, LeafWorkers
from mipfs.data.instance import Instance
from mipfs.data.unit import times


def check_relaxation(document: Document, statement: Statement, bound: float) -> tuple[str, ...]:
    """Both sides of the relaxation of a result, and whether they meet where it says RELAXED; in words."""
    relaxed = document.get("relaxed")
    is_claimed = document["status"] == "RELAXED"
    require(not is_claimed or relaxed is not None, "RELAXED, but no relaxation stands in the result")
    if relaxed is None:
        return ()
    lower = absent_or(relaxed["lower"], -math.inf, "the relaxation's lower side")
    upper = absent_or(relaxed["upper"], math.inf, "the relaxation's upper side")
    require(
        is_below_within_rounding(lower, bound), f"the relaxation's lower side {lower!r} is not proven: it is {bound!r}"
    )
    shown = relaxed.get("weights") is not None and relaxed.get("intercept") is not None
    require(shown or not is_claimed, "RELAXED, but nothing shows the relaxation's upper side: no weights stand there")
    if upper == math.inf or not shown:
        require(not is_claimed, "RELAXED, but the relaxation has no upper side")
        return ()
    ids, sigma, over = _stated_sigma(statement, relaxed)
    at = place_weights(statement, ids, relaxed, upper)
    least, error = require_certain(*value(statement, ids, at, sigma), "the relaxation")
    holds = least <= upper + NEAR * abs(upper) + error
    require(holds, f"the relaxation's upper side is {upper!r}, but {least!r} where its σ and weights are")
    if is_claimed:
        require_closed_gap(
            "RELAXED", max(upper, least), error, bound, number(document["params"]["gap"], "the asked gap"), "shown"
        )
    lower, upper = (times(end, -2 * statement.data.exponent) for end in (lower, upper))
    return (f"{'no value' if lower == -math.inf else f'{lower:.8g}'} to {upper:.8g}, {over}  (recomputed)",)


def unshown_upper_side(document: Document) -> tuple[str, ...]:
    """What is said of a relaxation whose upper side nothing shows."""
    relaxed = document.get("relaxed")
    if relaxed is None or relaxed.get("upper") is None or relaxed.get("weights") is not None:
        return ()
    return ("the upper side of the relaxation, which is the word of the solver of its program",)


def _stated_sigma(statement: Statement, relaxed: Mapping[str, Any]) -> tuple[Integers, Array, str]:
    """Positions of the atoms with σ > 0, σ there, and what it is allowed by."""
    ids = statement.ids(relaxed["sigma"])
    sigma = np.array([number(one, "σ") for one in relaxed["sigma"].values()])
    require(np.all((sigma > 0.0) & (sigma <= 1.0)), "a σ of the relaxation is not above 0 and at most 1")
    if relaxed.get("mixture") is not None:
        return (*_mix_selections(statement, relaxed["mixture"], ids, sigma), "over the hull of all selections")
    values = {} if relaxed.get("extra") is None else dict(relaxed["extra"])
    require(values.keys() == statement.extra.keys(), "the relaxation lacks values of the extra variables")
    x = statement.witness((values[name] for name in statement.extra), fractional=True)
    broken = statement.holds(ids, x, sigma)
    require(not broken, f"the relaxation's σ is not allowed: {broken}")
    plain = not (statement.lb.size or statement.extra)
    derived = ", and what is derived from them," if statement.lb.size > len(statement.rows) else ""
    return ids, sigma, "over the hull of all selections" if plain else f"over the rows{derived} with 0 ≤ σ ≤ 1"


def _mix_selections(statement: Statement, mixture: Any, ids: Integers, sigma: Array) -> tuple[Integers, Array]:
    """σ = Σ share · selection, after every selection was found in S; it is the σ that is stated."""
    shares = np.array([number(one["share"], "a share") for one in mixture])
    total = math.fsum(shares.tolist())
    require(np.all(shares >= 0.0) and total > 0.0, "the shares of the relaxation's selections are no shares")
    mixed: dict[int, float] = {}
    for share, one in zip((shares / total).tolist(), mixture, strict=True):
        chosen = statement.ids(one["selected"])
        broken = statement.why_refused(chosen, one.get("extra"))
        require(not broken, f"a selection of the relaxation is not allowed: {broken}")
        for g in chosen.tolist():
            mixed[g] = mixed.get(g, 0.0) + share
    found = dict(zip(ids.tolist(), sigma.tolist(), strict=True))
    held = {g: part for g, part in mixed.items() if part > 0.0}
    same = held.keys() == found.keys() and all(abs(part - found[g]) <= NEAR * part for g, part in held.items())
    require(same, "the relaxation's σ is not the mixture of its selections")
    return np.array(sorted(held), dtype=np.int64), np.array([min(1.0, held[g]) for g in sorted(held)])


STEPS = 12
"""Levels that are tried, each a pass over the leaves: the bound is found to 1/4096 of the one with bounds."""


def beside(
    statement: Statement,
    document: Document,
    arrays: Arrays,
    data: Instance,
    reading: tuple[type[Statement], type[Duals]],
    level: float,
    workers: LeafWorkers = ALONE,
) -> dict[str, float]:
    """What a report says of it, of weights with other bounds than signs."""
    term = statement.regulariser
    if not isinstance(term, BoundedRidge) or term.is_homogeneous or not math.isfinite(level):
        return {}
    return {"bound_without_box": bound_without(document, arrays, data, reading, level, statement.scaled, workers)}


def bound_without(
    document: Document,
    arrays: Arrays,
    data: Instance,
    reading: tuple[type[Statement], type[Duals]],
    level: float,
    scaled: ScaledData | None = None,
    workers: LeafWorkers = ALONE,
) -> float:
    """A lower bound of the problem without bounds on its weights, of the unit margin.

    Parameters
    ----------
    document, arrays, data, reading : as those of `check`, with which they were accepted
    level : float, the bound that the leaves prove with the bounds on the weights
    scaled : ScaledData, of the data, where it was put on another scale
    """
    params = {name: value for name, value in document["params"].items() if name != "weight_bounds"}
    statement = reading[0]({**document, "params": params}, data)
    statement.scaled = scaled
    derived.append(statement, document["certificate"].get("derived", ()))
    tree = CoverTree(arrays, statement.p, statement.whole)
    quiet = LeafWorkers(workers.each)
    what = over_few(statement, reading[1](statement, arrays), tree)

    def proven(asked: float) -> float:
        try:
            return min(asked, least_bound(*what, arrays, None, quiet, asked)[0])
        except (
            CertificateError
        ):  # a leaf that holds nothing within the bounds on weights, by what screening fixed above it
            return -math.inf

    best = proven(level)
    floor = -math.inf if statement.has_extra_costs else 0.0
    if best >= level or statement.has_extra_costs or not any(step == SCREEN for step, _ in tree.steps):
        return max(best, floor)
    low, high = max(best, 0.0), level
    for _ in range(STEPS):
        middle = 0.5 * (low + high)
        found = proven(middle)
        best = max(best, found)
        low, high = (middle, high) if found >= middle else (low, middle)
    return max(best, 0.0)


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
