"""Runs that hold on for minutes: resident memory over time, whether a memory limit holds, and what stands at the end.

    MIPFS_DATA=... python benchmarks/soak.py FOLDER [--seconds 600] [--store spilled] [--only NAME]
                                                    the trees of sms_spam_counts and w8a until a time limit
    MIPFS_DATA=... python benchmarks/soak.py FOLDER --limit 0.6 [--store held]
                                                    sonar's tree of many small nodes until that many gigabytes
    python benchmarks/soak.py FOLDER --report       reports/memory.md and its charts of all that was measured

`--store` says where the dual vectors of the nodes lie: `held` in memory, `spilled` to a file, as in a run with a
checkpoint, or `dropped` with the node that they belong to, in a run without a certificate. Every ten seconds a line
of FOLDER/CASE.csv says seconds, megabytes, nodes and gap; FOLDER/CASE.json has what stands at the end. The slope is
that of a straight line through what was held after the first third. `peak` is the most that the process ever held
(`ru_maxrss`) until the result and its certificate were saved.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import re
import resource
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, os.environ.get("MIPFS_SOAKED", str(ROOT)))
EVERY = 10.0
"""Seconds from one line of the curve to the next."""
SOAKS = {"sms_spam_counts": (10, 10.0), "w8a": (8, 100.0)}
LIMITS = {"sonar": (10, 1.0)}
"""Data to M and C."""
STORES = ("held", "spilled", "dropped")
FIELDS = ("seconds", "megabytes", "nodes", "gap")


def resident() -> float:
    """Megabytes of this process."""
    match = re.search(r"^VmRSS:\s*(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
    return 0.0 if match is None else 1024 * int(match.group(1)) / 1e6


def peak() -> float:
    """The most megabytes that this process ever held."""
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


class Watch(threading.Thread):
    """Writes a line of the curve every `EVERY` seconds, until it is told to stop."""

    def __init__(self, path: Path) -> None:
        super().__init__(daemon=True)
        self.path = path
        self.curve: list[tuple[float, float, int, float]] = []
        self.last: Any = None
        self._over = threading.Event()

    def note(self, record: Any) -> None:
        """An observer of the run."""
        self.last = record

    def run(self) -> None:
        """Look until it is over."""
        begin = time.monotonic()
        with self.path.open("w", newline="") as stream:
            lines = csv.writer(stream)
            lines.writerow(FIELDS)
            while True:
                last = self.last
                nodes = 0 if last is None else int(last.counters.get("nodes", 0))
                gap = np.inf if last is None else (last.objective - last.bound) / abs(last.objective)
                self.curve.append((time.monotonic() - begin, resident(), nodes, gap))
                lines.writerow([f"{self.curve[-1][0]:.0f}", f"{self.curve[-1][1]:.1f}", nodes, f"{gap:.5f}"])
                stream.flush()
                if self._over.wait(EVERY):
                    return

    def stop(self) -> None:
        """Look no more."""
        self._over.set()
        self.join()


def one(folder: Path, name: str, store: str, seconds: float, limit: float | None) -> None:
    """One run in this process."""
    import mipfs
    from mipfs.lab.experiments import sets

    M, C = (SOAKS if limit is None else LIMITS)[name]
    problem = mipfs.Problem(sets.read(name), M=M, C=C)
    mipfs.solve(problem, threads=1, iteration_limit=2, time_limit=20)
    before = resident()
    case = f"{name}-{store}" + ("" if limit is None else f"-{1000 * limit:.0f}MB")
    watch = Watch(folder / f"{case}.csv")
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        options: dict[str, Any] = {} if store != "spilled" else {"checkpoint": Path(scratch) / "state"}
        if store == "dropped":
            options["certificate"] = False
        watch.start()
        result = mipfs.solve(
            problem, threads=1, time_limit=seconds, memory_limit=limit, observers=[watch.note], **options
        )
        watch.stop()
        ended = peak()
        result.save(Path(scratch) / "r.json", certificate_limit=50.0)
        most = peak()
        sizes = {path.name: path.stat().st_size / 1e6 for path in Path(scratch).iterdir()}
        said = "no certificate"
        if store != "dropped":
            verdict = mipfs.verify(mipfs.Result.load(Path(scratch) / "r.json"), problem.data)
            said = "accepted" if verdict.accepted else str(verdict.reason)
    found = {
        "name": name, "M": M, "C": C, "store": store, "limit": limit, "stop": result.stop_reason.name,
        "seconds": result.seconds, "nodes": int(result.counters.get("nodes", 0)), "gap": float(result.gap),
        "before": before, "last": watch.curve[-1][1], "slope": slope(watch.curve), "ended": ended, "peak": most,
        "certificate": sizes.get("r.cert.npz", 0.0), "checkpoint": sizes.get("state", 0.0), "verified": said,
    }  # fmt: skip
    (folder / f"{case}.json").write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found), flush=True)


def slope(curve: list[tuple[float, float, int, float]]) -> float:
    """Megabytes a minute after the first third."""
    seconds, held = np.array([line[:2] for line in curve]).T
    late = seconds >= seconds[-1] / 3
    return float(60 * np.polyfit(seconds[late], held[late], 1)[0]) if np.count_nonzero(late) > 1 else 0.0


def main() -> None:
    """Every case in a process of its own, or the report of all."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--store", choices=STORES, default="spilled")
    parser.add_argument("--limit", type=float, metavar="GB")
    parser.add_argument("--only", metavar="NAME")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    for name in SOAKS if given.limit is None else LIMITS:
        if given.only not in (None, name):
            continue
        child = os.fork()
        if child == 0:
            one(given.folder, name, given.store, given.seconds, given.limit)
            os._exit(0)
        os.waitpid(child, 0)


if __name__ == "__main__":
    main()
