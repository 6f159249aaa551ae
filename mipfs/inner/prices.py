"""Multipliers of the user's rows as penalties of the atoms: what is left is a plain problem.

    min over S of cost'σ  ≥  y'(row bounds) + Σ_e min over its bounds of −(A'y)_e e + min over Σσ ≤ M of (cost − A'y)'σ

for any y (Neumaier and Shcherbina 2004). An extra variable without a bound must have (A'y)_e = 0, or nothing is proven:
such multipliers are projected, or replaced by those of an LP.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import Any

import numpy as np
from scipy import sparse

from mipfs.kernels.bound import U, rounded_down
from mipfs.plumbing.arrays import Array, Integers
from mipfs.proof.multipliers import broken_row, farkas_multipliers
from mipfs.proof.proof import Multipliers
from mipfs.selection.model import SelectionModel, selection_model
from mipfs.selection.selection import Selection

ROUND_OFF_SHARE = 1e-9
"""Multipliers up to this size, relative to the largest, are a solver's round-off where they must cancel."""
ROUND_OFF_MULTIPLE = 16.0
"""A reduced cost of at most this multiple of its rounding error is zero on an extra variable without a bound."""


@dataclass(frozen=True, eq=False)
class RowPrices:
    """What multipliers of the rows make of the inner minimum.

    Attributes
    ----------
    y : (r,), or of each (m, r), multipliers of the user's rows, none of which points to an absent bound
    constant : float, or of each (m,), what rows and extra variables add to the bound, rounded down
    shift : (count,), or (m, count), A'y of the atoms
    slack : (count,) bound on its rounding error
    """

    y: Array
    constant: Any
    shift: Array
    slack: Array

    def penalties(self, penalty: Array) -> Array:
        """Penalties (count,) of the atoms with those of the rows, c − A'y, rounded down."""
        if not self.y.any() and self.y.ndim == 1:
            return penalty
        size = np.abs(penalty) + np.abs(self.shift) + self.slack
        priced = rounded_down(penalty - self.shift - self.slack, size, 0)
        return np.where(np.any(self.y, axis=-1, keepdims=True), priced, penalty)


