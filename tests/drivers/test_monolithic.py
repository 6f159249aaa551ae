"""`monolithic`: SCIP on the Pyomo model, against enumeration with the conic reference; its limits and failures."""

from __future__ import annotations

import itertools
import os
import signal
import threading
import time
from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest

import mipfs
from mipfs import models
from mipfs.data.instance import Instance, Row
from mipfs.drivers.monolithic import link_weights
from mipfs.errors import MipfsError, MissingExtraError, UsageError
from mipfs.problem import Problem
from mipfs.result.result import Status, StopReason
from mipfs.solvers import scip
from tests.references import svm_reference

pytest.importorskip("pyscipopt")


def make(n: int = 24, p: int = 6, seed: int = 0, **kwargs: Any) -> Instance:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) @ (np.eye(p) + 0.4 * rng.normal(size=(p, p)))
    y = np.where(X[:, 0] - X[:, 2] + 0.7 * rng.normal(size=n) > 0, 1.0, -1.0)
    return Instance.from_arrays(X, y, scale="standard", **kwargs)


def best(problem: Problem, supports: Iterable[tuple[int, ...]]) -> tuple[float, tuple[int, ...]]:
    """The smallest objective over the supports, each an SVM by Clarabel."""
    values = {
        S: svm_reference(problem.data.X[:, list(S)], problem.data.y, problem.c_i, bias=problem.bias).value
        + problem.penalty[list(S)].sum()
        for S in supports
    }
    return min((value, S) for S, value in values.items())


def subsets(p: int, most: int) -> list[tuple[int, ...]]:
    return [S for k in range(most + 1) for S in itertools.combinations(range(p), k)]


def check(result: mipfs.Result, problem: Problem, optimum: tuple[float, tuple[int, ...]]) -> None:
    value, support = optimum
    assert (result.status, result.stop_reason) == (Status.OPTIMAL, StopReason.GAP_CLOSED)
    assert result.objective == pytest.approx(value, rel=1e-6)
    assert result.bound == pytest.approx(value, rel=1e-5)
    assert result.bound <= value * (1 + 1e-6)
    assert result.selected == tuple(problem.data.feature_names[j] for j in support)
    assert result.bound_source == "solver"
    assert result.trace[-1].objective == pytest.approx(
        result.objective, rel=1e-12
    )  # the latter is of the stored numbers
    bounds = [record.bound for record in result.trace]
    assert bounds == sorted(bounds)


@pytest.mark.slow
def test_fsp_m_with_weights() -> None:
    data = make(sample_weight=np.linspace(0.5, 2.0, 24))
    model = models.fsp_m(data, M=3, C=2.0)
    problem = mipfs.problem_of(model)
    result = mipfs.solve(model, driver="monolithic", gap=1e-5)
    check(result, problem, best(problem, subsets(6, 3)))


@pytest.mark.slow
def test_fsp_lambda_without_bias() -> None:
    data = make(seed=1, penalty={"x2": 0.3})
    model = models.fsp_lambda(data, lam={"x1": 0.4, "x3": 0.8, "x5": 0.1}, C=0.5, bias=False)
    problem = mipfs.problem_of(model)
    result = mipfs.solve(model, driver="monolithic", gap=1e-5)
    check(result, problem, best(problem, subsets(6, 6)))
    assert result.intercept == pytest.approx(
        -sum(result.weights[j] * data.shift[data.index[j]] for j in result.weights)
    )


@pytest.mark.slow
def test_rows_and_extra_variables_of_a_user() -> None:
    cost = dict(zip("abcdef", (3.0, 1.0, 4.0, 1.0, 5.0, 2.0), strict=True))
    data = make(seed=2, feature_names=list("abcdef"), rows=(Row("budget", cost, -np.inf, 9.0, "data.toml"),))
    model = models.fsp_m(data, M=5)
    sigma = model.select.sigma
    model.select.half = pyo.Var(domain=pyo.NonNegativeIntegers)
    model.select.even = pyo.Constraint(expr=sum(sigma.values()) == 2 * model.select.half)
    model.select.implied = pyo.Constraint(expr=sigma["a"] <= sigma["b"])
    sigma["f"].fix(0)
    model.select.cardinality.deactivate()
    prices = list(cost.values())
    allowed = [
        S
        for S in subsets(6, 6)
        if len(S) % 2 == 0 and sum(prices[j] for j in S) <= 9 and not (0 in S and 1 not in S) and 5 not in S
    ]
    result = mipfs.solve(model, driver="monolithic", gap=1e-5)
    check(result, mipfs.problem_of(model), best(mipfs.problem_of(model), allowed))
    assert [row["name"] for row in result.rows] == ["budget", "even", "implied"]


def test_rows_that_contradict_each_other() -> None:
    model = models.fsp_m(make(), M=1)
    sigma = model.select.sigma
    model.select.two = pyo.Constraint(expr=sigma["x1"] + sigma["x2"] >= 2)
    result = mipfs.solve(model, driver="monolithic")
    assert (result.status, result.stop_reason) == (Status.INFEASIBLE, StopReason.INFEASIBLE)
    assert set(result.conflict) == {"two", "cardinality"}


