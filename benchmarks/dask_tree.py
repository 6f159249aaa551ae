"""`branch` on Dask workers: the tree of one process, CPU seconds of all who take part, and what travels.

    python benchmarks/dask_tree.py [--workers 1 2] [--nodes 4000] [--small]

The same units of work are explored by one thread of this process and by 1, 2, ... worker processes; nodes, bound and
objective must agree. Printed are nodes per second of wall time, and CPU seconds: of the thread that hands out and
merges, of the other threads of this process (that explore, or look for incumbents and speak to the workers), and of the
workers. Another run counts what travels. On a machine that does other work wall times say little.
"""

from __future__ import annotations

import argparse
import os
import pickle
import time
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from distributed import Client, LocalCluster

import mipfs
from mipfs.data.instance import Instance
from mipfs.drivers import workers
from mipfs.inner.unit import Explored, Unit
from mipfs.plumbing.cluster import Task
from mipfs.result.result import Result

BEGINNING = 200
"""Nodes of the run before the one that is measured: workers load their kernels."""


def problem(small: bool) -> mipfs.Problem:
    """Correlated columns and noisy labels, where the relaxation is far below: a tree of many thousand nodes."""
    n, p = (300, 60) if small else (1000, 100)
    rng = np.random.default_rng(2026)
    X = rng.standard_normal((n, p)) + 0.7 * rng.standard_normal((n, 1))
    y = np.where(X[:, :12] @ rng.uniform(0.5, 1.5, 12) + 6.0 * rng.standard_normal(n) > 0, 1.0, -1.0)
    return mipfs.Problem(Instance.from_arrays(X, y, scale="standard"), M=10, C=0.1)


@dataclass
class Measured:
    """One run: wall seconds, and CPU seconds of the coordinating thread, of the others here, and of the workers."""

    result: Result
    wall: float
    coordinator: float
    others: float
    there: float

    def line(self, name: str) -> str:
        """For the terminal."""
        nodes = self.result.counters["nodes"]
        seconds = f"{self.coordinator:>11.2f}  {self.others:>6.2f}  {self.there:>7.2f}"
        return f"{name:>10}  {nodes:>7}  {nodes / self.wall:>8.1f}  {seconds}  {self.result.bound:>10.4f}"


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


def travels(asked: mipfs.Problem, nodes: int, client: Client) -> Counter[str]:
    """What goes to workers and comes back in a run."""
    sent = Counter[str]()
    send, look = workers.Workers.submit, workers.Workers.result

    def counted(self: workers.Workers, unit: Unit, seconds: float | None) -> Task:
        sent["units"] += 1
        sent["open nodes"] += len(unit)
        sent["bytes out"] += len(pickle.dumps(unit, protocol=5))
        sent["bytes once"] = len(pickle.dumps(self._solver, protocol=5))
        return send(self, unit, seconds)

    def received(self: workers.Workers, handle: Task, seconds: float) -> Explored | None:
        found = look(self, handle, seconds)
        sent["bytes back"] += 0 if found is None else len(pickle.dumps(found, protocol=5))
        return found

    workers.Workers.submit, workers.Workers.result = counted, received  # type: ignore[method-assign]
    try:
        sent["nodes"] = solved(asked, nodes, client=client).result.counters["nodes"]
    finally:
        workers.Workers.submit, workers.Workers.result = send, look  # type: ignore[method-assign]
    return sent


def told(sent: Counter[str], one: Measured) -> str:
    """What travels, and what a node and a unit cost whom."""
    units, nodes = sent["units"], sent["nodes"]
    out, back = sent["bytes out"] / units, sent["bytes back"] / units
    return (
        f"once {sent['bytes once'] / 1e6:.2f} MB; {units} units: {out / 1e3:.1f} kB out, {back / 1e3:.1f} kB back, "
        f"{sent['open nodes'] / units:.1f} open nodes, {nodes / units:.1f} nodes solved\n"
        f"a node: {1e3 * one.there / nodes:.3f} ms of a worker, "
        f"{1e6 * one.coordinator / nodes:.1f} us of the coordinator, {1e3 * one.coordinator / units:.2f} ms a unit"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--nodes", type=int, default=4000)
    parser.add_argument("--small", action="store_true", help="300 x 60 instead of 1,000 x 100")
    given = parser.parse_args()
    asked = problem(given.small)
    print(f"{asked!r}, {given.nodes} nodes, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}\n")
    mipfs.solve(asked, "branch", iteration_limit=100, threads=1)
    first = solved(asked, given.nodes, threads=1)
    print(f"{'CPU s of':>28}  {'coordinator':>11}  {'others':>6}  {'workers':>7}")
    print(f"{'':>10}  {'nodes':>7}  {'nodes/s':>8}  {'':>11}  {'':>6}  {'':>7}  {'bound':>10}")
    print(first.line("1 thread"))
    runs: dict[int, Measured] = {}
    for count in given.workers:
        with (
            LocalCluster(n_workers=count, threads_per_worker=1, dashboard_address=":0") as cluster,
            Client(cluster) as own,
        ):
            solved(asked, BEGINNING, client=own)
            found = runs[count] = solved(asked, given.nodes, client=own)
            same = found.result.bound == first.result.bound and found.result.objective == first.result.objective
            assert same, "the tree is another one"
            assert found.result.counters["nodes"] == first.result.counters["nodes"]
            print(found.line(f"{count} worker{'s' * (count > 1)}"))
            sent = travels(asked, given.nodes, own)
    if len(runs) > 1:
        low, high = min(runs), max(runs)
        print(f"\nwall time with {low} over {high} workers: {runs[low].wall / runs[high].wall:.2f}")
    print(f"\n{told(sent, found)}")


if __name__ == "__main__":
    main()
