"""Block: columns of the data in memory, the only door to values outside `mipfs.data` and `mipfs.atoms`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from mipfs.data.checks import any_nonzero
from mipfs.plumbing.arrays import Array


@dataclass(frozen=True, eq=False)
class Block:
    """Some columns of an instance, or all of them: ``values − center``.

    Attributes
    ----------
    values : (n, k) ndarray, csc_array, or a matrix whose columns are made (`mipfs.data.made.MadeMatrix`)
        As they are stored, not centred.
    center : (k,) ndarray
    """

    values: Any
    center: Array

    @property
    def is_sparse(self) -> bool:
        """Whether the values are a sparse matrix."""
        return bool(sparse.issparse(self.values))

    @property
    def is_stored(self) -> bool:
        """Whether the values lie in memory, not only those that somebody asks for."""
        return self.is_sparse or isinstance(self.values, np.ndarray)

    @property
    def is_centred(self) -> bool:
        """Whether something is subtracted from the values."""
        return any_nonzero(self.center)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        n, k = self.values.shape
        return int(n), int(k)

    @property
    def nnz(self) -> int:
        """Numbers that are stored, or would be."""
        return int(self.values.nnz if self.is_sparse else self.values.size)

    @property
    def density(self) -> float:
        """Share of the entries that are stored."""
        n, k = self.shape
        return self.nnz / max(1, n * k)

    def stays_sparse(self, most: float) -> bool:
        """Whether the values are sparse, and at most the share `most` of them is not zero."""
        return self.is_sparse and self.density < most

    def scores(self, w: Any, b: float = 0.0) -> Array:
        """(values − center)w + b, shape (n,)."""
        return np.asarray(self.values @ w, dtype=float) + (b - float(self.center @ w))

    def pull(self, v: Array) -> Array:
        """(values − center)'v of a vector (n,), shape (k,), or of vectors (n, m), shape (k, m)."""
        pulled = np.asarray(self.values.T @ v, dtype=float)
        total = v.sum(axis=0)
        if not self.is_centred:
            return pulled
        return np.asarray(pulled - np.multiply.outer(self.center, total))

    def means(self) -> Array:
        """Means of the values, not centred, shape (k,)."""
        return np.asarray(self.values.mean(axis=0), dtype=float).ravel()

    def largest(self) -> Array:
        """The largest |value| of every column, not centred, shape (k,)."""
        values = self.values if self.is_stored else self.dense(np.zeros(self.center.size))
        if sparse.issparse(values):
            return np.asarray(abs(values).max(axis=0).toarray(), dtype=float).ravel()
        return np.asarray(np.maximum(values.max(axis=0, initial=0.0), -values.min(axis=0, initial=0.0)))

    def dense(self, off: Array | None = None) -> Array:
        """values − off as a dense copy, (n, k) in Fortran order; `off` (k,) is the centre by default."""
        full: Array = (
            self.values.toarray(order="F") if self.is_sparse else np.array(self.values, dtype=float, order="F")
        )
        full -= self.center if off is None else off
        return full
