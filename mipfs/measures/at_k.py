"""Precision and recall at k, and their break-even point: exactly k samples are labelled +1.

Δ = 1 − a/k (precision at k), 1 − a/P (recall at k), over labellings with a + b = k; PRBEP is either at k = P.
Where k > P, or k < P for the recall, no labelling has Δ = 0, and y is not among them: [·]₊ is what keeps the loss ≥ 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from mipfs.errors import UsageError
from mipfs.measures.base import Table, Violated
from mipfs.plumbing.arrays import Array


class AtK(Table):
    """The share of positives among the k largest scores, of k or of all positives."""

    def __init__(self, name: str, y: Array, k: int | None = None) -> None:
        super().__init__(name, y)
        self.k = self.P if k is None else k
        if not 1 <= self.k <= self.n:
            raise UsageError(f"k = {self.k} must lie between 1 and {self.n}, the number of samples")
        self.whole = self.k if name == "precision-at-k" else self.P

    def value(self, scores: Array) -> float:
        """a/k or a/P of the k largest scores, of equal ones the first."""
        chosen = np.argsort(-scores, kind="stable")[: self.k]
        return float(np.count_nonzero(self.y[chosen] > 0)) / self.whole

    def violated(self, scores: Array) -> Violated:
        """The labelling of largest Δ − w'a among those with k samples on top; of equal ones that with the least a."""
        top, others, up, down = self.sorted(scores)
        a = np.arange(max(0, self.k - self.N), min(self.P, self.k) + 1)
        loss = 1.0 - a / self.whole
        best = int(np.argmax(loss + up[a] + down[self.k - a]))
        return self.labelled(top, others, int(a[best]), self.k - int(a[best]), float(loss[best]), scores)

    def excess(self, scores: Sequence[Fraction]) -> Fraction:
        """The largest of the values for every a, or 0."""
        (up, down), most = self.sums(scores), min(self.P, self.k)
        each = (
            1 - Fraction(a, self.whole) + up[a] + down[self.k - a] for a in range(max(0, self.k - self.N), most + 1)
        )
        return max(Fraction(0), *each)


def create(name: str, y: Array, k: int | None = None) -> AtK:
    """The measure on labels y."""
    return AtK(name, y, k)
