"""Parts of the tree of `branch`, explored in compiled code: nodes are relaxed, screened, closed and split.

From an open node on, best bound first, until so many nodes are solved. What is left open goes back to the caller, with
a warm start and the dual vector that earned its bound; what is done is a piece of the proof, in its own numbering.
"""

from __future__ import annotations

import numpy as np

from mipfs.compiled import compiled
from mipfs.kernels.boolean_newton import INTERCEPT, LOWER, PROX, RHO, SLICE, STALLED, STEPS, UPPER, WHY, relax
from mipfs.kernels.earned import balance, pack, scores_above, to_grid, value_below
from mipfs.kernels.perspective import IN, classify
from mipfs.kernels.prices import WHOLE, U, drop_idle, missed, price
from mipfs.kernels.prices import step as price_step
from mipfs.kernels.propagation import FREE, INSIDE, OUTSIDE, propagate
from mipfs.kernels.structures import Goal, InPlay

SLICES = 4
"""Calls of `relax` per node at most."""
PROXIMAL, BACK = 0.1, 0.5
"""The proximal weight that a warm start begins with, and its share of the last ρ."""
EXACT = 1e-10
"""Relative gap to which a node is solved whose relaxation is integral and whose fate is not clear; leaves, a tenth."""
OPEN, LEAF, STUCK, DEAR = 0, 1, 2, 3
"""Why a node goes back: it waits; one selection is left and not ruled out; its relaxation stalled far from solved; the
prices of its rows are others' and seem to lose much."""
UNTOUCHED = 0, 0, 0, 1, 1, 1, 0, np.inf, 1
"""The totals of a piece that is its open node alone."""
REFUTED = -2
"""In place of a dual vector: the rows leave a place no selection."""
WORTH = 0.03
"""A step of the prices must promise to close this share of a node's distance to the cutoff; a second brings nothing."""
AGED, LOST = 4, 60.0
"""Nodes on the way down that inherit prices at least, and how many times a node's distance to the cutoff these must
seem to lose until they are found anew."""
COARSE, FAR_BELOW = 16, 3e-3
"""Bits of a dual vector whose node is left open so far below the cutoff that they cost this share of the distance."""
FAR = 0.5
"""A stalled node is stuck where upper − lower is more than this share of the distance to the cutoff."""


@compiled(nogil=True)
def node_bound(g, s, penalty, states, columns, forced, room, cutoff, fixed):  # type: ignore[no-untyped-def]
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
    order = np.argsort(-gains)
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


@compiled(nogil=True)
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
def largest_free(w, cols, states, forced, chosen):  # type: ignore[no-untyped-def]
    """Position of the column to split on: `chosen`, unless it was fixed since; then the free one of largest |w|."""
    if states[cols[chosen]] == FREE:
        return chosen
    largest, found = -1.0, -1
    for t in range(forced, cols.size):
        if states[cols[t]] == FREE and abs(w[t]) > largest:
            largest, found = abs(w[t]), t
    return found


@compiled(nogil=True)
def settle(sides, M, states, place, n_places, fixed, behind, feature, children, dual, causes):  # type: ignore[no-untyped-def]
    """Fix what the rows fix in a node at a place: a chain of places, the other side of each refuted.

    Returns where the node goes on, how many places there are, and whether a broken row refutes it there. `fixed` and
    `behind` (k,) are scratch.
    """
    found, broken = propagate(sides, states.size if M < 0 else M, states, fixed, behind)
    for f in range(found):
        j = fixed[f]
        inside = 1 if states[j] == INSIDE else 0
        feature[place] = j
        children[place, inside], children[place, 1 - inside] = n_places, n_places + 1
        for side in range(2):
            feature[n_places + side], dual[n_places + side] = -1, -1
        dual[n_places + 1], causes[n_places + 1] = REFUTED, behind[f]
        place = n_places
        n_places += 2
    if broken >= 0:
        dual[place], causes[place] = REFUTED, broken
    return place, n_places, broken >= 0


