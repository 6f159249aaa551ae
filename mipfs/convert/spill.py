"""Runs: entries in row order become files sorted by column, as large as memory allows, and are merged by blocks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from mipfs.convert.kept import save
from mipfs.data.blocked import Csc
from mipfs.plumbing.arrays import Integers

_PARTS = ("columns", "rows", "values")


class EntryBuffer:
    """Entries of rows that come one after the other.

    Parameters
    ----------
    memory : bytes that buffers and their sorting may take
    dtype : of the values
    """

    def __init__(self, memory: int, dtype: str) -> None:
        self.capacity = max(1024, memory // (2 * (8 + np.dtype(dtype).itemsize)))
        self._dtype = dtype
        self.size = 0
        self._grow_buffers(0)

    def _grow_buffers(self, least: int) -> None:
        room = max(least, self.capacity)
        kinds = (np.int32, np.int32, self._dtype)
        old = getattr(self, "_arrays", None)
        self._arrays = [np.empty(room, dtype=kind) for kind in kinds]  # pages that are not written to take no memory
        for new, kept in zip(self._arrays, old or (), strict=False):
            new[: self.size] = kept[: self.size]

    def add(self, columns: Any, rows: Any, values: Any) -> None:
        """Take in entries."""
        end = self.size + columns.size
        if end > self._arrays[0].size:
            self._grow_buffers(end)
        for array, part in zip(self._arrays, (columns, rows, values), strict=True):
            array[self.size : end] = part
        self.size = end

    @property
    def is_full(self) -> bool:
        """Whether it is time for a run."""
        return self.size >= self.capacity

    def write(self, folder: Path, number: int) -> None:
        """Write what is held as a run, sorted, and hold nothing."""
        from mipfs.kernels.text import sort_by_column

        given = [array[: self.size] for array in self._arrays]
        room = [np.empty_like(array) for array in given]
        largest = int(given[0].max(initial=0))
        found = room if sort_by_column(*given, *room, largest) else given
        for name, array in zip(_PARTS, found, strict=True):
            save(folder / f"{number:05d}.{name}.npy", array)
        self.size = 0


class SortedRuns:
    """The runs of a folder.

    Parameters
    ----------
    folder : Path
    count : how many there are
    """

    def __init__(self, folder: Path, count: int) -> None:
        self._runs = [[np.load(folder / f"{k:05d}.{name}.npy", mmap_mode="r") for name in _PARTS] for k in range(count)]

    def counts(self, width: int) -> Integers:
        """Entries of every column, (width,)."""
        from mipfs.kernels.text import count

        found = np.zeros(width, dtype=np.int64)
        for columns, _, _ in self._runs:
            count(columns, found)
        return found

    def block(self, chosen: Integers | range, counts: Integers, dtype: str) -> Csc:
        """The columns `chosen`, whose entries are `counts`, with rows ascending."""
        from mipfs.kernels.text import place_entries

        ends = np.concatenate([[0], np.cumsum(counts)])
        data: Any  # float32 or float64
        indptr: Any = ends.astype(np.int32 if ends[-1] <= np.iinfo(np.int32).max else np.int64)
        data = np.empty(ends[-1], dtype=dtype)
        indices = np.empty(ends[-1], dtype=np.int32)
        heads = ends[:-1].copy()
        for columns, rows, values in self._runs:
            for first, at in _run_pieces(columns, chosen):
                place_entries(columns[at], first, rows[at], values[at], heads, indices, data)
        return Csc(data, indices, indptr)


def _run_pieces(columns: Any, chosen: Integers | range) -> Iterator[tuple[int, slice]]:
    """What of a run belongs to the chosen columns, and the column that would be the first of the block."""
    if isinstance(chosen, range):
        low, high = np.searchsorted(columns, (chosen.start, chosen.stop)).tolist()
        yield chosen.start, slice(low, high)
        return
    lows, highs = (np.searchsorted(columns, chosen, side).tolist() for side in ("left", "right"))
    for place, (column, low, high) in enumerate(zip(chosen.tolist(), lows, highs, strict=True)):
        yield column - place, slice(low, high)
