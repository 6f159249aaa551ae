"""npz: SciPy's arrays plus y, or dense X and y."""

from __future__ import annotations

import io
import zipfile

import numpy as np
import pytest
from scipy import sparse

import mipfs
from mipfs.errors import DataError
from mipfs.readers.npz import read_npz

X = np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]])


def test_dense_with_everything(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, X=X, y=["no", "yes"], feature_names=["a", "b", "c"], bag=[3, 4], sample_weight=[1.0, 2.0])
    found = read_npz(path)
    np.testing.assert_array_equal(found.X, X)
    np.testing.assert_array_equal(found.labels, ["no", "yes"])
    assert found.names == ("a", "b", "c")
    np.testing.assert_array_equal(found.bags, [3, 4])
    np.testing.assert_array_equal(found.sample_weight, [1, 2])


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "bsr", "dia"])
@pytest.mark.parametrize("form", ["array", "matrix"])
def test_sparse_as_scipy_stores_it(tmp_path, kind, form):
    path, stored = tmp_path / "a.npz", tmp_path / "only.npz"
    build = sparse.csr_array if form == "array" else sparse.csr_matrix
    sparse.save_npz(stored, build(X).asformat(kind))
    with np.load(stored) as arrays:
        np.savez_compressed(path, y=np.array([0, 1]), **arrays)
    found = read_npz(path)
    np.testing.assert_array_equal(found.X.toarray(), X)
    np.testing.assert_array_equal(found.labels, [0.0, 1.0])
    assert found.names is None


def test_labels_under_another_name_or_none(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, X=X, target=[True, False])
    np.testing.assert_array_equal(read_npz(path, "target").labels, [1, 0])
    np.savez(path, X=X)
    assert read_npz(path, labelled=False).labels is None


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        (
            {"X": X},
            "no array is called 'y', and no y.npy stands beside it; say by --label which of these holds the labels: "
            "'X'; or save them there",
        ),
        ({"y": [0, 1]}, "no matrix among the arrays 'y'; store X, or add y to the arrays of scipy.sparse.save_npz"),
        ({}, "no matrix among the arrays none; store X, or add y to the arrays of scipy.sparse.save_npz"),
        ({"X": X[0], "y": [0, 1]}, "X has 1 dimensions; give a matrix of samples by features"),
        ({"X": X, "y": [0, 1, 1]}, "'y' has shape (3,) beside a matrix of shape (2, 3); give 2 entries"),
        (
            {"X": X, "y": [0, 1], "feature_names": ["a"]},
            "'feature_names' has shape (1,) beside a matrix of shape (2, 3); give 3 entries",
        ),
        (
            {"X": X, "y": [0, 1], "sample_weights": [1, 1]},
            "the array 'sample_weights' means nothing here; leave it out (did you mean 'sample_weight'?)",
        ),
        ({"X": X, "y": [0, np.nan]}, "'y' is nan in row 2; give every sample a finite label"),
        ({"X": X, "y": [b"a", b"b"]}, "'y' holds values of type |S1; give numbers or strings"),
        (
            {"X": X, "y": np.array([0, "a"], dtype=object)},
            "not a readable npz file: Object arrays cannot be loaded when allow_pickle=False; "
            "write plain arrays with savez",
        ),
        ({"format": "csr", "shape": [2, 3], "y": [0, 1]}, "the sparse matrix is damaged: "),
    ],
)
def test_refused(tmp_path, arrays, message):
    path = tmp_path / "a.npz"
    np.savez(path, **arrays)
    with pytest.raises(DataError) as caught:
        read_npz(path)
    assert str(caught.value).startswith(f"{path}: {message}")


