"""Passes over the columns of a CSC matrix on all threads: the numba kernels."""

from __future__ import annotations

from numba import prange

from mipfs.compiled import compiled

CHUNKS = 64
"""Pieces of the columns that the threads share."""


@compiled(parallel=True, nogil=True)
def column_sums(data, indptr, scale, bounds, largest):  # type: ignore[no-untyped-def]
    """λ_j Σ_i |x_ij| of every column, a little above, and the largest λ_j² Σ_i x_ij² of every piece."""
    p = indptr.size - 1
    for chunk in prange(CHUNKS):
        most = 0.0
        for j in range(chunk * p // CHUNKS, (chunk + 1) * p // CHUNKS):
            one, two = 0.0, 0.0
            for s in range(indptr[j], indptr[j + 1]):
                one += abs(data[s])
                two += data[s] * data[s]
            bounds[j] = one * scale[j] * (1.0 + 1e-6)  # neither this rounding nor float32 makes it too small
            most = max(most, two * scale[j] * scale[j])
        largest[chunk] = most


@compiled(nogil=True)
def pull(data, indices, indptr, columns, scale, v, sizes, low, high):  # type: ignore[no-untyped-def]
    """|λ_j ω_j|, ω_j = Σ_i x_ij v_i, of the columns low … high − 1 among the given ones.

    Parameters
    ----------
    data, indices, indptr : the CSC matrix
    columns : (k,) positions
    scale : (p,) λ
    v : (n,)
    sizes : (k,) out
    low, high : int
    """
    for r in range(low, high):
        j = columns[r]
        total = 0.0
        for s in range(indptr[j], indptr[j + 1]):
            total += data[s] * v[indices[s]]
        sizes[r] = abs(total) * scale[j]


@compiled(parallel=True, nogil=True)
def pull_at_once(data, indices, indptr, columns, scale, v, sizes):  # type: ignore[no-untyped-def]
    """The same of all given columns, on all threads."""
    k = columns.size
    for chunk in prange(CHUNKS):
        pull(data, indices, indptr, columns, scale, v, sizes, chunk * k // CHUNKS, (chunk + 1) * k // CHUNKS)
