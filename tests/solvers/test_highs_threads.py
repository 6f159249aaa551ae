"""HiGHS under a limit: in several threads at once, and told to stop."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import highspy
import numpy as np
import pytest
import threadpoolctl
from scipy import sparse

from mipfs.plumbing import machine, own_threads
from mipfs.solvers import highs
from tests.other_users import ours


def knapsack(seed: int, n: int) -> highs.HighsModel:
    rng = np.random.default_rng(seed)
    model, weight = highs.HighsModel(), rng.integers(100, 10_000, (3, n)).astype(float)
    model.add_columns(np.zeros(n), np.ones(n))
    for row in weight:
        model.add_row(-np.inf, float(row.sum() // 2), np.arange(n), row)
    model.set_costs(-weight.sum(axis=0) - rng.integers(1, 50, n))
    model.make_whole(np.arange(n))
    return model


@pytest.mark.slow
def test_models_in_several_threads_do_not_know_of_one_another() -> None:
    def work(seed: int) -> list[str]:
        model = knapsack(seed, 8)
        return [highs.solve(model, deadline=time.monotonic() + 60.0).status for _ in range(12)]

    with ThreadPoolExecutor(4) as pool:
        for said in pool.map(work, range(8)):
            assert said == ["optimal"] * 12


@pytest.mark.sampled(2)
@pytest.mark.parametrize("way", ["deadline", "stop"])
def test_a_hard_model_hears_its_limit_and_can_go_on(way: str) -> None:
    model = knapsack(1, 60)
    began = time.monotonic()
    given = {"deadline": began + 0.3} if way == "deadline" else {"stop": lambda: time.monotonic() > began + 0.3}
    assert highs.solve(model, **given).status == "stopped"  # type: ignore[arg-type]
    assert time.monotonic() - began < 1.5
    model.set_costs(np.ones(60))
    assert highs.solve(model, deadline=time.monotonic() + 60.0).status == "optimal"


@pytest.mark.parametrize("option", ["output_flag", "log_to_console"])
def test_it_says_nothing_not_even_what_it_is(option: str, capfd: pytest.CaptureFixture[str]) -> None:
    h = highs.make_silent_highs(option)
    h.addVar(0.0, 1.0)
    h.changeColCost(0, -1.0)
    h.run()
    assert h.getInfo().objective_function_value == -1.0
    assert capfd.readouterr() == ("", "")


def long_lp() -> highs.HighsModel:
    """A linear program of some seconds."""
    model = highs.HighsModel(presolve=False)
    model.add_columns(np.zeros(2000), np.ones(2000))
    model.set_costs(-np.random.default_rng(0).random(2000))
    matrix = sparse.random(1500, 2000, 0.3, format="csr", random_state=0)
    model.add_rows(np.full(1500, -np.inf), np.full(1500, 40.0), matrix)
    return model


@pytest.mark.sampled(5)
@pytest.mark.parametrize("make", [long_lp, lambda: knapsack(1, 60)], ids=["LP", "MILP"])
@pytest.mark.parametrize("way", ["Ctrl-C", "must_stop fails"])
def test_what_the_caller_raises_is_heard_within_a_second(make: Callable[[], highs.HighsModel], way: str) -> None:
    model, began = make(), time.monotonic()

    def stop() -> bool:
        if time.monotonic() > began + 0.3:
            if way == "Ctrl-C":
                signal.raise_signal(signal.SIGINT)
            raise ZeroDivisionError
        return False

    with pytest.raises(KeyboardInterrupt if way == "Ctrl-C" else ZeroDivisionError):
        highs.solve(model, stop=stop)
    assert time.monotonic() - began < 1.5
    model.set_costs(np.ones(model.n_columns))  # waits for the end of what was cut short
    assert highs.solve(model).bound == pytest.approx(0.0, abs=1e-9)


def test_nothing_of_ours_is_solved_on_a_thread_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    names: Counter[str] = Counter()
    run, ray = highspy.Highs.run, highspy.Highs.getDualRay  # type: ignore[attr-defined]

    def heard(call: Callable[..., Any]) -> Callable[..., Any]:
        def named(*given: Any) -> Any:
            names[threading.current_thread().name] += 1
            return call(*given)

        return named

    monkeypatch.setattr(highspy.Highs, "run", heard(run))
    monkeypatch.setattr(highspy.Highs, "getDualRay", heard(ray))
    cases = ours.cases()
    for name in ("branch", "gbd by MILPs", "conflict", "onsvm by CVXPY", "l1_bundle", "fsv"):
        cases[name]()
    assert set(names) == {"mipfs solver"}
    assert names["mipfs solver"] > 100


def test_errors_come_back_and_threads_are_used_again() -> None:
    before = threading.active_count()
    for k in range(50):
        with pytest.raises(ZeroDivisionError):
            own_threads.call_in_own_thread(lambda: 1 // 0)
        assert own_threads.call_in_own_thread(lambda k=k: k + 1) == k + 1  # type: ignore[misc]
    assert threading.active_count() <= before + 1
    done = np.zeros(1000)
    own_threads.share(lambda low, high: done.__setitem__(slice(low, high), done[low:high] + 1.0), 1000, 3)
    assert np.all(done == 1.0)
    with pytest.raises(ZeroDivisionError):
        own_threads.share(lambda low, high: low // (low - 5), 10, 2)


@pytest.mark.slow
def test_the_interpreter_ends_while_a_daemon_solves() -> None:
    """A solve that came back to an interpreter that is gone would abort the process."""
    code = """
import atexit, threading, time
from tests.solvers.test_highs_threads import knapsack
from mipfs.solvers import highs

def work():
    while True:
        highs.solve(knapsack(1, 60))

atexit.register(lambda: print(highs.solve(knapsack(1, 8)).status))  # at the end it is still answered
for _ in range(2):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.2)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "optimal\n", "")


def test_one_thread_for_blas_ends_with_the_last_block() -> None:
    first = machine.one_blas_thread()
    with threadpoolctl.threadpool_limits(3, user_api="blas"):
        before = blas()
        first.__enter__()
        with machine.one_blas_thread():
            assert set(blas()) == {1}
            first.__exit__(None, None, None)
            assert set(blas()) == {1}
        assert blas() == before


def test_libraries_are_looked_for_again_after_an_import(monkeypatch: pytest.MonkeyPatch) -> None:
    found = machine._blas.found()
    assert machine._blas.found() is found
    monkeypatch.setitem(sys.modules, "imported_since", sys)
    assert machine._blas.found() is not found


def blas() -> list[int]:
    return [library["num_threads"] for library in threadpoolctl.threadpool_info() if library["user_api"] == "blas"]


def test_a_loop_on_our_thread_hears_its_limit_and_ends_with_ctrl_c() -> None:
    asked, n_solved = Counter[str](), 0

    def stop() -> bool:
        asked[threading.current_thread().name] += 1
        return True

    @own_threads.in_own_thread
    def loop(model: highs.HighsModel) -> str:
        nonlocal n_solved
        assert threading.current_thread().name == "mipfs solver"
        said = highs.solve(model, stop=stop).status
        while True:  # until the caller gives it up
            assert highs.solve(knapsack(1, 8)).status in ("optimal", "stopped")
            n_solved += 1
            if n_solved == 3:
                assert said == "stopped"
                threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()

    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        loop(knapsack(1, 60))
    assert set(asked) == {"MainThread"}, "who waits is asked"
    assert time.monotonic() - began < 1.5
    assert not own_threads._at_work
