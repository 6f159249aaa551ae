# mypy: disable-error-code="no-untyped-call, attr-defined, import-untyped"
"""The one file that knows how numba's cache is made inside: machine code in the folders, and under the key, of `kept`.

A function's machine code holds copies of those that it calls, under their names, and of equal names the process runs
those that it loaded first. Where ``fastmath`` lets the compiler choose the order of a sum, copies differ in the last
digits. So a callee's own code is loaded before any copy of it, as where it is compiled: the digits of a process depend
neither on what it solved before, nor on who compiled.

Nothing of it has to be as this file expects. Where a name is missing, takes other arguments, or fails, kernels are kept
by numba's own cache, as ``njit(cache=True)`` keeps them: in its folders, under its keys.
"""

from __future__ import annotations

import inspect
import logging
import pickle
import re
import time
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numba

from mipfs.compiled import kept, made_of

try:
    import fcntl
except ImportError:  # Windows: processes that begin at once compile twice
    fcntl = None  # type: ignore[assignment]
IndexDataCacheFile: Any = None
CompileResult: Any = None
rtsys: Any = None
with suppress(ImportError, AttributeError):
    from numba.core import caching, compiler, runtime

    IndexDataCacheFile, CompileResult, rtsys = caching.IndexDataCacheFile, compiler.CompileResult, runtime.rtsys

LOG = logging.getLogger("mipfs")
Kernel = tuple[str, str, Any]
"""A kernel by module and name, and the types of its arguments."""
_own: dict[str, Kernel] = {}
"""Whose own code this process has, by its name in LLVM."""
NEWEST = (0, 68)
"""The newest version of numba that this was tried with."""
PATIENCE_SECONDS, POLL_SECONDS = 60.0, 0.05
"""How long a process waits for another that compiles the same function, which takes up to half of that; and how often
it looks."""
BROKEN = (EOFError, pickle.UnpicklingError, ValueError, AttributeError, ImportError, KeyError, IndexError, TypeError)
"""What reading a file raises that is not whole, or was not written by this program."""
COPY = re.compile(r'^define linkonce_odr [^@]*@"?([^"(]+)"?\(.*?^}$', re.MULTILINE | re.DOTALL)
"""A function in LLVM's text that was copied from the code of another; its name."""
FREE = re.compile(r"\b(?:fast|reassoc|contract)\b")
"""How a sum is marked whose order, or rounding, is left to the compiler."""
OTHERWISE = "kept-by-numba"
"""The file in a folder of machine code that says that keeping it here failed: later processes leave it to numba."""


def keep(kernel: Any) -> None:
    """Let machine code of a kernel be kept: in the folders of `kept`, or by numba's own cache.

    Parameters
    ----------
    kernel : what ``njit`` makes of a function
    """
    numbas: Any = type(getattr(kernel, "_cache", None))
    if is_as_expected() and _asks_known_cache(numbas):
        kernel._cache = KernelCache(kernel)
    else:
        _leave_to_numba(kernel)


def is_kept(kernel: Any, arguments: tuple[Any, ...] | None = None) -> bool:
    """Whether machine code of a kernel for arguments of these types, or of any, lies on disk, or nobody can tell."""
    kept_by = getattr(kernel, "_cache", None)
    if not isinstance(kept_by, KernelCache) or kept.home() is None or has_failed():
        return True
    return kept_by.has(kernel, arguments)


@cache
def is_as_expected() -> bool:
    """Whether numba has what this file uses."""
    wanted = [
        (IndexDataCacheFile, "load", 1), (IndexDataCacheFile, "save", 2), (IndexDataCacheFile, "flush", 0),
        (IndexDataCacheFile, "_load_index", 0), (CompileResult, "_reduce", 0), (type(rtsys), "initialize", 1),
    ]  # fmt: skip
    is_there = all(_takes_so_many(getattr(of, name, None), count + 1) for of, name, count in wanted)
    return is_there and hasattr(CompileResult, "_rebuild")


@cache
def has_failed() -> bool:
    """Whether keeping code in our folder failed in an earlier process, which said so there."""
    home = kept.home()
    return home is not None and (home / OTHERWISE).exists()


def _takes_so_many(function: Any, count: int) -> bool:
    """Whether a function takes a number of arguments."""
    try:
        inspect.signature(function).bind(*range(count))
    except (TypeError, ValueError):
        return False
    return True


def _make_ready(target: Any) -> None:
    """Let a process run machine code: it counts references, and numba's ways to compile need not be loaded for it.

    These take a third of the time of a start where all code is kept. A newer numba may want more, and gets it.
    """
    if numba.version_info.short > NEWEST:
        target.refresh()
    else:
        rtsys.initialize(target)


@cache
def _asks_known_cache(numbas: Any) -> bool:
    """Whether a kernel asks its cache, one of this class, as is known, and for nothing else."""
    asked = (getattr(numbas, "load_overload", None), 3), (getattr(numbas, "save_overload", None), 3)
    others = [name for name in dir(numbas) if not name.startswith("_")]
    return all(_takes_so_many(*one) for one in asked) and all(hasattr(KernelCache, name) for name in others)


def _leave_to_numba(kernel: Any) -> Any:
    """numba's own cache of a kernel; None where there is no folder that it can write to."""
    before = getattr(kernel, "_cache", None)
    with suppress(RuntimeError, OSError):
        kernel.enable_caching()
    now = getattr(kernel, "_cache", None)
    return None if now is before else now


