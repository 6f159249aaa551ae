"""Tables cut as banks cut them: a reader of the page alone has the program's totals, and the choice is proven."""

from __future__ import annotations

import csv
import html
import itertools
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest

import mipfs
from mipfs.cli import main
from mipfs.cli.bins import bins
from mipfs.errors import DataWarning, UsageError
from tests.certificate.test_second_reading import judged
from tests.oracles import svm_value

CODES = {"-9", "999"}


def table(file: Path, seed: int, n: int = 70, label: bool = True) -> list[dict[str, str]]:
    """A raw table with missing cells, special codes below and above the numbers, a flag and words."""
    r = np.random.default_rng(seed)
    income, age, late = np.round(r.lognormal(3.5, 0.5, n), 1), r.integers(18, 80, n), r.integers(0, 2, n)
    lean = 0.04 * (income - 35) + 0.03 * (age - 45) - 1.5 * late + r.normal(0, 0.7, n)
    rows = []
    for i in range(n):
        row = {"income": str(income[i]), "age": str(age[i]), "late": str(late[i]), "home": "own" if i % 3 else "rent"}
        if r.random() < 0.15:
            row["income"], lean[i] = r.choice(["", "NA"]), lean[i] - 1.0
        elif r.random() < 0.15:
            row["income"], lean[i] = r.choice(["-9", "999"]), lean[i] + 1.0
        rows.append(row | ({"risk": "good" if lean[i] > 0 else "bad"} if label else {}))
    with file.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, [*rows[0]])
        writer.writeheader()
        writer.writerows(rows)
    return rows


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict[str, str]]]:
    """A card of a cut table, its page, and new rows; what was written stands in the folder."""
    folder = tmp_path_factory.mktemp("bins")
    table(folder / "t.csv", 0)
    names = {name: str(folder / name) for name in ("t.csv", "b.csv", "b.lp", "r.json", "card.json", "card.html")}
    asked = ["--thresholds", "3", "--special", "income=-9,999,-7", "--features", "3", "--each", "1", "--label", "risk"]
    assert main(["bins", names["t.csv"], "-o", names["b.csv"], *asked, "-q"]) == 0
    problem = ["-p", "M=6", "-p", "C=1", "-p", "loss=logistic", "--subject-to", names["b.lp"], "--positive", "good"]
    assert main(["solve", "fsp-m", names["b.csv"], *problem, "--json", names["r.json"], "-q"]) == 0
    card = ["--json", names["card.json"], "--report", names["card.html"], "-q"]
    assert main(["scorecard", names["r.json"], names["b.csv"], *card]) == 0
    return folder, table(folder / "new.csv", 1, 60, label=False)


def cells(page: str) -> list[list[str]]:
    """The rows of all tables of a page."""
    rows = re.findall(r"<tr>(.*?)</tr>", page, re.DOTALL)
    found = ([re.sub(r"<[^>]+>", "", one) for one in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row)] for row in rows)
    return [[html.unescape(one).strip() for one in row] for row in found]


def holds(feature: str, row: dict[str, str]) -> bool:
    """Whether a line of the card holds for the raw cells of a row, as a person reads it."""
    if "=" in feature:
        name, _, word = feature.partition("=")
        return row[name] == word
    name, verb, rest = re.fullmatch(r"(\w+) (from|is) (.*)", feature).groups()  # type: ignore[union-attr]
    cell = "missing" if row[name] in ("", "NA") else row[name]
    if verb == "is":
        return cell == rest
    at, _, codes = rest.partition(" but not ")
    return cell != "missing" and cell not in codes.split(" or ") and float(cell) >= float(at)


