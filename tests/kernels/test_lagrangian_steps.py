"""The steps of the augmented Lagrangian and of the active set on a model, each alone beside plain NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mipfs.kernels import augmented_lagrangian as kernels
from mipfs.kernels import model_step
from mipfs.kernels.face_descent import FaceModel
from mipfs.kernels.model_step import ModelDirection
from mipfs.kernels.newton import SvmRows
from mipfs.kernels.perspective import FRACTIONAL, IN, OUT, phi
from mipfs.kernels.structures import steering_of
from mipfs.settings import ModelSettings, NodeSettings

N, K = 18, 4


def begun(seed: int) -> Any:
    """Rows of a hinge SVM with a free bias, and a point with multipliers at both ends of their box and within."""
    r = np.random.default_rng(seed)
    y = np.resize([1.0, -1.0], N)
    A = np.ascontiguousarray(np.column_stack([r.normal(size=(N, K)), np.ones(N)]) * y[:, None])
    c = r.uniform(0.3, 2.0, N)
    u, alpha, state = r.normal(size=K + 1), c * r.choice([0.0, 0.4, 1.0], N), np.array([0.7, 0.0, 0.0])
    return kernels.iterate_of(SvmRows(A, c, K), u, alpha, state, np.empty((7, N + K + 1)))


@pytest.mark.parametrize("seed", range(5))
def test_steps_of_the_lagrangian(seed: int) -> None:
    """φ's gradient, by hand; the values of both problems; who is put aside and comes back; a step that descends."""
    at = begun(seed)
    A, c, u, alpha = at.A, at.c, at.u, at.alpha

    def values(point: Any, dual: Any) -> tuple[float, float]:
        loss = c @ np.maximum(0.0, 1.0 - A @ point)
        omega = A[:, :K].T @ dual
        return float(0.5 * point[:K] @ point[:K] + loss), float(dual.sum() - 0.5 * omega @ omega)

    primal, gap = kernels.first_values(at)
    np.testing.assert_allclose(at.m, A @ u, atol=1e-13)
    assert (primal, gap) == pytest.approx((values(u, alpha)[0], abs(values(u, alpha)[0] - values(u, alpha)[1])))
    count = kernels.put_aside(at, 6)
    rows = set(at.rows[:count].tolist())
    away = np.array([i not in rows for i in range(N)])
    assert at.aside.tolist() == away.tolist()
    assert set(np.flatnonzero((alpha > 0.0) & (alpha < c)).tolist()) <= rows
    np.testing.assert_array_equal(at.beta[away], alpha[away])
    np.testing.assert_allclose(at.fixed, A[away].T @ alpha[away], atol=1e-13)
    error, inner = kernels.newton_gradient(at, at.rows[:count])
    beta = np.where(away, alpha, np.clip(alpha + 0.7 * (1.0 - A @ u), 0.0, c))
    g = np.append(u[:K], 0.0) - A.T @ beta
    np.testing.assert_allclose(at.g, g, atol=1e-12)
    assert error == pytest.approx(0.5 * float(g[:K] @ g[:K]) + abs(g[K]) * (1.0 + abs(u[K])))
    assert sorted(at.inner[:inner]) == np.flatnonzero(~away & (beta > 0.0) & (beta < c)).tolist()

    def lagrangian(point: Any) -> float:
        v = (alpha + 0.7 * (1.0 - A @ point))[~away]
        top = c[~away]
        psi = np.where(v <= 0.0, 0.0, np.where(v >= top, top * v - 0.5 * top * top, 0.5 * v * v)).sum() / 0.7
        return float(psi + 0.5 * point[:K] @ point[:K] - at.fixed @ point)

    before = u.copy()
    at.direction[:] = -at.g
    assert kernels.advance(at, at.rows[:count])
    assert lagrangian(u) < lagrangian(before)
    np.testing.assert_allclose(at.m[~away], (A @ u)[~away], atol=1e-12)
    at.direction[:] = 0.0
    assert not kernels.advance(at, at.rows[:count])
    at.curve[:] = 0.7
    assert kernels.minimise(at, at.rows[:count], 1e-12, 50.0)
    h = 1e-6
    slopes = [(lagrangian(u + h * e) - lagrangian(u - h * e)) / (2 * h) for e in np.eye(K + 1)]
    np.testing.assert_allclose(slopes, 0.0, atol=1e-4)
    assert 0 < at.state[2] < 50
    assert not kernels.minimise(at, at.rows[:count], -1.0, float(at.state[2]))
    back = kernels.take_back(at, count)
    m = A @ u
    wrong = away & (((alpha == 0.0) & (m < 1.0)) | ((alpha == c) & (m > 1.0)))
    assert sorted(at.rows[count:back]) == np.flatnonzero(wrong).tolist()
    np.testing.assert_allclose(at.fixed, A[away & ~wrong].T @ alpha[away & ~wrong], atol=1e-12)
    old = alpha.copy()
    found = kernels.take_over(at, at.rows[:back])
    beta = np.where(away & ~wrong, old, np.clip(old + 0.7 * (1.0 - m), 0.0, c))
    np.testing.assert_allclose(alpha, beta, atol=1e-13)
    value, dual = values(u, beta)
    slack = abs(float(A[:, K] @ beta)) * (1.0 + abs(u[K]))
    assert found == pytest.approx((value, dual, abs(value - dual), slack), abs=1e-11)


