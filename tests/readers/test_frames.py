"""Data frames: read as the CSV file of the same contents, and predicted on by name."""

from __future__ import annotations

import dataclasses
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mipfs
from mipfs.errors import DataError, UsageError
from mipfs.result.result import Result

pd = pytest.importorskip("pandas")

CREDIT = Path(__file__).resolve().parents[2] / "instances" / "credit.csv"


def passengers(n: int = 120, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "pclass": rng.integers(1, 4, n),
            "sex": rng.choice(["male", "female"], n),
            "age": rng.uniform(1, 80, n).round(1),
            "embarked": pd.Categorical(rng.choice(list("SCQ"), n)),
            "alone": rng.random(n) < 0.5,
        }
    )
    score = (frame.sex == "female") * 1.5 + (frame.embarked == "C") * 0.9 - 0.4 * frame.pclass
    frame["survived"] = (score + 0.5 * rng.normal(size=n) > 0).map({True: "yes", False: "no"})
    return frame


def solved(frame: Any, **options: Any) -> Result:
    data = mipfs.read(frame, label="survived", scale="standard")
    return mipfs.solve(mipfs.Problem(data, M=3, C=1.0, **options))


def test_a_frame_is_the_file_of_the_same_contents(tmp_path: Path) -> None:
    frame = passengers().assign(alone=lambda f: f.alone.astype(int))
    frame.to_csv(tmp_path / "t.csv", index=False)
    one, other = mipfs.read(frame, label="survived"), mipfs.read(tmp_path / "t.csv", label="survived")
    assert one.feature_names == other.feature_names
    assert (one.groups, one.words, one.label) == (other.groups, other.words, "survived")
    assert one.words["embarked"] == ("C", "Q", "S")
    assert one.sha256 == other.sha256
    assert one.labels == other.labels == mipfs.data.instance.Labels("no", "yes")
    again = mipfs.read(pd.read_csv(CREDIT), label="repaid")
    np.testing.assert_array_equal(again.X, mipfs.read(CREDIT, scale="none").X)


