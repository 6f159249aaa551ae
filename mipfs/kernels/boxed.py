"""The SVM on some columns whose weights have ends: a projected Newton method for every loss that the kernels know.

    min ½‖w‖² + L(A u),  u = (w, b),  low ≤ w ≤ high

A weight is held at an end where the gradient leads out of the box; Newton's step is over the others, and ends where it
meets a new end, or where the function is least along it. A loss whose slope jumps is smoothed by multipliers α and a
step ρ, as in `mipfs.kernels.augmented_lagrangian`: α ← β and ρ grows from one minimisation to the next.

m (n,) are the margins A u, c (n,) loss weights, β = −L'(m) of the loss, or of the smoothed one.
"""

from __future__ import annotations

import numpy as np

from mipfs.compiled import compiled
from mipfs.kernels.loss import at_margins, curvature
from mipfs.kernels.loss import slope as slope_of_loss
from mipfs.kernels.newton import cholesky, cholesky_solve

FLAT, SEARCHES = 0.1, 40
"""A step ends where the slope is at most this share of the first one; points of a line search at most."""
EASY, HARD = 12, 30
"""A minimisation of at most EASY steps lets ρ grow; one of more than HARD takes it back."""


@compiled(nogil=True)
def boxed(given, ends, loss, u, alpha, state, pace):  # type: ignore[no-untyped-def]
    """Minimise; u (d,) and α (n,) are in and out, and state (3,): ρ, 1.0 when converged, Newton's steps so far.

    given : A (n, d), c, and the number of weights;  ends : low, high;  loss : LossSteps
    pace : relative gap to reach, dual value that is enough, steps at most, and the factor by which ρ grows
    """
    A, c, k = given
    low, high = ends
    tol, until, most, growth = pace
    n, d = A.shape
    m, beta, q, curve, inner = np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n, np.int64)
    g, way, free, sums = np.empty(d), np.empty(d), np.empty(d, np.bool_), np.empty(2)
    times(A, u, m)
    gap, moves, begun = np.inf, 0, state[2]
    while state[2] - begun < most:
        at_margins(loss.at_margins, m, alpha, c, state[0], beta, sums)
        primal, dual, slack = slopes(A, beta, u, k, low, high, sums, g, free)
        error = slack
        for j in range(k):
            error += 0.5 * g[j] * g[j] if free[j] else 0.0
        enough = max(0.1 * gap, 0.2 * tol * primal) if loss.is_smoothed else 0.1 * tol * primal
        if (moves > 0 and error <= enough) or error <= 1e-3 * tol * primal:
            gap = abs(primal - dual)
            if gap + slack <= tol * primal or dual - slack >= until or not loss.is_smoothed:
                state[1] = 1.0
                break
            alpha[:] = beta
            state[0] *= growth if moves <= EASY else 1.0 / growth if moves > HARD else 1.0
            moves = 0
            continue
        if not step(A, c, k, low, high, loss, state[0], u, m, alpha, beta, curve, inner, g, free, way, q, sums):
            if not loss.is_smoothed:
                state[1] = 1.0
                break
            gap = abs(primal - dual)
            if gap + slack <= tol * primal:
                state[1] = 1.0
                break
            alpha[:] = beta
            state[0] *= growth
        state[2] += 1.0
        moves += 1
    alpha[:] = beta


@compiled(nogil=True, fastmath=True)
def times(A, u, m):  # type: ignore[no-untyped-def]
    """m = A u."""
    for i in range(A.shape[0]):
        total = 0.0
        for j in range(A.shape[1]):
            total += A[i, j] * u[j]
        m[i] = total


@compiled(nogil=True)
def slopes(A, beta, u, k, low, high, sums, g, free):  # type: ignore[no-untyped-def]
    """The gradient g, and which coordinates may move; both values at u and β, and what y'β ≠ 0 charges.

    ½‖w‖² + L(m)  and  g(β) − Σ_j max over low ≤ t ≤ high of (ωt − ½t²), ω = A'β
    """
    n, d = A.shape
    g[:] = 0.0
    for i in range(n):
        if beta[i] != 0.0:
            for j in range(d):
                g[j] += beta[i] * A[i, j]
    primal, dual, slack = sums[0], sums[1], 0.0
    for j in range(d):
        if j >= k:
            slack += abs(g[j]) * (1.0 + abs(u[j]))
            g[j], free[j] = -g[j], True
            continue
        t = min(max(g[j], low[j]), high[j])
        dual -= t * (g[j] - 0.5 * t)
        primal += 0.5 * u[j] * u[j]
        g[j] = u[j] - g[j]
        free[j] = not ((u[j] <= low[j] and g[j] >= 0.0) or (u[j] >= high[j] and g[j] <= 0.0))
    return primal, dual, slack


