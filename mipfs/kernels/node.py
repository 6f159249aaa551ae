"""A node of `branch` in compiled code: its columns in play, its relaxation, the bound that it earns, what that fixes.

The user's rows are prices: at multipliers y the node is one without rows, with penalties c − A'y
(`mipfs.kernels.prices`).
"""

from __future__ import annotations

import numpy as np

from mipfs.compiled import compiled
from mipfs.compiled.lent import hold_until_here, lend_arrays
from mipfs.errors import UsageError
from mipfs.kernels.boolean_newton import STALLED
from mipfs.kernels.earned import balance_classes, earned, gains, rounded_down, scores_above, to_grid, value_below
from mipfs.kernels.order import falling
from mipfs.kernels.perspective import IN, classify_weights
from mipfs.kernels.prices import WHOLE, PricedRelaxation, drop_idle, price
from mipfs.kernels.prices import newton_step_of_multipliers as price_step
from mipfs.kernels.propagation import FREE, INSIDE, OUTSIDE
from mipfs.kernels.structures import Goal, InPlay, RelaxationPoint
from mipfs.kernels.vectors import copy_to
from mipfs.pointers import call_step

RELAX, COMPLETE = 0, 1
"""What is solved of a node next: its relaxation; where one place is free, the SVM of one completion after the other."""


@compiled(nogil=True, inline="always")
def in_play_of(states, M, columns):  # type: ignore[no-untyped-def]
    """A node's columns in play by its states (k,), forced ones first; returns how many are forced, and all."""
    forced = 0
    for j in range(states.size):
        if states[j] == INSIDE:
            columns[forced] = j
            forced += 1
    count = forced
    # Where the forced columns fill all M places, no other is in play.
    if M < 0 or forced < M:
        for j in range(states.size):
            if states[j] == FREE:
                columns[count] = j
                count += 1
    return forced, count


@compiled(nogil=True, inline="always")
def lay_out_node(alive, grid, sides, piece, work, chosen):  # type: ignore[no-untyped-def]
    """Lay out a node: its columns in play, their weights, the penalties at its prices, and a warm start."""
    now = work.now[0]
    newton = work.newton[0]
    node = piece.nodes[chosen]
    states = piece.states[chosen]
    now.node = chosen
    now.forced, now.count = in_play_of(states, alive.M, work.columns)
    free = now.count - now.forced
    now.room = free if alive.M < 0 else min(alive.M - now.forced, free)
    now.is_leaf = free == 0
    now.completes = node.next == COMPLETE and free > 0
    # The kernel's unit divides the objective by the largest loss weight, and so w by its root.
    root = np.sqrt(grid.size)
    for t in range(now.count):
        work.w[t] = piece.weights[chosen, work.columns[t]] / root
    newton.rho = node.rho
    newton.intercept = node.intercept
    newton.prox = work.steering.proximal
    newton.why = 0
    now.bound = -np.inf
    now.gain = 0.0
    now.missing = 0.0
    copy_to(piece.prices[node.parent], work.y)
    drop_idle(sides, states.size if alive.M < 0 else alive.M, states, work.y, work.idle)
    now.constant = price(sides, work.y, alive.penalty, work.priced, work.dense)


@compiled(nogil=True, inline="always")
def solve(steps, alive, samples, grid, sides, limit, piece, work):  # type: ignore[no-untyped-def]
    """Relax a node and earn its bound; once more at prices a step further, where that promises enough.

    The dual vector is left in the first free slot of `work`, prices in `work.y`, what they fix in `work.fixed`.
    """
    now = work.now[0]
    newton = work.newton[0]
    slot = piece.totals[0].duals
    count = now.count
    size = grid.size
    if now.completes:
        put_in_front(alive, samples, piece, work)
    relax_node(steps, alive, samples, grid, limit, piece, work, piece.nodes[now.node].start)
    if work.stop[0] != 0 and not now.lower > -np.inf:
        return
    now.bound = earn_bound(alive, samples, grid, limit.cutoff, work, slot)
    if sides.indptr.size == 1 or now.is_leaf or not now.bound < limit.cutoff < np.inf or work.stop[0] != 0:
        return
    # Where the cardinality row binds, Newton's step must keep Σσ: it counts as one of the rows.
    full = alive.M >= 0 and now.sum >= alive.M - WHOLE
    call_step(steps.price, alive.Z, samples, sides, work, count, full, slot, size)
    if now.gain < work.steering.worth * (limit.cutoff - now.bound):
        return
    copy_to(work.fixed[:count], work.fixed_first)
    now.constant = price(sides, work.y_next, alive.penalty, work.priced, work.dense)
    newton.rho = max(work.steering.rho_least, work.steering.back * newton.rho)
    newton.prox = work.steering.proximal
    relax_node(steps, alive, samples, grid, limit, piece, work, slot)
    if work.stop[0] != 0 and not now.lower > -np.inf:
        return
    exponent = now.exponent
    again = earn_bound(alive, samples, grid, limit.cutoff, work, slot + 1)
    now.missing = now.gain - max(0.0, again - now.bound)
    if again > now.bound:
        now.bound = again
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
    at = lend_arrays(
        PricedRelaxation(
            work.columns[:count], now.forced, full, work.w[:count], work.sigma[:count], beta, work.newton[0].rho, size
        )
    )
    now.gain = price_step(Z, samples, sides, at, work.y, work.steering.prices, work.atoms, work.y_next)
    hold_until_here(beta)


