"""What the conic programs of `mipfs.models` have in common, declared in CVXPY: losses, dual sets, the rows of S."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from mipfs.losses import get_loss
from mipfs.plumbing.arrays import Array
from mipfs.problem import Problem


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
