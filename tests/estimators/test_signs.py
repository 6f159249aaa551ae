"""`monotonic_cst` and `positive=True`: against all supports by Clarabel, in every form, refused where not carried."""

from __future__ import annotations

import itertools
import math
import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mipfs
from mipfs import FGMClassifier, FGMSelector, FSPClassifier
from tests.bounded_cases import LOSSES, SCALES, BoundedCase, case

RNG = np.random.default_rng(8)
N, P = 50, 5
X = RNG.normal(size=(N, P)) * np.array([1.0, 5.0, 0.2, 1.0, 1.0]) + 2.0
Y = np.where(X[:, 0] - 0.2 * X[:, 1] + 3.0 * X[:, 2] - 0.5 * X[:, 4] + 0.7 * RNG.normal(size=N) > 6.6, "yes", "no")
SIGNS = [-1, 1, 1, 0, -1]
"""Two of them against what the data says."""
FRAME = pd.DataFrame(X, columns=["income", "debt", "years", "age", "rate"])


def reference(signs: list[int], **changes: Any) -> BoundedCase:
    """The same problem for Clarabel."""
    low = np.array([0.0 if one == 1 else -math.inf for one in signs])
    high = np.array([0.0 if one == -1 else math.inf for one in signs])
    given = BoundedCase(
        0, X, np.where(Y == "yes", 1.0, -1.0), "standard", "hinge", True, 1.0, 2, low, high, np.zeros(P),
        np.zeros((0, P)), np.zeros(0), np.ones(N),
    )  # fmt: skip
    return replace(given, **changes)


@pytest.mark.sampled(11)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("scale", SCALES)
def test_the_best_features_with_signs(loss: str, scale: Any) -> None:
    for signs, asked in ((SIGNS, {"monotonic_cst": SIGNS}), ([1] * P, {"positive": True})):
        values = reference(signs, loss=loss, scale=scale).values()
        model = FSPClassifier(M=2, loss=loss, scale=scale, gap=1e-8, **asked).fit(X, Y)
        assert model.result_.objective == pytest.approx(min(values.values()), rel=1e-6)
        kept = frozenset(np.flatnonzero(model.support_).tolist())
        assert values[kept] == pytest.approx(min(values.values()), rel=1e-6)
        assert np.all(np.array(signs) * model.coef_[0] >= 0.0)
        assert model.result_.objective >= FSPClassifier(M=2, loss=loss, scale=scale).fit(X, Y).result_.bound
        # The classifier that is kept is the refitted SVM with the bounds, not the plain one.
        again = np.array([model.result_.weights.get(name, 0.0) for name in ("x1", "x2", "x3", "x4", "x5")])
        np.testing.assert_allclose(model.coef_[0], again, rtol=1e-3, atol=1e-3 * np.abs(again).max())


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES)
def test_the_relaxation_with_signs(loss: str) -> None:
    best = min(reference(SIGNS, loss=loss).values().values())
    asked: dict[str, Any] = {"loss": loss, "scale": "standard", "monotonic_cst": SIGNS, "gap": 1e-6}
    for more in ({}, {"keep": "all"}, {"debias": 20.0}, {"keep": "all", "debias": 20.0}):
        model = FGMClassifier(M=2, **asked, **more).fit(X, Y)
        assert model.result_.bound <= best * (1 + 1e-9) <= model.result_.objective * (1 + 2e-9)
        assert np.all(np.array(SIGNS) * model.coef_[0] >= 0.0)
        assert np.any(model.coef_)
    picked = FGMSelector(M=2, **asked).fit(X, Y)
    np.testing.assert_array_equal(picked.support_, FGMClassifier(M=2, **asked).fit(X, Y).support_)


def test_more_of_a_feature_can_only_help() -> None:
    model = FSPClassifier(M=4, scale="standard", monotonic_cst=SIGNS).fit(X, Y)
    assert model.classes_[1] == "yes"
    before = model.decision_function(X)
    for j, sign in enumerate(SIGNS):
        more = X.copy()
        more[:, j] += 3.0
        if sign:
            assert np.all(sign * (model.decision_function(more) - before) >= 0.0)


