"""A driver's loop step by step: the same answer as at once, an honest one wherever it is left, and on from there."""

from __future__ import annotations

import copy
import importlib.util
import itertools
import json
import math
import pickle
import signal
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mipfs
from mipfs.atoms.made import Made
from mipfs.data.instance import Instance
from mipfs.errors import UsageError
from mipfs.problem import Problem
from mipfs.result.result import Record, Result, Status, StopReason
from mipfs.result.state import RunState

CASES: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "branch": ("branch", {}, {}),
    "branch, rows": ("branch", {"rows": True}, {}),
    "branch, conic nodes": ("branch", {"p": 7, "M": 2}, {"nodes": "conic"}),
    "branch, growing": ("branch", {}, {"active": ("x1", "x2")}),
    "branch, list": ("branch", {}, {"pool_size": 3}),
    "branch, structural": ("branch", {"loss": "structural", "measure": "f1", "bias": False, "p": 7}, {}),
    "gbd": ("gbd", {}, {}),
    "gbd, structural": ("gbd", {"loss": "structural", "measure": "error", "bias": False, "p": 7}, {}),
    "gbd, milp": ("gbd", {"p": 7}, {"master": "milp"}),
    "gbd, conic": ("gbd", {"p": 7, "M": 2}, {"subproblem": "conic"}),
    "kelley": ("kelley", {}, {}),
    "kelley, box": ("kelley", {"rows": True}, {"relaxation": "box"}),
    "kelley, conic": ("kelley", {"loss": "squared-hinge"}, {"restricted": "conic"}),
    "two_layer": ("two_layer", {"loss": "structural", "measure": "f1", "bias": False}, {}),
    "two_layer, rows": ("two_layer", {"loss": "structural", "measure": "prbep", "bias": False, "rows": True}, {}),
    "two_layer, conic": ("two_layer", {"loss": "structural", "measure": "error", "bias": False}, {"inner": "conic"}),
    "conic": ("conic", {}, {}),
    "monolithic": ("monolithic", {"p": 6, "M": 2}, {}),
}

LAYERS = ("two_layer", "two_layer, rows", "two_layer, conic")
EVERY = [pytest.param(case, marks=[pytest.mark.slow] if case == "monolithic" else []) for case in CASES]


def make(p: int = 12, seed: int = 0, rows: bool = False, M: int = 4, **more: Any) -> Problem:
    r = np.random.default_rng([5, seed])
    X = r.normal(size=(40, p)) * r.uniform(0.3, 2.0, p)
    data = Instance.from_arrays(X, np.where(X @ r.normal(size=p) + 2.0 * r.normal(size=40) > 0, 1, -1))
    problem = Problem(data, M=M, C=5.0, **more)
    return problem.with_rows(r.integers(0, 2, size=(2, p)).astype(float), -np.inf, [1.0, 2.0]) if rows else problem


def answered(result: Result, sans: tuple[str, ...] = ()) -> dict[str, Any]:
    """The JSON but for times."""
    document = {
        **json.loads(result.to_json()),
        "trace": [(one.iteration, one.objective, one.bound) for one in result.trace],
    }
    document["counters"] = {name: n for name, n in document["counters"].items() if not name.endswith("_ms")}
    return {name: value for name, value in document.items() if name not in ("seconds", *sans)}


@pytest.mark.sampled(19)
@pytest.mark.parametrize("case", EVERY)
def test_step_by_step_is_the_same_as_at_once(case: str) -> None:
    driver, kind, options = CASES[case]
    if driver == "monolithic":
        pytest.importorskip("pyscipopt")
    problem = make(**kind)
    seen: list[Record] = []
    whole = mipfs.solve(problem, driver, observers=[seen.append], **options)
    session = mipfs.start(problem, driver, **options)
    records = list(session)
    assert session.is_over
    assert not session.step()
    # SCIP reports when it likes
    by_the_clock = ("trace", "counters") if driver == "monolithic" else ()
    assert answered(session.result(), by_the_clock) == answered(whole, by_the_clock)
    assert session.result() is session.result()
    if driver != "monolithic":
        said = {(one.iteration, one.objective, one.bound) for one in seen}
        assert {(one.iteration, one.objective, one.bound) for one in records} <= said
    if driver not in ("conic", "monolithic"):
        assert len(records) > 1


