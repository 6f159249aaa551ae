"""What units of work leave behind, many at a time, as whole arrays: their dual vectors, places and open nodes.

A piece has its own numbering; one pass over all of them puts them into the proof's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs.kernels.merge import Left, ProofPlaces, Shown, merge_pieces
from mipfs.kernels.units import ExploredPieces, OpenNodes
from mipfs.plumbing.arrays import Integers
from mipfs.proof.duals import DualStore
from mipfs.proof.proof import SCREENED, Proof

NONE = np.empty(0, dtype=np.int64)
WITHOUT_ROWS = Shown(NONE, NONE, NONE, NONE, NONE)
Offer = tuple[npt.NDArray[np.float32], float]
"""Sizes of weights that are to be rounded, and what their relaxed σ add up to."""


class ProofPieces:
    """Some pieces of the proof.

    Parameters
    ----------
    found : sequence of ExploredPieces, not empty
    heads : for each, (B,) OPEN_NODE, the open nodes that it was explored from
    goes_on : for each, whether it goes on where the one before ends: at the last node that this leaves

    Attributes
    ----------
    heads : (B,) as they were given
    totals : (B,) TOTALS of every piece
    places : PLACE, the pieces of the proof
    prices : (D, rows) multipliers that go with the fresh dual vectors
    is_first : (B,) whether a piece offers the weights of its first node to be rounded
    has_others : (B,) whether it offers those of others
    """

    def __init__(
        self, found: Sequence[ExploredPieces], heads: Sequence[npt.NDArray[Any]], goes_on: Sequence[bool]
    ) -> None:
        self._found, self._goes_on = found, goes_on
        self.heads = one_after_the_other(heads)
        self.totals, self.places = self._join("totals"), self._join("places")
        self.prices = self._join("prices")
        self.is_first = self._join("is_first")
        self.has_others = self._join("offered") > self.is_first

    def _join(self, name: str) -> npt.NDArray[Any]:
        return one_after_the_other([getattr(one, name) for one in self._found])

    @property
    def splits(self) -> npt.NDArray[Any]:
        """SPLIT, what splits were worth whose children were solved, in order."""
        return self._join("splits")

    def merge(self, proof: Proof, alive: Integers, shown: Shown = WITHOUT_ROWS) -> OpenNodes:
        """Put dual vectors and places into the proof; returns the nodes that are open still, in order.

        Parameters
        ----------
        proof : Proof
        alive : (k,) the proof's numbers of the features in play
        shown : of all pieces, one behind the other
        """
        heads, totals, places, counts = self.heads, self.totals, self.places, self._join("counts")
        goes_on, words = self._by_piece(self._goes_on), [one.back.words for one in self._found]
        sizes = np.array([part.size for part in words])
        back = one_after_the_other([one.back.heads for one in self._found])
        before, features = self._by_piece(np.cumsum(sizes) - sizes), np.append(alive, SCREENED)
        left = Left(heads, goes_on, totals, places, counts, back, before, features)
        first_dual = self._store_duals(proof)
        first, arrays = proof.places_below(heads["place"][~goes_on], places.size - totals.size)
        kept = merge_pieces(left, shown, first, first_dual, ProofPlaces(*arrays))
        return OpenNodes(back[:kept], np.concatenate(words))

    def _by_piece(self, by_unit: Any) -> npt.NDArray[Any]:
        """(B,) what is told of every unit, at each of its pieces."""
        return np.repeat(by_unit, [one.totals.size for one in self._found])

    def _store_duals(self, proof: Proof) -> int:
        """Put the fresh dual vectors into the proof's store; returns the position of the first."""
        duals, sizes, added = proof.duals, self.totals["bytes"], self._join("duals")
        assert isinstance(duals, DualStore)
        ends = added["end"] + np.repeat(np.cumsum(sizes) - sizes, self.totals["duals"] - 1)
        return duals.extend([one.packed for one in self._found], ends, added["grid"], added["top"], added["width"])

    def offers(self, piece: int, with_first: bool) -> list[Offer]:
        """What a piece offers to be rounded: sizes of weights, and what their σ add up to."""
        for one in self._found:
            if piece < one.offered.size:
                end = int(one.offered[: piece + 1].sum())
                begin = end - int(one.offered[piece]) + int(one.is_first[piece] and not with_first)
                return [(one.offers[r], float(one.sums[r])) for r in range(begin, end)]
            piece -= one.offered.size
        return []


def one_after_the_other(parts: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """Arrays of one type, joined; records as bytes, since numpy would compare their fields in Python."""
    kind = parts[0].dtype
    if kind.names is None:
        return np.concatenate(parts)
    return np.concatenate([part.view(f"V{kind.itemsize}") for part in parts]).view(kind)