@pytest.mark.slow
def test_the_forms() -> None:
    """An array-like, a mapping by name or by position, and signs on top of one another are the same."""
    named = dict(zip(FRAME.columns, SIGNS, strict=True))
    first = FSPClassifier(M=3, monotonic_cst=SIGNS).fit(FRAME, Y)
    for given in (
        np.array(SIGNS), tuple(SIGNS), pd.Series(SIGNS), [float(one) for one in SIGNS], np.array(SIGNS, np.int8),
        named, {name: sign for name, sign in named.items() if sign}, dict(enumerate(SIGNS)),
        {0: -1, "debt": 1, 2: 1, 4: -1},
    ):  # fmt: skip
        model = clone(first).set_params(monotonic_cst=given).fit(FRAME, Y)
        np.testing.assert_array_equal(model.coef_, first.coef_)
        assert model.result_.params["weight_bounds"] == first.result_.params["weight_bounds"]
    every = FSPClassifier(M=3, positive=True).fit(FRAME, Y)
    for other in ({"monotonic_cst": [1] * P}, {"monotonic_cst": {"age": 1, "debt": 0}, "positive": True}):
        np.testing.assert_array_equal(FSPClassifier(M=3, **other).fit(FRAME, Y).coef_, every.coef_)
    for none in (None, [0] * P, {}, {"age": 0}):
        model = FSPClassifier(M=3, monotonic_cst=none).fit(FRAME, Y)
        np.testing.assert_array_equal(model.coef_, FSPClassifier(M=3).fit(FRAME, Y).coef_)
        assert "weight_bounds" not in model.result_.params


@pytest.mark.slow
def test_with_the_rest_of_scikit_learn() -> None:
    model = FSPClassifier(M=2, monotonic_cst=SIGNS, scale="standard")
    fitted = model.fit(X, Y)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
    thin = np.where(np.abs(X - 2.0) > 0.8, X, 0.0)
    dense, few = clone(model).fit(thin, Y), clone(model).fit(sparse.csr_array(thin), Y)
    np.testing.assert_allclose(few.coef_, dense.coef_, rtol=1e-7, atol=1e-7 * np.abs(dense.coef_).max())
    np.testing.assert_allclose(few.decision_function(sparse.csr_array(thin)), dense.decision_function(thin), rtol=1e-6)
    grid = GridSearchCV(model, {"monotonic_cst": [None, SIGNS], "C": [0.1, 1.0]}, cv=3).fit(X, Y)
    assert set(grid.best_params_) == {"C", "monotonic_cst"}
    pipe = make_pipeline(StandardScaler(), FSPClassifier(M=2, monotonic_cst=SIGNS)).fit(X, Y)
    assert np.array_equal(pipe[-1].support_, fitted.support_)
    three = np.arange(N) % 3
    many = OneVsRestClassifier(FSPClassifier(M=2, positive=True)).fit(X, three)
    assert all(np.all(one.coef_ >= 0.0) for one in many.estimators_)
    heavy = clone(model).fit(X, Y, sample_weight=np.where(Y == "yes", 2, 1))
    repeated = np.repeat(np.arange(N), np.where(Y == "yes", 2, 1))
    equal = clone(model).fit(X, Y, sample_weight=np.bincount(repeated))
    np.testing.assert_array_equal(heavy.coef_, equal.coef_)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"monotonic_cst": [1, 0]}, "monotonic_cst has shape \\(2,\\) for 5 features"),
        ({"monotonic_cst": 1}, "monotonic_cst has shape \\(\\)"),
        ({"monotonic_cst": [1, 0, 2, 0, 0]}, "monotonic_cst of 'x3' is 2; give -1, 0 or 1"),
        ({"monotonic_cst": [1, 0, True, 0, 0]}, "monotonic_cst of 'x3' is True"),
        ({"monotonic_cst": [1, 0, float("nan"), 0, 0]}, "monotonic_cst of 'x3' is nan"),
        ({"monotonic_cst": {"x1": "1"}}, "monotonic_cst of 'x1' is '1'"),
        ({"monotonic_cst": {"x9": 1}}, "monotonic_cst: nothing is called 'x9'"),
        ({"monotonic_cst": {7: 1}}, "position 7 must lie between 0 and 4"),
        ({"monotonic_cst": [0, -1, 0, 0, 0], "positive": True}, "monotonic_cst of 'x2' is -1, and positive=True"),
        ({"positive": 2}, "positive = 2"),
        ({"monotonic_cst": SIGNS, "atoms": "splines"}, "monotonic_cst is about weights of features or groups, not of"),
        ({"positive": True, "atoms": "pairs"}, "positive=True is about weights of features or groups, not of"),
    ],
)
def test_refused(asked: dict[str, Any], words: str) -> None:
    for kind in (FSPClassifier, FGMClassifier):
        with pytest.raises(ValueError, match=words):
            kind(M=2, **asked).fit(X, Y)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("loss", LOSSES)
