"""A data file piece after piece, so that no more than a piece is in memory: what `mipfs convert` reads."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
import numpy.typing as npt

from mipfs.errors import DataError
from mipfs.plumbing.arrays import Array
from mipfs.readers import files

BYTES_AT_ONCE = 1 << 24
"""Bytes of text that are read at a time."""


@dataclass(frozen=True, eq=False)
class Chunk:
    """Some samples, one after the other.

    Attributes
    ----------
    labels : (r,) ndarray of float or str, or None
    sizes : (r,) ndarray of int, entries of every sample
    columns, values : (e,) ndarrays: provisional column and number of every entry, none of them zero
    width : columns seen so far
    bags, weights : (r,) ndarray or None
    lines : (r,) ndarray of int, or None
    position : what says where the next chunk begins, for JSON
    """

    labels: npt.NDArray[Any] | None
    sizes: npt.NDArray[np.int64]
    columns: npt.NDArray[np.int32]
    values: Array
    width: int
    bags: npt.NDArray[np.int64] | None
    weights: Array | None
    lines: npt.NDArray[np.int64] | None
    position: dict[str, Any]


class HashedFile(io.RawIOBase):
    """A file that is read, and the SHA-256 of what was.

    Parameters
    ----------
    stream : of bytes
    """

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream, self.sha, self.bytes = stream, hashlib.sha256(), 0

    def readable(self) -> bool:
        """Yes."""
        return True

    def readinto(self, room: Any) -> int:
        """Read what fits."""
        size: int = self._stream.readinto(room)  # type: ignore[attr-defined]
        self.sha.update(memoryview(room)[:size])
        self.bytes += size
        return size

    def digest(self) -> str:
        """Read what is left, and tell the digest of all."""
        while piece := self._stream.read(BYTES_AT_ONCE):
            self.sha.update(piece)
        return self.sha.hexdigest()


@contextmanager
def unpack_file(path: Path) -> Iterator[tuple[IO[bytes], HashedFile]]:
    """A data file unpacked, and what hashes the file itself; errors as of `files.opened`."""
    import bz2
    import gzip
    import zlib

    with files.plainly_opened(path) as raw:
        hashed = HashedFile(raw)
        packed = partial(getattr, hashed, "bytes")
        suffix = path.suffix.lower()
        stream: Any = io.BufferedReader(hashed, BYTES_AT_ONCE)
        try:
            if suffix == ".gz":
                stream = files.in_bounds(cast(IO[bytes], gzip.GzipFile(fileobj=stream, mode="rb")), path, packed)
            elif suffix == ".bz2":
                stream = files.in_bounds(cast(IO[bytes], bz2.BZ2File(stream, "rb")), path, packed)
            yield stream, hashed
        except (EOFError, zlib.error, gzip.BadGzipFile):
            raise DataError(
                "the compressed file is truncated or damaged", "fetch or pack it again", path=path
            ) from None


def skip_bytes(stream: IO[bytes], size: int, path: Path) -> None:
    """Pass over bytes that were read before."""
    while size:
        found = stream.read(min(size, BYTES_AT_ONCE))
        if not found:
            raise DataError(
                "it is shorter than when it was first read", "convert it again, which begins anew", path=path
            )
        size -= len(found)
