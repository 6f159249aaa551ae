"""What the conic programs of `mipfs.models` have in common, declared in CVXPY: losses, dual sets, the rows of S.

Also here: what a CVXPY formulation was when it was declared, and whether it is still that but for constraints that
were added.

The variables of a declared program carry the mark: it survives ``dataclasses.replace``, a new ``cvxpy.Problem`` of
the same parts, a new `Formulation` around it, copies and pickles.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import cvxpy
import numpy as np
import numpy.typing as npt
from scipy import sparse

from mipfs.errors import RowError
from mipfs.formulation.program import ClassifierPoint, Formulation, shared_values
from mipfs.losses import get_loss
from mipfs.plumbing.arrays import Array
from mipfs.problem import Problem

MARK = "_mipfs_built"
Values = Callable[[Problem, ClassifierPoint], Mapping[str, Any]]
"""What of a formulation's variables a classifier gives, by name."""


class Sigma(cvxpy.Variable):
    """σ of a formulation; ``sigma["name"]`` and ``sigma[["name", "name"]]`` are its entries by name.

    Where the program is a dual one, σ is no variable of it but a multiplier: its `value` is then
    ``matrix @ (dual value of row)``. Constraints over it are rows of the selection all the same.

    Parameters
    ----------
    problem : Problem
    row : cvxpy constraint, optional
    matrix : (count, k) matrix, optional
    boolean : bool
    """

    def __init__(self, problem: Problem, row: Any = None, matrix: Any = None, *, boolean: bool = False) -> None:
        self._problem = problem
        self._row = row
        self._matrix = matrix
        self._loaded = (None, None)
        super().__init__(problem.atoms.count, name="sigma", boolean=boolean)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            return super().__getitem__(int(self._problem.atoms_of([key])[0]))
        if isinstance(key, (list, tuple)) and key and all(isinstance(name, str) for name in key):
            return super().__getitem__(self._problem.atoms_of(list(key)))
        return super().__getitem__(key)

    def copy(self, args: Any = None, id_objects: Any = None) -> Any:
        """Itself, or what takes its place; CVXPY asks for it where it makes a solver's form of a program.

        Raises
        ------
        RowError
            It is a multiplier: a constraint over it would bind nothing.
        """
        if self.is_multiplier and not (id_objects and id(self) in id_objects):
            raise RowError(
                "sigma is a multiplier of this dual program, in which a constraint over it binds nothing; add it by "
                "formulation.with_constraints([...]), which declares the program anew, and solve that one's cvxpy"
            )
        return super().copy(args, id_objects)  # type: ignore[no-untyped-call]

    @property
    def is_multiplier(self) -> bool:
        """Whether the program is a dual one, whose multiplier it is."""
        return self._row is not None

    @property
    def names(self) -> Sequence[str]:
        """The names of its entries."""
        return self._problem.atoms.names

    @property
    def value(self) -> Any:
        """σ after a solve."""
        if self._row is None:
            return super().value
        dual = self._row.dual_value
        if self._loaded[0] is not None and self._loaded[1] is self._row.dual_variables[0].value:
            return self._loaded[0]
        return None if dual is None else self._matrix @ dual.ravel()

    @value.setter
    def value(self, value: Any) -> None:
        if self._row is None:
            self.save_value(value)
        else:  # until the program is solved again
            self._loaded = (value, self._row.dual_variables[0].value)


class ConstraintList(list[Any]):
    """The constraints of a declared program; of CVXPY's own list a copy grows, and that would pass a row over."""

    def append(self, _: Any) -> None:
        """Refused, as are its like: `RowError`."""
        raise RowError(
            "the list of constraints of a declared program does not grow; add rows by "
            "formulation.with_constraints([...]), which returns a formulation that has them"
        )

    def extend(self, _: Any) -> None:
        """As `append`."""
        self.append(_)

    def insert(self, _: Any, constraint: Any) -> None:
        """As `append`."""
        self.append(constraint)

    def __iadd__(self, other: Any) -> Self:  # type: ignore[misc]
        self.append(other)
        return self


class DeclaredProgram(cvxpy.Problem):
    """The program of a formulation of the package."""

    @property
    def constraints(self) -> list[Any]:
        """The constraints, a list that does not grow."""
        return ConstraintList(super().constraints)


