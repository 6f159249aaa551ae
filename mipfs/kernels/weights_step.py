"""The proximal step of the weights of nodes that are relaxed many at a time (`mipfs.kernels.batch`).

    min over w and σ of ½ Σ ‖w_g‖²/σ_g + c'σ + ½ρ‖w − v‖²,   0 ≤ σ ≤ 1, Σσ ≤ K, w within its ends, l ≤ Aσ ≤ u

At a multiplier λ of the cardinality row every σ_g is a function of its own price λ + c_g; λ comes from Newton's steps
between ends. The user's rows join the prices: at multipliers y (positive at l, negative at u) they are c − A'y, and y
climbs towards the maximum of the dual function: along one row after the other, to where a'σ meets its end, then by a
Newton step along all that are not 0, where that rises. Every iteration begins with the y of the one before; so the
iterations find w, σ and y together.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mipfs.compiled import compiled
from mipfs.kernels.newton import cholesky_in_place, cholesky_solve
from mipfs.kernels.prices import price
from mipfs.kernels.propagation import FREE, INSIDE
from mipfs.kernels.vectors import copy_to

f4 = np.float32
SEARCHES = 30
"""Steps at most of the search for the multiplier of the cardinality row."""
TINY, HUGE = f4(1e-15), f4(1e18)
"""Norms and multipliers that count as 0, and what divides by them: float32 has no square of less."""
EXACT = f4(1e-4)
"""By how much Σσ may miss the room that there is."""
TURNS = 8
"""Evaluations at most of a row where its multiplier is looked for."""
MISSED = 1e-4
"""By how much a row may miss its end then."""
BEYOND = 1.01
"""How far beyond the change of the last σ a multiplier is looked for, of the way there."""
FARTHEST = 1e9
"""A multiplier at most, in the kernel's units: where no σ keeps a row it would grow for ever."""
MOST_TOGETHER, LENGTHS, HELD = 64, 4, 0.05
"""Multipliers at most that take a step together; lengths of it that are tried; what atoms at 0 or 1 add to its
curvature, of what they would if they had to change on the whole way."""
SHORTER, EASED, FIXED = 0.25, 1.0001, 1e30
"""By how much each length is shorter; what the curvature's diagonal is multiplied by; what it is where nothing can
change."""


class SigmaRows(NamedTuple):
    """The user's rows over σ: `mipfs.kernels.structures.RowSides`, costs c (G,), and the unit of the objective."""

    sides: Any
    penalty: npt.NDArray[Any]
    size: float


@compiled(nogil=True, fastmath=True)
def scale_for(norm, room, r, start):  # type: ignore[no-untyped-def]
    """The s at which Σ clip(‖v_g‖ s − r, 0, 1) over norms (k,) is `room` < k: Newton's steps between ends.

    The sum is piecewise linear in s and rises. Where at most `room` norms are not 0, these have σ = 1.
    """
    most = f4(0)
    there = 0
    for q in range(norm.size):
        most = max(most, norm[q])
        there += norm[q] > TINY
    if there <= room:
        return HUGE
    low = r / most
    high = HUGE
    s = start if low < start < high else (f4(0.5) + r) / most
    for _ in range(SEARCHES):
        total = f4(0)
        bend = f4(0)
        for q in range(norm.size):
            z = norm[q] * s - r
            total += min(max(z, f4(0)), f4(1))
            bend += norm[q] if z > 0 and z < 1 else f4(0)
        over = total - f4(room)
        if abs(over) <= EXACT:
            break
        if over > 0:
            high = s
        else:
            low = s
        s = s - over / bend if bend > TINY else f4(-1)
        if not (s > low and s < high):
            s = min(f4(4) * low, f4(0.5) * (low + high))
    return s


