"""What a user writes under ``model.select``, compiled: against Pyomo and HiGHS on every one of the 2^p selections."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
from pyomo.contrib.solver.solvers.highs import Highs
from pyomo.gdp import Disjunction
from pyomo.mpec import Complementarity, complements

import mipfs
from mipfs import models
from mipfs.data.instance import Instance, Row, SelectDefaults
from mipfs.errors import RowError, UsageError
from mipfs.formulation import compile as compile_model
from mipfs.formulation import problem_of

NAMES = ("mean area", "b", "c", "d", "e")


def make(M: int = 4, *, rows: tuple[Row, ...] = (), select: SelectDefaults | None = None) -> Any:
    rng = np.random.default_rng(7)
    X, y = rng.normal(size=(12, 5)), np.where(np.arange(12) % 2, 1.0, -1.0)
    data = Instance.from_arrays(X, y, feature_names=NAMES, rows=rows, select=select)
    return models.fsp_m(data, M=M)


OWN_ROWS = (
    Row("budget", {"mean area": 2.0, "b": 1.0, "e": 1.5}, -np.inf, 3.0, "data.toml"),
    Row("one of two", {"c": 1.0, "d": 1.0}, 1.0, 1.0, "data.toml"),
)


def ranged(m: Any) -> None:
    m.select.ranged = pyo.Constraint(expr=(1, sum(m.select.sigma.values()), 3))


def indexed(m: Any) -> None:
    m.select.pairs = pyo.Constraint([1, 2, 3], rule=lambda b, i: b.sigma[NAMES[i]] <= b.sigma[NAMES[i - 1]])
    m.select.pairs[2].deactivate()


def constraint_list(m: Any) -> None:
    s = m.select.sigma
    m.select.more = pyo.ConstraintList()
    m.select.more.add(s["mean area"] + 1 >= s["b"] + s["c"])
    m.select.more.add(2 * (s["d"] - s["e"]) == 0)


def sub_block(m: Any) -> None:
    m.select.inner = pyo.Block()
    m.select.inner.u = pyo.Var(domain=pyo.Binary)
    m.select.inner.total = pyo.Expression(expr=m.select.sigma["b"] + m.select.sigma["c"] - m.select.inner.u)
    m.select.inner.row = pyo.Constraint(expr=m.select.inner.total == 0)


def integer_extra(m: Any) -> None:
    m.select.half = pyo.Var(domain=pyo.NonNegativeIntegers, bounds=(0, 3))
    m.select.even = pyo.Constraint(expr=sum(m.select.sigma.values()) == 2 * m.select.half)


def continuous_extra(m: Any) -> None:
    m.select.level = pyo.Var(["low", "high"], bounds=(0, 1.5))
    m.select.up = pyo.Constraint(expr=m.select.level["low"] >= m.select.sigma["b"] + m.select.sigma["c"])
    m.select.down = pyo.Constraint(expr=m.select.level["low"] <= 0.5 + m.select.sigma["d"])


def fixed_extra(m: Any) -> None:
    m.select.u = pyo.Var(domain=pyo.Integers)
    m.select.u.fix(1)
    m.select.row = pyo.Constraint(expr=m.select.sigma["b"] + m.select.sigma["c"] + m.select.u <= 2)
    m.select.product = pyo.Constraint(expr=m.select.u * m.select.sigma["d"] >= m.select.sigma["e"])


def fixings(m: Any) -> None:
    m.select.sigma["b"].fix(1)
    m.select.sigma["c"].fix(1e-9, skip_validation=True)
    m.select.sigma["d"].setlb(0.3)
    m.select.sigma["e"].setub(0.2)
    m.select.row = pyo.Constraint(expr=m.select.sigma["b"] + m.select.sigma["mean area"] >= 1)


def product_made_linear_by_fixing(m: Any) -> None:
    m.select.sigma["b"].fix(1)
    m.select.row = pyo.Constraint(expr=m.select.sigma["b"] * m.select.sigma["c"] + m.select.sigma["d"] <= 1)


def without_cardinality(m: Any) -> None:
    m.select.cardinality.deactivate()


def smaller_cardinality(m: Any) -> None:
    m.select.cardinality.set_value(sum(m.select.sigma.values()) <= 2.5)


def exact_cardinality(m: Any) -> None:
    m.select.cardinality.set_value(sum(m.select.sigma.values()) == 2)


def mutable_parameter(m: Any) -> None:
    m.select.limit = pyo.Param(initialize=5.0, mutable=True)
    m.select.row = pyo.Constraint(expr=2 * m.select.sigma["b"] + m.select.sigma["c"] <= m.select.limit)
    m.select.limit = 2.0


def own_row_dropped(m: Any) -> None:
    m.select.rows["budget"].deactivate()


def own_row_changed(m: Any) -> None:
    m.select.rows["budget"].set_value(m.select.sigma["b"] == 0)


def idle_rows(m: Any) -> None:
    m.select.idle = pyo.Constraint(expr=0 * m.select.sigma["b"] <= 1)
    m.select.lacks = pyo.Param(initialize=3)


def impossible_row(m: Any) -> None:
    m.select.zero = pyo.Param(initialize=0.0, mutable=True)
    m.select.impossible = pyo.Constraint(expr=m.select.zero * m.select.sigma["b"] >= 1)


def piecewise(m: Any) -> None:
    m.select.cost = pyo.Var(bounds=(0, 1.2))
    m.select.total = pyo.Var(bounds=(0, 5))
    m.select.sum = pyo.Constraint(expr=m.select.total == sum(m.select.sigma.values()))
    points, values = [0, 1, 2, 3, 4, 5], [0.5, 1.0, 2.0, 1.1, 1.0, 3.0]
    m.select.pw = pyo.Piecewise(
        m.select.cost, m.select.total, pw_pts=points, f_rule=values, pw_constr_type="EQ", pw_repn="INC"
    )


EDITS = (
    ranged,
    indexed,
    constraint_list,
    sub_block,
    integer_extra,
    continuous_extra,
    fixed_extra,
    fixings,
    product_made_linear_by_fixing,
    without_cardinality,
    smaller_cardinality,
    exact_cardinality,
    mutable_parameter,
    own_row_dropped,
    own_row_changed,
    idle_rows,
    impossible_row,
    piecewise,
)


def allowed_by_pyomo(model: Any) -> set[tuple[int, ...]]:
    """Every selection for which HiGHS, through Pyomo's own writer, finds values of the other variables."""
    clone = model.clone()
    clone.svm.deactivate()
    clone.objective.deactivate()
    clone.nothing = pyo.Objective(expr=0.0)
    solver, sigma = Highs(), list(clone.select.sigma.values())
    wanted = [(s.value if s.fixed else None, *s.bounds) for s in sigma]
    allowed = set()
    for values in itertools.product((0, 1), repeat=len(sigma)):
        if any(not lb <= v <= ub for v, (_, lb, ub) in zip(values, wanted, strict=True)):
            continue
        if any(fixed is not None and round(fixed) != v for v, (fixed, *_) in zip(values, wanted, strict=True)):
            continue
        for s, v in zip(sigma, values, strict=True):
            s.fix(v)
        answer = solver.solve(clone, load_solutions=False, raise_exception_on_nonoptimal_result=False)
        if answer.solution_status.name == "optimal":
            allowed.add(values)
    return allowed