def posed(seed: int) -> tuple[Any, Any, Any]:
    """A model, a point of it, and room for a step."""
    r = np.random.default_rng(seed)
    k, forced = 7, seed % 3
    X = r.normal(size=(12, k + 1))
    c = np.append(r.random(k - 1), -0.2)
    w = np.where(r.random(k) < 0.5, r.normal(size=k), 0.0)
    model = FaceModel(
        X.T @ X, 4.0 * r.normal(size=k + 1), w, 0.3, c, forced, 3, True, 1e-10, steering_of(NodeSettings())
    )
    here = model_step.place_of(k, k + 1)
    here.x[:] = w
    phi(here.x, c, forced, 3, here.cls, here.tau)
    return model, here, ModelDirection(np.empty(k + 1), np.zeros(k + 1), np.zeros(k))


@pytest.mark.parametrize("seed", range(8))
def test_steps_of_an_active_set(seed: int) -> None:
    model, here, way = posed(seed)
    H, g, k, forced = model.H, model.g, model.w.size, model.forced
    x, cls, tau = here.x.copy(), here.cls.copy(), here.tau.copy()
    firm = np.array([bool(model_step.is_firm(*pair)) for pair in zip(model.c, tau, strict=True)])
    np.testing.assert_array_equal(firm, (tau == 0.0) & (model.c < 0.0))
    face, outside, best, excess, taken = model_step.stationarity_gap(model, here, way)
    over = np.where(cls == OUT, np.maximum(0.0, np.abs(g[:k]) - tau), 0.0)
    fractional = np.abs(x) * np.abs(g[:k] + np.where(x > 0.0, 1.0, -1.0) * tau)
    parts = np.where(cls == IN, 0.5 * (g[:k] + x) ** 2, np.where(cls == FRACTIONAL, fractional, 0.0))
    assert face == pytest.approx(float(parts.sum() + abs(g[k]) * 1.3))
    assert outside == pytest.approx(float((over * (tau + over)).sum()))
    assert (best, excess) == ((int(over.argmax()), over.max()) if over.max() > 0.0 else (-1, 0.0))
    assert taken == np.count_nonzero(cls[forced:] != OUT)
    model_step.enter_features(forced, here, way, best, np.inf, 3 - taken)
    entered = [t for t in range(k) if here.cls[t] != cls[t]]
    assert entered == ([best] if best >= 0 else [])
    model_step.newton_direction(model, here, way, 0.0, best, True)
    on = np.append(here.cls != OUT, True)
    assert np.all(way.d[~on] == 0.0)
    assert np.isfinite(way.d).all()
    there = model_step.place_of(k, k + 1)

    def value(point: Any, b: float) -> float:
        d = np.append(point - model.w, b)
        return float(phi(point, model.c, forced, 3, cls.copy(), tau.copy()) + g @ d + 0.5 * d @ H @ d)

    end = model_step.cut_off(model, here, there, way, 1.0)
    free = ~firm & (np.arange(k) >= forced)
    crosses = free & (here.cls != OUT) & ((here.x + way.d[:k]) * way.sign < 0.0)
    wanted = np.where(crosses | (free & (here.cls == OUT)), 0.0, here.x + way.d[:k])
    np.testing.assert_allclose(there.x, wanted, atol=1e-14)
    changes = crosses & (here.x != 0.0)
    assert end == pytest.approx(min([1.0, *(-here.x / np.where(way.d[:k] == 0.0, 1.0, way.d[:k]))[changes]]))
    assert model_step.evaluate_further(model, here, there, way, 1.0) == pytest.approx(value(there.x, way.d[k]))
    begin = value(here.x, 0.0)
    found, pays, end = model_step.backtrack_step(model, here, there, way, begin, 1e-3)
    assert found == pytest.approx(value(there.x, there.moved[k]))
    assert not pays or found < begin
    assert 0.0 <= end <= 1.0
    length = model_step.minimum_before_sign_change(model, here, there, way, max(end, 1e-3))
    assert 0.0 < length <= max(end, 1e-3)
    found, dropped = model_step.stop_short(model, here, there, way, length)
    assert found == pytest.approx(value(there.x, length * way.d[k]))
    gone = free & (here.cls != OUT) & (here.x != 0.0) & (there.x == 0.0)
    assert dropped == bool(gone.any())


def test_how_many_steps_a_model_is_given() -> None:
    steering = steering_of(NodeSettings(model=ModelSettings(steps=2, wide=10, wide_steps=5)))["model"]
    given = [model_step.most_steps(steering, k, count) for k, count in ((9, 1000), (10, 1000), (10, 20), (10, 1))]
    assert given == [2, 5, 4, 2]
