"""What something was measured with: the machine, without what names it, the versions of packages, and the commit."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

GIT_SECONDS = 20.0
"""What git may take to say what a folder holds, as on a slow disk; the commit is not known else."""


@cache
def machine() -> dict[str, Any]:
    """Cores, CPU model, memory and Python; nothing that names the machine."""
    model: str | None = platform.processor() or platform.machine()
    memory = None
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), model)
        memory = round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30)
    except (OSError, ValueError, AttributeError):
        pass
    return {"cores": os.cpu_count(), "cpu": model, "memory_gib": memory, "python": platform.python_version()}


@cache
def versions(*packages: str) -> dict[str, str]:
    """Versions of the packages that are installed; of mipfs that of the code that runs, wherever it is."""
    found = {}
    for package in packages:
        try:
            own = package == "mipfs"
            found[package] = sys.modules[package].__version__ if own else version(package)
        except PackageNotFoundError:
            continue
    return found


@cache
def commit() -> str | None:
    """The last commit that changed this package, with a + where its files differ from it; None outside a checkout."""
    folder = Path(__file__).resolve().parents[1]
    try:
        last = _git(folder, "log", "-1", "--abbrev=8", "--format=%h", "--", ".")
        changed = _git(folder, "status", "--porcelain", "--", ".") if last else ""
    except (OSError, subprocess.SubprocessError):
        return None
    return last + "+" * bool(changed) or None


def _git(folder: Path, *asked: str) -> str:
    """What git says of a folder."""
    command = ["git", "--no-optional-locks", "-C", str(folder), *asked]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=GIT_SECONDS).stdout.strip()
