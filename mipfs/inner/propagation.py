"""What the user's rows fix in a node: bound propagation, row by row, with the cardinality row inside every row.

The least activity of a row a'σ over the node is the sum over the fixed features, plus what the extra variables can add,
plus the most negative coefficients of the free features, as many as the cardinality row still allows. Where it exceeds
the row's end the node is empty, and a feature whose value would make it exceed that end is fixed to the other one.
The multiplier ∓1 of that single row is the Farkas ray that shows it to a checker.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy import sparse

from mipfs.kernels.propagation import FREE, INSIDE, OUTSIDE, propagate_rows
from mipfs.kernels.structures import RowSides
from mipfs.plumbing.arrays import Array, Integers, replace_at, scatter
from mipfs.selection.selection import Selection

States = npt.NDArray[np.int8]

EXCESS_TOLERANCE = 2.0**-36
"""By how much a row must be exceeded to count as broken, relative to its coefficients and its end: well above anyone's
round-off."""


@dataclass(frozen=True, eq=False)
class PropagatedFixings:
    """What propagation found.

    Attributes
    ----------
    states : (k,) int8, after it
    atoms : positions that were fixed, in order
    rays : the row behind every one and its side: (row, ±1)
    broken : (row, ±1) that shows that the node is empty, or None
    """

    states: States
    atoms: Integers
    rays: list[tuple[int, float]]
    broken: tuple[int, float] | None


class Propagation:
    """The rows of a selection set, over some of its atoms; the others are out.

    Parameters
    ----------
    selection : Selection
    alive : (k,) positions of the atoms
    """

    def __init__(self, selection: Selection, alive: Integers) -> None:
        rows = selection.rows
        self.size, self.count, self.M = alive.size, len(rows), alive.size if selection.M is None else selection.M
        if self.count == 0:
            none = np.empty(0)
            self.sides = RowSides(np.zeros(1, dtype=np.int64), none.astype(np.int64), none, none, none, none, none)
            return
        part = sparse.csr_array(rows.matrix[:, alive])
        extra = rows.matrix[:, selection.n_features :].toarray()
        ends = np.concatenate([rows.high, -rows.low])
        low, high = rows.extra.box
        with np.errstate(invalid="ignore"):
            # What the extra variables add to a row at least and at most, within their own ends.
            least = np.where(extra > 0, extra * low, np.where(extra < 0, extra * high, 0.0)).sum(axis=1)
            most = np.where(extra > 0, extra * high, np.where(extra < 0, extra * low, 0.0)).sum(axis=1)
        self._side = np.concatenate([np.full(self.count, -1.0), np.ones(self.count)])
        size = np.asarray(rows.sizes[:, : selection.n_features].sum(axis=1), dtype=float).ravel()
        finite = np.where(np.isfinite(ends), np.abs(ends), 0.0)
        self.sides = RowSides(
            part.indptr.astype(np.int64), part.indices.astype(np.int64), part.data.astype(float), ends,
            np.concatenate([least, -most]), EXCESS_TOLERANCE * (np.concatenate([size, size]) + finite),
            np.concatenate([most, -least]),
        )  # fmt: skip

    def __call__(self, states: States) -> PropagatedFixings:
        """Fix what the rows fix in a node."""
        after = states.copy()
        if self.count == 0:
            return PropagatedFixings(after, np.empty(0, dtype=np.int64), [], None)
        atoms = np.empty(states.size, dtype=np.int64)
        causes = np.empty(states.size, dtype=np.int64)
        found, broken = propagate_rows(self.sides, self.M, after, atoms, causes)
        rays = [self.cause(side) for side in causes[:found].tolist()]
        return PropagatedFixings(after, atoms[:found].copy(), rays, None if broken < 0 else self.cause(broken))

    def room(self, states: States) -> Array:
        """How far the least activity of every side in some nodes (m, k) is from beyond its end, (m, 2r): a side below 0
        is broken by what is fixed.
        """
        activity = (states == INSIDE).astype(float) @ self._signed + (states == FREE).astype(float) @ self._lowest
        return np.asarray(self.sides.ends + self.sides.beyond - (activity + self.sides.base))

    def fixed_all(self, states: States) -> Iterator[tuple[int, Integers, Integers, States]]:
        """What each side by itself fixes in some nodes (m, k) that break none: the side, nodes, atoms and their states.

        M is left out, which helps a row to fix. Who takes over the fixings of a side in `states` has no atom twice.
        """
        room, size = self.room(states), np.abs(self._signed)
        room[np.count_nonzero(states == INSIDE, axis=1) >= self.M] = np.inf  # all is fixed there
        for side in np.flatnonzero(np.any(room < size.max(axis=0, initial=0.0), axis=0)).tolist():
            nodes, atoms = np.nonzero((states == FREE) & (size[:, side] > room[:, side, None]))
            yield side, nodes, atoms, np.where(self._signed[atoms, side] < 0.0, INSIDE, OUTSIDE).astype(np.int8)

    @cached_property
    def counts_places(self) -> bool:
        """Whether M helps a row to fix or to break: where a side has an end, and coefficients below 0."""
        has_end = np.isfinite(self.sides.ends) & np.isfinite(self.sides.base)
        return bool(self.count) and bool(np.any(self._lowest[:, has_end]))

    @cached_property
    def _signed(self) -> Array:
        """(k, 2r) the coefficients of every side."""
        sides = self.sides
        rows = sparse.csr_array((sides.data, sides.indices, sides.indptr), shape=(self.count, self.size)).toarray().T
        return np.hstack([rows, -rows])

    @cached_property
    def _lowest(self) -> Array:
        """(k, 2r) what a free atom adds to the least activity of every side."""
        return np.minimum(self._signed, 0.0)

    def dive(self, order: Integers) -> States | None:
        """A selection that satisfies every row, atom by atom, in where the rows allow it; None where they break.

        Parameters
        ----------
        order : positions of the atoms that are wanted, first first; the others go in where a row asks for them
        """
        states = self(np.full(self.size, FREE, dtype=np.int8)).states
        for j in order:
            if np.count_nonzero(states == INSIDE) >= self.M:
                break
            found = self._first_consistent(states, j, (INSIDE, OUTSIDE))
            if found is None:
                return None
            states = found
        rest = self(np.where(states == FREE, OUTSIDE, states).astype(np.int8))
        for j in range(self.size) if rest.broken is not None else ():
            found = self._first_consistent(states, j, (OUTSIDE, INSIDE))
            if found is None:
                return None
            states = found
        states = states if rest.broken is not None else rest.states
        return None if np.count_nonzero(states == INSIDE) > self.M else states

    def _first_consistent(self, states: States, j: int, values: tuple[int, int]) -> States | None:
        """The first of two values of an atom that breaks no row, with what follows; None when both do."""
        for value in values if states[j] == FREE else ():
            tried = replace_at(states, j, value)
            after = self(tried)
            if after.broken is None:
                return after.states
        return None if states[j] == FREE else states

    def ray(self, cause: tuple[int, float]) -> Array:
        """The multipliers (r,) of a row and its side."""
        return scatter(self.count, cause[0], cause[1])

    def cause(self, side: int) -> tuple[int, float]:
        """The row of one of the sides, and the sign of its multiplier."""
        return side % self.count, float(self._side[side])
