"""The open nodes of a tree, by their bounds: hundreds of thousands wait, so each is held in few bytes.

Those bytes are the state of a run as well (`mipfs.drivers.tree_state`). They lie in memory or, in a run with a
checkpoint, in a file: the nodes of least bound are taken first, and of the others most are never looked at.
"""

from __future__ import annotations

import heapq
import itertools
import math
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs.drivers.tree_proof import Node
from mipfs.inner.boolean_node import INSIDE, OUTSIDE, Warm
from mipfs.plumbing.tape import Tape, let_go

HEAD = struct.Struct("<ddqqqIIIIBB")
"""Of a node: intercept, ρ, place, dual vector, age, the numbers of atoms, atoms inside, weights and multipliers, and
two truth values."""
DUAL = 3
"""Where in these numbers the dual vector is; the place is before it."""
SIZE_BITS = 32
"""Of the number that says where in the file a node lies: its lower bits are the node's size."""
LOOSE = 4096
"""Nodes that wait unpacked at most: packing and unpacking one takes 70 µs, and most trees never hold more."""
LITTER, LEAST_LITTER = 2, 1 << 26
"""The file is written anew once it is this multiple of what waits in it, and more bytes."""


def packed(node: Node) -> bytes:
    """All of a node but its bound."""
    inside = np.flatnonzero(node.states == INSIDE).astype(np.int32)
    ids, values = node.warm.held
    sizes = node.states.size, inside.size, ids.size, node.y.size
    head = HEAD.pack(
        node.warm.b, node.warm.rho, node.place, node.dual, node.age, *sizes, node.anew, node.is_given_back
    )  # fmt: skip
    outside = np.packbits(node.states == OUTSIDE)
    return b"".join((head, outside.data, inside.data, ids.data, values.data, node.y.data))