@pytest.mark.sampled(11)
@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: edit.__name__)
def test_every_selection(edit: Callable[[Any], None]) -> None:
    model = make(rows=OWN_ROWS)
    edit(model)
    selection = compile_model(model).selection
    found = {v for v in itertools.product((0, 1), repeat=5) if selection.contains(np.array(v, dtype=bool))}
    assert found == allowed_by_pyomo(model)


def test_what_the_data_says_comes_back_unchanged() -> None:
    select = SelectDefaults(forced_in=("b",), forced_out=("c",))
    model = make(M=3, rows=OWN_ROWS, select=select)
    before, after = problem_of(model), compile_model(model)
    assert (after.rows.names, after.rows.origins) == (before.rows.names, before.rows.origins)
    assert np.array_equal(after.rows.matrix.toarray(), before.rows.matrix.toarray())
    assert np.array_equal(after.rows.lb, before.rows.lb)
    assert np.array_equal(after.rows.ub, before.rows.ub)
    assert (after.M, after.forced_in, after.forced_out) == (3, ("b",), ("c",))
    assert model.select.sigma["b"].value == 1
    model.select.sigma["b"].unfix()
    assert compile_model(model).forced_in == ()


def test_the_attached_problem_stays_as_it_was() -> None:
    model = make(rows=OWN_ROWS)
    problem = problem_of(model)
    constraint_list(model)
    without_cardinality(model)
    assert problem_of(model) is problem
    assert (problem.M, len(problem.rows)) == (4, 2)
    compiled = compile_model(model)
    assert compiled.M is None
    assert compiled.rows.names == ("budget", "one of two", "more[1]", "more[2]")
    assert compiled.rows.origins == ("data.toml", "data.toml", "model.select", "model.select")


