"""Kelley's cutting planes in the space of selections: feature generation (Tan 2010, 2014: Algorithm 1).

    Step 1  find the selection that α violates most: argmax over σ ∈ S of ½ s(α)'σ − c'σ
    Step 2  solve the restricted problem over the selections found so far; its dual vector is the next α

The restricted optimum bounds the relaxation's value R from above and falls; the best lower(α) = g(α) minus the
maximum of Step 1 bounds R, and with it the optimum of (P), from below. Tan states both with the opposite sign.
The run stops on the gap between the two, on T selections (the papers' stop) or on its limits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from mipfs.atoms.features import Features
from mipfs.atoms.top import TopFeatures
from mipfs.atoms.tree import Tree
from mipfs.capability import POINTWISE, Capability
from mipfs.drivers.cuts import dual_value_below
from mipfs.drivers.face_interior import FaceInterior
from mipfs.drivers.face_layer import Face
from mipfs.drivers.heuristics import Supports
from mipfs.drivers.restricted import Cutting, Pool, Proximal, Restricted, Solution
from mipfs.drivers.run import Run
from mipfs.drivers.single import cut_of, prove
from mipfs.drivers.subproblem import Subproblem
from mipfs.errors import UsageError
from mipfs.losses import get_loss
from mipfs.losses.labellings import Combination
from mipfs.prediction import weights_by_name
from mipfs.problem import Problem
from mipfs.result import StopReason

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

CAPABILITY = Capability(losses=POINTWISE, bound="earned, certified")
REFIT, ROUGH = 1e-7, 1e-4
"""Relative gap of the classifier on the incumbent's features, and of those that are only compared."""
SMOOTH = frozenset({"squared-hinge", "logistic"})
SHARPEST = 1e-9
"""When a restricted problem solved this much tighter still yields no new selection, round-off is all that is left."""


@dataclass(frozen=True)
class Options:
    """Options of `kelley`.

    Parameters
    ----------
    gap : float in [0, 1), default 1e-4
        Relative gap between the two bounds on the relaxation.
    T : int >= 1, optional
        At most so many selections (the papers' stop).
    time_limit : float, optional, in seconds
    iteration_limit : int, optional, the same as T
    seed : int
        Unused: nothing in this driver is random.
    relaxation : {"hull", "box"}
        Over the convex hull of S (Step 1 is a MILP where S has rows), or over its rows with 0 ≤ σ ≤ 1 (an LP).
    restricted : {"auto", "proximal", "interior", "cutting"}
        How the restricted problem is solved: proximal gradient for smooth losses without penalties, an interior point
        for any loss where S has no rows, cutting planes for all; "auto" takes the first that applies.
    refit : bool, default True
        Round to an incumbent at the end and refit the SVM on it.
    polish : bool, default False
        Splice the incumbent at the end (`Supports.splice`): some tens of SVMs, each with a pass over the data.
    """

    gap: float = 1e-4
    T: int | None = None
    time_limit: float | None = None
    iteration_limit: int | None = None
    seed: int = 0
    relaxation: Literal["hull", "box"] = "hull"
    restricted: Literal["auto", "proximal", "interior", "cutting"] = "auto"
    refit: bool = True
    polish: bool = False