@compiled(nogil=True, fastmath=True)
def sigma_at(value, size, end, cost, rx):  # type: ignore[no-untyped-def]
    """σ of an atom at the multiplier `value` of the cardinality row: that with h(σ) = value + cost, in [0, 1].

    h(σ) = ρ_x (v − σt) t − ½t², t = min(ρ_x v/(1 + ρ_xσ), end) for size v ≥ 0: it falls in σ, and is ½t² below the end.
    """
    L = value + cost
    if L <= TINY * TINY:
        return f4(1)
    tau = np.sqrt(f4(2) * L)
    if tau <= end:
        z = size / tau - f4(1) / rx
    elif end > TINY:
        z = (size - (L + f4(0.5) * end * end) / (rx * end)) / end
    else:
        z = f4(0)
    return min(max(z, f4(0)), f4(1))


@compiled(nogil=True, fastmath=True)
def bend_at(value, size, end, cost, rx):  # type: ignore[no-untyped-def]
    """−dσ/dλ of an atom with 0 < σ < 1."""
    L = value + cost
    tau = np.sqrt(f4(2) * L)
    return size / (tau * f4(2) * L) if tau <= end else f4(1) / (rx * end * end)


@compiled(nogil=True, fastmath=True)
def multiplier_for(norm, end, cost, room, rx, start):  # type: ignore[no-untyped-def]
    """The multiplier at which the σ of atoms add up to `room`, or less where they jump there; 0 where they need none.

    Newton's steps between ends, from `start` on.
    """
    low = f4(0)
    high = f4(0)
    is_needed = False
    for q in range(norm.size):
        high = max(high, f4(0.5) * (rx * norm[q]) ** 2 - cost[q], -cost[q])
    value = start if f4(0) < start < high else f4(0)
    for _ in range(SEARCHES):
        total = f4(0)
        bend = f4(0)
        for q in range(norm.size):
            z = sigma_at(value, norm[q], end[q], cost[q], rx)
            total += z
            if z > 0 and z < 1:
                bend += bend_at(value, norm[q], end[q], cost[q], rx)
        over = total - f4(room)
        if abs(over) <= EXACT or (over <= 0 and value == 0):
            return value
        if over > 0:
            low = value
            is_needed = True
        else:
            high = value
        value = value + over / bend if bend > TINY else f4(-1)
        if not (value > low and value < high):
            value = f4(0.5) * (low + high) if is_needed else f4(0)
    return high


@compiled(nogil=True)
def weights_step(shape, rows, lanes, count):  # type: ignore[no-untyped-def]
    """w = prox_R(2x − c) of the first `count` nodes, and c ← c + r (w − x); rows : SigmaRows."""
    G = shape.first.size - 1
    has_rows = rows.sides.indptr.size > 1
    norm = np.empty(G, f4)
    free = np.empty(G, f4)
    end = np.empty(G, f4)
    cost = np.empty(G, f4)
    ends = np.empty(G, f4)
    dense = np.empty(G)
    priced = np.empty(G)
    has_price = shape.has_ends or shape.has_costs or has_rows
    for b in range(count):
        x = lanes.x[b]
        c = lanes.c[b]
        w = lanes.w[b]
        k = _norms_and_ends(shape, lanes.states[b], x, c, w, (norm, ends, free, end))
        if has_price:
            _costs_of(lanes, b, cost)
        _sigma_of_node(lanes, b, norm, has_price, free[:k], end[:k], cost[:k])
        if has_rows and _price_rows(rows, lanes, b, norm, ends, priced, dense):
            _costs_of(lanes, b, cost)
            _sigma_of_node(lanes, b, norm, has_price, free[:k], end[:k], cost[:k])
        _over_relaxed_weights(shape, lanes.rx[b], x, c, w, lanes.sigma[b])


@compiled(nogil=True)
def _costs_of(lanes, b, cost):  # type: ignore[no-untyped-def]
    """The prices of the free atoms of a node, in `cost`."""
    k = 0
    for g in range(cost.size):
        if lanes.states[b, g] == FREE:
            cost[k] = lanes.costs[b, g]
            k += 1