@dataclass(frozen=True, eq=False)
class BuiltFormulation:
    """A formulation as it was declared.

    Attributes
    ----------
    name : str, its name in the table of formulations
    declare : callable, declares it anew of another problem
    values : callable, what of its variables a classifier gives
    formulation : Formulation
    objective : tuple of the kind of the objective and its expression
    constraints : tuple of (constraint, its arguments)
    variables : frozenset of int, the ids of the program's variables and of σ
    origin : tuple of (Formulation, constraints), or None
        Of a program that was declared anew: the one before, and the rows that were added to it.
    extras : tuple of (variable, int), the user's own entries that are the last extra variables of its problem
    extra_cost : cvxpy expression, or None
        What these cost, of a program that was declared anew with it.
    """

    name: str
    declare: Callable[[Problem], Formulation]
    values: Values
    formulation: Formulation
    objective: tuple[type, Any]
    constraints: tuple[tuple[Any, tuple[Any, ...]], ...]
    variables: frozenset[int]
    origin: tuple[Formulation, tuple[Any, ...]] | None = None
    extras: tuple[tuple[Any, int], ...] = ()
    extra_cost: Any = None


def attach(
    declared: Formulation, name: str, declare: Callable[[Problem], Formulation], values: Values = shared_values
) -> Formulation:
    """Remember what a formulation is; returns it, with a program whose constraints are given.

    Parameters
    ----------
    declared : Formulation
    name : str, of the table of formulations
    declare : callable, declares the same formulation of another problem; to be pickled, so no lambda
    values : callable, its variables' values at a `ClassifierPoint`, by their names in ``variables``; likewise
    """
    program = DeclaredProgram(declared.cvxpy.objective, list(declared.cvxpy.constraints))
    declared = replace(declared, cvxpy=program)
    variables = [*program.variables(), *_expression_leaves(declared.sigma)]
    constraints = tuple((one, tuple(one.args)) for one in program.constraints)
    goal: Any = program.objective
    objective = type(goal), goal.args[0]
    built = BuiltFormulation(
        name, declare, values, declared, objective, constraints, frozenset(v.id for v in variables)
    )
    for variable in variables:
        setattr(variable, MARK, built)
    return declared


def remember_origin(
    declared: Formulation,
    origin: tuple[Formulation, tuple[Any, ...]],
    extras: tuple[tuple[Any, int], ...],
    extra_cost: Any = None,
) -> Formulation:
    """Remember what a formulation was declared anew of; returns it."""
    built = built_of(declared)
    assert built is not None
    built = replace(built, origin=origin, extras=extras, extra_cost=extra_cost)
    for variable in [*declared.cvxpy.variables(), *_expression_leaves(declared.sigma)]:
        setattr(variable, MARK, built)
    return declared


def built_of(formulation: Formulation) -> BuiltFormulation | None:
    """What a formulation of the package was when it was declared; None for a program of a user's own."""
    variables = [*_expression_leaves(formulation.sigma), *formulation.cvxpy.variables()] if formulation.cvxpy else []
    found = {id(getattr(v, MARK)): getattr(v, MARK) for v in variables if hasattr(v, MARK)}
    if len(found) > 1:
        names = " and ".join(sorted(built.name for built in found.values()))
        raise RowError(f"the program mixes variables of two formulations ({names}); declare them apart")
    return next(iter(found.values()), None)


def added_constraints(formulation: Formulation, built: BuiltFormulation) -> list[Any]:
    """The constraints that were added since a formulation was declared; its objective is read apart.

    Raises
    ------
    RowError
        Anything else was changed; the message names it.
    """
    before = built.formulation
    program = formulation.cvxpy
    for name in ("problem", "sigma", "solver", "lagrangian", "is_relaxation"):
        if getattr(formulation, name) is not getattr(before, name) and formulation is not before:
            if name in ("solver", "lagrangian", "is_relaxation") and _is_default(formulation, name):
                continue  # a new Formulation around the same program need not repeat them
            raise RowError(f"the {name} of {built.name} was changed; {_REMEDY}")
    now = {id(one): one for one in program.constraints}
    for one, arguments in built.constraints:
        if id(one) not in now:
            raise RowError(f"the constraint {text_of(one)!r} of {built.name} was dropped; {_REMEDY}")
        if len(one.args) != len(arguments) or any(a is not b for a, b in zip(one.args, arguments, strict=True)):
            raise RowError(f"the constraint {text_of(one)!r} of {built.name} was changed; {_REMEDY}")
    old = {id(one) for one, _ in built.constraints}
    return [one for key, one in now.items() if key not in old]