def run(run: Run) -> None:
    """Solve the relaxation of the problem of `run`; what is found is left in it."""
    problem, options = run.problem, run.options
    method, most_violated = _restricted(problem, options), Oracle(run, options.relaxation)
    selection = problem.selection
    least = 0.0
    if not selection.is_plain or selection.forced_in or np.any(problem.penalty):
        first, least = run.oracle.minimise(problem.penalty)
        if first is None:
            run.infeasible, run.conflict = True, selection.conflict()
            return
    if options.refit:
        round_to(run, np.zeros(selection.n_features))
    run.raise_bound(least)  # α = 0 proves it
    pruned = problem.atoms.pruned if isinstance(problem.atoms, Tree) else 0
    alpha, last, sharpness = _first(problem), None, 1.0
    pool = Face() if isinstance(method, FaceInterior) else Pool()
    while run.stop() is None:
        ids, sigma, lower = most_violated(alpha)  # Step 1
        run.raise_bound(lower)
        if run.stop() is not None:
            break
        sharpness = 1.0 if pool.add(ids, sigma) else 0.01 * sharpness
        if sharpness < SHARPEST:
            run.closed = True  # α violates nothing new: the gap that is left is round-off
            break
        last = method.solve(pool, sharpness * _tolerance(run), lambda: run.must_stop)  # Step 2
        alpha = last.alpha
        run.lower_upper(last.upper)
        run.iteration += 1
        run.counters["selections"] = len(pool)
        if run.iteration == 1 and options.refit:
            round_to(run, pool.mixture(last.mu, selection.n_features))
        if options.T is not None and run.iteration >= options.T:
            run.raise_bound(most_violated(alpha)[2])
            run.early = StopReason.ITERATION_LIMIT
        run.record()
    if isinstance(problem.atoms, Tree):
        run.counters["pruned"] = problem.atoms.pruned - pruned
    if last is not None:
        run.outcome.relaxed, run.outcome.selections = relaxed_of(run, pool, last), pool.members
        if options.refit:
            round_to(run, pool.mixture(last.mu, selection.n_features), options.polish)
    lower, dual = most_violated.best
    prove(run, lower, None if dual is None else cut_of(problem, dual))


def _tolerance(run: Run) -> float:
    """Absolute gap worth reaching in a restricted problem: a tenth of what is open between the two bounds."""
    if not np.isfinite(run.upper):
        return 0.01 * float(run.problem.c_i.sum())
    return 0.1 * max(run.upper - run.bound, run.worth_closing(run.upper))


def _restricted(problem: Problem, options: Options) -> Restricted:
    """The method for the restricted problem."""
    if options.T is not None and options.T < 1:
        raise UsageError(f"T = {options.T} must be at least 1")
    if options.relaxation not in ("hull", "box"):
        raise UsageError(f"relaxation = {options.relaxation!r} is unknown; it is 'hull' or 'box'")
    smooth = problem.loss in SMOOTH and not np.any(problem.penalty)
    if options.restricted == "proximal" and not smooth:
        raise UsageError("restricted = 'proximal' needs a smooth loss without penalties; leave it at 'auto'")
    if options.restricted not in ("auto", "proximal", "interior", "cutting"):
        known = "'auto', 'proximal', 'interior' or 'cutting'"
        raise UsageError(f"restricted = {options.restricted!r} is unknown; it is {known}")
    if options.restricted == "interior" and not problem.selection.is_plain:
        raise UsageError("restricted = 'interior' needs a selection without rows; leave it at 'auto'")
    if smooth and options.restricted in ("auto", "proximal"):
        return Proximal(problem)
    if problem.selection.is_plain and options.restricted in ("auto", "interior"):
        return FaceInterior(problem)
    return Cutting(problem)


def _first(problem: Problem) -> Array:
    """A first dual vector: that of w = 0 with its best bias."""
    solver = get_loss(problem.loss).Solver(problem.data, problem.c_i, problem.bias)
    return np.asarray(solver.solve(np.empty(0, dtype=np.int64), tol=1e-6).alpha)


