"""A fixed panel of small problems, every driver × loss × atoms × rows: what a change of shape must leave as it is.

    python -m tests.panel write FILE            answers, bounds, traces and counters of this version
    python -m tests.panel compare OLD NEW       what differs, and by how much

Run the first in two checkouts, the second on what they wrote.
"""

from __future__ import annotations

import itertools
import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import mipfs
from mipfs import Instance, Problem
from mipfs.atoms.groups import Groups
from mipfs.atoms.tree import Tree

LOSSES, ATOMS, ROWS = ("hinge", "squared-hinge", "logistic"), ("features", "groups", "tree"), ("plain", "rows", "costs")
DRIVERS = ("branch", "gbd", "kelley", "conic")
OBJECTIVE, BOUND = 1e-9, 1e-7
"""Relative differences that are none."""


def problems() -> Iterator[tuple[str, Problem, str, dict[str, Any]]]:
    """Name, problem, driver and options of each."""
    grid = itertools.product(LOSSES, ATOMS, ROWS, DRIVERS)
    for seed, (loss, kind, rows, driver) in enumerate(grid):
        problem = drawn(seed, loss, kind, rows)
        yield f"{loss} {kind} {rows} {driver}", problem, driver, {"gap": 1e-6 if driver != "conic" else 1e-4}
    for seed, (measure, rows) in enumerate(itertools.product(("error", "f1", "prbep"), ROWS)):
        for driver in ("two_layer", "gbd"):
            problem = drawn(200 + seed, "hinge", "features", rows)
            joint = problem.replace(loss="structural", measure=measure, bias=False, C=20.0)
            yield f"{measure} {rows} {driver}", joint, driver, {"gap": 1e-4}
    r = np.random.default_rng(7)
    for loss, C, scale in itertools.product(LOSSES, (0.1, 1.0, 10.0), (1.0, 1e3)):
        X = r.normal(size=(120, 40)) * scale ** r.uniform(-1, 1, 40)
        y = np.where(X[:, :6] @ r.normal(size=6) / scale + r.normal(size=120) > 0, 1, -1)
        yield (
            f"{loss} C={C:g} scale={scale:g}",
            Problem(Instance.from_arrays(X, y), loss=loss, M=5, C=C),
            "branch",
            {"iteration_limit": 400},
        )


def drawn(seed: int, loss: str, kind: str, rows: str) -> Problem:
    """A problem of 30 samples and 8 features."""
    r = np.random.default_rng([11, seed])
    X = r.normal(size=(30, 8)) * r.uniform(0.3, 3.0, 8)
    data = Instance.from_arrays(X, np.where(X @ r.normal(size=8) + r.normal(size=30) > 0, 1, -1))
    atoms: Any = None
    if kind == "groups":
        atoms = Groups(data, {"a": ["x1", "x2", "x3"], "b": ["x3", "x4"], "c": ["x5"], "d": ["x6", "x7", "x8"]})
    elif kind == "tree":
        atoms = Tree(data, {"x1": "u", "x2": "u", "u": "v", "x3": "v", "x4": "v", "x5": "w", "x6": "w"})
    problem = Problem(data, loss=loss, bias=bool(seed % 2), M=3, C=float(r.choice([0.1, 1.0, 10.0])), atoms=atoms)
    count = problem.atoms.count
    if rows == "rows":
        A = np.zeros((2, count))
        A[0, :2], A[1] = 1.0, r.integers(1, 4, count)
        problem = problem.with_rows(A, [0.0, -np.inf], [1.0, 5.0])
    elif rows == "costs":
        problem = problem.replace(lam=tuple(r.uniform(0.0, 0.5, count).tolist()))
    return problem


def answer(problem: Problem, driver: str, options: dict[str, Any]) -> dict[str, Any]:
    """What is compared of a run."""
    result = mipfs.solve(problem, driver, **options)
    accepted = bool(mipfs.verify(result, problem.data).accepted) if result.claim is not None else None
    trace = [[record.iteration, record.objective, record.bound] for record in result.trace]
    return {
        "status": result.status.name,
        "stop_reason": result.stop_reason.name,
        "objective": result.objective,
        "bound": result.bound,
        "selected": list(result.selected),
        "counters": dict(result.counters),
        "iterations": len(trace),
        "accepted": accepted,
    }


def differences(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """What differs between two answers, in words."""
    found = [
        f"{name} {old[name]} -> {new[name]}" for name in ("status", "stop_reason", "accepted") if old[name] != new[name]
    ]
    for name, most in (("objective", OBJECTIVE), ("bound", BOUND)):
        a, b = old[name], new[name]
        same = a == b or (math.isfinite(a) and math.isfinite(b) and abs(a - b) <= most * max(1e-10, abs(a)))
        found += [] if same else [f"{name} {a!r} -> {b!r}"]
    return found


def main(argv: list[str]) -> int:
    """Write, or compare."""
    if argv[0] == "write":
        found = {name: answer(problem, driver, options) for name, problem, driver, options in problems()}
        Path(argv[1]).write_text(json.dumps(found, indent=0))
        print(f"{len(found)} problems: {sum(one['status'] == 'OPTIMAL' for one in found.values())} OPTIMAL")
        return 0
    old, new = (json.loads(Path(place).read_text()) for place in argv[1:3])
    wrong = 0
    for name, one in old.items():
        said = differences(one, new[name])
        wrong += bool(said)
        for line in said:
            print(f"{name}: {line}")
    same = sum(one["counters"] == new[name]["counters"] for name, one in old.items())
    print(f"{wrong} of {len(old)} differ; the counters of {same} are the same")
    return wrong


if __name__ == "__main__":
    sys.exit(min(1, main(sys.argv[1:])))
