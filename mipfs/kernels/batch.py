"""Many nodes relaxed at once by ADMM: what is done to every entry, and what becomes of nodes that are solved.

    min over x = (w, b), m = A x of R(w) + Σ c_i ℓ(m_i),   A = y∘[X 1],   penalties ρ_x on x and ρ_m on m

An iteration (Boyd et al. 2011, 5.1.2; in graph form Parikh and Boyd 2014), over-relaxed by r:

    w = prox_R(2x − c),  h = prox_ℓ(2m − d),   c ← c + r (w − x),  d ← d + r (h − m)
    x ← (κI + A'A)⁻¹ (κc + A'd),  m ← A x,   κ = ρ_x/ρ_m

where c = x + u_x and d = m + u_m hold the scaled multipliers. α = ρ_m (h − (2m − d)) is a dual vector in its box. With
A'A = VΛV' the inverse is V (κ + Λ)⁻¹ V', so that every node has penalties of its own. The columns are centred, so
that A'y = 0: the intercept, which has no penalty, is y'd/n. The iterations are in float32: no bound rests on them. B
nodes of n samples, q columns and G atoms.

An end of a row over the weights, d'w ≥ −o, is one more row of A, with 0 in place of its label and h = max(v, −o) for
its proximal step: a sample of infinite weight. Its α is the multiplier ν; N are the samples and the ends behind them.
"""

from __future__ import annotations

import numpy as np
from numba.extending import register_jitable

from mipfs.compiled import compiled
from mipfs.compiled.lent import lend_arrays
from mipfs.kernels import bound
from mipfs.kernels.boolean_newton import STALLED
from mipfs.kernels.earned import rounded_down, value_below
from mipfs.kernels.loss import at_margins, dual, proximal
from mipfs.kernels.node import in_play_of, node_bound, round_dual
from mipfs.kernels.order import kth_largest
from mipfs.kernels.prices import drop_idle, price
from mipfs.kernels.propagation import FREE, INSIDE, OUTSIDE
from mipfs.kernels.subtree import (
    LEAF,
    OPEN,
    STUCK,
    fathom,
    piece_of,
    plant_all,
    prune,
    split_node,
)
from mipfs.kernels.vectors import copy_to
from mipfs.kernels.weights_step import HUGE, TINY, reprice_atoms, weights_step
from mipfs.pointers import call_step
from mipfs.regularisers import base, box

# Compiled code calls it, and Python calls it as it stands.
sum_error = register_jitable(bound.sum_error)
radius_of = register_jitable(bound.radius_of)
for _function in (base.widen, base.raise_by_rounding, box.conjugate_at):
    register_jitable(_function)
conjugate_above = register_jitable(box.conjugate_above)

ZERO, ONE = np.int64(0), np.int64(1)
"""As numbers of a type: for one that is written as it stands numba would compile what is called once more."""
OUT = 5
"""Why a node is not chosen: it is being relaxed."""
f4 = np.float32
BEYOND = 2e-6
"""By how much a bound must exceed the cutoff, relatively, before it is earned: float32 and the grid may take that."""
ALLOWED = 1e-3
"""By how much σ may miss a row, relatively, for its value to count early."""
COSTS = 3.0
"""What a miss costs, in units of the row's multiplier: that is near the optimal one, not there."""
EARLY = 40
"""Iterations after which the multipliers of rows say what a miss costs."""
MOST_BITS = np.int64(52)
"""Bits of the largest multiplier of a row over the weights, as in `mipfs.proof.cuts`."""


@compiled(nogil=True)
def explore(steps, handed):  # type: ignore[no-untyped-def]
    """Explore from several open nodes at once; each is in place 0 of a piece of its own.

    choose open nodes for the lanes that are free; iterate; look at both values; earn and settle those that are done

    Parameters
    ----------
    steps : BatchSteps
    handed : samples, grid, SigmaRows, limits, BatchProblem, pieces, ExplorationState
        The others as in `mipfs.kernels.structures`.
    """
    samples, grid, rows, limits, given, pieces, own = lend_arrays(handed)
    lanes = own.lanes
    room = own.room
    rules = given.rules
    plant_all(pieces)
    count = ZERO
    solved = ZERO
    while own.work.stop[0] == 0:
        if solved < rules.budget:
            count = call_step(steps.begin, given, grid, rows, limits, pieces, own, count)
        if count == 0:
            break
        call_step(steps.advance, given, rows, own, samples.loss, count, rules.steps)
        call_step(steps.evaluate_bounds, given, samples, rows, own, count)
        found = are_done(limits, pieces, grid.size, rules, own, count)
        if found > 0:
            call_step(steps.end, steps.branch, samples, grid, rows.sides, limits, given, pieces, own)
            count = close_up(lanes, room.done, found, count)
            solved += found
        adapt_penalties(lanes, given.shape.y.size, rules.adapt, count)
    give_back(pieces)


