"""Passes over chosen columns z_j = y∘x_j, for the kernels: dense and column-major, or a CSC triple.

A CSC triple is (data, indices, indptr); both kinds compile from the same call. Where some rows are all that counts
(`add_rows`, `add_curvature`) the numbers are there twice, by rows too: a pair of arrays, column-major and row-major, or
CSC and CSR as six arrays. Where that would take too much memory the row-major one has no rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import types
from numba.extending import overload
from scipy import sparse

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
    """out += Σ_t scale_t z_{cols[t]}."""
    raise NotImplementedError


def width(Z: Any) -> int:
    """How many columns there are."""
    raise NotImplementedError


def few_rows(Z: Any, count: int, q: int) -> bool:
    """Whether `add_rows` of `count` rows costs less than `dot_columns` of q columns."""
    raise NotImplementedError


def add_rows(Z: Any, rows: Any, scale: Any, out: Any) -> None:
    """out += Σ_r scale_r z_{rows[r]}, over all columns."""
    raise NotImplementedError


def add_curvature(Z: Any, y: Any, cols: Any, rows: Any, curve: Any, bias: Any, H: Any) -> None:
    """H += Σ_r curve_r a_i a_i', i = rows[r], a_i = (z_i[cols], y_i); a negative weight takes a row out again."""
    raise NotImplementedError


def by_rows(data: Array, indices: Integers, indptr: Integers, n: int) -> tuple[Array, Integers, Integers]:
    """The rows (CSR triple) of n rows in CSC."""
    rows = sparse.csr_array(sparse.csc_array((data, indices, indptr), shape=(n, indptr.size - 1)))
    return rows.data, rows.indices.astype(np.int32), rows.indptr.astype(np.int64)


def two_at_least(Z: Array) -> Array:
    """Column-major Z, filled up to two columns with zeros: one alone is typed as stored by rows, and compiled anew."""
    n, k = Z.shape
    return np.asfortranarray(Z) if k >= 2 else np.asfortranarray(np.hstack([Z, np.zeros((n, 2 - k))]))


def both_ways(Z: Array, most: int) -> tuple[Array, Array]:
    """Column-major Z beside its rows, which are left out where they have more than `most` numbers."""
    return Z, np.ascontiguousarray(Z if Z.size <= most else Z[:0])


@overload(dot_columns, jit_options={"fastmath": True})
def _dot_columns(Z, cols, v, out):  # type: ignore[no-untyped-def]
    if isinstance(Z, types.Array):

        def dense(Z, cols, v, out):  # type: ignore[no-untyped-def]
            n, k = v.size, cols.size
            whole = k - k % 4
            for t in range(0, whole, 4):  # four columns share every load of v
                p, q, r, s = Z[:, cols[t]], Z[:, cols[t + 1]], Z[:, cols[t + 2]], Z[:, cols[t + 3]]
                a, b, c, e = 0.0, 0.0, 0.0, 0.0
                for i in range(n):
                    x = v[i]
                    a += p[i] * x
                    b += q[i] * x
                    c += r[i] * x
                    e += s[i] * x
                out[t], out[t + 1], out[t + 2], out[t + 3] = a, b, c, e
            for t in range(whole, k):
                total = 0.0
                column = Z[:, cols[t]]
                for i in range(n):
                    total += column[i] * v[i]
                out[t] = total

        return dense

    if len(Z) == 2:
        return lambda Z, cols, v, out: dot_columns(Z[0], cols, v, out)

    def csc(Z, cols, v, out):  # type: ignore[no-untyped-def]
        for t in range(cols.size):
            total = 0.0
            for s in range(Z[2][cols[t]], Z[2][cols[t] + 1]):
                total += Z[0][s] * v[Z[1][s]]
            out[t] = total

    return csc


@overload(add_columns, jit_options={"fastmath": True})
def _add_columns(Z, cols, scale, out):  # type: ignore[no-untyped-def]
    if isinstance(Z, types.Array):

        def dense(Z, cols, scale, out):  # type: ignore[no-untyped-def]
            n, k = out.size, cols.size
            used = np.empty(k, np.int64)
            count = 0
            for t in range(k):
                if scale[t] != 0.0:
                    used[count] = t
                    count += 1
            whole = count - count % 4
            for u in range(0, whole, 4):
                p, q, r, s = (
                    Z[:, cols[used[u]]], Z[:, cols[used[u + 1]]], Z[:, cols[used[u + 2]]], Z[:, cols[used[u + 3]]]
                )  # fmt: skip
                a, b, c, e = scale[used[u]], scale[used[u + 1]], scale[used[u + 2]], scale[used[u + 3]]
                for i in range(n):
                    out[i] += a * p[i] + b * q[i] + c * r[i] + e * s[i]
            for u in range(whole, count):
                a = scale[used[u]]
                column = Z[:, cols[used[u]]]
                for i in range(n):
                    out[i] += a * column[i]

        return dense

    if len(Z) == 2:
        return lambda Z, cols, scale, out: add_columns(Z[0], cols, scale, out)

    def csc(Z, cols, scale, out):  # type: ignore[no-untyped-def]
        for t in range(cols.size):
            if scale[t] != 0.0:
                for s in range(Z[2][cols[t]], Z[2][cols[t] + 1]):
                    out[Z[1][s]] += scale[t] * Z[0][s]

    return csc


