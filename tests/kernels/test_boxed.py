"""The SVM with ends, beside the optimality conditions of its weights."""

from __future__ import annotations

import numpy as np
import pytest

from mipfs.kernels.boxed import BoxedPace, BoxedProgram, minimise_boxed
from mipfs.kernels.structures import only_read
from mipfs.losses import get_loss

NO_ROWS = only_read(np.zeros((0, 1))), only_read(np.zeros(0)), only_read(np.zeros(0)), 0.0


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
        posed = BoxedProgram(only_read(A), only_read(c), only_read(low), only_read(high), one.kernels.made, *NO_ROWS)
        minimise_boxed(posed, u, alpha, np.zeros(0), state, BoxedPace(1e-10, np.inf, 500, 4.0))
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


@pytest.mark.parametrize("loss", ["hinge", "squared-hinge", "logistic"])
def test_rows_over_the_weights_are_kept_and_pull_where_they_bind(loss: str) -> None:
    """w = clip(A'α + D'λ, low, high); λ ≥ 0 at a lower end, ≤ 0 at an upper one, and 0 between."""
    binding = 0
    for seed in range(8):
        r = np.random.default_rng(seed)
        n, k, rows = 50, int(r.integers(2, 7)), int(r.integers(1, 4))
        y = np.where(r.random(n) < 0.5, 1.0, -1.0)
        A = np.ascontiguousarray(np.hstack([r.normal(size=(n, k)) + 0.4 * y[:, None], np.ones((n, 1))])) * y[:, None]
        D = r.normal(size=(rows, k))
        D /= np.linalg.norm(D, axis=1)[:, None]
        least, most = -0.1 * r.exponential(size=rows) * (r.random(rows) < 0.7), 0.1 * r.exponential(size=rows)
        most[0] = -least[0] if seed % 2 else np.inf
        one, low, high = get_loss(loss), np.full(k, -0.5), np.full(k, np.inf)
        u, alpha, own, state = np.zeros(k + 1), np.zeros(n), np.zeros(rows), np.array([0.5, 0.0, 0.0])
        bend = float(np.square(A[:, :k] @ D.T).sum(axis=0).max())
        of_rows = only_read(D), only_read(least), only_read(most), bend
        posed = BoxedProgram(
            only_read(A), only_read(np.ones(n)), only_read(low), only_read(high), one.kernels.made, *of_rows
        )
        minimise_boxed(posed, u, alpha, own, state, BoxedPace(1e-10, np.inf, 500, 4.0))
        assert state[1] == 1.0
        at = D @ u[:k]
        np.testing.assert_allclose(u[:k], np.clip((A.T @ alpha)[:k] + D.T @ own, low, high), atol=1e-4)
        assert np.all((at >= least - 1e-6) & (at <= most + 1e-6))
        assert np.all((own <= 1e-9) | (at <= least + 1e-6))
        assert np.all((own >= -1e-9) | (at >= most - 1e-6))
        binding += int(np.count_nonzero(own))
    assert binding > 0


def test_a_dual_value_that_is_enough_ends_it() -> None:
    r = np.random.default_rng(0)
    A = r.normal(size=(40, 3))
    made = get_loss("hinge").kernels.made
    posed = BoxedProgram(
        only_read(A), only_read(np.ones(40)), only_read(np.zeros(3)), only_read(np.ones(3)), made, *NO_ROWS
    )
    steps = []
    for until in (0.0, np.inf):
        state = np.array([0.5, 0.0, 0.0])
        minimise_boxed(posed, np.zeros(3), np.zeros(40), np.zeros(0), state, BoxedPace(1e-12, until, 500, 4.0))
        steps.append(state[2])
    assert steps[0] < steps[1]


@pytest.mark.parametrize("loss", ["hinge", "squared-hinge"])
def test_a_gap_below_rounding_leaves_numbers_to_go_on_from(loss: str) -> None:
    """The smoothing grows while the gap is not met, but not until it is infinite."""
    r = np.random.default_rng(1)
    A, D = r.normal(size=(20, 3)), r.normal(size=(1, 3))
    D /= np.linalg.norm(D)
    ends = only_read(np.full(3, -np.inf)), only_read(np.full(3, np.inf))
    of_rows = only_read(D), only_read(np.zeros(1)), only_read(np.zeros(1)), float(np.square(A @ D.T).sum())
    posed = BoxedProgram(only_read(A), only_read(np.ones(20)), *ends, get_loss(loss).kernels.made, *of_rows)
    u, alpha, own, state = np.zeros(3), np.zeros(20), np.zeros(1), np.array([0.5, 0.0, 0.0])
    minimise_boxed(posed, u, alpha, own, state, BoxedPace(-1e-12, np.inf, 3000, 4.0))
    assert state[1] == 0.0
    assert all(np.all(np.isfinite(one)) for one in (u, alpha, own, state))
    np.testing.assert_allclose(u, A.T @ alpha + D.T @ own, atol=1e-6)
