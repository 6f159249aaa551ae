"""This version beside an earlier one: CPU time of the same small workloads, in alternation.

    python benchmarks/side_by_side.py COMMIT [--rounds 7] [--starts 1] [--only exact svm ...] [--json FILE]

The old version is checked out in a temporary folder. Each version lives in a process of its own, which has compiled its
kernels and solved every workload once before anything is timed; then the two take turns, and who begins changes from
round to round. What counts is the CPU time of the process (one thread), so other work on the machine hardly enters; the
ratio new / old is taken within every round, and its median and quartiles are printed. A workload that is shorter than
`LEAST` seconds is solved so many times in a turn that it is not.

Where the arrays of a process come to lie in memory is fixed when it starts, and moves solves of some milliseconds by 4%
in all rounds alike: for the workloads of ``svm`` take several `--starts`, each a new pair of processes.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
LEAST = 0.3
"""CPU seconds of a turn at least."""
BAR = 1.03
"""What the median ratio may be."""


@cache
def aytug(n: int, p: int, M: int, seed: int) -> Any:
    """Training data of a problem made after Aytug (2015); M is given, as versions draw it differently."""
    from mipfs import Instance
    from mipfs.generators import aytug_one

    return Instance.from_arrays(*aytug_one(n, p, M, seed)["train"])


@cache
def planted(n: int, p: int, per_row: int) -> Any:
    """n × p with a tenth of the informative columns first; `per_row` non-zeros in a row, or dense where that is 0."""
    from scipy import sparse

    from mipfs import Instance

    r = np.random.default_rng([n, p, per_row])
    X: Any = None
    if not per_row:
        X = r.standard_normal((n, p))
    else:
        columns = np.minimum((p * r.random((n, per_row)) ** 4).astype(np.int64), p - 1)
        values = r.uniform(0.5, 1.5, (n, per_row)) / per_row**0.5
        X = sparse.csr_array((values.ravel(), columns.ravel(), np.arange(0, n * per_row + 1, per_row)), shape=(n, p))
        X.sum_duplicates()
    w = np.zeros(p)
    w[r.integers(0, min(p, max(20, p // 10)), 40)] = r.standard_normal(40)
    scores = X @ w
    y = np.where(scores + 0.5 * scores.std() * r.standard_normal(n) > np.median(scores), 1.0, -1.0)
    return Instance.from_arrays(sparse.csc_array(X) if per_row else X, y)


def exact(n: int, p: int, M: int, C: float, seed: int, driver: str = "branch") -> dict[str, Any]:
    """FSP-M to a gap of 1e-4."""
    import mipfs

    data = aytug(n, p, M, seed)
    threads = {"threads": 1} if driver == "branch" else {}
    result = mipfs.solve(mipfs.Problem(data, M=M, C=C), driver, gap=1e-4, **threads)
    return {"value": result.objective, "status": result.status.name, "nodes": result.counters.get("nodes")}


def relaxation(n: int, p: int, per_row: int, loss: str, M: int, T: int | None, C: float) -> dict[str, Any]:
    """Feature generation with T selections of M features, or to a gap of 1e-4."""
    import mipfs

    problem = mipfs.Problem(planted(n, p, per_row), loss=loss, bias=loss == "hinge", M=M, C=C)
    result = mipfs.solve(problem, "kelley", gap=1e-4, T=T, refit=False)
    return {"value": result.relaxed["upper"], "status": result.status.name, "nodes": result.counters["selections"]}


def measures(measure: str, driver: str, n: int, p: int, M: int, C: float) -> dict[str, Any]:
    """A multivariate measure, relaxed or exact."""
    import mipfs

    problem = mipfs.Problem(planted(n, p, 0), loss="structural", measure=measure, bias=False, M=M, C=C)
    result = mipfs.solve(problem, driver, gap=1e-3)
    value = result.objective if result.relaxed is None else result.relaxed["upper"]
    return {"value": value, "status": result.status.name, "nodes": result.counters.get("labellings")}


def svm(C: float, warm: bool) -> dict[str, Any]:
    """The hinge SVM on 50 of 100 columns of 5,000 samples, cold, or with one column changed from the last solution."""
    from mipfs.losses import hinge

    data = aytug(5000, 100, 50, 1)
    made = getattr(hinge, "LOSS", hinge)  # a module of functions once
    solver, ids = made.Solver(data, np.full(5000, C), True), np.arange(50)
    base = solver.solve(ids, tol=1e-6)
    for changed in range(0, 50, 5) if warm else ():
        other, w = ids.copy(), base.w.copy()
        other[changed], w[changed] = 50 + changed, 0.0
        solver.solve(other, tol=1e-6, start=(w, base.b, base.alpha, base.rho))
    return {"value": base.primal, "status": "", "nodes": base.steps if hasattr(base, "steps") else None}


WORK: dict[str, Callable[[], dict[str, Any]]] = {
    "exact 500x20 M=10 C=1": lambda: exact(500, 20, 10, 1.0, 1),
    "exact 500x50 M=25 C=1": lambda: exact(500, 50, 25, 1.0, 1),
    "exact 500x50 M=25 C=32": lambda: exact(500, 50, 25, 32.0, 1),
    "exact 500x100 M=20 C=1": lambda: exact(500, 100, 20, 1.0, 1),
    "exact 1000x50 seed 2": lambda: exact(1000, 50, 13, 1.0, 2),
    "exact 5000x20 seed 1": lambda: exact(5000, 20, 2, 1.0, 1),
    "exact 500x20 M=10 by gbd": lambda: exact(500, 20, 10, 1.0, 1, "gbd"),
    "relaxation text 3000x100000 T=10": lambda: relaxation(3000, 100_000, 100, "squared-hinge", 10, 10, 10.0),
    "relaxation text M=110 T=5": lambda: relaxation(3000, 100_000, 100, "squared-hinge", 110, 5, 10.0),
    "relaxation dense 1000x8000": lambda: relaxation(1000, 8000, 0, "squared-hinge", 40, 5, 10.0),
    "relaxation dense 2000x60 hinge": lambda: relaxation(2000, 60, 0, "hinge", 10, None, 1.0),
    "svm cold C=0.25": lambda: svm(0.25, False),
    "svm cold C=1": lambda: svm(1.0, False),
    "svm cold C=32": lambda: svm(32.0, False),
    "svm warm C=1": lambda: svm(1.0, True),
    "measures f1 two_layer 200x200": lambda: measures("f1", "two_layer", 200, 200, 5, 20.0),
    "measures error two_layer 200x200": lambda: measures("error", "two_layer", 200, 200, 5, 20.0),
    "measures error gbd 100x10": lambda: measures("error", "gbd", 100, 10, 3, 20.0),
}
"""By the benchmark that they are small forms of, and their sizes."""


def work() -> None:
    """Answer requests, lines of [name, how many times], with CPU seconds and what was found."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1, user_api="blas"):
        for line in sys.stdin:
            name, times = json.loads(line)
            begin = time.process_time()
            for _ in range(times):
                found = WORK[name]()
            print(json.dumps({"cpu": time.process_time() - begin, **found}), flush=True)


