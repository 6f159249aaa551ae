"""What the rows of a selection set fix in a node, in compiled code: see `mipfs.inner.propagation`."""

from __future__ import annotations

import numpy as np

from mipfs.compiled import compiled
from mipfs.kernels.order import sort_up

FREE, INSIDE, OUTSIDE = 0, 1, 2
"""States of an atom in a node."""


@compiled(nogil=True)
def propagate_rows(sides, M, states, atoms, causes):  # type: ignore[no-untyped-def]
    """Fix `states` in place to a fixed point; returns the number of atoms fixed and the side that breaks, or -1.

    Parameters
    ----------
    sides : RowSides
    M : int, the most atoms that may be in
    states : (k,) FREE, INSIDE or OUTSIDE, in and out
    atoms, causes : (k,) out: what was fixed, in order, and the sides behind it
    """
    indptr = sides.indptr
    indices = sides.indices
    data = sides.data
    ends = sides.ends
    base = sides.base
    beyond = sides.beyond
    count = indptr.size - 1
    found = 0
    inside = 0
    for j in range(states.size):
        inside += states[j] == INSIDE
    room = M - inside
    if room < 0:
        return 0, -1
    changed = True
    while changed:
        changed = False
        r = 0
        while r < 2 * count:
            this = r
            r += 1
            if not (np.isfinite(ends[this]) and np.isfinite(base[this])):
                continue
            side = 1.0 if this < count else -1.0
            start = indptr[this % count]
            stop = indptr[this % count + 1]
            least = base[this]
            waiting = 0
            negative = np.empty(stop - start)
            for s in range(start, stop):
                a = side * data[s]
                if states[indices[s]] == INSIDE:
                    least += a
                elif states[indices[s]] == FREE and a < 0.0:
                    negative[waiting] = a
                    waiting += 1
            # The least activity over the node: what is in, and as many of the most negative free entries as have room.
            chosen = negative[:waiting]
            sort_up(chosen, np.empty(waiting, np.int64))
            taken = min(waiting, room)
            for t in range(taken):
                least += chosen[t]
            limit = ends[this] + beyond[this]
            # Even that exceeds the end: this side alone is the Farkas ray.
            if least > limit:
                return found, this
            last = chosen[taken - 1] if taken > 0 else 0.0
            following = chosen[taken] if taken < waiting else 0.0
            # The atom that one more inside pushes out.
            pushed = last if taken == room else 0.0
            for s in range(start, stop):
                j = indices[s]
                a = side * data[s]
                if states[j] != FREE:
                    continue
                is_chosen = a < 0.0 and taken > 0 and a <= last
                # Its other value changes the least activity by the entry, and by what that pushes out or lets in.
                value = -1
                if not is_chosen and least + a - pushed > limit:
                    value = OUTSIDE
                elif is_chosen and least - a + following > limit:
                    value = INSIDE
                if value >= 0:
                    states[j] = value
                    atoms[found] = j
                    causes[found] = this
                    found += 1
                    room -= value == INSIDE
                    # the same row once more
                    changed = True
                    r = this
                    break
    return found, -1


@compiled(nogil=True)
def idle_rows(sides, M, states, idle):  # type: ignore[no-untyped-def]
    """Mark the sides of rows that no selection of a node reaches."""
    indptr, indices, data, ends, most = sides.indptr, sides.indices, sides.data, sides.ends, sides.most
    count = indptr.size - 1
    room = M
    for j in range(states.size):
        room -= states[j] == INSIDE
    for r in range(2 * count):
        side = 1.0 if r < count else -1.0
        start = indptr[r % count]
        stop = indptr[r % count + 1]
        largest = most[r]
        waiting = 0
        positive = np.empty(stop - start)
        for s in range(start, stop):
            a = side * data[s]
            if states[indices[s]] == INSIDE:
                largest += a
            elif states[indices[s]] == FREE and a > 0.0:
                positive[waiting] = a
                waiting += 1
        # The largest activity over the node: what is in, and the largest positive free entries that have room.
        chosen = positive[:waiting]
        sort_up(chosen, np.empty(waiting, np.int64))
        for t in range(max(0, waiting - max(room, 0)), waiting):
            largest += chosen[t]
        idle[r] = largest <= ends[r]
