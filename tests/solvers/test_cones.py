"""Clarabel in a process of its own, and HiGHS on the same canonical form."""

from __future__ import annotations

import time
import warnings
from typing import Any

import cvxpy
import numpy as np
import pytest

from mipfs.errors import MipfsError
from mipfs.solvers import cones

cp: Any = cvxpy


def largest_eigenvalue(k: int) -> tuple[Any, float]:
    """min t with t I ⪰ A: a semidefinite program with a known value."""
    A = np.random.default_rng(k).normal(size=(k, k))
    A = A + A.T
    t = cp.Variable()
    return cp.Problem(cp.Minimize(t), [t * np.eye(k) - A >> 0]), float(np.linalg.eigvalsh(A)[-1])


def mixed() -> tuple[Any, float]:
    """max x1 + x2 − e^x3 over ‖x‖ ≤ 1, x1 ≤ ½, x1 = x2: quadratic, linear, exponential and equality rows."""
    x = cp.Variable(3)
    program = cp.Problem(cp.Maximize(x[0] + x[1] - cp.exp(x[2])), [cp.norm(x) <= 1, x[0] <= 0.5, x[0] == x[1]])
    angle = np.linspace(0, 1, 200_001)
    third = -np.sqrt(np.maximum(0.0, 1 - 2 * (0.5 * angle) ** 2))
    return program, float(np.max(angle - np.exp(third)))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("in_process", [False, True])
@pytest.mark.parametrize("make", [lambda: largest_eigenvalue(6), mixed], ids=["eigenvalue", "mixed"])
def test_the_answer_is_the_same_in_a_process_of_its_own(
    make: Any, in_process: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cones, "IN_PROCESS_WORK", 0.0 if in_process else np.inf)
    program, value = make()
    assert cones.solve(program) == "solved"
    assert program.value == pytest.approx(value, rel=1e-7)
    other, _ = make()
    other.solve(solver=cp.CLARABEL)
    for mine, theirs in zip(program.constraints, other.constraints, strict=True):
        assert mine.dual_value == pytest.approx(np.asarray(theirs.dual_value), abs=1e-4)


def test_a_deadline_or_a_request_ends_the_process_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    program, _ = largest_eigenvalue(75)
    form = cones.Canonical(program)
    assert form.work > cones.IN_PROCESS_WORK
    began = time.monotonic()
    assert form.solve(deadline=began + 0.3) == "stopped"
    assert form.solve(stop=lambda: time.monotonic() > began + 0.6) == "stopped"
    assert form.solve(deadline=began) == "stopped"
    assert time.monotonic() - began < 3.0
    assert program.value is None


def test_what_has_no_solution_is_named() -> None:
    x = cp.Variable(2)
    assert cones.solve(cp.Problem(cp.Minimize(cp.sum(x)), [x >= 1, cp.norm(x) <= 1])) == "infeasible"
    assert cones.solve(cp.Problem(cp.Minimize(cp.sum(x)), [x <= 1])) == "unbounded"
    inside = cones.Canonical(cp.Problem(cp.Minimize(x[0]), [x >= 1, x <= 0]))
    assert inside.solve_linear() == "infeasible"
    assert cones.Canonical(cp.Problem(cp.Minimize(x[0]), [x <= 0])).solve_linear() == "unbounded"


def test_a_linear_program_has_the_same_value_and_duals_by_highs() -> None:
    rng = np.random.default_rng(0)
    A, x0 = rng.normal(size=(8, 5)), rng.random(5)
    for highs in (True, False):
        x = cp.Variable(5, nonneg=True)
        rows = [A @ x >= A @ x0 - 0.5, cp.sum(x) == x0.sum()]
        program = cp.Problem(cp.Minimize(np.arange(1.0, 6.0) @ x), rows)
        form = cones.Canonical(program)
        assert (form.solve_linear() if highs else form.solve()) == "solved"
        assert form.size == cones.Size(5, 14, 40 + 5 + 5)
        if highs:
            value, duals = program.value, [row.dual_value for row in rows]
            assert np.sum(x.value == 0.0) >= 1
        assert program.value == pytest.approx(value, rel=1e-8)
        for row, dual in zip(rows, duals, strict=True):
            assert row.dual_value == pytest.approx(dual, abs=1e-6)


def test_a_process_that_dies_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cones, "IN_PROCESS_WORK", 0.0)
    program, _ = largest_eigenvalue(3)
    form = cones.Canonical(program)
    form.data["b"] = np.zeros(1)
    with pytest.raises(MipfsError, match="ended without an answer"):
        form.solve()


def test_an_almost_solved_program_does_not_warn(monkeypatch: pytest.MonkeyPatch) -> None:
    program, value = largest_eigenvalue(4)
    form = cones.Canonical(program)
    answer = cones._solve_by_clarabel(
        form._upper_or_zero_matrix("P"), form.data["c"], form._upper_or_zero_matrix("A"), form.data["b"], form.cones
    )
    monkeypatch.setattr(cones, "_solve_by_clarabel", lambda *_: {**answer, "status": "AlmostSolved"})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert form.solve() == "solved"
    assert program.value == pytest.approx(value, rel=1e-7)
    monkeypatch.setattr(cones, "_solve_by_clarabel", lambda *_: {**answer, "status": "NumericalError"})
    assert cones.Canonical(largest_eigenvalue(4)[0]).solve() == "failed"
