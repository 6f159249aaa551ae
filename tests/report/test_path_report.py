"""What a path says of itself: one line, a report, HTML, a data frame."""

from __future__ import annotations

import dataclasses
import re
import sys
from pathlib import Path

import pytest

import mipfs
from mipfs.cli import main
from mipfs.errors import UsageError
from mipfs.lab.studies.solution_path import SolutionPath
from tests.html_tree import Tree

WDBC = Path(__file__).resolve().parents[2] / "instances" / "wdbc.svm"
DATA = mipfs.read(WDBC, scale="standard")


@pytest.fixture(scope="module")
def path() -> SolutionPath:
    return mipfs.path(mipfs.Problem(DATA, C=0.01), M=[1, 2], folds=3)


def without_seconds(text: str) -> str:
    return re.sub(r" +", " ", re.sub(r"\d+\.\d\d\b(?!\d)", "s", text))


def test_a_line(path: SolutionPath) -> None:
    for line in (repr(path), repr(path[2])):
        assert "\n" not in line
        assert len(line) <= 120
    assert "along M, 2 points, chosen 2, branch" in repr(path)
    assert "interrupted" in repr(dataclasses.replace(path, interrupted=True, points=path.points[:1]))
    assert "M = 2: OPTIMAL" in repr(path[2])
    assert f"{path[2].objective:.8g}" in repr(path[2])


def test_the_summary_is_the_report_of_the_command_line(path: SolutionPath, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["path", str(WDBC), "--scale", "standard", "-p", "C=0.01", "--M", "1:2", "--folds", "3"]
    assert main(asked) == 0
    assert without_seconds(capsys.readouterr().out) == without_seconds(path.summary()) + "\n"
    assert "chosen by 3 folds: M = 2" in path.summary()


def test_html_shows_the_same_and_escapes_names(path: SolutionPath) -> None:
    strange = dataclasses.replace(path.points[0].result, selected=("<b>&",))
    shown = dataclasses.replace(path, points=(dataclasses.replace(path.points[0], result=strange),), chosen=None)
    text = shown._repr_html_()
    assert "&lt;b&gt;&amp;" in text
    assert "<b>&" not in text
    said = " ".join(Tree(path._repr_html_()).texts)
    assert not Tree(text).wrong
    for words in ("Objective and bound along M", "Which features are selected where", "chosen by 3 folds"):
        assert words in said


def test_a_frame_is_the_table(path: SolutionPath) -> None:
    frame = path.to_frame()
    assert list(frame.index) == [1, 2]
    assert frame.index.name == "M"
    assert frame.loc[2, "objective"] == path[2].objective
    assert frame.loc[1, "selected"] == path[1].selected
    assert frame["error"].idxmin() == path.least_error
    assert frame["seconds_saved"].isna().all()
    both = mipfs.path(mipfs.Problem(DATA), C=[0.01, 0.02], M=[1, 2]).to_frame()
    assert both.index.names == ["C", "M"]
    assert len(both) == 4
    assert both["error"].isna().all()
    assert both.loc[(0.02, 2), "bound"] <= both.loc[(0.02, 2), "objective"]
    assert dataclasses.replace(path, points=()).to_frame().empty


def test_without_pandas_there_is_no_frame(path: SolutionPath, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UsageError, match="needs pandas"):
        path.to_frame()
