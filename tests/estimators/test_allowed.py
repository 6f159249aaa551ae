"""Rows, forced features, costs and a budget in the estimators, and their use by SelectFromModel."""

from __future__ import annotations

import math
import warnings
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.feature_selection import SelectFromModel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mipfs
from mipfs import FGMClassifier, FGMSelector, FSPClassifier, GroupFGMClassifier, MeasureClassifier, Row
from mipfs.estimators.allowed import selection_arguments
from tests.oracles import svm_value

Array = npt.NDArray[np.float64]
RNG = np.random.default_rng(4)
N, P = 40, 6
X = RNG.standard_normal((N, P))
Y = np.where(X[:, 0] + 0.5 * X[:, 1] - X[:, 4] + 0.7 * RNG.standard_normal(N) > 0, 1, 0)
COST = [3.0, 1.0, 2.0, 0.0, 2.5, 1.0]
NOT_BOTH = Row("not both", {"x1": 1.0, "x5": 1.0}, -math.inf, 1.0)
INF = math.inf


def best(holds: Any, M: int = 3) -> tuple[float, tuple[int, ...]]:
    """The optimum over every support that holds, by the conic reference of the tests."""
    signs = np.where(Y > 0, 1.0, -1.0)
    found = [
        (svm_value(X[:, list(ids)], signs, np.full(N, 0.5), True).upper, ids)
        for k in range(M + 1)
        for ids in combinations(range(P), k)
        if holds(set(ids))
    ]
    return min(found)


def costs(ids: set[int]) -> float:
    return sum(COST[j] for j in ids)


CASES: list[tuple[dict[str, Any], Any]] = [
    ({"rows": [NOT_BOTH]}, lambda s: not {0, 4} <= s),
    ({"rows": NOT_BOTH}, lambda s: not {0, 4} <= s),
    ({"rows": [Row("not both", {0: 1, 4: 1}, -INF, 1)]}, lambda s: not {0, 4} <= s),  # type: ignore[dict-item]
    ({"rows": ([[1, 0, 0, 0, 1, 0]], -INF, 1)}, lambda s: not {0, 4} <= s),
    ({"rows": (sparse.csr_array([[0, 0, 1, 1, 0, 0], [1, 0, 0, 0, 1, 0]]), [1, 0], [2, 1])},
     lambda s: s & {2, 3} and not {0, 4} <= s),
    ({"forced_in": ["x3"]}, lambda s: 2 in s),
    ({"forced_in": [2], "forced_out": ["x1", "x1"]}, lambda s: 2 in s and 0 not in s),
    ({"cost": COST, "budget": 3.0}, lambda s: costs(s) <= 3),
    ({"cost": {f"x{j + 1}": c for j, c in enumerate(COST)}, "budget": 4}, lambda s: costs(s) <= 4),
    ({"cost": {0: 3.0, "x5": 2.5}, "budget": 2.75, "forced_out": [5], "rows": ([[0, 1, 0, 0, 1, 0]], 1, 1)},
     lambda s: not s & {0, 5} and len(s & {1, 4}) == 1),
]  # fmt: skip


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("given", "holds"), CASES)
def test_the_best_of_what_is_allowed(given: dict[str, Any], holds: Any) -> None:
    model = FSPClassifier(3, C=0.5, **given)
    again = clone(clone(model)).fit(X, Y)
    value, ids = best(holds)
    assert again.result_.objective == pytest.approx(value, rel=1e-4)
    assert again.result_.bound <= value * (1 + 1e-9)
    assert tuple(again.get_support(indices=True)) == ids
    assert model.get_params()["forced_in"] is given.get("forced_in")


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("given", "holds"), CASES)
def test_the_relaxation_keeps_to_what_is_allowed(given: dict[str, Any], holds: Any) -> None:
    for kind in (FGMClassifier, FGMSelector):
        model = kind(3, C=0.5, **given).fit(X, Y)
        assert holds(set(model.get_support(indices=True).tolist()))
        assert model.support_.sum() <= 3
        assert model.result_.bound <= model.result_.objective


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("given", "holds"), CASES[-6:])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_measures_keep_to_what_is_allowed(given: dict[str, Any], holds: Any, fit_intercept: bool) -> None:
    model = MeasureClassifier("f1", M=3, C=10, fit_intercept=fit_intercept, **given).fit(X, Y)
    assert holds(set(model.get_support(indices=True).tolist()))
    assert 0 < model.support_.sum() <= 3


def test_several_classes_keep_to_it_each() -> None:
    y = np.digitize(X[:, 0] - X[:, 4], [-0.5, 0.5])
    model = FSPClassifier(2, C=0.5, rows=[NOT_BOTH], forced_in=["x2"]).fit(X, y)
    for result in model.result_:
        assert "x2" in result.selected
        assert not {"x1", "x5"} <= set(result.selected)


def test_groups_are_named_as_groups() -> None:
    groups = ["a", "a", "b", "b", "c", "c"]
    free = GroupFGMClassifier(groups, M=2).fit(X, Y)
    assert [str(n) for n in np.array(free.groups_)[free.group_support_]] == ["a", "c"]
    model = GroupFGMClassifier(groups, M=2, rows=[Row("r", {"a": 1, "c": 1}, -INF, 1)], forced_in=["b"]).fit(X, Y)
    assert model.group_support_.tolist() in ([True, True, False], [False, True, True])
    assert not GroupFGMClassifier(groups, M=2, cost={"a": 2.0}, budget=1).fit(X, Y).group_support_[0]


def test_names_of_a_data_frame() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=list("abcdef"))
    model = FSPClassifier(2, C=0.5, forced_in=["f"], forced_out=["a"]).fit(frame, Y)
    assert "f" in model.get_feature_names_out()
    assert "a" not in model.get_feature_names_out()


