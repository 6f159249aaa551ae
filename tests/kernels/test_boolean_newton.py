"""The steps of a node's relaxation against the function that they minimise, in NumPy, and its declared program."""

from __future__ import annotations

from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np
import numpy.typing as npt
import pytest

from mipfs.kernels import boolean_newton as kernels
from mipfs.kernels.boolean_newton import CLEAR, PRUNED, SOLVED, stationarity_gap, working_set
from mipfs.kernels.columns import TwoWays
from mipfs.kernels.face_descent import FaceModel
from mipfs.kernels.model_step import minimise_model
from mipfs.kernels.perspective import FRACTIONAL, IN, OUT, best_gain, classify_weights, phi
from mipfs.kernels.structures import (
    NEWTON,
    STEERING,
    Goal,
    InPlay,
    LossSamples,
    RelaxationPoint,
    only_read,
    steering_of,
)
from mipfs.pointers import Step
from mipfs.settings import NodeSettings
from tests.kernels.loss_cases import HINGE, LOGISTIC, SQUARED_HINGE, made
from tests.record_cases import named

Array = npt.NDArray[np.float64]
KINDS = (HINGE, SQUARED_HINGE, LOGISTIC)
N, K = 24, 6


class Case(NamedTuple):
    """A node and where it begins."""

    A: Array
    Z: Any
    samples: LossSamples
    in_play: InPlay
    goal: Goal
    point: RelaxationPoint
    state: Any
    step: Step
    kind: int


def case(seed: int, kind: int, *, bias: bool = True) -> Case:
    """Columns in play in any order, some forced, prices that differ where the seed is odd."""
    r = np.random.default_rng([seed, kind + 1])
    y = np.resize([1.0, -1.0], N)
    A = np.asfortranarray((r.normal(size=(N, K)) + 0.4 * y[:, None] * (r.random(K) < 0.5)) * y[:, None])
    c, forced = r.uniform(0.5, 1.0, N), seed % 3
    cols = r.permutation(K)[: K - seed % 2].astype(np.int64)
    penalty = 0.2 * r.random(cols.size) * (seed % 2)
    samples = LossSamples(only_read(y), only_read(c), made(kind), bias)
    steering = named(np.array([tuple(steering_of(NodeSettings()))], STEERING))[0]
    goal = Goal(np.inf, 1e-7, 0.0, -np.inf, np.zeros(1, np.int8), steering)
    alpha = c * np.where(y > 0, 0.3, 0.3)
    alpha[y > 0] *= alpha[y < 0].sum() / alpha[y > 0].sum()
    point = RelaxationPoint(0.3 * r.normal(size=cols.size), np.minimum(alpha, c), np.empty(N))
    state = named(np.zeros(1, NEWTON))[0]
    state.rho, state.prox, state.intercept = 1.0, 0.1, 0.05
    model = FaceModel(np.empty((1, 1)), point.w, point.w, 0.0, point.w, 0, 0, bias, 0.0, steering_of(NodeSettings()))
    step = Step.of(minimise_model, model, 0.0, 0, point.w, lends=True).made()
    in_play = InPlay(cols, forced, 2, penalty)
    return Case(A, TwoWays.dense(A, A.size), samples, in_play, goal, point, state, step, kind)


def losses(kind: int, m: Array) -> tuple[Array, Array]:
    """The loss and −its derivative at margins, unweighted."""
    if kind == HINGE:
        return np.maximum(0.0, 1.0 - m), (m < 1.0).astype(float)
    if kind == SQUARED_HINGE:
        return 0.5 * np.maximum(0.0, 1.0 - m) ** 2, np.maximum(0.0, 1.0 - m)
    return np.logaddexp(0.0, -m), 1.0 / (1.0 + np.exp(m))


def smoothed(at: Case, m: Array) -> float:
    """The loss that the steps see: of the hinge the augmented Lagrangian."""
    kind, c, rho, alpha = at.kind, at.samples.c, float(at.state.rho), at.point.alpha
    if kind != HINGE:
        return float(c @ losses(kind, m)[0])
    v = alpha + rho * (1.0 - m)
    return float(np.where(v <= 0.0, 0.0, np.where(v >= c, c * v - 0.5 * c * c, 0.5 * v * v)).sum()) / rho


def phi_of(at: Case, w: Array) -> float:
    """Φ and ½‖w‖² of the forced features, without their penalties."""
    cls, tau = np.empty(w.size, np.int64), np.empty(w.size)
    return float(phi(w, at.in_play.penalty, at.in_play.forced, at.in_play.room, cls, tau))


