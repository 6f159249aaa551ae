"""Whatever HiGHS answers to a call is looked at: what it did not do is an error, never an answer."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import highspy
import numpy as np
import pytest

import mipfs
from mipfs import Problem, models
from mipfs.errors import MipfsError, NumericalError
from mipfs.lab.baselines.l1_bundle import L1Bundle
from mipfs.lab.baselines.onsvm import onsvm
from mipfs.selection import selection
from mipfs.solvers import highs
from tests.other_users.ours import budgeted, data

ERROR = highspy.HighsStatus.kError


def box() -> highs.HighsModel:
    """min x + 2y, x + y ≥ 1, both in [0, 1]."""
    model = highs.HighsModel()
    model.add_columns(np.zeros(2), np.ones(2))
    model.set_costs(np.array([1.0, 2.0]))
    model.add_row(1.0, highs.highs_infinity(), np.arange(2), np.ones(2))
    return model


CALLS: dict[str, Callable[[highs.HighsModel], object]] = {
    "addVars": lambda model: model.add_columns(np.zeros(1), np.ones(1)),
    "addCol": lambda model: model.add_column(0.0, 0.0, 1.0, [0], [1.0]),
    "addRow": lambda model: model.add_cut(0.0, np.arange(2), np.ones(2)),
    "addRows": lambda model: model.add_rows(np.zeros(0), np.zeros(0), highs_matrix()),
    "changeColsBounds": lambda model: model.fix_columns(np.zeros(2), np.zeros(2)),
    "changeColsCost": lambda model: model.set_costs(np.zeros(2)),
    "changeColsIntegrality": lambda model: model.make_whole(np.arange(2)),
    "changeRowsBounds": lambda model: model.set_row_bounds(np.zeros(1), np.ones(1), 0),
    "deleteRows": lambda model: model.delete_rows(np.arange(1)),
    "clearSolver": lambda model: model.start_cold(),
}


def highs_matrix() -> Any:
    from scipy import sparse

    return sparse.csr_array((0, 2))


@pytest.mark.parametrize("status", [ERROR, highspy.HighsStatus.kWarning])
@pytest.mark.parametrize("name", CALLS)
def test_a_call_that_is_refused_is_an_error(name: str, status: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model = box()
    CALLS[name](model)
    monkeypatch.setattr(highspy.Highs, name, lambda *_: status)
    with pytest.raises(NumericalError, match="HiGHS does not take over"):
        CALLS[name](model)


def test_an_option_that_is_refused_is_our_own_mistake() -> None:
    for name, value in (("no_such_option", 1), ("threads", -3)):
        with pytest.raises(MipfsError, match=f"no option {name}") as caught:
            box().set_option(name, value)
        assert not isinstance(caught.value, NumericalError)


@pytest.mark.parametrize("failures", [1, 2, 3, 4])
def test_what_fails_is_tried_again_in_safer_ways(failures: int, monkeypatch: pytest.MonkeyPatch) -> None:
    model, run, left = box(), highspy.Highs.run, failures
    before = [model._h.getOptionValue(name)[1] for name in ("presolve", "simplex_strategy")]

    def failing(h: highspy.Highs) -> highspy.HighsStatus:
        nonlocal left
        left -= 1
        return ERROR if left >= 0 else run(h)

    monkeypatch.setattr(highspy.Highs, "run", failing)
    solution = highs.solve(model)
    assert (solution.status, solution.bound) == (("optimal", 1.0) if failures < 4 else ("failed", -math.inf))
    assert [model._h.getOptionValue(name)[1] for name in ("presolve", "simplex_strategy")] == before


def test_an_old_optimum_is_not_the_answer_of_a_solve_that_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    model = box()
    assert highs.solve(model).status == "optimal"
    monkeypatch.setattr(highspy.Highs, "run", lambda _: ERROR)
    monkeypatch.setattr(highspy.Highs, "clearSolver", lambda _: highspy.HighsStatus.kOk)  # it stays in HiGHS
    assert highs.solve(model).status == "failed"


def test_multipliers_that_there_are_not() -> None:
    with pytest.raises(NumericalError, match="no multipliers"):
        box().multipliers()


def test_entries_that_highs_would_leave_out_with_a_warning() -> None:
    model = box()
    with pytest.raises(NumericalError, match="a row"):
        model.add_row(0.0, 1.0, np.arange(2), np.array([1.0, 1e-13]))
    model = box()
    model.add_cut(0.5, np.arange(2), np.array([1e-13, 1.0]))
    assert highs.solve(model).values == pytest.approx([0.5, 0.5])


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """HiGHS refuses to solve, as it does on a thread whose scheduler has another number of threads."""
    with monkeypatch.context() as patched:
        patched.setattr(highspy.Highs, "run", lambda _: ERROR)
        yield


@pytest.mark.usefixtures("broken")
@pytest.mark.parametrize("driver", ["branch", "gbd", "kelley", "conic"])
def test_a_run_without_highs_claims_nothing_that_is_not_so(driver: str) -> None:
    result = mipfs.solve(budgeted(), driver)
    assert result.status.name in ("NUMERICAL", "FEASIBLE", "OPTIMAL", "NO_SOLUTION")
    assert result.bound <= 5.8136479
    assert result.objective >= 5.8136478
    assert result.relaxed is None or result.relaxed["lower"] <= 4.8935263
    if driver == "kelley":
        assert result.status.name == "NUMERICAL", "the cutting planes in μ are no relaxation without their master"


@pytest.mark.slow
@pytest.mark.usefixtures("broken")
def test_what_rests_on_highs_alone_is_a_named_error() -> None:
    with pytest.raises(NumericalError, match="HiGHS finds no optimum"):
        L1Bundle(data(3, n=40), "f1").solve(20.0)
    with pytest.raises(NumericalError, match="HiGHS finds no optimum"):
        onsvm(data(3, n=40), 1.0)
    assert mipfs.solve(models.onsvm(data(3, n=40), C=1.0)).stop_reason.name == "NUMERICAL"
    ladder = mipfs.compare(Problem(data(0), M=2, C=1.0).with_rows(np.ones((1, 6)), 1, 2))
    assert ladder["boolean"].status == ladder["convex-hull"].status == "numerical"
    assert all(rung.value <= ladder.incumbent * (1 + 1e-9) for rung in ladder.ladder)


def test_a_conflict_without_a_hitting_set_is_irreducible_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    S = Problem(data(0), M=2).with_rows(np.eye(3, 6), 1.0, 1.0).selection
    assert len(S.conflict()) == 4
    monkeypatch.setattr(selection, "_hitting_set", lambda *_: None)
    assert len(S.conflict()) == 4


def test_there_is_one_door_to_highs_and_no_thread_of_numba() -> None:
    named = re.compile(r"(?:import|from) highspy|scipy\.optimize.*\b(?:milp|linprog)|parallel=True|prange")
    home = Path(mipfs.__file__).parent
    found = [path.relative_to(home) for path in home.rglob("*.py") if named.search(path.read_text(encoding="utf-8"))]
    assert found == [Path("solvers", "highs.py")]
