"""One table, one reading: CSV, TSV, Parquet, frames of pandas, polars and Arrow, text or typed, and its marks."""

from __future__ import annotations

import io
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import mipfs
from mipfs.cli import main
from mipfs.data.recipe import Recipe

ROWS = 40


def cells(seed: int, marks: bool) -> pd.DataFrame:
    """A table of text: numbers with gaps, whole numbers, words, an amount, weights, labels."""
    r = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "late": r.poisson(1, ROWS).astype(str),
            "age": [f"{v:.2f}" for v in r.normal(40, 9, ROWS)],
            "home": r.choice(["own", "rent", "family"], ROWS),
            "paid": [f"${v:,.2f}" for v in r.lognormal(9, 1, ROWS)],
            "sample_weight": r.choice(["1", "2.5"], ROWS),
            "y": np.where(np.arange(ROWS) % 2, "bad", "good"),
        }
    )
    frame.loc[r.permutation(ROWS)[:5], "age"] = "-999.0" if marks else "NA"
    frame.loc[r.permutation(ROWS)[:4], "home"] = "-" if marks else ""
    return frame


def carried(frame: pd.DataFrame, folder: Path) -> dict[str, Any]:
    """The same cells in whatever carries them."""
    text = frame.to_csv(index=False)
    (folder / "d.csv").write_text(text, encoding="utf-8")
    (folder / "d.tsv.csv").write_text(frame.to_csv(index=False, sep="\t"), encoding="utf-8")
    found: dict[str, Any] = {
        "csv": folder / "d.csv",
        "tsv": folder / "d.tsv.csv",
        "text": frame,
        "blanks": frame.rename(columns=lambda name: f" {name} "),
        "string": frame.astype("string"),
        "typed": pd.read_csv(io.StringIO(text), keep_default_na=False, na_values=["NA"]),
        "missing": pd.read_csv(io.StringIO(text), dtype=str),
        "rows": pd.DataFrame(frame.to_dict("records")),
    }
    try:
        import pyarrow as pa
    except ImportError:
        return found
    frame.to_parquet(folder / "d.parquet", index=False)
    return found | {"parquet": folder / "d.parquet", "arrow": pa.Table.from_pandas(frame)}


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("marks", [False, True])
def test_one_table_has_one_reading_whatever_carries_it(seed: int, marks: bool, tmp_path: Path) -> None:
    how: dict[str, Any] = {"label": "y", "scale": "standard", "types": {"paid": "currency"}, "checks": False}
    how |= {"impute": {"*": "median", "home": "level"}} | ({"missing": ["-", -999]} if marks else {})
    every = {name: mipfs.read(data, **how) for name, data in carried(cells(seed, marks), tmp_path).items()}
    first = every["csv"]
    assert {"late", "age", "home=missing"} <= {*first.feature_names}
    for name, data in every.items():
        assert data.feature_names == first.feature_names, name
        assert data.sha256 == first.sha256, name


@pytest.mark.parametrize("marks", [False, True])
def test_new_rows_are_taken_as_a_form_sends_them(marks: bool, tmp_path: Path) -> None:
    frame = cells(2, marks)
    how: dict[str, Any] = {"label": "y", "scale": "standard", "types": {"paid": "currency"}, "checks": False}
    how |= {"impute": {"*": "median", "home": "level"}} | ({"missing": ["-", "-999"]} if marks else {})
    every = carried(frame, tmp_path)
    result = mipfs.solve(mipfs.Problem(mipfs.read(every["csv"], **how), M=4, C=1.0))
    want = result.predict(every["typed"])
    for name, rows in every.items():
        assert (result.predict(rows if not isinstance(rows, Path) else mipfs.read(rows, **how)) == want).all(), name
    assert (result.predict(frame.drop(columns="y").to_dict("records")) == want).all()
    result.save(tmp_path / "r.json")
    (tmp_path / "d.toml").write_text('[data]\nmissing = ["own"]\n', encoding="utf-8")  # the result's marks hold
    assert main(["verify", str(tmp_path / "r.json"), str(tmp_path / "d.csv")]) == 0
    assert main(["predict", str(tmp_path / "r.json"), str(tmp_path / "d.csv"), "--quiet"]) == 0


def test_a_classifier_without_a_recipe_takes_text_for_its_numbers() -> None:
    r = np.random.default_rng(4)
    frame = pd.DataFrame({"a": r.normal(size=30), "home": r.choice(["1", "x"], 30), "y": np.arange(30) % 2})
    with pytest.raises(mipfs.DataError, match=r"'home' is 'x' at .* and the number '1' at .*astype\('category'\)"):
        mipfs.read(frame, label="y")
    frame = frame.astype({"home": "category"})
    result = mipfs.solve(mipfs.Problem(mipfs.read(frame, label="y", scale="standard", checks=False), M=2, C=1.0))
    want = result.decision_function(frame)
    assert np.array_equal(result.decision_function(frame.astype(str)), want)
    assert np.array_equal(result.decision_function(frame.rename(columns={"a": "a ", "home": " home"})), want)
    assert result.decision_function({"a": str(frame.a[3]), "home": frame.home[3]})[0] == want[3]


def test_earlier_rules_keep_text_as_words() -> None:
    frame = pd.DataFrame({"late": ["0", "1", "0", "1"], "x": [0.5, 1.0, 2.0, 0.1], "y": ["a", "b", "b", "a"]})
    assert mipfs.read(frame, label="y", checks=False).feature_names == ("late", "x")
    old = mipfs.readers.read_as(frame, Recipe(), label="y", rules=3)
    assert old.feature_names == ("late=0", "late=1", "x")


@pytest.mark.parametrize("mark", ["-", ".", "--", "#N/A", "none", "n.a.", "<NA>", "-999", "a,b"])
def test_a_mark_is_a_missing_value_on_the_command_line(mark: str, tmp_path: Path, capsys: Any) -> None:
    frame = cells(5, marks=False).drop(columns=["paid", "sample_weight"])
    frame = frame.replace({"NA": mark, "": mark.upper()})
    frame.to_csv(tmp_path / "d.csv", index=False)
    given = f'"{mark}"' if "," in mark else mark
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = mipfs.read(tmp_path / "d.csv", label="y", missing=[mark], impute="level")
    assert data.prepared is not None
    assert {one.name: one.rows.size for one in data.prepared.filled} == {"late": 0, "age": 5, "home": 4}
    said = ["convert", str(tmp_path / "d.csv"), str(tmp_path / "d.store"), "--label", "y", "--impute", "level"]
    assert main([*said, "--missing", given]) == 0
    assert mipfs.read(tmp_path / "d.store").sha256 == data.sha256
    capsys.readouterr()


@pytest.mark.parametrize("odd", ["", " ", [""], [None], [True], 3 + 1j])
def test_what_is_no_mark_is_refused(odd: Any) -> None:
    with pytest.raises(mipfs.UsageError, match=r"missing = .*give marks of missing values"):
        Recipe.of(missing=odd)
