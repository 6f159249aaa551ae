"""The Boolean relaxation with some features fixed, by proximal Newton: the kernel of `branch`.

    min over w, b of  ½ Σ_{j in S₁} w_j² + Φ(w_F) + L(y∘(Xw + b)),   Φ as in `mipfs.kernels.perspective`

A Newton step builds the loss's curvature matrix once, minimises model + Φ (`mipfs.kernels.model_step`), and searches
on the slope of the true function along the step, so every step descends. The hinge is smoothed as in
`mipfs.kernels.newton` (augmented Lagrangian, β_i = clip(α_i + ρ(1 − m_i), 0, c_i)), and w is held near the last one by
a proximal term ½·prox·‖w − w̄‖², both let go from one minimisation to the next; the other losses need no smoothing.
Every iterate yields β in the box of the dual set and with it a bound, so a node stops as soon as it can be pruned
or clearly cannot.
"""

from __future__ import annotations

import numpy as np

from mipfs.compiled import compiled
from mipfs.kernels.columns import add_columns, add_curvature, add_rows, dot_columns, few_rows, width
from mipfs.kernels.kinds import HINGE, LOGISTIC
from mipfs.kernels.model_step import minimise_model
from mipfs.kernels.newton import smooth_terms
from mipfs.kernels.perspective import FRACTIONAL, IN, best_gain, classify, phi, phi_slope, threshold_level

PRUNED, SOLVED, CLEAR, STALLED = 1, 2, 3, 4
"""Why the kernel stopped: bound above the cutoff, gap closed, clearly below the cutoff, no progress."""
SLICE, GROWTH = 30, 2.0
"""Newton steps of a call, after which the caller may look elsewhere, and the factor of ρ between minimisations."""
EASY, HARD = 6, 15
"""A minimisation of at most EASY steps lets ρ grow and the proximal term fall; one of more than HARD turns back."""
AIM, AIM_FALL, AIM_LEAST = 0.1, 0.1, 2e-3
"""A minimisation ends at this share of the gap; it falls, down to the least, where the bound does not rise."""
ENTERING = 40
"""Features of weight zero in a working set at most."""
MOST, LITTLE = 0.25, 1e-2
"""A node that must rise is left with so much of its rise, or within so little of its distance to the cutoff."""
DEAR = 64
"""From so many features on the logistic loss's curvature, which hardly changes, is made once for the steps on a set."""
SMOOTH_STEPS = 3
"""Steps on one working set where nothing is smoothed."""


@compiled(nogil=True, fastmath=True)
def loss_terms(kind, m, alpha, c, rho, beta, curve, inner):  # type: ignore[no-untyped-def]
    """β and the curvature at margins m; returns (number of rows with curvature, true loss, g(β))."""
    count, value, dual = 0, 0.0, 0.0
    for i in range(m.size):
        if kind == HINGE:
            v = alpha[i] + rho * (1.0 - m[i])
            value += c[i] * max(0.0, 1.0 - m[i])
            if v <= 0.0:
                beta[i] = 0.0
            elif v >= c[i]:
                beta[i] = c[i]
            else:
                beta[i] = v
                curve[i] = rho
                inner[count] = i
                count += 1
            dual += beta[i]
        else:
            loss, beta[i], curve[i] = smooth_terms(kind, m[i], c[i])
            value += loss
            dual += loss + m[i] * beta[i]
            if curve[i] > 1e-12 * c[i]:
                inner[count] = i
                count += 1
    return count, value, dual


@compiled(nogil=True)
def follow(Z, cols, beta, held, omega, rows, scale, pulled):  # type: ignore[no-untyped-def]
    """ω, the scores of `held`, become those of β; from one step to the next only few β_i differ.

    `rows`, `scale` (n,) and `pulled`, over all columns, are scratch.
    """
    count = 0
    for i in range(beta.size):
        rows[count], scale[count] = i, beta[i] - held[i]
        count += beta[i] != held[i]
        held[i] = beta[i]
    if count == 0:
        return
    if not few_rows(Z, count, cols.size):
        dot_columns(Z, cols, beta, omega)
        return
    pulled[:] = 0.0
    add_rows(Z, rows[:count], scale[:count], pulled)
    for t in range(cols.size):
        omega[t] += pulled[cols[t]]


@compiled(nogil=True)
def follow_curvature(Z, y, J, inner, curve, kept, listed, n_listed, bias, H, rows, scale):  # type: ignore[no-untyped-def]
    """H, the curvature of the rows `listed` with weights `kept`, becomes that of `inner` with the weights `curve`.

    Rows that come and go are added and taken out, where these are fewer than the rows; returns how many are listed.
    `rows`, `scale` (n,) are scratch.
    """
    count = 0
    for r in range(inner.size):
        i = inner[r]
        rows[count], scale[count] = i, curve[i] - kept[i]
        count += curve[i] != kept[i]
        kept[i] = -curve[i]
    for r in range(n_listed):
        i = listed[r]
        if kept[i] > 0.0:
            if count < rows.size:
                rows[count], scale[count] = i, -kept[i]
            count += 1
            kept[i] = 0.0
    afresh = count >= inner.size
    for r in range(inner.size):
        i = inner[r]
        kept[i] = curve[i]
        listed[r] = i
        if afresh:
            rows[r], scale[r] = i, curve[i]
    if afresh:
        H[:, :] = 0.0
        count = inner.size
    add_curvature(Z, y, J, rows[:count], scale[:count], bias, H)
    return inner.size