@compiled(nogil=True)
def begin(given, grid, rows, limits, pieces, own, count):  # type: ignore[no-untyped-def]
    """Take open nodes into the lanes behind `count`; returns how many lanes are in use then."""
    lanes = own.lanes
    more = count + claim_next_nodes(rows.sides, limits, pieces, lanes.of[count:], lanes.node[count:])
    if more > count:
        _fill_lanes(given, grid, rows, pieces, own, count, more)
    return more


@compiled(nogil=True)
def end(branch, samples, grid, sides, limits, given, pieces, own):  # type: ignore[no-untyped-def]
    """Earn the bounds of nodes that are done, whose lanes stand in `own.room.done`, and settle them."""
    found = 0
    while found < own.room.done.size and own.room.done[found] >= 0:
        found += 1
    _to_duals(samples, grid, given.shape, limits, own, found)
    scores_above(given.scoring, given.shape.first, own.earned, found)
    for f in range(found):
        _settle_node(branch, given, grid, sides, limits, pieces, own, f)


@compiled(nogil=True)
def relax(steps, handed, tol, more):  # type: ignore[no-untyped-def]
    """Relax the open node of the only piece by `more` iterations, or until its values meet to `tol`: whether they do.

    The first call begins with it, which `lanes.used` = 0 says; then it is in the first lane. `handed` : as of `explore`
    """
    samples, grid, rows, limits, given, pieces, own = lend_arrays(handed)
    lanes = own.lanes
    rules = given.rules
    if lanes.used[0] == 0:
        plant_all(pieces)
        call_step(steps.begin, given, grid, rows, limits, pieces, own, ZERO)
    end = lanes.used[0] + more
    while lanes.used[0] < end:
        call_step(steps.advance, given, rows, own, samples.loss, ONE, rules.steps)
        call_step(steps.evaluate_bounds, given, samples, rows, own, ONE)
        short = lanes.upper[0] - lanes.lower[0]
        if short < np.inf and short <= tol * abs(lanes.upper[0]):
            return True
        adapt_penalties(lanes, given.shape.y.size, rules.adapt, ONE)
    return False


@compiled(nogil=True)
def give_back(pieces):  # type: ignore[no-untyped-def]
    """Nodes that are still being relaxed are open again."""
    pieces = lend_arrays(pieces)
    for i in range(pieces.totals.shape[0]):
        for t in range(pieces.totals[i, 0].nodes):
            if pieces.nodes[i, t].why == OUT:
                pieces.nodes[i, t].why = OPEN


@compiled(nogil=True)
def advance(given, rows, own, loss, count, steps):  # type: ignore[no-untyped-def]
    """Some iterations of the first `count` nodes."""
    shape, factor, lanes, room = given.shape, given.factor, own.lanes, own.room
    A, V, back, across = factor.A, factor.V, factor.back, factor.across
    x = lanes.x[:count]
    m = lanes.m[:count]
    d = lanes.d[:count]
    e = room.e[:count]
    s = room.s[:count]
    t = room.t[:count]
    for _ in range(steps):
        weights_step(shape, rows, lanes, count)
        _margins_step(shape, lanes, loss, count)
        np.dot(d, A, e)
        _add_scaled(lanes, e, across.size == 0)
        if across.size == 0:
            np.dot(e, V, s)
            _divide_by_spectrum(factor.values, lanes, s)
            # The order is A, V, V, A, and A again next turn: each is read from memory once for two products.
            np.dot(s, V.T, x)
            np.dot(x, A.T, m)
        else:
            np.dot(e, A.T, t)
            np.dot(t, V, s)
            _divide_by_spectrum(factor.values, lanes, s)
            np.dot(s, back, x)
            np.dot(s, across, m)
            _subtract_from(e, x)
            _subtract_from(t, m)
        if shape.bias:
            _add_intercept(lanes.intercept, shape.y, m)
    lanes.used[:count] += steps


@compiled(nogil=True, fastmath=True)
def _add_scaled(lanes, e, wide):  # type: ignore[no-untyped-def]
    """e ← κc + e, or divided by κ."""
    for b in range(e.shape[0]):
        kappa = lanes.rx[b] / lanes.rm[b]
        first = kappa if wide else f4(1)
        second = f4(1) if wide else f4(1) / kappa
        for j in range(e.shape[1]):
            e[b, j] = first * lanes.c[b, j] + second * e[b, j]


@compiled(nogil=True, fastmath=True)
def _divide_by_spectrum(values, lanes, s):  # type: ignore[no-untyped-def]
    """s ← s/(κ + Λ)."""
    for b in range(s.shape[0]):
        kappa = lanes.rx[b] / lanes.rm[b]
        for j in range(s.shape[1]):
            s[b, j] /= kappa + values[j]


@compiled(nogil=True, fastmath=True)
def _subtract_from(e, x):  # type: ignore[no-untyped-def]
    """x ← e − x."""
    for b in range(e.shape[0]):
        for j in range(e.shape[1]):
            x[b, j] = e[b, j] - x[b, j]


