"""BaselineSelector: scikit-learn's own checks, and what the house asks of every estimator."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import mipfs
from mipfs.data.instance import Instance
from mipfs.lab import baselines

X, Y = make_classification(60, 8, n_informative=3, n_redundant=1, random_state=3)
X3, Y3 = make_classification(60, 8, n_informative=4, n_redundant=0, n_classes=3, n_clusters_per_class=1, random_state=3)
METHODS = baselines.available()
each_method = pytest.mark.parametrize("method", METHODS)


def model(method: str, **given: Any) -> mipfs.BaselineSelector:
    return mipfs.BaselineSelector(method, **{"M": 3, "C": 0.5, **given})


@pytest.mark.sampled(3)
@parametrize_with_checks([mipfs.BaselineSelector()])
def test_scikit_learn_conventions(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)


OWN = "the search meets another C with so many features, and nothing is refitted at the C that is given"
WHY_NOT = {
    "l1-svm-own": OWN,
    "l1-logistic-own": OWN,
    "l1-logistic": "LIBLINEAR stops by the number of samples, and C is searched far beyond what separates the few here",
    "fsv": "of the many vertices of a program that separates the check's few samples, which one depends on its rows",
    "r2w2": "a sample that stands twice has two slacks of its own, which is not one of twice the weight",
}


def not_repeated(estimator: Any) -> dict[str, str]:
    """The checks that a method cannot pass, and why."""
    why = WHY_NOT.get(estimator.method)
    if why is None:
        return {}
    own = {"check_class_weight_classifiers": why} if why == OWN else {}
    return own | {f"check_sample_weight_equivalence_on_{kind}_data": why for kind in ("dense", "sparse")}


@pytest.mark.slow
@pytest.mark.sampled(1)
@parametrize_with_checks(
    [mipfs.BaselineSelector(name) for name in METHODS if baselines.about(name).weighted],
    expected_failed_checks=not_repeated,
)
def test_scikit_learn_conventions_of_every_method(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)


@pytest.mark.sampled(2)
@each_method
def test_it_is_the_baseline(method: str) -> None:
    fitted = model(method, scale="standard", seed=5).fit(X, Y)
    found = baselines.get_baseline(method)(Instance.from_arrays(X, 2.0 * Y - 1, scale="standard"), 3, 0.5, seed=5)
    assert fitted.get_support(indices=True).tolist() == found.ids.tolist()
    np.testing.assert_array_equal(fitted.coef_[0, found.ids], found.w)
    assert fitted.intercept_.tolist() == [found.b]
    np.testing.assert_allclose(fitted.decision_function(X), X[:, found.ids] @ found.w + found.b)
    assert fitted.transform(X).shape == (60, found.ids.size)
    assert fitted.score(X, Y) > (0.4 if method == "uniform" else 0.75)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.coef_, fitted.coef_)


@pytest.mark.sampled(3)
@each_method
def test_sparse_equals_dense_or_is_refused(method: str) -> None:
    Z = np.round(np.where(np.abs(X) > 0.7, X, 0.0)) if method == "information-gain" else np.where(X > 0.7, X, 0.0)
    Z = np.sign(Z) if method == "information-gain" else Z
    for scale in ("none", "unit"):
        fits = [clone(model(method, scale=scale)).fit(one, Y) for one in (np.abs(Z), sparse.csr_array(np.abs(Z)))]
        np.testing.assert_array_equal(fits[0].support_, fits[1].support_)
        np.testing.assert_allclose(fits[0].coef_, fits[1].coef_, rtol=1e-3, atol=1e-6)
    if baselines.about(method).sparse == "yes, not centred":
        with pytest.raises(ValueError, match="cannot centre sparse columns"):
            model(method, scale="standard").fit(sparse.csr_array(Z), Y)


@pytest.mark.sampled(11)
@each_method
def test_in_pipelines_and_grids_and_for_three_classes(method: str) -> None:
    pipeline = make_pipeline(StandardScaler(), model(method), LinearSVC()).fit(X, Y)
    assert pipeline[-1].coef_.shape[1] == pipeline[1].support_.sum()
    grid = {"M": [1, 3], "C": [0.1, 1.0]}
    search = GridSearchCV(model(method), grid, cv=3, error_score="raise").fit(X, Y)
    assert search.best_estimator_.support_.sum() <= search.best_params_["M"]
    labels = np.array(["ash", "birch", "cedar"])
    three = model(method).fit(X3, labels[Y3])
    assert three.coef_.shape == (3, 8)
    assert len(three.linear_) == 3
    assert set(three.predict(X3)) <= set(labels)


@pytest.mark.slow
def test_weights_are_repeated_samples() -> None:
    times = np.where(Y == 1, 3, 1)
    for method in METHODS:
        if not baselines.about(method).weighted:
            continue
        repeated = model(method).fit(np.repeat(X, times, axis=0), np.repeat(Y, times))
        for fitted in (model(method).fit(X, Y, times), model(method, class_weight={1: 3.0}).fit(X, Y)):
            np.testing.assert_array_equal(fitted.support_, repeated.support_)
            if method.endswith("-own"):
                continue  # of an interval of C with so many features, the search may meet another one
            np.testing.assert_allclose(fitted.coef_, repeated.coef_, rtol=1e-6, atol=1e-9)
    with pytest.raises(ValueError, match="cannot weigh samples"):
        model("information-gain").fit(X, Y, times)


def test_groups_and_references() -> None:
    kinds = ["a", "a", "b", "b", "c", "c", "d", "d"]
    grouped = model("group-lasso", M=4, groups=kinds).fit(X, Y)
    pairs = grouped.support_.reshape(4, 2)
    assert np.all(pairs[:, 0] == pairs[:, 1])
    by_lists = model("group-lasso", M=4, groups=[[0, 1], [2, 3], [4, 5], [6, 7]]).fit(X, Y)
    np.testing.assert_array_equal(by_lists.support_, grouped.support_)
    with pytest.raises(ValueError, match="rfe selects features and takes no groups"):
        model("rfe", groups=kinds).fit(X, Y)
    with pytest.raises(ValueError, match="positions are from 0 to 7"):
        model("group-lasso", groups=[[0, 8]]).fit(X, Y)
    for name in baselines.references():
        assert model(name, M=None).fit(X, Y).support_.all()
        with pytest.raises(ValueError, match="selects nothing"):
            model(name, M=3).fit(X, Y)
    with pytest.raises(ValueError, match="did you mean 'rfe'"):
        model("rfee").fit(X, Y)
