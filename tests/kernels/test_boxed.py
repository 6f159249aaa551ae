"""The SVM with ends, beside the optimality conditions of its weights."""

from __future__ import annotations

import numpy as np
import pytest

from mipfs.kernels.boxed import Boxed, Pace, boxed
from mipfs.kernels.structures import given
from mipfs.losses import get_loss


@pytest.mark.parametrize("loss", ["hinge", "squared-hinge", "logistic"])
@pytest.mark.parametrize("bias", [True, False])
def test_weights_satisfy_the_optimality_conditions(loss: str, bias: bool) -> None:
    """w_j = clip(ω_j, low_j, high_j) with ω = A'α, y'α = 0, α in −c∂ℓ(m); some weights are at an end."""
    at_ends = 0
    for seed in range(8):
        r = np.random.default_rng(seed)
        n, k = 50, int(r.integers(1, 7))
        y = np.where(r.random(n) < 0.5, 1.0, -1.0)
        A = r.normal(size=(n, k)) + 0.4 * y[:, None]
        A = np.ascontiguousarray(np.hstack([A, np.ones((n, 1))]) if bias else A) * y[:, None]
        c = r.uniform(0.2, 1.0, n)
        low, high = -r.exponential(size=k) * (r.random(k) < 0.7), r.exponential(size=k) * (r.random(k) < 0.7)
        one = get_loss(loss)
        u, alpha, state = np.zeros(A.shape[1]), np.zeros(n), np.array([0.5, 0.0, 0.0])
        posed = Boxed(given(A), given(c), given(low), given(high), one.kernels.made)
        boxed(posed, u, alpha, state, Pace(1e-10, np.inf, 500, 4.0))
        assert state[1] == 1.0
        omega = A.T @ alpha
        np.testing.assert_allclose(u[:k], np.clip(omega[:k], low, high), atol=1e-4)
        assert np.all(alpha >= 0.0)
        assert np.all(alpha <= one.top(c) + 1e-12)
        if bias:
            assert abs(omega[k]) < 1e-4
        primal = 0.5 * float(u[:k] @ u[:k]) + one.value(A @ u, c)
        t = np.clip(omega[:k], low, high)
        dual = one.dual_value(alpha, c) - float(t @ (omega[:k] - 0.5 * t))
        assert primal == pytest.approx(dual, rel=1e-6)
        at_ends += int(np.count_nonzero((u[:k] == low) | (u[:k] == high)))
    assert at_ends > 0


def test_a_dual_value_that_is_enough_ends_it() -> None:
    r = np.random.default_rng(0)
    A = r.normal(size=(40, 3))
    posed = Boxed(given(A), given(np.ones(40)), given(np.zeros(3)), given(np.ones(3)), get_loss("hinge").kernels.made)
    steps = []
    for until in (0.0, np.inf):
        state = np.array([0.5, 0.0, 0.0])
        boxed(posed, np.zeros(3), np.zeros(40), state, Pace(1e-12, until, 500, 4.0))
        steps.append(state[2])
    assert steps[0] < steps[1]