@compiled(nogil=True, fastmath=True)
def _add_intercept(intercept, y, m):  # type: ignore[no-untyped-def]
    """m ← m + b y."""
    for b in range(m.shape[0]):
        for i in range(y.size):
            m[b, i] += intercept[b] * y[i]


@compiled(nogil=True)
def evaluate_bounds(given, samples, rows, own, count):  # type: ignore[no-untyped-def]
    """Both values at the iterates of the first `count` nodes."""
    lanes, room, shape, A = own.lanes, own.room, given.shape, given.factor.A
    a = room.a[:count]
    omega = room.omega[:count]
    margins = room.margins[:count]
    _in_box(shape, lanes, count, a)
    np.dot(a, A, omega)
    np.dot(lanes.w[:count], A.T, margins)
    if shape.bias:
        _add_intercept(lanes.intercept, shape.y, margins)
    _evaluate_iterates(shape, rows, lanes, samples, count, a, omega, margins)


@compiled(nogil=True)
def _fill_lanes(given, grid, rows, pieces, own, begin, count):  # type: ignore[no-untyped-def]
    """Begin with the nodes in the lanes from `begin` to `count`."""
    lanes, room, shape, A = own.lanes, own.room, given.shape, given.factor.A
    a = room.a[begin:count]
    omega = room.omega[begin:count]
    m = lanes.m[begin:count]
    _enter_lanes(shape, given.alive.M, rows, pieces, own, begin, count)
    np.dot(a, A, omega)
    _warm_start_lanes(shape, pieces, lanes, begin, count, np.sqrt(grid.size), room.omega)
    np.dot(lanes.x[begin:count], A.T, m)
    if shape.bias:
        _add_intercept(lanes.intercept[begin:count], shape.y, m)
    _warm_margins(lanes, begin, count, room.a)


@compiled(nogil=True)
def _margins_step(shape, lanes, loss, count):  # type: ignore[no-untyped-def]
    """h = prox_ℓ(2m − d) of the first `count` nodes, α = h − (2m − d), d ← d + r (h − m), and the intercept."""
    n = shape.y.size
    for b in range(count):
        part = f4(1) / lanes.rm[b]
        proximal(
            loss.proximal, lanes.m[b, :n], lanes.d[b, :n], shape.c, part, shape.over_relaxation, lanes.alpha[b, :n]
        )
        for k in range(shape.scaled_offsets.size):
            m = lanes.m[b, n + k]
            d = lanes.d[b, n + k]
            short = max(shape.scaled_offsets[k] - (m + m - d), f4(0))
            lanes.alpha[b, n + k] = short
            lanes.d[b, n + k] = d + shape.over_relaxation * (m - d + short)
        if shape.bias:
            lanes.intercept[b] = _mean_product(lanes.d[b], shape.y)


@compiled(nogil=True, fastmath=True)
def _mean_product(d, y):  # type: ignore[no-untyped-def]
    """y'd/n."""
    total = f4(0)
    for i in range(y.size):
        total += d[i] * y[i]
    return total / f4(y.size)


@compiled(nogil=True, fastmath=True)
def _in_box(shape, lanes, count, a):  # type: ignore[no-untyped-def]
    """α of the first `count` nodes, a (B, N): in units of the largest weight, in its box, both classes in balance."""
    y = shape.y
    top = shape.top
    n = shape.y.size
    for b in range(count):
        up = f4(0)
        down = f4(0)
        for i in range(n):
            value = max(lanes.rm[b] * lanes.alpha[b, i], f4(0))
            value = min(value, top[i])
            a[b, i] = value
            if y[i] > 0:
                up += value
            else:
                down += value
        if shape.bias:
            least = min(up, down)
            for_up = least / up if up > TINY else f4(0)
            for_down = least / down if down > TINY else f4(0)
            for i in range(n):
                a[b, i] *= for_up if y[i] > 0 else for_down
        for i in range(n, a.shape[1]):
            a[b, i] = max(lanes.rm[b] * lanes.alpha[b, i], f4(0))


