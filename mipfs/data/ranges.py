"""The sizes that floating point carries: of loss weights C_i, and of penalties."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs.data.checks import as_float, as_numbers
from mipfs.errors import UsageError
from mipfs.plumbing.arrays import Array
from mipfs.plumbing.declared import checked, shown

LEAST_C, LARGEST_C = 1e-100, 1e20
"""Range of every C_i and penalty, and of Σ C_i: below, squares underflow; HiGHS and SCIP take 1e20 for infinity."""


def check_M(M: Any, p: int, what: str) -> None:
    """Refuse an M that is no whole number from 0 to p."""
    if isinstance(M, bool) or not isinstance(M, (int, np.integer)):
        raise UsageError(f"M = {shown(M)} must be an integer from 0 to {p}, the number of {what}")
    if not 0 <= M <= p:
        raise UsageError(f"M = {shown(M)} must lie between 0 and {p}, the number of {what}")


def check_C(given: Any, weights: Array) -> None:
    """Refuse a C that is no positive number, or that with the sample weights (n,) is beyond the range."""
    if isinstance(given, bool) or not isinstance(given, (int, float, np.number)) or not 0 < given < math.inf:
        raise UsageError(f"C = {shown(given)} must be a positive number")
    with np.errstate(over="ignore"):
        C = as_float(given, "C")
        low, high = C * float(weights.min()), float((C * weights).sum())
    if not LEAST_C <= low <= high <= LARGEST_C:
        loss = f"C = {C:g}" if np.all(weights == 1.0) else f"C = {C:g} times the sample weights"
        raise UsageError(
            f"{loss} is beyond what floating point carries: every C_i must be at least {LEAST_C:g}, and their sum, "
            f"here {high:g}, at most {LARGEST_C:g}"
        )


def penalties(
    lam: Any, names: Sequence[str], by_name: Sequence[tuple[npt.NDArray[np.int64], Mapping[str, float]]]
) -> Array:
    """The penalties of p atoms: `lam` for all or for each, unless it is by name, plus those by name at positions.

    Raises
    ------
    UsageError
        A penalty that is no number, is negative or beyond the range, or another number of them.
    """
    c = np.zeros(len(names))
    if not isinstance(lam, Mapping):
        values = as_numbers(lam, "lambda")
        if values.shape not in ((), c.shape):
            raise UsageError(f"lambda has shape {values.shape}; it must be one number or {c.size} of them")
        c += values
    for ids, given in by_name:
        c[ids] += [checked(f"lambda of {name!r}", value, float) for name, value in given.items()]
    check_penalties(c, names)
    return c


def check_penalties(c: Array, names: Sequence[str]) -> None:
    """Refuse penalties (p,) that are negative, not finite, or beyond the range, by the name of an atom."""
    if not np.all(np.isfinite(c)) or np.any(c < 0):
        worst = int(np.flatnonzero(~(c >= 0) | ~np.isfinite(c))[0])
        raise UsageError(f"lambda of {names[worst]!r} is {c[worst]:g}; penalties must be finite and >= 0")
    beyond = np.flatnonzero((c > LARGEST_C) | ((c > 0) & (c < LEAST_C)))
    if beyond.size:
        raise UsageError(
            f"lambda of {names[beyond[0]]!r} is {c[beyond[0]]:g}, beyond what floating point carries; "
            f"penalties must be 0 or from {LEAST_C:g} to {LARGEST_C:g}"
        )
