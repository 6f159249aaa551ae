"""How much a file may unpack to: decided here, for whatever is read.

What is compressed may claim, or become, a thousand times its bytes and more, and whoever wrote it decides that. So no
reader makes room by what a file says before it has been held against the bytes that the file has:

    unpacked bytes  <=  FREE + times · bytes of the file (of a stream: of those that were read so far)

with ``times`` = `TIMES` for data, states and whatever else is compressed, `PROOF_TIMES` for the arrays of a
certificate (docs/certificate.md, "How large it may be"), and 1 for an archive of certificates, whose members are
stored as they are. Features that no sample has count `FEATURE` bytes each. Whoever has honest data beyond that unpacks
it, or allows more by the environment variable `MIPFS_UNPACK`, in gigabytes: a file never does.
"""

from __future__ import annotations

import io
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from mipfs.errors import UnpackedError, UsageError

FREE = 1 << 26
"""Bytes that any file may unpack to."""
TIMES = 100
"""Of data: tables of zeros and ones become a fiftieth by gzip, the sparsest of those that people have a hundredth."""
PROOF_TIMES = 32
"""Of a certificate: of 7,500 honest ones, from 3 kB on, none became less than an eighteenth."""
FEATURE = 16
"""Bytes for which a feature counts that a file claims by its largest index or its shape: 2²² are free. A solve holds
200 bytes for each."""
VARIABLE = "MIPFS_UNPACK"
GB = 1e9


def allowed_bytes() -> float:
    """Bytes that the user allows whatever the file, 0 where nothing is said.

    Raises
    ------
    UsageError
        What is said is no number of gigabytes.
    """
    said = os.environ.get(VARIABLE, "").strip()
    try:
        found = float(said or 0.0)
    except ValueError:
        found = math.nan
    if not found >= 0.0:
        raise UsageError(f"{VARIABLE} = {said[:40]!r} in the environment: give a number of gigabytes, such as 8")
    return GB * found


def most(size: int, times: int = TIMES) -> float:
    """Bytes that a file of `size` bytes may unpack to."""
    return max(FREE + times * size, allowed_bytes())


def most_features(size: int, limit: int) -> int:
    """How many features a file of `size` bytes may claim, `limit` at most."""
    return int(min(limit, most(size) // FEATURE))


MORE = f"or allow more by {VARIABLE}=8 in the environment (gigabytes)"
"""What else to do where a file claims more than its bytes bear out."""


def too_large(path: Path, size: int, times: int = TIMES) -> UnpackedError:
    """The error about a file of which `size` bytes unpack to more than they may."""
    mb = most(size, times) / 1e6
    return UnpackedError(
        f"what {_show_size(size)} of it unpack to is more than the {mb:.4g} MB that are read of so few",
        f"if you know where it comes from, unpack it or allow more: {VARIABLE}=8 in the environment (gigabytes)",
        path=path,
    )


def _show_size(size: int) -> str:
    return f"{size} bytes" if size < 10_000 else f"{size / 1e6:.3g} MB"


class Unpacking(io.RawIOBase):
    """A stream that unpacks a file, as much of it as may be read: at no place more than the bytes up to there allow.

    Parameters
    ----------
    stream : of the unpacked bytes
    path : of the file, named in messages
    packed : callable, how many bytes of the file were taken for them
    beneath : of the file, closed with this, optional
    """

    def __init__(
        self, stream: IO[bytes], path: Path, packed: Callable[[], int], beneath: IO[bytes] | None = None
    ) -> None:
        self._stream = stream
        self._path = path
        self._packed = packed
        self._beneath = beneath
        self._found = 0

    def readable(self) -> bool:
        """Yes."""
        return True

    def readinto(self, room: Any) -> int:
        """Read what fits.

        Raises
        ------
        UnpackedError
            It is more than may be read.
        """
        found: int = self._stream.readinto(room)  # type: ignore[attr-defined]
        self._found += found
        if self._found > FREE and self._found > most(self._packed()):
            raise too_large(self._path, self._packed())
        return found

    def close(self) -> None:
        """Close all."""
        self._stream.close()
        if self._beneath is not None:
            self._beneath.close()
        super().close()
