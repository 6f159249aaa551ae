"""Plain loops over vectors: an assignment from slice to slice makes numba compile what would say that shapes differ."""

from __future__ import annotations

import numpy as np

from mipfs.compiled import compiled


@compiled(nogil=True)
def copy_to(values, out):  # type: ignore[no-untyped-def]
    """out = values, (n,) both."""
    for i in range(values.size):
        out[i] = values[i]


@compiled(nogil=True)
def scatter_to(values, at, out):  # type: ignore[no-untyped-def]
    """out[at] = values, (m,) both."""
    for i in range(at.size):
        out[at[i]] = values[i]


@compiled(nogil=True)
def add_to(scale, values, out):  # type: ignore[no-untyped-def]
    """out += scale·values, (n,) both."""
    for i in range(values.size):
        out[i] += scale * values[i]


@compiled(nogil=True)
def along(start, way, t, out):  # type: ignore[no-untyped-def]
    """out = start + t·way over the places of `start`, (n,); `way` may have more."""
    for i in range(start.size):
        out[i] = start[i] + t * way[i]


@compiled(nogil=True)
def dot_in_order(a, b):  # type: ignore[no-untyped-def]
    """a'b, (n,) both, in their order."""
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total


@compiled(nogil=True)
def to_boundary(x, d):  # type: ignore[no-untyped-def]
    """The largest step at which x + step·d ≥ 0, (n,) both; inf where there is none, NaN where a number is none."""
    step = np.inf
    for i in range(x.size):
        if d[i] < 0.0:
            own = x[i] / -d[i]
            if own < step or own != own:
                step = own
    return step
