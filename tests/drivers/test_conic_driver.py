"""The driver `conic`: earned bounds, incumbents, limits, and what a `Formulation` of a user's own yields."""

from __future__ import annotations

import itertools
import json
from functools import partial
from typing import Any

import cvxpy
import numpy as np
import pytest

import mipfs
from mipfs.data.instance import Instance, Row
from mipfs.drivers import conic
from mipfs.errors import UsageError
from mipfs.formulation import Formulation, load, program
from mipfs.models import nmmkl, reduced_mkl
from mipfs.problem import Problem
from mipfs.result.result import Status, StopReason
from mipfs.settings import ConicSettings
from mipfs.solvers import cones
from tests.references import relaxation_reference

cp: Any = cvxpy
NAMES = tuple(f"x{j + 1}" for j in range(6))
ROWS = (Row("budget", dict(zip(NAMES, (3.0, 2.0, 1.0, 2.0, 4.0, 2.0), strict=True)), -np.inf, 5.0),)
BUDGETED = (("hinge", True, ROWS), ("logistic", False, ROWS))
"""The hull of a row takes seconds: the other losses under one are slow."""
RELAXATIONS = ("boolean", "fgm", "nmmkl", "decomposed-sdp", "big-m", "qcqp-ssvm", "sdp-ssvm", "plain-svm")


def make(seed: int = 0, rows: tuple[Row, ...] = (), **parameters: Any) -> Problem:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(25, 6)) + 0.5
    y = np.where(X[:, 0] + X[:, 1] + 0.7 * rng.normal(size=25) > 1.0, 1.0, -1.0)
    return Problem(Instance.from_arrays(X, y, rows=rows), **{"M": 3, "C": 2.0, **parameters})


def solve(problem: Problem, name: str = "boolean", **options: Any) -> mipfs.Result:
    return mipfs.solve(problem, driver="conic", declare=load(name).declare, **options)


@pytest.mark.sampled(13)
@pytest.mark.parametrize(
    ("loss", "bias", "rows"),
    [
        pytest.param(*case, marks=[] if not case[2] or case in BUDGETED else pytest.mark.slow)
        for case in itertools.product(("hinge", "squared-hinge", "logistic"), (True, False), ((), ROWS))
    ],
)
def test_every_bound_lies_below_the_optimum_and_is_tight_for_its_program(
    loss: str, bias: bool, rows: tuple[Row, ...]
) -> None:
    problem = make(1, rows, loss=loss, bias=bias, lam=0.05 if rows else 0.0)
    best = mipfs.solve(problem, gap=1e-7)
    for name in RELAXATIONS:
        result = solve(problem, name)
        # The value of a program that is weaker than (P) at its own σ is the solver's word: nothing proves it solved.
        done = (result.status, result.stop_reason) == (Status.FEASIBLE, StopReason.COMPLETED)
        assert done or result.status in (Status.RELAXED, Status.OPTIMAL)
        assert done <= (name not in ("boolean", "fgm"))
        assert result.bound <= best.objective * (1 + 1e-12)
        assert result.objective >= best.bound
        assert problem.selection.contains(np.isin(NAMES, result.selected))
        assert result.relaxed is not None
        assert result.relaxed["lower"] <= result.relaxed["upper"] + 1e-12
        assert result.relaxed["lower"] == pytest.approx(result.relaxed["upper"], rel=1e-7)
        assert result.relaxed["lower"] <= result.bound + 1e-12
        weights = np.array([result.weights.get(chosen, 0.0) for chosen in result.selected])
        ids = problem.data.columns_of(result.selected)
        assert problem.evaluate(ids, weights, result.intercept) == pytest.approx(result.objective, rel=1e-9)
    boolean, fgm = solve(problem), solve(problem, "fgm")
    assert boolean.bound == pytest.approx(relaxation_reference(problem).value, rel=1e-8)
    assert sum(boolean.relaxed["sigma"].values()) <= 3 + 1e-6  # type: ignore[index]
    hull = mipfs.solve(problem, "kelley", gap=1e-8)
    assert fgm.bound == pytest.approx(hull.bound, rel=1e-6), "FGM's relaxation is over the hull of S"
    assert fgm.bound >= boolean.bound * (1 - 1e-9)


