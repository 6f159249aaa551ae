"""ONSVM: the one-norm SVM, a linear program (Aytug 2015, section 2, program ONSVM). A baseline, never a bound.

    min over p, q, b, ξ   Σ_j (p_j + q_j) + Σ_i C_i ξ_i
    s.t.                  y_i ((p − q)ᵀx_i + b) + ξ_i ≥ 1,   p, q, ξ ≥ 0

It solves another problem: its objective is the ℓ1 norm of w = p − q, which has zeros of its own accord. M, the
penalties and the rows of the selection are no part of it; its largest weights, refitted under those rows, make a
classifier to compare with.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mipfs.data.classes import ClassWeight
from mipfs.data.instance import Instance
from mipfs.formulation import check
from mipfs.formulation.conic import attach, bias_of, cp, design_of, loss_of
from mipfs.formulation.program import ClassifierPoint, Formulation
from mipfs.plumbing.declared import check_arguments
from mipfs.problem import Problem


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
    return Problem(data, loss=loss, bias=bias, M=M, C=C, formulation="onsvm", class_weight=class_weight)


def declare(problem: Problem) -> Formulation:
    """Declare ONSVM with the loss weights of a problem, whose M, penalties and rows it leaves out."""
    check(problem, "onsvm")
    n_features = problem.data.n_features
    p, q = cp.Variable(n_features, name="p", nonneg=True), cp.Variable(n_features, name="q", nonneg=True)
    b = bias_of(problem)

    # y_i ((p − q)ᵀx_i + b) + ξ_i ≥ 1,  ξ ≥ 0                                     Aytug 2015, (ONSVM)
    L = loss_of(problem, design_of(problem).scores(p - q, b))

    # min  Σ_j (p_j + q_j) + Σ_i C_i ξ_i
    program = cp.Problem(cp.Minimize(cp.sum(p + q) + L.value), L.rows)
    variables = {"p": p, "q": q, "w": p - q, "b": b, "xi": L.xi, "alpha": L.alpha}
    declared = Formulation(problem, program, None, variables, solver="highs", is_relaxation=False)
    return attach(declared, "onsvm", declare, values_at)


def values_at(problem: Problem, point: ClassifierPoint) -> Mapping[str, Any]:
    """The variables at a classifier: w = p − q, one of each 0."""
    parts = {"p": np.maximum(point.w, 0.0), "q": np.maximum(-point.w, 0.0)}
    return {**parts, "b": point.b, "xi": point.slacks(problem.loss)}


@check_arguments
def build(
    data: Instance,
    *,
    M: int | None = None,
    C: float = 1.0,
    loss: str = "hinge",
    bias: bool = True,
    class_weight: ClassWeight | None = None,
) -> Formulation:
    """Declare ONSVM of `data` in CVXPY.

    Parameters
    ----------
    data : Instance
    M : int in 0 … p
        Of the problem that its weights are rounded for; the program itself does not use it.
    C : float > 0
        Weight of the loss.
    loss : {"hinge"}
    bias : bool
        Whether b is free; without it f(x) = w'x.
    class_weight : mapping of label to float > 0, "balanced" or None, optional
        Weights of the classes, as in `mipfs.Problem`.

    Returns
    -------
    Formulation
        With ``p``, ``q``, ``w``, ``b``, ``xi`` and ``alpha`` (the multipliers of the margins).

    Raises
    ------
    UsageError
        Another loss, a parameter out of range, or data too large for an algebraic model.

    Source: Aytug 2015, section 2, (ONSVM), after Bradley and Mangasarian 1998.
    """
    return declare(problem(data, M=M, C=C, loss=loss, bias=bias, class_weight=class_weight))
