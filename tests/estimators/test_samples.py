"""Weights, classes and the refit: what the estimators do with samples before and after a driver runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import sparse
from sklearn.svm import SVC
from sklearn.utils.class_weight import compute_class_weight

from mipfs.data.instance import Instance
from mipfs.errors import UsageError
from mipfs.estimators.refit import refit
from mipfs.estimators.samples import binary_instances, class_weights, sample_weights, scikit_errors
from mipfs.losses.hinge import central_intercept

Array = npt.NDArray[np.float64]
RNG = np.random.default_rng(5)
X = RNG.standard_normal((30, 4))
Y = np.where(X[:, 0] - X[:, 1] + RNG.standard_normal(30) > 0, 1.0, -1.0)


def instances(X: Any, codes: list[int], **options: Any) -> list[Instance]:
    classes = options.pop("classes", np.unique(codes))
    given: dict[str, Any] = {"scale": "none", "sample_weight": None, "class_weight": None, "feature_names": None}
    return binary_instances(X, np.array(codes), classes, **given | options)


def test_two_classes_are_one_problem_with_the_last_class_positive() -> None:
    (data,) = instances(X[:4], [0, 1, 1, 0], classes=np.array(["no", "yes"]))
    assert data.y.tolist() == [-1, 1, 1, -1]
    assert data.labels.of([1, -1]).tolist() == ["yes", "no"]
    np.testing.assert_array_equal(data.X, X[:4])


def test_more_classes_are_one_problem_each_and_share_the_matrix() -> None:
    found = instances(X[:5], [0, 1, 2, 1, 0], classes=np.array(["a", "b", "c"]), scale="standard")
    assert [data.y.tolist() for data in found] == [[1, -1, -1, -1, 1], [-1, 1, -1, 1, -1], [-1, -1, 1, -1, -1]]
    assert [data.labels.positive for data in found] == ["a", "b", "c"]
    assert all(data.X is found[0].X for data in found)
    np.testing.assert_allclose(found[2].X.std(axis=0), 1.0)


def test_samples_of_weight_zero_are_left_out_and_class_weights_multiply() -> None:
    weight = np.array([2.0, 0.0, 1.0, 3.0])
    for matrix in (X[:4], sparse.csc_array(X[:4])):
        (data,) = instances(matrix, [0, 1, 1, 0], sample_weight=weight, class_weight={1: 10.0})
        kept = data.X.toarray() if data.is_sparse else data.X
        np.testing.assert_array_equal(kept, X[[0, 2, 3]])
        assert data.sample_weight.tolist() == [2.0, 10.0, 3.0]


def test_balanced_is_that_of_scikit_learn_and_counts_samples_by_their_weights() -> None:
    y = np.array([0, 0, 0, 1, 2, 2])
    totals = np.bincount(y).astype(float)
    expected = compute_class_weight("balanced", classes=np.arange(3), y=y)
    np.testing.assert_allclose(class_weights("balanced", np.arange(3), totals), expected, rtol=1e-15)
    w = np.array([1, 2, 1, 5, 1, 1])
    repeated = compute_class_weight("balanced", classes=np.arange(3), y=np.repeat(y, w))
    np.testing.assert_allclose(class_weights("balanced", np.arange(3), np.bincount(y, w)), repeated, rtol=1e-15)
    assert class_weights({2: 3.0}, np.arange(3), totals).tolist() == [1.0, 1.0, 3.0]


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0, 2.0], r"sample_weight has shape \(2,\) for 3 samples"),
        ([1.0, -2.0, 1.0], r"sample_weight\[1\] is -2"),
        ([1.0, 2.0, np.inf], r"sample_weight\[2\] is inf"),
        ([0.0, 0.0, 0.0], "every sample_weight is zero"),
    ],
)
def test_bad_sample_weights(weights: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        sample_weights(weights, 3)
    assert "\n" not in str(caught.value)


def test_bad_classes() -> None:
    with pytest.raises(ValueError, match="y holds one class only"):
        instances(X[:2], [0, 0])
    with pytest.raises(ValueError, match="class 1 has no sample of positive weight"):
        instances(X[:3], [0, 1, 2], sample_weight=[1.0, 0.0, 1.0])
    with pytest.raises(ValueError, match="class_weight of class 1 is 0"):
        instances(X[:3], [0, 1, 2], class_weight={1: 0.0})


def test_the_errors_of_the_package_become_value_errors_of_one_line() -> None:
    with pytest.raises(ValueError, match=r"^C = 0 is wrong$"), scikit_errors():
        raise UsageError("C = 0 is wrong")
    with pytest.raises(ZeroDivisionError), scikit_errors():
        _ = 1 / 0


def hinge_at(b: float, values: Array, y: Array, c: Array) -> float:
    return float(c @ np.maximum(0.0, 1.0 - y * (values + b)))


@pytest.mark.parametrize("seed", range(20))
def test_the_central_intercept_is_the_middle_of_the_minimisers(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 12))
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    values, c = rng.integers(-3, 4, n).astype(float), rng.integers(1, 3, n).astype(float)
    found = central_intercept(values, y, c)
    # The loss is piecewise linear in b with integer bends here: its minimisers end at bends.
    bends = np.unique(y - values)
    losses = np.array([hinge_at(b, values, y, c) for b in bends])
    best = bends[losses == losses.min()]
    assert hinge_at(found, values, y, c) == losses.min()
    assert found == 0.5 * (best[0] + best[-1])


@pytest.mark.parametrize("scale", ["none", "standard", "unit"])
@pytest.mark.parametrize("storage", [np.asfortranarray, sparse.csc_array])
def test_the_refit_is_the_svm_of_scikit_learn_on_the_users_scale(scale: Any, storage: Any) -> None:
    Z = X * [1.0, 5.0, 0.2, 1.0] + [0.0, 3.0, 0.0, 0.0]
    weight = RNG.uniform(0.5, 2.0, 30)
    data = Instance.from_arrays(storage(Z), Y, scale=scale, sample_weight=weight)
    ids = np.array([0, 1, 2])
    used, coef, intercept = refit(data, ids[::-1], "hinge", 0.7, True)
    scaled = (Z[:, ids] - data.shift[ids]) / data.scale[ids]
    reference = SVC(C=0.7, kernel="linear", tol=1e-10).fit(scaled, Y, sample_weight=weight)
    # libsvm itself is accurate to some 1e-5.
    np.testing.assert_allclose(Z[:, used] @ coef + intercept, reference.decision_function(scaled), atol=2e-4)
    np.testing.assert_array_equal(used, ids)


def test_a_column_that_stands_twice_has_the_sum_of_both_weights() -> None:
    """Two halves of σ = 1 each are one column of σ = 2: ½(w/2)² + ½(w/2)² = ½w²/2."""
    data = Instance.from_arrays(X, Y)
    twice = refit(data, np.array([0, 1, 0]), "squared-hinge", 1.0, True)
    once = refit(data, np.array([0, 1]), "squared-hinge", 1.0, True, np.array([2.0, 1.0]))
    np.testing.assert_array_equal(twice[0], once[0])
    np.testing.assert_allclose(twice[1], once[1], rtol=1e-8)
    assert twice[2] == pytest.approx(once[2], rel=1e-8)
