"""``program.solve(method="mipfs")``: a mixed-integer program of this package solved as any CVXPY problem is.

    made = models.big_m(data, M=5, binary=True)
    made.cvxpy.solve(method="mipfs", time_limit=60)        # its value; made.sigma.value, made.cvxpy.status as usual

It is a solve method, to which CVXPY hands the program with its variables, and no solver class: that one gets the conic
form, in which nothing says what is data, what a label and what a feature, and no proof about them could be had of it.
The variables of a declared program say what they were declared for. Any other program is refused, and so is a
relaxation: its value is not that of the selection problem.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import cvxpy
import numpy as np
from cvxpy.problems.problem import SolverStats
from cvxpy.reductions.solution import Solution

from mipfs.errors import UsageError
from mipfs.formulation.conic import MARK, BuiltFormulation, text_of
from mipfs.result.result import Result, Status

NAME = "mipfs"
TOLERANCE = 1e-6
"""By how much, relative to its sides, a constraint may be off at a classifier of double precision."""


def solve(program: Any, driver: str = "branch", **options: Any) -> float:
    """Solve a mixed-integer program of `mipfs.models`, with what was added to it.

    Parameters
    ----------
    program : cvxpy.Problem
    driver : {"branch", "gbd", "monolithic"}
    **options : those of `mipfs.solve`, such as ``time_limit``, ``gap``, ``warm_start`` and ``verbose``

    Returns
    -------
    float
        The value of the program; inf where no selection satisfies its rows. ``program.solver_stats.extra_stats`` has
        the `mipfs.Result` as ``result``.

    Raises
    ------
    UsageError, RowError
        Another program, a relaxation, or a change that is neither a row over σ nor a fixed charge.
    cvxpy.error.SolverError
        A limit came before there was a classifier.
    """
    from mipfs.drivers import exact_drivers, is_exact
    from mipfs.drivers import solve as solve_model

    built = _find_built(program)
    if not is_exact(driver):
        raise UsageError(f"driver = {driver!r}: method='mipfs' has the exact ones, {', '.join(exact_drivers())}")
    result = solve_model(replace(built.formulation, cvxpy=program), driver, **options)
    program._solver_stats = SolverStats(NAME, result.seconds, extra_stats={"result": result})
    if result.status is Status.INFEASIBLE:
        program.unpack(Solution(cvxpy.settings.INFEASIBLE, math.inf, {}, {}, {}))
        return math.inf
    if not result.has_classifier:
        raise cvxpy.error.SolverError(f"mipfs found no classifier: {result.status.name}, {result.stop_reason.name}")
    program._value = _check_value(program, result)
    program._status = cvxpy.settings.OPTIMAL if result.status is Status.OPTIMAL else cvxpy.settings.USER_LIMIT
    return float(program._value)


def _find_built(program: Any) -> BuiltFormulation:
    """What the variables of a program were declared for.

    Raises
    ------
    UsageError
        Nothing, or a program that is no mixed-integer one.
    """
    found = {id(getattr(v, MARK)): getattr(v, MARK) for v in program.variables() if hasattr(v, MARK)}
    if len(found) != 1:
        raise UsageError(
            "method='mipfs' solves programs of mipfs.models, such as models.big_m(data, M=5, binary=True).cvxpy; for "
            "one of your own give mipfs.solve a mipfs.Formulation, which says the problem that it stands for"
        )
    built: BuiltFormulation = next(iter(found.values()))
    sigma = built.formulation.sigma
    if not isinstance(sigma, cvxpy.Variable) or sigma.attributes["boolean"] is not True:
        raise UsageError(
            f"{built.name} is a relaxation: give its program to a conic solver, or the formulation to mipfs.solve, "
            "with driver='branch' for the problem itself"
        )
    return built


def _check_value(program: Any, result: Result) -> float:
    """The value of the program at the classifier of a result, which is checked to be a point of it.

    Raises
    ------
    UsageError
        A constraint of the program leaves it out, such as a big-M that is too small.
    """
    for one in program.constraints:
        size = max((float(np.max(np.abs(part.value), initial=0.0)) for part in one.args), default=0.0)
        if float(np.max(one.violation(), initial=0.0)) > TOLERANCE * (1.0 + size):
            raise UsageError(
                f"the constraint {text_of(one)!r} leaves out the best classifier; solve the program as it is by SCIP"
            )
    value = float(program.objective.value)
    if abs(value - result.objective) > TOLERANCE * max(1.0, abs(value)):
        raise UsageError("the objective of the program has another value at the best classifier; solve it by SCIP")
    return value


def register() -> None:
    """Enter the method in CVXPY's table of them."""
    cvxpy.Problem.register_solve(NAME, solve)


register()