@compiled(nogil=True)
def _evaluate_iterates(shape, rows, lanes, samples, count, a, omega, margins):  # type: ignore[no-untyped-def]
    """Both values at the iterates of the first `count` nodes; the best dual vectors and values are kept.

    g(α) − Σ over the forced of γ − the largest γ that there is room for,  and  R(w) + Σ costs σ + L(A w)

    where γ is what an atom gains at the prices of the rows; the second has what σ misses of them added, and w of those
    over the weights.

    a (B, N) α, omega (B, q) A'α, margins (B, N) of w and the intercept
    """
    c = samples.c
    loss = samples.loss
    n = c.size
    G = shape.first.size - 1
    wide = np.empty(n)
    other = np.empty(n)
    spare = np.zeros(n)
    sums = np.empty(2)
    gain = np.empty(G)
    for b in range(count):
        for i in range(n):
            wide[i] = a[b, i]
        dual(loss.dual, wide, c, sums)
        cost, broken = _end_costs(shape, a[b], margins[b], lanes.used[b] <= EARLY)
        lower = sums[0] + lanes.constant[b] - cost
        lower -= _best_gains(shape, lanes.costs[b], omega[b], lanes.states[b], lanes.room[b], gain)
        if lower > lanes.lower[b]:
            lanes.lower[b] = lower
            copy_to(a[b], lanes.best[b])
            copy_to(lanes.y[b], lanes.best_row_multipliers[b])
        for i in range(n):
            wide[i] = margins[b, i]
        at_margins(loss.at_margins, wide, spare, c, 1e30, other, sums)
        upper = sums[0] + broken + _term_of(shape, lanes.w[b], lanes.sigma[b])
        upper += missed_by(rows.sides, lanes.y[b], lanes.sigma[b], lanes.used[b] <= EARLY) / rows.size
        if upper < lanes.upper[b]:
            lanes.upper[b] = upper


@compiled(nogil=True)
def _best_gains(shape, costs, omega, states, room, gain):  # type: ignore[no-untyped-def]
    """What the forced atoms and the best of the free ones take off g."""
    first = shape.first
    total = 0.0
    k = 0
    for g in range(first.size - 1):
        value = 0.0
        for j in range(first[g], first[g + 1]):
            t = min(max(omega[j], shape.low[j]), shape.high[j])
            value += t * (omega[j] - f4(0.5) * t)
        value -= costs[g]
        if states[g] == INSIDE:
            total += value
        elif states[g] == FREE and value > 0.0:
            gain[k] = value
            k += 1
    if 0 <= room < k:
        if room == 0:
            return total
        least = kth_largest(gain[:k], room)
        count = 0
        for q in range(k):
            if gain[q] > least:
                total += gain[q]
                count += 1
        return total + (room - count) * least
    for q in range(k):
        total += gain[q]
    return total


@compiled(nogil=True)
def _end_costs(shape, a, margins, is_early):  # type: ignore[no-untyped-def]
    """What the ends of rows over the weights take off g, and about what w would lose if it kept those that it breaks.

    a, margins : (N,) α, and those of w;  as in `missed_by`, but that breaking a row is not to be feared for ever
    """
    n = shape.y.size
    cost = 0.0
    lost = 0.0
    for k in range(shape.scaled_offsets.size):
        cost -= np.float64(a[n + k]) * shape.scaled_offsets[k]
        broken = np.float64(shape.scaled_offsets[k] - margins[n + k])
        if broken > 0.0:
            if broken > ALLOWED * shape.sizes[k] and is_early and a[n + k] == 0:
                return cost, np.inf
            lost += COSTS * a[n + k] * broken
    return cost, lost


@compiled(nogil=True)
def missed_by(sides, y, sigma, is_early):  # type: ignore[no-untyped-def]
    """What σ would lose, about, if it kept the rows that it misses: thrice Σ |y_r|·miss; inf where y is not known.

    The value of the relaxation falls by no more than its optimal multipliers times what is given, and y is near these
    after some iterations. An atom of no weight may stand anywhere between 0 and 1, so that a row may always be missed.
    """
    indptr, indices, data, ends = sides.indptr, sides.indices, sides.data, sides.ends
    count = indptr.size - 1
    lost = 0.0
    for r in range(count):
        activity = 0.0
        whole = 0.0
        for s in range(indptr[r], indptr[r + 1]):
            activity += data[s] * sigma[indices[s]]
            whole += abs(data[s]) * sigma[indices[s]]
        miss = max(0.0, activity - ends[r], -ends[count + r] - activity)
        if miss > ALLOWED * whole and (is_early or y[r] == 0.0):
            return np.inf
        lost += COSTS * abs(y[r]) * miss
    return lost


@compiled(nogil=True)
def _term_of(shape, w, sigma):  # type: ignore[no-untyped-def]
    """Σ ½‖w_g‖²/σ_g + costs."""
    first = shape.first
    total = 0.0
    for g in range(first.size - 1):
        if sigma[g] > TINY:
            square = 0.0
            for j in range(first[g], first[g + 1]):
                square += w[j] * w[j]
            total += 0.5 * square / sigma[g]
            if shape.has_costs:
                total += shape.costs[g] * sigma[g]
    return total


