"""The Pyomo models of FSP-M and FSP-λ: their pages' formulas, row by row, and what they refuse."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
from scipy import sparse

from mipfs import models
from mipfs.data.instance import Instance, Row, SelectDefaults
from mipfs.errors import UsageError
from mipfs.formulation import algebraic_model, problem_of
from mipfs.problem import Problem
from mipfs.selection.selection import Extras, Rows
from tests.references import svm_reference

NAMES = ("mean area", "age", "x9", "t")


def make(**kwargs: Any) -> Instance:
    rng = np.random.default_rng(11)
    X = rng.normal(size=(9, 4)) + 2.0
    X[rng.random(X.shape) < 0.3] = 0.0
    y = np.where(np.arange(9) < 4, 1.0, -1.0)
    stored = sparse.csc_array(X) if kwargs.pop("stored", "dense") == "csc" else X
    return Instance.from_arrays(stored, y, feature_names=NAMES, **kwargs)


def dense(data: Instance) -> np.ndarray:
    return (data.X.toarray() if data.is_sparse else np.asarray(data.X)) - data.center


def set_point(model: Any, sigma: np.ndarray, w: np.ndarray, b: float, xi: np.ndarray) -> None:
    """Put a point into the model, t as small as the cones allow."""
    for j, name in enumerate(NAMES):
        model.select.sigma[name].set_value(float(sigma[j]), skip_validation=True)
        model.svm.w[name].set_value(float(w[j]))
        model.svm.t[name].set_value(float(w[j] ** 2 / sigma[j]) if sigma[j] else 0.0)
    if isinstance(model.svm.b, pyo.Var):
        model.svm.b.set_value(b)
    if model.svm.component("offset") is not None:
        centre = dict(zip(NAMES, problem_of(model).data.center, strict=True))
        model.svm.offset.set_value(b - sum(centre[j] * model.svm.w[j].value for j in NAMES))
    for i, slack in enumerate(xi):
        model.svm.xi[i].set_value(float(slack))


def violation(model: Any) -> float:
    """The largest violation of any row, evaluated by Pyomo."""
    slacks = [c.slack() for c in model.component_data_objects(pyo.Constraint, active=True)]
    return float(-min(0.0, *slacks))


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("stored", ["dense", "csc"])
@pytest.mark.parametrize("scale", ["none", "standard"])
def test_objective_and_rows_at_random_points(scale: str, stored: str, bias: bool) -> None:
    data = make(stored=stored, scale=scale, sample_weight=np.linspace(0.5, 2.0, 9), penalty={"age": 0.25})
    lam = {"t": 0.5, "age": 1.0}
    model = models.fsp_lambda(data, lam=lam, C=3.0, bias=bias)
    c_i, c = 3.0 * np.linspace(0.5, 2.0, 9), np.array([0.0, 1.25, 0.0, 0.5])
    rng = np.random.default_rng(1)
    for _ in range(5):
        sigma = (rng.random(4) < 0.6).astype(float)
        w, b = rng.normal(size=4) * sigma, float(rng.normal()) * bias
        xi = np.maximum(0.0, 1.0 - data.y * (dense(data) @ w + b))
        set_point(model, sigma, w, b, xi)
        assert violation(model) < 1e-9
        wanted = c @ sigma + 0.5 * w @ w + c_i @ xi
        assert pyo.value(model.objective) == pytest.approx(wanted, rel=1e-12)
        assert problem_of(model).evaluate(np.flatnonzero(sigma), w[sigma > 0], b) == pytest.approx(wanted, rel=1e-12)
        tight = int(np.argmax(xi))
        if xi[tight] > 0:  # a smaller slack breaks exactly that margin
            model.svm.xi[tight].set_value(0.5 * xi[tight])
            assert violation(model) == pytest.approx(0.5 * xi[tight], rel=1e-9)


def test_cones_force_weights_of_unselected_features_to_zero() -> None:
    model = models.fsp_m(make(), M=2)
    set_point(model, np.array([1.0, 0.5, 0.0, 0.0]), np.array([1.0, 1.0, 0.0, 0.0]), 0.0, np.full(9, 9.0))
    assert model.svm.t["age"].value == 2.0
    assert violation(model) < 1e-12
    model.svm.w["t"].set_value(0.3)
    assert violation(model) == pytest.approx(0.09)


def test_cardinality_rows_and_fixings_are_visible() -> None:
    rows = (
        Row("cost cap", {"mean area": 2.0, "age": 1.0}, -np.inf, 2.5),
        Row("exactly", {"x9": 1.0, "t": 1.0}, 1, 1),
        Row("cost cap", {"x9": 1.0}, 0.0, np.inf),
    )
    data = make(rows=rows, select=SelectDefaults(M=3, forced_in=("t",), forced_out=("age",)))
    model = models.fsp_m(data)
    assert list(model.select.rows) == ["cost cap", "exactly", "cost cap (2)"]
    assert str(model.select.rows["exactly"].expr) == "select.sigma[x9] + select.sigma[t]  ==  1.0"
    assert model.select.cardinality.upper() == 3
    assert [model.select.sigma[j].fixed for j in NAMES] == [False, True, False, True]
    assert [model.select.sigma[j].value for j in ("age", "t")] == [0, 1]
    assert models.fsp_lambda(data, lam=1.0).select.cardinality.upper() == 3
    assert models.fsp_lambda(make(), lam=1.0).select.component("cardinality") is None


def test_rows_with_extra_variables_become_variables() -> None:
    data = make()
    extra = Extras(("u", "v"), np.array([0.0, -np.inf]), np.array([2.0, 1.5]), np.array([True, False]))
    rows = Rows.of(
        [Row("link", {"age": 1.0, "u": -2.0, "v": 0.5}, -1.0, 1.0), Row("never", {}, 1.0, 2.0)], data.index, extra
    )
    model = algebraic_model(Problem(data, rows=rows))
    assert model.select.extra["u"].is_integer()
    assert (model.select.extra["u"].bounds, model.select.extra["v"].bounds) == ((0.0, 2.0), (None, 1.5))
    for name, value in (("age", 1.0), ("mean area", 0.0)):
        model.select.sigma[name].set_value(value)
    model.select.extra["u"].set_value(1)
    model.select.extra["v"].set_value(3.0)
    assert pyo.value(model.select.rows["link"].body) == 0.5
    assert (model.select.rows["link"].lower(), model.select.rows["link"].upper()) == (-1.0, 1.0)
    assert model.select.rows["never"].slack() == -1.0


@pytest.mark.parametrize("lam", [0.5, [0.5, 0.5, 0.5, 0.5], dict.fromkeys(NAMES, 0.5)])
def test_lambda_as_number_sequence_and_mapping(lam: Any) -> None:
    model = models.fsp_lambda(make(), lam=lam, C=2.0)
    set_point(model, np.ones(4), np.zeros(4), 0.0, np.ones(9))
    assert pyo.value(model.objective) == pytest.approx(4 * 0.5 + 2.0 * 9)


def test_the_model_is_the_problem_at_every_support() -> None:
    """v(σ) of the model's rows, by the conic reference, is never above its objective, and is reached."""
    data = make(scale="standard")
    model = models.fsp_m(data, M=2, C=0.7)
    for support in itertools.combinations(range(4), 2):
        svm = svm_reference(dense(data)[:, list(support)], data.y, problem_of(model).c_i)
        w, sigma = np.zeros(4), np.zeros(4)
        w[list(support)], sigma[list(support)] = svm.w, 1.0
        set_point(model, sigma, w, svm.b, np.maximum(0, 1 - data.y * (dense(data) @ w + svm.b)))
        assert violation(model) < 1e-9
        assert pyo.value(model.objective) == pytest.approx(svm.value, rel=1e-8)


