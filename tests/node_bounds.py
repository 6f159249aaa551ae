"""Bounds of nodes that the batch relaxes, on shared data sets: against exact arithmetic and the interior point.

    MIPFS_DATA=folder python -m tests.node_bounds [--nodes 125] [--only WORD]

Of every set the tree below the root is explored until so many nodes are relaxed, each to its end: no cutoff cuts one
short. A node's bound must not exceed what its dual vector proves in rational numbers (of the logistic loss with
logarithms of 60 digits), and must come within `NEAR` of the relaxation's value, which the interior point finds to
1e-7, unless its iterations were spent.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from decimal import Decimal, getcontext
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import mipfs
from mipfs.atoms.groups import Groups
from mipfs.inner.batch import Batch
from mipfs.inner.boolean_node import FREE, INSIDE, NO_ROWS, OUTSIDE, WarmStart
from mipfs.inner.footpath import NodeTolerances
from mipfs.inner.rows_node import RowsRelaxation
from mipfs.kernels import batch
from mipfs.settings import BatchSettings

Integers = npt.NDArray[np.int64]
NEAR, TOL, BEYOND = 1e-3, 2e-6, 1e12
"""How near a bound must come; to what a node is relaxed, as by a run with a gap of 1e-4; a cutoff beyond all."""
SETS: dict[str, tuple[str, int, float, str, str]] = {
    "sonar, groups of three": ("sonar", 3, 1.0, "hinge", "threes"),
    "sonar, signs": ("sonar", 6, 1.0, "hinge", "signs"),
    "ionosphere, boxes": ("ionosphere", 5, 1.0, "squared-hinge", "boxes"),
    "german, signs": ("german", 5, 1.0, "logistic", "signs"),
    "spambase, signs": ("spambase", 5, 0.1, "hinge", "signs"),
    "wdbc, groups of three": ("wdbc_sklearn", 3, 1.0, "logistic", "threes"),
    "colon, fewer samples than columns": ("colon_alon", 20, 0.1, "logistic", "plain"),
    "madelon, plain": ("madelon", 10, 1.0, "squared-hinge", "plain"),
}
"""Data set, M, C, loss, kind."""


def problem_of(name: str) -> Any:
    """The problem of a set; of every second feature the sign is stated, and boxes are such as bind."""
    folder, M, C, loss, kind = SETS[name]
    data = mipfs.read(Path(os.environ["MIPFS_DATA"]) / folder / "data.svm.gz", scale="standard")
    names = list(data.feature_names)
    if kind == "threes":
        groups = Groups(data, {f"g{at}": names[at : at + 3] for at in range(0, len(names), 3)})
        return mipfs.Problem(data, M=M, C=C, loss=loss, atoms=groups)
    ends = {"signs": {f: (0.0, None) for f in names[::2]}, "boxes": dict.fromkeys(names, (-0.3, 0.4))}
    return mipfs.Problem(data, M=M, C=C, loss=loss, weight_bounds=ends.get(kind))


def log(value: Fraction) -> Fraction:
    """The natural logarithm of a positive number, to some 60 digits."""
    return Fraction((Decimal(value.numerator) / Decimal(value.denominator)).ln())


def conjugate(loss: str, alpha: Fraction, c: Fraction) -> Fraction:
    """The term of g of a sample."""
    if loss == "hinge":
        return alpha
    if loss == "squared-hinge":
        return alpha - alpha * alpha / (2 * c)
    t = alpha / c
    return -c * sum((x * log(x) for x in (t, 1 - t) if x > 0), Fraction(0))


class Exact:
    """What dual vectors of a problem prove at a node, in rational numbers; y'α must be 0, so that no centre counts."""

    def __init__(self, problem: Any) -> None:
        self.problem = problem
        block = problem.data.block()
        X = np.asarray(block.values.toarray() if block.is_sparse else block.values, dtype=float)
        self.power = max(0, max(int(-np.frexp(one)[1]) + 53 for one in np.abs(X[X != 0.0])))
        self.X = np.array([[int(Fraction(x) * 2**self.power) for x in row] for row in X.tolist()], dtype=object)
        self.c = [Fraction(one) for one in problem.c_i.tolist()]
        low, high = (np.broadcast_to(end, X.shape[1]) for end in problem.regulariser.ends)
        self.ends = list(zip(low.tolist(), high.tolist(), strict=True))

    def bound(self, whole: Integers, q: int, states: npt.NDArray[np.int8]) -> Fraction:
        """g(α) − Σ over the forced of h − the M − |forced| largest h of the free ones."""
        problem, y = self.problem, [int(one) for one in self.problem.data.y]
        signed = np.array([k * s for k, s in zip(whole.tolist(), y, strict=True)], dtype=object)
        assert sum(signed.tolist()) == 0
        unit = Fraction(1, 2**q) if q >= 0 else Fraction(2**-q)
        g = sum(
            (conjugate(problem.loss, k * unit, c) for k, c in zip(whole.tolist(), self.c, strict=True)), Fraction(0)
        )
        omega = [Fraction(int(one), 2**self.power) * unit for one in signed @ self.X]
        columns = problem.atoms.columns(np.arange(problem.atoms.count))
        gain = [Fraction(0)] * problem.atoms.count
        for atom, j in zip(columns.atom.tolist(), columns.ids.tolist(), strict=True):
            gain[atom] += self.half_square(omega[j], *self.ends[j])
        inside, free = np.flatnonzero(states == INSIDE), np.flatnonzero(states == FREE)
        best = sorted((gain[j] for j in free), reverse=True)[: problem.M - inside.size]
        return g - sum((gain[j] for j in inside), Fraction(0)) - sum(best, Fraction(0))

    @staticmethod
    def half_square(omega: Fraction, low: float, high: float) -> Fraction:
        """max over l ≤ t ≤ u of ωt − ½t²."""
        t = omega if low == -np.inf or omega > Fraction(low) else Fraction(low)
        t = t if high == np.inf or t < Fraction(high) else Fraction(high)
        return omega * t - t * t / 2


