"""A raw table on the command line: from the first refusal to predictions, and what a forged recipe gets."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.cli.outcome import Cli
from tests.readers.test_raw_table import cleaned, table

TYPES = "opened=date,income=currency,rate=percent,ratio=decimal comma"
RECIPE = ("--drop", "id", "--impute", "median,home=level", "--types", TYPES)
ASKED = ("--label", "bad", "--scale", "standard")


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    path = tmp_path / "raw.csv"
    path.write_text(table(120))
    return path


def test_from_a_raw_table_to_predictions(cli: Cli, raw: Path, tmp_path: Path) -> None:
    saved = tmp_path / "r.json"
    refused = cli("solve", "fsp-m", raw, *ASKED, "--M", "3")
    assert refused.code == 2
    assert "has no value" in refused.err
    assert "--impute median" in refused.err
    done = cli("solve", "fsp-m", raw, *ASKED, *RECIPE, "--M", "3", "--json", saved)
    assert done.code == 0, done.err
    assert not done.err  # nothing to warn of: the recipe says all
    checked = cli("verify", saved, raw)
    assert checked.code == 0, checked.err
    holes = int(pd.read_csv(raw, na_values=["?", "NA"]).isna().sum().sum())
    assert f"missing values: {holes} in 4 columns" in checked.out
    assert "columns left out by an option (drop): id" in checked.out
    assert "opened date" in checked.out
    new = tmp_path / "new.csv"
    new.write_text(table(30, seed=5).replace(",yes\n", ",\n"))  # new customers: how it ends is not known
    predicted = cli("predict", saved, new)
    assert predicted.code == 0, predicted.err
    said = json.loads(saved.read_text())
    clean = cleaned(new.read_text()).fillna({k: v for k, v in said["read"]["recipe"]["filled"].items() if k != "home"})
    score = np.full(30, said["intercept"])
    for name, weight in said["weights"].items():
        column, _, word = name.partition("=")
        score += weight * ((clean[column] == word) if word else clean[column]).to_numpy(dtype=float)
    assert predicted.out.split() == ["yes" if s > 0 else "no" for s in score]
    assert "differs" not in checked.out
    (tmp_path / "raw.toml").write_text('[data]\nimpute = "most frequent"\n')
    said_ = (
        "the data asks for impute = {'*': 'most frequent'}; the result was found with {'*': 'median', 'home': 'level'}"
    )
    assert said_ in cli("verify", saved, raw).out
    (tmp_path / "raw.toml").unlink()
    other = tmp_path / "other.csv"
    other.write_text(table(30, seed=5))
    assert cli("evaluate", saved, other).code == 0
    assert cli("verify", saved, other).code == 1


def test_an_option_that_is_given_again_adds_to_what_was_given(cli: Cli, raw: Path, tmp_path: Path) -> None:
    once, again = tmp_path / "once.json", tmp_path / "again.json"
    assert cli("solve", "fsp-m", raw, *ASKED, *RECIPE, "--M", "2", "--json", once).code == 0
    one_by_one = [text for kind in TYPES.split(",") for text in ("--types", kind)]
    recipe = ("--drop", "id", "--impute", "median", "--impute", "home=level", *one_by_one)
    assert cli("solve", "fsp-m", raw, *ASKED, *recipe, "--M", "2", "--json", again).code == 0
    assert json.loads(once.read_text())["read"] == json.loads(again.read_text())["read"]


def test_the_other_commands_take_a_recipe(cli: Cli, raw: Path, tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    done = cli("path", raw, *ASKED, *RECIPE, "--M", "1:2", "-p", "C=0.1", "--folds", "3", "--json", path)
    assert done.code == 0, done.err
    assert cli("verify", f"{path}#best", raw).code == 0
    assert cli("compare", raw, *ASKED, *RECIPE, "--M", "2", "--C", "0.1", "--rungs", "plain,exact").code == 0
    asked = ("--methods", "fsp-m", "--M", "2", "--folds", "2", "--C", "0.1")
    assert cli("bench", raw, *ASKED, *RECIPE, *asked, "--json", tmp_path / "b.json").code == 0


FORGED: list[tuple[str, Callable[[dict[str, Any]], object], str]] = [
    ("filled", lambda r: r["filled"].update(age=r["filled"]["age"] + 1), "what stands for missing values of 'age'"),
    ("word", lambda r: r["filled"].update(home="own"), "what stands for missing values of 'home'"),
    ("kind", lambda r: r["filled"].update(age=str(r["filled"]["age"])), "what stands for missing values of 'age'"),
    ("missing", lambda r: r["missing"].update(age=1), "how many values were missing of 'age'"),
    ("none", lambda r: r["missing"].clear(), "how many values were missing of"),
    ("drop", lambda r: r["drop"].append("late"), "other data"),
    ("use", lambda r: r.update(use=["age", "late"]), "other data"),
    ("impute", lambda r: r["impute"].update({"*": "most frequent"}), "other data"),
    ("level", lambda r: r["impute"].pop("home"), "other data"),
    ("stranger", lambda r: r.update(clip=1), "'clip' is stated, which this checker does not know"),
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("edit", "reason"), [one[1:] for one in FORGED], ids=[one[0] for one in FORGED])
def test_a_forged_recipe_is_refused(cli: Cli, raw: Path, tmp_path: Path, edit: Any, reason: str) -> None:
    saved = tmp_path / "r.json"
    assert cli("solve", "fsp-m", raw, *ASKED, *RECIPE, "--M", "3", "--json", saved).code == 0
    document = json.loads(saved.read_text())
    edit(document["read"]["recipe"])
    saved.write_text(json.dumps(document))
    found = cli("verify", saved, raw)
    assert found.code == 1, found.out
    assert reason in found.err
    assert len(found.err.splitlines()) == 1


def test_a_result_without_its_recipe_and_one_with_a_recipe_that_never_was(cli: Cli, raw: Path, tmp_path: Path) -> None:
    saved = tmp_path / "r.json"
    plain = tmp_path / "plain.csv"
    plain.write_text("x,z,label\n1,5,0\n2,4,1\n3,1,1\n0,2,0\n")
    assert cli("solve", "fsp-m", plain, "--M", "1", "--json", saved).code == 0
    document = json.loads(saved.read_text())
    empty = {"drop": [], "use": None, "impute": {}, "types": {}, "filled": {}, "missing": {}}
    document["read"]["recipe"] = empty | {"filled": {"x": 7.0}}
    saved.write_text(json.dumps(document))
    found = cli("verify", saved, plain)
    assert found.code == 1
    assert "the result states how a table was prepared, and the data was not" in found.err
    document["read"]["recipe"] = {"drop": "all"}
    saved.write_text(json.dumps(document))
    assert cli("verify", saved, plain).code == 2  # not a complete result


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--impute", "mean"), "impute is 'mean'; it is one of 'median', 'most frequent', 'level'"),
        (("--impute", "age="), "--impute age=: write NAME=median"),
        (("--impute", "median,level"), "--impute median,level: a kind for all columns is given twice"),
        (("--types", "age=percent", "--types", "age=date"), "--types age=percent,age=date: age is given twice"),
        (("--types", "income"), "--types income: write NAME=currency"),
        (("--types", "income=euro"), "types of 'income' is 'euro'; it is one of"),
        (("--drop", "incme"), "drop names the column 'incme', which is not there; did you mean 'income'?"),
        (("--use", "age", "--drop", "age"), "drop and use both name 'age'"),
    ],
)
def test_bad_recipes_in_one_line(cli: Cli, raw: Path, options: tuple[str, ...], message: str) -> None:
    found = cli("solve", "fsp-m", raw, *ASKED, "--M", "2", *options)
    assert found.code == 2
    assert message in found.err
    assert len(found.err.splitlines()) == 1


@pytest.mark.slow
def test_probabilities_on_the_command_line(cli: Cli, raw: Path, tmp_path: Path) -> None:
    saved = tmp_path / "r.json"
    asked = ("solve", "fsp-m", raw, *ASKED, *RECIPE, "--M", "2", "--json", saved)
    assert cli(*asked).code == 0
    refused = cli("predict", saved, raw, "--probability")
    assert refused.code == 2
    assert "the loss 'hinge' says no probabilities: solve with --calibrate 5" in refused.err
    assert "Brier" not in cli("evaluate", saved, raw).out
    assert cli(*asked, "--calibrate", "200").code == 2
    limited = cli(*asked, "--calibrate", "3", "--time-limit", "30")
    assert "note: calibrating on 3 folds, at most" in limited.err
    assert "what the solve left of --time-limit" in limited.err
    assert cli(*asked, "--calibrate", "3").code == 0
    printed = cli("predict", saved, raw, "--probability", "--scores")
    lines = printed.out.splitlines()
    assert lines[0] == "label,score,probability of yes"
    table_ = [line.split(",") for line in lines[1:]]
    assert all((label == "yes") == (float(score) > 0) for label, score, _ in table_)
    order = np.argsort([float(score) for _, score, _ in table_])
    assert np.all(np.diff(np.array([float(p) for *_, p in table_])[order]) >= 0)
    assert cli("predict", saved, raw).out.split() == [label for label, *_ in table_]
    document = json.loads(cli("predict", saved, raw, "--probability", "--json", "-").out)
    assert document["probabilities"] == [float(p) for *_, p in table_]
    shown = cli("evaluate", saved, raw).out
    for name in ("area under ROC", "average precision", "Brier score"):
        assert name in shown
    checked = cli("verify", saved, raw)
    assert checked.code == 0
    assert "the probabilities, which are estimated" in checked.out
    logistic = ("solve", "fsp-m", raw, *ASKED, *RECIPE, "--M", "2", "-p", "loss=logistic", "--json", saved)
    assert cli(*logistic).code == 0
    assert cli("predict", saved, raw, "--probability").code == 0


def test_stability_on_the_command_line(cli: Cli, raw: Path, tmp_path: Path) -> None:
    saved, page = tmp_path / "s.json", tmp_path / "s.html"
    asked = ("stability", raw, *ASKED, *RECIPE, "--M", "2", "--C", "0.1")
    done = cli(*asked, "--draws", "4", "--json", saved, "--report", page)
    assert done.code == 0, done.err
    assert "How often a draw selects it" in done.out
    document = json.loads(saved.read_text())
    assert document["draws"] == 4
    assert document["params"]["M"] == 2
    assert "How often a draw selects it" in page.read_text()
    for options, message in ((("--draws", "1"), "draws = 1"), (("--share", "2"), "share = 2"), (("-p", "x=1"), "'x'")):
        refused = cli(*asked, *options)
        assert refused.code == 2
        assert message in refused.err
        assert len(refused.err.splitlines()) == 1


def test_a_quantity_as_a_label_is_pointed_out(cli: Cli, tmp_path: Path) -> None:
    rows = [f"{i % 3},{(7 * i) % 5},{100 + i // 2}" for i in range(12)]
    (tmp_path / "q.csv").write_text("\n".join(["a,b,price", *rows, ""]))
    asked = ("solve", "fsp-m", tmp_path / "q.csv", "--label", "price", "--M", "1", "--C", "1")
    assert "6 different labels in 12 rows" not in cli(*asked).err  # half of them
    (tmp_path / "q.csv").write_text("\n".join(["a,b,price", *rows[:-1], "1,2,200", ""]))
    outcome = cli(*asked)
    assert outcome.code == 0
    assert "7 different labels in 12 rows" in outcome.err
    assert "different labels" not in cli(*asked, "--no-checks").err


def test_a_group_of_a_dropped_column_is_told_so(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "g.csv").write_text("a,b,c,label\n1,2,3,1\n2,1,0,-1\n0,1,1,1\n2,2,0,-1\n")
    (tmp_path / "g.toml").write_text('[data]\nlabel = "label"\n[groups]\nfirst = ["a", "b"]\n')
    outcome = cli("solve", "fsp-m", tmp_path / "g.csv", "--M", "1", "--drop", "a", "--quiet")
    assert outcome.code == 2
    assert "g.toml:4: [groups] no feature is called 'a'; that column is dropped; take it out here" in outcome.err