def unpacked(content: bytes, bound: float, is_foreign: bool = False) -> Node:
    """A node of what `packed` made; of what another process may have written, its atoms are looked at.

    Raises
    ------
    ValueError
        Its parts do not fit.
    """
    if len(content) < HEAD.size:
        raise ValueError("a node ends before its numbers")
    b, rho, place, dual, age, count, n_inside, n_ids, n_y, anew, given_back = HEAD.unpack_from(content)
    sizes = [HEAD.size, (count + 7) // 8, 4 * n_inside, 4 * n_ids, 4 * n_ids, 8 * n_y]
    if sum(sizes) != len(content):
        raise ValueError("a node of another size")
    starts = itertools.accumulate(sizes)
    outside = np.frombuffer(content, np.uint8, sizes[1], next(starts))
    inside = np.frombuffer(content, np.int32, n_inside, next(starts))
    ids = np.frombuffer(content, np.int32, n_ids, next(starts))
    values = np.frombuffer(content, np.float32, n_ids, next(starts))
    y = np.frombuffer(content, np.float64, n_y, next(starts)).copy()  # kernels take no arrays that lie askew
    if is_foreign and any(part.size and not 0 <= part.min() <= part.max() < count for part in (inside, ids)):
        raise ValueError("a node of other atoms")
    states = OUTSIDE * np.unpackbits(outside, count=count).astype(np.int8)
    states[inside] = INSIDE
    return Node(bound, place, dual, states, Warm.of(ids, values, count, b, rho), y, age, bool(anew), bool(given_back))


class Waiting:
    """The open nodes; of equal bounds the one that came first is taken first.

    Parameters
    ----------
    folder : Path, optional, where they lie in a file; without one they are in memory, the first `LOOSE` as they are
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._tape = None if folder is None else Tape(folder)
        self._heap: list[tuple[float, int, Any]] = []
        self._order = itertools.count()
        self._live = 0

    def __len__(self) -> int:
        return len(self._heap)

    def __iter__(self) -> Iterator[Node]:
        """Those of least bound first."""
        return (self._node(entry) for entry in sorted(self._heap, key=_by_bound))

    @property
    def least(self) -> float:
        """The least bound; inf where none waits."""
        return self._heap[0][0] if self._heap else math.inf

    @property
    def first(self) -> Node:
        """The one of least bound."""
        return self._node(self._heap[0])

    def push(self, node: Node) -> None:
        """Put a node among them."""
        is_loose = self._tape is None and len(self._heap) < LOOSE
        heapq.heappush(self._heap, (node.bound, next(self._order), node if is_loose else self._keep(packed(node))))

    def take(self) -> Node:
        """The one of least bound, which waits no more."""
        entry = heapq.heappop(self._heap)
        node = self._node(entry)
        self._live -= 0 if self._tape is None else _size(entry)
        return node

    def duals(self) -> list[int]:
        """The dual vectors of all, in the order of their bounds."""
        return [HEAD.unpack_from(self._content(entry))[DUAL] for entry in sorted(self._heap, key=_by_bound)]

    def renumber(self, first: int, duals: Sequence[int]) -> None:
        """Give all, in that order, the places from `first` on and other dual vectors."""
        entries, old = sorted(self._heap, key=_by_bound, reverse=True), self._tape
        self._tape, self._live, self._heap = None if old is None else old.beside(), 0, []
        for place, dual in enumerate(duals, first):
            entry = entries.pop()  # so that no node is held twice
            content = _content_of(entry[2]) if old is None else _read(old, entry)
            head = list(HEAD.unpack_from(content))
            head[DUAL - 1 : DUAL + 1] = place, dual
            self._heap.append((*entry[:2], self._keep(HEAD.pack(*head) + content[HEAD.size :])))

    def arrays(self, taken: Sequence[Node] = ()) -> dict[str, npt.NDArray[Any]]:
        """All of them as arrays, those that are `taken` before the others."""
        first = [packed(node) for node in taken]
        entries = sorted(self._heap, key=_by_bound)
        sizes = [len(content) for content in first] + [len(self._content(entry)) for entry in entries]
        tape = Tape() if self._tape is None else self._tape.beside()
        for content in itertools.chain(first, map(self._content, entries)):
            tape.append(content)
        return {
            "node_bound": np.array([node.bound for node in taken] + [entry[0] for entry in entries], dtype=float),
            "node_size": np.array(sizes, dtype=np.int64),
            "node_bytes": tape.array(),
        }

    def _keep(self, content: bytes) -> Any:
        """What finds the bytes of a node again."""
        tape = self._tape
        if tape is None:
            return content
        self._live += len(content)
        return tape.append(content) << SIZE_BITS | len(content)

    def _content(self, entry: tuple[float, int, Any]) -> bytes:
        return _content_of(entry[2]) if self._tape is None else _read(self._tape, entry)

    def _node(self, entry: tuple[float, int, Any]) -> Node:
        return entry[2] if isinstance(entry[2], Node) else unpacked(self._content(entry), entry[0])

    def tidy(self) -> None:
        """Write the file anew where most of it is of nodes that were taken."""
        old = self._tape
        if old is None or len(old) <= LITTER * self._live + LEAST_LITTER:
            return
        entries = self._heap
        contents = (_read(old, entry) for entry in entries)
        self._tape, self._live = old.beside(), 0
        self._heap = [
            (bound, order, self._keep(content)) for (bound, order, _), content in zip(entries, contents, strict=True)
        ]


def of_arrays(arrays: dict[str, npt.NDArray[Any]]) -> Iterator[Node]:
    """The nodes that `Waiting.arrays` kept, in that order.

    Raises
    ------
    ValueError
        The arrays do not fit.
    """
    bounds, sizes, content = (arrays[name] for name in ("node_bound", "node_size", "node_bytes"))
    if bounds.shape != sizes.shape or np.any(sizes < 0) or int(sizes.sum()) != content.size:
        raise ValueError("nodes of another size")
    at = 0
    for bound, size in zip(bounds.tolist(), sizes.tolist(), strict=True):
        yield unpacked(content[at : at + size].tobytes(), bound, is_foreign=True)
        at += size
    let_go(content)


def _content_of(held: Node | bytes) -> bytes:
    """The bytes of a node that waits in memory."""
    return packed(held) if isinstance(held, Node) else held


def _by_bound(entry: tuple[float, int, Any]) -> tuple[float, int]:
    return entry[:2]


def _read(tape: Tape, entry: tuple[float, int, Any]) -> bytes:
    """The bytes of a node in a file."""
    at = entry[2] >> SIZE_BITS
    return tape.read(at, at + _size(entry))


def _size(entry: tuple[float, int, Any]) -> int:
    """The bytes of a node in the file."""
    return int(entry[2] & ((1 << SIZE_BITS) - 1))