class Version:
    """A version at work in a process of its own."""

    def __init__(self, tree: Path) -> None:
        threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
        self._process = subprocess.Popen(
            [sys.executable, __file__, "--work"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, **threads, "PYTHONPATH": str(tree)}, cwd=tree,
        )  # fmt: skip

    def solved(self, name: str, times: int = 1) -> dict[str, Any]:
        """CPU seconds of solving a workload so many times, and what came out."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([name, times]) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            sys.exit(f"error: {name}: the process of a version ended; its message stands above")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()


@contextmanager
def checked_out(commit: str) -> Iterator[Path]:
    """A worktree of a commit in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="mipfs-old-") as folder:
        tree = Path(folder) / "tree"
        asked = ["git", "-C", str(ROOT), "worktree"]
        done = subprocess.run([*asked, "add", "--quiet", "--detach", str(tree), commit], check=False)
        if done.returncode:
            sys.exit(f"error: git cannot check out {commit!r}; give a commit of this repository")
        try:
            yield tree
        finally:
            subprocess.run([*asked, "remove", "--force", str(tree)], check=False)


def turns(name: str, old: Version, new: Version, rounds: int) -> dict[str, Any]:
    """One workload in both versions, turn by turn: CPU seconds, and what was found."""
    first = {"old": old.solved(name), "new": new.solved(name)}  # compiles, and makes the data
    second = {"old": old.solved(name), "new": new.solved(name)}
    times = max(1, math.ceil(LEAST / max(1e-6, second["old"]["cpu"])))
    seconds: dict[str, list[float]] = {"old": [], "new": []}
    for turn in range(rounds):
        both = [("old", old), ("new", new)]
        for which, version in both if turn % 2 else both[::-1]:
            seconds[which].append(version.solved(name, times)["cpu"] / times)
    return {"found": first, **seconds}


