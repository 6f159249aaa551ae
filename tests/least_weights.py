"""Small problems with bounds on weights that exclude 0, against brute force by Clarabel and both checkers.

    python -m tests.least_weights --count 150 --seed 1 [--forged 2]
    python -m tests.least_weights --case 17

"If selected, at least so much": a selected feature may cost something, and a larger selection may be worse. So the
reference lets Clarabel solve every selection of S, and not only those that no other one holds.

A case has a set of kinds of `tests.kinds` (rows over the selection with `exactly` and `at_least`, penalties, forced
atoms, weights of classes and samples, no intercept, sparse columns, a loss), columns as they are or scaled, bounds of
every shape, and some have rows over the weights of other features. A result must be OPTIMAL, its value that of the
reference, its bound not above it, and its certificate accepted by both checkers. With lists, no support within the gap
may be missing. Forged ones (an end, bounds left out, a weight, a listed support left out, a feature without its weight,
a worse classifier) are to be refused by both, unless what they claim is as true as before: a smaller bound.
"""

from __future__ import annotations

import argparse
import copy
import itertools
import json
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import mipfs
from tests import kinds
from tests.over_weights import ABOVE, AGREE, FORGED_TRIES, GAP, LISTED, Over, _row, _without_weights, campaign
from tests.two_checkers import data_of, remembered, verdicts, written

LEFT_OUT = {"numbers", "groups", "overlapping", "scaled", "signs", "boxes"}
ALLOWED = 1e-9
"""What a row over the selection is given here."""


def case(seed: int) -> Over:
    """A problem drawn by its seed."""
    r = np.random.default_rng([71, seed])
    drawn = kinds.kinds_of(r) - LEFT_OUT
    n, p = int(r.integers(10, 50)), int(r.integers(3, 8))
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
    scale, typical = np.asarray(data.scale), float(np.sqrt(c.max()))
    ends = [_ends(r, typical * 10.0 ** r.uniform(-1.5, 0.5)) for _ in range(p)]
    names = list(data.feature_names)
    stated = {f: (low / s, high / s) for f, (low, high), s in zip(names, ends, scale.tolist(), strict=True)}
    free = [f for f, (low, high) in zip(names, ends, strict=True) if low <= 0.0 <= high]
    rows = [_row(r, names, scale, typical)] if r.random() < 0.25 else []
    rows = [({f: a for f, a in terms.items() if f in free}, low, high) for terms, low, high in rows]
    rows = [row for row in rows if row[0]]
    problem = one.problem.replace(weight_bounds=stated, weight_rows=rows)
    one = replace(one, problem=problem, ends=ends)
    return Over(one, rows, [[j] for j in range(p)], [np.array([1.0 / s]) for s in scale.tolist()])


def _ends(r: np.random.Generator, size: float) -> tuple[float, float]:
    """Two ends of a weight: half of them exclude 0."""
    low, high = sorted(size * r.exponential(1.0, 2))
    found = [(low, np.inf), (low, low + high), (low, low), (0.0, np.inf), (-low, high), (-np.inf, np.inf)][
        int(r.choice(6, p=[0.3, 0.15, 0.05, 0.15, 0.15, 0.2]))
    ]
    return found if r.random() < 0.5 else (0.0 - found[1], 0.0 - found[0])


def allowed(over: Over) -> list[frozenset[int]]:
    """All selections of S."""
    one = over.one
    A, low, high = one.rows
    found = []
    for size in range(min(one.problem.M, len(one.columns)) + 1):
        for chosen in map(frozenset, itertools.combinations(range(len(one.columns)), size)):
            total = A[:, sorted(chosen)].sum(axis=1)
            fits = np.all(total <= high + ALLOWED) and np.all(total >= low - ALLOWED)
            if fits and one.forced[0] <= chosen and not one.forced[1] & chosen:
                found.append(chosen)
    return found


