"""Frames that are none of pandas are taken by the names of their columns, as pandas's are, or refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mipfs
from mipfs.errors import UsageError
from mipfs.lab.mil.algorithm import solve_bags

pd = pytest.importorskip("pandas")
pa = pytest.importorskip("pyarrow")

REVERSED = ["city", "c", "b", "a"]


def table() -> Any:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(120, 3)), columns=["a", "b", "c"])
    frame["city"] = rng.choice(["Ulm", "Bonn"], 120)
    frame["y"] = np.where(frame.a - frame.b + (frame.city == "Ulm") + 0.1 * rng.normal(size=120) > 0.5, "yes", "no")
    return frame


def arrow(frame: Any) -> Any:
    return pa.Table.from_pandas(frame, preserve_index=False)


def batch(frame: Any) -> Any:
    return pa.RecordBatch.from_pandas(frame, preserve_index=False)


def polars(frame: Any) -> Any:
    pl = pytest.importorskip("polars")
    return pl.DataFrame({name: frame[name].to_list() for name in frame.columns})


def narwhals(frame: Any) -> Any:
    return pytest.importorskip("narwhals").from_native(frame)


KINDS = pytest.mark.parametrize("kind", [arrow, batch, polars, narwhals])


class Plan:
    """What is not computed yet, as a lazy frame of polars."""

    def collect(self) -> Any:
        raise AssertionError("nobody asked for it")

    def collect_schema(self) -> Any:
        raise AssertionError("nobody asked for it")


class Other:
    """A frame of a kind that nobody knows, whose values could be had by position."""

    columns = ("a", "b", "c")
    shape = (120, 3)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.zeros((120, 3))


@KINDS
def test_results_cards_and_scores_go_by_name(kind: Any) -> None:
    frame = table()
    data = mipfs.read(frame, label="y", scale="standard")
    result = mipfs.solve(mipfs.Problem(data, M=3, C=1.0))
    other = kind(frame[REVERSED])
    np.testing.assert_array_equal(result.decision_function(other), result.decision_function(frame))
    np.testing.assert_array_equal(result.predict(other), result.predict(frame))
    assert result.evaluate(other, frame["y"]) == result.evaluate(frame)
    assert result.evaluate(kind(frame[["y", *REVERSED]])) == result.evaluate(frame)
    card = mipfs.scorecard(result, data, bins=3)
    np.testing.assert_array_equal(card.totals(other), card.totals(frame))
    with pytest.raises(UsageError, match="no column"):
        result.predict(kind(frame[["a", "city"]]))


@KINDS
def test_data_are_read_with_their_names(kind: Any) -> None:
    frame = table()
    known = mipfs.read(frame, label="y")
    assert mipfs.read(kind(frame), label="y").sha256 == known.sha256
    numbers, signs = frame[["a", "b", "c"]], np.where(frame["y"] == "yes", 1, -1)
    data = mipfs.Instance.from_arrays(kind(numbers[["c", "a", "b"]]), signs)
    assert list(data.feature_names) == ["c", "a", "b"]
    result = mipfs.solve(mipfs.Problem(mipfs.Instance.from_arrays(numbers, signs), M=2, C=1.0))
    np.testing.assert_array_equal(result.predict(data), result.predict(numbers))
    assert not mipfs.verify(result, data).accepted
    assert mipfs.verify(result, mipfs.Instance.from_arrays(kind(numbers), signs)).accepted


@pytest.mark.sampled(2)
@KINDS
def test_estimators_take_words_and_hold_the_order(kind: Any) -> None:
    frame = table()
    X, y = frame[["a", "b", "c", "city"]], frame["y"].to_numpy()
    model = mipfs.FSPClassifier(M=3, C=1.0).fit(X, y)
    again = mipfs.FSPClassifier(M=3, C=1.0).fit(kind(X), y)
    assert list(again.feature_names_in_) == list(model.feature_names_in_)
    assert model.verify(kind(X), y).accepted
    np.testing.assert_array_equal(again.predict(kind(X)), model.predict(X))
    np.testing.assert_array_equal(model.transform(kind(X)), model.transform(X))
    with pytest.raises(ValueError, match="same order"):
        model.predict(kind(frame[REVERSED]))


@pytest.mark.sampled(5)
@KINDS
def test_the_other_estimators_hold_the_order(kind: Any) -> None:
    frame = table()
    X, y, signs = frame[["a", "b", "c"]], frame["y"].to_numpy(), np.where(frame["y"] == "yes", 1, -1)
    sketch = mipfs.LeverageSelector(r=2, random_state=0).fit(kind(X), y)
    bags = mipfs.MILClassifier(M=3, time_limit=5).fit(kind(X), y)
    for use in (sketch.transform, bags.predict):
        use(kind(X))
        with pytest.raises(ValueError, match="same order"):
            use(kind(X[["c", "b", "a"]]))
    data = mipfs.Instance.from_arrays(X, signs, bags=np.arange(120) // 2)
    data = mipfs.Instance.from_arrays(X, np.repeat(signs[::2], 2), bags=data.bags)
    found = solve_bags(data, M=3, time_limit=5)
    expected = found.decision_function(X.to_numpy(), data.bags)
    np.testing.assert_array_equal(found.decision_function(kind(X[["c", "b", "a"]]), data.bags), expected)
    with pytest.raises(UsageError, match="no column 'a'"):
        found.predict(kind(X[["b", "c"]]), data.bags)


@pytest.mark.parametrize(("X", "words"), [(Plan(), r"give \.collect\(\) of it"), (Other(), "give a pandas data frame")])
def test_what_is_no_table_yet_is_refused(X: Any, words: str) -> None:
    frame = table()[["a", "b", "c", "y"]]
    data = mipfs.read(frame, label="y")
    result = mipfs.solve(mipfs.Problem(data, M=1, C=1.0))
    card = mipfs.scorecard(result, data, bins=2)
    model = mipfs.FSPClassifier(M=1).fit(frame[["a", "b", "c"]], frame["y"])
    y = np.where(frame["y"] == "yes", 1, -1)
    for use in (
        lambda: result.predict(X),
        lambda: result.evaluate(X, frame["y"]),
        lambda: card.totals(X),
        lambda: mipfs.read(X, label="y"),
        lambda: mipfs.Instance.from_arrays(X, y),
        lambda: mipfs.Instance.from_arrays(X, y, feature_names=["a", "b", "c"]),
        lambda: model.predict(X),
        lambda: model.transform(X),
        lambda: mipfs.FSPClassifier(M=1).fit(X, y),
        lambda: mipfs.LeverageSelector(r=2).fit(X),
        lambda: mipfs.MILClassifier(M=1).fit(X, y),
    ):
        with pytest.raises((UsageError, ValueError), match=words):
            use()


def test_a_lazy_frame_of_polars_is_refused() -> None:
    frame = table()
    result = mipfs.solve(mipfs.Problem(mipfs.read(frame, label="y"), M=1, C=1.0))
    with pytest.raises(UsageError, match="LazyFrame of polars"):
        result.predict(polars(frame).lazy())


def test_what_is_neither_numbers_nor_words_is_named_in_estimators() -> None:
    frame = table()
    X, y = frame[["a", "b"]], frame.y
    dates = pd.date_range("2024", periods=120)
    for column in (dates, dates.tz_localize("UTC"), dates - dates[0], dates.to_period("D")):
        with pytest.raises(ValueError, match=r"column 'when' .*give numbers or words"):
            mipfs.FSPClassifier(M=1).fit(X.assign(when=column), y)
    model = mipfs.FSPClassifier(M=1).fit(X, y)
    with pytest.raises(ValueError, match="column 'a' has the type datetime"):
        model.predict(X.assign(a=dates))


def test_missing_values_are_refused_with_what_fills_them_in() -> None:
    frame = table()
    X, y = frame[["a", "b"]].copy(), frame.y
    X.loc[3, "b"] = np.nan
    for given in (X, X.to_numpy()):
        with pytest.raises(ValueError, match=r"^Input X contains NaN; fill missing values in, or give impute="):
            mipfs.FSPClassifier(M=1).fit(given, y)


def test_names_and_numbers_of_columns_are_those_of_the_frame() -> None:
    frame = table()
    frame["size"] = np.random.default_rng(1).choice(["S", "M", "L"], 120)
    X, y = frame.drop(columns="y"), frame.y
    model = mipfs.FSPClassifier(M=3, C=1.0, forced_in=["size"]).set_output(transform="pandas").fit(X, y)
    assert model.feature_names_in_.tolist() == list(X.columns)
    assert model.n_features_in_ == 5
    assert model.columns_.tolist() == list(mipfs.read(frame, label="y", checks=False).feature_names)
    assert model.coef_.shape[1] == model.support_.size == model.columns_.size == 7
    kept = model.columns_[model.support_].tolist()
    assert model.get_feature_names_out().tolist() == kept == model.get_feature_names_out(X.columns).tolist()
    assert model.transform(X).columns.tolist() == kept
    with pytest.raises(ValueError, match="input_features is not equal"):
        model.get_feature_names_out(kept)
    encoded = pd.DataFrame(
        {
            name: X[name] if name in X else (X[name[: name.index("=")]] == name[name.index("=") + 1 :]).astype(float)
            for name in model.columns_
        }
    )
    np.testing.assert_array_equal(model.predict(encoded), model.predict(X))
    assert model.verify(X, y).accepted
    again = model.set_params(forced_in=None).fit(X[["a", "b"]], y)
    assert again.n_features_in_ == 2
    assert not hasattr(again, "columns_")
