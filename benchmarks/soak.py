"""Runs that hold on for minutes: resident memory over time, whether a memory limit holds, and what stands at the end.

    MIPFS_DATA=... python benchmarks/soak.py FOLDER [--seconds 600] [--store spilled] [--only NAME]
                                                    the trees of sms_spam_counts and w8a until a time limit
    MIPFS_DATA=... python benchmarks/soak.py FOLDER --limit 0.6 [--store held]
                                                    sonar's tree of many small nodes until that many gigabytes
    python benchmarks/soak.py FOLDER --report       reports/memory.md, memory.jsonl and memory.svg of all in FOLDER

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
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, os.environ.get("MIPFS_SOAKED", str(ROOT)))
EVERY = 10.0
"""Seconds from one line of the curve to the next."""
SOAKS = {"sms_spam_counts": (15, 10.0), "w8a": (8, 100.0)}
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


def case_of(name: str, store: str, limit: float | None) -> str:
    """What the files of a run are called."""
    return f"{name}-{store}" + ("" if limit is None else f"-{1000 * limit:.0f}MB")


def one(folder: Path, name: str, store: str, seconds: float, limit: float | None) -> None:
    """One run in this process."""
    import mipfs
    from mipfs.lab.experiments import sets

    M, C = (SOAKS if limit is None else LIMITS)[name]
    problem = mipfs.Problem(sets.read(name), M=M, C=C)
    mipfs.solve(problem, threads=1, iteration_limit=2, time_limit=20)
    before = resident()
    case = case_of(name, store, limit)
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


def report(folder: Path) -> None:
    """The report of all that was measured."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    from pictures import write

    from mipfs.report.blocks import Curve, LineChart

    runs = []
    for path in sorted(folder.glob("*.json")):
        with path.with_suffix(".csv").open() as stream:
            curve = [[float(value) for value in line] for line in list(csv.reader(stream))[1:]]
        runs.append({**json.loads(path.read_text()), "curve": curve})
    place = ROOT / "reports"
    (place / "memory.jsonl").write_text("".join(json.dumps(run) + "\n" for run in runs))
    soaks = [run for run in runs if not run["limit"]]
    charts = []
    for name in dict.fromkeys(run["name"] for run in soaks):
        own = [run for run in soaks if run["name"] == name]
        ticks = sorted({line[0] for run in own for line in run["curve"]})
        curves = [
            Curve(_shown(run), [{line[0]: line[1] for line in run["curve"]}.get(t) for t in ticks], role)
            for run, role in zip(own, ("first", "second", "third"), strict=False)
        ]
        charts.append(LineChart(f"{name}: resident megabytes", ticks, curves, x_label="seconds"))
    if charts:
        write(place / "memory.svg", *charts)
    limits = [run for run in runs if run["limit"]]
    (place / "memory.md").write_text(REPORT.format(soaks=_soaks(soaks), limits=_limits(limits), notes=_notes(runs)))


REPORT = """# Memory over minutes, and under a limit

Made by `benchmarks/soak.py`, one thread, beside other work. Where the dual vectors and the open nodes of `branch` lie:
*held* in memory; *spilled* to a file, as in every run with a checkpoint; *dropped* with the node that they belong to,
in a run without a certificate (`certificate=False`).

## Runs of minutes

`python benchmarks/soak.py FOLDER --store STORE`. The slope is that of a straight line through what was resident after
the first third; the peak is the most that the process ever held until its result was saved, certificates limited to
50 MB.

{soaks}

{notes}

![Resident memory over time](memory.svg)

## Under a memory limit

`python benchmarks/soak.py FOLDER --limit GB --store STORE`: sonar, M = 10, C = 1, whose nodes are many and small.

{limits}
"""


def _shown(run: dict[str, Any]) -> str:
    """What a run is called in the picture."""
    return f"{run['store']}, M = {run['M']}, C = {run['C']:g}"


def _soaks(runs: Iterable[dict[str, Any]]) -> str:
    lines = [
        "| data | M, C | store | seconds, stopped by | nodes | gap | MB before | at the end | slope, MB a minute | "
        "peak | certificate, MB | checkpoint, MB | verified |",
        "|" + "---|" * 13,
    ]
    for r in runs:
        lines.append(
            f"| {r['name']} | {r['M']}, {r['C']:g} | {r['store']} | {r['seconds']:.0f}, {r['stop']} | {r['nodes']:,} | "
            f"{r['gap']:.2%} | {r['before']:.0f} | {r['last']:.0f} | {r['slope']:.1f} | {r['peak']:.0f} | "
            f"{r['certificate']:.1f} | {r['checkpoint']:.1f} | {r['verified']} |"
        )
    return "\n".join(lines)


def _notes(runs: Iterable[dict[str, Any]]) -> str:
    """What whoever measured wrote into the file of a run."""
    notes = [f"- {r['name']}, {r['store']}, {r['nodes']:,} nodes: {r['note']}." for r in runs if "note" in r]
    return "\n".join(notes)


def _limits(runs: Iterable[dict[str, Any]]) -> str:
    lines = [
        "| store | limit, MB | stopped by | seconds | nodes | MB before | peak until it ended | peak with saving | "
        "share of the limit | verified |",
        "|" + "---|" * 10,
    ]
    for r in runs:
        lines.append(
            f"| {r['store']} | {1000 * r['limit']:.0f} | {r['stop']} | {r['seconds']:.0f} | {r['nodes']:,} | "
            f"{r['before']:.0f} | {r['ended']:.0f} | {r['peak']:.0f} | {r['peak'] / (1000 * r['limit']):.1%} | "
            f"{r['verified']} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Every case in a process of its own, or the report of all."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--store", choices=STORES, default="spilled")
    parser.add_argument("--limit", type=float, metavar="GB")
    parser.add_argument("--only", metavar="NAME")
    parser.add_argument("--report", action="store_true")
    given = parser.parse_args()
    if given.report:
        report(given.folder)
        return
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
