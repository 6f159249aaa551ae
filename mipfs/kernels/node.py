"""A node of `branch` in compiled code: its columns in play, its relaxation, the bound that it earns, what that fixes.

The user's rows are prices: at multipliers y the node is one without rows, with penalties c − A'y
(`mipfs.kernels.prices`).
"""

from __future__ import annotations

import numpy as np

from mipfs.compiled import compiled
from mipfs.kernels.boolean_newton import SLICE, STALLED
from mipfs.kernels.earned import balance, scores_above, to_grid, value_below
from mipfs.kernels.order import falling
from mipfs.kernels.perspective import IN, classify
from mipfs.kernels.prices import WHOLE, Relaxed, U, drop_idle, price
from mipfs.kernels.prices import step as price_step
from mipfs.kernels.propagation import FREE, INSIDE, OUTSIDE
from mipfs.kernels.structures import Goal, InPlay, Point
from mipfs.kernels.vectors import copy_to
from mipfs.pointers import call

SLICES = 4
"""Calls of `relax` per node at most."""
PROXIMAL, BACK = 0.1, 0.5
"""The proximal weight that a warm start begins with, and its share of the last ρ."""
RHO_LEAST = 0.5
"""A warm start begins with a ρ of at least this: a smaller one smooths the hinge away."""
EXACT = 1e-10
"""Relative gap to which a node is solved whose relaxation is integral and whose fate is not clear; leaves, a tenth."""
WORTH = 0.03
"""A step of the prices must promise to close this share of a node's distance to the cutoff; a second brings nothing."""
COARSE, FAR_BELOW = 16, 3e-3
"""Bits of a dual vector whose node is left open so far below the cutoff that they cost this share of the distance."""


@compiled(nogil=True, inline="always")
def in_play_of(states, M, columns):  # type: ignore[no-untyped-def]
    """A node's columns in play by its states (k,), forced ones first; returns how many are forced, and all."""
    forced = 0
    for j in range(states.size):
        if states[j] == INSIDE:
            columns[forced] = j
            forced += 1
    count = forced
    if M < 0 or forced < M:
        for j in range(states.size):
            if states[j] == FREE:
                columns[count] = j
                count += 1
    return forced, count


@compiled(nogil=True, inline="always")
def enter(alive, grid, sides, piece, work, chosen):  # type: ignore[no-untyped-def]
    """Lay out a node: its columns in play, their weights, the penalties at its prices, and a warm start."""
    now, newton, node = work.now[0], work.newton[0], piece.nodes[chosen]
    states = piece.states[chosen]
    now.node = chosen
    now.forced, now.count = in_play_of(states, alive.M, work.columns)
    free = now.count - now.forced
    now.room = free if alive.M < 0 else min(alive.M - now.forced, free)
    now.is_leaf = free == 0
    root = np.sqrt(grid.size)
    for t in range(now.count):
        work.w[t] = piece.weights[chosen, work.columns[t]] / root
    newton.rho, newton.intercept, newton.prox = abs(node.rho), node.intercept, PROXIMAL
    newton.why = 0
    now.bound, now.gain, now.missing = -np.inf, 0.0, 0.0
    copy_to(piece.prices[node.parent], work.y)
    drop_idle(sides, states.size if alive.M < 0 else alive.M, states, work.y, work.idle)
    now.constant = price(sides, work.y, alive.penalty, work.priced, work.dense)