def test_extra_variables_keep_their_bounds_and_kinds() -> None:
    model = make()
    s = model.select.sigma
    model.select.b = pyo.Var(domain=pyo.Binary)  # the name of a feature
    model.select.u = pyo.Var([1], domain=pyo.Integers, bounds=(-2, None))
    model.select.v = pyo.Var()
    model.select.idle = pyo.Var(bounds=(0, 1))
    model.select.row = pyo.Constraint(expr=s["b"] + 2 * model.select.b - model.select.u[1] + 0.5 * model.select.v <= 1)
    extra = compile_model(model).rows.extra
    values = dict(zip(extra.names, zip(extra.lb, extra.ub, extra.integer, strict=True), strict=True))
    assert values == {
        "select.b": (0.0, 1.0, True),
        "u[1]": (-2.0, np.inf, True),
        "v": (-np.inf, np.inf, False),
    }


@pytest.mark.parametrize(("M", "expected"), [(3, 3), (5, 5), (9, 5), (2.7, 2), (0, 0)])
def test_a_changed_cardinality_is_still_M(M: float, expected: int) -> None:
    model = make()
    model.select.cardinality.set_value(sum(model.select.sigma.values()) <= M)
    problem = compile_model(model)
    assert (problem.M, len(problem.rows)) == (expected, 0)


def test_fixed_features_keep_their_part_in_a_row() -> None:
    model = make(rows=(Row("pair", {"b": 1.0, "c": 1.0}, -np.inf, 1.0),))
    for name in ("b", "c"):
        model.select.sigma[name].fix(1)
    selection = compile_model(model).selection
    assert set(selection.conflict()) == {"pair", "forced_in[b]", "forced_in[c]"}


def test_conflicting_bounds_are_named() -> None:
    model = make()
    model.select.sigma["b"].setlb(1)
    model.select.sigma["b"].setub(0)
    model.select.u = pyo.Var(bounds=(2, 1))
    model.select.row = pyo.Constraint(expr=model.select.u >= model.select.sigma["c"])
    selection = compile_model(model).selection
    assert selection.conflict() in (("bounds of sigma[b]",), ("bounds of u",))


def test_an_impossible_row_is_the_conflict() -> None:
    model = make(rows=OWN_ROWS)
    impossible_row(model)
    assert compile_model(model).selection.conflict() == ("impossible",)


def nonlinear(m: Any) -> str:
    m.select.bad = pyo.Constraint(expr=m.select.sigma["b"] * m.select.sigma["c"] <= 0)
    return r"select\.bad is not linear"


def uses_w(m: Any) -> str:
    m.select.bad = pyo.Constraint(expr=m.svm.w["b"] <= m.select.sigma["c"])
    return r"select\.bad uses svm\.w\[b\]"


def fixed_between(m: Any) -> str:
    m.select.sigma["mean area"].fix(0.5, skip_validation=True)
    return r"select\.sigma\[mean area\] is fixed at 0\.5"


def fixed_at_two(m: Any) -> str:
    m.select.sigma["b"].fix(2, skip_validation=True)
    return r"select\.sigma\[b\] is fixed at 2"


def fixed_at_nothing(m: Any) -> str:
    m.select.sigma["b"].fixed = True
    return r"select\.sigma\[b\] is fixed at None"


def relaxed_sigma(m: Any) -> str:
    m.select.sigma["b"].domain = pyo.UnitInterval
    return r"select\.sigma\[b\] is no longer binary"


def objective_inside(m: Any) -> str:
    m.select.cost = pyo.Objective(expr=m.select.sigma["b"])
    return "one active objective, and has objective and select.cost"


def special_ordered_set(m: Any) -> str:
    m.select.sos = pyo.SOSConstraint(var=m.select.sigma, sos=1)
    return r"select\.sos \(SOSConstraint\)"


def disjunction(m: Any) -> str:
    m.select.either = Disjunction(expr=[m.select.sigma["b"] >= 1, m.select.sigma["c"] >= 1])
    return r"select\.either \(Disjunction\)"


