"""Others in the process who use the solvers that the package uses: raw HiGHS, CVXPY and Pyomo, on the main thread.

What they are answered is checked, so that the package is seen to break nothing of theirs.
"""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np


def raw_highs(threads: int = 0) -> float:
    """max x + y, x + 2y ≤ 4, 3x + y ≤ 6, by highspy with its own threads: 2.8."""
    import highspy

    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    if threads:
        solver.setOptionValue("threads", threads)
    for _ in range(2):
        solver.addVar(0.0, 10.0)
    solver.changeColCost(0, -1.0)
    solver.changeColCost(1, -1.0)
    solver.addRow(-highspy.kHighsInf, 4.0, 2, np.array([0, 1]), np.array([1.0, 2.0]))
    solver.addRow(-highspy.kHighsInf, 6.0, 2, np.array([0, 1]), np.array([3.0, 1.0]))
    status = solver.run()
    assert status == highspy.HighsStatus.kOk, f"highspy with threads = {threads} answers {status}"
    return -float(solver.getInfo().objective_function_value)


def by_cvxpy(solver: str) -> float:
    """The same program in CVXPY."""
    cp: Any = importlib.import_module("cvxpy")
    x = cp.Variable(2, nonneg=True)
    program = cp.Problem(cp.Maximize(cp.sum(x)), [x[0] + 2 * x[1] <= 4, 3 * x[0] + x[1] <= 6])
    return float(program.solve(solver=solver))


def by_pyomo() -> float:
    """The same program in Pyomo, by its persistent interface to HiGHS."""
    pyo: Any = importlib.import_module("pyomo.environ")
    model = pyo.ConcreteModel()
    model.x = pyo.Var([0, 1], bounds=(0, 10))
    model.value = pyo.Objective(expr=model.x[0] + model.x[1], sense=pyo.maximize)
    model.first = pyo.Constraint(expr=model.x[0] + 2 * model.x[1] <= 4)
    model.second = pyo.Constraint(expr=3 * model.x[0] + model.x[1] <= 6)
    pyo.SolverFactory("appsi_highs").solve(model)
    return float(pyo.value(model.value))


WAYS: tuple[tuple[str, Callable[[], float]], ...] = (
    ("highspy", raw_highs),
    ("CVXPY with HiGHS", lambda: by_cvxpy("HIGHS")),
    ("Pyomo with HiGHS", by_pyomo),
    ("CVXPY with Clarabel", lambda: by_cvxpy("CLARABEL")),
    ("highspy again", raw_highs),
)


def all_solve(turn: int = 0) -> None:
    """Let every neighbour solve, another one first each turn; an AssertionError where one of them gets it wrong."""
    first = turn % len(WAYS)
    for name, way in itertools.chain(WAYS[first:], WAYS[:first]):
        found = way()
        assert abs(found - 2.8) <= 1e-6, f"{name} finds {found!r} where the optimum is 2.8"
