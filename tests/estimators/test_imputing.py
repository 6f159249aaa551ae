"""Missing values in the estimators: the medians of the training rows, as scikit-learn's imputer has them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.impute import SimpleImputer
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

import mipfs
from mipfs import FSPClassifier
from mipfs.errors import DataWarning


def gappy(seed: int = 0, n: int = 60) -> tuple[np.ndarray, np.ndarray]:
    r = np.random.default_rng(seed)
    X = r.normal(size=(n, 4))
    y = np.where(X[:, 0] - X[:, 1] + 0.5 * r.normal(size=n) > 0, "yes", "no")
    return np.where(r.random(X.shape) < 0.15, np.nan, X), y


def table() -> tuple[pd.DataFrame, np.ndarray]:
    """Numbers, and words of which some are missing too."""
    X, y = gappy(3)
    r = np.random.default_rng(1)
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame["home"] = np.where(r.random(60) < 0.2, None, np.where(y == "yes", "own", r.choice(["rent", "free"], 60)))
    return frame, y


@pytest.mark.parametrize(("how", "strategy"), [("median", "median"), ("most frequent", "most_frequent")])
def test_it_is_the_imputer_of_scikit_learn(how: str, strategy: str) -> None:
    X, y = gappy()
    model = FSPClassifier(M=2, C=1.0, scale="standard", impute=how).fit(X, y)
    imputer = SimpleImputer(strategy=strategy)
    plain = FSPClassifier(M=2, C=1.0, scale="standard")
    pipe = make_pipeline(imputer, plain).fit(X, y)
    new = gappy(7)[0]
    assert np.array_equal(model.support_, plain.support_)
    np.testing.assert_allclose(model.decision_function(new), pipe.decision_function(new), atol=1e-9)
    np.testing.assert_allclose(model.transform(new), plain.transform(imputer.transform(new)))
    kept = StratifiedKFold(2)
    assert np.array_equal(cross_val_score(model, X, y, cv=kept), cross_val_score(pipe, X, y, cv=kept))
    thin = FSPClassifier(M=2, C=1.0, scale="standard", impute=how).fit(sparse.csc_array(X), y)
    np.testing.assert_allclose(thin.decision_function(sparse.csc_array(new)), model.decision_function(new), atol=1e-6)


def test_missing_values_are_an_error_without_it() -> None:
    X, y = gappy()
    with pytest.raises(ValueError, match="NaN"):
        FSPClassifier().fit(X, y)
    assert not FSPClassifier().__sklearn_tags__().input_tags.allow_nan
    assert FSPClassifier(impute="median").__sklearn_tags__().input_tags.allow_nan
    with pytest.raises(ValueError, match="give a data frame"):
        FSPClassifier(impute="level").fit(X, y)
    with pytest.raises(ValueError, match="no value at all"):
        FSPClassifier(impute="median").fit(np.where([True, False, False, False], np.nan, X), y)


@pytest.mark.parametrize("how", ["median", "level", {"*": "median", "home": "level"}])
def test_a_frame_is_filled_as_mipfs_read_fills_it(how: object, tmp_path: Path) -> None:
    frame, y = table()
    model = FSPClassifier(M=3, C=1.0, scale="standard", impute=how).fit(frame, y)
    data = mipfs.read(frame.assign(label=y), scale="standard", positive="yes", impute=how)
    result = mipfs.solve(mipfs.Problem(data, M=3, C=1.0))
    assert model.result_.data_sha256 == data.sha256
    assert model.result_.selected == result.selected
    assert model.verify(frame, y).accepted
    new = table()[0].iloc[::-1].reset_index(drop=True)
    assert list(model.predict(new)) == list(result.predict(new)) == list(model.result_.predict(new))
    assert list(model.predict([new.iloc[0].to_dict()])) == [model.predict(new)[0]]


def test_probabilities_learn_medians_fold_by_fold() -> None:
    X, y = gappy(5)
    model = FSPClassifier(M=2, C=1.0, probability=True, impute="median").fit(X, y)
    scores = np.zeros(60)
    for train, test in StratifiedKFold(5).split(X, y):
        pipe = make_pipeline(SimpleImputer(strategy="median"), FSPClassifier(M=2, C=1.0)).fit(X[train], y[train])
        scores[test] = pipe.decision_function(X[test])
    from mipfs.result.probability import fit_calibration

    right = fit_calibration(scores, np.where(y == "yes", 1.0, -1.0), 5)
    assert model.result_.calibration["a"] == pytest.approx(right["a"], abs=1e-6)


def test_kinds_of_columns_are_read_as_mipfs_read_reads_them() -> None:
    r = np.random.default_rng(2)
    pay, y = r.integers(1000, 9000, 40), np.arange(40) % 2
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(r.integers(0, 900, 40), "D")
    frame = pd.DataFrame(
        {"pay": [f"${one:,}.50" for one in pay], "day": days.strftime("%d/%m/%Y"), "a": r.normal(size=40)}
    )
    frame.loc[y == 1, "pay"] = [f"${one:,}.00" for one in pay[y == 1] + 3000]
    types = {"pay": "currency", "day": "date d/m/y"}
    given = {"M": 2, "C": 1.0, "scale": "standard"}
    model = FSPClassifier(**given, types=types, probability=True).fit(frame, y)
    data = mipfs.read(frame.assign(label=y), scale="standard", types=types)
    assert model.result_.data_sha256 == data.sha256
    assert model.verify(frame, y).accepted
    numbers = pd.DataFrame(data.X * data.scale + data.shift, columns=data.feature_names)[["pay", "day", "a"]]
    same = FSPClassifier(**given, probability=True).fit(numbers, y)
    np.testing.assert_allclose(model.predict_proba(frame), same.predict_proba(numbers), atol=1e-6)
    assert model.decision_function([frame.iloc[3].to_dict()]) == pytest.approx(model.decision_function(frame)[3])
    with pytest.raises(ValueError, match="pay"):
        model.predict(frame.assign(pay=["much"] * 40))
    with pytest.raises(ValueError, match="which is not there; did you mean 'pay'"):
        FSPClassifier(types={"pays": "currency"}).fit(frame, y)
    with pytest.raises(ValueError, match="give a data frame"):
        FSPClassifier(types=types).fit(frame[["a"]].to_numpy(), y)
    with pytest.raises(ValueError, match="it is one of 'date'"):
        FSPClassifier(types={"pay": "money"}).fit(frame, y)
    with pytest.warns(DataWarning, match=r"give types=\{'day': 'date d/m/y'\}$"):
        FSPClassifier(M=1, types={"pay": "currency"}).fit(frame, y)
    with pytest.raises(ValueError, match=r"could not convert string.*set_output"):
        FSPClassifier().fit(frame.to_numpy(), y)
    with pytest.raises(ValueError, match="has no value at index 0"):
        FSPClassifier(types=types).fit(frame.replace(frame["pay"][0], None), y)


@pytest.mark.slow
def test_it_passes_the_checks_of_scikit_learn() -> None:
    check_estimator(FSPClassifier(impute="median"))
