"""The algorithms as published, by open solvers, beside the engine's own: what the own methods buy.

    python benchmarks/shelf.py [--gap 1e-4] [--time-limit 60] [--repeats 3] [--seed 0]

Every line is one problem, one driver and one option; the default is measured in the same run, in the same process, on
one BLAS thread and one core of the tree, medians of `--repeats` runs after one that compiles. Both must end at the same
value: where both say that they are done, the larger relative difference of objective and bound is shown, otherwise the
gap that is left.
"""

from __future__ import annotations

import argparse
import platform
import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np

import mipfs
from mipfs import Problem
from mipfs.data.instance import Instance
from mipfs.generators import aytug_one
from mipfs.generators.synthetic import tan_2014
from mipfs.result.result import Result, Status

PACKAGES = ("mipfs", "highspy", "clarabel", "cvxpy", "scikit-learn", "numpy", "numba")
SHIPPED = "instances/wdbc.svm"


@dataclass(frozen=True, eq=False)
class Line:
    """One comparison."""

    name: str
    problem: Problem
    driver: str
    options: dict[str, Any]


def lines(seed: int) -> Iterator[Line]:
    """What is compared: small problems, so that the published algorithms end too."""
    wdbc = mipfs.read(SHIPPED, scale="standard")
    X, y = aytug_one(100, 20, 3, seed=seed)["train"]
    aytug = Instance.from_arrays(X, y)
    tan = Instance.from_arrays(*tan_2014(100, 100, 10, seed=seed, n_test=0)["train"])
    exact = (
        ("FSP-M, WDBC, M = 2, C = 0.01", Problem(wdbc, M=2, C=0.01)),
        ("FSP-M, Aytug one 100 x 20, M = 3, C = 10", Problem(aytug, M=3, C=10.0)),
    )
    for name, problem in exact:
        yield Line(name, problem, "gbd", {"master": "milp"})
        yield Line(name, problem, "gbd", {"subproblem": "conic"})
        yield Line(name, problem, "gbd", {"master": "milp", "subproblem": "conic"})
        yield Line(name, problem, "branch", {"nodes": "conic"})
    relaxed = (
        ("FGM, WDBC, M = 3, C = 0.1", Problem(wdbc, loss="squared-hinge", bias=False, M=3, C=0.1)),
        ("FGM, Tan 2014 100 x 100, M = 10, C = 0.05", Problem(tan, loss="squared-hinge", bias=False, M=10, C=0.05)),
    )
    for name, problem in relaxed:
        for restricted in ("cutting", "conic", "simple-mkl"):
            yield Line(name, problem, "kelley", {"restricted": restricted})
    measured = {"loss": "structural", "bias": False, "measure": "f1"}
    yield Line("F1, WDBC, M = 3, C = 569", Problem(wdbc, M=3, C=569.0, **measured), "two_layer", {"inner": "conic"})
    yield Line(
        "F1, Aytug one 100 x 20, M = 3, C = 2000",
        Problem(aytug, M=3, C=2000.0, **measured),
        "two_layer",
        {"inner": "conic"},
    )


def median(line: Line, options: dict[str, Any], limits: dict[str, Any], repeats: int) -> tuple[float, Result]:
    """Median seconds, and the last result."""
    threads = {"threads": 1} if line.driver == "branch" else {}
    mipfs.solve(line.problem, line.driver, iteration_limit=1, **threads, **options)
    seconds = []
    for _ in range(repeats):
        result = mipfs.solve(line.problem, line.driver, **limits, **threads, **options)
        seconds.append(result.seconds)
        if result.status not in (Status.OPTIMAL, Status.RELAXED):
            break  # the limit: it would strike again
    return statistics.median(seconds), result


def is_done(result: Result) -> bool:
    """Whether what was asked for was reached."""
    return result.status in (Status.OPTIMAL, Status.RELAXED)


def value(result: Result) -> float:
    """The optimum, or of a relaxation its upper end."""
    return result.objective if result.relaxed is None else min(result.relaxed["upper"], result.objective)


def agreement(mine: Result, published: Result) -> str:
    """How far the two are apart, or what one left open."""
    if not (is_done(mine) and is_done(published)):
        slower = published if not is_done(published) else mine
        return f"{abs(value(slower) - slower.bound) / max(1e-10, abs(value(slower))):.1e} left"
    size = max(1e-10, abs(value(mine)))
    return f"{max(abs(value(mine) - value(published)), abs(mine.bound - published.bound)) / size:.1e}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gap", type=float, default=1e-4)
    parser.add_argument("--time-limit", type=float, default=60.0, help="seconds of every run")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    limits = {"gap": args.gap, "time_limit": args.time_limit}
    print(
        f"gap {args.gap:g}, at most {args.time_limit:g} s a run, median of {args.repeats}; {platform.machine()}, ",
        end="",
    )
    print(", ".join(f"{package} {version(package)}" for package in PACKAGES), end="\n\n")
    print("| problem | driver | as published | seconds | default, seconds | ratio | difference |")
    print("| --- | --- | --- | ---: | ---: | ---: | ---: |")
    own: dict[tuple[str, str], tuple[float, Result]] = {}
    ratios = []
    for line in lines(args.seed):
        if (line.name, line.driver) not in own:
            own[line.name, line.driver] = median(line, {}, limits, args.repeats)
        mine, published = own[line.name, line.driver], median(line, line.options, limits, args.repeats)
        words = ", ".join(f"{name}={word}" for name, word in line.options.items())
        ratio = published[0] / max(mine[0], 1e-4)
        ratios.append(ratio)
        more = "" if is_done(published[1]) else "> "
        print(
            f"| {line.name} | {line.driver} | {words} | {published[0]:.3f} | {mine[0]:.3f} | {more}{ratio:.1f} "
            f"| {agreement(mine[1], published[1])} |",
            flush=True,
        )
    print(f"\nGeometric mean of the ratios: {np.exp(np.mean(np.log(ratios))):.1f}")


if __name__ == "__main__":
    main()
