"""Dual vectors on the grid: the box and y'α = 0 hold as integers, at every size of numbers."""

from __future__ import annotations

import numpy as np
import pytest

from mipfs.svm.dyadic import balance, balanced, grid


@pytest.mark.parametrize("open_ended", [True, False])
def test_compiled_rounding_is_the_one_that_is_spelled_out(open_ended: bool) -> None:
    r = np.random.default_rng(int(open_ended))
    for _ in range(300):
        n = int(r.integers(2, 60))
        y = np.where(r.random(n) < 0.5, 1.0, -1.0)
        y[0], y[-1] = 1.0, -1.0
        size = 10.0 ** r.integers(-320, 12) if open_ended else 10.0 ** r.integers(-8, 8)
        top = np.full(n, np.inf) if open_ended else r.uniform(0.1, 2.0, n) * size
        alpha = r.uniform(0.0, 2.0, n) * size
        alpha[y > 0] *= alpha[y < 0].sum() / alpha[y > 0].sum()  # no projection comes before
        whole, q = balanced(alpha, top, y, True)
        spelled, limit, finest = grid(alpha, top)
        balance(spelled, limit, y)
        assert q == finest
        assert int((y * whole).sum()) == 0
        assert np.all((whole >= 0) & (whole <= limit))
        if abs(float(y @ alpha)) <= 1e-7 * float(alpha.sum()):
            assert np.abs(whole - spelled).max() <= n  # the sum of one class has two orders


def test_what_is_not_balanced_is_projected_first() -> None:
    y, top = np.array([1.0, 1.0, -1.0]), np.full(3, 4.0)
    whole, q = balanced(np.array([3.0, 1.0, 1.0]), top, y, True)
    np.testing.assert_allclose(np.ldexp(whole.astype(float), -q), [2.0, 0.0, 2.0], atol=1e-12)
