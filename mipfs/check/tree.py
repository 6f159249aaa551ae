"""The checker: recomputes from the raw data all that a result and its certificate claim.

It shares no code with what found them: the files of the checker import nothing of the package but `mipfs.data`,
`mipfs.readers` and one another. Accepted means: the status, the objective and the bound that stand in the JSON are
proven, for the problem that `Report.statement` says in words, and `predict` uses what the data has.

    statement.py     the problem (P) and its set S          classifier.py   the incumbent and its objective
    dual_vectors.py  feasible dual vectors, their scores    leaves.py       the tree and its least bound
    few.py           the atoms that a plain proof rests on  near.py         near-optimal supports
    exact.py         margins in rational arithmetic
    words.py         (P) in words, and the data's description
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
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mipfs.check import classifier, words
from mipfs.check import made as functions
from mipfs.check.classifier import Classifier
from mipfs.check.dual_vectors import Duals
from mipfs.check.few import over_few
from mipfs.check.leaves import Tree, least_bound
from mipfs.check.monomials import Monomials
from mipfs.check.near import NearOptimal
from mipfs.check.rounding import Arrays, Document, Rejected, absent_or, number, require
from mipfs.check.statement import Statement
from mipfs.data.instance import Instance

GAP = 1e-9
"""Allowance on an asked gap and between the bound of the result and the certified one, relative to the objective."""
CLOSED = 1.03e-12
"""objective − bound ≤ CLOSED·max(1, Σ c_i) counts as no gap (3% for rounding)."""
Reading = tuple[type[Statement], type[Duals]]
STATUSES = ("OPTIMAL", "FEASIBLE", "RELAXED", "INFEASIBLE", "NO_SOLUTION", "NUMERICAL")
NEVER = {
    "trace": "the history of the run (trace, counters, seconds, stop reason)",
    "relaxed": "the upper side of the relaxation and its σ",
    "validated": "the classifier of lowest validation error",
    "near_optimal": "the objectives of near-optimal supports, beyond the bounds on both sides of them",
    "conflict": "that the conflicting rows are a smallest set",
}
"""What stands in a result and is not checked."""


@dataclass(frozen=True)
class Report:
    """What the checker found.

    Attributes
    ----------
    accepted, reason : bool, and what is wrong in one line, "" when accepted
    bound : float, the certified lower bound: that of the certificate, after all leaves were found to reach it
    objective, gap : float, of (P) at the selected features, recomputed, inf without any; relative to the bound
    result_bound : float, the result's own, above the certified one by 1e-9 of the objective at most
    status : str, of the result
    asked : float, the gap up to which it calls itself optimal
    statement : tuple of str, the problem that was checked, in words
    differs, unchecked : tuple of str
        Options that differ from the data's own description, and what stands in the result and was not checked.
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


