"""Results as lines of JSON, one per problem and solver, stored as soon as they are there; machine facts; clocks."""

from __future__ import annotations

import hashlib
import json
import math
import os
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from mipfs.plumbing.about import machine, versions

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("mipfs", "numpy", "scipy", "numba", "highspy", "pyscipopt")
TIMED_CODE = (
    "drivers",
    "run",
    "inner",
    "kernels",
    "losses",
    "atoms",
    "proof",
    "selection",
    "data/matrix.py",
    "problem.py",
)
"""The parts of the package that a solver's time depends on."""

Line = dict[str, Any]


class Store:
    """A file of results; the last line of a key counts.

    Parameters
    ----------
    path : Path, made where it is missing
    renew : bool
        Results of ours count only if they were measured with the present code.
    calm : float, optional
        Results count only if at most so many cores were busy with other work meanwhile.
    """

    def __init__(self, path: Path, *, renew: bool = False, calm: float | None = None) -> None:
        self.path, self.renew, self.calm = path, renew, calm

    def lines(self) -> dict[str, Line]:
        """The last line of every key. A torn last line (a run that was killed) is left out."""
        found: dict[str, Line] = {}
        if self.path.is_file():
            for text in self.path.read_text(encoding="utf-8").splitlines():
                try:
                    line = json.loads(text)
                except ValueError:
                    continue
                found[line["key"]] = line
        return found

    def get(self, key: str, limit: float | None = None) -> Line | None:
        """What is stored, if it still counts: it was proven, or it had at least as long as is asked for now."""
        line = self.lines().get(key)
        if line is None or str(line["status"]).startswith(("FAILED", "KILLED")):
            return None
        if self.renew and line.get("code") not in (None, code()):
            return None
        if self.calm is not None and (line.get("others_busy") or 0.0) > self.calm:
            return None
        proven = line["status"] == "OPTIMAL"
        return line if proven or limit is None or (line.get("limit") or 0.0) >= limit else None

    def add(self, key: str, **values: Any) -> Line:
        """Append a result with the versions and the machine; returns the line."""
        line: Line = {"key": key} | plain(values)
        line["versions"] = versions(*PACKAGES) | dict(values.get("versions") or {})
        line |= {"machine": machine(), "date": time.strftime("%Y-%m-%d")}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n"
        torn = self.path.is_file() and self.path.stat().st_size > 0 and not self.path.read_bytes().endswith(b"\n")
        # One write: two benchmarks may append to the file at the same time.
        handle = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(handle, (("\n" if torn else "") + text).encode())
        finally:
            os.close(handle)
        return line


@contextmanager
def clocks() -> Iterator[dict[str, float]]:
    """Wall and CPU seconds of the block (children that ended in it included), and what else the machine did.

    ``others_busy`` is the mean number of cores that were busy with other processes meanwhile.
    """
    spent: dict[str, float] = {}
    busy, cpu, wall = _machine_busy(), _own_cpu(), time.perf_counter()
    yield spent
    spent["seconds"] = time.perf_counter() - wall
    spent["cpu_seconds"] = _own_cpu() - cpu
    now = _machine_busy()
    if busy is not None and now is not None:
        others = (now - busy - spent["cpu_seconds"]) / max(spent["seconds"], 0.1)
        spent["others_busy"] = round(max(0.0, others), 2)


def _own_cpu() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(part.ru_utime + part.ru_stime for part in used)


def _machine_busy() -> float | None:
    """CPU seconds that all processes together have used since the machine started (Linux)."""
    try:
        fields = Path("/proc/stat").read_text().splitlines()[0].split()[1:]
    except OSError:
        return None
    user, nice, system = (int(field) for field in fields[:3])
    return (user + nice + system) / os.sysconf("SC_CLK_TCK")


@cache
def code() -> str:
    """A digest of the code that the times of our drivers depend on."""
    digest = hashlib.sha256()
    for part in TIMED_CODE:
        path = ROOT / "mipfs" / part
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            digest.update(file.relative_to(ROOT).as_posix().encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:12]


def relative_gap(objective: float | None, bound: float | None) -> float | None:
    """(objective − bound)/|objective|, at least 0; None where either is missing."""
    if objective is None or bound is None:
        return None
    return max(0.0, objective - bound) / max(1e-10, abs(objective))


def plain(value: Any) -> Any:
    """JSON's own types, null for what is not finite."""
    if isinstance(value, dict):
        return {str(name): plain(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    if hasattr(value, "item") and getattr(value, "ndim", 1) == 0:
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
