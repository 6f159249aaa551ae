"""Bounds and fixings of the weights in Pyomo and CVXPY models, on the scale of the model: against all supports."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import cvxpy as cp
import numpy as np
import pyomo.environ as pyo
import pytest

import mipfs
from mipfs import models
from mipfs.data.instance import Instance
from mipfs.errors import RowError, UsageError
from mipfs.formulation import compile
from tests.bounded_cases import LOSSES, SCALES, BoundedCase

RNG = np.random.default_rng(12)
N, P, M = 40, 5, 3
X = RNG.normal(size=(N, P)) * np.array([1.0, 10.0, 0.3, 1.0, 2.0]) + 3.0
Y = np.where(-X[:, 0] + 0.2 * X[:, 1] + X[:, 3] + 3 * X[:, 2] - 12.5 + 0.7 * RNG.normal(size=N) > 0, 1.0, -1.0)
LOW = np.array([0.0, -0.5, -math.inf, -math.inf, 0.0])
HIGH = np.array([math.inf, 0.25, 0.0, math.inf, 0.0])
"""On the scale of the model."""


def data(scale: Any = "standard") -> Instance:
    return Instance.from_arrays(X, Y, scale=scale)


def best(loss: str, scale: Any, low: Any = LOW, high: Any = HIGH) -> float:
    """The optimum, by Clarabel over all supports."""
    one = BoundedCase(
        0, X, Y, scale, loss, True, 1.0, M, low, high, np.zeros(P), np.zeros((0, P)), np.zeros(0), np.ones(N)
    )
    at = one.divisor()
    object.__setattr__(one, "low", low / at)
    object.__setattr__(one, "high", high / at)
    return min(one.values().values())


def bounded(model: Any) -> Any:
    """LOW and HIGH, written in several ways."""
    w = model.svm.w
    w["x1"].setlb(0)
    w["x2"].bounds = (-0.5, 0.25)
    w["x3"].domain = pyo.NonPositiveReals
    w["x4"].setub(math.inf)
    w["x5"].fix(0)
    return model


@pytest.mark.sampled(11)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("scale", SCALES)
def test_pyomo(loss: str, scale: Any) -> None:
    model = bounded(models.fsp_m(data(scale), M=M, C=1.0, loss=loss))
    again = model.clone() if scale == "unit" else pickle.loads(pickle.dumps(model))
    wanted = best(loss, scale)
    for one in (model, again):
        found = mipfs.solve(one, gap=1e-7)
        assert found.objective == pytest.approx(wanted, rel=1e-6)
        assert mipfs.verify(found, data(scale)).accepted
        assert set(found.params["weight_bounds"]) == {"x1", "x2", "x3", "x5"}
        # what is put into the model keeps its bounds, to the last bit
        for w in one.svm.w.values():
            low, high = w.bounds
            assert low is None or low <= w.value
            assert high is None or w.value <= high
        assert sum(abs(w.value) > 0 for w in one.svm.w.values()) <= M
    assert wanted > mipfs.solve(models.fsp_m(data(scale), M=M, C=1.0, loss=loss), gap=1e-7).objective * (1 + 1e-6)


@pytest.mark.slow
def test_the_model_itself_says_the_same() -> None:
    """A general solver of the model, with its bounds, has the same optimum."""
    model = bounded(models.fsp_m(data(), M=M, C=1.0))
    found = mipfs.solve(model, "monolithic", gap=1e-6)
    assert found.objective == pytest.approx(best("hinge", "standard"), rel=1e-5)
    taken = {name: w.value for name, w in model.svm.w.items()}
    value = pyo.value(model.objective)
    assert value == pytest.approx(found.objective, rel=1e-5)
    assert taken["x5"] == 0.0
    assert "x5 = 0" in found.summary()


def test_what_a_fixed_weight_says() -> None:
    """A weight that is fixed at 0 is a cone, as signs are: nothing is unsaid of the problem without it."""
    model = models.fsp_m(data(), M=2)
    model.svm.w["x5"].fix(0)
    found = mipfs.solve(model)
    assert "x5 = 0" in found.summary()
    assert "says nothing about" not in found.summary()
    assert mipfs.verify(found, data()).bound_without_box == -math.inf


CHANGES: tuple[Callable[[Any], list[Any]], ...] = (
    lambda w: [w[0] >= 0, w[1] >= -0.5, w[1] <= 0.25, w[2] <= 0, w[4] == 0],
    lambda w: [w[[0, 4]] >= 0, w[[2, 4]] <= 0, 2 * w[1] + 1 >= 0, 0.25 - w[1] >= 0],
    lambda w: [np.array([1.0, 0.0, 0.0, 0.0, 2.0]) @ cp.diag(w) @ np.eye(P)[:, [0, 4]] >= 0, -w[2] >= 0, w[4] <= 0,
               -4 * w[1] <= 2, w[1] / 0.25 <= 1],
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", ["boolean", "plain-svm", "qcqp-ssvm"])
def test_cvxpy(name: str, change: Callable[[Any], list[Any]]) -> None:
    problem = mipfs.formulation.load(name).problem
    assert problem is not None
    made = mipfs.formulation.declare(name, problem(data(), M=M, C=1.0, loss="hinge", bias=True))
    free = float(made.cvxpy.solve(solver="CLARABEL"))
    w = made.variables["w"]
    changed = made.with_constraints(change(w))
    compiled = compile(changed)
    assert compiled.weight_bounds is not None
    scale = data().scale
    for j, feature in enumerate(data().feature_names):
        low, high = compiled.weight_bounds.get(feature, (-math.inf, math.inf))
        assert low * scale[j] == pytest.approx(LOW[j], abs=1e-15)
        assert high * scale[j] == pytest.approx(HIGH[j], abs=1e-15)
    wanted = best("hinge", "standard")
    found = mipfs.solve(changed, "branch", gap=1e-7)
    assert found.objective == pytest.approx(wanted, rel=1e-6)
    # what a user declared is no tighter than the package's program of the same bounds, which is no tighter than exact
    own = float(changed.cvxpy.solve(solver="CLARABEL"))
    ours = float(mipfs.formulation.declare(name, compiled).cvxpy.solve(solver="CLARABEL"))
    assert free <= own * (1 + 1e-6) <= ours * (1 + 2e-6) <= wanted * (1 + 3e-6)
    relaxed = mipfs.solve(changed, "conic")
    assert relaxed.bound <= wanted * (1 + 1e-9)
    assert mipfs.verify(relaxed, data()).accepted


def test_bounds_and_rows_together() -> None:
    made = mipfs.formulation.declare("boolean", models.boolean_relaxation.problem(data(), M=M, loss="hinge"))
    w, sigma = made.variables["w"], made.sigma
    changed = made.with_constraints([w >= -1, sigma["x1"] + sigma["x2"] <= 1, w <= 1])
    problem = compile(changed)
    assert problem.rows is not None
    assert len(problem.rows) == 1
    assert problem.weight_bounds is not None
    assert len(problem.weight_bounds) == P
    result = mipfs.solve(changed, "branch")
    assert not {"x1", "x2"} <= set(result.selected)
    assert np.max(np.abs(np.asarray(w.value))) <= 1 + 1e-12


@pytest.mark.slow
def test_rounded_inward() -> None:
    """A bound on the user's scale times the column's is never wider than the one that was written."""
    r = np.random.default_rng(0)
    for _ in range(50):
        one = Instance.from_arrays(r.normal(size=(12, 2)) * 10.0 ** r.uniform(-3, 3, 2), np.resize([1.0, -1.0], 12),
                                   scale="standard")  # fmt: skip
        model = models.fsp_m(one, M=1)
        low, high = sorted((float(r.uniform(-3, 3)), float(r.uniform(-3, 3))))
        model.svm.w["x1"].bounds = (low, high)
        compiled = compile(model)
        (ends,) = (compiled.weight_bounds or {}).values()
        assert compiled.forced_in == (("x1",) if low > 0.0 or high < 0.0 else ())
        scale = Fraction(float(one.scale[0]))
        assert Fraction(low) <= Fraction(ends[0]) * scale
        assert Fraction(ends[1]) * scale <= Fraction(high)
        assert float(Fraction(ends[1]) * scale) == pytest.approx(high, rel=1e-15)


def test_on_top_of_the_problems_own() -> None:
    model = models.fsp_m(data(), M=2, weight_bounds={"x1": (0.0, None), "x2": (None, 1.0)})
    assert compile(model).weight_bounds == {"x1": (0.0, math.inf), "x2": (-math.inf, 1.0)}
    model.svm.w["x1"].setub(1.0)
    model.svm.w["x2"].setlb(0.0)
    found = compile(model).weight_bounds or {}
    assert found["x1"] == pytest.approx((0.0, 1.0 / data().scale[0]))
    assert found["x2"] == (0.0, 1.0)


def weights_of(name: str) -> tuple[Any, Any]:
    made = mipfs.formulation.declare(name, models.boolean_relaxation.problem(data(), M=M, loss="hinge", bias=True))
    return made, made.variables["w"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda w, f: [w[0] >= 0.5, w[0] <= 0.25], "have no weight in common"),
        (lambda w, f: [w[0] == 0.5], "no number on the scale of the data between its ends"),
        (lambda w, f: [w[0] + w[1] <= -1], "leaves out weights that are all 0"),
        (lambda w, f: [cp.sum(w) >= 1], "leaves out weights that are all 0"),
        (lambda w, f: [0 * w[0] <= 1], "is about 0 weights in one row"),
        (lambda w, f: [cp.abs(w) <= 1], "is not linear"),
        (lambda w, f: [cp.SOC(1, w)], "is no linear row"),
        (lambda w, f: [w <= f.sigma], "or w alone"),
        (lambda w, f: [f.variables["b"] >= 0], "the intercept has no bounds"),
        (lambda w, f: [w[0] <= 1e-300], "must be of a size from"),
    ],
)
def test_refused_by_name(change: Callable[[Any, Any], list[Any]], words: str) -> None:
    made, w = weights_of("boolean")
    with pytest.raises(RowError, match=words):
        mipfs.solve(made.with_constraints(change(w, made)), "branch")


def test_what_does_not_carry_them() -> None:
    groups = mipfs.atoms.make("groups", data(), groups={"a": ["x1", "x2"], "b": ["x2", "x3", "x4", "x5"]})
    model = mipfs.formulation.algebraic_model(mipfs.Problem(groups.data, atoms=groups, M=1))
    model.svm.w["a", "x1"].setlb(0.0)
    assert compile(model).weight_bounds == {"x1": (0.0, np.inf)}
    model.svm.w["a", "x2"].setlb(0.0)
    with pytest.raises(RowError, match="'x2' stands in several groups: its weight is the sum of one for each"):
        compile(model)
    program = mipfs.formulation.declare("boolean", mipfs.Problem(groups.data, atoms=groups, M=1))
    with pytest.raises(RowError, match="about 2 weights in one row"):
        compile(program.with_constraints([program.variables["w"][1] >= 0]))
    scaled = mipfs.atoms.make("features", data(), scaling="norm")
    model = mipfs.formulation.algebraic_model(mipfs.Problem(scaled.data, atoms=scaled, M=1))
    model.svm.w["x1"].setlb(0.0)
    with pytest.raises(RowError, match="has bounds; they are about weights of single features, not scaled features"):
        compile(model)
    rho = models.boolean_relaxation.problem(data(), M=M, margin="rho")
    made = mipfs.formulation.declare("boolean", rho)
    assert compile(made.with_constraints([made.variables["w"] >= 0])).weight_bounds
    with pytest.raises(UsageError, match="no signs"):
        compile(made.with_constraints([made.variables["w"] <= 1]))
    big = mipfs.formulation.declare("big-m", models.big_m.problem(data(), M=M))
    changed = big.with_constraints([big.variables["w"] >= 0])
    assert mipfs.solve(changed, "branch").objective > 0
    with pytest.raises(UsageError, match="cannot carry weight bounds"):
        mipfs.solve(changed, "conic", declare=mipfs.formulation.load("big-m").declare)
