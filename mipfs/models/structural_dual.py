"""Feature selection for a multivariate measure: the restricted dual of two-layer cutting planes (Mao 2013).

    (P)   min over σ ∈ S, w   ½ Σ_j w_j²/σ_j + cᵀσ + C max over ȳ of [Δ(ȳ) − wᵀa(ȳ)]₊                    Mao 2013, (5)

For labellings ȳ_1, …, ȳ_K, a pool of selections σ¹, …, σᵀ and A_t = √σᵗ∘(a(ȳ_1), …, a(ȳ_K)):

    max over α, θ   Σ_k α_k Δ_k − θ   s.t.   ½ ‖A_t α‖² − cᵀσᵗ ≤ θ  for all t,   α ≥ 0,   Σ_k α_k ≤ C     Mao 2013, (16)

    min over w_t, ξ ≥ 0   ½ (Σ_t r_t)² + C ξ   s.t.   ‖w_t‖ ≤ r_t,   ξ ≥ Δ_k − Σ_t w_tᵀ(√σᵗ∘a_k)       Mao 2013, (15)

Over all labellings and all of S this is the dual (6) of the convex relaxation of (P). The multiplier of row t is μ_t;
w_t = μ_t √σᵗ∘A_t α and σ = Σ_t μ_t σᵗ. Its size depends on K and T, not on the number of samples. (15) is the primal
side of (16), a bundle over the weights, a_k = a(ȳ_k); it is stated without penalties, as the paper has it.

`declare` states either in CVXPY, as the reference; the driver ``two_layer`` hands (16) to Clarabel itself, once per
labelling where S has rows: K and T grow, and CVXPY would canonicalise it anew each time. Where S has none, its master
is over all selections of some features at once (`mipfs.inner.saddle`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from mipfs.data.instance import Instance
from mipfs.errors import UsageError
from mipfs.formulation import check
from mipfs.formulation.conic import Multiplier, Sigma, attach, cp
from mipfs.formulation.program import Formulation
from mipfs.models.reduced_mkl import Pool, allowed_selections, selections
from mipfs.plumbing.arrays import Array, scatter
from mipfs.plumbing.declared import check_arguments
from mipfs.problem import Problem
from mipfs.widened import widen_problem

GAP = 1e-6
"""Relative gap to which labellings and selections are generated."""
MAX_SELECTIONS = 1000


def problem(
    data: Instance,
    *,
    measure: str,
    M: int | None = None,
    C: float = 1.0,
    beta: float | None = None,
    k: int | None = None,
    bias: bool = True,
    atoms: Any = None,
) -> Problem:
    """The `Problem`, which can be of any size; parameters as in `build`, and what is selected (`mipfs.atoms`)."""
    return Problem(
        data,
        loss="structural",
        bias=bias,
        M=M,
        C=C,
        measure=measure,
        beta=beta,
        k=k,
        atoms=atoms,
        formulation="structural",
    )


def declare(
    problem: Problem,
    counts: npt.ArrayLike | None = None,
    losses: npt.ArrayLike | None = None,
    pool: Pool | None = None,
    form: Literal["dual", "primal"] = "dual",
) -> Formulation:
    """Declare (16), or (15), in CVXPY.

    Without labellings and a pool these are generated first, by two-layer cutting planes: over them the value is
    that of the relaxation over all labellings and all of S, up to 1e-6 of it.

    Parameters
    ----------
    problem : Problem with the structural loss, over features or groups
    counts : (K, n) what every labelling gets wrong, as `mipfs.measures.Violated` has it
    losses : (K,) Δ of every labelling
    pool : sequence of selections, or text, as in `mipfs.models.reduced_mkl`
    form : {"dual", "primal"}
        (16), or (15), which takes no penalties.

    Returns
    -------
    Formulation
        With ``alpha`` (K,) and ``mu`` (T,); in the dual ``theta``, in the primal ``w_t``, ``r`` (T,) and ``xi``. With a
        bias, over a constant column too (`mipfs.widened`), which ``sigma`` leaves out.
    """
    if form not in ("dual", "primal"):
        raise UsageError(f"form = {form!r} is unknown; it is one of dual, primal")
    wide = widen_problem(problem)
    check(wide, "structural")
    again: Callable[[Problem], Formulation] = partial(declare, form=form)
    is_generated = pool is None
    if counts is None or losses is None or pool is None:
        if not counts is losses is pool is None:
            raise UsageError("counts, losses and the pool belong together; give all of them or none")
        counts, losses, pool = generate_labellings(wide)
        sigmas = np.array(pool)
    else:
        sigmas = np.array(selections(problem, pool))
        again = partial(_redeclare, counts=counts, losses=losses, pool=sigmas, form=form)
        if wide is not problem:  # the constant column is in every selection
            sigmas = np.column_stack([sigmas, np.ones(len(sigmas))])
    A = labelling_columns(wide, np.asarray(counts))
    state = _dual_program if form == "dual" else _primal_program
    program, variables, cuts = state(wide, A, np.asarray(losses, dtype=float), sigmas)
    if form == "dual":
        sigma = Sigma(problem, cuts, sigmas[:, : problem.atoms.count].T)
    else:
        sigma = Sigma(problem)
        program = cp.Problem(
            program.objective, [*program.constraints, sigma == sigmas[:, : problem.atoms.count].T @ variables["mu"]]
        )
    return attach(Formulation(problem, program, sigma, variables, hull=is_generated), "structural", again)


def _dual_program(problem: Problem, A: Array, Delta: Array, sigmas: Array) -> tuple[Any, dict[str, Any], Any]:
    """(16), its variables, and the rows whose multipliers are μ."""
    alpha = cp.Variable(Delta.size, name="alpha")
    theta = cp.Variable(name="theta")

    # ½ ‖A_t α‖² − cᵀσᵗ ≤ θ                                                       Mao 2013, (16)
    roots = [root[:, None] * A for root in _root_sigmas(problem, sigmas)]
    half_norms = cp.hstack([0.5 * cp.sum_squares(A_t @ alpha) for A_t in roots])
    cuts = half_norms - sigmas @ problem.penalty <= theta

    # max  Σ_k α_k Δ_k − θ
    program = cp.Problem(cp.Maximize(Delta @ alpha - theta), [cuts, alpha >= 0, cp.sum(alpha) <= problem.C])
    return program, {"alpha": alpha, "theta": theta, "mu": Multiplier(cuts)}, cuts


def _primal_program(problem: Problem, A: Array, Delta: Array, sigmas: Array) -> tuple[Any, dict[str, Any], Any]:
    """(15) with Ω = ½ (Σ_t r_t)² = min over μ of ½ Σ_t r_t²/μ_t, so that μ and σ stand in it."""
    if np.any(problem.penalty):
        raise UsageError("form = 'primal' is (15), which has no penalties; leave form at 'dual'")
    roots = _root_sigmas(problem, sigmas)
    w_t = [cp.Variable(root.size, name=f"w_{t}") for t, root in enumerate(roots, 1)]
    mu = cp.Variable(len(roots), nonneg=True, name="mu")
    r, xi = cp.Variable(len(roots), name="r"), cp.Variable(nonneg=True, name="xi")

    # r_t ≥ ‖w_t‖²/μ_t,   ξ ≥ Δ_k − Σ_t w_tᵀ(√σᵗ∘a_k)                             Mao 2013, (15)
    cones = [cp.SOC(mu[t] + r[t], cp.hstack([2 * part, mu[t] - r[t]])) for t, part in enumerate(w_t)]
    scores = sum((root[:, None] * A).T @ part for root, part in zip(roots, w_t, strict=True))
    margins = scores + xi >= Delta

    # min  ½ Σ_t ‖w_t‖²/μ_t + C ξ,   Σ_t μ_t = 1
    program = cp.Problem(cp.Minimize(0.5 * cp.sum(r) + problem.C * xi), [*cones, margins, cp.sum(mu) == 1])
    variables = {"w_t": cp.hstack(w_t), "r": r, "xi": xi, "mu": mu, "alpha": Multiplier(margins)}
    return program, variables, margins


def _root_sigmas(problem: Problem, sigmas: Array) -> list[Array]:
    """√σᵗ of every column of the atoms, a vector for every selection."""
    owner = problem.atoms.columns(np.arange(problem.atoms.count)).atom
    return [np.sqrt(sigma[owner]) for sigma in sigmas]


def _redeclare(
    problem: Problem, counts: npt.ArrayLike, losses: npt.ArrayLike, pool: Array, form: Literal["dual", "primal"]
) -> Formulation:
    """The program under other rows: over those of the pool that satisfy them."""
    return declare(problem, counts, losses, allowed_selections(problem, pool), form)


def generate_labellings(problem: Problem) -> tuple[npt.NDArray[Any], Array, list[Array]]:
    """What every labelling gets wrong (K, n), its Δ (K,), and the selections (p,) that two-layer cutting planes find.

    Raises
    ------
    UsageError
        No selection satisfies the rows.
    """
    from mipfs.drivers import two_layer
    from mipfs.drivers.most_violated import MostViolated
    from mipfs.inner.inner_layer import BundleMethod
    from mipfs.inner.restricted import SelectionPool as Members
    from mipfs.run.run import Run

    run = Run(problem, two_layer.Options(gap=GAP))
    most_violated = MostViolated(run, "hull")
    members = Members()
    inner = BundleMethod(problem, run.settings.layer)
    for _ in range(MAX_SELECTIONS):
        ids, sigma, lower = most_violated.selection_of_labelling_dual(inner.dual)
        if lower == -np.inf:
            raise UsageError("no selection satisfies the rows: there is no hull to declare the relaxation over")
        run.raise_bound(lower)
        if not members.add(ids, sigma) or run.is_relaxed:
            break
        run.lower_upper(inner.solve(members, 0.1 * GAP * problem.C, lambda: False).upper)
    sigmas = [scatter(problem.atoms.count, ids, values) for ids, values in members.members]
    return np.array(inner.labellings.counts), np.array(inner.labellings.losses), sigmas


def labelling_columns(problem: Problem, counts: npt.NDArray[Any]) -> Array:
    """A = (a(ȳ_1), …, a(ȳ_K)), a(ȳ) = Xᵀv, of the columns of all atoms, shape (k, K)."""
    own = problem.atoms.columns(np.arange(problem.atoms.count))
    pulled = problem.data.block().pull(problem.measured.direction(np.atleast_2d(counts)).T)
    return np.asarray(pulled[own.ids] * own.scale[:, None])


@check_arguments
def build(
    data: Instance,
    *,
    measure: str,
    M: int | None = None,
    C: float = 1.0,
    beta: float | None = None,
    k: int | None = None,
    bias: bool = True,
) -> Formulation:
    """Declare (16) of `data` in CVXPY, over the labellings and selections that two-layer cutting planes generate.

    Any driver for the structural loss solves it as its problem (5), `problem`, which is of any size.

    Parameters
    ----------
    data : Instance
        Its penalties, rows and forced features become part of the problem.
    measure : {"error", "f1", "fbeta", "precision-at-k", "recall-at-k", "prbep", "roc-auc", "average-precision"}
    M : int in 0 … p
        The most features that are selected (B in the paper).
    C : float > 0
        Weight of the loss.
    beta : float > 0
        Of ``fbeta``.
    k : int in 1 … n
        Of ``precision-at-k`` and ``recall-at-k``; by default the number of positives.
    bias : bool, default True
        An intercept, as the weight of a constant column of 1: penalised as any weight, always selected, not counted in
        M. The paper has none: then f is 0 at x = 0, and where one class is rare nothing may be worth selecting.


    Returns
    -------
    Formulation
        As `declare` has it, which states (15) too. Constraints over ``sigma`` are rows of the problem.

    Raises
    ------
    UsageError
        A parameter out of range, one that the measure does not have, or data too large for an algebraic model.

    Source: Mao 2013, (5), (6), (15) and (16).
    """
    return declare(problem(data, measure=measure, M=M, C=C, beta=beta, k=k, bias=bias))
