"""Two threads of this version beside two processes of an earlier one, of one thread each: nodes a second, in pairs.

    python benchmarks/pairs.py CHECKOUT [--pairs 5] [--seconds 10] [--only sonar10 ...] [--json FILE]

CHECKOUT is a folder with the earlier version. Processes live as long as the comparison of a problem; each has compiled
its kernels before anything is timed. The two processes begin together; who goes first changes from pair to pair.
Printed are the nodes a second of each side and their quotient, in every pair, and the median. Problems are stated
here and not taken from `cores.py`, which an earlier version cannot import.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import mipfs
from mipfs import Instance, Problem
from mipfs.generators import aytug_one

MADE = {"500x100": (500, 100, 20, 32.0)}
READ = {"sonar5": ("sonar", 5, 1.0), "sonar10": ("sonar", 10, 1.0), "spambase10": ("spambase", 10, 0.1)}


def problem_of(name: str) -> Problem:
    """The problem of this name: n, p, M, C of one made after Aytug (2015), or data, M, C of a standardised one."""
    if name in MADE:
        n, p, M, C = MADE[name]
        return Problem(Instance.from_arrays(*aytug_one(n, p, M, seed=1)["train"]), M=M, C=C)
    data, M, C = READ[name]
    return Problem(mipfs.read(Path(os.environ["MIPFS_DATA"], data, "data.svm.gz"), scale="standard"), M=M, C=C)


def serve(name: str, threads: int, seconds: float) -> None:
    """Solve once for every line of the standard input, and print nodes and seconds."""
    problem = problem_of(name)
    mipfs.solve(problem, "branch", iteration_limit=200, threads=threads)
    print("ready", flush=True)
    for _ in sys.stdin:
        begun = time.perf_counter()
        result = mipfs.solve(problem, "branch", threads=threads, time_limit=seconds)
        print(result.counters["nodes"], time.perf_counter() - begun, flush=True)


def started(checkout: Path, name: str, threads: int, seconds: float) -> subprocess.Popen[str]:
    """A process that serves, with the package of a checkout, when its kernels are compiled."""
    command = [sys.executable, __file__, str(checkout), "--serve", name, str(threads), str(seconds)]
    pipe = subprocess.PIPE
    made = subprocess.Popen(command, env=os.environ | {"PYTHONPATH": str(checkout)}, stdin=pipe, stdout=pipe, text=True)
    assert made.stdout is not None
    assert made.stdout.readline() == "ready\n"
    return made


def rate_of(processes: list[subprocess.Popen[str]]) -> float:
    """Nodes a second of processes that begin together."""
    for one in processes:
        assert one.stdin is not None
        one.stdin.write("go\n")
        one.stdin.flush()
    rate = 0.0
    for one in processes:
        assert one.stdout is not None
        nodes, seconds = one.stdout.readline().split()
        rate += int(nodes) / float(seconds)
    return rate


def compared(checkout: Path, name: str, pairs: int, seconds: float) -> list[tuple[float, float]]:
    """Nodes a second of two threads here and of two processes there, pair by pair."""
    here = [started(Path(__file__).resolve().parents[1], name, 2, seconds)]
    there = [started(checkout, name, 1, seconds) for _ in range(2)]
    found = []
    for number in range(pairs):
        first = rate_of(there if number % 2 else here)
        second = rate_of(here if number % 2 else there)
        found.append((second, first) if number % 2 else (first, second))
    for one in here + there:
        one.communicate()
    return found


def main() -> None:
    """Compare what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--only", nargs="*", default=list(READ | MADE), choices=list(READ | MADE))
    parser.add_argument("--json", type=Path)
    parser.add_argument("--serve", nargs=3, metavar=("NAME", "THREADS", "SECONDS"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.serve:
        serve(asked.serve[0], int(asked.serve[1]), float(asked.serve[2]))
        return
    lacks = [] if os.environ.get("MIPFS_DATA") else [name for name in asked.only if name in READ]
    if lacks:
        print(f"{', '.join(lacks)}: left out, MIPFS_DATA is unset (give the folder that holds the data sets)")
    asked.only = [name for name in asked.only if name not in lacks]
    found = {name: compared(asked.checkout, name, asked.pairs, asked.seconds) for name in asked.only}
    for name, rates in found.items():
        each = " ".join(f"{new:,.0f}/{old:,.0f}" for new, old in rates)
        print(f"{name:10} median {statistics.median(new / old for new, old in rates):.3f}   {each}")
    if asked.json:
        asked.json.write_text(json.dumps(found))


if __name__ == "__main__":
    main()
