"""Dual vectors on the grid: the box and y'α = 0 hold as integers, at every size of numbers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from mipfs.svm.dyadic import balance_dual, finest_bits, reduce_surplus, round_dual


def spelled(alpha: list[float], top: list[float], bits: int) -> tuple[list[int], list[int], int]:
    """Whole numbers and their limits, rounded to the nearest one in rational arithmetic, and q."""
    size = max(Fraction(min(a, t)) for a, t in zip(alpha, top, strict=True))
    ceiling = 0
    while size > Fraction(2) ** ceiling:
        ceiling += 1
    while size and size <= Fraction(2) ** (ceiling - 1):
        ceiling -= 1
    q = min(1000, bits - ceiling)
    unit = Fraction(2) ** q
    limits = [2**62 if t == np.inf else int(Fraction(t) * unit) for t in top]
    return [min(max(round(Fraction(a) * unit), 0), limit) for a, limit in zip(alpha, limits, strict=True)], limits, q


@pytest.mark.slow
@pytest.mark.parametrize("open_ended", [True, False])
def test_rounding_is_that_of_rational_arithmetic(open_ended: bool) -> None:
    r = np.random.default_rng(int(open_ended))
    for _ in range(300):
        n = int(r.integers(2, 60))
        y = np.where(r.random(n) < 0.5, 1.0, -1.0)
        y[0], y[-1] = 1.0, -1.0
        size = 10.0 ** r.integers(-240, 12) if open_ended else 10.0 ** r.integers(-8, 8)
        top = np.full(n, np.inf) if open_ended else r.uniform(0.1, 2.0, n) * size
        alpha = r.uniform(0.0, 2.0, n) * size
        alpha[y > 0] *= alpha[y < 0].sum() / alpha[y > 0].sum()  # no projection comes before
        exact, limit, finest_q = spelled(alpha.tolist(), top.tolist(), finest_bits(n))
        free, q = balance_dual(alpha, top, y, False)
        assert (free.tolist(), q) == (exact, finest_q)
        np.testing.assert_array_equal(round_dual(alpha, top), np.ldexp(free.astype(float), -q))
        whole, q = balance_dual(alpha, top, y, True)
        assert q == finest_q
        assert int((y * whole).sum()) == 0
        assert all(0 <= k <= most for k, most in zip(whole.tolist(), limit, strict=True))
        if abs(float(y @ alpha)) <= 1e-7 * float(alpha.sum()):
            surplus = abs(sum(k if label > 0 else -k for k, label in zip(exact, y, strict=True)))
            assert int(np.abs(whole - free).sum()) == surplus  # nothing else is taken, and of one class alone


@pytest.mark.parametrize("seed", range(50))
def test_a_surplus_is_taken_off_exactly(seed: int) -> None:
    r = np.random.default_rng(seed)
    k = r.integers(0, 2 ** int(r.integers(1, 50)), int(r.integers(1, 40)))
    total = int(k.sum())
    surplus = int(r.integers(0, total + 1)) if seed % 3 else min(total, int(r.integers(0, 9)))
    left = reduce_surplus(k.copy(), surplus)
    assert int(left.sum()) == total - surplus
    assert np.all((left >= 0) & (left <= k))
    assert np.array_equal(reduce_surplus(k.copy(), -(2**70)), k)


def test_what_is_not_balanced_is_projected_first() -> None:
    y, top = np.array([1.0, 1.0, -1.0]), np.full(3, 4.0)
    whole, q = balance_dual(np.array([3.0, 1.0, 1.0]), top, y, True)
    np.testing.assert_allclose(np.ldexp(whole.astype(float), -q), [2.0, 0.0, 2.0], atol=1e-12)