def faults(over: Over, counts: Counter[str], forge: int, r: np.random.Generator) -> list[str]:
    """What is wrong with the answer to a case; nothing."""
    one = over.one
    with_list = one.seed % 3 == 0
    values = {chosen: over.value(chosen) for chosen in allowed(over)}
    best = min(values.values())
    more: dict[str, Any] = {"pool_gap": LISTED} if with_list else {}
    result = mipfs.solve(one.problem, "branch", gap=GAP, time_limit=60.0, **more)
    size = abs(best)
    wrong = [] if result.status is mipfs.Status.OPTIMAL else [f"{result.status.name}, gap {result.gap:.1e}"]
    if result.bound > best + ABOVE * size:
        wrong.append(f"bound {result.bound!r} above {best!r}")
    if abs(result.objective - best) > AGREE * size:
        wrong.append(f"objective {result.objective!r} for {best!r}")
    counts["nodes"] += result.counters.get("nodes", 0)
    counts["held at an end"] += holds(over, result)
    counts["a smaller one is better"] += rises(over, values)
    if with_list:
        wrong += missing(over, result, values, best)
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
        what, lie, arrays, is_true = forged(over, document, found[1], r, values)
        if what:
            told_of += 1
            counts["forged"] += 1
            told = verdicts(lie, arrays, one.problem.data, known)
            if "accepted" in told[:2] and not is_true:
                wrong.append(f"forged {what}: {told}")
            counts[f"{what} as true as before"] += "accepted" in told[:2] and is_true
    return wrong


def holds(over: Over, result: Any) -> bool:
    """Whether some weight of the answer lies at an end that excludes 0."""
    bounds = over.one.problem.weight_bounds
    pairs = [(w, end) for name, w in result.weights.items() for end in bounds.get(name, ()) if bounds[name]]
    return any(end != 0.0 and abs(w - end) <= 1e-6 * abs(end) for w, end in pairs if np.isfinite(end))


def rises(over: Over, values: dict[frozenset[int], float]) -> bool:
    """Whether v, without penalties, is larger somewhere than on a selection within."""
    own = {one: v - float(over.one.costs[sorted(one)].sum()) for one, v in values.items()}
    return any(b < a and own[b] < own[a] * (1.0 - 1e-6) for a in own for b in own)


def missing(over: Over, result: Any, values: dict[frozenset[int], float], best: float) -> list[str]:
    """Supports within the gap that a complete list lacks: each only adds what may have the weight 0 to a listed one."""
    problem = over.one.problem
    listed = [frozenset(problem.atoms_of(one["selected"]).tolist()) for one in result.near_optimal["supports"]]
    within = [one for one, v in values.items() if v <= best * (1.0 + LISTED - 1e-4)]
    must = frozenset(np.flatnonzero(problem.excluding).tolist())
    lost = [sorted(one) for one in within if not any(other <= one and not (one - other) & must for other in listed)]
    if not result.near_optimal["complete"]:
        return ["the list is not complete"]
    return [f"the list lacks {lost}"] if lost else []


def least_of(over: Over, stated: dict[str, Any]) -> float:
    """The optimum with other bounds, as a document states them."""
    data = over.one.problem.data
    ends = []
    for name, s in zip(data.feature_names, np.asarray(data.scale).tolist(), strict=True):
        low, high = stated.get(name) or (None, None)
        ends.append((-np.inf if low is None else low * s, np.inf if high is None else high * s))
    other = replace(over, one=replace(over.one, ends=ends))
    return min(map(other.value, allowed(over)))


