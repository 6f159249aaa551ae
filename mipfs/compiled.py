"""The one decorator of the numba kernels: machine code is kept on disk under a key over the sources of all kernels.

numba's own cache of a function sees the file that the function stands in, and its code holds that of the kernels which
it calls: after an edit in one file an old copy of it would go on running inside another. Here machine code lies in a
folder ``mipfs-KEY`` where numba would put it, beside the sources or, where they cannot be written to, in the user's own
cache; folders of other keys that were not written to for a month are removed when a new one is made.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, cast

from numba import __version__, njit
from numba.core import caching
from numba.core.compiler_lock import global_compiler_lock

try:
    import fcntl
except ImportError:  # Windows: processes that begin at once compile twice
    fcntl = None  # type: ignore[assignment]

PACKAGE = Path(__file__).parent
PATIENCE_SECONDS, POLL_SECONDS = 60.0, 0.05
"""How long a process waits for another that compiles the same function, which takes up to half of that; and how often
it looks."""
KEPT_SECONDS = 30 * 86400.0
"""How long the machine code of other sources is kept: a neighbour may be at work with it."""


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function with numba, as ``njit(cache=True, **options)`` does, under the key of all kernels.

    Parameters
    ----------
    **options
        Of ``numba.njit``: ``nogil``, ``fastmath``, ``parallel``.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        dispatcher: Any = njit(**options)(function)
        if hasattr(dispatcher, "enable_caching"):  # not where NUMBA_DISABLE_JIT leaves the function as it is
            with suppress(RuntimeError):  # no folder can be written to: numba compiles anew in every process
                dispatcher._cache = _cache_of(function)
        return dispatcher

    return decorate


def sources(package: Path = PACKAGE) -> list[Path]:
    """The files of a package that machine code depends on: those with kernels, and what these import of the package."""
    found: set[Path] = set()
    for path in package.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if re.search(r"^from mipfs\.compiled import", text, re.MULTILINE):
            found.add(path)
            for module in re.findall(r"^from mipfs\.([\w.]+) import", text, re.MULTILINE):
                place = package.joinpath(*module.split("."))
                found.add(place / "__init__.py" if place.is_dir() else place.with_suffix(".py"))
    return sorted(found)


@cache
def key(package: Path = PACKAGE) -> str:
    """A hash over numba's version, and over names and contents of `sources`."""
    digest = hashlib.sha256(__version__.encode())
    for path in sources(package):
        digest.update(b"\0" + str(path.relative_to(package)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


class _Keyed:
    """A locator whose folder and stamp carry the key."""

    def get_cache_path(self) -> str:
        return str(Path(super().get_cache_path()) / f"mipfs-{key()}")  # type: ignore[misc]

    def get_source_stamp(self) -> tuple[str, Any]:
        return key(), super().get_source_stamp()  # type: ignore[misc]

    def ensure_cache_path(self) -> None:
        folder = Path(self.get_cache_path())
        is_new = not folder.is_dir()
        super().ensure_cache_path()  # type: ignore[misc]
        if is_new:
            remove_stale(folder)


def remove_stale(folder: Path) -> None:
    """Remove the folders of other keys beside `folder` that were not written to for `KEPT_SECONDS`."""
    for other in folder.parent.glob("mipfs-*"):
        if other != folder and time.time() - other.stat().st_mtime > KEPT_SECONDS:
            shutil.rmtree(other, ignore_errors=True)


class _Impl(caching.CompileResultCacheImpl):
    _locator_classes = [  # noqa: RUF012 (as numba has it)
        type(f"Keyed{locator.__name__}", (_Keyed, locator), {})  # type: ignore[misc]
        for locator in caching.CacheImpl._locator_classes
    ]


class _Cache(caching.FunctionCache):
    """Machine code on disk; of processes that miss the same function at once, one compiles it."""

    _impl_class = _Impl
    _lock: Any = None

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        found = super().load_overload(sig, target_context)  # type: ignore[no-untyped-call]
        if found is not None or self._lock is not None:
            return found
        self._take()
        found = super().load_overload(sig, target_context)  # type: ignore[no-untyped-call]
        if found is not None:
            self._release()
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        super().save_overload(sig, data)  # type: ignore[no-untyped-call]
        self._release()

    def _take(self) -> None:
        """Wait for whoever compiles the function, who may die or meet an error: not for ever."""
        if fcntl is None:
            return
        with suppress(OSError):
            self._impl.locator.ensure_cache_path()
            self._lock = open(Path(self._cache_path) / f"{self._impl.filename_base}.lock", "wb")  # noqa: SIM115
        end = time.monotonic() + PATIENCE_SECONDS
        while self._lock is not None and time.monotonic() < end:
            with suppress(BlockingIOError):
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            time.sleep(POLL_SECONDS)

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None


def is_kept(function: Any, arguments: tuple[Any, ...]) -> bool:
    """Whether machine code of a function for arguments of these types lies on disk, or nothing can."""
    kept = getattr(function, "_cache", None)
    if not isinstance(kept, _Cache):
        return True
    target = function.targetctx
    with global_compiler_lock:  # what numba registers meanwhile is one thread's
        target.refresh()
        return cast(Any, kept)._index_key(arguments, target.codegen()) in cast(Any, kept)._cache_file._load_index()


_cache_of: Any = _Cache
