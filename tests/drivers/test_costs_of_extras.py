"""Costs of extra variables, in every interface, by every driver, in lists and certificates, against brute force."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

import cvxpy
import numpy as np
import pyomo.environ as pyo
import pytest
from scipy import sparse

import mipfs
from mipfs import models
from mipfs.errors import DataError, RowError
from mipfs.formulation import compile
from mipfs.readers.lp_rows import read_rows
from mipfs.selection.rows import Extras, Rows
from tests import costs_of_extras
from tests.oracles import svm_value
from tests.two_checkers import data_of, remembered, verdicts, written

cp: Any = cvxpy
M, C = 2, 0.5
DEVICE, ROOM = 0.6, 0.25
"""What the device costs that x1, x2 and x3 need, and a unit of capacity beyond 1."""
LP = """minimize
 paid: 0.6 extra_device + 0.25 extra_room + 0 x1
subject to
 a: extra_device - x1 >= 0
 b: extra_device - x2 >= 0
 c: extra_device - x3 >= 0
 room: 2 x1 + x2 + x4 - extra_room <= 1
binary
 extra_device
end
"""


def drawn() -> mipfs.Instance:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(20, 4))
    y = np.where(X[:, 0] + 0.8 * X[:, 3] + 0.5 * rng.normal(size=20) > 0.0, 1.0, -1.0)
    return mipfs.Instance.from_arrays(X, y, scale="none")


@pytest.fixture(scope="module")
def data() -> mipfs.Instance:
    with remembered():
        return drawn()


@pytest.fixture(scope="module")
def best(data: mipfs.Instance) -> float:
    """The optimum by enumeration."""
    found = math.inf
    for mask in range(16):
        ids = [j for j in range(4) if mask >> j & 1]
        if len(ids) <= M:
            over = max(0.0, 2.0 * (0 in ids) + (1 in ids) + (3 in ids) - 1.0)
            v = svm_value(data.X[:, ids], data.y, np.full(20, C), True).upper
            found = min(found, v + DEVICE * any(j < 3 for j in ids) + ROOM * over)
    return found


def rows() -> Rows:
    A = np.array([[-1, 0, 0, 0, 1, 0], [0, -1, 0, 0, 1, 0], [0, 0, -1, 0, 1, 0], [2, 1, 0, 1, 0, -1]], float)
    extra = Extras(("device", "room"), np.zeros(2), np.array([1.0, math.inf]), np.array([True, False]), [DEVICE, ROOM])
    ends = np.array([0.0, 0.0, 0.0, -math.inf]), np.array([math.inf] * 3 + [1.0])
    return Rows(sparse.csr_array(A), *ends, ("a", "b", "c", "room"), ("",) * 4, extra)


def stated(data: mipfs.Instance) -> mipfs.Problem:
    return mipfs.Problem(data, M=M, C=C, rows=rows())


def in_pyomo(data: mipfs.Instance) -> Any:
    model = models.fsp_m(data, M=M, C=C)
    s = model.select.sigma
    model.select.device, model.select.room = pyo.Var(domain=pyo.Binary), pyo.Var(domain=pyo.NonNegativeReals)
    model.needs = pyo.ConstraintList()  # rows over the selection stand anywhere
    for name in ("x1", "x2", "x3"):
        model.needs.add(model.select.device >= s[name])
    model.select.over = pyo.Constraint(expr=2 * s["x1"] + s["x2"] + s["x4"] <= 1 + model.select.room)
    model.select.extra_cost.set_value(DEVICE * model.select.device + ROOM * model.select.room)
    return model


def in_cvxpy(data: mipfs.Instance, made: Any) -> Any:
    device, room = cp.Variable(boolean=True, name="device"), cp.Variable(nonneg=True, name="room")
    s = made.sigma
    needs = [device >= s[j] for j in range(3)] + [2 * s[0] + s[1] + s[3] <= 1 + room]
    return made.with_constraints(needs, extra_cost=DEVICE * device + ROOM * room)


def test_every_interface_states_the_same_problem(data: mipfs.Instance, best: float, tmp_path: Path) -> None:
    Path(tmp_path, "rows.lp").write_text(LP)
    boolean = models.boolean_relaxation(data, M=M, C=C, loss="hinge", bias=True)
    given = {
        "python": stated(data),
        "pyomo": in_pyomo(data),
        "cvxpy": in_cvxpy(data, boolean),
        "lp": mipfs.Problem(data, M=M, C=C, rows=read_rows(tmp_path / "rows.lp", data)),
    }
    for way, model in given.items():
        result = mipfs.solve(model, gap=1e-7)
        assert result.driver == "branch", way
        assert result.status is mipfs.Status.OPTIMAL, way
        assert result.objective == pytest.approx(best, rel=1e-6), way
        assert result.bound <= result.objective, way
        costs = [one["cost"] * one["value"] for one in result.extra.values()]
        assert result.extra_cost == pytest.approx(sum(costs)), way
        assert result.document()["extra_cost"] == result.extra_cost, way
        assert mipfs.verify(result, data).accepted, way
    model = given["pyomo"]
    assert pyo.value(model.objective) == pytest.approx(best, rel=1e-6)
    assert "of which" in result.summary()
    assert mipfs.Result.from_json(result.to_json()).extra_cost == result.extra_cost


def test_gbd_finds_the_same_and_relaxations_refuse_it_by_name(data: mipfs.Instance, best: float) -> None:
    problem = stated(data)
    assert mipfs.solve(problem, "gbd", gap=1e-7).objective == pytest.approx(best, rel=1e-6)
    for driver in ("kelley", "conic"):
        with pytest.raises(
            mipfs.UsageError, match="cannot carry costs of extra variables; branch, gbd, monolithic can"
        ):
            mipfs.solve(problem, driver)
    with pytest.raises(mipfs.UsageError, match=r"published one, which has no costs of extra variables"):
        mipfs.solve(problem, "gbd", master="milp")
    with pytest.raises(mipfs.UsageError, match="'nmmkl' cannot carry costs of extra variables"):
        in_cvxpy(data, models.nmmkl(data, M=M, C=C))


@pytest.mark.parametrize("low", [0.0, -math.inf])
def test_a_cost_that_is_unbounded_below_is_refused_by_name(data: mipfs.Instance, low: float) -> None:
    extra = Extras(("gain",), np.array([low]), np.array([math.inf]), np.array([False]), [-1.0 if low == 0.0 else 1.0])
    free = Rows(sparse.csr_array((0, 5)), np.empty(0), np.empty(0), (), (), extra)
    with pytest.raises(RowError, match="the costs of 'gain' are unbounded below"):
        mipfs.Problem(data, M=M, C=C, rows=free)


def test_other_words_in_pyomo_are_refused(data: mipfs.Instance) -> None:
    def said(value: Any) -> str:
        model = in_pyomo(data)
        model.select.extra_cost.set_value(value(model))
        with pytest.raises(RowError) as refused:
            compile(model)
        return str(refused.value)

    assert "which is no extra variable" in said(lambda m: m.select.sigma["x1"])
    assert "moves no optimum" in said(lambda m: 3 + m.select.device)
    assert "is not linear" in said(lambda m: m.select.room**2)
    assert "which is not under select" in said(lambda m: m.svm.w["x1"])
    model = in_pyomo(data)
    model.select.del_component("extra_cost")
    model.select.extra_cost = pyo.Expression(expr=0)
    with pytest.raises(RowError, match="extra_cost is not the one that was built"):
        compile(model)
    model = in_pyomo(data)
    model.mixed = pyo.Constraint(expr=model.select.sigma["x1"] >= model.svm.w["x1"])
    with pytest.raises(RowError, match=r"mixed is new outside select and mixes the selection with svm\.w\[x1\]"):
        compile(model)


def test_a_fixed_variable_is_paid(data: mipfs.Instance, best: float) -> None:
    model = in_pyomo(data)
    model.select.spare = pyo.Var(domain=pyo.Integers)
    model.select.extra_cost.set_value(model.select.extra_cost.expr - 4 * model.select.spare)
    model.select.spare.fix(3)
    result = mipfs.solve(model, gap=1e-7)
    assert result.objective == pytest.approx(best - 12.0, rel=1e-6)
    assert result.objective < 0.0
    assert pyo.value(model.objective) == pytest.approx(result.objective, rel=1e-9)


@pytest.mark.parametrize(
    ("objective", "said"),
    [
        ("minimize\n 2 x1", "an objective"),
        ("maximize\n 2 extra_device", "maximised"),
        ("minimize\n extra_device + 2 extra_device", "twice in the objective"),
        ("minimize\n extra_device + 3", "an objective"),
    ],
)
def test_objectives_of_lp_files_that_are_no_costs(
    data: mipfs.Instance, tmp_path: Path, objective: str, said: str
) -> None:
    path = tmp_path / "rows.lp"
    path.write_text(f"{objective}\n{LP[LP.index('subject') :]}")
    with pytest.raises(DataError, match=said):
        read_rows(path, data)


def test_an_atom_that_spares_a_cost_is_no_tie(data: mipfs.Instance) -> None:
    """z ≥ 1 − σ_2, which costs: a copy of a constant column has weight 0, and adding it is cheaper."""
    X = np.column_stack([data.X[:, [0, 3]], np.zeros(20)])
    other = mipfs.Instance.from_arrays(X, data.y, scale="none")
    extra = Extras(("z",), np.zeros(1), np.array([math.inf]), np.array([False]), [0.3])
    one = Rows(sparse.csr_array([[0.0, 0.0, 1.0, 1.0]]), [1.0], [math.inf], ("spared",), ("",), extra)
    result = mipfs.solve(mipfs.Problem(other, M=3, C=C, rows=one), gap=1e-7, pool_gap=0.5)
    assert "x3" in result.selected
    assert result.extra_cost == 0.0
    assert result.near_optimal is not None
    assert result.near_optimal["complete"]
    listed = {tuple(entry["selected"]) for entry in result.near_optimal["supports"]}
    values = {}
    for ids in [(), (0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)]:
        v = svm_value(X[:, list(ids)], other.y, np.full(20, C), True).upper
        values[tuple(f"x{j + 1}" for j in ids)] = v + 0.3 * (2 not in ids)
    limit = 1.5 * min(values.values())
    assert listed == {ids for ids, value in values.items() if value <= limit}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", [3, 6, 9])
def test_drawn_problems(seed: int) -> None:
    with remembered():
        one = costs_of_extras.case(seed)
    counts = Counter[str]()
    assert not costs_of_extras.faults(one, counts)
    assert not costs_of_extras.list_faults(one, counts)
    assert not counts["lists not complete"]


def test_forged_certificates_are_refused_by_both(data: mipfs.Instance) -> None:
    result = mipfs.solve(stated(data), gap=1e-7)
    found = written(result)
    assert found is not None
    assert verdicts(json.loads(found[0]), found[1], data, data_of(data))[:2] == ("accepted", "accepted")
    count = 0
    for what, said, held in costs_of_extras.forgeries(json.loads(found[0]), found[1], np.random.default_rng(1)):
        assert "accepted" not in verdicts(said, held, data, data_of(data))[:2], what
        count += 1
    assert count >= 6


@pytest.mark.parametrize("driver", ["branch", "gbd"])
def test_a_feature_without_weight_that_spares_a_cost_is_selected(driver: str) -> None:
    r = np.random.default_rng(0)
    X = r.normal(size=(40, 4))
    y = np.where(X[:, 0] - X[:, 2] + 0.3 * r.normal(size=40) > 0, 1, -1)
    X[:, 1] = 3.0
    model = models.fsp_m(mipfs.Instance.from_arrays(X, y), M=2)
    model.select.z = pyo.Var(bounds=(0, 1))
    model.select.row = pyo.Constraint(expr=model.select.z >= 1 - model.select.sigma["x2"])
    model.select.extra_cost.set_value(50 * model.select.z)
    found = mipfs.solve(model, driver)
    assert (found.status.name, found.selected) == ("OPTIMAL", ("x1", "x2"))


def test_a_variable_whose_cost_falls_to_nothing_keeps_a_value() -> None:
    """The solved model can be evaluated, as one whose prices are swept down to 0 is."""
    r = np.random.default_rng(1)
    X = r.normal(size=(40, 4))
    model = models.fsp_m(mipfs.Instance.from_arrays(X, np.where(X[:, 0] > 0.2 * r.normal(size=40), 1, -1)), M=2, C=1.0)
    model.select.price = pyo.Param(initialize=1.0, mutable=True)
    model.select.device = pyo.Var(domain=pyo.Binary)
    model.select.free = pyo.Var(bounds=(1, 3))
    model.select.needed = pyo.Constraint(expr=model.select.device >= model.select.sigma["x1"])
    model.select.extra_cost.set_value(model.select.price * model.select.device + 0.0 * model.select.free)
    for price in (1.0, 0.0):
        model.select.price = price
        result = mipfs.solve(model)
        assert pyo.value(model.objective) == pytest.approx(result.objective)
        assert 1.0 <= model.select.free.value <= 3.0