def stored(kind, **changes):
    """A sparse matrix in a format, with arrays replaced."""
    stream = io.BytesIO()
    sparse.save_npz(stream, sparse.csr_array(X).asformat(kind))
    with np.load(io.BytesIO(stream.getvalue())) as loaded:
        return {**loaded, "y": np.array([0, 1])} | changes


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        (stored("csr", indices=np.array([0, 2, 3])), "indices holds 3, which is not from 0 to 2"),
        (stored("csr", indices=np.array([0, -1, 1])), "indices holds -1"),
        (stored("csc", indices=np.array([0, 10**6, 1])), "indices holds 1000000, which is not from 0 to 1"),
        (stored("csr", indptr=np.array([0, 2, 10**6])), "indptr does not rise from 0 to at most 3"),
        (stored("csr", indptr=np.array([0, 2, 1])), "indptr does not rise"),
        (stored("csr", indptr=np.array([0, 3])), "indptr has shape (2,)"),
        (stored("csr", indptr=np.array([0.0, 2.0, 3.0])), "indptr has shape (3,) and type float64"),
        (stored("coo", row=np.array([0, 0, 2])), "row holds 2, which is not from 0 to 1"),
        (stored("coo", col=np.array([0, 2])), "col has shape (2,)"),
        (stored("bsr", data=np.ones((3, 2, 2))), "blocks of shape (2, 2) do not make up"),
        (stored("dia", offsets=np.array([0, 1, 10**6])), "offsets"),
        (stored("csr", shape=np.array([20, 10**12])), "has 1000000000000 features, and at most 4"),
        (stored("csr", shape=np.array([2.0, 3.0])), "it has no shape"),
        (stored("csr", format=np.array("dok")), "no format is called 'dok'"),
    ],
)
def test_a_sparse_matrix_whose_arrays_do_not_fit_together_never_reaches_scipy(tmp_path, arrays, message):
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(DataError) as caught:
        read_npz(tmp_path / "a.npz")
    assert message in str(caught.value)


@pytest.mark.parametrize("shape", ["(1000000000000,)", "(-1,)", "(4, 1000000000)"])
def test_a_header_that_claims_more_than_there_is(tmp_path, shape):
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("X.npy", b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
    with pytest.raises(DataError, match="which is no array of shape"):
        read_npz(tmp_path / "a.npz")


def test_arrays_beyond_the_memory_are_refused_before_they_are_read(tmp_path, monkeypatch):
    np.savez_compressed(tmp_path / "a.npz", X=np.zeros((2000, 100)), y=np.arange(2000) % 2)
    monkeypatch.setattr("mipfs.readers.arrays.memory", lambda: 10**6)
    with pytest.raises(DataError, match=r"would take 0\.00151 GB, and this machine has 0\.000931"):
        read_npz(tmp_path / "a.npz")


def test_an_empty_matrix_and_characters_that_are_none(tmp_path):
    np.savez(tmp_path / "a.npz", X=np.zeros((0, 3)), y=np.zeros(0))
    with pytest.raises(DataError, match="no samples"):
        mipfs.read(tmp_path / "a.npz")
    for arrays in ({"y": ["a", "\ud800"]}, {"y": [0, 1], "feature_names": ["a", "b", "\ud800"]}):
        np.savez(tmp_path / "a.npz", X=X, **arrays)
        with pytest.raises(DataError, match="holds a character that is none"):
            read_npz(tmp_path / "a.npz")


@pytest.mark.parametrize("seed", range(30))
def test_whatever_scipy_stores_is_read_as_it_was(tmp_path, seed):
    rng = np.random.default_rng(seed)
    kind = ("csr", "csc", "coo", "bsr", "dia")[seed % 5]
    matrix = sparse.random_array((6, 8), density=rng.uniform(0, 1), rng=rng).asformat(kind)
    sparse.save_npz(tmp_path / "only.npz", matrix)
    with np.load(tmp_path / "only.npz") as arrays:
        np.savez(tmp_path / "a.npz", y=np.arange(6), **arrays)
    np.testing.assert_array_equal(read_npz(tmp_path / "a.npz").X.toarray(), matrix.toarray())


@pytest.mark.parametrize("size", [0, 10, 200])
def test_truncated(tmp_path, size):
    path = tmp_path / "a.npz"
    np.savez(path, X=X, y=[0, 1])
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(DataError, match=r"a\.npz: (not a readable npz file|the compressed file is truncated)"):
        read_npz(path)


def test_a_single_array_is_no_npz(tmp_path):
    path = tmp_path / "a.npz"
    with path.open("wb") as stream:
        np.save(stream, X)
    with pytest.raises(DataError, match="not a readable npz file"):
        read_npz(path)
