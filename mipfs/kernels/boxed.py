"""The SVM on some columns whose weights have ends: a projected Newton method for every loss that the kernels know.

    min ½‖w‖² + L(A u),  u = (w, b),  low ≤ w ≤ high,  least ≤ D w ≤ most

A weight is held at an end where the gradient leads out of the box; Newton's step is over the others, and ends where it
meets a new end, or where the function is least along it. A loss whose slope jumps is smoothed by multipliers α and a
step ρ, as in `mipfs.kernels.augmented_lagrangian`: α ← β and ρ grows from one minimisation to the next. So is a row
over the weights, with a multiplier λ that is positive at its lower end and negative at its upper one, and a step of its
own, which is large from the start: with z = Dw − λ/step it pulls by step·(clip(z, least, most) − z), the next λ.

m (n,) are the margins A u, c (n,) loss weights, β = −L'(m) of the loss, or of the smoothed one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mipfs.compiled import compiled
from mipfs.compiled.lent import hold_until_here, lend_arrays
from mipfs.kernels.loss import at_margins, curvature
from mipfs.kernels.loss import slope as slope_of_loss
from mipfs.kernels.newton import add_row, cholesky_in_place, cholesky_solve, margins
from mipfs.kernels.vectors import copy_to

FLAT, SEARCHES = 0.1, 40
"""A step ends where the slope is at most this share of the first one; points of a line search at most."""
EASY, HARD = 12, 30
"""A minimisation of at most EASY steps lets ρ grow; one of more than HARD takes it back."""
NOTHING, NOTHING_OF_ROWS = 1e-3, 1e-9
"""What is left to gain that is nothing, of what is asked: no step is taken for it. With rows over the weights it is
less: their multipliers would move twice for one step, and go to and fro."""
STIFF = 100.0
"""The step of a row over the weights, in units of a bound on the curvature of all else along it."""
STIFFEST = 2.0**40
"""ρ grows no further: where rounding leaves a gap above the asked one, it would grow until it is infinite."""
DEAR = 2.0
"""What breaking a row counts in the gap, in units of its multiplier."""


class BoxedProgram(NamedTuple):
    """What is minimised.

    A : (n, d) rows, of which the first k columns are those of weights;  c : (n,)
    low, high : (k,);  loss : LossSteps
    D, least, most : (r, k), (r,) rows over the weights, each of length 1
    bend : a bound on the curvature of the loss, for ρ = 1 where it is smoothed, along any of them
    """

    A: npt.NDArray[Any]
    c: npt.NDArray[Any]
    low: npt.NDArray[Any]
    high: npt.NDArray[Any]
    loss: Any
    D: npt.NDArray[Any]
    least: npt.NDArray[Any]
    most: npt.NDArray[Any]
    bend: float


class BoxedPace(NamedTuple):
    """How far a call goes: relative gap to reach, dual value that is enough, steps, and the factor by which ρ grows."""

    tol: float
    until: float
    steps: int
    grow: float


class BoxedPoint(NamedTuple):
    """Where it is.

    u, alpha, multipliers : in and out;  m, beta, q, curve : (n,);  inner : (n,) samples with curvature
    g, way : (d,);  free : (d,) coordinates that may move;  sums : (2,)
    pull : (r,) of the rows over the weights
    """

    u: npt.NDArray[Any]
    alpha: npt.NDArray[Any]
    m: npt.NDArray[Any]
    beta: npt.NDArray[Any]
    q: npt.NDArray[Any]
    curve: npt.NDArray[Any]
    inner: npt.NDArray[Any]
    g: npt.NDArray[Any]
    way: npt.NDArray[Any]
    free: npt.NDArray[Any]
    sums: npt.NDArray[Any]
    multipliers: npt.NDArray[Any]
    pull: npt.NDArray[Any]


@compiled(nogil=True)
def minimise_boxed(given, u, alpha, multipliers, state, pace):  # type: ignore[no-untyped-def]
    """Minimise; u (d,), α (n,) and λ (r,) are in and out, and state (3,): ρ, 1.0 when converged, Newton's steps so far.

    given : BoxedProgram;  pace : BoxedPace
    """
    n, d = given.A.shape
    own = BoxedPoint(
        u, alpha, np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n, np.int64), np.empty(d), np.empty(d),
        np.empty(d, np.bool_), np.empty(2), multipliers, np.empty(multipliers.size),
    )  # fmt: skip
    at, last = lend_arrays(own), state[2] + pace.steps
    is_smoothed = given.loss.is_smoothed or multipliers.size > 0
    nothing = NOTHING_OF_ROWS if multipliers.size > 0 else NOTHING
    margins(given.A, u, at.m)
    gap = np.inf
    moves = 0
    while state[2] < last:
        at_margins(given.loss.at_margins, at.m, at.alpha, given.c, state[0], at.beta, at.sums)
        primal, dual, error, slack = _gradient_and_free_set(given, at, state[0])
        enough = max(0.1 * gap, 0.2 * pace.tol * primal) if is_smoothed else 0.1 * pace.tol * primal
        is_least = (moves > 0 and error <= enough) or error <= nothing * pace.tol * primal
        if not is_least and _newton_step(given, at, state[0]):
            state[2] += 1.0
            moves += 1
            continue
        gap = abs(primal - dual) + _violation_cost(given, at)
        if not is_smoothed or gap + slack <= pace.tol * primal or dual - slack >= pace.until:
            state[1] = 1.0
            break
        copy_to(at.beta, at.alpha)
        copy_to(at.pull, at.multipliers)
        state[0] *= pace.grow if moves <= EASY else 1.0 / pace.grow if moves > HARD else 1.0
        state[0] = min(state[0], STIFFEST)
        state[2] += moves == 0
        moves = 0
    copy_to(at.beta, at.alpha)
    copy_to(at.pull, at.multipliers)
    hold_until_here(own)


@compiled(nogil=True)
def _row_penalty(given, rho):  # type: ignore[no-untyped-def]
    """The step of rows over the weights, where that of the samples is ρ."""
    return STIFF * (1.0 + given.bend * (rho if given.loss.is_smoothed else 1.0))


@compiled(nogil=True)
def _row_pull(given, at, rho):  # type: ignore[no-untyped-def]
    """By how much the rows over the weights pull at u; what their multipliers add to the dual value then."""
    D = given.D
    step = _row_penalty(given, rho)
    value = 0.0
    for r in range(D.shape[0]):
        z = -at.multipliers[r] / step
        for j in range(D.shape[1]):
            z += D[r, j] * at.u[j]
        end = min(max(z, given.least[r]), given.most[r])
        at.pull[r] = step * (end - z)
        value += at.pull[r] * end if at.pull[r] != 0.0 else 0.0
    return value


@compiled(nogil=True)
def _violation_cost(given, at):  # type: ignore[no-untyped-def]
    """What it costs, about, to bring u into the rows that it breaks."""
    lost = 0.0
    for r in range(given.D.shape[0]):
        at_row = 0.0
        for j in range(given.D.shape[1]):
            at_row += given.D[r, j] * at.u[j]
        away = at_row - min(max(at_row, given.least[r]), given.most[r])
        lost += DEAR * abs(at.pull[r] * away)
    return lost


@compiled(nogil=True)
def _gradient_and_free_set(given, at, rho):  # type: ignore[no-untyped-def]
    """The gradient, and which coordinates may move; both values at u and β, what is left to gain, and what y'β charges.

    ½‖w‖² + L(m)  and  g(β) + Σ λ·(its end) − Σ_j max over low ≤ t ≤ high of (ωt − ½t²), ω = A'β + D'λ
    """
    A, low, high, u, g, beta = given.A, given.low, given.high, at.u, at.g, at.beta
    g[:] = 0.0
    for i in range(A.shape[0]):
        if beta[i] != 0.0:
            add_row(A, i, beta[i], g)
    primal = at.sums[0]
    dual = at.sums[1] + _row_pull(given, at, rho)
    error = 0.0
    slack = 0.0
    for r in range(given.D.shape[0]):
        for j in range(given.D.shape[1] if at.pull[r] != 0.0 else 0):
            g[j] += at.pull[r] * given.D[r, j]
    for j in range(u.size):
        if j >= low.size:
            slack += abs(g[j]) * (1.0 + abs(u[j]))
            g[j] = -g[j]
            at.free[j] = True
            continue
        t = min(max(g[j], low[j]), high[j])
        dual -= t * (g[j] - 0.5 * t)
        primal += 0.5 * u[j] * u[j]
        g[j] = u[j] - g[j]
        at.free[j] = not ((u[j] <= low[j] and g[j] >= 0.0) or (u[j] >= high[j] and g[j] <= 0.0))
        error += 0.5 * g[j] * g[j] if at.free[j] else 0.0
    return primal, dual, error + slack, slack


@compiled(nogil=True)
def _newton_step(given, at, rho):  # type: ignore[no-untyped-def]
    """Take Newton's step over the coordinates that may move; False where none descends."""
    low, high, u, way = given.low, given.high, at.u, at.way
    curvature(given.loss.curvature, at.beta, given.c, rho, at.inner, at.curve, at.sums)
    H = _newton_hessian(given.A, at.inner[: np.int64(at.sums[0])], at.curve, low.size)
    _add_rows(given, at, _row_penalty(given, rho), H)
    first = -1
    most = 0.0
    f0 = 0.0
    for _ in range(u.size + 1):
        _newton_direction(H, at.g, at.free, way)
        most = np.inf
        f0 = 0.0
        for j in range(u.size):
            f0 += at.g[j] * way[j]
            if j < low.size and way[j] != 0.0:
                room = ((high[j] if way[j] > 0.0 else low[j]) - u[j]) / way[j]
                if room < most:
                    most = room
                    first = j
        if not f0 < 0.0:
            return False
        if most > 1e-12:
            break
        at.free[first] = False
    margins(given.A, way, at.q)
    t = _line_search(given, at, rho, most, f0)
    for j in range(u.size):
        u[j] += t * way[j]
        if j < low.size:
            u[j] = min(max(u[j], low[j]), high[j])
    if t == most:
        u[first] = high[first] if way[first] > 0.0 else low[first]
    margins(given.A, u, at.m)
    return True


