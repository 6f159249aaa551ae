"""Fixed charges that a user added to an objective, against enumeration, SCIP, and the problem with these costs."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import cvxpy
import numpy as np
import pyomo.environ as pyo
import pytest
from pyomo.gdp import Disjunction

import mipfs
from mipfs import models
from mipfs.data.instance import Instance
from mipfs.errors import RowError
from mipfs.formulation import compile
from tests.certificate.trees import checked
from tests.oracles import svm_value

cp: Any = cvxpy
P, N, C = 5, 20, 1.5
NAMES = ["a", "b", "c", "d", "worst texture"]
CHARGES = np.array([0.9, 0.1, 0.0, 2.5, 0.4])


@lru_cache
def data(penalised: bool = False) -> Instance:
    rng = np.random.default_rng(7)
    X = rng.normal(size=(N, P)) + 0.2
    y = np.where(X[:, 0] + 0.7 * X[:, 1] - 0.6 * X[:, 3] + 0.7 * rng.normal(size=N) > 0.3, 1.0, -1.0)
    own = {"b": 0.3, "d": 0.1} if penalised else {}
    return Instance.from_arrays(X, y, scale="standard", feature_names=NAMES, penalty=own)


@lru_cache
def value(loss: str, bias: bool, support: tuple[int, ...]) -> float:
    Z = data().X[:, list(support)] if support else np.zeros((N, 0))
    return svm_value(Z, data().y, np.full(N, C), bias, loss).upper


def best(loss: str, bias: bool, costs: Any, M: int = 3, allowed: Callable[[set[int]], bool] = lambda S: True) -> float:
    supports = (S for k in range(M + 1) for S in itertools.combinations(range(P), k))
    return min(value(loss, bias, S) + sum(costs[j] for j in S) for S in supports if allowed(set(S)))


def added(model: Any, charges: Any = CHARGES) -> Any:
    sigma = model.select.sigma
    return sum(float(c) * sigma[j] for j, c in zip(NAMES, charges, strict=True))


def plus(m: Any) -> None:
    m.objective.expr += added(m)


def before(m: Any) -> None:
    m.objective.set_value(added(m) + m.objective.expr)


def another(m: Any) -> None:
    m.objective.deactivate()
    m.total = pyo.Objective(expr=m.objective.expr + added(m))


def parameters(m: Any) -> None:
    m.select.rate = pyo.Param(NAMES, mutable=True, initialize=dict.fromkeys(NAMES, 7.0))
    m.objective.expr += sum(m.select.rate[j] * m.select.sigma[j] for j in NAMES)
    for j, c in zip(NAMES, CHARGES, strict=True):
        m.select.rate[j] = float(c)


def twice(m: Any) -> None:
    m.objective.expr += added(m, 0.25 * CHARGES)
    m.objective.expr += added(m, 0.75 * CHARGES)


def forced(m: Any) -> None:
    m.select.sigma["d"].fix(1)
    plus(m)


EDITS = (plus, before, another, parameters, twice, forced)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: edit.__name__)
@pytest.mark.parametrize("loss", ["hinge", "squared-hinge", "logistic"])
def test_charges_in_a_pyomo_objective_are_those_of_the_problem(edit: Any, loss: str) -> None:
    model = models.fsp_m(data(), M=3, C=C, loss=loss)
    edit(model)
    result = mipfs.solve(model, gap=1e-7)
    goal = model.total if edit is another else model.objective
    optimum = best(loss, True, CHARGES, allowed=(lambda S: 3 in S) if edit is forced else (lambda S: True))
    assert result.status.name == "OPTIMAL"
    assert result.objective == pytest.approx(optimum, rel=1e-6)
    assert pyo.value(goal) == pytest.approx(result.objective, rel=1e-9)
    declared = mipfs.Problem(data(), M=3, C=C, loss=loss, lam=CHARGES.tolist())
    np.testing.assert_allclose(compile(model).penalty, declared.penalty, rtol=1e-15)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("driver", ["branch", "gbd", "monolithic"])
def test_beside_the_penalties_of_the_data_in_every_exact_driver(driver: str, tmp_path: Path) -> None:
    model = models.fsp_lambda(data(True), lam=0.05, C=C)
    before_it = compile(model).penalty
    plus(model)
    clone, copy = model.clone(), pickle.loads(pickle.dumps(model))
    total = before_it + CHARGES
    for one in (model, clone, copy):
        np.testing.assert_allclose(compile(one).penalty, total, rtol=1e-15)
    result = mipfs.solve(model, driver, gap=1e-6)
    assert result.objective == pytest.approx(best("hinge", True, total, P), rel=1e-5)
    if driver != "monolithic":
        report = checked(result, data(True), tmp_path)
        assert report.accepted, report.reason
        assert not report.differs


def test_a_charge_may_fall_to_nothing_but_not_below() -> None:
    model = models.fsp_m(data(True), M=3, C=C)
    model.objective.expr -= 0.3 * model.select.sigma["b"] + 0.1 * model.select.sigma["d"]
    assert not compile(model).penalty.any()
    assert mipfs.solve(model, gap=1e-7).objective == pytest.approx(best("hinge", True, np.zeros(P)), rel=1e-6)
    model.objective.expr -= 0.01 * model.select.sigma["d"]
    with pytest.raises(RowError, match=r"the coefficient -0\.01 of sigma\['d'\]; a fixed charge is finite and >= 0"):
        compile(model)


def extra(m: Any) -> str:
    m.select.z = pyo.Var(domain=pyo.Binary)
    m.objective.expr += 3 * m.select.z
    return r"objective charges select\.z: state what extra variables cost as model\.select\.extra_cost\.set_value"


def constant(m: Any) -> str:
    m.objective.expr += 1.0
    return "objective has the constant 1, which moves no optimum"


def product(m: Any) -> str:
    m.objective.expr += m.select.sigma["a"] * m.select.sigma["b"]
    return r"select\.sigma\[[ab]\] \* select\.sigma\[[ab]\] in objective was changed"


def weight(m: Any) -> str:
    m.objective.expr += 0.1 * m.svm.w["a"]
    return r"the coefficient of svm\.w\[a\] in objective was changed \(now 0\.1, 0 as built\)"


def scaled(m: Any) -> str:
    m.objective.expr *= 2.0
    return r"in objective was changed"


def dropped(m: Any) -> str:
    m.objective.set_value(added(m))
    return r"in objective was changed"


def curved(m: Any) -> str:
    m.objective.expr += pyo.exp(m.select.sigma["a"])
    return r"not that which was built plus charges that are linear in sigma; only fixed charges .* \[penalty\] of the"


def unbounded(m: Any) -> str:
    m.objective.expr += float("inf") * m.select.sigma["a"]
    return "objective"


def no_value(m: Any) -> str:
    m.select.rate = pyo.Param(mutable=True)
    m.objective.expr += m.select.rate * m.select.sigma["a"]
    return "objective cannot be evaluated"


def none(m: Any) -> str:
    m.objective.deactivate()
    return "must have one active objective, and has none"


def of_another_model(m: Any) -> str:
    m.objective.expr += models.fsp_m(data(), M=1).select.sigma["a"]
    return "in objective was changed|objective charges"


REFUSED = (extra, constant, product, weight, scaled, dropped, curved, unbounded, no_value, none, of_another_model)


@pytest.mark.parametrize("edit", REFUSED, ids=lambda edit: edit.__name__)
def test_any_other_change_of_a_pyomo_objective_is_refused(edit: Any) -> None:
    model = models.fsp_m(data(), M=3, C=C)
    message = edit(model)
    with pytest.raises(RowError, match=message) as raised:
        mipfs.solve(model)
    assert "\n" not in str(raised.value)


def test_a_disjunction_is_refused_with_what_writes_it_as_rows_and_these_hold() -> None:
    model = models.fsp_m(data(), M=3, C=C)
    sigma = model.select.sigma
    model.select.either = Disjunction(expr=[[sigma["c"] == 1, sigma["a"] == 0], [sigma["d"] == 1, sigma["b"] == 0]])
    with pytest.raises(RowError, match=r"TransformationFactory\('gdp\.bigm'\)\.apply_to\(model\.select\)"):
        compile(model)
    pyo.TransformationFactory("gdp.bigm").apply_to(model.select)
    result = mipfs.solve(model, gap=1e-7)
    allowed = best("hinge", True, np.zeros(P), allowed=lambda S: (2 in S and 0 not in S) or (3 in S and 1 not in S))
    assert result.objective == pytest.approx(allowed, rel=1e-6)
    outside = models.fsp_m(data(), M=3, C=C)
    outside.either = Disjunction(expr=[[outside.select.sigma["c"] == 1], [outside.select.sigma["d"] == 1]])
    with pytest.raises(RowError, match=r"belong under model\.select; .*gdp\.bigm"):
        compile(outside)


def edited(made: Any, add: Callable[[Any], Any]) -> Any:
    program = made.cvxpy
    goal = type(program.objective)(add(program.objective.args[0]))
    return replace(made, cvxpy=cp.Problem(goal, program.constraints))


PROGRAMS: dict[str, Callable[..., Any]] = {
    "fgm": models.qcqp_relaxation,
    "boolean": models.boolean_relaxation,
    "big-m": models.big_m,
    "decomposed-sdp": models.decomposed_sdp,
}


@pytest.mark.sampled(11)
@pytest.mark.parametrize("loss", ["hinge", "squared-hinge"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_charges_in_a_cvxpy_objective_are_those_of_the_problem(name: str, loss: str) -> None:
    made = PROGRAMS[name](data(True), M=3, C=C, loss=loss, bias=True)
    own = compile(made).penalty
    total = own + CHARGES
    for add in (
        lambda old: old + CHARGES @ made.sigma,
        lambda old: 0.4 * made.sigma["worst texture"] + old + CHARGES[:4] @ made.sigma[:4],
    ):
        changed = edited(made, add)
        np.testing.assert_allclose(compile(changed).penalty, total, rtol=1e-15)
        result = mipfs.solve(changed, "branch", gap=1e-7)
        assert result.objective == pytest.approx(best(loss, True, total), rel=1e-6)
        if name != "big-m":  # whose implied bounds are drawn anew for the costs
            relaxed = mipfs.solve(changed, "conic")
            assert relaxed.bound == pytest.approx(changed.cvxpy.solve(solver="CLARABEL"), rel=1e-5)


def test_a_mixed_integer_program_with_charges_has_the_optimum_that_scip_finds() -> None:
    pytest.importorskip("pyscipopt")
    made = models.big_m(data(), M=3, C=C, binary=True)
    changed = edited(made, lambda old: old + CHARGES @ made.sigma)
    result = mipfs.solve(changed, "branch", gap=1e-7)
    assert result.objective == pytest.approx(changed.cvxpy.solve(solver="SCIP"), rel=1e-4)


@pytest.mark.parametrize(
    ("add", "message"),
    [
        (lambda old, made: 2 * old, "the objective of boolean was changed; only fixed charges"),
        (lambda old, made: old + 3, "has the constant 3, which moves no optimum"),
        (lambda old, made: old - made.sigma[0], r"the coefficient -1 of sigma\['a'\]"),
        (lambda old, made: old + cp.sum_squares(made.sigma), "not linear in sigma alone"),
        (lambda old, made: old + cp.norm1(made.sigma), "not linear in sigma alone"),
        (lambda old, made: old + made.variables["w"][0], "not linear in sigma alone"),
        (lambda old, made: old + 2 * cp.Variable(boolean=True), "not linear in sigma alone"),
        (lambda old, made: old + cp.Parameter(nonneg=True) * made.sigma[0], "a parameter without a value"),
        (lambda old, made: made.sigma[0] + 0, "the objective of boolean was changed"),
        (lambda old, made: old + np.inf * made.sigma[0], "not finite|coefficient"),
    ],
)
def test_any_other_change_of_a_cvxpy_objective_is_refused(add: Any, message: str) -> None:
    made = models.boolean_relaxation(data(), M=3, C=C)
    with pytest.raises(RowError, match=message) as raised:
        mipfs.solve(edited(made, lambda old: add(old, made)), "branch")
    assert "\n" not in str(raised.value)


def test_a_program_without_sigma_as_a_variable_says_where_charges_go() -> None:
    made = models.nmmkl(data(), M=3, C=C)
    with pytest.raises(RowError, match=r"sigma is no variable of that program: declare fixed charges as \[penalty\]"):
        mipfs.solve(edited(made, lambda old: old + CHARGES @ made.sigma))
