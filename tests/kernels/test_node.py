"""A node's bound in exact arithmetic, and its steps one after the other, against the selections that it holds."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

from mipfs.data.instance import Instance
from mipfs.inner.boolean_node import NO_ROWS, BooleanRelaxation
from mipfs.inner.propagation import Propagation
from mipfs.kernels import node, subtree
from mipfs.kernels.propagation import FREE, INSIDE, OUTSIDE
from mipfs.kernels.structures import ExplorationScratch, ExploredPiece
from mipfs.problem import Problem
from tests.oracles import brute_force
from tests.record_cases import named

Array = npt.NDArray[np.float64]
States = npt.NDArray[np.int8]
N, K = 30, 5


class Ready(NamedTuple):
    """An exploration of one open node, whose records are read by name, and what it is compared with."""

    problem: Problem
    steps: Any
    alive: Any
    samples: Any
    grid: Any
    sides: Any
    limit: Any
    piece: ExploredPiece
    work: ExplorationScratch
    best: dict[frozenset[int], float]

    def least(self, states: States) -> float:
        """The least objective of the selections that a node holds; inf where it holds none."""
        inside = frozenset(np.flatnonzero(states == INSIDE).tolist())
        outside = frozenset(np.flatnonzero(states == OUTSIDE).tolist())
        return min((v for s, v in self.best.items() if inside <= s and not outside & s), default=np.inf)


_VALUES: dict[tuple[int, bool], dict[frozenset[int], float]] = {}


def posed(seed: int, has_rows: bool) -> Problem:
    r = np.random.default_rng(seed)
    X = r.normal(size=(N, K))
    y = np.where(X[:, 0] - 0.7 * X[:, 1] + r.normal(size=N) > 0, 1, -1)
    problem = Problem(Instance.from_arrays(X, y), M=2 + seed % 2, C=0.7)
    return problem.with_rows(np.array([[1.0, 1.0, 0.0, 0.0, 0.0]]), 0.0, 1.0) if has_rows else problem


def values(problem: Problem, seed: int, has_rows: bool) -> dict[frozenset[int], float]:
    """The objective of every selection."""
    if (seed, has_rows) not in _VALUES:
        data, found = problem.data, {}
        assert problem.M is not None
        for size in range(problem.M + 1):
            for s in map(frozenset, itertools.combinations(range(K), size)):
                if not has_rows or not {0, 1} <= s:
                    X = data.block().dense()
                    found[s] = brute_force(X, data.y, problem.c_i, [s], problem.penalty, True).value.upper
        _VALUES[seed, has_rows] = found
    return _VALUES[seed, has_rows]


def ready(seed: int, *, has_rows: bool = False, factor: float = 1.02, states: States | None = None) -> Ready:
    """An open node, all free by default, and a cutoff as many times the optimum."""
    problem = posed(seed, has_rows)
    best = values(problem, seed, has_rows)
    relaxation = BooleanRelaxation(problem, np.arange(K), np.zeros(1, np.int8))
    sides = Propagation(problem.selection, np.arange(K)).sides if has_rows else NO_ROWS
    states = np.full(K, FREE, np.int8) if states is None else states
    alpha = np.where(problem.data.y > 0, 0.1, 0.1)
    few = problem.data.y > 0 if (problem.data.y > 0).sum() < (problem.data.y < 0).sum() else problem.data.y < 0
    alpha[~few] *= alpha[few].sum() / alpha[~few].sum()
    limits = factor * min(best.values()), np.inf, 1e-9, 0.0, 0.0, 0.0
    pieces = relaxation._allocate_pieces(1, sides)
    pieces.states[0, 0], pieces.weights[0, 0], pieces.prices[0, 0] = states, 0.0, 0.0
    pieces.nodes[0, 0] = (0.0, 0.0, 1.0, 0, 0, 0, subtree.OPEN, node.RELAX, 0, 0, 0.0)
    alive, _, grid, _, all_limits, _, work = handed = relaxation._exploration_arguments(1, sides, pieces)
    steps = relaxation._made_for((*handed[:3], sides, *handed[4:]), has_rows)
    all_limits[0], work.first[0] = limits, alpha
    piece = ExploredPiece(*(array[0] for array in pieces))
    piece = ExploredPiece(*(named(one) if one.dtype.names else one for one in piece))
    work = work._replace(now=named(work.now), newton=named(work.newton))
    limit = named(all_limits)[0]
    return Ready(problem, steps, alive, relaxation.samples, grid, sides, limit, piece, work, best)


@pytest.mark.parametrize("seed", range(60))
def test_a_bound_is_below_the_exact_one_and_fixes_what_it_may(seed: int) -> None:
    """min over the selections of g − Σ (½ s_j − c_j), all numbers being exact."""
    r = np.random.default_rng(seed)
    q = seed % 7
    forced, room = min(q, seed % 3), int(r.integers(0, 4))
    room = min(room, q - forced)
    columns, s, penalty = r.permutation(q).astype(np.int64), 3.0 * r.random(q), r.normal(size=q)
    g, fixed = 2.0 + r.random(), np.full(q, -1, np.int8)
    gain = [Fraction(s[t]) / 2 - Fraction(penalty[columns[t]]) for t in range(q)]
    exact: dict[tuple[int, ...], Fraction] = {}
    for size in range(room + 1):
        for chosen in itertools.combinations(range(forced, q), size):
            exact[chosen] = Fraction(g) - sum((gain[t] for t in (*range(forced), *chosen)), Fraction(0))
    least = min(exact.values())
    cutoff = float(least) + (0.3 if seed % 4 else np.inf)
    bound = node.node_bound(g, s, penalty, columns, forced, room, cutoff, fixed)
    assert Fraction(float(bound)) <= least
    assert float(bound) == pytest.approx(float(least), abs=1e-12)
    for t in range(forced, q):
        for state, others in (
            (INSIDE, (v for c, v in exact.items() if t not in c)),
            (OUTSIDE, (v for c, v in exact.items() if t in c)),
        ):
            other = min(others, default=None)
            if fixed[t] == state:
                assert np.isfinite(cutoff)
                assert other is None or other >= Fraction(cutoff)
            elif fixed[t] == FREE and other is not None and np.isfinite(cutoff):
                assert float(other) < cutoff + 1e-9


@pytest.mark.parametrize("seed", range(6))
def test_a_rounded_dual_vector_is_feasible_exactly(seed: int) -> None:
    at = ready(seed)
    r = np.random.default_rng(seed)
    best, whole, alpha, v = r.uniform(-0.1, 1.1, N), np.empty(N, np.int64), np.empty(N), np.empty(N)
    q = node.round_dual(at.samples, at.grid, best, 30, whole, alpha, v)
    assert int((whole * at.samples.y.astype(np.int64)).sum()) == 0
    for k, a, c in zip(whole.tolist(), alpha.tolist(), at.grid.c.tolist(), strict=True):
        assert 0 <= Fraction(k) / 2 ** int(q) == Fraction(a) <= Fraction(c)
    np.testing.assert_array_equal(v, alpha * at.samples.y)
