"""Passes over the columns of a matrix, of which threads take parts: the numba kernels."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mipfs.compiled import compiled

PARALLEL_CHUNKS = 64
"""Pieces of the columns that the threads share."""
SUMS_PER_COLUMN = 32
"""Sums that a dense column is added up in. With 8 written out float32 takes nine times as long (1000 × 8000)."""


class ScaledColumns(NamedTuple):
    """A CSC matrix with a factor for every column.

    data, indices, indptr : as it is stored;  divisor, divided : x_ij is the stored number, or that divided by divisor_j
    (p,) where `divided` says so;  scale : (p,) λ
    """

    data: npt.NDArray[Any]
    indices: npt.NDArray[Any]
    indptr: npt.NDArray[Any]
    divisor: npt.NDArray[Any]
    divided: bool
    scale: npt.NDArray[Any]


class Reach(NamedTuple):
    """What rules out columns unread: |λ_j ω_j| ≤ bounds_j·height, and only what is `least` at least is wanted.

    bounds : (p,);  height : max |v|;  least : float
    """

    bounds: npt.NDArray[Any]
    height: float
    least: float


@compiled(nogil=True)
def column_sums(stored, bounds, largest, first, last):  # type: ignore[no-untyped-def]
    """λ_j Σ_i |x_ij| of every column, a little above, and the largest λ_j² Σ_i x_ij² of the pieces first … last − 1.

    stored : ScaledColumns;  bounds : (p,) float32, out;  largest : (PARALLEL_CHUNKS,) out
    """
    data = stored.data
    indptr = stored.indptr
    divisor = stored.divisor
    divided = stored.divided
    scale = stored.scale
    p = indptr.size - 1
    for chunk in range(first, last):
        most = 0.0
        for j in range(chunk * p // PARALLEL_CHUNKS, (chunk + 1) * p // PARALLEL_CHUNKS):
            one = 0.0
            two = 0.0
            by = divisor[j] if divided else 1.0
            for s in range(indptr[j], indptr[j + 1]):
                x = data[s] / by
                one += abs(x)
                two += x * x
            # Neither this rounding nor float32 makes it too small.
            bound = one * scale[j] * (1.0 + 1e-6)
            bounds[j] = max(bound, 1.2e-38) if bound > 0.0 else 0.0
            most = max(most, two * scale[j] * scale[j])
        largest[chunk] = most


@compiled(nogil=True)
def magnitudes_in_reach(stored, reach, columns, v, sizes, low, high):  # type: ignore[no-untyped-def]
    """|λ_j ω_j|, ω_j = Σ_i x_ij v_i, of the columns low … high − 1 among the given ones.

    It is 0 where bounds_j·height < least: such a column is not read.

    Parameters
    ----------
    stored, reach : ScaledColumns, Reach
    columns : (k,) positions
    v : (n,)
    sizes : (k,) out
    low, high : int
    """
    data, indices, indptr, divisor, divided, scale = stored
    bounds, height, least = reach
    for r in range(low, high):
        j = columns[r]
        sizes[r] = 0.0
        if bounds[j] * height < least:
            continue
        total = 0.0
        if divided:
            by = divisor[j]
            for s in range(np.uint64(indptr[j]), np.uint64(indptr[j + 1])):
                total += data[s] / by * v[np.uint64(indices[s])]
        else:
            for s in range(np.uint64(indptr[j]), np.uint64(indptr[j + 1])):
                total += data[s] * v[np.uint64(indices[s])]
        sizes[r] = abs(total) * scale[j]


@compiled(nogil=True)
def dense_pull(columns, v, out, low, high):  # type: ignore[no-untyped-def]
    """out_j = Σ_i x_ij v_i of the dense columns low … high − 1, summed alike whatever stands beside a column.

    Each is `SUMS_PER_COLUMN` sums, which the compiler keeps in a few registers.

    Parameters
    ----------
    columns : (w, n) array, one behind the other in memory
    v : (n,)
    out : (w,) out
    low, high : int
    """
    n = columns.shape[1]
    whole = n // SUMS_PER_COLUMN
    sums = np.empty(SUMS_PER_COLUMN)
    for j in range(low, high):
        x = columns[j]
        sums[:] = 0.0
        for s in range(whole):
            for k in range(SUMS_PER_COLUMN):
                sums[k] += x[SUMS_PER_COLUMN * s + k] * v[SUMS_PER_COLUMN * s + k]
        total = 0.0
        for k in range(SUMS_PER_COLUMN):
            total += sums[k]
        for i in range(SUMS_PER_COLUMN * whole, n):
            total += x[i] * v[i]
        out[j] = total
