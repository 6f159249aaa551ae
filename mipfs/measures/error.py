"""The error rate, Δ = (c + b)/n: it decomposes, so every sample decides for itself."""

from __future__ import annotations

import numpy as np

from mipfs.measures.base import Array, Measure, Violated


class Error(Measure):
    """The share of samples on the wrong side of 0."""

    def value(self, scores: Array) -> float:
        """The share of wrong labels, 1 − accuracy; a score of 0 is labelled −1."""
        return float(np.count_nonzero((scores > 0) != (self.y > 0))) / self.n

    def violated(self, scores: Array) -> Violated:
        """Sample i is mislabelled iff 1/n − (2/n) y_i f_i > 0."""
        counts = (self.y * scores < 0.5).astype(self.count_type)
        return self.made(counts, float(np.count_nonzero(counts)) / self.n, scores)


def create(name: str, y: Array) -> Error:
    """The measure on labels y."""
    return Error(name, y)
