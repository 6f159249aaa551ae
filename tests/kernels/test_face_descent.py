"""The minimum of a Newton step's model, ½d'Hd + g'd + Φ(w + d), against the declared program and against itself."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import numpy.typing as npt
import pytest

from mipfs.kernels.face_descent import Model, descend, sweep
from mipfs.kernels.model_step import minimise_model
from mipfs.kernels.perspective import classify, phi

Array = npt.NDArray[np.float64]


def _drawn(seed: int, k: int, forced: int, K: int, bias: bool, price: float) -> tuple[Array, ...]:
    """H, g, w and the prices of a model; w has zeros, at most K forced ones aside where the seed is odd."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((int(rng.integers(2, 3 * k)), k + bias)) * np.exp(rng.standard_normal(k + bias))
    w = rng.standard_normal(k) * (rng.random(k) < 0.6)
    return A.T @ A + 1e-3 * np.eye(k + bias), 3.0 * rng.standard_normal(k + bias), w, np.full(k, price)


def _value(H: Array, g: Array, w: Array, c: Array, forced: int, K: int, d: Array) -> float:
    """The model at d."""
    cls, tau = np.empty(w.size, np.int64), np.empty(w.size)
    return float(phi(w + d[: w.size], c, forced, K, cls, tau) + g @ d + 0.5 * d @ H @ d)


def _least(H: Array, g: Array, w: Array, c: Array, forced: int, K: int) -> float:
    """The model's minimum by Clarabel: Φ as perspectives under a cardinality row."""
    k = w.size
    d, sigma = cp.Variable(g.size), cp.Variable(k)
    x = w + d[:k]
    terms = [cp.quad_over_lin(x[j], sigma[j]) for j in range(forced, k)]
    cost = 0.5 * cp.sum(terms) + c[forced:] @ sigma[forced:] + 0.5 * cp.sum_squares(x[:forced]) if terms else 0.0
    if not terms:
        cost = 0.5 * cp.sum_squares(x)
    rows = [sigma >= 0, sigma <= 1, cp.sum(sigma[forced:]) <= K]
    program = cp.Problem(cp.Minimize(cost + g @ d + 0.5 * cp.quad_form(d, cp.psd_wrap(H))), rows)
    return float(program.solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11))


@pytest.mark.parametrize("even", [True, False])
@pytest.mark.parametrize("seed", range(24))
def test_model_is_minimised(seed: int, even: bool) -> None:
    """Called again from where it ended, until nothing moves, it ends at the declared program's minimum.

    With prices that differ it may stand still before (0.5% in one of these): there the next Newton step has to help.
    """
    k, forced, bias = 4 + seed % 9, (0, 1, 3)[seed % 3], bool(seed % 2)
    K, price = 1 + seed % 4, (0.0, 0.3)[seed % 2]
    H, g, w, c = _drawn(seed, k, forced, K, bias, price)
    if not even:
        c = np.random.default_rng(seed).random(k)
    whole, step, last = np.zeros(g.size), np.empty(g.size), np.inf
    for _ in range(60):
        now = w + whole[:k]
        minimise_model(Model(H, g + H @ whole, now, 0.0, c, forced, K, bias, 1e-12), 0.0, 50, step)
        whole += step
        value = _value(H, g, w, c, forced, K, whole)
        assert value <= last + 1e-12 * abs(value)
        last = value
    assert last == pytest.approx(_least(H, g, w, c, forced, K), rel=1e-6 if even else 1e-2, abs=1e-6)


@pytest.mark.parametrize("seed", range(40))
def test_every_sweep_lowers_the_model_and_keeps_its_sums(seed: int) -> None:
    """No coordinate raises it; `moved` and `pulled` are w's way and H's product with it, classes those of the point."""
    k, forced, bias = 5 + seed % 20, seed % 4, bool(seed % 2)
    K, price = 1 + seed % 6, (0.0, 0.1, 2.0)[seed % 3]
    H, g, w, c = _drawn(100 + seed, k, forced, K, bias, price)
    x, cls, tau = w.copy(), np.empty(k, np.int64), np.empty(k)
    moved, pulled = np.zeros(g.size), np.zeros(g.size)
    classify(x, c, forced, K, cls, tau)
    last = _value(H, g, w, c, forced, K, moved)
    model = Model(H, g, w, 0.0, c, forced, K, bias, 1e-12)
    for _ in range(10):
        sweep(model, x, np.sqrt(2.0 * price), cls, moved, pulled)
        classify(x, c, forced, K, cls, tau)
        value = _value(H, g, w, c, forced, K, moved)
        assert value <= last + 1e-10 * (1.0 + abs(last))
        np.testing.assert_allclose(pulled, H @ moved, atol=1e-9 * (1.0 + np.abs(H).max() * np.abs(moved).max()))
        np.testing.assert_allclose(w + moved[:k], x, atol=1e-12 * (1.0 + np.abs(x).max()))
        last = value


def test_odd_models() -> None:
    """Zero columns, one feature, nothing free, numbers far apart: finite, and never above the start."""
    for H, w, forced, K in (
        (np.zeros((3, 3)), np.array([1.0, 0.0, -2.0]), 0, 1),
        (np.ones((1, 1)), np.array([0.0]), 0, 1),
        (np.eye(2) * 1e-12, np.array([1e6, -1e-6]), 2, 1),
        (np.diag([1e12, 1e-12, 1.0]), np.array([1e-9, 1e9, 0.0]), 1, 2),
        (np.ones((4, 4)), np.zeros(4), 0, 3),
    ):
        c, g, out = np.zeros(w.size), np.linspace(-1.0, 2.0, w.size), np.empty(w.size)
        descend(Model(H, g, w, 0.0, c, forced, K, False, 1e-10), 0.0, out)
        assert np.all(np.isfinite(out))
        assert _value(H, g, w, c, forced, K, out) <= _value(H, g, w, c, forced, K, np.zeros(w.size))