def test_groups(loss: str) -> None:
    asked: dict[str, Any] = {"loss": loss, "scale": "standard", "monotonic_cst": SIGNS, "atoms": "groups"}
    for members in ([0, 0, 1, 1, 1], {"a": [4, 0], "b": [1, 2], "c": [2, 3]}):
        asked["atom_options"] = {"groups": members}
        for kind, more in ((FSPClassifier, {}), (FGMClassifier, {"debias": 20.0})):
            model = kind(M=2, **asked, **more).fit(X, Y)
            assert np.all(np.array(SIGNS) * model.coef_[0] >= 0.0)
            assert np.any(model.coef_)
            assert model.verify(X, Y).accepted
        again = np.array([model.result_.weights.get(f"x{j + 1}", 0.0) for j in range(P)])
        assert np.all(np.array(SIGNS) * again >= 0.0)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("shared", [False, True])
def test_more_classes(shared: bool) -> None:
    """Each has its own signs, which stand in its problem; those that name no class are refused."""
    three = np.array(["high", "low", "mid"])[np.searchsorted(np.quantile(X[:, 0], [0.3, 0.6]), X[:, 0])]
    asked: dict[str, Any] = {"scale": "standard", "shared_support": shared}
    model = FSPClassifier(M=2, **asked, monotonic_cst={"low": SIGNS, "mid": {"x2": -1, 0: 1}}).fit(X, three)
    want = np.array([[0] * P, SIGNS, [1, -1, 0, 0, 0]])
    assert np.all(want * model.coef_ >= 0.0)
    assert np.all(FSPClassifier(M=2, **asked, positive=True).fit(X, three).coef_ >= 0.0)
    assert all(one.accepted for one in np.atleast_1d(model.verify(X, three)))
    if shared:
        bounds = model.result_.params["weight_bounds"]
        assert {*bounds} == {"x1|low", "x2|low", "x3|low", "x5|low", "x1|mid", "x2|mid"}
    for given in (SIGNS, {"x1": 1}, {0: 1}):
        with pytest.raises(ValueError, match="Only binary classification is supported with signs that name no class"):
            FSPClassifier(M=2, **asked, monotonic_cst=given).fit(X, three)
    with pytest.raises(ValueError, match="'top' is none of the classes"):
        FSPClassifier(M=2, **asked, monotonic_cst={"top": SIGNS}).fit(X, three)
    FSPClassifier(M=2, **asked, monotonic_cst=[0] * P).fit(X, three)


def test_refused_where_nothing_carries_it() -> None:
    for kind in (
        mipfs.GroupFGMClassifier,
        mipfs.AdditiveFGMClassifier,
        mipfs.MeasureClassifier,
        mipfs.BaselineSelector,
    ):
        with pytest.raises(TypeError, match="positive"):
            kind(positive=True)


@pytest.mark.sampled(13)
@pytest.mark.parametrize("seed", range(200, 230))
def test_random_signs(seed: int) -> None:
    """Whatever the losses, scales and biases, the refitted classifier is the optimum of its support."""
    one = case(seed)
    signs = np.select([(one.low == 0.0) & (one.high > 0.0), (one.high == 0.0) & (one.low < 0.0)], [1, -1], 0)
    low, high = np.where(signs == 1, 0.0, -np.inf), np.where(signs == -1, 0.0, np.inf)
    free = replace(one, low=low, high=high, penalty=0.0 * one.penalty, A=one.A[:0], ub=one.ub[:0])
    model = FSPClassifier(one.M, C=one.C, loss=one.loss, bias=one.bias, scale=one.scale, monotonic_cst=signs, gap=1e-7)
    model.fit(one.X, one.y, sample_weight=one.weight)
    best = min(free.values().values())
    assert model.result_.objective == pytest.approx(best, rel=1e-6)
    standing = (one.X - (one.X.mean(axis=0) if one.scale == "standard" else 0.0)) / free.divisor()
    w = model.coef_[0] * free.divisor()
    f = standing @ w + (model.decision_function(one.X) - standing @ w).mean()
    m, c = one.y * f, one.C * one.weight
    losses = {
        "hinge": c @ np.maximum(0.0, 1.0 - m),
        "squared-hinge": 0.5 * c @ np.square(np.maximum(0.0, 1.0 - m)),
        "logistic": c @ np.logaddexp(0.0, -m),
    }
    assert 0.5 * w @ w + losses[one.loss] == pytest.approx(best, rel=1e-6)
    assert all(itertools.starmap(lambda sign, value: sign * value >= 0.0, zip(signs, w, strict=True)))
