"""References for fast paths, declared and solved by Clarabel: the SVM on given columns, and the Boolean relaxation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs.errors import MipfsError
from mipfs.formulation.conic import cp, declare_loss
from mipfs.models.boolean_relaxation import declare
from mipfs.problem import Problem
from mipfs.solvers import cones

Array = npt.NDArray[np.float64]


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


def svm_reference(Z: Any, y: Array, c_i: Array, *, bias: bool = True, loss: str = "hinge") -> SvmReference:
    """The SVM, declared and solved as a conic program (Aytug 2015, (1)).

        min over w, b, ξ   ½ ‖w‖² + L(ξ)   s.t.   y_i (z_iᵀw + b) + ξ_i ≥ 1,  ξ_i ≥ 0

    With columns √σ_j x_j its value is v(σ), and the weights of the predictor on x are √σ_j w_j.

    Parameters
    ----------
    Z : (n, k) ndarray or sparse matrix, k >= 0
        The selected columns, scaled and centred.
    y : (n,) ndarray of {-1, +1}
    c_i : (n,) ndarray > 0
    bias : bool
    loss : {"hinge", "squared-hinge", "logistic"}

    Raises
    ------
    MipfsError
        Clarabel did not solve it.
    """
    n, k = Z.shape
    w, b = cp.Variable(max(k, 1)), cp.Variable()
    scores = (Z @ w if k else np.zeros(n)) + (b if bias else 0.0)
    L, xi, rows = declare_loss(loss, y, c_i, scores)
    # Without columns the weight stays in as an idle variable of value 0.
    value = _solve(cp.Problem(cp.Minimize(0.5 * cp.sum_squares(w) + L), rows))
    return SvmReference(w.value[:k], float(b.value) if bias else 0.0, xi.value, rows[0].dual_value, value)


@dataclass(frozen=True, eq=False)
class RelaxationReference:
    """The Boolean relaxation: its value and a solution (weights and intercept on the scaled data)."""

    value: float
    sigma: Array
    w: Array
    b: float


def relaxation_reference(problem: Problem) -> RelaxationReference:
    """The Boolean relaxation of (P), declared by `mipfs.models.boolean_relaxation`, solved.

    Parameters
    ----------
    problem : Problem
        Of a few hundred features at most; extra variables are relaxed too.

    Raises
    ------
    UsageError
        A loss that has no conic formulation.
    MipfsError
        Clarabel did not solve it: the relaxed rows contradict each other, or the numbers are too hard for it.
    """
    declared = declare(problem)
    value = _solve(declared.cvxpy)
    w, b = (declared.variables[name].value for name in ("w", "b"))
    return RelaxationReference(value, declared.sigma.value, w, float(b))


def _solve(program: Any) -> float:
    status = cones.solve(program)
    if status != "solved":
        raise MipfsError(f"Clarabel could not solve the program: {status}")
    return float(program.value)
