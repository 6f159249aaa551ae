"""Two-layer cutting planes for a multivariate measure (Mao 2013, Algorithms 1 and 2).

    Algorithm 2  Step 1  find the selection that α violates most: argmax over σ ∈ S of ½ s(α)'σ − c'σ
                 Step 2  solve the problem over the selections found so far, by Algorithm 1
    Algorithm 1  Step 1  solve the small dual (16) over the labellings found so far: α, the mixture μ and with it w
                 Step 2  find the labelling that w violates most; stop when its value and that of (16) meet

Where S is a cardinality row and forced atoms, the problem of Step 2 is not over the hull of the selections that were
found, but over that of all selections made of their atoms (`face_layer`): it needs far fewer of them.

Both layers keep what they found. Algorithm 1 earns an upper bound on the relaxation, its objective at (μ, w), and by α
a lower bound on the problem over the pool; lower(α) of `kelley` bounds the relaxation, and with it (P), from below. The
inner gap follows the outer one, so the ε of the paper's Theorem 2 is the gap between the two bounds that are reported.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np

from mipfs import formulation
from mipfs.capability import Capability
from mipfs.drivers.common_options import GenerationOptions
from mipfs.drivers.kelley import relaxed_of
from mipfs.drivers.most_violated import MostViolated
from mipfs.drivers.rounding import Rounding
from mipfs.formulation.program import Formulation
from mipfs.inner.face_layer import FaceLayer, FacePool
from mipfs.inner.inner_layer import Bundle, BundleMethod
from mipfs.inner.restricted import RestrictedSolution, SelectionPool
from mipfs.plumbing.arrays import Array, Arrays, Integers, scatter
from mipfs.problem import Problem
from mipfs.result.result import StopReason
from mipfs.run.run import Run, Steps, refusing_broken_state, restore_run
from mipfs.settings import LayerSettings, TwoLayerSettings
from mipfs.svm.labellings import combine_dual

CAPABILITY = Capability(
    losses=("structural",),
    bound="earned, certified",
    bias=("none",),
    margins=("unit",),
    weights=False,
    no_state=lambda problem, options: "",
    kernel_options=("inner", "refit", "polish"),
    slow_values=("conic",),
    papers=("mao2013",),
)


@dataclass(frozen=True)
class Options(GenerationOptions):
    """Options of `two_layer`.

    Parameters
    ----------
    gap : float in [0, 1), default 1e-4
        Relative gap between the two bounds on the relaxation.
    T : int >= 1, optional
        The most selections that are generated.
    time_limit : float, optional, in seconds
    memory_limit : float, optional, in gigabytes that the process may hold
    iteration_limit : int, optional, the same as T
    refit : bool, default True
        Round to an incumbent at the end and solve (P) on it.
    polish : bool, default True
        Splice the incumbent at the end (`Supports.splice`): some tens of solves on M features.
    inner : {"saddle", "conic"}
        How the inner layer is solved: over all selections made of the features found so far, by an interior point
        (`mipfs.inner.face_layer`), or as published over the selections themselves, (16) by Clarabel
        (`mipfs.inner.inner_layer`). Where S has rows it is the latter in either case.
    """

    polish: bool = True
    inner: Literal["saddle", "conic"] = "saddle"
    SETTINGS: ClassVar = TwoLayerSettings


def run(run: Run) -> Steps:
    """Solve the relaxation of the problem of `run`; what is found is left in it."""
    options = run.options
    first, least = run.cheapest()
    if first is None:
        return
    rounding = Rounding(run)
    if options.refit:
        rounding.at_nothing()
    run.raise_bound(least)  # α = 0 proves it
    run.sharpness = run.settings.sharper
    most_violated = MostViolated(run, "hull")
    sharpness = 1.0
    last: RestrictedSolution | None = None
    best: RestrictedSolution | None = None
    pool, inner = make_inner_layer(run.problem, options.inner, run.settings.layer)
    if run.resume is not None:
        last, best, sharpness = _taken_up(run, pool, inner, most_violated)
    if run.is_kept:
        run.take_snapshot(_state_saver(pool, inner, most_violated, last, best, sharpness))
    while run.stop() is None:
        ids, sigma, lower = most_violated.selection_of_labelling_dual(inner.dual)  # Step 1
        run.raise_bound(lower)
        if run.stop() is not None:
            break
        sharpness = 1.0 if pool.add(ids, sigma) else 0.1 * sharpness
        if sharpness < run.settings.exact:
            run.closed = True  # α violates nothing new: the gap that is left is round-off
            break
        last = inner.solve(pool, sharpness * _inner_gap(run), lambda: run.must_stop)  # Step 2
        best = last if best is None or last.upper < best.upper else best
        run.lower_upper(last.upper)
        run.iteration += 1
        run.count(**inner.counters(pool))
        if run.iteration == 1 and options.refit:
            rounding.of_mixture(pool, last)
        is_last = options.T is not None and run.iteration >= options.T
        if is_last or run.must_stop:  # no round comes that would take this bound
            run.raise_bound(most_violated.selection_of_labelling_dual(inner.dual)[2])
        if is_last:
            run.early = StopReason.ITERATION_LIMIT
        is_cut = run.must_stop
        run.record()
        if run.came_to_rest(is_cut):
            run.take_snapshot(_state_saver(pool, inner, most_violated, last, best, sharpness))
        yield None
    run.count(**most_violated.counters())
    if last is not None and best is not None:
        run.outcome.relaxed = relaxed_of(run, pool, best)
        run.outcome.alpha = last.alpha
        labellings = inner.labellings
        run.outcome.declare = partial(
            _declare_restricted, run.problem, labellings.counts.copy(), labellings.losses.copy(), tuple(pool.members)
        )
        if options.refit:
            rounding.of_all(pool, last, None if options.polish else 0)
    yield None  # with the incumbent of the end
    most_violated.prove(run)


def make_inner_layer(
    problem: Problem, by: str, settings: LayerSettings
) -> tuple[SelectionPool, BundleMethod | FaceLayer]:
    """An empty pool and the inner layer: over a whole face where S is plain, over the hull of the pool elsewhere."""
    if by == "saddle" and problem.selection.is_plain:
        return FacePool(), FaceLayer(problem, settings)
    return SelectionPool(), BundleMethod(problem, settings)


def _state_saver(
    pool: SelectionPool,
    inner: Bundle,
    oracle: MostViolated,
    last: RestrictedSolution | None,
    best: RestrictedSolution | None,
    sharpness: float,
) -> Callable[[], Arrays]:
    """What makes arrays of all that the next round goes on from: selections, labellings, dual vectors, solutions."""
    members, own, violated = pool.kept(), inner.kept(), oracle.kept()
    name = type(inner).__name__

    def made() -> Arrays:
        arrays = {**members(), **own(), **violated(), "method": np.array(name), "sharpness": np.array(sharpness)}
        arrays |= {} if last is None else last.arrays("last")
        return arrays if best is None or best is last else arrays | best.arrays("least")

    return made


@refusing_broken_state
def _taken_up(
    run: Run, pool: SelectionPool, inner: Bundle, oracle: MostViolated
) -> tuple[RestrictedSolution | None, RestrictedSolution | None, float]:
    """Fill pool and bundle with those of the run that this one goes on with; its last and best solution, sharpness.

    Another inner layer, which was asked for meanwhile, has the selections and the bounds alone.
    """
    assert run.resume is not None
    kept = run.resume.arrays
    restore_run(run, run.resume)
    pool.take_up(kept, run.problem.atoms.count)
    run.raise_bound(oracle.take_up(kept, combine_dual("best", kept, inner.measure)))
    run.oracle.drop_solvers()
    if run.options.T is not None and run.iteration >= run.options.T:
        run.early = StopReason.ITERATION_LIMIT
    last = best = None
    if str(kept["method"]) == type(inner).__name__:
        inner.take_up(kept)
        alpha, p = inner.measure.y * inner.dual.v, run.problem.data.n_features
        last = RestrictedSolution.taken_up("last", kept, pool, alpha, p)
        best = RestrictedSolution.taken_up("least", kept, pool, alpha, p) or last
    if last is not None:
        run.lower_upper(run.resume.upper)
    return last, best, float(kept["sharpness"]) if run.options.gap >= run.resume.gap else 1.0


def _declare_restricted(
    problem: Problem, counts: Any, losses: Array, members: Sequence[tuple[Integers, Array]]
) -> Formulation:
    """(16) over a pool of selections and a bundle of labellings, declared in CVXPY; for `Result.formulation`."""
    sigmas = [scatter(problem.atoms.count, ids, sigma) for ids, sigma in members]
    return formulation.declare("structural", problem, counts, losses, sigmas)


def _inner_gap(run: Run) -> float:
    """Absolute gap worth reaching in the inner layer: a tenth of what is open between the two bounds."""
    if not math.isfinite(run.upper):
        return 0.01 * run.problem.C
    return 0.1 * max(run.upper - run.bound, run.worth_closing(run.upper))
