"""FGMClassifier for a kind of atoms each, with the parameters of that kind: groups, functions, products of features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs.atoms import Atoms
from mipfs.atoms.additive import feature_minima
from mipfs.data.instance import Instance
from mipfs.errors import UsageError
from mipfs.estimators.atoms import GroupLists, MonomialTerms, atoms_of
from mipfs.estimators.relaxation import RelaxationClassifier
from mipfs.estimators.samples import keep_parameters

MAPS = {
    "hik": "additive-hik",
    "chi2": "additive-chi2",
    "intersection": "additive-intersection",
    "jensen-shannon": "additive-jensen-shannon",
    "gaussian": "additive-gaussian",
    "splines": "splines",
}
ANY_VALUES = ("gaussian", "splines")
"""Maps of values of any sign."""


class GroupFGMClassifier(RelaxationClassifier):
    """Linear SVM on the groups of features that the convex relaxation picks (Tan 2014).

    ``FGMClassifier(atoms="groups")`` by another name. A feature in two selected groups has the sum of two weights, each
    penalised on its own.

    Parameters
    ----------
    groups : mapping, list of lists, (p,) array-like of labels, or None
        A mapping of name to features (names or 0-based positions); a list of such lists, called group1, group2, ...;
        or one label per feature, equal ones a group. A feature in no group is never selected. None: every feature
        alone.
    M : int >= 0 or None, default 5
        At most M groups (per class). A number above the number of groups stands for it, None for no limit.
    scaling : {"none", "norm"} or (G,) array-like >= 0, default "none"
        λ_g, by which the columns of a group are multiplied: 1, or 1/‖X_g‖ so that large groups are no cheaper.
    C, T, eps_c, eps_apg, loss, bias, margin, keep, debias, gap, time_limit, scale, class_weight
    rows, forced_in, forced_out, cost, budget
        As those of `FGMClassifier`; the last five are about groups, by name (``groups_``) or position.
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
    groups_ : tuple of G str
        Names of the groups.
    sigma_ : (1, G) or (K, G) ndarray
        1 for the kept groups; with ``keep="all"`` their σ in [0, 1].
    group_support_ : (G,) ndarray of bool
        The kept groups; for more than two classes those of any class.
    support_ : (p,) ndarray of bool
        The features of these groups.
    coef_, intercept_, classes_, result_, n_iter_, n_features_in_, feature_names_in_
        As those of `FGMClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from mipfs import GroupFGMClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> kinds = ["mean"] * 10 + ["error"] * 10 + ["worst"] * 10
    >>> model = GroupFGMClassifier(kinds, M=1, C=0.01, scale="standard").fit(X, y)
    >>> [name for name, kept in zip(model.groups_, model.group_support_) if kept]
    ['worst']
    """

    def __init__(
        self,
        groups: GroupLists | npt.ArrayLike | None = None,
        *,
        M: int | None = 5,
        C: float = 1.0,
        T: int | None = None,
        eps_c: float | None = None,
        eps_apg: float | None = None,
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
        verbose: bool | int = False,
        unknown: str = "refuse",
        impute: Any = None,
        types: Mapping[str, str] | None = None,
    ) -> None:
        keep_parameters(self, locals())

    def _make_atoms(self, data: Instance) -> Atoms:
        return atoms_of("groups", {"groups": self.groups, "scaling": self.scaling}, data)

    def _store_fits(self, fits: list[Any]) -> None:
        super()._store_fits(fits)
        self.groups_ = tuple(fits[0].names)
        self.group_support_ = np.any(self.sigma_ > 0, axis=0)


class AdditiveFGMClassifier(RelaxationClassifier):
    """Additive SVM f(x) = b + Σ_j f_j(x_j) on the features that the convex relaxation picks, each with its function.

    ``FGMClassifier(atoms="splines")`` and the like by another name. The columns that stand for a function exist
    only while the feature is scored or selected.

    Parameters
    ----------
    map : {"hik", "chi2", "intersection", "jensen-shannon", "gaussian", "splines"}, default "hik"
        What the functions are: of the histogram intersection kernel, exactly (piecewise linear between the training
        values); of the χ², intersection, Jensen–Shannon and Gaussian kernels by maps of few columns; cubic splines. All
        but the last two are for values >= 0: where X has others, every feature is counted from its least value, and
        new values below that count as it (``result_.atoms["made"]`` says so).
    map_options : mapping or None, default None
        Of the map: ``{"levels": 100, "beta": 0.5, "absolute": True}`` of "hik", ``{"pairs": 5, "width": 1.0}`` of
        "gaussian", with a ``"seed"`` random features, ``{"steps": 3}`` of the other kernels, ``{"knots": 7, "degree":
        3}`` of splines: see `mipfs.atoms.make`.
    M : int >= 0 or None, default 5
        At most M features (per class). A number above p stands for p, None for no limit.
    scaling : {"none", "norm"} or (p,) array-like >= 0, default "none"
        λ_j, by which the columns of a feature are multiplied: 1, or 1/√(trace of its kernel matrix), so that features
        of any unit are equally dear.
    scale : {"none", "standard", "unit"}, default "none"
        How X is scaled before the functions are made.
    C, T, eps_c, eps_apg, loss, bias, margin, keep, debias, gap, time_limit, class_weight
    rows, forced_in, forced_out, cost, budget
        As those of `FGMClassifier`.
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
        eps_c: float | None = None,
        eps_apg: float | None = None,
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
        verbose: bool | int = False,
        unknown: str = "refuse",
        impute: Any = None,
        types: Mapping[str, str] | None = None,
    ) -> None:
        keep_parameters(self, locals())

    def _make_atoms(self, data: Instance) -> Atoms:
        if self.map not in MAPS:
            raise UsageError(f"map = {self.map!r} is unknown; it is one of {', '.join(MAPS)}")
        options = {"scaling": self.scaling, **dict(self.map_options or {})}
        if self.map not in ANY_VALUES and "shift" not in options and not options.get("absolute"):
            options["shift"] = bool(np.any(feature_minima(data) < 0.0))
        return atoms_of(MAPS[self.map], options, data)


class PolynomialFGMClassifier(RelaxationClassifier):
    """SVM on the monomials of the polynomial kernel (γ x'z + r)^degree that the convex relaxation picks (Tan 2014).

    ``FGMClassifier(atoms="pairs")`` by another name: over r, √(2γr) x_j, γ x_j² and √2 γ x_j x_k: single features,
    squares and products. None of them is stored but those in play; the best ones are found exactly, out of a million
    million where it must be. More than two classes are fitted one against the rest, each with its own monomials.

    Parameters
    ----------
    M : int >= 0, default 10
        At most M monomials (per class). A number above theirs stands for it.
    gamma : float > 0, default 1
    r : float >= 0, default 1
        0 leaves out single features and the constant.
    degree : {2, 3}, default 2
    C, T, eps_c, eps_apg, loss, bias, margin, gap, time_limit, class_weight
        As those of `FGMClassifier`.
    keep : {"M", "all"}, default "M"
        "M": the best M monomials (FGM-B). "all": every one that the relaxation uses, at most T·M.
    debias : float > 0 or None, default None
        C of a plain SVM that is refitted on the kept monomials.
    scale : {"none", "standard", "unit"}, default "none"
        How columns are scaled before they are multiplied; sparse data take "none" and "unit".
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

    rows = forced_in = forced_out = cost = budget = None  # M is the only condition on products

    def __init__(
        self,
        M: int = 10,
        *,
        gamma: float = 1.0,
        r: float = 1.0,
        degree: int = 2,
        C: float = 1.0,
        T: int | None = None,
        eps_c: float | None = None,
        eps_apg: float | None = None,
        loss: str = "squared-hinge",
        bias: bool = True,
        margin: str = "unit",
        keep: str = "M",
        debias: float | None = None,
        gap: float = 1e-3,
        time_limit: float | None = 60.0,
        scale: str = "none",
        class_weight: Mapping[Any, float] | str | None = None,
        verbose: bool | int = False,
        unknown: str = "refuse",
        impute: Any = None,
        types: Mapping[str, str] | None = None,
    ) -> None:
        keep_parameters(self, locals())

    def _make_atoms(self, data: Instance) -> Atoms:
        return atoms_of("pairs", {"gamma": self.gamma, "r": self.r, "degree": self.degree}, data)

    def _store_fits(self, fits: list[Any]) -> None:
        super()._store_fits(fits)
        terms: list[MonomialTerms] = self._made
        ids = np.unique(np.concatenate([one.ids for one in terms]))
        self.monomials_ = self.atoms_
        self.members_ = terms[0].monomials.members(ids)
        self.coef_ = np.zeros((len(terms), ids.size))
        for row, one in zip(self.coef_, terms, strict=True):
            row[np.searchsorted(ids, one.ids)] = one.coef
