"""What a unit of work leaves, put into the proof's arrays and among the open nodes: from its numbering into theirs."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mipfs.compiled import compiled
from mipfs.compiled.lent import lend_arrays
from mipfs.kernels.subtree import REFUTED

NONE = -1
"""No feature, child, dual vector or multipliers."""


class ProofPlaces(NamedTuple):
    """The arrays of a proof, by place.

    feature, dual, multiplier : int32;  children : (·, 2) int32;  value : float64
    """

    feature: npt.NDArray[Any]
    children: npt.NDArray[Any]
    dual: npt.NDArray[Any]
    multiplier: npt.NDArray[Any]
    value: npt.NDArray[Any]


class Left(NamedTuple):
    """What the explorations of B nodes leave (`mipfs.kernels.units.ExploredPieces`), one behind the other.

    heads : (B,) OPEN_NODE that they began with
    goes_on : (B,) whether a piece goes on where the one before ends: at the last node that this leaves
    totals, places, counts, back : as there, `back` the records alone
    words : (B,) how many words of open nodes come before those of a piece's unit
    features : (k + 1,) the proof's numbers of the features in play, and what stands for a place that is screened
    """

    heads: npt.NDArray[Any]
    goes_on: npt.NDArray[Any]
    totals: npt.NDArray[Any]
    places: npt.NDArray[Any]
    counts: npt.NDArray[Any]
    back: npt.NDArray[Any]
    words: npt.NDArray[Any]
    features: npt.NDArray[Any]


class Shown(NamedTuple):
    """Numbers of the multipliers of rows that go with dual vectors: all are empty where there are no rows.

    first, others : (B,), (D,) the tree's, of the dual vector that a node begins with, and of the fresh ones
    first_shown, others_shown : the proof's
    rays : (2·rows,) of the proof, those that show that a side of a row is broken
    """

    first: npt.NDArray[Any]
    others: npt.NDArray[Any]
    first_shown: npt.NDArray[Any]
    others_shown: npt.NDArray[Any]
    rays: npt.NDArray[Any]


@compiled(nogil=True)
def merge_pieces(left, shown, first, vectors, proof):  # type: ignore[no-untyped-def]
    """Put the places of pieces into the proof, and number their open nodes anew; returns how many of these there are.

    The first place of a piece is that of the node which it began with, and its dual vector 0 is that node's. Its other
    places come behind those of the piece before, from `first` on, and its other dual vectors from `vectors` on.
    """
    left, shown, proof = lend_arrays((left, shown, proof))
    entered = 0
    fresh = 0
    returned = 0
    kept = 0
    for of in range(left.heads.size):
        head = left.heads[of]
        total = left.totals[of]
        if left.goes_on[of]:
            kept -= 1
            head.place = left.back[kept].place
        for t in range(total.places):
            one = left.places[entered + t]
            to = first + t - 1 if t > 0 else head.place
            is_split = one.feature >= 0
            proof.feature[to] = left.features[one.feature] if is_split else NONE
            proof.children[to, 0] = first + one.outside - 1 if is_split and one.outside >= 0 else NONE
            proof.children[to, 1] = first + one.inside - 1 if is_split and one.inside >= 0 else NONE
            proof.value[to] = one.value if is_split else -np.inf
            if one.dual >= 0:
                proof.dual[to] = vectors + one.dual - 1 if one.dual > 0 else head.dual
                proof.multiplier[to] = _number_at(shown.first_shown, shown.others_shown, of, fresh, one.dual)
            else:
                proof.dual[to] = one.dual
                is_refuted = one.dual == REFUTED and one.cause >= 0
                proof.multiplier[to] = shown.rays[one.cause] if is_refuted else NONE
        for r in range(left.counts[of]):
            left.back[kept] = left.back[returned + r]
            node = left.back[kept]
            node.place = first + node.place - 1 if node.place > 0 else head.place
            node.prices = _number_at(shown.first, shown.others, of, fresh, node.dual)
            node.dual = vectors + node.dual - 1 if node.dual > 0 else head.dual
            node.start += left.words[of]
            kept += 1
        first += total.places - 1
        vectors += total.duals - 1
        entered += total.places
        fresh += total.duals - 1
        returned += left.counts[of]
    return kept


@compiled(nogil=True)
def _number_at(first, others, piece, fresh, dual):  # type: ignore[no-untyped-def]
    """What goes with dual vector `dual` of a piece, before whose fresh ones lie `fresh` others; −1 without rows."""
    if first.size == 0:
        return NONE
    return others[fresh + dual - 1] if dual > 0 else first[piece]
