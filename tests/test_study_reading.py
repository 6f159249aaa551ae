"""Results, paths and ladders read back from their JSON, whole and broken."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import mipfs
from mipfs.errors import DataError
from mipfs.lab import page
from mipfs.lab.studies.ladder import Comparison
from mipfs.lab.studies.reading import Study, load
from mipfs.lab.studies.solution_path import SolutionPath
from tests.lab.page import page_cases as cases


def studies() -> list[Study]:
    both = mipfs.path(mipfs.Problem(cases.credit()), C=[0.1, 1.0], M=[2, 3], folds=2, one_se=True)
    rows = mipfs.path(mipfs.Problem(cases.credit()), rows=mipfs.Problem(cases.credit()).rows)
    none = dataclasses.replace(cases.ladder(), conflict=("a",), command="mipfs compare x")
    return [cases.closed(), cases.path(), both, rows, cases.ladder(), none]


@pytest.mark.slow
def test_what_is_read_back_is_the_same(tmp_path: Path) -> None:
    for study in studies():
        if isinstance(study, SolutionPath):  # which samples its folds have stands in the archive beside the JSON
            study = dataclasses.replace(study, fold=None)
        (tmp_path / "x.json").write_text(study.to_json(), encoding="utf-8")
        found = load(tmp_path / "x.json")
        assert type(found) is type(study)
        assert json.loads(found.to_json()) == json.loads(study.to_json())
        if isinstance(study, SolutionPath):
            assert SolutionPath.load(tmp_path / "x.json").best is not None or study.best is None
            with pytest.raises(DataError, match="a SolutionPath, and not a Comparison"):
                Comparison.load(tmp_path / "x.json")
        if isinstance(study, Comparison):
            assert Comparison.load(tmp_path / "x.json")["exact"] == study["exact"]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where the values of a document stand."""
    if path:
        yield path
    if isinstance(value, (dict, list)):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from places(value[key], (*path, key))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_a_broken_document_is_named_or_shown(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    document = json.loads(studies_json(seed))
    for name in ("trace",):  # the rest is where things differ
        if name in document:
            document[name] = document[name][:3]
    found = list(places(document))
    refused = 0
    for _ in range(60):
        broken = copy.deepcopy(document)
        *above, last = rng.choice(found)
        inside = broken
        for key in above:
            inside = inside[key]
        if rng.random() < 0.25:
            del inside[last]
        else:
            inside[last] = rng.choice((None, "x", -1, 1e308, 2.5, [], {}, True, [1], {"a": 1}, ["a"], 10**30))
        place = tmp_path / "x.json"
        place.write_text(json.dumps(broken), encoding="utf-8")
        study = loaded(place)
        if study is None:
            refused += 1
            continue
        assert len(page.html([page.Item("x", study)])) > 1000
        assert study._repr_html_()
    assert refused > 5


def loaded(path: Path) -> Study | None:
    """The study, or None where it is refused."""
    with contextlib.suppress(DataError):
        return load(path)
    return None


def studies_json(seed: int) -> str:
    kinds = (cases.closed, cases.path, cases.ladder, cases.closed, cases.infeasible, cases.closed)
    return kinds[seed]().to_json()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "not a JSON document"),
        ("[]", "not a result of schema 1"),
        ('{"schema": 2, "ladder": []}', "not a comparison of schema 1"),
        ('{"schema": 1, "points": []}', "it has no 'axis'"),
        ('{"schema": 1, "points": [], "axis": "M,C"}', "'axis' cannot be \"M,C\""),
        ('{"schema": 1, "params": {}, "incumbent": 1, "ladder": [1]}', "'ladder[0]' cannot be 1"),
    ],
)
def test_messages(tmp_path: Path, text: str, said: str) -> None:
    place = tmp_path / "x.json"
    place.write_text(text)
    with pytest.raises(DataError, match=r"x\.json"):
        load(place)
    with pytest.raises(DataError) as caught:
        load(place)
    assert said in str(caught.value)
    assert "--json" in str(caught.value)