_REMEDY = "only constraints over sigma and variables of your own may be added"


def text_of(constraint: Any, width: int = 60) -> str:
    """A constraint in one short line: its label, or what it says."""
    label = getattr(constraint, "label", None)
    said = label or (constraint.name() if hasattr(constraint, "name") else repr(constraint))
    text = " ".join(str(said).split())
    return text if len(text) <= width else f"{text[: width - 1]}…"


def _is_default(formulation: Formulation, name: str) -> bool:
    return bool(getattr(formulation, name) == type(formulation).__dataclass_fields__[name].default)


def _expression_leaves(expression: Any) -> Iterator[Any]:
    if isinstance(expression, cvxpy.Expression):
        yield from expression.variables()


class _Cvxpy:
    """CVXPY, loaded when a program is declared: a million-feature problem of the same page never needs it."""

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module("cvxpy"), name)


cp: Any = _Cvxpy()


@dataclass(frozen=True, eq=False)
class Multiplier:
    """A dual variable, which stands where a variable of the program does: its `value` is there after a solve.

    Attributes
    ----------
    row : cvxpy constraint of k entries
    matrix : (m, k) matrix or None
        The value is ``matrix @ (dual variable of row)``.
    """

    row: Any
    matrix: Any = None

    @property
    def value(self) -> Array | None:
        """What the solver found, None before it did."""
        dual = self.row.dual_value
        if dual is None:
            return None
        flat = np.asarray(dual, dtype=float).ravel()
        return flat if self.matrix is None else np.asarray(self.matrix @ flat)


@dataclass(frozen=True, eq=False)
class DeclaredLoss:
    """The loss of (P) at a classifier.

    Attributes
    ----------
    value : cvxpy expression, L
    xi : cvxpy variable of shape (n,), the slacks
    rows : list of cvxpy constraints
    alpha : Multiplier of the margins, α of (P), in the ρ-form times ρ
    margin : mapping, {"rho": the variable ρ} in the ρ-form
    """

    value: Any
    xi: Any
    rows: list[Any]
    alpha: Multiplier
    margin: dict[str, Any]


def loss_of(problem: Problem, scores: Any, *, rho: bool = False, C: Any = None) -> DeclaredLoss:
    """L of the values f(x_i) = w'x_i + b: slacks with y_i f(x_i) + ξ_i ≥ 1 (≥ 0 for the logistic loss).

    Parameters
    ----------
    problem : Problem
    scores : cvxpy expression of shape (n,)
    rho : bool
        Declare the ρ-form where the problem asks for it: y_i f(x_i) + ξ_i ≥ ρ, and −ρ in the objective (Tan 2010, (1)).
        What else stands in the program must scale with w, or the two forms differ.
    C : cvxpy.Parameter, optional
        In place of the problem's number.
    """
    c_i = problem.c_i if C is None else problem.sample_weight
    factor = 1.0 if C is None else C
    if rho and problem.margin == "rho":
        target = cp.Variable(name="rho")
        value, xi, rows = declare_loss(problem.loss, problem.data.y, c_i, scores, target)
        return DeclaredLoss(factor * value - target, xi, rows, Multiplier(rows[0]), {"rho": target})
    value, xi, rows = declare_loss(problem.loss, problem.data.y, c_i, scores)
    return DeclaredLoss(value if C is None else factor * value, xi, rows, Multiplier(rows[0]), {})


def declare_loss(loss: str, y: Array, c_i: Array, scores: Any, rho: Any = None) -> tuple[Any, Any, list[Any]]:
    """Σ C_i ℓ as a convex expression in slacks ξ, the variable ξ, and the rows y∘scores + ξ ≥ target (or ρ), ξ ≥ 0."""
    kind = get_loss(loss)
    xi = cp.Variable(y.size, name="xi")
    rows = [cp.multiply(y, scores) + xi >= (kind.target if rho is None else rho)]
    if kind.says_sign:
        rows.append(xi >= 0)
    return kind.conic(cp, xi, c_i), xi, rows