@compiled(nogil=True)
def claim_next_nodes(sides, limits, pieces, of, node):  # type: ignore[no-untyped-def]
    """The open nodes of least bound below their levels, as many as fit; they are OUT then. Returns how many.

    of, node : (wanted,) out: their pieces, and their numbers there. Those beyond the cutoff are closed.
    """
    bounds = np.empty(of.size)
    found = 0
    for i in range(limits.size if of.size > 0 else 0):
        piece = lend_arrays(piece_of(pieces, i))
        total = piece.totals[0]
        room, out = _room_of(sides, piece)
        mine = 0
        for t in range(total.nodes):
            one = piece.nodes[t]
            if one.place < 0 or one.why != OPEN:
                continue
            if one.bound >= limits[i].cutoff:
                prune(piece, one)
                continue
            if room <= 0 or (one.bound > limits[i].level and total.solved + out > 0):
                continue
            # Of one piece no more than there is room for: the last of its own goes; of all the last one.
            at = _last_of(of, found, i) if mine == room else min(found, of.size - 1)
            if at < found and bounds[at] <= one.bound:
                continue
            mine += mine < room and not (at < found and of[at] == i)
            found += at == found
            _insert_by_bound(bounds, of, node, at, (one.bound, i, t))
    for f in range(found):
        pieces.nodes[of[f], node[f]].why = OUT
    return found


