"""Pieces of a work on all cores: processes that are forked from this one, so that they share what it has read.

A forked child has the data, the certificate and all that was made of them without a copy, and without reading them
again. What it takes for itself is what a piece takes. Elsewhere than on Linux, in a process with threads of the user's,
or in one of several that somebody else runs side by side, nothing is forked: a library may have left a lock held, which
no child could open, and cores that others use are no gain. There, and in the first second, this process does the work.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from mipfs.errors import LostWorkersError
from mipfs.plumbing import own_threads
from mipfs.plumbing.machine import one_blas_thread
from mipfs.plumbing.memory import available_bytes
from mipfs.plumbing.signals import SIGNALS

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

Found = TypeVar("Found")

ALONE_SECONDS = 0.7
"""Seconds that this process works before others are begun: most work is over by then."""
OWN_BYTES = 1 << 26
"""What a child takes beside its pieces, about: pages of the parent that it writes to."""
MEMORY_SHARE = 0.5
"""Share of the memory that is available which children take at most."""


class ForkedPool:
    """Does pieces of a work in several processes.

    Parameters
    ----------
    jobs : int >= 1, processes that work at a time, at most
    """

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs if is_safe() else 1

    def __call__(self, work: Callable[[int], Found], count: int, size: int) -> Iterator[Found]:
        """What `work` returns of 0, …, count − 1, in this order.

        Parameters
        ----------
        work : callable
            What it keeps from one piece to the next is kept in each process for itself.
        count : int
        size : int
            Bytes that a piece takes: fewer processes work where that many would not fit into the memory.

        Raises
        ------
        LostWorkersError
            All processes were ended from outside.
        BaseException
            What the first piece raised that raised something; later ones may not have been done.
        """
        began = time.monotonic()
        for k in range(count):
            jobs = min(self.jobs, count - k)
            if jobs > 1 and time.monotonic() - began >= ALONE_SECONDS:
                jobs = min(jobs, int(MEMORY_SHARE * available_bytes() / (OWN_BYTES + size)))
                if jobs > 1:
                    yield from _share_pieces(work, k, count, jobs)
                    return
            yield work(k)


def is_safe() -> bool:
    """Whether this process can be forked, and the cores are its own."""
    ours = {threading.main_thread(), *own_threads.all_of_them()}
    alone = threading.current_thread() is threading.main_thread() and ours.issuperset(threading.enumerate())
    processes = sys.modules.get("multiprocessing.process")  # loaded in every process that it began
    return sys.platform == "linux" and alone and not (processes and processes.current_process().daemon)


@dataclass
class _Child:
    """A process, and the piece that it does."""

    process: BaseProcess
    connection: Connection
    piece: int = -1


def _share_pieces(work: Callable[[int], Found], first: int, count: int, jobs: int) -> Iterator[Found]:
    """The pieces from one on, done by children, which are gone at the end whatever it is."""
    children: list[_Child] = []
    try:
        for _ in range(jobs):
            children.append(_fork_child(work, children))
        yield from _in_order(children, first, count)
    finally:
        for child in children:
            child.process.kill()
        for child in children:
            child.process.join()
            child.connection.close()


def _in_order(children: Sequence[_Child], first: int, count: int) -> Iterator[Any]:
    """What the children find, in the order of the pieces; a piece of one that is lost is done by another one."""
    from multiprocessing.connection import wait

    left = deque(range(first, count))
    found: dict[int, tuple[bool, Any]] = {}
    living = list(children)
    for child in living:
        _give_next_piece(child, left)
    while first < count:
        while first in found:
            is_done, value = found.pop(first)
            if not is_done:
                raise value
            yield value
            first += 1
        if first == count:
            return
        if not living:
            raise LostWorkersError(len(children))
        for ready in wait([child.connection for child in living]):
            child = next(one for one in living if one.connection is ready)
            try:
                answer = child.connection.recv()
            except (EOFError, OSError):
                living.remove(child)
                if child.piece >= 0:
                    left.appendleft(child.piece)
                continue
            found[child.piece] = answer
            child.piece = -1
            if not answer[0]:
                living.remove(child)
                left.clear()  # what comes after an error is not asked for; what comes before it is at work
        for child in living:
            if child.piece < 0:
                _give_next_piece(child, left)


def _give_next_piece(child: _Child, left: deque[int]) -> None:
    """Give a child its next piece; one that is lost is met when its answer is read."""
    if left:
        child.piece = left.popleft()
        with suppress(OSError):
            child.connection.send(child.piece)


def _fork_child(work: Callable[[int], object], others: Sequence[_Child]) -> _Child:
    """Fork a child; it hears no signal before it knows what to do then."""
    import multiprocessing

    ours, its = multiprocessing.Pipe()
    closed = [ours, *(other.connection for other in others)]
    process = multiprocessing.get_context("fork").Process(target=_serve_pieces, args=(work, its, closed), daemon=True)
    with _signals_held(), warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads, which `is_safe` looks at
        process.start()
    its.close()
    return _Child(process, ours)


@contextmanager
def _signals_held() -> Iterator[None]:
    """Let signals wait while the block runs."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve_pieces(work: Callable[[int], object], connection: Connection, closed: Sequence[Connection]) -> None:
    """Do pieces until there is nobody to give one, or one has raised something; Ctrl-C is for the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in SIGNALS:
        if number != signal.SIGINT and signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    for other in closed:
        other.close()
    is_done = True
    with suppress(EOFError, OSError), one_blas_thread():
        while is_done:
            piece = connection.recv()
            is_done, value = _try_piece(work, piece)
            connection.send((is_done, value))
    os._exit(0)


def _try_piece(work: Callable[[int], object], piece: int) -> tuple[bool, object]:
    """Whether a piece was done, and what it returned or raised."""
    try:
        return True, work(piece)
    except BaseException as error:
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:
            return False, RuntimeError(f"{type(error).__name__}: {error}")
        return False, error
