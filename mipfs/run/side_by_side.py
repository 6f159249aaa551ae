"""Fits side by side, in processes: the numbers are those of one after the other, since every fit is one by itself.

This process does fits as well, from the front of the same queue, so that a few short ones cost no process: others begin
after `BEGIN_SECONDS`, and not while machine code is being compiled, which they would then compile again. What runs gets
an equal share of the cores for its threads. The processes are loky's, which need no guard around a script.
"""

from __future__ import annotations

import pickle
import queue
import tempfile
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Generic, TypeVar

from mipfs.errors import UsageError
from mipfs.plumbing.declared import Count, check_value
from mipfs.plumbing.machine import begin_lightly, cores, safe_path, sharing_cores
from mipfs.plumbing.registry import Registry
from mipfs.plumbing.signals import hearing_signals
from mipfs.run import warm_up

BEGIN_SECONDS = 0.5
"""After which other processes begin, each of which takes a second to be there."""
POLL_SECONDS = 0.05

T = TypeVar("T")
Work = Callable[[Any, Any], T]
"""A function of a module: of what all tasks share, and of one task."""


class LostFit(UsageError):
    """The process of a fit ended before the fit did, also when it had nothing else to do."""

    def __init__(self) -> None:
        super().__init__(
            "the process of a fit was ended by the system, mostly for lack of memory; give fewer jobs, or memory_limit"
        )


def jobs_of(asked: int | None, count: int) -> int:
    """How many of `count` fits run at a time: as many as there are cores for them, or as many as are asked for."""
    return max(1, min(cores() if asked is None else check_value("jobs", asked, Count), count))


def limits_of(options: Mapping[str, Any], jobs: int) -> dict[str, Any]:
    """The options of a driver where `jobs` runs share the limit of the memory."""
    limit = options.get("memory_limit")
    return {**options, **({} if limit is None else {"memory_limit": limit / jobs})}


def in_order(work: Work[T], given: Any, tasks: Sequence[Any], jobs: int | None = None) -> Generator[T, None, None]:
    """What `run_tasks` gives, in the order of the tasks; raises `LostFit` where a process did."""
    kept: dict[int, T | LostFit] = {}
    at = 0
    with closing(run_tasks(work, given, tasks, jobs)) as found:
        for k, value in found:
            kept[k] = value
            while at in kept:
                first = kept.pop(at)
                if isinstance(first, LostFit):
                    raise first
                yield first
                at += 1


def run_tasks(
    work: Work[T],
    given: Any,
    tasks: Sequence[Any],
    jobs: int | None = None,
    *,
    here: bool = True,
    more: Callable[[], bool] = lambda: True,
) -> Generator[tuple[int, T | LostFit], None, None]:
    """Do tasks side by side; the number of each and what it gave, as they come, or that its process died.

    Whoever closes the generator before its end, as Ctrl-C does, ends what is at work elsewhere.

    Parameters
    ----------
    work : callable of a module, of `given` and a task
    given : what all tasks share; it travels once
    tasks : sequence
    jobs : int >= 1, optional
        By default as many as this process may use cores.
    here : bool, default True
        Whether this process does tasks too, where there are several at a time.
    more : callable, optional
        Whether another task may begin; those that are at work come to their end.

    Raises
    ------
    UsageError
        `jobs` out of its range; what the work raises is raised as it is.
    """
    count = jobs_of(jobs, len(tasks))
    if count == 1:
        for k, task in enumerate(tasks):
            if not more():
                return
            yield from _hand_on(k, *_do_here(work, given, task))
        return
    waiting = deque(enumerate(tasks))
    with tempfile.TemporaryDirectory(prefix="mipfs-fits-") as folder, closing(_Others(folder, work, given)) as others:
        others.begin(waiting, count, here)
        while waiting and here and more():
            try:
                k, task = waiting.popleft()
            except IndexError:  # another process was faster
                break
            with sharing_cores(count):
                done = _do_here(work, given, task)
            yield from _hand_on(k, *done)
            yield from others.found()
        while others.are_at_work:
            if waiting and not more():
                waiting.clear()
            yield from others.found(POLL_SECONDS)
        yield from others.found()
        while waiting and more():  # what cannot travel
            k, task = waiting.popleft()
            yield from _hand_on(k, *_do_here(work, given, task))


def _do_here(work: Work[T], given: Any, task: Any) -> tuple[T, bool]:
    """What a task gave in this process, and whether a signal came meanwhile, maybe at the very end of a run."""
    with hearing_signals() as strike:
        return work(given, task), strike.has_been


def _hand_on(k: int, value: T, is_last: bool) -> Generator[tuple[int, T | LostFit], None, None]:
    """Hand on what a task gave; raises `KeyboardInterrupt` after the last."""
    yield k, value
    if is_last:
        raise KeyboardInterrupt


Told = tuple[T | LostFit, Sequence[Warning]]
"""What a task gave, and what it warned of."""


