"""Edit and go on: CPU time of the second solve from the first one's result, against the same solve from nothing.

    MIPFS_DATA=DATA python benchmarks/edits.py            # a table, and the median ratio of every kind of edit
    MIPFS_DATA=DATA python benchmarks/edits.py german     # one of sonar, german, spambase
    MIPFS_DATA=DATA python benchmarks/edits.py frontier   # twelve budgets on german as a frontier, and one by one
    MIPFS_DATA=DATA python benchmarks/edits.py chain      # thirteen budgets on sonar, each from the one before

DATA has a folder for each, with ``data.svm.gz``. Three edits cut the optimum off or make it dearer: a row that forbids
its support, a budget that it just exceeds, a cost on its first feature; three others are M + 1, that row again without
its last feature (looser), and C × 1.1. One thread, gap 1e-4, hinge, standard scale; both solves in one process, one
after the other, their objectives compared; what takes less than a second is done five times, in turn, and the medians
count.
"""

from __future__ import annotations

import dataclasses
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import mipfs
from mipfs.problem import Problem
from mipfs.result.result import Result

WORKLOADS = {
    "sonar": ((5, 0.1), (6, 0.1), (4, 1.0)),
    "german": ((5, 1.0), (8, 1.0), (6, 0.1)),
    "spambase": ((3, 0.1), (4, 0.1)),
    "frontier": ((10, 1.0), (8, 1.0), (10, 0.1)),
}
BUDGETS = [float(end) for end in range(3, 15)]
TIGHTER = "a row", "a budget", "a cost"
ROUNDS = 5


def edits(problem: Problem, found: Result) -> Iterator[tuple[str, Problem, Problem]]:
    """Every edit: its name, the problem before, and after."""
    names = list(problem.data.feature_names)
    on = np.isin(names, found.selected).astype(float)
    row = problem.with_rows([on], -np.inf, on.sum() - 1.0, ["row"])
    prices = 1.0 + np.arange(len(names)) % 3
    held = problem.with_rows([prices], -np.inf, float(prices @ on), ["budget"])
    tight = problem.with_rows([prices], -np.inf, float(prices @ on) - 1.0, ["budget"])
    yield "a row", problem, row
    yield "a budget", held, tight
    yield "a cost", problem, problem.replace(lam={found.selected[0]: 0.01 * found.objective})
    yield "M + 1", problem, problem.replace(M=(problem.M or 0) + 1)
    yield "a looser row", row, problem.with_rows([on], -np.inf, on.sum(), ["row"])
    yield "C x 1.1", problem, problem.replace(C=1.1 * problem.C)


def timed(*solves: Callable[[], Any]) -> list[tuple[Any, float]]:
    """What some solves find, and their CPU times; of short ones the medians of some rounds."""
    found: list[tuple[Any, float]] = []
    times: list[list[float]] = [[] for _ in solves]
    while len(times[0]) < ROUNDS and (not found or sum(times[0]) < len(times[0])):
        found = []
        for one, spent in zip(solves, times, strict=True):
            begun = time.process_time()
            result = one()
            spent.append(time.process_time() - begun)
            found.append((result, statistics.median(spent)))
    return found


def frontier() -> int:
    """Print what twelve budgets on german take, as a frontier and one by one."""
    data = mipfs.read(Path(os.environ["MIPFS_DATA"]) / "german" / "data.svm.gz", scale="standard")
    prices = 1.0 + np.arange(data.n_features) % 3
    for M, C in WORKLOADS["frontier"]:
        problem = mipfs.Problem(data, M=M, C=C).with_rows([prices], -np.inf, 10.0, ["budget"])
        mipfs.frontier(problem, "budget", BUDGETS[:2], threads=1)  # compiles, and reads
        each = [problem.replace(rows=dataclasses.replace(problem.rows, ub=np.array([end]))) for end in BUDGETS]
        (found, along), (alone, apart) = timed(
            lambda problem=problem: mipfs.frontier(problem, "budget", BUDGETS, threads=1),
            lambda each=each: [mipfs.solve(one, threads=1) for one in each],
        )
        for point, one in zip(found.points, alone, strict=True):
            assert abs(point.objective - one.objective) <= 1e-4 * abs(one.objective)
        nodes = [sum(one.counters["nodes"] for one in some) for some in ([p.result for p in found.points], alone)]
        supports = len({point.selected for point in found.points})
        print(f"german M={M} C={C:g}: {supports} supports, {along:.2f} s ({nodes[0]} nodes), one by one {apart:.2f} s "
              f"({nodes[1]} nodes), ratio {along / apart:.2f}")  # fmt: skip
    return 0