def forged(
    over: Over, document: Any, arrays: Any, r: np.random.Generator, values: dict[frozenset[int], float]
) -> tuple[str, Any, Any, bool]:
    """A lie: what it is about ("" where there is none to tell), the document, the arrays, and whether it is none."""
    lie, arrays = copy.deepcopy(document), dict(arrays)
    problem = over.one.problem
    bounds = lie["params"].get("weight_bounds") or {}
    held = [name for name, (low, high) in bounds.items() if (low or 0.0) > 0.0 or (high or 0.0) < 0.0]
    chosen = [name for name in held if name in lie["selected"]]
    kind = int(r.integers(7))
    if kind in (0, 1) and held:  # an end nearer 0, or none: the same is claimed of a problem with more room
        name = str(r.choice(chosen or held))
        low, high = bounds[name]
        nearer = float(r.choice([0.0, 0.5, 0.9])) if kind == 0 else 0.0
        bounds[name] = [low * nearer, high] if (low or 0.0) > 0.0 else [low, high * nearer]
        if kind == 1:
            del bounds[name]
        return "end", lie, arrays, lie["bound"] <= least_of(over, bounds) * (1.0 + ABOVE)
    if kind == 2 and chosen:  # an end beyond the weight
        name = str(r.choice(chosen))
        w, (low, high) = lie["weights"][name], bounds[name]
        bounds[name] = [float(np.nextafter(w, np.inf)), None] if w > 0.0 else [None, float(np.nextafter(w, -np.inf))]
        return "end beyond the weight", lie, arrays, False
    if kind == 3 and chosen:  # a weight that is 0, or missing
        name = str(r.choice(chosen))
        lie["weights"].pop(name)
        lie["weightless"] = sorted([*(lie["weightless"] or []), name], key=problem.data.index.get)
        return "weight of 0", lie, arrays, False
    if kind == 4 and lie["near_optimal"] and len(lie["near_optimal"]["supports"]) > 1:
        supports = lie["near_optimal"]["supports"]
        del supports[int(r.integers(1, len(supports)))]
        times = Counter(name for one in supports for name in one["selected"])
        lie["near_optimal"]["share"] = {name: count / len(supports) for name, count in times.items()}
        return "list", lie, arrays, False
    if kind == 5:  # one more feature, whose weight may not be 0
        more = [name for name in held if name not in lie["selected"]]
        if not more or (problem.M is not None and len(lie["selected"]) >= problem.M) or len(problem.rows):
            return "", lie, arrays, False
        return _with(lie, str(r.choice(more)), problem), lie, arrays, False
    if kind == 6 and not chosen and not problem.weight_rows:
        what, lie, arrays = _without_weights(lie | {"params": lie["params"] | {"weight_rows": []}}, arrays, problem)
        del lie["params"]["weight_rows"]
        return what, lie, arrays, False
    return _raised(lie, values), lie, arrays, False


def _with(lie: Any, name: str, problem: Any) -> str:
    """One more feature is selected, without a weight; what stands there of selected ones stands there of it."""
    j = problem.data.index[name]
    data = problem.data
    lie["selected"] = sorted([*lie["selected"], name], key=data.index.get)
    lie["weightless"] = sorted([*(lie["weightless"] or []), name], key=data.index.get)
    lie["columns"][name] = j
    for what, array in (("shift", data.shift), ("scale", data.scale), ("center", data.center)):
        if what != "center" or array[j]:
            lie["scaling"].setdefault(what, {})[name] = float(array[j])
    lie["near_optimal"] = None
    return "feature of weight 0"


def _raised(lie: Any, values: dict[frozenset[int], float]) -> str:
    """A bound that is above the optimum by more than rounding, with the objective."""
    best = min(values.values())
    if not best > 0.0:
        return ""
    lie["bound"] = lie["certificate"]["bound"] = lie["objective"] = best * (1.0 + 1e-4)
    lie |= {"gap": 0.0, "near_optimal": None}
    return "bound"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the campaign; 1 where something was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.least_weights", description=__doc__)
    parser.add_argument("--count", type=int, default=150)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--case", type=int)
    parser.add_argument("--forged", type=int, default=1, help="forged certificates of every case")
    asked = parser.parse_args(argv)
    drawn, counts = list[frozenset[str]](), Counter[str]()

    def judged(seed: int) -> tuple[frozenset[str], list[str]]:
        with remembered():
            over = case(seed)
        drawn.append(over.one.kinds)
        return over.one.kinds, faults(over, counts, asked.forged, np.random.default_rng([72, seed]))

    failed = campaign(asked, counts, judged)
    print(kinds.pairs(drawn))
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
