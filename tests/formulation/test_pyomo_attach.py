"""Changes of a Pyomo model outside ``select`` are refused by name; harmless ones are not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest

from mipfs import models
from mipfs.data.instance import Instance
from mipfs.errors import RowError
from mipfs.formulation import compile as compile_model
from mipfs.formulation import problem_of
from mipfs.formulation.pyomo_attach import attach
from mipfs.problem import Problem


def make() -> Any:
    rng = np.random.default_rng(3)
    data = Instance.from_arrays(rng.normal(size=(10, 3)), np.where(np.arange(10) < 4, 1.0, -1.0))
    return models.fsp_m(data, M=2)


def new_row(m: Any) -> str:
    m.extra_row = pyo.Constraint(expr=m.select.sigma["x1"] >= m.svm.w["x1"])
    return r"extra_row is new outside select and mixes the selection with svm\.w\[x1\]"


def new_variable(m: Any) -> str:
    m.u = pyo.Var()
    m.select.row = pyo.Constraint(expr=m.u <= m.select.sigma["x1"])
    return "u is new"


def new_objective(m: Any) -> str:
    m.mine = pyo.Objective(expr=m.svm.b)
    return "one active objective, and has objective and mine"


def new_row_in_svm(m: Any) -> str:
    m.svm.sign = pyo.Constraint(expr=m.svm.w["x1"] >= m.select.sigma["x1"] - 1)
    return r"svm\.sign is new"


def new_row_in_a_block(m: Any) -> str:
    m.mine = pyo.Block()
    m.mine.row = pyo.Constraint(expr=m.svm.w["x1"] + m.svm.b >= 0)
    return "mine.row is new outside select and is about svm.w"


def changed_objective(m: Any) -> str:
    m.objective.set_value(m.svm.b**2)
    return "in objective was changed"


def maximised(m: Any) -> str:
    m.objective.sense = pyo.maximize
    return "objective is maximised"


def dropped_margin(m: Any) -> str:
    m.svm.margin[3].deactivate()
    return r"svm\.margin\[3\] was changed"


def changed_margin(m: Any) -> str:
    m.svm.margin[3].set_value(m.svm.b >= 0)
    return r"svm\.margin\[3\] was changed"


def deleted_margin(m: Any) -> str:
    del m.svm.margin[3]
    return r"svm\.margin\[3\] was changed"


def fixed_weight(m: Any) -> str:
    m.svm.w["x2"].fix(float("inf"))
    return r"svm\.w\[x2\] is fixed at inf; a weight is fixed at a number"


def bounded_weight(m: Any) -> str:
    m.svm.w["x2"].bounds = (0.5, 0.2)
    return r"the interval \(0\.5, 0\.2\) of svm\.w\[x2\]: the lower end lies above the upper one"


def integer_weight(m: Any) -> str:
    m.svm.w["x2"].domain = pyo.Integers
    return r"svm\.w\[x2\] has the domain Integers"


def other_weights(m: Any) -> str:
    m.svm.del_component(m.svm.w)
    m.svm.w = pyo.Var(["x1", "x2", "x3"])
    return r"w is not the one that was built"


def bounded_bias(m: Any) -> str:
    m.svm.b.setub(1)
    return r"svm\.b was changed: the intercept has no bounds"


def integer_bias(m: Any) -> str:
    m.svm.b.domain = pyo.Integers
    return r"svm\.b was changed"


def dropped_block(m: Any) -> str:
    m.svm.deactivate()
    return "svm was changed"


def removed_block(m: Any) -> str:
    m.svm.del_component(m.svm.cone)
    return r"svm\.cone was removed"


def no_select(m: Any) -> str:
    m.select.deactivate()
    return "select is deactivated"


def removed_select(m: Any) -> str:
    m.del_component(m.select)
    return r"select\.sigma is not"


def other_sigma(m: Any) -> str:
    m.select.del_component(m.select.sigma)
    m.select.sigma = pyo.Var(["x1", "x2", "x3"], domain=pyo.Binary)
    return r"select\.sigma is not"


CHANGES = (
    new_row,
    new_variable,
    new_objective,
    new_row_in_svm,
    new_row_in_a_block,
    changed_objective,
    maximised,
    dropped_margin,
    changed_margin,
    deleted_margin,
    fixed_weight,
    bounded_weight,
    integer_weight,
    other_weights,
    bounded_bias,
    integer_bias,
    dropped_block,
    removed_block,
    no_select,
    removed_select,
    other_sigma,
)


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
@pytest.mark.parametrize("clone", [False, True], ids=["model", "clone"])
def test_changes_outside_select_are_named(change: Callable[[Any], str], clone: bool) -> None:
    model = make().clone() if clone else make()
    compile_model(model)
    message = change(model)
    with pytest.raises(RowError, match=message) as raised:
        compile_model(model)
    assert "\n" not in str(raised.value)


def test_rows_over_the_selection_may_stand_anywhere() -> None:
    model = make()
    model.mine = pyo.Block()
    model.mine.both = pyo.Constraint(expr=model.select.sigma["x1"] + model.select.sigma["x2"] <= 1)
    model.select.z = pyo.Var(domain=pyo.Binary)
    model.tied = pyo.ConstraintList()
    model.tied.add(model.select.z >= model.select.sigma["x1"])
    model.idle = pyo.Constraint(expr=model.select.sigma["x1"] == 0)
    model.idle.deactivate()
    for one in (model, model.clone()):
        rows = compile_model(one).rows
        assert {(name, origin) for name, origin in zip(rows.names, rows.origins, strict=True)} == {
            ("mine.both", "model"),
            ("tied[1]", "model"),
        }
        assert sorted(map(tuple, rows.matrix.toarray().tolist())) == [(1.0, 0.0, 0.0, -1.0), (1.0, 1.0, 0.0, 0.0)]


def test_data_and_values_may_change_anywhere() -> None:
    model = make()
    model.note = pyo.Param(initialize=3.0, mutable=True)
    model.some = pyo.Set(initialize=["x1", "x2"])
    model.total = pyo.Expression(expr=sum(model.select.sigma[j] for j in model.some))
    model.dual = pyo.Suffix(direction=pyo.Suffix.IMPORT)
    model.select.row = pyo.Constraint(expr=model.total <= model.note - 2)
    model.svm.w["x1"].set_value(3.0)
    problem = compile_model(model)
    assert problem.rows.matrix.toarray().tolist() == [[1.0, 1.0, 0.0]]
    assert (problem.rows.ub[0], problem.rows.names[0]) == (1.0, "row")


def test_a_clone_shares_the_problem_and_nothing_else() -> None:
    model = make()
    clone = model.clone()
    clone.select.row = pyo.Constraint(expr=clone.select.sigma["x1"] == 0)
    assert problem_of(clone) is problem_of(model)
    assert len(compile_model(clone).rows) == 1
    assert len(compile_model(model).rows) == 0


def test_a_model_written_by_hand_can_be_attached() -> None:
    problem = Problem(problem_of(make()).data, M=None, lam=0.5)
    model = pyo.ConcreteModel()
    model.select = pyo.Block()
    model.select.sigma = pyo.Var(list(problem.data.feature_names), domain=pyo.Binary)
    model.w = pyo.Var(list(problem.data.feature_names))
    attach(model, problem)
    model.select.row = pyo.Constraint(expr=model.select.sigma["x1"] + model.select.sigma["x3"] <= 1)
    assert problem_of(model) is problem
    assert compile_model(model).rows.matrix.toarray().tolist() == [[1.0, 0.0, 1.0]]
    model.w["x1"].fix(0)
    with pytest.raises(RowError, match=r"w\[x1\] was changed"):
        compile_model(model)


def test_rows_of_a_block_that_is_switched_off_do_not_count() -> None:
    m = make()
    m.mine = pyo.Block([1, 2])
    for k, name in ((1, "x1"), (2, "x2")):
        m.mine[k].row = pyo.Constraint(expr=m.select.sigma[name] <= 0)
    m.mine[2].deactivate()
    assert _names_of_rows(m) == ("mine[1].row",)
    m.mine.deactivate()
    assert _names_of_rows(m) == ()
    m.mine[2].activate()
    assert _names_of_rows(m) == ("mine[2].row",)
    m.svm.deactivate()
    with pytest.raises(RowError, match="svm was changed"):
        compile_model(m)


def _names_of_rows(m: Any) -> tuple[str, ...]:
    rows = compile_model(m).rows
    return () if rows is None else rows.names
