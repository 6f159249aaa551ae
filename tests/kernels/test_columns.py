"""Passes over columns and rows in the kernels against dense products: both storages, rows that come and go."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from mipfs.compiled import compiled
from mipfs.kernels.boolean_newton import follow, follow_curvature
from mipfs.kernels.columns import add_columns, add_curvature, add_rows, both_ways, by_rows, dot_columns, few_rows, width
from mipfs.kernels.structures import NEWTON, Path, Samples
from mipfs.losses.hinge import LOSS

N, K = 60, 9
KINDS = ("dense", "no rows", "sparse")


def drawn(kind: str, seed: int) -> tuple[np.ndarray, Any]:
    """A matrix, and how the kernels are handed it."""
    r = np.random.default_rng(seed)
    A = r.standard_normal((N, K)) * (r.random((N, K)) < 0.4)
    if kind == "sparse":
        part = sparse.csc_array(A)
        triple = part.data, part.indices.astype(np.int32), part.indptr.astype(np.int64)
        return A, (*triple, *by_rows(*triple, N))
    return A, both_ways(np.asfortranarray(A), A.size if kind == "dense" else A.size - 1)


@compiled()
def passes(Z, y, cols, v, w, rows, curve, bias, out, moved, pulled, H):  # type: ignore[no-untyped-def]
    """All passes at once; returns the width and whether so few rows are worth their own pass."""
    dot_columns(Z, cols, v, out)
    add_columns(Z, cols, w, moved)
    if few_rows(Z, 1, cols.size):
        add_rows(Z, rows, curve, pulled)
    add_curvature(Z, y, cols, rows, curve, bias, H)
    return width(Z), few_rows(Z, rows.size, cols.size)


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
        k, few = passes(Z, y, cols, v, w, rows, curve, bias, out, moved, pulled, H)
        assert k == K
        assert few == (rows.size == 0 or (kind != "no rows" and rows.size * K <= 0.5 * N * 5))
        np.testing.assert_allclose(out, A[:, cols].T @ v, atol=1e-12)
        np.testing.assert_allclose(moved, A[:, cols] @ w, atol=1e-12)
        if kind != "no rows":
            np.testing.assert_allclose(pulled, A[rows].T @ curve, atol=1e-12)
        a = np.column_stack([A[:, cols], y])[rows][:, :size]
        np.testing.assert_allclose(H, a.T @ (curve[:, None] * a), atol=1e-12)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", KINDS)
def test_scores_and_curvature_follow_the_samples(kind: str) -> None:
    A, Z = drawn(kind, 3)
    r = np.random.default_rng(4)
    y, weights = r.choice([-1.0, 1.0], N), np.ones(N)
    y.flags.writeable = weights.flags.writeable = False  # as a run has them, for which there is machine code
    cols, J = np.array([2, 1, 6, 5]), np.array([6, 2, 0])
    path, H, state = Path.of(N, 4, K), np.zeros((4, 4)), np.zeros(1, NEWTON)[0]
    samples = Samples(y, weights, LOSS.kernels.unmade, True)
    beta, curve = r.random(N), np.zeros(N)
    for step in range(30):
        changed = r.random(N) < r.choice([0.0, 0.05, 0.3, 1.0])
        beta = np.where(changed, r.random(N), beta)
        path.beta[:] = beta
        follow(Z, cols, path)
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
