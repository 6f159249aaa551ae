"""Kelley's cutting planes in the space of selections: feature generation (Tan 2010, 2014: Algorithm 1).

    Step 1  find the selection that α violates most: argmax over σ ∈ S of ½ s(α)'σ − c'σ
    Step 2  solve the restricted problem over the selections found so far; its dual vector is the next α

The restricted optimum bounds the relaxation's value R from above and falls; the best lower(α) = g(α) minus the
maximum of Step 1 bounds R, and with it the optimum of (P), from below. Tan states both with the opposite sign.
The run stops on the gap between the two, on T selections (the papers' stop) or on its limits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from mipfs import formulation
from mipfs.atoms.features import Features
from mipfs.atoms.pair_search import PairSearch
from mipfs.atoms.pairs import Pairs
from mipfs.atoms.spread import Spread
from mipfs.atoms.top import TopFeatures
from mipfs.atoms.tree import Tree
from mipfs.atoms.tree_search import TreeSearch
from mipfs.capability import ATOMS, POINTWISE, Capability
from mipfs.drivers.rounding import Rounding
from mipfs.errors import StoppedError, UsageError
from mipfs.inner.alike import alike
from mipfs.inner.face_interior import FaceInterior
from mipfs.inner.face_layer import Face
from mipfs.inner.proximal import FaceProximal, Proximal
from mipfs.inner.restricted import Cutting, Pool, Restricted, Solution, feasible
from mipfs.losses import get_loss
from mipfs.losses.labellings import Combination
from mipfs.problem import Problem
from mipfs.proof.cuts import dual_value_below
from mipfs.result.prediction import weights_by_name
from mipfs.result.result import StopReason
from mipfs.run.checkpoint import taken_up
from mipfs.run.run import Run, Steps
from mipfs.run.single import cut_of, prove, prove_plain

if TYPE_CHECKING:
    from mipfs.backends.declared import Formulation

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

CAPABILITY = Capability(losses=POINTWISE, bound="earned, certified", atoms=(*ATOMS, "pairs"))
SPLICES = 2
"""SVMs that polish an incumbent, by default, for every iteration: each takes a third of one to the whole."""
STUCK = 1e-3
"""The same of the proximal gradient, which columns of very different norms bring to a stand: others take over."""
RAY = 1e-3
"""A dual vector whose best multiple is no further from it is judged as it is."""
NEAR, ROUNDED = 3e-12, 1e-15
"""Relative rise of the scores up to which a multiple on the grid is judged by α; of the arithmetic that judges it."""
MORE, LEAST_MORE = 4, 40
"""Atoms that a face takes in beside the M that α violates most: so many times M, and at least so many."""
EXACT_RESTRICTED = 1e-9
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
    relaxation : {"hull", "box"}
        Over the convex hull of S (Step 1 is a MILP where S has rows), or over its rows with 0 ≤ σ ≤ 1 (an LP).
    restricted : {"auto", "face", "proximal", "interior", "cutting", "conic", "simple-mkl"}
        How the restricted problem is solved: by proximal gradient for smooth losses without penalties, over all
        selections that can be made of the atoms found so far ("face", where S is a cardinality row alone and none of
        the papers' stops is asked for) or over the selections themselves ("proximal": Tan 2014), by an interior point
        for any loss where S has no rows, by cutting planes for all; "auto" takes the first that applies, and the next
        where the proximal gradient gets no further (columns of very different norms).
        "conic": declared in CVXPY, by Clarabel, for all. "simple-mkl": a reduced gradient with an SVM per step
        (Tan 2010), for the squared hinge without bias and penalties (`mipfs.drivers.reduced_mkl`).
    refit : bool, default True
        Round to an incumbent at the end and refit the SVM on it.
    polish : bool, optional
        Splice the incumbents at the end (`Supports.splice`): some tens of SVMs, each with a pass over the data. By
        default as many of them as cost about what the run did, `SPLICES` for every iteration.
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

    gap: float = 1e-4
    T: int | None = None
    time_limit: float | None = None
    iteration_limit: int | None = None
    relaxation: Literal["hull", "box"] = "hull"
    restricted: Literal["auto", "face", "proximal", "interior", "cutting", "conic", "simple-mkl"] = "auto"
    refit: bool = True
    polish: bool | None = None
    eps_c: float | None = None
    eps_apg: float | None = None
    client: Any = field(default=None, repr=False, compare=False)


def refuse(problem: Problem, options: Options) -> None:
    """Refuse what a cluster cannot take, before anything is begun.

    Raises
    ------
    UsageError
    """
    if isinstance(problem.atoms, Pairs) or not (_takes_the_best(problem) and isinstance(problem.atoms, Features)):
        raise UsageError(
            "client scores single features under a cardinality row alone; leave it out with rows, penalties, groups, "
            "trees and products"
        )


def _takes_the_best(problem: Problem) -> bool:
    """Whether the selection that α violates most is made of the largest scores."""
    selection = problem.selection
    free = selection.is_plain and not selection.forced_in and not selection.forced_out
    return free and not problem.has_penalty


def run(run: Run) -> Steps:
    """Solve the relaxation of the problem of `run`; what is found is left in it."""
    problem, options = run.problem, run.options
    method, most_violated = _restricted(run), Oracle(run, options.relaxation, options.client)
    rounding = Rounding(run, most_violated.top)
    selection = problem.selection
    least = 0.0
    if not selection.is_plain or selection.forced_in or problem.has_penalty:
        first, least = run.cheapest()
        if first is None:
            return
    if options.refit:
        rounding.at_nothing()
    run.raise_bound(least)  # α = 0 proves it
    alpha, last, sharpness = _first(problem), None, 1.0
    pool = Face() if isinstance(method, FaceInterior | FaceProximal) else Pool()
    most_violated.is_wide = isinstance(method, FaceProximal)
    if run.resume is not None:
        alpha = _taken_up(run, pool, most_violated)
    while run.stop() is None:
        ids, sigma, lower = most_violated(alpha)  # Step 1
        run.raise_bound(lower)
        if run.stop() is not None:
            break
        sharpness = 1.0 if pool.add(ids, sigma) else 0.01 * sharpness
        if sharpness < STUCK and isinstance(method, Proximal) and options.restricted in ("auto", "face"):
            (method, pool), sharpness = _handed_over(problem, pool), 1.0
        if sharpness < EXACT_RESTRICTED:
            run.closed = True  # α violates nothing new: the gap that is left is round-off
            break
        if isinstance(pool, Face):
            pool.take_in(most_violated.next_best)
        last = method.solve(pool, sharpness * _tolerance(run), lambda: run.must_stop)  # Step 2
        alpha, before = last.alpha, run.upper
        run.lower_upper(last.upper)
        run.iteration += 1
        run.count(selections=len(pool), **most_violated.counters())
        if run.iteration == 1 and options.refit:
            rounding.of_mixture(pool, last)
        if options.T is not None and run.iteration >= options.T:
            run.raise_bound(most_violated(alpha)[2])
            run.early = StopReason.ITERATION_LIMIT
        if options.eps_c is not None and abs(before - last.upper) <= options.eps_c * abs(before) < np.inf:
            run.raise_bound(most_violated(alpha)[2])
            run.early = StopReason.COMPLETED
        run.record()
        yield partial(_saved, pool, alpha, most_violated)
    yield partial(_saved, pool, alpha, most_violated)
    run.count(**most_violated.counters())
    if last is not None:
        run.outcome.relaxed, run.outcome.alpha = relaxed_of(run, pool, last), last.alpha
        if not isinstance(problem.atoms, Pairs):  # a program has a variable for every atom
            run.outcome.declare = partial(_declared, problem, tuple(pool.members))
        run.outcome.selections = pool.members
        if options.refit:
            rounds = max(run.iteration, -(-pool.used.size // max(1, problem.M or 1)))  # a face takes more in a round
            most = SPLICES * rounds if options.polish is None else None if options.polish else 0
            rounding.of_all(pool, last, most)
    most_violated.prove(run)


def _saved(pool: Pool, alpha: Array, oracle: Oracle) -> dict[str, npt.NDArray[Any]]:
    """The selections so far, α, and the best bound with its dual vector."""
    lower, best = oracle.best
    return {
        **pool.arrays(),
        "alpha": alpha,
        "best": alpha[:0] if best is None else np.asarray(best),
        "lower": np.array(lower),
    }


def _taken_up(run: Run, pool: Pool, oracle: Oracle) -> Array:
    """Fill the pool with the selections of the run that this one goes on with; its α."""
    assert run.resume is not None
    kept = run.resume.arrays
    taken_up(run, run.resume)
    pool.take_up(kept)
    if kept["best"].size:
        run.raise_bound(oracle(np.asarray(kept["best"]))[2])
    return np.asarray(kept["alpha"], dtype=float)


def _tolerance(run: Run) -> float:
    """Absolute gap worth reaching in a restricted problem: a tenth of what is open between the two bounds."""
    if not np.isfinite(run.upper):
        return 0.01 * float(run.problem.c_i.sum())
    return 0.1 * max(run.upper - run.bound, run.worth_closing(run.upper))


def _restricted(run: Run) -> Restricted:
    """The method for the restricted problem."""
    problem, options = run.problem, run.options
    if options.T is not None and options.T < 1:
        raise UsageError(f"T = {options.T} must be at least 1")
    for name in ("eps_c", "eps_apg"):
        given = getattr(options, name)
        if given is not None and not 0.0 <= given < 1.0:
            raise UsageError(f"{name} = {given!r} must lie in [0, 1)")
    if isinstance(problem.atoms, Pairs) and options.restricted not in ("auto", "proximal", "interior"):
        raise UsageError(f"restricted = {options.restricted!r} holds all products of features; leave it at 'auto'")
    loss = get_loss(problem.loss)
    smooth = loss.is_smooth and loss.kernel is not None and not problem.has_penalty
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
        from mipfs.drivers.reduced_mkl import Conic, SimpleMkl

        return Conic(problem, lambda: run.deadline) if options.restricted == "conic" else SimpleMkl(problem)
    if options.restricted == "face" and not free:
        raise UsageError("restricted = 'face' needs a selection without rows and forced features; leave it at 'auto'")
    if proximal and free and (options.restricted == "face" or (options.restricted == "auto" and not papers)):
        return FaceProximal(problem, options.eps_apg)
    if proximal:
        return Proximal(problem, options.eps_apg)
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


def _first(problem: Problem) -> Array:
    """A first dual vector: that of w = 0 with its best bias, over two weighted samples where that is the same."""
    merged = alike(problem, np.empty(0, dtype=np.int64))
    if merged is not None:
        c = merged.summed(problem.c_i)
        solver = get_loss(problem.loss).Solver(merged.instance(problem.data.sample_weight), c, problem.bias)
        alpha = solver.solve(np.empty(0, dtype=np.int64), tol=1e-6).alpha
        return feasible(problem, merged.spread(alpha, problem.c_i))
    solver = get_loss(problem.loss).Solver(problem.data, problem.c_i, problem.bias)
    return np.asarray(solver.solve(np.empty(0, dtype=np.int64), tol=1e-6).alpha)


class Oracle:
    """Step 1: the selection that α violates most, and lower(α) = g(α) + min over S of c'σ − ½ s(α)'σ, rounded down.

    Parameters
    ----------
    run : Run
    relaxation : {"hull", "box"}
    client : dask.distributed.Client, optional

    Attributes
    ----------
    best : the largest lower(α) so far, and its α (a `Combination` over labellings)
    top : TopFeatures, where the best features are found without a score of every one
    is_wide : bool, whether the next best atoms are wanted too
    next_best : (k,) ndarray, these at the last dual vector, best first
    """

    def __init__(self, run: Run, relaxation: str, client: Any = None) -> None:
        self.problem, self.relaxation, self._oracle = run.problem, relaxation, run.oracle
        self.best: tuple[float, Array | Combination | None] = -np.inf, None
        self._must_stop = lambda: run.must_stop
        self.is_wide, self.next_best = False, np.empty(0, dtype=np.int64)
        self._loss = get_loss(run.problem.loss)
        problem = run.problem
        self._by_best = _takes_the_best(problem)
        self.top: TopFeatures | PairSearch | None = None
        self._search: TreeSearch | None = None
        if isinstance(problem.atoms, Pairs):
            self.top = problem.atoms.search()
        elif self._by_best and isinstance(problem.atoms, Features):
            search = None if client is None else Spread(problem.atoms, client, self._must_stop)
            self.top = TopFeatures(problem.atoms, search)
        elif self._by_best and isinstance(problem.atoms, Tree):
            self._search = TreeSearch(problem.atoms)

    def prove(self, run: Run) -> None:
        """The certificate of the best dual vector."""
        lower, dual = self.best
        if self.top is None or self.problem.loss == "structural":
            prove(run, lower, None if dual is None else cut_of(self.problem, dual))
        else:
            if dual is None or lower < run.bound:
                dual = np.zeros(self.problem.data.n_samples)
            assert not isinstance(dual, Combination)
            prove_plain(run, dual, self._again)

    def counters(self) -> dict[str, int]:
        """Of a tree, how many scores were computed and how many a bound saved."""
        return {} if self._search is None else {"scored": self._search.scored, "pruned": self._search.saved}

    def __call__(self, alpha: Array) -> tuple[Integers, Array, float]:
        """Positions with σ > 0, their σ, and the larger of lower(α) and lower of the best multiple of α."""
        g = dual_value_below(self._loss, alpha, self.problem.c_i)
        try:
            ids, sigma, lower = self._noted(self.at(alpha * self.problem.data.y, g, self._must_stop), alpha)
        except StoppedError:  # a long search: what was proven before it stands
            return np.empty(0, dtype=np.int64), np.empty(0), -np.inf
        squares, values = 2.0 * (g - lower), abs(g) + abs(lower)
        multiple = self._loss.best_multiple(alpha, self.problem.c_i, squares) if self._by_best else None
        if multiple is None or abs(multiple - 1.0) < RAY:
            return ids, sigma, lower
        best = multiple * alpha
        if self._loss.dual_value(best, self.problem.c_i) - 0.5 * multiple * multiple * squares <= self.best[0]:
            return ids, sigma, lower
        exact = feasible(self.problem, best)
        g = dual_value_below(self._loss, exact, self.problem.c_i)
        found = self._near(exact, multiple * alpha, multiple * multiple * (squares + ROUNDED * values), g) or self.at(
            exact * self.problem.data.y, g
        )
        return ids, sigma, max(lower, self._noted(found, exact)[2])

    def _wide(self, M: int) -> int:
        """How many of the best atoms are looked for."""
        return M + max(LEAST_MORE, MORE * M) if self.is_wide else M

    def _near(self, exact: Array, wanted: Array, squares: float, g: float) -> tuple[Integers, Array, float] | None:
        """lower of a dual vector near one whose scores are known, without a look at the data; None where it is too far.

        The root of the sum of the M largest scores is a norm of v, at most √M max_j ‖λ_j x_j‖ ‖v‖: at `exact` it is at
        most √squares, that at `wanted`, and √M max_j ‖λ_j x_j‖ ‖exact − wanted‖.
        """
        if not isinstance(self.top, TopFeatures):
            return None
        M = self.problem.atoms.count if self.problem.M is None else self.problem.M
        off = float(np.linalg.norm(exact - wanted)) + ROUNDED * float(np.linalg.norm(exact))
        largest = self.top.largest_norm + np.sqrt(exact.size) * self.top.largest_center
        root = (np.sqrt(squares) + 1.001 * np.sqrt(M) * largest * off) * (1.0 + ROUNDED)
        if root * root > squares * (1.0 + NEAR):
            return None
        return np.empty(0, dtype=np.int64), np.empty(0), g - 0.5 * root * root * (1.0 + ROUNDED)

    def _again(self, exact: Array, g: float) -> tuple[Integers, float]:
        """lower of a feasible dual vector, at hand where that is the best so far, and of `Pairs` its best atoms."""
        lower, dual = self.best
        at_hand = isinstance(dual, np.ndarray) and np.array_equal(dual, exact)
        if at_hand and not isinstance(self.problem.atoms, Pairs):
            return np.empty(0, dtype=np.int64), lower
        ids, _, lower = self.at(exact * self.problem.data.y, g)
        return ids, lower

    def of(self, dual: Combination) -> tuple[Integers, Array, float]:
        """The same of a dual vector over labellings."""
        return self._noted(self.at(dual.v, dual.value_below), dual)

    def _noted(self, found: tuple[Integers, Array, float], alpha: Array | Combination) -> tuple[Integers, Array, float]:
        if found[2] > self.best[0]:
            self.best = found[2], alpha
        return found

    def at(self, v: Array, g: float, must_stop: Callable[[], bool] = lambda: False) -> tuple[Integers, Array, float]:
        """The same of a dual vector that is known by v (n,) and its g, rounded down."""
        problem = self.problem
        M = problem.atoms.count if problem.M is None else problem.M
        if self.top is not None:  # a cardinality row alone: the best scores, found without reading every column
            top, wide = self.top, self._wide(M)
            ids, sizes = top.search(v, wide, must_stop=must_stop) if isinstance(top, PairSearch) else top.best(v, wide)
            ids, sizes, self.next_best = ids[:M], sizes[:M], ids[M:]
            inner = -0.5 * float(np.sum(np.square(sizes + self.top.radius(v)))) * (1.0 + 1e-15 * (ids.size + 8))
            return np.sort(ids), np.ones(ids.size), g + inner
        if self._search is not None:
            ids, found = self._search.best(v, M)
            error = self._search.error(v, float(found.max(initial=0.0)))
            inner = -0.5 * (float(found.sum()) + M * error) * (1.0 + 1e-15 * (ids.size + 8))
            return np.sort(ids), np.ones(ids.size), g + inner
        scores = problem.atoms.scores(v)
        if self._by_best:
            ids = problem.atoms.best(v, self._wide(M))
            ids, self.next_best = ids[:M], ids[M:]
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
