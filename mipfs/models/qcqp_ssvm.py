"""QCQP-SSVM: a relaxation of "at most M features" by norms (Chan, Vasconcelos and Lanckriet 2007).

    min over w, b, t   ½ t + L(y∘(Xw + b))
    s.t.               ‖w‖² ≤ t,   ‖w‖₁² ≤ M t

A vector with at most M non-zeros has ‖w‖₁² ≤ M ‖w‖², so with t = ‖w‖² it is feasible at its own objective. There is
no σ: penalties and rows over the selection cannot be carried, and the value is a bound without them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mipfs.data.classes import ClassWeight
from mipfs.data.instance import Instance
from mipfs.errors import UsageError
from mipfs.formulation import check
from mipfs.formulation.conic import attach, bias_of, cp, design_of, ends_of, loss_of, over_weights
from mipfs.formulation.program import ClassifierPoint, Formulation, shared_values
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
        formulation="qcqp-ssvm",
        weight_bounds=weight_bounds,
        class_weight=class_weight,
    )


def declare(problem: Problem) -> Formulation:
    """Declare QCQP-SSVM of a problem with a cardinality row; it leaves penalties and the other rows out."""
    if problem.M is None:
        raise UsageError("qcqp-ssvm needs M, the largest number of features: -p M=... or M under [select] in the .toml")
    check(problem, "qcqp-ssvm")
    w, b = cp.Variable(problem.data.n_features, name="w"), bias_of(problem)
    t = cp.Variable(name="t")
    design = design_of(problem)
    L, over = loss_of(problem, design.scores(w, b)), over_weights(problem, design, w)

    # ‖w‖² ≤ t,  ‖w‖₁² ≤ M t                                                      Chan et al. 2007
    norms = [cp.sum_squares(w) <= t, cp.square(cp.norm1(w)) <= problem.M * t]

    # min  ½ t + L
    program = cp.Problem(cp.Minimize(0.5 * t + L.value), [*L.rows, *norms, *ends_of(problem, w), *over.rows])
    variables = {"w": w, "b": b, "t": t, "xi": L.xi, "alpha": L.alpha, **over.variables}
    return attach(Formulation(problem, program, None, variables), "qcqp-ssvm", declare, values_at)


def values_at(problem: Problem, point: ClassifierPoint) -> Mapping[str, Any]:
    """The variables at a classifier: t = ‖w‖² too."""
    return {**shared_values(problem, point), "t": float(point.w @ point.w)}


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
    """Declare QCQP-SSVM of `data` in CVXPY.

    Parameters
    ----------
    data : Instance
    M : int in 0 … p
        The most features that are selected; may be left out where the data has ``[select] M``.
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
        With the variables ``w``, ``b``, ``t``, ``xi`` and ``alpha`` (the multipliers of the margins).

    Raises
    ------
    UsageError
        No M, a parameter out of range, or data too large for an algebraic model.

    Source: Chan, Vasconcelos and Lanckriet 2007 (QCQP-SSVM).
    """
    return declare(
        problem(data, M=M, C=C, loss=loss, bias=bias, weight_bounds=weight_bounds, class_weight=class_weight)
    )
