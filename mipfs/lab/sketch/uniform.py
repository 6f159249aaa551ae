"""Uniform choice without replacement: what the papers set beside every other method."""

from __future__ import annotations

import numpy as np

from mipfs.errors import UsageError
from mipfs.lab.sketch.picks import Picks, Progress, gathered
from mipfs.lab.sketch.source import Source


def pick(source: Source, r: int, *, seed: int, projections: int | None, progress: Progress | None) -> Picks:
    """r different columns, each of weight p/r, so that V'DD'V is I on average.

    Raises
    ------
    UsageError
        More columns than there are.
    """
    p = source.shape[1]
    if r > p:
        raise UsageError(f"r = {r} must be at most {p}, the number of features, for a choice without replacement")
    order = np.random.default_rng(seed).permutation(p)[:r].astype(np.int64)
    return gathered(order, np.full(r, p / r))
