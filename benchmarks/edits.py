"""Edit and go on: CPU time of the second solve from the first one's result, against the same solve from nothing.

    MIPFS_DATA=DATA python benchmarks/edits.py            # a table, and the median ratio of every kind of edit
    MIPFS_DATA=DATA python benchmarks/edits.py german     # one of sonar, german, spambase

DATA has a folder for each, with ``data.svm.gz``. Three edits cut the optimum off or make it dearer: a row that forbids
its support, a budget that it just exceeds, a cost on its first feature; three others are M + 1, that row again without
its last feature (looser), and C × 1.1. One thread, gap 1e-4, hinge, standard scale; both solves in one process, one
after the other, their objectives compared.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

import mipfs
from mipfs.problem import Problem
from mipfs.result.result import Result

WORKLOADS = {
    "sonar": ((5, 0.1), (6, 0.1), (4, 1.0)),
    "german": ((5, 1.0), (8, 1.0), (6, 0.1)),
    "spambase": ((3, 0.1), (4, 0.1)),
}
TIGHTER = "a row", "a budget", "a cost"


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


def timed(solve: Callable[[], Result]) -> tuple[Result, float]:
    """What a solve finds, and its CPU time."""
    begun = time.process_time()
    result = solve()
    return result, time.process_time() - begun


def main(names: list[str]) -> int:
    """Print the table."""
    ratios: dict[str, list[float]] = {}
    print(f"{'problem':24s}{'edit':14s}{'nothing':>9s}{'warm':>9s}{'ratio':>7s}  opened/leaves  nodes")
    for name in names or [*WORKLOADS]:
        data = mipfs.read(Path(os.environ["MIPFS_DATA"]) / name / "data.svm.gz", scale="standard")
        for M, C in WORKLOADS[name]:
            problem = mipfs.Problem(data, M=M, C=C)
            mipfs.solve(problem.replace(M=2), threads=1)  # compiles, and reads
            first = mipfs.solve(problem, threads=1)
            for what, before, after in edits(problem, first):
                last = first if before is problem else mipfs.solve(before, threads=1)
                cold, nothing = timed(lambda after=after: mipfs.solve(after, threads=1))
                warm, seconds = timed(lambda after=after, last=last: mipfs.solve(after, threads=1, warm=last))
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
