"""What must hold of every result, by enumeration: the rules of the contract, without an allowance of any kind.

`judged` runs a draw and returns what it found: which counts the run belongs to, and every fault in words.
"""

from __future__ import annotations

import json
import math
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from tests.draws import PATIENCE, Draw
from tests.interval_oracles import Chosen, Interval, labelled_loss

STORING = 1e-12
"""What storing other weights of the same value, rounded, may add to it, relative."""
ABOVE = 1e-9
"""How far, relative, a bound may stand above the optimum's upper end, or an objective below its lower end."""
AGREE = 1e-6
"""How far, relative, a listed value, or the value of the stored weights, may be off."""
SLICES = 16
"""So many slices of a run are looked at; a run that needs more must need as many iterations in one."""


@dataclass
class Verdict:
    """What was found of one draw.

    Attributes
    ----------
    counts : set of str, columns of the table that the run counts in
    faults : list of (column, words)
    """

    counts: set[str] = field(default_factory=set)
    faults: list[tuple[str, str]] = field(default_factory=list)

    def fault(self, column: str, words: str) -> None:
        """Note a fault."""
        self.counts.add(column)
        self.faults.append((column, words))


def judged(draw: Draw, solve: Callable[..., Any], verify: Callable[..., Any]) -> Verdict:
    """Run a draw and look at what comes back."""
    verdict, began = Verdict(), time.process_time()
    try:
        for result in runs(draw, solve, verdict):
            look(draw, result, verdict)
            if result.claim is not None:
                report = verify(result, draw.problem.data)
                if not report.accepted:
                    verdict.fault("refused", f"{result.status.name}: {report.reason}")
        if result.claim is not None and draw.seed % 3 == 0:
            again(result, draw, verify, verdict)
    except Exception as error:  # whatever went wrong is a fault of this draw, to be named and repeated
        if _is_beyond(draw) and "cannot be evaluated to 1e-6" in str(error):
            verdict.counts.add("unsure")
        else:
            verdict.fault("error", f"{type(error).__name__}: {error}")
    if time.process_time() - began > PATIENCE and draw.way != "slices":
        verdict.fault("slow", f"{time.process_time() - began:.0f} s of processor time at a limit of {PATIENCE:g} s")
    return verdict


def _is_beyond(draw: Draw) -> bool:
    """Whether a program of one's own has numbers beyond those that Clarabel must be able to evaluate."""
    c = draw.c * np.ones(draw.problem.data.n_samples)
    return bool(c.min() < 1e-4 or c.max() > 1e6 or c.max() > 1e3 * c.min())


def runs(draw: Draw, solve: Callable[..., Any], verdict: Verdict) -> list[Any]:
    """The results of a draw: one, or those of its slices, first and last of them."""
    if draw.way != "slices":
        return [solve(draw.model, draw.driver, **draw.options)]
    found: list[Any] = []
    for k in range(1, SLICES + 1):
        resume = {"resume": found[-1].state} if found else {}
        found.append(
            solve(draw.model, draw.driver, iteration_limit=k * draw.step, checkpoint=True, **draw.options, **resume)
        )
        if len(found) > 1 and found[-1].bound < found[-2].bound:
            verdict.fault("wrong", f"the bound fell from {found[-2].bound!r} to {found[-1].bound!r} at slice {k}")
        if len(found) > 1 and found[-1].objective - found[-2].objective > STORING * abs(found[-2].objective):
            verdict.fault("wrong", f"the objective rose from {found[-2].objective!r} to {found[-1].objective!r}")
        if found[-1].stop_reason.name != "ITERATION_LIMIT":
            break
    else:
        one = solve(draw.model, draw.driver, **draw.options)
        if one.trace and one.trace[-1].iteration * 3 < SLICES * draw.step:
            verdict.fault("endless", f"{SLICES} slices of {draw.step}; one run takes {one.trace[-1].iteration}")
    return found[:1] + found[-1:]


