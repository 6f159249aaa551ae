"""The hinge SVM against Clarabel, and the exactness of its dual vectors."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

from mipfs.data.instance import Instance
from mipfs.losses.hinge import LOSS as hinge
from tests.oracles import svm_value


def draw(seed: int, n: int, p: int) -> tuple[np.ndarray, np.ndarray]:
    r = np.random.default_rng(seed)
    X = r.standard_normal((n, p)) * r.uniform(0.1, 5.0, p)
    y = np.where(X @ r.standard_normal(p) + 0.5 * r.standard_normal(n) > 0.2, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    return X, y


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("C", [0.25, 1.0, 32.0])
@pytest.mark.parametrize(("n", "p"), [(40, 3), (60, 12), (15, 30), (200, 8)])
def test_equals_clarabel(n: int, p: int, C: float, bias: bool) -> None:
    X, y = draw(n + p, n, p)
    weight = np.random.default_rng(5).uniform(0.2, 3.0, n)
    data = Instance.from_arrays(X, y, sample_weight=weight)
    c = C * weight
    svm = hinge.Solver(data, c, bias).solve(np.arange(p), tol=1e-8)
    assert svm.gap <= 1e-8
    assert svm.primal == pytest.approx(svm_value(X, y, c, bias).upper, rel=1e-6)
    scores = X @ svm.w + svm.b
    assert svm.primal == pytest.approx(0.5 * svm.w @ svm.w + c @ np.maximum(0, 1 - y * scores), rel=1e-12)


def test_sparse_equals_dense() -> None:
    X, y = draw(1, 80, 10)
    X[np.random.default_rng(2).random(X.shape) < 0.7] = 0.0
    c = np.full(80, 2.0)
    ids, sigma = np.array([0, 3, 4, 8]), np.array([0.3, 1.0, 0.05, 0.7])
    for scale in ("none", "standard"):
        dense = Instance.from_arrays(X, y, scale=scale)
        csc = Instance.from_arrays(sparse.csc_array(X), y, scale=scale)
        assert csc.is_sparse
        for bias in (True, False):
            one = hinge.Solver(dense, c, bias).solve(ids, sigma, tol=1e-9)
            two = hinge.Solver(csc, c, bias).solve(ids, sigma, tol=1e-9)
            assert one.primal == pytest.approx(two.primal, rel=1e-8)
            np.testing.assert_allclose(one.w, two.w, atol=1e-3)
            assert one.b == pytest.approx(two.b, abs=1e-3)


def test_fractional_sigma_is_the_scaled_problem() -> None:
    X, y = draw(3, 50, 4)
    c = np.ones(50)
    sigma = np.array([0.2, 0.9, 1.0, 0.01])
    svm = hinge.Solver(Instance.from_arrays(X, y), c, True).solve(np.arange(4), sigma, tol=1e-9)
    assert svm.primal == pytest.approx(svm_value(X * np.sqrt(sigma), y, c, True).upper, rel=1e-7)
    value = 0.5 * np.sum(svm.w**2 / sigma) + np.maximum(0, 1 - y * (X @ svm.w + svm.b)).sum()
    assert svm.primal == pytest.approx(value, rel=1e-10)


def test_warm_start_reaches_the_same_value() -> None:
    X, y = draw(4, 400, 12)
    data, c = Instance.from_arrays(X, y), np.full(400, 32.0)
    solver = hinge.Solver(data, c, True)
    base = solver.solve(np.arange(8), tol=1e-8)
    for j in range(8, 12):
        ids = np.array([0, 1, 2, 3, 4, 5, 6, j])
        w = np.append(base.w[:7], 0.0)
        warm = solver.solve(ids, tol=1e-8, start=(w, base.b, base.alpha, base.rho))
        cold = solver.solve(ids, tol=1e-8)
        assert warm.gap <= 1e-8
        assert warm.primal == pytest.approx(cold.primal, rel=2e-8)


@pytest.mark.parametrize("case", ["no columns", "constant", "duplicates", "separable", "imbalance", "huge", "tiny"])
def test_degenerate_columns(case: str) -> None:
    X, y = draw(6, 60, 4)
    c, ids = np.ones(60), np.arange(4)
    if case == "no columns":
        ids = np.arange(0)
    elif case == "constant":
        X[:, 1], X[:, 2] = 3.0, 0.0
    elif case == "duplicates":
        X[:, 1], X[30:] = X[:, 0], X[:30]
        y[30:] = y[:30]
    elif case == "separable":
        X[:, 0], c = 5.0 * y, c * 32
    elif case == "imbalance":
        y[:], y[0] = -1.0, 1.0
    elif case == "huge":
        X *= 1e4
    else:
        X *= 1e-6
    for bias in (True, False):
        svm = hinge.Solver(Instance.from_arrays(X, y), c, bias).solve(ids, tol=1e-7)
        assert svm.gap <= 1e-7
        expected = 2 * min((y > 0).sum(), (y < 0).sum()) if bias and not ids.size else None
        if not bias and not ids.size:
            expected = 60
        assert svm.primal == pytest.approx(expected or svm_value(X[:, ids], y, c, bias).upper, rel=1e-6)


@pytest.mark.parametrize("seed", range(20))
def test_feasible_dual_is_an_integer_identity(seed: int) -> None:
    r = np.random.default_rng(seed)
    n = int(r.integers(2, 300))
    y = np.where(r.random(n) < r.uniform(0.05, 0.95), 1.0, -1.0)
    y[0], y[-1] = 1.0, -1.0
    c = 10.0 ** r.uniform(-4, 4) * r.uniform(0.01, 1.0, n)
    alpha = r.uniform(-0.2, 1.2, n) * c
    k, q = hinge.feasible_dual(alpha, c, y, True)
    exact = [Fraction(int(value)) / Fraction(2) ** q for value in k]
    assert all(0 <= a <= Fraction(float(top)) for a, top in zip(exact, c, strict=True))
    assert sum(a if s > 0 else -a for a, s in zip(exact, y, strict=True)) == 0
    assert [Fraction(float(v)) for v in np.ldexp(k.astype(float), -q)] == exact


def test_feasible_dual_moves_a_feasible_vector_by_the_grid_only() -> None:
    y = np.array([1.0, -1.0, 1.0, -1.0])
    c = np.ones(4)
    alpha = np.array([0.25, 0.5, 0.75, 0.5])
    k, q = hinge.feasible_dual(alpha, c, y, True)
    np.testing.assert_array_equal(np.ldexp(k.astype(float), -q), alpha)


def test_offset_columns_with_a_free_bias() -> None:
    X, y = draw(8, 49, 6)
    X = 0.2 * X + np.array([7.0, 65.0, -29.0, 92.0, -480.0, 62.0])
    c = np.full(49, 3.0)
    for matrix in (X, sparse.csc_array(X)):
        svm = hinge.Solver(Instance.from_arrays(matrix, y), c, True).solve(np.arange(6), tol=1e-9)
        assert svm.gap <= 1e-9
        assert svm.primal == pytest.approx(svm_value(X, y, c, True).upper, rel=1e-7)


def test_flat_slope_without_columns() -> None:
    # with weights of 3 and 1 on each side of a flat piece, Newton's step on the slope would be infinite
    y = np.array([1.0, 1.0, -1.0, -1.0, -1.0])
    c = np.array([1.0, 3.0, 1.0, 1.0, 2.0])
    svm = hinge.Solver(Instance.from_arrays(np.ones((5, 1)), y), c, True).solve(np.arange(0), tol=1e-9)
    assert svm.primal == pytest.approx(8.0)
    assert abs(svm.b) <= 1.0 + 1e-6
