"""What a solver returns, looked at before it is used."""

from __future__ import annotations

from typing import Any

import numpy as np

from mipfs.plumbing.arrays import Array


def is_whole(vector: Any, size: int) -> bool:
    """Whether a vector has this many entries, all of them numbers."""
    values = np.asarray(vector, dtype=float)
    return values.shape == (size,) and bool(np.isfinite(values).all())


def in_simplex(weights: Array) -> Array | None:
    """Weights ≥ 0 whose sum is 1, without a solver's round-off; None where their sum is nowhere near 1."""
    positive = np.maximum(weights, 0.0)
    total = float(positive.sum())
    return np.asarray(positive / total) if abs(total - 1.0) <= 0.5 else None
