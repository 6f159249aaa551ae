"""Average precision, over rankings with the feature map of Yue et al. 2007; Δ = 1 − AP.

With both classes sorted, lifting the j-th negative over the i-th positive changes the value by

    δ_j(i) = (1/P) i/((i + j)(i + j − 1)) − (2/(PN)) (f_i − f_j),

whatever the others do, and every negative goes where the sum of its δ is largest (their greedy). δ_j(i) falls as j
grows, so the places are in order and divide and conquer over j finds them in O((P + N) log N).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate

import numpy as np

from mipfs.compiled import compiled
from mipfs.measures.base import Ranking, Violated
from mipfs.plumbing.arrays import Array

MOST_EXACT_PAIRS = 1 << 17
"""Pairs of a positive and a negative that are looked at in rational arithmetic at most."""


@compiled()
def places(top, others):  # type: ignore[no-untyped-def]
    """Over how many positives every negative is not lifted: 0 is the top, P the bottom; scores largest first."""
    P, N = top.size, others.size
    found = np.empty(N, dtype=np.int64)
    stack = np.empty((130, 4), dtype=np.int64)
    stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3] = 0, N - 1, 0, P
    size = 1
    while size > 0:
        size -= 1
        first = stack[size, 0]
        last = stack[size, 1]
        low = stack[size, 2]
        high = stack[size, 3]
        j = (first + last) // 2
        best = 0.0
        at = high
        total = 0.0
        for i in range(high, low, -1):
            total += i / (float(i + j + 1) * (i + j) * P) - (2.0 / P) * (top[i - 1] - others[j]) / N
            if total > best:
                best = total
                at = i - 1
        found[j] = at
        if j < last:
            stack[size, 0], stack[size, 1], stack[size, 2], stack[size, 3] = j + 1, last, at, high
            size += 1
        if first < j:
            stack[size, 0], stack[size, 1], stack[size, 2], stack[size, 3] = first, j - 1, low, at
            size += 1
    return found


class AveragePrecision(Ranking):
    """The mean over the positives of the precision at their rank."""

    def value(self, scores: Array) -> float:
        """Average precision; equal scores share one threshold."""
        order = np.argsort(-scores, kind="stable")
        hits = np.cumsum(self.y[order] > 0)
        last = np.append(np.flatnonzero(np.diff(scores[order]) != 0), self.n - 1)
        gained = np.diff(hits[last], prepend=0)
        return float(np.sum(gained * (hits[last] / (last + 1.0)))) / self.P

    def violated(self, scores: Array) -> Violated:
        """The ranking of largest Δ − w'a; of equal ones that with the fewest pairs swapped."""
        top = self.positive[np.argsort(-scores[self.positive], kind="stable")]
        others = self.negative[np.argsort(-scores[self.negative], kind="stable")]
        found = places(scores[top], scores[others])
        rank = np.arange(1, self.P + 1)
        above = np.searchsorted(found, rank, side="left")
        counts = np.zeros(self.n, dtype=self.count_type)
        counts[top], counts[others] = above, self.P - found
        loss = float(np.sum(above / (rank + above))) / self.P
        return self.made(counts, loss, scores)

    def excess(self, scores: Sequence[Fraction]) -> Fraction | None:
        """Σ over the negatives of the largest sum of their δ from the last positive on."""
        if self.P * self.N > MOST_EXACT_PAIRS:
            return None
        rising = sorted(scores[i] for i in self.positive.tolist())
        total = Fraction(0)
        for j, score in enumerate(sorted((scores[j] for j in self.negative.tolist()), reverse=True), 1):
            each = (
                Fraction(i, (i + j) * (i + j - 1) * self.P) - 2 * (one - score) / (self.P * self.N)
                for i, one in zip(range(self.P, 0, -1), rising, strict=True)
            )
            total += max(accumulate(each, initial=Fraction(0)))
        return total


def create(name: str, y: Array) -> AveragePrecision:
    """The measure on labels y."""
    return AveragePrecision(name, y)
