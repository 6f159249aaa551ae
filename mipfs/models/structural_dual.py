"""Feature selection for a multivariate measure: the restricted dual of two-layer cutting planes (Mao 2013).

    (P)   min over σ ∈ S, w   ½ Σ_j w_j²/σ_j + cᵀσ + C max over ȳ of [Δ(ȳ) − wᵀa(ȳ)]₊                    Mao 2013, (5)

For labellings ȳ_1, …, ȳ_K, a pool of selections σ¹, …, σᵀ and A_t = √σᵗ∘(a(ȳ_1), …, a(ȳ_K)):

    max over α, θ   Σ_k α_k Δ_k − θ   s.t.   ½ ‖A_t α‖² − cᵀσᵗ ≤ θ  for all t,   α ≥ 0,   Σ_k α_k ≤ C     Mao 2013, (16)

Over all labellings and all of S this is the dual (6) of the convex relaxation of (P). The multiplier of row t is μ_t;
w_t = μ_t √σᵗ∘A_t α and σ = Σ_t μ_t σᵗ. Its size depends on K and T, not on the number of samples.

`declare` states it in CVXPY, as the reference; `solve` hands the same program to Clarabel itself, which is what the
driver ``two_layer`` does once per labelling where S has rows: K and T grow, and CVXPY would canonicalise it anew each
time. Where S has none, its master is over all selections of some features at once (`mipfs.inner.saddle`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs.data.instance import Instance
from mipfs.errors import UsageError
from mipfs.formulation import check
from mipfs.formulation.conic import Multiplier, cp
from mipfs.formulation.cvxpy_attach import Sigma, attach
from mipfs.formulation.program import Formulation, check_size
from mipfs.models.reduced_mkl import Pool, allowed, selections
from mipfs.plumbing.arrays import Array
from mipfs.plumbing.declared import declared
from mipfs.problem import Problem
from mipfs.widened import widened

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
) -> Problem:
    """The `Problem`, which can be of any size; parameters as in `build`."""
    return Problem(
        data, loss="structural", bias=bias, M=M, C=C, measure=measure, beta=beta, k=k, formulation="structural"
    )


def declare(
    problem: Problem,
    counts: npt.ArrayLike | None = None,
    losses: npt.ArrayLike | None = None,
    pool: Pool | None = None,
) -> Formulation:
    """Declare (16) in CVXPY.

    Without labellings and a pool these are generated first, by two-layer cutting planes: over them the value of (16) is
    that of the relaxation over all labellings and all of S, up to 1e-6 of it.

    Parameters
    ----------
    problem : Problem with the structural loss
    counts : (K, n) what every labelling gets wrong, as `mipfs.measures.Violated` has it
    losses : (K,) Δ of every labelling
    pool : sequence of selections, or text, as in `mipfs.models.reduced_mkl`

    Returns
    -------
    Formulation
        With ``alpha`` (K,), ``theta`` and ``mu`` (T,). With a bias, over a constant column too (`mipfs.widened`).
    """
    asked = problem
    problem = widened(problem)
    check(problem, "structural")
    check_size(problem.data, "CVXPY program")
    again: Callable[[Problem], Formulation] = declare
    if counts is None or losses is None or pool is None:
        if not counts is losses is pool is None:
            raise UsageError("counts, losses and the pool belong together; give all of them or none")
        counts, losses, pool = generated(problem)
        sigmas = np.array(pool)
    else:
        sigmas = np.array(selections(asked, pool))
        if asked is not problem:  # the constant column is in every selection
            sigmas = np.column_stack([sigmas, np.ones(len(sigmas))])
        again = partial(_again, counts=counts, losses=losses, pool=sigmas)
    A = columns(problem, np.asarray(counts))
    Delta = np.asarray(losses, dtype=float)
    alpha = cp.Variable(Delta.size, name="alpha")
    theta = cp.Variable(name="theta")

    # ½ ‖A_t α‖² − cᵀσᵗ ≤ θ                                                       Mao 2013, (16)
    half_norms = cp.hstack([0.5 * cp.sum_squares((np.sqrt(sigma)[:, None] * A) @ alpha) for sigma in sigmas])
    cuts = half_norms - sigmas @ problem.penalty <= theta

    # max  Σ_k α_k Δ_k − θ
    program = cp.Problem(cp.Maximize(Delta @ alpha - theta), [cuts, alpha >= 0, cp.sum(alpha) <= problem.C])
    variables = {"alpha": alpha, "theta": theta, "mu": Multiplier(cuts)}
    return attach(Formulation(problem, program, Sigma(problem, cuts, sigmas.T), variables), "structural", again)


def _again(problem: Problem, counts: npt.ArrayLike, losses: npt.ArrayLike, pool: Array) -> Formulation:
    """(16) under other rows: over those of the pool that satisfy them."""
    return declare(problem, counts, losses, allowed(problem, pool))


def generated(problem: Problem) -> tuple[npt.NDArray[Any], Array, list[Array]]:
    """What every labelling gets wrong (K, n), its Δ (K,), and the selections (p,) that two-layer cutting planes find.

    Raises
    ------
    UsageError
        No selection satisfies the rows.
    """
    from mipfs.drivers import two_layer
    from mipfs.drivers.most_violated import MostViolated
    from mipfs.inner.inner_layer import Inner
    from mipfs.inner.restricted import Pool as Members
    from mipfs.run.run import Run

    run = Run(problem, two_layer.Options(gap=GAP))
    most_violated = MostViolated(run, "hull")
    members = Members()
    inner = Inner(problem, run.settings.layer)
    for _ in range(MAX_SELECTIONS):
        ids, sigma, lower = most_violated.of(inner.dual)
        if lower == -np.inf:
            raise UsageError("no selection satisfies the rows: there is no hull to declare the relaxation over")
        run.raise_bound(lower)
        if not members.add(ids, sigma) or run.is_relaxed:
            break
        run.lower_upper(inner.solve(members, 0.1 * GAP * problem.C, lambda: False).upper)
    sigmas = np.zeros((len(members), problem.atoms.count))
    for row, (ids, values) in zip(sigmas, members.members, strict=True):
        row[ids] = values
    return np.array(inner.labellings.counts), np.array(inner.labellings.losses), list(sigmas)


def columns(problem: Problem, counts: npt.NDArray[Any]) -> Array:
    """A = (a(ȳ_1), …, a(ȳ_K)), a(ȳ) = Xᵀv, of single features, shape (p, K)."""
    return problem.data.block().pull(problem.measured.direction(np.atleast_2d(counts)).T)


@declared
def build(
    data: Instance,
    *,
    measure: str,
    M: int | None = None,
    C: float = 1.0,
    beta: float | None = None,
    k: int | None = None,
    bias: bool = True,
) -> Problem:
    """The problem (5) of `data`; its dual grows labelling by labelling, so there is nothing to declare at once.

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
    Problem

    Raises
    ------
    UsageError
        A parameter out of range, or one that the measure does not have.

    Source: Mao 2013, (5), (6) and (16).
    """
    return problem(data, measure=measure, M=M, C=C, beta=beta, k=k, bias=bias)
