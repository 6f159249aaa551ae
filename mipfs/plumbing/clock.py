"""CPU seconds of what was computed here: this process, and those that it started and saw end."""

from __future__ import annotations

import os
import time


def cpu_clock() -> float:
    """CPU seconds of this process and of its children that have ended (Clarabel may run in one), of all threads."""
    children = os.times()
    return time.process_time() + children.children_user + children.children_system