@compiled(nogil=True)
def step(A, c, k, low, high, loss, rho, u, m, alpha, beta, curve, inner, g, free, way, q, sums):  # type: ignore[no-untyped-def]
    """Take Newton's step over the coordinates that may move; False where none descends."""
    curvature(loss.curvature, beta, c, rho, inner, curve, sums)
    count = np.int64(sums[0])
    d = u.size
    H = hessian(A, inner[:count], curve, k)
    for _ in range(d + 1):
        direct(H, g, free, way)
        most, f0, first = np.inf, 0.0, -1
        for j in range(d):
            f0 += g[j] * way[j]
            if j < k and way[j] != 0.0:
                end = high[j] if way[j] > 0.0 else low[j]
                room = (end - u[j]) / way[j]
                if room < most:
                    most, first = room, j
        if not f0 < 0.0:
            return False
        if most > 1e-12:
            break
        free[first] = False
    times(A, way, q)
    t, meets = search(loss, m, q, alpha, c, rho, u, way, k, most, f0)
    for j in range(d):
        u[j] += t * way[j]
    for j in range(k):
        u[j] = min(max(u[j], low[j]), high[j])
    if meets:
        u[first] = high[first] if way[first] > 0.0 else low[first]
    times(A, u, m)
    return True


@compiled(nogil=True, fastmath=True)
def hessian(A, inner, curve, k):  # type: ignore[no-untyped-def]
    """diag(1 … 1, 0) + Σ over the inner rows of h_i a_i a_i'."""
    d = A.shape[1]
    H = np.zeros((d, d))
    for r in range(inner.size):
        i = inner[r]
        for j in range(d):
            part = curve[i] * A[i, j]
            for t in range(j + 1):
                H[j, t] += part * A[i, t]
    for j in range(d):
        if j < k:
            H[j, j] += 1.0
        for t in range(j):
            H[t, j] = H[j, t]
    return H


@compiled(nogil=True)
def direct(H, g, free, way):  # type: ignore[no-untyped-def]
    """Newton's direction over the free coordinates, 0 elsewhere."""
    d = g.size
    count = 0
    place = np.empty(d, np.int64)
    for j in range(d):
        way[j] = 0.0
        if free[j]:
            place[count] = j
            count += 1
    if count == 0:
        return
    L, x = np.empty((count, count)), np.empty(count)
    for a in range(count):
        x[a] = -g[place[a]]
        for b in range(count):
            L[a, b] = H[place[a], place[b]]
        L[a, a] += 1e-12 * L[a, a] + 1e-300
    if L[count - 1, count - 1] <= 1e-290:  # no row bends, and the intercept takes a step of the gradient
        L[count - 1, count - 1] = 1.0
    cholesky(L)
    cholesky_solve(L, x)
    for a in range(count):
        way[place[a]] = x[a]


@compiled(nogil=True)
def search(loss, m, q, alpha, c, rho, u, way, k, most, f0):  # type: ignore[no-untyped-def]
    """Where the slope along the direction is small, `most` at most; whether that is where it ends."""
    a0, a1 = 0.0, 0.0
    for j in range(k):
        a0 += u[j] * way[j]
        a1 += way[j] * way[j]
    sums = np.empty(2)
    low, high = 0.0, np.inf
    f_low, f_high = f0, 0.0
    t = min(1.0, most)
    for _ in range(SEARCHES):
        slope_of_loss(loss.slope, t, m, q, alpha, c, rho, sums)
        first = a0 + a1 * t + sums[0]
        if first <= 0.0 and t >= most:
            return most, True
        if abs(first) <= FLAT * abs(f0):
            break
        if first > 0.0:
            high, f_high = t, first
        else:
            low, f_low = t, first
        between = low + (high - low) * min(max(f_low / (f_low - f_high), 0.1), 0.9) if high < np.inf else 4.0 * t
        t = min(most, between)
    return t, False
