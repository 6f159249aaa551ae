"""One table gives the same features, digest and predictions, whatever carries its cells."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import mipfs
from mipfs.readers import read_new

LABEL = "paid"
Carrier = Callable[[pd.DataFrame, Path], Any]


def _file(suffix: str, write: Callable[[pd.DataFrame, Path], Any]) -> Carrier:
    def carried(frame: pd.DataFrame, folder: Path) -> Path:
        write(frame, folder / f"table{suffix}")
        return folder / f"table{suffix}"

    return carried


def _polars(frame: pd.DataFrame, folder: Path) -> Any:
    polars = pytest.importorskip("polars", reason="polars is not installed")
    return polars.DataFrame(frame.to_dict("list"))


def _arrow(frame: pd.DataFrame, folder: Path) -> Any:
    arrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    return arrow.table(frame.to_dict("list"))


def _nullable(frame: pd.DataFrame, folder: Path) -> Any:
    return frame.convert_dtypes()


CARRIERS: dict[str, Carrier] = {
    "csv": _file(".csv", lambda frame, path: frame.to_csv(path, index=False)),
    "csv.gz": _file(".csv.gz", lambda frame, path: frame.to_csv(path, index=False)),
    "tsv": _file(".tsv", lambda frame, path: frame.to_csv(path, index=False, sep="\t")),
    "semicolons": _file(".csv", lambda frame, path: frame.to_csv(path, index=False, sep=";")),
    "parquet": _file(".parquet", lambda frame, path: frame.to_parquet(path, index=False)),
    "pandas": lambda frame, folder: frame,
    "pandas of strings": lambda frame, folder: frame.astype(str),
    "pandas, nullable": _nullable,
    "pandas, other index": lambda frame, folder: frame.set_index(pd.Index(range(7, 7 + len(frame)))),
    "polars": _polars,
    "arrow": _arrow,
    "rows": lambda frame, folder: frame.to_dict("records"),
    "columns": lambda frame, folder: frame.to_dict("list"),
}


def table(seed: int) -> pd.DataFrame:
    """Numbers, whole numbers, words, two words, and labels."""
    r = np.random.default_rng(seed)
    n = 40
    frame = pd.DataFrame({"income": r.normal(size=n).round(3), "late": r.integers(0, 5, n)})
    frame["home"], frame["phone"] = r.choice(["own", "rent", "free"], n), r.choice(["Y", "N"], n)
    score = frame["income"] + (frame["home"] == "own") - 0.3 * frame["late"] + 0.5 * r.normal(size=n)
    frame[LABEL] = np.where(score > np.median(score), "yes", "no")
    return frame


def _without_labels(given: Any) -> Any:
    """The rows of a carrier that is no file, without their labels."""
    if isinstance(given, list):
        return [{name: cell for name, cell in row.items() if name != LABEL} for row in given]
    if isinstance(given, dict):
        return {name: cells for name, cells in given.items() if name != LABEL}
    if hasattr(given, "iloc"):
        return given.drop(columns=LABEL)
    return given.drop_columns([LABEL]) if hasattr(given, "drop_columns") else given.drop(LABEL)


@pytest.mark.parametrize("seed", [0])
@pytest.mark.parametrize("name", CARRIERS)
def test_whatever_carries_a_table(name: str, seed: int, tmp_path: Path) -> None:
    frame = table(seed)
    right = mipfs.read(frame, label=LABEL, scale="standard", checks=False)
    given = CARRIERS[name](frame, tmp_path)
    data = mipfs.read(given, label=LABEL, scale="standard", checks=False)
    assert list(data.feature_names) == ["income", "late", "home=free", "home=own", "home=rent", "phone=Y"]
    assert data.sha256 == right.sha256
    result = mipfs.solve(mipfs.Problem(data, M=2, C=1.0))
    expected = result.predict(frame)
    if isinstance(given, Path):
        read = mipfs.read(given, label=LABEL, checks=False)
        assert list(result.predict(read)) == list(expected)
        return
    assert list(result.predict(given)) == list(expected)
    X = _without_labels(given)
    model = mipfs.FSPClassifier(M=2, C=1.0, scale="standard").fit(X, frame[LABEL])
    assert model.result_.data_sha256 == right.sha256
    assert tuple(model.get_feature_names_out()) == result.selected
    assert list(model.predict(X)) == list(expected)
    assert list(model.predict(frame.drop(columns=LABEL).astype(str))) == list(expected)


ASKED: dict[str, Any] = {
    "types": {"opened": "date", "rate": "percent"},
    "impute": {"late": "median", "days": "median", "branch": "level", "old": "level"},
    "missing": ["-", "-999"],
}
"""What is said of a table of every kind."""


def kinds(seed: int) -> pd.DataFrame:
    """Booleans, dates, percentages, markers, nullable and categorical columns, and labels that are booleans."""
    r = np.random.default_rng(seed)
    n = 40
    gap = r.random(n) < 0.2
    frame = pd.DataFrame({"income": r.normal(size=n).round(3), "active": r.random(n) < 0.5})
    frame["opened"] = pd.to_datetime("2020-01-01") + pd.to_timedelta(r.integers(0, 2000, n), unit="D")
    frame["rate"] = [f"{rate}%" for rate in r.integers(0, 30, n)]
    frame["late"] = pd.array(np.where(gap, None, r.integers(0, 9, n)), dtype="Int64")
    frame["days"] = np.where(gap, -999, r.integers(0, 90, n))
    frame["branch"] = np.where(gap, "-", r.choice(["p", "q", "s"], n))
    frame["old"] = np.where(r.random(n) < 0.2, None, r.random(n) < 0.5)
    frame["home"] = pd.Categorical(r.choice(["own", "rent", "free"], n))
    frame[LABEL] = frame["income"] + frame["active"] + 0.5 * r.normal(size=n) > 0.5
    return frame


def _plain(frame: pd.DataFrame) -> dict[str, list[Any]]:
    """The columns as Python's own values, None where one is missing."""
    return {str(name): [None if pd.isna(cell) else cell for cell in frame[name].tolist()] for name in frame}


