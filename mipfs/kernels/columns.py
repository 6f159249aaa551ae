"""Passes over chosen columns z_j = y∘x_j, for the kernels: a dense column-major array, a CSC triple, or `Numbers`.

Positions are read as numbers without a sign, from which numba counts no place from the end: passes over sparse columns
take half the time, or less.

A CSC triple is (data, indices, indptr); passes over an array and over a triple compile from the same call. `Numbers` is
one type for both kinds of data, so that what takes long to compile is compiled once; which kind it holds is asked once
a pass. Where some rows are all that counts (a sum of rows, `add_curvature`) the numbers are there twice, in `TwoWays`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import types
from numba.extending import overload
from scipy import sparse

from mipfs.compiled import compiled
from mipfs.compiled.lent import BorrowedTuple

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.integer[Any]]

TILE_ROWS, STRIP_SAMPLES = 128, 8
"""Rows of the curvature matrix that are made at a time: half of a product A·A' is the other half again. Samples that
are copied at a time."""
FEW_ROWS_SHARE = 0.5
"""Up to this share of the samples their rows are added instead of all columns."""


def dot_columns(Z: Any, cols: Any, v: Any, out: Any) -> None:
    """out_t = z_{cols[t]}'v."""
    raise NotImplementedError


def add_columns(Z: Any, cols: Any, scale: Any, out: Any) -> None:
    """out += Σ_t scale_t z_{cols[t]}; of the rows of `TwoWays`, their sum over all columns."""
    raise NotImplementedError


class Numbers(NamedTuple):
    """A matrix by its lines, the columns or the rows, dense or sparse.

    number, length : how many lines there are, and how long they are; (0, length) where they would take too much memory
    data, indices, indptr : as in CSC and CSR; of dense numbers line after line, with indptr (0,)
    """

    number: int
    length: int
    data: Array
    indices: Integers
    indptr: Integers

    @classmethod
    def dense(cls, Z: Array) -> Numbers:
        """The rows of an array, or the columns of its transpose."""
        return cls(*Z.shape, *_read(Z.ravel(), np.empty(0, np.int32), np.empty(0, np.int64)))

    @classmethod
    def sparse(cls, Z: Any) -> Numbers:
        """The columns of a SciPy CSC array, or the rows of a CSR array."""
        shape = Z.shape if Z.format == "csr" else Z.shape[::-1]
        return cls(*shape, *_read(Z.data, Z.indices.astype(np.int32), Z.indptr.astype(np.int64)))


class TwoWays(NamedTuple):
    """A matrix by its columns and by its rows."""

    columns: Numbers
    rows: Numbers

    @classmethod
    def dense(cls, Z: Array, most: int) -> TwoWays:
        """Dense columns, and their rows unless they have more than `most` numbers."""
        return cls(Numbers.dense(Z.T), Numbers.dense(Z if Z.size <= most else Z[:0]))

    @classmethod
    def sparse(cls, Z: Any) -> TwoWays:
        """Sparse columns, a SciPy CSC array, and their rows."""
        return cls(Numbers.sparse(Z), Numbers.sparse(sparse.csr_array(Z)))


def _read(*arrays: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], ...]:
    """Arrays that are only read, of one type whoever owns them."""
    views = tuple(np.ascontiguousarray(array).view() for array in arrays)
    for view in views:
        view.flags.writeable = False
    return views


def two_at_least(Z: Array) -> Array:
    """Column-major Z, filled up to two columns with zeros: one alone is typed as stored by rows, and compiled anew."""
    n, k = Z.shape
    return np.asfortranarray(Z) if k >= 2 else np.asfortranarray(np.hstack([Z, np.zeros((n, 2 - k))]))