def test_a_wrong_dual_vector_of_the_solver_costs_strength_but_not_validity(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = make(2)
    best = mipfs.solve(problem, gap=1e-7).objective
    rng = np.random.default_rng(0)
    honest = conic.dual_vector

    def noisy(declared: Formulation) -> Any:
        alpha = declared.variables["alpha"]
        rows = Formulation(declared.problem, declared.cvxpy, None, {"alpha": _Value(alpha.value + rng.normal(size=25))})
        return honest(rows)

    monkeypatch.setattr(conic, "dual_vector", noisy)
    for name in RELAXATIONS:
        result = solve(problem, name)
        assert result.bound <= best
        assert result.relaxed is not None
        assert result.relaxed["lower"] <= best


class _Value:
    def __init__(self, value: Any) -> None:
        self.value = value


def test_a_baseline_has_no_value_but_an_incumbent_and_an_earned_bound() -> None:
    problem = make(3)
    best = mipfs.solve(problem, gap=1e-7)
    result = solve(problem, "onsvm")
    assert result.relaxed is None
    assert result.status in (Status.FEASIBLE, Status.OPTIMAL)
    assert result.bound <= best.objective <= result.objective * (1 + 1e-9)
    assert np.isfinite(result.bound)


def test_a_restricted_problem_bounds_the_relaxation_from_above() -> None:
    problem = make(4, loss="squared-hinge", bias=False)
    pool = [[0, 1, 2], [3, 4, 5], [0, 1, 3]]
    result = mipfs.solve(problem, driver="conic", declare=partial(reduced_mkl.declare, pool=pool))
    relaxation = relaxation_reference(problem).value
    assert result.relaxed is not None
    assert result.relaxed["lower"] <= relaxation <= result.relaxed["upper"]
    assert set(result.relaxed["sigma"]) <= set(NAMES)


def test_a_users_own_program_earns_what_its_alpha_proves() -> None:
    problem = make(5, loss="squared-hinge")
    n, y, X = 25, problem.data.y, problem.data.X

    def declare(given: Problem) -> Formulation:
        w, b, xi = cp.Variable(6), cp.Variable(), cp.Variable(n)
        margin = cp.multiply(y, X @ w + b) + xi >= 1
        program = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(w) + 0.5 * cp.sum_squares(xi) * given.C), [margin])
        return Formulation(given, program, None, {"w": w, "alpha": mipfs.formulation.conic.Multiplier(margin)})

    result = mipfs.solve(problem, driver="conic", declare=declare)
    plain = solve(problem, "plain-svm")
    assert result.bound == pytest.approx(plain.bound, rel=1e-6)
    assert result.selected == plain.selected
    silent = mipfs.solve(problem, driver="conic", declare=lambda p: Formulation(p, declare(p).cvxpy, None, {}))
    assert silent.relaxed is not None
    assert silent.relaxed["lower"] == -np.inf
    assert np.isfinite(silent.bound), "the first incumbent's dual vector"
    json.loads(silent.to_json(), parse_constant=lambda name: pytest.fail(name))


def test_limits_leave_an_incumbent_and_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = make(6)
    best = mipfs.solve(problem, gap=1e-7)
    for options in ({"time_limit": 0.0}, {"iteration_limit": 0}):
        result = solve(problem, **options)
        assert result.stop_reason in (StopReason.TIME_LIMIT, StopReason.ITERATION_LIMIT)
        assert result.bound <= best.objective <= result.objective * (1 + 1e-9)
        assert np.isfinite(result.bound)
        assert result.relaxed is None
    stopped = solve(problem, callback=lambda _: True)
    assert stopped.stop_reason is StopReason.INTERRUPTED
    assert np.isfinite(stopped.objective)
    monkeypatch.setattr(cones.Canonical, "solve", lambda *_, **__: "failed")
    failed = solve(problem)
    assert (failed.status, failed.stop_reason, failed.relaxed) == (Status.FEASIBLE, StopReason.NUMERICAL, None)


