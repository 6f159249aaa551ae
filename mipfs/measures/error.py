"""The error rate, Δ = (c + b)/n: it decomposes, so every sample decides for itself."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from mipfs.measures.base import Measure, Violated
from mipfs.plumbing.arrays import Array


class Error(Measure):
    """The share of samples on the wrong side of 0."""

    def value(self, scores: Array) -> float:
        """The share of wrong labels, 1 − accuracy; a score of 0 is labelled −1."""
        return float(np.count_nonzero((scores > 0) != (self.y > 0))) / self.n

    def violated(self, scores: Array) -> Violated:
        """Sample i is mislabelled iff 1/n − (2/n) y_i f_i > 0."""
        counts = (self.y * scores < 0.5).astype(self.count_type)
        return self.made(counts, float(np.count_nonzero(counts)) / self.n, scores)

    def excess(self, scores: Sequence[Fraction]) -> Fraction:
        """Σ max(0, 1 − 2 y_i f_i)/n."""
        signed = zip(self.y.astype(int).tolist(), scores, strict=True)
        return sum((max(Fraction(0), 1 - 2 * y * f) for y, f in signed), Fraction(0)) / self.n


def create(name: str, y: Array) -> Error:
    """The measure on labels y."""
    return Error(name, y)
