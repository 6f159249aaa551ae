"""What a user says of a table is enough: names that go, words that are meant, dates of two orders, rows by names."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import mipfs
from mipfs.data.frames import as_rows
from mipfs.errors import DataError, DataWarning, UsageError
from mipfs.readers import read_new

ROWS = 60
RANDOM = np.random.default_rng(64)
LABELS = np.where(RANDOM.random(ROWS) < 0.5, "paid", "late")


def twice(kind: str, folder: Path) -> Any:
    """A table with two columns called h."""
    columns = ["a", "h", "h", "y"]
    frame = pd.DataFrame(zip(RANDOM.normal(size=ROWS), range(ROWS), range(ROWS), LABELS, strict=True), columns=columns)
    if kind == "frame":
        return frame
    if kind == "csv":
        frame.to_csv(folder / "t.csv", index=False)
        return folder / "t.csv"
    import pyarrow as pa
    import pyarrow.parquet as pq

    arrays = [pa.array(frame.iloc[:, k].tolist()) for k in range(4)]
    pq.write_table(pa.Table.from_arrays(arrays, names=columns), folder / "t.parquet")
    return folder / "t.parquet"


@pytest.mark.parametrize("kind", ["csv", "frame", "parquet"])
def test_a_name_that_stands_twice_may_be_left_out(kind: str, tmp_path: Path) -> None:
    table = twice(kind, tmp_path)
    for asked in ({"drop": ["h"]}, {"use": ["a"]}):
        assert tuple(mipfs.read(table, label="y", **asked).feature_names) == ("a",)  # type: ignore[arg-type]
    for other in ({}, {"drop": ["a"]}):
        with pytest.raises(DataError, match=r"two columns are called 'h'; give each its own name$"):
            mipfs.read(table, label="y", **other)  # type: ignore[arg-type]


def test_of_words_that_are_meant_nothing_is_said() -> None:
    branch = [f"branch {k:02d}" for k in RANDOM.integers(0, 30, 2000)]
    frame = pd.DataFrame({"a": RANDOM.normal(size=2000), "branch": branch, "y": RANDOM.choice(["p", "n"], 2000)})
    with pytest.warns(DataWarning, match="column 'branch' holds 30 different words"):
        mipfs.read(frame, label="y")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(mipfs.read(frame, label="y", words=["branch"]).feature_names) == 31


@pytest.mark.parametrize(("days", "is_either"), [(range(1, 13), True), (range(1, 29), False)])
def test_dates_that_fit_two_orders_are_called_neither(days: range, is_either: bool, tmp_path: Path) -> None:
    dates = [f"{RANDOM.choice([*days]):02d}/{1 + k % 12:02d}/{2001 + k}" for k in range(ROWS)]
    dates[0] = f"{days[-1]:02d}/01/2001"
    pd.DataFrame({"a": RANDOM.normal(size=ROWS), "d": dates, "y": LABELS}).to_csv(tmp_path / "d.csv", index=False)
    with pytest.warns(DataWarning) as caught:
        mipfs.read(tmp_path / "d.csv", label="y")
    said = " ".join(str(one.message) for one in caught)
    assert '--types "d=date d/m/y"' in said
    assert ("'date m/d/y' in its place: all cells fit both orders" in said) == is_either


def test_rows_by_the_names_of_their_cells() -> None:
    frame = pd.DataFrame({"a": RANDOM.normal(size=200), "b": RANDOM.choice(["u", "v"], 200)})
    frame["y"] = np.where(frame.a > 0.0, "p", "n")
    result = mipfs.solve(mipfs.Problem(mipfs.read(frame, label="y"), M=2, C=1.0))
    whole = frame[["a", "b"]]
    exact = result.decision_function(whole)
    rows = whole.to_dict("records")
    assert np.array_equal(result.decision_function(rows), exact)
    assert np.array_equal(result.decision_function(whole.to_dict("list")), exact)
    for k in (0, 7):
        assert result.decision_function(rows[k]).tolist() == [exact[k]]
        assert result.decision_function(frame.iloc[k]).tolist() == [exact[k]]
    with pytest.raises((UsageError, DataError), match="'b'"):
        result.predict({"a": 0.3})
    with pytest.raises(UsageError, match="is no table"):
        as_rows({"a": [1.0, 2.0], "b": ["u"]})


def test_estimators_take_them_too() -> None:
    frame = pd.DataFrame({"a": RANDOM.normal(size=100), "b": RANDOM.choice(["u", "v"], 100)})
    y = np.where(frame.a > 0.0, 1, 0)
    model = mipfs.FSPClassifier(M=1).fit(frame.to_dict("records"), y)
    assert np.array_equal(model.predict(frame.to_dict("records")), model.predict(frame))
    assert model.predict({"b": "u", "a": 3.0}).tolist() == model.predict({"a": 3.0, "b": "u"}).tolist()


UNKNOWN = "column 'b' holds words that training did not see, such as 'z', in 2 rows; each counts as none"


@pytest.mark.parametrize("recipe", [{}, {"drop": ["c"]}])
@pytest.mark.parametrize("as_file", [False, True])
def test_a_word_that_training_did_not_see_may_be_none_of_those(
    recipe: dict[str, Any], as_file: bool, tmp_path: Path
) -> None:
    r = np.random.default_rng(1)
    frame = pd.DataFrame({"a": r.normal(size=200), "b": r.choice(["u", "v", "w"], 200), "c": r.normal(size=200)})
    frame["y"] = np.where(frame.a + (frame.b == "u") > 0.3, "p", "n")
    result = mipfs.solve(mipfs.Problem(mipfs.read(frame, label="y", scale="standard", **recipe), M=2, C=1.0))
    assert {"a", "b=u"} <= set(result.selected)
    new = frame.drop(columns="y")
    new.loc[[3, 8], "b"] = "z"
    rows: Any = new
    if as_file:
        new.to_csv(tmp_path / "new.csv", index=False)
        rows = read_new(tmp_path / "new.csv", names=["a", "b=u"], recipe=result.recipe)
    with pytest.raises(UsageError, match=r"column 'b' is 'z'.*--unknown none"):
        result.decision_function(rows)
    with pytest.warns(DataWarning, match=UNKNOWN):
        found = result.decision_function(rows, unknown="none")
    other = frame.drop(columns="y")
    other.loc[[3, 8], "b"] = "v"  # which is no word that the classifier looks at
    assert found == pytest.approx(result.decision_function(other), rel=1e-12)
    with pytest.raises(UsageError, match="unknown = 'nothing'"):
        result.decision_function(rows, unknown="nothing")  # type: ignore[arg-type]


def test_rows_with_unknown_words_are_counted_whatever_the_scale_and_columns_that_are_given_stay() -> None:
    r = np.random.default_rng(3)
    frame = pd.DataFrame({"a": r.normal(size=120), "b": r.choice(["u", "v", "w"], 120)})
    frame["y"] = np.where(frame.a + (frame.b == "u") > 0.3, "p", "n")
    result = mipfs.solve(mipfs.Problem(mipfs.read(frame, label="y"), M=2, C=1.0))
    new = frame.copy()
    new.loc[[0, 5, 9], "b"] = "z"
    scaled = mipfs.read(new, label="y", scale="standard")
    with pytest.raises(UsageError, match="'z' in row 1, a category"):
        result.predict(scaled)
    with pytest.warns(DataWarning, match="such as 'z', in 3 rows"):
        result.predict(scaled, unknown="none")
    given = frame.assign(**{"b=u": 0.0, "b=v": 1.0, "b=w": 0.0})
    assert np.array_equal(result.decision_function(given), result.decision_function(given, unknown="none"))


def test_estimators_take_unknown_words_where_they_are_told_to() -> None:
    r = np.random.default_rng(2)
    X = pd.DataFrame({"a": r.normal(size=150), "b": r.choice(["u", "v", "w"], 150)})
    y = np.where(X.a + (X.b == "u") > 0.3, 1, 0)
    strict, mild = mipfs.FSPClassifier(M=2).fit(X, y), mipfs.FSPClassifier(M=2, unknown="none").fit(X, y)
    new = X.copy()
    new.loc[[0, 1], "b"] = "z"
    with pytest.raises(ValueError, match="unknown='none' takes it for none of them"):
        strict.predict(new)
    with pytest.warns(DataWarning, match=UNKNOWN):
        found = mild.decision_function(new)
    assert np.array_equal(found[2:], mild.decision_function(X)[2:])
    assert np.array_equal(found[2:], strict.decision_function(X)[2:])


def test_of_dates_in_the_wrong_form_no_other_order_is_advised(tmp_path: Path) -> None:
    dates = [f"{1 + k % 12:02d}/{1 + k % 11:02d}/{2000 + k}" for k in range(ROWS)]
    dates[7] = "unknown!"
    pd.DataFrame({"a": RANDOM.normal(size=ROWS), "d": dates, "y": LABELS}).to_csv(tmp_path / "d.csv", index=False)
    with pytest.raises(DataError) as caught:
        mipfs.read(tmp_path / "d.csv", label="y", types={"d": "date m/d/y"})
    assert "fit both orders" not in str(caught.value)
    assert "'unknown!'" in str(caught.value)


def test_an_estimator_knows_what_unknown_may_be() -> None:
    X = pd.DataFrame({"a": RANDOM.normal(size=40), "b": RANDOM.choice(["u", "v"], 40)})
    with pytest.raises(ValueError, match="unknown = 'skip'"):
        mipfs.FSPClassifier(M=1, unknown="skip").fit(X, np.where(X.a > 0.0, 1, 0))
