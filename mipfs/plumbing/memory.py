"""How much memory a block of code takes at most, by the operating system's own count: what compiled code takes too."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")
_RESET_PEAK = "5"
"""What tells Linux to forget the highest mark of a process."""


@dataclass
class Peak:
    """Bytes above those that the process held when the block began; None where the system does not tell."""

    bytes: int | None = None


@contextmanager
def peak() -> Iterator[Peak]:
    """Measure the block.

    Linux forgets the highest mark of the process when it is asked to. Elsewhere the mark is that of the process's whole
    life, and only a block that raises it is measured.
    """
    found = Peak()
    try:
        _CLEAR.write_text(_RESET_PEAK)
        before = _held("VmRSS")
        key = "VmHWM"
    except OSError:
        before = _highest()
        key = ""
    try:
        yield found
    finally:
        after = _held(key) if key else _highest()
        if before is not None and after is not None and (key or after > before):
            found.bytes = max(0, after - before)


def _held(key: str) -> int | None:
    """A line of the status of this process, in bytes."""
    try:
        match = re.search(rf"^{key}:\s*(\d+) kB", _STATUS.read_text(), re.MULTILINE)
    except OSError:
        return None
    return None if match is None else 1024 * int(match.group(1))


def _highest() -> int | None:
    """The most that the process has ever held, in bytes."""
    try:
        import resource
    except ImportError:
        return None
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
