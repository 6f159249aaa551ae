"""Work inside one node in blocks, which threads share: of long data, where one node alone takes long.

How many blocks there are and where they end depends on the shape of the data alone. A block is worked on by one thread,
with one thread for linear algebra, and what blocks add up to is added in their order: the sum is that of any number of
threads, to the bit. How many threads there are is said by whoever knows what else is at work (`inside`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Event

import numpy as np
import numpy.typing as npt

from mipfs.plumbing.arrays import Integers
from mipfs.plumbing.own_threads import share

LARGE = 1_000_000
"""Samples times columns up to which all is one block: threads would take longer to wake."""
MOST = 16
"""Blocks at most: each may have sums of its own, which take room."""

_threads: ContextVar[Callable[[], int]] = ContextVar("threads inside a node", default=lambda: 1)


@contextmanager
def inside(threads: Callable[[], int]) -> Iterator[None]:
    """Have work inside one node shared by `threads()` threads, asked whenever some begins; elsewhere by one."""
    before = _threads.set(threads)
    try:
        yield
    finally:
        _threads.reset(before)


def count_of(samples: int, columns: int, most: float) -> int:
    """In how many blocks passes over data are cut, of which `most` would be worth it."""
    return int(max(1, min(MOST, most))) if samples * columns > LARGE else 1


def cut(work: npt.NDArray[np.number], count: int) -> Integers:
    """Where blocks of about equal work begin and end, (count + 1,).

    Parameters
    ----------
    work : (m + 1,) rising from 0: the work of the first 0, 1, … m pieces
    count : int >= 1
    """
    if count == 1:
        return np.array([0, work.size - 1])
    ends = np.searchsorted(work, np.linspace(0.0, float(work[-1]), count + 1)).astype(np.int64)
    ends[0], ends[-1] = 0, work.size - 1
    return ends


def run_each(work: Callable[[int], object], count: int) -> None:
    """Do work(0) … work(count − 1), at once by the threads that there are inside a node; an error ends it.

    Parameters
    ----------
    work : callable that lets others run (without the GIL), and whose blocks do not meet
    count : int
    """
    blocks, failed = iter(range(count)), Event()

    def serve(low: int, high: int) -> None:
        for block in blocks:
            if failed.is_set():
                return
            try:
                work(block)
            except BaseException:
                failed.set()
                raise

    threads = min(_threads.get()(), count)
    share(serve, threads, threads)
