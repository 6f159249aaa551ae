"""Small problems of every pair of kinds that the batch relaxes, against brute force by Clarabel and both checkers.

    python -m tests.kinds --count 1000 --seed 1 [--threads 2]
    python -m tests.kinds --case 17
    python -m tests.kinds --count 200 --seed 1 --by scip   # p from 11 to 18, where SCIP is the reference
    python -m tests.kinds --count 200 --seed 1 --by runs   # of those: the same bytes, however a run is cut
    python -m tests.kinds --count 200 --seed 1 --by classes   # three classes on one support, with ends of each class

A case is a set of kinds: signs, boxes; groups, overlapping groups, scaled features; rows; penalties; forced atoms;
class weights and sample weights; no intercept; sparse columns; large and small numbers; a loss. All nodes are relaxed
by the batch (``relax="batch"``). The reference knows columns, ends, λ and rows by itself, and Clarabel solves every
selection that may be best. A result must be OPTIMAL, its value that of the reference, its bound not above it, and its
certificate accepted by both checkers. In the end a table says how often every pair of kinds was drawn.

Runs of a problem, all with ``relax="batch"``: closed with 1 and 2 threads, ended by a limit of nodes with 1 and 2, and
resumed from states on the way, are compared to the byte but for seconds; one that is interrupted must be verified.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np
import numpy.typing as npt

import mipfs
from mipfs.atoms.features import Features
from mipfs.atoms.groups import Groups
from mipfs.data.instance import Labels
from mipfs.settings import BatchSettings, BranchSettings, SearchSettings
from mipfs.shared import shared_problem
from tests.bounded_cases import clarabel, declared
from tests.drivers import test_resumed
from tests.two_checkers import data_of, remembered, second, verdicts, written

Array = npt.NDArray[np.float64]
LOSSES = "hinge", "squared-hinge", "logistic"
TOGETHER = ("groups", "overlapping", "scaled"), ("signs", "boxes")
"""Of either of these one is in a case."""
APART = {"scaled", "signs"}, {"scaled", "boxes"}, {"overlapping", "boxes"}
"""Of these no two are: ends of weights are about columns without a scale, those of a column in several groups signs."""
OFTEN = 30
"""How often every pair of kinds is to be met."""
OTHERS = "rows", "penalties", "forced", "class weights", "sample weights", "no intercept", "sparse", "numbers"
SCIP_GAP, SCIP_AGREES = 1e-4, 1e-4
"""What is asked of SCIP, and how far its bound may be off by its tolerances."""
GAP, AGREE, ABOVE = 1e-6, 3e-6, 1e-6
"""What is asked; by how much, relatively, values may differ; and a bound be above a value that Clarabel has to 1e-9."""


@dataclass(frozen=True, eq=False)
class Case:
    """A problem and what the reference needs of it: the columns of every atom, times its λ, which columns these are,
    ends of every column, costs and rows.

    The reference's numbers are of ordinary size: columns of the problem are `size` times these, objectives 1/size².
    """

    seed: int
    kinds: frozenset[str]
    problem: Any
    columns: list[Array]
    members: list[list[int]]
    ends: list[tuple[float, float]]
    costs: Array
    c: Array
    rows: tuple[Array, Array, Array]
    forced: tuple[frozenset[int], frozenset[int]]
    size: float

    def allowed(self) -> list[frozenset[int]]:
        """Selections of S; only those that no other one holds, unless atoms cost something."""
        A, low, high = self.rows
        count = len(self.columns)
        found = list[frozenset[int]]()
        for size in range(min(self.problem.M, count), -1, -1):
            for one in map(frozenset, itertools.combinations(range(count), size)):
                total = A[:, sorted(one)].sum(axis=1)
                fits = np.all(total <= high + 1e-9) and np.all(total >= low - 1e-9)
                fits = fits and self.forced[0] <= one and not self.forced[1] & one
                if fits and ("penalties" in self.kinds or not any(one < other for other in found)):
                    found.append(one)
        return found

    def value(self, chosen: frozenset[int]) -> float:
        """½‖w‖² + L + costs of a selection, by Clarabel."""
        data, ids = self.problem.data, sorted(chosen)
        Z = np.hstack([self.columns[g] for g in ids] or [np.zeros((data.n_samples, 0))])
        of = np.array([j for g in ids for j in self.members[g]], dtype=np.int64)
        if {
            "signs",
            "boxes",
        } & self.kinds:  # of the whole weight of a column, which costs ½w²/k in k groups
            of, first, copies = np.unique(of, return_index=True, return_counts=True)
            Z = Z[:, first] * np.sqrt(copies)
            low, high = np.array([self.ends[j] for j in of]).reshape(-1, 2).T / np.sqrt(copies)
        else:
            low, high = np.full((2, of.size), np.inf) * np.array([[-1.0], [1.0]])
        program = declared(Z, data.y, self.c, self.problem.loss, self.problem.bias, (low, high))
        for tol in (1e-9, 1e-7):  # the interior point stalls at the first here and there
            with contextlib.suppress(cp.SolverError):
                program.solve(**clarabel(tol))
                break
        return (float(program.value) + float(self.costs[ids].sum())) / self.size**2


def kinds_of(r: np.random.Generator) -> frozenset[str]:
    """A loss, and every other kind with about one chance in three."""
    found = {str(r.choice(LOSSES))} | {kind for kind in OTHERS if r.random() < 0.42}
    for kinds in TOGETHER:
        if r.random() < 0.85:
            found.add(str(r.choice(kinds)))
    if any(two <= found for two in APART):
        found -= {*TOGETHER[int(r.integers(2))]}
    return frozenset(found)


def case(seed: int, more: int = 0, far: float = 6.0) -> Case:
    """A problem drawn by its seed, of up to 9 + `more` features and 2 + `more` at least, of sizes 10^−far to 10^far."""
    r = np.random.default_rng([6, seed] if more == 0 else [6, seed, more])
    kinds = kinds_of(r)
    n, p = int(r.integers(4 + 4 * more, 60 + 4 * more)), int(r.integers(2, 10)) + more
    size = 10.0 ** r.uniform(-far, far) if "numbers" in kinds else 1.0
    X = r.normal(size=(n, p)) * (r.random((n, p)) < 0.4 if "sparse" in kinds else 1.0)
    y = np.where(X[:, : 1 + p // 2].sum(axis=1) + r.normal(size=n) > 0.0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    weight = r.uniform(0.3, 3.0, n) if "sample weights" in kinds else None
    data = mipfs.Instance.from_arrays(X * size, y, scale="none", sample_weight=weight)
    by_class = (1.0, float(r.uniform(0.3, 3.0))) if "class weights" in kinds else (1.0, 1.0)
    C = 10.0 ** r.uniform(-2, 1)
    c = C * (np.ones(n) if weight is None else weight) * np.where(y > 0.0, by_class[1], by_class[0])
    return _drawn(seed, r, kinds, data, X, size, c, C, by_class)


def _drawn(
    seed: int, r: np.random.Generator, kinds: frozenset[str], data: Any, X: Array, size: float, c: Array, C: float,
    by_class: tuple[float, float],
) -> Case:  # fmt: skip
    """The atoms, ends, costs and rows of a case on some data."""
    p = data.n_features
    names, more = list(data.feature_names), dict[str, Any]()
    members = [[j] for j in range(p)]
    if "groups" in kinds:
        owner = r.integers(0, max(1, p - 1), p)
        members = [np.flatnonzero(owner == g).tolist() for g in np.unique(owner)]
    elif "overlapping" in kinds:
        members = [sorted(r.choice(p, int(r.integers(1, min(3, p) + 1)), replace=False).tolist()) for _ in range(p)]
    lam = r.uniform(0.3, 2.0, len(members)) if "scaled" in kinds else np.ones(len(members))
    if {"groups", "overlapping"} & kinds:
        more["atoms"] = Groups(data, {f"g{g}": one for g, one in enumerate(members)})
    elif "scaled" in kinds:
        more["atoms"] = Features(data, lam)
    count = len(members)
    typical = float(np.sqrt(c.max()))
    ends = [(-np.inf, np.inf)] * p
    if "signs" in kinds:
        ends = [((0.0, np.inf), (-np.inf, 0.0), (-np.inf, np.inf))[int(r.integers(3))] for _ in range(p)]
    elif "boxes" in kinds:
        ends = [(-float(r.exponential(typical)), float(r.exponential(typical))) for _ in range(p)]
    if {"signs", "boxes"} & kinds:
        more["weight_bounds"] = {
            f: (None if low == -np.inf else low / size, None if high == np.inf else high / size)
            for f, (low, high) in zip(names, ends, strict=True)
        }
    costs = r.uniform(0.0, 0.2, count) * float(c.sum()) if "penalties" in kinds else np.zeros(count)
    M = int(r.integers(1, min(4, count) + 1))
    forced = _forced(r, count, M) if "forced" in kinds else (frozenset[int](), frozenset[int]())
    labels = [f"g{g}" for g in range(count)] if {"groups", "overlapping"} & kinds else names
    if "penalties" in kinds:
        more["lam"] = (costs / size**2).tolist()
    if "class weights" in kinds:
        more["class_weight"] = {-1: by_class[0], 1: by_class[1]}
    problem = mipfs.Problem(
        data, M=M, C=C / size**2, loss=next(one for one in LOSSES if one in kinds), bias="no intercept" not in kinds,
        forced_in=tuple(labels[g] for g in forced[0]), forced_out=tuple(labels[g] for g in forced[1]), **more,
    )  # fmt: skip
    rows = _rows(r, count, M, forced) if "rows" in kinds else (np.zeros((0, count)), np.empty(0), np.empty(0))
    problem = problem.with_rows(*rows) if rows[1].size else problem
    columns = [X[:, one] * lam[g] for g, one in enumerate(members)]
    return Case(seed, kinds, problem, columns, members, ends, costs, c, rows, forced, size)


def _forced(r: np.random.Generator, count: int, M: int) -> tuple[frozenset[int], frozenset[int]]:
    """An atom that is in, where there is room, and one that is out."""
    both = r.permutation(count)[:2].tolist()
    return frozenset(both[: int(M > 0)]), frozenset(both[1:])


def _rows(r: np.random.Generator, count: int, M: int, forced: Any) -> tuple[Array, Array, Array]:
    """A budget, an implication or a conflict, at least so many of some, or exactly M; some selection satisfies them."""
    inside = np.zeros(count)
    free = [g for g in range(count) if g not in forced[1]]
    chosen = sorted(forced[0]) + [g for g in r.permutation(free).tolist() if g not in forced[0]]
    inside[chosen[:M]] = 1.0
    cost = r.uniform(0.2, 2.0, count).round(1)
    A, low, high = [cost], [-np.inf], [float(cost @ inside) * float(r.uniform(1.0, 1.3))]
    if count > 1 and r.random() < 0.6:
        a, b = r.permutation(count)[:2]
        row = np.zeros(count)
        row[a], row[b] = 1.0, -1.0 if r.random() < 0.5 else 1.0
        A, low, high = [*A, row], [*low, -np.inf], [*high, max(float(row @ inside), 0.0 if row[b] < 0.0 else 1.0)]
    if r.random() < 0.5:
        some = (r.random(count) < 0.6).astype(float)
        A, low, high = [*A, some], [*low, float(min(some @ inside, 1.0))], [*high, np.inf]
    if r.random() < 0.3:
        A, low, high = [*A, np.ones(count)], [*low, float(inside.sum())], [*high, float(inside.sum())]
    return np.array(A), np.array(low), np.array(high)


def faults(one: Case, threads: int, counts: Counter[str]) -> list[str]:
    """What is wrong with the answer to a case; nothing."""
    best = min(map(one.value, one.allowed()))
    result = mipfs.solve(one.problem, "branch", gap=GAP, relax="batch", threads=threads, time_limit=60.0)
    size = abs(best)
    wrong = [] if result.status is mipfs.Status.OPTIMAL else [f"{result.status.name}, gap {result.gap:.1e}"]
    if result.bound > best + ABOVE * size:
        wrong.append(f"bound {result.bound!r} above {best!r}")
    if abs(result.objective - best) > AGREE * size:
        wrong.append(f"objective {result.objective!r} for {best!r}")
    counts.update(dict(nodes=result.counters.get("nodes", 0), rescued=result.counters.get("rescued", 0)))
    return wrong + refused(one.problem.data, result)


def refused(data: Any, result: Any, raw: Any = None) -> list[str]:
    """What the checkers say against a result; nothing. `raw` is the data for the second one."""
    found = written(result)
    if found is None:
        return []
    said = verdicts(json.loads(found[0]), found[1], data, data_of(data) if raw is None else raw)
    return [f"checkers: {said}"] if said[0] != "accepted" or said[1] != "accepted" else []


def against_scip(one: Case, threads: int, counts: Counter[str]) -> list[str]:
    """What is wrong with the answer to a larger case, where SCIP closes the declared model within a minute."""
    own = mipfs.solve(one.problem, "branch", gap=GAP, relax="batch", threads=threads, time_limit=120.0)
    other = mipfs.solve(one.problem, "monolithic", gap=SCIP_GAP, time_limit=60.0)
    counts.update(dict(nodes=own.counters.get("nodes", 0), rescued=own.counters.get("rescued", 0)))
    counts[f"SCIP {other.status.name}"] += 1
    size = abs(own.objective)
    wrong = [] if own.status is mipfs.Status.OPTIMAL else [f"{own.status.name}, gap {own.gap:.1e}"]
    if own.bound > other.objective + ABOVE * size:
        wrong.append(f"bound {own.bound!r} above {other.objective!r} of SCIP")
    if other.status is mipfs.Status.OPTIMAL and own.objective < other.bound - SCIP_AGREES * size:
        wrong.append(f"objective {own.objective!r} below the bound {other.bound!r} of SCIP")
    return wrong + refused(one.problem.data, own)


def of_runs(one: Case, _threads: int, counts: Counter[str]) -> list[str]:
    """What is wrong with runs of a larger case that are ended, cut, and resumed."""
    search = SearchSettings(rest=1e-3, rest_share=10**6, after_nodes=0)
    often = BranchSettings(search=search, batch=BatchSettings(below=4))  # small subtrees: many steps
    asked: dict[str, Any] = {"gap": GAP, "relax": "batch", "settings": often, "batch": 2}
    with tempfile.TemporaryDirectory() as held:
        folder = Path(held)

        def solved(**more: Any) -> tuple[Any, Any]:
            result = mipfs.solve(one.problem, "branch", **asked, **more)
            return result, test_resumed.written(result, folder / "r")

        result, whole = solved(threads=1)
        nodes = result.counters["nodes"]
        counts.update(dict(nodes=nodes, rescued=result.counters.get("rescued", 0)))
        wrong = ["2 threads: other bytes"] if solved(threads=2)[1] != whole else []
        limit = max(1, nodes // 2)
        ended = [solved(threads=threads, iteration_limit=limit) for threads in (1, 2)]
        wrong += [f"{limit} nodes with 2 threads: other bytes"] if ended[0][1] != ended[1][1] else []
        wrong += refused(one.problem.data, ended[0][0])
        with mipfs.start(one.problem, "branch", **asked, threads=2) as session:
            for step, _ in enumerate(session, 1):
                if session._run.is_exact and (step in (1, 2, 3) or step % 5 == 0):
                    session.state.save(folder / f"{step}.npz")
        with mipfs.start(one.problem, "branch", **asked, threads=2) as session:
            while session.step() and session._run.iteration < limit:
                pass
            wrong += refused(one.problem.data, session.result())
        for place in sorted(folder.glob("*.npz")):
            counts["resumed"] += 1
            wrong += [f"resumed from {place.stem}: other bytes"] if solved(resume=place)[1] != whole else []
    return wrong


def of_classes(one: Case, threads: int, counts: Counter[str]) -> list[str]:
    """What is wrong with three classes on one support, drawn of a case's columns, where each has ends of its own."""
    r = np.random.default_rng([7, one.seed])
    X = np.asarray(one.problem.data.block().dense())[:, :6]
    n, p = X.shape
    label = np.searchsorted([-0.5, 0.5], X @ r.normal(size=p) + r.normal(size=n))
    label[:3] = 0, 1, 2
    scale, loss, bias = str(r.choice(("none", "standard", "unit"))), one.problem.loss, one.problem.bias
    instances = [
        mipfs.Instance.from_arrays(X, np.where(label == k, 1.0, -1.0), scale=scale, labels=Labels(f"not {k}", k))
        for k in range(3)
    ]
    C, M = 10.0 ** r.uniform(-2, 1), int(r.integers(1, min(3, p) + 1))
    choices = (-np.inf, np.inf), (0.0, np.inf), (-np.inf, 0.0), (-0.3, 0.2), (0.0, 0.1)
    ends = np.array(choices)[r.integers(len(choices), size=(3, p))]
    bounds = {f"x{j + 1}|{k}": tuple(ends[k, j]) for k in range(3) for j in range(p)}
    problem = shared_problem(instances, M=M, C=C, loss=loss, bias=bias, weight_bounds=bounds)
    result = mipfs.solve(problem, "branch", gap=GAP, relax="batch", threads=threads, time_limit=60.0)
    divisor = {"none": np.ones(p), "standard": X.std(axis=0), "unit": np.linalg.norm(X, axis=0)}[scale]
    divisor[divisor == 0.0] = 1.0
    Z = (X - (X.mean(axis=0) if scale == "standard" else 0.0)) / divisor
    best = np.inf
    for ids in map(list, itertools.combinations(range(p), M)):
        total = 0.0
        for k in range(3):
            low, high = (ends[k, ids] * divisor[ids][:, None]).T
            program = declared(
                np.column_stack([Z[:, ids], np.ones((n, int(bias)))]), np.where(label == k, 1.0, -1.0), C * np.ones(n),
                loss, False, (np.append(low, [-np.inf] * bias), np.append(high, [np.inf] * bias)),
            )  # fmt: skip
            program.solve(**clarabel(1e-9))
            total += float(program.value)
        best = min(best, total)
    counts.update(dict(nodes=result.counters.get("nodes", 0), rescued=result.counters.get("rescued", 0)))
    wrong = [] if result.status is mipfs.Status.OPTIMAL else [f"{result.status.name}, gap {result.gap:.1e}"]
    if result.bound > best + ABOVE * best or abs(result.objective - best) > AGREE * best:
        wrong.append(f"{result.bound!r} to {result.objective!r} for {best!r}")
    stack = problem.data
    raw = second().Data(
        list(stack.feature_names), stack.X.toarray().T.tolist(), stack.y.tolist(), stack.sample_weight.tolist(),
        labels={"negative": stack.labels.negative, "positive": stack.labels.positive},
    )  # fmt: skip
    return wrong + refused(stack, result, raw)


