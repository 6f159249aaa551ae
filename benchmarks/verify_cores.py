"""How much faster `mipfs verify` is with more processes, and what memory all of them hold together.

    mipfs solve fsp-m sonar.svm.gz --scale standard -p M=10 -p C=1 --time-limit 900 --json sonar.json
    python benchmarks/verify_cores.py sonar.json sonar.svm.gz [--jobs 1,2,4,8,16] [--repeats 1]

A line for each number of processes: `wall`, and how often it fits into that of the first line; `cpu`, all processes
together, and `share`, that of the first line over it (what is lost by sharing, whatever else the machine does);
`first`, the CPU seconds of the process that reads, shares out and reports, which no core takes off it; and the peak of
the memory (proportional set size: what is shared counts once). The reports must be the same but for their seconds. The
last line is computed, not measured: first + (cpu - first)/16 of the last line of the table, which needs two processes.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LOOK_SECONDS = 0.2
"""How often the processes are looked at."""
CORES = 16
"""For how many cores the last line is computed."""


@dataclass(frozen=True)
class Measured:
    """A run: seconds, bytes, and the report without its seconds."""

    wall: float
    cpu: float
    first: float
    memory: int
    report: dict[str, Any]


def measured(result: str, data: str, jobs: int) -> Measured:
    """Verify with so many processes."""
    with tempfile.TemporaryDirectory() as folder:
        said = Path(folder) / "report.json"
        began, before = time.perf_counter(), sum(os.times()[2:4])
        command = [
            sys.executable,
            "-m",
            "mipfs",
            "verify",
            result,
            data,
            "--jobs",
            str(jobs),
            "--json",
            str(said),
            "-q",
        ]
        process = subprocess.Popen(command)
        first, memory = 0.0, 0
        while process.poll() is None:
            first = max(first, own_seconds(process.pid))
            memory = max(memory, sum(held(one) for one in [process.pid, *children_of(process.pid)]))
            time.sleep(LOOK_SECONDS)
        wall, cpu = time.perf_counter() - began, sum(os.times()[2:4]) - before
        report = json.loads(said.read_text())
    report.pop("seconds")
    return Measured(wall, cpu, min(first, cpu), memory, report)


def own_seconds(process: int) -> float:
    """CPU seconds of a process without its children; 0 where it is gone."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def children_of(process: int) -> list[int]:
    """The processes that a process began."""
    try:
        return [int(one) for one in Path(f"/proc/{process}/task/{process}/children").read_text().split()]
    except OSError:
        return []


def held(process: int) -> int:
    """Bytes that a process holds, its share of what it shares; 0 where it is gone."""
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(1024 * int(line.split()[1]) for line in lines if line.startswith("Pss:"))


def main() -> int:
    """Print the table; 1 where reports differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("result")
    parser.add_argument("data")
    parser.add_argument("--jobs", default="1,2,4,8,16")
    parser.add_argument("--repeats", type=int, default=1, help="of which the fastest counts")
    asked = parser.parse_args()
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    print("| jobs | wall, s | times | cpu, s | share | first, s | memory, MB |\n|--:|--:|--:|--:|--:|--:|--:|")
    runs = list[Measured]()
    for jobs in (int(one) for one in asked.jobs.split(",")):
        found = [measured(asked.result, asked.data, jobs) for _ in range(asked.repeats)]
        runs.append(min(found, key=lambda one: one.wall))
        run, base = runs[-1], runs[0]
        print(
            f"| {jobs} | {run.wall:.1f} | {base.wall / run.wall:.2f} | {run.cpu:.1f} | {base.cpu / run.cpu:.2f} "
            f"| {run.first:.2f} | {run.memory / 1e6:.0f} |",
            flush=True,
        )
    same = all(run.report == runs[0].report for run in runs)
    last = runs[-1]
    computed = last.first + (last.cpu - last.first) / CORES
    print(f"reports are {'the same' if same else 'DIFFERENT'}, accepted: {runs[0].report['accepted']}")
    if len(runs) > 1:
        print(f"computed for {CORES} cores: {computed:.1f} s, {runs[0].cpu / computed:.1f} times")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
