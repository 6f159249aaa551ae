"""Kelley's cutting planes in the space of selections: feature generation (Tan 2010, 2014: Algorithm 1).

    Step 1  find the selection that α violates most: argmax over σ ∈ S of ½ s(α)'σ − c'σ
    Step 2  solve the restricted problem over the selections found so far; its dual vector is the next α

The restricted optimum bounds the relaxation's value R from above and falls; the best lower(α) = g(α) minus the
maximum of Step 1 bounds R, and with it the optimum of (P), from below. Tan states both with the opposite sign.
The run stops on the gap between the two, on T selections (the papers' stop) or on its limits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

import numpy as np
import numpy.typing as npt

from mipfs import formulation
from mipfs.capability import ALL_REGULARISERS, ATOMS, POINTWISE, Capability, needs_ridge
from mipfs.drivers.most_violated import MostViolated, takes_the_best
from mipfs.drivers.rounding import Rounding
from mipfs.drivers.shelf import published
from mipfs.errors import UsageError
from mipfs.inner import boolean, tall
from mipfs.inner.alike import alike
from mipfs.inner.face_interior import FaceInterior
from mipfs.inner.face_layer import Face
from mipfs.inner.proximal import FaceProximal, Proximal
from mipfs.inner.restricted import Cutting, Pool, Restricted, Solution, feasible
from mipfs.losses import get_loss
from mipfs.plumbing.arrays import Array, Integers
from mipfs.plumbing.declared import Count, Declared, Gap, Gigabytes, Natural, Seconds, Share
from mipfs.problem import Problem
from mipfs.result.result import StopReason
from mipfs.run.checkpoint import restoring, taken_up
from mipfs.run.relaxed import relaxed
from mipfs.run.run import Run, Steps
from mipfs.settings import KelleySettings, RelaxationSettings

if TYPE_CHECKING:
    from mipfs.formulation.program import Formulation


CAPABILITY = Capability(
    losses=POINTWISE,
    bound="earned, certified",
    atoms=(*ATOMS, "pairs", "searched atoms"),
    regularisers=ALL_REGULARISERS,
)


@dataclass(frozen=True)
class Options(Declared):
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

    gap: Gap = 1e-4
    T: Count | None = None
    time_limit: Seconds | None = None
    memory_limit: Gigabytes | None = None
    iteration_limit: Natural | None = None
    relaxation: Literal["hull", "box"] = "hull"
    restricted: Literal["auto", "face", "proximal", "interior", "cutting", "conic", "simple-mkl"] = "auto"
    refit: bool = True
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
    from mipfs.kernels.proximal import accelerated

    is_asked = options["restricted"] in ("auto", "face", "proximal")
    return (accelerated,) if is_asked and _is_smooth(problem) else ()


def run(run: Run) -> Steps:
    """Solve the relaxation of the problem of `run`; what is found is left in it."""
    problem = run.problem
    options = run.options
    settings = run.settings
    method, most_violated = _restricted(run), MostViolated(run, options.relaxation, options.client)
    rounding = Rounding(run, most_violated.top)
    if not _begun(run, rounding):
        return
    alpha, sharpness, handed_over = _first(problem), 1.0, False
    last: Solution | None = None
    pool = Face() if isinstance(method, FaceInterior | FaceProximal) else Pool()
    most_violated.is_wide = isinstance(method, FaceProximal)
    if run.resume is not None:
        if np.all(run.resume.arrays.get("handed_over", False)):
            (method, pool), handed_over = _handed_over(problem, pool), True
        alpha, last, sharpness = _taken_up(run, pool, most_violated)
    best = None if last is None else (pool, last)
    known = _of_all(run) if last is None else None
    if known is not None:
        run.raise_bound(most_violated(known)[2])
    while run.stop() is None:
        ids, sigma, lower = most_violated(alpha)  # Step 1
        run.raise_bound(lower)
        if run.stop() is not None:
            break
        sharpness = 1.0 if pool.add(ids, sigma) else 0.01 * sharpness
        if sharpness < settings.stuck and isinstance(method, Proximal) and options.restricted in ("auto", "face"):
            (method, pool), sharpness, handed_over = _handed_over(problem, pool), 1.0, True
        if sharpness < settings.exact:
            run.closed = True  # α violates nothing new: the gap that is left is round-off
            break
        if isinstance(pool, Face):
            pool.take_in(most_violated.next_best)
        last = method.solve(pool, sharpness * _tolerance(run), lambda: run.must_stop)  # Step 2
        best = (pool, last) if best is None or last.upper < best[1].upper else best
        alpha, before = last.alpha, run.upper
        run.lower_upper(last.upper)
        run.iteration += 1
        run.count(selections=len(pool), **most_violated.counters())
        if run.iteration == 1 and options.refit and options.rounding == "best":
            rounding.of_mixture(pool, last)
        if options.T is not None and run.iteration >= options.T:
            run.raise_bound(most_violated(alpha)[2])
            run.early = StopReason.ITERATION_LIMIT
        if options.eps_c is not None and abs(before - last.upper) <= options.eps_c * abs(before) < np.inf:
            run.raise_bound(most_violated(alpha)[2])
            run.early = StopReason.COMPLETED
        run.record()
        yield partial(_saved, pool, alpha, most_violated, last, sharpness, handed_over)
    run.count(**most_violated.counters())
    del method  # what it holds of every sample
    if last is not None and best is not None:
        run.outcome.relaxed, run.outcome.alpha = relaxed_of(run, *best, options.relaxation == "box"), last.alpha
        if problem.atoms.is_held:  # a program has a variable for every atom
            run.outcome.declare = partial(_declared, problem, tuple(pool.members))
        run.outcome.selections = pool.members
        _rounded(run, rounding, pool, last)
    yield partial(_saved, pool, alpha, most_violated, last, sharpness, handed_over)  # with the incumbent of the end
    most_violated.prove(run)


def _rounded(run: Run, rounding: Rounding, pool: Pool, last: Solution) -> None:
    """Leave an incumbent: the set of FGM-B, or the best of what every ranking leads to."""
    options = run.options
    if options.rounding == "scores":
        rounding.by_scores(last.alpha)
    elif options.refit:
        rounds = max(run.iteration, -(-pool.used.size // max(1, run.problem.M or 1)))  # a face takes more in a round
        most = run.settings.splices * rounds if options.polish is None else None if options.polish else 0
        rounding.of_all(pool, last, most)


def _begun(run: Run, rounding: Rounding) -> bool:
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
    run.raise_bound(least)
    run.sharpness = run.settings.sharper
    return True


def _saved(
    pool: Pool, alpha: Array, oracle: MostViolated, last: Solution | None, sharpness: float, handed_over: bool
) -> dict[str, npt.NDArray[Any]]:
    """The selections so far, α, the best dual vector, the last solution, and how sharp and by whom the next one is."""
    best = oracle.best[1]
    return {
        **pool.arrays(),
        **({} if last is None else last.arrays()),
        "alpha": alpha,
        "best": alpha[:0] if best is None else np.asarray(best),
        "sharpness": np.array(sharpness),
        "handed_over": np.array(handed_over),
        "box": np.array(oracle.relaxation == "box"),
    }


@restoring
def _taken_up(run: Run, pool: Pool, oracle: MostViolated) -> tuple[Array, Solution | None, float]:
    """Fill the pool with the selections of the run that this one goes on with; its α, last solution and sharpness."""
    assert run.resume is not None
    kept = run.resume.arrays
    if bool(kept["box"]) != (oracle.relaxation == "box"):
        other = "hull" if oracle.relaxation == "box" else "box"
        raise UsageError(f"resume: the state is one of relaxation = {other!r}; give that, or begin the run anew")
    taken_up(run, run.resume)
    pool.take_up(kept, run.problem.atoms.count)
    alpha, best = (np.asarray(kept[name], dtype=float) for name in ("alpha", "best"))
    if alpha.shape != run.problem.c_i.shape or best.shape not in ((0,), alpha.shape):
        raise ValueError("a dual vector is of other samples")
    if best.size:
        run.raise_bound(oracle(best)[2])
    last = Solution.taken_up(kept, pool, alpha, run.problem.data.n_features)
    if last is not None:
        run.lower_upper(run.resume.upper)
    return alpha, last, float(kept["sharpness"]) if run.options.gap >= run.resume.gap else 1.0


def _tolerance(run: Run) -> float:
    """Absolute gap worth reaching in a restricted problem: a tenth of what is open between the two bounds."""
    if not np.isfinite(run.upper):
        return 0.01 * float(run.problem.c_i.sum())
    return 0.1 * max(run.upper - run.bound, run.worth_closing(run.upper))


def _is_smooth(problem: Problem) -> bool:
    """Whether the proximal gradient carries the problem."""
    return get_loss(problem.loss).is_smooth and problem.has_kernels and not problem.has_penalty


def _restricted(run: Run) -> Restricted:
    """The method for the restricted problem."""
    problem = run.problem
    options = run.options
    if not problem.atoms.is_held and options.restricted not in ("auto", "proximal", "interior"):
        raise UsageError(f"restricted = {options.restricted!r} holds all {problem.atoms.called}; leave it at 'auto'")
    if options.restricted in ("face", "proximal", "conic", "simple-mkl"):
        needs_ridge(problem, f"restricted = {options.restricted!r}")
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
        shelf = published("reduced mkl")
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


def _handed_over(problem: Problem, pool: Pool) -> tuple[Restricted, Pool]:
    """A method that no scale stops, with the selections so far."""
    if not problem.selection.is_plain:
        return Cutting(problem), pool
    face = pool if isinstance(pool, Face) else Face()
    for member in pool.members if face is not pool else ():
        face.add(*member)
    return FaceInterior(problem), face


def _declared(problem: Problem, members: Sequence[tuple[Integers, Array]]) -> Formulation:
    """The restricted problem over a pool, declared in CVXPY; for `Result.formulation`."""
    sigmas = np.zeros((len(members), problem.atoms.count))
    for row, (ids, sigma) in zip(sigmas, members, strict=True):
        row[ids] = sigma
    return formulation.declared("reduced-mkl", problem, list(sigmas))


def _of_all(run: Run) -> Array | None:
    """The dual vector of the SVM on all features, where the samples are many times as many (`inner/tall.py`).

    Limits are heard between two rounds; on millions of samples the first of them proves next to nothing.
    """
    problem = run.problem
    settings = RelaxationSettings(merge_above=problem.data.n_samples + 1)
    is_tall = tall.is_tall(problem.data.n_samples, problem.atoms.count, settings)
    if run.options.T is not None or problem.margin == "rho" or not (is_tall and boolean.carries(problem)):
        return None
    whole = boolean.Boolean(problem, lambda: run.must_stop, settings)
    found = tall.known(whole, np.ones(problem.atoms.count))
    return None if found is None else feasible(problem, whole.size * found.alpha, in_place=True)


def _first(problem: Problem) -> Array:
    """A first dual vector: that of w = 0 with its best bias, over two weighted samples where that is the same."""
    merged = alike(problem, np.empty(0, dtype=np.int64))
    if merged is not None:
        c = merged.summed(problem.c_i)
        solver = get_loss(problem.loss).Solver(merged.instance(problem.data.sample_weight), c, problem.bias)
        alpha = solver.solve(np.empty(0, dtype=np.int64), tol=1e-6).alpha
        return feasible(problem, merged.spread(alpha, problem.c_i), in_place=True)
    solver = get_loss(problem.loss).Solver(problem.data, problem.c_i, problem.bias)
    return np.asarray(solver.solve(np.empty(0, dtype=np.int64), tol=1e-6).alpha)


def relaxed_of(run: Run, pool: Pool, found: Solution, by_rows: bool = False) -> dict[str, Any] | None:
    """What the relaxation found, for the result; where what is shown of it does not meet its bound, it is not solved.

    Parameters
    ----------
    run : Run
    pool : Pool, whose mixture the solution is
    found : Solution, that of the least upper bound
    by_rows : bool, whether the selections of the pool meet the rows with 0 ≤ σ ≤ 1 only
    """
    members = None
    if not (run.problem.selection.is_plain or by_rows):
        members = [(share, ids) for share, (ids, _) in zip(found.mu.tolist(), pool.members, strict=False)]
    sigma = {g: weight for g, weight in pool.sparse_mixture(found.mu).items() if weight > 0.0}
    entry = relaxed(run, sigma, found.ids, found.w, found.b, members)
    run.closed = run.closed or run.stop() is None
    return None if entry is None else entry | {"selections": len(pool)}
