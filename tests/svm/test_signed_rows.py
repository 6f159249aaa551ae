"""Rows of sparse columns as the kernels take them, against SciPy; and which rows are alike, against a dictionary."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import sparse

from mipfs import Instance
from mipfs.kernels.rows import kinds, signed_rows
from mipfs.svm.solver import ColumnShift, kernel_columns, kernel_rows


def drawn(seed: int) -> Instance:
    r = np.random.default_rng(seed)
    X = sparse.random_array((80, 30), density=0.08, rng=r, format="csc")
    X.data = r.integers(1, 3, X.nnz).astype(float)
    return Instance.from_arrays(X, np.where(np.arange(80) % 3, 1.0, -1.0))


@pytest.mark.parametrize("ones", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_signed_rows_are_the_dense_ones(seed: int, ones: bool) -> None:
    data, r = drawn(seed), np.random.default_rng(seed)
    ids = np.concatenate([r.choice(30, 6, replace=False), [2, 2]]).astype(np.int64)
    scale, X = r.random(8), data.X
    values, columns, pointer = signed_rows(
        X.data, X.indices, X.indptr, ids, data.y, scale, ones, int(np.diff(X.indptr)[ids].sum())
    )
    found = sparse.csr_array((values, columns, pointer), shape=(80, 8 + ones))
    expected = data.y[:, None] * np.hstack([X.toarray()[:, ids] * scale, np.ones((80, int(ones)))])
    np.testing.assert_array_equal(found.toarray(), expected)
    assert all(np.all(np.diff(columns[a:b]) > 0) for a, b in itertools.pairwise(pointer))


@pytest.mark.parametrize("stored", [True, False])
def test_rows_are_alike_where_their_numbers_are(stored: bool) -> None:
    r = np.random.default_rng(0)
    A = r.integers(-1, 2, (500, 4)).astype(float)
    A[::7] *= -1.0  # zeros of both signs
    rows = A if stored else sparse.csr_array(A)
    given = rows if stored else (rows.data, rows.indices.astype(np.int32), rows.indptr.astype(np.int64))
    first, kind = kinds(given, 500)
    keys = [tuple(row + 0.0) for row in A]
    assert len(first) == len(set(keys))
    for i in range(500):
        assert keys[first[kind[i]]] == keys[i]
    assert kinds(given, len(first) - 1)[0].size == 0


@pytest.mark.parametrize("density", [0.05, 0.9])
@pytest.mark.parametrize("bias", [True, False])
def test_columns_and_rows_of_the_kernels_are_the_same_numbers(bias: bool, density: float) -> None:
    r = np.random.default_rng(1)
    X = sparse.random_array((60, 12), density=density, rng=r, format="csc")
    for scale in ("none", "standard"):
        data = Instance.from_arrays(X, np.where(np.arange(60) % 2, 1.0, -1.0), scale=scale)  # type: ignore[arg-type]
        ids, off = np.array([1, 4, 9]), ColumnShift(data, bias)
        Z, shift = kernel_columns(data, ids, off, bias)
        A, same = kernel_rows(data, ids, None, off, bias, False)
        wide = sparse.csc_array(Z, shape=(60, 3)).toarray() if isinstance(Z, tuple) else Z
        np.testing.assert_array_equal(wide, sparse.csr_array(A, shape=(60, 3)).toarray() if isinstance(A, tuple) else A)
        np.testing.assert_array_equal(shift, same)
        true = X.toarray()[:, ids] if scale == "none" else data.X.toarray()[:, ids] - data.center[ids]
        np.testing.assert_allclose(wide * data.y[:, None] - shift, true, atol=1e-12)
