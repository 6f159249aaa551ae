"""Algorithm 3: what is solved on the bags is the problem of the definitions, relaxed and exact; files with bags."""

from __future__ import annotations

import dataclasses
import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import sparse

import mipfs
from mipfs.data.instance import Instance, SelectDefaults
from mipfs.errors import DataError, UsageError
from mipfs.lab.mil import BagClassifier, embedded, mean_distance, solve_bags
from tests.structural_oracles import labellings, relaxation, selections, structural_svm

Array = npt.NDArray[np.float64]


def similarity(bag: Array, concept: Array, width: float) -> float:
    return max(math.exp(-math.fsum((x - concept) ** 2) / width**2) for x in bag)


def draw(seed: int, bags: int = 6, p: int = 2, **given: Any) -> Instance:
    """Bags of one to three rows; that of a positive bag which is positive lies near (2, …, 2)."""
    r = np.random.default_rng(seed)
    names = np.repeat(np.arange(bags), r.integers(1, 4, bags)) * 3 - 4
    X, y = r.standard_normal((names.size, p)), -np.ones(names.size)
    for b, name in enumerate(np.unique(names)):
        if b % 3 == 0:
            row = r.choice(np.flatnonzero(names == name))
            X[row], y[row] = 2.0 + 0.3 * r.standard_normal(p), 1.0
    order = r.permutation(names.size)
    return Instance.from_arrays(X[order], y[order], bags=names[order], **given)


def by_hand(data: Instance, width: float) -> tuple[Array, Array]:
    """The embedded bags and their labels, from the definitions."""
    names = sorted(set(data.bags.tolist()))
    rows = [[i for i in range(data.n_samples) if data.bags[i] == name] for name in names]
    E = np.array([[similarity(data.X[bag], z, width) for z in data.X] for bag in rows])
    return E, np.array([1.0 if any(data.y[i] > 0 for i in bag) else -1.0 for bag in rows])


@pytest.mark.slow
@pytest.mark.parametrize("measure", ["f1", "error", "roc-auc"])
def test_the_relaxation_is_that_of_the_enumerated_dual(measure: str) -> None:
    for seed in range(3):
        data = draw(seed)
        E, y = by_hand(data, 2.0)
        losses, V = labellings(measure, y)
        found = solve_bags(data, measure=measure, M=2, C=30.0, width=2.0, gap=1e-7)
        value = relaxation(E, losses, V, 30.0, selections(data.n_samples, 2))
        assert found.result.relaxed is not None
        assert found.result.relaxed["lower"] == pytest.approx(value, rel=1e-5)
        ids = [int(name[1:]) - 1 for name in found.result.selected]
        assert found.result.objective == pytest.approx(structural_svm(E[:, ids], losses, V, 30.0)[0], rel=1e-6)


@pytest.mark.slow
def test_the_exact_concepts_equal_brute_force() -> None:
    for seed in range(4):
        data = draw(seed)
        E, y = by_hand(data, 1.5)
        losses, V = labellings("f1", y)
        pairs = list(itertools.combinations(range(data.n_samples), 2))
        best = min(structural_svm(E[:, list(pair)], losses, V, 20.0)[0] for pair in pairs)
        found = solve_bags(data, M=2, C=20.0, width=1.5, driver="gbd", gap=1e-7).result
        assert found.status.name == "OPTIMAL"
        assert found.objective == pytest.approx(best, rel=1e-6)


def test_values_of_new_bags_follow_from_the_definition() -> None:
    data, new = draw(1, 20), draw(2, 9)
    found = solve_bags(data, M=4, C=100.0)
    width = mean_distance(data.X)
    names = sorted(set(new.bags.tolist()))
    expected = [
        sum(
            w * similarity(new.X[new.bags == name], data.X[row], width)
            for w, row in zip(found.weights, found.rows, strict=True)
        )
        for name in names
    ]
    values = found.decision_function(new)
    np.testing.assert_allclose(values, expected, rtol=1e-10)
    np.testing.assert_array_equal(found.decision_function(new.X.tolist(), new.bags), values)
    np.testing.assert_allclose(found.decision_function(sparse.csr_array(new.X), new.bags), values)
    assert found.predict(new).tolist() == [1 if value > 0 else -1 for value in expected]
    assert 0 < found.rows.size <= 4


def test_bags_with_a_positive_row_are_told_apart_where_row_labels_are_rare() -> None:
    data, new = draw(11, 90, 4), draw(12, 120, 4)
    found = solve_bags(data, M=6, C=300.0)
    _, y = by_hand(new, 1.0)
    assert mipfs.measures.value("f1", y, found.decision_function(new)) > 0.9


def test_any_loss_and_driver_takes_the_embedded_bags() -> None:
    data = draw(4, 15)
    bags, _ = embedded(data, width=2.0)
    E, y = by_hand(data, 2.0)
    np.testing.assert_allclose(bags.X, E, rtol=1e-12)
    np.testing.assert_array_equal(bags.y, y)
    result = mipfs.solve(mipfs.Problem(bags, M=2, C=1.0), "gbd")
    assert result.status.name == "OPTIMAL"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("scale", ["standard", "unit"])
