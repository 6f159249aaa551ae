"""Conic programs declared in CVXPY and solved by Clarabel: the references that the fast paths are tested against."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import cvxpy
import numpy as np
import numpy.typing as npt

from mipfs.errors import MipfsError, UsageError
from mipfs.problem import Problem

Array = npt.NDArray[np.float64]

# The type hints of CVXPY do not re-export its atoms.
cp: Any = cvxpy

# As tight as Clarabel goes; what it then calls "almost solved" is still far below the tolerances of any test.
_TIGHT = {"tol_gap_abs": 1e-10, "tol_gap_rel": 1e-10, "tol_feas": 1e-10, "max_iter": 500}

# L(m) of (P) as a function of ξ_i = max(0, 1 − m_i) and C_i.
_LOSSES: dict[str, Callable[[Any, Array], Any]] = {
    "hinge": lambda xi, c: c @ xi,
}


@dataclass(frozen=True, eq=False)
class SvmReference:
    """The SVM on given columns.

    Attributes
    ----------
    w : (k,) ndarray
    b : float
    xi : (n,) ndarray, the slacks
    alpha : (n,) ndarray, the dual variables of the margins
    value : float, the objective
    """

    w: Array
    b: float
    xi: Array
    alpha: Array
    value: float


def svm_reference(Z: Any, y: Array, c_i: Array, *, bias: bool = True) -> SvmReference:
    """The hinge SVM, declared and solved as a conic program (Aytug 2015, (1)).

        min over w, b, ξ   ½ ‖w‖² + Σ_i c_i ξ_i   s.t.   y_i (z_iᵀw + b) + ξ_i ≥ 1,  ξ_i ≥ 0

    With columns √σ_j x_j its value is v(σ), and the weights of the predictor on x are √σ_j w_j.

    Parameters
    ----------
    Z : (n, k) ndarray or sparse matrix, k >= 0
        The selected columns, scaled and centred.
    y : (n,) ndarray of {-1, +1}
    c_i : (n,) ndarray > 0
    bias : bool

    Raises
    ------
    MipfsError
        Clarabel did not solve it.
    """
    n, k = Z.shape
    w, b, xi = cp.Variable(max(k, 1)), cp.Variable(), cp.Variable(n)
    scores = (Z @ w if k else np.zeros(n)) + (b if bias else 0.0)
    margin = cp.multiply(y, scores) + xi >= 1
    # Without columns the weight stays in as an idle variable of value 0.
    value = _solve(cp.Problem(cp.Minimize(0.5 * cp.sum_squares(w) + c_i @ xi), [margin, xi >= 0]))
    return SvmReference(w.value[:k], float(b.value) if bias else 0.0, xi.value, margin.dual_value, value)


@dataclass(frozen=True, eq=False)
class RelaxationReference:
    """The Boolean relaxation: its value and a solution (weights and intercept on the scaled data)."""

    value: float
    sigma: Array
    w: Array
    b: float


def relaxation_reference(problem: Problem) -> RelaxationReference:
    """The Boolean relaxation of (P), declared and solved as a conic program.

        min over σ, u, w, b, ξ   Σ_j c_j σ_j + ½ Σ_j w_j²/σ_j + L   s.t.   0 ≤ σ ≤ 1, Σ_j σ_j ≤ M, lb ≤ A [σ; u] ≤ ub

    Parameters
    ----------
    problem : Problem
        Of a few hundred features at most; extra variables are relaxed too.

    Raises
    ------
    UsageError
        A loss that is not declared here.
    MipfsError
        Clarabel did not solve it: the relaxed rows contradict each other, or the numbers are too hard for it.
    """
    if problem.loss not in _LOSSES:
        raise UsageError(f"loss {problem.loss!r} has no conic reference; it is one of {', '.join(_LOSSES)}")
    data, selection = problem.data, problem.selection
    n, p = data.X.shape
    sigma, w, t, xi = cp.Variable(p), cp.Variable(p), cp.Variable(p), cp.Variable(n)
    b = cp.Variable()
    lb, ub = selection.sigma_bounds()
    # w_j² ≤ σ_j t_j  ⇔  ‖(2 w_j, σ_j − t_j)‖ ≤ σ_j + t_j
    cones = cp.SOC(sigma + t, cp.vstack([2 * w, sigma - t]), axis=0)
    scores = data.X @ w - data.center @ w + (b if problem.bias else 0.0)
    constraints = [cones, sigma >= lb, sigma <= ub, cp.multiply(data.y, scores) + xi >= 1, xi >= 0]
    if selection.M is not None:
        constraints.append(cp.sum(sigma) <= selection.M)
    constraints += _rows(problem, sigma)
    objective = problem.penalty @ sigma + 0.5 * cp.sum(t) + _LOSSES[problem.loss](xi, problem.c_i)
    value = _solve(cp.Problem(cp.Minimize(objective), constraints))
    return RelaxationReference(value, sigma.value, w.value, float(b.value) if problem.bias else 0.0)


def _rows(problem: Problem, sigma: Any) -> list[Any]:
    rows = problem.selection.rows
    if not len(rows):
        return []
    p, extra = problem.data.n_features, rows.extra
    activity, constraints = rows.matrix[:, :p] @ sigma, []
    if len(extra):
        u = cp.Variable(len(extra))
        activity = activity + rows.matrix[:, p:] @ u
        constraints += _between(u, extra.lb, extra.ub)
    return constraints + _between(activity, rows.lb, rows.ub)


def _between(expression: Any, lb: Array, ub: Array) -> list[Any]:
    low, high = np.flatnonzero(lb > -np.inf), np.flatnonzero(ub < np.inf)
    return [*([expression[low] >= lb[low]] if low.size else []), *([expression[high] <= ub[high]] if high.size else [])]


def _solve(program: Any) -> float:
    program.solve(solver=cp.CLARABEL, **_TIGHT)
    if program.status not in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE):
        raise MipfsError(f"Clarabel ended with status {program.status!r}")
    return float(program.value)
