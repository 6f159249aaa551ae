"""What the estimators share: fitting one-versus-rest, the support, decision values and predictions."""

from __future__ import annotations

import math
import sys
import warnings
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, cast

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from mipfs.check.tree import Report
from mipfs.data.frames import as_rows, is_by_names, names_of
from mipfs.data.instance import Instance
from mipfs.data.linear import decision
from mipfs.data.recipe import Prepared
from mipfs.data.suspects import warn_of_suspects
from mipfs.drivers import solve
from mipfs.estimators.allowed import selection_arguments
from mipfs.estimators.imputing import Imputer, prepared_of
from mipfs.estimators.probable import ProbabilityMixin
from mipfs.estimators.samples import (
    binary_instances,
    check_parameters,
    refuse_missing_labels,
    scikit_errors,
    validated,
)
from mipfs.estimators.words import encode_words, groups_of, learn_words, reading_of, refuse_missing_columns
from mipfs.plumbing.arrays import Array, Mask
from mipfs.plumbing.signals import hearing_signals
from mipfs.problem import Problem
from mipfs.report.numbers import first_of
from mipfs.result.gap import relative_gap
from mipfs.result.result import Record, Result, Status, StopReason
from mipfs.result.verification import verify

LEAST_WEIGHT = 1e-5
"""What SelectFromModel takes for zero where `penalty` is "l1"."""
MOST_NAMES = 5
"""Features that a warning names."""
FINISHED = (StopReason.GAP_CLOSED, StopReason.ITERATION_LIMIT, StopReason.COMPLETED)
"""Why a run may stop without a warning: it is done, or did as many iterations as were asked for."""


@dataclass(frozen=True, eq=False)
class FittedProblem:
    """One binary problem, solved.

    Attributes
    ----------
    result : Result
    support : (p,) bool, the features that the estimator keeps
    coef : (p,) weights on the user's scale
    intercept : float, on the user's scale
    n_iter : int, iterations of the driver
    """

    result: Result
    support: Mask
    coef: Array
    intercept: float
    n_iter: int


