"""Kelley's cutting planes in the space of selections: feature generation (Tan 2010, 2014: Algorithm 1).

    Step 1  find the selection that α violates most: argmax over σ ∈ S of ½ s(α)'σ − c'σ
    Step 2  solve the restricted problem over the selections found so far; its dual vector is the next α

The restricted optimum bounds the relaxation's value R from above and falls; the best lower(α) = g(α) minus the
maximum of Step 1 bounds R, and with it the optimum of (P), from below. Tan states both with the opposite sign.
The run stops on the gap between the two, on T selections (the papers' stop) or on its limits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Literal, cast

import numpy as np

from mipfs import formulation
from mipfs.capability import ALL_REGULARISERS, ATOMS, POINTWISE, Capability, needs_ridge
from mipfs.drivers.common_options import GenerationOptions
from mipfs.drivers.earlier import split_by_prefix
from mipfs.drivers.most_violated import MostViolated, takes_the_best
from mipfs.drivers.rounding import Rounding
from mipfs.drivers.shelf import load_published
from mipfs.errors import UsageError
from mipfs.formulation.program import Formulation
from mipfs.inner import boolean, tall
from mipfs.inner.alike import group_alike_samples
from mipfs.inner.face_interior import FaceInterior
from mipfs.inner.face_layer import FacePool
from mipfs.inner.proximal import FaceProximal, Proximal
from mipfs.inner.restricted import Cutting, Restricted, RestrictedSolution, SelectionPool, feasible
from mipfs.losses import get_loss
from mipfs.plumbing.arrays import Array, Arrays, Integers, scatter
from mipfs.plumbing.declared import Share
from mipfs.problem import Problem
from mipfs.result.result import StopReason
from mipfs.run.relaxed import relaxed_entry
from mipfs.run.run import Run, Steps, refusing_broken_state, restore_run
from mipfs.settings import KelleySettings, RelaxationSettings

CAPABILITY = Capability(
    losses=POINTWISE,
    bound="earned, certified",
    atoms=(*ATOMS, "pairs", "searched atoms"),
    regularisers=ALL_REGULARISERS,
    weight_rows=True,
    no_state=lambda problem, options: "",
    goes_on=True,
    kernel_options=("relaxation", "restricted", "refit", "polish"),
    slow_values=("conic", "simple-mkl"),
    papers=("tan2010", "tan2014"),
)


@dataclass(frozen=True)
class Options(GenerationOptions):
    """Options of `kelley`.

    Parameters
    ----------
    gap : float in [0, 1), default 1e-4
        Relative gap between the two bounds on the relaxation.
    T : int >= 1, optional
        The most selections that are generated (the papers' stop).
    time_limit : float, optional, in seconds
    memory_limit : float, optional, in gigabytes that the process may hold
    iteration_limit : int, optional, the same as T
    relaxation : {"hull", "box"}
        Over the convex hull of S (Step 1 is a MILP where S has rows), or over its rows with 0 ≤ σ ≤ 1 (an LP).
    restricted : {"auto", "face", "proximal", "interior", "cutting", "conic", "simple-mkl"}
        How the restricted problem is solved: by proximal gradient for smooth losses without penalties, over all
        selections that can be made of the atoms found so far ("face", where S is a cardinality row alone and none of
        the papers' stops is asked for) or over the selections themselves ("proximal": Tan 2014), by an interior point
        for any loss where S has no rows, by cutting planes for all; "auto" takes the first that applies, and the next
        where the proximal gradient gets no further (columns of very different norms).
        "conic": declared in CVXPY, by Clarabel, for all. "simple-mkl": a reduced gradient with an SVM per step
        (Tan 2010), for the squared hinge without bias and penalties (`mipfs.lab.shelf.reduced_mkl`).
    refit : bool, default True
        Round to an incumbent at the end and refit the SVM on it.
    rounding : {"best", "scores"}
        "best": the best of several rankings, spliced. "scores": the set of FGM-B as published, and no other: the
        selection of S of largest Σ c_j, c_j = s_j(α) at the final α, less its cost (Tan 2010, section 3.2).
    polish : bool, optional
        Splice the incumbents at the end (`Supports.splice`): some tens of SVMs, each with a pass over the data. By
        default as many of them as cost about what the run did, two for every iteration.
    eps_c : float in [0, 1), optional
        Stop as Tan 2014, section 6.2 does: once the restricted value falls by no more than this share of itself, there
        1e-2. The bounds are what they are then.
    eps_apg : float in [0, 1), optional
        End a restricted problem as Tan 2014, (43) does, there at 1e-4: once a step of the proximal gradient changes its
        value by no more than this share; by default the gap of the restricted problem decides.
    client : dask.distributed.Client, optional
        Step 1 is done by its workers, which hold the columns (`mipfs.atoms.spread`), for single features and a
        cardinality row.
    """

    relaxation: Literal["hull", "box"] = "hull"
    restricted: Literal["auto", "face", "proximal", "interior", "cutting", "conic", "simple-mkl"] = "auto"
    rounding: Literal["best", "scores"] = "best"
    polish: bool | None = None
    eps_c: Share | None = None
    eps_apg: Share | None = None
    client: Any = field(default=None, repr=False, compare=False)
    SETTINGS: ClassVar = KelleySettings


def refuse(problem: Problem, options: Options) -> None:
    """Refuse what a cluster cannot take, before anything is begun.

    Raises
    ------
    UsageError
    """
    if not (problem.atoms.is_held and takes_the_best(problem) and problem.selects_features):
        raise UsageError(
            "client scores single features under a cardinality row alone; leave it out with rows, penalties, groups, "
            "trees and products"
        )


def large(problem: Problem, options: Mapping[str, Any]) -> Sequence[Any]:
    """Kernels that take long to compile: where no code of one is kept, all that a run calls is compiled beside."""
    from mipfs.kernels.proximal import run_accelerated

    is_asked = options["restricted"] in ("auto", "face", "proximal")
    return (run_accelerated,) if is_asked and _is_smooth(problem) else ()


@dataclass(eq=False)
class LoopState:
    """Where the loop stands: all that a round goes on from, beside the best dual vector and what every run has.

    Attributes
    ----------
    method : Restricted
    pool : SelectionPool
    alpha : (n,) the dual vector that the next selection is for
    last, best : the last solution, and that of the least upper bound with its pool
    sharpness : float, share of the tolerance that the next restricted problem is solved to
    handed_over : bool, whether another method took over
    """

    method: Restricted
    pool: SelectionPool
    alpha: Array
    last: RestrictedSolution | None = None
    best: tuple[SelectionPool, RestrictedSolution] | None = None
    sharpness: float = 1.0
    handed_over: bool = False

    def hand_over(self, problem: Problem) -> None:
        """Go on by a method that no scale stops."""
        (self.method, self.pool), self.sharpness, self.handed_over = _make_fallback(problem, self.pool), 1.0, True

    def solve(self, tol: float, must_stop: Callable[[], bool]) -> RestrictedSolution:
        """Step 2: solve the restricted problem, to a tolerance that falls where nothing new was found."""
        last = self.last = self.method.solve(self.pool, self.sharpness * tol, must_stop)
        self.best = (self.pool, last) if self.best is None or last.upper < self.best[1].upper else self.best
        self.alpha = last.alpha
        return last


def run(run: Run) -> Steps:
    """Solve the relaxation of the problem of `run`; what is found is left in it."""
    problem = run.problem
    options = run.options
    method, most_violated = _restricted_method(run), MostViolated(run, options.relaxation, options.client)
    rounding = Rounding(run, most_violated.top)
    if not _take_first_bound(run, rounding):
        return
    most_violated.is_wide = isinstance(method, FaceProximal)
    at = LoopState(
        method,
        FacePool() if isinstance(method, FaceInterior | FaceProximal) else SelectionPool(),
        _first_dual_vector(problem),
    )
    del method
    if run.resume is not None:
        _restore_loop(run, at, most_violated)
    elif run.warm is not None and (alpha := run.warm.alpha()) is not None:
        at.alpha = alpha
    if run.is_kept:
        run.take_snapshot(_state_saver(at, most_violated, run))
    known = _dual_of_all_features(run) if at.last is None else None
    if known is not None:
        run.raise_bound(most_violated(known)[2])
    while run.stop() is None:
        # Step 1 of the algorithm.
        ids, sigma, lower = most_violated(at.alpha)
        run.raise_bound(lower)
        if run.stop() is not None or not _grow_pool(run, at, ids, sigma):
            break
        if isinstance(at.pool, FacePool):
            at.pool.take_in(most_violated.next_best)
        last = at.solve(_restricted_gap(run), lambda: run.must_stop)
        before = run.upper
        run.lower_upper(last.upper)
        run.iteration += 1
        run.count(selections=len(at.pool), **most_violated.counters())
        if run.iteration == 1 and options.refit and options.rounding == "best":
            rounding.of_mixture(at.pool, last)
        if options.T is not None and run.iteration >= options.T:
            run.raise_bound(most_violated(at.alpha)[2])
            run.early = StopReason.ITERATION_LIMIT
        if options.eps_c is not None and abs(before - last.upper) <= options.eps_c * abs(before) < np.inf:
            run.raise_bound(most_violated(at.alpha)[2])
            run.early = StopReason.COMPLETED
        is_cut = run.must_stop
        run.record()
        if run.came_to_rest(is_cut):
            run.take_snapshot(_state_saver(at, most_violated, run))
        yield None
    run.count(**most_violated.counters())
    # The method holds arrays of every sample: they go before the SVMs are solved.
    del at.method
    _leave_relaxed(run, rounding, at)
    # The last state has the incumbent of the end.
    yield None
    most_violated.prove(run)


def _grow_pool(run: Run, at: LoopState, ids: Integers, sigma: Array) -> bool:
    """Take a selection in, or where it is there already a smaller tolerance; whether there is still one to solve to."""
    settings = run.settings
    at.sharpness = 1.0 if at.pool.add(ids, sigma) else 0.01 * at.sharpness
    if at.sharpness < settings.stuck and isinstance(at.method, Proximal) and run.options.restricted in ("auto", "face"):
        at.hand_over(run.problem)
    if at.sharpness < settings.exact:
        # α violates nothing new: the gap that is left is round-off.
        run.closed = True
    return not at.sharpness < settings.exact


def _leave_relaxed(run: Run, rounding: Rounding, at: LoopState) -> None:
    """Leave what the relaxation found, and an incumbent."""
    if at.last is None or at.best is None:
        return
    run.outcome.relaxed = relaxed_of(run, *at.best, run.options.relaxation == "box")
    run.outcome.alpha = at.last.alpha
    # A program has a variable for every atom: too many where atoms are not held.
    if run.problem.atoms.is_held:
        run.outcome.declare = partial(_declare_restricted, run.problem, tuple(at.pool.members))
    run.outcome.selections = at.pool.members
    _leave_rounded(run, rounding, at.pool, at.last)


def _leave_rounded(run: Run, rounding: Rounding, pool: SelectionPool, last: RestrictedSolution) -> None:
    """Leave an incumbent: the set of FGM-B, or the best of what every ranking leads to."""
    options = run.options
    if options.rounding == "scores":
        rounding.by_scores(last.alpha)
    elif options.refit:
        # Over a face one round may bring in more than M atoms: rounds of M are counted.
        rounds = max(run.iteration, -(-pool.used.size // max(1, run.problem.M or 1)))
        most = run.settings.splices * rounds if options.polish is None else None if options.polish else 0
        rounding.of_all(pool, last, most)


def _take_first_bound(run: Run, rounding: Rounding) -> bool:
    """Take the bound of α = 0, and the classifier of no features; False where S is empty."""
    problem = run.problem
    if run.options.rounding == "scores" and not problem.atoms.is_held:
        raise UsageError(
            f"rounding = 'scores' ranks atoms that are held, and there are too many {problem.atoms.called}"
        )
    least = 0.0
    if not problem.selection.is_plain or problem.selection.forced_in or problem.has_penalty:
        first, least = run.cheapest()
        if first is None:
            return False
    if run.options.refit and run.options.rounding == "best":
        rounding.at_nothing()
        before = run.warm.first() if run.warm is not None and problem.atoms.is_held else None
        if before is not None:
            rounding.at_selection(before)
    run.raise_bound(least)
    run.sharpness = run.settings.sharper
    return True


def _state_saver(at: LoopState, oracle: MostViolated, run: Run) -> Callable[[], Arrays]:
    """What makes arrays of where the loop stands now: of values that no later round changes."""
    members, own, violated, relaxation = at.pool.kept(), at.method.kept(), oracle.kept(), oracle.relaxation
    alpha, last, least = at.alpha, at.last, None if at.best is None or at.best[1] is at.last else at.best
    told = {
        "method": np.array(type(at.method).__name__),
        "sharpness": np.array(at.sharpness),
        "handed_over": np.array(at.handed_over),
        "box": np.array(relaxation == "box"),
        "completed": np.array(run.options.eps_c if run.early is StopReason.COMPLETED else np.inf, dtype=float),
        "least_size": np.array(-1 if least is None or least[0] is at.pool else len(least[0])),
    }
    least_one = None if least is None else least[1]

    def made() -> Arrays:
        solutions = {} if last is None else last.arrays("last")
        solutions |= {} if least_one is None else least_one.arrays("least")
        return {
            **members(),
            **violated(),
            **told,
            **solutions,
            **{f"own_{k}": v for k, v in own().items()},
            "alpha": alpha,
        }

    return made


@refusing_broken_state
def _restore_loop(run: Run, at: LoopState, oracle: MostViolated) -> None:
    """Go on from where the loop of an earlier run stood.

    Another method, which was asked for meanwhile, has the selections and the bounds alone.
    """
    assert run.resume is not None
    kept = run.resume.arrays
    if bool(kept["box"]) != (oracle.relaxation == "box"):
        other = "hull" if oracle.relaxation == "box" else "box"
        raise UsageError(f"resume: the state is one of relaxation = {other!r}; give that, or begin the run anew")
    if bool(kept["handed_over"]):
        at.hand_over(run.problem)
    restore_run(run, run.resume)
    at.pool.take_up(kept, run.problem.atoms.count)
    alpha, best = (np.array(kept[name], dtype=float) if name in kept else None for name in ("alpha", "best"))
    if alpha is None or any(one is not None and one.shape != (run.problem.dual_size,) for one in (alpha, best)):
        raise ValueError("a dual vector is of other samples")
    run.raise_bound(oracle.take_up(kept, best))
    run.oracle.drop_solvers()
    at.alpha = alpha
    if str(kept["method"]) == type(at.method).__name__ and bool(kept["pool_is_face"]) == at.pool.is_face:
        at.method.take_up(split_by_prefix(kept, "own_")[0], at.pool)
        p, size = run.problem.data.n_features, int(kept["least_size"])
        at.last = RestrictedSolution.taken_up("last", kept, at.pool, alpha, p)
        its = at.pool if size < 0 else at.pool.first(size)
        least = RestrictedSolution.taken_up("least", kept, its, alpha, p)
        at.best = (
            (at.pool, at.last) if least is None and at.last is not None else None if least is None else (its, least)
        )
    if at.last is not None:
        run.lower_upper(run.resume.upper)
    if run.options.T is not None and run.iteration >= run.options.T:
        run.early = StopReason.ITERATION_LIMIT
    elif run.options.eps_c is not None and run.options.eps_c >= float(kept["completed"]):
        run.early = StopReason.COMPLETED
    at.sharpness = float(kept["sharpness"]) if run.options.gap >= run.resume.gap else 1.0


def _restricted_gap(run: Run) -> float:
    """Absolute gap worth reaching in a restricted problem: a tenth of what is open between the two bounds."""
    if not np.isfinite(run.upper):
        return 0.01 * float(run.problem.c_i.sum())
    return 0.1 * max(run.upper - run.bound, run.worth_closing(run.upper))


def _is_smooth(problem: Problem) -> bool:
    """Whether the proximal gradient carries the problem."""
    return get_loss(problem.loss).is_smooth and problem.has_kernels and not problem.has_penalty


def _restricted_method(run: Run) -> Restricted:
    """The method for the restricted problem."""
    problem = run.problem
    options = run.options
    if not problem.atoms.is_held and options.restricted not in ("auto", "proximal", "interior"):
        raise UsageError(f"restricted = {options.restricted!r} holds all {problem.atoms.called}; leave it at 'auto'")
    if options.restricted in ("face", "proximal", "conic", "simple-mkl"):
        needs_ridge(problem, f"restricted = {options.restricted!r}")
        # The published steps rest on the norms of ω alone (Tan 2010, 2014).
        if problem.weight_rows:
            raise UsageError(f"restricted = {options.restricted!r} knows no rows over the weights; leave it at 'auto'")
    smooth = _is_smooth(problem)
    if options.restricted in ("face", "proximal") and not smooth:
        raise UsageError(
            f"restricted = {options.restricted!r} needs a smooth loss without penalties; leave it at 'auto'"
        )
    proximal = smooth and options.restricted in ("auto", "face", "proximal")
    papers = options.T is not None or options.eps_c is not None or options.eps_apg is not None
    free = problem.selection.is_plain and not problem.selection.forced_in
    if options.eps_apg is not None and not proximal:
        raise UsageError(
            "eps_apg belongs to restricted = 'proximal', for a smooth loss without penalties; leave it out"
        )
    if options.restricted == "interior" and not problem.selection.is_plain:
        raise UsageError("restricted = 'interior' needs a selection without rows; leave it at 'auto'")
    if options.restricted in ("conic", "simple-mkl"):
        shelf = load_published("reduced mkl")
        conic = options.restricted == "conic"
        return cast(Restricted, shelf.Conic(problem, lambda: run.deadline) if conic else shelf.SimpleMkl(problem))
    if options.restricted == "face" and not free:
        raise UsageError("restricted = 'face' needs a selection without rows and forced features; leave it at 'auto'")
    if proximal and free and (options.restricted == "face" or (options.restricted == "auto" and not papers)):
        return FaceProximal(problem, options.eps_apg, run.settings.proximal)
    if proximal:
        return Proximal(problem, options.eps_apg, run.settings.proximal)
    if problem.selection.is_plain and options.restricted in ("auto", "interior"):
        return FaceInterior(problem)
    return Cutting(problem)


def _make_fallback(problem: Problem, pool: SelectionPool) -> tuple[Restricted, SelectionPool]:
    """A method that no scale stops, with the selections so far."""
    if not problem.selection.is_plain:
        return Cutting(problem), pool
    face = pool if isinstance(pool, FacePool) else FacePool()
    for member in pool.members if face is not pool else ():
        face.add(*member)
    return FaceInterior(problem), face


def _declare_restricted(problem: Problem, members: Sequence[tuple[Integers, Array]]) -> Formulation:
    """The restricted problem over a pool, declared in CVXPY; for `Result.formulation`."""
    sigmas = [scatter(problem.atoms.count, ids, sigma) for ids, sigma in members]
    # The dual one has no multipliers of rows over the weights.
    form = "primal" if problem.weight_rows else "dual"
    return formulation.declare("reduced-mkl", problem, sigmas, form)


def _dual_of_all_features(run: Run) -> Array | None:
    """The dual vector of the SVM on all features, where the samples are many times as many (`inner/tall.py`).

    Limits are heard between two rounds; on millions of samples the first of them proves next to nothing.
    """
    problem = run.problem
    settings = RelaxationSettings(merge_above=problem.data.n_samples + 1)
    is_tall = tall.is_tall(problem.data.n_samples, problem.atoms.count, settings)
    other = run.options.T is not None or problem.margin == "rho" or bool(problem.weight_rows)
    if other or not (is_tall and boolean.carries(problem)):
        return None
    whole = boolean.Boolean(problem, lambda: run.must_stop, settings)
    found = tall.known_classifier(whole, np.ones(problem.atoms.count))
    return None if found is None else feasible(problem, whole.size * found.alpha, in_place=True)


def _first_dual_vector(problem: Problem) -> Array:
    """A first dual vector: that of w = 0 with its best bias, over two weighted samples where that is the same."""
    merged = None if problem.weight_rows else group_alike_samples(problem, np.empty(0, dtype=np.int64))
    if merged is not None:
        c = merged.sum_weights(problem.c_i)
        solver = get_loss(problem.loss).Solver(merged.instance(problem.data.sample_weight), c, problem.bias)
        alpha = solver.solve(np.empty(0, dtype=np.int64), tol=1e-6).alpha
        return feasible(problem, merged.spread(alpha, problem.c_i), in_place=True)
    solver = get_loss(problem.loss).Solver(problem.data, problem.c_i, problem.bias)
    alpha = np.asarray(solver.solve(np.empty(0, dtype=np.int64), tol=1e-6).alpha)
    return np.append(alpha, np.zeros(problem.dual_size - alpha.size)) if problem.weight_rows else alpha


def relaxed_of(
    run: Run, pool: SelectionPool, found: RestrictedSolution, by_rows: bool = False
) -> dict[str, Any] | None:
    """What the relaxation found, for the result; where what is shown of it does not meet its bound, it is not solved.

    Parameters
    ----------
    run : Run
    pool : SelectionPool, whose mixture the solution is
    found : RestrictedSolution, that of the least upper bound
    by_rows : bool, whether the selections of the pool meet the rows with 0 ≤ σ ≤ 1 only
    """
    members = None
    if not (run.problem.selection.is_plain or by_rows):
        members = [(share, ids) for share, (ids, _) in zip(found.mu.tolist(), pool.members, strict=False)]
    sigma = {g: weight for g, weight in pool.sparse_mixture(found.mu).items() if weight > 0.0}
    entry = relaxed_entry(run, sigma, found.ids, found.w, found.b, members)
    run.closed = run.closed or run.stop() is None
    return None if entry is None else entry | {"selections": len(pool)}
