"""The decomposed semidefinite relaxation of "at most M features" (after Bomze, D'Onofrio, Palagi and Peng 2025).

    min over σ, w, b, W   cᵀσ + ½ Σ_j W_jj + L(y∘(Xw + b))
    s.t.                  σ over the rows of S, 0 ≤ σ ≤ 1

                          [ 1    w_j   σ_j ]
                          [ w_j  W_jj  w_j ]  ⪰ 0   for every feature j
                          [ σ_j  w_j   σ_j ]

Shor's relaxation lifts (1, w, σ) to one matrix with the diagonal of σσᵀ equal to σ, for σ is binary, and that of wσᵀ
equal to w, for w_j = 0 where σ_j = 0. The objective and all rows meet that matrix in its first row and in the entries
of w_j and σ_j alone, so that it may be completed from the blocks over (1, w_j, σ_j): one large matrix becomes p small.

A block says no more than the perspective of w_j² (`boolean_relaxation`). Its Schur complement at the 1 is

    [ W − w²      w (1 − σ) ]
    [ w (1 − σ)   σ (1 − σ) ]  ⪰ 0,    that is, for 0 < σ < 1:   (W − w²) σ ≥ w² (1 − σ),    W σ ≥ w²,

and at σ = 0 it leaves w = 0, at σ = 1 W ≥ w². So its value is that of the Boolean relaxation, which is solved many
times faster. The same holds with the complement v = 1 − σ and w_j v_j = 0 in place of σ: W (1 − v) ≥ w².
"""

from __future__ import annotations

from mipfs.data.classes import ClassWeight
from mipfs.data.instance import Instance
from mipfs.formulation import check
from mipfs.formulation.conic import (
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
from mipfs.formulation.program import Formulation, TooLargeError
from mipfs.plumbing.declared import check_arguments
from mipfs.problem import Problem

MAX_FEATURES = 500
"""A few seconds, most of them CVXPY's."""


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
    return Problem(data, loss=loss, bias=bias, M=M, C=C, formulation="decomposed-sdp", class_weight=class_weight)


def declare(problem: Problem) -> Formulation:
    """Declare the decomposed relaxation of a problem, with its penalties and the rows of its selection."""
    p = problem.data.n_features
    if p > MAX_FEATURES:
        raise TooLargeError(f"{p} features are too many for decomposed-sdp: at most {MAX_FEATURES}")
    check(problem, "decomposed-sdp")
    b, sigma = bias_of(problem), Sigma(problem)

    # V_j = [1 w σ; w W w; σ w σ] ⪰ 0
    V = [cp.Variable((3, 3), PSD=True, name=f"V{j}") for j in range(p)]
    w, W = cp.hstack([block[0, 1] for block in V]), cp.hstack([block[1, 1] for block in V])
    blocks = [
        cp.hstack([block[0, 0] for block in V]) == 1,
        cp.hstack([block[1, 2] for block in V]) == w,
        cp.hstack([block[0, 2] for block in V]) == sigma,
        cp.hstack([block[2, 2] for block in V]) == sigma,
    ]
    design = design_of(problem)
    L, over = loss_of(problem, design.scores(w, b)), over_weights(problem, design, w)

    # min  cᵀσ + dᵀu + ½ Σ_j W_jj + L
    rows = selection_constraints(problem, sigma)
    objective = problem.penalty @ sigma + 0.5 * cp.sum(W) + L.value + extra_cost(problem, rows)
    program = cp.Problem(cp.Minimize(objective), [*blocks, *rows, *L.rows, *over.rows])
    variables = {"w": w, "b": b, "W": W, "xi": L.xi, "alpha": L.alpha, **over.variables}
    return attach(Formulation(problem, program, sigma, variables), "decomposed-sdp", declare)


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
    """Declare the decomposed semidefinite relaxation of `data` in CVXPY.

    Parameters
    ----------
    data : Instance
        Its penalties, rows and forced features become part of the program.
    M : int in 0 … p
        The most features that are selected; may be left out where the data has ``[select] M``.
    C : float > 0
        Weight of the loss.
    loss : {"hinge", "squared-hinge", "logistic"}
    bias : bool
        Whether b is free; without it f(x) = w'x.
    class_weight : mapping of label to float > 0, "balanced" or None, optional
        Weights of the classes, as in `mipfs.Problem`.

    Returns
    -------
    Formulation
        With the variables ``w``, ``b``, ``W`` (the lifted w_j²), ``xi`` and ``alpha`` (the multipliers of the margins).

    Raises
    ------
    UsageError
        A parameter out of range, or data too large for an algebraic model.

    Source: Bomze, D'Onofrio, Palagi and Peng 2025 (European Journal of Operational Research; arXiv 2404.10099).
    """
    return declare(problem(data, M=M, C=C, loss=loss, bias=bias, class_weight=class_weight))
