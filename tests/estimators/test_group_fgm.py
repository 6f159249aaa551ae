"""GroupFGMClassifier: groups in every spelling, overlapping ones, and what is kept of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mipfs import FGMClassifier, GroupFGMClassifier
from mipfs.data.instance import Instance
from mipfs.estimators.refit import refit

RNG = np.random.default_rng(41)
G, SIZE = 8, 3
X = RNG.standard_normal((100, G * SIZE))
Y = np.where(X[:, 3:6].sum(axis=1) - X[:, 12:15].sum(axis=1) + 0.5 * RNG.standard_normal(100) > 0, "b", "a")
LABELS = np.repeat([f"g{g}" for g in range(G)], SIZE)
LISTS = [list(range(SIZE * g, SIZE * (g + 1))) for g in range(G)]


def test_the_planted_groups_are_found() -> None:
    model = GroupFGMClassifier(LABELS, M=2, C=0.1).fit(X, Y)
    assert [name for name, kept in zip(model.groups_, model.group_support_, strict=True) if kept] == ["g1", "g4"]
    assert model.get_support(indices=True).tolist() == [3, 4, 5, 12, 13, 14]
    assert model.result_.selected == ("g1", "g4")
    assert set(model.result_.weights) == {f"x{j + 1}" for j in (3, 4, 5, 12, 13, 14)}
    assert model.result_.bound <= model.result_.objective
    assert model.sigma_.shape == (1, G)
    # Disjoint groups: the classifier is the plain SVM on their columns.
    data = Instance.from_arrays(X, np.where(Y == "b", 1.0, -1.0))
    used, coef, intercept = refit(data, model.get_support(indices=True), "squared-hinge", 0.1, True)
    np.testing.assert_allclose(model.coef_[0][used], coef, rtol=1e-8)
    assert np.count_nonzero(model.coef_) == used.size
    assert model.intercept_[0] == pytest.approx(intercept, rel=1e-8)
    np.testing.assert_allclose(model.decision_function(X), model.result_.decision_function(X), atol=1e-4)


@pytest.mark.parametrize(
    "groups",
    [
        LISTS,
        np.array(LISTS),
        dict(enumerate(LISTS)),
        {name: set(ids) for name, ids in zip("hgfedcba", LISTS, strict=True)},
        LABELS.tolist(),
        np.repeat(np.arange(G), SIZE),
    ],
)
def test_every_way_to_give_groups_is_the_same(groups: Any) -> None:
    expected = GroupFGMClassifier(LABELS, M=2, C=0.1).fit(X, Y)
    found = GroupFGMClassifier(groups, M=2, C=0.1).fit(X, Y)
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    np.testing.assert_array_equal(found.group_support_, expected.group_support_)


def test_groups_by_feature_name_and_a_feature_in_none_is_never_selected() -> None:
    pd = pytest.importorskip("pandas")
    names = [f"f{j}" for j in range(G * SIZE)]
    frame = pd.DataFrame(X, columns=names)
    model = GroupFGMClassifier({"left": names[3:5], "right": names[12:14]}, M=5, C=0.1).fit(frame, Y)
    assert set(model.get_feature_names_out()) <= {"f3", "f4", "f12", "f13"}
    assert model.groups_ == ("left", "right")
    with pytest.raises(ValueError, match="no feature is called 'f99'"):
        GroupFGMClassifier({"left": ["f99"]}).fit(frame, Y)


def test_without_groups_every_feature_stands_alone() -> None:
    alone = GroupFGMClassifier(M=4, C=0.1, gap=1e-5).fit(X, Y)
    single = FGMClassifier(M=4, C=0.1, gap=1e-5).fit(X, Y)
    np.testing.assert_array_equal(alone.support_, single.support_)
    np.testing.assert_allclose(alone.coef_, single.coef_, rtol=1e-9)
    assert alone.groups_ == tuple(f"x{j + 1}" for j in range(G * SIZE))


def test_a_feature_in_two_selected_groups_is_penalised_as_two_halves() -> None:
    groups = {"a": [3, 4, 5], "b": [5, 12, 13]}
    model = GroupFGMClassifier(groups, M=2, C=0.1).fit(X, Y)
    assert model.support_.sum() == 5
    data = Instance.from_arrays(X, np.where(Y == "b", 1.0, -1.0))
    used, coef, _ = refit(data, np.array([3, 4, 5, 12, 13]), "squared-hinge", 0.1, True, np.array([1.0, 1, 2, 1, 1]))
    np.testing.assert_allclose(model.coef_[0][used], coef, rtol=1e-7)
    plain = GroupFGMClassifier(groups, M=2, C=0.1, debias=0.1).fit(X, Y)
    used, coef, _ = refit(data, np.array([3, 4, 5, 12, 13]), "squared-hinge", 0.1, True)
    np.testing.assert_allclose(plain.coef_[0][used], coef, rtol=1e-7)


def test_scaled_groups_are_the_groups_of_scaled_columns() -> None:
    unequal = {"wide": list(range(6, 24)), "narrow": [3, 4, 5]}
    assert GroupFGMClassifier(unequal, M=1, C=0.1, scaling=[0.0, 1.0]).fit(X, Y).result_.selected == ("narrow",)
    norms = {name: np.linalg.norm(X[:, ids]) for name, ids in unequal.items()}
    Z = X.copy()
    for name, ids in unequal.items():
        Z[:, ids] /= norms[name]
    scaled = GroupFGMClassifier(unequal, M=1, C=100.0, scaling="norm", gap=1e-6).fit(X, Y)
    by_hand = GroupFGMClassifier(unequal, M=1, C=100.0, gap=1e-6).fit(Z, Y)
    assert scaled.result_.selected == by_hand.result_.selected
    assert scaled.result_.objective == pytest.approx(by_hand.result_.objective, rel=1e-6)
    np.testing.assert_allclose(scaled.decision_function(X), by_hand.decision_function(Z), atol=1e-6)


def test_a_group_of_zero_columns_is_never_selected() -> None:
    Z = X.copy()
    Z[:, 3:6] = 0.0
    for scaling in ("none", "norm"):
        model = GroupFGMClassifier(LABELS, M=1, C=1.0, scaling=scaling).fit(Z, Y)
        assert model.result_.selected == ("g4",)
        assert np.all(np.isfinite(model.coef_))


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (LABELS[:5], "groups has 5 labels for 24 features; give one per feature, or lists"),
        ([[0, 1], [99]], "group 'group2' holds position 99; positions are from 0 to 23"),
        ({"a": []}, r"group 'a' is \[\]"),
        ({"a": "x1"}, "group 'a' is 'x1'"),
        ({"a": [1, 1]}, "group 'a' names 'x2' twice"),
        ([], "no groups are given|groups has 0 labels"),
    ],
)
def test_bad_groups_are_one_line(groups: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        GroupFGMClassifier(groups).fit(X, Y)
    assert "\n" not in str(caught.value)