def test_bad_parameters_are_refused_in_one_line() -> None:
    data = make()
    bad: list[Any] = [
        lambda: models.fsp_m(data),
        lambda: models.fsp_m(data, M=-1),
        lambda: models.fsp_m(data, M=5),
        lambda: models.fsp_m(data, M=2, C=0.0),
        lambda: models.fsp_m(data, M=2, loss="absolute"),
        lambda: models.fsp_lambda(data, lam=-1.0),
        lambda: models.fsp_lambda(data, lam=[1.0, 2.0]),
        lambda: models.fsp_lambda(data, lam={"nobody": 1.0}),
    ]
    for build in bad:
        with pytest.raises(UsageError) as raised:
            build()
        assert "\n" not in str(raised.value)


@pytest.mark.parametrize(("n", "p"), [(4, 3001), (2000, 1001)])
def test_large_data_is_refused_before_anything_is_built(n: int, p: int) -> None:
    X = sparse.csc_array((n, p)) if n < 10 else np.ones((n, p))
    data = Instance.from_arrays(X, np.where(np.arange(n) % 2, 1.0, -1.0))
    with pytest.raises(UsageError, match=r"too large for a Pyomo model .* mipfs\.Problem"):
        models.fsp_m(data, M=2)
    assert Problem(data, M=2).M == 2
