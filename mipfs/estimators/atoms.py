"""What an estimator is asked to select, and the classifier on what a run selected of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted, validate_data

from mipfs.atoms import Atoms, registry
from mipfs.atoms.additive import Additive, scaled_by
from mipfs.atoms.features import Features
from mipfs.atoms.made import Made as Computed
from mipfs.atoms.monomials import Monomials
from mipfs.atoms.pairs import Pairs
from mipfs.data.bounds import WeightBounds
from mipfs.data.instance import Instance
from mipfs.data.linear import combine_columns
from mipfs.data.matrix import scaled_user_values
from mipfs.data.ranges import LARGEST_C, LEAST_C
from mipfs.errors import UsageError
from mipfs.estimators.base import FittedProblem, LinearClassifier, SupportSelector, stack_rows
from mipfs.estimators.refit import refit, refit_bounded, refit_in_rows
from mipfs.estimators.samples import scikit_errors
from mipfs.estimators.signs import signs
from mipfs.plumbing.arrays import Array, Integers, mask_of, scatter
from mipfs.plumbing.declared import NumberRange, Positive, check_value
from mipfs.problem import Problem
from mipfs.result.result import Result

Weight = Annotated[float, NumberRange(LEAST_C, LARGEST_C)]
GroupLists = Mapping[str, Sequence[str | int]] | Sequence[Sequence[str | int]]
MANY = 1 << 24
"""Atoms from which on they are too many for rows over all of them."""
NUMBERS = 1 << 22
"""Numbers of products that are computed at a time."""


def atoms_of(given: Any, options: Mapping[str, Any] | None, data: Instance) -> Atoms:
    """What may be selected of an instance.

    Parameters
    ----------
    given : str, a name of `mipfs.atoms.registry`; Atoms, made on data with the same features; or None: single features
    options : mapping or None
        Of the atoms of that name; ``groups`` of "groups" may be any that `named_groups` takes.
    data : Instance

    Raises
    ------
    UsageError
        Neither, or options of none.
    """
    options = dict(check_value("atom_options", options, Mapping[str, Any] | None) or {})
    if isinstance(given, str):
        if given in ("groups", "tree") and "groups" in options:
            options["groups"] = named_groups(options["groups"], data.feature_names)
        return registry.make(given, data, **options)
    if options:
        raise UsageError("atom_options are for atoms that are given by their name")
    if given is None:
        return Features(data)
    if not hasattr(given, "columns") or not hasattr(given, "on"):
        raise UsageError(f"atoms = {given!r} must be a name ({', '.join(registry.KINDS)}) or atoms that were made")
    made: Atoms = given.on(data)
    if isinstance(made, Computed):
        name = type(made).__name__
        raise UsageError(f"atoms = {name}: its columns of new rows are the caller's; solve a Problem over it")
    return made


def named_groups(groups: Any, feature_names: Sequence[str]) -> Mapping[str, Sequence[str | int]]:
    """Any of the ways to give groups as a mapping of name to features.

    Parameters
    ----------
    groups : mapping, sequence of sequences, (p,) array-like of labels, or None
    feature_names : (p,)

    Raises
    ------
    UsageError
        No groups, or labels that are not p.
    """
    if groups is None:
        return {name: (j,) for j, name in enumerate(feature_names)}
    if isinstance(groups, Mapping):
        return {str(name): _list_members(members) for name, members in groups.items()}
    listed = [*check_value("groups", groups, Sequence[Any])]
    if listed and all(isinstance(members, (list, tuple, set, np.ndarray)) for members in listed):
        return {f"group{g + 1}": _list_members(members) for g, members in enumerate(listed)}
    if len(listed) != len(feature_names):
        raise UsageError(
            f"groups has {len(listed)} labels for {len(feature_names)} features; give one per feature, or lists"
        )
    members: dict[str, list[str | int]] = {}
    for j, label in enumerate(listed):
        members.setdefault(str(label), []).append(j)
    return members


def _list_members(members: Any) -> Any:
    """Members in a list; a set in a fixed order, so that the same groups give the same bytes."""
    return members if isinstance(members, str) else sorted(members) if isinstance(members, set) else list(members)


class AtomFunction(ABC):
    """f of one binary problem, without its intercept, where it is no sum over columns of X."""

    @abstractmethod
    def values(self, X: Any) -> Array:
        """Of rows (n, p), dense or CSR, (n,)."""


@dataclass(frozen=True, eq=False)
class Functions(AtomFunction):
    """Functions of single features: how their columns are `made`, and the `weights` of these by name."""

    made: dict[str, Any]
    weights: dict[str, float]

    def values(self, X: Any) -> Array:
        """Of rows (n, p), dense or CSR, (n,)."""
        X = X.tocsc() if sparse.issparse(X) else X
        columns = {name: _scaled_column(X, one) for name, one in self.made["features"].items()}
        return registry.decision(self.made, self.weights, columns) if columns else np.zeros(X.shape[0])

    def contributions(self, X: Any) -> Array:
        """f_j(x_j) of every row and feature, (n, p)."""
        found = np.zeros(X.shape)
        for name, one in self.made["features"].items():
            alone = {**self.made, "features": {name: one}}
            found[:, one["column"]] = registry.decision(alone, self.weights, {name: _scaled_column(X, one)})
        return found


@dataclass(frozen=True, eq=False)
class MonomialTerms(AtomFunction):
    """Monomials `ids` (k,) with weights `coef` (k,), of columns that are shifted and divided, (p,) each."""

    monomials: Monomials
    ids: Integers
    coef: Array
    shift: Array
    divisor: Array

    def values(self, X: Any) -> Array:
        """Of rows (n, p), dense or CSR, (n,); of their columns only those of a monomial are looked at."""
        members = self.monomials.members(self.ids)
        used, values = np.unique(members[members >= 0]), np.empty(X.shape[0])
        step = max(1, NUMBERS // max(1, self.ids.size))
        for start in range(0, X.shape[0], step):
            part = X[start : start + step][:, used]
            Z = scaled_user_values(
                part.toarray() if sparse.issparse(part) else part, self.shift[used], self.divisor[used]
            )
            columns = self.monomials.columns(lambda ids, Z=Z: Z[:, np.searchsorted(used, ids)], self.ids)
            values[start : start + step] = combine_columns(columns, self.coef)
        return values


@dataclass(frozen=True, eq=False)
class FittedAtoms(FittedProblem):
    """One binary problem over atoms, solved.

    Attributes
    ----------
    ids, sigma : (k,) positions of the kept atoms, ascending, and their σ > 0
    names : (count,) of all atoms
    made : AtomFunction, or None where `coef` (p,) says all: it is empty otherwise
    """

    ids: Integers
    sigma: Array
    names: Sequence[str]
    made: AtomFunction | None


def kept_atoms(problem: Problem, result: Result, everything: bool) -> tuple[Integers, Array]:
    """The atoms that an estimator keeps, ascending, and their σ: 1 for those selected, or all with their relaxed σ."""
    relaxed: Mapping[str, float] = (result.relaxed or {}).get("sigma", {}) if everything else {}
    values = relaxed or dict.fromkeys(result.selected, 1.0)
    ids = np.asarray(problem.atoms_of([*values]), dtype=np.int64)
    order = np.argsort(ids)
    return ids[order], np.array([*values.values()], dtype=float)[order]


def fitted_atoms(
    problem: Problem, outcome: tuple[Result, int], *, everything: bool, debias: Any = None, classifier: bool = True
) -> FittedAtoms:
    """What an estimator keeps of a run.

    Parameters
    ----------
    problem : Problem
    outcome : (Result, iterations)
    everything : bool, whether all atoms that the relaxation uses are kept
    debias : float > 0 or None
        The SVM of (P) at σ, or the plain one on its columns with this loss weight (Tan 2014).
    classifier : bool, whether there is one to fit

    Raises
    ------
    UsageError
        A `debias` that is no positive number.
    """
    result, n_iter = outcome
    atoms = problem.atoms
    (ids, sigma) = kept_atoms(problem, result, everything)
    used, w, b = _svm_of_atoms(problem, ids, sigma, debias) if classifier else (ids[:0], np.zeros(0), 0.0)
    support = ids
    coef = np.zeros(0)
    made: AtomFunction | None = None
    p = problem.data.n_features
    if isinstance(atoms, Pairs):
        raw = atoms.base
        p = atoms.base.n_features
        members = atoms.monomials.members(ids)
        support = members[members >= 0]
        made = MonomialTerms(atoms.monomials, ids, w, raw.shift, raw.scale)
    elif isinstance(atoms, Additive):
        p = atoms.count
        columns = problem.data.feature_names
        kept_weights = {columns[k]: value for k, value in zip(used.tolist(), w.tolist(), strict=True) if value}
        made = Functions(atoms.made(ids), kept_weights)
    else:
        support = atoms.columns(ids).ids
        coef = scatter(p, used, w)
    mask = mask_of(p, support)
    return FittedAtoms(result, mask, coef, b, n_iter, ids, sigma, atoms.names, made)


def _svm_of_atoms(problem: Problem, ids: Integers, sigma: Array, debias: Any) -> tuple[Integers, Array, float]:
    """The columns of atoms, the weights of these on the user's scale, and the intercept."""
    columns = problem.atoms.columns(ids)
    C = problem.C
    chosen = columns.ids
    perspective = sigma[columns.atom] * np.square(columns.scale)
    if debias is not None:
        check_value("debias", check_value("debias", debias, Positive), Weight)
    if problem.weight_rows:
        return refit_in_rows(problem, ids, sigma, debias=debias)
    if problem.weight_bounds:
        return refit_bounded(problem, chosen, perspective, debias=debias)
    if debias is not None:
        C = float(debias)
        chosen = np.unique(columns.ids)
        perspective = np.ones(0)
    plain = None if np.all(perspective == 1.0) else perspective
    if isinstance(problem.atoms, Pairs):  # too many to hold a number of each
        _, w, b = refit(problem.data.only(chosen), np.arange(chosen.size), problem.loss, C, problem.bias, plain)
        return chosen, w, b
    return refit(problem.data, chosen, problem.loss, C, problem.bias, plain)


