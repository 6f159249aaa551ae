"""Fits side by side: the numbers of one after the other, no more threads than cores, and nobody left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest

import mipfs
from mipfs.cli import main
from mipfs.errors import UsageError
from mipfs.lab.studies.calibration import calibrate
from mipfs.losses import LOSSES
from mipfs.plumbing.machine import GARBAGE, cores, sharing_cores
from mipfs.run import side_by_side
from mipfs.run.side_by_side import LostFit, in_order, jobs_of, limits_of, run_tasks
from tests.side_tasks import begun, cores_there, dying, falling, known_losses, squared, warning_of, where

HERE = os.getpid()


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other processes begin at once: these tasks are short."""
    monkeypatch.setattr(side_by_side, "BEGIN_SECONDS", 0.0)


@pytest.mark.slow
def test_results_come_in_the_order_of_the_tasks_and_from_several_processes() -> None:
    found = list(in_order(squared, 2.0, [3.0, 1.0, 2.0, 5.0, 4.0, *range(7)], 3))
    assert [value for value, _ in found] == [18.0, 2.0, 8.0, 50.0, 32.0, *(2.0 * k**2 for k in range(7))]
    assert len({pid for _, pid in found}) > 1
    for _, (pid, garbage, spinning) in run_tasks(begun, None, range(4), 2, here=False):
        assert pid != HERE
        assert garbage == GARBAGE
        assert spinning is not None


def test_one_job_is_done_by_this_process_alone() -> None:
    assert [pid for _, pid in run_tasks(where, None, range(2), 1)] == [HERE, HERE]


def test_what_a_task_raises_is_raised() -> None:
    for jobs in (1, 2):
        with pytest.raises(UsageError, match="two is too many"):
            list(in_order(falling, None, range(4), jobs))


@pytest.mark.slow
def test_a_process_that_dies_costs_its_own_task_alone() -> None:
    found = dict(run_tasks(dying, HERE, range(5), 2, here=False))
    assert {k: v for k, v in found.items() if k != 3} == {0: 0, 1: 1, 2: 2, 4: 4}
    assert isinstance(found[3], LostFit)
    assert "give fewer jobs" in str(found[3])


def test_what_cannot_travel_is_done_here() -> None:
    opened = (k for k in range(3))  # a generator cannot be pickled
    assert set(dict(run_tasks(where, opened, range(3), 2)).values()) == {HERE}


@pytest.mark.slow
def test_warnings_of_other_processes_are_heard() -> None:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = list(in_order(warning_of, None, range(6), 2))
    assert len(set(found)) == 2
    assert sorted(str(one.message) for one in said) == [f"warned of {k}" for k in range(6)]


@pytest.mark.slow
def test_no_further_task_begins_when_the_time_is_over() -> None:
    begun = time.monotonic()
    found = list(
        run_tasks(squared, 1.0, [float(k) for k in range(200)], 2, more=lambda: time.monotonic() < begun + 1.0)
    )
    assert 0 < len(found) < 60
    assert all(value == k**2 for k, (value, _) in found)


@pytest.mark.slow
def test_names_that_a_program_has_entered_are_known_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LOSSES, "of-a-user", "mipfs.losses.hinge")
    found = list(in_order(known_losses, None, range(4), 2))
    assert len({pid for pid, _ in found}) == 2
    assert all(known for _, known in found)


def test_the_number_of_jobs_is_checked_and_never_above_the_tasks() -> None:
    assert jobs_of(None, 100) == cores()
    assert jobs_of(7, 3) == 3
    assert jobs_of(None, 0) == 1
    with pytest.raises(UsageError, match="jobs = 0 must be a whole number >= 1"):
        jobs_of(0, 3)


def test_what_runs_side_by_side_shares_cores_and_memory() -> None:
    there = cores()
    with sharing_cores(2):
        assert cores() == max(1, there // 2)
        with sharing_cores(10_000):
            assert cores() == 1
    assert cores() == there
    assert limits_of({"memory_limit": 100.0, "gap": 0.1}, 4) == {"memory_limit": 25.0, "gap": 0.1}
    assert limits_of({"gap": 0.1}, 4) == {"gap": 0.1}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("backend", ["loky", "threading", "multiprocessing"])
def test_a_search_on_all_cores_leaves_one_to_each_of_its_fits(backend: str) -> None:
    found = joblib.Parallel(cores(), backend=backend)(joblib.delayed(cores_there)(None, k) for k in range(cores()))
    assert found == [1] * cores()


def _sample(n: int = 40, p: int = 6) -> mipfs.Instance:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(n, p))
    y = np.where(X[:, 0] - X[:, 1] + rng.normal(size=n) > 0, 1, -1)
    return mipfs.Instance.from_arrays(X, y)


@pytest.mark.slow
def test_stability_and_calibration_do_not_depend_on_the_jobs() -> None:
    problem = mipfs.Problem(_sample(), M=2, C=1.0)
    one, two = (mipfs.stability(problem, draws=12, seed=3, jobs=jobs).to_json() for jobs in (1, 2))
    assert one == two
    result = mipfs.solve(problem)
    apart, together = (calibrate(problem, result, folds=5, jobs=jobs).calibration for jobs in (1, 2))
    assert apart == together
    assert apart is not None


@pytest.mark.slow
def test_classes_do_not_depend_on_the_jobs(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 4))
    names = np.array(["a", "b", "c"])[np.argmax(X[:, :3] + 0.3 * rng.normal(size=(60, 3)), axis=1)]
    table = tmp_path / "t.csv"
    table.write_text(
        "\n".join(["u,v,w,x,label", *(",".join([*map(repr, r.tolist()), c]) for r, c in zip(X, names, strict=True))])
    )
    found = []
    for jobs in (1, 2):
        place = tmp_path / f"r{jobs}.json"
        assert main(["solve", "fsp-m", str(table), "-p", "M=2", "--jobs", str(jobs), "--json", str(place), "-q"]) == 0
        found.append(_bare(json.loads(place.read_text())))
    assert found[0] == found[1]


@pytest.mark.slow
def test_ctrl_c_leaves_the_draws_that_were_done_and_no_process(tmp_path: Path) -> None:
    place = tmp_path / "s.json"
    wdbc = str(Path(__file__).parents[1] / "instances" / "wdbc.svm")
    told = ("stability", wdbc, "--scale", "standard", "--M", "5", "--C", "1", "--draws", "5000", "--json", str(place))
    command = [sys.executable, "-m", "mipfs", *told, "--jobs", "3"]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    time.sleep(20.0)
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=300)
    assert running.returncode == 0
    assert 0 < json.loads(place.read_text())["draws"] < 5000
    with pytest.raises(ProcessLookupError):
        for _ in range(100):  # loky's own watchers end a moment later
            os.killpg(running.pid, 0)
            time.sleep(0.1)


def _bare(document: Any) -> Any:
    """Without seconds and what names the run."""
    if isinstance(document, dict):
        left_out = ("seconds", "trace", "command", "certificate", "archive")
        return {k: _bare(v) for k, v in document.items() if k not in left_out}
    return [_bare(one) for one in document] if isinstance(document, list) else document
