"""MILClassifier: scikit-learn's conventions, bags as metadata, and agreement with Algorithm 3 on an instance."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.utils.estimator_checks import parametrize_with_checks

from mipfs import Instance, MeasureClassifier, MILClassifier
from mipfs.lab.mil import embedded, solve_bags

Array = npt.NDArray[np.float64]


def draw(seed: int, bags: int = 40, p: int = 3, classes: int = 2) -> tuple[Array, Any, Any]:
    """Rows of noise in bags of up to four; in a bag of class k > 0 one row lies near 3k."""
    r = np.random.default_rng(seed)
    names = np.repeat([f"b{b:03d}" for b in range(bags)], r.integers(1, 5, bags))
    X, y = r.standard_normal((names.size, p)), np.zeros(names.size, dtype=int)
    for b, name in enumerate(np.unique(names)):
        if b % classes:
            rows = np.flatnonzero(names == name)
            X[r.choice(rows)] = 3.0 * (b % classes) + 0.3 * r.standard_normal(p)
            y[rows] = b % classes
    order = r.permutation(names.size)
    return X[order], y[order], names[order]


X, Y, BAGS = draw(1)
NEW_X, NEW_Y, NEW_BAGS = draw(2)


@pytest.mark.sampled(13)
@parametrize_with_checks([MILClassifier()])
def test_scikit_learn_conventions(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)


def test_it_is_algorithm_3() -> None:
    model = MILClassifier(5, C=200.0, scale="standard").fit(X, Y, bags=BAGS)
    numbers = np.unique(BAGS, return_inverse=True)[1]
    data = Instance.from_arrays(X, np.where(Y == 1, 1.0, -1.0), bags=numbers, scale="standard")
    found = solve_bags(data, M=5, C=200.0, gap=1e-3)
    np.testing.assert_array_equal(model.concept_rows_, found.rows)
    np.testing.assert_array_equal(model.concepts_, X[found.rows])
    np.testing.assert_allclose(model.coef_[0], found.weights, rtol=1e-6)
    values = model.decision_function(NEW_X, NEW_BAGS)
    np.testing.assert_allclose(values, found.decision_function(NEW_X, NEW_BAGS), rtol=1e-6)
    assert model.result_.objective == pytest.approx(found.result.objective, rel=1e-6)
    assert model.predict(NEW_X, NEW_BAGS).tolist() == (values > 0).astype(int).tolist()
    assert model.score(NEW_X, NEW_Y, NEW_BAGS) == np.mean((values > 0) == model.bag_classes(NEW_Y, NEW_BAGS)) > 0.9


@pytest.mark.sampled(2)
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_keeping_all_concepts_is_a_measure_classifier_of_the_embedded_bags(fit_intercept: bool) -> None:
    given: dict[str, Any] = {"M": 3, "C": 50.0, "keep": "all", "gap": 1e-6, "fit_intercept": fit_intercept}
    model = MILClassifier(**given).fit(X, Y, bags=BAGS)
    numbers = np.unique(BAGS, return_inverse=True)[1]
    data = Instance.from_arrays(X, np.where(Y == 1, 1.0, -1.0), bags=numbers)
    bag_data = embedded(data)[0]
    other = MeasureClassifier(**given).fit(bag_data.X, bag_data.y)
    assert model.concept_rows_.size >= 3
    np.testing.assert_array_equal(model.concept_rows_, np.flatnonzero(other.coef_[0]))
    np.testing.assert_allclose(model.coef_[0], other.coef_[0, model.concept_rows_], rtol=1e-6)
    np.testing.assert_allclose(model.intercept_, other.intercept_, atol=1e-9)
    assert model.score(NEW_X, NEW_Y, NEW_BAGS) > 0.9


@pytest.mark.slow
def test_a_bag_is_positive_when_one_of_its_rows_is() -> None:
    one = np.zeros_like(Y)
    for name in np.unique(BAGS):
        rows = np.flatnonzero(name == BAGS)
        if Y[rows].any():
            one[rows[-1]] = 1
    a, b = (MILClassifier(4).fit(X, y, bags=BAGS) for y in (Y, one))
    np.testing.assert_array_equal(a.coef_, b.coef_)
    words = MILClassifier(4).fit(X, np.array(["no", "yes"])[one], bags=BAGS)
    assert (
        words.bag_classes(np.array(["no", "yes"])[one], BAGS).tolist()
        == words.classes_[a.bag_classes(Y, BAGS)].tolist()
    )


def test_bags_are_in_the_order_of_their_names_wherever_their_rows_stand() -> None:
    model = MILClassifier(4).fit(X, Y, bags=BAGS)
    order = np.argsort(BAGS, kind="stable")[::-1]
    values = model.decision_function(NEW_X, NEW_BAGS)
    for name, value in zip(np.unique(NEW_BAGS), values, strict=True):
        alone = model.decision_function(NEW_X[name == NEW_BAGS], NEW_BAGS[name == NEW_BAGS])
        assert alone.shape == (1,)
        assert alone[0] == pytest.approx(value, rel=1e-9)
    again = MILClassifier(4).fit(X[order], Y[order], bags=BAGS[order])
    assert again.result_.objective == pytest.approx(model.result_.objective, rel=1e-3)


@pytest.mark.slow
def test_without_bags_every_row_is_one() -> None:
    model = MILClassifier(4).fit(X, Y)
    same = MILClassifier(4).fit(X, Y, bags=np.arange(Y.size))
    np.testing.assert_array_equal(model.coef_, same.coef_)
    assert model.predict(NEW_X).shape == NEW_Y.shape


@pytest.mark.slow
def test_three_classes_are_three_problems_against_the_rest() -> None:
    Z, y, bags = draw(4, 45, 2, 3)
    labels = np.array(["ash", "birch", "cedar"])
    model = MILClassifier(6, C=300.0).fit(Z, labels[y], bags=bags)
    singles = [MILClassifier(6, C=300.0).fit(Z, y == k, bags=bags) for k in range(3)]
    values = model.decision_function(Z, bags)
    np.testing.assert_allclose(values, np.transpose([single.decision_function(Z, bags) for single in singles]))
    assert [result.objective for result in model.result_] == [single.result_.objective for single in singles]
    assert model.predict(Z, bags).tolist() == labels[values.argmax(axis=1)].tolist()
    assert model.score(Z, labels[y], bags) > 0.8
    mixed = y.copy()
    mixed[np.flatnonzero(bags == bags[0])[0]] = (y[0] + 1) % 3
    rows = np.count_nonzero(bags == bags[0])
    if rows > 1:
        with pytest.raises(ValueError, match=r"has rows of class .* of more than two classes a bag must have one"):
            clone(model).fit(Z, labels[mixed], bags=bags)


@pytest.mark.sampled(7)
@pytest.mark.parametrize("scale", ["none", "standard", "unit"])
@pytest.mark.parametrize("nearest", [None, 4])
def test_sparse_equals_dense(scale: str, nearest: int | None) -> None:
    Z, new = np.where(np.abs(X) > 0.7, X, 0.0), np.where(np.abs(NEW_X) > 0.7, NEW_X, 0.0)
    some = np.unique(BAGS, return_inverse=True)[1] < 20
    model = MILClassifier(4, scale=scale, nearest=nearest, gap=1e-6)
    dense = clone(model).fit(Z[some], Y[some], bags=BAGS[some])
    found = clone(model).fit(sparse.csc_array(Z[some]), Y[some], bags=BAGS[some])
    assert sparse.issparse(found.concepts_)
    values = dense.decision_function(new, NEW_BAGS)
    np.testing.assert_allclose(found.decision_function(sparse.csr_array(new), NEW_BAGS), values, atol=1e-4)
    assert found.result_.objective == pytest.approx(dense.result_.objective, rel=1e-5)
    if nearest is not None:
        assert found.concept_rows_.size == np.count_nonzero(some)


def test_the_exact_driver_is_at_least_as_good() -> None:
    some = np.isin(BAGS, np.unique(BAGS)[:16])
    relaxed = MILClassifier(2, C=50.0).fit(X[some], Y[some], bags=BAGS[some]).result_
    exact = MILClassifier(2, C=50.0, driver="gbd").fit(X[some], Y[some], bags=BAGS[some]).result_
    assert exact.status.name == "OPTIMAL"
    assert relaxed.bound <= exact.objective * (1 + 1e-6)
    assert exact.objective <= relaxed.objective * (1 + 1e-6)


@pytest.mark.slow
def test_a_grid_with_bags_that_scikit_learn_routes() -> None:
    with sklearn.config_context(enable_metadata_routing=True):
        model = MILClassifier().set_fit_request(bags=True).set_score_request(bags=True)
        search = GridSearchCV(model, {"M": [1, 5]}, cv=GroupKFold(3), error_score="raise")
        search.fit(X, Y, bags=BAGS, groups=BAGS)
    by_hand = []
    for train, test in GroupKFold(3).split(X, Y, BAGS):
        fitted = MILClassifier(5).fit(X[train], Y[train], bags=BAGS[train])
        by_hand.append(fitted.score(X[test], Y[test], BAGS[test]))
    assert search.cv_results_["mean_test_score"][1] == pytest.approx(np.mean(by_hand), abs=1e-12)
    assert search.best_score_ > 0.85


@pytest.mark.slow
def test_pickled_cloned_and_the_same_bytes_twice() -> None:
    model = MILClassifier(3, measure="fbeta", beta=2.0).fit(X, Y, bags=BAGS)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.decision_function(NEW_X, NEW_BAGS), model.decision_function(NEW_X, NEW_BAGS))
    np.testing.assert_array_equal(clone(model).fit(X, Y, bags=BAGS).coef_, model.coef_)
    with pytest.raises(NotFittedError):
        clone(model).predict(X, BAGS)


def test_data_frames_and_names() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = MILClassifier(3).fit(frame, Y, bags=pd.Series(BAGS))
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    np.testing.assert_allclose(model.coef_, MILClassifier(3).fit(X, Y, bags=BAGS).coef_, rtol=1e-9)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame.rename(columns={"a": "z"}), BAGS)


@pytest.mark.parametrize(
    ("params", "changes", "message"),
    [
        ({}, {"bags": BAGS[:-1]}, "bags has shape"),
        ({}, {"bags": np.zeros(Y.size)}, "every bag has a row of class 1, which makes it positive; give negative bags"),
        ({}, {"y": np.ones(Y.size)}, "y holds one class only, 1.0; give two at least"),
        ({}, {"X": np.full_like(X, 0.1)}, "all rows are the same"),
        ({"width": 0}, {}, "width = 0 must be a positive number"),
        ({"nearest": 1.5}, {}, "nearest = 1.5 must be a whole number"),
        ({"scale": "sd"}, {}, "scale = 'sd' is unknown"),
        ({"M": -1}, {}, "M = -1 must lie between 0"),
        ({"C": 0}, {}, "C = 0 must be a positive number"),
        ({"measure": "f2"}, {}, "measure 'f2' is not known"),
        ({"measure": "fbeta"}, {}, "needs beta"),
        ({"driver": "kelley"}, {}, "cannot carry the loss"),
    ],
)
def test_bad_input_is_one_line(params: dict[str, Any], changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        MILClassifier(**params).fit(**{"X": X, "y": Y, "bags": BAGS, **changes})
    assert "\n" not in str(caught.value)


def test_labels_that_were_not_there_in_training() -> None:
    model = MILClassifier(3).fit(X, Y, bags=BAGS)
    with pytest.raises(ValueError, match=r"y has class 7; give every row one of the classes \[0, 1\]"):
        model.score(NEW_X, np.full(NEW_Y.size, 7), NEW_BAGS)
    assert 0 <= model.score(NEW_X[:1], NEW_Y[:1], NEW_BAGS[:1]) <= 1


def test_an_intercept_is_a_constant_concept() -> None:
    plain, shifted = MILClassifier(M=3), MILClassifier(M=3, fit_intercept=True)
    values = shifted.fit(X, Y, bags=BAGS).decision_function(X, BAGS)
    assert plain.fit(X, Y, bags=BAGS).intercept_.tolist() == [0.0]
    assert shifted.intercept_[0] != 0.0
    assert shifted.concept_rows_.size <= 3
    alone = shifted.intercept_.copy()
    shifted.intercept_ = np.zeros(1)
    np.testing.assert_allclose(shifted.decision_function(X, BAGS) + alone, values)
