"""The sizes that floating point carries: of loss weights C_i, and of penalties."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs.data import unit
from mipfs.data.checks import as_float, as_numbers
from mipfs.errors import UsageError
from mipfs.plumbing.arrays import Array
from mipfs.plumbing.declared import check_value, show_value

LEAST_C, LARGEST_C = 1e-100, 1e20
"""Range of every C_i and penalty, and of Σ C_i: below, squares underflow; HiGHS and SCIP take 1e20 for infinity."""
LARGEST_SUM = 1e300
"""Σ C_i at most in the user's own unit, whatever the columns are: no objective is larger."""


def check_M(M: Any, p: int, what: str) -> None:
    """Refuse an M that is no whole number from 0 to p."""
    if isinstance(M, bool) or not isinstance(M, (int, np.integer)):
        raise UsageError(f"M = {show_value(M)} must be an integer from 0 to {p}, the number of {what}")
    if not 0 <= M <= p:
        raise UsageError(f"M = {show_value(M)} must lie between 0 and {p}, the number of {what}")


def positive(given: Any) -> Any:
    """C, which is a positive number."""
    if isinstance(given, bool) or not isinstance(given, (int, float, np.number)) or not 0 < given < math.inf:
        raise UsageError(f"C = {show_value(given)} must be a positive number")
    return given


def check_C(given: Any, weights: Array) -> None:
    """Refuse a C that is no positive number, or that with the sample weights (n,) is beyond the range."""
    positive(given)
    with np.errstate(over="ignore"):
        C = as_float(given, "C")
        low, high = C * float(weights.min()), float((C * weights).sum())
    if not LEAST_C <= low <= high <= LARGEST_C:
        loss = f"C = {C:g}" if np.all(weights == 1.0) else f"C = {C:g} times the sample weights"
        raise UsageError(
            f"{loss} is beyond what floating point carries: every C_i must be at least {LEAST_C:g}, and their sum, "
            f"here {high:g}, at most {LARGEST_C:g}"
        )


def exponent_of(given: Any, weights: Array, data: Any) -> int:
    """The exponent e of the unit 2^e that the columns of an `Instance` are computed with at a C (`mipfs.data.unit`).

    Raises
    ------
    UsageError
        C, with the sample weights (n,), is beyond the range, or so are C and the columns together, by name.
    """
    largest = data.largest
    if unit.is_ordinary(largest):
        check_C(given, weights)
        return 0
    C = Fraction(as_float(positive(given), "C"))
    total = C * sum(map(Fraction, weights.tolist()))
    found = unit.unit_exponents(largest, C * Fraction(float(weights.min())), total, (LEAST_C, LARGEST_C))
    if not found or total > LARGEST_SUM:
        name = data.feature_names[unit.column_of_largest(data.X)]
        most = unit.show_power_of_ten(Fraction(LARGEST_C) * 4**unit.EDGE / Fraction(largest) ** 2)
        raise UsageError(
            f"feature {name!r} has values up to {largest:g}, whose squares leave floating point, and C = {float(C):g} "
            f"with them: what counts is C times the square, so that ΣC_i may be {most} at most, and {LARGEST_SUM:g}; "
            "scale the data ('standard' or 'unit'), or divide all columns by one number"
        )
    return found[0]


def penalties(
    lam: Any,
    names: Sequence[str],
    by_name: Sequence[tuple[npt.NDArray[np.int64], Mapping[str, float]]],
    exponent: int = 0,
) -> Array:
    """The penalties of p atoms: `lam` for all or for each, unless it is by name, plus those by name at positions.

    They are to be in the range in the unit 2^exponent of the columns (`mipfs.data.unit`).

    Raises
    ------
    UsageError
        A penalty that is no number, is negative or beyond the range, or another number of them.
    """
    c = np.zeros(len(names))
    if lam is None:
        raise UsageError("lambda is None; it must be a number, one for each, or a mapping of names: 0 is no penalty")
    if not isinstance(lam, Mapping):
        values = as_numbers(lam, "lambda")
        if values.shape not in ((), c.shape):
            raise UsageError(f"lambda has shape {values.shape}; it must be one number or {c.size} of them")
        c += values
    for ids, given in by_name:
        c[ids] += [check_value(f"lambda of {name!r}", value, float) for name, value in given.items()]
    check_penalties(c, names, exponent)
    return c


def check_penalties(c: Array, names: Sequence[str], exponent: int = 0) -> None:
    """Refuse penalties (p,) that are negative, not finite, or beyond the range, by the name of an atom."""
    if not np.all(np.isfinite(c)) or np.any(c < 0):
        worst = int(np.flatnonzero(~(c >= 0) | ~np.isfinite(c))[0])
        raise UsageError(f"lambda of {names[worst]!r} is {c[worst]:g}; penalties must be finite and >= 0")
    moved = np.ldexp(c, 2 * exponent)
    beyond = np.flatnonzero((moved > LARGEST_C) | ((c > 0) & (moved < LEAST_C)))
    if beyond.size:
        low, high = (unit.times(end, -2 * exponent) for end in (LEAST_C, LARGEST_C))
        raise UsageError(
            f"lambda of {names[beyond[0]]!r} is {c[beyond[0]]:g}, beyond what floating point carries; "
            f"penalties must be 0 or from {low:g} to {high:g}"
        )
