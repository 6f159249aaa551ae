"""`branch` on Dask workers: the tree of one process, CPU seconds of all who take part, and what travels.

    python benchmarks/dask_tree.py [--workers 1 2] [--simulate 15] [--seconds 10] [--only sonar10 500x100]

Real: the same units of work are explored by one thread of this process and by 1, 2, … worker processes; nodes, bound
and objective must agree. Printed are nodes per second of wall time, and CPU seconds, a unit of work each: of the thread
that hands out and merges, of the other threads of this process (the search for incumbents; the scheduler of a local
cluster), and of the workers. On a machine that does other work wall times say little.

Simulated: one thread explores, and what came of every unit is kept with the seconds that it took. Then the run is
repeated by workers of a local cluster, threads of few processes, which sleep that long and send what was kept: messages
and coordinator are real, and share the cores that there are. Printed is kernel seconds / (wall × workers).
"""

from __future__ import annotations

import argparse
import os
import pickle
import tempfile
import time
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from cores import PROBLEMS, Recorder
from distributed import Client, LocalCluster

import mipfs
from mipfs.data.instance import Instance
from mipfs.drivers import workers
from mipfs.drivers.tree import SearchTree
from mipfs.inner.unit import NodeUnit, UnitResult
from mipfs.result.result import Result

BEGINNING = 200
"""Nodes of the run before the one that is measured: workers load their kernels."""


def noisy() -> mipfs.Problem:
    """Correlated columns and noisy labels, where the relaxation is far below: a tree of many thousand nodes."""
    n, p = 1000, 100
    rng = np.random.default_rng(2026)
    X = rng.standard_normal((n, p)) + 0.7 * rng.standard_normal((n, 1))
    y = np.where(X[:, :12] @ rng.uniform(0.5, 1.5, 12) + 6.0 * rng.standard_normal(n) > 0, 1.0, -1.0)
    return mipfs.Problem(Instance.from_arrays(X, y, scale="standard"), M=10, C=0.1)


ASKED: dict[str, Callable[[], mipfs.Problem | None]] = {"1000x100": noisy} | PROBLEMS


@dataclass
class Measured:
    """One run: wall seconds, and CPU seconds of the coordinating thread, of the others here, and of the workers."""

    result: Result
    wall: float
    coordinator: float
    others: float
    there: float

    def line(self, name: str, units: int) -> str:
        """For the terminal."""
        nodes = self.result.counters["nodes"]
        each = "".join(f"{1e3 * one / units:>12.2f}" for one in (self.coordinator, self.others, self.there))
        return f"{name:>22} {nodes:>9,} nodes {nodes / self.wall:>9,.0f}/s {units:>7,} units{each} ms a unit"


def solved(asked: mipfs.Problem, nodes: int, **options: Any) -> Measured:
    """Solve, and take CPU and wall time."""
    client = options.get("client")
    there = _there(client)
    wall, all_here, here = time.perf_counter(), time.process_time(), time.thread_time()
    result = mipfs.solve(asked, "branch", iteration_limit=nodes, **options)
    wall, all_here, here = time.perf_counter() - wall, time.process_time() - all_here, time.thread_time() - here
    return Measured(result, wall, here, all_here - here, _there(client) - there)


def _there(client: Client | None) -> float:
    return sum(client.run(time.process_time).values()) if client else 0.0


