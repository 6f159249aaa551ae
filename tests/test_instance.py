"""Instance.from_arrays: what it keeps, what it refuses, and the hash of the user's data."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from mipfs.data.instance import Instance, Labels, Row, SelectDefaults, misspelling_hint
from mipfs.errors import DataError, UsageError

X = np.arange(12.0).reshape(4, 3)
Y = np.array([1, -1, 1, -1])


def test_defaults():
    data = Instance.from_arrays(X, Y)
    assert (data.n_samples, data.n_features, data.is_sparse) == (4, 3, False)
    assert data.X.flags.f_contiguous
    assert data.X.dtype == data.y.dtype == np.float64
    assert data.feature_names == ("x1", "x2", "x3")
    np.testing.assert_array_equal(data.y, Y)
    np.testing.assert_array_equal(data.sample_weight, np.ones(4))
    assert data.cost == {"x1": 0.0, "x2": 0.0, "x3": 0.0}
    assert data.penalty == data.groups == {}
    assert data.rows == ()
    assert data.select == SelectDefaults()
    assert data.labels == Labels(-1, 1)


def test_everything_given_is_kept():
    row = Row("pair", {"a": 1.0, "b": -1.0}, 0.0, 1.0)
    data = Instance.from_arrays(
        sparse.csr_array(X),
        Y.tolist(),
        feature_names=["a", "b", "c"],
        sample_weight=[1, 2, 3, 4],
        labels=Labels("no", "yes"),
        cost={"b": 2},
        penalty={"c": 0.5},
        groups={"g": ["a", "c"]},
        rows=[row],
        select=SelectDefaults(2, ("a",), ("b",)),
        bags=[0, 0, 1, 1],
        source="f.svm",
    )
    assert data.is_sparse
    assert data.X.format == "csc"
    np.testing.assert_array_equal(data.X.toarray(), X)
    assert data.cost == {"a": 0.0, "b": 2.0, "c": 0.0}
    assert data.penalty == {"c": 0.5}
    assert data.groups == {"g": ("a", "c")}
    assert data.rows == (row,)
    assert data.select.forced_in == ("a",)
    np.testing.assert_array_equal(data.bags, [0, 0, 1, 1])
    np.testing.assert_array_equal(data.columns_of(["c", "a"]), [2, 0])
    np.testing.assert_array_equal(data.labels.of([2.0, -1.0, 0.0]), ["yes", "no", "no"])


def test_names_from_a_data_frame():
    pandas = pytest.importorskip("pandas")
    data = Instance.from_arrays(pandas.DataFrame(X, columns=["a", "b", "c"]), Y)
    assert data.feature_names == ("a", "b", "c")
    np.testing.assert_array_equal(data.X, X)


def test_the_users_arrays_are_not_changed():
    given, labels = np.asfortranarray(X), Y.astype(float)
    data = Instance.from_arrays(given, labels, scale="standard")
    np.testing.assert_array_equal(given, X)
    data.y[0] = 5
    assert labels[0] == 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"y": [1, -1, 1]}, "y has shape (3,) for 4 samples; give one label per sample"),
        (
            {"y": [1, 0, 1, 0]},
            "the labels are 0 and 1, not -1 and +1; give numpy.where(y == 1, 1, -1); "
            "mipfs.read and the estimators take any two labels",
        ),
        ({"y": [1, np.nan, 1, -1]}, "label nan in row 2; map the labels to -1 and +1"),
        ({"y": ["a", "b", "a", "b"]}, "y holds a label that is no number; map the labels to -1 and +1"),
        ({"y": [1, 1, 1, 1]}, "one class only: every label is +1; give samples of both classes"),
        ({"feature_names": ["a", "b"]}, "2 feature names for 3 features; give one name per feature"),
        ({"feature_names": ["a", "b", "a"]}, "two features are called 'a'; give every feature its own name"),
        ({"feature_names": ["a", " ", "c"]}, "' ' is no feature name; give every feature a name"),
        ({"sample_weight": [1, 1, 1]}, "sample weights of shape (3,) for 4 samples; give one each"),
        (
            {"sample_weight": [1, 0, 1, 1]},
            "sample weight 0 in row 2; give finite numbers above 0, or leave the sample out",
        ),
        ({"sample_weight": list("abcd")}, "a sample weight is no number; give positive numbers"),
        ({"bags": [0.5, 1, 1, 2]}, "bags of shape (4,) and type float64; give 4 integers"),
        ({"cost": {"x2": -1}}, "cost of 'x2' is -1; give a finite number >= 0"),
        ({"penalty": {"x2": np.inf}}, "penalty of 'x2' is inf; give a finite number >= 0"),
        ({"groups": {"g": []}}, "group 'g' is empty or names a feature twice; list each once"),
    ],
)
def test_refused_data(changes, message):
    arguments = {"X": X, "y": Y} | changes
    with pytest.raises(DataError) as caught:
        Instance.from_arrays(**arguments)
    assert str(caught.value) == message
    with pytest.raises(DataError) as caught:
        Instance.from_arrays(**arguments, source="f.npz")
    assert str(caught.value) == f"f.npz: {message}"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"scale": "minmax"}, "scale = 'minmax' is unknown; it is one of 'none', 'standard', 'unit'"),
        (
            {"cost": {"wrst area": 1}, "feature_names": ["mean area", "worst area", "age"]},
            "no feature is called 'wrst area'; did you mean 'worst area'?",
        ),
        ({"penalty": {"zebra": 1}}, "no feature is called 'zebra'; features are called like 'x1'"),
        ({"groups": {"g": ["x1", "y"]}}, "no feature is called 'y'; features are called like 'x1'"),
        ({"select": SelectDefaults(1, ("q",))}, "no feature is called 'q'; features are called like 'x1'"),
    ],
)
def test_refused_parameters(changes, message):
    with pytest.raises(UsageError) as caught:
        Instance.from_arrays(X, Y, **changes)
    assert str(caught.value) == message


def test_data_to_predict_may_have_one_class_or_none():
    data = Instance.from_arrays(X, [1, np.nan, 1, np.nan], training=False)
    np.testing.assert_array_equal(data.y, [1, np.nan, 1, np.nan])
    with pytest.raises(DataError, match="label 3 in row 2"):
        Instance.from_arrays(X, [1, 3, 1, 1], training=False)


def test_the_hash_is_of_the_users_data():
    r = np.random.default_rng(0)
    A = np.where(r.random((30, 8)) < 0.6, 0.0, r.standard_normal((30, 8)))
    y = np.where(r.random(30) < 0.5, 1, -1)
    same = [
        Instance.from_arrays(store(A), y, scale=scale).sha256
        for store in (np.asarray, sparse.csc_array, sparse.csr_array, np.asfortranarray)
        for scale in ("none", "standard", "unit")
    ]
    assert len(set(same)) == 1
    assert len(same[0]) == 64
    B = A.copy()
    B[3, 2] += 1e-12
    others = [
        Instance.from_arrays(B, y),
        Instance.from_arrays(A, -y),
        Instance.from_arrays(A, y, feature_names=[f"f{j}" for j in range(8)]),
        Instance.from_arrays(A, y, sample_weight=np.full(30, 2.0)),
        Instance.from_arrays(A, y, bags=np.arange(30)),
    ]
    assert len({same[0], *(data.sha256 for data in others)}) == 6


def test_nearest_of_nothing():
    assert misspelling_hint("a", []) == "there are none"


@pytest.mark.parametrize("store", [np.asarray, sparse.csc_array])
def test_values_that_cannot_be_squared_are_refused_unless_they_are_scaled(store) -> None:
    X = np.random.default_rng(0).standard_normal((8, 3))
    X[:, 1] *= 1e200
    y = np.array([1.0, -1.0] * 4)
    with pytest.raises(DataError, match=r"'x2' has values beyond 1e\+100.*scale it"):
        Instance.from_arrays(store(X), y)
    for scale in ("standard", "unit"):
        assert Instance.from_arrays(store(X), y, scale=scale).n_features == 3
    X[:, 1] = -1e200  # a constant is left as it is
    with pytest.raises(DataError, match="'x2'"):
        Instance.from_arrays(store(X), y, scale="standard")


def test_masked_values_are_no_data():
    hole = np.ma.MaskedArray(X, mask=X == 7.0)
    with pytest.raises(DataError, match="X has a masked value in row 3, column 2; fill"):
        Instance.from_arrays(hole, Y)
    with pytest.raises(DataError, match="y has a masked value in row 2"):
        Instance.from_arrays(X, np.ma.MaskedArray(Y, mask=[0, 1, 0, 0]))
    with pytest.raises(DataError, match="sample_weight has a masked value in row 1"):
        Instance.from_arrays(X, Y, sample_weight=np.ma.MaskedArray(np.ones(4), mask=True))
    np.testing.assert_array_equal(Instance.from_arrays(np.ma.MaskedArray(X), Y).X, X)  # nothing is masked


def test_rows_of_different_lengths_are_refused_in_one_line():
    with pytest.raises(DataError, match="rows of different lengths"):
        Instance.from_arrays([[1.0, 2.0], [3.0]], [1, -1])
