"""The walks of a path side by side: the document of one after the other, and nothing lost at Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mipfs
from mipfs.lab.studies import chains
from mipfs.lab.studies.solution_path import PathPoint
from mipfs.run import side_by_side
from tests.killed import MEASURED, differences

WDBC = Path(__file__).parents[3] / "instances" / "wdbc.svm"
GRID: dict[str, Any] = {"C": [0.1, 1.0, 10.0], "M": [1, 2, 3]}


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other processes begin at once: these solves are short."""
    monkeypatch.setattr(side_by_side, "BEGIN_SECONDS", 0.0)


def sample() -> mipfs.Instance:
    rng = np.random.default_rng(8)
    X = rng.normal(size=(50, 8))
    y = np.where(X[:, 0] - X[:, 1] + 0.5 * X[:, 2] + rng.normal(size=50) > 0, 1, -1)
    return mipfs.Instance.from_arrays(X, y)


def told(found: Any) -> Any:
    """The document without what a clock measures, and without the names of certificates that are nowhere yet."""

    def bare(one: Any) -> Any:
        if isinstance(one, dict):
            left_out = (*MEASURED, "trace", "seconds_saved", "certificate")
            return {k: bare(v) for k, v in one.items() if not k.endswith(left_out)}
        return [bare(each) for each in one] if isinstance(one, list) else one

    return bare(json.loads(found.to_json()))


@pytest.mark.slow
@pytest.mark.parametrize("driver", ["branch", "gbd"])
@pytest.mark.parametrize(
    ("axes", "folds"), [(GRID, 2), (GRID, None), ({"M": [1, 2, 3]}, 3), ({"lam": [0.1, 1.0, 5.0]}, 2)]
)
def test_a_path_does_not_depend_on_the_jobs(axes: dict[str, Any], folds: int | None, driver: str) -> None:
    problem = mipfs.Problem(sample(), M=2, C=1.0)
    heard: dict[int, list[Any]] = {1: [], 2: []}
    found = [
        mipfs.path(
            problem, **axes, folds=folds, driver=driver, jobs=jobs, on_point=lambda p, k=jobs: heard[k].append(p)
        )
        for jobs in (1, 2)
    ]
    assert [*differences(told(found[0]), told(found[1]), "")] == []
    places = [[dict(point.place) for point in heard[jobs]] for jobs in (1, 2)]
    assert sorted(map(str, places[0])) == sorted(map(str, places[1]))


@pytest.mark.slow
def test_rows_added_one_by_one_on_folds_do_not_depend_on_the_jobs() -> None:
    problem = mipfs.Problem(sample(), M=3, C=1.0)
    rows = [(np.eye(1, 8, k), -np.inf, 0.0) for k in (0, 1)]
    one, two = (told(mipfs.path(problem, rows=rows, folds=2, jobs=jobs)) for jobs in (1, 2))
    assert [*differences(one, two, "")] == []


@pytest.mark.every
@pytest.mark.slow
def test_other_processes_take_part(monkeypatch: pytest.MonkeyPatch) -> None:
    by = set()
    collected = chains._collect_tasks

    def noted(*args: Any) -> list[chains.TaskResult]:
        found = collected(*args)
        by.update(done.by for done in found)
        return found

    monkeypatch.setattr(chains, "_collect_tasks", noted)
    problem = mipfs.Problem(sample(), C=1.0)
    mipfs.path(problem, **{**GRID, "C": [0.1 * 1.5**k for k in range(30)]}, folds=4, jobs=3)
    assert os.getpid() in by
    assert len(by) > 1


@pytest.mark.slow
def test_a_checkpoint_holds_what_other_processes_solved(tmp_path: Path) -> None:
    problem, file = mipfs.Problem(sample(), C=1.0), tmp_path / "path.state"
    found = mipfs.path(problem, **GRID, folds=3, jobs=2, checkpoint=file)
    begun: list[str] = []
    again = mipfs.path(problem, **GRID, folds=3, resume=file, on_begin=begun.append)
    assert begun == []
    assert told(again) == told(found)


@pytest.mark.slow
def test_watchers_hear_of_every_solve_where_nothing_else_is_asked() -> None:
    begun: list[str] = []
    points: list[PathPoint] = []
    mipfs.path(mipfs.Problem(sample()), **GRID, folds=2, on_begin=begun.append, on_point=points.append)
    assert len(begun) == 27
    assert len(points) == 9


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_interrupt_outside_a_solve_leaves_the_points_before_it(jobs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(side_by_side, "BEGIN_SECONDS", 60.0)
    told: list[PathPoint] = []

    def stop(point: PathPoint) -> None:
        told.append(point)
        if len(told) == 2:
            raise KeyboardInterrupt

    found = mipfs.path(mipfs.Problem(sample()), **GRID, jobs=jobs, folds=2, on_point=stop)
    assert found.interrupted
    assert len(found.points) == 2


@pytest.mark.slow
@pytest.mark.parametrize("group", [False, True])
def test_ctrl_c_leaves_the_points_that_any_process_had(group: bool, tmp_path: Path) -> None:
    place = tmp_path / "path.json"
    axes = ("--M", "1:5", "--C", ",".join(f"{0.01 * 1.05**k:.6f}" for k in range(400)))
    options = ("--scale", "standard", "--folds", "5", "--jobs", "3", "--json", str(place))
    command = [sys.executable, "-m", "mipfs", "path", str(WDBC), *axes, *options]
    running = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )  # fmt: skip
    while running.poll() is None:
        left = [file.name for file in tmp_path.rglob(f"*{chains.SUFFIX}")]
        if len(left) >= 9 and any(name.startswith("0-") for name in left):  # one of them of all data
            break
        time.sleep(0.1)
    if group:
        os.killpg(running.pid, signal.SIGINT)
    else:
        running.send_signal(signal.SIGINT)
    _, errors = running.communicate(timeout=300)
    assert running.returncode == 0, errors.decode()
    document = json.loads(place.read_text())
    assert document["interrupted"]
    assert 0 < len(document["points"]) < 2000
    assert b"Traceback" not in errors