@pytest.fixture(scope="module")
def hard() -> Problem:
    """What SCIP needs far more than a few seconds for."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(300, 40))
    y = np.where(X[:, :10].sum(axis=1) + 2.0 * rng.normal(size=300) > 0, 1.0, -1.0)
    return Problem(Instance.from_arrays(X, y), M=8)


def assert_feasible(result: mipfs.Result, problem: Problem) -> None:
    assert result.status is Status.FEASIBLE
    ids = problem.data.columns_of(result.selected)
    w = np.array([result.weights.get(j, 0.0) for j in result.selected])
    assert result.objective == pytest.approx(problem.evaluate(ids, w, result.intercept), rel=1e-9)
    assert len(ids) <= 8
    assert result.bound < result.objective


@pytest.mark.slow
def test_a_time_limit_is_kept_and_leaves_an_incumbent(hard: Problem) -> None:
    begin = time.monotonic()
    result = mipfs.solve(hard, driver="monolithic", time_limit=1.0)
    assert time.monotonic() - begin < 2.0
    assert result.stop_reason is StopReason.TIME_LIMIT
    assert_feasible(result, hard)


@pytest.mark.slow
def test_an_interrupt_is_heard_within_a_second(hard: Problem) -> None:
    sent: list[float] = []

    def press() -> None:
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(2.5, press)
    timer.start()
    try:
        result = mipfs.solve(hard, driver="monolithic", time_limit=30)
    finally:
        timer.cancel()
    assert time.monotonic() - sent[0] < 1.0
    assert result.stop_reason is StopReason.INTERRUPTED
    assert_feasible(result, hard)


@pytest.mark.slow
def test_a_callback_and_the_node_limit_stop_it(hard: Problem) -> None:
    result = mipfs.solve(hard, driver="monolithic", time_limit=30, callback=lambda record: True)
    assert result.stop_reason is StopReason.INTERRUPTED
    result = mipfs.solve(hard, driver="monolithic", time_limit=30, iteration_limit=0)
    assert result.stop_reason is StopReason.ITERATION_LIMIT


def test_too_large_for_an_algebraic_model() -> None:
    data = Instance.from_arrays(np.ones((4, 3001)), [1, -1, 1, -1])
    with pytest.raises(UsageError, match="too large for a Pyomo model"):
        mipfs.solve(Problem(data, M=2), driver="monolithic")


def test_without_pyscipopt(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.util

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"pip install 'mipfs\[scip\]'"):
        mipfs.solve(Problem(make(), M=2), driver="monolithic")


def test_a_process_that_dies_or_fails_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = Problem(make(), M=2)
    with scip.ScipProcess(partial(link_weights, problem), gap=1e-4) as process:
        process._process.kill()
        with pytest.raises(MipfsError, match="ended without an answer"):
            while True:
                process.receive(5.0)
    monkeypatch.setattr(scip, "__name__", "mipfs.no_such_module")
    with (
        scip.ScipProcess(partial(link_weights, problem), gap=1e-4) as process,
        pytest.raises(MipfsError, match=r"exit code 1\).*no_such_module"),
    ):
        process.receive(30.0)


@pytest.mark.slow
@pytest.mark.parametrize(("M", "C", "value"), [(10, 0.1, 5.159639)])
def test_wdbc(M: int, C: float, value: float) -> None:
    """All 4,060 supports of three features were tried for the first value (libsvm's dual, then Clarabel)."""
    from sklearn.datasets import load_breast_cancer

    wdbc = load_breast_cancer()
    names = [str(name) for name in wdbc.feature_names]
    y = np.where(wdbc.target > 0, 1.0, -1.0)
    model = models.fsp_m(Instance.from_arrays(wdbc.data, y, feature_names=names, scale="standard"), M=M, C=C)
    result = mipfs.solve(model, driver="monolithic")
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(value, rel=1e-7)
    assert result.bound == pytest.approx(value, rel=1e-4)
    assert len(result.selected) == M


@pytest.mark.slow
@pytest.mark.parametrize("bias", [False, True])
def test_the_rho_form_equals_branch_and_enumeration(bias: bool) -> None:
    problem = Problem(make(seed=3), loss="squared-hinge", margin="rho", bias=bias, M=2, C=0.7)
    result = mipfs.solve(problem, driver="monolithic", gap=1e-5)
    unit = problem.replace(margin="unit")
    values = [
        svm_reference(unit.data.X[:, list(S)], unit.data.y, unit.c_i, bias=bias, loss="squared-hinge").value
        for S in subsets(6, 2)
    ]
    assert (result.status, result.bound_source) == (Status.OPTIMAL, "solver")
    assert result.objective == pytest.approx(-0.25 / min(values), rel=1e-6)
    assert result.gap <= 1e-5
    other = mipfs.solve(problem, driver="branch", gap=1e-6)
    assert result.selected == other.selected
    assert result.objective == pytest.approx(other.objective, rel=1e-6)
    assert other.bound <= result.objective + 1e-9 * abs(result.objective)


@pytest.mark.parametrize("lie", [1e9, float("nan")])
def test_a_bound_above_a_recomputed_value_is_not_believed(lie: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """SCIP that says so ends as NUMERICAL with the selection that was found, never as OPTIMAL."""
    r = np.random.default_rng(0)
    X = r.normal(size=(30, 4))
    problem = Problem(Instance.from_arrays(X, np.where(X[:, 0] > 0, 1, -1)), M=2)
    monkeypatch.setattr(scip.ScipProcess, "receive", lambda self, timeout: scip.ScipReport((0, 1), lie, 1, "optimal"))
    result = mipfs.solve(problem, "monolithic")
    assert result.status is Status.NUMERICAL
    assert result.stop_reason is StopReason.NUMERICAL
    assert len(result.selected) == 2
    assert result.bound < result.objective
