"""A program declared in CVXPY, solved as it stands by Clarabel (or HiGHS): the reference of the relaxations.

The solver's word is not taken for a bound: its dual vector α is rounded into the dual set and lower(α) evaluated
here, and its σ (or w) is rounded to a selection of S and refitted, for an incumbent.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, cast

import numpy as np

from mipfs import formulation
from mipfs.capability import BOXES, POINTWISE, Capability
from mipfs.drivers.common_options import EndOptions
from mipfs.errors import UsageError
from mipfs.formulation.program import Formulation, TooLargeError
from mipfs.inner.subproblem import Subproblem, compile_for
from mipfs.kernels.bound import add_down, gains, rounded_down
from mipfs.losses import get_loss
from mipfs.plumbing.arrays import Array, scatter
from mipfs.problem import Problem
from mipfs.proof.cuts import Cut, Dual, cut_of_dual, feasible_dual
from mipfs.result.result import StopReason
from mipfs.run.heuristics import Supports
from mipfs.run.proven import prove_at_root
from mipfs.run.relaxed import relaxed_entry
from mipfs.run.run import Run, Steps
from mipfs.settings import ConicSettings
from mipfs.solvers.cones import Canonical

Earned = tuple[float, Cut | None]
"""lower(α) and the cut of α; -inf and None where a program shows no dual vector."""

# of boolean, its default program; others declare their own
CAPABILITY = Capability(
    losses=POINTWISE, bound="earned, certified", regularisers=BOXES, weight_rows=True, is_declared=True
)
NEGLIGIBLE_SIGMA = 1e-6
"""A σ_j below this is what the interior-point method leaves of a zero."""


@dataclass(frozen=True)
class Options(EndOptions):
    """Options of `conic`.

    Parameters
    ----------
    gap : float in [0, 1), default 1e-4
        Relative gap between the program's value and the earned bound at which the relaxation counts as solved.
    time_limit : float, optional, in seconds
    iteration_limit : int, optional
        0 leaves the first incumbent and its bound.
    declare : callable, optional
        Makes the `Formulation` of the problem; by default that of its own formulation, or ``boolean``.
    """

    declare: Callable[[Problem], Formulation] | None = field(default=None, repr=False)
    SETTINGS: ClassVar = ConicSettings


def prepare(problem: Problem) -> None:
    """Load CVXPY, and compile what a run calls besides Clarabel: the kernels of the subproblem."""
    # Loading CVXPY takes a second, with which no run is charged.
    importlib.import_module("cvxpy")
    compile_for(problem)


def run(run: Run) -> Steps:
    """Solve the program of `run`; what is found is left in it."""
    problem = run.problem
    first, least = run.cheapest()
    if first is None:
        return
    subproblem = Subproblem(problem)
    supports = Supports(run, subproblem, run.settings.refit_gap)
    begin = subproblem.solve(first.astype(float), run.settings.refit_gap)
    supports.offer(first, begin)
    best: Earned = lower(problem, begin.cut), begin.cut
    # α = 0 proves the least penalty.
    run.raise_bound(max(least, best[0]))
    run.record()
    yield None

    declare = run.options.declare or formulation.load("boolean").declare
    assert declare is not None
    declared = declare(problem)
    program = Canonical(declared.cvxpy)
    size = program.size
    run.counters.update({"variables": size.variables, "constraints": size.constraints, "nonzeros": size.nonzeros})
    if program.work > run.settings.max_work:
        raise TooLargeError(f"the program is too large for a conic solver: {size.nonzeros} nonzeros; try driver kelley")
    # Even where the first incumbent is optimal already: the program's value was asked for.
    if run.stop() in (None, StopReason.GAP_CLOSED):
        best = max(best, _solve(run, supports, declared, program), key=lambda found: found[0])
    prove_at_root(run, *best)


def _solve(run: Run, supports: Supports, declared: Formulation, program: Canonical) -> Earned:
    """Solve the program and round what it says to incumbents; what it proves."""
    solve = program.solve_linear if declared.solver == "highs" else program.solve
    status = solve(deadline=run.deadline, stop=lambda: run.must_stop)
    if status == "stopped":
        return -np.inf, None
    run.iteration = 1
    run.early = StopReason.COMPLETED if status == "solved" else StopReason.NUMERICAL
    if _is_the_users_own(declared) and (status == "infeasible" or (status == "unbounded" and not _has_sigma(declared))):
        raise UsageError(
            f"the program of the formulation is {status}, though selections satisfy the rows of its problem; "
            "write what restricts the selection as linear constraints over sigma"
        )
    if status != "solved":
        return -np.inf, None
    best = _take_over(run, declared)
    for scores in candidates(run.problem, declared):
        supports.round(scores)
    return best


def _is_the_users_own(declared: Formulation) -> bool:
    """Whether a program was written by a user, and not declared by a formulation."""
    from mipfs.formulation.conic import built_of  # loads CVXPY

    return built_of(declared) is None


def _has_sigma(declared: Formulation) -> bool:
    """Whether σ is a variable of a program: then it was evaluated, and where one σ has a value none is without end."""
    return any(v.id == getattr(declared.sigma, "id", None) for v in declared.cvxpy.variables())


def _take_over(run: Run, declared: Formulation) -> Earned:
    """The bounds that a solved program yields; what its dual vector proves."""
    problem = run.problem
    value = float(declared.cvxpy.value)
    if "rho" in declared.variables:
        value = problem.unit_margin(value)
    dual = dual_vector(declared)
    proven = -np.inf
    best: Earned = -np.inf, None
    if dual is not None:
        proven = earned_bound(declared, dual)
        cut = cut_of_dual(problem, dual)
        best = (lower_over_hull if declared.hull else lower)(problem, cut), cut
        run.raise_bound(max(proven, best[0]))
    if not declared.is_relaxation:
        return best
    sigma = np.zeros(0) if declared.sigma is None else clip_sigma(declared.sigma.value)
    at = {int(g): float(sigma[g]) for g in np.flatnonzero(sigma)}
    shown = _evaluate_sigma(run, at) if declared.sigma is not None else None
    close = shown is not None and run.upper - value <= run.options.gap * abs(value)
    # A program that is weaker than (P) at its own σ: its value is the solver's word.
    if not close:
        run.upper = np.inf
        shown = {"sigma": {problem.atoms.names[g]: part for g, part in at.items()}, "upper": problem.reported(value)}
    # Where the program is weaker than lower(α), the dual vector proves its value too.
    run.outcome.relaxed = {**(shown or {}), "lower": problem.reported(min(value, proven))}
    return best


def _evaluate_sigma(run: Run, at: dict[int, float]) -> dict[str, Any] | None:
    """What (P) is worth at the σ of a program, by an SVM on it."""
    sigma = scatter(run.problem.atoms.count, list(at), list(at.values()))
    solved = Subproblem(run.problem).solve(sigma, run.settings.refit_gap)
    return relaxed_entry(run, at, run.problem.atoms.columns(solved.ids).ids, solved.svm.w, solved.svm.b)


def dual_vector(declared: Formulation) -> Dual | None:
    """The solver's α, rounded so that it lies in the dual set exactly; None where the program shows none."""
    problem = declared.problem
    alpha = declared.variables.get("alpha")
    if alpha is None or alpha.value is None:
        return None
    loss = get_loss(problem.loss)
    values = np.asarray(alpha.value, float)
    if problem.margin == "rho" and "rho" in declared.variables:
        values = values / float(declared.variables["rho"].value)
    if not problem.weight_rows:
        return cast(Dual, loss.feasible_dual(values, problem.c_i, problem.data.y, problem.bias))
    nu = declared.variables.get("nu")
    own = np.zeros(problem.ends.count) if nu is None or nu.value is None else np.asarray(nu.value, dtype=float)
    return feasible_dual(problem, np.append(values, own))


