"""Φ, its multiplier and its slope against the dual function of one multiplier, finite differences, and Clarabel."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import numpy.typing as npt
import pytest

from mipfs.kernels.perspective import (
    FRACTIONAL,
    IN,
    OUT,
    best_gain,
    classify_weights,
    even_level,
    multiplier,
    phi,
    phi_slope,
    sum_sigma,
    threshold_level,
)

Array = npt.NDArray[np.float64]
SEEDS = range(60)


def drawn(seed: int) -> tuple[Array, Array, int, int]:
    """w with zeros and ties, penalties (all zero, one number, several, of both signs), forced features and K."""
    r = np.random.default_rng(seed)
    k = int(r.integers(0, 9))
    forced = int(r.integers(0, k + 1)) if seed % 3 == 0 else 0
    w = np.round(r.normal(size=k), 1) * r.choice([1.0, 1e-3, 1e3]) * (r.random(k) < 0.8)
    c = [np.zeros(k), np.full(k, 0.3), r.random(k), r.normal(size=k)][seed % 4]
    return w, c, forced, int(r.integers(0, 6))


def of_sigma(size: Array, price: Array) -> Array:
    """min over σ in [0, 1] of ½ w²/σ + price σ, one by one."""
    tau = np.sqrt(2.0 * np.maximum(price, 0.0))
    outer = 0.5 * size**2 + price
    return np.where((price <= 0.0) | (size >= tau), outer, tau * size)


def value(w: Array, c: Array, forced: int, K: int) -> float:
    """Φ by its dual: max over μ ≥ 0 of −μK + Σ min over σ of ½ w²/σ + (c + μ)σ, concave in μ, by thirds."""
    size, c_free = np.abs(w[forced:]), c[forced:]
    high = 2.0 * (float(size.sum()) ** 2 + np.abs(c_free).max(initial=0.0) + 1.0)

    def at(mu: float) -> float:
        return float(of_sigma(size, c_free + mu).sum()) - mu * K

    low = 0.0
    for _ in range(400):
        a, b = low + (high - low) / 3.0, high - (high - low) / 3.0
        low, high = (low, b) if at(a) > at(b) else (a, high)
    return max(at(0.0), at(low), at(high)) + 0.5 * float(w[:forced] @ w[:forced])


def scratch(k: int) -> tuple[npt.NDArray[np.int64], Array]:
    return np.empty(k, np.int64), np.empty(k)


@pytest.mark.parametrize("seed", SEEDS)
def test_phi_is_the_dual_of_its_cardinality_row(seed: int) -> None:
    w, c, forced, K = drawn(seed)
    if K == 0 and (w[forced:] != 0.0).any():
        return  # no σ at all
    cls, tau = scratch(w.size)
    wanted = value(w, c, forced, K)
    assert phi(w, c, forced, K, cls, tau) == pytest.approx(wanted, rel=1e-8, abs=1e-8 * (1.0 + np.abs(w).sum() ** 2))


@pytest.mark.parametrize("seed", range(8))
def test_phi_is_the_declared_program(seed: int) -> None:
    r = np.random.default_rng(seed)
    w, c, K = r.normal(size=6), r.random(6) * (seed % 2), 1 + seed % 3
    sigma = cp.Variable(6)
    terms = sum(cp.quad_over_lin(w[j], sigma[j]) for j in range(6))
    program = cp.Problem(cp.Minimize(0.5 * terms + c @ sigma), [sigma >= 0, sigma <= 1, cp.sum(sigma) <= K])
    assert phi(w, c, 0, K, *scratch(6)) == pytest.approx(program.solve(solver=cp.CLARABEL), rel=1e-6)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_slope_is_the_difference_from_the_right(seed: int) -> None:
    """Where K features are in, the others at zero, and prices differ, the least multiplier's slope is a lower one."""
    w, c, forced, K = drawn(seed)
    w, K = np.clip(w, -3.0, 3.0), max(K, 1)
    d, t = np.random.default_rng(seed).normal(size=w.size), 0.3 * (seed % 2)
    cls, tau = scratch(w.size)
    found = phi_slope(w + t * d, d, c, forced, K, cls, tau)
    h = 1e-6
    low, high = (phi(w + s * d, c, forced, K, cls, tau) for s in (t, t + h))
    mu = classify_weights(w + t * d, c, forced, K, cls, tau)
    jumps = seed % 4 > 1 and mu == 0.0 and np.count_nonzero(cls[forced:] == IN) == K and (cls == OUT).any()
    rise = (high - low) / h
    assert found <= rise + 1e-4 * (1.0 + abs(rise))
    assert jumps or found == pytest.approx(rise, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("seed", SEEDS)
def test_classes_and_thresholds_are_those_of_the_multiplier(seed: int) -> None:
    w, c, forced, K = drawn(seed)
    K = max(K, 1)
    cls, tau = scratch(w.size)
    mu = classify_weights(w, c, forced, K, cls, tau)
    free = np.arange(w.size) >= forced
    np.testing.assert_allclose(tau, np.sqrt(2.0 * np.maximum(c + mu, 0.0)))
    always = (~free) | ((c < 0.0) & (c + mu <= 0.0))
    np.testing.assert_array_equal(cls == IN, always | (np.abs(w) > tau))
    np.testing.assert_array_equal(cls == OUT, ~always & (w == 0.0))
    sigma = np.where(cls == IN, 1.0, np.where(cls == FRACTIONAL, np.abs(w) / np.maximum(tau, 1e-300), 0.0))
    total = sigma[free].sum()
    assert total <= K * (1.0 + 1e-9)
    assert mu == 0.0 or total == pytest.approx(K, rel=1e-9)
    if (tau[free] > 0.0).any():
        assert threshold_level(tau, c, forced) == pytest.approx(max(mu, 0.0), abs=1e-9 * (1.0 + abs(mu)))


@pytest.mark.parametrize("seed", SEEDS)
def test_the_multiplier_solves_its_equation(seed: int) -> None:
    """Σσ(μ) = K at the least such μ ≥ 0; `sum_sigma` is Σσ, its fractional part, and minus half that one's
    derivative.
    """
    r = np.random.default_rng(seed)
    k, K = int(r.integers(1, 12)), int(r.integers(1, 6))
    size, c = np.abs(r.normal(size=k)) * (r.random(k) < 0.9), r.normal(size=k) if seed % 2 else r.random(k)

    def total(mu: float) -> float:
        price = c + mu
        tau = np.sqrt(2.0 * np.maximum(price, 1e-300))
        return float(np.where(price <= 0.0, 1.0, np.minimum(1.0, size / tau)).sum())

    mu = multiplier(size, c, K)
    if total(0.0) <= K:
        assert mu == 0.0
    else:
        assert total(mu * (1.0 + 1e-9)) <= K * (1.0 + 1e-9)
        assert total(mu * (1.0 - 1e-9) - 1e-12) >= K * (1.0 - 1e-7)
    for at in (0.0, 0.7 * mu + 0.1):
        found, part, bend = sum_sigma(size, c, at)
        assert found == pytest.approx(total(at), rel=1e-12)
        inside = (c + at > 0.0) & (size > 0.0) & (size < np.sqrt(2.0 * np.maximum(c + at, 0.0)))
        tau = np.sqrt(2.0 * (c + at)[inside])
        assert part == pytest.approx((size[inside] / tau).sum(), abs=1e-12)
        assert bend == pytest.approx((size[inside] / tau**3).sum(), abs=1e-9)
        h = 1e-7  # dτ/dμ = 1/τ, so the fractional part falls by bend
        slope = ((size[inside] / np.sqrt(2.0 * (c + at + h)[inside])).sum() - (size[inside] / tau).sum()) / h
        assert slope == pytest.approx(-bend, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_level_of_equal_penalties(seed: int) -> None:
    r = np.random.default_rng(seed)
    forced, K = seed % 3, int(r.integers(1, 5))
    w = np.append(r.normal(size=forced), r.permutation(np.append(r.normal(size=K + 1), np.zeros(seed % 4))))
    free = np.abs(w[forced:])
    tau = even_level(w, forced, K, float(free.sum()))
    assert np.minimum(1.0, free / tau).sum() == pytest.approx(K, rel=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_best_gain_is_that_of_sorted_gains(seed: int) -> None:
    omega, c, forced, K = drawn(seed)
    gains = np.sort(np.maximum(0.0, 0.5 * omega[forced:] ** 2 - c[forced:]))[::-1]
    wanted = 0.5 * float(omega[:forced] @ omega[:forced]) + float(gains[:K].sum())
    assert best_gain(omega, c, forced, K) == pytest.approx(wanted, rel=1e-12)
