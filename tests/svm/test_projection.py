"""The projection onto the dual set against a quadratic program."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

from mipfs.svm.projection import project


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("open_ended", [True, False])
@pytest.mark.parametrize("seed", range(8))
def test_is_the_nearest_point(seed: int, open_ended: bool, bias: bool) -> None:
    r = np.random.default_rng(seed)
    n = int(r.integers(2, 25))
    y = np.where(r.random(n) < r.uniform(0.1, 0.9), 1.0, -1.0)
    y[0], y[-1] = 1.0, -1.0
    top = np.full(n, np.inf) if open_ended else r.uniform(0.1, 2.0, n)
    alpha = 3.0 * r.standard_normal(n) + (2.0 if seed % 2 else 0.0)
    if seed == 5:
        alpha[:] = -1.0
    found = project(alpha, top, y, bias)
    x = cp.Variable(n)
    rows = [x >= 0, *([] if open_ended else [x <= top]), *([y @ x == 0] if bias else [])]
    cp.Problem(cp.Minimize(cp.sum_squares(x - alpha)), rows).solve(solver=cp.CLARABEL)
    np.testing.assert_allclose(found, x.value, atol=2e-4)  # Clarabel's own accuracy near the bounds
    distance = np.linalg.norm(found - alpha)
    assert distance <= np.linalg.norm(x.value - alpha) * (1 + 1e-7)
    assert np.all(found >= 0)
    assert np.all(found <= top)
    if bias:
        assert abs(y @ found) <= 1e-12 * (1 + np.abs(alpha).sum())
