"""Every status that HiGHS, Clarabel and SCIP have, errors and silence: an answer only where it is one."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import clarabel
import cvxpy
import highspy
import numpy as np
import pytest
from scipy import sparse

import mipfs
from mipfs import Problem
from mipfs.errors import MipfsError, NumericalError
from mipfs.inner.restricted import Cutting, SelectionPool
from mipfs.lab.baselines.r2w2 import r2w2
from mipfs.lab.sketch.guarantee import enclosing_ball
from mipfs.solvers import cones, highs, scip
from mipfs.solvers.vectors import in_simplex
from tests.other_users.ours import data
from tests.solvers.test_highs_statuses import box

cp: Any = cvxpy
Status = highspy.HighsModelStatus
SAID = {
    Status.kOptimal: "optimal",
    Status.kInfeasible: "infeasible",
    Status.kUnbounded: "unbounded",
    **dict.fromkeys((Status.kTimeLimit, Status.kIterationLimit, Status.kSolutionLimit, Status.kInterrupt), "stopped"),
}


def knapsack() -> highs.HighsModel:
    model = box()
    model.make_whole(np.arange(2))
    return model


@pytest.mark.parametrize("make", [box, knapsack], ids=["LP", "MILP"])
@pytest.mark.parametrize("status", [*Status.__members__.values(), None], ids=str)
def test_every_status_of_highs(status: Any, make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(highspy.Highs, "getModelStatus", lambda _: status)
    solution = highs.solve(make())
    assert solution.status == SAID.get(status, "failed")
    assert solution.status != "failed" or solution.values is None
    if solution.status not in ("optimal", "infeasible"):
        assert solution.bound <= 1.0


def raising(*_: Any) -> Any:
    raise RuntimeError("a solver that breaks")


def silent(*_: Any) -> Any:
    return None


@pytest.mark.parametrize("fault", [raising, silent])
@pytest.mark.parametrize("name", ["run", "getModelStatus", "getSolution"])
def test_errors_and_silence_of_highs(name: str, fault: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model = box()
    with monkeypatch.context() as patched:
        patched.setattr(highspy.Highs, name, fault)
        assert highs.solve(model).status == "failed"
    assert highs.solve(model).status == "optimal"


@pytest.mark.parametrize("fault", [raising, silent])
@pytest.mark.parametrize("name", ["addRow", "getSolution", "changeColsCost"])
def test_what_is_built_or_read_is_a_named_error(name: str, fault: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model = box()
    assert highs.solve(model).status == "optimal"
    monkeypatch.setattr(highspy.Highs, name, fault)
    with pytest.raises(NumericalError, match="HiGHS"):
        model.add_cut(0.0, np.arange(2), np.ones(2))
        model.set_costs(np.ones(2))
        model.multipliers()
    monkeypatch.setattr(highspy.Highs, "getDualRay", fault)
    assert model.ray() is None


@pytest.mark.parametrize("bound", [math.nan, math.inf, 5.0])
def test_a_bound_of_a_milp_above_its_own_solution_is_none(bound: float, monkeypatch: pytest.MonkeyPatch) -> None:
    info = highspy.Highs.getInfo

    def lying(h: highspy.Highs) -> Any:
        return SimpleNamespace(mip_dual_bound=bound, primal_solution_status=info(h).primal_solution_status)

    assert highs.solve(knapsack()).status == "optimal"
    monkeypatch.setattr(highspy.Highs, "getInfo", lying)
    assert highs.solve(knapsack()).status == "failed"


KINDS: dict[str, Any] = {"zero": 0, "nonneg": 2, "soc": [], "psd": [], "exp": 0}
ONE = sparse.csc_matrix(np.eye(2))
PROGRAM = ONE, np.array([-1.0, -1.0]), ONE, np.array([0.5, 2.0]), KINDS


class Liar:
    """Clarabel, with another status, for the first `lies` answers."""

    def __init__(self, status: str, lies: int) -> None:
        self.status, self.left, self.settings, self.honest = status, lies, list[Any](), cones._solve_by_clarabel

    def __call__(self, *given: Any) -> Any:
        self.left -= 1
        self.settings.append(given[5])
        return self.honest(*given) | ({"status": self.status} if self.left >= 0 else {})


@pytest.mark.parametrize(
    "status", [str(one) for one in vars(clarabel.SolverStatus).values() if "Solver" in repr(type(one))] + ["None"]
)
@pytest.mark.parametrize("lies", [1, 2])
def test_every_status_of_clarabel(status: str, lies: int, monkeypatch: pytest.MonkeyPatch) -> None:
    liar = Liar(status, lies)
    monkeypatch.setattr(cones, "_solve_by_clarabel", liar)
    found = cones.conic_solution(*PROGRAM)
    if status in ("Solved", "AlmostSolved"):
        assert liar.settings == [cones.TIGHT]
    else:
        assert liar.settings == [cones.TIGHT, cones.SAFER]
    if status in ("Solved", "AlmostSolved") or lies == 1:
        assert found is not None
        assert found[0] == pytest.approx([0.5, 1.0], abs=1e-6)
    else:
        assert found is None, "neither failed nor infeasible: nothing shows that"


@pytest.mark.parametrize("fault", [raising, silent])
@pytest.mark.parametrize("lies", [1, 2])
def test_errors_and_silence_of_clarabel(fault: Any, lies: int, monkeypatch: pytest.MonkeyPatch) -> None:
    honest, left = clarabel.DefaultSolver, lies

    def solver(*given: Any) -> Any:
        nonlocal left
        left -= 1
        return SimpleNamespace(solve=fault) if left >= 0 else honest(*given)

    monkeypatch.setattr(clarabel, "DefaultSolver", solver)
    if lies == 1:
        found = cones.conic_solution(*PROGRAM)
        assert found is not None
        assert found[0] == pytest.approx([0.5, 1.0], abs=1e-6)
    else:
        with pytest.raises(NumericalError, match="Clarabel fails"):
            cones.conic_solution(*PROGRAM)


def test_a_panic_of_clarabel_is_a_named_error() -> None:
    with pytest.raises(NumericalError, match="Clarabel fails"):
        cones.conic_solution(*PROGRAM[:3], np.zeros(1), KINDS)


@pytest.mark.parametrize("cone", ["linear", "second order"])
def test_infeasible_and_unbounded_are_believed_where_they_are_shown(cone: str) -> None:
    x = cp.Variable(2)
    outside = [x >= 1, cp.sum(x) <= 1] if cone == "linear" else [x >= 1, cp.norm(x) <= 1]
    assert cones.Canonical(cp.Problem(cp.Minimize(cp.sum_squares(x)), outside)).solve() == "infeasible"
    above = [x >= 0, x[0] == x[1]] if cone == "linear" else [cp.norm(x) <= x[0] + 1]
    assert cones.Canonical(cp.Problem(cp.Minimize(-x[0]), above)).solve() == "unbounded"


@pytest.mark.parametrize("lie", ["infeasible", "unbounded", "failed"])
def test_a_linear_program_that_highs_calls_without_solution(lie: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x = cp.Variable(2)
    program = cp.Problem(cp.Minimize(x[0] + 2 * x[1]), [x >= 0, cp.sum(x) >= 1])
    monkeypatch.setattr(highs, "solve", lambda *_, **__: highs.MilpSolution(lie, None, -np.inf))
    assert cones.Canonical(program).solve_linear() == ("failed" if lie == "failed" else "solved")
    if lie != "failed":
        assert program.value == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("lie", ["infeasible", "unbounded", "failed"])
def test_a_formulation_of_the_user_that_is_solved_by_highs(lie: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A word of infeasibility is no mistake of the user."""
    model = mipfs.models.onsvm(data(3, n=40), C=1.0)
    honest = mipfs.solve(model).objective
    monkeypatch.setattr(highs.HighsModel, "run", lambda *_: lie)
    monkeypatch.setattr("mipfs.drivers.conic._is_the_users_own", lambda _: True)
    result = mipfs.solve(model)
    assert result.bound <= honest * (1 + 1e-6)
    assert (result.stop_reason.name == "NUMERICAL") == (lie == "failed")


