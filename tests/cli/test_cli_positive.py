"""Which class is +1: decided once, said, stored, and chosen by --positive; --M and --C; files that are no states."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import mipfs
from mipfs.errors import DataError
from mipfs.readers import read
from tests.cli.outcome import Cli


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Some loans are bad: fewer than are good, and the first in the order of words."""
    r = np.random.default_rng(0)
    X = r.standard_normal((60, 3))
    words = np.where(X[:, 0] + 0.2 * r.standard_normal(60) > 0.6, "bad", "good")
    lines = [f"{a:.4f},{b:.4f},{c:.4f},{word}" for (a, b, c), word in zip(X, words, strict=True)]
    path = tmp_path / "loans.csv"
    path.write_text("\n".join(["a,b,c,outcome", *lines]) + "\n", encoding="utf-8")
    return path


def test_the_positive_class_is_said_stored_and_chosen(cli: Cli, table: Path, tmp_path: Path) -> None:
    saved = tmp_path / "r.json"
    solve = ("solve", "fsp-m", table, "--label", "outcome", "--M", "1", "--C", "1", "--json", saved)
    done = cli(*solve)
    assert done.code == 0, done.err
    assert "weights above 0 speak for bad, below 0 for good" in done.out
    document = json.loads(saved.read_text(encoding="utf-8"))
    assert document["labels"] == {"negative": "good", "positive": "bad"}
    assert (document["params"]["M"], document["params"]["C"]) == (1, 1.0)
    assert document["weights"]["a"] > 0
    assert cli("verify", saved, table).code == 0
    own = json.loads(cli("evaluate", saved, table, "--json", "-").out)
    other = json.loads(cli("evaluate", saved, table, "--positive", "good", "--json", "-").out)
    assert own["labels"]["positive"] == other["labels"]["negative"] == "bad"
    assert own["confusion"]["true_positive"] == other["confusion"]["true_negative"]
    assert own["accuracy"] == other["accuracy"]
    assert "is not one of the labels" in cli("evaluate", saved, table, "--positive", "ugly").err
    turned = cli(*solve, "--positive", "good")
    assert "weights above 0 speak for good, below 0 for bad" in turned.out
    assert json.loads(saved.read_text(encoding="utf-8"))["weights"]["a"] < 0
    assert cli("verify", saved, table).code == 0  # the result knows its classes


@pytest.mark.slow
def test_a_store_and_a_data_frame_decide_as_the_file_does(table: Path, tmp_path: Path) -> None:
    from mipfs.convert import convert

    for change in ({}, {"bad": "zz", "good": "aa"}, {"bad": "aa", "good": "zz"}, {"bad": "no", "good": "yes"}):
        frame = pd.read_csv(table).replace({"outcome": change})
        path = tmp_path / "t.csv"
        frame.to_csv(path, index=False)
        labels = read(path, label="outcome", scale="none").labels
        assert labels.positive == ("yes" if "yes" in change.values() else change.get("bad", "bad"))
        assert read(frame, label="outcome", scale="none").labels == labels
        store = convert(path, tmp_path / f"store{len(str(change))}{labels.positive}", label="outcome")
        assert read(store, scale="none").labels == labels


def test_misleading_messages(cli: Cli, table: Path, tmp_path: Path) -> None:
    saved = tmp_path / "r.json"
    solve = ("solve", "fsp-m", table, "--label", "outcome", "-p", "M=1")
    assert cli(*solve, "--json", saved).code == 0
    assert (
        "this is no state of a run; give the file that checkpoint= or --checkpoint"
        in cli(*solve, "--resume", saved).err
    )
    assert "M was given twice" in cli(*solve, "--M", "2").err
    assert "M must be a whole number" in cli("solve", "fsp-m", table, "--label", "outcome", "--M", "1:3").err
    (tmp_path / "both.lp").write_text("Subject To\n r: a + b <= c\nEnd\n", encoding="utf-8")
    assert "variables stand on the left" in cli(*solve, "--subject-to", tmp_path / "both.lp").err
    frame = pd.read_csv(table)
    frame.loc[18, "b"] = np.nan
    with pytest.raises(DataError, match="column 'b' has no value at index 18"):
        mipfs.read(frame, label="outcome")


@pytest.mark.slow
def test_what_monolithic_proves_is_no_negative_number(cli: Cli, table: Path, tmp_path: Path) -> None:
    saved = tmp_path / "r.json"
    solve = ("solve", "fsp-m", table, "--label", "outcome", "--M", "2", "--C", "1", "--driver", "monolithic")
    assert cli(*solve, "--json", saved).code == 0
    said = cli("verify", saved, table).err
    assert "-1e-3" not in said
    assert "shows -" not in said


def test_a_name_with_a_comma_and_a_file_that_is_replaced(cli: Cli, tmp_path: Path) -> None:
    r = np.random.default_rng(0)
    X = r.normal(size=(40, 2))
    table, saved = tmp_path / "a.csv", tmp_path / "r.json"
    pd.DataFrame(X, columns=["a, b", "c"]).assign(label=(X[:, 0] < 0).astype(int)).to_csv(table, index=False)
    solve = ("solve", "fsp-m", table, "--M", "1", "--C", "1", "--no-checks", "--json", saved)
    for names in ("a, b", '"a, b",c'):
        done = cli(*solve, "--nonnegative", names)
        assert done.code == 0, done.err
        bounds = json.loads(saved.read_text(encoding="utf-8"))["params"]["weight_bounds"]
        assert bounds["a, b"] == [0.0, None]
    assert "\nwhat stood there is replaced\n" in done.out
    done = cli(*solve, "--nonnegative", "a, b,c")
    assert done.code == 2
    assert "double quotes" in done.err