@compiled(nogil=True, fastmath=True)
def loss_slope(kind, t, m, q, alpha, c, rho):  # type: ignore[no-untyped-def]
    """Derivative along q of the (smoothed) loss at m + tq."""
    total = 0.0
    for i in range(m.size):
        margin = m[i] + t * q[i]
        if kind == HINGE:
            total -= min(max(alpha[i] + rho * (1.0 - margin), 0.0), c[i]) * q[i]
        else:
            total -= smooth_terms(kind, margin, c[i])[1] * q[i]
    return total


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
            excess[t - forced] = abs(omega[t]) - 0.8 * tau
            if excess[t - forced] > 0.0:
                waiting += 1
    floor = 0.0
    if waiting > limit:
        floor = -np.partition(-excess, limit - 1)[limit - 1]
    for t in range(forced, q):
        if excess[t - forced] > 0.0 and excess[t - forced] >= floor:
            chosen[count] = t
            count += 1
    return count


@compiled(nogil=True)
def stationarity(w, g, cls, tau, b, bias):  # type: ignore[no-untyped-def]
    """How far the gradient g of the smooth part is from −∂Φ(w), in units of the objective."""
    total = 0.0
    for t in range(w.size):
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


@compiled(nogil=True)
def search(first, kind, m, move, alpha, c, rho, w, d, forced, K, penalty, start, bend, cls, tau, point):  # type: ignore[no-untyped-def]
    """A step in (0, 1] at which the slope of the true function is small; `first` < 0 is the slope at zero."""
    t, low, high = 1.0, 0.0, 1.0
    for _ in range(12):
        slope = loss_slope(kind, t, m, move, alpha, c, rho) + start + t * bend
        slope += phi_slope(w, d, t, penalty, forced, K, cls, tau, point)
        if slope <= -0.1 * first and (t == 1.0 or slope >= 0.5 * first):
            break
        if slope <= 0.0:
            low = t
            t = 0.5 * (low + high)
        else:
            high = t
            t = high * max(0.1, min(0.9, first / (first - slope))) if low == 0.0 else 0.5 * (low + high)
    return t


@compiled(nogil=True)
def judge(y, b, bias, beta, dual, loss, omega, w, in_play, goal, base, cls, tau, best, state):  # type: ignore[no-untyped-def]
    """Take over the bound of β (scores ω) and the value of w; state.why says whether they decide the node."""
    _, forced, K, penalty = in_play
    cutoff, tol, share, known = goal
    slack = abs((y * beta).sum()) * (1.0 + abs(b)) if bias else 0.0
    lower = dual - best_gain(omega, penalty, forced, K) - slack + base
    state.upper = min(state.upper, phi(w, penalty, forced, K, cls, tau) + loss + base)
    if lower > state.lower:
        state.lower = lower
        best[:] = beta
    top, lower = state.upper, state.lower
    if lower >= cutoff:
        state.why = PRUNED
    elif top - lower <= tol * abs(top):
        state.why = SOLVED
    elif top < cutoff:
        missing = (1.0 - MOST) * (top - known)
        if top - lower <= min(share * (cutoff - top), max(LITTLE * (cutoff - top), missing)):
            state.why = CLEAR