def test_kinds_of_columns() -> None:
    frame = pd.DataFrame(
        {
            "number as object": pd.Series([1, 2.5, 3], dtype=object),
            "nullable": pd.array([1, 2, 3], dtype="Int64"),
            "code": pd.Categorical([10, 20, 10]),
            "float code": pd.Categorical([1.0, 2.0, 1.0]),
            7: [" a", "b ", "a"],
            "label": [True, False, True],
        }
    )
    data = mipfs.read(frame)
    assert data.feature_names == (
        "number as object", "nullable", "code=20", "float code=2", "7=b",
    )  # fmt: skip
    np.testing.assert_array_equal(data.X[:, :2], [[1, 1], [2.5, 2], [3, 3]])
    np.testing.assert_array_equal(data.y, [1, -1, 1])
    assert (data.source, data.labels.positive) == ("the data frame", 1)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            {"x": [1.0, np.nan, np.nan], "label": [0, 1, 1]},
            "column 'x' has no value at index 1, 2 values in all; fill it",
        ),
        ({"x": ["a", None, "b"], "label": [0, 1, 1]}, "column 'x' has no value at index 1; fill it in (fillna, or"),
        ({"x": [1, 2, 3], "label": ["a", None, "b"]}, "at index 1; leave out those rows: df.dropna(subset=['label'])"),
        ({"x": [1.0, np.inf, 2], "label": [0, 1, 1]}, "column 'x' is inf at index 1; every value must be a finite"),
        (
            {"x": [1, "a", 3], "label": [0, 1, 1]},
            "column 'x' is 'a' at index 1 and 1 at index 0; make them all numbers",
        ),
        ({"x": pd.to_datetime(["2020-01-01"] * 3), "label": [0, 1, 1]}, "column 'x' has the type datetime64"),
        ({"x": [[1], [2], [3]], "label": [0, 1, 1]}, "column 'x' holds a list; give numbers or words"),
        ({"x": [], "label": []}, "no samples"),
        ({"x": [1, 2, 3], "y": [0, 1, 1]}, "label='NAME' in Python: there are 'x', 'y'"),
    ],
)
def test_what_cannot_be_read_is_named(columns: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError) as caught:
        mipfs.read(pd.DataFrame(columns))
    assert str(caught.value).startswith("the data frame: ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_two_columns_of_one_name_and_options_of_files() -> None:
    frame = pd.DataFrame([[1, 2, 0], [2, 3, 1]], columns=["a", "a", "label"])
    with pytest.raises(DataError, match="two columns are called 'a'"):
        mipfs.read(frame)
    with pytest.raises(UsageError, match="n_features = 3"):
        mipfs.read(frame, n_features=3)


def test_predicting_on_frames_of_any_order_and_on_files(tmp_path: Path) -> None:
    frame = passengers()
    result = solved(frame)
    assert {name.partition("=")[0] for name in result.selected} & {"sex", "embarked"}
    data = mipfs.read(frame, label="survived")
    expected = data.labels.of(result.intercept + sum(w * data.X[:, data.index[f]] for f, w in result.weights.items()))
    for view in (frame, frame[frame.columns[::-1]].drop(columns="survived"), data):
        np.testing.assert_array_equal(result.predict(view), expected)
    again = Result.from_json(result.to_json())
    np.testing.assert_array_equal(again.predict(frame), expected)
    part = frame[frame.sex == "female"]  # no row has the other word
    np.testing.assert_array_equal(again.predict(part), expected[frame.sex == "female"])
    np.testing.assert_array_equal(again.predict(mipfs.read(part, label="survived")), expected[frame.sex == "female"])
    untouched = frame.assign(age=np.nan) if "age" not in result.weights else frame
    np.testing.assert_array_equal(again.predict(untouched), expected)
    coded = pd.get_dummies(frame.drop(columns="survived"), prefix_sep="=")  # the words as columns of their own
    np.testing.assert_array_equal(again.predict(coded), expected)


def test_a_category_that_training_did_not_see(tmp_path: Path) -> None:
    frame = passengers()
    result = solved(frame, forced_in=("embarked=C",))
    new = frame.astype({"embarked": str})
    new.loc[3, "embarked"] = "X"
    message = (
        r"column 'embarked' is 'X' (at index 3|in row 4), a category that training did not see: it knows 'C', 'Q', "
    )
    with pytest.raises(UsageError, match=message):
        result.predict(new)
    with pytest.raises(UsageError, match=message):
        result.predict(mipfs.read(new, label="survived"))
    new.loc[3, "embarked"] = None
    with pytest.raises(DataError, match="column 'embarked' has no value at index 3"):
        result.predict(new)
    with pytest.raises(UsageError, match="has no column 'embarked', which the classifier uses; it has 'pclass'"):
        result.predict(frame.drop(columns="embarked"))
    with pytest.raises(UsageError, match=r"holds words, but numbers when the classifier was trained"):
        solved(frame, forced_in=("pclass",)).predict(frame.assign(pclass="old"))


def test_names_with_an_equals_sign() -> None:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"a=b": rng.choice(["c=d", "e"], 40), "z": rng.normal(size=40)})
    frame["label"] = ((frame["a=b"] == "e") * 2 + frame.z > 1).astype(int)
    result = mipfs.solve(mipfs.Problem(mipfs.read(frame), M=2, C=5.0, forced_in=("a=b=e",)))
    assert "a=b=e" in result.weights
    with pytest.raises(mipfs.UsageError, match="'a=b=e' is the one feature of the column 'a=b'"):
        mipfs.Problem(mipfs.read(frame), M=2, C=5.0, forced_in=("a=b=c=d",))
    assert (result.predict(frame) == frame.label).mean() > 0.9


def test_the_result_remembers_how_the_data_was_read_and_verify_checks_it() -> None:
    frame = passengers()
    data = mipfs.read(frame, label="survived", scale="standard")
    result = solved(frame, forced_in=("sex=male",))
    document = json.loads(result.to_json())["read"]
    assert document["label"] == result.label_column == "survived"
    assert document["words"]["sex"] == ["female", "male"]
    assert mipfs.verify(result, data).accepted
    for read, word in (
        ({"label": "age"}, "not in 'age'"),
        ({"words": {**document["words"], "sex": ["male", "female"]}}, "not those of the data"),
        ({"words": {**document["words"], "age": ["1"]}}, "no column of words"),
    ):
        report = mipfs.verify(dataclasses.replace(result, read=document | read), data)
        assert not report.accepted
        assert word in report.reason
    plain = dataclasses.replace(data, words={}, label=None, reading=None)
    assert any("words" in line for line in mipfs.verify(result, plain).unchecked)


