"""Step 1 of `kelley` on Dask workers: what a pass over the columns costs, what travels, and 10⁹ x 10⁹ on paper.

    python benchmarks/dask_scores.py [--rows 1e6] [--nonzeros 2e7]

Measured here, in processor seconds of one thread: a pass over all stored numbers (v is read at random places), and the
screened search. Measured on a `LocalCluster`: the time from the question to the merged answer beyond the pass itself.
"""

from __future__ import annotations

import argparse
import os
import time

import numpy as np
from distributed import Client
from scipy import sparse

from mipfs.atoms.features import Features
from mipfs.atoms.parts import LocalParts
from mipfs.atoms.spread import Spread
from mipfs.atoms.top import search_of
from mipfs.data.instance import Instance

WIRE = 1.25e9
"""Assumed: bytes a second of a 10 Gbit/s network."""
MACHINES, CORES, FEATURES, ROWS, A_ROW = 64, 16, 1e9, 1e9, 100
"""On paper: machines and their cores, features, rows, stored numbers a row."""
STORED = 8
"""Bytes of a stored number in float32 with its row."""
REPEATS = 20


def made(n: int, nonzeros: int) -> Instance:
    """Columns of Zipf's law: the k-th has a share 1/(k + 10) of the stored numbers."""
    r = np.random.default_rng(0)
    p = max(1000, nonzeros // 100)
    share = 1.0 / (np.arange(p) + 10.0)
    sizes = np.minimum(n // 4, np.ceil(nonzeros * share / share.sum())).astype(np.int64)
    column = np.repeat(np.arange(p), sizes)
    X = sparse.csc_array((np.ones(column.size), (r.integers(0, n, column.size), column)), shape=(n, p))
    return Instance.from_arrays(X, np.where(r.random(n) < 0.5, 1.0, -1.0))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=float, default=1e6)
    parser.add_argument("--nonzeros", type=float, default=2e7)
    given = parser.parse_args()
    data = made(int(given.rows), int(given.nonzeros))
    X, features = data.block().values, Features(data)
    print(f"{data!r}, {X.nnz:,} stored numbers, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    v = np.random.default_rng(1).normal(size=data.n_samples)
    search = search_of(features)
    assert isinstance(search, LocalParts)
    for part in search.parts:
        part.threads = 1
    search.best(v, 10)
    whole = _least(lambda: X.T @ v)
    screened = _least(lambda: search.best(v, 10))
    print(
        f"a pass over all: {1e9 * whole / X.nnz:.2f} ns a number; the 10 best, screened: {1e9 * screened / X.nnz:.2f}"
    )
    with Client(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0") as client:
        spread = Spread(features, client, lambda: False)
        there = spread.best(v, 10)
        here = search.best(v, 10)
        assert np.array_equal(there.ids, here.ids)
        assert np.array_equal(there.keys, here.keys)
        took = []
        for _ in range(REPEATS):
            begin = time.perf_counter()
            spread.best(v, 10)
            took.append(time.perf_counter() - begin)
        print(f"2 workers: {1e3 * min(took):.1f} ms from question to answer, {1e3 * np.median(took):.1f} half the time")
    paper(whole / X.nnz)


def _least(work: object) -> float:
    """The least processor seconds of some calls."""
    found = []
    for _ in range(5):
        begin = time.thread_time()
        work()  # type: ignore[operator]
        found.append(time.thread_time() - begin)
    return min(found)


def paper(number: float) -> None:
    """What the constants make of the large problem."""
    stored = ROWS * A_ROW
    there, vector = stored / MACHINES, 8.0 * ROWS
    answer = MACHINES * 10 * 16
    print(f"\n{FEATURES:.0e} features x {ROWS:.0e} rows, {A_ROW} numbers a row, {MACHINES} machines of {CORES} cores")
    print(f"columns: {stored * STORED / 1e12:.2f} TB, {there * STORED / 1e9:.1f} GB a machine; sent once, or mapped")
    print(f"v: {vector / 1e9:.1f} GB to every machine, {vector / WIRE:.1f} s if passed on piece by piece,", end=" ")
    print(f"{vector / WIRE * np.ceil(np.log2(MACHINES)):.1f} s if passed on whole; back: {answer / 1e3:.0f} kB")
    print(f"the pass: {there * number / CORES:.1f} s on {CORES} cores")


if __name__ == "__main__":
    main()
