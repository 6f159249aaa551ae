"""Folds against a plain re-computation from the raw data."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler

from mipfs.data.instance import Instance
from mipfs.drivers import solve
from mipfs.errors import UsageError
from mipfs.lab.studies import folds
from mipfs.problem import Problem


def raw(seed: int) -> tuple[np.ndarray, np.ndarray]:
    r = np.random.default_rng(seed)
    X = np.where(r.random((70, 5)) < 0.4, 0.0, 3.0 + 5.0 * r.standard_normal((70, 5)))
    return X, np.where(X @ r.standard_normal(5) + 4 * r.standard_normal(70) > 1, 1.0, -1.0)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("stored", [np.asarray, sparse.csc_array])
def test_every_fold_is_scaled_by_its_training_part_alone(stored: type) -> None:
    X, y = raw(0)
    data = Instance.from_arrays(stored(X), y, scale="standard", penalty={"x2": 0.1})
    found = folds.stratified(data, 4, seed=3)
    parts = list(StratifiedKFold(4, shuffle=True, random_state=3).split(X, y))
    for fold, (train, test) in zip(found, parts, strict=True):
        scaler = StandardScaler().fit(X[train])
        dense = fold.train.X.toarray() if sparse.issparse(fold.train.X) else fold.train.X
        assert dense - fold.train.center == pytest.approx(scaler.transform(X[train]), abs=1e-10)
        assert fold.train.y.tolist() == y[train].tolist()
        assert dict(fold.train.penalty) == {"x2": 0.1}
        result = solve(Problem(fold.train, M=2, C=0.3), gap=1e-8)
        alone = Instance.from_arrays(scaler.transform(X[train]), y[train])
        again = solve(Problem(alone, M=2, C=0.3), gap=1e-8)
        scores = again.decision_function(scaler.transform(X[test]))
        assert result.selected == again.selected
        assert fold.error(result, Problem(data)) == np.mean((scores > 0) != (y[test] > 0))
    assert sorted(int(i) for _, test in parts for i in test) == list(range(70))


def test_the_seed_decides() -> None:
    data = Instance.from_arrays(*raw(1))
    first, again, other = (folds.stratified(data, 3, seed) for seed in (0, 0, 1))
    assert all(np.array_equal(a.X, b.X) for a, b in zip(first, again, strict=True))
    assert not all(np.array_equal(a.X, b.X) for a, b in zip(first, other, strict=True))


@pytest.mark.parametrize("k", [1, 0, 40, 2.0, True])
def test_a_number_of_folds_that_cannot_be(k: int) -> None:
    with pytest.raises(UsageError, match=r"folds = .* the size of the smaller class"):
        folds.stratified(Instance.from_arrays(*raw(1)), k, 0)
