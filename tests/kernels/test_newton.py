"""The SVM kernels and their linear algebra against plain NumPy, and their minima against Clarabel."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
import numpy.typing as npt
import pytest
from scipy import sparse

from mipfs.kernels import newton as kernels
from mipfs.kernels.newton import (
    Ends,
    NewtonPace,
    SvmRows,
    add_curved,
    add_gram,
    cholesky_in_place,
    cholesky_solve,
    combine_rows,
    direction_by_columns,
    direction_by_gradients,
    direction_by_rows,
    dot,
    dot_rows,
    gather,
    gradients_at_most,
    margins,
    minimise,
    newton,
    newton_direction,
    newton_matrix,
)
from mipfs.kernels.structures import only_read
from mipfs.losses import get_loss
from tests.kernels.loss_cases import NAMES

Array = npt.NDArray[np.float64]
SIZES = [(1, 1), (1, 3), (7, 1), (20, 3), (30, 8), (6, 9)]
NO_ROWS = np.zeros((0, 1)), np.zeros(0), np.zeros(0), 0.0


def drawn(n: int, k: int, *, bias: bool = True, seed: int = 0) -> tuple[Array, Array, Array]:
    """Rows y_i (z_i, 1), labels and weights."""
    r = np.random.default_rng([n, k, seed])
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    Z = r.normal(size=(n, k)) * (r.random((n, k)) < 0.7)
    return np.column_stack([Z, np.ones(n)])[:, : k + bias] * y[:, None], y, r.uniform(0.3, 2.0, n)


def held(A: Array, is_sparse: bool) -> Any:
    """As the kernels take it: row-major, or the CSR triple of the types of `signed_rows`."""
    if not is_sparse:
        return np.ascontiguousarray(A)
    part = sparse.csr_array(A)
    return part.data, part.indices.astype(np.int32), part.indptr.astype(np.int64)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(("n", "k"), [*SIZES, (4, 0), (0, 2)])
def test_rows_are_gathered(n: int, k: int, bias: bool) -> None:
    r = np.random.default_rng([n, k])
    X, y = np.asfortranarray(r.normal(size=(n, k + 2))), r.choice([-1.0, 1.0], n)
    X.flags.writeable = False
    ids, off, scale, out = (
        r.permutation(k + 2)[:k].astype(np.int64),
        r.normal(size=k),
        r.random(k),
        np.empty((n, k + bias)),
    )
    gather(X, ids, y, off, scale, out)
    wanted = np.column_stack([(X[:, ids] - off) * scale, np.ones(n)])[:, : k + bias] * y[:, None]
    np.testing.assert_allclose(out, wanted, atol=1e-14)


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize(("n", "k"), SIZES)
def test_passes_over_rows(n: int, k: int, is_sparse: bool) -> None:
    A, _, _ = drawn(n, k)
    r = np.random.default_rng(5)
    u, beta, out, g = r.normal(size=k + 1), r.normal(size=n) * (r.random(n) < 0.7), np.empty(n), np.empty(k + 1)
    margins(held(A, is_sparse), u, out)
    np.testing.assert_allclose(out, A @ u, atol=1e-13)
    for rows in (np.arange(n), np.arange(0, n, 2), np.empty(0, np.int64)):
        combine_rows(held(A, is_sparse), rows, beta, g)
        np.testing.assert_allclose(g, A[rows].T @ beta[rows], atol=1e-13)


@pytest.mark.parametrize("count", [0, 1, 3, 4, 9])
def test_gram_and_dot(count: int) -> None:
    r = np.random.default_rng(count)
    R, H = r.normal(size=(count + 2, 5)), r.normal(size=(5, 5))
    wanted = np.tril(H + R[:count].T @ R[:count])
    upper = np.triu(H, 1)
    add_gram(R, count, H)
    np.testing.assert_allclose(H, wanted + upper, atol=1e-13)
    x, y = r.normal(size=count), r.normal(size=count + 2)
    assert dot(x, y) == pytest.approx(float(x @ y[:count]), abs=1e-13)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 5, 8, 11])
def test_cholesky_is_that_of_numpy(n: int) -> None:
    r = np.random.default_rng(n)
    B, b = r.normal(size=(n, n + 2)), r.normal(size=n)
    M = B @ B.T + 0.1 * np.eye(n)
    L, x = M.copy(), b.copy()
    cholesky_in_place(L)
    np.testing.assert_allclose(np.tril(L), np.linalg.cholesky(M), atol=1e-10)
    cholesky_solve(L, x)
    np.testing.assert_allclose(M @ x, b, atol=1e-9)


def test_a_pivot_that_rounding_takes_is_lifted() -> None:
    L = np.ones((5, 5))
    cholesky_in_place(L)
    assert np.isfinite(np.tril(L)).all()
    assert (np.diag(L) > 0.0).all()


def newton_system(A: Array, inner: npt.NDArray[np.int64], curve: Array, k: int) -> Array:
    """diag(1 … 1, 0) + Σ_J h_i a_i a_i' by NumPy."""
    return np.diag((np.arange(A.shape[1]) < k).astype(float)) + A[inner].T @ (curve[inner, None] * A[inner])


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(("n", "k"), [*SIZES, (600, 3)])
def test_newton_directions_solve_their_system(n: int, k: int, bias: bool, is_sparse: bool) -> None:
    A, _, _ = drawn(n, k, bias=bias)
    r, d = np.random.default_rng(n + k), k + bias
    curve, g = r.uniform(0.5, 2.0, n), r.normal(size=d)
    for inner in (np.arange(n), np.arange(0, n, 3), np.empty(0, np.int64)):
        out, rows = np.empty(d), np.empty((min(kernels.ROWS_PER_BLOCK, n), d))
        newton_direction(held(A, is_sparse), inner, curve, g, k, out, rows, True)
        if inner.size == 0:
            np.testing.assert_array_equal(out, -g)
            continue
        M = newton_system(A, inner, curve, k)
        H = np.full((d, d), 7.0)
        newton_matrix(held(A, is_sparse), inner, curve, k, H, rows)
        np.testing.assert_allclose(np.tril(H), np.tril(M), atol=1e-10)
        np.testing.assert_allclose(M @ out, -g, atol=1e-8 * (1.0 + np.abs(M).max()))
        # Whichever system is the smaller, both have the same solution.
        by_columns, by_rows = np.empty(d), np.empty(d)
        direction_by_columns(held(A, is_sparse), inner, curve, g, k, by_columns, rows)
        direction_by_rows(held(A, is_sparse), inner, curve, g, k, by_rows)
        for other in (by_columns, by_rows):
            np.testing.assert_allclose(M @ other, -g, atol=1e-8 * (1.0 + np.abs(M).max()))


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(("n", "k"), [*SIZES, (40, 60)])
def test_conjugate_gradients_lead_to_the_same_direction(n: int, k: int, bias: bool, is_sparse: bool) -> None:
    A, _, _ = drawn(n, k, bias=bias)
    r, d = np.random.default_rng(n + k), k + bias
    curve, g, inner = r.uniform(0.5, 2.0, n), r.normal(size=d), np.arange(0, n, 2)
    M = newton_system(A, inner, curve, k)
    wanted, out, product = np.linalg.solve(M, -g), np.full(d, 7.0), np.zeros(d)
    assert direction_by_gradients(held(A, is_sparse), inner, curve, g, k, out, 20 * d)
    apart = out - wanted
    # The residual is small in lengths by the diagonal: ‖r‖ there is at most the share of ‖g‖.
    residual = M @ apart
    assert residual @ (residual / np.diag(M)) <= 1.01 * kernels.EXACTNESS**2 * (g @ (g / np.diag(M)))
    add_curved(held(A, is_sparse), inner, curve, wanted, product)
    np.testing.assert_allclose(product, A[inner].T @ (curve[inner] * (A[inner] @ wanted)), atol=1e-11)
    dots = np.empty(inner.size)
    dot_rows(held(A, is_sparse), inner, wanted, dots)
    np.testing.assert_allclose(dots, A[inner] @ wanted, atol=1e-12)
    assert not direction_by_gradients(held(A, is_sparse), inner, curve, np.full(d, np.nan), k, out, 5)
    if d > 3:  # one step is not enough, and says so
        assert not direction_by_gradients(held(A, is_sparse), inner, curve, g, k, out, 1)


