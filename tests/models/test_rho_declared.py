"""The ρ-form in CVXPY has ρ for a variable: against the unit margin, the drivers, and SCIP on what is written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np
import pytest

import mipfs
from mipfs import models
from mipfs.data.instance import Instance
from mipfs.models import boolean_relaxation, qcqp_relaxation, reduced_mkl
from mipfs.problem import Problem
from mipfs.result.result import Status, StopReason
from mipfs.solvers import cones


def make(seed: int, bias: bool, rows: bool) -> Problem:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(24, 6)) + 0.2
    y = np.where(X[:, 0] - X[:, 2] + 0.7 * rng.normal(size=24) > 0, 1.0, -1.0)
    data = Instance.from_arrays(X, y, sample_weight=rng.uniform(0.5, 2.0, 24))
    C = float(2.0 ** rng.uniform(-3, 4))
    problem = Problem(data, loss="squared-hinge", bias=bias, M=3, C=C, margin="rho")
    return problem.with_rows(rng.uniform(1, 3, (1, 6)), -np.inf, 5.0) if rows else problem


def value(declared: Any) -> float:
    assert cones.solve(declared.cvxpy) == "solved"
    return float(declared.cvxpy.value)


@pytest.mark.sampled(13)
@pytest.mark.parametrize("rows", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_the_value_is_that_of_the_unit_margin_as_it_is_reported(seed: int, bias: bool, rows: bool) -> None:
    problem = make(seed, bias, rows)
    unit = problem.replace(margin="unit")
    pool = [np.array([0, 1]), np.array([2, 4]), np.array([3])]
    for declare in (
        boolean_relaxation.declare,
        qcqp_relaxation.declare,
        lambda problem: reduced_mkl.declare(problem, pool, "primal"),
        lambda problem: reduced_mkl.declare(problem, pool, "dual"),
    ):
        declared, v = declare(problem), value(declare(unit))
        assert value(declared) == pytest.approx(-0.25 / v, rel=1e-6)
        rho = declared.variables["rho"]
        assert isinstance(rho, cp.Variable | reduced_mkl.Margin)
        assert float(rho.value) == pytest.approx(0.5 / v, rel=1e-4)
        assert float(np.sum(declared.variables["alpha"].value)) == pytest.approx(1.0, rel=1e-6)
        assert "rho" not in declare(unit).variables


def test_the_dual_over_a_pool_is_that_of_the_paper() -> None:
    """Tan 2010, (4): max −θ over Σα = 1, α ≥ 0 with ½ ‖Σ α_i y_i (x_i∘σᵗ)‖² + α'α/(2C) ≤ θ, written anew."""
    problem = make(3, False, False)
    data, pool = problem.data, [[0, 1], [2, 4], [3]]
    alpha, theta = cp.Variable(24, nonneg=True), cp.Variable()
    ridge = 0.5 * cp.sum_squares(cp.multiply(1 / np.sqrt(problem.c_i), alpha))
    parts = [0.5 * cp.sum_squares((data.X[:, ids] * data.y[:, None]).T @ alpha) + ridge <= theta for ids in pool]
    paper = cp.Problem(cp.Maximize(-theta), [*parts, cp.sum(alpha) == 1]).solve(solver=cp.CLARABEL)
    declared = reduced_mkl.declare(problem, pool)
    assert value(declared) == pytest.approx(paper, rel=1e-6)
    by_name = models.reduced_mkl(data, pool=pool, M=3, C=problem.C, margin="rho", form="primal")
    assert value(by_name) == pytest.approx(paper, rel=1e-6)
    result = mipfs.solve(declared)
    assert result.driver == "conic"
    assert result.bound <= result.objective < 0
    assert mipfs.verify(result, data).accepted
    by_clarabel = mipfs.solve(problem, "kelley", restricted="conic", gap=1e-6)
    assert by_clarabel.bound == pytest.approx(mipfs.solve(problem, "kelley", gap=1e-6).bound, rel=1e-5)


@pytest.mark.sampled(7)
@pytest.mark.parametrize("rows", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("model", [models.qcqp_relaxation, models.boolean_relaxation])
def test_conic_and_kelley_agree_and_the_incumbent_stands_in_the_program(model: Any, bias: bool, rows: bool) -> None:
    problem = make(7, bias, rows)
    declared = model.declare(problem)
    conic, kelley = mipfs.solve(declared, "conic"), mipfs.solve(declared, "kelley", gap=1e-7)
    assert conic.stop_reason in (StopReason.COMPLETED, StopReason.GAP_CLOSED)
    assert conic.relaxed is not None
    assert kelley.relaxed is not None
    for side in ("upper", "lower"):
        assert conic.relaxed[side] == pytest.approx(kelley.relaxed[side], rel=1e-6)
    assert conic.bound == pytest.approx(kelley.bound, rel=1e-6)
    assert conic.bound <= conic.objective
    assert mipfs.verify(conic, problem.data).accepted
    conic.load_into(declared)
    sigma = declared.sigma.value
    assert [problem.data.feature_names[j] for j in np.flatnonzero(sigma)] == list(conic.selected)
    rho = float(declared.variables["rho"].value)
    assert rho == pytest.approx(-2.0 * conic.objective, rel=1e-12)
    slack, y = declared.variables["xi"].value, problem.data.y
    if declared.hull:
        return
    loss = 0.5 * problem.c_i @ np.square(slack) + 0.5 * declared.variables["t"].value.sum()
    assert loss - rho == pytest.approx(conic.objective, rel=1e-6)
    b = declared.variables["b"].value
    scores = problem.data.X @ declared.variables["w"].value + (0.0 if b is None else b)
    assert np.all(y * scores + slack >= rho - 1e-9)


def test_columns_of_large_norm() -> None:
    """v is 1e-8: the ρ-form's value is −1e7."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(30, 5)) * 1e4
    y = np.where(X[:, 0] + 0.1 * X[:, 1] > 0, 1.0, -1.0)
    problem = Problem(Instance.from_arrays(X, y), loss="squared-hinge", bias=False, M=2, C=10.0, margin="rho")
    conic, kelley = mipfs.solve(problem, "conic"), mipfs.solve(problem, "kelley", gap=1e-6)
    best = mipfs.solve(problem, "branch", gap=1e-6)
    assert best.status is Status.OPTIMAL
    for result in (conic, kelley):
        assert result.bound <= best.objective * (1 - 1e-9)
        assert result.objective >= best.bound * (1 + 1e-9)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("suffix", [".lp", ".nl"])
@pytest.mark.parametrize("bias", [False, True])
def test_what_is_written_has_the_value(suffix: str, bias: bool, tmp_path: Path) -> None:
    scip = pytest.importorskip("pyscipopt")
    from mipfs.cli.written import write

    declared = boolean_relaxation.declare(make(2, bias, True))
    write(declared, tmp_path / f"model{suffix}")
    model = scip.Model()
    model.hideOutput()
    model.readProblem(str(tmp_path / f"model{suffix}"))
    model.setParam("numerics/feastol", 1e-9)
    model.setParam("limits/time", 30.0)
    model.optimize()
    assert model.getObjVal() == pytest.approx(value(declared), rel=1e-4)
