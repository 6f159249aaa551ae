"""`predict_proba` of the classifiers: of the logistic loss by itself, of other losses by calibration."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from dataclasses import replace
from types import MethodType
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from mipfs.data.recipe import Prepared
from mipfs.errors import SuspectWarning, UsageError
from mipfs.estimators.imputing import fill_missing
from mipfs.estimators.samples import class_weights, sample_weights
from mipfs.losses import says_odds
from mipfs.plumbing.arrays import Array, Integers
from mipfs.result.probability import apply_calibration, fit_calibration, of_logistic
from mipfs.result.result import Result

FOLDS = 5
"""Folds whose scores a calibration is fitted to."""


class _OfProbabilities:
    """A method that is there where a classifier has probabilities.

    Otherwise its AttributeError, by which `hasattr` knows, says what to give; scikit-learn's `available_if` says that
    in the cause of one of its own alone.
    """

    def __init__(self, method: Callable[..., Any]) -> None:
        self.method = method
        functools.update_wrapper(self, method)  # type: ignore[arg-type]

    def __get__(self, model: Any, owner: Any = None) -> Any:
        if model is None:
            return self.method
        if says_odds(getattr(model, "loss", None)) or bool(getattr(model, "probability", False)):
            return MethodType(self.method, model)
        raise AttributeError(
            f"{type(model).__name__} with loss={getattr(model, 'loss', None)!r} has no predict_proba: give "
            "loss='logistic', or probability=True where the classifier takes it"
        )


class ProbabilityMixin:
    """What a classifier needs to say probabilities."""

    classes_: Any
    class_weight: Any
    result_: Any

    @property
    def _is_calibrated(self) -> bool:
        return bool(getattr(self, "probability", False)) and not says_odds(getattr(self, "loss", None))

    def _check_classes(self, codes: Integers) -> None:
        """Refuse a class of one sample, which is missing from a fold's training part.

        Raises
        ------
        UsageError
        """
        counts = np.bincount(codes, minlength=self.classes_.size)
        rare = int(counts.argmin())
        if self._is_calibrated and counts[rare] < 2:
            asked = f"probability=True calibrates on {FOLDS} folds, which need 2 of each class at least"
            raise UsageError(f"class {self.classes_[rare]!s} has {counts[rare]} sample; {asked}")

    def _learn_probabilities(
        self, X: Any, y: Any, codes: Integers, sample_weight: Any, prepared: Prepared | None = None
    ) -> None:
        """Keep the weights of the classes, and calibrate where that is asked for."""
        weights = sample_weights(sample_weight, codes.size)
        totals = np.bincount(codes, weights, self.classes_.size).astype(float)
        self._weights: Array = class_weights(self.class_weight, self.classes_, totals)
        self._calibrations: list[dict[str, Any]] = []
        if not self._is_calibrated:
            return
        plain = clone(self).set_params(probability=False)
        params = None if sample_weight is None else {"sample_weight": weights}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SuspectWarning)  # it was said of the whole
            if prepared is None:
                scores = cross_val_predict(plain, X, y, cv=FOLDS, method="decision_function", params=params)
            else:
                scores = self._scores_refilled(plain, X, y, weights, prepared)
        columns = scores[:, None] if scores.ndim == 1 else scores
        ones = [1] if scores.ndim == 1 else range(self.classes_.size)
        given = None if sample_weight is None else weights
        for k, scored in zip(ones, columns.T, strict=True):
            self._calibrations.append(fit_calibration(scored, np.where(codes == k, 1.0, -1.0), FOLDS, given))
        found = getattr(self, "result_", None)
        if isinstance(found, Result):
            self.result_ = replace(found, calibration=self._calibrations[0])

    def _scores_refilled(self, plain: Any, X: Any, y: Any, weights: Array, prepared: Prepared) -> Array:
        """As `cross_val_predict`, where missing values are filled in by what the training part of each fold says."""
        found = np.zeros((y.size, self.classes_.size) if self.classes_.size > 2 else y.size)
        plain.set_params(impute=None)
        for train, test in StratifiedKFold(FOLDS).split(np.zeros(y.size), y):
            held = fill_missing(prepared, X, getattr(self, "feature_names_in_", None), train[weights[train] != 0])
            taken = held.iloc if hasattr(held, "iloc") else held
            fold = plain.fit(taken[train], y[train], sample_weight=weights[train])
            found[test] = fold.decision_function(taken[test])
        return found

    @_OfProbabilities
    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes, an estimate that no proof covers.

        Of the logistic loss from f itself, with the weights of the classes taken out; of other losses, where
        ``probability=True`` was given, by scikit-learn's calibration on the scores of five folds.

        Parameters
        ----------
        X : (n, p) array-like, data frame or sparse matrix

        Returns
        -------
        (n, K) ndarray, in the order of ``classes_``; rows add up to 1
        """
        values = np.asarray(self.decision_function(X))  # type: ignore[attr-defined]  # of the classifier that this is
        columns = values[:, None] if values.ndim == 1 else values
        if self._calibrations:
            pairs = zip(self._calibrations, columns.T, strict=True)
            found = np.stack([apply_calibration(one, scores) for one, scores in pairs], axis=1)
            if found.shape[1] == 1:
                return np.hstack([1.0 - found, found])
        elif columns.shape[1] == 1:
            one = of_logistic(columns, (float(self._weights[0]), float(self._weights[1])))
            return np.hstack([1.0 - one, one])
        else:  # of a class against the rest f says k P/Σ k_j P_j
            found = of_logistic(columns, None) / self._weights
        total = found.sum(axis=1, keepdims=True)
        return np.asarray(np.where(total > 0, found / np.where(total > 0, total, 1.0), 1.0 / found.shape[1]))
