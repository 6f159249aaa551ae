"""Rows that are added to a declared program bind in it: its value by CVXPY is that of a program written here."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import cvxpy
import numpy as np
import pytest

import mipfs
from mipfs import models
from mipfs.data.instance import Instance
from mipfs.errors import RowError, UsageError
from mipfs.formulation import Formulation
from mipfs.models import structural_dual
from tests import structural_oracles
from tests.oracles import svm_value

cp: Any = cvxpy
N, P, M = 20, 5, 3
POOL = [[0, 1], [2, 3], [0, 4], [1, 2, 3], [1, 4], [3], []]
Row = Callable[[Any], list[Any]]


@lru_cache
def data(n: int = N) -> Instance:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(n, P)) + 0.3
    y = np.where(X[:, 0] + 0.8 * X[:, 1] - 0.6 * X[:, 4] + 0.6 * rng.normal(size=n) > 0.3, 1.0, -1.0)
    return Instance.from_arrays(X, y, scale="standard")


def one_rule_or_another(sigma: Any) -> list[Any]:
    pick = cp.Variable(boolean=True, name="pick")
    return [sigma[0] <= pick, sigma[1] <= 1 - pick]


ROWS: dict[str, Row] = {
    "half": lambda s: [s[0] + s[1] <= 0.5],
    "budget": lambda s: [np.array([3.0, 2, 1, 1, 2]) @ s <= 3.5],
    "conflict": lambda s: [s[0] + s[4] <= 1, s[0] + s[1] <= 1],
    "forced in": lambda s: [s[3] == 1],
    "forced out": lambda s: [s[0] == 0],
    "one rule or another": one_rule_or_another,
}


def members(row: Row, count: int = P) -> list[tuple[int, ...]]:
    """The selections that satisfy a row, its extra variables by trying 0 and 1."""
    found = []
    for chosen in itertools.product((0.0, 1.0), repeat=count):
        sigma = cp.Variable(count)
        rows = row(sigma)
        sigma.value = np.array(chosen)
        own = {v.id: v for one in rows for v in one.variables() if v.id != sigma.id}
        for values in itertools.product((0.0, 1.0), repeat=len(own)):
            for v, value in zip(own.values(), values, strict=True):
                v.value = value
            if all(np.all(one.violation() <= 1e-9) for one in rows):
                found.append(tuple(np.flatnonzero(chosen).tolist()))
                break
    return found


def over_the_box(row: Row, loss: str, bias: bool) -> float:
    X, y = data().X, data().y
    w, b, xi, t, sigma = cp.Variable(P), cp.Variable(), cp.Variable(N, nonneg=True), cp.Variable(P), cp.Variable(P)
    rows = [cp.multiply(y, X @ w + (b if bias else 0.0)) + xi >= 1, sigma >= 0, sigma <= 1, cp.sum(sigma) <= M]
    rows += [cp.quad_over_lin(w[j], sigma[j]) <= t[j] for j in range(P)] + _relaxed(row(sigma), sigma)
    slack = cp.sum(xi) if loss == "hinge" else 0.5 * cp.sum_squares(xi)
    return float(cp.Problem(cp.Minimize(0.5 * cp.sum(t) + slack), rows).solve(solver=cp.CLARABEL))


def _relaxed(rows: list[Any], sigma: Any) -> list[Any]:
    """Rows whose variables beside σ lie in [0, 1]."""
    known = {id(v): cp.Variable(bounds=[0, 1]) for one in rows for v in one.variables() if v.id != sigma.id}
    by_id = {v.id: known[id(v)] for one in rows for v in one.variables() if v.id != sigma.id}
    return [one.tree_copy({id(v): by_id[v.id] for v in one.variables() if v.id in by_id}) for one in rows]


def over_the_pool(pool: list[tuple[int, ...]]) -> float:
    """½ (Σ_t ‖w_t‖)² + ½ Σ ξ², Tan 2014 (31), over the selections of the pool that are allowed."""
    X, y = data().X, data().y
    parts = [(cp.Variable(len(chosen)), list(chosen)) for chosen in pool if chosen]
    xi = cp.Variable(N, nonneg=True)
    scores = sum((X[:, chosen] @ w for w, chosen in parts), np.zeros(N))
    size = 0.5 * cp.square(sum((cp.norm(w) for w, _ in parts), 0.0))
    goal = cp.Minimize(size + 0.5 * cp.sum_squares(xi))
    return float(cp.Problem(goal, [cp.multiply(y, scores) + xi >= 1]).solve(solver=cp.CLARABEL))


def solved(made: Formulation) -> float:
    return float(made.cvxpy.solve(solver=cp.CLARABEL))


def pool_under(row: Row) -> list[tuple[int, ...]]:
    allowed = members(row)
    return [chosen for chosen in map(tuple, POOL) if chosen in allowed]


BOX, OF_POOL = "over the box", "over its pool"
CASES: dict[str, tuple[Callable[[], Formulation], Callable[[Row], float], str]] = {
    "nmmkl": (lambda: models.nmmkl(data(), M=M), lambda row: over_the_box(row, "hinge", True), BOX),
    "fgm": (lambda: models.qcqp_relaxation(data(), M=M), lambda row: over_the_box(row, "squared", False), BOX),
    "boolean": (lambda: models.boolean_relaxation(data(), M=M), lambda row: over_the_box(row, "squared", False), BOX),
    "dual": (lambda: models.reduced_mkl(data(), pool=POOL, M=M), lambda row: over_the_pool(pool_under(row)), OF_POOL),
    "primal": (
        lambda: models.reduced_mkl(data(), pool=POOL, M=M, form="primal"),
        lambda row: over_the_pool(pool_under(row)),
        OF_POOL,
    ),
}


@pytest.mark.sampled(17)
@pytest.mark.parametrize("kind", ROWS)
@pytest.mark.parametrize("name", CASES)
def test_the_value_is_that_of_the_relaxation_that_repr_names(name: str, kind: str) -> None:
    build, value, words = CASES[name]
    row, made = ROWS[kind], build()
    assert words in repr(made)
    changed = made.with_constraints(row(made.sigma))
    assert words in repr(changed)
    if name in ("fgm", "boolean") and kind == "one rule or another":
        assert changed.cvxpy.is_mixed_integer()  # the user's whole variable stands in it
        return
    assert solved(changed) == pytest.approx(value(row), rel=1e-6)
    sigma = cp.Variable(P)
    sigma.value = np.asarray(changed.sigma.value)
    assert kind == "one rule or another" or all(np.all(one.violation() <= 1e-5) for one in row(sigma))
    relaxed = mipfs.solve(changed, "conic").relaxed
    assert relaxed is not None
    if name in ("nmmkl", "boolean"):  # and conic proves it
        assert relaxed["lower"] == pytest.approx(value(row), rel=1e-6)


@pytest.mark.sampled(7)
@pytest.mark.parametrize("form", ["dual", "primal"])
@pytest.mark.parametrize("kind", ["half", "conflict", "forced out"])
def test_the_structural_forms_are_over_the_hull_with_labellings_of_their_own(kind: str, form: Any) -> None:
    small, row = data(8), ROWS[kind]
    problem = structural_dual.problem(small, measure="f1", M=2, C=9.0, bias=False)
    losses, V = structural_oracles.labellings("f1", small.y)
    pool = [chosen for chosen in members(row) if len(chosen) <= 2]
    sigmas = np.array([[float(j in chosen) for j in range(P)] for chosen in pool])
    value = structural_oracles.relaxation(np.asarray(small.X), losses, V, 9.0, sigmas, np.zeros(P))
    made = structural_dual.declare(problem, form=form)
    changed = made.with_constraints(row(made.sigma))
    assert solved(changed) == pytest.approx(value, rel=2e-6)
    assert "over the hull" in repr(changed)
    assert mipfs.solve(changed, "two_layer", gap=1e-7).bound == pytest.approx(value, rel=2e-6)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", ["half", "forced out", "one rule or another"])
def test_fgm_with_rows_is_over_the_hull_and_stays_there(kind: str) -> None:
    row = ROWS[kind]
    allowed = [chosen for chosen in members(lambda s: [*ROWS["conflict"](s), *row(s)]) if len(chosen) <= M]
    problem = models.qcqp_relaxation.problem(data(), M=M).with_rows([[1.0, 0, 0, 0, 1], [1, 1, 0, 0, 0]], -np.inf, 1.0)
    made = models.qcqp_relaxation.declare(problem)
    changed = made.with_constraints(row(made.sigma))
    assert solved(changed) == pytest.approx(over_the_pool(allowed), rel=1e-6)
    assert "over the hull" in repr(changed)
    assert mipfs.solve(changed, "kelley", gap=1e-8).bound == pytest.approx(over_the_pool(allowed), rel=1e-6)


@pytest.mark.parametrize("kind", ["half", "forced out", "budget"])
def test_big_m_is_computed_under_the_rows(kind: str) -> None:
    """What was computed of the best selection without them cuts off the best one with them."""
    row = ROWS[kind]
    made = models.big_m(data(), M=M, C=5.0, binary=True)
    changed = made.with_constraints(row(made.sigma))
    X, y = data().X, data().y
    values = {S: svm_value(X[:, list(S)], y, np.full(N, 5.0), True).upper for S in members(row) if len(S) <= M}
    best = min(values, key=values.__getitem__)
    at = np.isin(np.arange(P), best).astype(float)
    known = {id(changed.sigma): (sigma := cp.Variable(P))}
    rows = [one.tree_copy(known) for one in changed.cvxpy.constraints]
    program = cp.Problem(changed.cvxpy.objective.tree_copy(known), [*rows, sigma == at])
    assert program.solve(solver=cp.CLARABEL) == pytest.approx(values[best], rel=1e-6)


def test_rows_of_several_calls_share_their_variables() -> None:
    made = models.reduced_mkl(data(), pool=POOL, M=M)
    pick = cp.Variable(boolean=True, name="pick")
    once = made.with_constraints([made.sigma[0] <= pick])
    twice = once.with_constraints([once.sigma[1] <= 1 - pick]).with_constraints([made.sigma["x4"] == 0])
    both = lambda s: [*one_rule_or_another(s), s[3] == 0]  # noqa: E731
    assert solved(twice) == pytest.approx(over_the_pool(pool_under(both)), rel=1e-6)
    result = mipfs.solve(twice, "branch")
    assert len(result.rows) == 3
    assert list(result.extra) == ["pick"]
    assert pick.value == result.extra["pick"]["value"]
    assert [float(one) for one in twice.sigma.value] == [
        float(name in result.selected) for name in data().feature_names
    ]


def test_a_row_that_was_put_beside_a_multiplier_is_refused() -> None:
    for made in (models.nmmkl(data(), M=M), models.reduced_mkl(data(), pool=POOL, M=M)):
        free = solved(made)
        beside = cp.Problem(made.cvxpy.objective, [*made.cvxpy.constraints, made.sigma[0] + made.sigma[1] <= 0.5])
        with pytest.raises(RowError, match=r"multiplier of this dual program.*with_constraints"):
            beside.solve(solver=cp.CLARABEL)
        assert solved(made) == pytest.approx(free, rel=1e-9)
        assert solved(made.with_constraints([made.sigma[0] + made.sigma[1] <= 0.5])) > free * (1 + 1e-6)


def test_no_selection_of_the_pool_is_allowed() -> None:
    made = models.reduced_mkl(data(), pool=[[0, 1], [0, 4]], M=M)
    with pytest.raises(UsageError, match="no selection of the pool satisfies the rows"):
        made.with_constraints([made.sigma[0] == 0])
    assert mipfs.solve(made.with_constraints([cp.sum(made.sigma) >= M + 1]), "branch").status.name == "INFEASIBLE"
