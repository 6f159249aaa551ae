"""SIGINT, SIGTERM and SIGHUP: who hears them, and who waits."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import mipfs
from mipfs.cli import main
from mipfs.data.instance import Instance
from mipfs.drivers.session import Session
from mipfs.plumbing import signals
from mipfs.problem import Problem
from mipfs.result.result import Record, Status, StopReason
from mipfs.run.run import interruptible

pytestmark = pytest.mark.skipif(os.name != "posix", reason="POSIX signals")


@pytest.fixture(autouse=True)
def interactive() -> object:
    """As in a terminal: a shell lets its background processes ignore Ctrl-C."""
    previous = {number: signal.signal(number, signal.default_int_handler) for number in signals.SIGNALS}
    yield
    for number, found in previous.items():
        signal.signal(number, found)


def hard() -> Problem:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 24))
    return Problem(Instance.from_arrays(X, np.where(X @ rng.normal(size=24) + rng.normal(size=120) > 0, 1, -1)), M=8)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("number", signals.SIGNALS)
@pytest.mark.parametrize("times", [1, 2, 3])
@pytest.mark.parametrize("driver", ["branch", "gbd", "kelley"])
def test_any_of_them_leaves_the_incumbent(number: int, times: int, driver: str) -> None:
    problem, sent = hard(), 0

    def send(record: Record) -> None:
        nonlocal sent
        if record.objective < np.inf and sent < times:
            sent += 1
            signal.raise_signal(number)

    result = mipfs.solve(problem, driver, gap=0.0, observers=[send])
    assert sent >= 1
    assert result.stop_reason is StopReason.INTERRUPTED
    assert result.status in (Status.FEASIBLE, Status.RELAXED)
    ids = problem.atoms_of(result.selected)
    w = np.array([result.weights.get(name, 0.0) for name in result.selected])
    assert problem.evaluate(ids, w, result.intercept) == pytest.approx(result.objective, rel=1e-9)
    assert all(signal.getsignal(one) is signal.default_int_handler for one in signals.SIGNALS)


def test_a_signal_that_is_ignored_stays_ignored() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    heard: list[int] = []
    with signals.handle_signals(lambda number, frame: heard.append(number)):
        signal.raise_signal(signal.SIGHUP)
        signal.raise_signal(signal.SIGTERM)
    assert heard == [signal.SIGTERM]


def test_what_is_held_is_heard_by_the_next_who_listens_or_raised_at_the_end() -> None:
    steps = []
    with pytest.raises(KeyboardInterrupt), signals.hold_signals():
        signal.raise_signal(signal.SIGINT)
        steps.append("on")
    assert steps == ["on"]
    heard: list[int] = []
    with signals.hold_signals():
        signal.raise_signal(signal.SIGTERM)
        with signals.handle_signals(lambda number, frame: heard.append(number)):
            assert heard == [signal.SIGTERM]
    with signals.hold_signals(deliver=False):
        signal.raise_signal(signal.SIGTERM)


def test_another_thread_changes_no_handler() -> None:
    found: list[object] = []

    def work() -> None:
        with signals.hold_signals(), signals.hearing_signals():
            found.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [signal.default_int_handler]


def test_what_cannot_be_raised_is_said_after_the_block_but_for_a_signal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    class Falling:
        def __init__(self, error: type[BaseException]) -> None:
            self.error = error

        def __del__(self) -> None:
            raise self.error("met in a destructor")

    signals.InterruptHandler.any_came = False
    hook = sys.unraisablehook = lambda args: print(args.exc_type.__name__)
    try:
        with signals.silence_interrupts():
            for error in (KeyboardInterrupt, ValueError):
                Falling(error)
            print("the block")
        assert sys.unraisablehook is hook
    finally:
        sys.unraisablehook = sys.__unraisablehook__
    assert capsys.readouterr().out.split("\n") == ["the block", "ValueError", ""]


def test_what_a_strike_breaks_is_the_interrupt() -> None:
    with pytest.raises(KeyboardInterrupt) as caught, signals.hearing_signals():
        try:
            signal.raise_signal(signal.SIGTERM)
        except KeyboardInterrupt:
            raise RuntimeError("release unlocked lock") from None
    assert isinstance(caught.value.__cause__, RuntimeError)
    with pytest.raises(RuntimeError), signals.hearing_signals():
        raise RuntimeError("its own")


@pytest.mark.parametrize(("leaves", "code"), [(True, 4), (False, -signal.SIGINT)])
def test_an_interrupt_inside_an_exec_does_not_change_the_exit_code(tmp_path: Path, leaves: bool, code: int) -> None:
    """CPython remembers it, and ends the process by SIGINT whatever `sys.exit` says."""
    (tmp_path / "struck.py").write_text(
        "import atexit, sys\n"
        "from mipfs.plumbing import signals\n"
        "atexit.register(print, 'at exit')\n"
        "try:\n"
        "    exec('signals.InterruptHandler()(2, None)')\n"
        "except KeyboardInterrupt:\n"
        "    pass\n"
        f"{'signals.exit_after_strike(4)' if leaves else ''}\n"
        "sys.exit(4)\n"
    )
    line = [sys.executable, "-m", "struck"]
    done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    if leaves or sys.version_info < (3, 12):
        assert done.returncode == code
    assert (done.stdout, done.stderr) == ("at exit\n", "")


def test_a_signal_that_was_lost_stops_the_run_all_the_same() -> None:
    """Raised where Python can only print it, such as in a finaliser."""
    r = np.random.default_rng(0)
    data = mipfs.Instance.from_arrays(r.normal(size=(60, 20)), np.resize([1, -1], 60))
    problem = mipfs.Problem(data, M=8)
    mipfs.solve(problem, iteration_limit=1)

    class Finalised:
        def __del__(self) -> None:
            signal.raise_signal(signal.SIGTERM)

    with signals.silence_interrupts(), signals.hearing_signals() as strike:
        assert not signals.is_any_interrupted()
        finalised = Finalised()
        del finalised
        assert strike.came
        assert signals.is_any_interrupted()
        found = mipfs.solve(problem, gap=0.0)
    assert found.stop_reason is mipfs.StopReason.INTERRUPTED
    assert found.has_classifier
    assert not signals.is_any_interrupted()
    assert mipfs.solve(problem).stop_reason is mipfs.StopReason.GAP_CLOSED


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_signal_at_the_very_end_of_a_run_stops_the_walk(jobs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that has closed its gap says so, though it was asked to stop; the next one does not begin."""
    r = np.random.default_rng(0)
    data = mipfs.Instance.from_arrays(r.normal(size=(30, 5)), np.resize([1, -1], 30))
    solve, stopped = Session.result, []

    def asked_late(session: Session) -> mipfs.Result:
        if not session.is_over:
            return solve(session)
        with interruptible(session._run):
            signal.raise_signal(signal.SIGINT)
        stopped.append(solve(session).stop_reason)
        return solve(session)

    monkeypatch.setattr(Session, "result", asked_late)
    found = mipfs.path(mipfs.Problem(data), M=[1, 2, 3], C=[0.1, 1.0, 10.0], jobs=jobs)
    assert found.interrupted
    assert stopped == [mipfs.StopReason.GAP_CLOSED]
    assert len(found.points) >= 1
    with pytest.raises(KeyboardInterrupt):
        mipfs.FSPClassifier(M=2).fit(r.normal(size=(30, 5)), data.y)


def test_the_classes_that_an_interrupt_left_end_with_what_they_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    r = np.random.default_rng(0)
    rows = [",".join([*map(repr, row.tolist()), "abc"[k % 3]]) for k, row in enumerate(r.normal(size=(90, 25)))]
    table, place = tmp_path / "t.csv", tmp_path / "r.json"
    table.write_text("\n".join([",".join([*(f"v{j}" for j in range(25)), "label"]), *rows]))
    solve, begun = mipfs.drivers.solve, []

    def struck(*args: object, **options: object) -> object:
        begun.append(1)
        if len(begun) == 2:
            signal.raise_signal(signal.SIGINT)
        return solve(*args, **options)

    monkeypatch.setattr(mipfs.drivers, "solve", struck)
    line = [
        "solve",
        "fsp-m",
        str(table),
        "-p",
        "M=6",
        "--jobs",
        "1",
        "-o",
        "iteration_limit=5",
        "--json",
        str(place),
        "-q",
    ]
    assert main(line) == 0
    results = json.loads(place.read_text())["results"]
    assert [each["stop_reason"] for each in results] == ["ITERATION_LIMIT", "INTERRUPTED", "INTERRUPTED"]
    assert len(begun) == 4
