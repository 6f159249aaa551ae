"""SimpleMKL against the primal (31) of Tan 2014 written in CVXPY, and as the inner solver of Tan 2010."""

from __future__ import annotations

from collections.abc import Sequence

import cvxpy as cp
import numpy as np
import pytest
from scipy import sparse

from mipfs.atoms.features import Features
from mipfs.atoms.groups import Groups
from mipfs.data.instance import Instance
from mipfs.errors import UsageError
from mipfs.generators.synthetic import tan_2010
from mipfs.lab.shelf.simple_mkl import Mixture, simple_mkl


def draw(seed: int) -> tuple[np.ndarray, np.ndarray, list[np.ndarray], float]:
    r = np.random.default_rng(seed)
    n, p = int(r.integers(8, 70)), 12
    X = r.standard_normal((n, p)) * r.uniform(0.2, 3.0, p)
    y = np.where(X @ r.standard_normal(p) + r.standard_normal(n) > 0, 1.0, -1.0)
    pool = [r.choice(p, int(r.integers(1, 5)), replace=False) for _ in range(int(r.integers(1, 8)))]
    return X, y, pool, float(r.choice([0.01, 1.0, 10.0]))


def mixed_value(y: np.ndarray, kernels: Sequence[np.ndarray], c: np.ndarray) -> float:
    """min ½(Σ_t ‖w_t‖)² + ½ Σ c_i max(0, 1 − m_i)², kernels[t] the matrix of kernel t."""
    weights = [cp.Variable(Z.shape[1]) for Z in kernels]
    scores = sum(Z @ w for Z, w in zip(kernels, weights, strict=True))
    total = cp.Variable(nonneg=True)
    loss = 0.5 * cp.sum(cp.multiply(c, cp.square(cp.pos(1 - cp.multiply(y, scores)))))
    norms = cp.sum(cp.hstack([cp.norm(w) for w in weights]))
    return float(cp.Problem(cp.Minimize(0.5 * cp.square(total) + loss), [norms <= total]).solve(solver=cp.CLARABEL))


def check(found: Mixture, X: np.ndarray, y: np.ndarray, c: np.ndarray, value: float) -> None:
    """The value to 1e-4 from both sides, and both sides recomputed."""
    assert found.gap <= 1e-5
    assert found.objective == pytest.approx(value, rel=1e-4)
    assert found.bound == pytest.approx(value, rel=1e-4)
    assert found.mu.min() >= 0
    assert found.mu.sum() == pytest.approx(1)
    assert found.alpha.min() >= 0
    loss = 0.5 * c @ np.maximum(0, 1 - y * (X[:, found.columns] @ found.w)) ** 2
    assert 0 <= loss <= found.objective
    assert found.svms >= 1
    assert found.seconds > 0