@pytest.mark.parametrize("weights", [[0.0, 0.0], [-1.0, -2.0], [np.nan, 1.0], [np.inf, 1.0], [5.0, 5.0]])
def test_weights_that_sum_to_nothing_divide_nothing(weights: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    told = np.array(weights)
    assert in_simplex(told) is None
    assert in_simplex(np.array([0.3, 0.7 + 1e-9, -1e-12])) == pytest.approx([0.3, 0.7, 0.0])
    lying = lambda P, q, A, b, kinds: (np.resize(told, q.size), np.zeros(b.size))  # noqa: E731
    monkeypatch.setattr("mipfs.lab.sketch.guarantee.conic_solution", lying)
    X = data(0).X
    R2 = enclosing_ball(X)
    assert 0.0 <= R2.low <= float(np.square(X - X.mean(axis=0)).sum(axis=1).max()) * (1 + 1e-9)
    assert R2.high >= np.square(X[:, None] - X[None]).sum(axis=2).max() / 4.0
    monkeypatch.setattr("mipfs.lab.baselines.r2w2.conic_solution", lying)
    with pytest.raises(NumericalError, match="smallest ball"):
        r2w2(data(0), 2)
    problem = Problem(data(0), M=2)
    monkeypatch.setattr(
        "mipfs.inner.restricted.highs.solve",
        lambda *_, **__: highs.MilpSolution("optimal", np.resize(told, 3), -np.inf),
    )
    monkeypatch.setattr(highs.HighsModel, "multipliers", lambda _: np.zeros(2))
    pool = SelectionPool()
    pool.add(np.array([0, 1]), np.ones(2))
    pool.add(np.array([2]), np.ones(1))
    with pytest.raises(NumericalError, match="sum to 1"):
        Cutting(problem).solve(pool, 1e-9, bool)


def test_a_lying_milp_ends_its_loop_and_claims_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = Problem(data(0), M=2, C=1.0)
    honest = mipfs.solve(problem, "gbd", master="milp", gap=1e-6)
    true = highs.HighsModel.solution

    def lying(model: highs.HighsModel, status: str) -> highs.MilpSolution:
        found = true(model, status)
        return highs.MilpSolution(found.status, found.values, 1e9) if model._is_mip else found

    monkeypatch.setattr(highs.HighsModel, "solution", lying)
    result = mipfs.solve(problem, "gbd", master="milp", gap=1e-6)
    assert (result.status.name, result.selected) == ("OPTIMAL", honest.selected)
    assert result.counters["milps"] == honest.counters["milps"], "the bound is RMP's own value at most"
    assert result.bound <= honest.objective * (1 + 1e-9)


REPORTS = {
    "no JSON": b"SCIP says hello\n",
    "a number": b"3\n",
    "no bound": b'{"selected": [0]}\n',
    "text": b'{"selected": ["a"], "bound": "high", "nodes": 1, "status": null}\n',
    "an infinity of nodes": b'{"selected": null, "bound": null, "nodes": Infinity, "status": null}\n',
    "an error": b'{"error": "out of memory"}\n',
}


@pytest.mark.parametrize("line", REPORTS.values(), ids=REPORTS)
def test_what_is_no_report_of_scip(line: bytes) -> None:
    import queue

    process = scip.ScipProcess.__new__(scip.ScipProcess)
    process._lines = queue.Queue()
    process._lines.put(line)
    with pytest.raises(MipfsError, match="SCIP"):
        process.receive(1.0)


@pytest.mark.parametrize("status", [*scip.NO_POINT, "unknown", "timelimit", "optimal"])
@pytest.mark.parametrize("selected", [(0, 1), (0, 99), (-1,), None])
def test_every_end_of_scip(status: str, selected: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    said = scip.ScipReport(selected, -math.inf, 1, status)
    monkeypatch.setattr(scip.ScipProcess, "__init__", lambda *_, **__: None)
    monkeypatch.setattr(scip.ScipProcess, "close", lambda _: None)
    monkeypatch.setattr(scip.ScipProcess, "receive", lambda self, timeout: said)
    result = mipfs.solve(Problem(data(0), M=2), "monolithic")
    assert result.stop_reason.name == "NUMERICAL"
    is_wrong = status in scip.NO_POINT or selected in ((0, 99), (-1,))
    assert result.status.name == ("NUMERICAL" if is_wrong else "FEASIBLE")
    assert result.has_classifier