@pytest.mark.parametrize("store", [np.asarray, sparse.csc_array])
def test_a_scaled_instance_equals_columns_scaled_by_hand(scale: Any, store: Any) -> None:
    data, new = draw(5, 20), draw(6, 8)
    lengths = data.X.std(axis=0) if scale == "standard" else np.linalg.norm(data.X, axis=0)
    plain = Instance.from_arrays(data.X / lengths, data.y, bags=data.bags)
    given = Instance.from_arrays(store(data.X), data.y, bags=data.bags, scale=scale)
    by_hand, found = solve_bags(plain, M=3), solve_bags(given, M=3)
    np.testing.assert_array_equal(found.rows, by_hand.rows)
    np.testing.assert_allclose(found.weights, by_hand.weights, rtol=1e-6)
    values = by_hand.decision_function(new.X / lengths, new.bags)
    np.testing.assert_allclose(found.decision_function(new), values, rtol=1e-6)
    again = Instance.from_arrays(store(new.X), new.y, bags=new.bags, scale="standard")
    np.testing.assert_allclose(found.decision_function(again), values, rtol=1e-6)


def test_nearest_holds_in_predictions_too() -> None:
    data, new = draw(7, 12), draw(8, 6)
    found = solve_bags(data, M=3, nearest=2, width=2.0)
    E, _ = by_hand(data, 2.0)
    weights = np.zeros(data.n_samples)
    weights[found.rows] = found.weights
    for name, value in zip(sorted(set(new.bags.tolist())), found.decision_function(new), strict=True):
        near = np.array([similarity(new.X[new.bags == name], z, 2.0) for z in data.X])
        kept = np.argsort(-near, kind="stable")[:2]
        assert value == pytest.approx(weights[kept] @ near[kept], rel=1e-9, abs=1e-12)
    assert np.count_nonzero(embedded(data, width=2.0, nearest=2)[0].X.toarray()) == 2 * len(E)


def test_files_bring_their_bags(tmp_path: Path) -> None:
    (tmp_path / "a.svm").write_text("+1 qid:2 1:2\n-1 qid:2 1:0.1\n-1 qid:5 1:0.2\n-1 qid:9 1:-1\n+1 qid:7 1:2.1\n")
    (tmp_path / "a.csv").write_text("label,bag,x\n1,2,2\n-1,2,0.1\n-1,5,0.2\n-1,9,-1\n1,7,2.1\n")
    found = [solve_bags(mipfs.read(tmp_path / name), M=2) for name in ("a.svm", "a.csv")]
    new = mipfs.read(tmp_path / "a.svm")
    assert found[0].predict(new).tolist() == [1, -1, 1, -1]  # the bags 2, 5, 7, 9
    np.testing.assert_array_equal(found[0].decision_function(new), found[1].decision_function(new))


def bad(**changes: Any) -> Instance:
    return dataclasses.replace(draw(1), **changes)


@pytest.mark.parametrize(
    ("data", "given", "error", "message"),
    [
        (
            bad(bags=None, source="a.svm"),
            {},
            DataError,
            "^a.svm: the data have no bags; give every row its bag, by qid:",
        ),
        (
            bad(bags=np.zeros(draw(1).n_samples, dtype=int)),
            {},
            DataError,
            "^every bag has a row of class 1, which makes",
        ),
        (bad(X=np.full_like(draw(1).X, 0.1)), {}, UsageError, "all rows are the same"),
        (bad(sample_weight=2.0 * np.ones(draw(1).n_samples)), {}, UsageError, "a bag has no weight of its own"),
        (bad(select=SelectDefaults(M=2)), {}, UsageError, "are about features, not about concepts"),
        (draw(1), {"width": -1.0}, UsageError, "width = -1.0 must be a positive number"),
        (draw(1), {"nearest": 0}, UsageError, "nearest = 0 must be an integer"),
        (draw(1), {"measure": "f2"}, UsageError, "measure 'f2' is not known"),
        (draw(1), {"M": 1.5}, UsageError, "M = 1.5 must be a whole number"),
        (draw(1), {"driver": "kelley"}, UsageError, "cannot carry the loss 'structural'"),
    ],
)
def test_what_cannot_be_honoured_is_one_line(data: Instance, given: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        solve_bags(data, **{"M": 2, **given})
    assert "\n" not in str(caught.value)


def test_new_data_without_bags_or_with_other_columns() -> None:
    found: BagClassifier = solve_bags(draw(1), M=2)
    with pytest.raises(DataError, match="the data have no bags"):
        found.predict(bad(bags=None))
    with pytest.raises(UsageError, match="bags is missing"):
        found.predict(np.ones((3, 2)))
    with pytest.raises(UsageError, match=r"X has shape \(3, 5\); the concepts need \(n, 2\)"):
        found.predict(np.ones((3, 5)), [1, 2, 3])
    with pytest.raises(DataError, match=r"bags has shape \(2,\) for 3 rows"):
        found.predict(np.ones((3, 2)), [1, 2])
