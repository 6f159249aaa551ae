"""PolynomialFGMClassifier: feature generation over products of features (Tan 2014, section 5.3) for scikit-learn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from mipfs.atoms.monomials import Monomials
from mipfs.atoms.pairs import Pairs
from mipfs.data.instance import Instance
from mipfs.data.linear import combined
from mipfs.data.matrix import standing
from mipfs.estimators.base import Classifier, Fitted
from mipfs.estimators.refit import refit
from mipfs.estimators.relaxation import Generation, plain_C
from mipfs.problem import Problem

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

NUMBERS = 1 << 22
"""Numbers of products that are computed at a time."""


@dataclass(frozen=True, eq=False)
class FittedTerms(Fitted):
    """One binary problem over products; `coef` (k,) are the weights of the monomials `ids` (k,) of scaled columns."""

    ids: Integers
    monomials: Monomials
    shift: Array
    divisor: Array


class PolynomialFGMClassifier(Generation, Classifier):
    """SVM on the monomials of the polynomial kernel (γ x'z + r)^degree that the convex relaxation picks (Tan 2014).

    As `FGMClassifier`, over r, √(2γr) x_j, γ x_j² and √2 γ x_j x_k: single features, squares and products. None of them
    is stored but those in play; the best ones are found exactly, out of a million million where it must be. More than
    two classes are fitted one against the rest, each with its own monomials.

    Parameters
    ----------
    M : int >= 0, default 10
        At most M monomials (per class). A number above theirs stands for it.
    gamma : float > 0, default 1
    r : float >= 0, default 1
        0 leaves out single features and the constant.
    degree : {2, 3}, default 2
    C, T, loss, bias, margin, gap, time_limit, class_weight
        As those of `FGMClassifier`.
    keep : {"M", "all"}, default "M"
        "M": the best M monomials (FGM-B). "all": every one that the relaxation uses, at most T·M.
    debias : float > 0 or None, default None
        C of a plain SVM that is refitted on the kept monomials.
    scale : {"none", "standard", "unit"}, default "none"
        How columns are scaled before they are multiplied; sparse data take "none" and "unit".

    Attributes
    ----------
    monomials_ : (m,) ndarray of str
        Names of the kept monomials, such as ``area × smoothness``; for more than two classes those of any class.
    members_ : (m, degree) ndarray of int
        The 0-based columns of each, in ascending order; -1 where one is missing.
    coef_ : (1, m) or (K, m) ndarray
        Weights of the monomials, factor included, of the scaled columns.
    intercept_ : (1,) or (K,) ndarray
    classes_ : (K,) ndarray
    support_ : (p,) ndarray of bool
        The features that stand in a kept monomial: what `transform` returns.
    result_ : Result, or list of K Results for more than two classes
    n_iter_, n_features_in_, feature_names_in_
        As those of `FGMClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from mipfs import PolynomialFGMClassifier
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(200, 20))
    >>> y = X[:, 3] * X[:, 7] > 0  # no single feature says anything
    >>> model = PolynomialFGMClassifier(M=1).fit(X, y)
    >>> model.monomials_.tolist(), bool(model.score(X, y) > 0.95)
    (['x4 × x8'], True)
    """

    def __init__(
        self,
        M: int = 10,
        *,
        gamma: float = 1.0,
        r: float = 1.0,
        degree: int = 2,
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
        class_weight: Mapping[Any, float] | str | None = None,
    ) -> None:
        self.M = M
        self.gamma = gamma
        self.r = r
        self.degree = degree
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
        self.class_weight = class_weight

    def _fit_binary(self, data: Instance) -> FittedTerms:
        atoms = Pairs(data, self.gamma, self.r, degree=self.degree)
        problem, result, n_iter = self._solved(data, atoms)
        everything = (result.relaxed or {}).get("sigma", {}) if self.keep == "all" else {}
        kept: Mapping[str, float] = everything or dict.fromkeys(result.selected, 1.0)
        named = sorted((int(g), value) for g, value in zip(problem.atoms_of([*kept]), kept.values(), strict=True))
        ids = np.array([g for g, _ in named], dtype=np.int64)
        sigma = np.array([value for _, value in named], dtype=float)
        coef, intercept = self._weights(problem, ids, sigma)
        support, members = np.zeros(data.n_features, dtype=bool), atoms.monomials.members(ids)
        support[members[members >= 0]] = True
        scaling = (atoms.monomials, data.shift, data.scale)
        return FittedTerms(result, support, coef, intercept, n_iter, atoms.names, sigma, ids, *scaling)

    def _weights(self, problem: Problem, ids: Integers, sigma: Array) -> tuple[Array, float]:
        """The SVM of (P) at σ on the kept monomials, or the plain one with the loss weight `debias`."""
        columns, every = problem.data.only(ids), np.arange(ids.size)
        if self.debias is None:
            return refit(columns, every, problem.loss, problem.C, problem.bias, sigma)
        return refit(columns, every, problem.loss, plain_C(self.debias), problem.bias)

    def _keep(self, fits: list[Any]) -> None:
        super()._keep(fits)
        first = fits[0]
        self._monomials, self._ids = first.monomials, np.unique(np.concatenate([one.ids for one in fits]))
        self._used = np.flatnonzero(self.support_)
        self._shift, self._divisor = first.shift[self._used], first.divisor[self._used]
        self.monomials_ = np.array([first.names[int(g)] for g in self._ids], dtype=object)
        self.members_ = self._monomials.members(self._ids)
        self.coef_ = np.zeros((len(fits), self._ids.size))
        for row, one in zip(self.coef_, fits, strict=True):
            row[np.searchsorted(self._ids, one.ids)] = one.coef

    def _values(self, X: Any) -> Array:
        """f of rows; of their columns only those that stand in a kept monomial are looked at."""
        values = np.empty((X.shape[0], self.coef_.shape[0]))
        step = max(1, NUMBERS // max(1, self._ids.size))
        for start in range(0, X.shape[0], step):
            part = X[start : start + step][:, self._used]
            scaled = standing(part.toarray() if sparse.issparse(part) else part, self._shift, self._divisor)
            made = self._monomials.columns(lambda ids, Z=scaled: Z[:, np.searchsorted(self._used, ids)], self._ids)
            sums = [combined(made, coef) for coef in self.coef_]
            values[start : start + step] = np.stack(sums, axis=1) + self.intercept_
        return values