class SupportSelector(SelectorMixin, BaseEstimator):  # type: ignore[misc]
    """Base of every estimator: fits each binary problem of one-versus-rest and keeps the union of the supports."""

    scale: Any
    class_weight: Any
    rows: Any
    forced_in: Any
    forced_out: Any
    cost: Any
    budget: Any
    result_: Any
    verbose: Any = False
    unknown: Any = "refuse"
    impute: Any = None
    types: Any = None
    _imputer: Any = None
    _words: Any = None
    _is_finished: bool  # whether the last fit came to its end; unknown of estimators that earlier versions pickled
    _encoded_words: Any = None  # of the columns that became features before the fit, as in a fold of the calibration
    columns_: Any

    def _selection_parameters(self, names: Sequence[str], groups: Mapping[str, Sequence[str]]) -> dict[str, Any]:
        """The parameters of the problem that say which selections from `names`, or `groups` of these, are allowed."""
        return selection_arguments(
            names,
            groups,
            rows=self.rows,
            forced_in=self.forced_in,
            forced_out=self.forced_out,
            cost=self.cost,
            budget=self.budget,
        )

    def _prepare_instances(self, instances: list[Instance]) -> list[Instance]:
        """The binary problems' data, made ready for the fits."""
        return instances

    @abstractmethod
    def _fit_binary(self, data: Instance) -> FittedProblem:
        """Solve one binary problem."""

    def _fit_together(self, instances: list[Instance]) -> list[Any]:
        """Solve the binary problems as one; nothing where each is solved by itself."""
        return []

    def _proven_instances(self, instances: list[Instance]) -> list[Instance]:
        """The data that the results are about, of the binary problems."""
        return instances

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit.

        Parameters
        ----------
        X : (n, p) array-like, data frame or sparse matrix
        y : (n,) array-like of class labels, at least two of them
        sample_weight : (n,) array-like >= 0, optional
            Sample i has the loss weight C·sample_weight_i; samples of weight 0 are left out.

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
        return self._fit_samples(X, y, sample_weight)

    def _fit_samples(self, X: Any, y: Any, sample_weight: Any, groups: Any = None) -> Self:
        """Fit, where samples of one of the `groups` are in one fold of the calibration."""
        refuse_missing_labels(y)
        with scikit_errors():
            imputer = Imputer.learnt(as_rows(X), self.impute, self.types, sample_weight)
            self._is_finished, self._imputer = False, imputer
            X, prepared = prepared_of(X, self._imputer)
            self._words = learn_words(X)
            self._reading = reading_of(X, self._words)
            given, X = X, encode_words(X, self._words, self.unknown)
            self.__dict__.pop("columns_", None)
        X, y = validated(self, X, y, accept_sparse="csc", dtype=np.float64, order="F")
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        names = getattr(self, "feature_names_in_", None)
        with scikit_errors():
            check_parameters(self)
            folds = self._calibration_folds(codes, groups, sample_weight)
            instances = self._binary_instances(X, codes, sample_weight, prepared)
            warn_of_suspects(instances, "X", stacklevel=4)
            self._keep_scaling(instances[0])
            self._store_fits(
                self._fit_together(instances) or list(map(self._fit_binary, self._announced_instances(instances)))
            )
            held = X if names is None else _frame_of(X, names)
            self._learn_probabilities(held, y, codes, sample_weight, prepared, folds)
        if self._words:  # until here they are those of the columns that the words became
            self.columns_, self.feature_names_in_ = names, np.array(names_of(given), dtype=object)
            self.n_features_in_ = self.feature_names_in_.size
        self._is_finished = True
        if not self.support_.any() and getattr(self, "M", None) != 0:
            warnings.warn(self._nothing_selected(), UserWarning, stacklevel=3)
        return self

    def __sklearn_is_fitted__(self) -> bool:
        """Whether the last fit came to its end."""
        return bool(self.__dict__.get("_is_finished", hasattr(self, "support_")))

    def _nothing_selected(self) -> str:
        """What is said of a fit that selected nothing: why, where that is proven."""
        found = getattr(self, "result_", [])
        results = found if isinstance(found, list) else [found]
        blind = f"{type(self).__name__} tells no sample from another"
        if all(one.status is Status.OPTIMAL for one in results):
            return (
                f"no feature is worth its weight, and none is selected: {blind}; try a larger C, or "
                "class_weight='balanced'"
            )
        return f"no feature is selected, and it is not proven that none is worth its weight: {blind}; see result_"

    def _in_columns(self) -> Self:
        """The estimator as one of the columns that words became, for what scikit-learn checks of a matrix of these."""
        if not hasattr(self, "columns_"):
            return self
        inner = object.__new__(type(self))
        inner.__dict__ |= self.__dict__ | {"feature_names_in_": self.columns_, "n_features_in_": self.columns_.size}
        return inner

    def _names(self) -> Any:
        """The names of the columns of `support_`; None where X had none."""
        return getattr(self, "columns_", getattr(self, "feature_names_in_", None))

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:
        """The names of the selected features; of columns of words their features ``column=word``.

        Parameters
        ----------
        input_features : (n_features_in_,) array-like of str, optional
            Names of the columns of X, which must be those that X had in training if it had names.

        Returns
        -------
        (k,) ndarray of str

        Raises
        ------
        ValueError
            Other names than those of training.
        """
        check_is_fitted(self)
        if not hasattr(self, "columns_"):
            return cast(npt.NDArray[np.object_], super().get_feature_names_out(input_features))
        if input_features is not None and list(input_features) != self.feature_names_in_.tolist():
            raise ValueError("input_features is not equal to feature_names_in_")
        return cast(npt.NDArray[np.object_], self.columns_[self.support_])

    def _announced_instances(self, instances: list[Instance]) -> Iterator[Instance]:
        """The binary problems' data, one after the other; where the fit talks, it says which class they are about."""
        for k, one in enumerate(instances):
            if self.verbose and len(instances) > 1:
                print(f"class {self.classes_[k]!s} against the rest, {k + 1} of {len(instances)}", file=sys.stderr)
            yield one

    def _binary_instances(
        self, X: Any, codes: Any, sample_weight: Any, prepared: Prepared | None = None
    ) -> list[Instance]:
        """The data of the binary problems, of a matrix that was validated."""
        names = self._names()
        found = binary_instances(
            X,
            codes,
            self.classes_,
            scale=self.scale,
            sample_weight=sample_weight,
            class_weight=self.class_weight,
            feature_names=None if names is None else [str(name) for name in names],
        )
        known = self._words or self._encoded_words
        groups, words = groups_of(known), {name: seen for name, seen in (known or {}).items() if seen}
        table = getattr(self, "_reading", None)
        if prepared is not None:
            if sample_weight is not None:
                prepared = prepared.part(np.flatnonzero(np.asarray(sample_weight) != 0))
            prepared = None if names is None else prepared.over({str(name) for name in names})
        return self._prepare_instances(
            [replace(one, groups=groups, words=words, reading=table, prepared=prepared) for one in found]
        )

    def _calibration_folds(self, codes: Any, groups: Any, sample_weight: Any) -> list[Any]:
        """The folds that probabilities are calibrated on, where they are; refused before anything is solved."""
        return []

    def _learn_probabilities(
        self, X: Any, y: Any, codes: Any, sample_weight: Any, prepared: Prepared | None, folds: list[Any]
    ) -> None:
        """Keep what probabilities need, where there are any."""

    def _in_features(self, X: Any) -> Any:
        """New rows with features for columns of words; those by the names of their cells in training's order."""
        held, _ = prepared_of(X, self._imputer)
        if self._words:
            refuse_missing_columns(as_rows(held), self.feature_names_in_.tolist(), self._words, self.columns_.tolist())
        found, names = encode_words(held, self._words, self.unknown, self._needed_names()), self._names()
        if names is not None and is_by_names(X) and set(names) <= set(found.columns):
            return found[list(names)]
        return found

    def _needed_names(self) -> list[str] | None:
        """The names of the columns of `support_` that anything is computed from; None where that may be all."""
        return None

    def transform(self, X: Any) -> Any:
        """The selected columns of X; of a data frame with columns of words their features ``column=word``."""
        check_is_fitted(self)
        with scikit_errors():
            X = self._in_features(X)
        return SelectorMixin.transform(self._in_columns(), X)

    def verify(self, X: Any, y: Any, sample_weight: Any = None) -> Report | list[Report]:
        """Check what was fitted against the data that it was fitted on, as `mipfs.verify` does.

        Parameters
        ----------
        X, y, sample_weight : as they were given to `fit`

        Returns
        -------
        mipfs.check.tree.Report, or one for each class where there are more than two
            ``accepted``, ``reason``, ``bound``, ``objective``, the ``statement`` that was checked, and more.

        Raises
        ------
        ValueError
            Labels that were not there in `fit`, or nothing that could be checked: a baseline proves nothing.
        """
        check_is_fitted(self)
        with scikit_errors():
            if not hasattr(self, "result_"):
                raise ValueError(f"{type(self).__name__} proves nothing, so there is nothing to verify")
            results = self.result_ if isinstance(self.result_, list) else [self.result_]
            X, prepared = prepared_of(X, self._imputer)
            X = encode_words(X, self._words)
            given: dict[str, Any] = {"accept_sparse": "csc", "dtype": np.float64, "order": "F", "reset": False}
            X, y = validate_data(self._in_columns(), X, y, **given)
            codes = np.searchsorted(self.classes_, y)
            known = (codes < self.classes_.size) & (self.classes_[np.minimum(codes, self.classes_.size - 1)] == y)
            if not np.all(known):
                raise ValueError(f"y holds {y[~known].tolist()[0]!r}, which is none of classes_")
            instances = self._proven_instances(self._binary_instances(X, codes, sample_weight, prepared))
            reports = [verify(result, data) for result, data in zip(results, instances, strict=True)]
        return reports[0] if len(reports) == 1 else reports

    def _keep_scaling(self, data: Instance) -> None:
        """Keep what a prediction needs of the training data."""

    def _store_fits(self, fits: list[FittedProblem]) -> None:
        """Store what the binary problems left, in scikit-learn's shapes."""
        self.result_ = fits[0].result if len(fits) == 1 else [fitted.result for fitted in fits]
        self.support_ = np.any([fitted.support for fitted in fits], axis=0)
        self.n_iter_ = max(fitted.n_iter for fitted in fits)

    def _get_support_mask(self) -> Mask:
        check_is_fitted(self)
        return cast(Mask, self.support_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.impute is not None
        tags.target_tags.required = True
        return tags


class Classifier(ProbabilityMixin, ClassifierMixin, SupportSelector):  # type: ignore[misc]
    """Base of the classifiers: f > 0 stands for the second of two classes, the largest f for one of more."""

    def _store_fits(self, fits: list[Any]) -> None:
        super()._store_fits(fits)
        self.intercept_ = np.array([fitted.intercept for fitted in fits])

    @abstractmethod
    def _scores_of_classes(self, X: Any) -> Array:
        """f of rows (n, p), dense or CSR, for every binary problem: (n, K), K = 1 for two classes."""

    def decision_function(self, X: Any) -> Array:
        """Values of f.

        Parameters
        ----------
        X : (n, p) array-like, data frame or sparse matrix

        Returns
        -------
        (n,) for two classes, where a value above 0 stands for ``classes_[1]``; (n, K) for more.
        """
        check_is_fitted(self)
        with scikit_errors():
            X = self._in_features(X)
        X = validate_data(self._in_columns(), X, accept_sparse="csr", dtype=np.float64, reset=False)
        values = self._scores_of_classes(X)
        return values[:, 0] if self.classes_.size == 2 else values

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Predict the class of every row of X, shape (n,)."""
        values = self.decision_function(X)
        best = (values > 0).astype(np.intp) if values.ndim == 1 else values.argmax(axis=1)
        return cast(npt.NDArray[Any], self.classes_[best])


class LinearClassifier(Classifier):
    """Base of the linear ones: f(x) = coef_ x + intercept_, one row per class for more than two classes."""

    @property
    def penalty(self) -> str:
        """What tells `SelectFromModel` that weights are zero where nothing is selected; no parameter.

        By "l1" it takes weights from 1e-5 on for features, without it those above the mean. A selected feature whose
        weight on X's scale is smaller would be lost, as would one that is forced in and has the weight 0: that is said
        in a warning, and that its transform takes no data frame with columns of words, which have other columns.
        """
        if hasattr(self, "columns_"):
            warnings.warn(
                "SelectFromModel.transform takes no data frame whose words became columns: there are more weights than "
                f"columns; use {type(self).__name__} itself in its place, or encode the words before",
                UserWarning,
                stacklevel=2,
            )
        if hasattr(self, "coef_"):
            small = np.flatnonzero(self.support_ & (np.abs(self.coef_).sum(axis=0) < LEAST_WEIGHT))
            if small.size:
                names = self._names()
                lost = [f"column {j}" if names is None else repr(str(names[j])) for j in small]
                warnings.warn(
                    f"SelectFromModel drops weights below {LEAST_WEIGHT:g}, of {first_of(lost, MOST_NAMES)}; use "
                    f"{type(self).__name__} itself in its place: its transform has all that is in support_",
                    UserWarning,
                    stacklevel=2,
                )
        return "l1"

    def _needed_names(self) -> list[str] | None:
        names, coef = self._names(), getattr(self, "coef_", np.zeros((0, 0)))
        if names is None or coef.shape[1] != len(names):  # of atoms that are no columns there may be more
            return None
        return [str(name) for name in names[self.support_ | np.any(coef != 0, axis=0)]]

    def _store_fits(self, fits: list[FittedProblem]) -> None:
        super()._store_fits(fits)
        self.coef_ = stack_rows([fitted.coef for fitted in fits])

    def _keep_scaling(self, data: Instance) -> None:
        self._shift, self._scale = np.array(data.shift), np.array(data.scale)

    def _scores_of_classes(self, X: Any) -> Array:
        values = np.empty((X.shape[0], len(self.coef_)))
        for k, coef in enumerate(self.coef_):
            used = np.flatnonzero(coef)
            shift, scale = self._shift[used], self._scale[used]
            values[:, k] = decision(X[:, used], coef[used], float(self.intercept_[k]), shift, scale)
        return values


def _frame_of(X: Any, names: Any) -> Any:
    """A validated matrix as the data frame that it was, where it is dense."""
    if sparse.issparse(X):
        return X
    import pandas

    return pandas.DataFrame(X, columns=names)


def stack_rows(rows: list[Array]) -> Array:
    """Rows (p,) as an array (K, p); of one row without a copy."""
    return rows[0][None, :] if len(rows) == 1 else np.array(rows)


def at_most(M: Any, p: int) -> Any:
    """`M`, and p where M is larger: the row then allows every selection."""
    return min(M, p) if isinstance(M, (int, np.integer)) and not isinstance(M, bool) else M


def solve_problem(problem: Problem, driver: str | None, model: Any, **options: Any) -> tuple[Result, int]:
    """Solve, with the gap, the limit of time and the progress that an estimator has; the result, and its iterations.

    Raises
    ------
    KeyboardInterrupt
        Ctrl-C: otherwise a grid search would go on with its next fit.
    ValueError
        A limit stopped the driver before there was a classifier.
    """
    n_iter = 1

    def count(record: Record) -> None:
        nonlocal n_iter
        n_iter = max(n_iter, record.iteration)

    asked = {"gap": model.gap, "time_limit": model.time_limit, "verbose": bool(model.verbose)}
    with hearing_signals() as strike:
        whole = solve(problem, driver, observers=[count], **asked, **options)
    result = replace(whole, declare=None)  # which holds the data
    if strike.has_been or result.stop_reason is StopReason.INTERRUPTED:
        raise KeyboardInterrupt
    if result.conflict:
        culprits = ", ".join(repr(name) for name in result.conflict)
        raise ValueError(f"no selection satisfies the rows; these contradict each other: {culprits}; relax one of them")
    if not result.has_classifier:
        raise ValueError(f"no classifier was found: {result.status.name}, stopped by {result.stop_reason.name}")
    if result.stop_reason not in FINISHED:
        gap = open_gap(result)
        found = f"at a gap of {gap:.2%}" if math.isfinite(gap) else "before there was a bound"
        more = "; a larger time_limit lets it go on" if result.stop_reason is StopReason.TIME_LIMIT else ""
        warnings.warn(
            f"stopped by {result.stop_reason.name} {found}, see result_{more}", ConvergenceWarning, stacklevel=5
        )
    return result, n_iter


def open_gap(result: Result) -> float:
    """The gap that the driver was to close: between the two sides of a relaxation, or of the problem itself."""
    if result.relaxed is None:
        return result.gap
    return relative_gap(result.relaxed["upper"], result.relaxed["lower"])
