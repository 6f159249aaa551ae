"""RMP and SUB as they are declared: Table 1 of Aytug 2015 by hand with Pyomo's own HiGHS, against enumeration."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
from sklearn.svm import SVC

import mipfs
from mipfs import models
from mipfs.data.instance import Instance
from mipfs.errors import RowError, UsageError
from mipfs.models.benders import add_cut, cut_of, rmp, sub
from mipfs.problem import Problem
from tests.oracles import brute_force


def draw(seed: int, n: int = 24, p: int = 5) -> Instance:
    r = np.random.default_rng(seed)
    X = r.standard_normal((n, p))
    return Instance.from_arrays(X, np.where(X[:, 0] - X[:, 2] + 0.7 * r.standard_normal(n) > 0, 1.0, -1.0))


def by_hand(problem: Problem, model: object = None) -> tuple[float, list[int]]:
    """Steps 1 and 2 of Table 1 until the bounds meet; the value and the support."""
    model = rmp(problem) if model is None else model
    highs = pyo.SolverFactory("appsi_highs")
    sigma, upper = np.zeros(problem.atoms.count), np.inf
    for _ in range(200):
        step = sub(problem, sigma)
        value = step.cvxpy.solve(solver="CLARABEL")
        if value < upper:
            upper, best = value, np.flatnonzero(sigma).tolist()
        add_cut(model, step.variables["alpha"].value)
        highs.solve(model)
        if pyo.value(model.lower) >= upper * (1 - 1e-7):
            return upper, best
        sigma = np.round([pyo.value(s) for s in model.select.sigma.values()])
    raise AssertionError("the bounds do not meet")


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("loss", "given"), [("hinge", {"M": 2}), ("squared-hinge", {"lam": 0.3}), ("logistic", {"M": 2})]
)
def test_the_two_programs_solve_the_problem(loss: str, given: dict[str, float]) -> None:
    for seed in range(2):
        problem = Problem(draw(seed), C=0.8, loss=loss, **given)
        supports = [frozenset(S) for k in range(6) for S in itertools.combinations(range(5), k)]
        allowed = [S for S in supports if problem.M is None or len(S) <= problem.M]
        data = problem.data
        best = brute_force(data.X, data.y, problem.c_i, allowed, problem.penalty, True, loss=loss).value
        value, _ = by_hand(problem)
        assert value == pytest.approx(best.upper, rel=1e-5)
        assert mipfs.solve(problem, "gbd", master="milp", gap=1e-7).objective == pytest.approx(best.upper, rel=1e-6)


def test_a_row_under_select_is_part_of_both() -> None:
    problem = Problem(draw(3), M=2, C=0.8)
    free = mipfs.solve(problem)
    model = rmp(problem)
    model.select.apart = pyo.Constraint(expr=sum(model.select.sigma[name] for name in free.selected) <= 1)
    _, support = by_hand(problem, model)
    names = [problem.data.feature_names[j] for j in support]
    for master in ("milp", "tree"):
        result = mipfs.solve(model, "gbd", master=master)
        assert list(result.selected) == names
        assert result.status is mipfs.Status.OPTIMAL
    assert mipfs.problem_of(model) is problem
    model.extra = pyo.Constraint(expr=model.eta >= 1)
    with pytest.raises(RowError, match="extra is new outside select and is about eta"):
        mipfs.solve(model)


def test_the_cut_is_the_dual_function_and_touches_at_its_own_selection() -> None:
    problem = Problem(draw(4), M=3, C=0.5)
    data, sigma = problem.data, np.array([1.0, 0, 0.4, 0, 1.0])
    step = sub(problem, sigma)
    value = step.cvxpy.solve(solver="CLARABEL", tol_gap_rel=1e-10, tol_gap_abs=1e-10)
    svm = SVC(kernel="linear", C=0.5, tol=1e-9).fit(data.X * np.sqrt(sigma), data.y)
    w = svm.coef_[0]
    loss = np.maximum(0.0, 1.0 - data.y * svm.decision_function(data.X * np.sqrt(sigma))).sum()
    assert value == pytest.approx(0.5 * w @ w + 0.5 * loss, rel=1e-5)
    cut = cut_of(problem, step.variables["alpha"].value)
    assert cut(sigma) == pytest.approx(value, rel=1e-6)
    assert cut(sigma) <= value * (1 + 1e-9)
    model = rmp(problem, [step.variables["alpha"].value])
    row = model.cuts[1]
    for s, one in zip(model.select.sigma.values(), sigma, strict=True):
        s.value = one
    model.eta.value = 0.0
    assert pyo.value(row.lower) - pyo.value(row.body) == pytest.approx(value, rel=1e-6)


def test_refused() -> None:
    problem = Problem(draw(5), M=2)
    assert models.benders.rmp(problem).name == "RMP"
    for sigma in (np.ones(4), np.full(5, 2.0)):
        with pytest.raises(UsageError, match=r"sigma must have 5 entries in \[0, 1\]"):
            sub(problem, sigma)
    joint = Problem(draw(5), M=2, loss="structural", measure="f1", bias=False)
    with pytest.raises(UsageError, match="not for the structural loss"):
        sub(joint, np.ones(5))
    with pytest.raises(UsageError, match="give the Cut itself"):
        add_cut(rmp(joint), np.ones(24))
    assert mipfs.solve(joint, "gbd", master="milp").status is mipfs.Status.OPTIMAL


@pytest.mark.parametrize(("given", "shown"), [([1.0, 2.0], r"shape \(2,\)"), (None, "None"), (0.5, r"shape \(\)")])
def test_a_cut_of_no_dual_vector_is_refused(given: Any, shown: str) -> None:
    r = np.random.default_rng(0)
    data = mipfs.Instance.from_arrays(r.normal(size=(20, 3)), np.resize([1.0, -1.0], 20))
    problem = mipfs.Problem(data, M=2)
    with pytest.raises(mipfs.UsageError, match=f"a cut is of a dual vector of 20 finite numbers, .* not of .*{shown}"):
        add_cut(rmp(problem), given)
