"""What something was measured with: the machine, without what names it, and the versions of packages."""

from __future__ import annotations

import os
import platform
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any


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
