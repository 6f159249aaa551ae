"""Rows of sparse columns as the kernels take them, against SciPy; and which rows are alike, against a dictionary."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import sparse

from mipfs import Instance
from mipfs.kernels.rows import signed_rows
from mipfs.losses import get_loss
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


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("density", [0.05, 0.9])
def test_samples_are_alike_where_their_numbers_and_labels_are(density: float, bias: bool) -> None:
    r = np.random.default_rng(0)
    X = np.where(r.random((600, 4)) < density, r.integers(-1, 2, (600, 4)), 0).astype(float)
    data = Instance.from_arrays(sparse.csc_array(X), np.where(np.arange(600) % 2, 1.0, -1.0))
    solver, ids = get_loss("hinge").Solver(data, r.random(600), bias), np.array([3, 0, 2])
    A, _ = kernel_rows(data, ids, None, ColumnShift(data, bias), bias, bias)
    rows, c, kind, signs = solver._distinct_rows(A, ids)
    keys = [(*row, label) for row, label in zip(X[:, ids].tolist(), data.y.tolist(), strict=True)]
    first = [keys.index(key) for key in dict.fromkeys(keys)]
    assert kind is not None
    assert len(signs) == len(first)
    assert [first[k] for k in kind] == [keys.index(key) for key in keys]
    np.testing.assert_array_equal(signs, data.y[first])
    np.testing.assert_allclose(c, np.bincount(kind, solver.unit_c))
    whole = [sparse.csr_array(one).toarray() if isinstance(one, tuple) else one for one in (rows, A)]
    np.testing.assert_array_equal(whole[0], whole[1][first][:, : whole[0].shape[1]])


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
