"""`predict_proba` of the classifiers: of the logistic loss by itself, of other losses by calibration."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from dataclasses import replace
from types import MethodType
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

from mipfs.data.recipe import Prepared
from mipfs.data.split import Pair
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

    def _calibration_folds(self, codes: Integers, groups: Any, sample_weight: Any) -> list[Pair]:
        """Folds with the classes in proportion, and every group in one; none where nothing is calibrated.

        Samples of weight 0 are in none of them: they count as samples that are not there.

        Raises
        ------
        UsageError
            A class of one sample or group, which is missing from a fold's training part.
        """
        if not self._is_calibrated:
            return []
        counted = np.flatnonzero(sample_weights(sample_weight, codes.size) > 0)
        counts = np.bincount(codes[counted], minlength=self.classes_.size)
        rare = int(counts.argmin())
        if counts[rare] < 2:
            asked = f"probability=True calibrates on {FOLDS} folds, which need 2 of each class at least"
            raise UsageError(f"class {self.classes_[rare]!s} has {counts[rare]} sample; {asked}")
        if groups is None:
            parts = list(StratifiedKFold(FOLDS).split(counted, codes[counted]))
            return [(counted[train], counted[test]) for train, test in parts]
        given = np.asarray(groups)
        if given.shape != codes.shape or any(one is None or one != one for one in given.tolist()):
            raise UsageError(f"groups has the shape {given.shape}; give one of {codes.size} samples each, none missing")
        codes = codes[counted]
        names, of = np.unique(given[counted].astype(str), return_inverse=True)
        if names.size < 2:
            raise UsageError("groups holds one group, and folds that keep it whole are none; leave it out")
        parts = list(StratifiedGroupKFold(min(FOLDS, names.size)).split(codes, codes, of))
        for train, _ in parts:
            absent = np.setdiff1d(codes, codes[train])
            if absent.size:
                raise UsageError(
                    f"class {self.classes_[absent[0]]!s} is in too few of the {names.size} groups: a fold of the "
                    "calibration trains on none of it; give finer groups, or probability=False"
                )
        return [(counted[train], counted[test]) for train, test in parts if test.size]

    def _learn_probabilities(
        self, X: Any, y: Any, codes: Integers, sample_weight: Any, prepared: Prepared | None, folds: list[Pair]
    ) -> None:
        """Keep the weights of the classes, and calibrate where that is asked for."""
        weights = sample_weights(sample_weight, codes.size)
        totals = np.bincount(codes, weights, self.classes_.size).astype(float)
        self._weights: Array = class_weights(self.class_weight, self.classes_, totals)
        self._calibrations: list[dict[str, Any]] = []
        if not folds:
            return
        given, there = None if sample_weight is None else weights, np.flatnonzero(weights > 0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SuspectWarning)  # it was said of the whole
            columns = self._scores_of_folds(X, y, given, prepared, folds)
        for k, scored in zip([1] if self.classes_.size == 2 else range(self.classes_.size), columns.T, strict=True):
            signs = np.where(codes[there] == k, 1.0, -1.0)
            weight = None if given is None else given[there]
            self._calibrations.append(fit_calibration(scored[there], signs, len(folds), weight))
        found = getattr(self, "result_", None)
        if isinstance(found, Result):
            self.result_ = replace(found, calibration=self._calibrations[0])

    def _scores_of_folds(
        self, X: Any, y: Any, weights: Array | None, prepared: Prepared | None, folds: list[Pair]
    ) -> Array:
        """Scores of every test part, (n, K), K = 1 for two classes, by a fit on its training part.

        Missing values are filled in by what the training part says.
        """
        plain = clone(self).set_params(probability=False, impute=None, types=None)
        plain._encoded_words = getattr(self, "_words", None)
        found = np.zeros((y.size, 1 if self.classes_.size == 2 else self.classes_.size))
        for train, test in folds:
            held = X
            if prepared is not None:
                held = fill_missing(prepared, X, getattr(self, "feature_names_in_", None), train)
            taken = held.iloc if hasattr(held, "iloc") else held
            fold = plain.fit(taken[train], y[train], None if weights is None else weights[train])
            found[test] = fold.decision_function(taken[test]).reshape(test.size, -1)
        return found

    @_OfProbabilities
    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes, an estimate that no proof covers.

        Of the logistic loss from f itself, with the weights of the classes taken out; of other losses, where
        ``probability=True`` was given, by scikit-learn's calibration on the scores of five folds. `predict` is by the
        scores, so that of calibrated ones the most probable class may be another one.

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


class CalibratedMixin:
    """What a classifier with `probability` is told besides: which samples belong together."""

    __metadata_request__fit: ClassVar = {"groups": True}
    _fit_samples: Callable[..., Any]

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Fit.

        Parameters
        ----------
        X : (n, p) array-like, data frame or sparse matrix
        y : (n,) array-like of class labels, at least two of them
        sample_weight : (n,) array-like >= 0, optional
            Sample i has the loss weight C·sample_weight_i; samples of weight 0 are left out.
        groups : (n,) array-like, optional
            Samples that belong together, such as those of a patient: no fold of ``probability=True`` takes them apart.
            Nothing else looks at it. Where metadata are routed it is asked for.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            Bad data, or a parameter out of its range.

        Warns
        -----
        ConvergenceWarning
            A limit stopped a driver before its gap was closed; `result_` says how large it is.
        UserWarning
            Nothing is selected.
        SuspectWarning
            A column separates the classes alone, is constant or a copy of another, or rows stand there twice.
        """
        return self._fit_samples(X, y, sample_weight, groups)  # type: ignore[no-any-return]