@compiled(nogil=True, fastmath=True)
def _newton_hessian(A, inner, curve, k):  # type: ignore[no-untyped-def]
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
def _add_rows(given, at, step, H):  # type: ignore[no-untyped-def]
    """H += step·Σ d_r d_r' over the rows over the weights that pull, or have no width."""
    D = given.D
    for r in range(D.shape[0]):
        if at.pull[r] != 0.0 or given.least[r] == given.most[r]:
            for j in range(D.shape[1]):
                for t in range(D.shape[1]):
                    H[j, t] += step * D[r, j] * D[r, t]


@compiled(nogil=True)
def _newton_direction(H, g, free, way):  # type: ignore[no-untyped-def]
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
    L = np.empty((count, count))
    x = np.empty(count)
    for a in range(count):
        x[a] = -g[place[a]]
        for b in range(count):
            L[a, b] = H[place[a], place[b]]
        L[a, a] += 1e-12 * L[a, a] + 1e-300
    # No row bends, and the intercept takes a step of the gradient.
    if L[count - 1, count - 1] <= 1e-290:
        L[count - 1, count - 1] = 1.0
    cholesky_in_place(L)
    cholesky_solve(L, x)
    for a in range(count):
        way[place[a]] = x[a]


@compiled(nogil=True)
def _line_search(given, at, rho, most, f0):  # type: ignore[no-untyped-def]
    """Where the slope along the direction is small, `most` at most; f0 is the slope at the start."""
    a0 = 0.0
    a1 = 0.0
    for j in range(given.low.size):
        a0 += at.u[j] * at.way[j]
        a1 += at.way[j] * at.way[j]
    low = 0.0
    high = np.inf
    f_low = f0
    f_high = 0.0
    t = min(1.0, most)
    for _ in range(SEARCHES):
        slope_of_loss(given.loss.slope, t, at.m, at.q, at.alpha, given.c, rho, at.sums)
        first = a0 + a1 * t + at.sums[0] - _pull_along(given, at, rho, t)
        if (first <= 0.0 and t >= most) or abs(first) <= FLAT * abs(f0):
            break
        if first > 0.0:
            high = t
            f_high = first
        else:
            low = t
            f_low = first
        between = low + (high - low) * min(max(f_low / (f_low - f_high), 0.1), 0.9) if high < np.inf else 4.0 * t
        t = min(most, between)
    return t


@compiled(nogil=True)
def _pull_along(given, at, rho, t):  # type: ignore[no-untyped-def]
    """What the rows over the weights add to the slope along a step, negated, at t."""
    D = given.D
    step = _row_penalty(given, rho)
    total = 0.0
    for r in range(D.shape[0]):
        z = -at.multipliers[r] / step
        along = 0.0
        for j in range(D.shape[1]):
            z += D[r, j] * (at.u[j] + t * at.way[j])
            along += D[r, j] * at.way[j]
        total += step * (min(max(z, given.least[r]), given.most[r]) - z) * along
    return total
