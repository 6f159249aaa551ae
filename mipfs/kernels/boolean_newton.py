"""The Boolean relaxation with some features fixed, by proximal Newton: the kernel of `branch`.

    min over w, b of  ½ Σ_{j in S₁} w_j² + Φ(w_F) + L(y∘(Xw + b)),   Φ as in `mipfs.kernels.perspective`

A Newton step builds the loss's curvature matrix once, minimises model + Φ (`mipfs.kernels.model_step`), and searches
on the slope of the true function along the step, so every step descends. A loss whose slope jumps is smoothed as in
`mipfs.kernels.newton` (β_i = clip(α_i + ρ(1 − m_i), 0, c_i)), and w is held near the last one by
a proximal term ½·prox·‖w − w̄‖², both let go from one minimisation to the next; the other losses need no smoothing.
Every iterate yields β in the box of the dual set and with it a bound, so a node stops as soon as it can be pruned
or clearly cannot.
"""

from __future__ import annotations

import numpy as np

from mipfs.compiled import compiled
from mipfs.compiled.lent import hold_until_here, lend_arrays
from mipfs.kernels.columns import add_columns, add_curvature, dot_columns, few_rows
from mipfs.kernels.face_descent import FaceModel
from mipfs.kernels.loss import at_margins, curvature, dual, slope
from mipfs.kernels.order import kth_largest
from mipfs.kernels.perspective import FRACTIONAL, IN, best_gain, classify_weights, phi, phi_slope, threshold_level
from mipfs.kernels.structures import NewtonPath, WorkingSet
from mipfs.kernels.vectors import add_to, along, copy_to, dot_in_order, scatter_to
from mipfs.pointers import call_step

PRUNED, SOLVED, CLEAR, STALLED = 1, 2, 3, 4
"""Why the kernel stopped: bound above the cutoff, gap closed, clearly below the cutoff, no progress."""


@compiled(nogil=True)
def update_scores(Z, cols, path):  # type: ignore[no-untyped-def]
    """ω, the scores of `held`, become those of β; from one step to the next only few β_i differ."""
    beta = path.beta
    held = path.held
    rows = path.rows
    scale = path.scale
    count = 0
    for i in range(beta.size):
        # Without a branch: the place is written in any case, and kept where β_i moved.
        rows[count] = i
        scale[count] = beta[i] - held[i]
        count += beta[i] != held[i]
        held[i] = beta[i]
    if count == 0:
        return
    # Where many moved, all scores anew cost less than the rows of the changes.
    if not few_rows(Z, count, cols.size):
        dot_columns(Z.columns, cols, beta, path.omega)
        return
    path.pulled[:] = 0.0
    add_columns(Z.rows, rows[:count], scale[:count], path.pulled)
    for t in range(cols.size):
        path.omega[t] += path.pulled[cols[t]]


@compiled(nogil=True)
def follow_curvature(Z, samples, J, G, path, state):  # type: ignore[no-untyped-def]
    """G, the curvature of the rows `listed` with weights `kept`, becomes that of `inner` with the weights `curve`.

    Rows that come and go are added and taken out, where these are fewer than the rows.
    """
    curve = path.curve
    kept = path.kept
    rows = path.rows
    scale = path.scale
    inner = path.inner[: state.inner]
    count = 0
    for i in inner:
        rows[count] = i
        scale[count] = curve[i] - kept[i]
        count += curve[i] != kept[i]
        kept[i] = -curve[i]
    for i in path.listed[: state.listed]:
        if kept[i] > 0.0:
            if count < rows.size:
                rows[count] = i
                scale[count] = -kept[i]
            count += 1
            kept[i] = 0.0
    # More rows come and go than there are: the matrix is made anew.
    afresh = count >= inner.size
    for r in range(inner.size):
        i = inner[r]
        kept[i] = curve[i]
        path.listed[r] = i
        if afresh:
            rows[r] = i
            scale[r] = curve[i]
    if afresh:
        G[:, :] = 0.0
        count = inner.size
    add_curvature(Z, samples.y, J, rows[:count], scale[:count], samples.bias, G)
    state.listed = inner.size


