"""Functions of single features against single features: accuracy on usps by the number of pixels; what a call costs.

    MIPFS_DATA=folder python benchmarks/additive.py            all that is not stored yet, and the report
    MIPFS_DATA=folder python benchmarks/additive.py --M 5 10   some numbers of pixels only

Odd against even digits, the official test rows. All methods are feature generation (squared hinge, with intercept): a
few iterations, the pool rounded to M pixels and polished by exchanges; of several numbers of iterations the one of
least training objective. Linear for every C of GRID; the histogram intersection kernel of pixels in LEVELS grey levels
for those of OWN, its SVM being the dear one. Results are stored in reports/additive.jsonl line by line; what is stored
is not measured again. The report is reports/additive.md.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
import tracemalloc
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from threadpoolctl import threadpool_limits

import mipfs
from mipfs import atoms

Array = npt.NDArray[np.float64]

ROOT = Path(__file__).resolve().parents[1]
STORE, REPORT = ROOT / "reports" / "additive.jsonl", ROOT / "reports" / "additive.md"
SIZES = (1, 2, 3, 5, 8, 12, 20)
GRID, LEVELS = (0.1, 1.0, 10.0), 8
ITERATIONS, T = (2, 5, 10), 10
OWN = (1.0, 10.0)
METHODS = (*(("linear", C) for C in GRID), *(("hik", C) for C in OWN))
CALLS = 20


def usps() -> tuple[Array, Array, npt.NDArray[np.bool_]]:
    """Pixels, signs, and which rows are the test's."""
    folder = os.environ.get("MIPFS_DATA")
    if folder is None:
        sys.exit("error: MIPFS_DATA is not set; it names the folder of the data sets")
    place = Path(folder, "usps")
    data = mipfs.read(place / "data.svm.gz")
    return data.block().dense(), data.y, np.load(place / "is_test.npy").astype(bool)


def curves(sizes: tuple[int, ...], known: set[str]) -> Iterator[dict[str, Any]]:
    """A line for every method, C and number of pixels."""
    wanted = [(method, C, M) for M in sizes for method, C in METHODS if f"{method} {C:g} {M}" not in known]
    if not wanted:
        return
    X, y, test = usps()
    data = mipfs.Instance.from_arrays(X[~test], y[~test])
    made = {"linear": atoms.make("features", data), "hik": atoms.make("additive-hik", data, levels=LEVELS)}
    for method, C, M in wanted:
        problem = mipfs.Problem(data, atoms=made[method], loss="squared-hinge", M=M, C=C)
        begin = time.process_time()
        results = [mipfs.solve(problem, "kelley", T=iterations, polish=True) for iterations in ITERATIONS]
        result = min(results, key=lambda one: one.objective)
        accuracy = [float(np.mean((result.decision_function(X[part]) > 0) == (y[part] > 0))) for part in (~test, test)]
        yield {
            "key": f"{method} {C:g} {M}", "method": method, "M": M, "C": C, "train": accuracy[0], "test": accuracy[1],
            "pixels": len(result.selected), "objective": result.objective, "seconds": time.process_time() - begin,
        }  # fmt: skip


def oracle(known: set[str]) -> Iterator[dict[str, Any]]:
    """A line for every size: the sort, which is done once, and a call; both in nanoseconds for every non-zero."""
    r = np.random.default_rng(0)
    shapes = [("dense", n, 100) for n in (1000, 4000, 16000, 64000)]
    shapes += [("sparse", n, 100 * n) for n in (1000, 4000, 16000)]
    for kind, n, p in shapes:
        key = f"{kind} {n} {p}"
        if key in known:
            continue
        dense = kind == "dense"
        X: Any = r.random((n, p)) if dense else sparse.random_array((n, p), density=100 / p, rng=r, format="csc")
        y = np.where(np.arange(n) % 2, 1.0, -1.0)
        data = mipfs.Instance.from_arrays(X, y)
        atoms.make("additive-hik", data).scores(y)  # compiles
        begin = time.process_time()
        made = atoms.make("additive-hik", data)
        sort = time.process_time() - begin
        vectors = r.standard_normal((CALLS, n))
        begin = time.process_time()
        for v in vectors:
            made.scores(v)
        yield {
            "key": key, "kind": kind, "n": n, "p": p, "nnz": data.block().nnz, "sort_seconds": sort,
            "call_seconds": (time.process_time() - begin) / CALLS,
        }  # fmt: skip


