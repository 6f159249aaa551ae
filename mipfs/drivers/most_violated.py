"""The selection that a dual vector violates most: what `kelley` and `two_layer` ask for in every round."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs.atoms import BestSearch, ScoreSearch
from mipfs.errors import StoppedError
from mipfs.inner.restricted import feasible
from mipfs.kernels.bound import U, add_down, gains, lower
from mipfs.losses import get_loss
from mipfs.plumbing.arrays import Array, Arrays, Integers
from mipfs.problem import Problem
from mipfs.proof.cuts import dual_value_below, scores_above, value_below
from mipfs.proof.single import cut_of
from mipfs.run.proven import prove_at_root, prove_plain
from mipfs.run.run import Run
from mipfs.settings import ViolatedSettings
from mipfs.svm.dyadic import pieces
from mipfs.svm.labellings import LabellingsDual, combined_arrays

NEAR_SHARE, ROUNDING_SHARE = 3e-12, 1e-15
"""Relative rise of the scores up to which a multiple on the grid is judged by α; of the arithmetic that judges it."""
AGAIN_SHARE, AGAIN_SHARE_ROWS = 1e-13, 1e-8
"""How far, relative to its terms, the lower that a state says of a dual vector may lie above what is computed again:
rounding, and where S has rows the ends of two MILPs, after which the proof shows it anew."""


def takes_the_best(problem: Problem) -> bool:
    """Whether the selection that α violates most is made of the largest scores."""
    selection = problem.selection
    free = selection.is_plain and not selection.forced_in and not selection.forced_out
    return free and not problem.has_penalty and problem.regulariser.is_ridge and not problem.weight_rows


class MostViolated:
    """Step 1: the selection that α violates most, and lower(α) = g(α) + min over S of c'σ − ½ s(α)'σ, rounded down.

    Parameters
    ----------
    run : Run
    relaxation : {"hull", "box"}
    client : dask.distributed.Client, optional

    Attributes
    ----------
    top : BestSearch, where the best features are found without a score of every one
    is_wide : bool, whether the next best atoms are wanted too
    next_best : (k,) ndarray, these at the last dual vector, best first
    """

    def __init__(self, run: Run, relaxation: str, client: Any = None) -> None:
        self.problem = run.problem
        self.relaxation = relaxation
        self._oracle = run.oracle
        self.settings: ViolatedSettings = run.settings.oracle
        self._best: tuple[float, Array | LabellingsDual | None, float] = -np.inf, None, 1.0
        self._must_stop = lambda: run.must_stop
        self.is_wide = False
        self.next_best = np.empty(0, dtype=np.int64)
        self._loss = get_loss(run.problem.loss)
        problem = run.problem
        self._by_best = takes_the_best(problem)
        self.top: BestSearch | None = None
        self._search: ScoreSearch | None = None
        if self._by_best or not problem.atoms.is_held:
            self.top = problem.atoms.best_search(client, self._must_stop)
            self._search = problem.atoms.score_search()

    @property
    def best(self) -> tuple[float, Array | LabellingsDual | None]:
        """The largest lower(α) so far, and its α (a `LabellingsDual` over labellings).

        A multiple of a dual vector is made when it is asked for: what is kept is most often the last one's own array.
        """
        lower, dual, multiple = self._best
        if isinstance(dual, np.ndarray) and multiple != 1.0:
            return lower, feasible(self.problem, multiple * dual, in_place=True)
        return lower, dual

    def kept(self) -> Callable[[], Arrays]:
        """What makes arrays of the best dual vector, and of what the search goes on from."""
        best, search = self._best, None if self._search is None else self._search.kept()
        return lambda: {**_best_as_arrays(*best), **({} if search is None else search())}

    def take_up(self, kept: Mapping[str, npt.NDArray[Any]], dual: Array | LabellingsDual | None) -> float:
        """Go on from what `kept` made, where `dual` was the best dual vector; its lower, no more than it shows.

        It is looked at once more: what a file says is no proof. What it says stands, but for rounding, since the ways
        to it differ by some bits.
        """
        lower, multiple = kept["best_numbers"].tolist()
        if not 0.0 < multiple < np.inf or np.isnan(lower):
            raise ValueError("the best dual vector has numbers that are none")
        if dual is not None:
            self._best = lower, dual, multiple
            exact = self.best[1]
            assert exact is not None
            if isinstance(exact, LabellingsDual):
                v, g = exact.v, exact.value_below
            else:
                v, g = exact * self.problem.dual_signs, value_below(self.problem, exact)
            found = self.selection_of_scores(v, g)[2]
            share = AGAIN_SHARE if self._by_best else AGAIN_SHARE_ROWS
            self._best = min(lower, found + share * (abs(g) + abs(found))), dual, multiple
        if self._search is not None:
            self._search.take_up(kept)
        return self._best[0]

    def prove(self, run: Run) -> None:
        """The certificate of the best dual vector."""
        run.sharpness = 1.0
        lower, dual = self.best
        self._best = lower, dual, 1.0
        if self.top is None or self.problem.is_joint:
            prove_at_root(run, lower, None if dual is None else cut_of(self.problem, dual))
        else:
            if dual is None or lower < run.bound:
                dual = np.zeros(self.problem.data.n_samples)
            assert not isinstance(dual, LabellingsDual)
            prove_plain(run, dual, self._bound_of_feasible)

    def counters(self) -> dict[str, int]:
        """Of a tree, how many scores were computed and how many a bound saved."""
        return {} if self._search is None else {"scored": self._search.scored, "pruned": self._search.saved}

    def __call__(self, alpha: Array) -> tuple[Integers, Array, float]:
        """Positions with σ > 0, their σ, and the larger of lower(α) and lower of the best multiple of α."""
        g = value_below(self.problem, alpha)
        try:
            ids, sigma, lower = self._keep_if_best(
                self.selection_of_scores(alpha * self.problem.dual_signs, g, self._must_stop), alpha
            )
        except StoppedError:
            # A long search: what was proven before it stands.
            return np.empty(0, dtype=np.int64), np.empty(0), -np.inf
        squares = 2.0 * (g - lower)
        values = abs(g) + abs(lower)
        multiple = self._loss.best_multiple(alpha, self.problem.c_i, squares) if self._by_best else None
        if multiple is None or abs(multiple - 1.0) < self.settings.ray:
            return ids, sigma, lower
        return ids, sigma, max(lower, self._of_multiple(alpha, multiple, squares, values))

    def _of_multiple(self, alpha: Array, multiple: float, squares: float, values: float) -> float:
        """lower of a multiple of α, where it may be the best so far; −inf else. Room for one vector, not for three."""
        problem = self.problem
        best = multiple * alpha
        if self._loss.dual_value(best, problem.c_i) - 0.5 * multiple * multiple * squares <= self._best[0]:
            return -np.inf
        exact = feasible(problem, best, in_place=True)
        g = dual_value_below(self._loss, exact, problem.c_i)
        found = self._bound_near(exact, alpha, multiple, multiple * multiple * (squares + ROUNDING_SHARE * values), g)
        if found is None:
            exact *= problem.data.y
            found = self.selection_of_scores(exact, g)
        return self._keep_if_best(found, alpha, multiple)[2]

    def _count_candidates(self, M: int) -> int:
        """How many of the best atoms are looked for."""
        return M + max(self.settings.least_more, self.settings.more * M) if self.is_wide else M

    def _bound_near(
        self, exact: Array, alpha: Array, multiple: float, squares: float, g: float
    ) -> tuple[Integers, Array, float] | None:
        """lower of a dual vector near wanted = multiple·α, without a look at the data; None where it is too far.

        The root of the sum of the M largest scores is a norm of v, at most √M max_j ‖λ_j x_j‖ ‖v‖: at `exact` it is at
        most √squares, that at `wanted`, and √M max_j ‖λ_j x_j‖ ‖exact − wanted‖.
        """
        if self.top is None or self.top.largest_norm is None:
            return None
        M = self.problem.atoms.count if self.problem.M is None else self.problem.M
        apart = (exact[at] - multiple * alpha[at] for at in pieces(exact.size))
        far = sum(float(one @ one) for one in apart)
        off = np.sqrt(far) + ROUNDING_SHARE * float(np.linalg.norm(exact))
        largest = self.top.largest_norm + np.sqrt(exact.size) * self.top.largest_center
        root = (np.sqrt(squares) + 1.001 * np.sqrt(M) * largest * off) * (1.0 + ROUNDING_SHARE)
        if root * root > squares * (1.0 + NEAR_SHARE):
            return None
        return np.empty(0, dtype=np.int64), np.empty(0), add_down(g, -0.5 * root * root * (1.0 + ROUNDING_SHARE))

    def _bound_of_feasible(self, exact: Array, g: float) -> tuple[Integers, float]:
        """lower of a feasible dual vector, at hand where that is the best so far, and the best of searched atoms."""
        lower, dual, multiple = self._best
        at_hand = isinstance(dual, np.ndarray) and multiple == 1.0 and np.array_equal(dual, exact)
        if at_hand and self.problem.atoms.is_held:
            return np.empty(0, dtype=np.int64), lower
        ids, _, lower = self.selection_of_scores(exact * self.problem.data.y, g)
        return ids, lower

    def selection_of_labelling_dual(self, dual: LabellingsDual) -> tuple[Integers, Array, float]:
        """Positions with σ > 0, their σ, and lower of a dual vector over labellings."""
        return self._keep_if_best(self.selection_of_scores(dual.v, dual.value_below), dual)

    def _keep_if_best(
        self, found: tuple[Integers, Array, float], alpha: Array | LabellingsDual, multiple: float = 1.0
    ) -> tuple[Integers, Array, float]:
        if found[2] > self._best[0]:
            self._best = found[2], alpha, multiple
        return found

    def selection_of_scores(
        self, v: Array, g: float, must_stop: Callable[[], bool] = lambda: False
    ) -> tuple[Integers, Array, float]:
        """Positions with σ > 0, their σ, and lower of a dual vector that is known by v (n,) and its g, rounded down."""
        problem = self.problem
        count = self.problem.atoms.count
        M = count if problem.M is None else min(problem.M, count)
        # A cardinality row alone: the best scores, found without reading every column.
        if self.top is not None:
            ids, sizes = self.top.best(v, self._count_candidates(M), must_stop)
            ids, sizes, self.next_best = ids[:M], sizes[:M], ids[M:]
            return self._of_best(g, ids, np.square(_pad_values(sizes, M) + self.top.radius(v)))
        if self._search is not None:
            ids, found = self._search.best(v, M)
            return self._of_best(g, ids, _pad_values(found, M) + self._search.error(v, float(found.max(initial=0.0))))
        if self._by_best:
            scores = problem.atoms.scores(v)
            ids = problem.atoms.best(v, self._count_candidates(M))
            ids, self.next_best = ids[:M], ids[M:]
            error = problem.atoms.score_error(v, scores)
            return self._of_best(g, ids, _pad_values(scores[ids], M) + float(error.max(initial=0.0)))
        minimise = self._oracle.minimise_relaxed if self.relaxation == "box" else self._oracle.minimise
        sigma, inner = minimise(-gains(scores_above(problem, v), problem.penalty))
        if sigma is None:
            return np.empty(0, dtype=np.int64), np.empty(0), -np.inf
        ids = np.flatnonzero(sigma > 1e-9)
        return ids, np.asarray(sigma[ids], dtype=float), add_down(g, inner)

    @staticmethod
    def _of_best(g: float, ids: Integers, squares: Array) -> tuple[Integers, Array, float]:
        """The best atoms, and lower of their scores (M,), which took four roundings at most."""
        every = np.arange(squares.size)
        return np.sort(ids), np.ones(ids.size), lower(g, gains(squares * (1.0 + 8.0 * U), 0.0), every[:0], every, None)


def _best_as_arrays(lower: float, dual: Array | LabellingsDual | None, multiple: float) -> Arrays:
    """A dual vector, or what one over labellings is made of, its lower, and the multiple of it that is meant."""
    made: Arrays = {"best_numbers": np.array([lower, multiple])}
    if isinstance(dual, LabellingsDual):
        return made | combined_arrays("best", dual)
    return made if dual is None else made | {"best": dual}


def _pad_values(found: Array, M: int) -> Array:
    """What was found of M values, and zeros: an atom that was not found has no more, but for its error."""
    return np.concatenate([found, np.zeros(M - found.size)])
