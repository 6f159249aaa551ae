"""Result: the JSON and what can be predicted from it."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from mipfs.data.instance import Instance
from mipfs.errors import DataError, UsageError
from mipfs.result.gap import relative_gap
from mipfs.result.result import Record, Result, Status, StopReason

NAMES = ("age", "income", "debt", "x4")


def make_result(**changes: Any) -> Result:
    values: dict[str, Any] = {
        "status": Status.OPTIMAL,
        "stop_reason": StopReason.GAP_CLOSED,
        "objective": 2.0,
        "bound": 1.9999,
        "selected": ("debt", "age"),
        "weights": {"debt": -0.5, "age": 2.0},
        "intercept": 0.25,
        "params": {"M": np.int64(2), "C": 1.0, "lam": np.array([0.0, 1.0, 0.0, 0.0])},
        "driver": "gbd",
        "seconds": 0.5,
        "counters": {"cuts": 3},
        "trace": (Record(0.1, 0, math.inf, -math.inf), Record(0.5, 1, 2.0, 1.9999, 2, {"cuts": 3})),
        "labels": {"negative": "good", "positive": "bad"},
        "columns": {"debt": 2, "age": 0},
        "n_features": 4,
        "scaling": {"kind": "standard", "shift": {"debt": 1.0, "age": 40.0}, "scale": {"debt": 2.0, "age": 10.0}},
        "data_sha256": "0" * 64,
        "rows": ({"name": "budget", "terms": {"age": 1.0}, "lb": -math.inf, "ub": 12.0, "origin": "rows.lp:3"},),
        "versions": {"mipfs": "0.1.0"},
    }
    return Result(**(values | changes))


def make_instance(rng: np.random.Generator, **options: Any) -> tuple[np.ndarray, Instance]:
    X = rng.normal(size=(30, 4)) * [10.0, 1.0, 2.0, 1.0] + [40.0, 0.0, 1.0, 3.0]
    y = np.where(np.arange(30) % 2 == 0, 1.0, -1.0)
    return X, Instance.from_arrays(options.pop("X", X), y, feature_names=NAMES, **options)


def test_the_json_has_the_fields_of_schema_1_and_no_infinity() -> None:
    text = make_result().to_json()
    document = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} in the JSON"))
    assert document["schema"] == 1
    numbers = {"objective", "bound", "gap", "weights", "intercept", "seconds", "counters", "trace"}
    about = {"status", "stop_reason", "selected", "params", "driver", "certificate", "relaxed"}
    data = {"data_sha256", "rows", "versions", "scaling", "labels"}
    assert numbers | about | data <= set(document)
    assert document["trace"][0] == {"seconds": 0.1, "iteration": 0, "objective": None, "bound": None}
    assert document["rows"][0]["lb"] is None
    assert document["params"] == {"M": 2, "C": 1.0, "lam": [0.0, 1.0, 0.0, 0.0]}
    assert document["gap"] == pytest.approx(5e-5)


def test_what_is_shown_of_a_result_is_one_line_whatever_its_file_says() -> None:
    shown = repr(make_result(driver="branch\n\x1b[2J"))
    assert shown.isprintable()
    assert r"branch\n\x1b[2J" in shown


def test_an_unearned_value_is_null_and_comes_back_as_infinity() -> None:
    result = make_result(
        status=Status.NO_SOLUTION, stop_reason=StopReason.TIME_LIMIT, objective=math.inf, bound=-math.inf,
        selected=(), weights={}, intercept=math.nan,
    )  # fmt: skip
    document = json.loads(result.to_json())
    assert document["objective"] is document["bound"] is document["gap"] is document["intercept"] is None
    back = Result.from_json(result.to_json())
    assert (back.objective, back.bound, back.gap) == (math.inf, -math.inf, math.inf)
    with pytest.raises(UsageError, match="NO_SOLUTION"):
        back.predict(np.zeros((1, 4)))


def test_reading_back_gives_the_same_json(tmp_path: Path) -> None:
    result = make_result()
    result.save(tmp_path / "r.json")
    back = Result.load(tmp_path / "r.json")
    assert back.to_json() == result.to_json()
    assert result.document() == json.loads(result.to_json())
    assert back.status is Status.OPTIMAL
    assert back.trace[1].gap == relative_gap(2.0, 1.9999)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"r\.json:1: not a JSON document"),
        ('{"schema": 1,\n "gap": NaN}', "NaN is no number of JSON"),
        ('{"schema": 2}', "not a result of schema 1"),
        ("[1]", "not a result of schema 1"),
        ('{"schema": 1}', "not a complete result: it has no 'status'"),
    ],
)
def test_a_bad_file_is_named_with_what_is_wrong(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "r.json"
    path.write_text(text)
    with pytest.raises(DataError, match=message) as caught:
        Result.load(path)
    assert caught.value.remedy
    assert str(path) in str(caught.value)


def test_a_field_of_the_wrong_kind_is_an_error() -> None:
    document = json.loads(make_result().to_json())
    odd = {"weights": [1], "trace": 3, "status": "GREAT", "objective": "low", "params": [], "certificate": []}
    odd |= {"columns": {"debt": 4, "age": 0}, "labels": {"negative": 1}, "scaling": {"kind": "log"}}
    claim = {"kind": "tree", "bound": 1.0, "gap": 0.0, "sha256": ""}
    for name, value in [*odd.items(), *(("certificate", claim | {"file": file}) for file in ("", "a/b", ".."))]:
        with pytest.raises(DataError, match="not a complete result"):
            Result.from_json(json.dumps(document | {name: value}))


@pytest.mark.parametrize("number", ["1e999", "1" + "0" * 400, "9" * 5000, "NaN", "[" * 100_000, "[" * 50 + "]" * 50])
def test_what_json_allows_and_floating_point_or_sense_do_not(number: str) -> None:
    with pytest.raises(DataError, match="not a JSON document"):
        Result.from_json(make_result().to_json().replace('"intercept": 0.25', f'"intercept": {number}'))


def test_a_missing_or_binary_file_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        Result.load(tmp_path / "absent.json")
    with pytest.raises(DataError, match="which has no end"):
        Result.load("/dev/zero")
    (tmp_path / "b.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match="not a text file"):
        Result.load(tmp_path / "b.json")
    with pytest.raises(UsageError, match="cannot be written"):
        make_result().save(tmp_path / "no" / "r.json")


@pytest.mark.parametrize("scale", ["none", "standard", "unit"])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_decision_values_do_not_depend_on_how_new_data_is_scaled(scale: Any, is_sparse: bool) -> None:
    rng = np.random.default_rng(0)
    X, _ = make_instance(rng)
    _, data = make_instance(rng, X=sparse.csc_array(X) if is_sparse else X, scale=scale)
    expected = 2.0 * X[:, 0] - 0.5 * X[:, 2] + 0.25
    result = Result.from_json(make_result().to_json())
    np.testing.assert_allclose(result.decision_function(data), expected, rtol=1e-12, atol=1e-10)
    np.testing.assert_allclose(result.decision_function(X), expected, rtol=1e-12)
    np.testing.assert_allclose(result.decision_function(sparse.csr_array(X)), expected, rtol=1e-12)
    assert set(result.predict(X)) <= {"good", "bad"}
    assert list(result.predict(X[:5])) == ["bad" if f > 0 else "good" for f in expected[:5]]


def test_columns_are_matched_by_name_and_only_unnamed_ones_by_place() -> None:
    X, data = make_instance(np.random.default_rng(1))
    result = make_result()
    order = [3, 2, 1, 0]
    y = data.y
    shuffled = Instance.from_arrays(X[:, order], y, feature_names=[NAMES[j] for j in order])
    np.testing.assert_allclose(result.decision_function(shuffled), result.decision_function(X))
    unnamed = Instance.from_arrays(X, y)
    np.testing.assert_allclose(result.decision_function(unnamed), result.decision_function(X))
    other = Instance.from_arrays(X, y, feature_names=["age", "income", "loan", "x4"], source="new.csv")
    with pytest.raises(UsageError, match=r"new\.csv has no feature 'debt'"):
        result.decision_function(other)


def test_a_data_frame_is_matched_by_name() -> None:
    pandas = pytest.importorskip("pandas")
    X, _ = make_instance(np.random.default_rng(2))
    frame = pandas.DataFrame(X, columns=NAMES)[["debt", "x4", "age"]]
    result = make_result()
    np.testing.assert_allclose(result.decision_function(frame), result.decision_function(X))
    with pytest.raises(UsageError, match="no column 'age'"):
        result.decision_function(frame.drop(columns="age"))


def test_an_array_of_another_width_is_refused() -> None:
    with pytest.raises(UsageError, match=r"needs \(n, 4\)"):
        make_result().decision_function(np.zeros((2, 3)))


def test_masked_values_and_ragged_rows_are_not_predicted() -> None:
    with pytest.raises(DataError, match="masked value in row 2, column 1"):
        make_result().predict(np.ma.MaskedArray(np.zeros((2, 4)), mask=[[False] * 4, [True] * 4]))
    with pytest.raises(DataError, match="rows of different lengths"):
        make_result().predict([[0.0] * 4, [0.0] * 3])


def test_a_classifier_without_features_predicts_the_sign_of_its_intercept() -> None:
    result = make_result(selected=(), weights={}, columns={}, intercept=-1.0)
    assert list(result.predict(np.zeros((3, 4)))) == ["good"] * 3
    assert list(dataclasses.replace(result, labels={"negative": 2, "positive": 4}).predict(np.zeros((1, 4)))) == [2]


@pytest.mark.parametrize(
    ("objective", "bound", "gap"),
    [
        (2.0, 1.0, 0.5),
        (2.0, 2.5, -0.25),  # a contradiction, which no run reports: not a gap that is closed
        (math.inf, 1.0, math.inf),
        (0.0, -1e-10, math.inf),
        (0.0, 0.0, 0.0),
        (-1e-12, -2e-12, 1.0),
    ],
)
def test_the_gap_is_relative_to_the_objective(objective: float, bound: float, gap: float) -> None:
    assert relative_gap(objective, bound) == gap
