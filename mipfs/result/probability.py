"""Probabilities of the class +1 from the scores f(x) of a classifier; none of them is proven.

The logistic loss says them by itself: it estimates log(k₊p/(k₋(1 − p))) where the classes have the weights k₊ and k₋,
so that p = 1/(1 + exp(−f + log(k₊/k₋))). Of other losses a calibration, fitted by scikit-learn to scores of samples
that their classifier was not trained on, maps f to p: a sigmoid (Platt 1999) below `MOST_SIGMOID` samples, else an
isotonic regression.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mipfs.errors import UsageError
from mipfs.losses import says_odds
from mipfs.plumbing.arrays import Array

if TYPE_CHECKING:
    from mipfs.result.result import Result

MOST_SIGMOID = 1000
"""Samples from which on a calibration is isotonic: fewer would make one of few steps."""
SIGMOID, ISOTONIC = "sigmoid", "isotonic"


def fit_calibration(scores: Array, y: npt.NDArray[Any], folds: int, weight: Array | None = None) -> dict[str, Any]:
    """A calibration of scores (n,) that no classifier was trained on, with labels y (n,) of -1 and 1, as JSON has it.

    Parameters
    ----------
    folds : how many there were, for the record
    weight : (n,) sample weights
    """
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.frozen import FrozenEstimator

    class Scored(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
        """A classifier whose one column is its score."""

        def fit(self, X: Any, y: Any) -> Any:
            self.classes_ = np.unique(y)
            return self

        def decision_function(self, X: Any) -> Any:
            return X[:, 0]

        def predict(self, X: Any) -> Any:
            return np.where(X[:, 0] > 0, 1.0, -1.0)

    method = SIGMOID if scores.size < MOST_SIGMOID else ISOTONIC
    column = np.asarray(scores, dtype=float)[:, None]
    known = FrozenEstimator(Scored().fit(column, y))
    with warnings.catch_warnings():  # that weights are used for the calibration alone, as they should be
        warnings.filterwarnings("ignore", "Since FrozenEstimator does not appear to accept sample_weight")
        model = CalibratedClassifierCV(known, method=method).fit(column, y, sample_weight=weight)
    map_ = model.calibrated_classifiers_[0].calibrators[0]
    about: dict[str, Any] = {"method": method, "samples": int(scores.size), "folds": int(folds)}
    if method == SIGMOID:
        return about | {"a": float(map_.a_), "b": float(map_.b_)}
    return about | {"x": map_.X_thresholds_.tolist(), "y": map_.y_thresholds_.tolist()}


def apply_calibration(calibration: Mapping[str, Any], scores: Array) -> Array:
    """Probabilities (n,) of scores (n,)."""
    if calibration["method"] == SIGMOID:
        return _logistic(-(calibration["a"] * scores + calibration["b"]))
    return np.asarray(np.interp(scores, np.array(calibration["x"], float), np.array(calibration["y"], float)))


def of_logistic(scores: Array, weights: tuple[float, float] | None) -> Array:
    """Probabilities (n,) of the scores (n,) of the logistic loss, where the classes -1 and +1 have `weights`."""
    return _logistic(scores if weights is None else scores - math.log(weights[1] / weights[0]))


def has_probabilities(result: Result) -> bool:
    """Whether there are any: a logistic loss, or a calibration."""
    return result.has_classifier and (says_odds(result.params.get("loss")) or result.calibration is not None)


def probabilities(result: Result, scores: Array) -> Array:
    """Probabilities (n,) of the class +1.

    Raises
    ------
    UsageError
        The loss says none, and nothing was calibrated.
    """
    if result.calibration is not None:
        return apply_calibration(result.calibration, scores)
    if not says_odds(result.params.get("loss")):
        raise UsageError(
            f"the loss {result.params.get('loss')!r} says no probabilities: solve with --calibrate 5 "
            "(mipfs.calibrate(problem, result) in Python), or with loss=logistic"
        )
    weights = result.params.get("class_weight")
    labels = (str(result.labels["negative"]), str(result.labels["positive"]))
    return of_logistic(scores, None if weights is None else (weights[labels[0]], weights[labels[1]]))


def _logistic(values: Array) -> Array:
    from scipy.special import expit

    return np.asarray(expit(values))
