"""Proximal gradient, its prox, the simplex program and the sweep over groups, against NumPy and Clarabel."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
import numpy.typing as npt
import pytest
from scipy import sparse

from mipfs.kernels import group_descent
from mipfs.kernels.group_descent import Blocks
from mipfs.kernels.proximal import (
    Iterates,
    Smooth,
    WeightGroups,
    extrapolate_point,
    filling_level,
    group_gradient,
    group_norms,
    half_square,
    loss_and_dual,
    margins_at,
    margins_of,
    move,
    proximal_step,
    pull,
    run_accelerated,
    scratch_of,
    shrink,
    spread,
    threshold,
)
from mipfs.kernels.simplex_qp import PROXIMAL_WEIGHT, maximise_on_simplex
from mipfs.kernels.structures import only_read
from tests.kernels.loss_cases import LOGISTIC, SQUARED_HINGE, made

Array = npt.NDArray[np.float64]
TIGHT = {"solver": cp.CLARABEL, "tol_gap_abs": 1e-10, "tol_gap_rel": 1e-10, "tol_feas": 1e-10}


def half(norms: Array, room: float) -> float:
    """½ (Σ norms)², or ½ min Σ norms²/σ over 0 ≤ σ ≤ 1, Σσ ≤ room, by Clarabel."""
    if room < 0.0:
        return 0.5 * float(norms.sum()) ** 2
    if not norms.any():
        return 0.0
    some = norms[norms > 0.0]
    sigma = cp.Variable(some.size)
    terms = sum(cp.quad_over_lin(some[t], sigma[t]) for t in range(some.size))
    return float(cp.Problem(cp.Minimize(0.5 * terms), [sigma <= 1, sigma >= 0, cp.sum(sigma) <= room]).solve(**TIGHT))


@pytest.mark.parametrize("seed", range(16))
def test_levels_solve_their_equations(seed: int) -> None:
    r = np.random.default_rng(seed)
    norms, step = np.abs(r.normal(size=seed % 7)) * (r.random(seed % 7) < 0.8), r.random() + 0.1
    level = threshold(norms, step)
    assert level == pytest.approx(step * np.maximum(norms - level, 0.0).sum(), abs=1e-12)
    for room in (0.0, 1.0, 3.0):
        theta = filling_level(norms, step, room)
        if np.count_nonzero(norms) <= room:
            assert theta == np.inf
        else:
            assert np.clip(theta * norms - step, 0.0, 1.0).sum() == pytest.approx(room, abs=1e-9)


@pytest.mark.parametrize("room", [-1.0, 1.0, 2.0])
@pytest.mark.parametrize("seed", range(6))
def test_the_prox_is_that_of_the_declared_program(seed: int, room: float) -> None:
    r = np.random.default_rng(seed)
    pointer = np.array([0, 2, 3, 6, 7][: 2 + seed % 4], np.int64)
    x, step, groups = r.normal(size=pointer[-1]), 0.6, pointer.size - 1
    x[pointer[1] : pointer[1] + (seed % 2)] = 0.0
    before, norms = x.copy(), np.empty(groups)
    wanted = [float(np.linalg.norm(x[pointer[t] : pointer[t + 1]])) for t in range(groups)]
    group_norms(x, pointer, norms)
    np.testing.assert_allclose(norms, wanted)
    assert half_square(norms, room) == pytest.approx(half(norms, room), rel=1e-6, abs=1e-8)
    found = shrink(x, pointer, step, room, norms)
    group_norms(x, pointer, after := np.empty(groups))
    np.testing.assert_allclose(after, norms, atol=1e-14)
    assert found == pytest.approx(half(after, room), rel=1e-6, abs=1e-8)
    v, sizes = cp.Variable(x.size), cp.Variable(groups)
    if room < 0.0:
        penalty, rows = (
            0.5 * cp.square(cp.sum(sizes)),
            [cp.norm(v[pointer[t] : pointer[t + 1]]) <= sizes[t] for t in range(groups)],
        )
    else:
        sigma = cp.Variable(groups)
        penalty = 0.5 * sum(cp.quad_over_lin(v[pointer[t] : pointer[t + 1]], sigma[t]) for t in range(groups))
        rows = [sigma >= 0, sigma <= 1, cp.sum(sigma) <= room, sizes == 0]
    least = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(v - before) + step * penalty), rows).solve(**TIGHT)
    assert 0.5 * float((x - before) @ (x - before)) + step * found == pytest.approx(least, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("n", [1, 13])
def test_products_with_the_pool(n: int, is_sparse: bool) -> None:
    r = np.random.default_rng(n)
    A = np.asfortranarray(r.normal(size=(n, 4)) * (r.random((n, 4)) < 0.7))
    Z = triple(A) if is_sparse else A
    columns, scale, x = np.array([1, 3, 1, 0]), r.random(4), r.normal(size=4)
    u, y, alpha = np.empty(4), r.choice([-1.0, 1.0], n), r.normal(size=n)
    spread(x, columns, scale, u)
    wanted = np.zeros(4)
    np.add.at(wanted, columns, scale * x)
    np.testing.assert_allclose(u, wanted)
    out, m = np.empty(4), np.empty(n)
    pull(Z, alpha, out)
    np.testing.assert_allclose(out, A.T @ alpha, atol=1e-13)
    margins_of(Z, np.arange(4), y, u, 0.7, m)
    np.testing.assert_allclose(m, A @ u + 0.7 * y, atol=1e-13)


def triple(A: Array) -> Any:
    part = sparse.csc_array(A)
    return part.data, part.indices.astype(np.int32), part.indptr.astype(np.int64)


@pytest.mark.parametrize("n", [0, 1, 20])
def test_losses_and_their_slopes(n: int) -> None:
    r = np.random.default_rng(n)
    m, c = 3.0 * r.normal(size=n), r.random(n) + 0.1
    short = np.maximum(0.0, 1.0 - m)
    for kind, value, slope in (
        (SQUARED_HINGE, 0.5 * short**2, short),
        (LOGISTIC, np.logaddexp(0.0, -m), 1.0 / (1.0 + np.exp(m))),
    ):
        alpha = np.empty(n)
        assert loss_and_dual(made(kind), m, only_read(c), alpha, np.empty(2)) == pytest.approx(
            float(c @ value), rel=1e-12
        )
        np.testing.assert_allclose(alpha, c * slope, rtol=1e-12)


@pytest.mark.parametrize("room", [-1.0, 2.0])
@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("kind", [SQUARED_HINGE, LOGISTIC])
def test_the_reduced_problem_is_minimised(kind: int, is_sparse: bool, room: float) -> None:
    r = np.random.default_rng(7)
    n, pointer = 25, np.array([0, 2, 3, 5], np.int64)
    y, c = r.choice([-1.0, 1.0], n), np.full(n, 0.5)
    A = np.asfortranarray((r.normal(size=(n, 4)) + 0.5 * y[:, None]) * y[:, None])
    columns, scale = np.array([0, 1, 2, 1, 3]), np.array([1.0, 0.7, 1.0, 0.5, 0.9])
    x, old, kept, alpha = np.zeros(6), np.zeros(6), np.empty((2, n)), np.empty(n)
    state = np.array([1.0, 0.0, 0.0, np.inf, 1.0])
    at = Iterates(x, old, kept, state, alpha)
    loss = Smooth(triple(A) if is_sparse else A, y, only_read(c), made(kind), True, 1.0)
    for _ in range(60):
        run_accelerated(loss, WeightGroups(pointer, columns, scale, room), at, 1e-12, -1.0, 100)
        if state[1] == 1.0:
            break
    v, b, sizes, sigma = cp.Variable(5), cp.Variable(), cp.Variable(3), cp.Variable(3)
    D = np.zeros((4, 5))
    D[columns, np.arange(5)] = scale
    m = A @ (D @ v) + b * y
    lossy = 0.5 * cp.sum_squares(cp.pos(1 - m)) if kind == SQUARED_HINGE else cp.sum(cp.logistic(-m))
    parts = [v[pointer[t] : pointer[t + 1]] for t in range(3)]
    if room < 0.0:
        penalty, rows = 0.5 * cp.square(cp.sum(sizes)), [cp.norm(p) <= s for p, s in zip(parts, sizes, strict=True)]
    else:
        penalty = 0.5 * sum(cp.quad_over_lin(p, s) for p, s in zip(parts, sigma, strict=True))
        rows = [sigma >= 0, sigma <= 1, cp.sum(sigma) <= room]
    least = cp.Problem(cp.Minimize(penalty + 0.5 * lossy), rows).solve(**TIGHT)
    assert state[3] == pytest.approx(least, rel=1e-6)


@pytest.mark.parametrize("room", [-1.0, 2.0])
@pytest.mark.parametrize("kind", [SQUARED_HINGE, LOGISTIC])
@pytest.mark.parametrize("seed", range(4))
def test_one_accelerated_step(seed: int, kind: int, room: float) -> None:
    """Its parts beside dense NumPy, over w = (x, b) and the matrix (ZD, y unit)."""
    r = np.random.default_rng(seed)
    n, pointer, unit = 12, np.array([0, 2, 3, 5], np.int64), 1.7
    y, c, Z = r.choice([-1.0, 1.0], n), r.random(n) + 0.2, np.asfortranarray(r.normal(size=(n, 4)))
    columns, scale = np.array([0, 1, 2, 1, 3]), np.array([1.0, 0.7, 1.0, 0.5, 0.9])
    D = np.zeros((4, 5))
    D[columns, np.arange(5)] = scale
    whole = np.column_stack([Z @ D, unit * y])
    x, old, alpha = r.normal(size=6), r.normal(size=6), np.empty(n)
    at = Iterates(x.copy(), old.copy(), np.array([whole @ x, whole @ old]), np.zeros(5), alpha)
    groups, loss = WeightGroups(pointer, columns, scale, room), Smooth(Z, y, only_read(c), made(kind), True, unit)
    scratch = scratch_of.py_func(n, columns, 3)
    out = np.empty(n)
    margins_at(loss, groups, x, scratch, out)
    np.testing.assert_allclose(out, whole @ x)

    extrapolate_point.py_func(at, 0.3, scratch)
    mid = x + 0.3 * (x - old)
    np.testing.assert_allclose(scratch.mid, mid)
    np.testing.assert_allclose(scratch.m_mid, whole @ mid)

    def value(w: Array) -> float:
        m = whole @ w
        return float(c @ (0.5 * np.maximum(0.0, 1.0 - m) ** 2 if kind == SQUARED_HINGE else np.logaddexp(0.0, -m)))

    level = loss_and_dual(loss.loss, scratch.m_mid, only_read(c), alpha, scratch.sums)
    assert level == pytest.approx(value(mid))
    group_gradient(loss, groups, alpha, scratch)
    for k in range(6):
        e = 1e-6 * np.eye(6)[k]
        assert scratch.g[k] == pytest.approx((value(mid + e) - value(mid - e)) / 2e-6, rel=1e-5, abs=1e-6)

    L, objective = proximal_step(loss, groups, alpha, level, 0.01, scratch)
    new = scratch.new.copy()
    assert L in {0.01 * 2.0**t for t in range(60)}  # doubled until the model lies above the loss, and no more
    step = new - mid
    assert value(new) <= level + scratch.g @ step + 0.5 * L * step @ step + 1e-12
    norms = np.array([np.linalg.norm(new[pointer[t] : pointer[t + 1]]) for t in range(3)])
    assert objective == pytest.approx(value(new) + half(norms, room), rel=1e-6)
    expected, sizes = mid - scratch.g / L, np.empty(3)
    shrink(expected, pointer, 1.0 / L, room, sizes)
    np.testing.assert_allclose(new, expected)

    moved, size = move.py_func(at, scratch)
    assert (moved, size) == (np.abs(step).max(), np.abs(new).max())
    np.testing.assert_array_equal(at.x, new)
    np.testing.assert_array_equal(at.old, x)
    np.testing.assert_allclose(at.kept, [whole @ new, whole @ x])


@pytest.mark.parametrize("seed", range(12))
def test_the_program_over_the_simplex(seed: int) -> None:
    r = np.random.default_rng(seed)
    K = 1 + seed % 6
    B, d = r.normal(size=(2 + seed % 3, K)), r.normal(size=K)
    G, beta = B.T @ B, np.full(K, 1.0 / K)
    assert maximise_on_simplex(G, d, beta, PROXIMAL_WEIGHT) > 0
    assert beta.min() >= 0.0
    assert beta.sum() == pytest.approx(1.0)
    b = cp.Variable(K)
    most = cp.Problem(cp.Maximize(d @ b - 0.5 * cp.sum_squares(B @ b)), [b >= 0, cp.sum(b) == 1]).solve(**TIGHT)
    assert float(d @ beta - 0.5 * beta @ G @ beta) == pytest.approx(most, rel=1e-6, abs=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("centred", [False, True])
def test_sweeps_over_groups_end_at_the_group_lasso(centred: bool, is_sparse: bool) -> None:
    r = np.random.default_rng(3)
    n, starts = 30, np.array([0, 2, 3, 6], np.int64)
    X, y, c = np.asfortranarray(r.normal(size=(n, 6))), r.choice([-1.0, 1.0], n), np.full(n, 0.4)
    center, d = X.mean(axis=0) * centred, np.array([0.8, 0.3, 1.5])
    own = X - center
    step = np.array([4.0 / (0.4 * np.linalg.norm(own[:, starts[g] : starts[g + 1]], 2) ** 2) for g in range(3)])
    w, f = np.zeros(6), np.zeros(n)
    blocks = Blocks(triple(X) if is_sparse else X, center, starts, d, step)
    for _ in range(2000):
        if group_descent.group_sweep(blocks, y, c, w, f, 5) == 0:
            break
    np.testing.assert_allclose(f, own @ w, atol=1e-9)
    v = cp.Variable(6)
    penalty = sum(d[g] * cp.norm(v[starts[g] : starts[g + 1]]) for g in range(3))
    least = cp.Problem(cp.Minimize(penalty + 0.4 * cp.sum(cp.logistic(-cp.multiply(y, own @ v))))).solve(**TIGHT)
    found = sum(d[g] * np.linalg.norm(w[starts[g] : starts[g + 1]]) for g in range(3))
    assert found + float(c @ np.logaddexp(0.0, -y * f)) == pytest.approx(least, rel=1e-6)
