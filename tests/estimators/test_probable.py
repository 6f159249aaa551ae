"""Estimators: probabilities, frames with words, near-optimal lists, and what is verified of a fit."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedGroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mipfs
from mipfs.errors import DataWarning

X, Y = make_classification(120, 6, n_informative=3, n_redundant=1, weights=[0.7], random_state=3)
X3, Y3 = make_classification(90, 5, n_informative=4, n_redundant=0, n_classes=3, n_clusters_per_class=1, random_state=3)


@pytest.mark.parametrize("weight", [None, "balanced", {0: 1, 1: 6}])
def test_the_logistic_loss_says_probabilities_less_the_class_weights(weight: Any) -> None:
    model = mipfs.FSPClassifier(6, loss="logistic", C=5.0, class_weight=weight).fit(X, Y)
    found = model.predict_proba(X)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    n1 = Y.mean()
    ratio = {None: 1.0, "balanced": (1 - n1) / n1}.get(weight if not isinstance(weight, dict) else None, 6.0)
    ratio = 6.0 if isinstance(weight, dict) else ratio
    np.testing.assert_allclose(found[:, 1], expit(model.decision_function(X) - np.log(ratio)), atol=1e-12)
    plain = LogisticRegression(C=5.0).fit(X, Y).predict_proba(X)
    assert np.abs(found - plain).mean() < 0.06


def test_of_three_classes_they_are_those_of_one_against_the_rest() -> None:
    model = mipfs.FSPClassifier(5, loss="logistic", C=2.0).fit(X3, Y3)
    each = expit(model.decision_function(X3))
    np.testing.assert_allclose(model.predict_proba(X3), each / each.sum(axis=1, keepdims=True))
    doubled = mipfs.FSPClassifier(5, loss="logistic", C=2.0, class_weight={0: 2, 1: 1, 2: 1}).fit(X3, Y3)
    assert abs(doubled.predict_proba(X3)[:, 0].mean() - np.mean(Y3 == 0)) < 0.05


@pytest.mark.slow
@pytest.mark.parametrize("data", [(X, Y), (X3, Y3)], ids=["two", "three"])
def test_a_calibrated_hinge_is_that_of_scikit_learn(data: Any) -> None:
    A, y = data
    model = mipfs.FSPClassifier(2, C=0.5, probability=True).fit(A, y)
    wanted = CalibratedClassifierCV(mipfs.FSPClassifier(2, C=0.5), ensemble=False, cv=5).fit(A, y)
    np.testing.assert_allclose(model.predict_proba(A), wanted.predict_proba(A), atol=1e-6)
    plain = mipfs.FSPClassifier(2, C=0.5).fit(A, y)
    np.testing.assert_array_equal(plain.decision_function(A), model.decision_function(A))
    assert not hasattr(plain, "predict_proba")
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(A), model.predict_proba(A))
    if y is Y:
        # The weights of the result are the solver's, those of the estimator an SVM's with a gap of 1e-12.
        np.testing.assert_allclose(model.result_.predict_proba(A), model.predict_proba(A), rtol=1e-4, atol=1e-5)
        pipe = make_pipeline(StandardScaler(), mipfs.FGMClassifier(2, loss="logistic"))
        assert np.isfinite(cross_val_score(pipe, A, y, scoring="neg_log_loss", cv=3)).all()


@pytest.mark.slow
def test_what_was_fitted_is_verified() -> None:
    frame = pd.DataFrame(X, columns=[f"f{k}" for k in range(6)])
    model = mipfs.FSPClassifier(2, C=0.5, class_weight="balanced", scale="standard").fit(frame, Y)
    report = model.verify(frame, Y)
    assert report.accepted, report.reason
    assert report.bound == pytest.approx(model.result_.bound)
    assert not model.verify(frame + 1e-3, Y).accepted
    assert not model.verify(frame, 1 - Y).accepted
    weights = np.random.default_rng(0).uniform(0.5, 2.0, 120)
    weighted = mipfs.FSPClassifier(2, C=0.5).fit(X, Y, sample_weight=weights)
    assert weighted.verify(X, Y, sample_weight=weights).accepted
    assert not weighted.verify(X, Y).accepted
    assert all(one.accepted for one in mipfs.FSPClassifier(1).fit(X3, Y3).verify(X3, Y3))
    assert mipfs.FGMClassifier(2).fit(X, Y).verify(X, Y).accepted
    with pytest.raises(ValueError, match="y holds 7, which is none of classes_"):
        model.verify(frame, np.where(Y == 1, 7, 0))
    with pytest.raises(ValueError, match="proves nothing"):
        mipfs.BaselineSelector("rfe", M=2).fit(X, Y).verify(X, Y)


def test_near_optimal_lists_and_a_start() -> None:
    model = mipfs.FSPClassifier(2, C=0.5, pool_size=3, start=[0, "x2"]).fit(X, Y)
    direct = mipfs.solve(mipfs.Problem(mipfs.Instance.from_arrays(X, 2.0 * Y - 1), M=2, C=0.5), pool_size=3)
    found, wanted = model.result_.near_optimal, direct.near_optimal
    assert found is not None
    assert wanted is not None
    assert [one["selected"] for one in found["supports"]] == [one["selected"] for one in wanted["supports"]]
    assert model.verify(X, Y).accepted
    for given, message in (({"start": ["no"]}, "start: nothing is called 'no'"), ({"start": "x1"}, "start = 'x1'")):
        with pytest.raises(ValueError, match=message):
            mipfs.FSPClassifier(2, **given).fit(X, Y)


def frame_of(n: int = 90, seed: int = 0) -> tuple[pd.DataFrame, Any]:
    r = np.random.default_rng(seed)
    frame = pd.DataFrame({"age": r.integers(18, 80, n), "home": r.choice(["own", "rent", "free"], n)})
    frame["kind"] = pd.Categorical(r.choice(["a", "b"], n))
    frame["income"] = r.normal(size=n)
    y = np.where((frame["home"] == "rent") + frame["income"] + 0.3 * r.normal(size=n) > 0.7, "bad", "good")
    return frame, y


@pytest.mark.slow
def test_frames_of_words_are_fitted_as_they_are_read() -> None:
    frame, y = frame_of()
    model = mipfs.FSPClassifier(2, C=1.0, scale="standard").fit(frame, y)
    data = mipfs.read(frame.assign(label=y), scale="standard", positive="good")
    result = mipfs.solve(mipfs.Problem(data, M=2, C=1.0))
    assert model.result_.objective == pytest.approx(result.objective)
    assert [*model.get_feature_names_out()] == [name for name in data.feature_names if name in result.selected]
    new, _ = frame_of(40, seed=5)
    np.testing.assert_allclose(model.decision_function(new), result.decision_function(new), atol=1e-9)
    np.testing.assert_array_equal(model.predict(new), result.predict(new))
    assert model.transform(new).shape == (40, 2)
    assert model.verify(frame, y).accepted
    whole = mipfs.FSPClassifier(1, C=1.0, atoms="groups").fit(frame, y)
    assert {*whole.atoms_} <= {"age", "home", "kind", "income"}
    calibrated = mipfs.FSPClassifier(2, C=1.0, scale="standard", probability=True).fit(frame, y)
    assert calibrated.predict_proba(new).shape == (40, 2)
    with pytest.raises(ValueError, match="column 'home' is 'tent', a category that training did not see"):
        model.predict(new.assign(home="tent"))
    with pytest.raises(ValueError, match="column 'home' has no value"):
        mipfs.FSPClassifier(2).fit(frame.assign(home=[None, *frame["home"][1:]]), y)
    with pytest.warns(DataWarning, match="column 'id' holds 90 different words"):
        named = mipfs.FSPClassifier(2, C=1.0, scale="standard").fit(frame.assign(id=[f"C{i}" for i in range(90)]), y)
    np.testing.assert_array_equal(named.predict(new.assign(id="new")), model.predict(new))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        numbers = frame[["age", "income"]]
        mipfs.FSPClassifier(1).fit(numbers, y).predict(numbers)


def test_a_class_of_one_sample_is_named_before_anything_is_solved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mipfs.estimators.base.solve", None)
    X, y = np.random.default_rng(0).normal(size=(40, 3)), np.array(["often"] * 39 + ["once"])
    with pytest.raises(ValueError, match=r"class once has 1 sample; probability=True calibrates on 5 folds"):
        mipfs.FSPClassifier(M=2, probability=True).fit(X, y)


def test_groups_stay_whole_in_the_folds_of_the_calibration() -> None:
    of = np.repeat([f"patient {i}" for i in range(30)], 4)
    plain = mipfs.FGMClassifier(2, C=0.5)
    parts = list(StratifiedGroupKFold(5).split(X, Y, of))
    wanted = CalibratedClassifierCV(plain, ensemble=False, cv=parts).fit(X, Y)
    model = mipfs.FGMClassifier(2, C=0.5, probability=True).fit(X, Y, groups=of)
    np.testing.assert_allclose(model.predict_proba(X), wanted.predict_proba(X), atol=1e-6)
    assert (
        np.abs(
            model.predict_proba(X) - mipfs.FGMClassifier(2, C=0.5, probability=True).fit(X, Y).predict_proba(X)
        ).max()
        > 1e-4
    )


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (np.arange(40) // 20, "class 1 is in too few of the 2 groups"),
        (np.zeros(40), "groups holds one group"),
        (np.zeros(39), r"groups has the shape \(39,\); give one of 40 samples"),
        ([None] * 40, "none missing"),
        ([np.nan] * 40, "none missing"),
    ],
)
def test_groups_that_a_calibration_cannot_keep_whole_are_refused(
    groups: Any, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mipfs.estimators.base.solve", None)
    y = np.r_[np.zeros(20), np.arange(20) % 2].astype(int)
    with pytest.raises(ValueError, match=message):
        mipfs.FSPClassifier(M=2, probability=True).fit(X[:40], y, groups=groups)


@pytest.mark.parametrize("rule", [{"forced_in": ["home"]}, {"cost": {"home": 3.0}, "budget": 4.0}, {"atoms": "groups"}])
def test_folds_of_the_calibration_know_columns_of_words(rule: dict[str, Any]) -> None:
    frame, y = frame_of()
    model = mipfs.FSPClassifier(2, C=0.1, scale="standard", probability=True, **rule).fit(frame[["home", "income"]], y)
    assert model.result_.calibration["samples"] == len(y)
    same = mipfs.FSPClassifier(2, C=0.1, scale="standard", **rule).fit(frame[["home", "income"]], y)
    assert model.result_.selected == same.result_.selected


def test_what_has_no_probabilities_says_how_to_get_some() -> None:
    model = mipfs.FSPClassifier(M=1)
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError, match="give loss='logistic', or probability=True"):
        model.predict_proba([[0.0]])
    assert hasattr(mipfs.FSPClassifier(probability=True), "predict_proba")
    assert "Probabilities of the classes" in str(mipfs.FSPClassifier.predict_proba.__doc__)


def test_samples_of_weight_0_are_not_there_for_the_calibration() -> None:
    weight = np.random.default_rng(4).choice([0.0, 1.0, 2.0], Y.size, p=[0.4, 0.4, 0.2])
    weight[np.flatnonzero(Y == 1)[:20]] = 0.0  # whole folds of one class
    model, left = mipfs.FSPClassifier(M=2, probability=True), weight > 0
    whole = model.fit(X, Y, weight).predict_proba(X)
    np.testing.assert_allclose(whole, model.fit(X[left], Y[left], weight[left]).predict_proba(X), rtol=1e-6)
