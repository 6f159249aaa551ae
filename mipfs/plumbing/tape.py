"""Bytes that grow at their end: all in memory, or all but the last in a file without a name."""

from __future__ import annotations

import mmap
import os
import tempfile
import warnings
import weakref
from collections.abc import Iterator, Sequence
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


class Tape:
    """Bytes that are written once, at the end, and read anywhere.

    What cannot be written, on a full disk, say, stays in memory with a warning. A copy, and what is pickled, is all in
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
        self._written = 0
        self._is_full = False
        self._lock = Lock()
        self._file: IO[bytes] | None = None
        if folder is not None:
            try:
                self._file = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115
                weakref.finalize(self, self._file.close)
            except OSError as error:
                _warn(error)

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
            self._flush()
        return at

    def extend(self, array: npt.NDArray[Any]) -> int:
        """Write the bytes of an array, which need not stand in memory; returns where that was."""
        at = len(self)
        for piece in pieces(array):
            self.append(piece)
        return at

    def read(self, low: int, high: int) -> bytes:
        """What lies from `low` up to `high`; any thread may ask."""
        with self._lock:
            return self._from_file(low, min(high, self._written)) + bytes(
                self._tail[max(0, low - self._written) : max(0, high - self._written)]
            )

    def read_all(self, lows: Sequence[int], highs: Sequence[int]) -> bytes:
        """What lies in many places, one behind the other."""
        if self._written:
            return b"".join(map(self.read, lows, highs))
        with self._lock, memoryview(self._tail) as held:
            return b"".join([held[low:high] for low, high in zip(lows, highs, strict=True)])

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
            found = np.frombuffer(self._tail, dtype=np.uint8)
            found.flags.writeable = False
            return found
        self._flush()
        if self._tail or not self._written:
            return np.frombuffer(self.read(0, len(self)), dtype=np.uint8)
        return np.memmap(cast(Any, self._file), dtype=np.uint8, mode="r", shape=(self._written,))

    def _flush(self) -> None:
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
            _warn(error)


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


def mapped(path: Path, dtype: np.dtype[Any], offset: int, shape: tuple[int, ...]) -> npt.NDArray[Any]:
    """An array that lies in a file.

    Raises
    ------
    ValueError
        The file ends before it does.
    """
    if os.path.getsize(path) < offset + dtype.itemsize * int(np.prod(shape)):
        raise ValueError("it ends before its arrays do")
    return np.memmap(path, dtype=dtype, mode="r", offset=offset, shape=shape)


def _warn(error: OSError) -> None:
    said = f"what was to lie in a file stays in memory: {error.strerror or error}"
    warnings.warn(said, CheckpointWarning, stacklevel=3)