@contextmanager
def cluster_of(size: int, threads: int = 1) -> Any:
    """A client of local worker processes with some threads each."""
    with (
        LocalCluster(n_workers=size, threads_per_worker=threads, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        yield client


@dataclass(eq=False)
class Kept:
    """In the place of the node solver: sleeps as long as a unit took, and hands back what was kept of it.

    Attributes
    ----------
    path : of the file that has it all
    places : seconds, begin and end in the file of every unit
    """

    path: str
    places: list[tuple[float, int, int]]

    def explore(self, asked: tuple[int, NodeUnit], seconds: float | None, stop: Any = None) -> UnitResult:
        """Sleep."""
        took, begin, end = self.places[asked[0]]
        time.sleep(took)
        with open(self.path, "rb") as file:
            file.seek(begin)
            return UnitResult(*pickle.loads(file.read(end - begin)))


class Replaying(workers.DaskExecutor):
    """The workers of a client, which sleep."""

    def __init__(self, client: Client, kept: Kept) -> None:
        super().__init__(client)
        self._kept = kept

    def open(self, tree: SearchTree) -> None:
        """As for a run."""
        super().open(tree)
        self._solver = self._kept  # type: ignore[assignment]
        self._order = count()

    def submit(self, unit: NodeUnit, seconds: float | None) -> Any:
        """Say which one it is, too."""
        return super().submit((next(self._order), unit), seconds)  # type: ignore[arg-type]


def shape_of(size: int) -> tuple[int, int]:
    """As few processes as have at most eight sleeping threads each: processes without work take cores, too."""
    count = next(count for count in range(-(-size // 8), size + 1) if size % count == 0)
    return count, size // count


def simulated(name: str, asked: mipfs.Problem, sizes: list[int], seconds: float) -> None:
    """One run with one thread, and its repetitions by sleeping workers."""
    rate = solved(asked, 10**9, threads=1, time_limit=4.0)
    limit = int(rate.result.counters["nodes"] / rate.wall * seconds * max(sizes))
    recorder = Recorder()
    first = solved(asked, limit, executor=recorder, threads=1)
    kernel = sum(took for took, _ in recorder.kept)
    units, nodes = len(recorder.kept), first.result.counters["nodes"]
    back = [pickle.dumps(tuple(found), protocol=5) for _, found in recorder.kept]
    print(f"{name}: recorded {nodes:,} nodes in {units:,} units, {1e3 * kernel / units:.1f} ms and "
          f"{np.mean([len(one) for one in back]) / 1e3:.1f} kB each")  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "kept")
        path.write_bytes(b"".join(back))
        ends = np.cumsum([len(one) for one in back]).tolist()
        seconds_of = [took for took, _ in recorder.kept]
        kept = Kept(str(path), list(zip(seconds_of, [0, *ends[:-1]], ends, strict=True)))
        for size in sizes:
            with cluster_of(*shape_of(size)) as client:
                solved(asked, BEGINNING, executor=Replaying(client, kept), threads=1)
                before = _there(client)
                again = solved(asked, limit, executor=Replaying(client, kept), threads=1)
                assert again.result.bound == first.result.bound
                assert again.result.counters["nodes"] == nodes
                again.there = _there(client) - before
                print(again.line(f"{size} simulated", units), end="")
                print(f"  kernels/(wall x workers) {kernel / (again.wall * size):.2f}", flush=True)


def real(name: str, asked: mipfs.Problem, sizes: list[int], seconds: float) -> None:
    """One thread, and workers, up to as many nodes."""
    rate = solved(asked, 10**9, threads=1, time_limit=seconds)
    limit = rate.result.counters["nodes"]
    recorder = Recorder()
    first = solved(asked, limit, executor=recorder, threads=1)
    units = len(recorder.kept)
    print(f"{name}: {'':>40}{'coordinator':>18}{'others':>12}{'workers':>12}")
    print(first.line("1 thread", units), flush=True)
    for size in sizes:
        with cluster_of(size) as client:
            solved(asked, BEGINNING, client=client)
            found = solved(asked, limit, client=client)
            assert found.result.bound == first.result.bound
            assert found.result.objective == first.result.objective
            assert found.result.counters["nodes"] == first.result.counters["nodes"]
            print(found.line(f"{size} workers", units), flush=True)


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--simulate", type=int, nargs="*", default=[])
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--only", nargs="*", default=["1000x100"], choices=list(ASKED))
    given = parser.parse_args()
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}\n")
    for name in given.only:
        asked = ASKED[name]()
        if asked is None:
            print(f"{name}: left out, MIPFS_DATA names no folder with its data")
            continue
        mipfs.solve(asked, "branch", iteration_limit=100, threads=1)
        if given.workers:
            real(name, asked, given.workers, given.seconds)
        if given.simulate:
            simulated(name, asked, given.simulate, given.seconds)


if __name__ == "__main__":
    main()
