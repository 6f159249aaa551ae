"""Dual vectors on a dyadic grid: α = k·2^−q with integer k, so that box and sum rows hold exactly.

An ordinary repair (clip, rescale) leaves y'α = 2e-16, which with a free bias proves nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from mipfs.kernels.kinds import FINEST, HINGE, SQUARED_HINGE
from mipfs.svm.projection import project

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

FAR = 1e-7
"""Relative size of y'α from which on α is projected before it is rounded."""
PIECE = 1 << 20
"""Samples that are looked at together where vectors over all of them would take room."""
BITS = 50
"""Bits of the largest entry of α, however far it lies below the top of its box: what rounding costs is below what a
certificate claims less than the run; fewer where n entries of that size would overflow an integer of 64 bits."""


def finest(n: int) -> int:
    """Bits of the largest of n entries at most."""
    return min(BITS, 61 - max(1, int(np.ceil(np.log2(n)))))


def grid(alpha: Array, top: Array) -> tuple[Integers, Array, int]:
    """Round α into the box [0, top] on a grid 2^−q.

    Parameters
    ----------
    alpha : (n,) approximate dual vector
    top : (n,) upper ends of the box, inf where there is none

    Returns
    -------
    k : (n,) int64, α ≈ k·2^−q
    limit : (n,) largest k of every entry
    q : int
    """
    q = exponent(alpha, top)
    limit = np.floor(np.ldexp(top, q))
    return np.clip(np.rint(np.ldexp(alpha, q)), 0.0, limit).astype(np.int64), limit, q


def exponent(alpha: Array, top: Array) -> int:
    """q of the grid for α."""
    size = max(float(np.max(np.minimum(alpha[at], top[at]), initial=0.0)) for at in pieces(alpha.size))
    return min(FINEST, finest(alpha.size) - int(np.ceil(np.log2(size if size > 0 else 1.0))))


def rounded(alpha: Array, top: Array, out: Array | None = None) -> Array:
    """k·2^−q of `balanced` without a bias, (n,), and no integers beside it: whole numbers of 50 bits are floats.

    Written to `out` (n,), which may be α itself.
    """
    found, q = np.empty(alpha.size) if out is None else out, exponent(alpha, top)
    for at in pieces(alpha.size):
        k = np.clip(np.rint(np.ldexp(alpha[at], q)), 0.0, np.floor(np.ldexp(top[at], q)))
        found[at] = np.ldexp(k, -q)
    return found


def pieces(n: int) -> Iterator[slice]:
    """Slices of at most PIECE of n samples: what is computed of one takes little room beside the whole."""
    return (slice(start, min(start + PIECE, n)) for start in range(0, n, PIECE))


def balance(k: Integers, limit: Array, y: Array) -> None:
    """Remove the surplus of one class, so that Σ y_i k_i = 0 exactly."""
    positive = y > 0
    surplus = int(k[positive].sum()) - int(k[~positive].sum())
    remove(k, np.flatnonzero(positive if surplus > 0 else ~positive), abs(surplus), limit)


def remove(k: Integers, side: Integers, surplus: int, limit: Array) -> None:
    """Take `surplus` away from k[side]: in proportion, the rest from the entries inside the box first."""
    if surplus <= 0:
        return
    held = k[side]
    share = surplus / float(held.sum())
    if share > 1e-6:
        taken = np.minimum(held, np.floor(held * share).astype(np.int64))
        k[side] -= taken
        surplus -= int(taken.sum())
    held = k[side]
    inside = held < limit[side]
    for i in np.concatenate([side[inside & (held > 0)], side[~inside]]):
        if surplus == 0:
            return
        step = min(surplus, int(k[i]))
        k[i] -= step
        surplus -= step


def balanced(alpha: Array, top: Array, y: Array, bias: bool) -> tuple[Integers, int]:
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
    if bias and abs(float(y @ alpha)) > FAR * float(np.abs(alpha).sum()):
        alpha = project(alpha, top, y, True)
    k = np.empty(alpha.size, dtype=np.int64)
    if bias:
        from mipfs.kernels import earned
        from mipfs.kernels.structures import given

        kind, ends = HINGE if np.isfinite(top[0]) else SQUARED_HINGE, given(top)
        q = int(earned.to_grid(given(alpha), ends, kind, finest(alpha.size), k))
        earned.balance(k, ends, kind, q, given(y))
        return k, q
    q = exponent(alpha, top)
    for at in pieces(alpha.size):
        k[at] = np.clip(np.rint(np.ldexp(alpha[at], q)), 0.0, np.floor(np.ldexp(top[at], q)))
    return k, q
