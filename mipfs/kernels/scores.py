"""Passes over the columns of a matrix on all threads: the numba kernels."""

from __future__ import annotations

from numba import prange

from mipfs.compiled import compiled

CHUNKS = 64
"""Pieces of the columns that the threads share."""


@compiled(parallel=True, nogil=True)
def column_sums(data, indptr, divisor, divided, scale, bounds, largest):  # type: ignore[no-untyped-def]
    """λ_j Σ_i |x_ij| of every column, a little above, and the largest λ_j² Σ_i x_ij² of every piece.

    x_ij is the stored number, or that divided by divisor_j where `divided` says so.
    """
    p = indptr.size - 1
    for chunk in prange(CHUNKS):
        most = 0.0
        for j in range(chunk * p // CHUNKS, (chunk + 1) * p // CHUNKS):
            one, two = 0.0, 0.0
            by = divisor[j] if divided else 1.0
            for s in range(indptr[j], indptr[j + 1]):
                x = data[s] / by
                one += abs(x)
                two += x * x
            bound = one * scale[j] * (1.0 + 1e-6)  # neither this rounding nor float32 makes it too small
            bounds[j] = max(bound, 1.2e-38) if bound > 0.0 else 0.0
            most = max(most, two * scale[j] * scale[j])
        largest[chunk] = most


@compiled(nogil=True)
def bounded_pull(data, indices, indptr, divisor, divided, columns, bounds, scale, height, least, v, sizes, low, high):  # type: ignore[no-untyped-def]
    """|λ_j ω_j|, ω_j = Σ_i x_ij v_i, of the columns low … high − 1 among the given ones.

    It is 0 where bounds_j·height < least: such a column is not read.

    Parameters
    ----------
    data, indices, indptr : the CSC matrix as it is stored
    divisor, divided : x_ij is the stored number, or that divided by divisor_j (p,) where `divided` says so
    columns : (k,) positions
    bounds : (p,) array with |λ_j ω_j| ≤ bounds_j·height
    scale : (p,) λ
    height : float, max |v|
    least : float
    v : (n,)
    sizes : (k,) out
    low, high : int
    """
    for r in range(low, high):
        j = columns[r]
        sizes[r] = 0.0
        if bounds[j] * height < least:
            continue
        total = 0.0
        if divided:
            by = divisor[j]
            for s in range(indptr[j], indptr[j + 1]):
                total += data[s] / by * v[indices[s]]
        else:
            for s in range(indptr[j], indptr[j + 1]):
                total += data[s] * v[indices[s]]
        sizes[r] = abs(total) * scale[j]


@compiled(parallel=True, nogil=True)
def pull_at_once(data, indices, indptr, divisor, divided, columns, bounds, scale, height, least, v, sizes):  # type: ignore[no-untyped-def]
    """The same of all given columns, on all threads."""
    k = columns.size
    for chunk in prange(CHUNKS):
        low, high = chunk * k // CHUNKS, (chunk + 1) * k // CHUNKS
        bounded_pull(
            data, indices, indptr, divisor, divided, columns, bounds, scale, height, least, v, sizes, low, high
        )


@compiled(parallel=True, nogil=True)
def dense_pull(X, v, out):  # type: ignore[no-untyped-def]
    """out_j = Σ_i x_ij v_i of dense columns, summed alike whatever stands beside a column.

    Parameters
    ----------
    X : (n, w) array in Fortran order
    v : (n,)
    out : (w,) out
    """
    n, w = X.shape
    whole = n - n % 8
    for chunk in prange(CHUNKS):
        for j in range(chunk * w // CHUNKS, (chunk + 1) * w // CHUNKS):
            x = X[:, j]
            a, b, c, d, e, f, g, h = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
            for i in range(0, whole, 8):
                a += x[i] * v[i]
                b += x[i + 1] * v[i + 1]
                c += x[i + 2] * v[i + 2]
                d += x[i + 3] * v[i + 3]
                e += x[i + 4] * v[i + 4]
                f += x[i + 5] * v[i + 5]
                g += x[i + 6] * v[i + 6]
                h += x[i + 7] * v[i + 7]
            total = ((a + b) + (c + d)) + ((e + f) + (g + h))
            for i in range(whole, n):
                total += x[i] * v[i]
            out[j] = total