def again(result: Any, draw: Draw, verify: Callable[..., Any], verdict: Verdict) -> None:
    """Saved, loaded, verified: the same."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "r.json"
        result.save(path)
        report = verify(type(result).load(path), draw.problem.data)
    if not report.accepted:
        verdict.fault("refused", f"once saved, {result.status.name}: {report.reason}")


def gap_of(objective: float, bound: float) -> float:
    """(objective − bound)/|objective|: 0 where both are equal, infinite at an objective of 0 otherwise."""
    if not (math.isfinite(objective) and math.isfinite(bound)):
        return math.inf
    if objective == bound:
        return 0.0
    return math.inf if objective == 0.0 else (objective - bound) / abs(objective)


def look(draw: Draw, result: Any, verdict: Verdict) -> None:
    """Judge one result."""
    document, exact = json.loads(result.to_json()), draw.exact
    status, reason, optimum = result.status.name, result.stop_reason.name, exact.optimum
    verdict.counts.add(status)
    if reason == "TIME_LIMIT" and draw.options["time_limit"] == PATIENCE:
        verdict.fault("slow", f"{status} after {result.seconds:.1f} s and {len(result.trace)} records")
    if "NUMERICAL" in (reason, status) or reason == "STALLED":
        verdict.counts.add("numerical")
    if not draw.allowed:
        if status in ("OPTIMAL", "FEASIBLE") or math.isfinite(result.objective):
            verdict.fault("wrong", f"{status} where no selection is allowed")
        return
    if status == "INFEASIBLE":
        verdict.fault("wrong", f"INFEASIBLE, but {len(draw.allowed)} selections are allowed")
        return
    if not optimum.is_sure:
        verdict.counts.add("unsure")
        return
    sides(draw, result, document, optimum, verdict)
    if math.isfinite(result.objective):
        incumbent(draw, result, document, verdict)
    if result.near_optimal is not None and math.isfinite(result.objective):
        listed(draw, result, verdict)


def sides(draw: Draw, result: Any, document: Mapping[str, Any], optimum: Interval, verdict: Verdict) -> None:
    """Objective, bound, gap and status against the optimum and against one another."""
    objective, bound, asked = result.objective, result.bound, float(draw.options["gap"])
    status, reason = result.status.name, result.stop_reason.name
    gap = gap_of(objective, bound)
    for what, value in (("bound", bound), *(("bound of the trace", record.bound) for record in result.trace)):
        if value > optimum.upper + ABOVE * abs(optimum.upper):
            off = (value - optimum.upper) / abs(optimum.upper) if optimum.upper else math.inf
            verdict.fault("wrong", f"{what} {value!r} is {off:.1e} above the optimum {optimum.upper!r}")
            break
    if objective < optimum.lower - ABOVE * abs(optimum.lower):
        verdict.fault("wrong", f"objective {objective!r} is below the optimum {optimum.lower!r}")
    if status == "OPTIMAL":
        if not gap <= asked:
            verdict.fault("above gap", f"OPTIMAL at a gap of {gap:.3g}, asked {asked:g}: {objective!r}, {bound!r}")
        room = asked * abs(objective) + ABOVE * abs(optimum.upper)
        if objective - room > optimum.upper:
            off = (objective - optimum.upper) / abs(optimum.upper) if optimum.upper else math.inf
            verdict.fault("wrong", f"OPTIMAL {objective!r} is {off:.1e} above the optimum {optimum.upper!r}")
    elif reason == "GAP_CLOSED" and status == "FEASIBLE" and gap <= asked:
        verdict.fault("wrong", f"FEASIBLE, GAP_CLOSED at a gap of {gap:.3g}, asked {asked:g}")
    stated = document["gap"]
    right = None if math.isinf(gap) else max(0.0, gap)
    if (stated is None) != (right is None) or (right is not None and abs(stated - right) > 1e-12 * right):
        verdict.fault("wrong gap", f"gap {stated!r} in the JSON, {right!r} by its objective and bound")
    relaxed = document.get("relaxed")
    if relaxed is not None:
        lower, upper = relaxed.get("lower"), relaxed.get("upper")
        if lower is not None and lower > optimum.upper + ABOVE * abs(optimum.upper):
            verdict.fault("wrong", f"the relaxation's lower side {lower!r} is above the optimum {optimum.upper!r}")
        if lower is not None and upper is not None and upper < lower - AGREE * abs(lower):
            verdict.fault("wrong", f"the relaxation's upper side {upper!r} is below its lower side {lower!r}")


def incumbent(draw: Draw, result: Any, document: Mapping[str, Any], verdict: Verdict) -> None:
    """The selection is allowed, its objective no better than its value, and that of the stored weights."""
    chosen = frozenset(draw.names.index(name) for name in result.selected)
    if chosen not in set(draw.allowed):
        verdict.fault("wrong", f"{sorted(result.selected)} is not allowed")
        return
    own, objective = draw.exact.of(chosen), result.objective
    if own.is_sure and objective < own.lower - ABOVE * abs(own.lower):
        verdict.fault("wrong", f"objective {objective!r} is below {own.lower!r}, the least that its support allows")
    value = stored_value(draw, document, chosen)
    if not abs(value - objective) <= AGREE * abs(objective) + own_rounding(draw):
        verdict.fault("weights", f"objective {objective!r}, but the stored weights give {value!r}")


def own_rounding(draw: Draw) -> float:
    """What the oracle's losses Δ of the labellings, which are doubles, take off C Δ."""
    return 2.0**-50 * float(draw.c[0]) if draw.problem.loss == "structural" else 0.0