@overload(dot_columns, jit_options={"fastmath": True, "forceinline": True})
def _dot_columns(Z, cols, v, out):  # type: ignore[no-untyped-def]
    if isinstance(Z, types.Array):

        def dense(Z, cols, v, out):  # type: ignore[no-untyped-def]
            n = v.size
            k = cols.size
            whole = k - k % 4
            for t in range(0, whole, 4):
                # Four columns share every load of v.
                p = Z[:, cols[t]]
                q = Z[:, cols[t + 1]]
                r = Z[:, cols[t + 2]]
                s = Z[:, cols[t + 3]]
                a = 0.0
                b = 0.0
                c = 0.0
                e = 0.0
                for i in range(n):
                    x = v[i]
                    a += p[i] * x
                    b += q[i] * x
                    c += r[i] * x
                    e += s[i] * x
                out[t] = a
                out[t + 1] = b
                out[t + 2] = c
                out[t + 3] = e
            for t in range(whole, k):
                total = 0.0
                column = Z[:, cols[t]]
                for i in range(n):
                    total += column[i] * v[i]
                out[t] = total

        return dense

    if isinstance(Z, (types.BaseNamedTuple, BorrowedTuple)):

        def either(Z, cols, v, out):  # type: ignore[no-untyped-def]
            if is_sparse(Z):
                dot_columns((Z.data, Z.indices, Z.indptr), cols, v, out)
            else:
                dot_columns(lines(Z).T, cols, v, out)

        return either

    def csc(Z, cols, v, out):  # type: ignore[no-untyped-def]
        data, indices, indptr = Z
        for t in range(cols.size):
            total = 0.0
            for s in range(np.uint64(indptr[cols[t]]), np.uint64(indptr[cols[t] + 1])):
                total += data[s] * v[np.uint64(indices[s])]
            out[t] = total

    return csc


@overload(add_columns, jit_options={"fastmath": True, "forceinline": True})
def _add_columns(Z, cols, scale, out):  # type: ignore[no-untyped-def]
    if isinstance(Z, types.Array):

        def dense(Z, cols, scale, out):  # type: ignore[no-untyped-def]
            n = out.size
            k = cols.size
            used = np.empty(k, np.int64)
            count = 0
            for t in range(k):
                if scale[t] != 0.0:
                    used[count] = t
                    count += 1
            whole = count - count % 4
            for u in range(0, whole, 4):
                p = Z[:, cols[used[u]]]
                q = Z[:, cols[used[u + 1]]]
                r = Z[:, cols[used[u + 2]]]
                s = Z[:, cols[used[u + 3]]]
                a = scale[used[u]]
                b = scale[used[u + 1]]
                c = scale[used[u + 2]]
                e = scale[used[u + 3]]
                for i in range(n):
                    out[i] += a * p[i] + b * q[i] + c * r[i] + e * s[i]
            for u in range(whole, count):
                a = scale[used[u]]
                column = Z[:, cols[used[u]]]
                for i in range(n):
                    out[i] += a * column[i]

        return dense

    if isinstance(Z, (types.BaseNamedTuple, BorrowedTuple)):

        def either(Z, cols, scale, out):  # type: ignore[no-untyped-def]
            if is_sparse(Z):
                add_columns((Z.data, Z.indices, Z.indptr), cols, scale, out)
            else:
                add_columns(lines(Z).T, cols, scale, out)

        return either

    def csc(Z, cols, scale, out):  # type: ignore[no-untyped-def]
        data, indices, indptr = Z
        for t in range(cols.size):
            factor = scale[t]
            if factor != 0.0:
                for s in range(np.uint64(indptr[cols[t]]), np.uint64(indptr[cols[t] + 1])):
                    out[np.uint64(indices[s])] += factor * data[s]

    return csc


@compiled(nogil=True, inline="always")
def is_sparse(Z):  # type: ignore[no-untyped-def]
    """Which kind of numbers there is."""
    return Z.indptr.size > 0


@compiled(nogil=True, inline="always")
def lines(Z):  # type: ignore[no-untyped-def]
    """The lines of dense numbers, as a row-major array."""
    return Z.data.reshape((Z.number, Z.length))