@compiled(nogil=True)
def explore(alive, samples, grid, sides, limits, pieces, first, stop):  # type: ignore[no-untyped-def]
    """Explore from several open nodes, one after the other; each is in place 0 of a piece of its own.

    Parameters
    ----------
    alive, samples, grid, sides : as in `mipfs.kernels.structures`
    pieces : the same, its arrays with a leading axis
    limits : (B, 5) cutoff, from which on nodes are closed; level, above which they are left open; tol and share of
        `Goal`; whether a node is left only with most of what it adds to its parent's bound
    first : (B, n) dual vectors of the nodes
    stop : (1,) int8, set from outside to give up
    """
    Z, X, penalty, center, norms, M = alive
    c, size, weighted, bits, coarse = grid
    kind, n, k, budget = samples.kind, samples.y.size, pieces.states.shape[2], pieces.grids.shape[1] - 1
    rows = sides.indptr.size - 1
    most = pieces.feature.shape[1] - (3 if rows == 0 else 3 + 6 * k)
    columns, s, fixed = np.empty(k, np.int64), np.empty(k), np.empty(k, np.int8)
    w, costs, best, v = np.empty(k), np.empty(k), np.empty(n), np.empty(n)
    classes, tau = np.empty(k, np.int64), np.empty(k)
    alphas, wholes = np.empty((budget + 2, n)), np.empty((budget + 2, n), np.int64)  # one at the end to try
    root = np.sqrt(size)
    priced, dense, sigma = penalty.copy(), np.empty(k), np.empty(k)
    atoms, behind, idle = np.empty(k, np.int64), np.empty(k, np.int64), np.empty(2 * rows, np.bool_)
    y_first, y_next, fixed_first = np.zeros(rows), np.zeros(rows), np.empty(k, np.int8)
    for of in range(first.shape[0]):
        cutoff, level, tol, share = limits[of, 0], limits[of, 1], limits[of, 2], limits[of, 3]
        alphas[0] = first[of]
        states, weights, intercepts, rhos = (
            pieces.states[of],
            pieces.weights[of],
            pieces.intercepts[of],
            pieces.rhos[of],
        )
        bounds, parents, grids, found = pieces.bounds[of], pieces.parents[of], pieces.grids[of], pieces.found[of]
        feature, children, dual, values = pieces.feature[of], pieces.children[of], pieces.dual[of], pieces.values[of]
        causes, ages, prices = pieces.causes[of], pieces.ages[of], pieces.prices[of]
        packed, starts, tops, widths = pieces.packed[of], pieces.ends[of], pieces.tops[of], pieces.widths[of]
        offers, sums, totals = pieces.offers[of], pieces.sums[of], pieces.totals[of]
        n_nodes, n_places, n_duals, n_bytes = 1, np.int64(1), 1, np.int64(0)  # literals are types of their own
        solved, steps, stalled, floor = 0, 0, 0, np.inf
        found[0, 0], found[0, 1] = 0, OPEN
        feature[0], dual[0] = -1, -1
        starts[0], sums[0], n_offers = 0, -1.0, 1
        while solved < budget and n_places <= most and stop[0] == 0:
            node = -1
            for t in range(n_nodes):
                if found[t, 0] >= 0 and found[t, 1] == OPEN and (node < 0 or bounds[t] < bounds[node]):
                    node = t
            if node < 0 or (bounds[node] > level and solved > 0):
                break
            place = found[node, 0]
            if bounds[node] >= cutoff:
                dual[place], found[node, 0] = parents[node], -1
                floor = min(floor, bounds[node])
                continue
            forced, count = in_play_of(states[node], M, columns)
            cols = columns[:count].copy()
            free = count - forced
            room = free if M < 0 else min(M - forced, free)
            leaf = free == 0
            for t in range(count):
                w[t] = weights[node, cols[t]] / root
            state = np.zeros(7)
            state[RHO], state[INTERCEPT], state[PROX] = abs(rhos[node]), intercepts[node], PROXIMAL
            constant, missing, bound, gain, exponent = 0.0, 0.0, -np.inf, 0.0, 0
            lower, upper, edge, total, undecided, chosen = -np.inf, np.inf, cutoff, 0.0, 0, -1
            if rows > 0:
                y_first[:] = prices[parents[node]]
                drop_idle(sides, k if M < 0 else M, states[node], y_first, idle)
                constant = price(sides, y_first, penalty, priced, dense)
            for turn in range(2):  # the second at prices a step further
                edge = cutoff - constant  # of the plain node that the prices make of it
                alpha = alphas[parents[node] if turn == 0 else n_duals] / size
                best[:] = alpha
                for t in range(count):
                    costs[t] = priced[cols[t]] / size
                lower, upper, goal, part = -np.inf, np.inf, tol, share
                if leaf:
                    goal, part = 0.1 * EXACT, 0.0
                known = (bounds[node] - constant) / size if limits[of, 4] != 0.0 else -np.inf
                for _attempt in range(2):
                    for _ in range(SLICES if rhos[node] > 0.0 else 0):
                        trial = np.empty(n)
                        in_play = InPlay(cols, forced, room, costs[:count])
                        rounding = n * 2.0**-bits * min(1.0, 2.0 * edge / size)  # α ≤ 2v where v is its value
                        until = Goal(edge / size + rounding, goal, part, known)
                        relax(Z, samples, in_play, until, w[:count], alpha, trial, state, stop)
                        steps += int(state[STEPS])
                        if state[LOWER] > lower:
                            lower = state[LOWER]
                            best[:] = trial
                        upper = min(upper, state[UPPER])
                        if state[WHY] != STALLED or state[STEPS] < SLICE or stop[0] != 0:
                            break
                    for t in range(count):
                        if not np.isfinite(w[t]):
                            w[:count] = 0.0
                            state[RHO], state[INTERCEPT] = abs(rhos[node]), 0.0
                            break
                    undecided, chosen, total = relaxed_of(
                        w[:count], costs[:count], forced, room, sigma, classes[:count], tau[:count]
                    )
                    if leaf or undecided > 0 or lower * size >= edge or goal <= EXACT:
                        break
                    goal, part = EXACT, 0.0  # integral, and its fate not clear: a full solve
                if stop[0] != 0 and not lower > -np.inf:
                    break
                # the earned bound
                slot = n_duals + turn
                whole = wholes[slot]
                few = COARSE if coarse <= FAR_BELOW * (edge - size * lower) < np.inf else bits
                q = round_dual(samples, grid, best, few, whole, alphas[slot], v)
                scores_above(X, center, norms, cols, v, s)
                g = value_below(alphas[slot], c, kind)
                earned = node_bound(g, s, priced, states[node], cols, forced, room, edge, fixed)
                if rows > 0:
                    earned += constant - 2.0 * U * (abs(earned) + abs(constant))
                if turn == 1:
                    missing = gain - max(0.0, earned - bound)
                    if earned <= bound:
                        fixed[:count] = fixed_first[:count]
                        break
                    y_first[:], alphas[n_duals], wholes[n_duals] = y_next, alphas[slot], whole
                bound, exponent, gain = earned, q, 0.0
                if turn == 1 or rows == 0 or leaf or not bound < cutoff < np.inf or stop[0] != 0:
                    break
                full = M >= 0 and total >= M - WHOLE
                beta = alphas[slot] / size
                gain = price_step(
                    Z, samples, sides, cols, forced, full, w[:count], sigma[:count], beta, state[RHO], size, y_first,
                    atoms, y_next,
                )  # fmt: skip
                if gain < WORTH * (cutoff - bound):
                    break
                fixed_first[:count] = fixed[:count]
                constant = price(sides, y_next, penalty, priced, dense)
                state[RHO], state[PROX] = max(0.5, BACK * state[RHO]), PROXIMAL
            if stop[0] != 0 and not bound > -np.inf:
                break
            solved += 1
            if state[WHY] == STALLED:
                stalled += 1
            grids[n_duals], whole = exponent, wholes[n_duals]
            fixes = 0
            for t in range(forced, count):
                fixes += fixed[t] != FREE
            better = bound > bounds[node]
            if better or fixes > 0:
                starts[n_duals], tops[n_duals - 1], widths[n_duals - 1] = pack(
                    whole, c, kind, grids[n_duals], weighted, packed, n_bytes
                )
                n_bytes = starts[n_duals]
                prices[n_duals] = y_first
                mine = n_duals
                n_duals += 1
            if better:
                bounds[node], parents[node] = bound, mine
            if bounds[node] >= cutoff:
                dual[place], found[node, 0] = parents[node], -1
                floor = min(floor, bounds[node])
                continue
            if not leaf and (solved == 1 or (undecided == 0 and upper * size < edge)):
                place_of = 0 if solved == 1 else n_offers
                n_offers += solved > 1
                offers[place_of] = 0.0
                for t in range(count):
                    offers[place_of, cols[t]] = np.inf if t < forced else abs(w[t]) * root + 1e-3 * sigma[t]
                sums[place_of] = total
            stuck = state[WHY] == STALLED and rhos[node] > 0.0 and np.isfinite(cutoff)
            if stuck and not leaf and upper - lower > FAR * (edge / size - lower):
                found[node, 1] = STUCK
                continue
            if leaf:
                found[node, 1] = LEAF
                for t in range(count):
                    weights[node, cols[t]] = w[t] * root
                intercepts[node] = state[INTERCEPT]
                continue
            if fixes > 0:
                feature[place], children[place, 0], children[place, 1], dual[place] = k, n_places, -1, mine
                if better:
                    values[place] = bounds[node]
                place = n_places
                n_places += 1
                feature[place], dual[place] = -1, -1
                floor = min(floor, cutoff)
                for t in range(forced, count):
                    if fixed[t] != FREE:
                        states[node, cols[t]] = fixed[t]
                if rows > 0:
                    place, n_places, empty = settle(
                        sides, M, states[node], place, n_places, atoms, behind, feature, children, dual, causes
                    )
                    if empty:
                        found[node, 0] = -1
                        continue
            for t in range(count):
                weights[node, cols[t]] = w[t] * root
            intercepts[node] = state[INTERCEPT]
            rhos[node] = max(0.5, BACK * state[RHO])
            found[node, 0] = place
            inside = forced
            still = 0
            for t in range(forced, count):
                inside += states[node, cols[t]] == INSIDE
                still += states[node, cols[t]] == FREE
            if still == 0 or (M >= 0 and inside >= M):
                continue  # one selection is left: it comes again as a leaf
            left = LOST * (cutoff - bounds[node])
            if rows > 0 and ages[node] >= AGED and max(missing, missed(sides, y_first, cols, sigma, dense)) > left:
                found[node, 1] = DEAR
                continue
            j = cols[largest_free(w, cols, states[node], forced, chosen)]
            child = n_nodes
            n_nodes += 1
            states[child], weights[child] = states[node], weights[node]
            intercepts[child], rhos[child], bounds[child], parents[child] = (
                intercepts[node], rhos[node], bounds[node], parents[node]
            )  # fmt: skip
            states[node, j], states[child, j] = OUTSIDE, INSIDE
            feature[place], dual[place], values[place] = j, parents[node], bounds[node]
            children[place, 0], children[place, 1] = n_places, n_places + 1
            for side in range(2):
                feature[n_places + side], dual[n_places + side] = -1, -1
            found[node, 0], found[child, 0], found[child, 1] = n_places, n_places + 1, OPEN
            ages[node] += 1
            ages[child] = ages[node]
            n_places += 2
            for side in range(2 if rows > 0 else 0):
                one = node if side == 0 else child
                found[one, 0], n_places, empty = settle(
                    sides, M, states[one], found[one, 0], n_places, atoms, behind, feature, children, dual, causes
                )
                if empty:
                    found[one, 0] = -1
        totals[0], totals[1], totals[2], totals[3] = solved, steps, stalled, n_places
        totals[4], totals[5], totals[6], totals[7], totals[8] = n_duals, n_nodes, n_bytes, floor, n_offers