def bias_of(problem: Problem) -> Any:
    """b, a free variable or the constant 0."""
    return cp.Variable(name="b") if problem.bias else cp.Constant(0.0)


@dataclass(frozen=True, eq=False)
class AtomDesign:
    """The columns that atoms use, times their λ; of single features the columns of X themselves.

    Attributes
    ----------
    X : (n, k) matrix, not centred
    center : (k,) ndarray
    atom : (k,) ndarray of int, position of the atom that a column belongs to
    to_features : (p, k) sparse matrix: weights of these columns to weights of the predictor
    """

    X: Any
    center: Array
    atom: npt.NDArray[np.int64]
    to_features: Any

    def scores(self, w: Any, b: Any) -> Any:
        """f(x_i) = Σ_k w_k x_ik + b, implicit centring included, shape (n,)."""
        scores = self.X @ w + b
        return scores - self.center @ w if self.center.any() else scores

    def weights(self, w: Any) -> Any:
        """The weights of the predictor, shape (p,), by those of the columns; of single features with λ = 1 the same."""
        bare = self.atom.size == self.to_features.shape[0] and np.all(self.to_features.diagonal() == 1.0)
        return w if bare and self.to_features.nnz == self.atom.size else self.to_features @ w

    def omega(self, v: Any) -> tuple[Any, Any]:
        """ω = Xᵀv as a variable of shape (k,), and the rows that define it."""
        omega = cp.Variable(self.atom.size, name="omega")
        product = self.X.T @ v
        return omega, omega == (product - self.center * cp.sum(v) if self.center.any() else product)


def design_of(problem: Problem, atoms: npt.NDArray[np.int64] | None = None) -> AtomDesign:
    """The columns of all atoms, or of some."""
    data = problem.data
    chosen = np.arange(problem.atoms.count) if atoms is None else atoms
    columns = problem.atoms.columns(chosen)
    ids = columns.ids
    scale = columns.scale
    X = data.block(ids).values
    if np.any(scale != 1.0):
        X = sparse.csc_array(X * scale[None, :]) if data.is_sparse else X * scale
    to_features = sparse.csr_array((scale, (ids, np.arange(ids.size))), shape=(data.n_features, ids.size))
    return AtomDesign(X, data.center[ids] * scale, columns.atom, to_features)


@dataclass(frozen=True, eq=False)
class DualProgram:
    """The dual side of (P): α ∈ A and g(α).

    Attributes
    ----------
    alpha : cvxpy variable of shape (n,)
    v : cvxpy expression, α∘y
    g : cvxpy expression
    rows : list of cvxpy constraints, α ∈ A
    """

    alpha: Any
    v: Any
    g: Any
    rows: list[Any]


def dual_of(problem: Problem) -> DualProgram:
    """A and g of the problem's loss: 0 ≤ α ≤ its top, and yᵀα = 0 with a free bias."""
    loss = get_loss(problem.loss)
    alpha = cp.Variable(problem.data.n_samples, name="alpha")
    rows = [alpha >= 0]
    if loss.has_top:
        rows.append(alpha <= loss.top(problem.c_i))
    if problem.bias:
        rows.append(problem.data.y @ alpha == 0)
    return DualProgram(alpha, cp.multiply(problem.data.y, alpha), loss.conic_dual(cp, alpha, problem.c_i), rows)


def ends_of(problem: Problem, w: Any, sigma: Any = 1.0) -> list[Any]:
    """low_j σ_g ≤ w_j ≤ high_j σ_g where the problem has a box on the weights of the columns j of its atoms g."""
    columns = problem.atoms.columns(np.arange(problem.atoms.count))
    low, high = (np.broadcast_to(end, problem.data.n_features)[columns.ids] for end in problem.regulariser.ends)
    rows = []
    for end, sign in ((low, -1.0), (high, 1.0)):
        ids = np.flatnonzero(np.isfinite(end))
        if ids.size:
            share = sigma if isinstance(sigma, float) else sigma[columns.atom[ids]]
            rows.append(sign * w[ids] <= cp.multiply(sign * end[ids], share))
    return rows


