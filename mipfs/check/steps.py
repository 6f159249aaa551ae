"""The way through a tree of tens of millions of nodes, held in arrays rather than as objects of Python."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs.check.rounding import Integers, require

LEAF, RELEASE, SCREEN, RESTORE = -1, -2, -3, -4
"""In place of an atom in the steps through a tree."""
CHAINED = 4
"""Screened nodes one after the other that take about as long as a leaf."""


class TreeSteps:
    """Pairs of whole numbers (j, code), in two arrays: a tree has tens of millions."""

    def __init__(self) -> None:
        self._j, self._code = array("q"), array("q")

    def append(self, j: int, code: int) -> None:
        """One step more."""
        self._j.append(j)
        self._code.append(code)

    def extend(self, j: int, codes: Integers) -> None:
        """Many steps more with the same j."""
        self._j.frombytes(np.full(codes.size, j, dtype=np.int64).tobytes())
        self._code.frombytes(codes.astype(np.int64).tobytes())

    def __len__(self) -> int:
        return len(self._j)

    def __getitem__(self, at: int) -> tuple[int, int]:
        return self._j[at], self._code[at]

    @property
    def arrays(self) -> tuple[Integers, Integers]:
        """All j, and all codes, (s,) each; no step is appended any more."""
        return np.frombuffer(self._j, dtype=np.int64), np.frombuffer(self._code, dtype=np.int64)

    @property
    def split(self) -> Integers:
        """What is split on, each once and in order."""
        j = np.unique(self.arrays[0])
        return np.asarray(j[j >= 0])

    def rename(self, place: Mapping[int, int]) -> TreeSteps:
        """Steps of the tree in which atom j has the number place[j]."""
        steps = TreeSteps()
        for j, code in self:
            steps.append(place[j] if j >= 0 else j, code)
        return steps

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return zip(self._j, self._code, strict=True)


class TreePieces:
    """The way through a tree in pieces, which depend on the tree alone; a chain of screened nodes is in one of them.

    Parameters
    ----------
    steps : TreeSteps
    p : int, atoms
    size : int, leaves and screened nodes of a piece, about; `CHAINED` of a chain count as one

    Attributes
    ----------
    ends : (k + 1,) the steps at which pieces begin and end
    """

    def __init__(self, steps: TreeSteps, p: int, size: int) -> None:
        j, code = steps.arrays
        screens = j == SCREEN
        self._opens = screens | (j >= p) | ((j >= 0) & (code >= 0))
        closes = (j == RELEASE) | (j == RESTORE) | ((j >= 0) & (j < p) & (code < 0))
        self._depth = np.cumsum(self._opens.astype(np.int8) - closes.astype(np.int8), dtype=np.int32)
        is_node = screens | (j == LEAF)
        inner = screens[1:] & screens[:-1]
        weight = np.where(is_node, CHAINED, 0).astype(np.int32)
        weight[1:][inner] = 1
        done = np.cumsum(weight, dtype=np.int64)
        end = int(np.flatnonzero(is_node)[-1]) + 1  # the rest leads back
        # A piece begins with a whole chain above it or none: not within one, nor under one, nor where it is taken back.
        starts = np.flatnonzero(np.append(True, ~screens[:-1])[:end] & (j != RESTORE)[:end])
        full = np.searchsorted(done[:end], np.arange(size * CHAINED, int(done[-1]), size * CHAINED)) + 1
        cuts = np.searchsorted(starts, full)
        cuts = np.unique(starts[cuts[cuts < starts.size]])
        self.ends = np.concatenate([[0], cuts, [end]])
        self.forget()

    def __len__(self) -> int:
        return self.ends.size - 1

    def forget(self) -> None:
        """Let the next way begin at the root."""
        self._at, self._path = 0, np.empty(0, dtype=np.int64)

    def path(self, at: int) -> Integers:
        """The steps before a step that are not taken back before it: those from the root to where it is taken."""
        if at < self._at:
            self.forget()
        depth = self._depth[self._at : at]
        if depth.size:
            rest = np.minimum.accumulate(depth[::-1])[::-1]  # the least depth from here on
            new = self._at + np.flatnonzero(self._opens[self._at : at] & (depth == rest))
            self._path = np.concatenate([self._path[: max(int(rest[0]), 0)], new])
            self._at = at
        return self._path


def numbers(held: npt.NDArray[np.integer[Any]], shape: tuple[int, ...]) -> memoryview:
    """Whole numbers of a sidecar, each read as one of Python where it is asked for."""
    require(held.shape == shape, "a node is incomplete")
    require(held.size == 0 or int(held.max()) < 2**63, "a number of the tree is too large")
    return np.ascontiguousarray(held, dtype=np.int64).data
