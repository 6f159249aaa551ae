"""The data matrix: checks, scaling against exact arithmetic and scikit-learn, hashing."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.preprocessing import StandardScaler, normalize
from sklearn.svm import LinearSVC

import mipfs
from mipfs.data import checks, matrix
from mipfs.data.blocked import split_in_memory
from mipfs.data.instance import Instance
from mipfs.errors import DataError

STORES = (
    np.asarray,
    sparse.csc_array,
    lambda X: split_in_memory(X, 1),
    lambda X: split_in_memory(sparse.csc_array(X), 2),
)


def exact_moments(column: np.ndarray) -> tuple[float, float]:
    """Mean and standard deviation (divisor n) in rational arithmetic, rounded once."""
    values = [Fraction(float(v)) for v in column]
    mean = sum(values, Fraction(0)) / len(values)
    variance = sum(((v - mean) ** 2 for v in values), Fraction(0)) / len(values)
    power = 2 ** max(0, 120 - (variance.numerator.bit_length() - variance.denominator.bit_length()))
    root = Fraction(int_root(variance * power**2), power)
    return float(mean), float(root)


def int_root(value: Fraction) -> int:
    from math import isqrt

    return isqrt(value.numerator // value.denominator)


def awkward(n: int = 60) -> np.ndarray:
    """Columns that defeat a careless variance: large means, tiny and huge values, mostly zeros, constants."""
    r = np.random.default_rng(3)
    X = r.standard_normal((n, 9))
    X[:, 1] += 1e9
    X[:, 2] *= 1e-200
    X[:, 3] *= 1e200
    X[:, 4] = 7.25
    X[:, 5] = 0.0
    X[:, 6] = np.where(r.random(n) < 0.8, 0.0, X[:, 6])
    X[:, 7] = 1e8 + 1e-7 * np.arange(n)
    X[:, 8] = r.integers(0, 2, n)
    return X


@pytest.mark.parametrize("store", [np.asarray, sparse.csc_array])
def test_standard_matches_exact_arithmetic(store):
    X = awkward()
    _, center, shift, scale = matrix.scale_columns(matrix.as_matrix(store(X)), "standard")
    for j in (0, 1, 2, 3, 6, 7, 8):
        mean, deviation = exact_moments(X[:, j])
        assert shift[j] == pytest.approx(mean, rel=1e-13)
        assert scale[j] == pytest.approx(deviation, rel=1e-12)
    assert shift[4] == shift[5] == 0
    assert scale[4] == scale[5] == 1
    assert np.all(center == 0) == (store is np.asarray)


def test_standard_matches_scikit_learn_dense_and_sparse():
    X = np.random.default_rng(0).standard_normal((200, 30)) * np.logspace(-5, 5, 30) + 3.0
    X[X < 2.5] = 0.0
    expected = StandardScaler().fit_transform(X)
    dense, _, shift, scale = matrix.scale_columns(matrix.as_matrix(X), "standard")
    csc, center, _, _ = matrix.scale_columns(matrix.as_matrix(sparse.csr_array(X)), "standard")
    np.testing.assert_allclose(dense, expected, atol=1e-12)
    np.testing.assert_allclose(csc.toarray() - center, expected, atol=1e-12)
    np.testing.assert_allclose(dense * scale + shift, X, atol=1e-9)
    only_divided = StandardScaler(with_mean=False).fit_transform(sparse.csr_array(X))
    full = np.all(X != 0.0, axis=0)
    assert 0 < np.count_nonzero(full) < full.size
    np.testing.assert_allclose(csc.toarray()[:, ~full], only_divided.toarray()[:, ~full], rtol=1e-12)
    np.testing.assert_array_equal(csc.toarray()[:, full], dense[:, full])


def test_standard_leaves_constant_columns_as_they_are():
    X = awkward()
    dense = matrix.scale_columns(matrix.as_matrix(X), "standard")[0]
    np.testing.assert_array_equal(dense[:, [4, 5]], X[:, [4, 5]])
    csc, center, _, _ = matrix.scale_columns(matrix.as_matrix(sparse.csc_array(X)), "standard")
    np.testing.assert_array_equal(csc[:, [4, 5]].toarray(), X[:, [4, 5]])
    assert center[4] == center[5] == 0


@pytest.mark.parametrize("store", [np.asarray, sparse.csc_array])
def test_unit_matches_scikit_learn(store):
    X = awkward()
    ordinary = [0, 1, 4, 6, 7, 8]  # scikit-learn's squares over- and underflow in the others
    got, center, shift, scale = matrix.scale_columns(matrix.as_matrix(store(X)), "unit")
    got = got.toarray() if sparse.issparse(got) else got
    np.testing.assert_allclose(got[:, ordinary], normalize(X, axis=0)[:, ordinary], rtol=1e-14)
    np.testing.assert_allclose(np.linalg.norm(got, axis=0)[[2, 3]], 1, rtol=1e-14)
    assert not np.any(got[:, 5])
    assert scale[5] == 1
    assert not np.any(center)
    assert not np.any(shift)


def test_columns_too_small_or_large_to_divide_by_stay():
    X = np.array([[5e-324, 1.7e308], [0.0, 1.7e308], [0.0, 1.7e308]])
    for store in (np.asarray, sparse.csc_array):
        _, _, _, scale = matrix.scale_columns(matrix.as_matrix(store(X)), "unit")
        np.testing.assert_array_equal(scale, [1, 1])


@pytest.mark.parametrize("kind", ["standard", "unit"])
@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("size", [5e-324, 1e-310, 1e-293])
def test_columns_that_are_too_small_to_be_scaled_are_refused(kind: str, store: Callable[..., Any], size: float) -> None:
    """Left as they are they were worth nothing: OPTIMAL 10.0 where the scaled problem has 9.01."""
    rng = np.random.default_rng(8)
    X = np.column_stack([rng.normal(size=12), np.rint(9 * rng.normal(size=12)), np.zeros(12)])
    y = np.where(X[:, 1] > 0, 1.0, -1.0)
    small = X * [1.0, size, 1.0]
    with pytest.raises(
        DataError, match=r"feature 'x2' is too small to be scaled: .* below 1e-290; multiply the column"
    ):
        Instance.from_arrays(store(small), y, scale=kind)  # type: ignore[arg-type]
    assert Instance.from_arrays(store(small), y).n_features == 3  # as it is, it is what it says
    assert Instance.from_arrays(store(small), y, scale=kind, training=False).n_features == 3  # type: ignore[arg-type]
    constant = X * [1.0, 0.0, 1.0] + [0.0, size, 0.0]
    if kind == "standard":
        assert Instance.from_arrays(store(constant), y, scale=kind).scale[1] == 1.0


@pytest.mark.parametrize("kind", ["standard", "unit"])
def test_columns_of_any_other_size_are_scaled_and_weighed(kind: str) -> None:
    rng = np.random.default_rng(9)
    X, y = rng.normal(size=(30, 2)), np.where(np.arange(30) % 2, 1.0, -1.0)
    X[:, 1] += y
    plain = mipfs.solve(mipfs.Problem(Instance.from_arrays(X, y, scale=kind), M=1, C=100.0))  # type: ignore[arg-type]
    for size in (1e-280, 1e280):
        data = Instance.from_arrays(X * [1.0, size], y, scale=kind)  # type: ignore[arg-type]
        result = mipfs.solve(mipfs.Problem(data, M=1, C=100.0))
        assert result.objective == pytest.approx(plain.objective, rel=1e-9)
        assert result.weights["x2"] * size == pytest.approx(plain.weights["x2"], rel=1e-6)
        assert mipfs.verify(result, data).accepted


def test_none_is_the_matrix_itself():
    X = np.asfortranarray(awkward())
    got, center, shift, scale = matrix.scale_columns(matrix.as_matrix(X), "none")
    assert got is X
    assert not np.any(center)
    assert not np.any(shift)
    assert np.all(scale == 1)


def test_many_blocks_equal_one(monkeypatch):
    X = awkward()
    whole, digest = matrix.scale_columns(matrix.as_matrix(X), "standard"), matrix.digest(matrix.as_matrix(X))
    monkeypatch.setattr(matrix, "_BLOCK", 2 * len(X))
    parts = matrix.scale_columns(matrix.as_matrix(X), "standard")
    for a, b in zip(whole, parts, strict=True):
        np.testing.assert_array_equal(a, b)
    assert matrix.digest(matrix.as_matrix(X)) == digest
    assert matrix.digest(matrix.as_matrix(sparse.csc_array(X))) == digest


def test_digest_tells_values_places_and_shapes_apart():
    X = np.zeros((4, 3))
    X[1, 1] = 2.0
    moved, changed, longer = X.T.copy().T, X.copy(), np.zeros((5, 3))
    moved[[1, 2]] = moved[[2, 1]]
    changed[1, 1] = np.nextafter(2.0, 3.0)
    longer[:4] = X
    digests = {matrix.digest(matrix.as_matrix(A)) for A in (X, moved, changed, longer)}
    assert len(digests) == 4
    negative_zero = X.copy()
    negative_zero[0, 0] = -0.0
    assert matrix.digest(matrix.as_matrix(negative_zero)) == matrix.digest(matrix.as_matrix(X))


def test_canonical_csc_leaves_the_users_arrays_alone():
    X = sparse.csc_array((np.array([1.0, 2.0, 0.0]), np.array([1, 1, 0]), np.array([0, 3])), shape=(2, 1))
    got = matrix.as_matrix(X)
    np.testing.assert_array_equal(got.toarray(), [[0.0], [3.0]])
    assert got.nnz == 1
    assert X.nnz == 3


def test_compact_stores_by_density():
    full = sparse.csc_array(np.ones((4, 4)))
    thin = sparse.csc_array(np.eye(4))
    assert isinstance(matrix.compact_storage(full), np.ndarray)
    assert matrix.compact_storage(full).flags.f_contiguous
    assert sparse.issparse(matrix.compact_storage(thin))


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.ones(3), "X has 1 dimensions; give a matrix of samples by features"),
        (np.ones((0, 3)), "no samples; give at least one sample of each class"),
        (np.ones((3, 0)), "no features; give at least one column beside the labels"),
        ([["1", "2"]], "X holds values of type <U1; give real numbers"),
        (np.ones((2, 2), dtype=complex), "X holds values of type complex128; give real numbers"),
        (sparse.csc_array(np.ones((2, 2), dtype=complex)), "X holds values of type complex128; give real numbers"),
        ([[1.0, np.nan], [0.0, 1.0]], "row 1, column 2 is nan; every value must be a finite number"),
        (
            sparse.csr_array([[0, 0, 0], [0, 1, -np.inf]]),
            "row 2, column 3 is -inf; every value must be a finite number",
        ),
    ],
)
def test_refused_matrices(X, message):
    with pytest.raises(DataError) as caught:
        matrix.as_matrix(X)
    assert str(caught.value) == message


def test_refused_objects():
    with pytest.raises(DataError, match=r"^f\.npz: X holds a value that is no number"):
        matrix.as_matrix(np.array([[1, "a"]], dtype=object), path="f.npz")


@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
@pytest.mark.parametrize("scale", ["none", "standard", "unit"])
def test_indices_have_32_bits_whatever_they_came_in(kind: str, scale: str) -> None:
    """LIBLINEAR refuses others, and ℓ1 baselines and SimpleMKL hand it the instance's columns."""
    rng = np.random.default_rng(4)
    dense = rng.normal(size=(40, 6)) * (rng.random((40, 6)) < 0.2)
    y = np.where(rng.random(40) < 0.5, -1.0, 1.0)
    X = sparse.coo_array(dense).asformat(kind)
    for name in ("indices", "indptr", "row", "col"):
        if isinstance(getattr(X, name, None), np.ndarray):
            setattr(X, name, getattr(X, name).astype(np.int64))
    data = Instance.from_arrays(X, y, scale=scale)
    assert data.X.indices.dtype == data.X.indptr.dtype == np.int32
    assert data.X.has_canonical_format
    assert np.array_equal(matrix.as_matrix(X).toarray(), dense)
    LinearSVC(C=1.0).fit(data.X, y)
    assert data.sha256 == Instance.from_arrays(dense, y, scale=scale).sha256