def test_a_budget_can_be_searched() -> None:
    search = GridSearchCV(FSPClassifier(3, C=0.5, cost=COST), {"budget": [None, 1.0, 4.0]}, cv=2).fit(X, Y)
    assert search.best_params_["budget"] in (None, 1.0, 4.0)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"forced_in": ["x7"]}, "forced_in: nothing is called 'x7'; features are called like 'x1'"),
        ({"forced_out": [6]}, "forced_out: position 6 must lie between 0 and 5"),
        ({"forced_in": "x1"}, "forced_in = 'x1' must be a list"),
        ({"forced_in": ["x1"], "forced_out": [0]}, r"contradict each other: 'forced_in\[x1\]', 'forced_out\[x1\]'"),
        ({"forced_in": [0, 1, 2, 3]}, "no selection satisfies the rows; these contradict each other: 'cardinality'"),
        ({"budget": 3, "cost": {"x1": 0}}, "budget = 3, but all costs are 0; give cost"),
        ({"budget": 3}, "budget = 3, but nothing has a cost; give cost"),
        ({"cost": [1.0] * 6, "budget": "3"}, "budget = '3' must be a number"),
        ({"cost": [1.0] * 5, "budget": 3}, r"cost has shape \(5,\); give one number for each of 6"),
        ({"cost": {"x1": -1}}, "cost of 'x1' is -1; give a finite number >= 0"),
        ({"cost": {"x9": 1}}, "cost: nothing is called 'x9'"),
        ({"rows": [Row("r", {"y": 1.0}, 0, 1)]}, "row 'r': nothing is called 'y'"),
        ({"rows": ([[1, 2]], 0, 1)}, "rows over 2 columns, but there are 6 to select from"),
        ({"rows": [[1, 2]]}, "rows has 1 parts that are not all rows; give a list of mipfs.Row"),
        ({"rows": ([[1] * 6], [0, 1], 1)}, r"rows = \(A, lb, ub\) does not fit together"),
        ({"rows": 3}, "rows is a int; give a list of mipfs.Row"),
    ],
)
def test_what_cannot_be_honoured_is_one_line(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        FSPClassifier(3, **given).fit(X, Y)
    assert "\n" not in str(caught.value)


def test_nothing_given_is_nothing_added() -> None:
    assert selection_arguments(["a"]) == {}
    assert selection_arguments(["a", "b"], forced_in=["b"])["rows"].matrix.shape == (0, 2)


WDBC = load_breast_cancer(as_frame=True)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("estimator", [FSPClassifier(M=3, C=0.1), FGMClassifier(M=3, C=0.1), MeasureClassifier(M=3)])
@pytest.mark.parametrize("scale", ["none", "standard"])
def test_select_from_model_keeps_what_was_selected(estimator: Any, scale: str) -> None:
    frame, y = WDBC.data, WDBC.target
    kept = clone(estimator).set_params(scale=scale, gap=1e-2)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        chosen = SelectFromModel(kept).fit(frame if scale == "standard" else (frame - frame.mean()) / frame.std(), y)
    assert chosen.get_support().sum() == 3
    assert list(chosen.get_feature_names_out()) == list(chosen.estimator_.get_feature_names_out())


def test_select_from_model_in_a_pipeline_and_prefit() -> None:
    fitted = FSPClassifier(M=3, C=0.1, scale="standard").fit(WDBC.data, WDBC.target)
    assert SelectFromModel(fitted, prefit=True).transform(WDBC.data).shape == (569, 3)
    pipe = make_pipeline(StandardScaler(), SelectFromModel(FSPClassifier(M=3, C=0.1)), FSPClassifier(M=2, C=0.1))
    assert pipe.fit(WDBC.data, WDBC.target).score(WDBC.data, WDBC.target) > 0.9


def test_select_from_model_says_what_it_would_drop() -> None:
    Z = X * [1e7, 1, 1, 1, 1, 1]
    selector = SelectFromModel(FSPClassifier(2, C=0.5, scale="standard", forced_in=[0])).fit(Z, Y)
    assert selector.estimator_.support_[0]
    with pytest.warns(UserWarning, match="drops weights below 1e-05, of column 0; use FSPClassifier itself"):
        assert not selector.get_support()[0]
    np.testing.assert_array_equal(selector.set_params(threshold=1e-300).get_support(), selector.estimator_.support_)


@pytest.mark.parametrize("named", [True, False])
def test_select_from_model_names_a_forced_feature_without_a_weight(named: bool) -> None:
    """A sign against the data leaves a forced feature without a weight; the estimator itself keeps it, as said."""
    rng = np.random.default_rng(0)
    given = rng.normal(size=(80, 3))
    signs = np.where(-given[:, 0] + given[:, 1] + 0.3 * rng.normal(size=80) > 0, 1, -1)
    frame: Any = pytest.importorskip("pandas").DataFrame(given, columns=["u", "v", "w"]) if named else given
    forced, cst = (["u"], {"u": 1}) if named else ([0], [1, 0, 0])
    model = FSPClassifier(M=2, C=1, forced_in=forced, monotonic_cst=cst)
    selector = SelectFromModel(model).fit(frame, signs)
    assert selector.estimator_.coef_[0, 0] == 0.0
    name = "'u'" if named else "column 0"
    with pytest.warns(UserWarning, match=f"of {name}; use FSPClassifier itself"):
        assert not selector.get_support()[0]
    np.testing.assert_array_equal(selector.estimator_.transform(frame), given[:, :2])
    assert list(selector.estimator_.get_support()) == [True, True, False]


def test_a_search_over_many_features_makes_no_names() -> None:
    assert mipfs.FGMClassifier(3).fit(sparse.random_array((30, 5000), density=0.01, rng=0), np.arange(30) % 2)
