"""The ℓ1 bundle against all labellings written out in CVXPY."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from scipy import sparse

from mipfs.data.instance import Instance
from mipfs.errors import UsageError
from mipfs.lab.baselines.l1_bundle import L1Bundle
from mipfs.measures import get_measure
from tests.structural_oracles import cases, labellings


def draw(seed: int, n: int = 6, p: int = 5) -> Instance:
    r = np.random.default_rng(seed)
    X = r.standard_normal((n, p))
    y = np.where(X[:, 0] - X[:, 1] + 0.5 * r.standard_normal(n) > 0.3, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    return Instance.from_arrays(X, y)


def reference(Z: np.ndarray, losses: np.ndarray, V: np.ndarray, C: float) -> float:
    """min ‖w‖₁ + C ξ, ξ ≥ Δ_k − w'Z'v_k, ξ ≥ 0."""
    w, xi = cp.Variable(Z.shape[1]), cp.Variable(nonneg=True)
    program = cp.Problem(cp.Minimize(cp.norm1(w) + C * xi), [xi >= losses - (V @ Z) @ w])
    return float(program.solve(solver=cp.CLARABEL))


@pytest.mark.sampled(7)
@pytest.mark.parametrize(("name", "given"), cases())
def test_value_and_bound(name: str, given: dict[str, Any]) -> None:
    for seed in range(2):
        data = draw(seed)
        losses, V = labellings(name, data.y, given.get("beta", 1.0), given.get("k"))
        bundle = L1Bundle(data, name, **given)
        for C in (1.0, 8.0, 40.0, 3.0):  # what was kept holds for every C
            value = reference(data.X, losses, V, C)
            found = bundle.solve(C, tol=1e-7)
            assert found.objective == pytest.approx(value, rel=1e-6, abs=1e-7)
            assert found.bound == pytest.approx(value, rel=1e-6, abs=1e-7)
            worst = max(0.0, float(np.max(losses - V @ data.X[:, found.ids] @ found.w)))
            assert found.objective == pytest.approx(np.abs(found.w).sum() + C * worst, rel=1e-9, abs=1e-12)


@pytest.mark.slow
def test_larger_data_closes_the_gap_with_a_violated_labelling_as_the_witness() -> None:
    r = np.random.default_rng(4)
    X = np.where(r.random((150, 200)) < 0.1, r.random((150, 200)), 0.0)
    y = np.where(X[:, :5].sum(axis=1) > 0.5, 1.0, -1.0)
    found = []
    for made in (X, sparse.csc_array(X)):
        data = Instance.from_arrays(made, y)
        one = L1Bundle(data, "f1").solve(100.0, tol=5e-3)
        assert one.bound <= one.objective <= one.bound * (1 + 5.1e-3)
        loss = get_measure("f1", y).violated(one.scores(data)).value
        assert one.objective == pytest.approx(np.abs(one.w).sum() + 100.0 * max(0.0, loss), rel=1e-6)
        found.append(one.objective)
    assert found[0] == pytest.approx(found[1], rel=1e-2)


def test_the_limit_of_rounds_leaves_an_honest_gap() -> None:
    data = draw(9, 8, 5)
    losses, V = labellings("f1", data.y)
    value = reference(data.X, losses, V, 30.0)
    short = L1Bundle(data, "f1").solve(30.0, tol=1e-9, rounds=3)
    assert short.bound <= value * (1 + 1e-7)
    assert short.objective >= value * (1 - 1e-7)
    assert short.objective > short.bound


@pytest.mark.slow
def test_the_number_of_features() -> None:
    r = np.random.default_rng(0)
    X = r.standard_normal((120, 30))
    y = np.where(X[:, :4].sum(axis=1) + 0.5 * r.standard_normal(120) > 1.5, 1.0, -1.0)
    data = Instance.from_arrays(X, y)
    for M in (2, 5, 30):
        found = L1Bundle(data, "f1").of_size(M, tol=1e-4)
        assert found.ids.size <= M
        assert M == 30 or found.ids.size == M
        loss = max(0.0, get_measure("f1", y).violated(found.scores(data)).value)
        assert found.objective == pytest.approx(np.abs(found.w).sum() + found.C * loss, rel=1e-6)
        whole = L1Bundle(data, "f1").solve(found.C, tol=1e-4)
        assert found.objective >= whole.bound * (1 - 1e-9)
        assert whole.ids.size >= found.ids.size
    with pytest.raises(UsageError, match="M = 0 must be an integer from 1 to 30"):
        L1Bundle(data, "f1").of_size(0)
    with pytest.raises(UsageError, match=r"C = 0\.0 must be a positive number"):
        L1Bundle(data, "f1").solve(0.0)
    with pytest.raises(UsageError, match="has no sample weights"):
        L1Bundle(Instance.from_arrays(X, y, sample_weight=np.full(120, 2.0)), "f1")
