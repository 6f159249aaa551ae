"""Two that append to one store at once, processes or threads: every line is whole, and none is lost."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import mipfs
from mipfs.errors import UsageError
from mipfs.lab.experiments.run import StudyStore
from mipfs.lab.experiments.study import Unit
from mipfs.lab.studies import point_store
from tests.lab.studies.test_point_store import problem

WRITERS, LINES = 4, 8


def at_once(work: Callable[[int], None]) -> None:
    threads = [threading.Thread(target=work, args=(k,)) for k in range(WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_solves_of_a_path(tmp_path: Path) -> None:
    file = tmp_path / "p.points"
    point_store.PointStore(file, problem(), ["M"], "branch", {})

    def write(k: int) -> None:
        for i in range(LINES):
            point_store._append_line(file, point_store._encode_line({"writer": k, "line": i, "long": "x" * 100_000}))

    at_once(write)
    found = point_store._read_valid_lines(file)[1:]
    assert sorted((one["writer"], one["line"]) for one in found) == [
        (k, i) for k in range(WRITERS) for i in range(LINES)
    ]


def test_units_of_a_study(tmp_path: Path) -> None:
    def write(k: int) -> None:
        for i in range(LINES):
            StudyStore(tmp_path / "s.jsonl", "mine").add(Unit({"k": k, "i": i}), [{"long": "x" * 100_000}], 1.0)

    at_once(write)
    assert len(StudyStore(tmp_path / "s.jsonl", "mine").lines()) == WRITERS * LINES


def test_one_of_two_begins_a_store(tmp_path: Path) -> None:
    """The other one is told that it is there, and overwrites nothing."""
    told: list[Any] = []

    def begin(k: int) -> None:
        try:
            point_store.PointStore(tmp_path / "p.points", problem(k), ["M"], "branch", {})
        except UsageError as error:
            told.append(error)

    at_once(begin)
    assert len(told) == WRITERS - 1


@pytest.mark.slow
def test_two_paths_go_on_with_one_file(tmp_path: Path) -> None:
    file = tmp_path / "p.points"
    mipfs.path(problem(), M=[1], checkpoint=file)
    found: dict[int, Any] = {}
    at_once(lambda k: found.update({k: mipfs.path(problem(), M=[1, 2, 3], resume=file)}))
    assert len({str([point.selected for point in path.points]) for path in found.values()}) == 1
    begun = list[str]()
    mipfs.path(problem(), M=[1, 2, 3], resume=file, on_begin=begun.append)
    assert begun == []
