"""For every test: one thread for linear algebra, rare looks for garbage, and tables of cases that are sampled."""

from __future__ import annotations

import gc
import os
import signal
import threading
from collections import Counter

import pytest

# pytest-xdist has put a worker on every core already: more threads would only wait for one another. Before NumPy loads.
for _library in ("OPENBLAS", "OMP", "MKL"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

# A shell that begins the tests in the background has them ignore Ctrl-C, and with them every process that they start.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN and threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)


FAMILY = 10
"""Cases of a test of seeds alone before every second one is left to the slow tests."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark as slow what ``@pytest.mark.sampled(n)`` leaves out: all but every n-th case of its test.

    An n without a common divisor with the numbers of values lets the sample go through all of them, not some again.
    Cases that differ by their seed alone are drawn alike: beyond the first `FAMILY` every second one is slow too.
    """
    seen: Counter[str] = Counter()
    for item in items:
        sampled = item.get_closest_marker("sampled")
        name = item.nodeid.partition("[")[0]
        if sampled is not None:
            is_left_out = seen[name] % sampled.args[0] > 0
        else:
            is_left_out = _is_drawn(item) and seen[name] > FAMILY and seen[name] % 2 > 0
        if is_left_out:
            item.add_marker(pytest.mark.slow)
        seen[name] += 1


def _is_drawn(item: pytest.Item) -> bool:
    """Whether the cases of a test differ by their seed alone."""
    call = getattr(item, "callspec", None)
    return call is not None and set(call.params) == {"seed"}


@pytest.hookimpl(tryfirst=True)
def pytest_collection() -> None:
    """Thousands of tests are no garbage: looking through them again and again takes a tenth of the time."""
    gc.disable()


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """What was imported and collected stays; the rest is looked through less often than Python does it."""
    gc.freeze()
    gc.set_threshold(50_000)
    gc.enable()