@pytest.mark.sampled(59)
@pytest.mark.parametrize("steps", [0, 1, 3])
@pytest.mark.parametrize("case", EVERY)
def test_wherever_it_is_left_the_answer_is_earned(case: str, steps: int) -> None:
    driver, kind, options = CASES[case]
    if driver == "monolithic":
        pytest.importorskip("pyscipopt")
    problem = make(**kind, seed=1)
    least = mipfs.solve(problem, "branch" if problem.loss != "structural" else "gbd", gap=1e-8).objective
    with mipfs.start(problem, driver, gap=1e-9, **options) as session:
        for _ in range(steps):
            session.step()
        was_over, result = session.is_over, session.result()
    assert session.is_over
    assert result.bound <= least * (1 + 1e-9)
    assert least * (1 - 1e-7) <= result.objective < math.inf
    assert problem.selection.contains(np.isin(problem.atoms.names, result.selected))
    assert was_over or result.stop_reason in (StopReason.INTERRUPTED, StopReason.GAP_CLOSED, StopReason.COMPLETED)
    if driver != "monolithic":  # whose bound is SCIP's word
        report = mipfs.verify(result, problem.data)
        assert report.accepted, report.reason


@pytest.mark.parametrize("case", ["branch, rows", "gbd", "kelley", "two_layer", "two_layer, rows"])
@pytest.mark.parametrize("most", [0, 3, 20])
def test_stop_is_heard_inside_a_step(case: str, most: int) -> None:
    driver, kind, options = CASES[case]
    problem, asked, never = make(**kind, seed=1), itertools.count(), itertools.count(1)
    seen: list[Record] = []
    whole = mipfs.solve(problem, driver, gap=1e-9, stop=lambda: next(never) < 0, observers=[seen.append], **options)
    assert next(never) > 2 * len(seen) + 1, "it is asked between two records"
    result = mipfs.solve(problem, driver, gap=1e-9, stop=lambda: next(asked) >= most, **options)
    assert result.stop_reason is StopReason.INTERRUPTED
    assert result.bound <= whole.objective * (1 + 1e-9)
    assert result.objective >= whole.bound * (1 - 1e-9)
    assert result.status.name == ("FEASIBLE" if result.has_classifier else "NO_SOLUTION")
    assert mipfs.verify(result, problem.data).accepted or not result.has_classifier


@pytest.mark.sampled(11)
@pytest.mark.parametrize("case", ["branch", "branch, rows", "gbd", "gbd, milp", "kelley", "kelley, box", *LAYERS])
def test_another_session_goes_on_from_a_state(case: str, tmp_path: Path) -> None:
    driver, kind, options = CASES[case]
    problem = make(**kind, seed=2)
    whole = mipfs.solve(problem, driver, gap=1e-5, **options)
    state, bound = None, -math.inf
    for steps in (1, 2, 3, 4, 8, 16, 32, 64, 128, 256, 512):  # then the session is thrown away
        session = mipfs.start(problem, driver, gap=1e-5, resume=state, **options)
        for _ in range(steps):
            session.step()
        session.state.save(tmp_path / "state.npz")
        state = RunState.load(tmp_path / "state.npz")
        assert state.digest == session.state.digest
        assert session.record is not None
        bound = max(bound, session.record.bound)
        if session.is_over:
            break
    assert session.is_over
    result = session.result()
    assert result.status is whole.status
    if result.status is Status.OPTIMAL:  # what a relaxation is rounded to may differ
        assert result.objective == pytest.approx(whole.objective, rel=1e-5)
    assert result.bound == pytest.approx(whole.bound, rel=2e-5)
    assert result.bound >= bound * (1 - 1e-9)
    assert mipfs.verify(result, problem.data).accepted


def test_a_state_is_of_its_moment() -> None:
    problem = make(p=16, M=5, seed=3)
    session = mipfs.start(problem, "branch", gap=1e-8)
    session.step()
    early, digest = session.state, session.state.digest
    assert list(session), "there was more to do"
    assert early.digest == digest, "what goes on changes nothing in it"
    assert session.state.digest != digest
    assert session.result().state is not None
    again = mipfs.solve(problem, "branch", gap=1e-8, resume=early)
    assert again.objective == pytest.approx(session.result().objective, rel=1e-8)


