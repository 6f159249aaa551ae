"""Information gain against entropies counted one by one, and against scikit-learn's estimate."""

from __future__ import annotations

from collections import Counter
from math import log

import numpy as np
import pytest
from scipy import sparse
from sklearn.feature_selection import mutual_info_classif

from mipfs.data.instance import Instance
from mipfs.errors import UsageError
from mipfs.lab.baselines.information_gain import fit, information_gain


def entropy(weights: dict[object, float]) -> float:
    total = sum(weights.values())
    return -sum(w / total * log(w / total) for w in weights.values() if w > 0)


def naive(x: np.ndarray, y: np.ndarray, weight: np.ndarray) -> float:
    """H(y) − H(y|x), one sample after the other."""
    classes: Counter[object] = Counter()
    parts: dict[object, Counter[object]] = {}
    for value, label, w in zip(x.tolist(), y.tolist(), weight.tolist(), strict=True):
        classes[label] += w
        parts.setdefault(value, Counter())[label] += w
    total = sum(classes.values())
    return entropy(classes) - sum(sum(part.values()) / total * entropy(part) for part in parts.values())


@pytest.mark.parametrize("seed", range(8))
def test_events_and_discrete_columns_are_exact(seed: int) -> None:
    r = np.random.default_rng(seed)
    X = r.integers(0, 4, (40, 6)) * (r.random((40, 6)) < 0.6) * r.choice([1.0, 0.1, -1.0], 6)
    X[:, 2], X[:, 3] = 0.0, 7.0
    y = np.where(X[:, 0] + r.normal(size=40) > 0.8, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    weight = r.uniform(0.5, 3.0, 40)
    dense = information_gain(Instance.from_arrays(X, y, sample_weight=weight))
    events = information_gain(Instance.from_arrays(sparse.csc_array(X), y, sample_weight=weight, scale="unit"))
    for j in range(6):
        assert dense[j] == pytest.approx(naive(X[:, j], y, weight), abs=1e-12)
        assert events[j] == pytest.approx(naive(X[:, j] != 0, y, weight), abs=1e-12)
    assert np.all(dense >= 0)


def test_continuous_columns_are_scikit_learns_estimate_whatever_their_scale() -> None:
    r = np.random.default_rng(0)
    X = r.normal(size=(80, 5)) * [1.0, 1e-6, 1e6, 1.0, 1.0]
    X[:, 4] = X[:, 4] > 0
    y = np.where(X[:, 0] + 0.5 * r.normal(size=80) > 0, 1.0, -1.0)
    found = information_gain(Instance.from_arrays(X, y), seed=3)
    np.testing.assert_array_equal(found[:4], mutual_info_classif(X[:, :4], y, random_state=3))
    assert found[4] == pytest.approx(naive(X[:, 4], y, np.ones(80)), abs=1e-12)
    assert int(np.argmax(found)) == 0
    weighted = Instance.from_arrays(X, y, sample_weight=r.uniform(1, 2, 80))
    with pytest.raises(UsageError, match="continuous column 'x1' cannot weigh samples"):
        information_gain(weighted)


def test_the_largest_of_equal_ones_the_first_and_the_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    r = np.random.default_rng(1)
    X = np.repeat(r.integers(0, 3, (60, 4)).astype(float), 2, axis=1)
    y = np.where(X[:, 2] + X[:, 6] + r.normal(size=60) > 2, 1.0, -1.0)
    data = Instance.from_arrays(X, y)
    whole = information_gain(data)
    monkeypatch.setattr("mipfs.lab.baselines.information_gain.VALUES_PER_BLOCK", 100)
    np.testing.assert_array_equal(information_gain(data), whole)
    order = np.argsort(-whole, kind="stable")
    assert fit(data, 3).ids.tolist() == sorted(order[:3].tolist())
    assert order[0] % 2 == 0
