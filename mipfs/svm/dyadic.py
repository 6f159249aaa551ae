"""Dual vectors on a dyadic grid: α = k·2^−q with integer k, so that box and sum rows hold exactly.

An ordinary repair (clip, rescale) leaves y'α = 2e-16, which with a free bias proves nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs.errors import NumericalError
from mipfs.plumbing.arrays import Array, Integers
from mipfs.svm.projection import project

UNBALANCED_SHARE = 1e-7
"""Relative size of y'α from which on α is projected before it is rounded."""
SAMPLES_PER_SLICE = 1 << 20
"""Samples that are looked at together where vectors over all of them would take room."""
BITS = 50
"""Bits of the largest entry of α, however far it lies below the top of its box: what rounding costs is below what a
certificate claims less than the run; fewer where n entries of that size would overflow an integer of 64 bits."""
MOST_Q = 900
"""Grids 2^−q with |q| up to this are those of certificates."""


def finest_bits(n: int) -> int:
    """Bits of the largest of n entries at most."""
    return min(BITS, 61 - max(1, int(np.ceil(np.log2(n)))))


def pieces(n: int) -> Iterator[slice]:
    """Slices of at most SAMPLES_PER_SLICE of n samples: what is computed of one takes little room beside the whole."""
    return (slice(start, min(start + SAMPLES_PER_SLICE, n)) for start in range(0, n, SAMPLES_PER_SLICE))


def round_dual(alpha: Array, top: Array, out: Array | None = None) -> Array:
    """k·2^−q of `balance_dual` without a bias, (n,), and no integers beside it: whole numbers of 50 bits are floats.

    Written to `out` (n,), which may be α itself.
    """
    found = np.empty(alpha.size) if out is None else out
    return np.asarray(np.ldexp(found, -_to_grid(alpha, top, found), out=found))


def balance_dual(alpha: Array, top: Array, y: Array, bias: bool) -> tuple[Integers, int]:
    """Round α so that 0 ≤ α ≤ top and, with a bias, y'α = 0 are integer identities.

    Parameters
    ----------
    alpha : (n,) approximate dual vector
    top : (n,) upper ends of the box, inf where there is none
    y : (n,) labels, -1.0 or +1.0
    bias : bool, whether y'α = 0 must hold

    Returns
    -------
    k : (n,) int64
        α = k·2^−q satisfies the box, and Σ y_i k_i = 0 with a bias, exactly.
    q : int
    """
    if bias and abs(float(y @ alpha)) > UNBALANCED_SHARE * float(np.abs(alpha).sum()):
        alpha = project(alpha, top, y, True)
    k = np.empty(alpha.size, dtype=np.int64)
    return k, _to_grid(alpha, top, k, y if bias else None)


def on_grid(alpha: Array, top: Array, y: Array | None, q: int) -> Integers:
    """`balance_dual` on the grid of a given q, coarser than its own; without y there is no sum row."""
    from mipfs.kernels import earned
    from mipfs.kernels.structures import only_read

    whole = np.floor(np.ldexp(np.maximum(alpha, 0.0), q))
    if np.isfinite(top[0]):
        np.minimum(whole, np.floor(np.ldexp(top, q)), out=whole)
    if abs(q) > MOST_Q:
        raise NumericalError("a dual vector leaves floating point: rows over the weights are of numbers too far apart")
    k = whole.astype(np.int64)
    if y is not None:
        ends = only_read(top if np.isfinite(top[0]) else top[:0])
        earned.balance_classes(k, ends, q, only_read(y))
    return k


def reduce_surplus(k: Integers, surplus: int) -> Integers:
    """Whole numbers k (m,), in place, less a surplus of their sum: in proportion, and the rest entry by entry."""
    from mipfs.kernels import earned
    from mipfs.kernels.structures import only_read

    one = only_read(np.ones(k.size))
    earned.remove_surplus(k, one[:0], 0, one, 1.0, max(surplus, 0))  # what is not there may be beyond 64 bits
    return k


def _to_grid(alpha: Array, top: Array, whole: npt.NDArray[Any], y: Array | None = None) -> int:
    """Write k of α ≈ k·2^−q to `whole` (n,), integers or floats, with y also y'k = 0; returns q.

    Raises
    ------
    NumericalError
        α is not finite, or lies on no grid that a certificate can have.
    """
    from mipfs.kernels import earned
    from mipfs.kernels.structures import only_read

    ends = only_read(top if np.isfinite(top[0]) else top[:0])
    is_finite = math.isfinite(float(alpha.sum()))  # of numbers of 0 and more
    q = int(earned.to_grid(only_read(alpha), ends, finest_bits(alpha.size), whole)) if is_finite else MOST_Q + 1
    if abs(q) > MOST_Q:
        raise NumericalError("a dual vector leaves floating point: C times the squares of the columns is too large")
    if y is not None:
        earned.balance_classes(whole, ends, q, only_read(y))
    return q