class AtomSelector(SupportSelector):
    """Base of the estimators that select atoms of a kind that is given."""

    atoms: Any = None
    atom_options: Any = None
    monotonic_cst: Any = None
    positive: Any = False

    def _make_atoms(self, data: Instance) -> Atoms:
        return atoms_of(self.atoms, self.atom_options, data)

    def _sign_bounds(self, data: Instance, atoms: Atoms) -> WeightBounds:
        """The bounds on the weights that the asked signs are."""
        found = signs(self.monotonic_cst, self.positive, data, self.classes_)
        if found and atoms.kind not in ("features", "groups"):
            what = "positive=True is" if self.positive else "monotonic_cst is"
            raise UsageError(f"{what} about weights of features or groups, not of {atoms.kind}; leave it or atoms out")
        return found

    def _selection_parameters(self, names: Sequence[str], groups: Mapping[str, Sequence[str]]) -> dict[str, Any]:
        if len(names) > MANY and any(
            given is not None for given in (self.rows, self.forced_in, self.forced_out, self.cost, self.budget)
        ):
            raise UsageError("rows, forced_in, forced_out, cost and budget are for fewer atoms; give M alone")
        return super()._selection_parameters(names, groups)

    def _store_fits(self, fits: list[Any]) -> None:
        super()._store_fits(fits)
        every = np.unique(np.concatenate([one.ids for one in fits]))
        self.atoms_ = np.array([fits[0].names[int(g)] for g in every], dtype=object)