@dataclass(frozen=True, eq=False)
class RowMultipliers:
    """ν ≥ 0 of the ends of the rows over the weights (`mipfs.data.over_weights.RowEnds`), out of a solved program.

    Attributes
    ----------
    parts : tuple of (cvxpy constraint, ends that its entries are of, the opposite ends or None)
    count : int
    """

    parts: tuple[tuple[Any, npt.NDArray[np.int64], npt.NDArray[np.int64] | None], ...]
    count: int

    @property
    def value(self) -> Array | None:
        """What the solver found, (count,), None before it did."""
        found = np.zeros(self.count)
        for row, ends, opposite in self.parts:
            if row.dual_value is None:
                return None
            own = np.asarray(row.dual_value, dtype=float).ravel()
            found[ends] = np.maximum(own if opposite is None else -own, 0.0)
            if opposite is not None:
                found[opposite] = np.maximum(own, 0.0)
        return found


@dataclass(frozen=True, eq=False)
class OverWeights:
    """Rows over the weights as constraints, and what stands for them among the variables of a program."""

    rows: list[Any]
    variables: dict[str, RowMultipliers]


def over_weights(problem: Problem, design: AtomDesign, w: Any) -> OverWeights:
    """d'w ≥ −o of every end of the rows over the weights, d'w = 0 of a row whose ends are both 0.

    `w` are the weights of the columns of `design`: a column that several atoms have counts by the sum of its weights.
    """
    if not problem.weight_rows:
        return OverWeights([], {})
    ends = problem.ends
    D = sparse.csr_array(ends.matrix @ design.to_features)
    of_row = [[k for k, (r, _) in enumerate(ends.of) if r == row] for row in range(len(ends.rows))]
    pairs = [both for both in of_row if len(both) == 2 and not np.any(ends.plain[both])]
    equal, opposite = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    single = np.setdiff1d(np.arange(ends.count), np.concatenate([equal, opposite]))
    parts = list[Any]()
    if single.size:
        parts.append((D[single] @ w >= -ends.plain[single], single, None))
    if equal.size:
        parts.append((D[equal] @ w == np.zeros(equal.size), equal, opposite))
    return OverWeights([one[0] for one in parts], {"nu": RowMultipliers(tuple(parts), ends.count)})


def selection_constraints(problem: Problem, sigma: Any, M: Any = None) -> list[Any]:
    """The rows of S with 0 ≤ σ ≤ 1: cardinality, forced features, and lb ≤ A [σ; u] ≤ ub, u relaxed where σ is.

    `M` is a parameter in place of the problem's number.
    """
    selection = problem.selection
    rows = selection.rows
    p = selection.n_features
    lower, upper = selection.sigma_bounds()
    constraints = [sigma >= lower, sigma <= upper]
    if selection.M is not None:
        constraints.append(cp.sum(sigma) <= (selection.M if M is None else M))
    if len(rows) or rows.extra.is_costed:
        activity = rows.matrix[:, :p] @ sigma
        if len(rows.extra):
            whole = np.flatnonzero(rows.extra.integer & bool(sigma.attributes["boolean"]))
            u = cp.Variable(len(rows.extra), name="u", integer=(whole,) if whole.size else False)
            activity = activity + rows.matrix[:, p:] @ u
            constraints += _interval_constraints(u, *rows.extra.box)
        constraints += _interval_constraints(activity, rows.lb, rows.ub)
    return constraints


def extra_cost(problem: Problem, constraints: list[Any]) -> Any:
    """d'u, u the extra variables in a `selection_constraints`; 0 where they cost nothing."""
    extra = problem.selection.rows.extra
    if not extra.is_costed:
        return 0.0
    (u,) = {v.id: v for one in constraints for v in one.variables() if v.name() == "u"}.values()
    return extra.cost @ u


def _interval_constraints(expression: Any, lb: Array, ub: Array) -> list[Any]:
    low, high = np.flatnonzero(lb > -np.inf), np.flatnonzero(ub < np.inf)
    return [*([expression[low] >= lb[low]] if low.size else []), *([expression[high] <= ub[high]] if high.size else [])]