@compiled(nogil=True, inline="always")
def solve(steps, alive, samples, grid, sides, limit, piece, work):  # type: ignore[no-untyped-def]
    """Relax a node and earn its bound; once more at prices a step further, where that promises enough.

    The dual vector is left in the first free slot of `work`, prices in `work.y`, what they fix in `work.fixed`.
    """
    now, newton, slot = work.now[0], work.newton[0], piece.totals[0].duals
    count, size = now.count, grid.size
    relax_node(steps, alive, samples, grid, limit, piece, work, piece.nodes[now.node].parent)
    if work.stop[0] != 0 and not now.lower > -np.inf:
        return
    now.bound = earn(alive, samples, grid, work, slot)
    if sides.indptr.size == 1 or now.is_leaf or not now.bound < limit.cutoff < np.inf or work.stop[0] != 0:
        return
    full = alive.M >= 0 and now.sum >= alive.M - WHOLE
    call(steps.price, alive.Z, samples, sides, work, count, full, slot, size)
    if now.gain < WORTH * (limit.cutoff - now.bound):
        return
    copy_to(work.fixed[:count], work.fixed_first)
    now.constant = price(sides, work.y_next, alive.penalty, work.priced, work.dense)
    newton.rho, newton.prox = max(RHO_LEAST, BACK * newton.rho), PROXIMAL
    relax_node(steps, alive, samples, grid, limit, piece, work, slot)
    if work.stop[0] != 0 and not now.lower > -np.inf:
        return
    exponent = now.exponent
    earned = earn(alive, samples, grid, work, slot + 1)
    now.missing = now.gain - max(0.0, earned - now.bound)
    if earned > now.bound:
        now.bound = earned
        copy_to(work.y_next, work.y)
        copy_to(work.alphas[slot + 1], work.alphas[slot])
        copy_to(work.wholes[slot + 1], work.wholes[slot])
    else:
        now.exponent = exponent
        copy_to(work.fixed_first[:count], work.fixed)


@compiled(nogil=True)
def price_further(Z, samples, sides, work, count, full, slot, size):  # type: ignore[no-untyped-def]
    """A step of the prices from those of a node, to `work.y_next`; what it promises is `work.now.gain`."""
    now = work.now[0]
    beta = work.alphas[slot] / size
    at = Relaxed(
        work.columns[:count], now.forced, full, work.w[:count], work.sigma[:count], beta, work.newton[0].rho, size
    )
    now.gain = price_step(Z, samples, sides, at, work.y, work.atoms, work.y_next)


@compiled(nogil=True)
def relax_node(steps, alive, samples, grid, limit, piece, work, dual):  # type: ignore[no-untyped-def]
    """Solve the relaxation of a node from a dual vector, so far that its fate is clear.

    One whose relaxation is integral is solved to EXACT where its fate is not clear, for it has no feature to split on.
    """
    now, newton, node, count = work.now[0], work.newton[0], piece.nodes[work.now[0].node], work.now[0].count
    size = grid.size
    now.edge = limit.cutoff - now.constant  # of the plain node that the prices make of it
    alpha = work.alphas[dual] / size
    copy_to(alpha, work.best)
    for t in range(count):
        work.costs[t] = work.priced[work.columns[t]] / size
    in_play = InPlay(work.columns[:count], now.forced, now.room, work.costs[:count])
    known = (node.bound - now.constant) / size if limit.rises != 0.0 else -np.inf
    rounding = alpha.size * 2.0**-grid.bits * min(1.0, 2.0 * now.edge / size)  # α ≤ 2v where v is its value
    now.lower, now.upper = -np.inf, np.inf
    tol, share = limit.tol, limit.share
    if now.is_leaf:
        tol, share = 0.1 * EXACT, 0.0
    for _attempt in range(2):
        if node.rho > 0.0:
            goal = Goal(now.edge / size + rounding, tol, share, known, work.stop)
            relax_in_slices(steps, alive.Z, samples, in_play, goal, work, alpha)
            piece.totals[0].steps += now.steps
        if not np.all(np.isfinite(work.w[:count])):
            work.w[:count] = 0.0
            newton.rho, newton.intercept = abs(node.rho), 0.0
        now.undecided, now.chosen, now.sum = relaxed_of(
            work.w[:count], work.costs[:count], now.forced, now.room, work.sigma, work.classes[:count], work.tau[:count]
        )
        if now.is_leaf or now.undecided > 0 or now.lower * size >= now.edge or tol <= EXACT:
            return
        tol, share = EXACT, 0.0


@compiled(nogil=True, inline="always")
def relax_in_slices(steps, Z, samples, in_play, goal, work, alpha):  # type: ignore[no-untyped-def]
    """Newton steps in slices, which keep the best dual vector, until the goal is reached or they stall."""
    now, newton = work.now[0], work.newton[0]
    point = Point(work.w[: in_play.cols.size], alpha, np.empty(alpha.size))
    now.steps = 0
    for _ in range(SLICES):
        call(steps.relax, steps.minimise_model, Z, samples, in_play, goal, point, newton)
        now.steps += newton.steps
        if newton.lower > now.lower:
            now.lower = newton.lower
            copy_to(point.best, work.best)
        now.upper = min(now.upper, newton.upper)
        if newton.why != STALLED or newton.steps < SLICE or goal.stop[0] != 0:
            return


