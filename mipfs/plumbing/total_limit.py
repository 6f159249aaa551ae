"""``--total-limit``: when its seconds are over a command is asked to end as by Ctrl-C, and says that its time was up.

What a command runs has limits of its own, each solve one. The total is over all of them, and over reading and writing:
a signal to the process itself, which whatever hears Ctrl-C hears too, so that nothing that was found is lost.
"""

from __future__ import annotations

import _thread
import math
import signal
import threading
import time

from mipfs.errors import UsageError

_deadline: float | None = None
_timer: threading.Timer | None = None


def begin(seconds: float) -> None:
    """Let the total of the command begin now.

    Raises
    ------
    UsageError
        No finite number of seconds > 0.
    """
    global _deadline, _timer
    end()
    if not 0.0 < seconds < math.inf:
        raise UsageError(f"--total-limit {seconds:g} must be a finite number of seconds > 0")
    _deadline = time.monotonic() + seconds
    _timer = threading.Timer(min(seconds, threading.TIMEOUT_MAX), _signal_main_thread)
    _timer.daemon = True
    _timer.start()


def end() -> None:
    """Let no total hold any longer: the command has ended."""
    global _deadline, _timer
    if _timer is not None:
        _timer.cancel()
        _timer.join()
    _deadline = _timer = None


def is_up() -> bool:
    """Whether the command has a total, and it has passed; in the processes that it forked, too."""
    return _deadline is not None and time.monotonic() >= _deadline


def _signal_main_thread() -> None:
    """Send the main thread, which may wait in a call of the system, what a scheduler sends."""
    if hasattr(signal, "pthread_kill") and threading.main_thread().ident is not None:
        signal.pthread_kill(threading.main_thread().ident, signal.SIGTERM)  # type: ignore[arg-type]  # it has begun
    else:
        _thread.interrupt_main(signal.SIGTERM)