@dataclass(frozen=True)
class _Asked:
    """What a process knows of the tasks before the first of them."""

    file: str
    count: int


class _Others(Generic[T]):
    """Other processes, and the thread of this one that hands them tasks."""

    def __init__(self, folder: str, work: Work[T], given: Any) -> None:
        self._file = Path(folder) / "given.pickle"
        self._work, self._given = work, given
        self._found: queue.SimpleQueue[tuple[int, Told[T]] | BaseException] = queue.SimpleQueue()
        self._over = threading.Event()
        self._count = 0
        self._thread: threading.Thread | None = None

    def begin(self, waiting: deque[tuple[int, Any]], count: int, here: bool) -> None:
        """Hand out tasks that wait; where this process does some, to one process fewer and from `BEGIN_SECONDS` on."""
        self._count = count - here
        self._thread = threading.Thread(target=self._hand_out, args=(waiting, count, here), daemon=True)
        self._thread.start()

    @property
    def are_at_work(self) -> bool:
        """Whether something may still come."""
        return self._thread is not None and self._thread.is_alive()

    def found(self, seconds: float = 0.0) -> Iterator[tuple[int, T | LostFit]]:
        """What came, and what it warned of; an error among it is raised. Some seconds are waited for the first."""
        with suppress(queue.Empty):
            while True:
                with hearing_signals():
                    came = self._found.get(timeout=seconds) if seconds else self._found.get_nowait()
                if isinstance(came, BaseException):
                    raise came
                k, (value, said) = came
                for message in said:
                    warnings.warn(message, stacklevel=2)
                yield k, value
                seconds = 0.0

    def close(self) -> None:
        """End the processes, whatever they do."""
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    def _hand_out(self, waiting: deque[tuple[int, Any]], count: int, here: bool) -> None:
        began = time.monotonic()
        while here and (time.monotonic() < began + BEGIN_SECONDS or warm_up.is_at_work()):
            if self._over.wait(POLL_SECONDS) or not waiting:
                return
        import cloudpickle

        try:
            try:
                told = cloudpickle.dumps((Registry.all_entries(), cloudpickle.dumps((self._work, self._given))))
            except (pickle.PicklingError, TypeError, AttributeError, RecursionError):
                return  # what cannot travel is done here
            self._file.write_bytes(told)
            self._keep_busy(waiting, _Asked(str(self._file), count))
        except BaseException as error:
            self._found.put(error)

    def _keep_busy(self, waiting: deque[tuple[int, Any]], asked: _Asked) -> None:
        """Keep the processes at work; those of a pool that broke, one by one, alone."""
        from loky.process_executor import TerminatedWorkerError

        while waiting and not self._over.is_set():
            out: dict[Future[Any], tuple[int, Any]] = {}
            with _process_pool(self._count, self._over) as pool:
                try:
                    while (waiting or out) and not self._over.is_set():
                        while waiting and len(out) < self._count:
                            with suppress(IndexError):
                                k, task = waiting.popleft()
                                out[pool.submit(_do_task, asked, task)] = k, task
                        done, _ = wait(out, timeout=POLL_SECONDS, return_when=FIRST_COMPLETED)
                        for future in done:
                            found = future.result()
                            self._found.put((out.pop(future)[0], found))
                except TerminatedWorkerError:
                    pass
            for k, task in out.values():
                self._run_task_alone(k, task, asked)

    def _run_task_alone(self, k: int, task: Any, asked: _Asked) -> None:
        """Do a task that was out when some process ended in one that has nothing else to do."""
        from loky.process_executor import TerminatedWorkerError

        if self._over.is_set():
            return
        with _process_pool(1, self._over) as pool:
            future = pool.submit(_do_task, asked, task)
            while not self._over.is_set():
                if wait([future], timeout=POLL_SECONDS).done:
                    break
            else:
                return
            try:
                self._found.put((k, future.result()))
            except TerminatedWorkerError:
                self._found.put((k, (LostFit(), ())))


@contextmanager
def _process_pool(count: int, over: threading.Event) -> Iterator[Any]:
    """Processes of loky; when the block ends, so do they, and where nobody waits any more, at once."""
    from loky import ProcessPoolExecutor

    with safe_path():
        pool = ProcessPoolExecutor(count, initializer=begin_lightly)
        try:
            yield pool
        finally:
            pool.shutdown(wait=True, kill_workers=over.is_set())


@lru_cache(maxsize=1)
def _load_shared(file: str) -> tuple[Work[Any], Any]:
    """What the tasks of this process share."""
    with open(file, "rb") as stream:
        entries, told = pickle.load(stream)
    Registry.enter_all(entries)
    work, given = pickle.loads(told)
    return work, given


def _do_task(asked: _Asked, task: Any) -> tuple[Any, list[Warning]]:
    """What a process does: a task, and what it warns of."""
    work, given = _load_shared(asked.file)
    with sharing_cores(asked.count), warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        value = work(given, task)
    return value, [one.message for one in said if isinstance(one.message, Warning)]