class Oracle:
    """Step 1: the selection that α violates most, and lower(α) = g(α) + min over S of c'σ − ½ s(α)'σ, rounded down.

    Parameters
    ----------
    run : Run
    relaxation : {"hull", "box"}

    Attributes
    ----------
    best : the largest lower(α) so far, and its α (a `Combination` over labellings)
    """

    def __init__(self, run: Run, relaxation: str) -> None:
        self.problem, self.relaxation, self._oracle = run.problem, relaxation, run.oracle
        self.best: tuple[float, Array | Combination | None] = -np.inf, None
        self._loss = get_loss(run.problem.loss)
        problem, selection = run.problem, run.problem.selection
        free = selection.is_plain and not selection.forced_in and not selection.forced_out
        self._by_best = free and not np.any(problem.penalty)
        self._top: TopFeatures | None = None
        if self._by_best and isinstance(problem.atoms, Features):
            self._top = TopFeatures(problem.atoms)

    def __call__(self, alpha: Array) -> tuple[Integers, Array, float]:
        """Positions with σ > 0, their σ, and lower(α)."""
        g = dual_value_below(self._loss, alpha, self.problem.c_i)
        return self._noted(self.at(alpha * self.problem.data.y, g), alpha)

    def of(self, dual: Combination) -> tuple[Integers, Array, float]:
        """The same of a dual vector over labellings."""
        return self._noted(self.at(dual.v, dual.value_below), dual)

    def _noted(self, found: tuple[Integers, Array, float], alpha: Array | Combination) -> tuple[Integers, Array, float]:
        if found[2] > self.best[0]:
            self.best = found[2], alpha
        return found

    def at(self, v: Array, g: float) -> tuple[Integers, Array, float]:
        """The same of a dual vector that is known by v (n,) and its g, rounded down."""
        problem = self.problem
        M = problem.atoms.count if problem.M is None else problem.M
        if self._top is not None:  # a cardinality row alone: the best scores, found without reading every column
            ids, sizes = self._top.best(v, M)
            inner = -0.5 * float(np.sum(np.square(sizes + self._top.radius(v)))) * (1.0 + 1e-15 * (ids.size + 8))
            return np.sort(ids), np.ones(ids.size), g + inner
        scores = problem.atoms.scores(v)
        if self._by_best:  # groups and trees have a search of their own
            ids = problem.atoms.best(v, M)
            error = float(problem.atoms.score_error(v, scores).max(initial=0.0))
            inner = -0.5 * (float(scores[ids].sum()) + M * error) * (1.0 + 1e-15 * (ids.size + 8))
            return np.sort(ids), np.ones(ids.size), g + inner
        cost = problem.penalty - 0.5 * (scores + problem.atoms.score_error(v, scores))
        minimise = self._oracle.minimise_relaxed if self.relaxation == "box" else self._oracle.minimise
        sigma, inner = minimise(cost)
        if sigma is None:
            return np.empty(0, dtype=np.int64), np.empty(0), -np.inf
        ids = np.flatnonzero(sigma > 1e-9)
        return ids, np.asarray(sigma[ids], dtype=float), g + inner - 1e-15 * ids.size * abs(inner)


def round_to(run: Run, sigma_relaxed: Array, polish: bool = False) -> None:
    """The allowed selection of largest total relaxed σ, refitted and where asked for spliced: an incumbent."""
    subproblem = Subproblem(run.problem)
    Supports(run, subproblem, tol=REFIT).round(sigma_relaxed)
    if polish and run.incumbent is not None and not run.is_optimal:
        Supports(run, subproblem, tol=ROUGH).splice()
        sigma = np.zeros(run.problem.atoms.count, dtype=bool)
        sigma[run.incumbent.selected] = True
        Supports(run, subproblem, tol=REFIT).evaluate(sigma)


def relaxed_of(run: Run, pool: Pool, last: Solution) -> dict[str, Any]:
    """What the relaxation found, for the result."""
    problem, data = run.problem, run.problem.data
    mixture = pool.sparse_mixture(last.mu)
    rho = 0.5 / last.upper if problem.margin == "rho" else 1.0
    weights = rho * last.w / data.scale[last.ids]
    return {
        "upper": problem.reported(run.upper),
        "lower": problem.reported(run.bound),
        "sigma": {problem.atoms.names[g]: min(1.0, weight) for g, weight in sorted(mixture.items()) if weight > 0.0},
        "weights": weights_by_name(data, last.ids, weights),
        "intercept": rho * last.b - float(weights @ data.shift[last.ids]),
        "selections": len(pool),
    }
