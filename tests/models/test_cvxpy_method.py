"""``program.solve(method="mipfs")`` against SCIP and enumeration, and which programs it refuses."""

from __future__ import annotations

from typing import Any

import cvxpy
import numpy as np
import pytest

import mipfs
from mipfs import models
from mipfs.errors import RowError, UsageError
from mipfs.models import cvxpy_method
from tests.formulation.test_charges import CHARGES, C, best, data

cp: Any = cvxpy


def made(**given: Any) -> Any:
    return models.big_m(data(), **{"M": 3, "C": C, "binary": True, **given})


@pytest.mark.sampled(2)
@pytest.mark.parametrize("loss", ["hinge", "squared-hinge"])
def test_its_value_is_that_of_the_program(loss: str) -> None:
    one = made(loss=loss)
    sigma = one.sigma
    rows = [*one.cvxpy.constraints, sigma["a"] + sigma["b"] <= 1]
    program = cp.Problem(cp.Minimize(one.cvxpy.objective.expr + CHARGES @ sigma), rows)
    optimum = best(loss, True, CHARGES, allowed=lambda S: not {0, 1} <= S)
    for driver in ("branch", "gbd"):
        assert program.solve(method="mipfs", driver=driver, gap=1e-7) == pytest.approx(optimum, rel=1e-6)
        assert program.status == "optimal"
        assert program.value == pytest.approx(optimum, rel=1e-6)
        assert all(float(np.max(one.violation())) < 1e-6 for one in program.constraints)
        result = program.solver_stats.extra_stats["result"]
        assert set(result.selected) == {name for name in sigma.names if sigma[name].value == 1}
        assert mipfs.verify(result, data()).accepted
    pytest.importorskip("pyscipopt")
    assert program.solve(solver="SCIP") == pytest.approx(optimum, rel=1e-4)


def test_the_words_of_cvxpy_for_limits_and_contradictions() -> None:
    one = made()
    program = one.with_constraints([cp.sum(one.sigma) >= 4]).cvxpy
    assert program.solve(method="mipfs") == float("inf")
    assert (program.status, program.value) == ("infeasible", float("inf"))
    started = one.cvxpy.solve(method="mipfs", gap=0.0, time_limit=30, callback=lambda record: True)
    assert one.cvxpy.status in ("user_limit", "optimal")
    assert started >= best("hinge", True, np.zeros(5)) * (1 - 1e-9)


def test_a_warm_start_from_its_values() -> None:
    one = made()
    one.sigma.save_value(np.array([0.0, 0.0, 1.0, 1.0, 0.0]))
    assert one.cvxpy.solve(method="mipfs", warm_start=True, gap=1e-7) == pytest.approx(
        best("hinge", True, np.zeros(5)), rel=1e-6
    )


def test_what_is_not_such_a_program_is_refused_in_one_line() -> None:
    one, x = made(), cp.Variable(3, boolean=True)
    relaxed = models.boolean_relaxation(data(), M=2)
    whole = relaxed.with_constraints([cp.sum(relaxed.sigma) == 2 * cp.Variable(integer=True)])
    goal, rows = one.cvxpy.objective, one.cvxpy.constraints
    mixed = cp.Problem(cp.Minimize(goal.expr + made().cvxpy.objective.expr), rows)
    for program, message in (
        (cp.Problem(cp.Minimize(cp.sum(x))), "mipfs.Formulation"),
        (mixed, "mipfs.Formulation"),
        (relaxed.cvxpy, "boolean is a relaxation"),
        (whole.cvxpy, "boolean is a relaxation"),
        (models.big_m(data(), M=2).cvxpy, "big-m is a relaxation"),
        (cp.Problem(cp.Minimize(2 * goal.expr), rows), "objective of big-m was changed"),
        (cp.Problem(goal, rows[1:]), "was dropped"),
        (cp.Problem(goal, [*rows, one.variables["xi"] <= 1]), "is about xi"),
        (cp.Problem(cp.Maximize(goal.expr), rows), "was changed from Minimize to Maximize"),
    ):
        with pytest.raises((UsageError, RowError), match=message) as raised:
            program.solve(method="mipfs")
        assert "\n" not in str(raised.value)
    with pytest.raises(UsageError, match="has the exact ones"):
        one.cvxpy.solve(method="mipfs", driver="kelley")
    with pytest.raises(UsageError, match="no option 'mipgap'"):
        one.cvxpy.solve(method="mipfs", mipgap=1)


def test_bounds_on_weights_hold_and_a_point_outside_the_program_is_found_out() -> None:
    one = made()
    w = one.variables["w"]
    bounded = one.with_constraints([w[3] <= 0.01, w[3] >= -0.01]).cvxpy
    value = bounded.solve(method="mipfs", gap=1e-7)
    result = mipfs.solve(one, "branch")
    small = cp.Problem(one.cvxpy.objective, [*one.cvxpy.constraints, cp.abs(w) <= 1e-3])  # such as by a small big-M
    with pytest.raises(UsageError, match="leaves out the best classifier"):
        cvxpy_method._check_value(small, result)
    other = cp.Problem(cp.Minimize(one.cvxpy.objective.expr + 1), one.cvxpy.constraints)
    with pytest.raises(UsageError, match="has another value"):
        cvxpy_method._check_value(other, result)
    pytest.importorskip("pyscipopt")
    assert bounded.solve(solver="SCIP") == pytest.approx(value, rel=1e-4)
