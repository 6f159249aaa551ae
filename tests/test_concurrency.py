"""Solves in threads and processes of the user, whatever their start method: the answers of one after the other."""

from __future__ import annotations

import multiprocessing
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import joblib
import numba
import numpy as np
import pytest
import threadpoolctl

import mipfs
from mipfs import Instance, Problem
from mipfs.plumbing import machine
from mipfs.plumbing.locks import ProcessLock
from mipfs.run.aside import SearchStrand
from mipfs.selection.selection import Selection
from tests.drivers.test_resumed import written
from tests.other_users.ours import data

forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
JOBS: list[tuple[str, dict[str, Any], int, bool]] = [
    ("branch", {"threads": 1}, 0, False),
    ("branch", {"threads": 2}, 1, True),
    ("gbd", {}, 2, True),
    ("kelley", {}, 3, False),
    ("conic", {}, 4, False),
]
"""Driver, options, seed of the data, whether there is a row."""


def solved(job: tuple[str, dict[str, Any], int, bool]) -> tuple[Any, ...]:
    driver, options, seed, has_row = job
    problem = Problem(data(seed), M=3)
    problem = problem.with_rows(np.ones((1, problem.data.n_features)), 1, 2) if has_row else problem
    result = mipfs.solve(problem, driver, **options)
    return result.status.name, result.objective, result.bound, result.selected


def in_threads(jobs: list[Any]) -> list[Any]:
    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(solved, jobs))


def in_processes(start: str) -> Callable[[list[Any]], list[Any]]:
    def work(jobs: list[Any]) -> list[Any]:
        with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context(start)) as pool:
            return list(pool.map(solved, jobs))

    return work


def by_joblib(jobs: list[Any]) -> list[Any]:
    return list(joblib.Parallel(2, backend="loky")(joblib.delayed(solved)(job) for job in jobs))


WAYS: dict[str, Callable[[list[Any]], list[Any]]] = {"threads": in_threads, "loky": by_joblib}
WAYS |= {start: in_processes(start) for start in multiprocessing.get_all_start_methods()}


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_answers_are_those_of_one_after_the_other(way: str) -> None:
    assert WAYS[way](JOBS * 2) == [solved(job) for job in JOBS] * 2


def hard(seed: int) -> Problem:
    """A problem of some hundred nodes in many batches: incumbents are looked for beside them."""
    r = np.random.default_rng([60, seed])
    X = r.normal(size=(70, 40)) * r.uniform(0.3, 2.0, 40)
    y = np.where(X[:, :8] @ r.normal(size=8) + 4.0 * r.normal(size=70) > 0.0, 1, -1)
    return Problem(Instance.from_arrays(X, y), M=8)


