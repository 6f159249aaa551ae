"""The conic references against closed forms, other solvers and each other."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import sparse

from mipfs.data.instance import Instance, Row, SelectDefaults
from mipfs.errors import MipfsError
from mipfs.problem import Problem
from mipfs.selection.selection import Extras, Rows
from tests.oracles import svm_value
from tests.references import relaxation_reference, svm_reference


def draw(seed: int, n: int = 30, p: int = 5) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    y = np.where(X[:, 0] + 0.5 * X[:, 1] + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0)
    return X, y, rng.uniform(0.2, 3.0, n)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_svm_is_certified_by_its_own_dual(seed: int, bias: bool) -> None:
    X, y, c = draw(seed)
    svm = svm_reference(sparse.csc_array(X) if seed % 2 else X, y, c, bias=bias)
    recomputed = 0.5 * svm.w @ svm.w + c @ np.maximum(0, 1 - y * (X @ svm.w + svm.b))
    dual = svm.alpha.sum() - 0.5 * np.sum((X.T @ (svm.alpha * y)) ** 2)
    assert svm.value == pytest.approx(recomputed, rel=1e-9)
    assert dual == pytest.approx(svm.value, rel=1e-8)
    assert np.all(svm.alpha >= -1e-8)
    assert np.all(svm.alpha <= c + 1e-8)
    assert bias or svm.b == 0.0
    if bias:
        assert abs(y @ svm.alpha) < 1e-8
    assert svm.w == pytest.approx(X.T @ (svm.alpha * y), abs=1e-7)
    exact = svm_value(X, y, c, bias)
    assert exact.lower * (1 - 1e-8) <= svm.value <= exact.upper * (1 + 1e-8)


def test_svm_without_columns() -> None:
    _, y, c = draw(0)
    svm = svm_reference(np.empty((30, 0)), y, c)
    assert svm.w.shape == (0,)
    assert svm.value == pytest.approx(2 * min(c[y > 0].sum(), c[y < 0].sum()), rel=1e-9)
    assert svm_reference(np.empty((30, 0)), y, c, bias=False).value == pytest.approx(c.sum(), rel=1e-9)


def test_svm_at_a_fractional_selection_is_the_relaxation_at_a_point() -> None:
    X, y, c = draw(5)
    problem = Problem(Instance.from_arrays(X, y, sample_weight=c), M=2)
    relaxed = relaxation_reference(problem)
    at_sigma = svm_reference(X * np.sqrt(np.clip(relaxed.sigma, 0, 1)), y, c)
    assert at_sigma.value == pytest.approx(relaxed.value, rel=1e-7)
    assert np.sqrt(np.clip(relaxed.sigma, 0, 1)) * at_sigma.w == pytest.approx(relaxed.w, abs=1e-4)


@pytest.mark.parametrize("scale", ["none", "standard"])
@pytest.mark.parametrize("stored", ["dense", "csc"])
def test_relaxation_is_between_every_dual_bound_and_the_best_selection(scale: str, stored: str) -> None:
    X, y, c = draw(6)
    X[np.abs(X) < 0.4] = 0.0
    data = Instance.from_arrays(sparse.csc_array(X) if stored == "csc" else X, y, scale=scale, sample_weight=c)
    problem = Problem(data, M=2, C=2.0, lam=0.3)
    relaxed = relaxation_reference(problem)
    Z = (data.X.toarray() if stored == "csc" else data.X) - data.center
    best = min(
        svm_value(Z[:, list(S)], y, problem.c_i, True).upper + 0.3 * len(S)
        for k in range(3)
        for S in itertools.combinations(range(5), k)
    )
    assert relaxed.value <= best * (1 + 1e-8)
    # lower(α) of the mathematics, maximised by the α of the SVM at the relaxed σ, meets the relaxed value.
    alpha = svm_reference(Z * np.sqrt(np.clip(relaxed.sigma, 0, 1)), y, problem.c_i).alpha
    scores = 0.5 * (Z.T @ (alpha * y)) ** 2 - problem.penalty
    lower = alpha.sum() - np.sort(np.maximum(scores, 0))[-2:].sum()
    assert lower == pytest.approx(relaxed.value, rel=1e-5)


def test_relaxation_with_every_feature_is_the_svm() -> None:
    X, y, c = draw(7)
    data = Instance.from_arrays(X, y, sample_weight=c)
    for bias in (True, False):
        relaxed = relaxation_reference(Problem(data, bias=bias))
        svm = svm_reference(X, y, c, bias=bias)
        assert relaxed.value == pytest.approx(svm.value, rel=1e-8)
        assert relaxed.b == pytest.approx(svm.b, abs=1e-5)


def test_relaxation_keeps_rows_extras_and_fixings() -> None:
    X, y, _ = draw(8)
    rows = (Row("budget", {"x1": 2.0, "x2": 1.0, "extra_u": -1.0}, -np.inf, 1.0), Row("both", {"x3": 1, "x4": 1}, 1, 1))
    extra = Extras(("extra_u",), np.array([0.0]), np.array([0.5]), np.array([True]))
    data = Instance.from_arrays(X, y, select=SelectDefaults(forced_in=("x5",)))
    relaxed = relaxation_reference(Problem(data, rows=Rows.of(rows, data.index, extra)))
    assert relaxed.sigma[4] == pytest.approx(1.0, abs=1e-7)
    assert relaxed.sigma[2] + relaxed.sigma[3] == pytest.approx(1.0, abs=1e-7)
    assert 2 * relaxed.sigma[0] + relaxed.sigma[1] <= 1.5 + 1e-7
    without = relaxation_reference(Problem(data, rows=Rows.empty(5)))
    assert without.value < relaxed.value


def test_contradicting_rows_are_an_error() -> None:
    X, y, _ = draw(9)
    data = Instance.from_arrays(X, y, rows=(Row("no", {"x1": 1.0}, 2.0, np.inf),))
    with pytest.raises(MipfsError, match="infeasible"):
        relaxation_reference(Problem(data))
