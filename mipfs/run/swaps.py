"""Local search over the selections of S: swaps, and restarts from shaken supports.

    take a feature i out and solve without it; of those whose score is largest there try some in its place
    go on with the first i that some swap improves upon, until none does

What replaces i shows only in the dual vector without i: at the support itself a feature that is correlated with i has
a small score.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Generator, Iterator
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from mipfs.inner.subproblem import SolvedSubproblem
from mipfs.kernels.bound import gains
from mipfs.plumbing.arrays import Array, Integers, Mask, replace_at
from mipfs.proof.cuts import Cut, CutPool
from mipfs.settings import SwapSettings

if TYPE_CHECKING:
    from mipfs.run.heuristics import Supports


def climb_in_steps(supports: Supports, pool: CutPool, widths: tuple[int, ...] = ()) -> Iterator[None]:
    """Climb from the incumbent by drops, additions and swaps, SVM after SVM."""
    run = supports.run
    if run.incumbent is not None:
        yield from Swaps(supports, pool).climbing(run.incumbent.sigma(run.problem.atoms.count), widths)


def climb(supports: Supports, pool: CutPool, widths: tuple[int, ...] = (), most: int = sys.maxsize) -> None:
    """Climb for as long as that pays or for `most` SVMs."""
    for _ in islice(climb_in_steps(supports, pool, widths), most):
        pass


class Swaps:
    """The local search around the supports of a run, one SVM after the other.

    Parameters
    ----------
    supports : Supports
    pool : CutPool, receives the cuts of the supports that no few swaps improve upon
    """

    def __init__(self, supports: Supports, pool: CutPool) -> None:
        self.supports = supports
        self.pool = pool
        problem = supports.run.problem
        low, high = problem.selection.sigma_bounds()
        self.settings: SwapSettings = supports.run.settings.swaps
        self._penalty = problem.penalty
        self._stays = low > 0.5
        self._closed = high < 0.5
        recent = max(2, min(self.settings.recent, self.settings.most_numbers // max(1, low.size)))
        self._slopes = np.zeros((recent, low.size))
        self._constants = np.full(recent, -np.inf)
        self._keys = [b""] * recent
        self._next = 0

    def climbing(self, sigma: Mask, widths: tuple[int, ...] = ()) -> Generator[None, None, Mask]:
        """Climb from a selection of S to one that no swap, addition or drop improves upon, as far as they are tried:
        the features of `widths` (by default the few, then the many of the settings) in place of one.

        Whoever works it off may do something else after every SVM.
        """
        widths = widths or (self.settings.few, self.settings.many)
        k = 0
        while k < len(widths) and not self.supports.run.must_stop:
            before = sigma
            sigma = yield from self._sweep_swaps(sigma, widths[k])
            k = k + 1 if sigma is before else 0
        return sigma

    def restarting(self, random: np.random.Generator) -> Generator[None, None, bool]:
        """Climb from the incumbent with some features exchanged at random; whether another restart may do so."""
        run = self.supports.run
        if run.incumbent is None or run.must_stop:
            return False
        value = run.objective
        sigma = yield from self._exchange_at_random(run.incumbent.sigma(run.problem.atoms.count), random)
        if sigma is None:
            return False
        if run.oracle.surely_contains(sigma):
            yield from self.climbing(sigma, (self.settings.few,))
        if run.objective < value:
            yield from self.climbing(run.incumbent.sigma(run.problem.atoms.count))
        yield  # whatever was in hand already, a restart ends
        return True

    def _solve(self, sigma: Mask) -> SolvedSubproblem:
        """The SVM at a selection; its classifier is offered if that is in S."""
        supports = self.supports
        solved = supports.subproblem.solve(sigma.astype(float), supports.tol)
        supports.offer(sigma, solved)
        self._keep_cut(sigma, solved.cut)
        return solved

    def _keep_cut(self, sigma: Mask, cut: Cut) -> None:
        """Keep the cut of a selection in place of the oldest."""
        at = self._next
        self._next = (self._next + 1) % len(self._keys)
        self._keys[at], self._constants[at], self._slopes[at] = np.packbits(sigma).tobytes(), cut.constant, cut.slopes

    def _cut_of_selection(self, sigma: Mask) -> Generator[None, None, tuple[float, Array]]:
        """g and what a feature gains by the cut of a selection, ½ s_j − c_j: in hand, or from an SVM."""
        key = np.packbits(sigma).tobytes()
        if key not in self._keys:
            self._solve(sigma)
            yield
        at = self._keys.index(key)
        return float(self._constants[at]), gains(self._slopes[at], self._penalty)

    def _lower_bound(self, sigma: Mask) -> float:
        """A lower bound on the objective of a selection, by the cuts in hand."""
        ids = np.flatnonzero(sigma)
        extra = self.supports.extra_cost(sigma)
        return extra + float(
            (self._constants - 0.5 * self._slopes[:, ids].sum(axis=1)).max() + self._penalty[ids].sum()
        )

    def _known_objective(self, sigma: Mask) -> float:
        """The objective of a selection that was evaluated."""
        return self.supports.value(sigma)

    def _sweep_swaps(self, sigma: Mask, width: int) -> Generator[None, None, Mask]:
        """Additions, then drops and swaps of one feature after the other until none of them pays; `sigma` if none."""
        supports = self.supports
        value, sizes = self._begun_at(sigma, is_kept=width == self.settings.many)
        yield
        if self._has_place(sigma):
            sigma, value = yield from self._add_features(sigma, sigma, value, width)
        order = deque(self._leaving_candidates(sigma, sizes))
        failed = 0
        while failed < len(order) and not supports.run.must_stop:
            i = order.popleft()
            without = replace_at(sigma, i, False)
            yield from self._cut_of_selection(without)
            if supports.was_seen(without) and self._known_objective(without) < value:
                sigma = without
                value = self._known_objective(without)
                failed = 0
                continue
            swapped, value = yield from self._add_features(without, sigma, value, width)
            entered = np.flatnonzero(swapped & ~sigma)
            failed = 0 if entered.size else failed + 1
            order.append(int(entered[0]) if entered.size else i)
            sigma = swapped
        return sigma

    def sweeping(self, sigma: Mask, at: tuple[float, Array], part: tuple[int, int], width: int) -> Iterator[None]:
        """A part of what a sweep tries at a selection, up to the first that improves upon it.

        Parameters
        ----------
        sigma : (count,) bool, a selection of S
        at : its objective, and the sizes (count,) of its weights
        part : which part, and of how many: the features that may leave in turn, and additions in the first
        width : features that are tried in place of one
        """
        supports, (value, sizes), (first, parts) = self.supports, at, part
        reached = value
        if first == 0 and width == self.settings.many:
            self._begun_at(sigma, is_kept=True)
            yield
        if first == 0 and self._has_place(sigma):
            _, reached = yield from self._add_features(sigma, sigma, value, width)
        for i in self._leaving_candidates(sigma, sizes)[first::parts]:
            if reached < value or supports.run.must_stop:
                return
            without = replace_at(sigma, i, False)
            yield from self._cut_of_selection(without)
            if supports.was_seen(without) and self._known_objective(without) < value:
                return
            _, reached = yield from self._add_features(without, sigma, value, width)

    def _begun_at(self, sigma: Mask, is_kept: bool) -> tuple[float, Array]:
        """The objective of a selection, and the sizes of its weights; its cut is kept if the pool is to have it."""
        supports = self.supports
        here = self._solve(sigma)
        if is_kept:
            self.pool.add(here.cut)
        value = self._known_objective(sigma) if supports.was_seen(sigma) else here.value + supports.extra_cost(sigma)
        return value, supports.subproblem.weights()

    def _has_place(self, sigma: Mask) -> bool:
        """Whether the cardinality row allows one more feature."""
        M = self.supports.run.problem.M
        return M is None or int(np.count_nonzero(sigma)) < M

    def _leaving_candidates(self, sigma: Mask, sizes: Array) -> list[int]:
        """The features that may leave a selection, those of smallest weight first."""
        inside = np.flatnonzero(sigma & ~self._stays)
        found: list[int] = inside[np.argsort(sizes[inside], kind="stable")[: self.settings.leaving]].tolist()
        return found

    def _add_features(
        self, base: Mask, sigma: Mask, value: float, width: int
    ) -> Generator[None, None, tuple[Mask, float]]:
        """`sigma` and its value, or the best of some features added to `base`, by the scores there."""
        supports = self.supports
        barred = base | sigma
        constant, gains = yield from self._cut_of_selection(base)
        floor = constant - float(gains[base].sum())
        if supports.run.problem.has_extra_costs:
            floor = -np.inf  # an atom may spare what extra variables cost
        for j in self._entering_candidates(gains, barred, width):
            if floor - gains[j] >= value or supports.run.must_stop:
                break
            added = replace_at(base, j, True)
            if not supports.was_seen(added):
                if self._lower_bound(added) >= value or not supports.run.oracle.surely_contains(added):
                    continue
                supports.evaluate(added, value)  # its cut would take a pass over the data, and spare few others
                yield
            if supports.was_seen(added) and self._known_objective(added) < value:
                sigma = added
                value = self._known_objective(added)
        return sigma, value

    def _exchange_at_random(self, sigma: Mask, random: np.random.Generator) -> Generator[None, None, Mask | None]:
        """Some features of a selection, drawn, exchanged for others of large score; None if none can go."""
        inside = np.flatnonzero(sigma & ~self._stays)
        if not inside.size:
            return None
        most = max(1, min(self.settings.shaken, inside.size // 2))
        out = random.choice(inside, random.integers(min(2, most), most + 1), replace=False)
        barred = sigma.copy()
        sigma = replace_at(sigma, out, False)
        for _ in out:
            gains = (yield from self._cut_of_selection(sigma))[1]
            best = self._entering_candidates(gains, barred | sigma, self.settings.drawn_from)
            if best.size:
                sigma[random.choice(best)] = True
        return sigma

    def _entering_candidates(self, gains: Array, barred: Mask, most: int) -> Integers:
        """The features of largest gain that may come in, in order."""
        gains = np.where(barred | self._closed, -np.inf, gains)
        some = np.arange(gains.size) if gains.size <= most else np.argpartition(-gains, most - 1)[:most]
        some = some[np.lexsort((some, -gains[some]))]
        return np.asarray(some[gains[some] > -np.inf])
