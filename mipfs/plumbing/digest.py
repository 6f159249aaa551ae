"""One digest over several parts, each of any length."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

NUMBERS_AT_ONCE = 1 << 17
"""Numbers of an array that are looked at together: it need not stand in memory as it is hashed."""


Part = bytes | npt.NDArray[np.generic] | Iterator[bytes | memoryview]


def digest(parts: Iterable[Part]) -> str:
    """SHA-256 of the SHA-256 of every part, in their order: no two lists of parts run together alike.

    Arrays are one-dimensional, and counted as little-endian numbers of 8 bytes; a part may come piece by piece.
    """
    return hashlib.sha256(b"".join(_sha256_of_part(part) for part in parts)).hexdigest()


def _sha256_of_part(part: Part) -> bytes:
    """SHA-256 of one part."""
    if isinstance(part, bytes):
        return hashlib.sha256(part).digest()
    found = hashlib.sha256()
    if not isinstance(part, np.ndarray):
        for piece in part:
            found.update(piece)
        return found.digest()
    for start in range(0, part.size, NUMBERS_AT_ONCE):
        found.update(part[start : start + NUMBERS_AT_ONCE].astype(f"<{part.dtype.kind}8").tobytes())
    return found.digest()