def value(at: Case, w: Array, b: float) -> float:
    """The objective of the node."""
    m = at.A[:, at.in_play.cols] @ w + at.samples.y * b * at.samples.bias
    base = float(at.in_play.penalty[: at.in_play.forced].sum())
    return phi_of(at, w) + float(at.samples.c @ losses(at.kind, m)[0]) + base


def least(at: Case) -> float:
    """The node's minimum by Clarabel."""
    forced, q = at.in_play.forced, at.in_play.cols.size
    w, b, sigma = cp.Variable(q), cp.Variable(), cp.Variable(q)
    m = at.A[:, at.in_play.cols] @ w + (at.samples.y * b if at.samples.bias else 0.0)
    loss = {HINGE: cp.pos(1 - m), SQUARED_HINGE: 0.5 * cp.square(cp.pos(1 - m)), LOGISTIC: cp.logistic(-m)}
    terms = sum(cp.quad_over_lin(w[j], sigma[j]) for j in range(q))
    rows = [sigma >= 0, sigma <= 1, sigma[:forced] == 1, cp.sum(sigma[forced:]) <= at.in_play.room]
    cost = 0.5 * terms + at.in_play.penalty @ sigma + at.samples.c @ loss[at.kind]
    return float(cp.Problem(cp.Minimize(cost), rows).solve(solver=cp.CLARABEL))


@pytest.mark.parametrize("seed", range(30))
def test_who_is_in_the_working_set(seed: int) -> None:
    r = np.random.default_rng(seed)
    q, forced, limit = seed % 9, min(seed % 3, seed % 9), 2
    omega, w, mu = r.normal(size=q), r.normal(size=q) * (r.random(q) < 0.4), 0.2
    penalty, chosen = 0.3 * r.normal(size=q), np.empty(q, np.int64)
    found = chosen[: working_set(omega, w, mu, penalty, forced, limit, chosen)].tolist()
    tau = np.sqrt(np.maximum(0.0, 2.0 * (penalty + mu)))
    held = [t for t in range(forced, q) if w[t] != 0.0 or (penalty[t] < 0.0 and tau[t] == 0.0)]
    excess = {t: abs(omega[t]) - 0.8 * tau[t] for t in range(forced, q) if t not in held}
    near = sorted((t for t in excess if excess[t] > 0.0), key=lambda t: -excess[t])[:limit]
    assert sorted(found) == sorted([*range(forced), *held, *near])


