"""The ℓ1-SVM against its program in CVXPY, and the search for a number of features against a scan of C."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from scipy import sparse
from sklearn.svm import LinearSVC

from mipfs.data.instance import Instance
from mipfs.errors import UsageError
from mipfs.lab.baselines.l1_svm import l1_svm, l1_svm_of_size
from mipfs.lab.baselines.linear import Linear, bracket


def draw(seed: int, n: int = 80, p: int = 20) -> Instance:
    r = np.random.default_rng(seed)
    X = r.standard_normal((n, p))
    y = np.where(X[:, :4].sum(axis=1) + r.standard_normal(n) > 0.5, 1.0, -1.0)
    return Instance.from_arrays(X, y, sample_weight=r.uniform(0.5, 2.0, n))


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("C", [0.02, 0.2, 2.0])
def test_value_and_weights_are_those_of_clarabel(C: float, bias: bool) -> None:
    data = draw(1)
    w, b = cp.Variable(20), cp.Variable()
    margins = cp.multiply(data.y, data.X @ w + (b if bias else 0.0))
    loss = cp.sum(cp.multiply(C * data.sample_weight, cp.square(cp.pos(1 - margins))))
    value = cp.Problem(cp.Minimize(cp.norm1(w) + cp.abs(b if bias else 0.0) + loss)).solve(solver=cp.CLARABEL)
    found = l1_svm(data, C, bias=bias, tol=1e-8)
    assert found.objective == pytest.approx(value, rel=1e-5)
    dense = np.zeros(20)
    dense[found.ids] = found.w
    np.testing.assert_allclose(dense, w.value, atol=2e-3)
    assert found.bound == -np.inf
    assert bias or found.b == 0.0


@pytest.mark.sampled(2)
@pytest.mark.parametrize("bias", [False, True])
def test_the_wanted_number_of_features(bias: bool) -> None:
    data = draw(2)
    sizes = set()  # that a scan of C meets
    for C in np.geomspace(3e-3, 1.0, 120):
        svm = LinearSVC(penalty="l1", dual=False, C=C, fit_intercept=bias, tol=1e-5, max_iter=20_000, random_state=0)
        sizes.add(np.count_nonzero(svm.fit(data.X, data.y, data.sample_weight).coef_))
    for M in (1, 2, 5, 8, 12):
        found = l1_svm_of_size(data, M, bias=bias, tol=1e-5)
        assert max(size for size in sizes if size <= M) <= found.ids.size <= M
        assert np.all(found.w != 0.0)
        assert np.all(np.diff(found.ids) > 0)
        again = l1_svm_of_size(data, M, bias=bias, tol=1e-5)
        np.testing.assert_array_equal(found.w, again.w)


def test_sparse_data_and_refusals() -> None:
    data = draw(3)
    X = np.where(np.abs(data.X) > 0.8, data.X, 0.0)
    dense, thin = (Instance.from_arrays(Z, data.y) for Z in (X, sparse.csc_array(X)))
    a, b = (l1_svm(one, 0.3, tol=1e-8) for one in (dense, thin))
    np.testing.assert_array_equal(a.ids, b.ids)
    np.testing.assert_allclose(a.w, b.w, rtol=1e-4)
    with pytest.raises(UsageError, match="the l1-SVM cannot centre sparse columns"):
        l1_svm_of_size(Instance.from_arrays(sparse.csc_array(X), data.y, scale="standard"), 3)
    with pytest.raises(UsageError, match="M = 21 must be an integer from 1 to 20"):
        l1_svm_of_size(data, 21)
    with pytest.raises(UsageError, match=r"C = -1\.0 must be a positive number"):
        l1_svm(data, -1.0)


def test_the_search_when_sizes_jump() -> None:
    tried: list[float] = []

    def of_size(size: int, C: float) -> Linear:
        return Linear(np.arange(size), np.ones(size), 0.0, C)

    def fit(C: float) -> Linear:
        tried.append(C)
        return of_size(0 if C < 3.0 else 4 if C < 50.0 else 9, C)

    for M, low, high in ((1, 0, 4), (3, 0, 4), (4, 4, None), (8, 4, 9), (9, 9, None), (20, 9, None)):
        tried.clear()
        below, above = bracket(fit, M, 1.0)
        assert below is not None
        assert below.ids.size == low
        assert high is None or (above is not None and above.ids.size == high)
        assert len(tried) <= 30
    assert bracket(lambda C: of_size(5, C), 2, 1.0)[0] is None
    below, _ = bracket(fit, 4, 1e6)
    assert below is not None
    assert below.ids.size == 4