def test_conjugate_gradients_are_tried_where_a_share_of_the_direct_solution_pays_for_them() -> None:
    small, _, _ = drawn(200, 20)
    assert gradients_at_most(held(small, False), 200, 21) == 0
    assert gradients_at_most(np.empty((4, 0)), 4, 0) == 0
    many = sparse.random_array((3_000, 4_000), density=1e-3, rng=np.random.default_rng(0), format="csr")
    A = many.data, many.indices.astype(np.int32), many.indptr.astype(np.int64)
    passes = gradients_at_most(A, 3_000, 4_000)
    direct = 3_000 * many.nnz / 2 + 3_000**3 / 6
    assert passes >= kernels.GRADIENTS
    assert passes == int(kernels.GRADIENTS_SHARE * direct / (2.0 * many.nnz + 8.0 * 4_000 + 1.0))


def declared(A: Array, c: Array, k: int, loss: str) -> float:
    """min ½‖w‖² + Σ c_i ℓ(a_i'u), by Clarabel."""
    u = cp.Variable(A.shape[1])
    m = A @ u
    losses = {"hinge": cp.pos(1 - m), "squared-hinge": 0.5 * cp.square(cp.pos(1 - m)), "logistic": cp.logistic(-m)}
    program = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(u[:k]) + c @ losses[loss]))
    return float(program.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10))