@pytest.mark.slow
def test_the_clock_stands_still_in_a_pause() -> None:
    problem = make()
    for driver, options in (("branch", {}), ("kelley", {"restricted": "conic"})):
        session = mipfs.start(problem, driver, gap=1e-8, time_limit=30.0, **options)
        session.step()
        before = session._run.elapsed
        session._run._begin -= 29.0  # so much was used
        time.sleep(1.2)
        assert session._run.elapsed == pytest.approx(before + 29.0)
        assert session._run.stop() is not StopReason.TIME_LIMIT
        session._run._begin += 29.0
        assert session.finish().stop_reason is StopReason.GAP_CLOSED
        assert session.result().seconds < 29.0


def test_limits_callbacks_and_signals_end_it() -> None:
    problem = make(p=16, M=5, seed=3)
    session = mipfs.start(problem, "branch", gap=1e-9, iteration_limit=1)
    assert len(list(session)) <= 3
    assert session.result().stop_reason is StopReason.ITERATION_LIMIT
    session = mipfs.start(problem, "branch", gap=1e-9, callback=lambda record: True)
    assert len(list(session)) <= 2
    assert session.result().stop_reason is StopReason.INTERRUPTED
    session = mipfs.start(problem, "gbd", gap=1e-9, callback=lambda record: signal.raise_signal(signal.SIGINT))
    handler = signal.getsignal(signal.SIGINT)
    session.step()
    assert signal.getsignal(signal.SIGINT) is handler, "signals are the caller's between two steps"
    list(session)
    assert session.result().stop_reason is StopReason.INTERRUPTED


def test_what_ended_the_loop_is_said_again() -> None:
    def broken(record: Record) -> None:
        raise ZeroDivisionError("of the observer")

    session = mipfs.start(make(), "branch", observers=[broken])
    with pytest.raises(ZeroDivisionError):
        session.step()
    assert session.is_over
    session.close()
    with pytest.raises(ZeroDivisionError, match="of the observer"):
        session.result()


def test_infeasible_and_models(tmp_path: Path) -> None:
    problem = make().with_rows(np.ones((1, 12)), 6.0, 7.0)
    session = mipfs.start(problem, "gbd")
    assert not session.step()
    assert session.result().status is Status.INFEASIBLE
    from mipfs import models

    model = models.fsp_m(make().data, M=2, C=1.0)
    result = mipfs.start(model).finish()
    assert {name for name, one in model.select.sigma.items() if one.value > 0.5} == set(result.selected)


def test_a_session_is_live_and_its_state_is_not() -> None:
    session = mipfs.start(make(), "branch", start=["x1"])
    with pytest.raises(UsageError, match="from its first step on"):
        _ = session.state
    session.step()
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="keep its state"):
            copied(session)
    assert pickle.loads(pickle.dumps(session.state)).digest == session.state.digest
    pickle.dumps(session.result())
    for driver, kind, options in (
        CASES["gbd, structural"],
        CASES["conic"],
        CASES["branch, growing"],
    ):
        other = mipfs.start(make(**kind), driver, **options)
        other.step()
        with pytest.raises(UsageError, match="checkpoint and resume"):
            _ = other.state
        other.close()


@pytest.mark.slow
def test_sessions_side_by_side_and_in_threads() -> None:
    problems = [make(seed=seed) for seed in range(4)]
    wanted = [answered(mipfs.solve(problem, "branch", gap=1e-6)) for problem in problems]
    sessions = [mipfs.start(problem, "branch", gap=1e-6) for problem in problems]
    while any([session.step() for session in sessions]):
        pass
    assert [answered(session.result()) for session in sessions] == wanted
    found: dict[int, Any] = {}

    def work(k: int) -> None:
        found[k] = answered(mipfs.start(problems[k], "branch", gap=1e-6).finish())

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[k] for k in range(4)] == wanted


def test_columns_that_are_computed() -> None:
    class Squares(Made):
        @property
        def names(self) -> list[str]:
            return [f"{name}²" for name in self.data.feature_names]

        def make(self, ids: Any) -> Any:
            return np.square(self.data.block(ids).values)

    problem = make()
    problem = Problem(problem.data, atoms=Squares(problem.data), M=2, C=3.0)
    steps = list(mipfs.start(problem, gap=1e-6))
    assert steps
    assert all(one.bound <= other.bound for one, other in itertools.pairwise(steps))


@pytest.mark.slow
def test_scip_is_let_go(tmp_path: Path) -> None:
    if importlib.util.find_spec("pyscipopt") is None:
        pytest.skip("without SCIP")
    session = mipfs.start(make(p=6, M=2), "monolithic")
    session.step()
    session.close()
    assert session.is_over
