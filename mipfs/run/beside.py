"""Kernels that take long to compile are compiled in processes beside, at the same time, before the run that calls them.

The process that answers then loads machine code, and neither its time nor its memory goes into compiling. Where no code
can be kept, or a process beside fails, it compiles what is missing itself. Nothing is left running: a process beside
ends when its work is done, when it is told to, or when its parent is gone.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from mipfs.compiled import is_kept
from mipfs.plumbing.machine import cores
from mipfs.pointers import Step

POLL_SECONDS = 0.05
"""How often it is asked whether the processes are done."""
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


def missing(lists: Sequence[Sequence[Step]]) -> list[list[Job]]:
    """The steps of every list of which no machine code is kept; lists without any are left out."""
    found = [[job_of(s) for s in steps if not is_kept(s.function, s.type.arguments)] for steps in lists]
    return [jobs for jobs in found if jobs]


def compile_beside(lists: Sequence[Sequence[Job]], must_stop: Callable[[], bool]) -> None:
    """Do every list of jobs in a process of its own, as many at a time as there are cores, and wait for all.

    Where a job has no name that another process can import, or no process can be started, this one is left to do them.
    """
    running: list[subprocess.Popen[bytes]] = []
    try:
        waiting = [pickle.dumps(list(jobs)) for jobs in lists]
    except (pickle.PicklingError, AttributeError, TypeError):
        return
    try:
        while (waiting or running) and not must_stop():
            while waiting and len(running) < cores():
                running.append(_started(waiting.pop(0)))
            time.sleep(POLL_SECONDS)
            running = [process for process in running if not _has_ended(process)]
    except OSError:
        return
    finally:
        for process in running:
            process.kill()
            process.wait()
            _has_ended(process)


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Whether a process has ended; its input is closed then."""
    ended = process.poll() is not None
    if ended and process.stdin is not None:
        process.stdin.close()
    return ended


def _started(jobs: bytes) -> subprocess.Popen[bytes]:
    """A process that does some pickled jobs; its standard input stays open as long as this process lives."""
    process = subprocess.Popen(
        [sys.executable, "-c", CHILD.format(path=sys.path)],
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert process.stdin is not None
    process.stdin.write(jobs)
    process.stdin.flush()
    return process


def work() -> None:
    """Do the jobs that come by standard input; end when it is closed."""
    source = sys.stdin.buffer
    jobs: list[Job] = pickle.load(source)

    def watch() -> None:
        source.read()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    for module, name, given in jobs:
        getattr(import_module(module), name)(*given)
