"""AdditiveFGMClassifier: feature generation over functions of single features (Tan 2014, sections 4.4 and 7.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.utils.validation import check_is_fitted, validate_data

from mipfs.atoms import registry
from mipfs.atoms.additive import Additive, lowest, scaled_by
from mipfs.data.instance import Instance
from mipfs.errors import UsageError
from mipfs.estimators.base import Classifier, Fitted
from mipfs.estimators.relaxation import Relaxation, classifier_at, kept_sigma
from mipfs.estimators.samples import scikit_errors

Array = npt.NDArray[np.float64]

MAPS = {
    "hik": "additive-hik",
    "chi2": "additive-chi2",
    "intersection": "additive-intersection",
    "jensen-shannon": "additive-jensen-shannon",
    "splines": "splines",
}


@dataclass(frozen=True, eq=False)
class FittedFunctions(Fitted):
    """One binary problem over functions: how their columns are `made`, and the `weights` of these by name."""

    made: dict[str, Any]
    weights: dict[str, float]


class AdditiveFGMClassifier(Relaxation, Classifier):
    """Additive SVM f(x) = b + Σ_j f_j(x_j) on the features that the convex relaxation picks, each with its function.

    As `FGMClassifier`, with a whole function selected for every feature. The columns that stand for a function exist
    only while the feature is scored or selected.

    Parameters
    ----------
    map : {"hik", "chi2", "intersection", "jensen-shannon", "splines"}, default "hik"
        What the functions are: of the histogram intersection kernel, exactly (piecewise linear between the training
        values); of the χ², intersection and Jensen–Shannon kernels by maps of few columns; cubic splines. All but the
        splines are for values >= 0: where X has others, every feature is counted from its least value, and new values
        below that count as it (``result_.atoms["made"]`` says so).
    map_options : mapping or None, default None
        Of the map: ``{"levels": 100}`` of "hik", ``{"steps": 3}`` of the other
        kernels, ``{"knots": 7, "degree": 3}`` of splines: see `mipfs.atoms.make`.
    M : int >= 0 or None, default 5
        At most M features (per class). A number above p stands for p, None for no limit.
    scaling : {"none", "norm"} or (p,) array-like >= 0, default "none"
        λ_j, by which the columns of a feature are multiplied: 1, or 1/√(trace of its kernel matrix), so that features
        of any unit are equally dear.
    scale : {"none", "standard", "unit"}, default "none"
        How X is scaled before the functions are made.
    C, T, loss, bias, margin, keep, debias, gap, time_limit, class_weight
    rows, forced_in, forced_out, cost, budget
        As those of `FGMClassifier`.

    Attributes
    ----------
    intercept_ : (1,) or (K,) ndarray
    classes_ : (K,) ndarray
    support_ : (p,) ndarray of bool
        The kept features; for more than two classes those of any class.
    sigma_ : (1, p) or (K, p) ndarray
        1 for the kept features; with ``keep="all"`` their σ in [0, 1].
    result_ : Result, or list of K Results for more than two classes
        See `FGMClassifier`.
    n_iter_, n_features_in_, feature_names_in_
        As those of `FGMClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from mipfs import AdditiveFGMClassifier
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> model = AdditiveFGMClassifier("splines", M=2, C=0.01, scale="standard").fit(X, y)
    >>> list(X.columns[model.support_]), model.score(X, y) > 0.92
    (['worst perimeter', 'worst concave points'], True)
    """

    def __init__(
        self,
        map: str = "hik",
        *,
        map_options: Mapping[str, Any] | None = None,
        M: int | None = 5,
        C: float = 1.0,
        T: int | None = None,
        loss: str = "squared-hinge",
        bias: bool = True,
        margin: str = "unit",
        keep: str = "M",
        debias: float | None = None,
        gap: float = 1e-3,
        time_limit: float | None = 60.0,
        scale: str = "none",
        scaling: str | npt.ArrayLike = "none",
        class_weight: Mapping[Any, float] | str | None = None,
        rows: Any = None,
        forced_in: Sequence[str | int] | None = None,
        forced_out: Sequence[str | int] | None = None,
        cost: Mapping[str, float] | Sequence[float] | None = None,
        budget: float | None = None,
    ) -> None:
        self.map = map
        self.map_options = map_options
        self.M = M
        self.C = C
        self.T = T
        self.loss = loss
        self.bias = bias
        self.margin = margin
        self.keep = keep
        self.debias = debias
        self.gap = gap
        self.time_limit = time_limit
        self.scale = scale
        self.scaling = scaling
        self.class_weight = class_weight
        self.rows = rows
        self.forced_in = forced_in
        self.forced_out = forced_out
        self.cost = cost
        self.budget = budget

    def _atoms(self, data: Instance) -> Additive:
        if self.map not in MAPS:
            raise UsageError(f"map = {self.map!r} is unknown; it is one of {', '.join(MAPS)}")
        options = dict(self.map_options or {})
        if self.map != "splines" and "shift" not in options:
            options["shift"] = bool(np.any(lowest(data) < 0.0))
        made = registry.make(MAPS[self.map], data, scaling=self.scaling, **options)
        assert isinstance(made, Additive)
        return made

    def _fit_binary(self, data: Instance) -> FittedFunctions:
        atoms = self._atoms(data)
        problem, result, n_iter = self._solved(data, atoms, **self._allowed(atoms.names))
        sigma = kept_sigma(problem, result, everything=self.keep == "all")
        coef, intercept = classifier_at(problem, sigma, self.debias)
        names = problem.data.feature_names
        weights = {names[k]: float(coef[k]) for k in np.flatnonzero(coef).tolist()}
        made = atoms.made(np.flatnonzero(sigma))
        return FittedFunctions(result, sigma > 0, coef, intercept, n_iter, atoms.names, sigma, made, weights)

    def _keep(self, fits: list[Any]) -> None:
        super()._keep(fits)
        self._functions = [(fitted.made, fitted.weights) for fitted in fits]

    def contributions(self, X: Any, k: int = 0) -> Array:
        """f_j(x_j) of every row and feature, (n, p); 0 for features that are not kept.

        Parameters
        ----------
        X : (n, p) array-like, data frame or sparse matrix
        k : int, default 0
            Of more than two classes the one that is meant, by its position in ``classes_``.
        """
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csc", dtype=np.float64, reset=False)
        made, weights = self._functions[k]
        found = np.zeros(X.shape)
        with scikit_errors():
            for name, one in made["features"].items():
                alone = {**made, "features": {name: one}}
                found[:, one["column"]] = registry.decision(alone, weights, {name: _column(X, one)})
        return found

    def _values(self, X: Any) -> Array:
        X = X.tocsc() if sparse.issparse(X) else X
        values = np.empty((X.shape[0], len(self._functions)))
        with scikit_errors():
            for k, (made, weights) in enumerate(self._functions):
                columns = {name: _column(X, one) for name, one in made["features"].items()}
                values[:, k] = self.intercept_[k]
                if columns:
                    values[:, k] += registry.decision(made, weights, columns)
        return values


def _column(X: Any, place: Mapping[str, Any]) -> Array:
    """A column of a matrix, (n,), as the scaled training data has it."""
    j = place["column"]
    return scaled_by(place, np.asarray(X[:, [j]].toarray().ravel() if sparse.issparse(X) else X[:, j], dtype=float))
