"""Threads of our own: for a library that keeps something for every thread that calls it, and for work on all cores.

HiGHS keeps a scheduler for each thread, made at that thread's first solve with as many helpers as this solve asks for;
a later solve there that asks for another number is refused (kError). A user's thread has one from the user's own use of
HiGHS (CVXPY, Pyomo, highspy), or will have: ours on the same thread would meet it, or be met by it. So nothing of ours
is solved on a thread that the user has (`call_in_own_thread`).

The threads of OpenMP do not live in a child that a process forks after their first use, and numba's own threads abort
the process when two callers begin at once. So loops over pieces are shared among these threads too (`share`).

A thread serves one job at a time and waits for the next. Jobs that come at once, from several threads of the user, have
a thread each: one for all of them would make a short solve wait for the end of a long one. A forked child begins
without any, and makes its own. When the interpreter ends, what is still at work (of a daemon thread of the user) is
told to stop and waited for: a library that comes back to an interpreter that is gone aborts the process.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from functools import partial, wraps
from typing import Any, Generic, ParamSpec, TypeVar, cast

P = ParamSpec("P")
S = TypeVar("S")
T = TypeVar("T")

FIRST_LOOK = 0.002
"""Seconds after which a job is looked at for the first time: most are shorter."""
POLL_SECONDS = 0.05
"""How often it is asked afterwards whether the job must stop."""
NAME = "mipfs solver"
"""What our threads are called."""
STOP_SECONDS = 1.0
"""Seconds that an exception, such as Ctrl-C, waits for the job to hear that it must stop."""


Watch = tuple[Callable[[], bool], Callable[[], object]]
"""Whether what is at work must stop, and what tells it so."""


class _GivenUp(BaseException):
    """Ends a job for which nobody waits any more."""


class _Job(Generic[T]):
    """A call that one of our threads makes.

    Parameters
    ----------
    work : callable
    watch : Watch, optional
    """

    def __init__(self, work: Callable[[], T], watch: Watch | None = None) -> None:
        self._work: Callable[[], T] | None = work
        self._watch = watch
        self._lock = threading.Lock()
        self._is_given_up = False
        self._over = threading.Lock()
        self._over.acquire()
        self._value: T | None = None
        self._error: BaseException | None = None

    def do(self) -> None:
        """Make the call, and keep what it returns or raises."""
        assert self._work is not None
        try:
            self._value = self._work()
        except BaseException as error:
            self._error = error
        self._work = self._watch = None  # what they held is let go of before the caller goes on

    def here(self) -> None:
        """Be done by the thread that asks."""
        self.do()
        self.end()

    def end(self) -> None:
        """Wake who waits."""
        self._over.release()

    def inside(self, work: Callable[[], S], watch: Watch) -> S:
        """What a call within this one returns; while it is made, it is the one that is told to stop."""
        with self._lock:
            if self._is_given_up:
                raise _GivenUp
            before = self._watch
            self._watch = watch
        try:
            return work()
        finally:
            with self._lock:
                self._watch = before

    def look(self) -> None:
        """Tell what is at work to stop where it must."""
        watch = self._watch
        if watch is not None and watch[0]():
            with self._lock:
                if self._watch is watch:  # else what must stop is over
                    watch[1]()

    def give_up(self) -> None:
        """Tell what is at work to stop, and have nothing else begin within this call."""
        with self._lock:
            self._is_given_up = True
            if self._watch is not None:
                self._watch[1]()

    def wait(self, seconds: float) -> bool:
        """Wait until it is over, `seconds` at most; whether it is."""
        return self._over.acquire(timeout=seconds)

    def result(self) -> T:
        """What the call returned, or raised, once it is over."""
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[return-value]


class _Thread:
    """A thread that does jobs, one after the other, until the process ends."""

    def __init__(self) -> None:
        self._job: _Job[Any] | None = None
        self._given = threading.Lock()
        self._given.acquire()
        threading.Thread(target=self._serve_jobs, name=NAME, daemon=True).start()

    def begin(self, job: _Job[Any]) -> None:
        """Take a job."""
        self._job = job
        self._given.release()

    def _serve_jobs(self) -> None:
        while True:
            self._given.acquire()
            job, self._job = self._job, None
            assert job is not None
            _own.job = job
            job.do()
            _at_work.discard(job)
            _idle.append(self)
            job.end()
            del job, _own.job


_idle: deque[_Thread] = deque()
"""Threads without a job; the last one that had some comes first, for what it needs is still in a cache."""
_at_work: set[_Job[Any]] = set()
_own = threading.local()
"""Of a thread of ours: the job that it does."""
_ended = threading.Event()
"""The interpreter ends: no thread begins a job any more."""


def all_of_them() -> list[threading.Thread]:
    """Our threads, none of which holds anything while it waits for a job."""
    return [one for one in threading.enumerate() if one.name == NAME]


def _join_jobs() -> None:
    """Have all jobs come to their end."""
    _ended.set()
    jobs = list(_at_work)
    latest = time.monotonic() + STOP_SECONDS
    for job in jobs:
        job.give_up()
    for job in jobs:
        job.wait(max(0.0, latest - time.monotonic()))


def _in_a_child() -> None:
    """None of these threads is in a forked child."""
    _idle.clear()
    _at_work.clear()


atexit.register(_join_jobs)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_a_child)


def call_in_own_thread(
    work: Callable[[], T],
    must_stop: Callable[[], bool] = lambda: False,
    interrupt: Callable[[], object] = lambda: None,
) -> T:
    """What a call returns that one of our threads makes: this one, if it is one of them.

    The thread that is not ours waits, and hears signals and limits meanwhile.

    Parameters
    ----------
    work : callable
    must_stop : callable, optional
        Asked every `POLL_SECONDS`, by the thread that waits.
    interrupt : callable, optional
        Tells the work that it must stop; called by the thread that waits, when `must_stop` says so, or an exception
        comes there, such as Ctrl-C. That goes on at the latest after `STOP_SECONDS`, when the work may not be over.
    """
    own = getattr(_own, "job", None)
    if own is not None:
        return cast("_Job[Any]", own).inside(work, (must_stop, interrupt))
    job = _Job(work, (must_stop, interrupt))
    try:
        _begin_job(job)
        over = job.wait(FIRST_LOOK)
        while not over:
            job.look()
            over = job.wait(POLL_SECONDS)
    except BaseException:
        job.give_up()
        job.wait(STOP_SECONDS)
        raise
    return job.result()


def in_own_thread(function: Callable[P, T]) -> Callable[P, T]:
    """Have one of our threads make all calls of a function: one that solves again and again changes threads once."""

    @wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> T:
        return call_in_own_thread(partial(function, *args, **kwargs))

    return called


def share(work: Callable[[int, int], object], pieces: int, threads: int) -> None:
    """Do work(low, high) for parts of range(pieces) that together are all of it, at once on several threads.

    Parameters
    ----------
    work : callable that lets others run (without the GIL), and whose parts do not meet
    pieces : int
    threads : int >= 1, of which this one is the first
    """
    count = max(1, min(threads, pieces))
    ends = [k * pieces // count for k in range(count + 1)]
    others = [_Job(partial(work, ends[k], ends[k + 1])) for k in range(1, count)]
    for job in others:
        _begin_job(job)
    try:
        work(0, ends[1])
    finally:
        for job in others:
            while not job.wait(POLL_SECONDS):
                pass
    for job in others:
        job.result()


def _begin_job(job: _Job[Any]) -> None:
    """Have a thread do a job; this one, where no other is to be had.

    Once the interpreter ends, that is what its own thread does, whose last functions may still solve; the others are
    daemons, which wait here for the end.
    """
    if _ended.is_set():
        if threading.current_thread() is not threading.main_thread():
            threading.Event().wait()
        return job.here()
    try:
        thread = _idle.pop() if _idle else _Thread()
    except IndexError:  # another caller was faster
        return _begin_job(job)
    except RuntimeError:
        return job.here()
    _at_work.add(job)
    return thread.begin(job)
