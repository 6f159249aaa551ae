"""Independent references for small problems: plain enumeration and certified values.

Nothing here is shared with the solvers under test. Every value comes as an interval: the upper end is a
primal objective recomputed from the data, the lower end the dual objective of a repaired dual vector, so a
reference cannot be wrong by more than the width of its interval, whichever solver suggested the two points.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.optimize import LinearConstraint, milp

from tests import smooth_oracles

Array = npt.NDArray[np.float64]
Support = frozenset[int]
Point = tuple[Array, float, Array]
Engine = Literal["clarabel", "cvxpy", "libsvm"]

RELATIVE_WIDTH = 1e-8
"""The widest interval, relative to the value, that a reference may have."""

ROW_TOLERANCE = 1e-9
"""How far a row may be exceeded, relative to the sizes in it: sums like 0.1 + 0.2 <= 0.3 hold."""


class OracleError(AssertionError):
    """The reference itself could not reach its accuracy: the comparison would prove nothing."""


@dataclass(frozen=True)
class Value:
    """An interval that holds an optimal value, with the primal point of its upper end.

    Attributes
    ----------
    upper, lower : float
    w : (k,) ndarray
    b : float
    """

    upper: float
    lower: float
    w: Array = field(default_factory=lambda: np.empty(0), compare=False)
    b: float = 0.0

    def shifted(self, cost: float) -> Value:
        """The same with a fixed cost added to both ends."""
        return Value(self.upper + cost, self.lower + cost, self.w, self.b)

    @property
    def width(self) -> float:
        """Width relative to the upper end."""
        return (self.upper - self.lower) / max(1e-10, abs(self.upper))


# The hinge loss -------------------------------------------------------------------------------------------


def hinge_primal(Z: Array, y: Array, c_i: Array, w: Array, b: float) -> float:
    """½‖w‖² + Σ c_i max(0, 1 - y_i (z_iᵀw + b)), straight from its definition."""
    return float(0.5 * w @ w + c_i @ np.maximum(0.0, 1.0 - y * (Z @ w + b)))


def best_hinge_bias(Z: Array, y: Array, c_i: Array, w: Array, start: float) -> float:
    """The best free bias for a given w: the loss is piecewise linear in b, so a breakpoint is optimal."""
    scores = Z @ w
    candidates = np.append(y - scores, start)
    losses = np.maximum(0.0, 1.0 - y * (scores + candidates[:, None])) @ c_i
    return float(candidates[np.argmin(losses)])


def feasible_hinge_dual(y: Array, c_i: Array, alpha: Array, bias: bool) -> Array:
    """The nearest easy point of {0 <= α <= c, yᵀα = 0 when the bias is free}: clip, then shrink the heavier class."""
    alpha = np.clip(alpha, 0.0, c_i)
    if bias:
        positive, negative = alpha[y > 0].sum(), alpha[y < 0].sum()
        least = min(positive, negative)
        alpha = alpha * np.where(y > 0, least / max(positive, 1e-300), least / max(negative, 1e-300))
    return alpha


def hinge_dual(Z: Array, y: Array, alpha: Array) -> float:
    """Σ α_i - ½‖Zᵀ(α∘y)‖² (mathematics: g(α) - ½ Σ_j s_j(α) over the columns of Z)."""
    omega = Z.T @ (alpha * y)
    return float(alpha.sum() - 0.5 * omega @ omega)


def _hinge_by_clarabel(Z: Array, y: Array, c_i: Array, bias: bool) -> Point:
    """The primal QP handed to Clarabel directly (a modelling layer would take most of the time here)."""
    import clarabel

    (n, k), free = Z.shape, int(bias)
    P = sparse.csc_array((np.ones(k), (np.arange(k), np.arange(k))), shape=(k + free + n, k + free + n))
    q = np.concatenate([np.zeros(k + free), c_i])
    margins = np.hstack([y[:, None] * Z, y[:, None]][: 1 + free])
    A = sparse.csc_array(np.block([[-margins, -np.eye(n)], [np.zeros((n, k + free)), -np.eye(n)]]))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
    cones = [clarabel.NonnegativeConeT(2 * n)]
    right = np.concatenate([-np.ones(n), np.zeros(n)])
    solution = clarabel.DefaultSolver(sparse.csc_matrix(P), q, sparse.csc_matrix(A), right, cones, settings).solve()
    x = np.array(solution.x)
    return x[:k], float(x[k]) if bias else 0.0, np.array(solution.z)[:n]


def _hinge_by_cvxpy(Z: Array, y: Array, c_i: Array, bias: bool) -> Point:
    """The primal as a textbook writes it, declared in CVXPY."""
    cp: Any = import_module("cvxpy")  # its own annotations are too loose for strict checking
    n, k = Z.shape
    w, b, xi = cp.Variable(k), cp.Variable() if bias else cp.Constant(0.0), cp.Variable(n, nonneg=True)
    margin = cp.multiply(y, Z @ w + b) >= 1 - xi
    problem = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(w) + c_i @ xi), [margin])
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12)
    if w.value is None:
        raise OracleError(f"CVXPY returned {problem.status} on {n} samples and {k} columns")
    return np.asarray(w.value), float(b.value) if bias else 0.0, np.asarray(margin.dual_value)


def _hinge_by_libsvm(Z: Array, y: Array, c_i: Array, bias: bool) -> Point:
    """libsvm through scikit-learn: another algorithm (SMO on the dual) and another code base; free bias only."""
    from sklearn.svm import SVC

    if not bias:
        raise OracleError("libsvm always has a free bias")
    fitted = SVC(C=1.0, kernel="linear", tol=1e-10, max_iter=500_000).fit(Z, y, sample_weight=c_i)
    alpha = np.zeros(len(y))
    alpha[fitted.support_] = np.abs(fitted.dual_coef_.ravel())
    return Z.T @ (alpha * y), float(fitted.intercept_[0]), alpha


_HINGE_ENGINES: Mapping[Engine, Callable[[Array, Array, Array, bool], Point]] = {
    "clarabel": _hinge_by_clarabel,
    "cvxpy": _hinge_by_cvxpy,
    "libsvm": _hinge_by_libsvm,
}


def _without_columns(y: Array, c_i: Array, bias: bool) -> Value:
    """v of the empty support: only the bias is left, a closed form."""
    if not bias:
        return Value(float(c_i.sum()), float(c_i.sum()))
    least = 2.0 * float(min(c_i[y > 0].sum(), c_i[y < 0].sum()))
    return Value(least, least, np.empty(0), 1.0 if c_i[y > 0].sum() >= c_i[y < 0].sum() else -1.0)


def hinge_value(Z: Array, y: Array, c_i: Array, bias: bool, engine: Engine = "clarabel") -> Value:
    """v of the support whose columns are Z, for the hinge loss.

    Parameters
    ----------
    Z : (n, k) ndarray
        The selected columns, scaled; k may be 0.
    y : (n,) ndarray of {-1.0, +1.0}
    c_i : (n,) ndarray > 0
        C times the sample weights.
    bias : bool
        A free bias, or none.
    engine : {"clarabel", "cvxpy", "libsvm"}
        Who suggests the points; the interval is computed here whoever it is.

    Returns
    -------
    Value
        Of any width: see `svm_value` for one that is checked.
    """
    if Z.shape[1] == 0:
        return _without_columns(y, c_i, bias)
    w_primal, b, alpha = _HINGE_ENGINES[engine](Z, y, c_i, bias)
    alpha = feasible_hinge_dual(y, c_i, alpha, bias)
    candidates = []
    for w in (w_primal, Z.T @ (alpha * y)):
        b_of_w = best_hinge_bias(Z, y, c_i, w, b) if bias else 0.0
        candidates.append((hinge_primal(Z, y, c_i, w, b_of_w), w, b_of_w))
    upper, w, b = min(candidates, key=lambda one: one[0])
    return Value(upper, hinge_dual(Z, y, alpha), w, b)


LossOracle = Callable[[Array, Array, Array, bool, Engine], Value]

LOSSES: Mapping[str, LossOracle] = {
    "hinge": hinge_value,
    "squared-hinge": lambda Z, y, c_i, bias, _engine: Value(*smooth_oracles.squared_hinge(Z, y, c_i, bias)),
    "logistic": lambda Z, y, c_i, bias, _engine: Value(*smooth_oracles.logistic(Z, y, c_i, bias)),
}
"""v(σ) by loss; a later loss joins with one line here."""

PRIMALS: Mapping[str, Callable[[Array, Array, Array, Array, float], float]] = {
    "hinge": hinge_primal,
    "squared-hinge": smooth_oracles.squared_hinge_primal,
    "logistic": smooth_oracles.logistic_primal,
}
"""The primal objective by loss, to recompute what a Result claims."""


def svm_value(Z: Array, y: Array, c_i: Array, bias: bool, loss: str = "hinge") -> Value:
    """v of the support whose columns are Z, to a checked relative accuracy of 1e-8.

    Parameters
    ----------
    Z, y, c_i, bias
        As for `hinge_value`.
    loss : str
        A key of `LOSSES`.

    Raises
    ------
    OracleError
        If neither engine gets an interval that narrow.
    """
    for engine in ("clarabel", "cvxpy"):
        value = LOSSES[loss](Z, y, c_i, bias, engine)
        if value.width <= RELATIVE_WIDTH:
            return value
    raise OracleError(f"the reference is only accurate to {value.width:.1e} on {Z.shape[1]} columns")


# The selection set ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LinearRow:
    """``lb <= Σ terms <= ub`` over features and extra variables, by name."""

    name: str
    terms: Mapping[str, float]
    lb: float
    ub: float


@dataclass(frozen=True)
class ExtraVariable:
    """A variable beside the selection, in ``[lb, ub]``, integer or not, without cost."""

    name: str
    lb: float
    ub: float
    integer: bool = False


def _holds(row: LinearRow, sigma: Mapping[str, float]) -> bool:
    products = [coefficient * sigma[name] for name, coefficient in row.terms.items()]
    total, room = sum(products), ROW_TOLERANCE * (1.0 + sum(map(abs, products)))
    return row.lb - room <= total <= row.ub + room


def _extras_exist(rows: Sequence[LinearRow], extras: Sequence[ExtraVariable], sigma: Mapping[str, float]) -> bool:
    """Is there a value of the extra variables for this selection? One small MILP by SciPy."""
    matrix = np.array([[row.terms.get(extra.name, 0.0) for extra in extras] for row in rows])
    fixed = np.array([sum(a * sigma.get(name, 0.0) for name, a in row.terms.items()) for row in rows])
    lower, upper = np.array([row.lb for row in rows]) - fixed, np.array([row.ub for row in rows]) - fixed
    answer = milp(
        np.zeros(len(extras)),
        integrality=np.array([int(extra.integer) for extra in extras]),
        bounds=([extra.lb for extra in extras], [extra.ub for extra in extras]),
        constraints=LinearConstraint(matrix, lower - ROW_TOLERANCE, upper + ROW_TOLERANCE),
    )
    if answer.status not in (0, 2):
        raise OracleError(f"SciPy could not decide a row set: {answer.message}")
    return bool(answer.status == 0)


def allowed_supports(
    names: Sequence[str],
    M: int | None = None,
    rows: Sequence[LinearRow] = (),
    forced_in: Iterable[str] = (),
    forced_out: Iterable[str] = (),
    extras: Sequence[ExtraVariable] = (),
) -> list[Support]:
    """Every allowed selection, by trying all 2^p of them.

    Parameters
    ----------
    names : sequence of p str
    M : int or None
        At most this many features; None for no such row.
    rows, extras : sequences
        Linear rows over the names and over the extra variables; a selection is allowed when some value of the
        extra variables satisfies all rows.
    forced_in, forced_out : iterables of str

    Returns
    -------
    list of frozenset of int
        Positions of the selected features; larger supports first.
    """
    needed, banned = set(forced_in), set(forced_out)
    extra_names = {extra.name for extra in extras}
    plain = [row for row in rows if not extra_names & row.terms.keys()]
    linked = [row for row in rows if extra_names & row.terms.keys()]
    allowed = []
    for size in range(len(names) if M is None else min(M, len(names)), -1, -1):
        for support in itertools.combinations(range(len(names)), size):
            chosen = {names[j] for j in support}
            sigma = {name: float(name in chosen) for name in names}
            if not needed <= chosen or banned & chosen or not all(_holds(row, sigma) for row in plain):
                continue
            if not linked or _extras_exist(linked, extras, sigma):
                allowed.append(frozenset(support))
    return allowed


# Brute force ----------------------------------------------------------------------------------------------


@dataclass
class BruteForce:
    """The exact solution of a small (P): every value that decides it was computed.

    Attributes
    ----------
    value : Value
        Interval that holds the optimal value.
    optimal : list of frozenset
        Every allowed support within `tie` (relative) of the optimum.
    table : dict of frozenset to Value
        The supports that were evaluated, penalty included.
    """

    X: Array
    y: Array
    c_i: Array
    penalty: Array
    bias: bool
    loss: str = "hinge"
    value: Value = field(default_factory=lambda: Value(np.inf, np.inf))
    optimal: list[Support] = field(default_factory=list)
    table: dict[Support, Value] = field(default_factory=dict)

    def of(self, support: Iterable[int]) -> Value:
        """cᵀσ + v(σ) of one support, remembered."""
        key = frozenset(support)
        if key not in self.table:
            columns = sorted(key)
            plain = svm_value(self.X[:, columns], self.y, self.c_i, self.bias, self.loss)
            self.table[key] = plain.shifted(float(self.penalty[columns].sum()))
        return self.table[key]


def brute_force(
    X: Array,
    y: Array,
    c_i: Array,
    allowed: Sequence[Support],
    penalty: Array,
    bias: bool,
    *,
    loss: str = "hinge",
    tie: float = 1e-7,
) -> BruteForce:
    """Solve (P) over the allowed supports by evaluating them.

    A support is passed over only when it cannot be within `tie` of the best one: v never increases when columns
    are added, so cᵀσ + v(σ') with σ' a superset of σ that was evaluated is a lower bound for σ.

    Parameters
    ----------
    X : (n, p) ndarray, scaled and centred
    y : (n,) ndarray of {-1.0, +1.0}
    c_i : (n,) ndarray > 0
    allowed : sequence of frozenset, not empty
    penalty : (p,) ndarray >= 0
    bias : bool
    loss : str
    tie : float
        Supports this close to the optimum, relative to it, all count as optimal.
    """
    found = BruteForce(X, y, c_i, penalty, bias, loss)
    floor: dict[Support, float] = {}
    best_upper = np.inf
    # Larger supports first: each leaves its v as a floor for all its subsets.
    for support in sorted(allowed, key=lambda one: (-len(one), sorted(one))):
        cost = float(penalty[sorted(support)].sum())
        bound = max((v for larger, v in floor.items() if support <= larger), default=-np.inf)
        if cost + bound > best_upper + 2 * tie * abs(best_upper):
            continue
        value = found.of(support)
        floor[support] = value.lower - cost
        best_upper = min(best_upper, value.upper)
    evaluated = {support: found.of(support) for support in floor}
    found.value = Value(best_upper, min(value.lower for value in evaluated.values()))
    limit = best_upper + tie * abs(best_upper)
    found.optimal = [support for support, value in evaluated.items() if value.upper <= limit]
    return found


# What a Result says about itself --------------------------------------------------------------------------


def objective_of_json(
    document: Mapping[str, Any],
    X: Array,
    y: Array,
    c_i: Array,
    penalty: Array,
    names: Sequence[str],
    loss: str = "hinge",
) -> tuple[float, float]:
    """The objective of (P) recomputed from a Result's JSON and the data as the user gave them.

    Parameters
    ----------
    document : mapping
        The parsed JSON: ``weights`` and ``intercept`` on the user's scale, ``scaling`` with shift and scale by name.
    X : (n, p) ndarray
        The user's values, not scaled.
    y, c_i, penalty, names
        Of the problem.

    Returns
    -------
    objective : float
    intercept : float
        The bias on the scaled data: zero for a problem without bias.
    """
    index = {name: j for j, name in enumerate(names)}
    if not set(document["weights"]) <= set(document["selected"]):
        raise AssertionError("a feature that is not selected has a weight")
    selected = list(document["selected"])
    columns = [index[name] for name in selected]
    shift = np.array([float(document["scaling"]["shift"][name]) for name in selected])
    scale = np.array([float(document["scaling"]["scale"][name]) for name in selected])
    user = np.array([float(document["weights"].get(name, 0.0)) for name in selected])
    b = float(document["intercept"] + shift @ user)
    Z = (X[:, columns] - shift) / scale
    return PRIMALS[loss](Z, y, c_i, user * scale, b) + float(penalty[columns].sum()), b