def begun_beside(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Four cores, and the threads that look for incumbents."""
    seen, before = list[int](), SearchStrand.work

    def noted(strand: SearchStrand, *given: Any) -> None:
        seen.append(threading.get_ident())
        before(strand, *given)

    monkeypatch.setattr(machine, "cores", lambda: 4)
    monkeypatch.setattr(SearchStrand, "work", noted)
    return seen


def solved_whole(seed: int, folder: Path) -> tuple[str, bytes]:
    return written(mipfs.solve(hard(seed), "branch", gap=1e-6, threads=3, iteration_limit=3000), folder)


@pytest.mark.slow
@forks
def test_a_child_that_is_forked_after_a_solve_with_threads_solves_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside = begun_beside(monkeypatch)
    whole = solved_whole(0, tmp_path / "parent")
    assert len(beside) > 10
    assert threading.get_ident() not in beside
    child = os.fork()
    if child == 0:
        code = 1
        try:
            (tmp_path / "said").write_text(str(solved_whole(0, tmp_path / "child") == whole))
            code = 0
        finally:
            os._exit(code)
    assert ends(child, 120.0)
    assert (tmp_path / "said").read_text() == "True"
    assert solved_whole(0, tmp_path / "again") == whole


@pytest.mark.slow
def test_two_solves_at_once_are_those_of_one_after_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    beside = begun_beside(monkeypatch)
    usual = [solved_whole(seed, tmp_path / f"{seed}") for seed in (0, 1)]
    before, meet = len(beside), threading.Barrier(2)

    def at_once(seed: int) -> tuple[str, bytes]:
        meet.wait(60.0)
        return solved_whole(seed, tmp_path / f"{seed} at once")

    for _ in range(3):
        with ThreadPoolExecutor(2) as pool:
            assert list(pool.map(at_once, (0, 1))) == usual
    assert len(beside) == 4 * before


SCRIPT = """
import multiprocessing, sys
with open(sys.argv[1], "a") as ran:
    ran.write("x")
if sys.argv[2] != "default":
    multiprocessing.set_start_method(sys.argv[2])
import mipfs
from mipfs import Problem
from mipfs.solvers import cones
from tests.other_users.ours import data
problem = Problem(data(0), M=2)
cones.IN_PROCESS_WORK = 0.0  # Clarabel in a process of its own
for driver, options in (("branch", {"threads": 2}), ("conic", {}), ("monolithic", {})):
    mipfs.solve(problem, driver, **options)
mipfs.bench(problem.data, ["l1-svm"], M=[2], C=[1.0], folds=2, jobs=2)
"""


@pytest.mark.every
@pytest.mark.slow
@pytest.mark.parametrize("start", ["default", *multiprocessing.get_all_start_methods()[1:]])
def test_a_script_without_a_guard_is_run_once(start: str, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    root = str(Path(__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "script.py", "ran", start]
    subprocess.run(command, cwd=tmp_path, env=environment, check=True, timeout=300)
    assert (tmp_path / "ran").read_text() == "x"


@pytest.mark.parametrize("threads", [1, 3])
def test_threads_of_the_process_are_what_they_were(threads: int) -> None:
    def now() -> list[Any]:
        return [
            numba.get_num_threads(),
            *((one["user_api"], one["num_threads"]) for one in threadpoolctl.threadpool_info()),
        ]

    with threadpoolctl.threadpool_limits(2):
        before = now()
        mipfs.solve(Problem(data(0), M=2), "branch", threads=threads)
        assert now() == before


def ends(child: int, seconds: float) -> bool:
    """Whether a child ends well in time; it is killed where it does not."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status == 0
        time.sleep(0.01)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return False


@forks
def test_a_forked_child_has_the_locks_anew() -> None:
    lock, is_held, over = ProcessLock(), threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            is_held.set()
            over.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    is_held.wait()
    child = os.fork()
    if child == 0:
        with lock:
            os._exit(0)
    try:
        assert ends(child, 20.0)
    finally:
        over.set()
        thread.join()
    with lock:
        child = os.fork()  # inside the block, which the child leaves too
    if child == 0:
        os._exit(0)
    assert ends(child, 20.0)


@forks
def test_a_forked_child_does_not_wait_for_a_cached_property(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python 3.11 locks it for all objects of the class while a thread computes it of one."""
    is_held, over = threading.Event(), threading.Event()
    scaled: Any = vars(Selection)["scaled"]
    getter = scaled.func

    def slow(selection: Selection) -> Any:
        if threading.current_thread() is thread:
            is_held.set()
            over.wait()
        return getter(selection)

    monkeypatch.setattr(scaled, "func", slow)
    first, other = (Problem(data(0), M=2).selection for _ in range(2))
    thread = threading.Thread(target=lambda: first.scaled)
    thread.start()
    is_held.wait()
    child = os.fork()
    if child == 0:
        _ = other.scaled
        os._exit(0)
    try:
        assert ends(child, 20.0)
    finally:
        over.set()
        thread.join()


def test_no_module_has_a_lock_that_a_child_would_wait_for() -> None:
    at_module = re.compile(r"^\w+(?:: [^=]+)? = (?:threading\.)?R?Lock\(\)", re.MULTILINE)
    home = Path(mipfs.__file__).parent
    assert not [path for path in home.rglob("*.py") if at_module.search(path.read_text(encoding="utf-8"))]
