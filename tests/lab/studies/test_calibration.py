"""Probabilities: of the logistic loss by itself, of others by calibration; against scikit-learn."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, brier_score_loss, precision_score, roc_auc_score
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC

import mipfs
from mipfs.data.instance import Instance, Labels
from mipfs.errors import DataError, UsageError
from mipfs.result import probability
from mipfs.result.result import Result
from tests.certificate.trees import checked


def made(n: int = 150, **given: Any) -> Instance:
    r = np.random.default_rng(2)
    X = r.normal(size=(n, 3))
    y = np.where(X[:, 0] + X[:, 1] + r.normal(size=n) > 0.8, 1.0, -1.0)
    return Instance.from_arrays(X, y, labels=Labels("good", "bad"), **given)


def test_a_calibration_is_that_of_scikit_learn() -> None:
    """The whole of CalibratedClassifierCV(ensemble=False), with libsvm on the same folds."""
    data = made()
    problem = mipfs.Problem(data, C=0.5, cardinality=False)
    result = mipfs.calibrate(problem, mipfs.solve(problem, gap=1e-7), folds=4, seed=3, gap=1e-7)
    folds = StratifiedKFold(4, shuffle=True, random_state=3)
    model = CalibratedClassifierCV(SVC(kernel="linear", C=0.5, tol=1e-8), ensemble=False, cv=folds)
    wanted = model.fit(data.X, data.y).predict_proba(data.X)
    np.testing.assert_allclose(result.predict_proba(data), wanted, atol=2e-4)
    np.testing.assert_array_equal(result.predict_proba(data), Result.from_json(result.to_json()).predict_proba(data))


def test_many_samples_take_an_isotonic_map(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probability, "MOST_SIGMOID", 100)
    data = made()
    problem = mipfs.Problem(data, C=0.5, M=2)
    result = mipfs.calibrate(problem, mipfs.solve(problem), folds=3)
    assert result.calibration is not None
    assert result.calibration["method"] == "isotonic"
    found = result.predict_proba(data)[:, 1]
    order = np.argsort(result.decision_function(data))
    assert np.all(np.diff(found[order]) >= 0)
    assert found.min() >= 0
    assert found.max() <= 1
    text = result.to_json()
    document = json.loads(text)
    for edit in ({"x": document["calibration"]["x"][::-1]}, {"y": []}, {"x": [None]}, {"method": "spline"}, {"x": 1.0}):
        odd = json.dumps(document | {"calibration": document["calibration"] | edit})
        with pytest.raises(DataError, match="'calibration' cannot be"):
            Result.from_json(odd)


@pytest.mark.parametrize("given", [None, "balanced", {"bad": 5}])
def test_the_logistic_loss_says_them_less_the_class_weights(given: Any) -> None:
    data = made()
    result = mipfs.solve(mipfs.Problem(data, loss="logistic", C=10.0, cardinality=False, class_weight=given))
    plain = LogisticRegression(C=10.0, tol=1e-10).fit(data.X, data.y).predict_proba(data.X)
    weights = result.params.get("class_weight") or {"bad": 1.0, "good": 1.0}
    score = result.decision_function(data) - math.log(weights["bad"] / weights["good"])
    np.testing.assert_allclose(result.predict_proba(data)[:, 1], expit(score), atol=1e-12)
    np.testing.assert_allclose(result.predict_proba(data), plain, atol=0.08)  # without the correction 0.2 to 0.4 off
    assert abs(result.predict_proba(data)[:, 1].mean() - np.mean(data.y > 0)) < 0.02


def test_a_calibration_proves_nothing_and_changes_no_proof(tmp_path: Path) -> None:
    data = made()
    problem = mipfs.Problem(data, M=2, C=0.5)
    plain = mipfs.solve(problem)
    with pytest.raises(UsageError, match="says no probabilities: solve with --calibrate 5"):
        plain.predict_proba(data)
    result = mipfs.calibrate(problem, plain, folds=3)
    assert (result.objective, result.weights, result.bound) == (plain.objective, plain.weights, plain.bound)
    report = checked(result, data, tmp_path)
    assert report.accepted, report.reason
    assert "the probabilities, which are estimated" in report.unchecked
    for folds in (1, 1000):
        with pytest.raises(UsageError, match="folds = "):
            mipfs.calibrate(problem, plain, folds=folds)
    with pytest.raises(UsageError, match="other data"):
        mipfs.calibrate(mipfs.Problem(made(100), M=2), plain)


def test_a_result_of_another_problem_is_not_calibrated() -> None:
    """Its folds would say what scores of other classifiers are worth."""
    data = made()
    result = mipfs.solve(mipfs.Problem(data, M=2, C=0.5))
    for other, said in (
        (mipfs.Problem(data, M=2, C=5.0), "of C = 0.5, the problem of C = 5"),
        (mipfs.Problem(data, M=3, C=0.5), "of M = 2, the problem of M = 3"),
        (mipfs.Problem(made(scale="standard"), M=2, C=0.5), "it was scaled 'none', and this is 'standard'"),
    ):
        with pytest.raises(UsageError, match=said):
            mipfs.calibrate(other, result, folds=3)


def test_what_a_result_says_of_labelled_data() -> None:
    data = made()
    result = mipfs.solve(mipfs.Problem(data, loss="logistic", M=2, C=1.0))
    new = made(200)
    words = new.labels.of(new.y)
    frame = pd.DataFrame(new.X, columns=[*new.feature_names])
    score = result.decision_function(new)
    found = result.evaluate(new)
    assert found == result.evaluate(frame, words) == result.evaluate(new.X, words)
    assert found["roc_auc"] == pytest.approx(roc_auc_score(words == "bad", score))
    assert found["average_precision"] == pytest.approx(average_precision_score(words == "bad", score))
    assert found["brier"] == pytest.approx(brier_score_loss(words == "bad", result.predict_proba(new)[:, 1]))
    assert result.score(new) == found["accuracy"] == np.mean(result.predict(new) == words)
    other = result.evaluate(new, positive="good")
    assert other["precision"] == pytest.approx(precision_score(words, result.predict(new), pos_label="good"))
    assert other["roc_auc"] == pytest.approx(found["roc_auc"])
    assert other["average_precision"] == pytest.approx(average_precision_score(words == "good", -score))
    assert other["brier"] == found["brier"]
    for y, message in (
        (words[:5], "y has shape"),
        (np.where(words == "bad", "ugly", words), "y holds the label 'ugly'"),
    ):
        with pytest.raises(UsageError, match=message):
            result.evaluate(new.X, y)
    with pytest.raises(UsageError, match="there are no labels to compare with; give y"):
        result.evaluate(new.X)