def stored_value(draw: Draw, document: Mapping[str, Any], chosen: Chosen) -> float:
    """The objective at the stored weights and intercept, summed exactly."""
    problem, data = draw.problem, draw.problem.data
    names = list(data.feature_names)
    X = data.X.toarray() if data.is_sparse else np.asarray(data.X)
    room = {names[j]: Fraction(0) for g in chosen for j in draw.members[g]}
    for g in chosen:
        for j in draw.members[g]:
            room[names[j]] += Fraction(float(problem.atoms.scale[g])) ** 2
    user = {name: Fraction(float(v)) for name, v in document["weights"].items()}
    if not set(user) <= set(room):
        return math.nan
    w = {name: v * Fraction(float(data.scale[names.index(name)])) for name, v in user.items()}
    b = Fraction(float(document["intercept"])) + sum(
        (Fraction(float(data.shift[names.index(name)])) * v for name, v in user.items()), Fraction(0)
    )
    if not problem.bias:  # the stored intercept is that of the shifts, rounded
        if abs(b) > Fraction(math.ulp(document["intercept"])):
            return math.nan
        b = Fraction(0)
    if any(room[name] == 0 for name, v in w.items() if v):
        return math.inf
    half = sum((v * v / room[name] for name, v in w.items() if v), Fraction(0)) / 2
    columns = {name: names.index(name) for name in w}
    f = [
        sum(
            (v * (Fraction(float(X[i, columns[m]])) - Fraction(float(data.center[columns[m]]))) for m, v in w.items()),
            b,
        )
        for i in range(data.n_samples)
    ]
    half += sum((Fraction(float(v)) for v in draw.penalty[sorted(chosen)]), Fraction(0))
    if problem.loss == "structural":
        return float(half) + labelled_loss(draw.exact.svm, f)
    margins = [v if sign > 0 else -v for v, sign in zip(f, data.y, strict=True)]
    if problem.loss == "logistic":
        terms = [max(-float(m), 0.0) + math.log1p(math.exp(-abs(float(m)))) for m in margins]
        return float(half) + math.fsum(c * t for c, t in zip(draw.c.tolist(), terms, strict=True))
    rho = -2 * Fraction(float(document["objective"])) if problem.margin == "rho" else Fraction(1)
    power = 1 if problem.loss == "hinge" else 2
    loss = sum(
        (Fraction(c) * max(Fraction(0), rho - m) ** power for c, m in zip(draw.c.tolist(), margins, strict=True)),
        Fraction(0),
    )
    return float(half + loss / power - (rho if problem.margin == "rho" else 0))


def listed(draw: Draw, result: Any, verdict: Verdict) -> None:
    """The list of near-optimal supports: allowed, of the right values, and complete where it says so."""
    near, exact, allowed = result.near_optimal, draw.exact, set(draw.allowed)
    entries: dict[Chosen, float] = {}
    for entry in near["supports"]:
        chosen, value = frozenset(draw.names.index(name) for name in entry["selected"]), entry["objective"]
        if chosen not in allowed or chosen in entries:
            verdict.fault("list", f"{entry['selected']} is listed, which is not allowed or stands twice")
            continue
        entries[chosen], own = value, exact.of(chosen)
        room = AGREE * abs(own.upper)
        if own.is_sure and not own.lower - room <= value <= own.upper + room:
            verdict.fault("list", f"{entry['selected']} is listed with {value!r}, its value is {own.upper!r}")
        if "weights" in entry:
            stored = stored_value(draw, entry, chosen)
            if not abs(stored - value) <= AGREE * abs(value) + own_rounding(draw):
                verdict.fault("list", f"{entry['selected']} is listed with {value!r}, its weights give {stored!r}")
    if not near["complete"]:
        verdict.counts.add("incomplete")
        return
    best = result.objective
    limit = math.inf if near["gap"] is None else best + near["gap"] * abs(best)
    full = near["size"] is not None and len(entries) >= near["size"]
    if full:
        worst = max(entries.values())
        limit = min(limit, worst - AGREE * abs(worst))
    ties = [entry.get("ties") for entry in near["supports"]]
    added = 0
    for chosen, value in exact.below(limit):
        if value.upper > limit or chosen in entries or not value.is_sure:
            continue
        same = value.lower - AGREE * abs(value.lower)
        if any(less < chosen and objective >= same for less, objective in entries.items()):
            added += 1  # it only adds what has no weight
            continue
        names = sorted(draw.names[g] for g in chosen)
        verdict.fault("list", f"complete, but {names} of value {value.upper!r} is missing below {limit!r}")
        return
    if None not in ties and sum(ties) < added:
        verdict.fault("list", f"complete with {ties} ties, but {added} supports add what has no weight to those listed")
