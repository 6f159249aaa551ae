"""The plain SVM: all features, no selection. The lowest rung of the ladder (mathematics: σ = 1).

    min over w, b   ½ ‖w‖² + L(y∘(Xw + b))

Taking features away never lowers the objective, and penalties are never negative: its value bounds (P) from below
whatever the rows say.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mipfs.data.classes import ClassWeight
from mipfs.data.instance import Instance
from mipfs.formulation import check
from mipfs.formulation.conic import attach, bias_of, cp, design_of, ends_of, loss_of, over_weights
from mipfs.formulation.program import Formulation
from mipfs.plumbing.declared import check_arguments
from mipfs.problem import Problem


def problem(
    data: Instance,
    *,
    M: int | None = None,
    C: float = 1.0,
    loss: str = "hinge",
    bias: bool = True,
    weight_bounds: Mapping[str, Any] | None = None,
    class_weight: ClassWeight | None = None,
) -> Problem:
    """The `Problem` alone, which can be of any size; parameters as in `build`."""
    return Problem(
        data,
        loss=loss,
        bias=bias,
        M=M,
        C=C,
        formulation="plain-svm",
        weight_bounds=weight_bounds,
        class_weight=class_weight,
    )


def declare(problem: Problem) -> Formulation:
    """Declare the plain SVM of a problem, whose M, penalties and rows it leaves out."""
    check(problem, "plain-svm")
    design = design_of(problem)
    w, b = cp.Variable(design.atom.size, name="w"), bias_of(problem)

    # L(m),  m = y∘(Xw + b)
    L, over = loss_of(problem, design.scores(w, b)), over_weights(problem, design, w)

    # min  ½ ‖w‖² + L
    rows = [*L.rows, *ends_of(problem, w), *over.rows]
    program = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(w) + L.value), rows)
    variables = {"w": design.weights(w), "b": b, "xi": L.xi, "alpha": L.alpha, **over.variables}
    return attach(Formulation(problem, program, None, variables), "plain-svm", declare)


@check_arguments
def build(
    data: Instance,
    *,
    M: int | None = None,
    C: float = 1.0,
    loss: str = "hinge",
    bias: bool = True,
    weight_bounds: Mapping[str, Any] | None = None,
    class_weight: ClassWeight | None = None,
) -> Formulation:
    """Declare the plain SVM of `data` in CVXPY.

    Parameters
    ----------
    data : Instance
    M : int in 0 … p
        Of the problem that it bounds; the program itself does not use it.
    C : float > 0
        Weight of the loss.
    loss : {"hinge", "squared-hinge", "logistic"}
    bias : bool
        Whether b is free; without it f(x) = w'x.
    weight_bounds : mapping of feature name to (lower, upper), optional
        Bounds on the weights, as in `mipfs.Problem`.
    class_weight : mapping of label to float > 0, "balanced" or None, optional
        Weights of the classes, as in `mipfs.Problem`.

    Returns
    -------
    Formulation
        With the variables ``w``, ``b``, ``xi`` and ``alpha`` (the multipliers of the margins).

    Raises
    ------
    UsageError
        A parameter out of range, or data too large for an algebraic model.

    Source: Aytug 2015, (1).
    """
    return declare(
        problem(data, M=M, C=C, loss=loss, bias=bias, weight_bounds=weight_bounds, class_weight=class_weight)
    )
