"""The columns Z = y∘x of an inner problem, dense or sparse, and the products that an interior point needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from threading import Event
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg.blas import dsyrk

from mipfs.kernels.gram import sparse_gram
from mipfs.plumbing.arrays import Array, Integers

NUMBERS_PER_BLOCK = 1 << 21
"""Numbers in a block of a product: some hundredths of a second."""
PARALLEL_PARTS, PARALLEL_WORK, PARALLEL_WORK_PER_NUMBER = 2, 2e6, 5.0
"""Parts of a sparse product, where it takes more multiplications than the second number, and more for each number of
the result than the third."""


class Interrupted(Exception):
    """The run must stop in the middle of a product."""


def parts_of(X: Array) -> Iterator[slice]:
    """Some columns of a dense array after the other, about `NUMBERS_PER_BLOCK` numbers at a time."""
    step = max(1, NUMBERS_PER_BLOCK // max(1, X.shape[0]))
    for start in range(0, X.shape[1], step):
        yield slice(start, start + step)


def columnwise(X: Array, off: Array, *factors: Array, must_stop: Callable[[], bool] = bool) -> Array:
    """X − off, times each factor of the columns (k,) or of the rows (n, 1) in turn, column by column in memory.

    `Interrupted` where `must_stop`, asked between some columns and the next, says so.
    """
    Z = np.empty(X.shape, order="F")
    for part in parts_of(X):
        if part.start and must_stop():
            raise Interrupted
        np.subtract(X[:, part], off[part], out=Z[:, part])
        for factor in factors:
            Z[:, part] *= factor if factor.ndim == 2 else factor[part]
    return Z


class Dense:
    """Dense columns.

    Parameters
    ----------
    Z : (n, k) ndarray
    must_stop : asked between blocks of a product; `Interrupted` where it says so
    """

    def __init__(self, Z: Array, must_stop: Callable[[], bool]) -> None:
        self.Z = Z
        self.must_stop = must_stop
        self.shape: tuple[int, int] = Z.shape

    def times(self, w: Array) -> Array:
        """Zw, shape (n,)."""
        return np.asarray(self.Z @ w)

    def pull(self, alpha: Array) -> Array:
        """Z'α, shape (k,)."""
        return np.asarray(self.Z.T @ alpha)

    def gram(self, weights: Array) -> Array:
        """Lower triangle of Z' diag(weights) Z, shape (k, k), weights >= 0."""
        n, k = self.shape
        return self._sum(self.Z, np.sqrt(weights), n, k)

    def outer(self, weights: Array) -> Array:
        """Lower triangle of Z diag(weights) Z', shape (n, n), weights >= 0."""
        n, k = self.shape
        return self._sum(self.Z.T, np.sqrt(weights), k, n)

    def _sum(self, rows: Array, root: Array, count: int, size: int) -> Array:
        """Σ_r root_r² z_r z_r' over the rows, block by block."""
        total = np.zeros((size, size), order="F")
        if size == 0:
            return total
        step = max(16, NUMBERS_PER_BLOCK // max(size, 1))
        for start in range(0, count if size else 0, step):
            if start and self.must_stop():
                raise Interrupted
            part = rows[start : start + step] * root[start : start + step, None]
            total = dsyrk(1.0, part.T, beta=1.0, c=total, lower=1, overwrite_c=1)
        return total


class Sparse:
    """Sparse columns, kept by columns and by rows.

    Parameters
    ----------
    Z : (n, k) csc_array
    must_stop : asked between blocks of a product
    """

    def __init__(self, Z: Any, must_stop: Callable[[], bool]) -> None:
        self.by_columns = sparse.csc_array(Z)
        self.must_stop = must_stop
        self.by_columns.sort_indices()
        self.by_rows = sparse.csr_array(self.by_columns)
        self.by_rows.sort_indices()
        self._turned = self.by_columns.T
        self.shape: tuple[int, int] = Z.shape

    def times(self, w: Array) -> Array:
        """Zw, shape (n,)."""
        return np.asarray(self.by_rows @ w)

    def pull(self, alpha: Array) -> Array:
        """Z'α, shape (k,)."""
        return np.asarray(self._turned @ alpha)

    def gram(self, weights: Array) -> Array:
        """Lower triangle of Z' diag(weights) Z, shape (k, k)."""
        return self._sum(self.by_rows, self._rows_ends, weights, self.shape[1])

    def outer(self, weights: Array) -> Array:
        """Lower triangle of Z diag(weights) Z', shape (n, n)."""
        return self._sum(self.by_columns, self._columns_ends, weights, self.shape[0])

    @cached_property
    def _rows_ends(self) -> Integers:
        return _ends(self.by_rows, self.shape[1])

    @cached_property
    def _columns_ends(self) -> Integers:
        return _ends(self.by_columns, self.shape[0])

    def _sum(self, major: Any, ends: Integers, weights: Array, size: int) -> Array:
        """Σ_r weights_r z_r z_r'; of two parts between the ends the second in a thread."""
        totals, stopped = [np.zeros((size, size)) for _ in ends[1:]], Event()
        step = max(16, NUMBERS_PER_BLOCK * weights.size // max(1, major.nnz * 8))

        def add(part: int) -> None:
            for start in range(ends[part], ends[part + 1], step):
                if part == 0 and start and self.must_stop():
                    stopped.set()
                if stopped.is_set():
                    return
                stop = min(start + step, ends[part + 1])
                sparse_gram(major.data, major.indices, major.indptr, weights, start, stop, totals[part])

        if len(totals) == 1:
            add(0)
        else:
            _beside(add, stopped)
        if stopped.is_set():
            raise Interrupted
        for total in totals[1:]:
            totals[0] += total
        return totals[0].T


def _ends(major: Any, size: int) -> Integers:
    """Where parts of equal work begin and end, whatever the machine; one part where the product is small."""
    work = np.append(0.0, np.cumsum(np.square(np.diff(major.indptr).astype(float))))
    count = PARALLEL_PARTS if work[-1] >= max(PARALLEL_WORK, PARALLEL_WORK_PER_NUMBER * size**2) else 1
    ends = np.searchsorted(work, np.linspace(0.0, work[-1], count + 1))
    ends[0], ends[-1] = 0, work.size - 1
    return ends


def _beside(add: Callable[[int], None], stopped: Event) -> None:
    """Call `add` with 0 here and with 1 in a thread, or here too where none is to be had."""
    with ThreadPoolExecutor(1) as pool:
        try:
            other = pool.submit(add, 1)
        except RuntimeError:
            other = None
        try:
            add(0)
            if other is None:
                add(1)
        except BaseException:
            stopped.set()
            raise
    if other is not None:
        other.result()