@compiled(nogil=True)
def few_rows(Z, count, q):  # type: ignore[no-untyped-def]
    """Whether a sum of `count` rows costs less than `dot_columns` of q columns, and rows are there."""
    return count * Z.rows.length <= FEW_ROWS_SHARE * Z.rows.number * q


@compiled(nogil=True)
def add_curvature(Z, y, cols, rows, curve, bias, H):  # type: ignore[no-untyped-def]
    """H += Σ_r curve_r a_i a_i', i = rows[r], a_i = (z_i[cols], y_i); a negative weight takes a row out again."""
    if rows.size == 0:
        return
    if is_sparse(Z.rows):
        position = np.full(Z.rows.length, -1, np.int64)
        for t in range(cols.size):
            position[cols[t]] = t
        add_sparse_curvature(Z.rows, y, position, rows, curve, bias, H)
    else:
        add_dense_curvature(Z, y, cols, rows, curve, bias, H)
    for a in range(H.shape[0]):
        for b in range(a):
            H[b, a] = H[a, b]


@compiled(nogil=True)
def add_dense_curvature(Z, y, cols, rows, curve, bias, H):  # type: ignore[no-untyped-def]
    """The lower triangle of `add_curvature` of dense numbers, as products of matrices in tiles."""
    count = rows.size
    size = H.shape[0]
    root = np.empty(count)
    least = 0.0
    for r in range(count):
        root[r] = np.sqrt(abs(curve[r]))
        least = min(least, curve[r])
    R = np.empty((size, count))
    copy_scaled(Z, cols, rows, root, R)
    if bias:
        for r in range(count):
            R[cols.size, r] = y[rows[r]] * root[r]
    S = R
    if least < 0.0:
        S = R.copy()
        for r in range(count):
            if curve[r] < 0.0:
                for t in range(size):
                    S[t, r] = -R[t, r]
    for low in range(0, size, TILE_ROWS):
        high = min(low + TILE_ROWS, size)
        tile = np.dot(S[low:high], R[:high].T)
        for a in range(low, high):
            for b in range(high):
                H[a, b] += tile[a - low, b]


@compiled(nogil=True)
def copy_scaled(Z, cols, rows, root, R):  # type: ignore[no-untyped-def]
    """R[t, r] = root_r Z[rows[r], cols[t]], of dense numbers."""
    count = rows.size
    if Z.rows.number == 0:
        columns = lines(Z.columns)
        for t in range(cols.size):
            column = columns[cols[t]]
            for r in range(count):
                R[t, r] = column[rows[r]] * root[r]
        return
    by_rows = lines(Z.rows)
    for low in range(0, count, STRIP_SAMPLES):
        # A strip of samples stays in the cache.
        high = min(low + STRIP_SAMPLES, count)
        for t in range(cols.size):
            j = cols[t]
            for r in range(low, high):
                R[t, r] = by_rows[rows[r], j] * root[r]


@compiled(nogil=True)
def add_sparse_curvature(Z, y, position, rows, curve, bias, H):  # type: ignore[no-untyped-def]
    """The lower triangle of `add_curvature` of sparse rows; `position` (k,) is the place of a chosen column, or −1."""
    data = Z.data
    indices = Z.indices
    indptr = Z.indptr
    k = H.shape[0] - bias
    ids = np.empty(k, np.uint64)
    values = np.empty(k)
    one = np.uint64(1)
    for r in range(rows.size):
        i = rows[r]
        count = np.uint64(0)
        h = curve[r]
        for s in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            t = position[np.uint64(indices[s])]
            if t >= 0:
                ids[count] = np.uint64(t)
                values[count] = data[s]
                count += one
        for a in range(count):
            value = h * values[a]
            for b in range(a + one):
                H[max(ids[a], ids[b]), min(ids[a], ids[b])] += value * values[b]
            if bias:
                H[k, ids[a]] += value * y[i]
        if bias:
            H[k, k] += h
