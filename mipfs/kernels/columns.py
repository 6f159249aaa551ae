"""Passes over chosen columns z_j = y∘x_j, for the kernels: dense and column-major, or a CSC triple.

A CSC triple is (data, indices, indptr); both kinds compile from the same call. For `curvature` the same three of the
rows (CSR) follow: there a row's own numbers are all that counts.
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

TILE = 128
"""Rows of the curvature matrix that are made at a time: half of a product A·A' is the other half again."""


def dot_columns(Z: Any, cols: Any, v: Any, out: Any) -> None:
    """out_t = z_{cols[t]}'v."""
    raise NotImplementedError


def add_columns(Z: Any, cols: Any, scale: Any, out: Any) -> None:
    """out += Σ_t scale_t z_{cols[t]}."""
    raise NotImplementedError


def curvature(Z: Any, y: Any, cols: Any, inner: Any, curve: Any, bias: Any, H: Any) -> None:
    """H = Σ over `inner` of curve_i a_i a_i', a_i = (z_i[cols], y_i)."""
    raise NotImplementedError


def by_rows(data: Array, indices: Integers, indptr: Integers, n: int) -> tuple[Array, Integers, Integers]:
    """The rows (CSR triple) of n rows in CSC."""
    rows = sparse.csr_array(sparse.csc_array((data, indices, indptr), shape=(n, indptr.size - 1)))
    return rows.data, rows.indices.astype(np.int32), rows.indptr.astype(np.int64)


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
                total, column = 0.0, Z[:, cols[t]]
                for i in range(n):
                    total += column[i] * v[i]
                out[t] = total

        return dense

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
                a, column = scale[used[u]], Z[:, cols[used[u]]]
                for i in range(n):
                    out[i] += a * column[i]

        return dense

    def csc(Z, cols, scale, out):  # type: ignore[no-untyped-def]
        for t in range(cols.size):
            if scale[t] != 0.0:
                for s in range(Z[2][cols[t]], Z[2][cols[t] + 1]):
                    out[Z[1][s]] += scale[t] * Z[0][s]

    return csc


@overload(curvature)
def _curvature(Z, y, cols, inner, curve, bias, H):  # type: ignore[no-untyped-def]
    if isinstance(Z, types.Array):

        def dense(Z, y, cols, inner, curve, bias, H):  # type: ignore[no-untyped-def]
            k, count = cols.size, inner.size
            if count == 0:
                H[:, :] = 0.0
                if bias:
                    H[k, k] = 1.0
                return
            R, root = np.empty((H.shape[0], count)), np.empty(count)
            for r in range(count):
                root[r] = np.sqrt(curve[inner[r]])
            for t in range(k):
                column = Z[:, cols[t]]
                for r in range(count):
                    R[t, r] = column[inner[r]] * root[r]
            if bias:
                for r in range(count):
                    R[k, r] = y[inner[r]] * root[r]
            size = H.shape[0]
            for low in range(0, size, TILE):  # the lower triangle in tiles, then its mirror image
                high = min(low + TILE, size)
                H[low:high, :high] = np.dot(R[low:high], R[:high].T)
            for a in range(size):
                for b in range(a):
                    H[b, a] = H[a, b]

        return dense

    def csc(Z, y, cols, inner, curve, bias, H):  # type: ignore[no-untyped-def]
        k = cols.size
        H[:, :] = 0.0
        position, ids, values = np.full(Z[2].size - 1, -1, np.int64), np.empty(k, np.int64), np.empty(k)
        for t in range(k):
            position[cols[t]] = t
        for r in range(inner.size):
            i, count = inner[r], 0
            h = curve[i]
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
        if bias and inner.size == 0:
            H[k, k] = 1.0
        for a in range(H.shape[0]):
            for b in range(a):
                H[b, a] = H[a, b]

    return csc
