"""A limit of seconds for code that knows of none: an exception between two of its steps."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

AGAIN_SECONDS = 1.0
"""Seconds after which it rings again: the exception may have met a place where none can be raised."""


class TimeUp(Exception):
    """The limit has struck."""


@contextmanager
def raise_after(seconds: float | None) -> Iterator[None]:
    """Raise `TimeUp` in the block after `seconds`; None: never.

    It is heard when Python runs again: a call of compiled code ends first. Only in the main thread of a system that has
    interval timers; elsewhere nothing limits the block.
    """
    can = hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()
    if seconds is None or not can:
        yield
        return

    def ring(_number: int, _frame: FrameType | None) -> None:
        raise TimeUp

    previous = signal.signal(signal.SIGALRM, ring)
    try:
        try:
            signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-6), AGAIN_SECONDS)
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
    finally:
        signal.signal(signal.SIGALRM, previous)
