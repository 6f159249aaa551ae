"""`branch` on many cores: real threads, simulated ones, and what the coordinating thread takes.

    python benchmarks/cores.py [--threads 1 2 4 8 16] [--simulate 16 64] [--compute 16 64] [--seconds 10]
                               [--only sonar10] [--json FILE]

Real: the same problem with several numbers of threads, wall time and nodes a second.

Simulated: one thread explores, and what came of every unit of work is kept with the seconds that it took. Then the run
is repeated by workers that only sleep that long, and hand back what was kept: the tree does not depend on who explores,
so the wall time with so many sleeping workers is that of the coordinator, of the search for incumbents, and of waiting.
Printed is kernel seconds / (wall time × workers); such a figure says nothing of memory bandwidth or clock rates.

Computed: `--compute 16 64` needs no quiet machine. One thread explores, and every width has a clock of its own, which
the CPU seconds of the coordinating thread move on; a unit of work, and what is done beside a batch, begins when it is
handed out and a worker is free, and takes the CPU seconds that it took here. Where the coordinating thread waits, its
clock goes to the end of what it waits for. What threads cost one another (Python's lock, memory) is not in it.

Coordinator: CPU seconds of the thread that takes over what was found, per node and per unit of work.
"""

from __future__ import annotations

import argparse
import heapq
import itertools
import json
import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import mipfs
from mipfs import Instance, Problem
from mipfs.drivers.executor import Executor, Threads
from mipfs.drivers.tree import SearchTree
from mipfs.generators import aytug_one
from mipfs.inner.unit import NodeUnit, UnitResult
from mipfs.settings import BranchSettings, TreeSettings


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
    "500x100-52": lambda: drawn(500, 100, 52, 32.0),
    "spambase10": lambda: real("spambase", 10, 0.1),
    "spambase10-1": lambda: real("spambase", 10, 1.0),
    "spambase10-10": lambda: real("spambase", 10, 10.0),
    "w8a5": lambda: real("w8a", 5, 0.1, "none"),
    "colon3": lambda: real("colon_alon", 3, 10.0),
    "colon3-1": lambda: real("colon_alon", 3, 1.0),
    "colon3-100": lambda: real("colon_alon", 3, 100.0),
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
    waited: dict[str, float] = field(default_factory=dict)

    def line(self) -> str:
        """For the terminal."""
        told = f"{self.problem:10} {self.how:9} {self.workers:3} {self.wall:8.2f} s {self.nodes:9,} nodes"
        told += f" {self.nodes / self.wall:9,.0f}/s  gap {100 * self.gap:7.3f}%"
        if self.units:
            share = self.kernel_seconds / (self.wall * self.workers)
            told += f"  kernels/(wall x workers) {share:.2f}"
            told += f"  {1e6 * self.coordinator_seconds / self.nodes:.1f} us a node"
            told += f", {1e3 * self.coordinator_seconds / self.units:.2f} ms a unit ({self.units:,} units)"
        told += "".join(f", {name} {seconds:.2f} s" for name, seconds in self.waited.items())
        return told


class Recorder(Threads):
    """One thread that explores, and what came of every unit, with its seconds."""

    def __init__(self) -> None:
        super().__init__(1)
        self.kept = list[tuple[float, UnitResult]]()
        self.seconds = 0.0

    def submit(self, unit: NodeUnit, seconds: float | None) -> Future[UnitResult]:
        """Explore a unit, and keep it: one thread does one after the other."""
        return self._pool.submit(self._timed, unit)

    def _timed(self, unit: NodeUnit) -> UnitResult:
        begun = time.thread_time()
        found = self._relaxation.explore_unit(unit)
        self.kept.append((time.thread_time() - begun, found))
        self.seconds += self.kept[-1][0]
        return found


class Sleepers(Executor):
    """Workers that sleep as long as a unit took, and hand back what came of it."""

    def __init__(self, kept: list[tuple[float, UnitResult]], workers: int) -> None:
        self._kept = iter(kept)
        self._workers = workers
        self.begun = self.ended = 0.0

    def open(self, tree: SearchTree) -> None:
        """Let them come."""
        self._pool = ThreadPoolExecutor(self._workers)
        self.begun = time.perf_counter()

    def submit(self, unit: NodeUnit, seconds: float | None) -> Future[UnitResult]:
        """Let the next one sleep."""
        return self._pool.submit(_slept, *next(self._kept))

    def result(self, handle: Future[UnitResult], seconds: float) -> UnitResult | None:
        """What was kept."""
        return handle.result()

    def withdraw(self, handle: Future[UnitResult]) -> UnitResult | None:
        """Wait for it."""
        return handle.result()

    def close(self) -> None:
        """Let them go."""
        self.ended = time.perf_counter()
        self._pool.shutdown()


