"""How many supports only add features of weight 0, and of no cost, to a listed one: they are counted, not listed.

Adding features never raises v(σ) where their weight may be 0, so R ∪ A is worth as much as R only if R ∪ {j} is, for
every j in A. Let Z be those
j. Where R ∪ Z is worth as much as R, so is every R ∪ A with A ⊆ Z, and what S allows of these is the count. Where it is
not (the hinge's dual vector at R is not unique, and none has ω = 0 on all of Z), no closed form counts them.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from mipfs.kernels.bound import gains
from mipfs.plumbing.arrays import Mask, replace_at
from mipfs.run.near_optimal import SEARCH_ALLOWANCE, costs_something
from mipfs.run.outcome import NearOptimalList, SupportValue
from mipfs.settings import ListSettings

if TYPE_CHECKING:
    from mipfs.run.heuristics import Supports


def near_optimal_list(supports: Supports) -> NearOptimalList | None:
    """The list of near-optimal supports as the run leaves it, its incumbent first; None when none was asked for."""
    run = supports.run
    if not run.wants_all or run.incumbent is None:
        return None if not run.wants_all else NearOptimalList([], False)
    listed, complete = supports.listed()
    ties = Ties(supports) if complete else None
    return NearOptimalList(
        [(sigma, one, None if ties is None else ties.of(sigma, one)) for sigma, one in listed], complete
    )


class Ties:
    """Counts them, for one listed support after the other.

    Parameters
    ----------
    supports : Supports, of a search that is over
    """

    def __init__(self, supports: Supports) -> None:
        self.supports = supports
        self.problem = supports.run.problem
        self.settings: ListSettings = supports.run.settings.listing
        self._left = max(self.settings.counting, supports.subproblem.count)
        self._high = self.problem.selection.sigma_bounds()[1] > 0.5

    def of(self, support: Mask, value: SupportValue) -> int | None:
        """How many other supports of S contain this one and are worth as much.

        Returns
        -------
        int or None
            None where that cannot be counted exactly: rows over more than twelve features of weight 0, values that
            cannot be told from one another, more SVMs than the search took, or no closed form.
        """
        room = (self.problem.atoms.count if self.problem.M is None else self.problem.M) - np.count_nonzero(support)
        free = ~support & self._high & ~costs_something(self.problem)
        if room <= 0 or not np.any(free):
            return 0
        gain = self._atom_gains(support)
        least = SEARCH_ALLOWANCE * abs(value.objective)
        added = np.zeros_like(support)
        for j in np.flatnonzero(free).tolist():
            same = True if gain[j] <= least else self._is_worth_as_much(support, [j], value)
            if same is None:
                return None
            added[j] = same
        ids = np.flatnonzero(added)
        whole = float(np.sort(gain[ids])[::-1][:room].sum()) <= least
        if ids.size > 1 and not whole and not self._is_worth_as_much(support, ids.tolist(), value):
            return None
        return self._count_allowed(support, ids, int(room))

    def _atom_gains(self, support: Mask) -> npt.NDArray[np.float64]:
        """By how much every atom may lower the value at most, (count,): ½ s_j of the dual vector there."""
        supports = self.supports
        self._left -= 1
        return np.asarray(gains(supports.subproblem.solve(support.astype(float), supports.tol).cut.slopes, 0.0))

    def _is_worth_as_much(self, support: Mask, more: list[int], value: SupportValue) -> bool | None:
        """Whether the support with more atoms is; None where that cannot be told. It need not be one of S."""
        wide = support.copy()
        supports = self.supports
        wide[more] = True
        if supports.was_seen(wide):
            one = supports.found[np.packbits(wide).tobytes()]
            objective = one.objective
            lower = one.lower
        else:
            self._left -= 1
            if self._left < 0:
                return None
            solved = supports.subproblem.solve(wide.astype(float), supports.tol)
            extra = supports.extra_cost(support)  # no added atom changes it
            objective = solved.value + extra
            lower = solved.lower + extra
        same = value.objective - SEARCH_ALLOWANCE * abs(value.objective)
        return objective >= same if (objective >= same) == (lower >= same) else None

    def _count_allowed(self, support: Mask, ids: npt.NDArray[np.int64], room: int) -> int | None:
        """How many selections of S have the support and some of these atoms beside it."""
        sizes = range(1, min(room, ids.size) + 1)
        if self.problem.selection.is_plain:
            return sum(math.comb(ids.size, size) for size in sizes)
        if ids.size > self.settings.enumerated:
            return None
        count = 0
        for chosen in itertools.chain.from_iterable(itertools.combinations(ids.tolist(), size) for size in sizes):
            sigma = replace_at(support, [*chosen], True)
            count += self.supports.run.oracle.contains(sigma)
        return count
