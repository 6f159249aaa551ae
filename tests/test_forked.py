"""Work on several processes: what comes back, in which order, and what is left when a process or the work ends."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mipfs.errors import LostWorkersError
from mipfs.plumbing import forked
from mipfs.plumbing.forked import ForkedPool

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="nothing is forked there")


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """No second alone; the threads that pytest-xdist and timeouts have hold nothing."""
    monkeypatch.setattr(forked, "ALONE_SECONDS", 0.0)
    monkeypatch.setattr(forked, "is_safe", lambda: True)


@pytest.fixture(autouse=True)
def left() -> Iterator[Callable[[], set[Any]]]:
    """The processes that a test has begun and that live; at its end there is none.

    Others may live: workers that an earlier test's pool keeps for the next.
    """
    before = set(multiprocessing.active_children())
    yield lambda: set(multiprocessing.active_children()) - before
    assert not set(multiprocessing.active_children()) - before


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2, 3, 9])
def test_pieces_come_in_order_whoever_is_first(jobs: int) -> None:
    def work(k: int) -> tuple[int, int]:
        time.sleep(0.02 * (k % 3 == 0))
        return k, os.getpid()

    found = list(ForkedPool(jobs)(work, 20, 0))
    assert [k for k, _ in found] == list(range(20))
    others = {process for _, process in found} - {os.getpid()}
    assert len(others) == (0 if jobs == 1 else len(others))
    assert (len(others) > 0) == (jobs > 1)


@pytest.mark.slow
def test_what_a_process_keeps_is_its_own() -> None:
    kept = [0]

    def work(k: int) -> int:
        kept[0] += 1
        return kept[0]

    assert sum(1 for one in ForkedPool(2)(work, 12, 0) if one) == 12
    assert kept == [0]


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2, 3])
def test_the_first_error_is_raised_whichever_comes_first(jobs: int) -> None:
    def work(k: int) -> int:
        if k == 5:
            time.sleep(0.1)
            raise ValueError("five")
        if k in (6, 8):
            raise KeyError(k)
        return k

    found = []
    with pytest.raises(ValueError, match="five"):
        for one in ForkedPool(jobs)(work, 12, 0):
            found.append(one)
    assert found == [0, 1, 2, 3, 4]


class Odd(Exception):
    """One that no other process can make from what it was told."""

    def __init__(self, one: int, other: int) -> None:
        super().__init__(f"{one} and {other}")


@pytest.mark.slow
def test_an_error_that_cannot_travel_says_what_it_was() -> None:
    def work(k: int) -> int:
        raise Odd(k, 1)

    with pytest.raises(RuntimeError, match="Odd: 0 and 1"):
        list(ForkedPool(2)(work, 4, 0))


@pytest.mark.slow
def test_a_process_that_is_killed_loses_time_only(tmp_path: Path) -> None:
    parent = os.getpid()

    def work(k: int) -> int:
        if k == 3 and not (tmp_path / "killed").exists():
            (tmp_path / "killed").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        assert os.getpid() != parent
        return k * k

    assert list(ForkedPool(2)(work, 10, 0)) == [k * k for k in range(10)]
    assert (tmp_path / "killed").exists()


@pytest.mark.slow
def test_where_all_are_killed_nothing_is_found() -> None:
    parent, found = os.getpid(), []

    def work(k: int) -> int:
        if k >= 2:
            assert os.getpid() != parent
            os.kill(os.getpid(), signal.SIGKILL)
        return k

    with pytest.raises(LostWorkersError, match="all 2 processes"):
        for one in ForkedPool(2)(work, 6, 0):
            found.append(one)
    assert found == [0, 1]


@pytest.mark.slow
def test_who_is_not_asked_any_more_ends(left: Callable[[], set[Any]]) -> None:
    asked = ForkedPool(3)(lambda k: time.sleep(0.01 if k == 0 else 60.0), 6, 0)
    next(asked)
    began = time.monotonic()
    asked.close()
    assert time.monotonic() - began < 20.0
    assert not left()


@pytest.mark.slow
def test_memory_decides_how_many(monkeypatch: pytest.MonkeyPatch) -> None:
    room = forked.OWN_BYTES + 1000
    monkeypatch.setattr(forked, "available_bytes", lambda: 2 * room / forked.MEMORY_SHARE)
    shared = set(ForkedPool(9)(lambda k: (time.sleep(0.05), os.getpid())[1], 8, 1000))
    assert len(shared) == 2
    assert os.getpid() not in shared
    assert set(ForkedPool(9)(lambda k: os.getpid(), 8, room)) == {os.getpid()}


def test_short_work_begins_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forked, "ALONE_SECONDS", 60.0)
    assert set(ForkedPool(9)(lambda k: os.getpid(), 8, 0)) == {os.getpid()}


def test_a_process_with_a_thread_of_the_users_is_not_forked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    over = threading.Event()
    thread = threading.Thread(target=over.wait)
    thread.start()
    try:
        assert not forked.is_safe()
        assert ForkedPool(9).jobs == 1
    finally:
        over.set()
        thread.join()
    other = []
    thread = threading.Thread(target=lambda: other.append(forked.is_safe()))
    thread.start()
    thread.join()
    assert other == [False]


SCRIPT = """
import os, sys, time
from mipfs.plumbing import forked
from mipfs.plumbing.signals import hearing_signals
forked.ALONE_SECONDS = 0.0
def work(k):
    os.write(1, b"%d\\n" % os.getpid())
    time.sleep(600)
try:
    with hearing_signals():
        list(forked.ForkedPool(2)(work, 4, 0))
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("whole", [False, True])
def test_a_signal_ends_all(number: int, whole: bool) -> None:
    """To the process alone, or as Ctrl-C of a terminal to all that it began."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen([sys.executable, "-c", SCRIPT], **pipes, text=True, start_new_session=True)  # type: ignore[call-overload]
    assert process.stdout is not None
    children = [int(process.stdout.readline()) for _ in range(2)]
    (os.killpg if whole and number == signal.SIGINT else os.kill)(process.pid, number)
    said, error = process.communicate(timeout=60)
    assert (said, error) == ("interrupted\n", "")
    assert process.returncode == 0
    assert all(is_gone(child) for child in children)


def test_children_end_with_a_parent_that_is_killed() -> None:
    script = SCRIPT.replace("time.sleep(600)", "time.sleep(0.5)").replace("4, 0", "100, 0")
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    children = {int(process.stdout.readline()) for _ in range(2)}
    process.kill()
    process.wait()
    latest = time.monotonic() + 60
    while not all(is_gone(child) for child in children) and time.monotonic() < latest:
        time.sleep(0.05)
    assert all(is_gone(child) for child in children)
    process.stdout.close()


def is_gone(process: int) -> bool:
    """Whether a process has ended, waited for by somebody or not."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True