@pytest.mark.sampled(11)
@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")  # in the tenth digit
@pytest.mark.parametrize("newton", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_value_is_that_of_clarabel(seed: int, newton: bool) -> None:
    X, y, pool, C = draw(seed)
    weight = np.random.default_rng(seed).uniform(0.5, 2.0, y.size) if seed % 2 else np.ones(y.size)
    data = Instance.from_arrays(X, y, sample_weight=weight)
    found = simple_mkl(data, pool, C, gap=1e-5, newton=newton)
    check(found, X, y, C * weight, mixed_value(y, [X[:, ids] for ids in pool], C * weight))
    sigma = np.zeros(12)
    for mu, ids in zip(found.mu, pool, strict=True):
        sigma[ids] += mu
    omega = X.T @ (found.alpha * y)
    squares = [np.sum(omega[ids] ** 2) for ids in pool]
    dual = found.alpha.sum() - np.sum(found.alpha**2 / (2 * C * weight)) - 0.5 * max(squares)
    assert found.bound == pytest.approx(dual, rel=1e-9)
    w = np.zeros(12)
    w[found.columns] = found.w
    np.testing.assert_allclose(w, sigma * omega, atol=0.05 * np.abs(w).max())  # w = σ∘ω at the optimum


def test_groups_that_share_columns_and_have_scales() -> None:
    X, y, _, _ = draw(21)
    X[np.random.default_rng(0).random(X.shape) < 0.5] = 0.0
    groups = {"a": [0, 1, 2], "b": [2, 3], "c": [4, 5], "d": [5, 0, 6]}
    chosen = [[0, 1], [1, 2], [3]]
    for kind, scale in (("dense", "none"), ("csc", "none"), ("csc", "standard")):
        data = Instance.from_arrays(sparse.csc_array(X) if kind == "csc" else X, y, scale=scale)
        Z = (data.X.toarray() if data.is_sparse else data.X) - data.center
        atoms = Groups(data, groups, "norm")
        pool = [atoms.columns(ids) for ids in chosen]
        found = simple_mkl(data, pool, 2.0, gap=1e-5)
        kernels = [Z[:, part.ids] * part.scale for part in pool]
        check(found, Z, y, np.full(y.size, 2.0), mixed_value(y, kernels, np.full(y.size, 2.0)))


def test_degenerate_pools() -> None:
    X, y, _, _ = draw(5)
    X[:, 3] = 0.0
    data = Instance.from_arrays(X, y)
    nothing = simple_mkl(data, [[3]], 2.0)
    assert nothing.objective == nothing.bound == pytest.approx(y.size)
    np.testing.assert_array_equal(nothing.w, [0.0])
    one = simple_mkl(data, [[0, 1]], 2.0)
    twice = simple_mkl(data, [[0, 1], [0, 1], [3]], 2.0)
    assert one.objective == pytest.approx(twice.objective, rel=1e-4)
    assert one.svms == 1
    tiny = simple_mkl(data, [[0], [1]], 1e-12)
    assert tiny.objective == pytest.approx(0.5e-12 * y.size, rel=1e-4)
    assert np.all(np.isfinite(tiny.w))


@pytest.mark.slow
def test_limits_and_start() -> None:
    X, y, pool, _ = draw(10)
    data = Instance.from_arrays(X, y)
    whole = simple_mkl(data, pool, 10.0, gap=1e-5)
    short = simple_mkl(data, pool, 10.0, gap=1e-5, svm_limit=2)
    assert short.svms < whole.svms
    assert short.bound <= whole.objective <= short.objective
    assert short.gap > whole.gap
    assert simple_mkl(data, pool, 10.0, time_limit=0.0).svms == 1
    warm = simple_mkl(data, pool, 10.0, gap=1e-4, start=2.0 * whole.mu)
    assert warm.svms < simple_mkl(data, pool, 10.0, gap=1e-4).svms
    again = simple_mkl(data, pool, 10.0, gap=1e-5)
    np.testing.assert_array_equal(again.w, whole.w)


@pytest.mark.parametrize(
    ("pool", "C", "start", "message"),
    [
        ([], 1.0, None, "0 kernels and C = 1.0; give at least one kernel and a positive number"),
        ([[0]], 0.0, None, "1 kernels and C = 0.0"),
        ([[0], [1]], 1.0, [1.0], r"start of shape \(1,\); give 2 numbers >= 0 that are not all zero"),
        ([[0]], 1.0, [0.0], "not all zero"),
    ],
)
def test_refused(pool: list[list[int]], C: float, start: list[float] | None, message: str) -> None:
    X, y, _, _ = draw(1)
    with pytest.raises(UsageError, match=message):
        simple_mkl(Instance.from_arrays(X, y), pool, C, start=start)


@pytest.mark.parametrize("noise", [100, 1000])
def test_feature_generation_of_2010_finds_the_composite_pair(noise: int) -> None:
    """Algorithm 1 of Tan 2010 as it was, with SimpleMKL inside: B = 2, C = 0.1, FGM-B at the last α."""
    made = tan_2010(n_noise=noise, seed=3)
    X, y = made["train"]
    data = Instance.from_arrays(X, y)
    features, alpha, pool = Features(data), np.full(y.size, 1.0 / y.size), []
    for _ in range(6):
        found = features.best(alpha * y, 2)
        if any(set(found) == set(ids) for ids in pool):
            break
        pool.append(found)
        alpha = simple_mkl(data, pool, 0.1, gap=1e-6).alpha
    assert set(pool[0]) == {0, 2}, "the first selection takes the strong single feature"
    assert set(features.best(alpha * y, 2)) == set(made["S"])