def _slept(seconds: float, found: UnitResult) -> UnitResult:
    time.sleep(seconds)
    return found


class Job:
    """Something that was handed out: when, what it is waited for by, and when it ends by every clock.

    future : of what does it here;  seconds : the CPU seconds that it took, once it is done
    """

    def __init__(self, clocks: Clocks, future: Future[Any]) -> None:
        self.future, self.seconds = future, 0.0
        self.ready, self.ends = clocks.read(), list[float]()


class Clocks:
    """A clock for every number of workers, which the CPU seconds of the coordinating thread move on.

    Parameters
    ----------
    widths : numbers of workers
    """

    def __init__(self, widths: list[int]) -> None:
        self.widths = widths
        self.mark, self.own = time.thread_time(), 0.0
        self.now = [0.0] * len(widths)
        self.free = [[0.0] * width for width in widths]
        self.waited = [dict[str, float]() for _ in widths]
        self.jobs = deque[Job]()
        self.worked = list[float](), list[float]()

    def read(self) -> list[float]:
        """What each shows now; only the coordinating thread asks."""
        mark = time.thread_time()
        self.now = [one + mark - self.mark for one in self.now]
        self.own += mark - self.mark
        self.mark = mark
        return list(self.now)

    def unread(self) -> None:
        """What was done since the last reading is no work of the coordinator, but these clocks' own."""
        self.mark = time.thread_time()

    def handed_out(self, future: Future[Any]) -> Job:
        """Something that takes the next free worker when all that was handed out before has begun."""
        self.jobs.append(Job(self, future))
        self.unread()
        return self.jobs[-1]

    def wait(self, job: Job, name: str) -> None:
        """Go to the end of what is waited for."""
        self.read()
        while not job.ends:
            one = self.jobs.popleft()
            wait([one.future])
            self.worked[not isinstance(one.future, Timed)].append(one.seconds)
            for at, free in zip(one.ready, self.free, strict=True):
                one.ends.append(max(at, heapq.heappop(free)) + one.seconds)
                heapq.heappush(free, one.ends[-1])
        for waited, now, end in zip(self.waited, self.now, job.ends, strict=True):
            waited[name] = waited.get(name, 0.0) + max(0.0, end - now)
        self.now = [max(*one) for one in zip(self.now, job.ends, strict=True)]
        self.unread()


class Timed(Future[None]):
    """Work beside a batch, whose end moves the clocks."""

    def __init__(self, clocks: Clocks) -> None:
        super().__init__()
        self._clocks, self._job = clocks, clocks.handed_out(self)

    def run(self, work: Callable[[], None]) -> None:
        """Do it."""
        begun = time.thread_time()
        try:
            work()
        except BaseException as error:
            self.set_exception(error)
        else:
            self._job.seconds = time.thread_time() - begun
            self.set_result(None)

    def result(self, timeout: float | None = None) -> None:
        """Its end, to which the clocks go."""
        super().result(timeout)
        self._clocks.wait(self._job, "search")


class Computed(Threads):
    """One thread that explores, and clocks that show when more workers would have been done."""

    def __init__(self, widths: list[int]) -> None:
        super().__init__(1)
        self.clocks = Clocks(widths)

    def open(self, tree: SearchTree) -> None:
        """The clocks begin."""
        super().open(tree)
        self.clocks.unread()

    def submit(self, unit: NodeUnit, seconds: float | None) -> Any:
        """Hand a unit out."""
        return self.clocks.handed_out(self._pool.submit(self._timed, unit))

    def _timed(self, unit: NodeUnit) -> tuple[float, UnitResult]:
        begun = time.thread_time()
        found = self._relaxation.explore_unit(unit)
        return time.thread_time() - begun, found

    def result(self, handle: Any, seconds: float) -> UnitResult | None:
        """What came of it."""
        self.clocks.read()
        for job in self.clocks.jobs:
            if not job.seconds and not isinstance(job.future, Timed):
                job.seconds = job.future.result()[0]
            if job is handle:
                break
        self.clocks.unread()
        self.clocks.wait(handle, "units")
        found: UnitResult = handle.future.result()[1]
        return found

    def withdraw(self, handle: Any) -> UnitResult | None:
        """Wait for it."""
        return self.result(handle, 0.0)

    def close(self) -> None:
        """The clocks end."""
        self.clocks.read()
        super().close()


