"""What a sketch costs an exact solve: the optimum over 300 chosen features, its bound for the whole problem, the growth
of the active set until the whole is proven, and the exact solve of the whole.

    MIPFS_DATA=... python benchmarks/preselect.py                 leukemia, colon and prostate
    MIPFS_DATA=... python benchmarks/preselect.py --sets colon_alon --M 5 --C 0.01 --how bss:300,rfe:100

Prints a table: a line for every way to choose. "at first" is what the features chosen alone give: their optimum, and
the gap of that for the whole problem; the whole solve has none. Seconds are those to choose and those to solve.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from importlib.metadata import version
from pathlib import Path

import mipfs

SETS = ("leukemia_golub", "colon_alon", "prostate_singh")


def measured(problem: mipfs.Problem, how: str | None, limit: float) -> tuple[str, ...]:
    """The cells of a line."""
    begin = time.perf_counter()
    active = None if how is None else mipfs.preselect(problem, how)
    chosen = time.perf_counter() - begin
    first: list[mipfs.Record] = []
    grown: list[int] = []

    def seen(record: mipfs.Record) -> None:
        count = record.counters.get("active")
        if count is not None and (not grown or grown[-1] != count):
            grown.append(count)
        if len(grown) == 1:
            first[:] = [record]

    result = mipfs.solve(problem, "branch", active=active, time_limit=limit, callback=seen)
    accepted = mipfs.verify(result, problem.data).accepted
    at_first = ("-", "-")
    if how is not None and first:
        value, bound = first[0].objective, first[0].bound
        at_first = f"{value:.6g}", f"{100.0 * (value - bound) / abs(value):.2f}%"
    growth = " → ".join(map(str, grown)) if how is not None else str(problem.data.n_features)
    sound = "accepted" if accepted else "REJECTED"
    return (
        how or "all features", *at_first, growth, f"{result.objective:.6g}", f"{100.0 * result.gap:.3f}%",
        result.status.name, f"{chosen:.2f} + {result.seconds:.2f}", sound,
    )  # fmt: skip


def main() -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--how", default="bss:300,fgm:300,rfe:300")
    parser.add_argument("--M", type=int, default=5)
    parser.add_argument("--C", type=float, default=0.01)
    parser.add_argument("--limit", type=float, default=60.0)
    given = parser.parse_args()
    folder = os.environ.get("MIPFS_DATA")
    if folder is None:
        print("set MIPFS_DATA to the folder of the real sets", file=sys.stderr)
        return 2
    print(f"mipfs {version('mipfs')}, Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores")
    heads = (
        "begin with",
        "at first",
        "its gap",
        "active",
        "objective",
        "gap",
        "status",
        "choose + solve, s",
        "certificate",
    )
    for name in given.sets.split(","):
        data = mipfs.read(Path(folder) / name / "data.svm.gz", scale="standard")
        problem = mipfs.Problem(data, M=given.M, C=given.C)
        mipfs.solve(problem, "branch", time_limit=0.1)  # what is compiled and cached is so for every line
        print(f"\n{name}, {data.n_samples} x {data.n_features}, M = {given.M}, C = {given.C:g}, hinge, standardised")
        lines = [heads, *(measured(problem, how, given.limit) for how in [*given.how.split(","), None])]
        widths = [max(len(line[k]) for line in lines) for k in range(len(heads))]
        for line in lines:
            print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip(), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