def started(name: str, tree: Path, rounds: int) -> dict[str, Any]:
    """The turns of a new pair of processes."""
    with closing(Version(tree)) as old, closing(Version(ROOT)) as new:
        return turns(name, old, new, rounds)


def measured(name: str, starts: list[dict[str, Any]]) -> dict[str, Any]:
    """The ratio new / old of a workload over all rounds of all starts."""
    old, new = ([seconds for start in starts for seconds in start[which]] for which in ("old", "new"))
    ratios = [b / a for a, b in zip(old, new, strict=True)]
    low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive") if len(ratios) > 1 else ratios * 3
    return {
        "name": name, "old": statistics.median(old), "new": statistics.median(new),
        "ratio": middle, "low": low, "high": high, "found": starts[0]["found"],
    }  # fmt: skip


def row(line: dict[str, Any]) -> str:
    """A line of the table."""
    a, b = line["found"]["old"], line["found"]["new"]
    same = abs(a["value"] - b["value"]) <= 2e-4 * abs(a["value"]) and a["status"] == b["status"]
    said = "" if same else f"   DIFFERS: {a['value']:.8g} {a['status']} -> {b['value']:.8g} {b['status']}"
    nodes = "–" if a["nodes"] is None else f"{a['nodes']} → {b['nodes']}"
    spread = f"{line['low']:.3f} – {line['high']:.3f}"
    return f"{line['name']:<34}{line['old']:>9.3f}{line['new']:>9.3f}{line['ratio']:>8.3f}  {spread:<15}{nodes}{said}"


def main() -> None:
    """Print the table."""
    if "--work" in sys.argv:
        work()
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # what was checked out is removed
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commit", help="the earlier version")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--starts", type=int, default=1, help="pairs of processes for each workload")
    parser.add_argument("--only", nargs="+", metavar="WORD", default=[""], help="workloads whose name begins so")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep what was measured")
    arguments = parser.parse_args()
    names = [name for name in WORK if name.startswith(tuple(arguments.only))]
    if not names:
        sys.exit(f"error: no workload begins with {', '.join(arguments.only)}; there are {', '.join(WORK)}")
    rounds, starts = arguments.rounds, arguments.starts
    print(
        f"CPU seconds, medians of {rounds} rounds in {starts} starts; ratio = new / old with its quartiles", flush=True
    )
    print(f"{'':<34}{'old':>9}{'new':>9}{'ratio':>8}  {'quartiles':<15}nodes, selections or steps")
    lines = []
    with checked_out(arguments.commit) as tree:
        for name in names:
            lines.append(measured(name, [started(name, tree, rounds) for _ in range(starts)]))
            print(row(lines[-1]), flush=True)
    for benchmark in dict.fromkeys(line["name"].split()[0] for line in lines):
        ratios = [line["ratio"] for line in lines if line["name"].startswith(benchmark)]
        mean = math.exp(statistics.fmean(map(math.log, ratios)))
        print(f"{benchmark}: geometric mean {mean:.3f}, {'within' if mean <= BAR else 'ABOVE'} {BAR:g}")
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(lines, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