def check(
    document: Document,
    arrays: Arrays,
    data: Instance,
    reading: Reading = (Statement, Duals),
    given: Mapping[str, Any] | None = None,
    told: Callable[[int, int], object] | None = None,
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
    told : callable, optional
        Hears how many of how many leaves are done.
    """
    begin, found = time.perf_counter(), dict[str, Any]()
    reason = ""
    try:
        with np.errstate(all="ignore"):  # a forger's numbers beyond floating point are to be refused, not warned of
            _check(document, arrays, data, reading, given, found, told)
    except Rejected as rejected:
        reason = " ".join(str(rejected).split())
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, AssertionError) as error:
        reason = " ".join(f"the certificate is malformed: {type(error).__name__}: {error}".split())
    except (MemoryError, RecursionError) as error:
        reason = f"the certificate is malformed: {type(error).__name__}"
    return Report(not reason, reason, **found, seconds=time.perf_counter() - begin)


def _check(
    document: Document,
    arrays: Arrays,
    data: Instance,
    reading: Reading,
    given: Mapping[str, Any] | None,
    found: dict[str, Any],
    told: Callable[[int, int], object] | None,
) -> None:
    status, kind, certificate = document["status"], document["scaling"]["kind"], document["certificate"]
    require(status in STATUSES, f"the status {status!r} is unknown")
    data = functions.view(document, data)
    require(document["data_sha256"] == data.sha256, "this is other data than the result was found on")
    require(kind == data.scaling, f"the result is about data with scale {kind!r}, not {data.scaling!r}")
    require(certificate["kind"] in ("tree", "relaxation"), f"no certificate of kind {certificate['kind']!r} is known")
    made = Monomials(document, data) if "kind" in ((document.get("atoms") or {}).get("made") or {}) else None
    if made is not None:
        document, data = made.document, made.data
    statement = reading[0](document, data)
    described = words.in_words(statement)
    found |= {"status": status, "statement": described, "differs": words.compare(statement, given)}
    found |= {} if made is None else {"statement": made.in_words(described)}
    incumbent = classifier.read(statement, document)
    functions.check_inputs(document, data, incumbent.chosen)
    found |= {"objective": incumbent.objective, "unchecked": tuple(NEVER[name] for name in NEVER if document.get(name))}
    if (document.get("read") or {}).get("words") and not data.words:
        found["unchecked"] += ("the words of columns of words, which this data does not have as such",)
    if certificate.get("found") is not None:
        found["unchecked"] += ("the bound that the run itself found, before its certificate was cut to a size",)
    near = document.get("near_optimal")
    listed = None if near is None else NearOptimal(statement, near, incumbent)
    tree, duals = Tree(arrays, statement.p, statement.whole), reading[1](statement, arrays)
    bound = absent_or(certificate["bound"], math.inf, "the certificate's bound")
    level = statement.unit(bound if listed is None else max(bound, listed.least))
    what = over_few(statement, duals, tree) if listed is None else (statement, duals, tree)
    least, leaf = least_bound(*what, arrays, listed, told, level)
    rest = math.inf if made is None else made.bound(statement, duals, arrays, level)
    proven, who = statement.reported(min(least, rest)), f"leaf {leaf}" if least <= rest else "what is not held"
    if statement.margin == "unit":  # no value of (P) is negative: losses, penalties and squares are not
        proven = max(proven, 0.0)
    found |= {"n_leaves": tree.n_leaves, "n_duals": duals.count}
    require(proven >= bound, f"{who} proves only {proven!r}, less than the claimed bound {bound!r}")
    found |= {"bound": bound}
    if listed is not None:
        listed.bound_below(duals)
    _verdict(document, statement, incumbent, bound, found)


def _verdict(
    document: Document, statement: Statement, incumbent: Classifier, bound: float, found: dict[str, Any]
) -> None:
    """Compare the status, the objective and the bound of the result with what is proven."""
    status, objective, params = document["status"], incumbent.objective, document["params"]
    said, source = absent_or(document["bound"], -math.inf, "the bound"), document.get("bound_source", "dual")
    asked = number(params["gap"], "the asked gap")
    require(document["certificate"]["gap"] == asked, "the asked gap of the certificate is not that of the parameters")
    require(0 <= asked < 1, f"the asked gap is {asked!r}, it must lie in [0, 1)")
    empty = bound == math.inf
    require((status == "INFEASIBLE") == empty, f"the status is {status}, but the certified bound {bound!r}")
    size = max(1e-10, abs(objective)) if objective < math.inf else max(1e-10, abs(said)) if said > -math.inf else 1.0
    left = math.inf if objective == math.inf else max(0.0, objective - bound)
    found |= {"asked": asked, "result_bound": said, "gap": left / size}
    if empty:
        nothing = objective == math.inf and said == -math.inf
        require(nothing, "no selection is allowed, but the result has an objective or a bound")
        return
    above = bound - objective > GAP * size + incumbent.error
    require(not above, f"the bound {bound!r} lies above the objective {objective!r}")
    whose = "is the solver's own word" if source == "solver" else "is not proven"
    require(said - bound <= GAP * size, f"the result's bound {said!r} {whose}: the certificate shows {bound!r}")
    require(status not in ("OPTIMAL", "FEASIBLE") or objective < math.inf, f"{status}, but without an objective")
    require(status != "NO_SOLUTION" or objective == math.inf, "NO_SOLUTION, but with an objective")
    closed = CLOSED * max(1.0, float(statement.c.sum()))
    reached = max((asked + GAP) * size, closed)
    for name, one in (("certified", bound), ("stated", said)):
        meets = status != "OPTIMAL" or objective - one <= reached
        require(meets, f"OPTIMAL to a gap of {asked:g}, but only {(objective - one) / size:g} is {name}")
    if document.get("gap") is not None:
        exact = (objective - said) / size
        same = abs(number(document["gap"], "the gap") - exact) <= GAP * max(1.0, abs(exact))
        require(same, f"the gap of the result is {document['gap']!r}, but its objective and bound give {exact!r}")
    relaxed = document.get("relaxed")
    require(status != "RELAXED" or relaxed is not None, "RELAXED, but no relaxation stands in the result")
    if relaxed is not None:
        _relaxation(status, relaxed, bound, reached, size)


def _relaxation(status: str, relaxed: Mapping[str, Any], bound: float, reached: float, size: float) -> None:
    """The lower side of a relaxation must be proven; the upper one must lie above it, and meet the bound when solved.

    Where S has rows the bound may lie above both: α = 0 proves the least penalty of a whole selection.
    """
    lower = absent_or(relaxed["lower"], -math.inf, "the relaxation's lower side")
    upper = absent_or(relaxed["upper"], math.inf, "the relaxation's upper side")
    require(lower - bound <= GAP * size, f"the relaxation's lower side {lower!r} is not proven: it is {bound!r}")
    require(upper - lower >= -GAP * size, f"the relaxation's upper side {upper!r} lies below the lower one {lower!r}")
    room = max(reached, reached / size * abs(upper)) if status == "RELAXED" else math.inf
    require(upper - bound <= room, f"RELAXED, but the sides {upper!r} and {bound!r} are apart")
