"""F_β = (1 + β²) a / (a + b + β² P), with a true and b false positives; Δ = 1 − F_β.

Joachims' search over all (a, b) takes O(P·N). For β ≥ 1 the matrix Δ(a, b) is supermodular, its mixed difference has
the sign of b + β²P − a ≥ 0, so the best b does not fall as a grows, and divide and conquer over a takes
O((P + N) log P). For β < 1 that can fail, and the full search is what is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from mipfs.compiled import compiled
from mipfs.measures.base import Table, Violated
from mipfs.plumbing.arrays import Array

MOST_PAIRS, MOST_EXACT_PAIRS = 1 << 24, 1 << 12
"""Pairs (a, b) that are looked at in floating point at most, and those near the best one that are computed exactly."""


@compiled()
def _best_in(up, down, weight, positives, a, low, high):  # type: ignore[no-untyped-def]
    """The best b in low … high for one a, of equal ones the least, and the value."""
    gain = (1.0 + weight) * a
    best = -np.inf
    at = low
    for b in range(low, high + 1):
        value = 1.0 - gain / (a + b + weight * positives) + down[b]
        if value > best:
            best = value
            at = b
    return best + up[a], at


@compiled()
def divide_and_conquer(up, down, weight):  # type: ignore[no-untyped-def]
    """The best (a, b) when the best b does not fall as a grows; `weight` is β² ≥ 1."""
    positives = up.size - 1
    stack = np.empty((130, 4), dtype=np.int64)
    stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3] = 0, positives, 0, down.size - 1
    size = 1
    best = -np.inf
    best_a = 0
    best_b = 0
    while size > 0:
        size -= 1
        first = stack[size, 0]
        last = stack[size, 1]
        low = stack[size, 2]
        high = stack[size, 3]
        a = (first + last) // 2
        value, b = _best_in(up, down, weight, positives, a, low, high)
        if value > best or (value == best and (a < best_a or (a == best_a and b < best_b))):
            best = value
            best_a = a
            best_b = b
        if a < last:
            stack[size, 0], stack[size, 1], stack[size, 2], stack[size, 3] = a + 1, last, b, high
            size += 1
        if first < a:
            stack[size, 0], stack[size, 1], stack[size, 2], stack[size, 3] = first, a - 1, low, b
            size += 1
    return best_a, best_b


@compiled()
def full_search(up, down, weight):  # type: ignore[no-untyped-def]
    """The best (a, b) of all."""
    positives = up.size - 1
    best = -np.inf
    best_a = 0
    best_b = 0
    for a in range(positives + 1):
        value, b = _best_in(up, down, weight, positives, a, 0, down.size - 1)
        if value > best:
            best = value
            best_a = a
            best_b = b
    return best_a, best_b


class FBeta(Table):
    """F_β of the labels."""

    def __init__(self, name: str, y: Array, beta: float) -> None:
        super().__init__(name, y)
        self.beta = beta

    def value(self, scores: Array) -> float:
        """F_β; 0 where no true positive is found."""
        found = scores > 0
        a = int(np.count_nonzero(found[self.positive]))
        return 1.0 - self._loss_of_counts(a, int(np.count_nonzero(found)) - a)

    def _loss_of_counts(self, a: int, b: int) -> float:
        weight = self.beta * self.beta
        return 1.0 - (1.0 + weight) * a / (a + b + weight * self.P)

    def violated(self, scores: Array) -> Violated:
        """The labelling of largest Δ − w'a; of equal ones that with the least a, then the least b."""
        top, others, up, down = self.sorted(scores)
        search = divide_and_conquer if self.beta >= 1.0 else full_search
        a, b = search(up, down, self.beta * self.beta)
        return self.labelled(top, others, a, b, self._loss_of_counts(a, b), scores)

    def excess(self, scores: Sequence[Fraction]) -> Fraction | None:
        """The largest value of the pairs that come near it in floating point, or 0."""
        up, down = self.sums(scores)
        if len(up) * len(down) > MOST_PAIRS:
            return None
        first, second = (np.array([float(one) for one in part]) for part in (up, down))
        weight = Fraction(self.beta * self.beta)
        b = np.arange(second.size)
        gains = [(1.0 + float(weight)) * a / (a + b + float(weight) * self.P) for a in range(first.size)]
        rows = [1.0 - gain + second + one for gain, one in zip(gains, first.tolist(), strict=True)]
        level = max(0.0, *(float(row.max()) for row in rows))
        level -= 1e-14 * (1.0 + float(np.abs(first).max()) + float(np.abs(second).max()))
        near = [(a, int(one)) for a, row in enumerate(rows) for one in np.flatnonzero(row >= level)]
        if len(near) > MOST_EXACT_PAIRS:
            return None
        each = (1 - (1 + weight) * a / (a + one + weight * self.P) + up[a] + down[one] for a, one in near)
        return max([Fraction(0), *each])


def create(name: str, y: Array, beta: float = 1.0) -> FBeta:
    """The measure on labels y."""
    return FBeta(name, y, beta)
