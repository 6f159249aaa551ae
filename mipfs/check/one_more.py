"""(leaf) of many nodes at once, and with one atom more fixed to 0 or 1.

With the k atoms of most negative cost taken, and room for no more, the bounds given σ_j = 0 and 1 of all j come from
the sums of these but one. Sums are rounded down by what their terms allow.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mipfs.check.rounding import Array, Integers, Mask, States, U


class GivenEach(NamedTuple):
    """Bounds of some rows.

    Attributes
    ----------
    whole : (B,) over all selections of a row
    at_one, at_zero : (B, p) over those with σ_j = 1 and σ_j = 0; ∞ where there are none
    """

    whole: Array
    at_one: Array
    at_zero: Array


class LeastOver(NamedTuple):
    """(leaf) of some rows, and the atoms that it takes.

    Attributes
    ----------
    whole : (B,) rounded down
    order, best, taken : (B, w) the free atoms of most negative cost, what each adds, 0 from where they cost, and
        whether it is taken
    room : (B,) how many may be taken
    fixed : (B,) what the rest adds
    slack : (B,) what the sums are off at most
    """

    whole: Array
    order: Integers
    best: Array
    taken: Mask
    room: Integers
    fixed: Array
    slack: Array


def _most_lost(M: int) -> float:
    """What a sum over a selection may be off, relative to the sizes of its terms."""
    return 2.02 * U * (M + 8)


def least_over(base: Array, cost: Array, state: States, M: int) -> LeastOver:
    """(leaf) of some rows; parameters as of `given_each`."""
    count, p = state.shape
    inside, free = state == 1, state < 0
    room = np.minimum(M - inside.sum(axis=1), p)
    width = min(p, int(room.max(initial=0)) + 1)
    gains = np.where(free & (cost < 0.0), cost, 0.0)
    order = np.argpartition(gains, width - 1, axis=1)[:, :width] if width < p else np.tile(np.arange(p), (count, 1))
    order = np.take_along_axis(order, np.argsort(np.take_along_axis(gains, order, axis=1), axis=1, kind="stable"), 1)
    best = np.take_along_axis(gains, order, axis=1)
    taken = (np.arange(width) < room[:, None]) & (best < 0.0)
    held = np.where(inside, cost, 0.0)
    fixed = base + held.sum(axis=1)
    slack = _most_lost(min(M, p)) * (np.abs(base) + np.abs(held).sum(axis=1) + np.abs(best).sum(axis=1))
    whole = fixed + np.where(taken, best, 0.0).sum(axis=1) - slack
    return LeastOver(np.where(np.isnan(whole), -np.inf, whole), order, best, taken, room, fixed, slack)


def given_each(base: Array, cost: Array, state: States, M: int) -> GivenEach:
    """(leaf) of some rows as they are, and with one atom more fixed.

    Parameters
    ----------
    base : (B,) what does not depend on σ
    cost : (B, p)
    state : (B, p)
    M : int, at least as many as are fixed to 1
    """
    total, order, best, taken, room, fixed, slack = least_over(base, cost, state, M)
    inside, free, width = state == 1, state < 0, best.shape[1]
    terms = np.where(taken, best, 0.0)
    before, after = _exclusive_prefix_sums(terms), _exclusive_prefix_sums(terms[:, ::-1])[:, ::-1]
    is_full = taken.sum(axis=1) == room
    # What comes for one that leaves, and the last one, which leaves for one that comes.
    next_one = np.where(room < width, np.take_along_axis(best, np.minimum(room, width - 1)[:, None], 1)[:, 0], 0.0)
    without = fixed + np.where(is_full & (room > 0), _all_but_last(terms, room), terms.sum(axis=1))
    most = _most_lost(min(M, state.shape[1]))
    at_one = np.where(free, (without[:, None] + cost) - slack[:, None] - most * np.abs(cost), total[:, None])
    at_one[free & (room[:, None] == 0)] = np.inf
    at_one[state == 0] = np.inf
    at_zero = np.where(inside, np.inf, np.broadcast_to(total[:, None], state.shape))
    less = (fixed[:, None] + (before + after)) + np.where(is_full, next_one, 0.0)[:, None] - slack[:, None]
    rows, places = np.nonzero(taken)
    atoms = order[rows, places]
    at_zero[rows, atoms] = less[rows, places]
    at_one[rows, atoms] = total[rows]
    return GivenEach(total, *(np.where(np.isnan(one), -np.inf, one) for one in (at_one, at_zero)))


def _exclusive_prefix_sums(terms: Array) -> Array:
    """The sums of the terms before each one, without any difference."""
    sums = np.cumsum(terms, axis=1)
    return np.concatenate([np.zeros((terms.shape[0], 1)), sums[:, :-1]], axis=1)


def _all_but_last(terms: Array, room: Integers) -> Array:
    """The sum of all terms but the one that takes the last place."""
    return np.asarray(np.where(np.arange(terms.shape[1]) == room[:, None] - 1, 0.0, terms).sum(axis=1))
