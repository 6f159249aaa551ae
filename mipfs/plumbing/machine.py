"""What a program may use of the machine."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

SAFE_PATH = "PYTHONSAFEPATH"
"""Where it is set, Python does not look into the current folder."""


def cores() -> int:
    """Cores that this process may use; where the system does not say, all there are."""
    usable = getattr(os, "sched_getaffinity", None)
    return (os.cpu_count() or 1) if usable is None else len(usable(0))


def apart() -> dict[str, Any]:
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
        python_at(module, "main"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, **apart()
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

    def forked(self) -> None:
        """In a child: whatever blocks there were, their threads are the parent's."""
        self.lock = threading.Lock()
        if self.count:
            self.count = 0
            self.before.restore_original_limits()


_blas = _Blas()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_blas.forked)


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