class Pricing:
    """Prices of one selection set.

    Parameters
    ----------
    selection : Selection
    """

    def __init__(self, selection: Selection) -> None:
        rows = selection.rows
        p = selection.n_features
        self.selection, self.low, self.high = selection, rows.low, rows.high
        self.ends = rows.extra.box
        self.unbounded = np.flatnonzero(~np.isfinite(self.ends[0]) | ~np.isfinite(self.ends[1]))
        self.none = RowPrices(np.zeros(len(rows)), 0.0, np.zeros(p), np.zeros(p))
        self._lock = Lock()

    @cached_property
    def on_atoms(self) -> sparse.csr_array:
        """A' of the atoms, (count, r)."""
        return self.selection.rows.matrix[:, : self.selection.n_features].T.tocsr()

    @cached_property
    def on_extra(self) -> sparse.csr_array:
        """A' of the extra variables, (e, r)."""
        return self.selection.rows.matrix[:, self.selection.n_features :].T.tocsr()

    @cached_property
    def sizes(self) -> sparse.csr_array:
        """|A'| of the atoms, (count, r)."""
        return abs(self.on_atoms)

    @cached_property
    def extra_sizes(self) -> sparse.csr_array:
        """|A'| of the extra variables, (e, r)."""
        return abs(self.on_extra)

    def of(self, y: Array) -> RowPrices | None:
        """Prices of multipliers (r,); None where they leave an extra variable without a bound."""
        limit = np.where(y > 0, self.low, self.high)
        y = np.where(np.isfinite(limit) & np.isfinite(y), y, 0.0)
        if not y.any():
            return self.none
        parts = y * np.where(np.isfinite(limit), limit, 0.0)
        of_extra = self._extra_minimum(y)
        if of_extra is None:
            return None
        size = float(np.abs(parts).sum()) + of_extra[1]
        constant = rounded_down(float(parts.sum()) + of_extra[0], size, y.size + self.ends[0].size)
        return RowPrices(y, constant, self.on_atoms @ y, _round_off(y.size) * (self.sizes @ np.abs(y)))

    def of_each(self, y: Array, end: Array, alive: Integers) -> RowPrices:
        """Prices of the only row's multipliers (m,), for each of which it has another end (m,), on some atoms (k,)."""
        parts, shift = y * end, y[:, None] * self.on_atoms.toarray()[alive, 0]
        constant = np.asarray(rounded_down(parts, np.abs(parts), 1))
        return RowPrices(y[:, None], constant, shift, _round_off(1) * np.abs(shift))

    def mend(self, y: Array) -> RowPrices | None:
        """Prices of y, moved as little as needed to bound the extra variables; None where that does not do it."""
        largest = float(np.abs(y).max(initial=0.0))
        if self.unbounded.size and largest > 0.0:
            y = np.where(np.abs(y) > ROUND_OFF_SHARE * largest, y, 0.0)
            part = self.on_extra[self.unbounded].toarray()
            reduced = -(self.on_extra @ y)[self.unbounded]
            must = ~np.isfinite(np.where(reduced > 0, self.ends[0][self.unbounded], self.ends[1][self.unbounded]))
            may = y != 0.0
            # The least change at which what the rows leave on variables without an end is zero.
            part = part[np.ix_(must, may)]
            for _ in range(2):
                # The second takes off the rounding of the first.
                y[may] -= np.linalg.lstsq(part, part @ y[may], rcond=None)[0]
        return self.of(y)

    def choices(self, y: Array, cost: Array, low: Array, high: Array) -> Iterator[RowPrices]:
        """Prices near y (r,), those of an LP where they need it, and none at all, which always hold.

        Parameters
        ----------
        cost : (count,) of the inner minimum
        low, high : (count,) ends of σ
        """
        found = self.mend(y), self.by_lp(cost, low, high)[0] if self.unbounded.size else None
        yield from (prices for prices in (*found, self.none) if prices is not None)

    def by_lp(self, cost: Array, low: Array, high: Array) -> tuple[RowPrices | None, Multipliers | None]:
        """The LP min cost'σ over the rows' polytope with σ in [low, high], by HiGHS.

        It begins anew: of several optimal multipliers a warm start finds those near what was asked before, by whichever
        thread.

        Returns
        -------
        prices : of its multipliers, None where it was not solved
        ray : (r,) multipliers of the rows that show that it is empty, None where none do
        """
        scale = float(np.abs(cost).max(initial=0.0)) or 1.0
        with self._lock:
            ray = broken_row(self.selection, low, high)
            if ray is not None:
                return None, ray
            self._relaxed_model.program.start_cold()
            self._relaxed_model.program.fix_columns(low, high)
            self._relaxed_model.program.set_costs(cost / scale)
            solution = self._relaxed_model.solve()
            if solution.status == "infeasible":
                return None, farkas_multipliers(self._relaxed_model, self.selection, low, high)
            if solution.status != "optimal":
                return None, None
            y = self._relaxed_model.multipliers()[int(self.selection.M is not None) :]
        return self.mend(scale * y), None

    @cached_property
    def _relaxed_model(self) -> SelectionModel:
        return selection_model(self.selection, relaxed=True, presolve=False)

    def _extra_minimum(self, y: Array) -> tuple[float, float] | None:
        """Σ_e min of −(A'y)_e e rounded down, and its size; None where an end is infinite."""
        low, high = self.ends
        if not low.size:
            return 0.0, 0.0
        reduced = -(self.on_extra @ y)
        error = _round_off(y.size) * (self.extra_sizes @ np.abs(y))
        ends = np.where(reduced > 0, low, high)
        bounded = np.isfinite(ends)
        if np.any(np.abs(reduced[~bounded]) > ROUND_OFF_MULTIPLE * error[~bounded]):
            return None
        # An error of a reduced cost counts with the largest size that its variable may have.
        far = np.maximum(*(np.where(np.isfinite(end), np.abs(end), 0.0) for end in self.ends))
        parts = reduced[bounded] * ends[bounded]
        return float(parts.sum() - error @ far), float(np.abs(parts).sum())


def _round_off(rows: int) -> float:
    """A bound on the rounding error of A'y over that many rows, as a share of |A|'|y|."""
    return 1.01 * (rows + 4) * U