@pytest.mark.parametrize("name", CARRIERS)
def test_every_kind_of_column_and_boolean_labels(name: str, tmp_path: Path) -> None:
    frame = kinds(1)
    right = mipfs.read(frame, "none", label=LABEL, checks=False, **ASKED)
    result = mipfs.solve(mipfs.Problem(right, M=3, C=1.0, forced_in=("active", "old=missing")))
    source: Any = frame
    if name in ("polars", "arrow", "rows", "columns"):
        plain = _plain(frame)
        source = pd.DataFrame({column: pd.Series(cells, dtype=object) for column, cells in plain.items()})
    elif name == "pandas of strings":
        frame.to_csv(tmp_path / "s.csv", index=False)
        source = pd.read_csv(tmp_path / "s.csv", dtype=str, keep_default_na=False)
    given = CARRIERS[name](source, tmp_path)
    data = mipfs.read(given, "none", label=LABEL, checks=False, **ASKED)
    assert list(data.feature_names) == list(right.feature_names)
    assert data.sha256 == right.sha256
    assert str(data.labels.positive) == "True"
    new: Any = given
    if isinstance(given, Path):
        new = read_new(given, names=list(result.weights), labels=right.labels, remembered=LABEL, recipe=result.recipe)
    assert list(result.predict(new)) == list(result.predict(frame))
    assert result.evaluate(new)["accuracy"] == result.evaluate(frame)["accuracy"]


def test_odd_names_and_cells_are_the_same_whatever_carries_them(tmp_path: Path) -> None:
    """Quotes, separators and blanks in names and words; words that say numbers, of several ways to write them."""
    r = np.random.default_rng(3)
    words = {
        "x,y": ["a, b", 'say "hi"', "x;y", "ü ß", "t\tab"],
        'q"uote=': [" own", "own ", "Own", " free "],
        "日本 €": ["007", "10", "+1", "-3", ".5", "2.", "1e3"],
        "1": ["1_000", "0x10", "x"],
        " true ": ["TRUE", "FALSE"],
    }
    frame = pd.DataFrame(
        {name: [str(one) for one in r.permutation([*some] * 12)[:24]] for name, some in words.items()}, dtype=object
    )
    frame["big"] = r.integers(2**53, 2**62, 24)
    frame["tiny"] = r.normal(size=24) * 1e-12
    frame[LABEL] = np.where(np.arange(24) % 2 == 0, "x y", "ü")
    right = mipfs.read(frame, label=LABEL, checks=False)
    assert list(right.feature_names) == [
        *(f"x,y={word}" for word in sorted(words["x,y"])),
        *(f'q"uote=={word}' for word in ("Own", "free", "own")),
        *("日本 €", "1=0x10", "1=1_000", "1=x", "true", "big", "tiny"),
    ]
    for name, carry in CARRIERS.items():
        try:
            given = carry(frame, tmp_path)
        except pytest.skip.Exception:
            continue
        data = mipfs.read(given, label=LABEL, checks=False)
        assert data.feature_names == right.feature_names, name
        assert data.sha256 == right.sha256, name


def test_blanks_around_names_labels_and_words_do_not_count(tmp_path: Path) -> None:
    r = np.random.default_rng(0)
    frame = pd.DataFrame({" a ": r.normal(size=40), " w": r.choice([" u", "v ", "x"], 40)})
    frame[" y "] = np.where(frame[" a "] + (frame[" w"] == " u") > 0.3, " p", "n")
    ways: list[Any] = [frame, tmp_path / "t.parquet", tmp_path / "t.csv"]
    frame.to_parquet(ways[1], index=False)
    frame.to_csv(ways[2], index=False)
    for given in ways:
        data = mipfs.read(given, "none", label="y", checks=False)
        assert list(data.feature_names) == ["a", "w=u", "w=v", "w=x"]
        assert {data.labels.negative, data.labels.positive} == {"n", "p"}
        result = mipfs.solve(mipfs.Problem(data, M=2, C=1.0))
        for other in ways[1:]:
            new = read_new(other, names=["a", "w=u"], labels=data.labels, label="y")
            assert result.evaluate(new)["accuracy"] == np.mean(result.predict(frame) == frame[" y "].str.strip())
    earlier = mipfs.read(ways[1], "none", label=" y ", rules=5, checks=False)
    assert list(earlier.feature_names) == [" a ", " w=u", " w=v", " w=x"]
    result = mipfs.solve(mipfs.Problem(earlier, M=2, C=1.0))
    assert list(result.predict(read_new(ways[1], names=list(result.weights)))) == list(result.predict(frame))