@compiled(nogil=True)
def working_set(omega, w, mu, penalty, forced, limit, chosen):  # type: ignore[no-untyped-def]
    """Positions of the forced features, those of non-zero weight or negative price, and those near their thresholds.

    At most `limit` features of weight zero are taken, those of largest excess.
    """
    q = omega.size
    count = 0
    for t in range(forced):
        chosen[count] = t
        count += 1
    excess = np.empty(q - forced)
    waiting = 0
    for t in range(forced, q):
        tau = np.sqrt(max(0.0, 2.0 * (penalty[t] + mu)))
        if w[t] != 0.0 or (penalty[t] < 0.0 and tau == 0.0):
            chosen[count] = t
            count += 1
            excess[t - forced] = -1.0
        else:
            # Out is right while |ω_j| ≤ τ_j; who comes within a fifth of it may be wanted after the step.
            excess[t - forced] = abs(omega[t]) - 0.8 * tau
            if excess[t - forced] > 0.0:
                waiting += 1
    floor = 0.0
    if waiting > limit:
        floor = kth_largest(excess.copy(), limit)
    for t in range(forced, q):
        if excess[t - forced] > 0.0 and excess[t - forced] >= floor:
            chosen[count] = t
            count += 1
    return count


@compiled(nogil=True)
def stationarity_gap(w, g, cls, tau, b, bias):  # type: ignore[no-untyped-def]
    """How far the gradient g of the smooth part is from −∂Φ(w), in units of the objective."""
    total = 0.0
    for t in range(w.size):
        # In, w + g = 0; fractional, |g| = τ; out, |g| ≤ τ: what is missing, times a weight, is a value.
        if cls[t] == IN:
            total += 0.5 * (w[t] + g[t]) ** 2
        elif cls[t] == FRACTIONAL:
            total += abs(w[t]) * abs(abs(g[t]) - tau[t])
        else:
            over = max(0.0, abs(g[t]) - tau[t])
            total += over * (tau[t] + over)
    if bias:
        total += abs(g[w.size]) * (1.0 + abs(b))
    return total


@compiled(nogil=True, inline="always")
def slope_of_loss(samples, alpha, path, state, t):  # type: ignore[no-untyped-def]
    """The derivative of the (smoothed) loss along a step, at t."""
    slope(samples.loss.slope, t, path.m, path.move, alpha, samples.c, state.rho, path.sums)
    return path.sums[0]


@compiled(nogil=True, inline="always")
def search(samples, in_play, goal, alpha, path, face, state):  # type: ignore[no-untyped-def]
    """A step in (0, 1] at which the slope of the true function is small; `state.first` < 0 is the slope at zero."""
    first = state.first
    t = 1.0
    low = 0.0
    high = 1.0
    for _ in range(goal.steering.searches):
        now = slope_of_loss(samples, alpha, path, state, t) + state.start + t * state.bend
        along(face.w, face.d, t, face.point)
        now += phi_slope(face.point, face.d, face.costs, in_play.forced, in_play.room, face.cls, face.tau)
        if now <= -0.1 * first and (t == 1.0 or now >= 0.5 * first):
            break
        if now <= 0.0:
            low = t
            t = 0.5 * (low + high)
        else:
            high = t
            t = high * max(0.1, min(0.9, first / (first - now))) if low == 0.0 else 0.5 * (low + high)
    return t


