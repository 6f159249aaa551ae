"""Values far from the scale of Σ c_i: OPTIMAL is a relative gap in the user's units, whatever their size."""

from __future__ import annotations

import itertools
import math

import clarabel
import numpy as np
import numpy.typing as npt
import pytest
from scipy import sparse

import mipfs
from mipfs.data.instance import Instance
from mipfs.drivers import branch
from mipfs.errors import ContradictionError
from mipfs.problem import Problem
from mipfs.result.result import Result, Status, StopReason
from mipfs.run.run import Run
from mipfs.svm.dyadic import balance_dual
from tests import smooth_oracles

Array = npt.NDArray[np.float64]


def quadratic(P: Array, A: Array, b: Array) -> float:
    """min ½ x'Px s.t. Ax ≤ b, by Clarabel; inf where no x satisfies the rows."""
    settings = clarabel.DefaultSettings()
    settings.verbose, settings.max_threads = False, 1
    cones = [clarabel.NonnegativeConeT(b.size)]
    q = np.zeros(P.shape[0])
    solved = clarabel.DefaultSolver(sparse.csc_matrix(P), q, sparse.csc_matrix(A), b, cones, settings).solve()
    x = np.array(solved.x)
    return float(0.5 * x @ P @ x) if str(solved.status) in ("Solved", "AlmostSolved") else math.inf


def hard_margin(X: Array, y: Array) -> float:
    """min ½‖w‖² s.t. y_i (w'x_i + b) ≥ 1: what the hinge is worth at a large C where the columns separate."""
    k = X.shape[1]
    A = -y[:, None] * np.hstack([X, np.ones((y.size, 1))])
    return quadratic(np.diag([1.0] * k + [0.0]), A, -np.ones(y.size))


def is_proven(result: Result, gap: float) -> bool:
    """OPTIMAL by the result's own numbers."""
    return result.status is Status.OPTIMAL and result.objective - result.bound <= gap * abs(result.objective)


@pytest.mark.sampled(13)
@pytest.mark.parametrize("C", [1e8, 1e12])
@pytest.mark.parametrize("driver", ["branch", "gbd"])
@pytest.mark.parametrize("seed", range(4))
def test_separable_data_at_large_C(seed: int, driver: str, C: float) -> None:
    r = np.random.default_rng(seed)
    X = r.normal(size=(40, 4)) * 10.0 ** r.uniform(-1, 1, 4) + r.choice([0.0, 1e2], 4)
    y = np.where((X - X.mean(0))[:, :2] @ r.normal(size=2) > 0, 1.0, -1.0)
    X[:, 2] += 2.0 * y * X[:, 2].std()  # separates alone at times
    best = min(hard_margin(X[:, list(chosen)], y) for chosen in itertools.combinations(range(4), 2))
    assert math.isfinite(best)
    data = Instance.from_arrays(X, y)
    result = mipfs.solve(Problem(data, M=2, C=C), driver)
    assert is_proven(result, 1e-4), result
    assert result.objective == pytest.approx(best, rel=1.1e-4)
    assert mipfs.verify(result, data).accepted


@pytest.mark.parametrize("seed", range(6))
def test_the_rho_form_where_its_values_are_tiny(seed: int) -> None:
    r = np.random.default_rng(seed)
    F = r.normal(size=(200, 3))
    X = F @ r.normal(size=(3, 6)) + 0.3 * r.normal(size=(200, 6))
    y = np.where(X @ r.normal(size=6) + r.normal(size=200) > 0, 1.0, -1.0)
    data, C = Instance.from_arrays(X, y), 1e5
    c_i = np.full(200, C)
    values = [
        smooth_oracles.squared_hinge(X[:, list(s)], y, c_i, bias=False) for s in itertools.combinations(range(6), 2)
    ]
    best = min(value[0] for value in values)
    result = mipfs.solve(Problem(data, M=2, C=C, loss="squared-hinge", bias=False, margin="rho"))
    assert is_proven(result, 1e-4), result
    assert result.objective == pytest.approx(-0.25 / best, rel=1.1e-4)
    assert mipfs.verify(result, data).accepted


@pytest.mark.parametrize("gap", [1e-2, 1e-4, 1e-8])
@pytest.mark.parametrize("C", [1e-6, 1e-3, 1e6])
def test_the_status_is_that_of_the_bound_that_is_shown(C: float, gap: float) -> None:
    r = np.random.default_rng(0)
    data = Instance.from_arrays(r.normal(size=(30, 5)), np.where(r.random(30) < 0.5, 1.0, -1.0))
    result = mipfs.solve(Problem(data, M=2, C=C, loss="logistic"), gap=gap)
    assert is_proven(result, gap)
    assert mipfs.verify(result, data).accepted


def test_what_rounding_leaves_open_is_feasible_and_numerical() -> None:
    r = np.random.default_rng(1)
    data = Instance.from_arrays(r.normal(size=(30, 4)), np.where(r.random(30) < 0.5, 1.0, -1.0))
    result = mipfs.solve(Problem(data, M=2), gap=0.0)
    assert (result.status, result.stop_reason) == (Status.FEASIBLE, StopReason.NUMERICAL)
    assert 0.0 < result.gap < 1e-9
    assert mipfs.verify(result, data).accepted


def test_a_bound_above_the_objective_is_an_internal_error() -> None:
    r = np.random.default_rng(2)
    data = Instance.from_arrays(r.normal(size=(20, 3)), np.where(r.random(20) < 0.5, 1.0, -1.0))
    problem = Problem(data, M=1)
    run = Run(problem, branch.Options())
    value = run.offer([0], np.array([0.3]), 0.1)
    run.raise_bound(value * (1.0 + 1e-17))  # the same float
    assert run.bound == value
    with pytest.raises(ContradictionError, match=r"internal error: the bound .* lies above the objective"):
        run.raise_bound(value * (1.0 + 1e-9))


@pytest.mark.parametrize("C", [1.0, 1e12])
def test_the_grid_is_that_of_the_largest_entry(C: float) -> None:
    alpha = np.array([0.3, 0.1, 0.4])
    y, top = np.array([1.0, 1.0, -1.0]), np.full(3, C)
    whole, q = balance_dual(alpha, top, y, True)
    np.testing.assert_allclose(np.ldexp(whole.astype(float), -q), alpha, rtol=1e-14)
    assert int((y * whole).sum()) == 0