def test_a_reader_of_the_page_has_the_programs_totals(
    made: tuple[Path, list[dict[str, str]]], capsys: pytest.CaptureFixture[str]
) -> None:
    folder, rows = made
    assert {"", "NA"} & {row["income"] for row in rows}
    assert {row["income"] for row in rows} >= CODES
    new, card = str(folder / "new_b.csv"), str(folder / "card.json")
    assert main(["bins", str(folder / "new.csv"), "-o", new, "--like", str(folder / "b.bins.json"), "-q"]) == 0
    capsys.readouterr()
    assert main(["predict", card, new, "--scores"]) == 0
    totals = [float(line.split(",")[1]) for line in capsys.readouterr().out.strip().splitlines()[1:]]
    page = (folder / "card.html").read_text()
    lines = [(row[0], int(row[2])) for row in cells(page) if len(row) == 3 and row[1] == "is 1"]
    assert [one["feature"] for one in json.loads((folder / "card.json").read_text())["card"]] == [a for a, _ in lines]
    by_hand = [sum(points for feature, points in lines if holds(feature, row)) for row in rows]
    assert by_hand == totals
    assert len({*by_hand}) > 3
    assert "a missing cell or a special code counts in its own line alone" in page


def test_both_checkers_take_the_card_and_the_choice(made: tuple[Path, list[dict[str, str]]]) -> None:
    folder, _ = made
    word, said = judged(folder / "card.json", folder / "b.csv")
    assert word == "accepted", said
    asked = ["--subject-to", str(folder / "b.lp"), "-q"]
    assert main(["verify", str(folder / "card.json"), str(folder / "b.csv"), *asked]) == 0


