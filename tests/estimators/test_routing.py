"""Metadata routing: weights of samples reach the fit through pipelines, selectors and searches, and the score."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.feature_selection import SelectFromModel
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mipfs import FGMSelector, FSPClassifier


@pytest.fixture(autouse=True)
def routed() -> Iterator[None]:
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def drawn() -> tuple[Any, Any, Any]:
    """Two columns of which the weights decide: the first is right where they are large, the second elsewhere."""
    r = np.random.default_rng(4)
    y = np.arange(60) % 2
    X, w = r.normal(size=(60, 4)), np.where(np.arange(60) % 3 == 0, 9.0, 0.3)
    X[:, 0] = np.where(w > 1.0, 2.0 * y - 1.0, r.normal(size=60))
    X[:, 1] = np.where(w > 1.0, r.normal(size=60), 2.0 * y - 1.0)
    return X, y, w


def classifier(**given: Any) -> Any:
    model = FSPClassifier(**{"M": 1, "C": 1.0, "scale": "standard", **given})
    return model.set_fit_request(sample_weight=True).set_score_request(sample_weight=True)


def test_weights_decide_what_is_selected() -> None:
    X, y, w = drawn()
    assert FSPClassifier(M=1, C=1.0).fit(X, y, sample_weight=w).support_.tolist() == [True, False, False, False]
    assert FSPClassifier(M=1, C=1.0).fit(X, y).support_.tolist() == [False, True, False, False]


def test_a_pipeline_and_a_selector_hand_them_on() -> None:
    X, y, w = drawn()
    own = classifier().fit(X, y, sample_weight=w)
    piped = make_pipeline(StandardScaler().set_fit_request(sample_weight=True), classifier(scale="none"))
    piped.fit(X, y, sample_weight=w)
    np.testing.assert_allclose(piped.decision_function(X), own.decision_function(X), atol=1e-6)
    assert piped.score(X, y, sample_weight=w) == pytest.approx(own.score(X, y, sample_weight=w))
    chosen = make_pipeline(SelectFromModel(classifier()), LogisticRegression().set_fit_request(sample_weight=True))
    chosen.fit(X, y, sample_weight=w)
    assert chosen[0].get_support().tolist() == own.support_.tolist()
    selector = FGMSelector(M=1, scale="standard").set_fit_request(sample_weight=True)
    before = make_pipeline(selector, LogisticRegression().set_fit_request(sample_weight=True))
    assert before.fit(X, y, sample_weight=w)[0].get_support().tolist() == own.support_.tolist()


def test_a_search_hands_them_to_fits_and_scores() -> None:
    X, y, w = drawn()
    search = GridSearchCV(classifier(), {"M": [1, 2]}, cv=3).fit(X, y, sample_weight=w)
    by_hand = cross_validate(classifier(M=1), X, y, cv=3, params={"sample_weight": w})["test_score"]
    assert search.cv_results_["mean_test_score"][0] == pytest.approx(by_hand.mean())
    whole = classifier(**search.best_params_).fit(X, y, sample_weight=w)
    assert search.best_estimator_.support_.tolist() == whole.support_.tolist()


def test_groups_reach_the_splitter_and_the_calibration_of_each_fit() -> None:
    X, y, w = drawn()
    of, model = np.arange(60) // 4, FSPClassifier(M=1, scale="standard", probability=True)
    search = GridSearchCV(model, {"C": [0.1]}, cv=GroupKFold(2)).fit(X, y, groups=of)
    whole = clone(model).set_params(C=0.1).fit(X, y, groups=of)
    np.testing.assert_allclose(search.predict_proba(X), whole.predict_proba(X))
    assert np.abs(whole.predict_proba(X) - whole.fit(X, y, sample_weight=w).predict_proba(X)).max() > 0.01


def test_what_was_not_asked_for_is_refused() -> None:
    X, y, w = drawn()
    with pytest.raises(ValueError, match="sample_weight"):
        make_pipeline(StandardScaler(), FSPClassifier(M=1)).fit(X, y, sample_weight=w)