def chain() -> int:
    """Print what ever tighter budgets take, each from the result of the one before and from nothing."""
    data = mipfs.read(Path(os.environ["MIPFS_DATA"]) / "sonar" / "data.svm.gz", scale="standard")
    prices = np.random.default_rng(1).integers(1, 10, data.n_features).astype(float)
    last: Result | bool = False
    for end in range(34, 8, -2):
        problem = mipfs.Problem(data, M=5, C=0.1).with_rows([prices], -np.inf, float(end), ["budget"])
        (cold, nothing), (warm, seconds) = timed(
            lambda problem=problem: mipfs.solve(problem, threads=1),
            lambda problem=problem, last=last: mipfs.solve(problem, threads=1, warm=last),
        )
        assert abs(warm.objective - cold.objective) <= 1e-4 * abs(cold.objective)
        used = {"opened": "-", "leaves": "-"} if warm.warm_from is None else warm.warm_from
        print(f"budget {end:2d}: from nothing {nothing:.2f} s, warm {seconds:.2f} s, ratio {seconds / nothing:.2f}, "
              f"{used['opened']} of {used['leaves']} leaves opened")  # fmt: skip
        last = warm
    return 0


def main(names: list[str]) -> int:
    """Print the table."""
    if not os.environ.get("MIPFS_DATA"):
        sys.exit("error: MIPFS_DATA is unset; it names the folder that holds the data sets")
    if names in (["frontier"], ["chain"]):
        return frontier() if names == ["frontier"] else chain()
    ratios: dict[str, list[float]] = {}
    print(f"{'problem':24s}{'edit':14s}{'nothing':>9s}{'warm':>9s}{'ratio':>7s}  opened/leaves  nodes")
    for name in names or [*WORKLOADS][:3]:
        data = mipfs.read(Path(os.environ["MIPFS_DATA"]) / name / "data.svm.gz", scale="standard")
        for M, C in WORKLOADS[name]:
            problem = mipfs.Problem(data, M=M, C=C)
            mipfs.solve(problem.replace(M=2), threads=1)  # compiles, and reads
            first = mipfs.solve(problem, threads=1)
            for what, before, after in edits(problem, first):
                last = first if before is problem else mipfs.solve(before, threads=1)
                (cold, nothing), (warm, seconds) = timed(
                    lambda after=after: mipfs.solve(after, threads=1),
                    lambda after=after, last=last: mipfs.solve(after, threads=1, warm=last),
                )
                assert abs(warm.objective - cold.objective) <= 1e-4 * abs(cold.objective)
                ratios.setdefault(what, []).append(seconds / nothing)
                used = warm.warm_from or {}
                tree = "-" if used["leaves"] is None else f"{used['opened']}/{used['leaves']}"
                nodes = f"{cold.counters['nodes']} -> {warm.counters['nodes']}"
                where = f"{name} M={M} C={C:g}"
                print(f"{where:24s}{what:14s}{nothing:9.3f}{seconds:9.3f}{ratios[what][-1]:7.2f}  {tree:>13s}  {nodes}")
    for what, found in ratios.items():
        print(f"median of {what}: {statistics.median(found):.2f}, largest {max(found):.2f}")
    every = [one for what in TIGHTER for one in ratios[what]]
    print(f"median of {', '.join(TIGHTER)}: {statistics.median(every):.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
