"""`branch` on Dask workers: the tree of one process, throughput with 1 and 2 workers, the constants of docs/scale.md.

    python benchmarks/dask_tree.py [--workers 1 2] [--nodes 4000] [--small]

The same batches are explored by one thread of this process and by 1, 2, ... worker processes; nodes, bound and
objective must agree. Printed are nodes per second of wall time, the processor seconds of this process (the serial
part: merging, rounding, handing out) and of the workers, and what travels. On a machine that does other work wall
times say little: the last lines compute from processor seconds alone what is left if every worker had its own core.
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
from mipfs.drivers.executor import Part
from mipfs.plumbing.cluster import Task
from mipfs.result.result import Result

BEGINNING = 200
"""Nodes until incumbents are found and the batches are full."""
WIDE = 64
"""Workers of the figures on paper."""
WIRE, LATENCY, TASK = 1.25e9, 5e-4, 3e-4
"""Assumed: bytes a second of a 10 Gbit/s network, seconds of a round trip, seconds of the scheduler for a task."""


def problem(small: bool) -> mipfs.Problem:
    """Correlated columns and noisy labels, where the relaxation is far below: a tree of many thousand nodes."""
    n, p = (300, 60) if small else (1000, 100)
    rng = np.random.default_rng(2026)
    X = rng.standard_normal((n, p)) + 0.7 * rng.standard_normal((n, 1))
    y = np.where(X[:, :12] @ rng.uniform(0.5, 1.5, 12) + 6.0 * rng.standard_normal(n) > 0, 1.0, -1.0)
    return mipfs.Problem(Instance.from_arrays(X, y, scale="standard"), M=10, C=0.1)


@dataclass
class Measured:
    """One run."""

    result: Result
    wall: float
    here: float
    there: float
    sent: Counter[str]


def solved(asked: mipfs.Problem, nodes: int, **options: Any) -> Measured:
    """Solve, and take processor and wall time; what travels is counted where there is a client."""
    client, sent = options.get("client"), Counter[str]()
    send, look = workers.Workers.submit, workers.Workers.result

    def counted(self: workers.Workers, part: Part) -> Task:
        sent["tasks"] += 1
        sent["nodes out"] += len(part.nodes)
        sent["bytes out"] += len(pickle.dumps(part.orders(), protocol=5))
        sent["bytes once"] = len(pickle.dumps(self._solver, protocol=5))
        return send(self, part)

    def received(self: workers.Workers, handle: Task, seconds: float) -> Any:
        found = look(self, handle, seconds)
        sent["bytes back"] += 0 if found is None else len(pickle.dumps(found, protocol=5))
        return found

    before = sum(client.run(time.process_time).values()) if client else 0.0
    if options.pop("counting", False):
        workers.Workers.submit, workers.Workers.result = counted, received  # type: ignore[method-assign]
    try:
        wall, here = time.perf_counter(), time.thread_time()
        result = mipfs.solve(asked, "branch", iteration_limit=nodes, batch=64, **options)
        wall, here = time.perf_counter() - wall, time.thread_time() - here
    finally:
        workers.Workers.submit, workers.Workers.result = send, look  # type: ignore[method-assign]
    there = sum(client.run(time.process_time).values()) - before if client else 0.0
    return Measured(result, wall, here, there, sent)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--nodes", type=int, default=4000)
    parser.add_argument("--small", action="store_true", help="300 x 60 instead of 1,000 x 100")
    given = parser.parse_args()
    asked = problem(given.small)
    print(f"{asked!r}, {given.nodes} nodes, batches of 64, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}\n")
    mipfs.solve(asked, "branch", iteration_limit=100, threads=1)
    alone = time.process_time()
    first = solved(asked, given.nodes, threads=1)
    alone = time.process_time() - alone
    reached = first.result.counters["nodes"]
    print(f"{'':>10}  {'nodes':>7}  {'nodes/s':>8}  {'CPU s here':>10}  {'CPU s there':>11}  {'bound':>10}")
    print(_line("1 thread", first.result, first.wall, first.here, alone - first.here))
    runs: dict[int, Measured] = {}
    for count in given.workers:
        with (
            LocalCluster(n_workers=count, threads_per_worker=1, dashboard_address=":0") as cluster,
            Client(cluster) as own,
        ):
            solved(asked, BEGINNING, client=own)
            begun = solved(asked, BEGINNING, client=own)
            found = runs[count] = solved(asked, given.nodes, client=own)
            same = found.result.bound == first.result.bound and found.result.objective == first.result.objective
            assert same, "the tree is another one"
            assert found.result.counters["nodes"] == reached
            print(_line(f"{count} worker{'s' * (count > 1)}", found.result, found.wall, found.here, found.there))
            sent = solved(asked, given.nodes, client=own, counting=True).sent
    if len(runs) > 1:
        low, high = min(runs), max(runs)
        print(f"\nwall time with {low} over {high} workers: {runs[low].wall / runs[high].wall:.2f}")
    paper(found, begun, sent)


def _line(name: str, result: Result, wall: float, here: float, there: float) -> str:
    nodes = result.counters["nodes"]
    return f"{name:>10}  {nodes:>7}  {nodes / wall:>8.1f}  {here:>10.2f}  {there:>11.2f}  {result.bound:>10.4f}"


def paper(one: Measured, begun: Measured, sent: Counter[str]) -> None:
    """What the constants make of more workers, the first nodes left out: whoever is slowest decides."""
    tasks, pieces, nodes = sent["tasks"], sent["nodes out"], one.result.counters["nodes"]
    more = nodes - begun.result.counters["nodes"]
    explore, serial = (one.there - begun.there) / more, (one.here - begun.here) / more
    out, back = sent["bytes out"] / pieces, sent["bytes back"] / pieces
    print(
        f"\nonce {sent['bytes once'] / 1e6:.2f} MB; a subtree: {out / 1e3:.1f} kB out, {back / 1e3:.1f} kB back, ",
        end="",
    )
    print(f"{nodes / pieces:.2f} nodes; a task: {pieces / tasks:.1f} subtrees")
    print(f"a node: {1e3 * explore:.3f} ms of a worker, {1e3 * serial:.3f} ms of this process")
    wire, nodes_each = (out + back) * pieces / nodes / WIRE, nodes / pieces
    print(f"\n{'workers':>8}  {'speed-up':>8}  limited by")
    base = 0.0
    for count in (1, 2, 4, 8, 16, 32, WIDE):
        # subtrees in bundles of a batch that is as large as needed: 16 for every worker, 8 to a task
        cost = {
            "workers": explore / count + LATENCY / (8 * nodes_each * count),
            "this process": serial,
            "the network": wire,
            "the scheduler": TASK / (8 * nodes_each),
        }
        slowest = max(cost, key=lambda name: cost[name])
        base = base or cost[slowest]
        print(f"{count:>8}  {base / cost[slowest]:>8.1f}  {slowest}")


if __name__ == "__main__":
    main()
