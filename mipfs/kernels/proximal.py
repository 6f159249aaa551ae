"""The reduced MKL by accelerated proximal gradient (Tan 2014, Algorithm 4; its prox is Algorithm 3): the numba kernels.

    min over w_1 … w_t, b of  ½ (Σ_t ‖w_t‖)² + L(Z u + y b),   u = Σ_t D_t w_t

Rows z_i = y_i x_i over the distinct columns of the pool, held by columns, for the rows of text have few words each; D_t
places group t's weights on them, scaled by the square root of its selection. Margins are kept for the iterate and the
one before, so extrapolation costs no pass; a pass is one product with Z, or with Z', over the columns of the pool only:
one for the gradient and one per trial of the line search. The step constant goes on from step to step, and 1.05 trials
a step are what is needed (measured on texts and dense data). Tan 2014, (42), which begins every search anew, keeps the
margins of every group, n·t numbers, so that trials cost no pass; here that would save a fortieth of the passes, and
make each as long as all groups together, where the groups share their columns.

Over a face (`mipfs.inner.proximal`) the groups are its atoms, and ½ min over σ of Σ‖w_t‖²/σ_t stands for ½ (Σ ‖w_t‖)².
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mipfs.compiled import compiled
from mipfs.kernels.columns import add_columns, dot_columns
from mipfs.kernels.loss import LossSteps, at_margins
from mipfs.kernels.order import falling
from mipfs.kernels.vectors import copy_to

STEP_CONSTANT_DECAY, TRIALS = 0.97, 60
"""How much the step constant relaxes after every accepted step, and how often it may be doubled in one."""


class Smooth(NamedTuple):
    """A smooth loss over the pool's distinct columns.

    Z : (n, U) column-major array or CSC triple of y_i x_i;  y, c : (n,) labels (the bias's column) and loss weights
    loss : its functions;  bias : whether b is free
    unit : of the bias, > 0: one step constant has to serve it and the columns
    """

    Z: Any
    y: npt.NDArray[Any]
    c: npt.NDArray[Any]
    loss: LossSteps
    bias: bool
    unit: float


class WeightGroups(NamedTuple):
    """The groups of weights.

    pointer : (t + 1,) entries of group t are pointer[t] : pointer[t + 1]
    columns, scale : (K,) column of every entry, and the square root of its selection
    room : M where the groups are atoms of a face, below 0 where they are selections that are mixed
    """

    pointer: npt.NDArray[Any]
    columns: npt.NDArray[Any]
    scale: npt.NDArray[Any]
    room: float


class Iterates(NamedTuple):
    """Where the method is, in and out.

    x, old : (K + 1,) the entries of w_t, and the bias last, in units of `Smooth.unit`; and the iterate before
    kept : (2, n) margins of the two, made at the first call (steps so far = 0)
    state : (5,) step constant L, 1.0 when converged, steps so far, objective, momentum (1 at first)
    alpha : (n,) out, −L' at x
    """

    x: npt.NDArray[Any]
    old: npt.NDArray[Any]
    kept: npt.NDArray[Any]
    state: npt.NDArray[Any]
    alpha: npt.NDArray[Any]


class Scratch(NamedTuple):
    """What the steps write to: U columns, n samples, K entries with the bias last, t groups.

    mid, new, g : (K + 1,) the extrapolated point, the one after it, and the gradient at the first
    m_mid, m_new : (n,) margins of both;  every : (U,) 0, 1, …;  u, pulled : (U,) Σ_t D_t w_t and Z'α
    norms : (t,);  sums : (2,) of a function of the loss
    """

    mid: npt.NDArray[Any]
    new: npt.NDArray[Any]
    g: npt.NDArray[Any]
    m_mid: npt.NDArray[Any]
    m_new: npt.NDArray[Any]
    every: npt.NDArray[Any]
    u: npt.NDArray[Any]
    pulled: npt.NDArray[Any]
    norms: npt.NDArray[Any]
    sums: npt.NDArray[Any]


@compiled()
def threshold(norms, step):  # type: ignore[no-untyped-def]
    """ς of the prox of (step/2)(Σ‖g_t‖)²: each group norm shrinks by it (Tan 2014, Algorithm 3)."""
    order = falling(norms)
    total = 0.0
    level = 0.0
    for j in range(order.size):
        norm = norms[order[j]]
        total += norm
        # With the j + 1 largest norms above it, ς = step·Σ/(1 + (j + 1)·step).
        candidate = step / (1.0 + (j + 1) * step) * total
        if norm > candidate:
            level = candidate
        else:
            break
    return level


@compiled()
def group_norms(x, pointer, out):  # type: ignore[no-untyped-def]
    """‖x_t‖ of every group."""
    for t in range(pointer.size - 1):
        total = 0.0
        for r in range(pointer[t], pointer[t + 1]):
            total += x[r] * x[r]
        out[t] = np.sqrt(total)


@compiled()
def filling_level(norms, step, room):  # type: ignore[no-untyped-def]
    """θ with Σ_t min(max(θ norms_t − step, 0), 1) = room; inf where no more than `room` norms are above 0.

    The sum rises with θ, and is linear between its kinks: Newton's steps within a bracket.
    """
    held = 0
    total = 0.0
    least = np.inf
    for t in range(norms.size):
        if norms[t] > 0.0:
            held += 1
            total += norms[t]
            least = min(least, norms[t])
    if held <= room:
        return np.inf
    if room <= 0.0:
        return 0.0
    low = 0.0
    high = (1.0 + step) / least
    theta = min((room + step * held) / total, high)
    for _ in range(200):
        found = -room
        slope = 0.0
        for t in range(norms.size):
            sigma = norms[t] * theta - step
            if sigma >= 1.0:
                found += 1.0
            elif sigma > 0.0:
                found += sigma
                slope += norms[t]
        if abs(found) <= 1e-14 * room:
            break
        if found > 0.0:
            high = theta
        else:
            low = theta
        theta = theta - found / slope if slope > 0.0 else 0.5 * (low + high)
        if not low < theta < high:
            theta = 0.5 * (low + high)
        if high - low <= 1e-15 * high:
            break
    return theta


@compiled()
def half_square(norms, room):  # type: ignore[no-untyped-def]
    """½ (Σ norms_t)² of a mixture; of a face the least ½ Σ norms_t²/σ_t over 0 ≤ σ ≤ 1, Σσ ≤ room."""
    if room < 0.0:
        return 0.5 * norms.sum() ** 2
    theta = filling_level(norms, 0.0, room)
    total = 0.0
    for t in range(norms.size):
        if norms[t] > 0.0:
            total += norms[t] * norms[t] / min(norms[t] * theta, 1.0)
    return 0.5 * total


@compiled()
def shrink(x, pointer, step, room, norms):  # type: ignore[no-untyped-def]
    """Replace x by the prox of step·`half_square` at x, and `norms` by its norms; returns `half_square` there.

    Of a face: min over x' and σ of ½ ‖x' − x‖² + (step/2) Σ ‖x'_t‖²/σ_t has x'_t = σ_t/(σ_t + step) x_t, and what is
    left, (step/2) Σ ‖x_t‖²/(σ_t + step), is least where σ_t + step is a multiple of ‖x_t‖, within its bounds.
    """
    group_norms(x, pointer, norms)
    total = 0.0
    level = 0.0
    theta = 0.0
    if room < 0.0:
        level = threshold(norms, step)
    else:
        theta = filling_level(norms, step, room)
    for t in range(norms.size):
        factor = 0.0
        sigma = 0.0
        if room < 0.0 and norms[t] > level:
            factor = 1.0 - level / norms[t]
        elif room >= 0.0 and norms[t] > 0.0:
            sigma = min(max(norms[t] * theta - step, 0.0), 1.0)
            factor = sigma / (sigma + step)
        norms[t] *= factor
        if room < 0.0:
            total += norms[t]
        elif factor > 0.0:
            total += norms[t] * norms[t] / sigma
        for r in range(pointer[t], pointer[t + 1]):
            x[r] *= factor
    return 0.5 * total * total if room < 0.0 else 0.5 * total


@compiled()
def spread(x, columns, scale, out):  # type: ignore[no-untyped-def]
    """u = Σ_t D_t x_t."""
    out[:] = 0.0
    for r in range(columns.size):
        out[columns[r]] += scale[r] * x[r]


@compiled()
def pull(Z, alpha, out):  # type: ignore[no-untyped-def]
    """out = Z'α."""
    dot_columns(Z, np.arange(out.size), alpha, out)


@compiled()
def margins_of(Z, every, y, u, b, out):  # type: ignore[no-untyped-def]
    """out = Zu + by."""
    for i in range(y.size):
        out[i] = b * y[i]
    add_columns(Z, every, u, out)


@compiled(inline="always")
def loss_and_dual(loss, m, c, alpha, sums):  # type: ignore[no-untyped-def]
    """L(m), with α = −L'(m) written to `alpha`."""
    at_margins(loss.at_margins, m, m, c, 0.0, alpha, sums)
    return sums[0]


@compiled(inline="always")
def scratch_of(n, columns, groups):  # type: ignore[no-untyped-def]
    """Room for the steps over n samples, K entries on `columns` (K,), and `groups` groups."""
    K = columns.size
    size = 0
    for r in range(K):
        size = max(size, columns[r] + 1)
    return Scratch(
        np.empty(K + 1), np.empty(K + 1), np.zeros(K + 1), np.empty(n), np.empty(n),
        np.arange(size), np.zeros(size), np.zeros(size), np.empty(groups), np.empty(2),
    )  # fmt: skip


@compiled(inline="always")
def extrapolate_point(at, beta, scratch):  # type: ignore[no-untyped-def]
    """The point x + β (x − old), in `mid`, and its margins."""
    x = at.x
    old = at.old
    m = at.kept[0]
    m_old = at.kept[1]
    mid = scratch.mid
    m_mid = scratch.m_mid
    for r in range(x.size):
        mid[r] = x[r] + beta * (x[r] - old[r])
    for i in range(m.size):
        m_mid[i] = m[i] + beta * (m[i] - m_old[i])


@compiled(inline="always")
def group_gradient(given, groups_of, alpha, scratch):  # type: ignore[no-untyped-def]
    """∇L where L' = −α: −D_t'Z'α of every group, and −y'α of the bias, in `g`."""
    y = given.y
    unit = given.unit
    columns = groups_of.columns
    scale = groups_of.scale
    g = scratch.g
    pulled = scratch.pulled
    dot_columns(given.Z, scratch.every, alpha, pulled)
    for r in range(columns.size):
        g[r] = -scale[r] * pulled[columns[r]]
    g[columns.size] = 0.0
    if given.bias:
        for i in range(y.size):
            g[columns.size] -= unit * alpha[i] * y[i]


@compiled(inline="always")
def margins_at(given, groups_of, x, scratch, out):  # type: ignore[no-untyped-def]
    """The margins of x, in `out`."""
    K = groups_of.columns.size
    spread(x[:K], groups_of.columns, groups_of.scale, scratch.u)
    margins_of(given.Z, scratch.every, given.y, scratch.u, given.unit * x[K] if given.bias else 0.0, out)


@compiled(inline="always")
def proximal_step(given, groups_of, alpha, value, L, scratch):  # type: ignore[no-untyped-def]
    """The prox-gradient step from `mid`, where the loss is `value`, in `new`; returns L and the objective there.

    L grows until the quadratic model at `mid` lies above the loss at the new point.
    """
    mid = scratch.mid
    new = scratch.new
    g = scratch.g
    reached = np.inf
    half = 0.0
    for _trial in range(TRIALS):
        for r in range(new.size):
            new[r] = mid[r] - g[r] / L
        half = shrink(new, groups_of.pointer, 1.0 / L, groups_of.room, scratch.norms)
        margins_at(given, groups_of, new, scratch, scratch.m_new)
        linear = 0.0
        square = 0.0
        for r in range(new.size):
            step = new[r] - mid[r]
            linear += g[r] * step
            square += step * step
        reached = loss_and_dual(given.loss, scratch.m_new, given.c, alpha, scratch.sums)
        if reached <= value + linear + 0.5 * L * square + 1e-14 * abs(value):
            break
        L *= 2.0
    return L, reached + half


@compiled(inline="always")
def move(at, scratch):  # type: ignore[no-untyped-def]
    """x becomes `new`; returns how far that is from `mid`, and the size of x, in their largest entries."""
    x = at.x
    old = at.old
    m = at.kept[0]
    m_old = at.kept[1]
    mid = scratch.mid
    new = scratch.new
    moved = 0.0
    size = 1e-300
    for r in range(x.size):
        moved = max(moved, abs(new[r] - mid[r]))
        size = max(size, abs(new[r]))
    copy_to(x, old)
    copy_to(m, m_old)
    copy_to(new, x)
    copy_to(scratch.m_new, m)
    return moved, size


@compiled()
def run_accelerated(given, groups_of, at, tol, change, max_steps):  # type: ignore[no-untyped-def]
    """Run at most `max_steps` accelerated steps; call again to go on.

    Parameters
    ----------
    given, groups_of, at : Smooth, Groups, Iterates
    tol : relative size of the prox-gradient step at which to stop
    change : relative change of the objective in a step at which to stop (Tan 2014, (43)); below 0: never
    """
    x, kept, state, alpha = at.x, at.kept, at.state, at.alpha
    scratch = scratch_of(given.y.size, groups_of.columns, groups_of.pointer.size - 1)
    if state[2] == 0.0:
        margins_at(given, groups_of, x, scratch, kept[0])
        copy_to(kept[0], kept[1])
    L = state[0]
    momentum = state[4]
    group_norms(x, groups_of.pointer, scratch.norms)
    objective = loss_and_dual(given.loss, kept[0], given.c, alpha, scratch.sums)
    objective += half_square(scratch.norms, groups_of.room)
    for _ in range(max_steps):
        # Nesterov's momentum: t' = ½(1 + √(1 + 4t²)), and the point is extrapolated by (t − 1)/t'.
        following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum * momentum))
        extrapolate_point(at, (momentum - 1.0) / following, scratch)
        value = loss_and_dual(given.loss, scratch.m_mid, given.c, alpha, scratch.sums)
        group_gradient(given, groups_of, alpha, scratch)
        L, now = proximal_step(given, groups_of, alpha, value, L, scratch)
        state[2] += 1
        # The objective rose: the step is made again from x, without momentum.
        if now > objective and momentum > 1.0:
            momentum = 1.0
            copy_to(x, at.old)
            copy_to(kept[0], kept[1])
            continue
        moved, size = move(at, scratch)
        stalls = abs(objective - now) <= change * abs(objective)
        objective = now
        momentum = following
        L *= STEP_CONSTANT_DECAY
        if moved <= tol * size or stalls:
            state[1] = 1.0
            break
    state[0] = L
    state[4] = momentum
    loss_and_dual(given.loss, kept[0], given.c, alpha, scratch.sums)
    state[3] = objective
