"""Products of sparse rows with themselves and with vectors, and hashes of dense rows."""

from __future__ import annotations

import numpy as np

from mipfs.compiled import compiled


@compiled(nogil=True)
def sparse_gram(data, indices, indptr, weights, first, last, out):  # type: ignore[no-untyped-def]
    """Add Σ_r weights_r z_r z_r' of the CSR rows first … last − 1 to the upper triangle of out (k, k).

    The columns of every row are in ascending order.
    """
    for r in range(first, last):
        if weights[r] == 0.0:
            continue
        end = np.uint64(indptr[r + 1])
        for a in range(np.uint64(indptr[r]), end):
            value = weights[r] * data[a]
            row = out[np.uint64(indices[a])]
            for b in range(a, end):
                row[np.uint64(indices[b])] += value * data[b]


@compiled(nogil=True, fastmath=True)
def sparse_times(data, indices, indptr, v, first, last, out):  # type: ignore[no-untyped-def]
    """out_r = Σ_s z_rs v_s of the CSR rows first … last − 1, each summed alike whatever rows there are beside it."""
    low = np.uint64(indptr[first])
    for r in range(np.uint64(first), np.uint64(last)):
        high = np.uint64(indptr[r + np.uint64(1)])
        total = 0.0
        for s in range(low, high):
            total += data[s] * v[np.uint64(indices[s])]
        out[r] = total
        low = high


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
                out[i] += mix_hash(bits[i, j], j)


@compiled(nogil=True)
def mix_hash(bits, j):  # type: ignore[no-untyped-def]
    """A hash of an entry and its column; those of a row are added up."""
    x = bits ^ (np.uint64(j + 1) * np.uint64(0x9E3779B97F4A7C15))
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