@compiled(nogil=True)
def _room_of(sides, piece):  # type: ignore[no-untyped-def]
    """How many nodes of a piece may be begun: by its budget, and places of the proof; and how many are OUT."""
    total = piece.totals[0]
    out = 0
    for t in range(total.nodes):
        out += piece.nodes[t].place >= 0 and piece.nodes[t].why == OUT
    each = 3 + (0 if sides.indptr.size == 1 else 6 * piece.states.shape[1])
    return min(piece.nodes.size - 1 - total.solved, (piece.places.size - total.places) // each) - out, out


@compiled(nogil=True)
def _insert_by_bound(bounds, of, node, at, one):  # type: ignore[no-untyped-def]
    """Put a node (bound, piece, number) in place of the one at `at`, and up to where its bound belongs."""
    while at > 0 and bounds[at - 1] > one[0]:
        bounds[at] = bounds[at - 1]
        of[at] = of[at - 1]
        node[at] = node[at - 1]
        at -= 1
    bounds[at], of[at], node[at] = one


@compiled(nogil=True)
def _last_of(of, found, i):  # type: ignore[no-untyped-def]
    """The last place of piece i."""
    for at in range(found - 1, -1, -1):
        if of[at] == i:
            return at
    return 0


@compiled(nogil=True)
def _enter_lanes(shape, M, rows, pieces, own, begin, count):  # type: ignore[no-untyped-def]
    """Put nodes into the lanes from `begin` to `count`, and the dual vectors that they begin with in `room.a`."""
    lanes = own.lanes
    room = own.room
    work = own.work
    for b in range(begin, count):
        i = lanes.of[b]
        t = lanes.node[b]
        node = pieces.nodes[i, t]
        copy_to(pieces.states[i, t], lanes.states[b])
        inside = 0
        for g in range(lanes.states.shape[1]):
            inside += lanes.states[b, g] == INSIDE
        lanes.room[b] = -1 if M < 0 else max(0, M - inside)
        lanes.used[b] = 0
        lanes.threshold_start[b] = f4(0)
        lanes.cardinality_multiplier[b] = f4(0)
        copy_to(pieces.prices[i, node.parent], lanes.y[b])
        drop_idle(rows.sides, lanes.states.shape[1] if M < 0 else M, lanes.states[b], lanes.y[b], work.idle)
        copy_to(lanes.y[b], lanes.best_row_multipliers[b])
        reprice_atoms(rows, lanes, b, work.priced, work.dense)
        lanes.rx[b] = shape.rx
        lanes.rm[b] = shape.rm
        lanes.lower[b] = -np.inf
        lanes.upper[b] = np.inf
        copy_to(room.kept[i, node.start], room.a[b])
        for k in range(shape.scaled_offsets.size):
            room.a[b, shape.y.size + k] /= shape.sizes[k]
        copy_to(room.a[b], lanes.best[b])


@compiled(nogil=True, fastmath=True)
def _warm_start_lanes(shape, pieces, lanes, begin, count, root, omega):  # type: ignore[no-untyped-def]
    """x of the nodes in the lanes from `begin` to `count`, and c = x − A'α/ρ_x, with omega (B, d) = A'α.

    The weights of an atom have the size that the node holds, and the direction of h'(ω).
    """
    first = shape.first
    for b in range(begin, count):
        i = lanes.of[b]
        t = lanes.node[b]
        for g in range(first.size - 1):
            size = f4(pieces.weights[i, t, g] / root)
            square = f4(0)
            for j in range(first[g], first[g + 1]):
                value = min(max(omega[b, j], shape.low[j]), shape.high[j])
                lanes.x[b, j] = value
                square += value * value
            part = abs(size) / np.sqrt(square) if square > TINY * TINY and lanes.states[b, g] != OUTSIDE else f4(0)
            for j in range(first[g], first[g + 1]):
                lanes.x[b, j] *= part
        lanes.intercept[b] = f4(pieces.nodes[i, t].intercept)
        for j in range(lanes.x.shape[1]):
            lanes.c[b, j] = lanes.x[b, j] - omega[b, j] / lanes.rx[b]


@compiled(nogil=True, fastmath=True)
def _warm_margins(lanes, begin, count, a):  # type: ignore[no-untyped-def]
    """d = m + α/ρ_m."""
    for b in range(begin, count):
        part = f4(1) / lanes.rm[b]
        for i in range(a.shape[1]):
            lanes.d[b, i] = lanes.m[b, i] + part * a[b, i]


@compiled(nogil=True, fastmath=True)
def adapt_penalties(lanes, n, first, count):  # type: ignore[no-untyped-def]
    """New penalties for nodes of n samples after `first` iterations, and twice, four and eight times as many.

    ρ_x ← ‖ρ_x u_x‖/‖x‖,  ρ_m ← ‖ρ_m u_m‖/‖m − 1‖: of the sizes of the multipliers and of what they belong to.
    """
    for b in range(count):
        used = lanes.used[b]
        if used != first and used != 2 * first and used != 4 * first and used != 8 * first:
            continue
        old_x = lanes.rx[b]
        old_m = lanes.rm[b]
        new_x = _penalty_of(lanes.x[b], lanes.c[b], f4(0), old_x)
        new_m = _penalty_of(lanes.m[b, :n], lanes.d[b, :n], f4(1), old_m)
        _rescale_multipliers(lanes.x[b], lanes.c[b], old_x / new_x)
        _rescale_multipliers(lanes.m[b], lanes.d[b], old_m / new_m)
        lanes.rx[b] = new_x
        lanes.rm[b] = new_m
        lanes.threshold_start[b] = f4(0)


@compiled(nogil=True, fastmath=True)
def _penalty_of(x, c, away, old):  # type: ignore[no-untyped-def]
    """old·‖c − x‖/‖x − away‖, a tenth of the old penalty at least and ten times it at most."""
    up = f4(0)
    down = f4(0)
    for j in range(x.size):
        up += (c[j] - x[j]) ** 2
        down += (x[j] - away) ** 2
    if not (TINY * TINY < up < HUGE * HUGE and TINY * TINY < down < HUGE * HUGE):
        return old
    return old * min(max(np.sqrt(up / down), f4(0.1)), f4(10))


@compiled(nogil=True, fastmath=True)
def _rescale_multipliers(x, c, factor):  # type: ignore[no-untyped-def]
    """c − x ← factor (c − x): the multipliers in units of another penalty."""
    for j in range(x.size):
        c[j] = x[j] + factor * (c[j] - x[j])


@compiled(nogil=True)
def _move_lane(lanes, to, from_):  # type: ignore[no-untyped-def]
    """Put what is in one lane into another."""
    for rows in (lanes.x, lanes.c, lanes.w, lanes.m, lanes.d, lanes.alpha, lanes.best, lanes.costs):
        copy_to(rows[from_], rows[to])
    for rows in (lanes.y, lanes.best_row_multipliers):
        copy_to(rows[from_], rows[to])
    copy_to(lanes.states[from_], lanes.states[to])
    lanes.intercept[to] = lanes.intercept[from_]
    lanes.rx[to] = lanes.rx[from_]
    lanes.rm[to] = lanes.rm[from_]
    lanes.threshold_start[to] = lanes.threshold_start[from_]
    lanes.room[to] = lanes.room[from_]
    lanes.of[to] = lanes.of[from_]
    lanes.node[to] = lanes.node[from_]
    lanes.used[to] = lanes.used[from_]
    lanes.lower[to] = lanes.lower[from_]
    lanes.upper[to] = lanes.upper[from_]
    lanes.cardinality_multiplier[to] = lanes.cardinality_multiplier[from_]
    lanes.constant[to] = lanes.constant[from_]


@compiled(nogil=True)
def close_up(lanes, done, found, count):  # type: ignore[no-untyped-def]
    """Fill the lanes of nodes that are done with those behind; returns how many lanes are in use."""
    for f in range(found - 1, -1, -1):
        count -= 1
        if done[f] != count:
            _move_lane(lanes, done[f], count)
    return count


@compiled(nogil=True)
def are_done(limits, pieces, size, rules, own, count):  # type: ignore[no-untyped-def]
    """Which of the first `count` nodes are solved far enough, or for too long: their lanes, in `done`; how many.

    Those whose bound is above the cutoff, and whose fate is clear.
    """
    pieces, own = lend_arrays((pieces, own))
    lanes = own.lanes
    found = 0
    for b in range(count):
        limit = limits[lanes.of[b]]
        node = pieces.nodes[lanes.of[b], lanes.node[b]]
        edge = limit.cutoff / size
        lower = lanes.lower[b]
        known = node.bound / size if limit.rises != 0.0 else -np.inf
        is_over = lower >= edge + BEYOND * abs(edge)
        is_clear = _are_clear(lower, lanes.upper[b], edge, known, limit, rules, own.work.steering)
        if is_over or is_clear or lanes.used[b] >= rules.most:
            own.room.done[found] = b
            found += 1
    if found < own.room.done.size:
        own.room.done[found] = -1
    return found


@compiled(nogil=True, inline="always")
def _are_clear(lower, upper, edge, known, limit, rules, steering):  # type: ignore[no-untyped-def]
    """Whether both values of a node tell its fate, as in `mipfs.kernels.boolean_newton`, or meet.

    A node that is far must have risen by a share of what it can still rise to above its parent's bound, `known`.
    """
    short = upper - lower
    if short == np.inf:
        return False
    if short <= rules.near * limit.tol * abs(upper):
        return True
    if edge == np.inf:
        return short <= rules.rough * abs(upper)
    away = edge - upper
    missing = (1.0 - steering.most) * (upper - known)
    return short <= min(limit.share * away, max(steering.little * away, missing))


@compiled(nogil=True)
def _to_duals(samples, grid, shape, limits, own, found):  # type: ignore[no-untyped-def]
    """Put the best dual vectors of nodes that are done on the grid: α, v = α∘y, and g rounded down.

    One that lies far below the cutoff has few bits, as in `mipfs.kernels.node.earn_bound`.
    """
    lanes = own.lanes
    work = own.work
    earned = own.earned
    n = samples.y.size
    alpha = work.alphas[0, :n]
    for f in range(found):
        b = own.room.done[f]
        for i in range(n):
            value = np.float64(lanes.best[b, i])
            work.best[i] = value if value > 0.0 else 0.0
        lost = work.steering.far_below * (limits[lanes.of[b]].cutoff - grid.size * lanes.lower[b])
        bits = work.steering.coarse if grid.coarse <= lost < np.inf else grid.bits
        q = round_dual(samples, grid, work.best[:n], bits, earned.wholes[f, :n], alpha, earned.v[f, :n])
        if shape.scaled_offsets.size > 0:
            most = _largest_end(shape, lanes.best[b]) * grid.size
            over = q + np.int64(np.ceil(np.log2(most))) - MOST_BITS if 0.0 < most < np.inf else 0
            # One exponent serves samples and multipliers: where these overflow MOST_BITS, all go to a coarser grid.
            if over > 0:
                less = work.best[:n], bits - over, earned.wholes[f, :n], alpha, earned.v[f, :n]
                q = round_dual(samples, grid, *less)
        earned.exponents[f] = q
        g = value_below(alpha, grid.c[:n], samples.loss)
        earned.g[f] = _ends_to_grid(shape, lanes.best[b], grid.size, q, earned.wholes[f], earned.v[f], g)


@compiled(nogil=True)
def _largest_end(shape, best):  # type: ignore[no-untyped-def]
    """The largest multiplier of an end, in units of the largest weight."""
    most = 0.0
    for k in range(shape.scaled_offsets.size):
        most = max(most, np.float64(best[shape.y.size + k]) * shape.sizes[k])
    return most


@compiled(nogil=True)
def _ends_to_grid(shape, best, size, q, whole, v, g):  # type: ignore[no-untyped-def]
    """Put the multipliers of the ends of rows over the weights on the grid, behind the samples; g less Σ ν_k o_k.

    One that is no number, or too large for the grid, is 0.
    """
    n = shape.y.size
    total = 0.0
    for k in range(shape.scaled_offsets.size):
        nu = np.float64(best[n + k]) * shape.sizes[k] * size
        one = np.rint(nu * 2.0**q)
        whole[n + k] = np.int64(one) if 0.0 < one <= 2.0**MOST_BITS else 0
        v[n + k] = whole[n + k] * 2.0**-q
        total += v[n + k] * shape.offsets[k]
    return (
        rounded_down(g - total, abs(g) + total, 1 + shape.scaled_offsets.size) if shape.scaled_offsets.size > 0 else g
    )


@compiled(nogil=True)
def scores_above(scoring, first, earned, found):  # type: ignore[no-untyped-def]
    """s of the atoms, rounded up, for v = α∘y of the first `found` dual vectors: see `mipfs.proof.cuts`.

    The rounding error of ω is that of a sum in any order (`Features.omega_error`), over samples and ends: twice γ_(N+4)
    holds the one rounding of each d, too.
    """
    X, center, norms, centers = scoring.X, scoring.center, scoring.norms, scoring.centers
    v = earned.v[:found]
    omega = earned.omega[:found]
    np.dot(v, X, omega)
    for f in range(found):
        total = 0.0
        absolute = 0.0
        square = 0.0
        for i in range(scoring.samples):
            total += v[f, i]
            absolute += abs(v[f, i])
            square += v[f, i] * v[f, i]
        for i in range(scoring.samples, v.shape[1]):
            square += v[f, i] * v[f, i]
        norm = np.sqrt(square)
        for g in range(first.size - 1):
            value = 0.0
            for j in range(first[g], first[g + 1]):
                own = omega[f, j] - center[j] * total
                if scoring.is_ridge:
                    value += own * own
                else:
                    radius = radius_of(v.shape[1], norm, absolute, norms[j], centers[j])
                    value += 2.0 * conjugate_above(own, radius, scoring.low[j], scoring.high[j])
            if scoring.is_ridge:
                value *= scoring.scale[g] * scoring.scale[g]
                radius = scoring.scale[g] * radius_of(v.shape[1], norm, absolute, norms[g], centers[g])
                value += sum_error(value, radius, first[g + 1] - first[g])
            earned.s[f, g] = value


@compiled(nogil=True, inline="always")
def _read_lane(alive, limit, piece, work, lanes, b, rules):  # type: ignore[no-untyped-def]
    """Lay out what a lane says of its node: columns in play, weights, σ, and both values."""
    now = work.now[0]
    newton = work.newton[0]
    first = alive.first
    now.forced, now.count = in_play_of(piece.states[now.node], alive.M, work.columns)
    free = now.count - now.forced
    now.room = free if alive.M < 0 else min(alive.M - now.forced, free)
    now.is_leaf = free == 0
    now.completes = False
    now.missing = 0.0
    now.edge = limit.cutoff
    now.lower = lanes.lower[b]
    now.upper = lanes.upper[b]
    newton.rho = 1.0
    newton.intercept = lanes.intercept[b]
    newton.why = STALLED if lanes.used[b] >= rules.most else 0
    now.undecided = 0
    now.sum = 0.0
    for t in range(now.count):
        g = work.columns[t]
        square = 0.0
        for j in range(first[g], first[g + 1]):
            square += np.float64(lanes.w[b, j]) ** 2
        sigma = 1.0 if t < now.forced else np.float64(lanes.sigma[b, g])
        # The iterations ran away.
        if not (square < np.inf and 0.0 <= sigma <= 1.0):
            square = 0.0
            sigma = 0.0
        work.w[t] = np.sqrt(square)
        work.sigma[t] = sigma
        now.sum += sigma
        now.undecided += min(sigma, 1.0 - sigma) > rules.integral


@compiled(nogil=True, inline="always")
def _earn_bound(given, grid, sides, limit, piece, own, f, of):  # type: ignore[no-untyped-def]
    """The bound that a dual vector and prices earn, and what they fix; left in the first free slot of the piece."""
    work = own.work
    earned = own.earned
    now = work.now[0]
    columns = work.columns[: now.count]
    for t in range(now.count):
        work.s[t] = earned.s[f, columns[t]]
    copy_to(own.lanes.best_row_multipliers[own.room.done[f]], work.y)
    now.constant = price(sides, work.y, given.alive.penalty, work.priced, work.dense)
    g = rounded_down(earned.g[f] + now.constant, abs(earned.g[f]) + abs(now.constant), 2)
    now.bound = node_bound(g, work.s, work.priced, columns, now.forced, now.room, limit.cutoff, work.fixed)
    now.exponent = earned.exponents[f]
    slot = piece.totals[0].duals
    copy_to(earned.wholes[f], work.wholes[slot])
    unit = 2.0 ** -np.float64(now.exponent) / grid.size
    for i in range(earned.wholes.shape[1]):
        own.room.kept[of, slot, i] = earned.wholes[f, i] * unit


@compiled(nogil=True, inline="always")
def _fate_of(now, limit, size, rules, is_late):  # type: ignore[no-untyped-def]
    """What becomes of a node that is not pruned: STUCK, LEAF, or OPEN, which is split."""
    if now.is_leaf:
        return LEAF
    short = now.upper - now.lower
    is_near = short <= rules.stuck * abs(now.upper) or short <= limit.share * (limit.cutoff / size - now.upper)
    return STUCK if is_late and not is_near and np.isfinite(limit.cutoff) else OPEN


@compiled(nogil=True, inline="always")
def _settle_node(branch, given, grid, sides, limits, pieces, own, f):  # type: ignore[no-untyped-def]
    """What becomes of a node that is done: it is pruned, fixed, split (`mipfs.kernels.subtree.fathom`)."""
    lanes, work, alive, rules = own.lanes, own.work, given.alive, given.rules
    b = own.room.done[f]
    of = lanes.of[b]
    limit = limits[of]
    piece = lend_arrays(piece_of(pieces, of))
    now = work.now[0]
    now.node = lanes.node[b]
    node = piece.nodes[now.node]
    node.why = OPEN
    _read_lane(alive, limit, piece, work, lanes, b, rules)
    _earn_bound(given, grid, sides, limit, piece, own, f, of)
    piece.totals[0].steps += lanes.used[b]
    why = _fate_of(now, limit, grid.size, rules, lanes.used[b] >= rules.most)
    if fathom(alive, grid, sides, limit, piece, work, why):
        split_node(branch, alive, sides, limit, piece, work)
