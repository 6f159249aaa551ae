"""Semismooth Newton on the augmented Lagrangian of the hinge SVM: the numba kernels.

With the rows a_i = y_i (z_i, 1) and u = (w, b), the SVM is min ½‖w‖² + Σ c_i max(0, 1 − a_i'u). Dualising
z_i = 1 − a_i'u with multipliers α and step ρ leaves

    φ(u) = ½‖w‖² + Σ ψ_i(1 − a_i'u),   ψ_i'(r) = β_i = clip(α_i + ρ r, 0, c_i),

once differentiable and piecewise quadratic. Newton's matrix is diag(1, …, 1, 0) + ρ A_J'A_J over the
rows J with 0 < β_i < c_i, so a step costs one pass over the rows and one small system
(`mipfs.kernels.newton`); between the minimisations α ← β and ρ grows (Hestenes 1969, Powell 1969; for
machine learning: Li, Sun, Toh 2018). Rows that are clearly on one side are put aside (shrinking) and
checked with a full pass before a minimisation counts.

Throughout, m (n,) are the margins a_i'u, alpha, beta and c (n,) multipliers, dual vector and loss weights, `rows` and
`inner` positions of rows, and `at` an `Iterate`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mipfs.compiled import compiled
from mipfs.compiled.lent import hold_until_here, lend_arrays
from mipfs.kernels.newton import (
    FLAT,
    ROWS_PER_BLOCK,
    SEARCH_STEPS,
    add_row,
    combine_rows,
    dot_row,
    margins,
    n_rows,
    newton_direction,
    safeguard_step,
)

EASY_STEPS, HARD_STEPS = 12, 30
"""A minimisation of at most EASY_STEPS steps lets ρ grow; one of more than HARD_STEPS takes it back."""


class LagrangianPace(NamedTuple):
    """How far a call goes.

    tol : relative gap to reach;  until : dual value that is enough, whatever the gap;  steps : Newton steps at most
    grow : factor of ρ from one minimisation to the next
    shrink : whether to put rows aside from the first pass on (warm starts) or after the first minimisation
    """

    tol: float
    until: float
    steps: int
    grow: float
    shrink: bool


class SearchLine(NamedTuple):
    """φ along a direction, from a point of margins m.

    rows : those that are in play;  q : how the direction moves the margins;  alpha, c, rho : multipliers, weights, step
    a0, a1 : slope and curvature of what is not the loss
    """

    rows: npt.NDArray[Any]
    m: npt.NDArray[Any]
    q: npt.NDArray[Any]
    alpha: npt.NDArray[Any]
    c: npt.NDArray[Any]
    rho: float
    a0: float
    a1: float


class Iterate(NamedTuple):
    """Where `augmented_lagrangian` is, over n rows and d weights, and its scratch.

    A, c, k : of `SvmRows`;  u, alpha, state : in and out
    m, beta, q, curve : (n,) margins, β, how a step moves the margins, and ψ''
    g, fixed, direction : (d,) ∇φ, or Σ β_i a_i;  Σ α_i a_i of the rows put aside;  Newton's direction
    inner, rows : (n,) int64 rows with 0 < β_i < c_i, and those in play;  aside : (n,) bool, which are not
    block : (·, d) rows that are gathered at a time
    """

    A: Any
    c: npt.NDArray[Any]
    k: int
    u: npt.NDArray[Any]
    alpha: npt.NDArray[Any]
    state: npt.NDArray[Any]
    m: npt.NDArray[Any]
    beta: npt.NDArray[Any]
    q: npt.NDArray[Any]
    curve: npt.NDArray[Any]
    g: npt.NDArray[Any]
    fixed: npt.NDArray[Any]
    direction: npt.NDArray[Any]
    inner: npt.NDArray[Any]
    rows: npt.NDArray[Any]
    aside: npt.NDArray[Any]
    block: npt.NDArray[Any]


@compiled(fastmath=True)
def slope(t, line):  # type: ignore[no-untyped-def]
    """First and second derivative of φ at t along a `SearchLine`."""
    rows, m, q, alpha, c, rho, a0, a1 = line
    first = a0 + a1 * t
    second = a1
    for r in range(rows.size):
        i = rows[r]
        # β_i = clip(v, 0, c_i): at either end the smoothed loss is linear and has no curvature.
        v = alpha[i] + rho * (1.0 - m[i] - t * q[i])
        if v >= c[i]:
            first -= c[i] * q[i]
        elif v > 0.0:
            first -= v * q[i]
            second += rho * q[i] * q[i]
    return first, second


@compiled()
def line_search(line, f0):  # type: ignore[no-untyped-def]
    """A step at which |φ'| is at most `FLAT` of |φ'(0)|: safeguarded Newton on the piecewise linear φ'."""
    t = 1.0
    low = 0.0
    high = np.inf
    for _ in range(SEARCH_STEPS):
        first, second = slope(t, line)
        if abs(first) <= FLAT * abs(f0):
            break
        t, low, high = safeguard_step(t, low, high, first, second)
    return t