def copied_kernels(code: str) -> list[Kernel]:
    """The kernels of which some code, in LLVM's text, holds copies that may differ in the last digits."""
    found = [name for name, body in ((one[1], one[0]) for one in COPY.finditer(code)) if FREE.search(body)]
    return [_own[name] for name in found if name in _own]


class KernelCache:
    """The machine code of a kernel on disk, as numba's dispatcher asks for it.

    Of processes that miss the same at once, one compiles it.

    Parameters
    ----------
    kernel : what ``njit`` makes of a function
    """

    def __init__(self, kernel: Any) -> None:
        self._kernel = kernel
        self._function = kernel.py_func
        self._files: list[Any] | None = None
        self._lock: Any = None

    @property
    def cache_path(self) -> str:
        """The folder that is written to."""
        return str(kept.home())

    def enable(self) -> None:
        """As numba has it: there is nothing to do."""

    disable = flush = enable

    def _in_folders(self) -> list[Any]:
        """numba's files of the function, in every folder that is read; the last is written to, if any can be."""
        if self._files is None:
            base, stamp = self._cache_name(), self._source_key()
            self._files = [IndexDataCacheFile(str(folder), base, stamp) for folder in kept.cache_folders()]
        return self._files

    def _cache_name(self) -> str:
        code = self._function.__code__
        module = self._function.__module__.removeprefix("mipfs.")
        return f"{module}.{self._function.__qualname__}-{code.co_firstlineno}".replace("<", "").replace(">", "")

    def _source_key(self) -> str:
        """The key; of a kernel that is none of the package's, with a hash over what its code is made of."""
        return (
            f"{kept.key()} {made_of.hash_of_kernel(self._function)}"
            if made_of.is_own_kernel(self._function)
            else kept.key()
        )

    def has(self, kernel: Any, types: tuple[Any, ...] | None) -> bool:
        """Whether code for arguments of these types, or of any, is kept."""
        with suppress(OSError, *BROKEN):
            found = [file._load_index() for file in self._in_folders()]
            return any(found) if types is None else any(self._type_key(types, kernel.targetctx) in one for one in found)
        return False

    def _type_key(self, types: Any, target: Any) -> Any:
        return types, target.codegen().magic_tuple()

    def _load_kept(self, types: Any, target: Any) -> Any:
        for file in self._in_folders():
            try:
                _make_ready(target)
                held = file.load(self._type_key(types, target))
                if held is not None:
                    copied, reduced = held
                    for module, name, of in copied:
                        getattr(import_module(module), name).compile(of)
                    return self._register_code(types, CompileResult._rebuild(target, *reduced))
            except (OSError, *BROKEN) as error:
                LOG.info("machine code of %s is not used: %s", self._cache_name(), error)
        return None

    def _register_code(self, types: Any, data: Any) -> Any:
        """Code for arguments of some types, whose name is known from now on."""
        function = self._function
        if "<" not in function.__qualname__:
            _own[data.fndesc.llvm_func_name] = (function.__module__, function.__name__, types)
        return data

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The code for a signature; None where none is kept, and this process is to compile it."""
        if has_failed():
            numbas = _leave_to_numba(self._kernel)
            return None if numbas is None else numbas.load_overload(sig, target_context)
        found = self._load_kept(sig, target_context)
        if found is not None or self._lock is not None or kept.home() is None:
            return found
        self._take_lock()
        found = self._load_kept(sig, target_context)
        if found is not None:
            self._release_lock()
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep code; where it cannot be written, that is said once, and the program goes on."""
        try:
            if kept.home() is None:
                kept.warn_not_kept("there is no folder that can be written to, and that only this user can write to")
            elif not data.library.has_dynamic_globals:  # code that holds addresses of this process
                reduced = self._register_code(sig, data)._replace(type_annotation="")._reduce()
                held = copied_kernels(data.library.get_llvm_str()), reduced
                self._save(self._in_folders()[-1], self._type_key(sig, data.target_context), held)
        except OSError as error:
            kept.warn_not_kept(str(error.strerror or error))
        except BROKEN as error:
            self._give_up(error, sig, data)
        finally:
            self._release_lock()

    def _save(self, file: Any, key: Any, held: Any) -> None:
        try:
            file.save(key, held)
        except BROKEN:  # what is there is not whole
            file.flush()
            file.save(key, held)

    def _give_up(self, error: Exception, sig: Any, data: Any) -> None:
        """Leave this kernel to numba, and those that later processes meet."""
        LOG.info("machine code is left to numba's own cache: %s: %s", type(error).__name__, error)
        with suppress(OSError):
            (Path(self.cache_path) / OTHERWISE).touch()
        has_failed.cache_clear()
        numbas = _leave_to_numba(self._kernel)
        if numbas is not None:
            numbas.save_overload(sig, data)

    def _take_lock(self) -> None:
        """Wait for whoever compiles the function, who may die or meet an error: not for ever."""
        folder = kept.home()
        if fcntl is None or folder is None:
            return
        with suppress(OSError):
            self._lock = open(folder / f"{self._cache_name()}.lock", "wb")  # noqa: SIM115
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

    def _release_lock(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None
