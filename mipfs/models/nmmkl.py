"""NMMKL: the Boolean relaxation as one QCQP with p quadratic constraints (Xu et al. 2009, cited in Tan 2010).

    max over α, q, δ   g(α) − ½ (M δ + Σ_j q_j)
    s.t.               ω_j(α)² ≤ δ + q_j,   q ≥ 0,   δ ≥ 0,   α ∈ A               ω = Xᵀ(α∘y)

For a fixed α the rest is the linear program that is dual to the largest ½ Σ_j σ_j ω_j² with Σσ ≤ M and 0 ≤ σ ≤ 1,
so σ is the multiplier of the quadratic rows, and the value is that of the relaxation in `qcqp_relaxation`.
The same duality carries penalties c and rows lb ≤ A [σ; u] ≤ ub, with multipliers π of both signs:

    max   g(α) − ½ (M δ + Σ_j q_j) − (ubᵀπ⁺ − lbᵀπ⁻)
    s.t.  ½ ω_j² − c_j ≤ ½ (δ + q_j) + (Aᵀ(π⁺ − π⁻))_j

where a multiplier of an absent bound is zero, a feature that is forced in has q_j of any sign, and one that is
forced out has no row. An extra variable u_k in [l, h] costs h ν⁺ − l ν⁻ with ν⁺ − ν⁻ = −(Aᵀ(π⁺ − π⁻))_k. Rows over the
weights, d'w ≥ −o, add Dᵀν to ω and −oᵀν to the value, ν ≥ 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import sparse

from mipfs.data.classes import ClassWeight
from mipfs.data.instance import Instance
from mipfs.formulation import check
from mipfs.formulation.conic import Sigma, attach, cp, design_of, dual_of
from mipfs.formulation.program import ClassifierPoint, Formulation
from mipfs.plumbing.arrays import Array, Integers
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
    return Problem(data, loss=loss, bias=bias, M=M, C=C, formulation="nmmkl", class_weight=class_weight)


def declare(problem: Problem) -> Formulation:
    """Declare NMMKL of a problem, with its penalties and the rows of its selection."""
    check(problem, "nmmkl")
    selection = problem.selection
    p = selection.n_features
    lower, upper = selection.sigma_bounds()
    free = np.flatnonzero(upper)  # not forced out

    # α ∈ A,  ω = Xᵀ(α∘y)
    dual = dual_of(problem)
    omega, defines_omega, nu = _omega_and_rows(problem, free, dual.v)

    # q ≥ 0, δ ≥ 0
    q = cp.Variable(free.size, name="q")
    constraints = [*dual.rows, defines_omega]
    optional = np.flatnonzero(lower[free] == 0.0)
    if optional.size:
        constraints.append(q[optional] >= 0)
    delta = cp.Variable(nonneg=True, name="delta")
    prices, price_of_rows, price_rows = _row_prices(problem)
    price_of_ends = problem.ends.plain @ nu if problem.weight_rows else 0.0

    # ½ ω_j² − c_j ≤ ½ (δ + q_j) + (Aᵀπ)_j                                       Xu et al. 2009; the multiplier is σ_j
    room = 0.5 * q + prices[free]
    if selection.M is not None:
        room = room + 0.5 * delta
    quadratic = 0.5 * cp.square(omega) - problem.penalty[free] <= room

    # max  g(α) − ½ (M δ + Σ_j q_j) − (ubᵀπ⁺ − lbᵀπ⁻)
    cardinality = 0.0 if selection.M is None else selection.M * delta
    program = cp.Problem(
        cp.Maximize(dual.g - 0.5 * (cardinality + cp.sum(q)) - price_of_rows - price_of_ends),
        [*constraints, quadratic, *price_rows],
    )
    scatter = sparse.csr_array((np.ones(free.size), (free, np.arange(free.size))), shape=(p, free.size))
    sigma = Sigma(problem, quadratic, scatter)
    variables = {"alpha": dual.alpha, "omega": omega, "q": q, "delta": delta, **({} if nu is None else {"nu": nu})}
    return attach(Formulation(problem, program, sigma, variables), "nmmkl", declare, values_at)


def _omega_and_rows(problem: Problem, free: Integers, v: Any) -> tuple[Any, Any, Any]:
    """ω = Xᵀv + Dᵀν of some features as a variable, the rows that define it, and ν ≥ 0 of rows over the weights."""
    omega, defined = design_of(problem, free).omega(v)
    if not problem.weight_rows:
        return omega, defined, None
    nu = cp.Variable(problem.ends.count, nonneg=True, name="nu")
    return omega, defined.args[0] == defined.args[1] + problem.ends.matrix[:, free].T @ nu, nu


def values_at(problem: Problem, point: ClassifierPoint) -> Mapping[str, Any]:
    """Nothing but σ: its variables are those of the dual."""
    return {}


def _row_prices(problem: Problem) -> tuple[Any, Any, list[Any]]:
    """(Aᵀπ) of the features, ubᵀπ⁺ − lbᵀπ⁻ with the extra variables' part, and the rows that tie the latter."""
    rows = problem.selection.rows
    p = problem.data.n_features
    if not len(rows):
        return np.zeros(p), 0.0, []
    pi, cost = _two_sided(rows.lb, rows.ub)
    reduced = rows.matrix.T @ pi
    if not len(rows.extra):
        return reduced, cost, []
    nu, extra_cost = _two_sided(*rows.extra.box)
    return reduced[:p], cost + extra_cost, [reduced[p:] + nu == 0]


def _two_sided(lb: Array, ub: Array) -> tuple[Any, Any]:
    """π = π⁺ − π⁻ with π⁺, π⁻ ≥ 0, and its cost ubᵀπ⁺ − lbᵀπ⁻; an infinite bound has no multiplier."""
    pi = np.zeros(lb.size)
    cost = 0.0
    for bound, sign in ((ub, 1.0), (lb, -1.0)):
        ids = np.flatnonzero(np.isfinite(bound))
        if ids.size:
            part = cp.Variable(ids.size, nonneg=True)
            scatter = sparse.csr_array((np.full(ids.size, sign), (ids, np.arange(ids.size))), shape=(lb.size, ids.size))
            pi = pi + scatter @ part
            cost = cost + sign * (bound[ids] @ part)
    return pi, cost


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
    """Declare NMMKL of `data` in CVXPY.

    Parameters
    ----------
    data : Instance
        Its penalties, rows and forced features become part of the program.
    M : int in 0 … p
        The most features that are selected; without it (and without ``[select] M``) there is no δ.
    C : float > 0
        Weight of the loss.
    loss : {"hinge", "squared-hinge", "logistic"}
    bias : bool
        Whether b is free, which adds yᵀα = 0.
    class_weight : mapping of label to float > 0, "balanced" or None, optional
        Weights of the classes, as in `mipfs.Problem`.

    Returns
    -------
    Formulation
        With the variables ``alpha``, ``omega`` (of the features that are not forced out), ``q`` and ``delta``.

    Raises
    ------
    UsageError
        A parameter out of range, or data too large for an algebraic model.

    Source: Xu et al. 2009 (NMMKL), as described in Tan 2010, section 1; the rows are ours.
    """
    return declare(problem(data, M=M, C=C, loss=loss, bias=bias, class_weight=class_weight))