@compiled(nogil=True)
def reprice_atoms(rows, lanes, b, priced, dense):  # type: ignore[no-untyped-def]
    """Prices c − A'y of the atoms of a node, and what its rows add to its value, at its multipliers."""
    lanes.constant[b] = price(rows.sides, lanes.y[b], rows.penalty, priced, dense) / rows.size
    for g in range(priced.size):
        lanes.costs[b, g] = f4(priced[g] / rows.size)


@compiled(nogil=True)
def _price_rows(rows, lanes, b, norm, ends, priced, dense):  # type: ignore[no-untyped-def]
    """Climb from the multipliers of the rows of a node: along one after the other, then along all; whether any moves.

    norm, ends : (G,) sizes of the weights of atoms, and their ends;  priced, dense : (G,) scratch
    """
    sides = rows.sides
    changes = False
    count = sides.indptr.size - 1
    for r in range(count):
        before = lanes.y[b, r] / rows.size
        after = _row_price(sides, lanes, b, norm, ends, r, before, (-sides.ends[count + r], sides.ends[r]))
        if after != before:
            changes = True
            lanes.y[b, r] = after * rows.size
            for s in range(sides.indptr[r], sides.indptr[r + 1]):
                lanes.costs[b, sides.indices[s]] -= f4(sides.data[s] * (after - before))
    if changes:
        reprice_atoms(rows, lanes, b, priced, dense)
    active = np.count_nonzero(lanes.y[b])
    is_several = 0 < active <= MOST_TOGETHER and active + (lanes.cardinality_multiplier[b] > 0) > 1
    if is_several and _climb_together(rows, lanes, b, norm, ends, priced, dense):
        changes = True
    return changes


@compiled(nogil=True)
def _climb_together(rows, lanes, b, norm, ends, priced, dense):  # type: ignore[no-untyped-def]
    """A Newton step of the multipliers that are not 0, the cardinality's among them; whether it raises the value."""
    first = 1 if lanes.cardinality_multiplier[b] > 0 else 0
    which = np.flatnonzero(lanes.y[b])
    active = which.size
    step, S = _multiplier_gradient(rows, lanes, b, norm, ends, which, first)
    if np.abs(step).max() <= MISSED:
        return False
    cholesky_in_place(S)
    cholesky_solve(S, step)
    value, y = lanes.cardinality_multiplier[b], lanes.y[b].copy()
    before, share = _value_at(lanes, b, norm, ends), 1.0
    for _ in range(LENGTHS if np.all(np.isfinite(step)) else 0):
        lanes.cardinality_multiplier[b] = max(f4(0), value + f4(share * step[0])) if first == 1 else value
        for a in range(active):
            r = which[a]
            moved = y[r] + share * step[first + a] * rows.size
            lanes.y[b, r] = moved if 0.0 < moved * np.sign(y[r]) < FARTHEST * rows.size else 0.0
        reprice_atoms(rows, lanes, b, priced, dense)
        if _value_at(lanes, b, norm, ends) > before:
            return True
        share *= SHORTER
    lanes.cardinality_multiplier[b] = value
    copy_to(y, lanes.y[b])
    reprice_atoms(rows, lanes, b, priced, dense)
    return False