def explored(problem: Any, count: int) -> tuple[Any, Any]:
    """The piece of so many nodes below the root, each relaxed to its end, and the dual vectors as whole numbers."""
    solver = Batch(problem, np.arange(problem.atoms.count), np.zeros(1, np.int8), settings=BatchSettings(below=count))
    handed = _, _, _, limits, _, pieces, own = solver.of_one(np.full(problem.atoms.count, FREE, np.int8), NO_ROWS)
    limits["cutoff"], limits["tol"] = BEYOND, TOL
    batch.explore(solver.made(handed), handed)
    return pieces, own.work.wholes


def walked(pieces: Any, count: int) -> list[tuple[npt.NDArray[np.int8], int, float]]:
    """States, dual vector and bound of every node that was split."""
    places, found = pieces.places[0], []
    stack = [(0, np.full(count, FREE, dtype=np.int8))]
    while stack:
        at, states = stack.pop()
        one = places[at]
        assert one["feature"] < count, "nothing is screened below this cutoff"
        if one["feature"] < 0:
            continue
        found.append((states, int(one["dual"]), float(one["value"])))
        for name, value in (("inside", INSIDE), ("outside", OUTSIDE)):
            child = states.copy()
            child[one["feature"]] = value
            stack.append((int(one[name]), child))
    return found


def relaxed(problem: Any) -> Callable[[npt.NDArray[np.int8]], float]:
    """The value of a node's relaxation by the interior point, from below."""
    count, never = problem.atoms.count, np.zeros(1, np.int8)
    interior = RowsRelaxation(problem, np.arange(count), lambda: False, never, relax="interior")
    alpha = np.zeros(problem.data.n_samples)

    def value(states: npt.NDArray[np.int8]) -> float:
        warm = WarmStart(np.zeros(count, dtype=np.float32), 0.0, 0.5)
        return float(interior.explore(states, warm, alpha, NodeTolerances(np.inf, 1e-7, 0.0)).bound)

    return value


def judged(name: str, count: int) -> tuple[int, int, int, int, float]:
    """Nodes of a set; those above what is proven, far from the relaxation, out of iterations; the largest distance."""
    problem = problem_of(name)
    exact, value = Exact(problem), relaxed(problem)
    pieces, wholes = explored(problem, count)
    above, far, largest = 0, 0, 0.0
    nodes = walked(pieces, problem.atoms.count)
    for states, dual, bound in nodes:
        proven = exact.bound(wholes[dual], int(pieces.duals[0, dual]["grid"]), states)
        above += Fraction(bound) > proven
        own = value(states)
        short = (own - bound) / abs(own)
        largest = max(largest, short)
        far += short > NEAR
    return len(nodes), above, far, int(pieces.totals[0, 0]["stalled"]), largest


def main(argv: Sequence[str] | None = None) -> int:
    """Judge the sets; 1 where a bound proves too much."""
    parser = argparse.ArgumentParser(prog="python -m tests.node_bounds", description=__doc__)
    parser.add_argument("--nodes", type=int, default=125)
    parser.add_argument("--only", default="")
    asked = parser.parse_args(argv)
    if not os.environ.get("MIPFS_DATA"):
        print("MIPFS_DATA is unset; it names the folder that holds the data sets", file=sys.stderr)
        return 2
    getcontext().prec = 60
    wrong, total = 0, 0
    print(f"{'':36}{'nodes':>7}{'above':>7}{f'beyond {NEAR:g}':>14}{'out of steps':>14}{'farthest':>11}")
    for name in SETS:
        if asked.only in name:
            nodes, above, far, spent, largest = judged(name, asked.nodes)
            wrong, total = wrong + above, total + nodes
            print(f"{name:36}{nodes:7}{above:7}{far:14}{spent:14}{largest:11.1e}", flush=True)
    print(f"{total} bounds, {wrong} above what is proven")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
