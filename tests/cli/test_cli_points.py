"""A point of a path is used like a result: verified, predicted with, evaluated and shown."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

import mipfs
from mipfs.data.instance import Instance
from mipfs.errors import DataError, UsageError
from mipfs.lab.studies.solution_path import SolutionPath
from mipfs.result import documents
from tests.cli.outcome import Cli
from tests.rare_cases import rare, write_csv


@pytest.fixture
def table(tmp_path: Path) -> Path:
    X, y = rare(positive=60, n=120, p=5)
    return write_csv(tmp_path / "table.csv", X, y, "y")


@pytest.mark.slow
def test_every_command_takes_a_point_of_a_path(cli: Cli, table: Path, tmp_path: Path) -> None:
    saved = tmp_path / "path.json"
    asked = ("path", table, "--label", "y", "--C", "0.1,1", "--M", "1:2", "--folds", "3")
    done = cli(*asked, "--json", saved, "--report", tmp_path / "page.html")
    assert done.code == 0
    assert "path.json#best" in done.out
    assert "path.json#best" in (tmp_path / "page.html").read_text(encoding="utf-8")
    document = json.loads(saved.read_text(encoding="utf-8"))
    for name, line in [("best", None), ("one-se", None), *((None, line) for line in document["points"])]:
        point = name or f"C={line['C']:g},M={line['M']}"
        file = f"{saved}#{point}"
        checked = cli("verify", file, table)
        assert checked.code == 0, checked.err
        assert "certificate  accepted" in checked.out
        predicted = cli("predict", file, table)
        assert len(predicted.out.splitlines()) == 120
        assert cli("evaluate", file, table).code == 0
        if line is not None:
            assert f"select at most {line['M']} of 5" in checked.out
    shown = cli("report", f"{saved}#M=2,C=1", f"{saved}#best", "-o", tmp_path / "two.html")
    assert shown.code == 0
    assert cli("report", f"{saved}#M=2,C=1").out.startswith("page written to " + str(tmp_path / "path.html"))


def test_what_is_no_point_is_named(cli: Cli, table: Path, tmp_path: Path) -> None:
    saved = tmp_path / "path.json"
    assert cli("path", table, "--label", "y", "--M", "1:2", "-p", "C=0.1", "--json", saved).code == 0
    for name, message in (
        ("#best", "folds chose nothing there"),
        ("#M=3", "the path has no such point"),
        ("#M=one", "the path has no such point"),
        ("#C=1", "the path has no such point"),
        ("#", "the path has no such point"),
    ):
        done = cli("verify", f"{saved}{name}", table)
        assert (done.code, done.err.count("\n")) == (2, 1)
        assert message in done.err
    assert cli("verify", f"{tmp_path / 'none.json'}#M=1", table).code == 2
    done = cli("predict", saved, table)
    assert f"{saved} holds a path, not a result; name one of its points: {saved}#M=1, {saved}#M=2" in done.err
    stdout = cli("path", table, "--label", "y", "--M", "1:2", "-p", "C=0.1", "--json", "-").out
    (tmp_path / "alone.json").write_text(stdout, encoding="utf-8")
    done = cli("verify", f"{tmp_path / 'alone.json'}#M=1", table)
    assert (done.code, "its certificate is a second file" in done.err) == (2, True)


def test_a_forged_or_lost_certificate_of_a_point(tmp_path: Path) -> None:
    X, y = rare(positive=30, n=60, p=4)
    data = Instance.from_arrays(X, 2.0 * y - 1.0)
    found = mipfs.path(mipfs.Problem(data, C=0.1), M=[1, 2])
    found.save(tmp_path / "p.json")
    loaded = SolutionPath.load(tmp_path / "p.json")
    for point in loaded.points:
        assert mipfs.verify(point.result, data).accepted
    loaded.save(tmp_path / "again.json")
    assert mipfs.verify(SolutionPath.load(tmp_path / "again.json")[2].result, data).accepted
    other = tmp_path / "other.json"
    other.write_bytes((tmp_path / "p.json").read_bytes())
    with pytest.raises(DataError, match="sidecar of the result is missing"):
        (tmp_path / "p.cert.npz").rename(tmp_path / "kept.npz")
        mipfs.verify(SolutionPath.load(other)[1].result, data)
    with zipfile.ZipFile(tmp_path / "kept.npz") as archive, zipfile.ZipFile(tmp_path / "p.cert.npz", "w") as forged:
        forged.writestr("0.cert.npz", archive.read("1.cert.npz"))
        forged.writestr("1.cert.npz", archive.read("0.cert.npz"))
    for M in (1, 2):
        report = mipfs.verify(SolutionPath.load(other)[M].result, data)
        assert not report.accepted
        assert "SHA-256" in report.reason
    (tmp_path / "p.cert.npz").write_bytes(b"no zip at all")
    assert not mipfs.verify(SolutionPath.load(other)[1].result, data).accepted


def test_a_file_whose_name_has_the_mark_is_a_file(tmp_path: Path) -> None:
    X, y = rare(positive=30, n=60, p=4)
    data = Instance.from_arrays(X, 2.0 * y - 1.0)
    result = mipfs.solve(mipfs.Problem(data, M=1, C=0.1))
    result.save(tmp_path / "a#b.json")
    assert documents.load(str(tmp_path / "a#b.json")).selected == result.selected
    with pytest.raises(UsageError, match="no such point"):
        found = mipfs.path(mipfs.Problem(data, C=0.1), M=[1])
        found.save(tmp_path / "p.json")
        documents.load(f"{tmp_path / 'p.json'}#M=1,M=1")
    assert np.array_equal(documents.load(f"{tmp_path / 'p.json'}#M=1").predict(X), found[1].result.predict(X))


def test_plus_minus_is_one_standard_error_and_says_so(cli: Cli, table: Path, tmp_path: Path) -> None:
    saved, page = tmp_path / "p.json", tmp_path / "p.html"
    done = cli("path", table, "--label", "y", "--M", "1:2", "--folds", "4", "--json", saved, "--report", page)
    found = SolutionPath.load(saved)
    best = found.best
    assert best is not None
    assert best.standard_error == pytest.approx(np.std(best.errors, ddof=1) / 2.0)
    said = f"± {best.standard_error:.4f}"
    assert f"{said}; ± is one standard error" in done.out
    assert "std error" in done.out
    assert "deviation" not in done.out
    assert f"{said}, one standard error" in page.read_text(encoding="utf-8")
    assert f"{said} std error" in repr(best)
    line = json.loads(saved.read_text(encoding="utf-8"))["points"][0]
    assert line["standard_error"] == pytest.approx(line["deviation"] / 2.0)
    assert found.to_frame()["standard_error"].tolist() == pytest.approx([p.standard_error for p in found.points])


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("schema", 7, "not a path of schema 1"),
        ("axis", "result", "'axis' cannot be \"result\""),
        ("axis", None, "'axis' cannot be null"),
        ("points", {}, "'points' cannot be {}"),
        ("points", [{"M": 1}], "it has no 'points[0].bound'"),
        ("points", [{"M": "one", "result": {}}], "'points[0].M' cannot be \"one\""),
        ("chosen", 9, "'chosen' is none of its points"),
        ("chosen", {"C": 1}, "it has no 'chosen.M'"),
        ("one_se", [1], "'one_se' cannot be [1]"),
        ("certificate", "p.cert.npz", "'certificate' cannot be"),
    ],
)
def test_what_is_odd_in_a_path_is_named(
    cli: Cli, tmp_path: Path, field: str, value: object, said: str, path_document: dict[str, object]
) -> None:
    """Of whatever a point is looked up by, in one line that names file and field."""
    table, odd = tmp_path / "table.csv", tmp_path / "odd.json"
    table.write_text("y,a\n1,2\n0,1\n", encoding="utf-8")
    odd.write_text(json.dumps(path_document | {field: value}), encoding="utf-8")
    for command in ("verify", "predict", "evaluate"):
        done = cli(command, f"{odd}#M=1", table)
        assert (done.code, done.err.count("\n")) == (2, 1)
        assert said in done.err
        assert "odd.json" in done.err


def test_a_point_without_a_result_is_named(cli: Cli, tmp_path: Path, path_document: dict[str, object]) -> None:
    table, odd = tmp_path / "table.csv", tmp_path / "odd.json"
    table.write_text("y,a\n1,2\n0,1\n", encoding="utf-8")
    odd.write_text(json.dumps(path_document | {"points": [{"M": 1, "result": {}}]}), encoding="utf-8")
    for command in ("predict", "evaluate"):
        done = cli(command, f"{odd}#M=1", table)
        assert (done.code, done.err.count("\n")) == (2, 1)
        assert "it has no 'points[0].bound'" in done.err
        assert "odd.json" in done.err
    assert cli("verify", f"{odd}#M=1", table).code == 2  # it stands alone, without certificates


@pytest.fixture(scope="module")
def path_document() -> dict[str, object]:
    X, y = rare(positive=30, n=60, p=4)
    found = mipfs.path(mipfs.Problem(Instance.from_arrays(X, 2.0 * y - 1.0), C=0.1), M=[1, 2])
    document: dict[str, object] = json.loads(found.to_json())
    return document
