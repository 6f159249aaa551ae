"""The open nodes of a tree, by their bounds: hundreds of thousands wait, and none is an object of Python's.

A node is a record and some words (`mipfs.kernels.units`). Records lie in an array without an order, of which those of
least bound are found when they are taken; the words lie in memory or, in a run with a checkpoint, in a file: most
nodes that are far above the least bound are never looked at. Both are the state of a run as well
(`mipfs.drivers.tree_state`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs.inner.boolean_node import INSIDE, OUTSIDE, WarmStart
from mipfs.kernels.units import BITS, OPEN_NODE, OpenNodes
from mipfs.plumbing.arrays import Array, Arrays, Integers
from mipfs.plumbing.tape import Tape

WORD = 4
"""Bytes of a word."""
GROWTH = 1.5
"""Room for records grows by this factor."""
MOVED = 4096
"""Nodes that are moved together."""
MOST_ORDERED = 1 << 62
"""More nodes than ever come, and places that they come at."""
LITTER, LEAST_LITTER = 2, 1 << 26
"""The words are written anew once they are this multiple of what waits, and more bytes."""


def pack_open_node(states: npt.NDArray[np.int8], warm: WarmStart, bound: float, place: int, dual: int) -> OpenNodes:
    """One open node, as `mipfs.kernels.units.pack_node` writes it; its other numbers are 0, its multipliers none."""
    node = packed_all(states[None], warm.w[None], np.array([warm.b]), warm.rho)
    node.heads["bound"], node.heads["place"], node.heads["dual"] = bound, place, dual
    return node


def packed_all(states: npt.NDArray[np.int8], w: npt.NDArray[np.float32], b: Array, rho: float) -> OpenNodes:
    """Open nodes (m, k) with weights (m, k) and intercepts (m,), as `mipfs.kernels.units.pack_node` writes each; other
    numbers are 0, multipliers none.
    """
    m, k = states.shape
    out = np.zeros((m, WORD * -(-k // BITS)), dtype=np.uint8)
    bits = np.packbits(states == OUTSIDE, axis=1, bitorder="little")
    out[:, : bits.shape[1]] = bits
    inside, held = states == INSIDE, w != 0.0
    heads = np.zeros(m, OPEN_NODE)
    heads["intercept"], heads["rho"], heads["prices"] = b, rho, -1
    heads["inside"], heads["weights"] = inside.sum(axis=1), held.sum(axis=1)
    sizes = words_of(heads, k)
    heads["start"] = np.cumsum(sizes) - sizes
    words = np.empty(int(sizes.sum()), dtype=np.int32)
    front = out.view(np.int32)
    words[heads["start"][:, None] + np.arange(front.shape[1])] = front
    at = heads["start"].astype(np.int64) + front.shape[1]
    for mask, values in ((inside, None), (held, None), (held, w)):
        row, column = np.nonzero(mask)
        count = mask.sum(axis=1)
        place = np.repeat(at - (np.cumsum(count) - count), count) + np.arange(row.size)
        words[place] = column if values is None else values[mask].view(np.int32)
        at = at + count
    return OpenNodes(heads, words)


def unpack_open_node(nodes: OpenNodes, at: int, count: int) -> tuple[npt.NDArray[np.int8], WarmStart]:
    """States and warm start of one of some open nodes over `count` atoms, as `unpack_node` of the kernels reads it.

    Raises
    ------
    ValueError
        It is one of other atoms.
    """
    head = nodes.heads[at]
    start, n_inside, n_weights = (int(head[name]) for name in ("start", "inside", "weights"))
    ends = [*itertools.accumulate([start, -(-count // BITS), n_inside, n_weights, n_weights])]
    if min(start, n_inside, n_weights) < 0 or ends[-1] > nodes.words.size:
        raise ValueError("a node of other atoms")
    out, inside, ids, values = (nodes.words[begin:end] for begin, end in itertools.pairwise(ends))
    if any(part.size and not 0 <= part.min() <= part.max() < count for part in (inside, ids)):
        raise ValueError("a node of other atoms")
    states = OUTSIDE * np.unpackbits(out.view(np.uint8), count=count, bitorder="little").astype(np.int8)
    states[inside] = INSIDE
    weights = np.zeros(count, dtype=np.float32)
    weights[ids] = values.view(np.float32)
    return states, WarmStart(weights, float(head["intercept"]), float(head["rho"]))


class NodeQueue:
    """The open nodes; of equal bounds the one that came first is taken first.

    Parameters
    ----------
    folder : Path, optional, where their words lie in a file; without one they are in memory
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._tape = Tape(folder)
        self._heads = np.empty(0, OPEN_NODE)
        self._bounds = np.empty(0)
        self._least: float | None = math.inf
        self._filled = 0
        self._size = 0
        self._order = 0

    def __len__(self) -> int:
        return self._size

    @property
    def heads(self) -> npt.NDArray[Any]:
        """The records of all, in no order; their words are elsewhere."""
        return self._heads[: self._size]

    @property
    def bounds(self) -> Array:
        """The bounds of all, in the order of `heads`, one behind the other: what is looked at most often."""
        return self._bounds[: self._size]

    @property
    def least(self) -> float:
        """The least bound; inf where none waits."""
        if self._least is None:
            self._least = float(self.bounds.min(initial=math.inf))
        return self._least

    def extend(self, nodes: OpenNodes, in_order: bool = False) -> None:
        """Put nodes among them, which come one after the other, or with `in_order` in the order that they had."""
        count = nodes.heads.size
        if self._size + count > self._heads.size:
            room = max(64, int(GROWTH * (self._size + count)))
            self._heads, self._bounds = _grow_array(self.heads, room), _grow_array(self.bounds, room)
        own = slice(self._size, self._size + count)
        heads = self._heads[own]
        heads[:] = nodes.heads
        if not in_order:
            heads["order"] = self._order + np.arange(count)
        self._order = max(self._order, int(heads["order"].max(initial=-1)) + 1)
        heads["start"] += len(self._tape) // WORD
        self._tape.extend(nodes.words)
        self._bounds[own] = heads["bound"]
        self._filled += _count_fixing_words(heads)
        if self._least is not None:
            self._least = float(heads["bound"].min(initial=self._least))
        self._size += count

    def pop(self, count: int, size: int) -> OpenNodes:
        """The `count` nodes of least bound, over `size` atoms each, in order; they wait no more."""
        chosen = self._least_bound_positions(count)
        taken = self._read(self.heads[chosen], size)
        self._drop_records(chosen)
        self._compact_words(size)
        return taken

    def take(self, count: int, size: int) -> OpenNodes:
        """The `count` nodes that were put among them before all others, where none was taken since."""
        chosen = np.arange(count)
        taken = self._read(self.heads[chosen], size)
        self._drop_records(chosen)
        return taken

    def first(self, size: int) -> OpenNodes:
        """The node of least bound, which waits on."""
        return self._read(self.heads[self._least_bound_positions(1)], size)

    def clear(self) -> npt.NDArray[Any]:
        """The records of all, which wait no more."""
        heads = self.heads.copy()
        self._tape, self._size, self._filled, self._least = self._tape.beside(), 0, 0, math.inf
        return heads

    def _least_bound_positions(self, count: int) -> Integers:
        """Where the `count` nodes of least bound are, in order."""
        bound, order = self.bounds, self.heads["order"]
        if count >= bound.size:
            return np.lexsort((order, bound))
        last = np.partition(bound, count - 1)[count - 1]
        some = np.flatnonzero(bound <= last)
        return np.asarray(some[np.lexsort((order[some], bound[some]))[:count]])

    def _drop_records(self, chosen: Integers) -> None:
        """Take records out; the last ones come into their places."""
        size = self._size - chosen.size
        self._filled -= _count_fixing_words(self._heads[chosen])
        behind = np.ones(chosen.size, dtype=bool)
        behind[chosen[chosen >= size] - size] = False
        to, of = chosen[chosen < size], size + np.flatnonzero(behind)
        self._heads[to], self._bounds[to] = self._heads[of], self._bounds[of]
        self._size, self._least = size, None

    def _read(self, heads: npt.NDArray[Any], size: int) -> OpenNodes:
        """Nodes with their words, one behind the other."""
        sizes = words_of(heads, size)
        starts, ends = WORD * heads["start"], WORD * (heads["start"] + sizes)
        words = self._tape.read_all(starts, ends).view(np.int32)
        moved = heads.copy()
        moved["start"] = np.cumsum(sizes) - sizes
        return OpenNodes(moved, words)

    def _compact_words(self, size: int) -> None:
        """Write the words anew where most of them are of nodes that were taken."""
        beyond = len(self._tape) - LEAST_LITTER
        if beyond > 0 and beyond > LITTER * WORD * (self._size * -(-size // BITS) + self._filled):
            self._heads, self._tape = self._copy_all(size)
            self._bounds = self._heads["bound"].copy()

    def _copy_all(self, size: int, taken: Sequence[OpenNodes] = ()) -> tuple[npt.NDArray[Any], Tape]:
        """Records and words of all in the order in which they came, behind those that are `taken`."""
        tape = self._tape.beside()
        order = np.argsort(self.heads["order"])
        parts_of = (self._read(self.heads[order[at : at + MOVED]], size) for at in range(0, order.size, MOVED))
        heads = [np.empty(0, OPEN_NODE)]
        for part in itertools.chain(taken, parts_of):
            moved = part.heads.copy()
            moved["start"] += len(tape) // WORD
            tape.extend(part.words)
            heads.append(moved)
        return np.concatenate(heads), tape

    def arrays(self, taken: Sequence[OpenNodes], size: int) -> Arrays:
        """All of them as arrays, over `size` atoms each, behind those that were taken, which are open as well."""
        heads, tape = self._copy_all(size, taken)
        columns = {f"node_{name}": heads[name] for name in heads.dtype.names or ()}
        return {**columns, "node_words": tape.array().view(np.int32)}


def _grow_array(array: npt.NDArray[Any], room: int) -> npt.NDArray[Any]:
    """An array with room for more behind it."""
    grown = np.empty(room, array.dtype)
    grown[: array.size] = array
    return grown


def _count_fixing_words(heads: npt.NDArray[Any]) -> int:
    """How many words some nodes have beside the bits of what is out."""
    return int(words_of(heads, 0).sum())


def words_of(heads: npt.NDArray[Any], size: int) -> Integers:
    """How many words each of some nodes over `size` atoms has."""
    return np.asarray(-(-size // BITS) + heads["inside"].astype(np.int64) + 2 * heads["weights"])


def of_arrays(arrays: Arrays, size: int) -> OpenNodes:
    """The nodes over `size` atoms that `NodeQueue.arrays` kept, every one looked at: a file may hold anything.

    Raises
    ------
    ValueError
        The arrays do not fit.
    """
    columns = {name: arrays[f"node_{name}"] for name in OPEN_NODE.names or ()}
    count = columns["bound"].shape
    if len(count) != 1 or any(one.shape != count for one in columns.values()) or arrays["node_words"].ndim != 1:
        raise ValueError("nodes of another size")
    are_kept = all(column.dtype == OPEN_NODE[name] for name, column in columns.items())
    if not are_kept or arrays["node_words"].dtype != np.int32:
        raise ValueError("nodes of another kind")
    heads = np.empty(count, OPEN_NODE)
    for name, column in columns.items():
        heads[name] = column
    if np.isnan(heads["bound"]).any() or np.any((heads["order"] < 0) | (heads["order"] >= MOST_ORDERED)):
        raise ValueError("nodes without an order")
    nodes = OpenNodes(heads, arrays["node_words"])
    for at in range(heads.size):
        unpack_open_node(nodes, at, size)
    return nodes
