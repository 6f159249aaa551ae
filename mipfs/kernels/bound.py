"""The earned bound and what it fixes: the one source, plain Python, which `mipfs.kernels.earned` compiles.

    lower(α) = g(α) − Σ over the forced atoms of γ_j − the sum of the K largest positive γ_j of the free ones

with the gains γ_j = ½ s_j − c_j and K places left. What comes in is on the safe side already: g rounded down, gains up.

**The slack.** Let a value be the sum, in whatever order, of k floats whose magnitudes add up to T. It is off by at most
γ_(k−1) T, γ_m = mu/(1 − mu), u = 2⁻⁵³ (Higham 2002, (4.4)). A computed T is too small by a factor 1 − γ_k at most, the
product 2(k + 8)uT takes three roundings, and the difference of both rounds once more, by no more than u times T and the
slack. While (k + 8)u < 1/16, which is k < 2⁴⁸,

    2(k + 8)uT (1 − γ_(k+3))  ≥  γ_(k−1) T  +  u (T + 2(k + 8)uT)  +  8uT:

the last part is room for terms that are four roundings old themselves. What is left lies at most 4(k + 8)uT below the
exact sum. T is made of the numbers that enter, never of their difference, which cancels: a bound of 1 can be the
difference of two sums of 10⁸, and is known to 10⁻⁸ only. Sums do not underflow, and a T that overflows proves nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mipfs.plumbing.arrays import Array, Integers

U = 2.0**-53
"""Unit round-off u."""


def rounded_down(value: Any, size: Any, count: Any) -> Any:
    """A sum of `count` terms, whose magnitudes add up to `size`, less its rounding error."""
    return value - 2.0 * (count + 8) * U * size


def gains(scores: Any, penalty: Any) -> Any:
    """γ = ½ s − c, rounded up: the difference rounds by u|γ| at most. Of numbers, or of arrays entry by entry."""
    gain = 0.5 * scores - penalty
    return gain + 2.0 * U * abs(gain)


def radius_of(n: int, norm: Any, absolute: Any, norms: Any, centers: Any) -> Any:
    """A bound on the rounding error of ω = X'v: 2γ_n (‖v‖ norms + ‖v‖₁ centers), of n entries summed in any order."""
    return 2.0 * ((n + 4) * U) * (norms * norm + centers * absolute)


def sum_error(scores: Any, radius: Any, sizes: Any) -> Any:
    """A bound on the rounding error of s = λ² Σ_j ω_j² over `sizes` terms, when λ‖computed ω − exact ω‖ ≤ `radius`.

    |s − ŝ| ≤ 2 √ŝ r + r² by Cauchy and Schwarz, plus a relative γ of the squares, their sum and the product.
    """
    relative = 2.0 * (sizes + 8) * U
    return (2.0 * np.sqrt(scores) * radius + radius * radius) * (1.0 + relative) + relative * scores


def trade_gains(bound: Any, leaves: Any, enters: Any) -> Any:
    """The bound once one gain leaves the minimum and another enters, rounded down.

    Three roundings, each of them of u times the sum of the magnitudes at most, and the product's own.
    """
    return bound + leaves - enters - 4.0 * U * (abs(bound) + abs(leaves) + abs(enters))


def earned(
    g: float, held: Sequence[float] | Array, free: Sequence[float] | Array, room: int, cutoff: float
) -> tuple[float, int, int]:
    """The bound of a node, rounded down, and which free atoms it fixes (reduced costs) where it has a cutoff.

    An atom that counts in the minimum has σ = 1 where the bound with the best one that does not count in its place
    reaches the cutoff; one that does not, σ = 0 where the bound with it in place of the weakest that counts does.

    Parameters
    ----------
    g : float, what the gains are taken off
    held : (f,) gains of the forced atoms
    free : (q,) gains of the free atoms, falling
    room : how many of the free atoms may be in
    cutoff : float; nothing is fixed where it is not finite

    Returns
    -------
    bound : float; −∞ where the numbers overflow
    inside : int, the first of the free atoms up to here are fixed to 1
    outside : int, those from here on are fixed to 0
    """
    value = g
    size = abs(g)
    for t in range(len(held)):
        value -= held[t]
        size += abs(held[t])
    count = 0
    while count < min(room, len(free)) and free[count] > 0.0:
        value -= free[count]
        size += free[count]
        count += 1
    if not size < math.inf:
        return -math.inf, 0, len(free)
    bound = rounded_down(value, size, 1 + len(held) + count)
    if not abs(cutoff) < math.inf:
        return bound, 0, len(free)
    following = max(0.0, free[count]) if count < len(free) else 0.0
    weakest = free[count - 1] if count > 0 and count == room else 0.0
    inside = 0
    while inside < count and trade_gains(bound, free[inside], following) >= cutoff:
        inside += 1
    low = count
    outside = count if room <= 0 else len(free)
    while low < outside:
        # Falling gains: what fixes one fixes all after it.
        middle = (low + outside) // 2
        if trade_gains(bound, weakest, free[middle]) >= cutoff:
            outside = middle
        else:
            low = middle + 1
    return bound, inside, outside


def add_down(*terms: float | Array) -> float:
    """The sum of numbers and of the entries of arrays, rounded down; ∞ where one is, but −∞ where they overflow."""
    every = np.hstack(terms)
    size = float(np.abs(every).sum())
    if size < math.inf:
        return float(rounded_down(every.sum(), size, every.size))
    return math.inf if every.max() == math.inf and every.min() > -math.inf else -math.inf


def lower(g: float, gains: Array, inside: Any, free: Any, M: int | None) -> float:
    """The bound of a node alone.

    Parameters
    ----------
    g : float, what the gains are taken off
    gains : (k,) of the atoms, rounded up
    inside, free : positions, or masks (k,)
    M : most atoms inside, or None
    """
    held = gains[inside]
    mine = gains[free]
    room = mine.size if M is None else M - held.size
    return add_down(g, -held, -largest(mine, room))


def largest(values: Array, count: int) -> Array:
    """The `count` largest of values (k,) that are positive, or all of these, in no order."""
    values = values[values > 0.0]
    if count < values.size:
        return np.partition(values, values.size - count)[values.size - count :] if count > 0 else values[:0]
    return values


def screen_atoms(
    g: float, gains: Array, inside: Integers, free: Integers, M: int | None, cutoff: float
) -> tuple[float, Integers, Integers]:
    """The bound of a node, and which free atoms it fixes in and out; arguments as of `lower`, `inside` and `free` (·,).

    Parameters
    ----------
    cutoff : float, maybe inf
    """
    order = free[np.argsort(-gains[free], kind="stable")]
    room = free.size if M is None else M - inside.size
    bound, goes_in, goes_out = earned(g, gains[inside].tolist(), gains[order].tolist(), room, cutoff)
    return bound, np.sort(order[:goes_in]), np.sort(order[goes_out:])


def bounds_with_each_in(g: float, gains: Array, inside: Integers, free: Integers, M: int | None) -> Array:
    """The bound of a node where one more free atom is in, (k,), for every atom; inf where none fits.

    Arguments as of `screen_atoms`: what comes in pushes out the weakest that counts, where no place is left.
    """
    least = np.full(gains.size, np.inf)
    room = free.size if M is None else M - inside.size
    least[inside] = bound = lower(g, gains, inside, free, M)
    if room > 0:
        mine = gains[free]
        weakest = 0.0 if room > free.size else max(0.0, float(-np.partition(-mine, room - 1)[room - 1]))
        least[free] = np.where(mine >= weakest, bound, trade_gains(bound, weakest, mine))
    return least
