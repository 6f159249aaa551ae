"""Small problems with rows over the weights, against brute force by Clarabel and both checkers.

    python -m tests.over_weights --count 300 --seed 1 [--forged 2]
    python -m tests.over_weights --case 17 [--small]

A case has a set of kinds of `tests.kinds` (signs, boxes, groups that may overlap, scaled features, rows over the
selection, penalties, forced atoms, weights of classes and samples, no intercept, sparse columns, a loss), columns
as they are or scaled, and one to three rows over the weights: a zero sum, an order, parity, or any other; small ones
have 3 to 8 features, others 6 to 10. The reference knows them by itself, and Clarabel solves every selection that may
be best. A result must be OPTIMAL, its value that of the reference, its bound not above it, and its certificate accepted
by both checkers. With lists, no support within the gap may be missing. The rungs of a ladder must stand in their order,
none above the optimum. What a run leaves open for reasons of numbers is no more than the allowance of the rows, within
which the reference lets them hold then: where multipliers are large that is worth more than the gap, or than tells a
tie of a list. Forged ones (a multiplier, a coefficient, an end, an allowance, a weight, a row left out) are to be
refused by both, unless what they claim is as true as before: a smaller bound, a row that says less.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import itertools
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import cvxpy as cp
import numpy as np
import numpy.typing as npt

import mipfs
from mipfs.data.over_weights import allowance
from tests import kinds
from tests.bounded_cases import clarabel
from tests.two_checkers import data_of, remembered, verdicts, written

Array = npt.NDArray[np.float64]
Row = tuple[dict[str, float], float | None, float | None]
LEFT_OUT = {"numbers"}
GAP, AGREE, ABOVE = 1e-6, 3e-6, 1e-6
BINDS = 1e-5
"""Rows that change the value of the best selection by this share of it bind there."""
LISTED = 0.02
"""The gap of lists, of every fourth case."""
TOLD = 1e-8
"""Where the allowances change a value by more than this, relatively, ties of a listed support may not be told."""
LADDERS, ORDERED = 5, 1e-5
"""Of one case in so many the ladder is made; how far a rung may stand above the next."""
FORGED_TRIES = 6
"""How often a lie is drawn for one that can be told."""
EVERY = 25
"""After so many cases a campaign says what it has met."""


@dataclass(frozen=True, eq=False)
class Over:
    """A case, its rows, and of every column of an atom that of the data, and the factor to its weight of the user's."""

    one: kinds.Case
    rows: list[Row]
    members: list[list[int]]
    factors: list[Array]

    def value(self, chosen: frozenset[int]) -> float:
        """½‖w‖² + L + costs of a selection, by Clarabel."""
        one = self.one
        data, ids = one.problem.data, sorted(chosen)
        Z = np.hstack([one.columns[g] for g in ids] or [np.zeros((data.n_samples, 0))])
        w, b = cp.Variable(max(1, Z.shape[1])), cp.Variable()
        m = cp.multiply(data.y, (Z @ w if ids else np.zeros(data.n_samples)) + (b if one.problem.bias else 0.0))
        loss = {
            "hinge": lambda: one.c @ cp.pos(1 - m),
            "squared-hinge": lambda: 0.5 * cp.sum(cp.multiply(one.c, cp.square(cp.pos(1 - m)))),
            "logistic": lambda: one.c @ cp.logistic(-m),
        }[one.problem.loss]()
        each = [(j, f, g) for g in ids for j, f in zip(self.members[g], self.factors[g], strict=True)]
        said: list[Any] = []
        for k, (j, _, _) in enumerate(each):
            low, high = one.ends[j]
            said += [w[k] >= low] if np.isfinite(low) else []
            said += [w[k] <= high] if np.isfinite(high) else []
        names = list(data.feature_names)
        for terms, lower, upper in self.rows:
            total = sum((terms.get(names[j], 0.0) * f * w[k] for k, (j, f, _) in enumerate(each)), 0.0)
            if isinstance(total, float):
                continue
            if lower == upper == 0.0:
                said.append(total == 0)
                continue
            said += [] if lower is None else [total >= lower]
            said += [] if upper is None else [total <= upper]
        program = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(w) + loss), said)
        for tol in (1e-9, 1e-7):
            with contextlib.suppress(cp.SolverError):
                program.solve(**clarabel(tol))
                break
        return float(program.value) + float(one.costs[ids].sum())