BY = {
    "clarabel": (faults, 0, 6.0),
    "scip": (against_scip, 9, 1.0),
    "runs": (of_runs, 20, 6.0),
    "classes": (of_classes, 0, 0.0),
}
"""What an answer is held against, how many features more there are, and by how many powers of ten sizes go apart."""


def pairs(drawn: Sequence[frozenset[str]]) -> str:
    """How many pairs of kinds were drawn often enough, and how often the rarest."""
    every = Counter(pair for kinds in drawn for pair in itertools.combinations(sorted(kinds), 2))
    rare = sorted(every.items(), key=lambda item: item[1])[:8]
    often = sum(count >= OFTEN for count in every.values())
    return f"{often} of {len(every)} pairs at least {OFTEN} times, the rarest: " + ", ".join(
        f"{a} + {b} {count}" for (a, b), count in rare
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the campaign; 1 where something was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.kinds", description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--case", type=int)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--by", choices=BY, default="clarabel")
    asked = parser.parse_args(argv)
    seeds = range(asked.seed, asked.seed + asked.count) if asked.case is None else [asked.case]
    drawn, failed, counts = list[frozenset[str]](), 0, Counter[str]()
    held_against, more, far = BY[asked.by]
    for seed in seeds:
        with remembered():
            one = case(seed, more, far)
        drawn.append(one.kinds)
        wrong = held_against(one, asked.threads, counts)
        failed += bool(wrong)
        if wrong:
            print(f"{seed} ({', '.join(sorted(one.kinds))}): {'; '.join(wrong)}", flush=True)
    print(f"{len(drawn)} problems, {failed} wrong; {counts['nodes']} nodes, {counts['rescued']} by the interior point")
    others = [f"{name} {count}" for name, count in counts.items() if name not in ("nodes", "rescued")]
    print(", ".join([*others, pairs(drawn)]))
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
