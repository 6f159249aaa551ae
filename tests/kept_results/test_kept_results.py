"""What earlier versions wrote is read and verified, by both checkers, and has the form that the schemas say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mipfs
from mipfs.lab.studies import reading
from mipfs.lab.studies.bench import Bench
from mipfs.result.result import Result
from tests import two_checkers
from tests.kept_results import make
from tests.schemas import broken, schema

HERE = Path(__file__).parent
VERSIONS = sorted(path for path in HERE.iterdir() if path.is_dir() and path.name[0].isdigit())
DATA = {name: file for name, (_, file, *_) in make.COMMANDS.items()} | {
    name: file for name, (file, _) in make.MADE.items()
}
DECLINED = {"measure"}
"""What the second checker does not carry: scaled data with an intercept, whose scaling does not stand in the sidecar."""
CASES = [(version, name) for version in VERSIONS for name in sorted(DATA) if (version / f"{name}.json").exists()]
EACH = pytest.mark.parametrize(("version", "name"), CASES, ids=[f"{path.name}-{name}" for path, name in CASES])


def document(version: Path, name: str) -> Any:
    return json.loads((version / f"{name}.json").read_text(encoding="utf-8"))


@EACH
def test_results_are_read_and_verified(version: Path, name: str) -> None:
    result = Result.load(version / f"{name}.json")
    data = mipfs.read(version / DATA[name], scale=document(version, name)["scaling"]["kind"])
    assert mipfs.verify(result, data).accepted
    if result.selected:
        assert len(result.predict(data)) == data.n_samples


@EACH
def test_the_second_checker_accepts_them(version: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = two_checkers.second().main([str(version / f"{name}.json"), str(version / DATA[name])])
    said = capsys.readouterr().out
    word = "declined" if name in DECLINED else "accepted"
    assert (code, said.split(":")[0].strip()) == ({"accepted": 0, "declined": 2}[word], word), said


@EACH
def test_they_have_the_form_of_the_schema(version: Path, name: str) -> None:
    assert not broken(document(version, name), schema("result"))


@pytest.mark.parametrize("version", VERSIONS, ids=lambda path: path.name)
def test_paths_ladders_and_benchmarks_are_read(version: Path) -> None:
    path = reading.load(version / "path.json")
    data = mipfs.read(version / "table.csv", scale="standard")
    assert all(mipfs.verify(point.result, data).accepted for point in path.points)
    assert len(reading.load(version / "compare.json").ladder) > 5
    shown = reading.load(version / "bench.json")
    assert isinstance(shown, Bench)
    stated = document(version, "bench")["rows"]
    again = [row.document(shown.names) for row in shown.rows]  # later versions say more
    assert [{key: row[key] for key in one} for row, one in zip(again, stated, strict=True)] == stated
    assert all(name in shown.summary() for one in stated for name in [*one["shares"]][:1])
    for name in ("path", "bench", "compare"):
        assert not broken(document(version, name), schema(name)), name


def test_every_kind_is_kept() -> None:
    assert {name for _, name in CASES} == set(DATA)
    assert set(DATA) >= DECLINED


@EACH
def test_sidecars_have_the_arrays_of_their_schema(version: Path, name: str) -> None:
    with np.load(version / f"{name}.cert.npz", allow_pickle=False) as arrays:
        found = {key: {"kind": arrays[key].dtype.kind, "shape": list(arrays[key].shape)} for key in arrays.files}
    assert not broken(found, schema("sidecar"))


def test_the_validator_finds_what_is_wrong() -> None:
    honest = document(VERSIONS[0], "hinge")
    wrong: list[tuple[str, Any]] = [
        ("objective", "1"), ("objective", True), ("schema", 2), ("selected", "a"), ("weights", {"a": None}), ("new", 1),
        ("certificate", {"kind": "word", "bound": 1.0, "gap": 0.1}), ("data_sha256", "x"), ("params", {}),
    ]  # fmt: skip
    for name, value in wrong:
        assert broken({**honest, name: value}, schema("result")), name
    assert broken({name: value for name, value in honest.items() if name != "rows"}, schema("result"))
