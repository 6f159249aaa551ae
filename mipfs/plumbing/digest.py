"""One digest over several parts, each of any length."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable


def digest(parts: Iterable[bytes]) -> str:
    """SHA-256 of the SHA-256 of every part, in their order: no two lists of parts run together alike."""
    return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()