class AtomClassifier(AtomSelector, LinearClassifier):
    """Base of the classifiers among them: linear, unless the atoms are functions or products of features."""

    def _store_fits(self, fits: list[Any]) -> None:
        self._made: list[Any] = [one.made for one in fits]
        super()._store_fits(fits)
        if self._made[0] is not None:
            del self.coef_

    def _scores_of_classes(self, X: Any) -> Array:
        if self._made[0] is None:
            return super()._scores_of_classes(X)
        with scikit_errors():
            values: Array = np.stack([one.values(X) for one in self._made], axis=1) + self.intercept_
        return values

    def contributions(self, X: Any, k: int = 0) -> Array:
        """f_j(x_j) of every row and feature, (n, p), where functions of features are selected; 0 for what is not kept.

        Parameters
        ----------
        X : (n, p) array-like, data frame or sparse matrix
        k : int, default 0
            Of more than two classes the one that is meant, by its position in ``classes_``.

        Raises
        ------
        ValueError
            The atoms are no functions of single features, or values that the functions are not for.
        """
        check_is_fitted(self)
        with scikit_errors():
            X = self._in_features(X)
        X = validate_data(self._in_columns(), X, accept_sparse="csc", dtype=np.float64, reset=False)
        if not isinstance(self._made[k], Functions):
            raise ValueError("contributions are of functions of single features, such as atoms='splines'")
        with scikit_errors():
            found: Array = self._made[k].contributions(X)
        return found


def sigma_rows(fits: Sequence[FittedAtoms]) -> Array:
    """σ of all atoms, a row per binary problem (K, count)."""
    rows = [np.zeros(len(one.names)) for one in fits]
    for row, one in zip(rows, fits, strict=True):
        row[one.ids] = one.sigma
    return stack_rows(rows)


def _scaled_column(X: Any, place: Mapping[str, Any]) -> Array:
    """A column of a matrix, (n,), as the scaled training data has it."""
    j = place["column"]
    return scaled_by(place, np.asarray(X[:, [j]].toarray().ravel() if sparse.issparse(X) else X[:, j], dtype=float))
