# mypy: disable-error-code="no-untyped-call, attr-defined"
"""The one decorator of the numba kernels: machine code is kept on disk under a key over the sources of all kernels.

numba's own cache of a function sees the file that the function stands in, and its code holds that of the kernels which
it calls: after an edit in one file an old copy of it would go on running inside another. `mipfs.compiled.kept` says
where code lies, and under which key; `mipfs.compiled.linked`, how kernels are compiled that other kernels call.
"""

from __future__ import annotations

import hashlib
import inspect
import logging
import pickle
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from numba.core import caching, config
from numba.core.compiler import CompileResult
from numba.core.compiler_lock import global_compiler_lock

from mipfs.compiled import kept
from mipfs.compiled.linked import Kernel, is_for_another

try:
    import fcntl
except ImportError:  # Windows: processes that begin at once compile twice
    fcntl = None  # type: ignore[assignment]

LOG = logging.getLogger("mipfs")
PATIENCE_SECONDS, POLL_SECONDS = 60.0, 0.05
"""How long a process waits for another that compiles the same function, which takes up to half of that; and how often
it looks."""
BROKEN = (EOFError, pickle.UnpicklingError, ValueError, AttributeError, ImportError, KeyError, IndexError, TypeError)
"""What reading a file raises that is not whole, or was not written by this program."""


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function with numba, as ``njit(cache=True, **options)`` does, under the key of all kernels.

    Parameters
    ----------
    **options
        Of ``numba.njit``: ``nogil``, ``fastmath``, ``inline``.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        if config.DISABLE_JIT:
            return function
        kernel = Kernel(function, targetoptions={"nopython": True, "boundscheck": None, **options})
        kernel._cache = Cache(function)
        return kernel

    return decorate


class Cache(caching._Cache):
    """The machine code of a function on disk; of processes that miss the same at once, one compiles it.

    Parameters
    ----------
    function : the Python function
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._files: list[Any] | None = None
        self._lock: Any = None

    @property
    def cache_path(self) -> str:
        """The folder that is written to."""
        return str(kept.home())

    def enable(self) -> None:
        """As numba has it: there is nothing to do."""

    disable = flush = enable

    def files(self) -> list[Any]:
        """numba's files of the function, in every folder that is read; the last is written to, if any can be."""
        if self._files is None:
            base = self._base()
            stamp = self._stamp()
            self._files = [caching.IndexDataCacheFile(str(folder), base, stamp) for folder in kept.folders()]
        return self._files

    def _base(self) -> str:
        code = self._function.__code__
        module = self._function.__module__.removeprefix("mipfs.")
        return f"{module}.{self._function.__qualname__}-{code.co_firstlineno}".replace("<", "").replace(">", "")

    def _stamp(self) -> str:
        """The key; of a kernel that is none of the package's, with a hash over its own file."""
        path = Path(inspect.getfile(self._function))
        if kept.PACKAGE in path.parents or not path.exists():
            return kept.key()
        return f"{kept.key()} {hashlib.sha256(path.read_bytes()).hexdigest()}"

    def has(self, types: tuple[Any, ...], target: Any) -> bool:
        """Whether code for arguments of these types is kept."""
        with suppress(OSError, *BROKEN):
            return any(self._key(types, target) in file._load_index() for file in self.files())
        return False

    def has_any(self) -> bool:
        """Whether code is kept for arguments of whatever types."""
        with suppress(OSError, *BROKEN):
            return any(file._load_index() for file in self.files())
        return False

    def _key(self, types: Any, target: Any, is_linked: bool | None = None) -> Any:
        return types, target.codegen().magic_tuple(), is_for_another() if is_linked is None else is_linked

    def to_link(self, types: Any, target: Any) -> Any:
        """The code for arguments of these types that was made to be linked; None where none is kept."""
        return self._found(types, target, is_linked=True)

    def _found(self, types: Any, target: Any, is_linked: bool | None = None) -> Any:
        for file in self.files():
            try:
                reduced = file.load(self._key(types, target, is_linked))
                if reduced is not None:
                    return CompileResult._rebuild(target, *reduced)
            except (OSError, *BROKEN) as error:
                LOG.info("machine code in %s is not used: %s", file._index_path, error)
        return None

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The code for a signature; None where none is kept, and this process is to compile it."""
        target_context.refresh()
        found = self._found(sig, target_context)
        if found is not None or self._lock is not None or kept.home() is None:
            return found
        self._take()
        found = self._found(sig, target_context)
        if found is not None:
            self._release()
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep code; where it cannot be written, that is said once, and the program goes on."""
        try:
            if kept.home() is None:
                kept.unkept("there is no folder that can be written to, and that only this user can write to")
            elif not data.library.has_dynamic_globals:
                self._save(
                    self.files()[-1], self._key(sig, data.target_context), data._replace(type_annotation="")._reduce()
                )
        except OSError as error:
            kept.unkept(str(error.strerror or error))
        finally:
            self._release()

    def _save(self, file: Any, key: Any, reduced: Any) -> None:
        try:
            file.save(key, reduced)
        except BROKEN:  # what is there is not whole
            file.flush()
            file.save(key, reduced)

    def _take(self) -> None:
        """Wait for whoever compiles the function, who may die or meet an error: not for ever."""
        folder = kept.home()
        if fcntl is None or folder is None:
            return
        with suppress(OSError):
            self._lock = open(folder / f"{self._base()}.lock", "wb")  # noqa: SIM115
        end = time.monotonic() + PATIENCE_SECONDS
        while self._lock is not None and time.monotonic() < end:
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(POLL_SECONDS)
            except OSError:  # a file system that knows no locks
                return
            else:
                return

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None


def is_kept(function: Any, arguments: tuple[Any, ...] | None = None) -> bool:
    """Whether machine code of a function for arguments of these types, or of any, lies on disk, or nothing can."""
    cache = getattr(function, "_cache", None)
    if not isinstance(cache, Cache) or kept.home() is None:
        return True
    if arguments is None:
        return cache.has_any()
    with global_compiler_lock:  # what numba registers meanwhile is one thread's
        function.targetctx.refresh()
        return cache.has(arguments, function.targetctx)
