"""SDP-SSVM: a semidefinite relaxation of "at most M features" (Chan, Vasconcelos and Lanckriet 2007).

    min over w, b, W   ½ tr W + L(y∘(Xw + b))
    s.t.               [W w; wᵀ 1] ⪰ 0,   Σ_jk |W_jk| ≤ M tr W

W stands for wwᵀ, whose entries add up to ‖w‖₁² ≤ M ‖w‖² where w has at most M non-zeros. Its value is that of
`qcqp_ssvm`, at a much higher price: with t = max(‖w‖², ‖w‖₁²/M) and κ = (t − ‖w‖²)/(‖w‖₁² − ‖w‖²), the matrix
W = (1 − κ) wwᵀ + κ ‖w‖₁ diag|w| is feasible and has tr W = t. There is no σ: penalties and rows over the selection
cannot be carried, and the value is a bound without them.

LP, MPS and .nl have no semidefinite cone: a written file has a factor of the matrix instead, which is not convex, and
whose value SCIP finds but does not prove. Clarabel and SCS take the cone from ``build(data, M=5).cvxpy``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mipfs.data.classes import ClassWeight
from mipfs.data.instance import Instance
from mipfs.errors import UsageError
from mipfs.formulation import check
from mipfs.formulation.conic import attach, bias_of, cp, design_of, ends_of, loss_of, over_weights
from mipfs.formulation.program import ClassifierPoint, Formulation, TooLargeError
from mipfs.plumbing.declared import check_arguments
from mipfs.problem import Problem

MAX_FEATURES = 80
"""A minute or so of Clarabel; the time grows like the fourth to the sixth power of the features."""


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
        formulation="sdp-ssvm",
        weight_bounds=weight_bounds,
        class_weight=class_weight,
    )


def declare(problem: Problem) -> Formulation:
    """Declare SDP-SSVM of a problem with a cardinality row; it leaves penalties and the other rows out."""
    if problem.M is None:
        raise UsageError("sdp-ssvm needs M, the largest number of features: -p M=... or M under [select] in the .toml")
    p = problem.data.n_features
    if p > MAX_FEATURES:
        raise TooLargeError(f"{p} features are too many for sdp-ssvm, which has p² variables: at most {MAX_FEATURES}")
    check(problem, "sdp-ssvm")
    b = bias_of(problem)

    # V = [W w; wᵀ 1] ⪰ 0                                                         Chan et al. 2007
    V = cp.Variable((p + 1, p + 1), PSD=True, name="V")
    W, w = V[:p, :p], V[:p, p]
    design = design_of(problem)
    L, over = loss_of(problem, design.scores(w, b)), over_weights(problem, design, w)

    # Σ_jk |W_jk| ≤ M tr W
    sparse = cp.sum(cp.abs(W)) <= problem.M * cp.trace(W)

    # min  ½ tr W + L
    program = cp.Problem(
        cp.Minimize(0.5 * cp.trace(W) + L.value), [*L.rows, V[p, p] == 1, sparse, *ends_of(problem, w), *over.rows]
    )
    variables = {"w": w, "b": b, "W": W, "V": V, "xi": L.xi, "alpha": L.alpha, **over.variables}
    return attach(Formulation(problem, program, None, variables), "sdp-ssvm", declare, values_at)


def values_at(problem: Problem, point: ClassifierPoint) -> Mapping[str, Any]:
    """The variables at a classifier: V = (w, 1)(w, 1)ᵀ, of which w and W are parts."""
    both = np.append(point.w, 1.0)
    return {"V": np.outer(both, both), "b": point.b, "xi": point.slacks(problem.loss)}


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
    """Declare SDP-SSVM of `data` in CVXPY.

    Parameters
    ----------
    data : Instance
        Of a few dozen features: the program has p² variables.
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
        With the variables ``w``, ``b``, ``W``, ``xi`` and ``alpha`` (the multipliers of the margins).

    Raises
    ------
    UsageError
        No M, a parameter out of range, or data too large for an algebraic model.

    Source: Chan, Vasconcelos and Lanckriet 2007 (SDP-SSVM).
    """
    return declare(
        problem(data, M=M, C=C, loss=loss, bias=bias, weight_bounds=weight_bounds, class_weight=class_weight)
    )
