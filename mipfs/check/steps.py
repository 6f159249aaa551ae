"""The way through a tree of tens of millions of nodes, held in arrays rather than as objects of Python."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs.check.rounding import Integers, require


class Steps:
    """Pairs of whole numbers (j, code), in two arrays: a tree has tens of millions."""

    def __init__(self) -> None:
        self._j, self._code = array("q"), array("q")

    def append(self, j: int, code: int) -> None:
        """One step more."""
        self._j.append(j)
        self._code.append(code)

    def __len__(self) -> int:
        return len(self._j)

    def __getitem__(self, at: int) -> tuple[int, int]:
        return self._j[at], self._code[at]

    @property
    def split(self) -> Integers:
        """What is split on, each once and in order."""
        j = np.unique(np.array(self._j))
        return np.asarray(j[j >= 0])

    def renamed(self, place: Mapping[int, int]) -> Steps:
        """Steps of the tree in which atom j has the number place[j]."""
        steps = Steps()
        for j, code in self:
            steps.append(place[j] if j >= 0 else j, code)
        return steps

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return zip(self._j, self._code, strict=True)


def numbers(held: npt.NDArray[np.integer[Any]], shape: tuple[int, ...]) -> memoryview:
    """Whole numbers of a sidecar, each read as one of Python where it is asked for."""
    require(held.shape == shape, "a node is incomplete")
    require(held.size == 0 or int(held.max()) < 2**63, "a number of the tree is too large")
    return np.ascontiguousarray(held, dtype=np.int64).data
