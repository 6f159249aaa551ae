"""Nodes per second of processes and threads that share the cores: one thread, two, two processes, eight threads.

    python benchmarks/real_parts/together.py < request

is one of the processes: it builds the problem of the request (JSON), compiles, writes a line, waits for one, solves,
and writes nodes, seconds and shares. They begin at the same moment; who comes first changes from round to round.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve()
WAYS = {"one thread": (1,), "two threads": (2,), "two processes": (1, 1), "eight threads": (8,)}
"""Threads of each process that runs at a time."""
ROUNDS = 5
ON_PAPER = 16
"""Cores that Amdahl's law is asked for."""


def throughput(request: Mapping[str, Any]) -> dict[str, Any]:
    """Medians over the rounds of the nodes per second of every way, and of the ratios within a round.

    Half of the limit is for searching, the other half for processes to begin.
    """
    request = {**request, "limit": request["limit"] / (2 * ROUNDS * len(WAYS))}
    seen: dict[str, list[float]] = {way: [] for way in WAYS}
    outside = []
    for number in range(ROUNDS):
        for way in list(WAYS)[:: 1 if number % 2 == 0 else -1]:
            answers = _at_once(request, WAYS[way])
            seen[way].append(sum(one["nodes"] / one["seconds"] for one in answers))
            if way == "one thread":
                outside.append(answers[0]["outside"])
    share = statistics.median(outside)
    return {
        "status": "MEASURED",
        "rates": {way: statistics.median(rates) for way, rates in seen.items()},
        "to_processes": _ratio(seen["two threads"], seen["two processes"]),
        "crowded": _ratio(seen["eight threads"], seen["two threads"]),
        "outside": share,
        "on_paper": 1.0 / (share + (1.0 - share) / ON_PAPER),
    }


def _ratio(above: list[float], below: list[float]) -> float:
    return statistics.median(a / b for a, b in zip(above, below, strict=True))


def _at_once(request: Mapping[str, Any], threads: tuple[int, ...]) -> list[dict[str, Any]]:
    """What processes answer that begin at the same moment."""
    running = []
    try:
        for count in threads:
            running.append(
                subprocess.Popen(
                    [sys.executable, str(HERE)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
                )
            )
            _write(running[-1], json.dumps({**request, "threads": count}))
        for child in running:
            assert child.stdout is not None
            child.stdout.readline()
        for child in running:
            _write(child, "begin")
        return [json.loads(child.communicate()[0]) for child in running]
    finally:
        for child in running:
            if child.poll() is None:
                child.kill()
                child.communicate()


def _write(child: subprocess.Popen[str], text: str) -> None:
    assert child.stdin is not None
    child.stdin.write(text + "\n")
    child.stdin.flush()


def main() -> None:
    """One of the processes."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)  # solvers may print
    sys.path[:0] = [str(HERE.parents[1]), str(HERE.parents[2])]
    import mipfs
    from real_parts.problems import build

    request = json.loads(sys.stdin.readline())
    folder = os.environ.get("MIPFS_DATA")
    problem = build(request["what"], Path(folder) if folder else None)
    mipfs.solve(problem, "branch", iteration_limit=1, threads=request["threads"])
    answers.write("ready\n")
    sys.stdin.readline()
    seen: list[tuple[int, float, float, float]] = []  # nodes, seconds, CPU seconds, those in kernels
    with _in_kernels() as kernels:

        def note(record: Any) -> None:
            if record.counters.get("nodes", 0) >= 1:
                seen.append((record.counters["nodes"], record.seconds, time.process_time(), kernels.seconds))

        mipfs.solve(problem, "branch", time_limit=request["limit"], threads=request["threads"], observers=[note])
    nodes, seconds, spent, within = (last - first for first, last in zip(seen[0], seen[-1], strict=True))
    answers.write(json.dumps({"nodes": nodes, "seconds": seconds, "outside": 1.0 - within / spent}) + "\n")


class _Kernels:
    """CPU seconds of compiled explorations: what is outside of them is Python, of which one thread runs at a time."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._lock = threading.Lock()

    def add(self, seconds: float) -> None:
        with self._lock:
            self.seconds += seconds


@contextmanager
def _in_kernels() -> Iterator[_Kernels]:
    """Count what explorations take meanwhile."""
    from mipfs.kernels import subtree

    kernels, explore = _Kernels(), subtree.explore

    def counted(*given: Any) -> None:
        begun = time.thread_time()
        try:
            explore(*given)
        finally:
            kernels.add(time.thread_time() - begun)

    subtree.explore = counted
    try:
        yield kernels
    finally:
        subtree.explore = explore


if __name__ == "__main__":
    main()
