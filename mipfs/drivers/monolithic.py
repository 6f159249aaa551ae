"""The whole of (P) as one mixed-integer convex program, given to SCIP: an independent check of the others.

Supports are SCIP's; each is refitted here, and the objective recomputed from the raw data. The bound is SCIP's
word, within its tolerances (`Result.bound_source` is "solver"): its certificate shows only what the best dual vector
of the refitted classifiers proves, and `mipfs verify` says so. Of the ρ-form SCIP gets the unit margin: with ρ as a
variable w has no bound before the optimum is known.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from mipfs.capability import BOXES, POINTWISE, PRICED, Capability
from mipfs.drivers.common_options import EndOptions
from mipfs.errors import UsageError
from mipfs.formulation import algebraic_model
from mipfs.formulation.program import check_size
from mipfs.inner.subproblem import Subproblem, compile_for
from mipfs.losses import get_loss
from mipfs.plumbing.arrays import mask_of
from mipfs.plumbing.declared import Natural
from mipfs.problem import Problem
from mipfs.run.heuristics import Supports
from mipfs.run.run import Run, Steps
from mipfs.solvers.scip import NO_POINT, ScipProcess

CAPABILITY = Capability(
    losses=POINTWISE,
    bound="the solver's word",
    regularisers=BOXES,
    selection=PRICED,
    weight_rows=True,
    is_exact=True,
    is_declared=True,
    papers=("aytug2015",),
)
MAX_C = 1e9
"""The largest Σ C_i: from a hundred times that on SCIP's tolerances made it call ten times the optimum optimal."""
DOUBT = 1e-3
"""How far SCIP's bound may be above a recomputed value, relative, by its tolerances; beyond it is not believed."""
POLL_SECONDS = 0.05
"""How often limits and Ctrl-C are looked at while SCIP works."""


@dataclass(frozen=True)
class Options(EndOptions):
    """Options of `monolithic`.

    Parameters
    ----------
    gap : float in [0, 1), default 1e-4
        Relative gap at which the incumbent counts as optimal.
    time_limit : float, optional, in seconds
    iteration_limit : int, optional, number of branch-and-bound nodes
    seed : int
        SCIP's random seed.
    """

    seed: Natural = 0


def prepare(problem: Problem) -> None:
    """Compile what a run calls besides SCIP: the kernels of the subproblem."""
    compile_for(problem)


def run(run: Run) -> Steps:
    """Solve the problem of `run`; what is found is left in it."""
    problem = run.problem
    options = run.options
    check_size(problem.data)
    if problem.c_i.sum() > MAX_C:
        raise UsageError(f"SCIP carries a sum of C_i up to {MAX_C:g}, not {problem.c_i.sum():g}; give another driver")
    first, _ = run.cheapest()
    if first is None:
        return
    supports = Supports(run, Subproblem(problem), tol=max(1e-10, min(1e-8, 1e-3 * options.gap)))
    run.outcome.pool = supports.pool
    _refit(supports, np.flatnonzero(first).tolist())
    # SCIP's gap is that of its own values, ours of the recomputed one, or of −1/(4v): ask for a little more.
    gap = 0.9 * options.gap / (1.0 + options.gap)
    given = problem.replace(margin="unit", rows=problem.selection.solver_rows)
    with ScipProcess(partial(link_weights, given), gap=gap, seed=options.seed) as scip:
        while run.stop() is None:
            report = scip.receive(POLL_SECONDS)
            if report is None:
                continue
            is_known = all(0 <= j < problem.atoms.count for j in report.selected or ())
            if report.selected is not None and is_known:
                _refit(supports, report.selected)
            is_below = report.bound <= run.objective + DOUBT * (1.0 + abs(run.objective))
            if is_below:
                run.raise_bound(min(report.bound, run.objective))
            # A bound that is no number or above a value that was recomputed, features that are none, no point at all.
            run.failed = run.failed or not (is_below and is_known) or report.status in NO_POINT
            run.iteration = run.counters["nodes"] = report.nodes
            run.closed = report.status is not None
            run.record()
            yield None


def link_weights(problem: Problem) -> tuple[Any, list[Any]]:
    """The Pyomo model with |w_j| ≤ W σ_j, which keeps SCIP's tolerances from being exploited; and its σ.

    w = 0 and any b are feasible, so ½ w_j² ≤ v(σ) ≤ L(y∘b) and W = √(2 min L(y∘b)) over some b.
    """
    import pyomo.environ as pyo

    model = algebraic_model(problem)
    data = problem.data
    loss = get_loss(problem.loss)
    constant = [loss.value(b * data.y, problem.c_i) for b in ((-1.0, 0.0, 1.0) if problem.bias else (0.0,))]
    W = math.sqrt(2 * min(constant))
    sigma = list(model.select.sigma.values())
    w = list(model.svm.w.values())
    atom = problem.atoms.columns(np.arange(problem.atoms.count)).atom.tolist()
    model.link = pyo.ConstraintList()
    for k, g in enumerate(atom):
        for sign in (-1.0, 1.0):
            model.link.add(sign * w[k] <= W * sigma[g])
    return model, sigma


def _refit(supports: Supports, selected: Sequence[int]) -> None:
    """Refit the classifier on a support of SCIP that is new and in S: SCIP's rows hold within its tolerances only."""
    run = supports.run
    sigma = mask_of(run.problem.atoms.count, np.array(selected, dtype=np.int64))
    solved = supports.evaluate(sigma) if run.oracle.surely_contains(sigma) else None
    if solved is not None:
        supports.pool.add(solved.cut)
