"""FSP-λ: every selected feature costs λ_j (Aytug 2015, section 2, program FSP-λ).

    min over w, b, ξ, σ   ½ Σ_j σ_j w_j² + C Σ_i ξ_i + Σ_j λ_j σ_j
    s.t.                  y_i (Σ_j σ_j w_j x_ij + b) + ξ_i ≥ 1,   ξ_i ≥ 0        i = 1 … n
                          σ_j ∈ {0, 1}                                           j = 1 … p

and in perspective form, as in `fsp_m`,

    min over w, b, ξ, t, σ   ½ Σ_j t_j + Σ_i C_i ξ_i + Σ_j c_j σ_j
    s.t.                     w_j² ≤ σ_j t_j,   t_j ≥ 0
                             y_i (Σ_j w_j x_ij + b) + ξ_i ≥ 1,   ξ_i ≥ 0
                             σ ∈ S: the rows that came with the data

with c_j = λ_j, plus what the data's ``[penalty]`` says. The paper has one λ, and notes in section 3 that nothing
changes when it differs from feature to feature.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mipfs.data.classes import ClassWeight
from mipfs.data.instance import Instance
from mipfs.plumbing.declared import check_arguments
from mipfs.problem import Problem


def problem(
    data: Instance,
    *,
    lam: float | Sequence[float] | Mapping[str, float],
    C: float = 1.0,
    loss: str = "hinge",
    bias: bool = True,
    atoms: Any = None,
    weight_bounds: Mapping[str, Any] | None = None,
    class_weight: ClassWeight | None = None,
) -> Problem:
    """The `Problem` alone, which can be of any size; parameters as in `build`, and what is selected (`mipfs.atoms`)."""
    return Problem(
        data,
        loss=loss,
        bias=bias,
        C=C,
        lam=lam,
        atoms=atoms,
        formulation="fsp-lambda",
        weight_bounds=weight_bounds,
        class_weight=class_weight,
    )


@check_arguments
def build(
    data: Instance,
    *,
    lam: float | Sequence[float] | Mapping[str, float],
    C: float = 1.0,
    loss: str = "hinge",
    bias: bool = True,
    weight_bounds: Mapping[str, Any] | None = None,
    class_weight: ClassWeight | None = None,
) -> Any:
    """Declare FSP-λ of `data` in Pyomo.

    Parameters
    ----------
    data : Instance
        Its costs, penalties, rows and forced features become part of ``select``, and so does a
        cardinality row where it has ``[select] M``.
    lam : float >= 0, sequence of p of them, or mapping of name to float
        The cost of selecting a feature; a feature that a mapping leaves out costs nothing.
    C : float > 0
        Weight of the loss.
    loss : str
        The loss of the margins, see `perspective`.
    bias : bool
        Whether b is free; without it f(x) = w'x.
    weight_bounds : mapping of feature name to (lower, upper), optional
        Bounds on the weights, as in `mipfs.Problem`.
    class_weight : mapping of label to float > 0, "balanced" or None, optional
        Weights of the classes, as in `mipfs.Problem`.

    Returns
    -------
    pyomo.environ.ConcreteModel
        With the blocks of `fsp_m`.

    Raises
    ------
    UsageError
        A parameter out of range, or data too large for an algebraic model.

    Source: Aytug 2015, section 2, (FSP-λ).
    """
    from mipfs.models.perspective import perspective

    return perspective(
        problem(data, lam=lam, C=C, loss=loss, bias=bias, weight_bounds=weight_bounds, class_weight=class_weight),
        name="FSP-λ",
    )
