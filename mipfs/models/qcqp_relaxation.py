"""FGM: the convex relaxation that feature generation solves (Tan 2010, (4); Tan 2014, (16)).

    max over α ∈ A, θ   g(α) − θ   s.t.   ½ Σ_j σ_j ω_j(α)² − cᵀσ ≤ θ   for all σ ∈ S              ω = Xᵀ(α∘y)

has a row for every selection: it is (P) over the convex hull of S. Where S has no rows but cardinality, that is the
Boolean relaxation over 0 ≤ σ ≤ 1, and this is declared. Where it has rows, the Boolean relaxation can be smaller
(`boolean_relaxation`): then the selections that matter are generated (by the driver ``kelley``), and the program is the
restricted one over those (`reduced_mkl`, the primal form), which has the same value up to 1e-7 of it.

The ρ-form of Tan 2010 (1) has the variable ``rho`` for the margin 1 and −ρ in the objective; its value is −1/(4v),
where v is that of the unit margin.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from mipfs.data.classes import ClassWeight
from mipfs.data.instance import Instance
from mipfs.errors import UsageError
from mipfs.formulation import check
from mipfs.formulation.conic import attach
from mipfs.formulation.program import Formulation
from mipfs.models.boolean_relaxation import program_of, values_at
from mipfs.models.reduced_mkl import Pool, primal
from mipfs.models.reduced_mkl import declare as restricted
from mipfs.plumbing.arrays import scatter
from mipfs.plumbing.declared import check_arguments
from mipfs.problem import Problem

GAP = 1e-7
"""Relative gap to which the selections of the hull are generated."""


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
        formulation="fgm",
        weight_bounds=weight_bounds,
        class_weight=class_weight,
    )


def declare(problem: Problem, pool: Pool | None = None) -> Formulation:
    """Declare FGM's relaxation of a problem, or its restriction to a pool of selections (`reduced_mkl`).

    Raises
    ------
    UsageError
        No selection satisfies the rows.
    """
    if pool is not None:
        return restricted(problem, pool)
    check(problem, "fgm")
    if problem.selection.is_plain:
        return attach(program_of(problem), "fgm", declare, values_at)
    over_hull = primal(problem, np.array(generate_selections(problem)))
    return attach(replace(over_hull, hull=True), "fgm", declare)


def generate_selections(problem: Problem) -> list[np.ndarray[tuple[int], np.dtype[np.float64]]]:
    """The selections of S that feature generation finds, as vectors (p,); over them the value is that over all of S."""
    from mipfs.drivers import kelley
    from mipfs.run.run import Run

    run = Run(problem, kelley.Options(gap=GAP, refit=False))
    for _ in kelley.run(run):
        pass
    if not run.outcome.selections:
        raise UsageError("no selection satisfies the rows: there is no hull to declare the relaxation over")
    return [scatter(problem.atoms.count, ids, values) for ids, values in run.outcome.selections]


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
    """Declare FGM's relaxation of `data` in CVXPY.

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
        With the variables ``w``, ``b``, ``xi`` and ``alpha`` (the multipliers of the margins), and ``t``, or where S
        has rows ``mu`` of the generated selections.

    Raises
    ------
    UsageError
        A parameter out of range, or data too large for an algebraic model.

    Source: Tan 2010, (4); Tan 2014, (5) and (16).
    """
    return declare(
        problem(
            data, M=M, C=C, loss=loss, bias=bias, margin=margin, weight_bounds=weight_bounds, class_weight=class_weight
        )
    )