@compiled(nogil=True, inline="always")
def put_in_front(alive, samples, piece, work):  # type: ignore[no-untyped-def]
    """Put the free column that gains most by the node's last dual vector in front of the others, whose weights go."""
    now = work.now[0]
    alpha = work.alphas[piece.nodes[now.node].start]
    columns = work.columns[: now.count]
    for i in range(alpha.size):
        work.v[i] = alpha[i] * samples.y[i]
    scores_above(alive.X, alive.center, alive.norms, columns, work.v, work.s)
    first = now.forced
    best = first
    for t in range(first + 1, now.count):
        if gains(work.s[t], work.priced[columns[t]]) > gains(work.s[best], work.priced[columns[best]]):
            best = t
    columns[first], columns[best] = columns[best], columns[first]
    work.w[first] = work.w[best]
    for t in range(first + 1, now.count):
        work.w[t] = 0.0
        work.sigma[t] = 0.0


@compiled(nogil=True)
def relax_node(steps, alive, samples, grid, limit, piece, work, dual):  # type: ignore[no-untyped-def]
    """Solve the relaxation of a node from a dual vector, so far that its fate is clear.

    Where a completion is tried, that is the SVM on what is in and the first of the other columns. A node whose
    relaxation is integral is solved to `exact` where its fate is not clear: it has no feature to split on.
    """
    now = work.now[0]
    newton = work.newton[0]
    node = piece.nodes[work.now[0].node]
    count = now.forced + 1 if now.completes else now.count
    forced, room = (count, 0) if now.completes else (now.forced, now.room)
    size = grid.size
    # The bound of the plain node that the prices make of this one.
    now.edge = limit.cutoff - now.constant
    alpha = work.alphas[dual] / size
    copy_to(alpha, work.best)
    for t in range(count):
        work.costs[t] = work.priced[work.columns[t]] / size
    in_play = lend_arrays(InPlay(work.columns[:count], forced, room, work.costs[:count]))
    # The bound that the node inherits, which it must rise above where `rises` says so.
    known = (node.bound - now.constant) / size if limit.rises != 0.0 and not now.completes else -np.inf
    # By this much the goal lies above the cutoff: rounding α to the grid may take as much off the bound.
    # α ≤ 2v where v is its value.
    rounding = alpha.size * 2.0**-grid.bits * min(1.0, 2.0 * now.edge / size)
    now.lower = -np.inf
    now.upper = np.inf
    tol = limit.tol
    share = limit.share
    if now.is_leaf:
        tol = 0.1 * work.steering.exact
        share = 0.0
    elif now.completes:
        tol = 0.1 * work.steering.exact
        share = 1.0
    for _attempt in range(2):
        goal = lend_arrays(Goal(now.edge / size + rounding, tol, share, known, work.stop, work.steering))
        relax_in_slices(steps, alive.Z, samples, in_play, goal, work, alpha)
        piece.totals[0].steps += now.steps
        # Weights that overflowed are nothing to go on from.
        if not np.all(np.isfinite(work.w[:count])):
            work.w[:count] = 0.0
            newton.rho = node.rho
            newton.intercept = 0.0
        now.undecided, now.sum = relaxed_of(
            work.w[:count], work.costs[:count], forced, room, work.sigma, work.classes[:count], work.tau[:count]
        )
        if now.is_leaf or now.undecided > 0 or now.lower * size >= now.edge or tol <= work.steering.exact:
            return
        tol = work.steering.exact
        share = 0.0


@compiled(nogil=True, inline="always")
def relax_in_slices(steps, Z, samples, in_play, goal, work, alpha):  # type: ignore[no-untyped-def]
    """Newton steps in slices, which keep the best dual vector, until the goal is reached or they stall."""
    now = work.now[0]
    newton = work.newton[0]
    best = np.empty(alpha.size)
    point = lend_arrays(RelaxationPoint(work.w[: in_play.cols.size], alpha, best))
    now.steps = 0
    for _ in range(work.steering.slices):
        call_step(steps.relax, steps.minimise_model, Z, samples, in_play, goal, point, newton)
        now.steps += newton.steps
        if newton.lower > now.lower:
            now.lower = newton.lower
            copy_to(point.best, work.best)
        now.upper = min(now.upper, newton.upper)
        if newton.why != STALLED or newton.steps < work.steering.slice or goal.stop[0] != 0:
            break
    hold_until_here((alpha, best))


