"""Columns of words selected whole on the command line: M counts columns in `path`, `compare` and `stability`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
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


def test_rows_of_an_lp_file_are_over_what_is_selected_by_its_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Atoms list groups first, so that a row by the position of a feature was about another one."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    y = np.where(2.0 * X[:, 0] - X[:, 1] + 0.3 * rng.normal(size=40) > 0.0, 1, -1)
    lines = [f"{a:.4f},{b:.4f},{'YN'[k % 2]},{c}" for k, ((a, b), c) in enumerate(zip(X.tolist(), y, strict=True))]
    table, rows = tmp_path / "loan.csv", tmp_path / "r.lp"
    table.write_text("\n".join(["income,debt,phone,label", *lines]), encoding="utf-8")
    (tmp_path / "loan.toml").write_text('[select]\nwords = "groups"\nM = 2\n', encoding="utf-8")
    data = mipfs.read(table)
    problem = mipfs.Problem(data, C=1.0)
    assert problem.atoms.names == ("phone", "income", "debt")
    saved = tmp_path / "r.json"
    for name, terms, row in (("income", "income", [0, 1, 0]), ("x1", "x1", [0, 1, 0]), ("phone", "phone", [1, 0, 0])):
        rows.write_text(f"subject to\n c: {terms} <= 0\nend\n", encoding="utf-8")
        asked = ["--subject-to", str(rows), "--quiet"]
        for command in (["solve", "fsp-m"], ["path", "--rows", str(rows)]):
            given = asked if command[0] == "solve" else ["--quiet"]
            assert main([*command, str(table), "-p", "C=1", "--json", str(saved), *given]) == 0
            document = json.loads(saved.read_text(encoding="utf-8"))
            found = document if command[0] == "solve" else document["points"][-1]["result"]
            wanted = mipfs.solve(problem.with_rows([row], 0.0, 0.0, ["c"]))
            assert found["objective"] == pytest.approx(wanted.objective, rel=2e-4), name
            assert found["rows"][0]["terms"] == {"income" if name == "x1" else name: 1.0}
            assert main(["verify", str(saved), str(table), *given]) == 0
    own = problem.with_rows([[1, 0, 0]], 0.0, 0.0, ["c"])
    assert mipfs.verify(mipfs.solve(own), data, own.rows).accepted
    for terms, message in (("x3", "no atom is called 'x3'"), ("phone_Y", "no atom is called 'phone_Y'")):
        rows.write_text(f"subject to\n c: {terms} <= 0\nend\n", encoding="utf-8")
        assert main(["solve", "fsp-m", str(table), "-p", "C=1", "--subject-to", str(rows)]) == 2
        assert message in capsys.readouterr().err
    assert main(["solve", "fsp-m", str(table), "-p", "atoms=pairs", "-p", "C=1", "--subject-to", str(rows)]) == 2
    assert "rows are over features or groups, and products of features are selected" in capsys.readouterr().err


def test_rows_of_an_lp_file_are_over_the_nodes_of_a_tree_too(tmp_path: Path) -> None:
    """Its leaves are the features, in their order, and its nodes are called as the groups."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(30, 4)).round(4)
    y = np.where(X @ [1.0, 0.8, -0.5, 0.3] > 0.0, 1, -1)
    table, rows, saved = tmp_path / "d.csv", tmp_path / "r.lp", tmp_path / "r.json"
    lines = [",".join(map(str, [*x, c])) for x, c in zip(X.tolist(), y.tolist(), strict=True)]
    table.write_text("\n".join(["a,b,c,d,label", *lines]), encoding="utf-8")
    (tmp_path / "d.toml").write_text('[groups]\nab = ["a", "b"]\ncd = ["c", "d"]\n', encoding="utf-8")
    rows.write_text("subject to\n r: ab + x3 <= 0\nend\n", encoding="utf-8")
    asked = ["--subject-to", str(rows), "--quiet"]
    params = ["-p", "M=2", "-p", "C=1", "-p", "atoms=tree", "--json", str(saved)]
    assert main(["solve", "fsp-m", str(table), *params, *asked]) == 0
    found = json.loads(saved.read_text(encoding="utf-8"))
    problem = mipfs.Problem(mipfs.read(table), M=2, C=1.0, atoms="tree")  # type: ignore[arg-type]
    assert problem.atoms.names == ("a", "b", "c", "d", "ab", "cd")
    wanted = mipfs.solve(problem.with_rows([[0, 0, 1, 0, 1, 0]], -np.inf, 0.0, ["r"]))
    assert found["objective"] == pytest.approx(wanted.objective, rel=2e-4)
    assert found["rows"][0]["terms"] == {"c": 1.0, "ab": 1.0}
    assert main(["verify", str(saved), str(table), *asked]) == 0


def test_what_restricts_the_problem_is_refused_twice(credit: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The first file of rows was passed over, and not even read."""
    for option in ("--subject-to", "--weight-rows", "--nonnegative", "--nonpositive"):
        assert main(["solve", "fsp-m", str(credit), option, "1", option, "1"]) == 2
        assert f"{option} is given twice, and takes one value; give it once" in capsys.readouterr().err
    assert main(["solve", "fsp-m", str(credit), "-p", "M=1", "-p", "C=0.1", *ASKED, "--quiet", "--no-checks"]) == 0
