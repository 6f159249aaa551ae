"""The Boolean relaxation: (P) over the rows of S with 0 ≤ σ ≤ 1 (adaptive feature scaling, Tan 2014).

    min over σ, w, b, t   cᵀσ + ½ Σ_j t_j + L(y∘(Xw + b))                                         Tan 2014, (5)
    s.t.                  w_j² ≤ σ_j t_j,   0 ≤ σ ≤ 1,   Σ_j σ_j ≤ M,   lb ≤ A [σ; u] ≤ ub

Where cardinality is the only row its value is that of FGM (`qcqp_relaxation`), which is over the convex hull of S; with
others FGM's can be larger. With atoms (groups, trees) w_j² is ‖w_g‖², of the atom's columns times its λ_g.

The ρ-form of Tan 2010 (1) has the variable ``rho`` for the margin 1 and −ρ in the objective; its value is −1/(4v),
where v is that of the unit margin.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mipfs.data.classes import ClassWeight
from mipfs.data.instance import Instance
from mipfs.formulation import check
from mipfs.formulation.conic import (
    Sigma,
    attach,
    bias_of,
    cp,
    design_of,
    ends_of,
    extra_cost,
    loss_of,
    over_weights,
    selection_constraints,
)
from mipfs.formulation.parameters import Parameters
from mipfs.formulation.program import ClassifierPoint, Formulation, shared_values
from mipfs.plumbing.declared import check_arguments
from mipfs.problem import Problem


def problem(
    data: Instance,
    *,
    M: int | None = None,
    C: float = 1.0,
    loss: str = "squared-hinge",
    bias: bool = False,
    margin: str = "unit",
    atoms: Any = None,
    weight_bounds: Mapping[str, Any] | None = None,
    class_weight: ClassWeight | None = None,
) -> Problem:
    """The `Problem` alone, which can be of any size; parameters as in `build`, and what is selected (`mipfs.atoms`)."""
    return Problem(
        data,
        loss=loss,
        bias=bias,
        M=M,
        C=C,
        margin=margin,
        atoms=atoms,
        formulation="boolean",
        weight_bounds=weight_bounds,
        class_weight=class_weight,
    )


def declare(problem: Problem) -> Formulation:
    """Declare the Boolean relaxation of a problem, with its penalties and the rows of its selection."""
    check(problem, "boolean")
    return attach(program_of(problem), "boolean", declare, values_at)


def values_at(problem: Problem, point: ClassifierPoint) -> Mapping[str, Any]:
    """The variables at a classifier: t_j = w_j² too."""
    return {**shared_values(problem, point), "t": point.t}


def program_of(problem: Problem) -> Formulation:
    """The program itself, which is FGM's too where S has no rows."""
    design = design_of(problem)
    count = problem.atoms.count
    sigma = Sigma(problem)
    t = cp.Variable(count, name="t")
    w, b = cp.Variable(design.atom.size, name="w"), bias_of(problem)
    parameters = Parameters.of(problem)
    L = loss_of(problem, design.scores(w, b), rho=True, C=parameters.C)

    # ‖w_g‖² ≤ σ_g t_g  ⇔  ‖(2 w_g, σ_g − t_g)‖ ≤ σ_g + t_g
    if problem.selects_features:
        cones = [cp.SOC(sigma + t, cp.vstack([2 * w, sigma - t]), axis=0)]
    else:
        parts = [np.flatnonzero(design.atom == g) for g in range(count)]
        cones = [cp.SOC(sigma[g] + t[g], cp.hstack([2 * w[k], sigma[g] - t[g]])) for g, k in enumerate(parts)]

    # min  cᵀσ + dᵀu + ½ Σ_j t_j + L                                                    Tan 2014, (5)
    rows = selection_constraints(problem, sigma, parameters.M)
    objective = parameters.charges(sigma) + 0.5 * cp.sum(t) + L.value + extra_cost(problem, rows)
    over = over_weights(problem, design, w)
    program = cp.Problem(cp.Minimize(objective), [*cones, *ends_of(problem, w, sigma), *over.rows, *rows, *L.rows])
    variables = {"w": design.weights(w), "b": b, "t": t, "xi": L.xi, "alpha": L.alpha, **L.margin, **over.variables}
    return Formulation(problem, program, sigma, variables, parameters=parameters.by_name)


@check_arguments
def build(
    data: Instance,
    *,
    M: int | None = None,
    C: float = 1.0,
    loss: str = "squared-hinge",
    bias: bool = False,
    margin: str = "unit",
    weight_bounds: Mapping[str, Any] | None = None,
    class_weight: ClassWeight | None = None,
) -> Formulation:
    """Declare the Boolean relaxation of `data` in CVXPY.

    Parameters
    ----------
    data : Instance
        Its penalties, rows and forced features become part of the program.
    M : int in 0 … p
        The most features that are selected (B in the papers); may be left out where the data has ``[select] M``.
    C : float > 0
        Weight of the loss.
    loss : {"hinge", "squared-hinge", "logistic"}
    bias : bool
        Whether b is free; without it f(x) = w'x.
    weight_bounds : mapping of feature name to (lower, upper), optional
        Bounds on the weights, as in `mipfs.Problem`.
    margin : {"unit", "rho"}
        In which form drivers report the values, see above.
    class_weight : mapping of label to float > 0, "balanced" or None, optional
        Weights of the classes, as in `mipfs.Problem`.

    Returns
    -------
    Formulation
        With the variables ``w``, ``b``, ``t``, ``xi`` and ``alpha`` (the multipliers of the margins).

    Raises
    ------
    UsageError
        A parameter out of range, or data too large for an algebraic model.

    Source: Tan 2014, (5).
    """
    return declare(
        problem(
            data, M=M, C=C, loss=loss, bias=bias, margin=margin, weight_bounds=weight_bounds, class_weight=class_weight
        )
    )
