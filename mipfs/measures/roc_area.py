"""The area under the ROC curve; Δ is the share of swapped pairs.

It is no loss of a labelling: any set of pairs z_ij ∈ {0, 1} may be swapped, a(z) = (2/(PN)) Σ z_ij (x_i − x_j), and a
pair is iff f_i − f_j < ½. One sort of the positives against the negatives plus ½ finds them all (Joachims 2005).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate

import numpy as np

from mipfs.measures.base import Ranking, Violated
from mipfs.plumbing.arrays import Array


class RocArea(Ranking):
    """The share of pairs of a positive and a negative that are in the right order; equal scores count half."""

    def value(self, scores: Array) -> float:
        """The area under the ROC curve."""
        positives, negatives = scores[self.positive], np.sort(scores[self.negative])
        below = np.searchsorted(negatives, positives, side="left").sum()
        up_to = np.searchsorted(negatives, positives, side="right").sum()
        return float(below + up_to) / (2.0 * self.divisor)

    def violated(self, scores: Array) -> Violated:
        """All pairs with f_i < f_j + ½ swapped."""
        positives, negatives = scores[self.positive], scores[self.negative] + 0.5
        counts = np.zeros(self.n, dtype=self.count_type)
        counts[self.positive] = self.N - np.searchsorted(np.sort(negatives), positives, side="right")
        counts[self.negative] = np.searchsorted(np.sort(positives), negatives, side="left")
        swapped = int(counts[self.positive].sum(dtype=np.int64))
        return self.made(counts, swapped / self.divisor, scores)

    def excess(self, scores: Sequence[Fraction]) -> Fraction:
        """Σ over the pairs of max(0, 1 − 2(f_i − f_j)), over PN."""
        rising = sorted(scores[j] for j in self.negative.tolist())
        above = [*accumulate(reversed(rising), initial=Fraction(0))]
        total = Fraction(0)
        for i in self.positive.tolist():
            swapped = len(rising) - bisect_right(rising, scores[i] - Fraction(1, 2))
            total += swapped * (1 - 2 * scores[i]) + 2 * above[swapped]
        return total / (self.P * self.N)


def create(name: str, y: Array) -> RocArea:
    """The measure on labels y."""
    return RocArea(name, y)