@compiled()
def inner_set(rows, m, alpha, c, rho, beta, inner):  # type: ignore[no-untyped-def]
    """β over `rows`; returns how many rows were written to `inner` (0 < β_i < c_i)."""
    count = 0
    for r in range(rows.size):
        i = rows[r]
        v = alpha[i] + rho * (1.0 - m[i])
        if v <= 0.0:
            beta[i] = 0.0
        elif v >= c[i]:
            beta[i] = c[i]
        else:
            beta[i] = v
            inner[count] = i
            count += 1
    return count


@compiled()
def choose_rows(m, alpha, c, target, rows):  # type: ignore[no-untyped-def]
    """The rows that stay: 0 < α_i < c_i, and about `target` margins nearest to 1. Returns their number."""
    n = m.size
    low = 0.0
    high = 0.0
    for i in range(n):
        high = max(high, abs(1.0 - m[i]))
    width = high
    # Bisection on the distance to the margin 1 within which `target` to 1.5·`target` rows lie.
    for _ in range(20 if target < n else 0):
        width = 0.5 * (low + high)
        near = 0
        for i in range(n):
            near += abs(1.0 - m[i]) <= width
        if near < target:
            low = width
        elif near > 1.5 * target:
            high = width
        else:
            break
    count = 0
    for i in range(n):
        if 0.0 < alpha[i] < c[i] or abs(1.0 - m[i]) <= width:
            rows[count] = i
            count += 1
    return count


@compiled(inline="always")
def first_values(at):  # type: ignore[no-untyped-def]
    """Margins at u; the primal value and the duality gap of u and α, the bias apart.

    ½‖w‖² + Σ c_i max(0, 1 − m_i)  −  (Σ α_i − ½‖Σ α_i a_i‖²), the last norm over the weights
    """
    m, c, u, g, alpha, inner = at.m, at.c, at.u, at.g, at.alpha, at.inner
    margins(at.A, u, m)
    for i in range(m.size):
        inner[i] = i
    combine_rows(at.A, inner, alpha, g)
    primal = 0.0
    rest = 0.0
    for j in range(at.k):
        primal += 0.5 * u[j] * u[j]
        rest += 0.5 * g[j] * g[j]
    for i in range(m.size):
        primal += c[i] * max(0.0, 1.0 - m[i])
        rest -= alpha[i]
    return primal, abs(primal + rest)


@compiled(inline="always")
def put_aside(at, target):  # type: ignore[no-untyped-def]
    """About `target` rows go to `rows`, the others to `aside`, and their Σ α_i a_i to `fixed`; returns how many stay.

    Rows put aside keep β_i = α_i, which is 0 or c_i.
    """
    A, m, alpha, beta, rows, aside, fixed = at.A, at.m, at.alpha, at.beta, at.rows, at.aside, at.fixed
    count = choose_rows(m, alpha, at.c, target, rows)
    aside[:] = True
    for r in range(count):
        aside[rows[r]] = False
    fixed[:] = 0.0
    for i in range(m.size):
        if aside[i]:
            beta[i] = alpha[i]
            if alpha[i] != 0.0:
                add_row(A, i, alpha[i], fixed)
    return count


@compiled(inline="always")
def take_back(at, count):  # type: ignore[no-untyped-def]
    """Margins of all rows; those put aside that are on the wrong side for their multiplier come back into play.

    Returns how many rows are in play.
    """
    A, m, c, alpha, rows, aside, fixed = at.A, at.m, at.c, at.alpha, at.rows, at.aside, at.fixed
    margins(A, at.u, m)
    back = count
    for i in range(m.size if count < m.size else 0):
        if aside[i] and ((alpha[i] == 0.0 and m[i] < 1.0) or (alpha[i] == c[i] and m[i] > 1.0)):
            aside[i] = False
            rows[back] = i
            back += 1
            if alpha[i] != 0.0:
                add_row(A, i, -alpha[i], fixed)
    return back


@compiled(inline="always")
def newton_gradient(at, rows):  # type: ignore[no-untyped-def]
    """∇φ = (w, 0) − Σ β_i a_i, of the rows in play and of those put aside; what it leaves to be gained, about.

    Returns that, ½‖∇_w φ‖² and |∂φ/∂b| times the size of b, and how many rows have curvature: they are in `inner`.
    """
    k, u, g, fixed, beta = at.k, at.u, at.g, at.fixed, at.beta
    count = inner_set(rows, at.m, at.alpha, at.c, at.state[0], beta, at.inner)
    combine_rows(at.A, rows, beta, g)
    squares = 0.0
    for j in range(g.size):
        g[j] = -g[j] - fixed[j]
        if j < k:
            g[j] += u[j]
            squares += g[j] * g[j]
    error = 0.5 * squares
    if g.size > k:
        error += abs(g[k]) * (1.0 + abs(u[k]))
    return error, count


