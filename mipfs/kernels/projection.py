"""The projection onto box and balance row: the numba kernel of `mipfs.svm.projection`."""

from __future__ import annotations

from mipfs.compiled import compiled


@compiled(nogil=True)
def balance_at(nu, alpha, slope, top, y):  # type: ignore[no-untyped-def]
    """y'clip(α − ν slope, 0, top)."""
    total = 0.0
    for i in range(alpha.size):
        total += y[i] * min(max(alpha[i] - nu * slope[i], 0.0), top[i])
    return total


@compiled(nogil=True)
def project_on_box(alpha, slope, top, y, breaks, found):  # type: ignore[no-untyped-def]
    """Write clip(α − ν slope, 0, top) to `found` (n,), for the ν between sorted `breaks` at which y'· vanishes."""
    low = 0
    high = breaks.size - 1
    while high - low > 1:
        middle = (low + high) // 2
        if balance_at(breaks[middle], alpha, slope, top, y) > 0.0:
            low = middle
        else:
            high = middle
    left = breaks[low]
    right = breaks[high]
    at_left = balance_at(left, alpha, slope, top, y)
    at_right = balance_at(right, alpha, slope, top, y)
    # left of all breakpoints the negatives are 0, right of all the positives are: balance ≥ 0 there and ≤ 0 here
    nu = left if at_left <= 0.0 else right
    if at_left > 0.0 and at_right < 0.0:
        nu = left + (right - left) * at_left / (at_left - at_right)
    for i in range(alpha.size):
        found[i] = min(max(alpha[i] - nu * slope[i], 0.0), top[i])
