"""The steps of the active set on a model, each alone beside plain NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mipfs.kernels import model_step
from mipfs.kernels.face_descent import FaceModel
from mipfs.kernels.model_step import ModelDirection
from mipfs.kernels.perspective import FRACTIONAL, IN, OUT, phi
from mipfs.kernels.structures import steering_of
from mipfs.settings import ModelSettings, NodeSettings


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
