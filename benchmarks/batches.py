"""This version beside an earlier one: dense data with two long sides, real data, and every kind of problem.

    MIPFS_DATA=folder python benchmarks/batches.py dafce3c9 [--table data kinds] [--only WORD ...] [--seconds S]
                                                               [--json FILE]

Each version lives in a process of its own, and has solved the case for `WARM` seconds before it is timed; they take
turns. The table ``data`` gives the gap after `SECONDS` (or ``--seconds``) with two threads, or the wall seconds to a
gap of 1e-4; the table ``kinds`` the CPU seconds of one thread to it, or what is left after `KIND_SECONDS`: the same
features plain, with signs that the plain optimum has anyway, with a third of the signs against it, in boxes that bind
nowhere or at half of the selected, as groups of one, of three, and of two to five; and some of these with rows over σ:
a budget of seven tenths of what M features cost on average, and at most four implications.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
SECONDS, KIND_SECONDS, WARM = 30.0, 20.0, 0.5
KINDS = "plain", "signs", "against", "box", "binding", "ones", "threes", "mixed"
WITH_ROWS = tuple(f"{kind} with rows" for kind in ("plain", "signs", "binding", "ones", "threes"))
SETS = {"sonar": (4, 0.1), "ionosphere": (5, 1.0), "spambase": (5, 0.1), "german": (5, 1.0)}
"""M and C of the table of kinds."""


def folder() -> Path:
    """The shared data sets; the program ends where there are none."""
    if not os.environ.get("MIPFS_DATA"):
        sys.exit("error: MIPFS_DATA is unset; it names the folder that holds the data sets")
    return Path(os.environ["MIPFS_DATA"])


@cache
def read(name: str, scale: str) -> Any:
    """A shared data set."""
    import mipfs

    return mipfs.read(folder() / name / "data.svm.gz", scale=scale)  # type: ignore[arg-type]


@cache
def peers(n: int, **how: float | None) -> Any:
    """n samples and as many features, ten of which are true (`real_parts.problems.peers`, which is told how)."""
    from real_parts.problems import peers as drawn

    import mipfs

    return mipfs.Instance.from_arrays(*drawn(n, n, 1, **how))


def shared(name: str, M: int, C: float, scale: str = "standard", loss: str = "hinge") -> Callable[[], Any]:
    """The problem on a shared data set."""
    return lambda: problem_of(read(name, scale), M, C, loss)


def long(n: int, C: float, loss: str, **how: float | None) -> Callable[[], Any]:
    """The problem on dense data with two long sides."""
    return lambda: problem_of(peers(n, **how), 10, C, loss)


def problem_of(data: Any, M: int, C: float, loss: str, **more: Any) -> Any:
    """FSP-M."""
    import mipfs

    return mipfs.Problem(data, M=M, C=C, loss=loss, **more)


DATA: dict[str, Callable[[], Any]] = {
    "n = p = 2,000, C = 1, logistic": long(2000, 1.0, "logistic"),
    "n = p = 2,000, C = 1, hinge": long(2000, 1.0, "hinge"),
    "n = p = 2,000, C = 0.1, logistic": long(2000, 0.1, "logistic"),
    "n = p = 2,000, C = 0.1, hinge": long(2000, 0.1, "hinge"),
    "weights of 1, C = 1, logistic": long(2000, 1.0, "logistic", strength=None),
    "weights of 1, C = 1, hinge": long(2000, 1.0, "hinge", strength=None),
    "weights of 1, C = 0.1, logistic": long(2000, 0.1, "logistic", strength=None),
    "weights of 1, C = 0.1, hinge": long(2000, 0.1, "hinge", strength=None),
    "n = p = 6,000, C = 1, logistic": long(6000, 1.0, "logistic"),
    "n = p = 6,000, C = 1, hinge": long(6000, 1.0, "hinge"),
    "madelon, M = 10": shared("madelon", 10, 1.0),
    "usps, M = 5": shared("usps", 5, 1.0),
    "spambase, M = 5": shared("spambase", 5, 0.1),
    "spambase, M = 5, squared hinge": shared("spambase", 5, 0.1, loss="squared-hinge"),
    "spambase, M = 10": shared("spambase", 10, 0.1),
    "sonar, M = 5": shared("sonar", 5, 1.0),
    "sonar, M = 10": shared("sonar", 10, 1.0),
    "w8a, M = 5": shared("w8a", 5, 0.1, "none"),
    "pcmac, M = 5": shared("pcmac", 5, 1.0, "none"),
    "colon, M = 5": shared("colon_alon", 5, 1.0),
    "leukemia, M = 5": shared("leukemia_golub", 5, 1.0),
    "german, raw, M = 5": shared("german", 5, 1.0, "none"),
    "wdbc, raw, M = 5": shared("wdbc_sklearn", 5, 1.0, "none"),
}


def of_kind(name: str, kind: str, w: dict[str, float]) -> Any:
    """A data set's problem of a kind, where the plain optimum has weights w by feature."""
    from mipfs.atoms.groups import Groups

    if kind in WITH_ROWS:
        return with_rows(of_kind(name, kind.removesuffix(" with rows"), w))
    data, (M, C) = read(name, "standard"), SETS[name]
    names, random = list(data.feature_names), np.random.default_rng(5)
    own = {f: (-1.0 if w[f] < 0.0 else 1.0) for f in names}
    sizes = [abs(one) for one in w.values() if one != 0.0]
    sides = {1.0: (0.0, None), -1.0: (None, 0.0)}
    if kind == "signs":
        return problem_of(data, M, C, "hinge", weight_bounds={f: sides[own[f]] for f in names[::2]})
    if kind == "against":
        chosen = [f for f in names if w[f] != 0.0][: -(-M // 3)]
        others = [f for f in names if f not in chosen]
        chosen += list(random.choice(others, max(0, len(names) // 3 - len(chosen)), replace=False))
        return problem_of(data, M, C, "hinge", weight_bounds={f: sides[-own[f]] for f in chosen})
    if kind in ("box", "binding"):
        end = 2.0 * max(sizes) if kind == "box" else float(np.median(sizes))
        return problem_of(data, M, C, "hinge", weight_bounds=dict.fromkeys(names, (-end, end)))
    if kind == "plain":
        return problem_of(data, M, C, "hinge")
    return problem_of(data, M, C, "hinge", atoms=Groups(data, _groups(names, kind, random)))


def with_rows(problem: Any) -> Any:
    """The problem with a budget, costs 1 to 5 by turns, and at most four implications between neighbours."""
    count, M = problem.atoms.count, problem.M
    cost = 1.0 + np.arange(count) % 5
    implied = min(4, count // 2)
    A = np.zeros((1 + implied, count))
    A[0] = cost
    for r in range(1, 1 + implied):
        A[r, 2 * r - 2], A[r, 2 * r - 1] = 1.0, -1.0
    return problem.with_rows(A, -np.inf, np.append(np.floor(0.7 * M * cost.mean()), np.zeros(implied)))


def _groups(names: list[str], kind: str, random: np.random.Generator) -> dict[str, list[str]]:
    """Groups of one, of three, or in any order of two to five."""
    left = list(random.permutation(names)) if kind == "mixed" else names
    found = list[list[str]]()
    while left:
        size = {"ones": 1, "threes": 3}.get(kind) or int(random.integers(2, 6))
        found.append([str(one) for one in left[:size]])
        left = left[size:]
    return {f"g{at}": one for at, one in enumerate(found)}


def solved(case: dict[str, Any]) -> dict[str, Any]:
    """One case, timed."""
    import mipfs

    problem = DATA[case["data"]]() if "data" in case else of_kind(case["set"], case["kind"], case["weights"])
    options: dict[str, Any] = {"threads": case["threads"], "gap": 1e-4}
    mipfs.solve(problem, "branch", time_limit=WARM, **options)
    begin, wall = time.process_time(), time.perf_counter()
    result = mipfs.solve(problem, "branch", time_limit=case["seconds"], **options)
    return {
        "cpu": time.process_time() - begin, "wall": time.perf_counter() - wall, "gap": result.gap,
        "objective": result.objective, "bound": result.bound, "nodes": result.counters.get("nodes"),
    }  # fmt: skip


def work() -> None:
    """Answer requests, a case a line."""
    for line in sys.stdin:
        print(json.dumps(solved(json.loads(line))), flush=True)


class Version:
    """A version at work in a process of its own, with one thread of BLAS where the case has one thread."""

    def __init__(self, tree: Path, threads: int) -> None:
        few = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(threads))
        path = os.pathsep.join((str(tree), str(HERE)))
        self._process = subprocess.Popen(
            [sys.executable, __file__, "--work"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, **few, "PYTHONPATH": path}, cwd=tree,
        )  # fmt: skip

    def solved(self, case: dict[str, Any]) -> dict[str, Any]:
        """What came of a case."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(case) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            sys.exit("error: the process of a version ended; its message stands above")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()


def cases(tables: list[str], only: list[str], seconds: float) -> list[tuple[str, dict[str, Any]]]:
    """The cases by name."""
    found = list[tuple[str, dict[str, Any]]]()
    if "data" in tables:
        found += [(name, {"data": name, "threads": 2, "seconds": seconds}) for name in DATA]
    if "kinds" in tables:
        each = [(name, kind) for name in SETS for kind in KINDS + WITH_ROWS]
        found += [
            (f"{name}, {kind}", {"set": name, "kind": kind, "threads": 1, "seconds": KIND_SECONDS})
            for name, kind in each
        ]
    return [(name, case) for name, case in found if not only or any(word in name for word in only)]


@cache
def weights(name: str) -> dict[str, float]:
    """Those of the plain optimum, of every feature."""
    import mipfs

    data = read(name, "standard")
    result = mipfs.solve(of_kind(name, "plain", dict.fromkeys(data.feature_names, 1.0)), "branch", time_limit=120.0)
    return {feature: float(result.weights.get(feature, 0.0)) for feature in data.feature_names}


def cell(found: dict[str, Any], seconds: str) -> str:
    """Seconds, or what is left."""
    done = found["gap"] <= 1.001e-4
    told = f"{found[seconds]:.2f} s" if done else f"{100 * found['gap']:.2f}% left"
    return f"{told} ({found['nodes']:,})"


def main() -> None:
    """Print the tables."""
    if "--work" in sys.argv:
        work()
        return
    from side_by_side import ROOT, checked_out

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commit", help="the earlier version")
    parser.add_argument("--table", nargs="+", choices=("data", "kinds"), default=["data", "kinds"])
    parser.add_argument("--only", nargs="+", metavar="WORD", default=[], help="cases whose name has one of these")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of a case of the table data (%(default)s)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep what was measured")
    asked = parser.parse_args()
    folder()
    kept = list[dict[str, Any]]()
    print("| case | earlier (nodes) | this (nodes) |\n|---|--:|--:|", flush=True)
    with checked_out(asked.commit) as tree:
        for name, case in cases(asked.table, asked.only, asked.seconds):
            told = {**case, "weights": weights(case["set"])} if "set" in case else case
            found = {}
            for which, of in (("earlier", tree), ("this", ROOT)):
                with closing(Version(of, case["threads"])) as version:
                    found[which] = version.solved(told)
            seconds = "wall" if "data" in case else "cpu"
            print(f"| {name} | {cell(found['earlier'], seconds)} | {cell(found['this'], seconds)} |", flush=True)
            kept.append({"name": name, **case, **found})
    if asked.json is not None:
        asked.json.write_text(json.dumps(kept, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
