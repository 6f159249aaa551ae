"""What explorations leave behind, several at a time, as whole arrays: their dual vectors, places and open nodes.

A piece has its own numbering; one pass over all of them puts them into the proof's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mipfs.inner.boolean_node import States, Warm
from mipfs.kernels.structures import Piece
from mipfs.proof.duals import DualStore
from mipfs.proof.proof import REFUTED, SCREENED, Proof

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


class Numbers(NamedTuple):
    """The proof's numbers of the multipliers of rows that go with the dual vectors of some pieces.

    Attributes
    ----------
    first : (B,) with the first dual vector of every piece
    others : with all others, one after the other
    rays : (2·rows,) those that show that one side of a row is broken
    """

    first: Integers
    others: Integers
    rays: Integers


class Left(NamedTuple):
    """A node that goes back: its position in the piece, why, and what `mipfs.drivers.tree.Node` has of it."""

    row: int
    why: int
    told: tuple[float, int, int, States, Warm]


class Pieces:
    """Some pieces of the proof.

    Parameters
    ----------
    pieces : sequence of Piece, not empty
    places, duals : of each the open node that it was explored from, and the dual vector that earned its bound

    Attributes
    ----------
    solved, steps, stalled, offers : (B,) totals of every piece
    """

    def __init__(self, pieces: Sequence[Piece], places: Sequence[int], duals: Sequence[int]) -> None:
        self._pieces = pieces
        self._roots, self._duals = np.array(places, dtype=np.int64), np.array(duals, dtype=np.int64)
        totals = np.array([piece.totals for piece in pieces])
        totals[:, 7] = 0.0  # the least closed bound, which may be infinite
        self.solved, self.steps, self.stalled, self._places, self._n_duals, self._nodes, self._bytes, _, self.offers = (
            totals.astype(np.int64).T
        )

    def _joined(self, name: str, counts: Integers, first: int = 0) -> npt.NDArray[Any]:
        """An array of all pieces, from `first` up to so many entries of each."""
        arrays = (getattr(piece, name) for piece in self._pieces)
        return np.concatenate([array[first:count] for array, count in zip(arrays, counts.tolist(), strict=True)])

    def enter(self, proof: Proof, alive: Integers, numbers: Numbers | None = None) -> None:
        """Put the dual vectors and the places into the proof.

        Parameters
        ----------
        proof : Proof
        alive : (k,) the proof's numbers of the features in play
        numbers : Numbers, where there are rows
        """
        duals = proof.duals
        assert isinstance(duals, DualStore)
        fresh, sizes = self._n_duals - 1, self._bytes
        packed = self._joined("packed", sizes).tobytes()
        ends = self._joined("ends", self._n_duals, 1) + np.repeat(np.cumsum(sizes) - sizes, fresh)
        begun = duals.extend(
            packed, ends, self._joined("grids", self._n_duals, 1), self._joined("tops", fresh),
            self._joined("widths", fresh),
        )  # fmt: skip
        before = np.cumsum(fresh) - fresh
        self._offset = begun + before - 1
        feature = np.append(alive, [SCREENED, -1])[self._joined("feature", self._places)]
        local = self._joined("dual", self._places)
        dual = np.where(local >= 0, self._position(local, self._places), local)
        children, values = self._joined("children", self._places), self._joined("values", self._places)
        multipliers = None if numbers is None else self._numbered(numbers, local, np.repeat(before, self._places))
        self._first = proof.graft_all(self._roots, self._places, feature, children, dual, values, multipliers)

    def _numbered(self, numbers: Numbers, local: Integers, before: Integers) -> Integers:
        """The multipliers at every place, by its dual vector in its piece and how many fresh ones come before it."""
        place = np.minimum(np.maximum(local - 1, 0) + before, numbers.others.size)
        found = np.where(local == 0, np.repeat(numbers.first, self._places), -1)
        found = np.where(local > 0, np.append(numbers.others, -1)[place], found)
        return np.where(local == REFUTED, np.append(numbers.rays, -1)[self._joined("causes", self._places)], found)

    def _position(self, dual: Integers, counts: Integers) -> Integers:
        """Where the dual vectors of the pieces, so many of each, are in the store."""
        return np.where(dual > 0, dual + np.repeat(self._offset, counts), np.repeat(self._duals, counts))

    def left(self) -> Iterator[list[Left]]:
        """The nodes of every piece that go back."""
        found = self._joined("found", self._nodes)
        there = np.flatnonzero(found[:, 0] >= 0)
        place = found[:, 0] + np.repeat(self._first, self._nodes)
        place = np.where(found[:, 0] > 0, place, np.repeat(self._roots, self._nodes))[there].tolist()
        dual = self._position(self._joined("parents", self._nodes), self._nodes)[there].tolist()
        bounds = self._joined("bounds", self._nodes)[there].tolist()
        states, weights = self._joined("states", self._nodes), self._joined("weights", self._nodes)
        intercepts, rhos = self._joined("intercepts", self._nodes), self._joined("rhos", self._nodes)
        warms = Warm.of_rows(weights[there], intercepts[there], rhos[there])
        rows, why, at, before = there.tolist(), found[there, 1].tolist(), 0, 0
        for end, count in zip(
            np.searchsorted(there, np.cumsum(self._nodes)).tolist(), self._nodes.tolist(), strict=True
        ):
            yield [
                Left(rows[t] - before, why[t], (bounds[t], place[t], dual[t], states[rows[t]].copy(), warms[t]))
                for t in range(at, end)
            ]
            at, before = end, before + count
