"""The SVM kernels and their linear algebra against plain NumPy, and their minima against Clarabel."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
import numpy.typing as npt
import pytest
from scipy import sparse

from mipfs.kernels import newton as kernels
from mipfs.kernels.augmented_lagrangian import (
    LagrangianPace,
    SearchLine,
    augmented_lagrangian,
    choose_rows,
    inner_set,
    line_search,
    slope,
)
from mipfs.kernels.newton import (
    SvmRows,
    add_gram,
    cholesky_in_place,
    cholesky_solve,
    combine_rows,
    direction_by_columns,
    direction_by_rows,
    dot,
    gather,
    margins,
    newton_direction,
    safeguard_step,
    smooth_search,
)
from mipfs.kernels.structures import only_read
from tests.kernels.loss_cases import LOGISTIC, SQUARED_HINGE, made

Array = npt.NDArray[np.float64]
SIZES = [(1, 1), (1, 3), (7, 1), (20, 3), (30, 8), (6, 9)]
SMOOTH = (SQUARED_HINGE, LOGISTIC)


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


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(("n", "k"), [*SIZES, (600, 3)])
def test_newton_directions_solve_their_system(n: int, k: int, bias: bool, is_sparse: bool) -> None:
    A, _, _ = drawn(n, k, bias=bias)
    r, d = np.random.default_rng(n + k), k + bias
    curve, g = r.uniform(0.5, 2.0, n), r.normal(size=d)
    for inner in (np.arange(n), np.arange(0, n, 3), np.empty(0, np.int64)):
        out, rows = np.empty(d), np.empty((min(kernels.ROWS_PER_BLOCK, n), d))
        newton_direction(held(A, is_sparse), inner, curve, g, k, out, rows)
        if inner.size == 0:
            np.testing.assert_array_equal(out, -g)
            continue
        M = np.diag(np.append(np.ones(k), np.zeros(int(bias)))) + A[inner].T @ (curve[inner, None] * A[inner])
        np.testing.assert_allclose(M @ out, -g, atol=1e-8 * (1.0 + np.abs(M).max()))
        # Whichever system is the smaller, both have the same solution.
        by_columns, by_rows = np.empty(d), np.empty(d)
        direction_by_columns(held(A, is_sparse), inner, curve, g, k, by_columns, rows)
        direction_by_rows(held(A, is_sparse), inner, curve, g, k, by_rows)
        for other in (by_columns, by_rows):
            np.testing.assert_allclose(M @ other, -g, atol=1e-8 * (1.0 + np.abs(M).max()))


def line(seed: int) -> tuple[SearchLine, Any]:
    """A line, and φ along it in plain NumPy."""
    r = np.random.default_rng(seed)
    n = 1 + seed % 9
    m, q, c = r.normal(size=n) + 1.0, r.normal(size=n), r.uniform(0.3, 2.0, n)
    alpha, rho, rows = c * r.random(n), 0.7, np.arange(0, n, 1 + seed % 2)
    a0, a1 = -abs(r.normal()), 0.3 + r.random()

    def value(t: float) -> float:
        v, c_in = (alpha + rho * (1.0 - m - t * q))[rows], c[rows]
        psi = np.where(v <= 0.0, 0.0, np.where(v >= c_in, c_in * v - 0.5 * c_in**2, 0.5 * v * v)) / rho
        return float(psi.sum() + a0 * t + 0.5 * a1 * t * t)

    return SearchLine(rows, m, q, alpha, c, rho, a0, a1), value


@pytest.mark.parametrize("root", [1e-3, 0.7, 1.0, 3.0, 1e4])
def test_steps_stay_between_what_is_known_and_find_the_minimum(root: float) -> None:
    t, low, high = 1.0, 0.0, np.inf
    for _ in range(60):
        first, second = np.arctan(t - root), 1.0 / (1.0 + (t - root) ** 2)  # Newton's own steps diverge from afar
        t, low, high = safeguard_step.py_func(t, low, high, first, second)
        assert low <= root <= high
        assert low <= t <= high
    assert t == pytest.approx(root)


@pytest.mark.parametrize("seed", range(20))
def test_slopes_are_differences_and_a_search_flattens_them(seed: int) -> None:
    asked, value = line(seed)
    h = 1e-6
    for t in (0.0, 0.37, 2.0):
        first, second = slope(t, asked)
        assert first == pytest.approx((value(t + h) - value(t - h)) / (2 * h), abs=1e-5)
        assert second == pytest.approx((slope(t + h, asked)[0] - slope(t - h, asked)[0]) / (2 * h), abs=1e-3)
    f0 = slope(0.0, asked)[0]
    if f0 < 0.0:
        t = line_search(asked, f0)
        assert abs(slope(t, asked)[0]) <= 0.1 * abs(f0) * (1 + 1e-9)
        assert value(t) < value(0.0)


@pytest.mark.parametrize("seed", range(12))
def test_beta_and_who_is_inside_its_box(seed: int) -> None:
    r = np.random.default_rng(seed)
    n = seed
    m, c = r.normal(size=n) + 1.0, r.uniform(0.3, 2.0, n)
    alpha, rows = c * r.choice([0.0, 0.5, 1.0], n), np.arange(0, n, 1 + seed % 2)
    beta, inner = np.full(n, -7.0), np.empty(n, np.int64)
    count = inner_set(rows, m, alpha, c, 0.9, beta, inner)
    v = alpha + 0.9 * (1.0 - m)
    np.testing.assert_array_equal(beta[rows], np.clip(v, 0.0, c)[rows])
    assert inner[:count].tolist() == [i for i in rows if 0.0 < v[i] < c[i]]
    for target in (n, 2):
        kept = np.empty(n, np.int64)
        stay = kept[: choose_rows(m, alpha, c, target, kept)].tolist()
        away = np.abs(1.0 - m)
        width = max((away[i] for i in stay if alpha[i] in (0.0, c[i])), default=-1.0)
        assert stay == [i for i in range(n) if 0.0 < alpha[i] < c[i] or away[i] <= width]
        assert len(stay) == n if target >= n else len(stay) >= min(n, target)


@pytest.mark.parametrize("kind", SMOOTH)
@pytest.mark.parametrize("seed", range(8))
def test_smooth_searches(seed: int, kind: int) -> None:
    r = np.random.default_rng(seed)
    n = seed
    m, q, c = r.normal(size=n), r.normal(size=n), r.uniform(0.3, 2.0, n)
    a0, a1 = -1.0, 0.5

    def value(t: float) -> float:
        at = m + t * q
        loss = 0.5 * np.maximum(0.0, 1.0 - at) ** 2 if kind == SQUARED_HINGE else np.logaddexp(0.0, -at)
        return float(c @ loss) + a0 * t + 0.5 * a1 * t * t

    h = 1e-6
    f0 = (value(h) - value(-h)) / (2 * h)
    if f0 < -1e-3:
        t = smooth_search(made(kind), m, q, only_read(c), a0, a1, f0)
        assert value(t) < value(0.0)
        assert abs(value(t + h) - value(t - h)) / (2 * h) <= 0.1 * abs(f0) * (1 + 1e-5) + 1e-7


def declared(A: Array, c: Array, k: int, loss: str) -> float:
    """min ½‖w‖² + Σ c_i ℓ(a_i'u), by Clarabel."""
    u = cp.Variable(A.shape[1])
    m = A @ u
    losses = {"hinge": cp.pos(1 - m), "squared": 0.5 * cp.square(cp.pos(1 - m)), "logistic": cp.logistic(-m)}
    program = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(u[:k]) + c @ losses[loss]))
    return float(program.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10))


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(("n", "k"), [(7, 1), (20, 3), (6, 9), (90, 4)])
def test_the_hinge_is_minimised(n: int, k: int, bias: bool, is_sparse: bool) -> None:
    A, y, c = drawn(n, k, bias=bias)
    d = k + bias
    u, alpha, state = np.zeros(d), np.zeros(n), np.array([1.0, 0.0, 0.0])
    for _ in range(200):
        pace = LagrangianPace(1e-9, np.inf, 7, 4.0, n > 50)
        augmented_lagrangian(SvmRows(held(A, is_sparse), c, k), u, alpha, state, pace, np.empty((7, n + d)))
        if state[1] == 1.0:
            break
    assert state[1] == 1.0
    primal = 0.5 * float(u[:k] @ u[:k]) + float(c @ np.maximum(0.0, 1.0 - A @ u))
    omega = A[:, :k].T @ alpha
    assert ((alpha >= 0.0) & (alpha <= c)).all()
    assert primal - (alpha.sum() - 0.5 * float(omega @ omega)) <= 1e-7 * (1.0 + primal)
    assert primal == pytest.approx(declared(A, c, k, "hinge"), rel=1e-6)
    if bias:
        assert abs(float(y @ alpha)) <= 1e-6