@compiled(nogil=True)
def judge_bounds(samples, in_play, goal, point, path, state):  # type: ignore[no-untyped-def]
    """Take over the bound of β (scores ω) and the value of w; `state.why` says whether they decide the node.

    lower(β) = g(β) − Σ gains of S₁ − the K largest positive gains of the others, less about |y'β||b|, which is
    what a free intercept could still lower the value by.
    """
    forced = in_play.forced
    K = in_play.room
    penalty = in_play.penalty
    slack = abs(dot_in_order(samples.y, path.beta)) * (1.0 + abs(state.intercept)) if samples.bias else 0.0
    lower = state.dual - best_gain(path.omega, penalty, forced, K) - slack + state.base
    value = phi(point.w, penalty, forced, K, path.cls, path.tau) + state.loss + state.base
    state.upper = min(state.upper, value)
    if lower > state.lower:
        state.lower = lower
        copy_to(path.beta, point.best)
    gap = state.upper - state.lower
    away = goal.cutoff - state.upper
    if state.lower >= goal.cutoff:
        state.why = PRUNED
    elif gap <= goal.tol * abs(state.upper):
        state.why = SOLVED
    elif away > 0.0:
        # upper − lower ≤ (1 − most)(upper − known) says that the share `most` of upper − known is proven.
        missing = (1.0 - goal.steering.most) * (state.upper - goal.known)
        if gap <= min(goal.share * away, max(goal.steering.little * away, missing)):
            state.why = CLEAR


@compiled(nogil=True)
def relax(minimise_model, Z, samples, in_play, goal, point, state):  # type: ignore[no-untyped-def]
    """Solve the relaxation of a node, or stop where its fate is clear, after at most `slice` steps of its settings.

    Parameters
    ----------
    minimise_model : Step
    Z : columns y∘x_j, and their rows
    samples, in_play, goal, point : as in `mipfs.kernels.structures`
    state : NEWTON of `mipfs.kernels.structures`, in and out
    """
    room = begin(Z, samples, in_play, goal, point, state)
    path = lend_arrays(room)
    while True:
        evaluate_bounds(Z, samples, in_play, goal, point, path, state)
        if state.why > 0:
            break
        if samples.loss.is_smoothed:
            update_multipliers(goal.steering, point, path, state)
        mu = threshold_level(path.tau, in_play.penalty, in_play.forced)
        size = working_set(
            path.omega, point.w, mu, in_play.penalty, in_play.forced, goal.steering.entering, path.chosen
        )
        # Nothing to move but the multipliers.
        if size == 0 and not samples.bias:
            state.steps += 1
            state.moved = 0
            continue
        own = make_working_set(minimise_model, in_play, point, path.chosen[:size].copy(), samples.bias)
        face = lend_arrays(own)
        for i in path.listed[: state.listed]:
            path.kept[i] = 0.0
        state.listed = 0
        minimise(Z, samples, in_play, goal, point, path, face, state)
        scatter_to(face.w, face.ids, point.w)
        hold_until_here(own)
        if state.why > 0:
            break
    hold_until_here(room)


@compiled(nogil=True, inline="always")
def begin(Z, samples, in_play, goal, point, state):  # type: ignore[no-untyped-def]
    """The margins of a warm start, and scratch for the steps."""
    n = samples.y.size
    q = in_play.cols.size
    state.lower = -np.inf
    state.upper = np.inf
    state.seen_lower = -np.inf
    state.seen_upper = np.inf
    state.why = 0
    state.steps = 0
    state.stalls = 0
    state.moved = 0
    state.listed = 0
    state.damping = 0.0
    state.aim = goal.steering.aim
    state.base = in_play.penalty[: in_play.forced].sum()
    path = NewtonPath(
        np.zeros(n), np.empty(n), np.empty(n), np.empty(n), np.zeros(n), np.zeros(n), np.empty(n),
        np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64),
        np.zeros(q), np.empty(q), np.empty(q, np.int64), np.empty(q, np.int64), np.empty(Z.columns.number),
        np.empty(2),
    )  # fmt: skip
    add_columns(Z.columns, in_play.cols, point.w, path.m)
    if samples.bias:
        add_to(state.intercept, samples.y, path.m)
    return path


@compiled(nogil=True)
def values(samples, point, path, state):  # type: ignore[no-untyped-def]
    """β, the loss and g(β) at the margins."""
    at_margins(samples.loss.at_margins, path.m, point.alpha, samples.c, state.rho, path.beta, path.sums)
    state.loss = path.sums[0]
    state.dual = path.sums[1]