def lower(problem: Problem, cut: Cut) -> float:
    """lower(α) = g(α) + min of cᵀσ − ½ s(α)ᵀσ over the rows of S with 0 ≤ σ ≤ 1, rounded down."""
    return add_down(cut.constant, problem.selection.minimise_relaxed(-gains(cut.slopes, problem.penalty))[1])


def lower_over_hull(problem: Problem, cut: Cut) -> float:
    """lower(α) with the minimum over S itself, rounded down."""
    return add_down(cut.constant, problem.selection.minimise(-gains(cut.slopes, problem.penalty))[1])


def earned_bound(declared: Formulation, dual: Dual) -> float:
    """The bound on (P) that α proves: lower(α), or what the formulation's own Lagrangian makes of it."""
    problem = declared.problem
    cut = cut_of_dual(problem, dual)
    if declared.hull:
        return lower_over_hull(problem, cut)
    if declared.lagrangian is None:
        return lower(problem, cut)
    taken, cost = declared.lagrangian(np.sqrt(cut.slopes))
    inner = problem.selection.minimise_relaxed(cost)[1]
    return add_down(cut.constant, rounded_down(-taken, taken, cost.size), inner)


def candidates(problem: Problem, declared: Formulation) -> list[Array]:
    """Scores to round: σ, what is above a half of it where features cost something, and |w|; each where it exists."""
    scores = []
    if declared.sigma is not None and declared.sigma.value is not None:
        sigma = clip_sigma(declared.sigma.value)
        scores = [sigma, sigma - 0.5] if np.any(problem.penalty) else [sigma]
    w: Any = declared.variables.get("w")
    if w is not None and w.value is not None and problem.selects_features:
        scores.append(np.abs(w.value))
    return scores


def clip_sigma(sigma: Any) -> Array:
    """σ in [0, 1] with its zeros."""
    values = np.clip(np.asarray(sigma, dtype=float).ravel(), 0.0, 1.0)
    return np.where(values > NEGLIGIBLE_SIGMA, values, 0.0)