@compiled(nogil=True)
def _multiplier_gradient(rows, lanes, b, norm, ends, which, first):  # type: ignore[no-untyped-def]
    """The gradient of the value in λ, where `first` is 1, and the multipliers `which`; and its curvature, negated."""
    sides = rows.sides
    active = which.size
    count = sides.indptr.size - 1
    gradient = np.zeros(first + active)
    S = np.zeros((first + active, first + active))
    B = np.zeros((first + active, norm.size))
    bend = np.zeros(norm.size)
    value = lanes.cardinality_multiplier[b]
    rx = lanes.rx[b]
    for a in range(active):
        r = which[a]
        gradient[first + a] = sides.ends[r] if lanes.y[b, r] < 0.0 else -sides.ends[count + r]
        for s in range(sides.indptr[r], sides.indptr[r + 1]):
            B[first + a, sides.indices[s]] = sides.data[s]
    if first == 1:
        B[0] = -1.0
        gradient[0] = -lanes.room[b]
    for g in range(norm.size):
        state = lanes.states[b, g]
        sigma = f4(0)
        if state == FREE:
            sigma = sigma_at(value, norm[g], ends[g], lanes.costs[b, g], rx)
            if sigma > 0 and sigma < 1:
                bend[g] = bend_at(value, norm[g], ends[g], lanes.costs[b, g], rx)
            else:
                away = abs(np.float64(value + lanes.costs[b, g])) + 0.5 * np.float64(rx * norm[g]) ** 2
                bend[g] = HELD / away if away > TINY else 0.0
        elif state == INSIDE:
            sigma = f4(1)
        for a in range(first + active):
            gradient[a] -= B[a, g] * sigma if a >= first or state == FREE else 0.0
    for g in range(norm.size):
        for a in range(first + active if bend[g] > 0.0 else 0):
            for other in range(a + 1):
                S[a, other] += bend[g] * B[a, g] * B[other, g]
    for a in range(first + active):
        S[a, a] = EASED * S[a, a] if S[a, a] > 0.0 else FIXED
        for other in range(a):
            S[other, a] = S[a, other]
    return gradient, S


@compiled(nogil=True)
def _value_at(lanes, b, norm, ends):  # type: ignore[no-untyped-def]
    """The dual function of the proximal step, at λ and the prices of a node."""
    value = lanes.cardinality_multiplier[b]
    rx = lanes.rx[b]
    total = lanes.constant[b] - (0.0 if lanes.room[b] < 0 else np.float64(value) * lanes.room[b])
    for g in range(norm.size):
        cost = np.float64(lanes.costs[b, g])
        if lanes.states[b, g] == INSIDE:
            total += cost
        elif lanes.states[b, g] == FREE:
            sigma = np.float64(sigma_at(value, norm[g], ends[g], lanes.costs[b, g], rx))
            t = min(rx * norm[g] / (1.0 + rx * sigma), np.float64(ends[g]))
            total += 0.5 * sigma * t * t + 0.5 * rx * (norm[g] - sigma * t) ** 2 + (value + cost) * sigma
    return total


@compiled(nogil=True)
def _row_price(sides, lanes, b, norm, ends, r, before, asked):  # type: ignore[no-untyped-def]
    """The multiplier of row r at which a'σ lies within its ends `asked`, all else as it is: 0, or where it meets one.

    a'σ rises with it: Newton's steps, between ends where no σ changes any more.
    """
    total, bend, reach = _activity_at(sides, lanes, b, norm, ends, r, 0.0)
    low, high = asked
    t = before
    if t < 0.0 or (t == 0.0 and total > high):
        target = high
        least = before - reach
        most = 0.0
    elif t > 0.0 or total < low:
        target = low
        least = 0.0
        most = before + reach
    else:
        return t
    size = MISSED * (1.0 + abs(target))
    for _ in range(TURNS):
        if abs(total - target) <= size:
            break
        if total > target:
            most = t
        else:
            least = t
        t = t - (total - target) / bend if bend > 0.0 else np.inf
        if not least < t < most:
            # 0, where the sign ends, is a multiplier itself; the far end is only a bound, so the middle is tried.
            t = 0.0 if (t <= least == 0.0 or (t >= most == 0.0 and t < np.inf)) else 0.5 * (least + most)
        total, bend, _ = _activity_at(sides, lanes, b, norm, ends, r, t - before)
        if t == 0.0 and low <= total <= high:
            break
    return min(max(t, -FARTHEST), FARTHEST)


