"""Ctrl-C while kernels are compiled, and limits that come while the selection oracle searches."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import mipfs
from mipfs.data.instance import Instance
from mipfs.drivers import branch, kelley, rounding
from mipfs.errors import StoppedError
from mipfs.result.result import Status, StopReason
from mipfs.run import warm_up
from mipfs.run.run import REPEATED_SECONDS, Run, Steps
from mipfs.settings import BranchSettings, GbdSettings, KelleySettings, OracleSettings, RoundingSettings


def make(p: int = 8, n: int = 30, seed: int = 0) -> Instance:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    return Instance.from_arrays(X, np.where(X[:, 0] + rng.normal(size=n) > 0, 1, -1))


@pytest.fixture
def cold() -> Iterator[None]:
    """Nothing counts as compiled, before and after."""
    warm_up._compiled.clear()
    yield
    warm_up._compiled.clear()


@pytest.mark.sampled(5)
@pytest.mark.parametrize("module", [branch, kelley])
@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM"])
def test_ctrl_c_during_the_warm_up_ends_the_run_after_its_first_step(
    monkeypatch: pytest.MonkeyPatch, cold: None, module: object, number: str
) -> None:
    name, problem = module.__name__.rpartition(".")[2], mipfs.Problem(make(), M=3, C=1.0)  # type: ignore[attr-defined]
    mipfs.solve(problem, driver=name)  # where kernels were still to be compiled there is no first step
    warm_up._compiled.clear()
    work, calls = module.run, []  # type: ignore[attr-defined]

    def struck(run: Run) -> Steps:
        calls.append(run)
        if len(calls) == 1:
            signal.raise_signal(getattr(signal, number))
        yield from work(run)

    monkeypatch.setattr(module, "run", struck)
    result = mipfs.solve(problem, driver=name, gap=0.0)
    assert len(calls) == 2
    assert calls[1].problem is problem
    assert result.stop_reason is StopReason.INTERRUPTED
    assert result.status in (Status.FEASIBLE, Status.RELAXED)
    assert 1 <= len(result.selected) <= 3, "the classifier of the first step"
    assert result.bound <= result.objective
    assert mipfs.solve(problem, driver=name).stop_reason is StopReason.GAP_CLOSED
    assert len(calls) == 4  # the tiny problem again: what was cut short does not count as compiled


def test_a_second_ctrl_c_does_not_wait_for_the_first_step(monkeypatch: pytest.MonkeyPatch, cold: None) -> None:
    calls = []

    def struck(run: Run) -> Steps:
        yield None
        calls.append(run.asked)
        signal.raise_signal(signal.SIGINT)
        if len(calls) == 2:
            signal.raise_signal(signal.SIGINT)  # at once: a terminal that closes sends some
            time.sleep(REPEATED_SECONDS)
            signal.raise_signal(signal.SIGINT)
            raise AssertionError("it is heard at once: the first one during the warm-up, the second one here")

    monkeypatch.setattr(branch, "run", struck)
    with pytest.raises(KeyboardInterrupt):
        mipfs.solve(mipfs.Problem(make(), M=3, C=1.0))
    assert calls == [False, True]


def hard(p: int = 30, seed: int = 1) -> mipfs.Problem:
    """A row that a tree of LPs cannot decide soon: twice a sum of whole numbers is never odd."""
    a = 2.0 * np.random.default_rng(seed).integers(1000, 2000, p)
    return mipfs.Problem(make(p), C=1.0).with_rows(a[None, :], a.sum() // 2 // 2 * 2 + 1, a.sum() // 2 // 2 * 2 + 1)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("driver", ["branch", "gbd", "kelley"])
def test_a_limit_is_heard_inside_the_oracle(driver: str) -> None:
    record = {"branch": BranchSettings, "gbd": GbdSettings, "kelley": KelleySettings}[driver]
    settings = record(selections=OracleSettings(grace=0.1, nodes=10**9))
    problem, begin = hard(), time.monotonic()
    mipfs.solve(mipfs.Problem(make(30), M=2, C=1.0).with_rows(np.ones((1, 30)), 1.0, 2.0), driver=driver)  # warm
    begin = time.monotonic()
    result = mipfs.solve(problem, driver=driver, time_limit=0.5, settings=settings)
    assert time.monotonic() - begin < 5
    if result.status is not Status.INFEASIBLE:
        assert (result.status, result.stop_reason) == (Status.NO_SOLUTION, StopReason.TIME_LIMIT)
        assert result.selected == ()


@pytest.mark.sampled(5)
@pytest.mark.parametrize("seed", range(4))
def test_what_the_oracle_says_when_it_must_stop_is_true(seed: int) -> None:
    rng = np.random.default_rng(seed)
    p = 12
    A, cost = rng.normal(size=(3, p)), rng.normal(size=p)
    selection = mipfs.Problem(make(p), M=6, C=1.0).with_rows(A, -0.3, 0.4).selection
    every = (np.arange(2**p)[:, None] >> np.arange(p)) & 1
    sums = every @ A.T
    allowed = (every.sum(axis=1) <= 6) & np.all((sums >= -0.3) & (sums <= 0.4), axis=1)
    least = (every[allowed] @ cost).min()
    for calls in (0, 3, 30):
        oracle, left = selection.oracle(OracleSettings()), iter(range(calls))
        oracle.must_stop = lambda left=left: next(left, None) is None  # type: ignore[misc]
        try:
            sigma, bound = oracle.minimise(cost)
        except StoppedError:
            continue
        assert bound <= least + 1e-9
        assert sigma is not None
        assert oracle.contains(sigma)
    sigma, bound = selection.minimise(cost)
    assert bound == pytest.approx(least, abs=1e-8)


@pytest.mark.parametrize("rows", [False, True])
@pytest.mark.parametrize("loss", ["hinge", "squared-hinge", "logistic"])
def test_no_bound_is_below_that_of_nothing_however_early_the_limit(loss: str, rows: bool) -> None:
    problem = mipfs.Problem(make(40, 60), M=5, C=10.0, loss=loss)
    problem = problem.with_rows(np.ones((1, 40)), 0.0, 4.0) if rows else problem
    result = mipfs.solve(problem, "branch", time_limit=0.0)
    assert result.bound >= -1e-9, "but for the error of the logarithms"
    report = mipfs.verify(result, problem.data)
    assert report.accepted, report.reason


def test_no_svm_is_solved_to_its_end_once_kelley_is_to_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    runs, hears = [], []

    class Watched(rounding.Subproblem):
        def solve(self, *args: Any, **kwargs: Any) -> Any:
            if runs and runs[-1].must_stop:
                hears.append(self.must_stop())
            return super().solve(*args, **kwargs)

    work = kelley.run

    def watched(run: Run) -> Steps:
        runs.append(run)
        yield from work(run)

    monkeypatch.setattr(kelley, "run", watched)
    monkeypatch.setattr(rounding, "Subproblem", Watched)
    settings = KelleySettings(rounding=RoundingSettings(grace=0.0))
    problem = mipfs.Problem(make(p=150, n=60), M=3, C=1.0)
    result = mipfs.solve(problem, "kelley", callback=lambda record: True, gap=0.0, settings=settings)
    assert result.stop_reason is StopReason.INTERRUPTED
    assert hears
    assert all(hears)
    assert len(hears) <= 2
    assert mipfs.verify(result, problem.data).accepted
