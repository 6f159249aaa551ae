"""Bytes that grow at their end: all in memory, or all but the last in a file without a name."""

from __future__ import annotations

import mmap
import os
import tempfile
import warnings
import weakref
from array import array
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path
from threading import Lock
from typing import IO, Any, cast

import numpy as np
import numpy.typing as npt

from mipfs.errors import CheckpointWarning

TAIL_BYTES = 1 << 20
"""Bytes that wait in memory until they are written together."""
PIECE_BYTES = 1 << 24
"""Bytes of an array that are looked at together."""
KEPT_BYTES = 1 << 12
"""Bytes from which on an array is kept as it is in memory: to copy it means fresh pages, which cost more than bytes."""


class Tape:
    """Bytes that are written once, at the end, and read anywhere.

    In memory a large array is kept as it is, so that whoever writes one must not change it any more. What cannot be
    written to a file, on a full disk, say, stays in memory with a warning. A copy, and what is pickled, is all in
    memory: the file belongs to one tape, and goes with it, however the process ends.

    Parameters
    ----------
    folder : Path, optional
        Where the file is; without one everything is in memory.
    content : bytes, optional, to begin with
    """

    def __init__(self, folder: Path | None = None, content: bytes = b"") -> None:
        self._folder = folder
        self._tail = bytearray(content)
        self._kept = list[memoryview]()
        self._begins, self._addresses = array("q"), array("q")
        self._written = 0
        self._is_full = False
        self._lock = Lock()
        self._file: IO[bytes] | None = None
        if folder is not None:
            try:
                self._file = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115
                weakref.finalize(self, self._file.close)
            except OSError as error:
                _warn_not_spooled(error)

    def __len__(self) -> int:
        return self._written + len(self._tail)

    def __reduce__(self) -> tuple[Any, ...]:
        return Tape, (None, self.read(0, len(self)))

    def beside(self) -> Tape:
        """Another one, which is empty, where this one is."""
        return Tape(self._folder)

    def append(self, content: bytes | bytearray | memoryview) -> int:
        """Write at the end; returns where that was."""
        at = len(self)
        try:
            self._tail += content
        except BufferError:  # `array` has given it away
            self._tail = self._tail + content
        if len(self._tail) >= TAIL_BYTES:
            self._flush_to_file()
        return at

    def extend(self, array: npt.NDArray[Any]) -> int:
        """Write the bytes of an array, which need not stand in memory; returns where that was."""
        at = len(self)
        if self._file is None and array.nbytes >= KEPT_BYTES and array.flags.owndata and array.flags.c_contiguous:
            self._adopt_array(array.reshape(-1).view(np.uint8).data)
            return at
        for piece in pieces(array):
            self.append(piece)
        return at

    def _adopt_array(self, content: memoryview) -> None:
        """Have it behind what is written, without a copy; of a tape in memory."""
        with self._lock:
            for part in (memoryview(self._tail), content) if self._tail else (content,):
                self._begins.append(self._written)
                self._addresses.append(_address_of(part))
                self._kept.append(part)
                self._written += part.nbytes
            self._tail = bytearray() if self._tail else self._tail

    def read(self, low: int, high: int) -> bytes:
        """What lies from `low` up to `high`; any thread may ask."""
        with self._lock:
            if self._kept:
                return b"".join(self._from_memory(low, high))
            return self._from_file(low, min(high, self._written)) + bytes(
                self._tail[max(0, low - self._written) : max(0, high - self._written)]
            )

    def read_all(self, lows: npt.NDArray[np.int64], highs: npt.NDArray[np.int64]) -> npt.NDArray[np.uint8]:
        """What lies in many places, one behind the other.

        Raises
        ------
        ValueError
            Some of it lies nowhere, as by a state that was forged.
        """
        if np.any(highs < lows) or lows.min(initial=0) < 0 or highs.max(initial=0) > len(self):
            raise ValueError("a place beyond the end of what was written")
        if self._written and not self._kept:
            return np.frombuffer(b"".join(map(self.read, lows.tolist(), highs.tolist())), dtype=np.uint8)
        from mipfs.plumbing.byte_runs import copy_runs

        with self._lock, memoryview(self._tail) as tail:
            begins = np.append(np.array(self._begins), [self._written, self._written + tail.nbytes])
            addresses = np.append(np.array(self._addresses), _address_of(tail))
            found = np.empty(int((highs - lows).sum()), dtype=np.uint8)
            copy_runs(addresses, begins, lows, highs, found)
        return found

    def _from_memory(self, low: int, high: int) -> Iterator[memoryview | bytearray]:
        """What lies from `low` up to `high`, of a tape in memory, part by part."""
        at = bisect_right(self._begins, low) - 1
        while at >= 0 and low < min(high, self._written):
            begin, part = self._begins[at], self._kept[at]
            yield part[low - begin : high - begin]
            low, at = begin + part.nbytes, at + 1
        if low < high:
            yield self._tail[low - self._written : high - self._written]

    def _from_file(self, low: int, high: int) -> bytes:
        file = self._file
        if low >= high or file is None:
            return b""
        if hasattr(os, "pread"):  # a process that was forked shares the place where a file is read
            found = os.pread(file.fileno(), high - low, low)
        else:
            file.seek(low)
            found = file.read(high - low)
        return found if len(found) == high - low or not found else found + self._from_file(low + len(found), high)

    def array(self) -> npt.NDArray[np.uint8]:
        """What it holds now, not copied: of a file the file itself, mapped."""
        if self._file is None:
            found = self._join() if self._kept else np.frombuffer(self._tail, dtype=np.uint8)
            found.flags.writeable = False
            return found
        self._flush_to_file()
        if self._tail or not self._written:
            return np.frombuffer(self.read(0, len(self)), dtype=np.uint8)
        return np.memmap(cast(Any, self._file), dtype=np.uint8, mode="r", shape=(self._written,))

    def _join(self) -> npt.NDArray[np.uint8]:
        """All of a tape in memory in one array, which takes the place of its parts, each let go of at once."""
        with self._lock:
            if len(self._kept) > 1 or self._tail:
                found, at = np.empty(len(self), dtype=np.uint8), 0
                self._kept.reverse()
                while self._kept:
                    part = self._kept.pop()
                    found[at : at + part.nbytes] = part
                    at += part.nbytes
                found[at:] = np.frombuffer(self._tail, dtype=np.uint8)
                self._tail = bytearray()
                self._kept, self._begins, self._written = [found.data], array("q", [0]), found.size
                self._addresses = array("q", [_address_of(found.data)])
            return np.frombuffer(self._kept[0], dtype=np.uint8)

    def _flush_to_file(self) -> None:
        """Write what waits; where that fails, it stays in memory, as does all that comes."""
        file = self._file
        if file is None or self._is_full:
            return
        try:
            with self._lock:
                file.seek(self._written)
                rest = memoryview(bytes(self._tail))
                while rest:
                    rest = rest[file.write(rest) :]
                self._written += len(self._tail)
                self._tail.clear()
        except OSError as error:
            self._is_full = True
            _warn_not_spooled(error)


