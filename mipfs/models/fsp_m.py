"""FSP-M: the best classifier with at most M features (Aytug 2015, section 2, program FSP-M).

    min over w, b, ξ, σ   ½ Σ_j σ_j w_j² + C Σ_i ξ_i
    s.t.                  y_i (Σ_j σ_j w_j x_ij + b) + ξ_i ≥ 1,   ξ_i ≥ 0        i = 1 … n
                          Σ_j σ_j ≤ M,   σ_j ∈ {0, 1}                            j = 1 … p

The products σ_j w_j are the weights of the classifier. Written in those, with t_j ≥ w_j²/σ_j, the program is
convex but for σ ∈ {0, 1}: the perspective form

    min over w, b, ξ, t, σ   ½ Σ_j t_j + Σ_i C_i ξ_i + Σ_j c_j σ_j
    s.t.                     w_j² ≤ σ_j t_j,   t_j ≥ 0
                             y_i (Σ_j w_j x_ij + b) + ξ_i ≥ 1,   ξ_i ≥ 0
                             σ ∈ S: Σ_j σ_j ≤ M, and the rows that came with the data

with a weight C_i = C · (sample weight) per sample and a fixed cost c_j where the data has a ``[penalty]``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mipfs.data.classes import ClassWeight
from mipfs.data.instance import Instance
from mipfs.errors import UsageError
from mipfs.plumbing.declared import check_arguments
from mipfs.problem import Problem


def problem(
    data: Instance,
    *,
    M: int | None = None,
    C: float = 1.0,
    loss: str = "hinge",
    bias: bool = True,
    atoms: Any = None,
    weight_bounds: Mapping[str, Any] | None = None,
    class_weight: ClassWeight | None = None,
) -> Problem:
    """The `Problem` alone, which can be of any size; parameters as in `build`, and what is selected (`mipfs.atoms`)."""
    if M is None and data.select.M is None:
        raise UsageError("fsp-m needs M, the largest number of features: -p M=... or M under [select] in the .toml")
    return Problem(
        data,
        loss=loss,
        bias=bias,
        M=M,
        C=C,
        atoms=atoms,
        formulation="fsp-m",
        weight_bounds=weight_bounds,
        class_weight=class_weight,
    )


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
) -> Any:
    """Declare FSP-M of `data` in Pyomo.

    Parameters
    ----------
    data : Instance
        Its costs, penalties, rows and forced features become part of ``select``.
    M : int in 0 … p
        The most features that are selected; may be left out where the data has ``[select] M``.
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
        With the blocks ``select`` (``sigma``, ``cardinality``, ``rows``) and ``svm`` (``w``, ``b``, ``xi``,
        ``t``, ``cone``, ``margin``). Rows and variables added under ``select`` are part of the problem.

    Raises
    ------
    UsageError
        A parameter out of range, or data too large for an algebraic model.

    Source: Aytug 2015, section 2, (FSP-M).
    """
    from mipfs.models.perspective import perspective

    return perspective(
        problem(data, M=M, C=C, loss=loss, bias=bias, weight_bounds=weight_bounds, class_weight=class_weight),
        name="FSP-M",
    )
