"""What a program may use of the machine."""

from __future__ import annotations

import os


def cores() -> int:
    """Cores that this process may use; where the system does not say, all there are."""
    usable = getattr(os, "sched_getaffinity", None)
    return (os.cpu_count() or 1) if usable is None else len(usable(0))
