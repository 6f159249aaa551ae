"""Columns of words selected whole on the command line: M counts columns in `path`, `compare` and `stability`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import mipfs
from mipfs.cli import main
from tests import two_checkers

ROOT = Path(__file__).resolve().parents[2]
ASKED = ["--label", "repaid", "--scale", "standard", "-p", "atoms=groups", "--no-checks", "--quiet"]


@pytest.fixture
def credit(tmp_path: Path) -> Path:
    """The table without its description, which has rows about single words."""
    shutil.copy(ROOT / "instances" / "credit.csv", tmp_path / "credit.csv")
    return tmp_path / "credit.csv"


@pytest.mark.slow
def test_a_path_counts_columns_and_both_checkers_accept_it(credit: Path, tmp_path: Path) -> None:
    saved, second = tmp_path / "p.json", two_checkers.second()
    assert main(["path", str(credit), "--M", "1:3", "-p", "C=0.1", "--folds", "3", *ASKED, "--json", str(saved)]) == 0
    points = json.loads(saved.read_text(encoding="utf-8"))["points"]
    data = mipfs.read(credit, label="repaid", scale="standard", checks=False)
    atoms = mipfs.atoms.make("groups", data)
    assert "housing" in atoms.names
    assert len(atoms.names) == data.n_features - 2
    for M, point in zip((1, 2, 3), points, strict=True):
        own = mipfs.solve(mipfs.Problem(data, M=M, C=0.1, atoms=atoms))
        assert point["result"]["objective"] == pytest.approx(own.objective, rel=2e-4)
        assert len(point["result"]["selected"]) <= M
    assert main(["verify", str(saved), str(credit), "--quiet"]) == 0
    assert second.verdict_of(lambda: second.judge(saved, credit))[0] == "accepted"


def test_a_column_that_says_all_is_selected_whole(tmp_path: Path) -> None:
    rows = [f"{(k * 7) % 11},{'abcd'[k % 4]},{'yes' if k % 4 in (1, 2) else 'no'}\n" for k in range(40)]
    data = tmp_path / "t.csv"
    data.write_text("x,home,label\n" + "".join(rows), encoding="utf-8")
    for command, more in (
        ("path", ["--M", "1:2", "-p", "C=1"]),
        ("stability", ["--M", "1", "--C", "1", "--draws", "3"]),
    ):
        saved = tmp_path / f"{command}.json"
        asked = ["-p", "atoms=groups", "--no-checks", "--quiet", "--json", str(saved)]
        assert main([command, str(data), *more, *asked]) == 0
        document: Any = json.loads(saved.read_text(encoding="utf-8"))
        if command == "path":
            assert document["points"][0]["result"]["selected"] == ["home"]
        else:
            assert '"home"' in saved.read_text(encoding="utf-8")


def test_a_ladder_of_columns(credit: Path, tmp_path: Path) -> None:
    saved = tmp_path / "c.json"
    assert main(["compare", str(credit), "--M", "2", "--C", "0.1", *ASKED, "--json", str(saved)]) == 0
    ladder = {rung["name"]: rung["value"] for rung in json.loads(saved.read_text(encoding="utf-8"))["ladder"]}
    assert ladder["plain"] <= ladder["boolean"] * (1 + 1e-6)
    assert ladder["boolean"] <= ladder["exact"] * (1 + 1e-6)


def test_other_atoms_are_refused(credit: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["path", str(credit), "--label", "repaid", "--M", "1:2", "-p", "C=1", "-p", "atoms=pairs"]) == 2
    assert "a study selects features, or atoms=groups" in capsys.readouterr().err
