"""Big-M: the formulation with |w_j| ≤ W_j σ_j that users of general solvers write first.

    min over σ, w, b   cᵀσ + ½ ‖w‖² + L(y∘(Xw + b))
    s.t.               −W_j σ_j ≤ w_j ≤ W_j σ_j,   σ ∈ S

With σ ∈ {0, 1} it is (P), if no solution of value ≤ U has |w_j| > W_j, where U is the value of any classifier that
satisfies the rows. Two such bounds are computed, and the smaller one is taken:

    ½ w_j² ≤ U                                      the other terms of (P) are not negative
    ½ ‖w − w*‖² ≤ U − v                             w* the plain SVM and v its value: ½‖w‖² + L is strongly convex

For w* known to a gap ε, v is its dual value and W_j gains √(2ε). Relaxed to 0 ≤ σ ≤ 1 (the default) the program is
the weak rung of the ladder. Its bound is proven by α and the multipliers κ ≥ 0 of the links: for any of them,

    g(α) − ½ Σ_j max(0, |ω_j(α)| − κ_j)² + min over σ of Σ_j (c_j − κ_j W_j) σ_j   ≤   its value.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np

from mipfs.data.classes import ClassWeight
from mipfs.data.instance import Instance
from mipfs.errors import UsageError
from mipfs.formulation import check
from mipfs.formulation.conic import (
    Multiplier,
    Sigma,
    attach,
    bias_of,
    cp,
    design_of,
    extra_cost,
    loss_of,
    over_weights,
    selection_constraints,
)
from mipfs.formulation.program import Formulation
from mipfs.inner.subproblem import Subproblem
from mipfs.kernels.bound import add_down, gains
from mipfs.plumbing.arrays import Array
from mipfs.plumbing.declared import check_arguments
from mipfs.problem import Problem

TOLERANCE = 1e-8
"""Relative gap to which the two SVMs behind U and W are solved."""


def problem(
    data: Instance,
    *,
    M: int | None = None,
    C: float = 1.0,
    loss: str = "hinge",
    bias: bool = True,
    class_weight: ClassWeight | None = None,
) -> Problem:
    """The `Problem` alone, which can be of any size; parameters as in `build`."""
    return Problem(data, loss=loss, bias=bias, M=M, C=C, formulation="big-m", class_weight=class_weight)


def implied_bounds(problem: Problem, U: float | None = None) -> Array:
    """W, shape (p,): every solution of (P) of value at most U has |w_j| ≤ W_j.

    Parameters
    ----------
    problem : Problem
    U : float, optional
        Value of a classifier that satisfies the rows; by default of the plain SVM's largest weights, refitted.

    Raises
    ------
    UsageError
        No selection satisfies the rows, or U lies below the value of the plain SVM.
    """
    subproblem = Subproblem(problem)
    found = subproblem.solve(np.ones(problem.data.n_features), TOLERANCE)
    plain = found.svm
    if U is None:
        sigma = problem.selection.repair(np.square(plain.w))
        if sigma is None:
            raise UsageError("no selection satisfies the rows: there is no upper bound to compute big-M from")
        rounded = subproblem.solve(sigma.astype(float), TOLERANCE)
        U = problem.evaluate(rounded.ids, rounded.svm.w, rounded.svm.b)
    earned = add_down(
        found.cut.constant, -gains(found.cut.slopes, 0.0)
    )  # at a large C the SVM's own sums are too rough
    lower = max(0.0, earned - 1e-9 * abs(earned))
    if not (math.isfinite(U) and lower <= U):
        raise UsageError(f"U = {U!r} is no value of a classifier: the plain SVM has {plain.primal:.8g} already")
    slack = math.sqrt(2 * (U - lower)) + math.sqrt(2 * (plain.primal - lower))
    return np.minimum(math.sqrt(2 * U), np.abs(plain.w) + slack) * (1 + 1e-9)


def declare(problem: Problem, U: float | None = None, binary: bool = False) -> Formulation:
    """Declare big-M of a problem, with its penalties and the rows of its selection."""
    check(problem, "big-m")
    W = implied_bounds(problem, U)
    sigma = Sigma(problem, boolean=binary)
    w, b = cp.Variable(problem.data.n_features, name="w"), bias_of(problem)
    design = design_of(problem)
    L, over = loss_of(problem, design.scores(w, b)), over_weights(problem, design, w)

    # −W_j σ_j ≤ w_j ≤ W_j σ_j
    link = cp.abs(w) <= cp.multiply(W, sigma)

    # min  cᵀσ + dᵀu + ½ ‖w‖² + L
    rows = selection_constraints(problem, sigma)
    objective = problem.penalty @ sigma + 0.5 * cp.sum_squares(w) + L.value + extra_cost(problem, rows)
    program = cp.Problem(cp.Minimize(objective), [link, *rows, *L.rows, *over.rows])
    kappa = Multiplier(link)
    variables = {"w": w, "b": b, "xi": L.xi, "alpha": L.alpha, "kappa": kappa, **over.variables}
    declared = Formulation(problem, program, sigma, variables, lagrangian=_Lagrangian(kappa, problem.penalty, W))
    # under more rows U may be the value of nothing: then another is computed
    return attach(declared, "big-m", partial(declare, binary=binary))


@dataclass(frozen=True, eq=False)
class _Lagrangian:
    """½ Σ_j max(0, |ω_j| − κ_j)² and c − κ∘W, at the multipliers κ of the links; see `Formulation.lagrangian`."""

    kappa: Multiplier
    penalty: Array
    W: Array

    def __call__(self, omega: Array) -> tuple[float, Array]:
        found = self.kappa.value
        price = np.zeros(self.W.size) if found is None else np.maximum(0.0, found)
        taken = 0.5 * float(np.sum(np.square(np.maximum(0.0, omega - price))))
        return taken, self.penalty - price * self.W


@check_arguments
def build(
    data: Instance,
    *,
    M: int | None = None,
    C: float = 1.0,
    loss: str = "hinge",
    bias: bool = True,
    U: float | None = None,
    binary: bool = False,
    class_weight: ClassWeight | None = None,
) -> Formulation:
    """Declare big-M of `data` in CVXPY.

    Parameters
    ----------
    data : Instance
        Its penalties, rows and forced features become part of the program.
    M : int in 0 … p
        The most features that are selected; may be left out.
    C : float > 0
        Weight of the loss.
    loss : {"hinge", "squared-hinge", "logistic"}
    bias : bool
        Whether b is free; without it f(x) = w'x.
    U : float, optional
        Value of a classifier that satisfies the rows, for smaller bounds W; by default one is computed.
    binary : bool, default False
        Keep σ binary: then it is (P) itself, for a solver of mixed-integer programs.
    class_weight : mapping of label to float > 0, "balanced" or None, optional
        Weights of the classes, as in `mipfs.Problem`.

    Returns
    -------
    Formulation
        With the variables ``w``, ``b``, ``xi``, ``alpha`` (the multipliers of the margins) and ``kappa``
        (those of the links).

    Raises
    ------
    UsageError
        A parameter out of range, rows that no selection satisfies, or data too large for an algebraic model.
    """
    return declare(problem(data, M=M, C=C, loss=loss, bias=bias, class_weight=class_weight), U, binary)
