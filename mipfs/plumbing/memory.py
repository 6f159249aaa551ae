"""Memory by the operating system's own count, of compiled code too: what a block takes at most, and a limit."""

from __future__ import annotations

import math
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mipfs.errors import UsageError

_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")
_RESET_PEAK = "5"
"""What tells Linux to forget the highest mark of a process."""
RESERVE = 0.05
"""Of a memory limit: what writing the result and its certificate takes, and what is taken between two looks."""
LOOK_SECONDS = 0.02
"""How often the operating system is asked, which takes some 20 µs."""


def available_bytes() -> float:
    """Bytes that may be taken without others losing theirs, as the system says; inf where it does not."""
    try:
        found = re.search(r"^MemAvailable:\s+(\d+) kB$", Path("/proc/meminfo").read_text(), re.MULTILINE)
    except OSError:
        return math.inf
    return math.inf if found is None else 1024.0 * int(found[1])


class MemoryLimit:
    """Whether this process holds as much memory as it may, less a reserve to end with.

    Parameters
    ----------
    gigabytes : float or None, of 10⁹ bytes; None or inf for no limit

    Attributes
    ----------
    reserved : float, bytes that writing the result will take, where that is known to be more than `RESERVE`

    Raises
    ------
    UsageError
        The process holds more already, or the system does not say how much it holds.
    """

    def __init__(self, gigabytes: float | None) -> None:
        self._limit = math.inf if gigabytes is None else 1e9 * gigabytes
        self.reserved = 0.0
        self._next = -math.inf
        self._is_reached = False
        if self.is_reached:
            held = (_read_status("VmRSS") or _peak_bytes() or 0) / 1e9
            raise UsageError(
                f"memory_limit = {gigabytes:g}: the process holds {held:.2f} GB before the run begins, and "
                f"{RESERVE:.0%} of the limit is kept for writing the result; give more"
            )

    @property
    def is_reached(self) -> bool:
        """Once it is reached, it stays so: what is given back is hardly ever returned to the system."""
        if self._is_reached or self._limit == math.inf or time.monotonic() < self._next:
            return self._is_reached
        held = _read_status("VmRSS")
        held = _peak_bytes() if held is None else held
        if held is None:  # Windows
            raise UsageError(
                "this system does not say how much memory a process holds, so that a memory limit could not be kept; "
                "leave it out, and limit the process by the system's own means"
            )
        self._is_reached = held >= min((1.0 - RESERVE) * self._limit, self._limit - self.reserved)
        self._next = time.monotonic() + LOOK_SECONDS
        return self._is_reached


@dataclass
class Peak:
    """Bytes above those that the process held when the block began; None where the system does not tell."""

    bytes: int | None = None


@contextmanager
def measure_peak() -> Iterator[Peak]:
    """Measure the block.

    Linux forgets the highest mark of the process when it is asked to. Elsewhere the mark is that of the process's whole
    life, and only a block that raises it is measured.
    """
    found = Peak()
    try:
        _CLEAR.write_text(_RESET_PEAK)
        before = _read_status("VmRSS")
        key = "VmHWM"
    except OSError:
        before = _peak_bytes()
        key = ""
    try:
        yield found
    finally:
        after = _read_status(key) if key else _peak_bytes()
        if before is not None and after is not None and (key or after > before):
            found.bytes = max(0, after - before)


def _read_status(key: str) -> int | None:
    """A line of the status of this process, in bytes."""
    try:
        match = re.search(rf"^{key}:\s*(\d+) kB", _STATUS.read_text(), re.MULTILINE)
    except OSError:
        return None
    return None if match is None else 1024 * int(match.group(1))


def _peak_bytes() -> int | None:
    """The most that the process has ever held, in bytes."""
    try:
        import resource
    except ImportError:
        return None
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
