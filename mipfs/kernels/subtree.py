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
from mipfs.kernels.propagation import FREE, INSIDE, OUTSIDE, propagate
from mipfs.kernels.structures import Goal, InPlay

U = 2.0**-53
"""Unit round-off."""
SLICES = 4
"""Calls of `relax` per node at most."""
PROXIMAL, BACK = 0.1, 0.5
"""The proximal weight that a warm start begins with, and its share of the last ρ."""
WHOLE = 1e-6
"""Distance from 0 or 1 up to which a relaxed σ_j counts as integral."""
EXACT = 1e-10
"""Relative gap to which a node is solved whose relaxation is integral and whose fate is not clear; leaves, a tenth."""
OPEN, LEAF, STUCK, DEAR = 0, 1, 2, 3
"""Why a node goes back: it waits; one selection is left and not ruled out; its relaxation stalled far from solved; the
prices of its rows are others' and seem to lose much."""
REFUTED = -2
"""In place of a dual vector: the rows leave a place no selection."""
AGED, LOST = 2, 6.0
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
def missed(sides, y, sigma):  # type: ignore[no-untyped-def]
    """What better multipliers of the rows could add at most: by how much σ misses the ends that y pays for."""
    indptr, indices, data, ends = sides.indptr, sides.indices, sides.data, sides.ends
    count = indptr.size - 1
    total = 0.0
    for r in range(count):
        if y[r] != 0.0:
            activity = 0.0
            for s in range(indptr[r], indptr[r + 1]):
                activity += data[s] * sigma[indices[s]]
            total += abs(y[r]) * abs((ends[r] if y[r] < 0.0 else -ends[count + r]) - activity)
    return total


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
def explore(alive, samples, grid, sides, priced, limits, pieces, first, stop):  # type: ignore[no-untyped-def]
    """Explore from several open nodes, one after the other; each is in place 0 of a piece of its own.

    Parameters
    ----------
    alive, samples, grid, sides, priced : as in `mipfs.kernels.structures`
    pieces : the same, its arrays with a leading axis
    limits : (B, 5) cutoff, from which on nodes are closed; level, above which they are left open; tol and share of
        `Goal`; whether a node is left only with most of what it adds to its parent's bound
    first : (B, n) dual vectors of the nodes
    stop : (1,) int8, set from outside to give up
    """
    Z, X, center, norms, M = alive
    y, bias, kind = samples.y, samples.bias, samples.kind
    c, size, weighted, bits, coarse = grid
    k, n, budget = pieces.states.shape[2], y.size, pieces.grids.shape[1] - 1
    rows = sides.indptr.size - 1
    most = pieces.feature.shape[1] - (3 if rows == 0 else 3 + 6 * k)
    columns, s, fixed = np.empty(k, np.int64), np.empty(k), np.empty(k, np.int8)
    w, costs, best, v = np.empty(k), np.empty(k), np.empty(n), np.empty(n)
    classes, tau = np.empty(k, np.int64), np.empty(k)
    alphas, wholes = np.empty((budget + 1, n)), np.empty((budget + 1, n), np.int64)
    root, rounding = np.sqrt(size), n * 2.0**-bits
    sigmas, atoms, behind = np.empty(k), np.empty(k, np.int64), np.empty(k, np.int64)
    for of in range(first.shape[0]):
        cutoff, level, tol, share = limits[of, 0], limits[of, 1], limits[of, 2], limits[of, 3]
        penalty, constant = priced.penalty[of], priced.constant[of]
        edge = cutoff - constant  # of the plain node
        alphas[0] = first[of]
        states, weights, intercepts, rhos = (
            pieces.states[of],
            pieces.weights[of],
            pieces.intercepts[of],
            pieces.rhos[of],
        )
        bounds, parents, grids, found = pieces.bounds[of], pieces.parents[of], pieces.grids[of], pieces.found[of]
        feature, children, dual, values = pieces.feature[of], pieces.children[of], pieces.dual[of], pieces.values[of]
        causes, ages = pieces.causes[of], pieces.ages[of]
        packed, starts, tops, widths = pieces.packed[of], pieces.ends[of], pieces.tops[of], pieces.widths[of]
        offers, sums, totals = pieces.offers[of], pieces.sums[of], pieces.totals[of]
        n_nodes, n_places, n_duals, n_bytes = 1, 1, 1, 0
        solved, steps, stalled, floor = 0, 0, 0, np.inf
        found[0, 0], found[0, 1] = 0, OPEN
        feature[0], dual[0] = -1, -1
        starts[0], sums[0], n_offers = 0, -1.0, 1
        ages[0] = priced.age[of]
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
            # the columns in play, forced ones first
            forced, count = 0, 0
            for j in range(k):
                if states[node, j] == INSIDE:
                    columns[forced] = j
                    forced += 1
            count = forced
            whole_leaf = M >= 0 and forced >= M
            if not whole_leaf:
                for j in range(k):
                    if states[node, j] == FREE:
                        columns[count] = j
                        count += 1
            cols = columns[:count].copy()
            free = count - forced
            room = free if M < 0 else min(M - forced, free)
            leaf = free == 0
            for t in range(count):
                w[t] = weights[node, cols[t]] / root
                costs[t] = penalty[cols[t]] / size
            state = np.zeros(7)
            alpha = alphas[parents[node]] / size
            state[RHO], state[INTERCEPT], state[PROX] = abs(rhos[node]), intercepts[node], PROXIMAL
            lower, upper, goal, part = -np.inf, np.inf, tol, share
            best[:] = alpha
            if leaf:
                goal, part = 0.1 * EXACT, 0.0
            undecided, chosen = 0, -1
            known = (bounds[node] - constant) / size if limits[of, 4] != 0.0 else -np.inf
            for _attempt in range(2):
                for _ in range(SLICES if rhos[node] > 0.0 else 0):
                    trial = np.empty(n)
                    in_play = InPlay(cols, forced, room, costs[:count])
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
                classify(w[:count], costs[:count], forced, room, classes[:count], tau[:count])
                undecided, chosen, largest, total = 0, -1, -1.0, float(forced)
                for t in range(forced, count):
                    sigma = 1.0 if classes[t] == IN else min(1.0, abs(w[t]) / max(tau[t], 1e-300))
                    total += sigma
                    unclear = min(sigma, 1.0 - sigma) > WHOLE
                    if unclear and undecided == 0:
                        largest = -1.0
                    undecided += unclear
                    if (unclear or undecided == 0) and abs(w[t]) > largest:
                        largest, chosen = abs(w[t]), t
                if leaf or undecided > 0 or lower * size >= edge or goal <= EXACT:
                    break
                goal, part = EXACT, 0.0  # integral, and its fate not clear: a full solve
            if stop[0] != 0 and not lower > -np.inf:
                break
            solved += 1
            if state[WHY] == STALLED:
                stalled += 1
            # the earned bound
            for i in range(n):
                v[i] = best[i] * size
            whole = wholes[n_duals]
            few = COARSE if coarse <= FAR_BELOW * (edge - size * lower) < np.inf else bits
            grids[n_duals] = to_grid(v, c, kind, few, size, whole)
            if bias:
                balance(whole, c, kind, grids[n_duals], y)
            step = 2.0 ** -grids[n_duals]
            for i in range(n):
                alphas[n_duals, i] = whole[i] * step
                v[i] = alphas[n_duals, i] * y[i]
            scores_above(X, center, norms, cols, v, s)
            g = value_below(alphas[n_duals], c, kind)
            bound = node_bound(g, s, penalty, states[node], cols, forced, room, edge, fixed)
            if constant != 0.0:
                bound += constant - 2.0 * U * (abs(bound) + abs(constant))
            fixes = 0
            for t in range(forced, count):
                fixes += fixed[t] != FREE
            better = bound > bounds[node]
            if better or fixes > 0:
                starts[n_duals], tops[n_duals - 1], widths[n_duals - 1] = pack(
                    whole, c, kind, grids[n_duals], weighted, packed, n_bytes
                )
                n_bytes = starts[n_duals]
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
                    sigma = 1.0 if t < forced or classes[t] == IN else min(1.0, abs(w[t]) / max(tau[t], 1e-300))
                    offers[place_of, cols[t]] = np.inf if t < forced else abs(w[t]) * root + 1e-3 * sigma
                sums[place_of] = total
            stuck = state[WHY] == STALLED and rhos[node] > 0.0 and np.isfinite(cutoff)
            if stuck and not leaf and upper - lower > FAR * (edge / size - lower):
                found[node, 1] = STUCK
                continue
            lost = 0.0
            if rows > 0 and not leaf and ages[node] >= AGED:
                sigmas[:] = 0.0
                for t in range(count):
                    sigmas[cols[t]] = (
                        1.0 if t < forced or classes[t] == IN else min(1.0, abs(w[t]) / max(tau[t], 1e-300))
                    )
                lost = missed(sides, priced.y[of], sigmas)
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
            if lost > LOST * (cutoff - bounds[node]):
                found[node, 1] = DEAR
                continue
            # split on the largest |w| among the fractional that are still free
            if states[node, cols[chosen]] != FREE:
                largest, chosen = -1.0, -1
                for t in range(forced, count):
                    if states[node, cols[t]] == FREE and abs(w[t]) > largest:
                        largest, chosen = abs(w[t]), t
            j = cols[chosen]
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
