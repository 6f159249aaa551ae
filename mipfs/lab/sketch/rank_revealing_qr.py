"""Rank-revealing QR: the first columns that LAPACK's QR with column pivoting (xGEQP3, Businger and Golub 1965) takes.

Each is the column farthest from the span of those before it. After as many as the rank nothing is left, so no more are
taken: a user who asks for more than the rank is told.
"""

from __future__ import annotations

import numpy as np
from scipy import linalg

from mipfs.errors import DataError
from mipfs.lab.sketch.picks import Picks, Progress, gathered
from mipfs.lab.sketch.source import Source


def pick(source: Source, r: int, *, seed: int, projections: int | None, progress: Progress | None) -> Picks:
    """The first r pivots, or as many as the rank; columns are not rescaled."""
    m, p = source.shape
    R, pivots = linalg.qr(source.dense(), mode="r", pivoting=True, check_finite=False)
    size = np.abs(np.diagonal(R))
    rank = int(np.count_nonzero(size > max(m, p) * np.finfo(float).eps * size[0]))
    if rank == 0:
        raise DataError("every column is constant, so that nothing is left of them", "there is nothing to choose by")
    order = pivots[: min(r, rank)].astype(np.int64)
    remarks: tuple[str, ...] = ()
    if r > rank:
        remarks = (f"{rank} columns were taken, not {r}: they span all others, and pivots beyond them mean nothing",)
    return gathered(order, np.ones(order.size), None, remarks, rank)