@compiled(nogil=True)
def relaxed_of(w, costs, forced, room, sigma, classes, tau):  # type: ignore[no-untyped-def]
    """The relaxed σ of weights w (q,), in `sigma`: how many are fractional, and their sum.

    `classes`, `tau` (q,) are scratch.
    """
    classify_weights(w, costs, forced, room, classes, tau)
    undecided = 0
    total = float(forced)
    sigma[:forced] = 1.0
    for t in range(forced, w.size):
        sigma[t] = 1.0 if classes[t] == IN else min(1.0, abs(w[t]) / max(tau[t], 1e-300))
        total += sigma[t]
        undecided += min(sigma[t], 1.0 - sigma[t]) > WHOLE
    return undecided, total


@compiled(nogil=True)
def place_to_split(branch, relaxed, states):  # type: ignore[no-untyped-def]
    """Where in a node is the atom that a rule splits it on: one of the free fractional, of all free where none is.

    states : (k,) FREE, INSIDE or OUTSIDE, as they are now: some may have been fixed since the node was relaxed
    """
    places = np.empty(relaxed.atoms.size, np.int64)
    count = 0
    for least in (WHOLE, -1.0):
        for t in range(relaxed.atoms.size):
            sigma = relaxed.sigma[t]
            if states[relaxed.atoms[t]] == FREE and min(sigma, 1.0 - sigma) > least:
                places[count] = t
                count += 1
        if count > 0:
            break
    t = call_step(branch, relaxed, places[:count])
    if t < 0 or t >= relaxed.atoms.size or states[relaxed.atoms[t]] != FREE:
        raise UsageError("a branching rule must return one of the places that it is given")
    return t


@compiled(nogil=True, inline="always")
def earn_bound(alive, samples, grid, cutoff, work, slot):  # type: ignore[no-untyped-def]
    """Put the best dual vector on the grid, in a slot of `work`: the bound that it earns; what it fixes, in `fixed`."""
    now = work.now[0]
    columns = work.columns[: work.now[0].count]
    alpha = work.alphas[slot]
    lost = work.steering.far_below * (now.edge - grid.size * now.lower)
    few = work.steering.coarse if grid.coarse <= lost < np.inf else grid.bits
    now.exponent = round_dual(samples, grid, work.best, few, work.wholes[slot], alpha, work.v)
    scores_above(alive.X, alive.center, alive.norms, columns, work.v, work.s)
    g = value_below(alpha, grid.c, samples.loss)
    # Prices of the rows add a constant to g: one more sum, rounded down.
    base = rounded_down(g + now.constant, abs(g) + abs(now.constant), 2)
    return node_bound(base, work.s, work.priced, columns, now.forced, now.room, cutoff, work.fixed)


@compiled(nogil=True)
def round_dual(samples, grid, best, bits, whole, alpha, v):  # type: ignore[no-untyped-def]
    """Put a dual vector in units of the largest weight on the grid: the integers `whole`, α, and v = α∘y (all n).

    Returns the exponent; v is scratch before.
    """
    y = samples.y
    for i in range(best.size):
        v[i] = best[i] * grid.size
    q = to_grid(v, grid.top, bits, whole)
    if samples.bias:
        balance_classes(whole, grid.top, q, y)
    step = 2.0**-q
    for i in range(best.size):
        alpha[i] = whole[i] * step
        v[i] = alpha[i] * y[i]
    return q


@compiled(nogil=True)
def node_bound(g, s, penalty, columns, forced, room, cutoff, fixed):  # type: ignore[no-untyped-def]
    """The bound of a dual vector with g and scores s (q,) of the columns, forced ones first; what it fixes, in `fixed`.

    fixed (q,) receives INSIDE or OUTSIDE where the other value lifts the bound to the cutoff; see `bound.earned`.
    """
    gain = np.empty(columns.size)
    for t in range(columns.size):
        gain[t] = gains(s[t], penalty[columns[t]])
    order = falling(gain[forced:])
    ranked = np.empty(order.size)
    for r in range(order.size):
        ranked[r] = gain[forced + order[r]]
    bound, inside, outside = earned(g, gain[:forced], ranked, room, cutoff)
    for r in range(order.size):
        fixed[forced + order[r]] = INSIDE if r < inside else OUTSIDE if r >= outside else FREE
    return bound
