"""Products of sparse rows with themselves, and hashes of dense rows."""

from __future__ import annotations

import numpy as np

from mipfs.compiled import compiled
from mipfs.kernels.rows import mixed


@compiled(nogil=True)
def sparse_gram(data, indices, indptr, weights, first, last, out):  # type: ignore[no-untyped-def]
    """Add Σ_r weights_r z_r z_r' of the CSR rows first … last − 1 to the upper triangle of out (k, k).

    The columns of every row are in ascending order.
    """
    for r in range(first, last):
        if weights[r] == 0.0:
            continue
        for a in range(indptr[r], indptr[r + 1]):
            value = weights[r] * data[a]
            i = indices[a]
            for b in range(a, indptr[r + 1]):
                out[i, indices[b]] += value * data[b]


@compiled(nogil=True)
def scale_lower(M, factors):  # type: ignore[no-untyped-def]
    """Multiply the lower triangle of M (k, k) by factors (k,) from both sides."""
    for j in range(factors.size):
        for i in range(j, factors.size):
            M[i, j] *= factors[i] * factors[j]


@compiled(nogil=True)
def hash_dense_rows(bits, out):  # type: ignore[no-untyped-def]
    """Add a hash of every row to out (n,); bits (n, k) are the values as uint64, zeros count for nothing."""
    n, k = bits.shape
    for j in range(k):
        for i in range(n):
            if bits[i, j] << np.uint64(1) != 0:
                out[i] += mixed(bits[i, j], j)
