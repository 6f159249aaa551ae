"""What scikit-learn's users rely on beyond check_estimator: pipelines, grids, sparse data, weights, names, pickles."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mipfs

X, Y = make_classification(60, 8, n_informative=3, n_redundant=1, random_state=3)
X3, Y3 = make_classification(60, 8, n_informative=4, n_redundant=0, n_classes=3, n_clusters_per_class=1, random_state=3)

GROUPS = [0, 0, 1, 1, 2, 2, 3, 3]
CLASSIFIERS = [mipfs.FSPClassifier(3, C=0.5), mipfs.FGMClassifier(3, C=0.5), mipfs.GroupFGMClassifier(GROUPS, M=2)]
SELECTORS = [mipfs.FGMSelector(3, C=0.5)]
each_classifier = pytest.mark.parametrize("given", CLASSIFIERS, ids=lambda model: type(model).__name__)
each_estimator = pytest.mark.parametrize("given", CLASSIFIERS + SELECTORS, ids=lambda model: type(model).__name__)


def same(a: Any, b: Any, rtol: float = 0.0) -> None:
    """Two fitted estimators with the same support and, where there is one, the same classifier."""
    np.testing.assert_array_equal(a.get_support(), b.get_support())
    if hasattr(a, "coef_"):
        np.testing.assert_allclose(a.coef_, b.coef_, rtol=rtol, atol=1e3 * rtol * np.abs(b.coef_).max())
        np.testing.assert_allclose(a.intercept_, b.intercept_, rtol=rtol, atol=1e3 * rtol)


@pytest.mark.sampled(3)
@each_estimator
@pytest.mark.parametrize("scale", ["none", "standard", "unit"])
def test_sparse_equals_dense(given: Any, scale: str) -> None:
    Z = np.where(np.abs(X) > 0.7, X, 0.0)
    dense = clone(given).set_params(scale=scale).fit(Z, Y)
    for container in (sparse.csr_array, sparse.csc_matrix):
        found = clone(given).set_params(scale=scale).fit(container(Z), Y)
        same(found, dense, rtol=1e-9)
        if hasattr(found, "predict"):
            np.testing.assert_allclose(found.decision_function(container(Z)), dense.decision_function(Z), atol=1e-8)
        assert sparse.issparse(found.transform(container(Z)))
        np.testing.assert_array_equal(found.transform(container(Z)).toarray(), dense.transform(Z))


@each_estimator
def test_the_same_data_give_the_same_bytes(given: Any) -> None:
    same(clone(given).fit(X, Y), clone(given).fit(X.copy(), Y))


@each_estimator
def test_pickled_and_back(given: Any) -> None:
    fitted = clone(given).fit(X, Y)
    again = pickle.loads(pickle.dumps(fitted))
    same(again, fitted)
    assert again.get_params() == fitted.get_params() == given.get_params()
    assert again.result_.bound == fitted.result_.bound
    assert again.result_.gap == fitted.result_.gap
    with pytest.raises(NotFittedError):
        clone(fitted).get_support()


@pytest.mark.sampled(2)
@each_estimator
def test_class_weights_are_repeated_samples(given: Any) -> None:
    times = np.where(Y == 1, 3, 1)
    repeated = clone(given).fit(np.repeat(X, times, axis=0), np.repeat(Y, times))
    same(clone(given).set_params(class_weight={1: 3.0}).fit(X, Y), repeated, rtol=1e-8)
    same(clone(given).fit(X, Y, sample_weight=times), repeated, rtol=1e-8)
    some = np.arange(60) % 4 > 0
    same(clone(given).fit(X, Y, sample_weight=some), clone(given).fit(X[some], Y[some]), rtol=1e-8)


@pytest.mark.sampled(5)
@each_estimator
def test_class_weights_for_three_classes_are_repeated_samples(given: Any) -> None:
    times = np.array([1, 2, 3])[Y3]
    repeated = clone(given).fit(np.repeat(X3, times, axis=0), np.repeat(Y3, times))
    same(clone(given).set_params(class_weight={1: 2.0, 2: 3.0}).fit(X3, Y3), repeated, rtol=1e-8)
    balanced = clone(given).set_params(class_weight="balanced").fit(X3, Y3)
    by_hand = dict(enumerate(60 / (3 * np.bincount(Y3))))
    same(balanced, clone(given).set_params(class_weight=by_hand).fit(X3, Y3), rtol=1e-8)


@pytest.mark.sampled(2)
@each_estimator
def test_three_classes_are_three_problems_against_the_rest(given: Any) -> None:
    labels = np.array(["ash", "birch", "cedar"])
    fitted = clone(given).fit(X3, labels[Y3])
    singles = [clone(given).fit(X3, k == Y3) for k in range(3)]
    assert fitted.classes_.tolist() == labels.tolist()
    assert [result.objective for result in fitted.result_] == [single.result_.objective for single in singles]
    assert [result.labels["positive"] for result in fitted.result_] == labels.tolist()
    np.testing.assert_array_equal(fitted.get_support(), np.any([single.get_support() for single in singles], axis=0))
    if hasattr(fitted, "predict"):
        assert fitted.coef_.shape == (3, 8)
        assert fitted.intercept_.shape == (3,)
        np.testing.assert_allclose(fitted.coef_, np.vstack([single.coef_ for single in singles]), rtol=1e-12)
        values = fitted.decision_function(X3)
        np.testing.assert_allclose(values, np.transpose([single.decision_function(X3) for single in singles]))
        assert fitted.predict(X3).tolist() == labels[values.argmax(axis=1)].tolist()
        assert fitted.score(X3, labels[Y3]) > 0.6


@pytest.mark.sampled(3)
@each_classifier
def test_a_grid_over_m_and_c_in_a_pipeline(given: Any) -> None:
    name = type(given).__name__.lower()
    grid = {f"{name}__M": [1, 3], f"{name}__C": [0.01, 1.0]}
    search = GridSearchCV(make_pipeline(StandardScaler(), clone(given)), grid, cv=3, error_score="raise").fit(X, Y)
    assert search.best_score_ == max(search.cv_results_["mean_test_score"]) > 0.7
    best = search.best_estimator_[-1]
    assert len(best.result_.selected) <= search.best_params_[f"{name}__M"]
    by_hand = clone(best).fit(StandardScaler().fit_transform(X), Y)
    same(by_hand, best)
    # The scaler is what scale="standard" does, and that reports weights on the user's scale.
    inside = clone(best).set_params(scale="standard").fit(X, Y)
    np.testing.assert_allclose(inside.decision_function(X), search.decision_function(X), atol=1e-8)


@each_estimator
def test_as_a_selector_in_front_of_another_model(given: Any) -> None:
    from sklearn.svm import LinearSVC

    model = make_pipeline(StandardScaler(), clone(given), LinearSVC()).fit(X, Y)
    assert model[-1].coef_.shape[1] == model[1].get_support().sum()
    assert model.score(X, Y) > 0.7


@each_estimator
def test_feature_names_in_and_out(given: Any) -> None:
    pd = pytest.importorskip("pandas")
    names = np.array([f"gene {j}" for j in range(8)])
    frame = pd.DataFrame(X, columns=names)
    fitted = clone(given).set_output(transform="pandas").fit(frame, Y)
    assert fitted.feature_names_in_.tolist() == names.tolist()
    kept = names[fitted.get_support()].tolist()
    assert fitted.get_feature_names_out().tolist() == kept == fitted.transform(frame).columns.tolist()
    assert set(fitted.result_.weights) <= set(names)
    plain = clone(given).fit(X, Y)
    assert plain.get_feature_names_out().tolist() == [f"x{j}" for j in plain.get_support(indices=True)]
    with pytest.raises(ValueError, match="feature names should match"):
        fitted.transform(frame.rename(columns={"gene 0": "other"}))


@each_estimator
def test_bad_data_is_one_line(given: Any) -> None:
    bad = X.copy()
    bad[3, 2] = np.nan
    for args, message in [
        ((bad, Y), "NaN"),
        ((X, np.ones(60)), "one class only"),
        ((X, Y, np.zeros(60)), "sample_weight is zero"),
        ((X, Y, -np.ones(60)), r"sample_weight\[0\] is -1"),
        ((X, Y, np.ones(3)), "sample_weight has shape"),
    ]:
        with pytest.raises(ValueError, match=message) as caught:
            clone(given).fit(*args)
        assert message == "NaN" or "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "given",
    [
        *(mipfs.FSPClassifier(C=-1), mipfs.FGMClassifier(debias=True), mipfs.FGMSelector(C=-1)),
        *(mipfs.GroupFGMClassifier(GROUPS, C=-1), mipfs.MeasureClassifier(C=-1), mipfs.BaselineSelector("none?")),
        *(mipfs.MILClassifier(C=-1), mipfs.BSSSelector(r=-1), mipfs.LeverageSelector(r=-1)),
    ],
    ids=lambda model: type(model).__name__,
)
def test_after_a_fit_that_failed_nothing_is_fitted(given: Any) -> None:
    with pytest.raises(ValueError, match=r"C|debias|none\?|r = -1"):
        given.fit(X, Y)
    for name in ("predict", "decision_function", "transform", "inverse_transform"):
        if hasattr(given, name):
            with pytest.raises(NotFittedError):
                getattr(given, name)(X)
    if hasattr(given, "get_support"):
        with pytest.raises(NotFittedError):
            given.get_support()


def test_a_second_fit_that_fails_leaves_no_mixture_of_two() -> None:
    model = mipfs.FSPClassifier(3, C=0.5).fit(X, Y)
    with pytest.raises(ValueError, match="C = -1"):
        model.set_params(C=-1).fit(X[:, :4], Y)
    with pytest.raises(NotFittedError):
        model.predict(X)
    assert model.set_params(C=0.5).fit(X, Y).predict(X).size == 60


@pytest.mark.slow
def test_importing_mipfs_loads_no_scikit_learn_and_the_names_are_there() -> None:
    code = (
        "import sys, mipfs\n"
        "assert 'sklearn' not in sys.modules\n"
        "assert mipfs.FSPClassifier.__module__ == 'mipfs.estimators.fsp'\n"
        "assert 'sklearn' in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr == ""


def test_masked_values_are_no_data() -> None:
    hole = np.ma.MaskedArray(X, mask=np.arange(X.size).reshape(X.shape) == 2)
    with pytest.raises(ValueError, match="X has a masked value in row 1, column 3"):
        mipfs.FSPClassifier(1).fit(hole, Y)
    model = mipfs.FSPClassifier(1, C=0.01).fit(X, Y)
    for use in (model.predict, model.decision_function, lambda X: model.verify(X, Y)):
        with pytest.raises(ValueError, match="masked"):
            use(hole)