@pytest.mark.slow
def test_pandas_is_not_needed() -> None:
    code = "import sys; sys.modules['pandas'] = None; import mipfs; print(mipfs.read('instances/credit.csv').n_samples)"
    root = CREDIT.parents[1]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=root)
    assert (done.stdout, done.stderr) == ("200\n", "")


def test_a_frame_from_text() -> None:
    frame = pd.read_csv(io.StringIO("x,y,label\n1,2,a\n2,1,b\n3,5,b\n"))
    assert mipfs.read(frame, positive="a").labels.negative == "b"


def test_a_frame_for_a_classifier_that_was_trained_without_names() -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(40, 3))
    y = np.where(X[:, 1] > 0, 1.0, -1.0)
    result = mipfs.solve(mipfs.Problem(mipfs.Instance.from_arrays(X, y), M=1, C=1.0))
    frame = pd.DataFrame(X, columns=list("abc"))
    np.testing.assert_array_equal(result.predict(frame), result.predict(X))
    with pytest.raises(UsageError, match="no column 'x2', which the classifier uses; it has 'a', 'b', 'c', 'd'"):
        result.predict(frame.assign(d=1))
    with pytest.raises(DataError, match=r"mipfs\.read\(frame, label=\.\.\.\) reads words"):
        mipfs.Instance.from_arrays(frame.assign(a="word"), y)


def test_all_columns_with_missing_values_are_named() -> None:
    frame = passengers().assign(cabin=None)
    frame.loc[[3, 5], "age"] = np.nan
    with pytest.raises(
        DataError, match="column 'age' has no value at index 3, 2 values in all; so have 'cabin'; fill it"
    ):
        mipfs.read(frame, label="survived")


def test_the_index_that_a_file_was_written_with_is_left_out() -> None:
    frame = passengers()
    stream = io.StringIO()
    frame.to_csv(stream)
    again = pd.read_csv(io.StringIO(stream.getvalue()))
    with pytest.warns(mipfs.DataWarning, match="the column 'Unnamed: 0' holds row numbers and is left out"):
        data = mipfs.read(again, label="survived")
    assert data.feature_names == mipfs.read(frame, label="survived").feature_names
    assert "Unnamed: 0" in mipfs.read(again.assign(**{"Unnamed: 0": 0.5}), label="survived").feature_names


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (np.zeros((3, 2)), "a ndarray cannot be read, only a file or a data frame; Instance.from_arrays"),
        (None, "a NoneType cannot be read"),
        (pd.Series([1.0]), "a Series cannot be read"),
    ],
)
def test_what_is_no_data_is_refused(given: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        mipfs.read(given)


def test_labels_by_number_and_of_the_wrong_kind() -> None:
    frame = pd.DataFrame([[1.0, 0], [2.0, 1], [0.5, 0]])
    data = mipfs.read(frame, label=1)
    assert (data.feature_names, data.label) == (("0",), "1")
    with pytest.raises(UsageError, match="label is a Series; give the name"):
        mipfs.read(frame, label=frame[1])  # type: ignore[arg-type]
    coded = frame.rename(columns={1: "label"}).astype({"label": "category"})
    assert mipfs.read(coded).labels == mipfs.data.instance.Labels(0, 1)


def test_predicting_on_words_that_are_no_frame() -> None:
    frame = passengers()
    result = solved(frame)
    for odd in (frame.to_numpy(), "titanic.csv"):
        with pytest.raises(UsageError, match="X holds words; give numbers, a data frame"):
            result.predict(odd)
    assert result.predict(frame.iloc[0]).tolist() == result.predict(frame).tolist()[:1]
    assert result.predict(frame.iloc[:0]).tolist() == []