@pytest.mark.parametrize("seed", [3, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(10, 40))])
def test_the_choice_of_thresholds_is_the_best_of_all(
    tmp_path: Path, seed: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """At most one column and two thresholds of it, a column of words among them: every choice by enumeration."""
    table(tmp_path / "t.csv", seed, 40)
    cut, rows, result = (str(tmp_path / name) for name in ("b.csv", "b.lp", "r.json"))
    asked = ["--thresholds", "3", "--special", "-9,999", "--features", "1", "--each", "2", "--label", "risk", "-q"]
    assert main(["bins", str(tmp_path / "t.csv"), "-o", cut, *asked, "--json", "-"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["written"] == [cut, *(str(Path(cut).with_suffix(end)) for end in (".bins.json", ".toml", ".lp"))]
    options = ["-p", "M=4", "-p", "C=1", "--gap", "1e-7", "--subject-to", rows, "--positive", "good", "-q"]
    assert main(["solve", "fsp-m", cut, *options, "--json", result]) == 0
    with open(cut, newline="") as stream:
        held = [*csv.DictReader(stream)]
    y = np.array([1.0 if row["risk"] == "good" else -1.0 for row in held])
    columns: dict[str, Any] = {name: np.array([float(row[name]) for row in held]) for name in held[0] if " " in name}
    words = {"home=rent": np.array([float(row["home"] == "rent") for row in held])}
    sets = []
    for name in ("income", "age", "late"):
        steps = [one for one in columns if one.startswith(f"{name} from")]
        others = [one for one in columns if one.startswith(f"{name} is")]
        for k in (0, 1, 2):
            # one more column is never worse, but M holds the sum
            sets += [(*chosen, *others) for chosen in itertools.combinations(steps, k)]
    columns |= words
    c = np.ones(y.size)
    values = []
    for names in [*filter(None, sets), ("home=rent",)]:
        for kept in itertools.combinations(names, min(4, len(names))):
            Z = np.column_stack([columns[name] for name in kept])
            values.append(svm_value(Z, y, c, True, "hinge").upper)
    assert json.loads(Path(result).read_text())["objective"] == pytest.approx(min(values), rel=1e-5)


def test_cells_that_are_nothing_and_bad_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table(tmp_path / "t.csv", 0)
    cut, other = str(tmp_path / "b.csv"), tmp_path / "o.csv"
    assert (
        main(["bins", str(tmp_path / "t.csv"), "-o", cut, "--label", "risk", "--special", "income=-9,999", "-q"]) == 0
    )
    like = ["--like", str(tmp_path / "b.bins.json"), "-q"]
    for age, said in (("", "missing, and no cell was in training; "), ("old", "'old', which is no number; ")):
        other.write_text(f'income,age,late,home\n\n3,40,0,"o\nn"\n3,{age},0,own\n')
        assert main(["bins", str(other), "-o", str(tmp_path / "x.csv"), *like]) == 2
        assert capsys.readouterr().err.startswith(f"mipfs: error: {other}:5: 'age' is {said}")
    other.write_text("# of March\nincome,late,home\n3,0,own\n")
    assert main(["bins", str(other), "-o", str(tmp_path / "x.csv"), *like]) == 2
    assert capsys.readouterr().err.startswith(f"mipfs: error: {other}:2: the table has no column 'age'; ")
    other.write_text("{}")
    assert main(["bins", str(tmp_path / "t.csv"), "-o", str(tmp_path / "x.csv"), "--like", str(other)]) == 2
    other.write_text("2nd,word,risk\n3,a,0\n4,b,1\n")
    for lone, said in (
        ("2nd,word,risk\n3,a,0\n4,b,1\n", "begins with a digit"),
        ("word,risk\na,0\nb,1\n", "of numbers"),
    ):
        other.write_text(lone)
        assert main(["bins", str(other), "-o", cut, "--label", "risk", "--features", "1"]) == 2
        assert said in capsys.readouterr().err
    for more, said in (
        (["--label", "no"], "no column is called 'no'"),
        (["--label", "risk", "--special", "income=a"], "codes are numbers"),
        (["--label", "risk", "--special", "size=1"], "no column of numbers"),
        (["--label", "risk", "--thresholds", "0"], "whole number from 1"),
    ):
        assert main(["bins", str(tmp_path / "t.csv"), "-o", cut, *more]) == 2
        assert said in capsys.readouterr().err
    for more in (["--thresholds", "8"], ["--label", "risk"], ["--each", "1"], ["--positive", "good"]):
        assert main(["bins", str(tmp_path / "t.csv"), "-o", str(tmp_path / "x.csv"), *like, *more]) == 2
        assert f"{more[0]}: the table is cut as " in capsys.readouterr().err
    assert main(["bins", str(tmp_path / "t.csv"), "-o", str(tmp_path / "t.csv"), "--label", "risk"]) == 2


def test_columns_of_words_count_as_columns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(8)
    rows = table(tmp_path / "raw.csv", 8)
    words = {name: rng.choice(["a", "b", "c"], len(rows)).tolist() for name in ("home", "work", "town")}
    for k, row in enumerate(rows):
        row |= {name: held[k] for name, held in words.items()}
        row["label"] = "yes" if (row["home"] == "a") + (row["work"] == "b") + (row["town"] == "c") > 1 else "no"
    with (tmp_path / "raw.csv").open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    cut = tmp_path / "cut.csv"
    assert main(["bins", str(tmp_path / "raw.csv"), "-o", str(cut), "--features", "1", "--each", "1"]) == 0
    assert "--M 3" in capsys.readouterr().out
    asked = ["solve", "fsp-m", str(cut), "--subject-to", str(tmp_path / "cut.lp"), "--M", "6", "-p", "loss=logistic"]
    assert main([*asked, "--json", str(tmp_path / "r.json"), "-q"]) == 0
    selected = mipfs.Result.load(tmp_path / "r.json").selected
    assert len(selected) > 1
    assert len({name.partition("=")[0] for name in selected}) == 1


def test_what_a_description_says_of_reading_is_named_where_it_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id,income,risk\n1,$5,good\n2,$7,bad\n3,$5,good\n4,$9,bad\n")
    said = '[data]\nlabel = "risk"\ndrop = ["id"]\ntypes = { income = "currency" }\n'
    (tmp_path / "t.toml").write_text(said)
    with pytest.warns(DataWarning, match=r"t.csv: bins cuts cells as they stand, and \[data\] drop, types of its"):
        bins(str(tmp_path / "t.csv"), str(tmp_path / "cut.csv"), quiet=True)


def test_what_counts_as_positive_and_the_scale_stand_beside_the_cut_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table(tmp_path / "t.csv", 0)
    cut = ["bins", str(tmp_path / "t.csv"), "-o", str(tmp_path / "b.csv"), "--label", "risk", "-q"]
    for positive in ("good", "bad"):
        assert main([*cut, "--positive", positive, "--scale", "standard"]) == 0
        found = mipfs.read(tmp_path / "b.csv")
        assert (found.labels.positive, found.scaling) == (positive, "standard")
    (tmp_path / "n.csv").write_text("income,risk\n3,0\n4,1\n5,0\n6,1\n2,1\n")
    for positive in ("0", "1.0"):  # a number is one however it is written
        (tmp_path / "n.toml").write_text(f'[data]\nlabel = "risk"\npositive = {positive}\n')
        assert main(["bins", str(tmp_path / "n.csv"), "-o", str(tmp_path / "c.csv"), "-q"]) == 0
        assert mipfs.read(tmp_path / "c.csv").labels.positive == float(positive)
    assert main([*cut, "--positive", "god"]) == 2
    assert "positive = 'god' is not one of the labels 'bad' and 'good'" in capsys.readouterr().err


def test_the_rows_of_an_earlier_cut_are_left_and_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table(tmp_path / "t.csv", 0)
    cut = ["bins", str(tmp_path / "t.csv"), "-o", str(tmp_path / "b.csv"), "--label", "risk"]
    rows = tmp_path / "b.lp"
    assert main([*cut, "--features", "2"]) == 0
    before = rows.read_bytes()
    assert capsys.readouterr().err == ""
    assert main([*cut, "--thresholds", "2"]) == 0
    said = capsys.readouterr().err
    assert said.startswith(f"mipfs: warning: {rows} is of an earlier cut and was left as it is")
    assert "--features or --each" in said
    assert rows.read_bytes() == before
    assert main([*cut, "--features", "2"]) == 0
    rows.unlink()
    assert main(cut) == 0
    assert capsys.readouterr().err == ""


def test_a_raw_table_is_sent_through_bins(made: tuple[Path, list[dict[str, str]]]) -> None:
    folder, rows = made
    with pytest.raises(UsageError, match="cut the table as that of training was"):
        mipfs.Result.load(folder / "r.json").predict(rows)


def test_a_card_is_judged_by_its_own_probabilities(made: tuple[Path, list[dict[str, str]]]) -> None:
    folder, _ = made
    judged_as, cut = folder / "e.json", str(folder / "b.csv")
    assert main(["evaluate", str(folder / "card.json"), cut, "--json", str(judged_as), "-q"]) == 0
    data = mipfs.read(cut, positive="good")
    card = mipfs.scorecard(mipfs.Result.load(folder / "r.json"), data)
    chances = card.predict_proba(data)[:, 1]
    assert json.loads(judged_as.read_text())["brier"] == pytest.approx(np.mean((chances - (data.y > 0)) ** 2))
    page, shown = str(folder / "judged.html"), folder / "shown.json"
    asked = ["report", str(folder / "card.json"), "--data", cut, "-o", page, "--json", str(shown), "-q"]
    assert main(asked) == 0
    (item,) = json.loads(shown.read_text())["items"]
    assert item["score"] | json.loads(judged_as.read_text()) == item["score"]
    totals = card.totals(data)
    for row in item["score"]["totals"]:
        inside = (totals >= row["from"]) & (totals <= row["to"])
        assert (row["samples"], row["positives"]) == (inside.sum(), (data.y[inside] > 0).sum())
        assert row["predicted"] == pytest.approx(chances[inside].mean())
    assert sum(row["samples"] for row in item["score"]["totals"]) == data.n_samples
    shown_rows = [row for row in cells(Path(page).read_text()) if len(row) == 5]
    last = item["score"]["totals"][-1]
    assert shown_rows[-1][2:] == [
        str(last["samples"]), f"{last['positives'] / last['samples']:.1%}", f"{last['predicted']:.1%}",
    ]  # fmt: skip


@pytest.mark.parametrize("gone", [True, False])
def test_a_missing_word_is_said_to_be_needed_only_where_training_had_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], gone: bool
) -> None:
    r = np.random.default_rng(0)
    lines, homes = ["income,home,risk"], ["own", "rent", "free", *[""] * gone]
    for _ in range(120):
        income, home = round(r.normal(35, 12), 1), r.choice(homes)
        lean = 0.05 * (income - 35) + 2 * (home == "own") + r.normal(0, 0.5)
        lines.append(f"{income},{home},{'good' if lean > 0.5 else 'bad'}")
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "new.csv").write_text("income,home\n30,\n")
    name = {name: str(tmp_path / name) for name in ("t.csv", "b.csv", "new.csv", "n.csv", "r.json", "card.json")}
    assert main(["bins", name["t.csv"], "-o", name["b.csv"], "--label", "risk", "-q"]) == 0
    problem = ["-p", "M=4", "-p", "C=1", "-p", "loss=logistic", "--json", name["r.json"], "-q"]
    assert main(["solve", "fsp-m", name["b.csv"], *problem]) == 0
    assert main(["scorecard", name["r.json"], name["b.csv"], "--json", name["card.json"]]) == 0
    said = capsys.readouterr().out
    assert "home=own" in said
    assert "a missing cell is refused where training had none" in said
    assert ("a missing value of home has no points: the card needs it" in said) is not gone
    like = str(tmp_path / "b.bins.json")
    assert main(["bins", name["new.csv"], "-o", name["n.csv"], "--like", like, "-q"]) == 0
    assert main(["predict", name["card.json"], name["n.csv"], "--scores"]) == (0 if gone else 2)
    (tmp_path / "new.csv").write_text("income,home\n,own\n")
    assert main(["bins", name["new.csv"], "-o", name["n.csv"], "--like", like, "-q"]) == 2