@pytest.mark.parametrize("loss", NAMES)
@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(("n", "k"), [(7, 1), (20, 3), (6, 9), (90, 4)])
def test_losses_are_minimised(n: int, k: int, bias: bool, is_sparse: bool, loss: str) -> None:
    A, y, c = drawn(n, k, bias=bias)
    one = get_loss(loss)
    assert one.kernels is not None
    u, alpha, state = np.zeros(k + bias), np.zeros(n), np.array([1.0, 0.0, 0.0])
    for _ in range(200):
        rows = SvmRows(held(A, is_sparse), only_read(c), k, one.kernels.made)
        newton(rows, u, alpha, state, NewtonPace(1e-9, np.inf, 7, 4.0))
        if state[1] == 1.0:
            break
    assert state[1] == 1.0
    primal = 0.5 * float(u[:k] @ u[:k]) + one.value(A @ u, c)
    omega = A[:, :k].T @ alpha
    assert ((alpha >= 0.0) & (alpha <= one.top(c))).all()
    assert primal - (one.dual_value(alpha, c) - 0.5 * float(omega @ omega)) <= 1e-7 * (1.0 + primal)
    assert primal == pytest.approx(declared(A, c, k, loss), rel=1e-6)
    if bias:
        assert abs(float(y @ alpha)) <= 1e-6
    if loss != "hinge":
        m = A @ u
        slope = np.maximum(0.0, 1.0 - m) if loss == "squared-hinge" else 1.0 / (1.0 + np.exp(m))
        np.testing.assert_allclose(alpha, c * slope, atol=1e-9)


@pytest.mark.parametrize("loss", NAMES)
def test_without_columns_only_the_intercept_is_left(loss: str) -> None:
    """And without an intercept nothing: the dual vector is all that is asked for."""
    y, one = np.resize([1.0, 1.0, -1.0], 9), get_loss(loss)
    assert one.kernels is not None
    for bias in (False, True):
        u, alpha, state = np.zeros(int(bias)), np.zeros(9), np.array([0.5, 0.0, 0.0])
        A = np.ascontiguousarray(y[:, None][:, : int(bias)])
        rows = SvmRows(A, only_read(np.ones(9)), 0, one.kernels.made)
        newton(rows, u, alpha, state, NewtonPace(1e-9, np.inf, 400, 5.0))
        assert state[1] == 1.0
        assert one.dual_value(alpha, np.ones(9)) == pytest.approx(one.value(A @ u, np.ones(9)), rel=1e-6)


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
        rows = SvmRows(A, only_read(c), k, one.kernels.made)
        minimise(rows, Ends(low, high, *NO_ROWS), u, alpha, np.zeros(0), state, NewtonPace(1e-10, np.inf, 500, 4.0))
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
        ends = Ends(low, high, D, least, most, bend)
        samples = SvmRows(A, only_read(np.ones(n)), k, one.kernels.made)
        minimise(samples, ends, u, alpha, own, state, NewtonPace(1e-10, np.inf, 500, 4.0))
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
    posed = SvmRows(A, only_read(np.ones(40)), 3, made), Ends(np.zeros(3), np.ones(3), *NO_ROWS)
    steps = []
    for until in (0.0, np.inf):
        state = np.array([0.5, 0.0, 0.0])
        minimise(*posed, np.zeros(3), np.zeros(40), np.zeros(0), state, NewtonPace(1e-12, until, 500, 4.0))
        steps.append(state[2])
    assert steps[0] < steps[1]


@pytest.mark.parametrize("scale", [1e3, 1e5, 1e7])
def test_separable_samples_far_from_the_box_close(scale: float) -> None:
    """Multipliers are like 1/‖a_i‖² then, and bend however small they are beside c."""
    r = np.random.default_rng(4)
    A = scale * (np.abs(r.normal(size=(30, 3))) + 0.1)
    u, alpha, state = np.zeros(3), np.zeros(30), np.array([0.5, 0.0, 0.0])
    samples = SvmRows(A, only_read(np.ones(30)), 3, get_loss("hinge").kernels.made)
    newton(samples, u, alpha, state, NewtonPace(1e-7, np.inf, 100, 5.0))
    assert state[1] == 1.0
    assert 0.0 < alpha.max() < 1e3 / scale**2
    assert float(alpha.sum()) == pytest.approx(float(u @ u), rel=1e-6)
    np.testing.assert_allclose(u, A.T @ alpha, rtol=1e-3, atol=1e-4 * np.abs(u).max())


@pytest.mark.parametrize("loss", ["hinge", "squared-hinge"])
def test_a_gap_below_rounding_leaves_numbers_to_go_on_from(loss: str) -> None:
    """The smoothing grows while the gap is not met, but not until it is infinite."""
    r = np.random.default_rng(1)
    A, D = r.normal(size=(20, 3)), r.normal(size=(1, 3))
    D /= np.linalg.norm(D)
    bend = float(np.square(A @ D.T).sum())
    ends = Ends(np.full(3, -np.inf), np.full(3, np.inf), D, np.zeros(1), np.zeros(1), bend)
    posed = SvmRows(A, only_read(np.ones(20)), 3, get_loss(loss).kernels.made), ends
    u, alpha, own, state = np.zeros(3), np.zeros(20), np.zeros(1), np.array([0.5, 0.0, 0.0])
    minimise(*posed, u, alpha, own, state, NewtonPace(-1e-12, np.inf, 3000, 4.0))
    assert state[1] == 0.0
    assert all(np.all(np.isfinite(one)) for one in (u, alpha, own, state))
    np.testing.assert_allclose(u, A.T @ alpha + D.T @ own, atol=1e-6)
