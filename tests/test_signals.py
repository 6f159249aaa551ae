"""SIGINT, SIGTERM and SIGHUP: who hears them, and who waits."""

from __future__ import annotations

import os
import signal
import sys
import threading

import numpy as np
import pytest

import mipfs
from mipfs.data.instance import Instance
from mipfs.plumbing import signals
from mipfs.problem import Problem
from mipfs.result.result import Record, Status, StopReason

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
    with signals.handled(lambda number, frame: heard.append(number)):
        signal.raise_signal(signal.SIGHUP)
        signal.raise_signal(signal.SIGTERM)
    assert heard == [signal.SIGTERM]


def test_what_is_held_is_heard_by_the_next_who_listens_or_raised_at_the_end() -> None:
    steps = []
    with pytest.raises(KeyboardInterrupt), signals.held():
        signal.raise_signal(signal.SIGINT)
        steps.append("on")
    assert steps == ["on"]
    heard: list[int] = []
    with signals.held():
        signal.raise_signal(signal.SIGTERM)
        with signals.handled(lambda number, frame: heard.append(number)):
            assert heard == [signal.SIGTERM]
    with signals.held(deliver=False):
        signal.raise_signal(signal.SIGTERM)


def test_another_thread_changes_no_handler() -> None:
    found: list[object] = []

    def work() -> None:
        with signals.held(), signals.heard():
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

    hook = sys.unraisablehook = lambda args: print(args.exc_type.__name__)
    try:
        with signals.unraised():
            for error in (KeyboardInterrupt, ValueError):
                Falling(error)
            print("the block")
        assert sys.unraisablehook is hook
    finally:
        sys.unraisablehook = sys.__unraisablehook__
    assert capsys.readouterr().out.split("\n") == ["the block", "ValueError", ""]


def test_what_a_strike_breaks_is_the_interrupt() -> None:
    with pytest.raises(KeyboardInterrupt) as caught, signals.heard():
        try:
            signal.raise_signal(signal.SIGTERM)
        except KeyboardInterrupt:
            raise RuntimeError("release unlocked lock") from None
    assert isinstance(caught.value.__cause__, RuntimeError)
    with pytest.raises(RuntimeError), signals.heard():
        raise RuntimeError("its own")