@contextmanager
def timing(clocks: Clocks) -> Iterator[None]:
    """Work beside batches moves these clocks."""
    before = Threads.beside

    def beside(self: Threads, work: Callable[[], None]) -> Future[None]:
        made = Timed(clocks)
        self._pool.submit(made.run, work)
        return made

    Threads.beside = beside  # type: ignore[method-assign]
    try:
        yield
    finally:
        Threads.beside = before  # type: ignore[method-assign]


PATIENT = BranchSettings(tree=TreeSettings(poll_seconds=10.0))
"""Limits are not looked at while nodes are explored: on a busy machine that would be counted as work."""


Until = Callable[[int], bool]
"""Whether a run is to end, by the number of its steps so far: a limit of nodes would make its last batches smaller."""


def run_of(problem: Problem, until: Until = lambda _: False, **options: Any) -> tuple[mipfs.Result, float, float, int]:
    """A result as `solve` gives it, with the wall seconds, this thread's CPU seconds, and the steps.

    A session would also keep a state at its end, which takes seconds where a tree has millions of nodes.
    """
    wall, here, steps = time.perf_counter(), time.thread_time(), itertools.count(1)
    result = mipfs.solve(problem, "branch", callback=lambda _: until(next(steps)), **options)
    return result, time.perf_counter() - wall, time.thread_time() - here, next(steps) - 1


def threaded(name: str, problem: Problem, threads: int, seconds: float) -> Figures:
    """One run with threads."""
    result, wall, *_ = run_of(problem, threads=threads, time_limit=seconds)
    return Figures(name, "threads", threads, wall, result.counters["nodes"], result.gap)


def simulated(name: str, problem: Problem, workers: list[int], seconds: float) -> list[Figures]:
    """One run with one thread, and its repetitions; each is to take `seconds` of wall time at the largest width."""
    recorder, most = Recorder(), seconds * max(workers)
    result, wall, here, steps = run_of(problem, lambda _: recorder.seconds >= most, executor=recorder, threads=1)
    kernel, nodes = recorder.seconds, result.counters["nodes"]
    found = [Figures(name, "recorded", 1, wall, nodes, result.gap, len(recorder.kept), kernel, here)]
    for width in workers:
        sleepers = Sleepers(recorder.kept, width)
        again, _, here, _ = run_of(problem, lambda step: step >= steps, executor=sleepers, threads=1)
        assert again.counters["nodes"] == nodes
        assert again.bound == result.bound
        took = sleepers.ended - sleepers.begun
        found.append(Figures(name, "simulated", width, took, nodes, again.gap, len(recorder.kept), kernel, here))
    return found


def computed(name: str, problem: Problem, widths: list[int], seconds: float) -> list[Figures]:
    """One run with one thread, and what its clocks show; it is to take `seconds` of wall time at the largest width."""
    executor = Computed(widths)
    clocks, most = executor.clocks, seconds * max(widths)
    with timing(clocks):
        result, *_ = run_of(
            problem, lambda _: sum(clocks.worked[1]) >= most, executor=executor, threads=1, settings=PATIENT
        )
    beside, units = clocks.worked
    found = list[Figures]()
    for width, wall, waited in zip(widths, clocks.now, clocks.waited, strict=True):
        one = Figures(name, "computed", width, wall, result.counters["nodes"], result.gap, len(units), sum(units))
        one.coordinator_seconds, one.waited = clocks.own, waited | {"beside": sum(beside)}
        found.append(one)
    return found


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, nargs="*", default=[])
    parser.add_argument("--simulate", type=int, nargs="*", default=[])
    parser.add_argument("--compute", type=int, nargs="*", default=[])
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
        if asked.compute:
            parts.append(computed(name, problem, asked.compute, asked.seconds))
        for figures in (one for part in parts for one in part):
            print(figures.line(), flush=True)
            found.append(figures)
    if asked.json:
        asked.json.write_text(json.dumps([asdict(one) for one in found], indent=1))


if __name__ == "__main__":
    main()