def test_a_special_code_that_training_did_not_see(
    made: tuple[Path, list[dict[str, str]]], capsys: pytest.CaptureFixture[str]
) -> None:
    """It was said to be one, and has no column: it counts in no line, as the card and a word on it say."""
    folder, rows = made
    one = next(row for row in rows if row["income"] == "") | {"income": "-7"}
    new, cut = folder / "code.csv", folder / "code_b.csv"
    new.write_text("\n".join([",".join(one), ",".join(one.values())]) + "\n")
    assert main(["bins", str(new), "-o", str(cut), "--like", str(folder / "b.bins.json")]) == 0
    said = "'income' holds special codes that training did not see, such as -7, in 1 row; each counts in no line"
    assert said in capsys.readouterr().err
    (cells_of,) = csv.DictReader(cut.open())
    assert {value for name, value in cells_of.items() if name.startswith("income ")} == {"0"}
    assert "and without one in none" in (folder / "card.html").read_text()


@pytest.mark.filterwarnings("ignore:.*words that training did not see")
def test_words_of_new_rows_and_missing_cells_of_a_card(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    home, age = rng.choice(["own", "rent", "free"], 80), rng.integers(20, 70, 80)
    label = np.where(2.0 * (home == "own") + 0.03 * age + rng.standard_normal(80) > 2.3, "good", "bad")
    rows = [{"home": str(h), "age": float(a)} for h, a in zip(home, age, strict=True)]
    frame = pandas.DataFrame(rows).assign(label=label)
    data = mipfs.read(frame, label="label", positive="good", impute="level")
    result = mipfs.solve(mipfs.Problem(data, M=2, C=10.0, loss="logistic"))
    card = mipfs.scorecard(result, data)
    assert "home=own" in card.result.selected
    report = "\n".join(str(block) for block in card.blocks())
    assert "a missing value of home has no points" in report, "training saw none, so that its level is no known word"
    strange = [{"home": "castle", "age": 30.0}]
    with pytest.raises(UsageError, match="castle"):
        card.predict(strange)
    assert card.totals(strange, unknown="none").shape == (1,)
    assert card.predict(strange, unknown="none")[0] in ("good", "bad")
    assert card.predict_proba(strange, unknown="none").sum() == pytest.approx(1.0)
