"""The two programs of Benders' decomposition, to print and to edit (Aytug 2015, Table 1): RMP in Pyomo, SUB in CVXPY.

    SUB  v(σ̄) = min over w, b, ξ   ½ Σ_j σ̄_j w_j² + L(ξ)
         s.t.                       y_i (Σ_j σ̄_j w_j x_ij + b) + ξ_i ≥ 1                                     (5), (12)

    RMP  min over σ ∈ S, η         Σ_j λ_j σ_j + η
         s.t.                      η ≥ g(α_s) − ½ Σ_j ω_j(α_s)² σ_j        for every cut s                  (10), (15)

α are the multipliers of the rows of SUB, ω_j(α) = Σ_i α_i y_i x_ij. The paper maximises σ_0 = −η. A penalty λ_j of the
data, or of FSP-λ, stands in the objective here, in every cut of (15) there: the programs are the same. For σ̄ ∈ {0, 1}
SUB is declared in the weights σ̄_j w_j of the classifier, which are w_j where σ̄_j = 1; for σ̄_j in between in √σ̄_j w_j.

``gbd`` with ``master="milp"`` and ``subproblem="conic"`` solves these. By hand, any solver of Pyomo's takes RMP:

    model = rmp(problem)
    add_cut(model, sub_alpha)            # until the bounds meet
    pyomo.environ.SolverFactory("appsi_highs").solve(model)

Rows and variables under ``model.select`` are part of the problem: ``mipfs.solve(model)`` solves it with them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs.errors import UsageError
from mipfs.formulation.conic import bias_of, cp, loss_of
from mipfs.formulation.program import Formulation, TooLargeError, check_size
from mipfs.formulation.pyomo_model import DeclaredModel
from mipfs.plumbing.arrays import Array, Integers
from mipfs.problem import Problem
from mipfs.proof import single
from mipfs.proof.cuts import Cut

MOST_ATOMS = 100_000
"""Beyond that a Pyomo model takes gigabytes."""


def rmp(problem: Problem, alphas: Iterable[npt.ArrayLike] = ()) -> Any:
    """Declare RMP in Pyomo.

    Parameters
    ----------
    problem : Problem, of any loss that is a sum over the samples to `add_cut`
    alphas : dual vectors (n,), of each of which a cut is added

    Returns
    -------
    pyomo.environ.ConcreteModel
        With the block ``select`` (``sigma``, ``cardinality``, ``rows``), the variable ``eta``, the list ``cuts`` and
        the objective ``lower``, whose value bounds (P) from below.

    Raises
    ------
    UsageError
        More than `MOST_ATOMS` to select from.

    Source: Aytug 2015, (10) and (15).
    """
    import pyomo.environ as pyo

    from mipfs.formulation.pyomo_attach import attach
    from mipfs.models.perspective import select_block

    if problem.atoms.count > MOST_ATOMS:
        raise TooLargeError(f"{problem.atoms.count} features are too many for RMP in Pyomo (at most {MOST_ATOMS})")
    model = DeclaredModel("RMP")
    model.select = select_block(problem)
    model.eta = pyo.Var()
    model.cuts = pyo.ConstraintList()
    sigma = model.select.sigma.values()
    costs = pyo.quicksum(c * s for s, c in zip(sigma, problem.penalty.tolist(), strict=True) if c)
    model.lower = pyo.Objective(expr=costs + model.select.extra_cost + model.eta)
    attach(model, problem)
    for alpha in alphas:
        add_cut(model, alpha)
    return model


def add_cut(model: Any, cut: Cut | npt.ArrayLike) -> Any:
    """Add a cut to RMP, of a dual vector (n,) that is rounded into the dual set first; the Pyomo constraint."""
    from pyomo.core.expr import LinearExpression

    from mipfs.formulation.pyomo_attach import seen_again

    found = cut if isinstance(cut, Cut) else cut_of(model._mipfs.problem, _dual_vector(model._mipfs.problem, cut))
    slopes = found.slopes.tolist()
    sigma = [s for s, slope in zip(model.select.sigma.values(), slopes, strict=True) if slope]
    # η + ½ Σ_j ω_j² σ_j ≥ g(α)                                                 Aytug 2015, (10)
    halves = [0.5 * slope for slope in slopes if slope]
    body = LinearExpression(linear_coefs=[1.0, *halves], linear_vars=[model.eta, *sigma], constant=0.0)
    row = model.cuts.add(body >= found.constant)
    seen_again(model, model.cuts)
    return row


def _dual_vector(problem: Problem, given: npt.ArrayLike | None) -> Array:
    """A dual vector (n,), as an array; None is what a CVXPY variable holds before it is solved."""
    n = problem.data.n_samples
    alpha = None if given is None else np.asarray(given, dtype=float)
    if alpha is None or alpha.shape != (n,) or not np.all(np.isfinite(alpha)):
        shown = "None" if alpha is None else f"an array of shape {alpha.shape}"
        raise UsageError(f"a cut is of a dual vector of {n} finite numbers, one a sample, not of {shown}")
    return alpha


def cut_of(problem: Problem, alpha: Array) -> Cut:
    """The cut of a dual vector (n,), rounded into the dual set."""
    if problem.is_joint:
        raise UsageError("a dual vector over labellings is more than alpha; give the Cut itself")
    return single.cut_of(problem, alpha)


def sub(problem: Problem, sigma: npt.ArrayLike) -> Formulation:
    """Declare SUB at a σ̄ in CVXPY.

    Parameters
    ----------
    problem : Problem with a pointwise loss
    sigma : (count,) numbers in [0, 1]

    Returns
    -------
    Formulation
        Solved by ``.cvxpy.solve()``, with ``w`` (of the columns that σ̄ selects), ``b``, ``xi`` and ``alpha``, which
        `add_cut` takes.

    Raises
    ------
    UsageError
        Another shape or range, a structural loss, or data too large for a conic program.

    Source: Aytug 2015, (SUB-M) and (SUB-λ), (5) and (12).
    """
    values = np.asarray(sigma, dtype=float)
    if values.shape != (problem.atoms.count,) or not np.all((values >= 0.0) & (values <= 1.0)):
        raise UsageError(f"sigma must have {problem.atoms.count} entries in [0, 1], one for what can be selected")
    check_size(problem.data, "CVXPY program")
    atoms = np.flatnonzero(values)
    columns = problem.atoms.columns(atoms)
    part = values[atoms][columns.atom] * np.square(columns.scale)
    return sub_of_columns(problem, columns.ids, part, float(problem.penalty @ values))


def sub_of_columns(problem: Problem, ids: Integers, part: Array, fixed: float = 0.0) -> Formulation:
    """SUB on columns (k,) with their shares σ̄_j λ_j² (k,); `fixed` is the penalty of σ̄, (12)."""
    if problem.is_joint:
        raise UsageError("SUB is declared for losses that are a sum over the samples, not for the structural loss")
    root = np.sqrt(part)
    block = problem.data.block(ids)
    w, b = cp.Variable(max(1, ids.size), name="w"), bias_of(problem)

    # y_i (Σ_j √σ̄_j w_j x_ij + b) + ξ_i ≥ 1                                      Aytug 2015, (5)
    scores = (
        (block.values * root[None, :]) @ w - (block.center * root) @ w if ids.size else np.zeros(problem.c_i.size)
    ) + b
    loss = loss_of(problem, scores)

    # min  ½ ‖w‖² + L(ξ) + Σ_j λ_j σ̄_j
    program = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(w) + loss.value + fixed), loss.rows)
    variables = {"w": w, "b": b, "xi": loss.xi, "alpha": loss.alpha}
    return Formulation(problem, program, None, variables, is_relaxation=False)