def complementarity(m: Any) -> str:
    m.select.comp = Complementarity(expr=complements(m.select.sigma["b"] >= 0, m.select.sigma["c"] >= 0))
    return r"select\.comp \(Complementarity\)"


def logical(m: Any) -> str:
    m.select.flag = pyo.BooleanVar()
    m.select.logic = pyo.LogicalConstraint(expr=m.select.flag)
    return r"select\.flag \(BooleanVar\)"


def piecewise_sos(m: Any) -> str:
    m.select.y, m.select.x = pyo.Var(), pyo.Var(bounds=(0, 2))
    m.select.pw = pyo.Piecewise(
        m.select.y, m.select.x, pw_pts=[0, 1, 2], f_rule=[0, 3, 1], pw_constr_type="EQ", pw_repn="SOS2"
    )
    return r"select\.pw.* \(SOSConstraint\)"


def odd_domain(m: Any) -> str:
    m.select.u = pyo.Var(domain=pyo.Set(initialize=[0, 2, 7]))
    m.select.bad = pyo.Constraint(expr=m.select.u == m.select.sigma["b"])
    return r"select\.u has the domain"


def missing_value(m: Any) -> str:
    m.select.limit = pyo.Param(mutable=True, initialize=None)
    m.select.bad = pyo.Constraint(expr=m.select.sigma["b"] <= m.select.limit)
    return r"select\.bad cannot be evaluated"


def not_a_number(m: Any) -> str:
    m.select.factor = pyo.Param(mutable=True, initialize=float("nan"))
    m.select.bad = pyo.Constraint(expr=m.select.factor * m.select.sigma["b"] <= 1)
    return r"select\.bad"


def another_model(m: Any) -> str:
    other = pyo.ConcreteModel("other")
    other.z = pyo.Var()
    m.select.bad = pyo.Constraint(expr=other.z <= m.select.sigma["b"])
    m._keep_alive = [other]
    return r"select\.bad uses z"


def relation_assigned(m: Any) -> str:
    m.select.bad = m.select.sigma["b"] <= 0
    return r"select\.bad is an expression, which adds nothing"


def relations_in_a_list(m: Any) -> str:
    m.rules = [m.select.sigma["b"] == 1]
    return r"^rules is an expression, which adds nothing to a model; write pyo\.Constraint"


REFUSED = (
    relation_assigned,
    relations_in_a_list,
    nonlinear,
    uses_w,
    fixed_between,
    fixed_at_two,
    fixed_at_nothing,
    relaxed_sigma,
    objective_inside,
    special_ordered_set,
    disjunction,
    complementarity,
    logical,
    piecewise_sos,
    odd_domain,
    missing_value,
    not_a_number,
    another_model,
)


@pytest.mark.parametrize("edit", REFUSED, ids=lambda edit: edit.__name__)
def test_what_cannot_be_honoured_is_named(edit: Callable[[Any], str]) -> None:
    model = make()
    message = edit(model)
    with pytest.raises(RowError, match=message) as raised:
        compile_model(model)
    assert "\n" not in str(raised.value)


def test_refused_rows_count_only_while_they_are_active() -> None:
    model = make()
    for edit in (nonlinear, special_ordered_set, objective_inside):
        edit(model)
    for name in ("bad", "sos", "cost"):
        model.select.component(name).deactivate()
    assert len(compile_model(model).rows) == 0


def test_a_model_of_someone_else() -> None:
    with pytest.raises(UsageError, match="built by mipfs"):
        compile_model(pyo.ConcreteModel())


@pytest.mark.parametrize(("value", "low", "high"), [(1, 0, 0), (1, 0, 0.5), (0, 1, 1), (0, 0.5, 1), (1, None, 0)])
def test_sigma_that_is_fixed_beyond_its_bounds(value: int, low: float | None, high: float | None) -> None:
    """The model as it stands has no point: each of the two would be honoured alone."""
    model = make()
    sigma = model.select.sigma["b"]
    sigma.fix(value)
    sigma.setlb(low)
    sigma.setub(high)
    for driver in ("branch", "kelley", None):
        with pytest.raises(
            RowError, match=r"select.sigma\[b\] is fixed at [01], beyond its bounds .* inconsistent"
        ) as raised:
            mipfs.solve(model, driver)
        assert "\n" not in str(raised.value)
    sigma.setlb(0)
    sigma.setub(1)
    assert compile_model(model).forced_in == (("b",) if value else ())