@pytest.mark.parametrize("seed", range(10))
def test_how_far_from_stationary(seed: int) -> None:
    r = np.random.default_rng(seed)
    q, bias = seed % 6, bool(seed % 2)
    w, g, tau = r.normal(size=q), r.normal(size=q + 1), r.random(q)
    cls = r.choice([IN, OUT, FRACTIONAL], q)
    over = np.maximum(0.0, np.abs(g[:q]) - tau)
    parts = np.where(cls == IN, 0.5 * (w + g[:q]) ** 2, np.abs(w) * np.abs(np.abs(g[:q]) - tau))
    wanted = np.where(cls == OUT, over * (tau + over), parts).sum() + bias * abs(g[q]) * 1.7
    assert stationarity_gap(w, g, cls, tau, -0.7, bias) == pytest.approx(float(wanted))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_a_relaxation_is_that_of_the_declared_program(seed: int, bias: bool, kind: int) -> None:
    at = case(seed, kind, bias=bias)
    state = np.zeros(1, NEWTON)
    state[0] = tuple(at.state)
    lower, upper = -np.inf, np.inf
    for _ in range(20):
        kernels.relax(at.step, at.Z, at.samples, at.in_play, at.goal, at.point, state[0])
        lower, upper = max(lower, state[0]["lower"]), min(upper, state[0]["upper"])
        if state[0]["why"] == SOLVED:
            break
    wanted = least(at)
    assert lower <= wanted * (1 + 1e-6)
    assert upper == pytest.approx(wanted, rel=2e-6)
    assert lower == pytest.approx(wanted, rel=2e-6)
    assert value(at, at.point.w, float(state[0]["intercept"])) >= wanted * (1 - 1e-6)


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_the_steps_of_a_minimisation(seed: int, bias: bool, kind: int) -> None:
    """Begin, look, judge, a face, its gradient and model, a step and how far it goes, by finite differences."""
    at = case(seed, kind, bias=bias)
    Z, samples, in_play, goal, point, state = at.Z, at.samples, at.in_play, at.goal, at.point, at.state
    w, y, cols, X = point.w.copy(), samples.y, in_play.cols, at.A[:, in_play.cols]
    path = kernels.begin(Z, samples, in_play, goal, point, state)
    np.testing.assert_allclose(path.m, X @ w + bias * y * 0.05, atol=1e-13)
    assert (state.lower, state.upper, state.why, state.steps) == (-np.inf, np.inf, 0, 0)
    kernels.evaluate_bounds(Z, samples, in_play, goal, point, path, state)
    beta = point.alpha if kind == HINGE else samples.c * losses(kind, path.m)[1]
    slack = bias * abs(float(y @ beta)) * 1.05
    dual = beta.sum() if kind == HINGE else float(samples.c @ losses(kind, path.m)[0] + path.m @ beta)
    gain = best_gain(X.T @ beta, in_play.penalty, in_play.forced, in_play.room)
    assert state.lower == pytest.approx(dual - gain - slack + state.base, rel=1e-10)
    assert state.upper == pytest.approx(value(at, w, 0.05 * bias), rel=1e-12)
    assert state.lower <= least(at) * (1 + 1e-6)
    np.testing.assert_allclose(point.best, beta, rtol=1e-12)
    for other, why in (
        (goal._replace(cutoff=state.lower - 1.0), PRUNED),
        (goal._replace(tol=1e9), SOLVED),
        (goal._replace(cutoff=state.upper + 1.0, share=1e9, known=state.lower - 1e9), CLEAR),
        (goal, 0),
    ):
        state.why = 0
        kernels.judge_bounds(samples, in_play, other, point, path, state)
        assert state.why == why
    if kind == HINGE:
        state.steps, state.moved, state.rose, rho, prox = 1, 1, 1, state.rho, state.prox
        kernels.update_multipliers(goal.steering, point, path, state)
        np.testing.assert_array_equal(point.alpha, path.beta)
        assert (state.rho, state.prox) == (2.0 * rho, 0.5 * prox)
    ids = np.arange(cols.size)
    face = kernels.make_working_set(at.step, in_play, point, ids, bias)
    np.testing.assert_array_equal(face.J, cols)
    state.listed = state.steps = 0
    kernels.values(samples, point, path, state)
    kernels.update_scores(Z, cols, path)
    np.testing.assert_allclose(path.omega, X.T @ path.beta, atol=1e-11)
    error = kernels.face_gradient(samples, in_play, path, face, state)
    rows = np.column_stack([X, y])[:, : face.g.size]
    np.testing.assert_allclose(face.g, -rows.T @ path.beta, atol=1e-11)  # at the centre of the proximal term
    cls, tau = np.empty(w.size, np.int64), np.empty(w.size)
    classify_weights(w, face.costs, in_play.forced, in_play.room, cls, tau)
    assert error == pytest.approx(stationarity_gap(w, face.g, cls, tau, state.intercept, bias))
    kernels.build_newton_matrix(Z, samples, path, face, state)
    inner = path.inner[: state.inner]
    H = rows[inner].T @ (path.curve[inner, None] * rows[inner])
    H[np.arange(w.size), np.arange(w.size)] += state.prox
    if bias and not inner.size:
        H[-1, -1] = 1.0
    np.testing.assert_allclose(face.H, H, atol=1e-10)
    local = FaceModel(
        face.H, face.g, face.w, 0.0, face.costs, in_play.forced, in_play.room, bias, 1e-10, steering_of(NodeSettings())
    )
    minimise_model(local, 0.0, N, face.d)
    kernels.slope_at_zero(Z, samples, in_play, point, path, face, state)
    np.testing.assert_allclose(path.move, rows @ face.d, atol=1e-11)

    def along(t: float) -> float:
        d = face.d[: w.size]
        near = 0.5 * state.prox * float((w + t * d - face.center) @ (w + t * d - face.center))
        return smoothed(at, path.m + t * path.move) + near + phi_of(at, w + t * d)

    h = 1e-7
    assert state.first == pytest.approx((along(h) - along(0.0)) / h, rel=1e-3, abs=1e-4)
    assert state.first < 0.0
    ahead = (smoothed(at, path.m + h * path.move) - smoothed(at, path.m)) / h
    assert kernels.slope_of_loss(samples, point.alpha, path, state, 0.0) == pytest.approx(ahead, rel=1e-3, abs=1e-4)
    t = kernels.search(samples, in_play, goal, point.alpha, path, face, state)
    assert 0.0 < t <= 1.0
    assert along(t) < along(0.0)
    before, b = path.m.copy(), state.intercept
    kernels.advance(samples, in_play, goal, point, path, face, state)
    np.testing.assert_allclose(path.m, before + t * path.move, atol=1e-13)
    np.testing.assert_allclose(face.w, w + t * face.d[: w.size], atol=1e-13)
    assert state.intercept == pytest.approx(b + (t * face.d[-1] if bias else 0.0))