@compiled(nogil=True, inline="always")
def evaluate_bounds(Z, samples, in_play, goal, point, path, state):  # type: ignore[no-untyped-def]
    """Both values at the current point, over all columns; `state.why` says whether to stop."""
    values(samples, point, path, state)
    # A warm start is judged by its own α, which the update of the multipliers overwrites before the next look.
    if samples.loss.is_smoothed and state.steps == 0:
        copy_to(point.alpha, path.beta)
        dual(samples.loss.dual, path.beta, samples.c, path.sums)
        state.dual = path.sums[0]
    update_scores(Z, in_play.cols, path)
    judge_bounds(samples, in_play, goal, point, path, state)
    state.rose = state.lower > state.seen_lower
    state.seen_lower = state.lower
    state.seen_upper = state.upper
    steering = goal.steering
    if state.why == 0 and (state.steps >= steering.slice or state.stalls > steering.stalls or goal.stop[0] != 0):
        state.why = STALLED
        # A node that is called again after a stall must not meet the same smoothing: it would stall again.
        if samples.loss.is_smoothed and state.moved > steering.hard:
            state.rho /= steering.growth
            state.prox *= steering.growth


@compiled(nogil=True, inline="always")
def update_multipliers(steering, point, path, state):  # type: ignore[no-untyped-def]
    """Take β as multipliers; the smoothing and the proximal term fall after easy minimisations."""
    copy_to(path.beta, point.alpha)
    if state.steps > 0 and state.moved <= steering.easy and not state.rose and state.aim > steering.aim_least:
        state.aim *= steering.aim_fall
    elif state.steps > 0 and state.moved <= steering.easy:
        state.rho *= steering.growth
        state.prox = max(state.prox / steering.growth, steering.prox_least)
    elif state.moved > steering.hard:
        state.rho /= steering.growth
        state.prox *= steering.growth


@compiled(nogil=True, inline="always")
def make_working_set(minimise_model, in_play, point, ids, bias):  # type: ignore[no-untyped-def]
    """A working set, with room for its model."""
    size = ids.size
    whole = size + (1 if bias else 0)
    w = point.w[ids]
    return WorkingSet(
        minimise_model, ids, in_play.cols[ids], w, w.copy(), in_play.penalty[ids],
        np.empty((whole, whole)), np.zeros((whole, whole)), np.empty(whole), np.empty(whole),
        np.empty(size, np.int64), np.empty(size), np.empty(size),
    )  # fmt: skip


@compiled(nogil=True, inline="always")
def minimise(Z, samples, in_play, goal, point, path, face, state):  # type: ignore[no-untyped-def]
    """Newton steps on a working set at fixed α and ρ, until the gradient is small or the node decided."""
    gap = max(state.seen_upper - state.seen_lower, 0.0)
    top = abs(state.seen_upper)
    state.moved = 0
    state.lift = 1.0
    while state.steps < goal.steering.slice and goal.stop[0] == 0:
        values(samples, point, path, state)
        update_scores(Z, in_play.cols, path)
        if state.moved > 0 and judge_midway(samples, in_play, goal, point, path, face, state):
            return
        error = face_gradient(samples, in_play, path, face, state)
        # Inexact minimisation: to a share of the node's gap, and no further than its goal asks for.
        if state.moved > 0 and error <= max(state.aim * gap, 0.3 * goal.tol * top):
            return
        if not samples.loss.is_smoothed and state.moved >= goal.steering.smooth_steps:
            return
        if not samples.loss.is_steady or state.moved == 0 or face.w.size <= goal.steering.steady:
            build_newton_matrix(Z, samples, path, face, state)
        local = FaceModel(
            face.H, face.g, face.w, state.intercept, face.costs, in_play.forced, in_play.room, samples.bias,
            max(state.damping, 1e-10) * state.lift, goal.steering,
        )  # fmt: skip
        call_step(face.minimise_model, lend_arrays(local), 0.3 * error, state.inner, face.d)
        state.steps += 1
        state.moved += 1
        slope_at_zero(Z, samples, in_play, point, path, face, state)
        if state.first < -1e-15 * top:
            advance(samples, in_play, goal, point, path, face, state)
        # No descent on the true function: the model is damped, and minimised once more.
        elif state.damping < 1e-3 and state.first > 0.0:
            state.damping = max(1e-8, state.damping * 100.0)
        else:
            state.stalls += 1
            return