@pytest.mark.parametrize("kind", SMOOTH)
@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(("n", "k"), [(7, 1), (20, 3), (6, 9)])
def test_smooth_losses_are_minimised(n: int, k: int, bias: bool, is_sparse: bool, kind: int) -> None:
    A, _, c = drawn(n, k, bias=bias)
    d = k + bias
    u, alpha, state, work = np.zeros(d), np.empty(n), np.zeros(3), np.empty((7, n + d))
    for _ in range(30):
        kernels.newton(SvmRows(held(A, is_sparse), only_read(c), k), made(kind), u, alpha, state, 1e-10, 5, work)
        if state[1] == 1.0:
            break
    assert state[1] == 1.0
    m, loss = A @ u, "squared" if kind == SQUARED_HINGE else "logistic"
    terms = 0.5 * np.maximum(0.0, 1.0 - m) ** 2 if kind == SQUARED_HINGE else np.logaddexp(0.0, -m)
    assert 0.5 * float(u[:k] @ u[:k]) + float(c @ terms) == pytest.approx(declared(A, c, k, loss), rel=1e-6)
    slope_of = np.maximum(0.0, 1.0 - m) if kind == SQUARED_HINGE else 1.0 / (1.0 + np.exp(m))
    np.testing.assert_allclose(alpha, c * slope_of, atol=1e-9)
