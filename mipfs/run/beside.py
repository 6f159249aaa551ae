"""Kernels that take long to compile are compiled in processes beside, at the same time, before the run that calls them.

The process that answers then loads machine code, and neither its time nor its memory goes into compiling. Where no code
can be kept, or a process beside fails, it compiles what is missing itself. Nothing is left running: a process beside
does one list of kernels after another, and ends when none is left, when it is told to, or when its parent is gone.
"""

from __future__ import annotations

import gc
import os
import pickle
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from queue import SimpleQueue
from typing import IO, Any, cast

from numba.core import event

from mipfs.compiled.cache import is_kept
from mipfs.plumbing.machine import cores, python_at
from mipfs.pointers import Step

POLL_SECONDS = 0.05
"""How often it is asked whether the processes are done."""
FUNCTIONS = 65
"""Functions that a list of jobs compiles, about: what a bar is drawn against."""
GARBAGE = 3000
"""New objects of a process beside after which Python looks for garbage."""
FUNCTION, LIST = b".", b"\n"
"""What a process beside writes when a function is compiled, and when a list of jobs is done."""

Job = tuple[str, str, tuple[Any, ...]]
"""A function by module and name, and what it is called with."""


def job_of(step: Step) -> Job:
    """Compile a step."""
    function = step.function.py_func
    return __name__, "compile_one", (function.__module__, function.__name__, step.type.arguments)


def compile_one(module: str, name: str, arguments: tuple[Any, ...]) -> None:
    """Compile a function for arguments of some types."""
    getattr(import_module(module), name).compile(arguments)


@dataclass
class Progress:
    """How far compiling is: what a line on a terminal shows.

    functions : compiled so far, here and beside; expected : of these, about; 0 where that is not known
    began : by `time.monotonic`; is_over : whether all is compiled
    """

    functions: int = 0
    expected: int = 0
    began: float = field(default_factory=time.monotonic)
    is_over: bool = False


def missing(lists: Sequence[Sequence[Step]]) -> list[list[Job]]:
    """The steps of every list of which no machine code is kept; lists without any are left out."""
    found = [[job_of(s) for s in steps if not is_kept(s.function, s.type.arguments)] for steps in lists]
    return [jobs for jobs in found if jobs]


def compile_beside(
    lists: Sequence[Sequence[Job]],
    must_stop: Callable[[], bool],
    progress: Progress | None = None,
    on_end: Callable[[int, int], None] = lambda _list, _code: None,
) -> None:
    """Do every list of jobs in another process, in as many as there are cores, and wait for all.

    Where a job has no name that another process can import, or no process can be started, this one is left to do them.
    `on_end` is told the number of a list that has ended, and 0 or the exit code of the process that it ended.
    """
    progress = Progress() if progress is None else progress
    workers: list[_Worker] = []
    try:
        waiting = dict(enumerate([pickle.dumps(list(jobs)) for jobs in lists]))
    except (pickle.PicklingError, AttributeError, TypeError):
        return
    try:
        while (waiting or any(worker.at is not None for worker in workers)) and not must_stop():
            idle = [worker for worker in workers if worker.at is None]
            while waiting and (idle or len(workers) < cores()):
                if not idle:
                    idle.append(_Worker(progress))
                    workers.append(idle[0])
                k = next(iter(waiting))
                idle.pop().begin(k, waiting.pop(k))
            time.sleep(POLL_SECONDS)
            for worker in workers:
                worker.tell(on_end)
            workers = [worker for worker in workers if worker.is_alive]
    except OSError:
        return
    finally:
        for worker in workers:
            worker.end()


class _Worker:
    """A process that does one list of jobs after another; its standard input stays open as long as this process lives.

    It writes `FUNCTION` for every function that it has compiled, and `LIST` for every list that is done.

    Attributes
    ----------
    at : int or None, the number of the list that it does
    is_alive : bool
    """

    def __init__(self, progress: Progress) -> None:
        self.at: int | None = None
        self.is_alive = True
        self._done = threading.Event()
        self._process = subprocess.Popen(
            python_at("mipfs.run.beside", "serve_compile_jobs"),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        threading.Thread(target=self._hear_progress, args=(progress,), daemon=True).start()

    def _hear_progress(self, progress: Progress) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as told:
            while said := told.read(1):
                if said == LIST:
                    self._done.set()
                else:
                    progress.functions += 1

    def begin(self, k: int, jobs: bytes) -> None:
        """Hand over pickled jobs, list `k`."""
        assert self._process.stdin is not None
        self.at = k
        self._done.clear()
        self._process.stdin.write(jobs)
        self._process.stdin.flush()

    def tell(self, on_end: Callable[[int, int], None]) -> None:
        """Tell of the list that has ended, if it has."""
        if self.at is None:
            return
        code = self._process.poll()
        if not self._done.is_set() and code is None:
            return
        k, self.at = self.at, None
        self.is_alive = code is None
        if not self.is_alive:
            self.end()
        on_end(k, 0 if self._done.is_set() else cast(int, code))

    def end(self) -> None:
        """End the process, whatever it does."""
        self._process.kill()
        self._process.wait()
        with suppress(OSError):
            cast(IO[bytes], self._process.stdin).close()


def is_beside() -> bool:
    """Whether this process only compiles for another, and starts none itself."""
    return _Beside.here


class _Beside:
    here = False


def serve_compile_jobs() -> None:
    """Do the lists of jobs that come by standard input, and tell of every function; end when it is closed."""
    _Beside.here = True
    gc.freeze()  # what was imported stays; the compiler's own data are looked through less often, a tenth of its time
    gc.set_threshold(GARBAGE)
    told = os.dup(1)
    os.dup2(2, 1)
    lists: SimpleQueue[list[Job]] = SimpleQueue()

    def listen() -> None:
        try:
            with open(0, "rb", closefd=False) as given:  # not sys.stdin's buffer, whose lock Python wants at its end
                while given.peek(1):
                    lists.put(pickle.load(given))
        finally:
            os._exit(1)

    threading.Thread(target=listen, daemon=True).start()
    cast(Any, event).register("numba:compile", _Teller(told))
    while True:
        for module, name, given in lists.get():
            getattr(import_module(module), name)(*given)
        os.write(told, LIST)


class _Teller(event.Listener):
    """Writes a byte for every function that was compiled."""

    def __init__(self, to: int) -> None:
        self._to = to

    def on_start(self, event: Any) -> None:
        """Nothing to say yet."""

    def on_end(self, event: Any) -> None:
        """One more."""
        os.write(self._to, FUNCTION)