def test_files_of_64_bits_are_read_with_32(tmp_path: Path) -> None:
    X = sparse.random_array((30, 9), density=0.2, format="csr", rng=np.random.default_rng(5))
    y = np.where(np.arange(30) % 2, 1, -1)
    indices, indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    np.savez(tmp_path / "d.npz", format=b"csr", shape=X.shape, data=X.data, indices=indices, indptr=indptr, y=y)
    data = mipfs.read(tmp_path / "d.npz")
    assert data.X.indices.dtype == np.int32
    assert np.array_equal(data.X.toarray(), X.toarray())
    mipfs.solve(mipfs.Problem(data, loss="squared-hinge", bias=False, M=2), driver="kelley", restricted="simple-mkl")


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.coo_array, sparse.csc_matrix])
def test_columns_that_memory_does_not_hold_are_refused_beforehand(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where more memory is promised than there is, the system ends a process that asks for it."""
    X, y = kind(np.eye(4, 100)), [0, 1, 0, 1]
    monkeypatch.setattr(checks, "memory", lambda: 1000)
    with pytest.raises(DataError, match=r"shape \(4, 100\) takes more memory than there is; leave out columns"):
        Instance.from_arrays(X, y)
    for model in (mipfs.FSPClassifier(M=1), mipfs.BSSSelector(1)):
        with pytest.raises(ValueError, match="takes more memory than there is"):
            model.fit(X, y)
