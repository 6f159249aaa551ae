"""For every test: one thread for linear algebra and one process for fits, nothing waits for the disk, garbage is rarely
looked for; sampling."""

from __future__ import annotations

import gc
import math
import os
import signal
import stat
import threading
from typing import Any

import pytest

# pytest-xdist has put a worker on every core already: more threads would only wait for one another. Before NumPy loads.
for _library in ("OPENBLAS", "OMP", "MKL"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

# A shell that begins the tests in the background has them ignore Ctrl-C, and with them every process that they start.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN and threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)

_SYNCHRONISE = os.fsync


def _without_the_disk(handle: int) -> None:
    """`os.fsync` of a file or a folder only looks whether there is one: thousands of saves wait some ms each for a disk
    that no test takes the power from. Tests of when it is called put their own in its place."""
    if stat.S_IFMT(os.fstat(handle).st_mode) not in (stat.S_IFREG, stat.S_IFDIR):
        _SYNCHRONISE(handle)


os.fsync = _without_the_disk

FAST_SEEDS = 5
"""Seeds of a test in ``make test`` where its cases differ by their seed alone.

Where they differ by other values too, so many in all, and every combination of these at least one.
"""
SLOW_CASES = 1
"""Cases of a test in ``make slow``, spread over those that ``make test`` leaves out; the rest are ``every``."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark as slow what ``@pytest.mark.sampled(n)`` leaves out, and seeds of which there are many.

    All but every n-th case of a sampled test; an n without a common divisor with the numbers of values lets the sample
    go through all of them, not some again. Seeds beyond `FAST_SEEDS` are slow. A seed that was chosen, as one that once
    failed, is not one of many: those of a range alone are. Of what is slow all but `SLOW_CASES` are ``every`` as well.
    """
    tables: dict[str, list[Any]] = {}
    for item in items:
        tables.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for table in tables.values():
        ranks, groups = _ranks(table)
        fast = -(-FAST_SEEDS // groups)
        for k, (item, rank) in enumerate(zip(table, ranks, strict=True)):
            sampled = item.get_closest_marker("sampled")
            if rank >= fast if sampled is None else k % sampled.args[0] > 0:
                item.add_marker(pytest.mark.slow)
        slow = [item for item in table if item.get_closest_marker("slow") and not item.get_closest_marker("every")]
        kept = {k * len(slow) // SLOW_CASES for k in range(SLOW_CASES)}
        for k, item in enumerate(slow):
            if k not in kept:
                item.add_marker(pytest.mark.every)


def _ranks(table: list[Any]) -> tuple[list[int], int]:
    """For every case of a test its place among those that differ by the seed alone, and how many such groups there are.

    Each group begins with another seed. The places are 0 where the seeds are no range, or there are none.
    """
    calls = [getattr(item, "callspec", None) for item in table]
    seeds = list(dict.fromkeys(None if call is None else call.params.get("seed") for call in calls))
    if not all(type(seed) is int for seed in seeds) or seeds != [seeds[0] + k for k in range(len(seeds))]:
        return [0] * len(table), 1
    groups: dict[tuple[int, ...], list[int]] = {}
    for k, call in enumerate(calls):
        others = tuple(id(value) for name, value in call.params.items() if name != "seed")
        groups.setdefault(others, []).append(k)
    ranks = [0] * len(table)
    for first, members in enumerate(groups.values()):
        for place, k in enumerate(members):
            ranks[k] = (place - first) % len(members)
    return ranks, len(groups)


@pytest.hookimpl(tryfirst=True)
def pytest_collection() -> None:
    """Thousands of tests are no garbage: looking through them again and again takes a tenth of the time."""
    gc.disable()


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """What was imported and collected stays; the rest is looked through less often than Python does it.

    Fits of a test are done by its own process, however slow the machine is at the time: another takes over a second to
    be there, and pytest-xdist has a worker on every core. Tests of fits side by side have others begin at once.
    """
    gc.freeze()
    gc.set_threshold(50_000)
    gc.enable()
    from mipfs.run import side_by_side  # after NumPy has been told of its threads

    side_by_side.BEGIN_SECONDS = math.inf
