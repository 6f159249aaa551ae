"""The B features of largest score without reading every column (Step 1 of the Kelley driver at millions of features).

|ω_j| ≤ Σ_i |x_ij| · max |v_i|, and the B-th best |ω| over any few columns is at most the B-th best over all. So a
look at the columns of largest Σ_i |x_ij| yields a level that the B best reach, and a column whose bound is below
that level need not be read. In text nearly all columns are short, and few are read.
"""

from __future__ import annotations

import threading

import numpy as np
import numpy.typing as npt

from mipfs.atoms import Integers
from mipfs.atoms.features import UNIT_ROUNDOFF, Features, largest

Array = npt.NDArray[np.float64]

ONE_AT_A_TIME = threading.Lock()
"""Kernels on all threads, one after the other: numba's workqueue ends the process when two Python threads begin one."""
PIECE, AT_ONCE = 1 << 18, 1 << 23
"""Columns whose bounds are looked at together, and entries from which on it is worth waking the other threads."""
HEADS, FRONT = 1 << 16, 1 << 11
"""Columns of largest Σ_i |x_ij| that are kept at hand, and those of them that set the level."""


class TopFeatures:
    """Finds the best features again and again for changing v.

    Parameters
    ----------
    features : Features
        Over dense data every column is read: one matrix product is then as fast as any test.

    Attributes
    ----------
    largest_norm : float, max λ_j ‖x_j‖ over the columns as they are stored
    largest_center : float, max λ_j |center_j|
    """

    def __init__(self, features: Features) -> None:
        self.features, self.data = features, features.data
        self.largest_center = 0.0  # mostly nothing is taken off, and no vector is as long as all features for that
        if self.data.block().is_centred:
            self.largest_center = float(np.max(np.abs(self.data.center) * features.scale, initial=0.0))
        self._screens = self.data.is_sparse and self.largest_center == 0.0
        if not self._screens:
            self.largest_norm = float(np.max(features.scale * features.norms, initial=0.0))
            return
        from mipfs.kernels.scores import CHUNKS, column_sums

        X = self.data.X
        self._bounds, most = np.empty(features.count, np.float32), np.empty(CHUNKS)
        with ONE_AT_A_TIME:
            column_sums(X.data, X.indptr, features.scale, self._bounds, most)
        self.largest_norm = float(np.sqrt(most.max()))
        self._heads = largest(self._bounds, HEADS).astype(np.int32)  # type: ignore[arg-type]  # float32 will do
        self._head_bounds = self._bounds[self._heads].astype(float)
        self._rest = float(self._bounds[self._heads[-1]]) if self._heads.size == HEADS else 0.0

    def best(self, v: Array, B: int) -> tuple[Integers, Array]:
        """At most B features of largest positive score, and their |λω|; of equal ones the lowest id first."""
        if not self._screens:
            scores = self.features.scores(v)
            ids = largest(scores, B)
            return ids, np.sqrt(scores[ids])
        height = float(np.abs(v).max(initial=0.0))
        columns = self._heads[:FRONT]
        sizes = self._sizes(columns, v)
        level = float(np.partition(sizes, -B)[-B]) * (1.0 - 1e-9) if sizes.size > B else 0.0
        if self._rest * height >= level:
            columns, sizes = self._everything(v, height, level)
        else:
            more = self._heads[columns.size : self._reaching(height, level)]
            columns, sizes = np.concatenate([columns, more]), np.concatenate([sizes, self._sizes(more, v)])
        reached = np.flatnonzero(sizes >= max(level, np.finfo(float).tiny))
        order = reached[np.lexsort((columns[reached], -sizes[reached]))[:B]]
        return columns[order].astype(np.int64), sizes[order]

    def _reaching(self, height: float, level: float) -> int:
        """How many of the heads, which stand in the order of their bounds, may reach a level."""
        return int(np.searchsorted(-self._head_bounds, -level / height, "right")) if height > 0.0 else 0

    def _everything(self, v: Array, height: float, level: float) -> tuple[npt.NDArray[np.int32], Array]:
        """All columns with |λω| of at least a level, ascending, and these; piece by piece."""
        columns, sizes = [], []
        for start in range(0, self._bounds.size, PIECE):
            near = start + np.flatnonzero(self._bounds[start : start + PIECE] * height >= level).astype(np.int32)
            found = self._sizes(near, v)
            kept = found >= level
            columns.append(near[kept])
            sizes.append(found[kept])
        return np.concatenate(columns), np.concatenate(sizes)

    def _sizes(self, columns: npt.NDArray[np.int32], v: Array) -> Array:
        """|λω| of some columns."""
        from mipfs.kernels.scores import pull, pull_at_once

        X, sizes = self.data.X, np.empty(columns.size)
        if int((X.indptr[columns + 1].astype(np.int64) - X.indptr[columns]).sum()) <= AT_ONCE:
            pull(X.data, X.indices, X.indptr, columns, self.features.scale, v, sizes, 0, columns.size)
            return sizes
        with ONE_AT_A_TIME:
            pull_at_once(X.data, X.indices, X.indptr, columns, self.features.scale, v, sizes)
        return sizes

    def radius(self, v: Array) -> float:
        """A bound on |computed − exact| of every |λω|."""
        gamma = (v.size + 4) * UNIT_ROUNDOFF
        norms = self.largest_norm * float(np.linalg.norm(v)) + self.largest_center * float(np.abs(v).sum())
        return 2.0 * gamma * norms
