"""The minimum of a Newton step's model, ½d'Hd + g'd + Φ(w + d), against the declared program and against itself."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import numpy.typing as npt
import pytest

from mipfs.kernels.face_descent import (
    FaceModel,
    coordinate_sweep,
    face_direction,
    linear,
    minimise_face,
    multiply,
    pull,
    stationarity_gap,
)
from mipfs.kernels.model_step import has_even_prices, minimise_by_active_set, minimise_model
from mipfs.kernels.perspective import FRACTIONAL, IN, OUT, classify_weights, phi
from mipfs.kernels.structures import steering_of
from mipfs.settings import NodeSettings

Array = npt.NDArray[np.float64]
STEERING = steering_of(NodeSettings())


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
        minimise_model(FaceModel(H, g + H @ whole, now, 0.0, c, forced, K, bias, 1e-12, STEERING), 0.0, 50, step)
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
    classify_weights(x, c, forced, K, cls, tau)
    last = _value(H, g, w, c, forced, K, moved)
    model = FaceModel(H, g, w, 0.0, c, forced, K, bias, 1e-12, STEERING)
    for _ in range(10):
        coordinate_sweep(model, x, np.sqrt(2.0 * price), cls, moved, pulled)
        classify_weights(x, c, forced, K, cls, tau)
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
        minimise_face(FaceModel(H, g, w, 0.0, c, forced, K, False, 1e-10, STEERING), 0.0, out)
        assert np.all(np.isfinite(out))
        assert _value(H, g, w, c, forced, K, out) <= _value(H, g, w, c, forced, K, np.zeros(w.size))


@pytest.mark.parametrize("n", [0, 1, 3, 4, 9])
def test_products_of_the_model(n: int) -> None:
    r = np.random.default_rng(n)
    H, g, v, out = r.normal(size=(n, n)), r.normal(size=n), r.normal(size=n), np.empty(n)
    multiply(H, v, out)
    np.testing.assert_allclose(out, H @ v, atol=1e-13)
    assert linear(g, out, v) == pytest.approx(float((g + 0.5 * H @ v) @ v), abs=1e-12)
    if n:
        pull(H, n - 1, 0.7, out)
        np.testing.assert_allclose(out, H @ v + 0.7 * H[n - 1], atol=1e-13)


def _gradient(x: Array, cls: npt.NDArray[np.int64], tau: Array) -> Array:
    """Φ' where it has one, over what is not out."""
    return np.where(cls == IN, x, np.where(cls == FRACTIONAL, np.sign(x) * tau, 0.0))


@pytest.mark.parametrize("seed", range(30))
def test_a_face_direction_is_newtons_step_on_the_face(seed: int) -> None:
    """Φ'' by differences of Φ', which moves with the multiplier; what is out stays at zero."""
    k, forced, bias = 3 + seed % 9, seed % 3, bool(seed % 2)
    K, price = 1 + seed % 4, (0.0, 0.3)[seed % 2]
    H, g, w, c = _drawn(200 + seed, k, forced, K, bias, price)
    cls, tau, sign = np.empty(k, np.int64), np.empty(k), np.where(w > 0.0, 1.0, -1.0)
    mu = classify_weights(w, c, forced, K, cls, tau)
    grad, out = np.random.default_rng(seed).normal(size=g.size), np.empty(g.size)
    model = FaceModel(H, g, w, 0.0, c, forced, K, bias, 1e-12, STEERING)
    face_direction(model, grad, w, cls, tau, sign, mu, out)
    active = [t for t in range(g.size) if t == k or cls[t] != OUT]
    second, now = np.zeros((g.size, g.size)), _gradient(w, cls, tau)
    for j in active:
        if j < k:
            moved, other, level = w.copy(), np.empty(k, np.int64), np.empty(k)
            moved[j] += 1e-7 * sign[j]
            classify_weights(moved, c, forced, K, other, level)
            if (other != cls).any():
                return
            second[:k, j] = (_gradient(moved, other, level) - now) / (1e-7 * sign[j])
    residual = (H + second)[np.ix_(active, active)] @ out[active] + (grad + np.append(now, np.zeros(int(bias))))[active]
    np.testing.assert_allclose(residual, 0.0, atol=1e-4 * (1.0 + np.abs(grad).max() + np.abs(now).max()))
    assert (np.delete(out, active) == 0.0).all()


@pytest.mark.parametrize("seed", range(20))
def test_slopes_tell_how_far_a_point_is_from_stationary(seed: int) -> None:
    k, forced, bias, K = 4 + seed % 5, seed % 2, bool(seed % 3), 1 + seed % 3
    _, g, w, c = _drawn(300 + seed, k, forced, K, bias, 0.2)
    cls, tau = np.empty(k, np.int64), np.empty(k)
    classify_weights(w, c, forced, K, cls, tau)
    pulled, grad, sign = np.random.default_rng(seed).normal(size=g.size), np.empty(g.size), np.empty(k)
    error = stationarity_gap(g, pulled, w, cls, tau, 0.4, grad, sign)
    np.testing.assert_array_equal(grad, g + pulled)
    np.testing.assert_array_equal(sign, np.where(w > 0.0, 1.0, -1.0))
    smooth = (g + pulled)[:k]
    over = np.maximum(0.0, np.abs(smooth) - tau)
    terms = np.where(cls == IN, 0.5 * (smooth + w) ** 2, np.abs(w) * np.abs(smooth + sign * tau))
    wanted = np.where(cls == OUT, over * (tau + over), terms).sum() + (abs(grad[k]) * 1.4 if bias else 0.0)
    assert error == pytest.approx(float(wanted), rel=1e-12)


def test_who_has_one_price() -> None:
    for c, forced, K, wanted in (
        ([0.0, 0.0], 0, 1, True), ([0.3, 0.3], 0, 2, True), ([9.0, 0.3, 0.3], 1, 1, True), ([0.3, 0.4], 0, 1, False),
        ([-0.1, -0.1], 0, 1, False), ([0.0, 0.0], 0, 0, False), ([5.0], 1, 0, True), ([], 0, 0, True),
    ):  # fmt: skip
        assert bool(has_even_prices(np.array(c, dtype=float), forced, K)) == wanted, (c, forced, K)


@pytest.mark.parametrize("seed", range(24))
def test_the_active_set_minimises_too(seed: int) -> None:
    """Prices that differ, and negative ones, called until nothing moves: it never rises, and ends near Clarabel's.

    It may stand still where K features are in and another is to take one's place; the next Newton step has to help.
    """
    k, forced, K = 4 + seed % 6, (0, 1)[seed % 2], 1 + seed % 4
    H, g, w, c = _drawn(400 + seed, k, forced, K, bool(seed % 3), 0.0)
    c = np.random.default_rng(seed).random(k) - (0.4 if seed % 4 == 0 else 0.0)
    begun = _value(H, g, w, c, forced, K, np.zeros(g.size))
    whole, step, last = np.zeros(g.size), np.empty(g.size), begun
    for _ in range(60):
        now = w + whole[:k]
        minimise_by_active_set(
            FaceModel(H, g + H @ whole, now, 0.0, c, forced, K, bool(seed % 3), 1e-12, STEERING), 0.0, 50, step
        )
        whole += step
        value = _value(H, g, w, c, forced, K, whole)
        assert value <= last + 1e-12 * (1.0 + abs(value))
        last = value
    least = _least(H, g, w, c, forced, K)
    assert last >= least - 1e-5 * (1.0 + abs(least))
    assert last - least <= 0.25 * (begun - least) + 1e-5 * (1.0 + abs(least))
