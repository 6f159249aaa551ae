"""Units of work of `branch`: open nodes as arrays, laid out to be explored, and what explorations leave, gathered.

An open node is a record and some words of 32 bits:

    a bit an atom, 1 where it is fixed out; the atoms inside; the atoms whose weight is not 0, and those weights

so that thousands of them lie in a few arrays, which travel, wait in a file, and are cut and joined as they stand.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mipfs.compiled import compiled
from mipfs.kernels.earned import unpack_dual
from mipfs.kernels.propagation import FREE, INSIDE, OUTSIDE
from mipfs.kernels.structures import DUAL, PLACE, SPLIT, TOTALS, ExploredPiece, only_read
from mipfs.kernels.vectors import copy_to
from mipfs.pointers import Step

BITS = 32
"""Of a word."""
WHOLE_BITS = 53
"""Integers of a dual vector have no more."""
OPEN_NODE = np.dtype(
    [(name, np.float64) for name in ("bound", "intercept", "rho")]
    + [(name, np.int64) for name in ("place", "dual", "prices", "order", "start")]
    + [(name, np.int32) for name in ("age", "why", "inside", "weights", "atom")]
    + [("share", np.float64)]
)
"""An open node: its bound; intercept and ρ of its warm start; its place in the proof, the dual vector that earned its
bound, and the multipliers that did so with it (−1 for none); when it came, where its words begin; nodes above it whose
multipliers were only stepped; what is done with it (`OPEN` of `mipfs.kernels.subtree`: it is explored); how many atoms
are inside, and how many weights are not 0; atom and σ of the split that made it, as of `NODE`."""


class OpenNodes(NamedTuple):
    """Some open nodes.

    heads : (m,) OPEN_NODE, whose `start` counts from the first of these words
    words : int32, of all nodes, one after the other
    """

    heads: npt.NDArray[Any]
    words: npt.NDArray[np.int32]

    @classmethod
    def empty(cls) -> OpenNodes:
        """No node."""
        return cls(np.empty(0, OPEN_NODE), np.empty(0, np.int32))

    def part(self, own: slice) -> OpenNodes:
        """Some of them, whose words follow one another; those in between come along."""
        heads = self.heads[own].copy()
        begin = int(heads["start"][0])
        end = int(self.heads["start"][own.stop]) if own.stop < self.heads.size else self.words.size
        heads["start"] -= begin
        return OpenNodes(heads, self.words[begin:end])


class FirstDuals(NamedTuple):
    """The dual vectors that some nodes begin with.

    packed : their bytes;  duals : (B,) DUAL, where each ends in these, and how it is packed
    """

    packed: npt.NDArray[np.uint8]
    duals: npt.NDArray[Any]

    @classmethod
    def none(cls) -> FirstDuals:
        """No dual vector."""
        return cls(np.empty(0, dtype=np.uint8), np.empty(0, DUAL))

    @classmethod
    def of_store(cls, packed: npt.NDArray[np.uint8], *numbers: npt.ArrayLike) -> FirstDuals:
        """Those that `mipfs.proof.duals.DualStore.packed` gives."""
        duals = np.empty(np.size(numbers[0]), DUAL)
        for name, of in zip(("end", "grid", "top", "width"), numbers, strict=True):
            duals[name] = of
        return cls(packed, duals)

    def followed_by(self, found: ExploredPieces) -> FirstDuals:
        """These, and the fresh ones of explorations behind them."""
        own, sizes = found.duals.copy(), found.totals["bytes"]
        own["end"] += np.repeat(np.cumsum(sizes) - sizes, found.totals["duals"] - 1) + self.packed.size
        return FirstDuals(np.append(self.packed, found.packed), np.append(self.duals, own))

    def between(self, own: slice) -> FirstDuals:
        """Those from one up to another, whose bytes are not copied."""
        begin = int(self.duals["end"][own.start - 1]) if own.start else 0
        duals = self.duals[own].copy()
        packed = self.packed[begin : int(duals["end"][-1])]
        duals["end"] -= begin
        return FirstDuals(packed, duals)

    def part(self, at: npt.NDArray[np.int64]) -> FirstDuals:
        """Some of them."""
        begins, duals = np.append(0, self.duals["end"])[at].tolist(), self.duals[at]
        parts = [self.packed[begin:end] for begin, end in zip(begins, duals["end"].tolist(), strict=True)]
        duals["end"] = np.cumsum([part.size for part in parts], dtype=np.int64)
        return FirstDuals(np.concatenate([self.packed[:0], *parts]), duals)


class ExploredPieces(NamedTuple):
    """What the explorations of B nodes leave, one after the other; numbers are those of each one's own piece.

    totals : (B,) TOTALS
    places : PLACE, the pieces of the proof
    duals : DUAL of the fresh dual vectors, whose ends count in their own piece;  packed : their bytes
    prices : (D, rows) multipliers that go with the fresh dual vectors
    back : the nodes that are open still;  counts : (B,) how many
    offers, sums : (o, k) float32, (o,) sizes of the weights to round, and what their σ add up to
    offered : (B,) how many;  is_first : (B,) whether the first of them is that of the node that it began with
    splits : SPLIT, what the splits were worth whose children were solved
    """

    totals: npt.NDArray[Any]
    places: npt.NDArray[Any]
    duals: npt.NDArray[Any]
    packed: npt.NDArray[np.uint8]
    prices: npt.NDArray[np.float64]
    back: OpenNodes
    counts: npt.NDArray[np.int64]
    offers: npt.NDArray[np.float32]
    sums: npt.NDArray[np.float64]
    offered: npt.NDArray[np.int64]
    is_first: npt.NDArray[np.bool_]
    splits: npt.NDArray[Any] = np.empty(0, SPLIT)


def lay_out_nodes(
    nodes: OpenNodes,
    duals: FirstDuals,
    c: npt.NDArray[np.float64],
    pieces: ExploredPiece,
    first: npt.NDArray[np.float64],
) -> None:
    """Put open nodes in the first places of their pieces, and their dual vectors in `first` (B, n).

    Raises
    ------
    ValueError
        They are nodes over other atoms, or of other samples.
    """
    if not lay_out(*lay_out_arguments(nodes, duals, c), pieces, first):
        raise ValueError("the open nodes are those of other atoms, or of other samples")


def lay_out_arguments(
    nodes: OpenNodes, duals: FirstDuals, c: npt.NDArray[np.float64]
) -> tuple[OpenNodes, FirstDuals, bool, npt.NDArray[np.float64]]:
    """What `lay_out` takes of nodes, of one type wherever they come from."""
    read_only = OpenNodes(only_read(nodes.heads), only_read(nodes.words))
    vectors = FirstDuals(only_read(duals.packed), only_read(duals.duals))
    return read_only, vectors, bool(np.any(c != c[0])), only_read(c)


def steps(pieces: ExploredPiece, c: npt.NDArray[np.float64], first: npt.NDArray[np.float64]) -> list[Step]:
    """The kernels of units, not compiled yet."""
    duals = FirstDuals.none()
    laid = Step.of(lay_out, *lay_out_arguments(OpenNodes.empty(), duals, c), pieces, first)
    return [laid, Step.of(gather, pieces, _room_for(pieces, 0, 0))]


@compiled(nogil=True)
def lay_out(nodes, duals, weighted, c, pieces, first):  # type: ignore[no-untyped-def]
    """Put open nodes, to be planted, in the first places of their pieces; whether all of them fit.

    Their dual vectors come into `first` (B, n).
    """
    whole = np.empty(c.size, np.int64)
    tops = np.empty(c.size if weighted else 0, np.int64)
    for of in range(nodes.heads.size):
        head = nodes.heads[of]
        if not unpack_node(head, nodes.words, pieces.states[of, 0], pieces.weights[of, 0]):
            return False
        node = pieces.nodes[of, 0]
        node.bound = head.bound
        node.intercept = head.intercept
        node.rho = head.rho
        node.why = head.why
        node.age = head.age
        node.atom = head.atom
        node.share = head.share
        dual = duals.duals[of]
        step = 2.0**-dual.grid
        for i in range(tops.size):
            tops[i] = np.int64(min(np.floor(c[i] / step), 2.0**WHOLE_BITS))
        data = duals.packed[duals.duals[of - 1].end if of > 0 else 0 : dual.end]
        if not unpack_dual(data, dual.top, dual.width, tops, whole):
            return False
        for i in range(c.size):
            first[of, i] = whole[i] * step
    return True


@compiled(nogil=True)
def unpack_node(head, words, states, weights):  # type: ignore[no-untyped-def]
    """States and weights (k,) of an open node; whether its words are those of a node over k atoms."""
    k = states.size
    at = head.start + (k + BITS - 1) // BITS
    if not 0 <= head.start <= words.size or head.inside < 0 or head.weights < 0:
        return False
    if at + head.inside + 2 * head.weights > words.size:
        return False
    for j in range(k):
        states[j] = OUTSIDE if (words[head.start + j // BITS] >> (j % BITS)) & 1 else FREE
        weights[j] = 0.0
    for t in range(head.inside):
        j = words[at + t]
        if not 0 <= j < k:
            return False
        states[j] = INSIDE
    at += head.inside
    values = words.view(np.float32)
    for t in range(head.weights):
        j = words[at + t]
        if not 0 <= j < k:
            return False
        weights[j] = values[at + head.weights + t]
    return True


@compiled(nogil=True)
def pack_node(states, weights, words, head):  # type: ignore[no-untyped-def]
    """Write what `unpack_node` reads, from `head.start` on; returns where it ends."""
    k = states.size
    at = head.start + (k + BITS - 1) // BITS
    words[head.start : at] = 0
    head.inside = 0
    head.weights = 0
    for j in range(k):
        if states[j] == OUTSIDE:
            words[head.start + j // BITS] |= np.int32(1) << np.int32(j % BITS)
        elif states[j] == INSIDE:
            words[at] = j
            at += 1
            head.inside += 1
        head.weights += weights[j] != 0.0
    values = words.view(np.float32)
    end = at + head.weights
    for j in range(k):
        if weights[j] != 0.0:
            words[at] = j
            values[at + head.weights] = weights[j]
            at += 1
    return end + head.weights


def sizes(pieces: ExploredPiece) -> tuple[int, int]:
    """How many nodes of all pieces go back, and how many words those take."""
    there = pieces.nodes["place"] >= 0
    there &= np.arange(there.shape[1]) < pieces.totals["nodes"]
    count = int(np.count_nonzero(there))
    k = pieces.states.shape[2]
    inside = np.count_nonzero(pieces.states[there] == INSIDE)
    weights = np.count_nonzero(pieces.weights[there])
    return count, count * -(-k // BITS) + int(inside) + 2 * int(weights)


@compiled(nogil=True)
def gather(pieces, found):  # type: ignore[no-untyped-def]
    """Put what is used of every piece behind the other, in `found`, which has room for it."""
    n_places = 0
    n_duals = 0
    n_bytes = 0
    n_offers = 0
    n_back = 0
    n_words = 0
    n_splits = 0
    for of in range(found.totals.size):
        total = pieces.totals[of, 0]
        found.totals[of] = total
        for t in range(total.places):
            found.places[n_places + t] = pieces.places[of, t]
        n_places += total.places
        for d in range(1, total.duals):
            found.duals[n_duals] = pieces.duals[of, d]
            copy_to(pieces.prices[of, d], found.prices[n_duals])
            n_duals += 1
        copy_to(pieces.packed[of, : total.bytes], found.packed[n_bytes:])
        n_bytes += total.bytes
        found.is_first[of] = pieces.sums[of, 0] >= 0.0
        found.offered[of] = total.offers - 1 + found.is_first[of]
        for r in range(0 if found.is_first[of] else 1, total.offers):
            copy_to(pieces.offers[of, r], found.offers[n_offers])
            found.sums[n_offers] = pieces.sums[of, r]
            n_offers += 1
        for s in range(total.splits):
            found.splits[n_splits + s] = pieces.splits[of, s]
        n_splits += total.splits
        found.counts[of] = 0
        for t in range(total.nodes):
            node = pieces.nodes[of, t]
            if node.place < 0:
                continue
            head = found.back.heads[n_back]
            head.bound = node.bound
            head.intercept = node.intercept
            head.rho = node.rho
            head.place = node.place
            head.dual = node.parent
            head.prices = node.parent
            head.age = node.age
            head.why = node.why
            head.order = 0
            head.start = n_words
            head.atom = node.atom
            head.share = node.share
            n_words = pack_node(pieces.states[of, t], pieces.weights[of, t], found.back.words, head)
            found.counts[of] += 1
            n_back += 1


def gather_pieces(pieces: ExploredPiece) -> ExploredPieces:
    """What some explorations leave."""
    found = _room_for(pieces, *sizes(pieces))
    gather(pieces, found)
    return found


def _room_for(pieces: ExploredPiece, count: int, size: int) -> ExploredPieces:
    """Room for what explorations leave, `count` nodes of `size` words among it."""
    total = pieces.totals[:, 0]
    k = pieces.states.shape[2]
    rows = pieces.prices.shape[2]
    fresh = int(total["duals"].sum()) - total.size
    offered = int(total["offers"].sum()) - total.size + int(np.count_nonzero(pieces.sums[:, 0] >= 0.0))
    return ExploredPieces(
        np.empty(total.size, TOTALS), np.empty(int(total["places"].sum()), PLACE), np.empty(fresh, DUAL),
        np.empty(int(total["bytes"].sum()), np.uint8), np.empty((fresh, rows)),
        OpenNodes(np.empty(count, OPEN_NODE), np.empty(size, np.int32)), np.empty(total.size, np.int64),
        np.empty((offered, k), np.float32), np.empty(offered), np.empty(total.size, np.int64),
        np.empty(total.size, np.bool_), np.empty(int(total["splits"].sum()), SPLIT),
    )  # fmt: skip
