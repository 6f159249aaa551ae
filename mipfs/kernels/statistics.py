"""Sums over the columns of a CSC block: what a store keeps of every column. The numba kernel."""

from __future__ import annotations

import math

from mipfs.compiled import compiled

_TINY = 2.2250738585072014e-308


@compiled()
def column_statistics(data, indptr, n, sums, found):  # type: ignore[no-untyped-def]
    """Σ|x|; Σx², mean and deviation (divisor n), norm: in the order of sums, and so with the bits, of
    `matrix.scale_columns`.

    Parameters
    ----------
    data, indptr : of the CSC columns
    n : rows
    sums : (w,) out
    found : (4, w) out: Σx², shift and scale of "standard", scale of "unit"
    """
    for j in range(indptr.size - 1):
        begin = indptr[j]
        end = indptr[j + 1]
        stored = end - begin
        low = 0.0
        high = 0.0
        one = 0.0
        two = 0.0
        if stored == n and n > 0:
            low = high = float(data[begin])
        for s in range(begin, end):
            x = float(data[s])
            low = min(low, x)
            high = max(high, x)
            one += abs(x)
            two += x * x
        sums[j] = one
        found[0, j] = two
        # Divided by a power of two, so that squares neither overflow nor vanish.
        exponent = math.frexp(max(-low, high))[1]
        mean = 0.0
        # The second pass takes the rounding of the first off the mean.
        for _ in range(2):
            deviations = 0.0
            for s in range(begin, end):
                deviations += math.ldexp(float(data[s]), -exponent) - mean
            mean = mean + (deviations - (n - stored) * mean) / n
        squares = 0.0
        plain = 0.0
        for s in range(begin, end):
            z = math.ldexp(float(data[s]), -exponent)
            squares += (z - mean) * (z - mean)
            plain += z * z
        squares += (n - stored) * (mean * mean)
        deviation = math.ldexp(math.sqrt(squares / n), exponent)
        norm = math.ldexp(math.sqrt(plain), exponent)
        kept = low == high or not deviation >= _TINY or math.isinf(deviation)
        found[1, j] = 0.0 if kept else math.ldexp(mean, exponent)
        found[2, j] = 1.0 if kept else deviation
        kept = (low == 0.0 and high == 0.0) or not norm >= _TINY or math.isinf(norm)
        found[3, j] = 1.0 if kept else norm