@compiled(nogil=True)
def _activity_at(sides, lanes, b, norm, ends, r, more):  # type: ignore[no-untyped-def]
    """a'σ of row r where its multiplier is `more` larger than the prices say, its slope, and how far σ changes."""
    total = 0.0
    slope = 0.0
    reach = 0.0
    value = lanes.cardinality_multiplier[b]
    rx = lanes.rx[b]
    for s in range(sides.indptr[r], sides.indptr[r + 1]):
        g = sides.indices[s]
        data = sides.data[s]
        if lanes.states[b, g] != FREE:
            total += data if lanes.states[b, g] == INSIDE else 0.0
            continue
        cost = f4(lanes.costs[b, g] - data * more)
        sigma = sigma_at(value, norm[g], ends[g], cost, rx)
        total += data * sigma
        if sigma > 0 and sigma < 1:
            slope += data * data * bend_at(value, norm[g], ends[g], cost, rx)
        own = abs(value + lanes.costs[b, g]) + f4(0.5) * (rx * norm[g]) ** 2
        reach = max(reach, BEYOND * own / abs(data) if data != 0.0 else 0.0)
    return total, slope, reach


@compiled(nogil=True, fastmath=True)
def _norms_and_ends(shape, states, x, c, w, scratch):  # type: ignore[no-untyped-def]
    """w = 2x − c within the signs; norms and ends of all atoms, and of the free ones; how many these are."""
    first = shape.first
    low = shape.low
    high = shape.high
    norm, ends, free, end = scratch
    for j in range(x.size):
        v = f4(2) * x[j] - c[j]
        w[j] = f4(0) if (v > 0 and high[j] <= 0) or (v < 0 and low[j] >= 0) else v
    k = 0
    for g in range(norm.size):
        total = f4(0)
        for j in range(first[g], first[g + 1]):
            total += w[j] * w[j]
        norm[g] = np.sqrt(total)
        at = first[g]
        ends[g] = (high[at] if w[at] > 0 else -low[at]) if shape.has_ends else HUGE * HUGE
        if states[g] == FREE:
            free[k] = norm[g]
            end[k] = ends[g]
            k += 1
    return k


@compiled(nogil=True, fastmath=True)
def _sigma_of_node(lanes, b, norm, has_price, free, end, cost):  # type: ignore[no-untyped-def]
    """σ of all atoms of a node; free, end, cost : (k,) of the free ones."""
    states = lanes.states[b]
    room = lanes.room[b]
    rx = lanes.rx[b]
    sigma = lanes.sigma[b]
    k = free.size
    r = f4(1) / rx
    most = k if room < 0 else min(room, k)
    s = HUGE
    value = f4(0)
    if has_price and most > 0:
        value = multiplier_for(free, end, cost, most, rx, lanes.cardinality_multiplier[b])
        lanes.cardinality_multiplier[b] = value
    elif 0 < most < k:
        s = scale_for(free, most, r, lanes.threshold_start[b])
        lanes.threshold_start[b] = s
    k = 0
    for g in range(norm.size):
        if states[g] != FREE:
            sigma[g] = f4(1) if states[g] == INSIDE else f4(0)
            continue
        if most <= 0:
            sigma[g] = f4(0)
        elif has_price:
            sigma[g] = sigma_at(value, free[k], end[k], cost[k], rx)
        else:
            sigma[g] = f4(1) if most == free.size else min(max(free[k] * s - r, f4(0)), f4(1))
        k += 1


@compiled(nogil=True, fastmath=True)
def _over_relaxed_weights(shape, rx, x, c, w, sigma):  # type: ignore[no-untyped-def]
    """w of 2x − c and σ, and c ← c + r (w − x)."""
    first = shape.first
    low = shape.low
    high = shape.high
    for g in range(sigma.size):
        part = rx / (f4(1) + rx * sigma[g])
        for j in range(first[g], first[g + 1]):
            t = part * w[j]
            if shape.has_ends:
                t = min(max(t, low[j]), high[j])
            w[j] = sigma[g] * t
    for j in range(x.size):
        c[j] += shape.over_relaxation * (w[j] - x[j])