@compiled(inline="always")
def advance(at, rows):  # type: ignore[no-untyped-def]
    """Take the step along `direction`; False where it does not descend: round-off, or no gradient is left."""
    A, m, q, u, g, fixed, direction = at.A, at.m, at.q, at.u, at.g, at.fixed, at.direction
    for r in range(rows.size):
        q[rows[r]] = dot_row(A, rows[r], direction)
    # Along the step φ has the slope f0 at its start; what is not the loss has the slope a0 and the curvature a1.
    a0 = 0.0
    a1 = 0.0
    f0 = 0.0
    for j in range(g.size):
        f0 += g[j] * direction[j]
        a0 -= fixed[j] * direction[j]
        if j < at.k:
            a0 += u[j] * direction[j]
            a1 += direction[j] * direction[j]
    if not f0 < 0.0:
        return False
    t = line_search(SearchLine(rows, m, q, at.alpha, at.c, at.state[0], a0, a1), f0)
    for j in range(g.size):
        u[j] += t * direction[j]
    for r in range(rows.size):
        m[rows[r]] += t * q[rows[r]]
    return True


@compiled(inline="always")
def minimise(at, rows, enough, last):  # type: ignore[no-untyped-def]
    """Newton steps on φ over the rows in play, until at most `enough` is left to be gained; False after step `last`."""
    moves = 0
    while True:
        error, count = newton_gradient(at, rows)
        if moves > 0 and error <= enough:
            return True
        if at.state[2] >= last:
            return False
        newton_direction(at.A, at.inner[:count], at.curve, at.g, at.k, at.direction, at.block)
        at.state[2] += 1
        moves += 1
        if not advance(at, rows):
            return True


@compiled(inline="always")
def take_over(at, rows):  # type: ignore[no-untyped-def]
    """α ← β, which lies in the box; both values at u and α, what their difference is, and what y'α ≠ 0 charges.

    ½‖w‖² + Σ c_i max(0, 1 − m_i)  and  Σ α_i − ½‖Σ α_i a_i‖², the norm over the weights;  |y'α| (1 + |b|)
    """
    k, u, g, fixed, m, c, alpha, beta = at.k, at.u, at.g, at.fixed, at.m, at.c, at.alpha, at.beta
    inner_set(rows, m, alpha, c, at.state[0], beta, at.inner)
    combine_rows(at.A, rows, beta, g)
    norm = 0.0
    dual_norm = 0.0
    loss = 0.0
    total = 0.0
    for j in range(k):
        norm += u[j] * u[j]
        dual_norm += (g[j] + fixed[j]) ** 2
    for i in range(m.size):
        loss += c[i] * max(0.0, 1.0 - m[i])
        total += beta[i]
        alpha[i] = beta[i]
    primal = 0.5 * norm + loss
    slack = abs(g[k] + fixed[k]) * (1.0 + abs(u[k])) if g.size > k else 0.0
    return primal, total - 0.5 * dual_norm, abs(primal - total + 0.5 * dual_norm), slack


@compiled()
def iterate_of(given, u, alpha, state, work):  # type: ignore[no-untyped-def]
    """An `Iterate` whose vectors are rows of `work` (7, n + d)."""
    n = n_rows(given.A)
    d = u.size
    return Iterate(
        given.A, given.c, given.k, u, alpha, state,
        work[0, :n], work[1, :n], work[2, :n], work[3, :n], work[4, :d], work[5, :d], work[6, :d],
        np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.bool_), np.empty((min(ROWS_PER_BLOCK, n), d)),
    )  # fmt: skip


@compiled(nogil=True)
def augmented_lagrangian(given, u, alpha, state, pace, work):  # type: ignore[no-untyped-def]
    """Run at most `pace.steps` Newton steps; call again to go on.

    repeat  put rows aside;  minimise φ over the others until none that was put aside is on its wrong side;  α ← β, ρ

    Parameters
    ----------
    given : SvmRows
    u : (d,) in and out
    alpha : (n,) in and out, in the box
    state : (3,) in and out: ρ, 1.0 when converged, Newton steps so far
    pace : LagrangianPace
    work : (7, n + d) scratch
    """
    own = iterate_of(given, u, alpha, state, work)
    at = lend_arrays(own)
    n = alpha.size
    last = state[2] + pace.steps
    primal, gap = first_values(at)
    target = max(6 * u.size + 64, n // 10) if pace.shrink else n
    while state[2] < last:
        # ψ_i'' = ρ wherever 0 < β_i < c_i.
        at.curve[:] = state[0]
        before, seen, count = state[2], -1, put_aside(at, target)
        goes_on = True
        while goes_on and seen != count:
            seen = count
            # Inexact minimisation: to a share of the gap that the last multipliers left.
            goes_on = minimise(at, at.rows[:count], max(0.1 * gap, 0.2 * pace.tol * primal), last)
            if goes_on:
                count = take_back(at, count)
        if not goes_on:
            break
        primal, dual, gap, slack = take_over(at, at.rows[:count])
        if gap + slack <= pace.tol * max(primal, 1e-300) or dual - slack >= pace.until:
            state[1] = 1.0
            break
        if state[2] - before <= EASY_STEPS:
            state[0] *= pace.grow
        elif state[2] - before > HARD_STEPS:
            state[0] /= pace.grow
        target = max(6 * u.size + 64, n // 10)
    hold_until_here(own)
