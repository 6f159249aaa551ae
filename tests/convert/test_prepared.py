"""A raw table that is converted by a recipe is the data that `mipfs.read` makes of it by that recipe, to the bit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mipfs
from mipfs.cli import main
from mipfs.convert import convert
from mipfs.convert import prepared as room
from mipfs.errors import DataError, DataWarning, UsageError
from mipfs.readers import table_chunks

RECIPES: list[dict[str, Any]] = [
    {"impute": "median", "types": {"paid": "currency", "opened": "date"}},
    {"impute": {"*": "level", "age": "median"}, "types": {"paid": "currency"}, "drop": ["opened"]},
    {"impute": "most frequent", "use": ["age", "home", "late"]},
    {"impute": {"age": "level", "home": "median", "late": "most frequent"}, "use": ["age", "home", "late", "id"]},
]


def table(seed: int, n: int = 70) -> str:
    rng = np.random.default_rng(seed)
    rows = ["id,opened,paid,home,age,late,bad"]
    for i in range(n):
        hole = rng.random(4) < 0.15
        home = "" if hole[0] else rng.choice(["own", "rent", "family"])
        age = "NA" if hole[1] else f"{rng.integers(20, 70)}"
        paid = "" if hole[2] else f'"${rng.integers(900, 5000):,}.50"'
        late = "?" if hole[3] else f"{rng.integers(0, 3)}"
        rows.append(f"L{i},2024-0{rng.integers(1, 9)}-11,{paid},{home},{age},{late},{rng.choice(['no', 'yes'])}")
    return "\n".join(rows) + "\n"


def same(one: Any, other: Any) -> None:
    assert one.sha256 == other.sha256
    assert list(one.feature_names) == list(other.feature_names)
    assert (one.labels, one.groups, one.words) == (other.labels, other.groups, other.words)
    X, Z = one.X, other.X[:, :]
    np.testing.assert_array_equal(X.toarray() if one.is_sparse else X, Z.toarray() if one.is_sparse else Z)
    assert one.prepared.document() == other.prepared.document()
    for mine, its in zip(one.prepared.filled, other.prepared.filled, strict=True):
        assert (mine.name, mine.how, mine.value, mine.features) == (its.name, its.how, its.value, its.features)
        np.testing.assert_array_equal(mine.rows, its.rows)


@pytest.mark.filterwarnings("ignore::mipfs.errors.DataWarning")
@pytest.mark.parametrize("recipe", RECIPES)
def test_a_store_is_what_read_makes_of_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recipe: dict[str, Any]
) -> None:
    monkeypatch.setattr(table_chunks, "CELLS", 40)  # many pieces, some of which have holes alone
    source = tmp_path / "raw.csv"
    source.write_text(table(len(recipe)))
    given = {} if "opened" in recipe.get("drop", ()) or "use" in recipe or "types" in recipe else {"drop": "opened"}
    convert(source, tmp_path / "s", label="bad", **recipe, **given)
    same(mipfs.read(source, label="bad", **recipe, **given), mipfs.read(tmp_path / "s"))


@pytest.mark.filterwarnings("ignore::mipfs.errors.DataWarning")
def test_medians_take_as_many_passes_as_memory_asks_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "raw.csv"
    source.write_text(table(3))
    passes: list[Any] = []
    once = room._fill_values
    monkeypatch.setattr(room, "_fill_values", lambda *given: (passes.append(given[-1]), once(*given))[1])
    recipe = mipfs.data.recipe.Recipe.of(impute="median", types={"paid": "currency", "opened": "date"})
    found = room.survey_table(source, "csv", "bad", recipe, 600, ("bad",))
    assert passes == [["opened"], ["paid"], ["age"], ["late"]]
    whole = mipfs.read(source, label="bad", impute="median", types=dict(recipe.types)).prepared
    assert whole is not None
    values = {one.name: one.value for one in whole.filled}
    assert {one.name: one.value for one in found.filled if one.name in values} == values


def test_columns_of_ids_are_left_out_with_a_word(tmp_path: Path) -> None:
    source = tmp_path / "raw.csv"
    source.write_text(table(4))
    asked: dict[str, Any] = {"label": "bad", "impute": "median", "drop": ["opened", "paid"]}
    with pytest.warns(DataWarning, match="column 'id' holds 70 different words in 70 rows.*is left out"):
        convert(source, tmp_path / "s", **asked)
    assert "id=L0" not in mipfs.read(tmp_path / "s").index
    convert(source, tmp_path / "t", words=["id"], **asked)
    assert "id=L0" in mipfs.read(tmp_path / "t").index
    with pytest.raises(DataError, match="no column of words is called 'age'"):
        convert(source, tmp_path / "u", words=["age"], **asked)


@pytest.mark.filterwarnings("ignore::mipfs.errors.DataWarning")
def test_what_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "raw.csv"
    source.write_text(table(5))
    (tmp_path / "raw.toml").write_text('[data]\nlabel = "bad"\nimpute = "median"\ndrop = ["opened", "paid"]\n')
    store = convert(source, tmp_path / "s")
    data = mipfs.read(store)
    same(mipfs.read(source), data)
    with pytest.raises(UsageError, match="give it to `mipfs convert`"):
        mipfs.read(store, impute="most frequent")
    with pytest.raises(UsageError, match="folds fill them in anew"):
        data.part(np.arange(30))
    plain = tmp_path / "a.svm"
    plain.write_text("1 1:2\n-1 1:1\n")
    with pytest.raises(UsageError, match=r"drop: a\.svm is no table of named columns"):
        convert(plain, tmp_path / "p", drop=["id"])
    source.write_text("age,home,bad\n,own,1\n?,rent,0\n")
    (tmp_path / "raw.toml").unlink()
    with pytest.raises(DataError, match="column 'age' has no value at all"):
        convert(source, tmp_path / "e", label="bad", impute="median")
    stated = json.loads((store / "recipe.json").read_text())
    stated["recipe"]["drop"] = []
    (store / "recipe.json").write_text(json.dumps(stated))
    with pytest.raises(DataError, match=r"recipe\.json"):
        mipfs.read(store)


COST = '[cost]\n"income" = 2\n"home=own" = 1\n'
DROPPED, UNUSED = "that column is dropped; take it out here, or keep it", "that column is not among the used ones"


@pytest.mark.parametrize(
    ("about", "recipe", "line", "message"),
    [
        (COST, {"drop": ["income"]}, 2, f"[cost] no feature is called 'income'; {DROPPED}"),
        (COST, {"drop": ["home"]}, 3, f"[cost] no feature is called 'home=own'; {DROPPED}"),
        (COST, {"use": ["home", "age"]}, 2, f"[cost] no feature is called 'income'; {UNUSED}; take it out here"),
        (COST, {"use": ["income", "age"]}, 3, f"[cost] no feature is called 'home=own'; {UNUSED}"),
        ('[select]\nforced_in = ["age"]\n', {"drop": ["age"]}, 2, f"[select] no feature is called 'age'; {DROPPED}"),
        ("[penalty]\nage = 1\n", {"drop": ["age"]}, 2, f"[penalty] no feature is called 'age'; {DROPPED}"),
        ('[groups]\ng = ["age", "income"]\n', {"drop": ["age"]}, 2, f"no feature is called 'age'; {DROPPED}"),
        ("[weights]\nbounds = {age = [0, 1]}\n", {"drop": ["age"]}, 2, f"no feature is called 'age'; {DROPPED}"),
        ('[weights]\nnonnegative = ["age"]\n', {"use": ["home"]}, 2, f"no feature is called 'age'; {UNUSED}"),
        ("[[weights.rows]]\ncoefficients = {age = 1.0}\nlower = 0\n", {"drop": ["age"]}, 2, f"'age'; {DROPPED}"),
    ],
)
def test_no_store_is_written_that_its_description_does_not_fit(
    tmp_path: Path, about: str, recipe: dict[str, Any], line: int, message: str
) -> None:
    """It is found before, as `mipfs.read` finds it."""
    source = tmp_path / "t.csv"
    source.write_text("age,income,home,label\n1,2,own,1\n2,3,rent,-1\n5,1,family,1\n")
    (tmp_path / "t.toml").write_text(about)
    for attempt in (mipfs.read, lambda path, **given: convert(path, tmp_path / "s", **given)):
        with pytest.raises(DataError) as caught:
            attempt(source, **recipe)
        assert message in str(caught.value)
        assert caught.value.line == line
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t.csv", "t.toml"]
    assert mipfs.read(convert(source, tmp_path / "s")).sha256 == mipfs.read(source).sha256


def test_a_word_for_a_bag_is_named_as_it_stands(tmp_path: Path) -> None:
    (tmp_path / "b.csv").write_text("x,bag,label\n1,a,1\n2,b,-1\n")
    with pytest.raises(DataError, match="the bag is 'a'; a store has whole numbers for bags; number the bags"):
        convert(tmp_path / "b.csv", tmp_path / "s")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::mipfs.errors.DataWarning")
def test_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, store, saved = tmp_path / "raw.csv", tmp_path / "s", tmp_path / "r.json"
    source.write_text(table(6))
    recipe = ["--impute", "median,home=level", "--types", "paid=currency", "--drop", "opened", "--words", "id"]
    assert main(["convert", str(source), str(store), "--label", "bad", "-q", *recipe]) == 0
    assert main(["solve", "fsp-m", str(store), "--M", "2", "--C", "0.1", "--json", str(saved), "-q"]) == 0
    for data, more in ((store, []), (source, ["--words", "id"]), (source, [])):  # the result says what was kept
        assert main(["verify", str(saved), str(data), *more]) == 0
    assert json.loads(saved.read_text())["read"]["kept"] == ["id"]
    assert main(["verify", str(saved), str(source), "--words", "home"]) == 1  # without the IDs it is other data
    (tmp_path / "new.csv").write_text(source.read_text().replace(",bad\n", ",other\n"))
    capsys.readouterr()
    assert main(["predict", str(saved), str(tmp_path / "new.csv")]) == 0
    assert len(capsys.readouterr().out.split()) == 70
