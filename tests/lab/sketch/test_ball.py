"""The smallest enclosing ball against a second-order cone program, and between its two bounds."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from scipy import sparse

from mipfs.lab.sketch.guarantee import enclosing_ball
from mipfs.lab.sketch.margin import Interval


def reference(X: np.ndarray) -> float:
    """R² as a conic program: min t with ‖x_i − c‖ ≤ t."""
    center, radius = cp.Variable(X.shape[1]), cp.Variable()
    problem = cp.Problem(cp.Minimize(radius), [cp.norm(row - center) <= radius for row in X])
    problem.solve(solver=cp.CLARABEL)
    return float(radius.value) ** 2


@pytest.mark.sampled(5)
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_against_a_cone_program(seed: int, container: object) -> None:
    r = np.random.default_rng(seed)
    X = r.standard_normal((int(r.integers(2, 40)), int(r.integers(1, 30)))) + 3.0 * r.standard_normal()
    found = enclosing_ball(container(X))
    assert found.low <= found.high <= found.low * (1.0 + 1e-7)
    assert found.high == pytest.approx(reference(X), rel=1e-6)


def test_points_on_a_sphere_and_equal_points() -> None:
    r = np.random.default_rng(1)
    U = r.standard_normal((200, 5))
    U = np.vstack([U, -U]) / np.linalg.norm(np.vstack([U, -U]), axis=1)[:, None]
    assert enclosing_ball(7.0 + 3.0 * U).high == pytest.approx(9.0, rel=1e-7)
    assert enclosing_ball(np.full((6, 3), 0.1)).high <= 1e-30
    assert enclosing_ball(np.zeros((2, 2))) == Interval(0.0, 0.0)
    assert enclosing_ball(np.array([[1.0, 2.0]])).high <= 1e-30
    simplex = enclosing_ball(np.eye(300))  # every point is on the boundary
    assert simplex.low == pytest.approx(1.0 - 1.0 / 300, rel=1e-6)
    assert simplex.high == pytest.approx(1.0 - 1.0 / 300, rel=1e-6)


@pytest.mark.parametrize("scale", [1e-120, 1e120])
def test_any_scale(scale: float) -> None:
    X = np.random.default_rng(2).standard_normal((20, 4))
    found, plain = enclosing_ball(scale * X), enclosing_ball(X)
    assert found.high / scale / scale == pytest.approx(plain.high, rel=1e-7)


def test_ratios_of_intervals() -> None:
    assert Interval(1.0, 2.0).over(Interval(4.0, 5.0)) == Interval(0.2, 0.5)
    assert Interval(1.0, 2.0).over(Interval(0.0, 5.0)) == Interval(0.2, np.inf)
    assert Interval(1.0, 2.0).over(Interval(0.0, 0.0)) is None