@compiled(nogil=True, inline="always")
def judge_midway(samples, in_play, goal, point, path, face, state):  # type: ignore[no-untyped-def]
    """Whether the bound and the value of a point on the way decide the node.

    One whose fate is merely clear goes on until the minimisation ends: its children begin there.
    """
    scatter_to(face.w, face.ids, point.w)
    judge_bounds(samples, in_play, goal, point, path, state)
    if state.why == CLEAR:
        state.why = 0
    return state.why > 0


@compiled(nogil=True, inline="always")
def face_gradient(samples, in_play, path, face, state):  # type: ignore[no-untyped-def]
    """The gradient of the smooth part on the working set, in `face.g`; how far it is from stationary."""
    size = face.w.size
    # ∇ = prox·(w − w̄) − Z'β in the weights and −y'β in the intercept; classes say what Φ adds.
    for r in range(size):
        face.g[r] = state.prox * (face.w[r] - face.center[r]) - path.omega[face.ids[r]]
    if samples.bias:
        face.g[size] = -dot_in_order(samples.y, path.beta)
    classify_weights(face.w, face.costs, in_play.forced, in_play.room, face.cls, face.tau)
    return stationarity_gap(face.w, face.g, face.cls, face.tau, state.intercept, samples.bias)


@compiled(nogil=True, inline="always")
def build_newton_matrix(Z, samples, path, face, state):  # type: ignore[no-untyped-def]
    """The loss's curvature over the working set and the proximal term, in `face.H`; its size, in `state.lift`."""
    size = face.w.size
    curvature(samples.loss.curvature, path.beta, samples.c, state.rho, path.inner, path.curve, path.sums)
    state.inner = np.int64(path.sums[0])
    follow_curvature(Z, samples, face.J, face.G, path, state)
    copy_to(face.G.ravel(), face.H.ravel())
    if samples.bias and state.inner == 0:
        # Without a sample that has curvature the intercept's pivot would be zero.
        face.H[size, size] = 1.0
    state.lift = 1.0
    for t in range(face.H.shape[0]):
        face.H[t, t] += state.prox if t < size else 0.0
        state.lift = max(state.lift, 1.0 + face.H[t, t])


@compiled(nogil=True, inline="always")
def slope_at_zero(Z, samples, in_play, point, path, face, state):  # type: ignore[no-untyped-def]
    """How a step moves the margins, in `path.move`, and the slope of the true function along it."""
    size = face.w.size
    d = face.d[: face.w.size]
    path.move[:] = 0.0
    if samples.bias:
        add_to(face.d[size], samples.y, path.move)
    add_columns(Z.columns, face.J, d, path.move)
    state.start = state.prox * ((face.w - face.center) * d).sum()
    state.bend = state.prox * dot_in_order(d, d)
    state.first = slope_of_loss(samples, point.alpha, path, state, 0.0) + state.start
    state.first += phi_slope(face.w, face.d, face.costs, in_play.forced, in_play.room, face.cls, face.tau)


@compiled(nogil=True, inline="always")
def advance(samples, in_play, goal, point, path, face, state):  # type: ignore[no-untyped-def]
    """Take the step as far as the true function falls."""
    state.damping *= 0.1
    t = search(samples, in_play, goal, point.alpha, path, face, state)
    for r in range(face.w.size):
        # A full step that ends at zero but for round-off ends at zero, where the feature is out.
        moved = face.w[r] + t * face.d[r]
        face.w[r] = moved if t < 1.0 or abs(face.w[r] + face.d[r]) > 1e-14 * abs(face.w[r]) else 0.0
    if samples.bias:
        state.intercept += t * face.d[face.w.size]
    add_to(t, path.move, path.m)
