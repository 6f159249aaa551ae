"""What a program may use of the machine."""

from __future__ import annotations

import gc
import multiprocessing
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import IO, Any

SAFE_PATH = "PYTHONSAFEPATH"
"""Where it is set, Python does not look into the current folder."""
GARBAGE = 250_000
"""New objects after which a process of ours looks for garbage."""
SPIN_TICKS_LOG2 = 16
"""How long a thread of OpenBLAS that has no work asks for some before it sleeps: 2¹⁶ ticks of the clock, some 20 µs."""


_sharing: ContextVar[int] = ContextVar("sharing", default=0)


def cores() -> int:
    """Cores that what runs here may use: those of the process, or its share of them beside others (`sharing_cores`).

    In a worker of joblib it is what joblib leaves to it, so that fits of a search that runs on all cores, such as
    scikit-learn's, do not each take all of them. Where the system does not say, all there are.
    """
    usable = getattr(os, "sched_getaffinity", None)
    there = (os.cpu_count() or 1) if usable is None else len(usable(0))
    beside = _sharing.get()
    return max(1, there // beside) if beside else min(there, _left_by_joblib() or there)


@contextmanager
def sharing_cores(count: int) -> Iterator[None]:
    """A block that runs beside others, `count` with it, on the cores of the process."""
    before = _sharing.set(count)
    try:
        yield
    finally:
        _sharing.reset(before)


def _left_by_joblib() -> int | None:
    """Threads that a worker of joblib may use; None where this is none."""
    parallel = sys.modules.get("joblib.parallel")
    if parallel is None:
        return None
    backend, _ = parallel.get_active_backend()
    if not getattr(backend, "nesting_level", None):
        return None
    told = os.environ.get("OMP_NUM_THREADS", "") if multiprocessing.parent_process() is not None else ""
    return max(1, int(told)) if told.isdecimal() else 1


def new_session_options() -> dict[str, Any]:
    """What `subprocess.Popen` is told where Ctrl-C is for the caller, who decides what becomes of the process."""
    if sys.platform == "win32":
        return {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
    return {"start_new_session": True}


def python_at(module: str, function: str) -> list[str]:
    """The command of a process of Python that calls a function of a module of the package.

    It finds what this process finds, and nothing in the folder that it is started in: Python's `-m` and `-c` would look
    there first, and run a file of anybody's that has the name of a module.
    """
    package = str(Path(__file__).parents[2])
    places = sys.path if package in sys.path else [*sys.path, package]
    begins = f"import sys; sys.path[:] = {places!r}; from {module} import {function}; {function}()"
    return [sys.executable, "-c", begins]


def process_of(module: str, errors: int | IO[bytes]) -> subprocess.Popen[bytes]:
    """A process at the `main` of a module of the package, that reads a request and writes its answer; apart from
    Ctrl-C.
    """
    return subprocess.Popen(
        python_at(module, "main"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, **new_session_options()
    )


@contextmanager
def safe_path() -> Iterator[None]:
    """Let no process of Python that a library starts in a block look for modules in the current folder."""
    before = os.environ.get(SAFE_PATH)
    os.environ[SAFE_PATH] = "1"
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(SAFE_PATH, None)
        else:
            os.environ[SAFE_PATH] = before


def at_work(asked: int | None) -> int:
    """How many threads work at a time where `asked` may: no more than there are cores, for they would only be in each
    other's way.
    """
    return min(asked or cores(), cores())


def begin_lightly() -> None:
    """Let a process of ours, and those that it starts, spend nothing on what nobody needs; before NumPy loads.

    What it loads is 200,000 objects and no garbage, and Python looks through them 280 times. NumPy's and SciPy's
    OpenBLAS each start a thread for every further core when they are loaded, and every one of them spins for a tenth of
    a second before it first sleeps. What the user has said of it stays.
    """
    gc.set_threshold(GARBAGE)
    os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", str(SPIN_TICKS_LOG2))


class _Blas:
    """How many blocks want one thread for linear algebra, and what the process had before the first of them."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.count = 0
        self.before: Any = None
        self.libraries: Any = None
        self.imports = 0

    def begin(self) -> None:
        with self.lock:
            if self.count == 0:
                self.before = self.found().limit(limits=1, user_api="blas")
            self.count += 1

    def found(self) -> Any:
        """The libraries of the process, looked for again where something was imported since: that takes 2 ms."""
        from threadpoolctl import ThreadpoolController

        if self.libraries is None or self.imports != len(sys.modules):
            self.libraries = ThreadpoolController()
            self.imports = len(sys.modules)
        return self.libraries

    def end(self) -> None:
        with self.lock:
            if self.count == 1:
                self.before.restore_original_limits()
            self.count = max(0, self.count - 1)

    def note_fork(self) -> None:
        """In a child: whatever blocks there were, their threads are the parent's."""
        self.lock = threading.Lock()
        if self.count:
            self.count = 0
            self.before.restore_original_limits()


_blas = _Blas()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_blas.note_fork)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Run a block with one thread for linear algebra, where matrices are too small for more.

    The limit is the process's. Blocks that overlap, in several threads, leave it as it was before the first of them.
    """
    _blas.begin()
    try:
        yield
    finally:
        _blas.end()
