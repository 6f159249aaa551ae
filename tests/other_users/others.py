"""What a user of the package does with the same solvers in the same process, and what must come out of it."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

VALUE, WEIGHT, ROOM = np.array([5.0, 4.0, 3.0, 7.0]), np.array([2.0, 3.0, 1.0, 4.0]), 6.0
BEST = max(float(VALUE @ bits) for bits in np.array(list(itertools.product((0, 1), repeat=4))) if WEIGHT @ bits <= ROOM)


def highs(threads: int | None = None) -> None:
    """The knapsack by highspy, with as many threads as asked for, or HiGHS's own number."""
    import highspy

    h = highspy.Highs()
    h.setOptionValue("output_flag", False)
    if threads is not None:
        assert h.setOptionValue("threads", threads) == highspy.HighsStatus.kOk
    for v in VALUE:
        h.addVar(0.0, 1.0)
        h.changeColCost(h.getNumCol() - 1, -v)
        h.changeColIntegrality(h.getNumCol() - 1, highspy.HighsVarType.kInteger)
    h.addRow(-np.inf, ROOM, 4, np.arange(4, dtype=np.int32), WEIGHT)
    status = h.run()
    assert status == highspy.HighsStatus.kOk, f"highspy with threads={threads}: {status}"
    assert abs(h.getInfo().objective_function_value + BEST) < 1e-6


def cvxpy(solver: str = "HIGHS") -> None:
    """The knapsack by CVXPY; for Clarabel the largest value over a ball."""
    import cvxpy as cp

    if solver == "CLARABEL":
        x = cp.Variable(4)
        program, wanted = cp.Problem(cp.Maximize(VALUE @ x), [cp.norm(x) <= 1]), float(np.linalg.norm(VALUE))
    else:
        x = cp.Variable(4, boolean=True)
        program, wanted = cp.Problem(cp.Maximize(VALUE @ x), [WEIGHT @ x <= ROOM]), BEST
    program.solve(solver=solver)
    assert abs(program.value - wanted) < 1e-6


def pyomo(name: str) -> None:
    """The knapsack by Pyomo."""
    import pyomo.environ as pyo

    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(4), domain=pyo.Binary)
    model.room = pyo.Constraint(expr=sum(WEIGHT[j] * model.x[j] for j in range(4)) <= ROOM)
    model.value = pyo.Objective(expr=sum(VALUE[j] * model.x[j] for j in range(4)), sense=pyo.maximize)
    _pyomo_solver(name).solve(model)
    assert abs(pyo.value(model.value) - BEST) < 1e-6


def _pyomo_solver(name: str) -> Any:
    if name == "highs":
        from pyomo.contrib.solver.common.factory import SolverFactory
    else:
        from pyomo.environ import SolverFactory
    return SolverFactory(name)


def scip() -> None:
    """The knapsack by PySCIPOpt, where it is installed."""
    try:
        import pyscipopt
    except ImportError:
        return
    model = pyscipopt.Model()
    model.hideOutput()
    x = [model.addVar(vtype="B") for _ in range(4)]
    model.addCons(sum(WEIGHT[j] * x[j] for j in range(4)) <= ROOM)
    model.setObjective(sum(VALUE[j] * x[j] for j in range(4)), "maximize")
    model.optimize()
    assert abs(model.getObjVal() - BEST) < 1e-6


def linprog() -> None:
    """The relaxed knapsack by SciPy."""
    from scipy.optimize import linprog as solve

    assert solve(-VALUE, A_ub=WEIGHT[None, :], b_ub=[ROOM], bounds=(0, 1)).fun <= -BEST


def all_of(threads: int | None) -> list[Callable[[], None]]:
    """All of them; highspy with so many threads."""
    return [
        lambda: highs(threads),
        cvxpy,
        lambda: pyomo("appsi_highs"),
        lambda: pyomo("highs"),
        lambda: cvxpy("CLARABEL"),
        scip,
        linprog,
    ]


def again_and_again(threads: int | None) -> Iterator[Callable[[], None]]:
    """One after the other, for ever."""
    return itertools.cycle(all_of(threads))


def run(mode: str) -> subprocess.CompletedProcess[str]:
    """A fresh process of `tests.other_users.process`."""
    line = [sys.executable, "-m", "tests.other_users.process", mode]
    return subprocess.run(line, capture_output=True, text=True, timeout=200, check=False)