def memory(known: set[str]) -> Iterator[dict[str, Any]]:
    """The relaxation with the exact kernel of unrounded pixels: what is held, against the columns of all pixels."""
    if "memory" in known:
        return
    X, y, test = usps()
    data = mipfs.Instance.from_arrays(X[~test], y[~test])
    problem = mipfs.Problem(data, atoms=atoms.make("additive-hik", data), loss="squared-hinge", M=10, C=1.0)
    mipfs.solve(problem, "kelley", T=2, refit=False)  # compiles
    tracemalloc.start()
    begin = time.process_time()
    result = mipfs.solve(problem, "kelley", T=T, refit=False)
    seconds, peak = time.process_time() - begin, tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    relaxed = result.relaxed or {}
    n, K = problem.data.block().shape
    yield {
        "key": "memory", "n": n, "K": K, "peak_bytes": peak, "dense_bytes": 8 * n * K,
        "pixels": len(relaxed["sigma"]), "seconds": seconds, "upper": relaxed["upper"], "lower": relaxed["lower"],
    }  # fmt: skip


def stored() -> dict[str, dict[str, Any]]:
    """What is there, by key; the last of a key counts."""
    if not STORE.exists():
        return {}
    return {line["key"]: line for line in map(json.loads, STORE.read_text(encoding="utf-8").splitlines())}


def table(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """A table in Markdown."""
    lines = [header, ("---",) * len(header), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def report(lines: dict[str, dict[str, Any]]) -> str:
    """The report."""
    rows, sizes = [], sorted({line["M"] for line in lines.values() if "method" in line})
    won, fitted = [], []
    for M in sizes:
        linear = [lines.get(f"linear {C:g} {M}") for C in GRID]
        own = [lines.get(f"hik {C:g} {M}") for C in OWN]
        both = [one for one in (*linear, *own) if one is not None]
        if len(both) < len(METHODS):
            continue
        test, train = ([100 * one[what] for one in both] for what in ("test", "train"))
        split = len(GRID)
        won += [M] if max(test[split:]) > max(test[:split]) else []
        fitted += [M] if max(train[split:]) > max(train[:split]) else []
        cells = [f"{a:.2f} ({b:.2f})" for a, b in zip(test, train, strict=True)]
        rows.append((f"{M}", *cells, f"{both[1]['seconds']:.1f}", f"{both[split]['seconds']:.1f}"))
    header = ("M", *(f"{name}, C = {C:g}" for name, C in METHODS), "linear, s", "hik, s")
    sized = [line for line in lines.values() if "call_seconds" in line]
    calls = [
        (
            one["kind"], f"{one['n']:,}", f"{one['p']:,}", f"{one['nnz']:,}", f"{one['sort_seconds']:.3f}",
            f"{1e3 * one['call_seconds']:.2f}", f"{1e9 * one['call_seconds'] / one['nnz']:.1f}",
        )
        for one in sized
    ]  # fmt: skip
    text = f"""# Functions of single features

Made by `MIPFS_DATA=folder python benchmarks/additive.py` from `additive.jsonl`.

## usps, odd against even digits, by the number of pixels

Accuracy in per cent on the 2,007 test rows, in brackets on the 7,291 training rows; CPU seconds for C = 1. Feature
generation with the squared hinge and an intercept; the pool after {", ".join(map(str, ITERATIONS))} iterations is
rounded to M pixels and polished by exchanges, and the selection of least training objective is kept. `hik` is the
histogram intersection kernel of pixels in {LEVELS} grey levels. Each at its best C, the kernel is ahead of linear on
the test rows for M = {", ".join(map(str, won)) or "none"}, and on the training rows for
M = {", ".join(map(str, fitted)) or "none"}; of the other M it is not.

{table(header, rows)}
## A call of the oracle

All scores v'K_j v of the exact kernel for one v. Features are sorted once, O(nnz log nnz); a call is one pass over the
non-zeros, O(nnz), and looks v up by sample.

{table(("data", "n", "p", "non-zeros", "sort, s", "call, ms", "ns per non-zero"), calls)}"""
    one = lines.get("memory")
    if one is not None:
        dense, held = one["dense_bytes"] / 1e9, one["peak_bytes"] / 1e6
        text += f"""
## What is held

The relaxation of usps (training rows, M = 10, T = {T}, no refit) with the exact kernel of unrounded pixels:
{one["K"]:,} columns, which as a dense matrix are {dense:.1f} GB. At most {held:.0f} MB were held beside the data and
its sorted copy (arrays of NumPy), for the columns of {one["pixels"]} selected pixels and one block;
{one["seconds"]:.1f} CPU s, sides {one["lower"]:.6g} and {one["upper"]:.6g}. A sample has at most log₂ d + 1 columns
of a feature with d distinct values that are not zero.
"""
    versions = {name: version(name) for name in ("numpy", "scikit-learn", "mipfs")}
    return f"{text}\n{os.cpu_count()} cores, Python {platform.python_version()}; {versions}.\n"


def main() -> int:
    """Measure what is not stored, and write the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--M", type=int, nargs="+", default=SIZES)
    given = parser.parse_args()
    with threadpool_limits(1), STORE.open("a", encoding="utf-8") as file:
        known = set(stored())
        for stage in (oracle(known), memory(known), curves(tuple(given.M), known)):
            for line in stage:
                print(json.dumps(line), flush=True)
                file.write(json.dumps(line) + "\n")
                file.flush()
    REPORT.write_text(report(stored()), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
