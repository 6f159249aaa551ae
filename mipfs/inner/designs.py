"""The columns Z = y∘x of an inner problem, dense or sparse, and the products that an interior point needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from threading import Event, get_ident
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg.blas import dsyrk

from mipfs.kernels.gram import sparse_gram, sparse_times
from mipfs.plumbing.arrays import Array, Integers
from mipfs.plumbing.blocks import count_of, cut, run_each

NUMBERS_PER_BLOCK = 1 << 21
"""Numbers in a block of a product: some hundredths of a second."""
BLOCK_NUMBERS, BLOCK_WORK, BLOCK_WORK_PER_NUMBER = 1 << 16, 1e6, 20.0
"""What a block has at least: numbers of the data, where each is read once; where they are multiplied with others,
multiplications, and some for each number of the result, of which every block has its own."""


class Interrupted(Exception):
    """The run must stop in the middle of a product."""


def parts_of(X: Array) -> Iterator[slice]:
    """Some columns of a dense array after the other, about `NUMBERS_PER_BLOCK` numbers at a time."""
    step = max(1, NUMBERS_PER_BLOCK // max(1, X.shape[0]))
    for start in range(0, X.shape[1], step):
        yield slice(start, start + step)


def centre_and_scale_columns(X: Array, off: Array, *factors: Array, must_stop: Callable[[], bool] = bool) -> Array:
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
        n, k = Z.shape
        count = count_of(n, k, Z.size // BLOCK_NUMBERS)
        self._row_ends, self._column_ends = cut(np.arange(n + 1), count), cut(np.arange(k + 1), count)

    def times(self, w: Array) -> Array:
        """Zw, shape (n,)."""
        return _blockwise_product(self.Z, w, self._row_ends)

    def pull(self, alpha: Array) -> Array:
        """Z'α, shape (k,)."""
        return _blockwise_product(self.Z.T, alpha, self._column_ends)

    def gram(self, weights: Array) -> Array:
        """Lower triangle of Z' diag(weights) Z, shape (k, k), weights >= 0."""
        return self._weighted_gram(self.Z, np.sqrt(weights))

    def outer(self, weights: Array) -> Array:
        """Lower triangle of Z diag(weights) Z', shape (n, n), weights >= 0."""
        return self._weighted_gram(self.Z.T, np.sqrt(weights))

    def _weighted_gram(self, rows: Array, root: Array) -> Array:
        """Σ_r root_r² z_r z_r' over the rows, in blocks whose own sums take no more room than the data."""
        count, size = rows.shape
        if size == 0:
            return np.zeros((0, 0), order="F")
        ends = cut(np.arange(count + 1), count_of(count, size, count // size))
        totals = [np.zeros((size, size), order="F") for _ in ends[1:]]
        step = max(16, NUMBERS_PER_BLOCK // (size * len(totals)))

        def add(block: int, start: int, stop: int) -> None:
            part = rows[start:stop] * root[start:stop, None]
            if len(totals) == 1:
                totals[block] = dsyrk(1.0, part.T, beta=1.0, c=totals[block], lower=1, overwrite_c=1)
            else:
                # SciPy's call would hold the lock of Python.
                totals[block] += (part.T @ part).T

        return _add_blocks(add, totals, ends, step, self.must_stop)


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
        n, k = self.shape
        count = count_of(n, k, self.by_columns.nnz // BLOCK_NUMBERS)
        self._row_ends, self._column_ends = (cut(one.indptr, count) for one in (self.by_rows, self.by_columns))

    def times(self, w: Array) -> Array:
        """Zw, shape (n,)."""
        return _sparse_blockwise(self.by_rows, w, self._row_ends)

    def pull(self, alpha: Array) -> Array:
        """Z'α, shape (k,)."""
        return _sparse_blockwise(self._turned, alpha, self._column_ends)

    def gram(self, weights: Array) -> Array:
        """Lower triangle of Z' diag(weights) Z, shape (k, k)."""
        return self._weighted_gram(self.by_rows, self._row_squares, weights, self.shape[1])

    def outer(self, weights: Array) -> Array:
        """Lower triangle of Z diag(weights) Z', shape (n, n)."""
        return self._weighted_gram(self.by_columns, self._column_squares, weights, self.shape[0])

    @cached_property
    def _row_squares(self) -> Integers:
        return _ends_of_squares(self.by_rows, self.shape)

    @cached_property
    def _column_squares(self) -> Integers:
        return _ends_of_squares(self.by_columns, self.shape[::-1])

    def _weighted_gram(self, major: Any, ends: Integers, weights: Array, size: int) -> Array:
        """Σ_r weights_r z_r z_r', block by block."""
        totals = [np.zeros((size, size)) for _ in ends[1:]]
        step = max(16, NUMBERS_PER_BLOCK * weights.size // max(1, major.nnz * 8))

        def add(block: int, start: int, stop: int) -> None:
            sparse_gram(major.data, major.indices, major.indptr, weights, start, stop, totals[block])

        return _add_blocks(add, totals, ends, step, self.must_stop).T


def _blockwise_product(rows: Array, v: Array, ends: Integers) -> Array:
    """rows·v, some rows of a dense array after the other."""
    if ends.size == 2:
        return np.asarray(rows @ v)
    found = np.empty(rows.shape[0])

    def multiply(block: int) -> None:
        own = slice(ends[block], ends[block + 1])
        found[own] = rows[own] @ v

    run_each(multiply, ends.size - 1)
    return found


def _sparse_blockwise(rows: Any, v: Array, ends: Integers) -> Array:
    """rows·v, some rows of a CSR array after the other."""
    if ends.size == 2:
        return np.asarray(rows @ v)
    found = np.empty(rows.shape[0])
    parts = rows.data, rows.indices, rows.indptr, np.ascontiguousarray(v)
    run_each(lambda block: sparse_times(*parts, ends[block], ends[block + 1], found), ends.size - 1)
    return found


def meet_long(X: Any) -> None:
    """Call the kernel of long sparse columns on short ones, so that no run pays for compiling it."""
    if sparse.issparse(X):
        design = Sparse(X, bool)
        for rows in (design.by_rows, design._turned):
            v, found = np.zeros(rows.shape[1]), np.empty(rows.shape[0])
            sparse_times(rows.data, rows.indices, rows.indptr, v, np.int64(0), np.int64(found.size), found)


def _add_blocks(
    add: Callable[[int, int, int], None],
    totals: list[Array],
    ends: Integers,
    step: int,
    must_stop: Callable[[], bool],
) -> Array:
    """The sum of `totals`, to which `add` adds in blocks between `ends`, some rows after the other."""
    if len(totals) == 1:
        for start in range(ends[0], ends[1], step):
            if start and must_stop():
                raise Interrupted
            add(0, start, min(start + step, ends[1]))
        return totals[0]
    stopped, caller = Event(), get_ident()

    def fill(block: int) -> None:
        for start in range(ends[block], ends[block + 1], step):
            if not stopped.is_set() and get_ident() == caller and start and must_stop():
                stopped.set()
            if stopped.is_set():
                return
            add(block, start, min(start + step, ends[block + 1]))

    run_each(fill, len(totals))
    if stopped.is_set():
        raise Interrupted
    for total in totals[1:]:
        totals[0] += total
    return totals[0]


def _ends_of_squares(major: Any, shape: tuple[int, int]) -> Integers:
    """Where blocks of equal work begin and end, of products of the lines of a sparse array with themselves."""
    work = np.append(0.0, np.cumsum(np.square(np.diff(major.indptr).astype(float))))
    return cut(work, count_of(*shape, work[-1] / max(BLOCK_WORK, BLOCK_WORK_PER_NUMBER * shape[1] ** 2)))
