"""Tables for a paper, and BibTeX."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer

import mipfs
from mipfs.cli.app import COMMANDS, app
from mipfs.errors import UsageError
from tests.cli.outcome import Cli

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def solved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    r = np.random.default_rng(1)
    X = r.normal(size=(60, 4))
    data = mipfs.Instance.from_arrays(X, np.where(X[:, 0] - X[:, 2] > 0, 1, -1), feature_names=["a_1", "b%", "c", "d"])
    path = tmp_path_factory.mktemp("table") / "r.json"
    mipfs.solve(mipfs.Problem(data, M=2, C=1.0), pool_size=4).save(path)
    return path


def test_weights_as_csv_and_latex(cli: Cli, solved: Path) -> None:
    result = mipfs.Result.load(solved)
    rows = [*csv.reader(io.StringIO(cli("table", solved).out))]
    assert rows[0] == ["feature", "weight"]
    found = {name: float(value) for name, value in rows[1:-1]}
    assert found == dict(result.weights)
    assert [*found] == sorted(found, key=lambda name: -abs(found[name]))
    assert rows[-1] == ["(intercept)", repr(result.intercept)]
    latex = cli("table", solved, "--latex").out
    assert latex.startswith("\\begin{tabular}{lr}\n\\toprule\nfeature & weight \\\\\n\\midrule\n")
    assert "a\\_1 & $" in latex
    assert result.to_latex() == latex
    assert result.to_frame()["weight"].tolist()[:-1] == [*found.values()]


def test_near_optimal_sets(cli: Cli, solved: Path, tmp_path: Path) -> None:
    result = mipfs.Result.load(solved)
    frame = result.to_frame("near-optimal")
    assert result.near_optimal is not None
    assert len(frame) == len(result.near_optimal["supports"]) == 4
    assert frame["objective"].is_monotonic_increasing
    assert frame["percent above the best"][0] == 0.0
    assert frame["features"][0] == ", ".join(result.near_optimal["supports"][0]["selected"])
    target = tmp_path / "list.tex"
    assert cli("table", solved, "--near-optimal", "-o", target, "--quiet").code == 0
    assert target.read_text() == result.to_latex("near-optimal")


def test_what_is_no_table_is_refused(cli: Cli, solved: Path, tmp_path: Path) -> None:
    assert "give such a name" in cli("table", solved, "-o", tmp_path / "a.txt").err
    assert "would hold CSV" in cli("table", solved, "--latex", "-o", tmp_path / "a.csv").err
    bare = mipfs.Result.load(solved)
    object.__setattr__(bare, "near_optimal", None)
    with pytest.raises(UsageError, match="--pool-gap"):
        bare.to_frame("near-optimal")


def test_bibtex_is_that_of_the_manual(cli: Cli, solved: Path) -> None:
    assert "cite" in COMMANDS
    text = cli("cite").out
    assert text.strip() in (ROOT / "docs" / "cite.md").read_text()
    assert f"version = {{{mipfs.__version__}}}" in text
    own = cli("cite", solved).out
    assert "@article{aytug2015" in own
    assert "mao2013" not in own


def test_tables_and_bibtex_as_json(cli: Cli, solved: Path, tmp_path: Path) -> None:
    result = mipfs.Result.load(solved)
    told = json.loads(cli("table", solved, "--json", "-").out)
    assert told["columns"] == ["feature", "weight"]
    assert {name: value for name, value in told["rows"][:-1]} == dict(result.weights)
    outcome = cli("table", solved, "-o", tmp_path / "w.csv", "--json", tmp_path / "w.json")
    assert (outcome.code, outcome.out) == (0, f"written to {tmp_path / 'w.csv'}\n")
    assert json.loads((tmp_path / "w.json").read_text()) == told
    assert cli("table", solved, "-o", tmp_path / "w.csv", "--json", tmp_path / "w.csv").code == 2
    assert cli("table", solved, "--json", solved).code == 2
    entries = json.loads(cli("cite", "--json", "-").out)["entries"]
    assert "\n\n".join(entries.values()) + "\n" == cli("cite").out


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_takes_json_quiet_and_seed(name: str) -> None:
    """As the contract with scripts has it."""
    group: Any = typer.main.get_command(app)
    taken = {option for param in group.get_command(None, name).params for option in param.opts}
    assert {"--json", "--quiet", "--seed"} <= taken