@compiled(nogil=True)
def relaxed_of(w, costs, forced, room, sigma, classes, tau):  # type: ignore[no-untyped-def]
    """The relaxed σ of weights w (q,), in `sigma`: how many are fractional, what to split on, and their sum.

    That is the largest |w| among the fractional, or among all where none is. `classes`, `tau` (q,) are scratch.
    """
    classify(w, costs, forced, room, classes, tau)
    undecided, chosen, largest, total = 0, -1, -1.0, float(forced)
    sigma[:forced] = 1.0
    for t in range(forced, w.size):
        sigma[t] = 1.0 if classes[t] == IN else min(1.0, abs(w[t]) / max(tau[t], 1e-300))
        total += sigma[t]
        unclear = min(sigma[t], 1.0 - sigma[t]) > WHOLE
        if unclear and undecided == 0:
            largest = -1.0
        undecided += unclear
        if (unclear or undecided == 0) and abs(w[t]) > largest:
            largest, chosen = abs(w[t]), t
    return undecided, chosen, total


@compiled(nogil=True, inline="always")
def earn(alive, samples, grid, work, slot):  # type: ignore[no-untyped-def]
    """Put the best dual vector on the grid, in a slot of `work`: the bound that it earns; what it fixes, in `fixed`."""
    now, columns = work.now[0], work.columns[: work.now[0].count]
    alpha = work.alphas[slot]
    few = COARSE if grid.coarse <= FAR_BELOW * (now.edge - grid.size * now.lower) < np.inf else grid.bits
    now.exponent = round_dual(samples, grid, work.best, few, work.wholes[slot], alpha, work.v)
    scores_above(alive.X, alive.center, alive.norms, columns, work.v, work.s)
    g = value_below(alpha, grid.c, samples.kind)
    bound = node_bound(g, work.s, work.priced, columns, now.forced, now.room, now.edge, work.fixed)
    if now.constant != 0.0:
        bound += now.constant - 2.0 * U * (abs(bound) + abs(now.constant))
    return bound


@compiled(nogil=True)
def round_dual(samples, grid, best, bits, whole, alpha, v):  # type: ignore[no-untyped-def]
    """Put a dual vector in units of the largest weight on the grid: the integers `whole`, α, and v = α∘y (all n).

    Returns the exponent; v is scratch before.
    """
    y, bias, kind = samples.y, samples.bias, samples.kind
    for i in range(best.size):
        v[i] = best[i] * grid.size
    q = to_grid(v, grid.c, kind, bits, whole)
    if bias:
        balance(whole, grid.c, kind, q, y)
    step = 2.0**-q
    for i in range(best.size):
        alpha[i] = whole[i] * step
        v[i] = alpha[i] * y[i]
    return q


@compiled(nogil=True)
def node_bound(g, s, penalty, columns, forced, room, cutoff, fixed):  # type: ignore[no-untyped-def]
    """The bound of a dual vector with g and scores s (q,) of the columns, forced ones first; what it fixes, in `fixed`.

    fixed (q,) receives INSIDE or OUTSIDE where the other value lifts the bound to the cutoff.
    """
    q = columns.size
    free = q - forced
    gains, held, size = np.empty(free), 0.0, abs(g)
    for t in range(forced):
        gain = 0.5 * s[t] - penalty[columns[t]]
        held += gain
        size += abs(gain) + abs(penalty[columns[t]])
    for t in range(free):
        gains[t] = 0.5 * s[forced + t] - penalty[columns[forced + t]]
        fixed[forced + t] = FREE
    order = falling(gains)
    count, taken = 0, 0.0
    while count < min(room, free) and gains[order[count]] > 0.0:
        taken += gains[order[count]]
        count += 1
    size += taken
    bound = g - held - taken - 2.0 * (q + 8) * U * size
    if not np.isfinite(cutoff) or free == 0:
        return bound
    following = max(0.0, gains[order[count]]) if room > 0 and count < free else 0.0
    weakest = gains[order[count - 1]] if count == room and room > 0 else 0.0
    for r in range(free):
        t = order[r]
        if r < count:
            if bound + gains[t] - following >= cutoff:
                fixed[forced + t] = INSIDE
        elif room <= 0 or bound + weakest - gains[t] >= cutoff:
            fixed[forced + t] = OUTSIDE
    return bound
