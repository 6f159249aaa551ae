"""`branch` on many cores: real threads, simulated ones, and what the coordinating thread takes.

    python benchmarks/cores.py [--threads 1 2 4 8 16] [--simulate 16 64] [--seconds 10] [--only sonar10] [--json FILE]

Real: the same problem with several numbers of threads, wall time and nodes a second.

Simulated: one thread explores, and what came of every unit of work is kept with the seconds that it took. Then the run
is repeated by workers that only sleep that long, and hand back what was kept: the tree does not depend on who explores,
so the wall time with so many sleeping workers is that of the coordinator, of the search for incumbents, and of waiting.
Printed is kernel seconds / (wall time × workers); such a figure says nothing of memory bandwidth or clock rates.

Coordinator: CPU seconds of the thread that takes over what was found, per node and per unit of work.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import mipfs
from mipfs import Instance, Problem
from mipfs.drivers.executor import Executor, Threads
from mipfs.drivers.tree import Tree
from mipfs.generators import aytug_one
from mipfs.inner.unit import Explored, Unit


def real(name: str, M: int, C: float, scale: Literal["standard", "none"] = "standard") -> Problem | None:
    """A problem on a shared data set, standardised unless said; None where there is none."""
    folder = os.environ.get("MIPFS_DATA")
    path = Path(folder or "", name, "data.svm.gz")
    return Problem(mipfs.read(path, scale=scale), M=M, C=C) if folder and path.exists() else None


def drawn(n: int, p: int, M: int, C: float) -> Problem:
    """A problem made after Aytug (2015)."""
    return Problem(Instance.from_arrays(*aytug_one(n, p, M, seed=1)["train"]), M=M, C=C)


PROBLEMS: dict[str, Callable[[], Problem | None]] = {
    "sonar5": lambda: real("sonar", 5, 1.0),
    "sonar10": lambda: real("sonar", 10, 1.0),
    "500x100": lambda: drawn(500, 100, 20, 32.0),
    "spambase10": lambda: real("spambase", 10, 0.1),
    "w8a5": lambda: real("w8a", 5, 0.1, "none"),
    "colon3": lambda: real("colon_alon", 3, 10.0),
    "colon3-1": lambda: real("colon_alon", 3, 1.0),
    "leukemia2": lambda: real("leukemia_golub", 2, 10.0),
}


@dataclass
class Figures:
    """One run: what it was, wall seconds, nodes, the gap, and what its threads took."""

    problem: str
    how: str
    workers: int
    wall: float
    nodes: int
    gap: float
    units: int = 0
    kernel_seconds: float = 0.0
    coordinator_seconds: float = 0.0

    def line(self) -> str:
        """For the terminal."""
        told = f"{self.problem:10} {self.how:9} {self.workers:3} {self.wall:8.2f} s {self.nodes:9,} nodes"
        told += f" {self.nodes / self.wall:9,.0f}/s  gap {100 * self.gap:7.3f}%"
        if self.units:
            share = self.kernel_seconds / (self.wall * self.workers)
            told += f"  kernels/(wall x workers) {share:.2f}"
            told += f"  {1e6 * self.coordinator_seconds / self.nodes:.1f} us a node"
            told += f", {1e3 * self.coordinator_seconds / self.units:.2f} ms a unit ({self.units:,} units)"
        return told


class Recorder(Threads):
    """One thread that explores, and what came of every unit, with its seconds."""

    def __init__(self) -> None:
        super().__init__(1)
        self.kept = list[tuple[float, Explored]]()

    def submit(self, unit: Unit, seconds: float | None) -> Future[Explored]:
        """Explore a unit, and keep it: one thread does one after the other."""
        return self._pool.submit(self._timed, unit)

    def _timed(self, unit: Unit) -> Explored:
        begun = time.thread_time()
        found = self._relaxation.explore_unit(unit)
        self.kept.append((time.thread_time() - begun, found))
        return found


class Sleepers(Executor):
    """Workers that sleep as long as a unit took, and hand back what came of it."""

    def __init__(self, kept: list[tuple[float, Explored]], workers: int) -> None:
        self._kept = iter(kept)
        self._workers = workers
        self.begun = self.ended = 0.0

    def open(self, tree: Tree) -> None:
        """Let them come."""
        self._pool = ThreadPoolExecutor(self._workers)
        self.begun = time.perf_counter()

    def submit(self, unit: Unit, seconds: float | None) -> Future[Explored]:
        """Let the next one sleep."""
        return self._pool.submit(_slept, *next(self._kept))

    def result(self, handle: Future[Explored], seconds: float) -> Explored | None:
        """What was kept."""
        return handle.result()

    def withdraw(self, handle: Future[Explored]) -> Explored | None:
        """Wait for it."""
        return handle.result()

    def close(self) -> None:
        """Let them go."""
        self.ended = time.perf_counter()
        self._pool.shutdown()


def _slept(seconds: float, found: Explored) -> Explored:
    time.sleep(seconds)
    return found


def run_of(problem: Problem, **options: Any) -> tuple[mipfs.Result, float, float]:
    """A result, with the wall seconds and this thread's CPU seconds."""
    wall, here = time.perf_counter(), time.thread_time()
    result = mipfs.solve(problem, "branch", **options)
    return result, time.perf_counter() - wall, time.thread_time() - here


def threaded(name: str, problem: Problem, threads: int, seconds: float) -> Figures:
    """One run with threads."""
    result, wall, _ = run_of(problem, threads=threads, time_limit=seconds)
    return Figures(name, "threads", threads, wall, result.counters["nodes"], result.gap)


def simulated(name: str, problem: Problem, workers: list[int], seconds: float) -> list[Figures]:
    """One run with one thread, and its repetitions; each is to take `seconds` of wall time at the largest width."""
    rate = threaded(name, problem, 1, 4.0)
    limit = int(rate.nodes / rate.wall * seconds * max(workers))
    recorder = Recorder()
    result, wall, here = run_of(problem, executor=recorder, threads=1, iteration_limit=limit)
    kernel = sum(took for took, _ in recorder.kept)
    nodes = result.counters["nodes"]
    found = [Figures(name, "recorded", 1, wall, nodes, result.gap, len(recorder.kept), kernel, here)]
    for width in workers:
        sleepers = Sleepers(recorder.kept, width)
        again, _, here = run_of(problem, executor=sleepers, threads=1, iteration_limit=limit)
        assert again.counters["nodes"] == nodes
        assert again.bound == result.bound
        took = sleepers.ended - sleepers.begun
        found.append(Figures(name, "simulated", width, took, nodes, again.gap, len(recorder.kept), kernel, here))
    return found


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, nargs="*", default=[])
    parser.add_argument("--simulate", type=int, nargs="*", default=[])
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--only", nargs="*", default=list(PROBLEMS), choices=list(PROBLEMS))
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    found = list[Figures]()
    for name in asked.only:
        problem = PROBLEMS[name]()
        if problem is None:
            print(f"{name}: left out, MIPFS_DATA names no folder with its data")
            continue
        mipfs.solve(problem, "branch", iteration_limit=50)  # kernels are compiled
        parts = [[threaded(name, problem, one, asked.seconds)] for one in asked.threads]
        parts += [simulated(name, problem, asked.simulate, asked.seconds)] if asked.simulate else []
        for figures in (one for part in parts for one in part):
            print(figures.line(), flush=True)
            found.append(figures)
    if asked.json:
        asked.json.write_text(json.dumps([asdict(one) for one in found], indent=1))


if __name__ == "__main__":
    main()
