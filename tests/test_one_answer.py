"""The same budget said in five ways, solved by every driver that takes it: one answer."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest

import mipfs
from mipfs import drivers, models
from mipfs.problem import Problem
from mipfs.readers.lp_rows import read_rows
from tests.oracles import svm_value

COSTS = {"age": 2.0, "income, net": 3.5, "c-reactive": 1.0, "dose": 2.5, "extra": 1.5}
BUDGET, M, C = 5.0, 3, 2.0
EXACT, RELAXED = ("branch", "gbd", "monolithic"), ("kelley", "conic")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    rng = np.random.default_rng(8)
    X = rng.normal(size=(20, 5)) * [10, 1000, 1, 3, 1] + [40, 3000, 0, 0, 1]
    Z = (X - X.mean(0)) / X.std(0)
    y = np.where(Z @ [1.0, 1.2, -0.5, 0.8, 0.2] + 0.8 * rng.normal(size=20) > 0, 1, -1)
    path = tmp_path / "data.csv"
    header = ",".join(f'"{name}"' for name in [*COSTS, "label"])
    np.savetxt(path, np.column_stack([X, y]), delimiter=",", header=header, comments="", fmt="%.17g")
    return path


def formulations(path: Path, loss: str, bias: bool) -> dict[str, Any]:
    """The problem with its budget, in every way to say it."""
    data = mipfs.read(path, scale="standard")
    cost = np.array([COSTS[name] for name in data.feature_names])
    plain = Problem(data, loss=loss, bias=bias, M=M, C=C)
    model = models.fsp_m(data, M=M, C=C, loss=loss, bias=bias)
    model.select.budget = pyo.Constraint(expr=sum(COSTS[j] * s for j, s in model.select.sigma.items()) <= BUDGET)
    fgm = models.qcqp_relaxation(data, M=M, C=C, loss=loss, bias=bias)
    lp = path.with_name("rows.lp")
    lp.write_text("subject to\n budget: 2 age + 3.5 income__net + c_reactive + 2.5 dose + 1.5 extra <= 5\nend\n")
    rows = read_rows(str(lp), data)
    described = path.with_name("described.csv")
    described.write_bytes(path.read_bytes())
    costs = "\n".join(f'"{name}" = {value}' for name, value in COSTS.items())
    stated = f"[data]\nscale = 'standard'\n[cost]\n{costs}\n[select]\nbudget = {BUDGET}\n"
    described.with_suffix(".toml").write_text(stated)
    return {
        "with_rows": plain.with_rows(cost[None, :], -np.inf, BUDGET, ["budget"]),
        "pyomo": model,
        "cvxpy": fgm.with_constraints([cost @ fgm.sigma <= BUDGET]),
        "lp": plain.replace(rows=rows),
        "toml": Problem(mipfs.read(described), loss=loss, bias=bias, M=M, C=C),
    }


@pytest.mark.slow
@pytest.mark.parametrize(("loss", "bias"), [("squared-hinge", False), ("hinge", True), ("logistic", True)])
def test_one_budget_one_answer(loss: str, bias: bool, file: Path) -> None:
    ways = formulations(file, loss, bias)
    data = mipfs.read(file, scale="standard")
    cost, value = list(COSTS.values()), {}
    for S in itertools.chain.from_iterable(itertools.combinations(range(5), k) for k in range(M + 1)):
        if sum(cost[j] for j in S) <= BUDGET:
            Z = data.X[:, list(S)]
            value[S] = svm_value(Z, data.y, np.full(20, C), bias, loss).upper
    best = min(value, key=lambda S: value[S])
    names = tuple(list(COSTS)[j] for j in best)
    solve: Callable[..., Any] = drivers.solve
    for driver in (*EXACT, *RELAXED):
        found = {}
        for way, model in ways.items():
            if driver == "monolithic" and way not in ("pyomo", "cvxpy"):
                continue  # a process for each; the compiled problems are compared below
            # the declared program of conic is that of the formulation; here the same for all
            options = {"declare": models.boolean_relaxation.declare} if driver == "conic" else {}  # type: ignore[attr-defined]
            result = solve(model, driver, gap=1e-6 if driver != "monolithic" else 1e-4, **options)
            found[way] = (result.objective, result.bound, result.selected)
            if driver in EXACT:
                assert result.objective == pytest.approx(value[best], rel=1e-6)
                assert result.selected == names, (driver, way)
            assert result.bound <= value[best] * (1 + 1e-9)
            assert len(result.rows) == 1
            assert result.rows[0]["ub"] == BUDGET
            assert result.rows[0]["terms"] == COSTS
        first = next(iter(found.values()))
        for way, one in found.items():
            assert one[0] == pytest.approx(first[0], rel=1e-6), (driver, way)
            assert one[1] == pytest.approx(first[1], rel=1e-4 if driver == "monolithic" else 2e-6), (driver, way)
            assert one[2] == first[2]
