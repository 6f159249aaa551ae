"""Solves of every kind that reaches HiGHS, Clarabel, SCIP or threads of our own, and what they find."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
from scipy import sparse

import mipfs
from mipfs import Instance, Problem, Row, models
from mipfs.lab.baselines.l1_bundle import L1Bundle

Found = dict[str, Any]


def data(seed: int, n: int = 24, p: int = 6, rows: tuple[Row, ...] = ()) -> Instance:
    """Two features that matter, and noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    y = np.where(X[:, 0] - X[:, 1] + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0)
    return Instance.from_arrays(X, y, rows=rows)


BUDGET = Row("budget", {f"x{j}": float(j) for j in range(1, 7)}, -np.inf, 5.0)


def budgeted(seed: int = 0) -> Problem:
    """(P) with a budget row, which takes linear programs in every driver."""
    return Problem(data(seed, rows=(BUDGET,)), M=2, C=1.0)


def wide() -> Problem:
    """Many sparse columns, which threads score together."""
    X = sparse.random(60, 3000, 0.1, format="csc", random_state=1)
    return Problem(Instance.from_arrays(X, np.resize([1.0, -1.0], 60)), M=3, C=1.0)


def _numbers(result: mipfs.Result) -> list[Any]:
    relaxed = result.relaxed or {"lower": None, "upper": None}
    return [result.status.name, result.objective, result.bound, relaxed["lower"], relaxed["upper"]]


def _structural() -> Problem:
    return Problem(data(0), M=2, C=10.0, loss="structural", bias=False, measure="f1")


RELAXATIONS = ((12, 1), (16, 3), (20, 3), (24, 2), (24, 3), (24, 5))
"""Samples and seeds of random problems whose relaxation takes few cutting planes."""


def _relaxation(n: int, seed: int) -> list[Any]:
    rng = np.random.default_rng(seed)
    rows = (Row("r", {f"x{j}": float(rng.integers(1, 9)) for j in range(1, 7)}, -np.inf, float(rng.integers(5, 15))),)
    declared = models.qcqp_relaxation(data(seed, n=n, rows=rows), M=3, loss="hinge", C=1.0)
    return [float(declared.cvxpy.solve(solver="CLARABEL")), *_numbers(mipfs.solve(declared))]


def _ladder() -> list[Any]:
    found = mipfs.compare(budgeted().replace(loss="squared-hinge"))
    return [[rung.name, rung.value, rung.status] for rung in found.ladder]


def _conflict() -> list[Any]:
    rows = [Row(f"r{k}", {f"x{j}": 1.0 for j in (k, k + 1)}, 1.0, np.inf) for k in (1, 3, 5)]
    result = mipfs.solve(Problem(data(0, rows=tuple(rows)), M=2, C=1.0))
    return [result.status.name, *sorted(result.conflict)]


def _baseline(name: str) -> list[float]:
    fitted = import_module(f"mipfs.lab.baselines.{name}").fit(data(3, n=40), 2)
    return [*fitted.ids.tolist(), *fitted.w.tolist()]


def cases() -> dict[str, Callable[[], list[Any]]]:
    """By name."""
    found: dict[str, Callable[[], list[Any]]] = {}
    for driver in ("branch", "gbd", "kelley", "conic", "monolithic"):
        found[driver] = lambda driver=driver: _numbers(mipfs.solve(budgeted(), driver))  # type: ignore[misc]
    found["gbd by MILPs"] = lambda: _numbers(mipfs.solve(budgeted(), "gbd", master="milp"))
    found["two_layer"] = lambda: _numbers(mipfs.solve(_structural(), "two_layer"))
    found["kelley without rows"] = lambda: _numbers(mipfs.solve(Problem(data(0), M=2, C=1.0), "kelley"))
    found["kelley, wide"] = lambda: _numbers(mipfs.solve(wide(), "kelley"))
    for drawn in RELAXATIONS:
        found[f"qcqp_relaxation {drawn}"] = lambda drawn=drawn: _relaxation(*drawn)  # type: ignore[misc]
    found["onsvm by CVXPY"] = lambda: _numbers(mipfs.solve(models.onsvm(data(3, n=40), C=1.0)))
    found["ladder"] = _ladder
    found["conflict"] = _conflict
    bundle = lambda: L1Bundle(data(3, n=40), "f1").solve(20.0)  # noqa: E731
    found["l1_bundle"] = lambda: [bundle().objective, bundle().bound]
    for name in ("onsvm", "lpsvm", "fsv", "rinaldi", "arom"):
        found[name] = lambda name=name: _baseline(name)  # type: ignore[misc]
    return found


def solve(between: Callable[[], object] = lambda: None, names: tuple[str, ...] = ()) -> Found:
    """What they find, with something else between every two of them."""
    found: Found = {}
    for name, case in cases().items():
        if not names or name in names:
            between()
            found[name] = case()
    return found
