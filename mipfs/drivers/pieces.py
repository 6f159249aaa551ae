"""What units of work leave behind, many at a time, as whole arrays: their dual vectors, places and open nodes.

A piece has its own numbering; one pass over all of them puts them into the proof's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mipfs.kernels.units import ExploredPieces, OpenNodes
from mipfs.plumbing.arrays import Integers, mask_of
from mipfs.proof.duals import DualStore
from mipfs.proof.proof import REFUTED, SCREENED, Proof

Offer = tuple[npt.NDArray[np.float32], float]
"""Sizes of weights that are to be rounded, and what their relaxed σ add up to."""


class MultiplierNumbers(NamedTuple):
    """The tree's and the proof's numbers of the multipliers of rows that go with the dual vectors of some pieces.

    Attributes
    ----------
    first, first_shown : (B,) with the first dual vector of every piece
    others, others_shown : (D,) with all others, one after the other
    rays : (2·rows,) of the proof, those that show that one side of a row is broken
    """

    first: Integers
    first_shown: Integers
    others: Integers
    others_shown: Integers
    rays: Integers


class ProofPieces:
    """Some pieces of the proof.

    Parameters
    ----------
    found : sequence of ExploredPieces, not empty
    heads : (B,) OPEN_NODE, the open nodes that they were explored from, in order
    goes_on : (B,) bool, optional, which pieces go on where the one before ends: at the last node that this leaves

    Attributes
    ----------
    heads : (B,) as they were given
    totals : (B,) TOTALS of every piece
    prices : (D, rows) multipliers that go with the fresh dual vectors
    splits : SPLIT, what splits were worth whose children were solved, in order
    """

    def __init__(
        self, found: Sequence[ExploredPieces], heads: npt.NDArray[Any], goes_on: npt.NDArray[np.bool_] | None = None
    ) -> None:
        self._found = found
        self.heads = heads
        self._goes_on = np.zeros(heads.size, dtype=bool) if goes_on is None else goes_on
        self.totals = self._join("totals")
        self.prices = self._join("prices")
        self.splits = self._join("splits")

    def _join(self, name: str) -> npt.NDArray[Any]:
        return one_after_the_other([getattr(one, name) for one in self._found])

    @property
    def causes(self) -> Integers:
        """The sides of rows that refute places, −1 of other places."""
        return np.asarray(self._join("places")["cause"])

    def enter(self, proof: Proof, alive: Integers, numbers: MultiplierNumbers | None = None) -> None:
        """Put the dual vectors and the places into the proof.

        Parameters
        ----------
        proof : Proof
        alive : (k,) the proof's numbers of the features in play
        numbers : MultiplierNumbers, where there are rows
        """
        duals = proof.duals
        assert isinstance(duals, DualStore)
        fresh, sizes, n_places = self.totals["duals"] - 1, self.totals["bytes"], self.totals["places"]
        added = self._join("duals")
        ends = added["end"] + np.repeat(np.cumsum(sizes) - sizes, fresh)
        begun = duals.extend([one.packed for one in self._found], ends, added["grid"], added["top"], added["width"])
        self._before = np.cumsum(fresh) - fresh
        self._begun = begun
        self._put_behind(proof.n_nodes + np.cumsum(n_places - 1) - n_places)
        places = self._join("places")
        feature = np.append(alive, [SCREENED, -1])[places["feature"]]
        local = places["dual"]
        dual = np.where(local >= 0, self._position_in_store(local, n_places), local)
        children = np.stack((places["outside"], places["inside"]), axis=1)
        numbered = None if numbers is None else self._multipliers_shown(numbers, places)
        self._first = proof.attach_all(
            self.heads["place"], n_places, feature, children, dual, places["value"], numbered
        )

    def _put_behind(self, first: Integers) -> None:
        """Let pieces that go on begin where those before end; first (B,) is the place before their second one."""
        later = np.flatnonzero(self._goes_on)
        if later.size:
            ends = np.cumsum(self._join("counts"))[later - 1] - 1
            local = one_after_the_other([one.back.heads for one in self._found])["place"][ends]
            self.heads["place"][later] = first[later - 1] + local

    @property
    def _is_gone_on(self) -> npt.NDArray[np.bool_]:
        """Which of the nodes that pieces leave another piece begins with."""
        counts = self._join("counts")
        return mask_of(int(counts.sum()), np.cumsum(counts)[np.flatnonzero(self._goes_on) - 1] - 1)

    def _multipliers_shown(self, numbers: MultiplierNumbers, places: npt.NDArray[Any]) -> Integers:
        """The proof's multipliers at every place, by its dual vector in its piece."""
        local = places["dual"]
        shown = self._value_by_dual(numbers.first_shown, numbers.others_shown, local, self.totals["places"])
        return np.where(local == REFUTED, np.append(numbers.rays, -1)[places["cause"]], shown)

    def _value_by_dual(self, first: Integers, others: Integers, dual: Integers, counts: Integers) -> Integers:
        """What goes with the dual vectors `dual` of the pieces, counts_i of piece i; −1 where there is none."""
        place = np.minimum(np.maximum(dual - 1, 0) + np.repeat(self._before, counts), others.size)
        found = np.where(dual == 0, np.repeat(first, counts), -1)
        return np.where(dual > 0, np.append(others, -1)[place], found)

    def _position_in_store(self, dual: Integers, counts: Integers) -> Integers:
        """Where the dual vectors `dual` of the pieces, of which piece i has counts_i, are in the store."""
        offset = np.repeat(self._begun + self._before - 1, counts)
        return np.where(dual > 0, dual + offset, np.repeat(self.heads["dual"], counts))

    def offers(self, is_due: Callable[[int], bool]) -> Iterator[tuple[int, list[Offer]]]:
        """Of pieces that offer weights to round, by their number: these, and what their σ add up to.

        Those of a piece's first node only where `is_due` says so of the piece.
        """
        before = 0
        for one in self._found:
            at = np.flatnonzero(one.offered)
            columns = at, np.cumsum(one.offered)[at], one.offered[at], one.is_first[at]
            for of, end, count, has_first in zip(*(column.tolist() for column in columns), strict=True):
                own = range(end - count + (has_first and not is_due(before + of)), end)
                if own:
                    yield before + of, [(one.offers[r], float(one.sums[r])) for r in own]
            before += one.offered.size

    def back(self, numbers: MultiplierNumbers | None = None) -> OpenNodes:
        """The nodes that are open still, in the order of their pieces."""
        counts = self._join("counts")
        heads = one_after_the_other([one.back.heads for one in self._found])
        sizes = np.array([one.back.words.size for one in self._found])
        heads["start"] += np.repeat(np.cumsum(sizes) - sizes, [one.back.heads.size for one in self._found])
        place, parent = heads["place"], heads["dual"].copy()
        moved = place + np.repeat(self._first, counts)
        heads["place"] = np.where(place > 0, moved, np.repeat(self.heads["place"], counts))
        heads["dual"] = self._position_in_store(parent, counts)
        heads["prices"] = -1 if numbers is None else self._value_by_dual(numbers.first, numbers.others, parent, counts)
        heads = heads[~self._is_gone_on] if self._goes_on.any() else heads
        return OpenNodes(heads, np.concatenate([one.back.words for one in self._found]))


def one_after_the_other(parts: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """Arrays of one type, joined; records as bytes, since numpy would compare their fields in Python."""
    kind = parts[0].dtype
    if kind.names is None:
        return np.concatenate(parts)
    return np.concatenate([part.view(f"V{kind.itemsize}") for part in parts]).view(kind)
