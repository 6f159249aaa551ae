"""npz: SciPy's arrays plus y, or dense X and y."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

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
        ({"X": X}, "no array is called 'y'; store the labels under that name"),
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