def test_infeasible_rows_and_programs_that_are_too_large() -> None:
    never = make(0, (Row("no", {"x1": 1.0}, 2.0, np.inf),))
    result = solve(never)
    assert (result.status, result.conflict) == (Status.INFEASIBLE, ("no",))
    with pytest.raises(program.TooLargeError, match="too large for a conic solver"):
        solve(make(0), settings=ConicSettings(max_work=10.0))


def test_the_rho_form_is_reported_in_its_own_values() -> None:
    unit = make(7, loss="squared-hinge", bias=False)
    rho = unit.replace(margin="rho")
    one, other = solve(unit), solve(rho)
    assert one.relaxed is not None
    assert other.relaxed is not None
    assert other.bound == pytest.approx(-0.25 / one.bound, rel=1e-9)
    for end in ("upper", "lower"):
        assert other.relaxed[end] == pytest.approx(-0.25 / one.relaxed[end], rel=1e-9)


def test_groups_and_trees_by_enumeration() -> None:
    groups = pytest.importorskip("mipfs.atoms.groups")
    data = make(8).data
    parts = {"a": NAMES[:3], "b": NAMES[2:5], "c": NAMES[5:]}
    atoms = groups.Groups(data, parts)
    problem = Problem(data, loss="squared-hinge", M=1, C=2.0, atoms=atoms)
    value = relaxation_reference(problem).value
    singles = [relaxation_reference(problem.replace(forced_in=(name,))).value for name in parts]
    svms = [
        relaxation_reference(
            Problem(Instance.from_arrays(data.X[:, data.columns_of(ids)], data.y), loss="squared-hinge", C=2.0)
        ).value
        for ids in parts.values()
    ]
    assert singles == pytest.approx(svms, rel=1e-7)
    pool = [[0], [1], [2]]
    mkl = reduced_mkl.declare(problem, pool)
    assert cones.solve(mkl.cvxpy) == "solved"
    assert mkl.cvxpy.value == pytest.approx(value, rel=1e-7)
    assert value <= min(svms) * (1 + 1e-9)
    result = solve(problem)
    assert result.bound == pytest.approx(value, rel=1e-7)
    assert result.objective == pytest.approx(min(svms), rel=1e-3) or result.objective >= min(svms)
    with pytest.raises(UsageError, match="cannot carry groups"):
        nmmkl.declare(problem)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("says", ["unbounded", "failed"])
def test_a_users_own_program_that_was_evaluated_is_not_called_unbounded(
    says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = make(3)
    data, w, b, t = problem.data, cp.Variable(6), cp.Variable(), cp.Variable(6)
    xi, sigma = cp.Variable(25, nonneg=True), cp.Variable(6)
    rows = [cp.multiply(data.y, data.X @ w + b) + xi >= 1, sigma >= 0, sigma <= 1, cp.sum(sigma) <= 3]
    rows += [cp.quad_over_lin(w[j], sigma[j]) <= t[j] for j in range(6)]
    program = cp.Problem(cp.Minimize(0.5 * cp.sum(t) + problem.C * cp.sum(xi)), rows)
    made = Formulation(problem, program, sigma, {"w": w, "b": b})
    monkeypatch.setattr(cones.Canonical, "solve", lambda *_, **__: says)
    result = mipfs.solve(made, "conic")
    assert (result.status, result.stop_reason) == (Status.FEASIBLE, StopReason.NUMERICAL)
    assert result.bound <= mipfs.solve(problem).objective <= result.objective * (1 + 1e-9)
