"""Φ with penalties of both signs against a linear program over σ, and its derivative against differences."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

from mipfs.kernels.perspective import FRACTIONAL, IN, classify_weights, phi, phi_slope


def declared(w: np.ndarray, c: np.ndarray, forced: int, K: int) -> float:
    sigma = cp.Variable(w.size - forced)
    free = w[forced:]
    on = np.flatnonzero(free)
    terms = [0.5 * float(free[t] ** 2) * cp.inv_pos(sigma[t]) for t in on]
    program = cp.Problem(cp.Minimize(c[forced:] @ sigma + sum(terms)), [sigma >= 0, sigma <= 1, cp.sum(sigma) <= K])
    value = program.solve(solver="CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    return float(value + 0.5 * w[:forced] @ w[:forced])


def draw(seed: int) -> tuple[np.ndarray, np.ndarray, int, int]:
    r = np.random.default_rng(seed)
    d = int(r.integers(3, 12))
    forced = int(r.integers(0, 3)) if d > 4 else 0
    w = r.standard_normal(d) * (r.random(d) < 0.7)
    c = [np.zeros(d), np.full(d, 0.3), r.uniform(0, 1, d), r.uniform(-0.6, 0.6, d), r.uniform(-1, -0.1, d)][seed % 5]
    return w, c, forced, int(r.integers(1, d - forced + 1))


@pytest.mark.parametrize("seed", range(40))
def test_value_equals_the_declared_program(seed: int) -> None:
    w, c, forced, K = draw(seed)
    classes, tau = np.empty(w.size, np.int64), np.empty(w.size)
    value = phi(w, c, forced, K, classes, tau)
    assert value == pytest.approx(declared(w, c, forced, K), rel=1e-7, abs=1e-8)
    free = slice(forced, None)
    sigma = np.where(classes == IN, 1.0, np.where(classes == FRACTIONAL, np.abs(w) / np.maximum(tau, 1e-300), 0.0))
    assert sigma[free].sum() <= K * (1 + 1e-9)
    # in whatever the weight where the price is negative, and the cardinality row binds where its multiplier is positive
    mu = classify_weights(w, c, forced, K, classes, tau)
    assert np.all(classes[free][c[free] + mu < 0] == IN)
    if mu > 1e-9 and not np.any(np.abs(c[free] + mu)[w[free] == 0] < 1e-9):
        assert sigma[free].sum() == pytest.approx(K, rel=1e-9)


@pytest.mark.parametrize("seed", range(40))
def test_slope_is_the_derivative(seed: int) -> None:
    w, c, forced, K = draw(seed)
    d = np.random.default_rng(1000 + seed).standard_normal(w.size)
    w = w + 0.1 * (w == 0)  # off the kinks
    classes, tau = np.empty(w.size, np.int64), np.empty(w.size)
    slope = phi_slope(w, d, c, forced, K, classes, tau)
    step = 1e-6
    values = [phi(w + t * d, c, forced, K, classes, tau) for t in (step, -step)]
    assert slope == pytest.approx((values[0] - values[1]) / (2 * step), rel=1e-4, abs=1e-5)