@compiled(nogil=True)
def relax(Z, samples, in_play, goal, w, alpha, best, state, stop):  # type: ignore[no-untyped-def]
    """Solve the relaxation of a node, or stop where its fate is clear, after at most SLICE steps.

    Parameters
    ----------
    Z : columns y∘x_j, and their rows
    samples, in_play, goal : as in `mipfs.kernels.structures`
    w : (q,) in and out: weights; alpha : (n,) in and out: multipliers of the hinge's smoothing
    best : (n,) out: the dual vector of the largest bound, in its box
    state : NEWTON of `mipfs.kernels.structures`, in and out
    stop : (1,) int8, set from outside to give up: heard after every step
    """
    y, c, kind, bias = samples
    cols, forced, K, penalty = in_play
    n, q, tol = y.size, cols.size, goal.tol
    m, beta, curve, move = np.zeros(n), np.empty(n), np.empty(n), np.empty(n)
    inner, chosen = np.empty(n, np.int64), np.empty(q, np.int64)
    held, kept, listed, n_listed = np.zeros(n), np.zeros(n), np.empty(n, np.int64), np.int64(0)
    rows, scale, pulled = np.empty(n, np.int64), np.empty(n), np.empty(width(Z))
    all_cls, all_tau, omega = np.empty(q, np.int64), np.empty(q), np.zeros(q)
    b, rho, prox = state.intercept, state.rho, state.prox
    steps, stalls, moved, damping, aim = 0, 0, 0, 0.0, AIM
    state.lower, state.upper, state.why = -np.inf, np.inf, 0
    base, lower = penalty[:forced].sum(), -np.inf
    add_columns(Z, cols, w, m)
    if bias:
        m += y * b
    while True:
        # both values at the current point, over all columns
        count, loss, dual = loss_terms(kind, m, alpha, c, rho, beta, curve, inner)
        if kind == HINGE and steps == 0:
            beta[:] = alpha
            dual = alpha.sum()
        follow(Z, cols, beta, held, omega, rows, scale, pulled)
        judge(y, b, bias, beta, dual, loss, omega, w, in_play, goal, base, all_cls, all_tau, best, state)
        better = state.lower > lower
        top, lower = state.upper, state.lower
        if state.why == 0 and (steps >= SLICE or stalls > 2 or stop[0] != 0):
            state.why = STALLED
            if kind == HINGE and moved > HARD:  # the next call would go on with the same one
                rho /= GROWTH
                prox *= GROWTH
        if state.why > 0:
            break
        if kind == HINGE:
            alpha[:] = beta
            if steps > 0 and moved <= EASY and not better and aim > AIM_LEAST:
                aim *= AIM_FALL
            elif steps > 0 and moved <= EASY:
                rho *= GROWTH
                prox = max(prox / GROWTH, 1e-9)
            elif moved > HARD:
                rho /= GROWTH
                prox *= GROWTH
        mu = threshold_level(all_tau, penalty, forced)
        size = working_set(omega, w, mu, penalty, forced, ENTERING, chosen)
        ids = chosen[:size].copy()
        J, wj, cj = cols[ids], w[ids], penalty[ids]
        whole = size + (1 if bias else 0)
        if whole == 0:  # nothing to move but the multipliers
            steps, moved = steps + 1, 0
            continue
        H, G, g, d = np.empty((whole, whole)), np.zeros((whole, whole)), np.empty(whole), np.empty(whole)
        cls, tau, point = np.empty(size, np.int64), np.empty(size), np.empty(size)
        gap, moved, center, lift = max(top - lower, 0.0), 0, wj.copy(), 1.0
        for r in range(n_listed):
            kept[listed[r]] = 0.0
        n_listed = np.int64(0)  # a literal is a type of its own: what takes it would be compiled twice
        while steps < SLICE and stop[0] == 0:
            # inner minimisation at fixed α and ρ on the working set
            count, loss, dual = loss_terms(kind, m, alpha, c, rho, beta, curve, inner)
            follow(Z, cols, beta, held, omega, rows, scale, pulled)
            if moved > 0:  # every point has a bound and a value: the node may be decided on the way
                w[ids] = wj
                judge(y, b, bias, beta, dual, loss, omega, w, in_play, goal, base, all_cls, all_tau, best, state)
                if state.why == CLEAR:  # not before the minimisation ends: the children begin here
                    state.why = 0
                if state.why > 0:
                    break
            for r in range(size):
                g[r] = prox * (wj[r] - center[r]) - omega[ids[r]]
            if bias:
                g[size] = -(y * beta).sum()
            classify(wj, cj, forced, K, cls, tau)
            error = stationarity(wj, g, cls, tau, b, bias)
            if moved > 0 and error <= max(aim * gap, 0.3 * tol * abs(top)):
                break
            if kind != HINGE and moved >= SMOOTH_STEPS:
                break
            if kind != LOGISTIC or moved == 0 or size <= DEAR:
                n_listed = follow_curvature(Z, y, J, inner[:count], curve, kept, listed, n_listed, bias, G, rows, scale)
                H[:, :] = G
                if bias and count == 0:
                    H[size, size] = 1.0
                lift = 1.0
                for t in range(whole):
                    H[t, t] += prox if t < size else 0.0
                    lift = max(lift, 1.0 + H[t, t])
            minimise_model(H, g, wj, b, cj, forced, K, bias, max(damping, 1e-10) * lift, 0.3 * error, count, d)
            move[:] = 0.0
            if bias:
                move += y * d[size]
            add_columns(Z, J, d[:size], move)
            steps += 1
            moved += 1
            start, bend = prox * ((wj - center) * d[:size]).sum(), prox * (d[:size] * d[:size]).sum()
            first = loss_slope(kind, 0.0, m, move, alpha, c, rho) + start
            first += phi_slope(wj, d, 0.0, cj, forced, K, cls, tau, point)
            if not first < -1e-15 * abs(top):
                if damping < 1e-3 and first > 0.0:
                    damping = max(1e-8, damping * 100.0)
                    continue
                stalls += 1
                break
            damping *= 0.1
            t = search(first, kind, m, move, alpha, c, rho, wj, d, forced, K, cj, start, bend, cls, tau, point)
            for r in range(size):
                wj[r] = wj[r] + t * d[r] if t < 1.0 or abs(wj[r] + d[r]) > 1e-14 * abs(wj[r]) else 0.0
            if bias:
                b += t * d[size]
            m += t * move
        w[ids] = wj
        if state.why > 0:
            break
    state.rho, state.steps, state.intercept, state.prox = rho, steps, b, prox