def case(seed: int, is_small: bool = True) -> Over:
    """A problem drawn by its seed."""
    r = np.random.default_rng([61, seed])
    drawn = kinds.kinds_of(r) - LEFT_OUT
    apart = {"scaled"}, {"signs", "boxes"}  # bounds beside rows are of what is not scaled
    if all(not one.isdisjoint(drawn) for one in apart):
        drawn -= apart[int(r.integers(2))]
    (fewest, most), widths = ((10, 60), (3, 9)) if is_small else ((20, 61), (6, 11))
    n, p = int(r.integers(fewest, most)), int(r.integers(*widths))
    X = r.normal(size=(n, p)) * (r.random((n, p)) < 0.5 if "sparse" in drawn else 1.0)
    y = np.where(X[:, : 1 + p // 2].sum(axis=1) + r.normal(size=n) > 0.0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    weight = r.uniform(0.3, 3.0, n) if "sample weights" in drawn else None
    scaling = str(r.choice(["none", "standard", "unit"]))
    raw: Any = X * 10.0 ** r.uniform(-2, 2, p) if scaling != "none" else X
    if "sparse" in drawn and r.random() < 0.5:
        from scipy import sparse

        raw = sparse.csc_array(raw)
    data = mipfs.Instance.from_arrays(raw, y, scale=scaling, sample_weight=weight)
    X = np.asarray(data.stated(np.arange(p)))
    by_class = (1.0, float(r.uniform(0.3, 3.0))) if "class weights" in drawn else (1.0, 1.0)
    C = 10.0 ** r.uniform(-2, 1)
    c = C * (np.ones(n) if weight is None else weight) * np.where(y > 0.0, by_class[1], by_class[0])
    one = kinds._drawn(seed, r, drawn, data, X, 1.0, c, C, by_class)
    scale = np.asarray(data.scale)
    atoms = one.problem.atoms
    columns = [atoms.columns(np.array([g])) for g in range(atoms.count)]
    if {"signs", "boxes"} & drawn:  # said on the user's scale
        one = replace(one, ends=[(low * s, high * s) for (low, high), s in zip(one.ends, scale, strict=True)])
    typical = float(np.sqrt(c.max())) * (1.0 if is_small else 0.05)  # of larger ones fewer rows would bind
    rows = [_row(r, list(data.feature_names), scale, typical) for _ in range(int(r.integers(1 if is_small else 2, 4)))]
    problem = one.problem.replace(weight_rows=rows)
    members = [col.ids.tolist() for col in columns]
    factors = [col.scale / scale[col.ids] for col in columns]
    return Over(replace(one, problem=problem), rows, members, factors)


def _row(r: np.random.Generator, names: list[str], scale: Array, typical: float) -> Row:
    """A row over the weights."""
    kind = int(r.integers(5))
    some = r.permutation(len(names))[: int(r.integers(2, min(5, len(names)) + 1))].tolist()
    if kind == 0:
        return {names[j]: 1.0 for j in some}, 0.0, 0.0
    if kind == 1:
        return {names[some[0]]: 1.0, names[some[1]]: -1.0}, 0.0, None
    a = {names[j]: float(r.normal() * scale[j] * 10.0 ** r.uniform(-1, 1)) for j in some}
    size = typical * float(np.abs([one / scale[j] for one, j in zip(a.values(), some, strict=True)]).mean())
    if kind == 2:
        return a, 0.0, 0.0
    low, high = (-float(r.exponential(0.3 * size)) for _ in range(2))
    if kind == 3:
        return a, low, -low
    return (a, None, -high) if r.random() < 0.5 else (a, low, 0.0 if r.random() < 0.5 else None)


def faults(over: Over, counts: Counter[str], forge: int, r: np.random.Generator) -> list[str]:
    """What is wrong with the answer to a case; nothing."""
    one = over.one
    with_list = one.seed % 4 == 0
    values = {chosen: over.value(chosen) for chosen in one.allowed()}
    best = min(values.values())
    more: dict[str, Any] = {"pool_gap": LISTED} if with_list else {}
    result = mipfs.solve(one.problem, "branch", gap=GAP, time_limit=60.0, **more)
    size = abs(best)
    wrong = [] if result.status is mipfs.Status.OPTIMAL else [f"{result.status.name}, gap {result.gap:.1e}"]
    if wrong and result.stop_reason is mipfs.StopReason.NUMERICAL and result.bound >= within(over) - ABOVE * size:
        counts["open within the allowance"] += 1
        wrong = []
    if result.bound > best + ABOVE * size:
        wrong.append(f"bound {result.bound!r} above {best!r}")
    if abs(result.objective - best) > AGREE * size:
        wrong.append(f"objective {result.objective!r} for {best!r}")
    counts["nodes"] += result.counters.get("nodes", 0)
    counts["binding"] += binds(over, min(values, key=lambda one: values[one]))
    if with_list:
        wrong += missing(over, result, values, counts)
    if one.seed % LADDERS == 0:
        wrong += unordered(over, best)
    found = written(result)
    assert found is not None
    document = json.loads(found[0])
    known = data_of(one.problem.data)
    said = verdicts(document, found[1], one.problem.data, known)
    wrong += [f"checkers: {said}"] if said[0] != "accepted" or said[1] != "accepted" else []
    told_of = 0
    for _ in range(forge * FORGED_TRIES):
        if told_of == forge:
            break
        what, lie, arrays = forged(document, found[1], r, one.problem)
        if what:
            told_of += 1
            counts["forged"] += 1
            told = verdicts(lie, arrays, one.problem.data, known)
            if "accepted" in told[:2] and not is_true(over, lie):
                wrong.append(f"forged {what}: {told}")
    return wrong


def missing(over: Over, result: Any, values: dict[frozenset[int], float], counts: Counter[str]) -> list[str]:
    """Supports within the gap that a complete list lacks: each holds one that is listed."""
    best = min(values.values())
    listed = [frozenset(over.one.problem.atoms_of(one["selected"]).tolist()) for one in result.near_optimal["supports"]]
    within = [one for one, v in values.items() if v <= best * (1.0 + LISTED - 1e-4)]
    lost = [sorted(one) for one in within if not any(other <= one for other in listed)]
    counts["lists"] += 1
    if not result.near_optimal["complete"]:
        wide = allowed_more(over)
        if not any(v - wide.value(chosen) > TOLD * abs(v) for chosen, v in values.items()):
            return ["the list is not complete"]
        counts["lists open within the allowance"] += 1
        return []
    return [f"the list lacks {lost}"] if lost else []


def unordered(over: Over, best: float) -> list[str]:
    """What is wrong with the ladder of a case: a rung above the next one, or above the optimum; nothing."""
    rungs = {one.name: one.value for one in mipfs.compare(over.one.problem).ladder if np.isfinite(one.value)}
    known = [
        name for name in ("plain", "qcqp-ssvm", "sdp-ssvm", "nmmkl", "boolean", "convex-hull", "exact") if name in rungs
    ]
    room = ORDERED * abs(best)
    wrong = [f"{a} {rungs[a]!r} > {b} {rungs[b]!r}" for a, b in itertools.pairwise(known) if rungs[a] > rungs[b] + room]
    return wrong + [f"{name} {value!r} above {best!r}" for name, value in rungs.items() if value > best + room]


def is_true(over: Over, lie: Any) -> bool:
    """Whether what is claimed is so for the rows that are stated: the bound is one."""
    left = [(one["coefficients"], one["lower"], one["upper"]) for one in lie["params"].get("weight_rows") or []]
    other = replace(over, rows=left)
    return bool(lie["bound"] <= min(map(other.value, over.one.allowed())) * (1.0 + ABOVE))


def within(over: Over) -> float:
    """The optimum where rows hold within their allowances."""
    return min(map(allowed_more(over).value, over.one.allowed()))


def allowed_more(over: Over) -> Over:
    """The case whose rows hold within the allowance of the largest weight of any optimum, as in a bound."""
    rows = list[Row]()
    for terms, lower, upper in over.rows:
        ends = (-np.inf if lower is None else lower), (np.inf if upper is None else upper)
        e = allowance(terms.values(), ends, over.one.problem.ends.largest)
        rows.append((terms, None if lower is None else lower - e, None if upper is None else upper + e))
    return replace(over, rows=rows)


def binds(over: Over, chosen: frozenset[int]) -> bool:
    """Whether the value of a selection is another one without the rows."""
    return bool(replace(over, rows=[]).value(chosen) < over.value(chosen) * (1.0 - BINDS))


def forged(document: Any, arrays: Any, r: np.random.Generator, problem: Any) -> tuple[str, Any, Any]:
    """A lie: what it is about ("" where there is none to tell), the document and the arrays."""
    lie, arrays = copy.deepcopy(document), dict(arrays)
    rows = lie["params"]["weight_rows"]
    k = int(r.integers(len(rows)))
    row = rows[k]
    kind = int(r.integers(6))
    if kind == 0:  # an allowance
        row["allowance"] *= float(r.choice([0.5, 2.0, 1.0 + 2.0**-50, 1e6]))
        return ("allowance", lie, arrays) if row["allowance"] else ("", lie, arrays)
    if kind == 1:  # a row is left out: its multipliers do not fit
        del rows[k]
        if not rows:
            del lie["params"]["weight_rows"]
        return "row left out", lie, arrays
    if kind == 2:  # a coefficient: the allowance is another one
        name = str(r.choice(list(row["coefficients"])))
        row["coefficients"][name] *= float(r.choice([-1.0, 3.0, 0.25])) if r.random() < 0.8 else 1.0 + 1e-3
        weights = [abs(w) for w in lie["weights"].values()]
        return ("coefficient", lie, arrays) if _matters(document, lie) and weights else ("", lie, arrays)
    if kind == 3:  # an end
        side = "lower" if row["lower"] is not None else "upper"
        row[side] = float(r.choice([0.5, -1.0])) if side == "lower" else float(r.choice([-0.5, 1.0]))
        return "end", lie, arrays
    if kind == 4:  # a weight that breaks a row, in the classifier
        names = [name for name in row["coefficients"] if name in lie["weights"]]
        if not names:
            return "", lie, arrays
        lie["weights"][names[0]] *= float(r.choice([-1.0, 1.0 + 1e-4, 1.0 + 1e-9]))
        return ("weight" if _is_broken(row, lie["weights"]) else "", lie, arrays)
    return _without_weights(lie, arrays, problem)


def _is_broken(row: Any, weights: dict[str, float]) -> bool:
    """Whether weights break a row by more than its allowance."""
    total = sum(Fraction(a) * Fraction(weights.get(name, 0.0)) for name, a in row["coefficients"].items())
    low, high, e = row["lower"], row["upper"], Fraction(row["allowance"])
    return (low is not None and total < Fraction(low) - e) or (high is not None and total > Fraction(high) + e)


def _matters(document: Any, lie: Any) -> bool:
    """Whether the allowance that is stated is another than the one of the forged coefficients."""
    pairs = zip(document["params"]["weight_rows"], lie["params"]["weight_rows"], strict=True)
    return any(_size(a) != _size(b) for a, b in pairs)


def _size(row: Any) -> Fraction:
    """Σ|a_j| of a row."""
    return sum((abs(Fraction(a)) for a in row["coefficients"].values()), Fraction(0))


def _without_weights(lie: Any, arrays: Any, problem: Any) -> tuple[str, Any, Any]:
    """A worse classifier that keeps all rows is called optimal, by dual vectors whose last number is another one."""
    chosen = problem.atoms_of(lie["selected"])
    columns = problem.atoms.columns(chosen).ids
    found = problem.evaluate(chosen, np.zeros(columns.size), 0.0)
    if not found > lie["objective"] * (1.0 + 1e-4):
        return "", lie, arrays
    lie |= {"weights": {}, "weightless": [problem.data.feature_names[j] for j in np.unique(columns)], "intercept": 0.0}
    lie |= {"objective": found, "bound": found, "gap": 0.0, "near_optimal": None}
    lie["certificate"]["bound"] = found
    for row in lie["params"]["weight_rows"]:
        row["allowance"] = allowance(row["coefficients"].values(), _ends(row), 0.0)
    arrays["dual_bytes"] = np.array(arrays["dual_bytes"])
    arrays["dual_bytes"][np.flatnonzero(arrays["dual_bytes"])[-1:]] ^= 1
    return "bound", lie, arrays


def _ends(row: Any) -> tuple[float, float]:
    """The two ends, infinite where there is none."""
    low, high = row["lower"], row["upper"]
    return (-np.inf if low is None else low), (np.inf if high is None else high)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the campaign; 1 where something was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.over_weights", description=__doc__)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--case", type=int)
    parser.add_argument("--forged", type=int, default=1, help="forged certificates of every case")
    parser.add_argument("--small", action="store_true", help="of 3 to 8 features")
    asked = parser.parse_args(argv)
    drawn, counts = list[frozenset[str]](), Counter[str]()

    def judged(seed: int) -> tuple[frozenset[str], list[str]]:
        with remembered():
            over = case(seed, asked.small)
        drawn.append(over.one.kinds)
        return over.one.kinds, faults(over, counts, asked.forged, np.random.default_rng([62, seed]))

    failed = campaign(asked, counts, judged)
    print(f"a row binds in {counts['binding'] / len(drawn):.0%}; {kinds.pairs(drawn)}")
    return int(failed > 0)


def campaign(asked: Any, counts: Counter[str], judged: Callable[[int], tuple[Iterable[str], list[str]]]) -> int:
    """Judge one case after the other, and say now and then what has been met; how many are wrong.

    Parameters
    ----------
    asked : with `case`, or `seed` and `count`
    judged : of a seed the kinds, and what is wrong; it keeps the counts
    """
    seeds = range(asked.seed, asked.seed + asked.count) if asked.case is None else [asked.case]
    failed = 0
    for done, seed in enumerate(seeds, 1):
        kinds_of, wrong = judged(seed)
        failed += bool(wrong)
        if wrong:
            print(f"{seed} ({', '.join(sorted(kinds_of))}): {'; '.join(wrong)}", flush=True)
        if done % EVERY == 0 or done == len(seeds):
            met = ", ".join(f"{name} {count}" for name, count in counts.items())
            print(f"{done} problems, {failed} wrong, {time.process_time():.0f} CPU s; {met}", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
