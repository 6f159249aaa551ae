"""The file in which a path keeps its solves: what is taken from it, what is refused, and what a kill or a disk does."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mipfs
from mipfs import Instance, Problem
from mipfs.errors import CheckpointWarning, DataError, UsageError
from mipfs.lab.studies import point_store
from tests.killed import differences, timeless


def problem(seed: int = 0, **changes: Any) -> Problem:
    """Some signal, and much noise."""
    r = np.random.default_rng(seed)
    X = r.normal(size=(60, 6))
    y = np.where(X[:, 0] - X[:, 1] + r.normal(size=60) > 0, 1.0, -1.0)
    return Problem(Instance.from_arrays(X, y), **{"C": 0.1, **changes})


class Count:
    """Counts the solves that begin."""

    def __init__(self) -> None:
        self.begun: list[str] = []

    def __call__(self, about: str) -> None:
        self.begun.append(about)


def lines(path: Path) -> list[bytes]:
    """The lines of a file, ends included."""
    return path.read_bytes().splitlines(keepends=True)


@pytest.mark.slow
def test_what_is_kept_is_not_solved_again_and_is_as_good(tmp_path: Path) -> None:
    file = tmp_path / "p.points"
    first = mipfs.path(problem(), M=[1, 2, 3], folds=2, cold=True, checkpoint=file)
    count = Count()
    again = mipfs.path(problem(), M=[1, 2, 3], folds=2, cold=True, resume=file, on_begin=count)
    assert count.begun == []
    assert again.table() == first.table()
    assert again.chosen == first.chosen
    again.save(tmp_path / "r.json")
    for point in mipfs.SolutionPath.load(tmp_path / "r.json").points:
        assert mipfs.verify(point.result, problem().data).accepted


def test_torn_and_damaged_lines_are_solved_again(tmp_path: Path) -> None:
    file = tmp_path / "p.points"
    first = mipfs.path(problem(), M=[1, 2, 3], checkpoint=file)
    head, one, two, three = lines(file)
    file.write_bytes(head + one + two.replace(b"OPTIMAL", b"0PTIMAL", 1) + three[:50])
    count = Count()
    again = mipfs.path(problem(), M=[1, 2, 3], resume=file, on_begin=count)
    assert count.begun == ["M = 2", "M = 3"]
    assert [point.selected for point in again.points] == [point.selected for point in first.points]
    count = Count()
    mipfs.path(problem(), M=[1, 2, 3], resume=file, on_begin=count)
    assert count.begun == []


def test_a_longer_path_takes_what_fits(tmp_path: Path) -> None:
    file = tmp_path / "p.points"
    mipfs.path(problem(), M=[1, 3], checkpoint=file)
    count = Count()
    found = mipfs.path(problem(), M=[1, 2, 3, 4], resume=file, on_begin=count)
    assert count.begun == ["M = 2", "M = 4"]
    assert len(found.points) == 4


@pytest.mark.slow
def test_limits_may_change_and_what_is_proven_stays(tmp_path: Path) -> None:
    file = tmp_path / "p.points"
    mipfs.path(problem(C=10.0), M=[1, 2, 3], iteration_limit=1, checkpoint=file)
    found = mipfs.path(problem(C=10.0), M=[1, 2, 3], resume=file)
    assert all(point.status is mipfs.Status.OPTIMAL for point in found.points)
    count = Count()
    mipfs.path(problem(C=10.0), M=[1, 2, 3], time_limit=60.0, gap=1e-3, resume=file, on_begin=count)
    assert count.begun == []
    mipfs.path(problem(C=10.0), M=[1, 2, 3], pool_gap=0.01, resume=file, on_begin=count)
    assert len(count.begun) == 3


@pytest.mark.parametrize(
    ("changed", "driver", "said"),
    [
        (problem(1), None, "other data"),
        (problem(loss="logistic"), None, "another problem"),
        (problem(C=0.2), None, "another problem"),
        (problem(), "gbd", "driver 'branch', not 'gbd'"),
    ],
)
def test_other_data_parameters_and_drivers_are_refused(
    changed: Problem, driver: str | None, said: str, tmp_path: Path
) -> None:
    file = tmp_path / "p.points"
    mipfs.path(problem(), M=[1], checkpoint=file)
    before = file.read_bytes()
    with pytest.raises(DataError, match=said):
        mipfs.path(changed, driver=driver, M=[1], resume=file)
    assert file.read_bytes() == before


def test_another_version_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "p.points"
    monkeypatch.setattr(point_store, "VERSION", 0)
    mipfs.path(problem(), M=[1], checkpoint=file)
    monkeypatch.undo()
    with pytest.raises(DataError, match="another version"):
        mipfs.path(problem(), M=[1], resume=file)


def test_a_file_that_is_there_is_not_begun_anew(tmp_path: Path) -> None:
    file = tmp_path / "p.points"
    file.write_text("mine")
    with pytest.raises(UsageError, match="is there already"):
        mipfs.path(problem(), M=[1], checkpoint=file)
    with pytest.raises(DataError, match="no store of a path"):
        mipfs.path(problem(), M=[1], resume=file)
    with pytest.raises(DataError, match="no such file"):
        mipfs.path(problem(), M=[1], resume=tmp_path / "none")
    with pytest.raises(UsageError, match="leave checkpoint out"):
        mipfs.path(problem(), M=[1], resume=file, checkpoint=file)
    assert file.read_text() == "mine"


def test_a_full_disk_does_not_end_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "p.points"
    calls = 0

    def full(path: Path, line: bytes) -> None:
        nonlocal calls
        calls += 1
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(point_store, "_append_line", full)
    with pytest.warns(CheckpointWarning, match="No space left on device"):
        found = mipfs.path(problem(), M=[1, 2], checkpoint=file)
    assert len(found.points) == 2
    assert calls == 1
    assert len(lines(file)) == 1


def test_a_line_is_json_behind_its_digest(tmp_path: Path) -> None:
    file = tmp_path / "p.points"
    mipfs.path(problem(), M=[1], checkpoint=file)
    for line in lines(file):
        said, _, body = line.partition(b" ")
        assert len(said) == 64
        json.loads(body)


def told(found: mipfs.SolutionPath) -> Any:
    """The document without seconds, and without the names of certificates that are nowhere yet."""
    document = timeless(json.loads(found.to_json()))
    for point in document["points"]:
        del point["result"]["certificate"]
    return document


@pytest.fixture(scope="module", params=["gbd", "branch"])
def undisturbed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any, Any]:
    """A path that nobody killed: what was asked, what it says, and the lines of its file."""
    file = tmp_path_factory.mktemp("whole") / "p.points"
    asked: dict[str, Any] = {"C": [0.1, 1.0, 10.0], "folds": 2, "driver": request.param, "jobs": 1}
    whole = mipfs.path(problem(3, M=3), **asked, checkpoint=file)
    return asked, told(whole), lines(file)


@pytest.mark.sampled(11)
@pytest.mark.parametrize("kept", [1, 2, 4, 7])
def test_a_path_that_goes_on_is_the_one_that_nobody_killed(
    undisturbed: tuple[Any, Any, Any], kept: int, tmp_path: Path
) -> None:
    asked, whole, written = undisturbed
    file = tmp_path / "p.points"
    file.write_bytes(b"".join(written[: 1 + kept]))
    count = Count()
    again = mipfs.path(problem(3, M=3), **asked, resume=file, on_begin=count)
    assert len(count.begun) == 9 - kept
    assert [*differences(told(again), whole, "")] == []