def pieces(array: npt.NDArray[Any]) -> Iterator[memoryview]:
    """The bytes of an array, in its order, piece by piece; what is mapped is let go of behind each."""
    flat = np.ascontiguousarray(array).reshape(-1)
    if not flat.dtype.itemsize:
        return
    held = flat.view(np.uint8)
    for start in range(0, held.size, PIECE_BYTES):
        yield held[start : start + PIECE_BYTES].data
        let_go(array)


def let_go(array: npt.NDArray[Any]) -> None:
    """Give back the memory of a mapped array, whose file keeps it."""
    mapped = getattr(array, "_mmap", None)
    if mapped is not None and hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)


def _address_of(content: memoryview) -> int:
    return int(np.frombuffer(content, dtype=np.uint8).__array_interface__["data"][0])


def map_array(path: Path, dtype: np.dtype[Any], offset: int, shape: tuple[int, ...]) -> npt.NDArray[Any]:
    """An array that lies in a file.

    Raises
    ------
    ValueError
        The file ends before it does.
    """
    if os.path.getsize(path) < offset + dtype.itemsize * int(np.prod(shape)):
        raise ValueError("it ends before its arrays do")
    return np.memmap(path, dtype=dtype, mode="r", offset=offset, shape=shape)


def _warn_not_spooled(error: OSError) -> None:
    said = f"what was to lie in a file stays in memory: {error.strerror or error}"
    warnings.warn(said, CheckpointWarning, stacklevel=3)
