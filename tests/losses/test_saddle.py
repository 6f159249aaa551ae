"""The polytope of σ by enumeration and by CVXPY, and the interior-point master against CVXPY, warm and cold."""

from __future__ import annotations

import itertools

import cvxpy as cp
import numpy as np
import numpy.typing as npt
import pytest

from mipfs.inner.polytope import AtomPolytope
from mipfs.inner.saddle import Saddle

Array = npt.NDArray[np.float64]


def draw(seed: int) -> tuple[AtomPolytope, np.random.Generator]:
    """Atoms of one row, or of several, with and without penalties, forced atoms and a binding row."""
    r = np.random.default_rng(seed)
    count = int(r.integers(1, 8))
    sizes = np.ones(count, dtype=int) if seed % 2 else r.integers(1, 4, count)
    cost = r.uniform(0.0, 0.2, count) if seed % 3 else np.zeros(count)
    free = np.ones(count, dtype=bool) if seed % 4 else r.random(count) < 0.7
    return AtomPolytope(cost, free, int(r.integers(1, count + 2)), np.repeat(np.arange(count), sizes)), r


def selections(S: AtomPolytope) -> list[Array]:
    every = [np.array(s) for s in itertools.product((0.0, 1.0), repeat=S.cost.size)]
    return [s for s in every if np.all(s[~S.free] == 1.0) and s[S.free].sum() <= S.room]


def reference(B: Array, d: Array, S: AtomPolytope) -> float:
    """max d'β − θ over the simplex, ½ Σ_g σ_g ‖B_g β‖² − c'σ ≤ θ for every selection."""
    beta, theta = cp.Variable(d.size, nonneg=True), cp.Variable()
    rows = [0.5 * cp.sum_squares(np.sqrt(s[S.atom])[:, None] * B @ beta) - S.cost @ s <= theta for s in selections(S)]
    program = cp.Problem(cp.Maximize(d @ beta - theta), [*rows, cp.sum(beta) <= 1])
    program.solve(solver=cp.CLARABEL, tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9)
    return float(program.value)


@pytest.mark.parametrize("seed", range(24))
def test_both_extremes_of_the_polytope(seed: int) -> None:
    S, r = draw(seed)
    omega, x = r.standard_normal(S.atom.size), r.standard_normal(S.atom.size)
    scores = np.bincount(S.atom, omega * omega)
    assert S.most(scores) == pytest.approx(max(s @ (0.5 * scores - S.cost) for s in selections(S)))
    squares = np.bincount(S.atom, x * x) * (r.random(S.cost.size) < 0.8)
    value, sigma = S.least(squares)
    sigma_free = cp.Variable(S.cost.size)
    terms = [cp.quad_over_lin(np.sqrt(square), sigma_free[g]) for g, square in enumerate(squares) if square > 0]
    within = [sigma_free >= 0, sigma_free <= 1, sigma_free[~S.free] == 1, cp.sum(sigma_free[S.free]) <= S.room]
    program = cp.Problem(cp.Minimize(0.5 * sum(terms) + S.cost @ sigma_free), within)
    program.solve(solver=cp.CLARABEL)
    assert value == pytest.approx(program.value, rel=1e-6, abs=1e-7)
    assert np.all((sigma >= 0) & (sigma <= 1))
    assert np.all(sigma[~S.free] == 1)
    assert sigma[S.free].sum() <= S.room * (1 + 1e-12)


@pytest.mark.parametrize("seed", [*range(12), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(12, 24))])
def test_the_saddle_point_equals_the_reference(seed: int) -> None:
    S, r = draw(seed)
    K, scale = int(r.integers(1, 12)), 10.0 ** r.uniform(-1, 1.5)
    B, d = scale * r.standard_normal((S.atom.size, K)), r.uniform(0, 1, K)
    value = reference(B, d, S)
    warm = Saddle()
    for known in sorted({1, (K + 1) // 2, K}):  # labellings come by and by
        warm.solve(B[:, :known], d[:known], S, 1e-3)
    for saddle in (warm, Saddle()):
        saddle.solve(B, d, S, 1e-9)
        assert saddle.beta.min() >= 0
        assert saddle.beta.sum() == pytest.approx(1.0)
        omega = B @ saddle.beta[1:]
        lower = float(d @ saddle.beta[1:]) - S.most(S.sums(omega * omega))
        x = S.spread(saddle.sigma) * omega
        upper = S.least(S.sums(x * x))[0] + max(0.0, float(np.max(d - B.T @ x)))
        assert lower <= value + 1e-8
        assert upper >= value - 1e-8
        assert upper - lower <= 1e-6


def test_atoms_may_come_later_and_labellings_may_go() -> None:
    r = np.random.default_rng(0)
    B, d = 4.0 * r.standard_normal((6, 9)), r.uniform(0, 1, 9)
    few = AtomPolytope(np.zeros(3), np.ones(3, dtype=bool), 3, np.arange(3))
    all_of_them = AtomPolytope(np.zeros(6), np.ones(6, dtype=bool), 3, np.arange(6))
    saddle = Saddle()
    saddle.solve(B[:3], d, few, 1e-6)  # three of three: the row does not bind yet
    saddle.solve(B, d, all_of_them, 1e-9)
    kept = saddle.beta[1:] > 1e-6
    saddle.keep(kept)
    saddle.solve(B[:, kept], d[kept], all_of_them, 1e-9)
    omega = B[:, kept] @ saddle.beta[1:]
    value = float(d[kept] @ saddle.beta[1:]) - all_of_them.most(omega * omega)
    assert value == pytest.approx(reference(B, d, all_of_them), abs=1e-7)
    assert saddle.sigma.sum() <= 3.0