@overload(width)
def _width(Z):  # type: ignore[no-untyped-def]
    if len(Z) == 2:
        return lambda Z: Z[0].shape[1]
    return lambda Z: Z[2].size - 1


@overload(few_rows)
def _few_rows(Z, count, q):  # type: ignore[no-untyped-def]
    if len(Z) == 2:

        def dense(Z, count, q):  # type: ignore[no-untyped-def]
            n, k = Z[1].shape
            return count * k <= FEW_ROWS_SHARE * n * q

        return dense

    def csr(Z, count, q):  # type: ignore[no-untyped-def]
        return count * (Z[2].size - 1) <= FEW_ROWS_SHARE * (Z[5].size - 1) * q

    return csr


@overload(add_rows, jit_options={"fastmath": True})
def _add_rows(Z, rows, scale, out):  # type: ignore[no-untyped-def]
    if len(Z) == 2:

        def dense(Z, rows, scale, out):  # type: ignore[no-untyped-def]
            count = rows.size
            k = out.size
            whole = count - count % 4
            for u in range(0, whole, 4):
                p, q, r, s = Z[1][rows[u]], Z[1][rows[u + 1]], Z[1][rows[u + 2]], Z[1][rows[u + 3]]
                a, b, c, e = scale[u], scale[u + 1], scale[u + 2], scale[u + 3]
                for t in range(k):
                    out[t] += a * p[t] + b * q[t] + c * r[t] + e * s[t]
            for u in range(whole, count):
                a = scale[u]
                row = Z[1][rows[u]]
                for t in range(k):
                    out[t] += a * row[t]

        return dense

    def csr(Z, rows, scale, out):  # type: ignore[no-untyped-def]
        for r in range(rows.size):
            for s in range(Z[5][rows[r]], Z[5][rows[r] + 1]):
                out[Z[4][s]] += scale[r] * Z[3][s]

    return csr


@overload(add_curvature)
def _add_curvature(Z, y, cols, rows, curve, bias, H):  # type: ignore[no-untyped-def]  # noqa: C901  # two kernels, one for each kind of data
    if len(Z) == 2:

        def dense(Z, y, cols, rows, curve, bias, H):  # type: ignore[no-untyped-def]
            k, count, size = cols.size, rows.size, H.shape[0]
            if count == 0:
                return
            R, root, least = np.empty((size, count)), np.empty(count), 0.0
            for r in range(count):
                root[r] = np.sqrt(abs(curve[r]))
                least = min(least, curve[r])
            if Z[1].shape[0] > 0:
                for low in range(0, count, STRIP_SAMPLES):  # a strip of samples stays in the cache
                    high = min(low + STRIP_SAMPLES, count)
                    for t in range(k):
                        j = cols[t]
                        for r in range(low, high):
                            R[t, r] = Z[1][rows[r], j] * root[r]
            else:
                for t in range(k):
                    column = Z[0][:, cols[t]]
                    for r in range(count):
                        R[t, r] = column[rows[r]] * root[r]
            if bias:
                for r in range(count):
                    R[k, r] = y[rows[r]] * root[r]
            S = R
            if least < 0.0:
                S = R.copy()
                for r in range(count):
                    if curve[r] < 0.0:
                        for t in range(size):
                            S[t, r] = -R[t, r]
            for low in range(0, size, TILE_ROWS):  # the lower triangle in tiles, then its mirror image
                high = min(low + TILE_ROWS, size)
                tile = np.dot(S[low:high], R[:high].T)
                for a in range(low, high):
                    for b in range(high):
                        H[a, b] += tile[a - low, b]
            for a in range(size):
                for b in range(a):
                    H[b, a] = H[a, b]

        return dense

    def csr(Z, y, cols, rows, curve, bias, H):  # type: ignore[no-untyped-def]
        k = cols.size
        position, ids, values = np.full(Z[2].size - 1, -1, np.int64), np.empty(k, np.int64), np.empty(k)
        for t in range(k):
            position[cols[t]] = t
        for r in range(rows.size):
            i, count = rows[r], 0
            h = curve[r]
            for s in range(Z[5][i], Z[5][i + 1]):
                t = position[Z[4][s]]
                if t >= 0:
                    ids[count], values[count] = t, Z[3][s]
                    count += 1
            for a in range(count):
                value = h * values[a]
                for b in range(a + 1):
                    H[max(ids[a], ids[b]), min(ids[a], ids[b])] += value * values[b]
                if bias:
                    H[k, ids[a]] += value * y[i]
            if bias:
                H[k, k] += h
        for a in range(H.shape[0]):
            for b in range(a):
                H[b, a] = H[a, b]

    return csr
