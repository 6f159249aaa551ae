"""Data frames with columns of words in the estimators: what is missing, new, or cannot be taken is said by its name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_selection import SelectFromModel

from mipfs import FSPClassifier


def frame_with_words(n: int = 60) -> tuple[Any, Any]:
    rng = np.random.default_rng(3)
    X = pd.DataFrame(
        {
            "status": rng.choice(["low", "mid", "high"], n),
            "months": rng.standard_normal(n),
            "phone": rng.choice(["no", "yes"], n),
        }
    )
    return X, np.where(X["months"] + (X["status"] == "low") > 0.4, "good", "bad")


def test_a_column_that_is_gone_is_named_with_what_may_have_been_meant() -> None:
    X, y = frame_with_words()
    model = FSPClassifier(M=2).fit(X, y)
    with pytest.raises(ValueError, match="there is no column 'status', which training had; did you mean 'Status'"):
        model.predict(X.rename(columns={"status": "Status"}))
    with pytest.raises(ValueError, match="no column 'months'"):
        model.predict([{"status": "low", "phone": "no"}])
    said = {f"status={word}": X["status"] == word for word in ("high", "low", "mid")}
    encoded = pd.DataFrame({**said, "months": X["months"], "phone": X["phone"]})
    assert model.predict(encoded).tolist() == model.predict(X).tolist()


def test_a_new_word_counts_only_where_it_can_change_the_answer() -> None:
    X, y = frame_with_words()
    model = FSPClassifier(M=2).fit(X, y)
    assert not any(name.startswith("phone") for name in model.get_feature_names_out())
    assert model.predict(X.assign(phone="perhaps")).tolist() == model.predict(X).tolist()
    with pytest.raises(ValueError, match="'middle', a category that training did not see"):
        model.predict(X.assign(status="middle"))


@pytest.mark.parametrize("gone", [None, float("nan")])
def test_missing_labels_are_named(gone: Any) -> None:
    X, y = frame_with_words()
    labels = y.astype(object)
    labels[4] = gone
    with pytest.raises(ValueError, match="a missing value, the first in row 5"):
        FSPClassifier(M=2).fit(X, labels)


def test_a_fit_that_selects_nothing_says_so() -> None:
    X, _ = frame_with_words()
    with pytest.warns(UserWarning, match="none is selected"):
        FSPClassifier(M=2, C=1e-6).fit(X, np.where(np.arange(60) < 55, "good", "bad"))


def test_it_is_said_that_nothing_is_worth_its_weight_only_where_that_is_proven() -> None:
    X, y = frame_with_words()
    with pytest.warns(UserWarning, match="no feature is selected") as said:
        FSPClassifier(M=2, time_limit=1e-9, gap=0.0).fit(X, y)
    texts = [str(one.message) for one in said]
    assert any("stopped by TIME_LIMIT" in one for one in texts)
    assert any("no feature is selected, and it is not proven that none is worth its weight" in one for one in texts)
    assert not any("try a larger C" in one for one in texts)
    with pytest.warns(UserWarning, match="no feature is worth its weight, and none is selected: .* try a larger C"):
        FSPClassifier(M=2, lam=10.0, C=1e-6).fit(X, y)


@pytest.mark.parametrize("given", [{}, [{}], [{}, {}]])
def test_rows_without_a_name_are_refused_by_what_they_lack(given: Any) -> None:
    X, y = frame_with_words()
    with pytest.raises(ValueError, match=r"a row by the names of its cells has none; give \{column: cell\}"):
        FSPClassifier(M=2).fit(X, y).predict(given)


def test_a_column_of_words_is_forced_where_classes_share_their_support() -> None:
    X, _ = frame_with_words()
    y = np.digitize(X["months"], [-0.5, 0.5])
    model = FSPClassifier(M=3, shared_support=True, forced_in=["status", "months"]).fit(X, y)
    assert "months" in model.result_.selected
    assert any(name.startswith("status=") for name in model.result_.selected)
    assert model.verify(X, y).accepted
    free = FSPClassifier(M=1, shared_support=True, forced_in=["status"]).fit(X, y)
    assert [name.partition("=")[0] for name in free.get_feature_names_out()] == ["status"]
    never = FSPClassifier(M=4, shared_support=True, forced_out=["status", "months"]).fit(X, y)
    assert {name.partition("=")[0] for name in never.get_feature_names_out()} <= {"phone"}
    assert never.verify(X, y).accepted
    with pytest.raises(ValueError, match="forced_in: nothing is called 'state'"):
        FSPClassifier(M=3, shared_support=True, forced_in=["state"]).fit(X, y)


def test_dates_are_refused_with_how_to_make_numbers_of_them() -> None:
    X, y = frame_with_words()
    with pytest.raises(ValueError, match="days since the first"):
        FSPClassifier(M=2).fit(X.assign(since=pd.Timestamp("2026-01-01")), y)


def test_select_from_model_over_words_says_what_to_do() -> None:
    X, y = frame_with_words()
    selector = SelectFromModel(FSPClassifier(M=2)).fit(X, y)
    with pytest.warns(UserWarning, match="use FSPClassifier itself"), pytest.raises(IndexError):
        selector.transform(X)
