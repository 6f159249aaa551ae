# mypy: disable-error-code="no-untyped-call, attr-defined, import-untyped"
"""Where machine code is kept: folders that only this user, or whoever owns the sources, can write to.

What is looked through, in this order: the folder that ``NUMBA_CACHE_DIR`` names, and no other then; what lies beside
the sources (`mipfs compile --beside-sources`), which is only read; the user's own folder, which the environments of a
user share; where that cannot be had, one for temporary files. numba's files are pickles, which run when they are read.
So a folder is used only if it is no link, is owned by this user (beside the sources: by their owner) and nobody else
can write to it; a folder that the user names is used as it is.

Within each, machine code stands in ``mipfs-KEY``. The key is over contents: sources, versions, and the processor.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import shutil
import stat
import sys
import tempfile
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

import llvmlite
import llvmlite.binding as llvm
import numba
import numpy as np
from numba import config

LOG = logging.getLogger("mipfs")
PACKAGE = Path(__file__).parents[1]
KEPT_SECONDS, USED_SECONDS = 30 * 86400.0, 86400.0
"""How long the machine code of other sources is kept after it was last used; how exactly that is known."""
OTHERS = stat.S_IWGRP | stat.S_IWOTH


def sources(package: Path = PACKAGE) -> list[Path]:
    """The files of a package that machine code depends on: those with kernels, and what these import of the package."""
    found = set()
    for path in package.rglob("*.py"):
        content = path.read_bytes()
        if b"\nfrom mipfs.compiled import" in b"\n" + content:
            text = content.decode()
            found.add(path)
            for module in re.findall(r"^from mipfs\.([\w.]+) import", text, re.MULTILINE):
                place = package.joinpath(*module.split("."))
                found.add(place / "__init__.py" if place.is_dir() else place.with_suffix(".py"))
    return sorted(found)


def machine() -> tuple[str, ...]:
    """What machine code depends on beside its sources: versions, and the processor as numba takes it."""
    python = f"{sys.implementation.cache_tag} {sys.abiflags if hasattr(sys, 'abiflags') else ''} {sys.platform}"
    name = config.CPU_NAME or llvm.get_host_cpu_name()
    try:
        found = llvm.get_host_cpu_features().flatten()
    except RuntimeError:  # a processor that LLVM cannot ask
        found = ""
    features = found if config.CPU_FEATURES is None else config.CPU_FEATURES
    return numba.__version__, llvmlite.__version__, np.__version__, python, name, features, str(config.ENABLE_AVX)


@cache
def version(package: Path = PACKAGE) -> str:
    """A hash over numba's version, and over names and contents of `sources`: what all machines of a cluster share."""
    digest = hashlib.sha256(numba.__version__.encode())
    for path in sources(package):
        digest.update(b"\0" + str(path.relative_to(package)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


@cache
def key() -> str:
    """A hash over `version` and `machine`."""
    return hashlib.sha256("\0".join((version(), *machine())).encode()).hexdigest()[:16]


def users_own() -> Path | None:
    """The folder in the user's cache; None where the user has no home."""
    named = os.environ.get("LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME", "")
    if os.path.isabs(named):
        return Path(named) / "mipfs"
    try:
        home = Path.home()  # by HOME, else by the user database
    except RuntimeError:
        return None
    if not home.is_dir():  # which is not for us to make
        return None
    return home / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "mipfs"


def is_safe(folder: Path, owner: int | None = None, allowed: int = 0) -> bool:
    """Whether a folder is one, no link, owned by `owner` (this user), and no others but `allowed` can write to it."""
    try:
        found = folder.lstat()
    except OSError:
        return False
    if not stat.S_ISDIR(found.st_mode):
        return False
    if not hasattr(os, "geteuid"):
        return True
    return found.st_uid == (os.geteuid() if owner is None else owner) and not found.st_mode & OTHERS & ~allowed


def lies_beside() -> Path | None:
    """The folder of machine code beside the sources, trusted as these are; None where there is none."""
    source = PACKAGE.stat()
    parent = PACKAGE / "__pycache__"
    folder = parent / f"mipfs-{key()}"
    if all(any(is_safe(place, owner, source.st_mode) for owner in (source.st_uid, 0)) for place in (parent, folder)):
        return folder
    return None


@cache
def home() -> Path | None:
    """The folder that machine code is written to, which is there then; None where there is none."""
    if config.CACHE_DIR:
        return _make_folder(Path(config.CACHE_DIR), is_named=True)
    own = users_own()
    found = None if own is None else _make_folder(own)
    if found is None and hasattr(os, "geteuid"):
        found = _make_folder(Path(tempfile.gettempdir()) / f"mipfs-{os.geteuid()}")
        if found is not None:
            LOG.info("compiled kernels are kept in %s: there is no folder of the user's that could hold them", found)
    return found


@cache
def cache_folders() -> list[Path]:
    """The folders that machine code is read from, in order; the last is `home`, where there is one."""
    if config.CACHE_DIR:
        named = Path(config.CACHE_DIR) / f"mipfs-{key()}"
        return [folder for folder in (home() or named,) if folder.is_dir()]
    own = users_own()
    found = lies_beside()
    read = [] if found is None else [found]
    if own is not None and all(is_safe(place) for place in (own, own / f"mipfs-{key()}")):
        read.append(own / f"mipfs-{key()}")  # also where it cannot be written to
    written = home()
    return read if written is None else [*(folder for folder in read if folder != written), written]


def use_beside() -> None:
    """Write to the folder beside the sources from now on, in this process and those that it starts."""
    parent = PACKAGE / "__pycache__"
    config.CACHE_DIR = os.environ["NUMBA_CACHE_DIR"] = str(parent)
    with suppress(OSError):  # `home` finds that out
        parent.mkdir(exist_ok=True)
        (parent / f"mipfs-{key()}").mkdir(mode=0o755, exist_ok=True)
    home.cache_clear()
    cache_folders.cache_clear()


@cache
def warn_not_kept(why: str) -> None:
    """Say that code is not kept, once for every reason."""
    LOG.warning("compiled kernels are not kept, and each process compiles them: %s; see NUMBA_CACHE_DIR", why)


def _make_folder(base: Path, is_named: bool = False) -> Path | None:
    """The folder of this key within `base`, made where it is not there; None where it cannot be had."""
    folder = base / f"mipfs-{key()}"
    try:
        base.parent.mkdir(parents=True, exist_ok=True)
        for place in (base, folder):
            is_new = not place.exists()
            place.mkdir(mode=0o777 if is_named else 0o700, exist_ok=True)
            if not is_named and not is_safe(place):
                LOG.warning("%s is not used: it is a link, another's, or others can write to it", place)
                return None
        tempfile.TemporaryFile(dir=folder).close()
        _note_use(folder)
    except OSError:
        return None
    if is_new:
        remove_stale(folder)
    return folder


def _note_use(folder: Path) -> None:
    """Let the folder's time say that it was used."""
    if time.time() - folder.stat().st_mtime > USED_SECONDS:
        with suppress(OSError):
            os.utime(folder)


def remove_stale(folder: Path) -> None:
    """Remove the folders of other keys beside `folder` that were not used for `KEPT_SECONDS`."""
    for other in folder.parent.glob("mipfs-*"):
        if other != folder and time.time() - other.stat().st_mtime > KEPT_SECONDS:
            shutil.rmtree(other, ignore_errors=True)
