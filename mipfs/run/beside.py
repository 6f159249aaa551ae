"""Kernels that take long to compile are compiled in processes beside, at the same time, before the run that calls them.

The process that answers then loads machine code, and neither its time nor its memory goes into compiling. Where no code
can be kept, or a process beside fails, it compiles what is missing itself. Nothing is left running: a process beside
ends when its work is done, when it is told to, or when its parent is gone.
"""

from __future__ import annotations

import gc
import os
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, cast

from numba.core import event

from mipfs.compiled import is_kept
from mipfs.plumbing.machine import cores
from mipfs.pointers import Step

POLL_SECONDS = 0.05
"""How often it is asked whether the processes are done."""
FUNCTIONS = 65
"""Functions that a list of jobs compiles, about: what a bar is drawn against."""
GARBAGE = 3000
"""New objects of a process beside after which Python looks for garbage."""
CHILD = "import sys; sys.path[:] = {path!r}; from mipfs.run.beside import work; work()"

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
    """Do every list of jobs in a process of its own, as many at a time as there are cores, and wait for all.

    Where a job has no name that another process can import, or no process can be started, this one is left to do them.
    `on_end` is told the number of a list that has ended, and the exit code of its process.
    """
    progress = Progress() if progress is None else progress
    running: dict[int, subprocess.Popen[bytes]] = {}
    try:
        waiting = dict(enumerate([pickle.dumps(list(jobs)) for jobs in lists]))
    except (pickle.PicklingError, AttributeError, TypeError):
        return
    try:
        while (waiting or running) and not must_stop():
            while waiting and len(running) < cores():
                k = next(iter(waiting))
                running[k] = _started(waiting.pop(k), progress)
            time.sleep(POLL_SECONDS)
            for k in [k for k, process in running.items() if _has_ended(process)]:
                on_end(k, running.pop(k).returncode)
    except OSError:
        return
    finally:
        for process in running.values():
            process.kill()
            process.wait()
            _has_ended(process)


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Whether a process has ended; its input is closed then."""
    ended = process.poll() is not None
    if ended and process.stdin is not None:
        process.stdin.close()
    return ended


def _started(jobs: bytes, progress: Progress) -> subprocess.Popen[bytes]:
    """A process that does some pickled jobs; its standard input stays open as long as this process lives.

    It writes a byte for every function that it has compiled.
    """
    process = subprocess.Popen(
        [sys.executable, "-c", CHILD.format(path=sys.path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    told = process.stdout

    def count() -> None:
        with told:
            while told.read(1):
                progress.functions += 1

    threading.Thread(target=count, daemon=True).start()
    process.stdin.write(jobs)
    process.stdin.flush()
    return process


def is_beside() -> bool:
    """Whether this process only compiles for another, and starts none itself."""
    return _Beside.here


class _Beside:
    here = False


def work() -> None:
    """Do the jobs that come by standard input, and tell of every function; end when it is closed."""
    _Beside.here = True
    gc.freeze()  # what was imported stays; the compiler's own data are looked through less often, a tenth of its time
    gc.set_threshold(GARBAGE)
    told = os.dup(1)
    os.dup2(2, 1)
    jobs: list[Job] = pickle.load(sys.stdin.buffer)

    def watch() -> None:
        while os.read(0, 1):  # not through the buffer, whose lock Python wants at its end
            pass
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    cast(Any, event).register("numba:compile", _Teller(told))
    for module, name, given in jobs:
        getattr(import_module(module), name)(*given)


class _Teller(event.Listener):
    """Writes a byte for every function that was compiled."""

    def __init__(self, to: int) -> None:
        self._to = to

    def on_start(self, event: Any) -> None:
        """Nothing to say yet."""

    def on_end(self, event: Any) -> None:
        """One more."""
        os.write(self._to, b".")
