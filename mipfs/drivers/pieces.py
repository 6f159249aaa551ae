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
from mipfs.plumbing.arrays import Integers
from mipfs.proof.duals import DualStore
from mipfs.proof.proof import REFUTED, SCREENED, Proof


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


class OpenNode(NamedTuple):
    """A node that goes back: why, its age, its dual vector's position in the piece, and what else a `Node` has."""

    why: int
    age: int
    parent: int
    node: tuple[float, int, int, States, Warm]


class Pieces:
    """Some pieces of the proof.

    Parameters
    ----------
    pieces : sequence of Piece, not empty
    places, duals : of each the open node that it was explored from, and the dual vector that earned its bound

    Attributes
    ----------
    totals : (B,) TOTALS of every piece
    """

    def __init__(self, pieces: Sequence[Piece], places: Sequence[int], duals: Sequence[int]) -> None:
        self._pieces = pieces
        self._roots = np.array(places, dtype=np.int64)
        self._duals = np.array(duals, dtype=np.int64)
        self.totals = _one_after_the_other([piece.totals for piece in pieces])
        self._counts = {name: self.totals[name] for name in ("nodes", "places", "duals", "bytes")}

    def _joined(self, name: str, counted: str, first: int = 0) -> npt.NDArray[Any]:
        """An array of all pieces, from `first` up to what is used of each."""
        arrays = (getattr(piece, name) for piece in self._pieces)
        counts = self._counts[counted].tolist()
        return _one_after_the_other([array[first:count] for array, count in zip(arrays, counts, strict=True)])

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
        fresh = self._counts["duals"] - 1
        sizes = self._counts["bytes"]
        n_places = self._counts["places"]
        packed = self._joined("packed", "bytes").tobytes()
        added = self._joined("duals", "duals", 1)
        ends = added["end"] + np.repeat(np.cumsum(sizes) - sizes, fresh)
        begun = duals.extend(packed, ends, added["grid"], added["top"], added["width"])
        before = np.cumsum(fresh) - fresh
        self._offset = begun + before - 1
        places = self._joined("places", "places")
        feature = np.append(alive, [SCREENED, -1])[places["feature"]]
        local = places["dual"]
        dual = np.where(local >= 0, self._position(local, n_places), local)
        children = np.stack((places["outside"], places["inside"]), axis=1)
        numbered = None if numbers is None else self._numbered(numbers, places, np.repeat(before, n_places))
        self._first = proof.attach_all(self._roots, n_places, feature, children, dual, places["value"], numbered)

    def _numbered(self, numbers: Numbers, places: npt.NDArray[Any], before: Integers) -> Integers:
        """The multipliers at every place, by its dual vector in its piece and how many fresh ones come before it."""
        local = places["dual"]
        place = np.minimum(np.maximum(local - 1, 0) + before, numbers.others.size)
        found = np.where(local == 0, np.repeat(numbers.first, self._counts["places"]), -1)
        found = np.where(local > 0, np.append(numbers.others, -1)[place], found)
        return np.where(local == REFUTED, np.append(numbers.rays, -1)[places["cause"]], found)

    def _position(self, dual: Integers, counts: Integers) -> Integers:
        """Where the dual vectors `dual` of the pieces, of which piece i has counts_i places, are in the store."""
        return np.where(dual > 0, dual + np.repeat(self._offset, counts), np.repeat(self._duals, counts))

    def open_nodes(self) -> Iterator[list[OpenNode]]:
        """The nodes of every piece that go back."""
        counts = self._counts["nodes"]
        nodes = self._joined("nodes", "nodes")
        there = np.flatnonzero(nodes["place"] >= 0)
        place = nodes["place"] + np.repeat(self._first, counts)
        place = np.where(nodes["place"] > 0, place, np.repeat(self._roots, counts))[there].tolist()
        dual = self._position(nodes["parent"], counts)[there].tolist()
        parents = nodes["parent"][there].tolist()
        ages = nodes["age"][there].tolist()
        states = self._joined("states", "nodes")
        weights = self._joined("weights", "nodes")
        warms = Warm.of_rows(weights[there], nodes["intercept"][there], nodes["rho"][there])
        bounds = nodes["bound"][there].tolist()
        rows = there.tolist()
        why = nodes["why"][there].tolist()
        at = 0
        for end in np.searchsorted(there, np.cumsum(counts)).tolist():
            yield [
                OpenNode(why[t], ages[t], parents[t], (bounds[t], place[t], dual[t], states[rows[t]].copy(), warms[t]))
                for t in range(at, end)
            ]
            at = end


def _one_after_the_other(parts: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """Arrays of one type, joined; records as bytes, since numpy would compare their fields in Python."""
    kind = parts[0].dtype
    if kind.names is None:
        return np.concatenate(parts)
    return np.concatenate([part.view(f"V{kind.itemsize}") for part in parts]).view(kind)
