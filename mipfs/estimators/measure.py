"""MeasureClassifier: features and weights for a multivariate measure (Mao 2013) as a scikit-learn classifier."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted, column_or_1d

from mipfs.data.instance import Instance
from mipfs.drivers import get_driver
from mipfs.errors import UsageError
from mipfs.estimators.base import FittedProblem, LinearClassifier, at_most, solve_problem
from mipfs.estimators.samples import keep_parameters, scikit_errors
from mipfs.lab.baselines.structural_svm import at_relaxation, with_intercept
from mipfs.measures import WITH_K, value
from mipfs.plumbing.arrays import Array, mask_of, scatter
from mipfs.problem import Problem
from mipfs.result.result import Result

KEEP = ("M", "all")
NEGLIGIBLE_SIGMA = 1e-6
"""What an interior point leaves of a σ of 0 is below."""
TWICE = "2P"
REFIT_GAP = 1e-9
"""Relative gap of the classifier on the selected features."""


class MeasureClassifier(LinearClassifier):
    """Linear classifier on M features, both chosen for F1 or another measure of all samples at once.

        min over σ ∈ {0,1}ᵖ, Σσ ≤ M, w  of  ½ Σ w_j²/σ_j + C max over ȳ of [Δ(ȳ) − w'a(ȳ)]₊        (Mao 2013, (5))

    Its convex relaxation is solved by two-layer cutting planes and rounded to M features, or it is solved to proven
    optimality (`driver`). More than two classes are fitted one against the rest, each with its own M features, and
    `measure_value` is the macro average over them, as in the paper's Table 2.

    Parameters
    ----------
    measure : str, default "f1"
        "error", "f1", "fbeta", "precision-at-k", "recall-at-k", "prbep", "roc-auc" or "average-precision".
    M : int >= 0 or None, default 10
        At most M features (per class). A number above p stands for p, None for no limit.
    C : float > 0, default 100
        Loss weight. Δ lies in [0, 1] and the loss is joint: with the error rate, it is that of a hinge SVM at 4C/n.
    beta : float > 0 or None, default None
        Of "fbeta".
    k : int, "2P" or None, default None
        Of "precision-at-k" and "recall-at-k"; None is the number of positives, "2P" twice as many.
    driver : str or None, default None
        None: "two_layer", the relaxation. "branch" or "gbd": the best features, with a proof.
    keep : {"M", "all"}, default "M"
        "M": M features, and the structural SVM on them. "all": every feature that the relaxation uses, with its own
        weights, which σ < 1 shrinks (FGM_multi of the paper); of the driver "two_layer" alone.
    gap : float in [0, 1), default 1e-3
        Relative gap at which the driver's problem counts as solved.
    time_limit : float or None, default 60
        Seconds per binary problem, after which what was found is kept, with its bound, and a `ConvergenceWarning`
        is given. A limit that strikes makes the outcome depend on the machine's speed; without it, the same data
        give the same bytes.
    scale : {"none", "standard", "unit"}, default "none"
        How columns are scaled before the fit; sparse data stay sparse. `coef_` is on the scale of X.
    fit_intercept : bool, default True
        An intercept, as the weight of a constant column that is always selected, does not count among the M, and whose
        weight is penalised as any other. Without it, as in the paper, f is 0 at x = 0, or at the mean with the scale
        "standard": where one class is rare, nothing may be worth selecting then.
    intercept_scaling : float > 0, default 1
        The value of the constant column (on the scaled data): the larger, the less the intercept is penalised.
    rows : sequence of mipfs.Row, (A, lb, ub), or None, default None
        Linear rows over the selection, ``lb <= A sigma <= ub`` or rows by name (``Row("not both", {"age": 1, "sex": 1},
        -inf, 1)``; a 0-based position will do for a name). They hold for the binary selection.
    forced_in, forced_out : sequence of names or 0-based positions, or None, default None
        What must be selected, and what must not.
    cost : mapping of name to float >= 0, (p,) array-like, or None, default None
    budget : float or None, default None
        Σ cost_j σ_j ≤ budget. All four hold for every class where there are more than two.
    verbose : bool or int, default False
        Whether incumbent, bound and gap are printed on standard error while it fits, twice a second at most.
    unknown : {"refuse", "none"}, default "refuse"
        What a word of a column of words is, in a prediction, that training did not see: an error, or none of the words
        that it saw, with a `DataWarning` that counts the rows.
    impute : {"median", "most frequent", "level"}, mapping of column to one of these, or None, default None
        What missing values become, as in `mipfs.read`, learnt in `fit`; of an array "median" or "most frequent". None:
        they are an error.
    types : mapping of column to kind, or None, default None
        Columns of a data frame whose text says numbers in another way, as in `mipfs.read`: "date", "currency",
        "percent", "decimal comma".

    Attributes
    ----------
    coef_ : (1, p) or (K, p) ndarray
    intercept_ : (1,) or (K,) ndarray
        That of `fit_intercept`, and what the centring leaves; zeros without both.
    classes_ : (K,) ndarray
    support_ : (p,) ndarray of bool
        The selected features, with ``keep="all"`` those with σ > 0; for more than two classes those of any class.
    result_ : Result, or list of K Results for more than two classes
    n_iter_ : int
        Iterations of the driver, the largest of all classes.
    n_features_in_ : int
    feature_names_in_ : (p,) ndarray of str, where X had names

    Notes
    -----
    The loss is joint over the samples, so there are neither sample weights nor class weights.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from mipfs import MeasureClassifier
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> model = MeasureClassifier("f1", M=3, scale="standard").fit(X, y)
    >>> int(model.support_.sum()), model.measure_value(X, y) > 0.95
    (3, True)
    """

    class_weight = None  # what the base hands on

    def __init__(
        self,
        measure: str = "f1",
        *,
        M: int | None = 10,
        C: float = 100.0,
        beta: float | None = None,
        k: int | str | None = None,
        driver: str | None = None,
        keep: str = "M",
        gap: float = 1e-3,
        time_limit: float | None = 60.0,
        scale: str = "none",
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        rows: Any = None,
        forced_in: Sequence[str | int] | None = None,
        forced_out: Sequence[str | int] | None = None,
        cost: Mapping[str, float] | Sequence[float] | None = None,
        budget: float | None = None,
        verbose: bool | int = False,
        unknown: str = "refuse",
        impute: Any = None,
        types: Mapping[str, str] | None = None,
    ) -> None:
        keep_parameters(self, locals())

    def fit(self, X: Any, y: Any) -> Self:  # type: ignore[override]  # no sample weights
        """Fit.

        Parameters
        ----------
        X : (n, p) array-like, data frame or sparse matrix
        y : (n,) array-like of class labels, at least two of them

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
            A limit stopped the driver before its gap was closed; `result_` says how large it is.
        """
        return super().fit(X, y)

    def measure_value(self, X: Any, y: Any) -> float:
        """The measure on labelled data; for more than two classes its mean over the classes (macro average).

        Parameters
        ----------
        X : (n, p) array-like, data frame or sparse matrix
        y : (n,) labels; every class must occur

        Returns
        -------
        float
            Of each class's own decision values against the rest. Larger is better, but for "error".

        Raises
        ------
        ValueError
            A label that `classes_` does not have, or a class that does not occur.
        """
        check_is_fitted(self)
        values = self.decision_function(X)
        labels = column_or_1d(y)
        if labels.size != values.shape[0]:
            raise ValueError(f"y has {labels.size} labels for {values.shape[0]} samples; give one per sample")
        unknown = ~np.isin(labels, self.classes_)
        if unknown.any():
            raise ValueError(f"y holds {labels[unknown].tolist()[0]!r}, which is none of classes_")
        classes = self.classes_[-1:] if values.ndim == 1 else self.classes_
        with scikit_errors():
            pairs = zip(classes, np.atleast_2d(values.T), strict=True)
            return float(np.mean([self._measure_value(np.where(labels == c, 1.0, -1.0), f) for c, f in pairs]))

    def _measure_value(self, y: Array, scores: Array) -> float:
        return value(self.measure, y, scores, beta=self.beta, k=self._k_of_labels(y))

    def _k_of_labels(self, y: Array) -> Any:
        """k for labels y: "2P" is twice the number of positives, at most all samples."""
        if not isinstance(self.k, str):
            return self.k
        if self.k != TWICE or self.measure not in WITH_K:
            raise UsageError(f"k = {self.k!r}; it is an integer, None or {TWICE!r}, for {' and '.join(WITH_K)} only")
        return min(2 * int(np.count_nonzero(y > 0)), y.size)

    def _fit_binary(self, data: Instance) -> FittedProblem:
        k = self._k_of_labels(data.y)
        constant = constant_of(self.fit_intercept, self.intercept_scaling)
        allowed = self._selection_parameters(data.feature_names, data.groups)
        asked: dict[str, Any] = {"beta": self.beta, "k": k}
        problem = problem_of(data, self.measure, self.M, self.C, constant, **asked, **allowed)
        check_keep(self.keep, self.driver or "two_layer")
        result, n_iter = solve_problem(problem, self.driver or "two_layer", self)
        asked["tol"] = REFIT_GAP
        if self.keep == "all":
            fitted = at_relaxation(data, sigma_of(result), problem.C, self.measure, constant, **asked)
        else:
            ids = np.sort(data.columns_of(result.selected))
            fitted = with_intercept(data, self.measure, problem.C, ids, constant, **asked)
        support, w = mask_of(data.n_features, fitted.ids), scatter(data.n_features, fitted.ids, fitted.w)
        return FittedProblem(result, support, w, fitted.b, n_iter)


def constant_of(fit_intercept: bool, intercept_scaling: float) -> float:
    """The value of the constant column whose weight is the intercept; 0 stands for none.

    Raises
    ------
    UsageError
        A scaling that is no number > 0.
    """
    if not fit_intercept:
        return 0.0
    number = isinstance(intercept_scaling, (int, float, np.number)) and not isinstance(intercept_scaling, bool)
    if not number or not 0 < intercept_scaling < math.inf:
        raise UsageError(f"intercept_scaling = {intercept_scaling!r} must be a number > 0")
    return float(intercept_scaling)


def problem_of(data: Instance, measure: str, M: Any, C: Any, constant: float, **given: Any) -> Problem:
    """The problem of a measure, with the intercept as the weight of a constant column; 0 stands for none."""
    return Problem(
        data,
        loss="structural",
        bias=constant != 0.0,
        intercept_scaling=constant or 1.0,
        M=at_most(M, data.n_features),
        C=C,
        measure=measure,
        **given,
    )


def check_keep(keep: Any, driver: str) -> None:
    """Refuse what is neither "M" nor "all", and "all" where no relaxation is solved.

    Raises
    ------
    UsageError
    """
    if keep not in KEEP:
        raise UsageError(f"keep = {keep!r} is unknown; it is 'M' or 'all'")
    if keep == "all" and get_driver(driver).CAPABILITY.is_exact:
        raise UsageError(f"keep = 'all' is what a relaxation uses, and {driver!r} solves none; leave driver out")


def sigma_of(result: Result) -> dict[str, float]:
    """σ > 0 of the relaxation of a result, by name; that of its selection where a limit left no relaxation."""
    if result.relaxed is None or "sigma" not in result.relaxed:
        return dict.fromkeys(result.selected, 1.0)
    return {name: float(part) for name, part in result.relaxed["sigma"].items() if part > NEGLIGIBLE_SIGMA}
