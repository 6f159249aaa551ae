"""Passes over columns and rows in the kernels against dense products: both storages, rows that come and go."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from mipfs.compiled import compiled
from mipfs.kernels.boolean_newton import follow_curvature, update_scores
from mipfs.kernels.columns import (
    TwoWays,
    add_columns,
    add_curvature,
    add_dense_curvature,
    add_sparse_curvature,
    copy_scaled,
    dot_columns,
    few_rows,
    is_sparse,
    lines,
)
from mipfs.kernels.structures import NEWTON, LossSamples, NewtonPath
from mipfs.losses.hinge import LOSS

N, K = 60, 9
KINDS = ("dense", "no rows", "sparse")


def drawn(kind: str, seed: int) -> tuple[np.ndarray, TwoWays]:
    """A matrix, and how the kernels are handed it."""
    r = np.random.default_rng(seed)
    A = r.standard_normal((N, K)) * (r.random((N, K)) < 0.4)
    if kind == "sparse":
        return A, TwoWays.sparse(sparse.csc_array(A))
    return A, TwoWays.dense(A, A.size if kind == "dense" else A.size - 1)


@compiled()
def passes(Z, y, cols, v, w, rows, curve, bias, out, moved, pulled, H):  # type: ignore[no-untyped-def]
    """All passes at once; returns whether so few rows are worth their own pass."""
    dot_columns(Z.columns, cols, v, out)
    add_columns(Z.columns, cols, w, moved)
    if few_rows(Z, 1, cols.size):
        add_columns(Z.rows, rows, curve, pulled)
    add_curvature(Z, y, cols, rows, curve, bias, H)
    return few_rows(Z, rows.size, cols.size)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_passes_are_the_dense_products(kind: str, bias: bool) -> None:
    A, Z = drawn(kind, 1)
    r = np.random.default_rng(2)
    y, v = r.choice([-1.0, 1.0], N), r.standard_normal(N)
    cols = np.array([7, 0, 3, 8, 4])
    w = np.array([0.5, 0.0, -2.0, 1.0, 3.0])
    for rows in (np.arange(5, 24, 2), np.arange(N), np.empty(0, np.int64)):
        curve = r.standard_normal(rows.size)  # of either sign: rows are taken out again
        size = cols.size + bias
        out, moved, pulled, H = np.empty(5), np.zeros(N), np.zeros(K), np.zeros((size, size))
        few = passes(Z, y, cols, v, w, rows, curve, bias, out, moved, pulled, H)
        assert few == (rows.size == 0 or (kind != "no rows" and rows.size * K <= 0.5 * N * 5))
        np.testing.assert_allclose(out, A[:, cols].T @ v, atol=1e-12)
        np.testing.assert_allclose(moved, A[:, cols] @ w, atol=1e-12)
        if kind != "no rows":
            np.testing.assert_allclose(pulled, A[rows].T @ curve, atol=1e-12)
        a = np.column_stack([A[:, cols], y])[rows][:, :size]
        np.testing.assert_allclose(H, a.T @ (curve[:, None] * a), atol=1e-12)


@pytest.mark.parametrize("bias", [False, True])
def test_what_a_pass_does_for_either_kind(bias: bool) -> None:
    A, dense = drawn("dense", 5)
    thin, few = TwoWays.dense(A, 0), TwoWays.sparse(sparse.csc_array(A))
    assert [bool(is_sparse(Z.columns)) for Z in (dense, thin, few)] == [False, False, True]
    np.testing.assert_array_equal(lines(thin.columns).T, A)
    np.testing.assert_array_equal(lines(dense.rows), A)
    assert lines(thin.rows).shape == (0, K)
    r = np.random.default_rng(6)
    rows, cols, y = np.arange(1, N, 3), np.array([4, 1, 8]), r.choice([-1.0, 1.0], N)
    curve = r.standard_normal(rows.size)
    for Z in (dense, thin):
        R = np.empty((cols.size, rows.size))
        copy_scaled(Z, cols, rows, curve, R)
        np.testing.assert_allclose(R, (A[np.ix_(rows, cols)] * curve[:, None]).T, atol=1e-15)
    a = np.column_stack([A[:, cols], y])[rows][:, : cols.size + bias]
    wanted = np.tril(a.T @ (curve[:, None] * a))
    H = np.zeros_like(wanted)
    add_dense_curvature(dense, y, cols, rows, curve, bias, H)
    np.testing.assert_allclose(np.tril(H), wanted, atol=1e-12)
    position = np.full(K, -1)
    position[cols] = np.arange(cols.size)
    H[:] = 0.0
    add_sparse_curvature(few.rows, y, position, rows, curve, bias, H)
    np.testing.assert_allclose(H, wanted, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_scores_and_curvature_follow_the_samples(kind: str) -> None:
    A, Z = drawn(kind, 3)
    r = np.random.default_rng(4)
    y, weights = r.choice([-1.0, 1.0], N), np.ones(N)
    y.flags.writeable = weights.flags.writeable = False  # as a run has them, for which there is machine code
    cols, J = np.array([2, 1, 6, 5]), np.array([6, 2, 0])
    path, H, state = NewtonPath.of(N, 4, K), np.zeros((4, 4)), np.zeros(1, NEWTON)[0]
    samples = LossSamples(y, weights, LOSS.kernels.unmade, True)
    beta, curve = r.random(N), np.zeros(N)
    for step in range(30):
        changed = r.random(N) < r.choice([0.0, 0.05, 0.3, 1.0])
        beta = np.where(changed, r.random(N), beta)
        path.beta[:] = beta
        update_scores(Z, cols, path)
        np.testing.assert_allclose(path.omega, A[:, cols].T @ beta, atol=1e-12)
        curve = np.where(changed, r.choice([0.0, 0.5, 1.0, 2.0], N), curve)
        inner = np.flatnonzero(curve)
        path.curve[:] = np.where(curve > 0.0, curve, r.random(N))  # what stands elsewhere is not read
        path.inner[: inner.size] = inner
        state["inner"] = inner.size
        follow_curvature(Z, samples, J, H, path, state)
        a = np.column_stack([A[:, J], y])
        np.testing.assert_allclose(H, a.T @ (curve[:, None] * a), atol=1e-11, err_msg=str(step))
        np.testing.assert_array_equal(path.kept, curve)
