"""The unit of columns whose squares leave floating point: a power of two for all of them, C and penalties with it.

For every e, (P) of the columns X·2^−e with the weights 4^e·C and the penalties 4^e·c has at (σ, 2^e·w, b) exactly 4^e
times the value that (P) of X, C and c has at (σ, w, b), and the dual vectors are 4^e times those. One factor for all
columns, as one for each would change ½‖w‖². It is 1 unless the square of the largest value leaves 2^±500, so that
ordinary data keeps its bits; else it takes that value into [½, 1), or as near as the range of C allows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

EDGE = 250
"""Columns are taken as they are if 2^−EDGE ≤ max |x| < 2^EDGE, or if all are zero."""


def is_ordinary(largest: float) -> bool:
    """Whether columns of a largest |value| are computed with as they are."""
    return largest == 0.0 or abs(math.frexp(largest)[1]) <= EDGE


def unit_exponents(largest: float, least: Fraction, total: Fraction, ends: tuple[float, float]) -> tuple[int, ...]:
    """The exponents e of units 2^e in which columns can be computed with, the best first; none where there is none.

    Parameters
    ----------
    largest : float, the largest |value| of all columns
    least, total : the least c_i and Σ c_i, exactly, for they may be beyond floating point
    ends : the least c_i and the largest Σ c_i that can be computed with

    Returns
    -------
    tuple of int: that with the largest value in [½, 1), and that nearest to 0, which rounds the fewest small values,
        both as near as C allows
    """
    if is_ordinary(largest):
        return (0,)
    top = math.frexp(largest)[1]
    low, high = _quarters_up(Fraction(ends[0]) / least), -_quarters_up(total / Fraction(ends[1]))
    low = max(low, top - EDGE)
    if low > high:
        return ()
    return tuple(dict.fromkeys(min(max(wanted, low), high) for wanted in (top, 0)))


def _quarters_up(ratio: Fraction) -> int:
    """The least k with 4^k ≥ a ratio."""
    k = (ratio.numerator.bit_length() - ratio.denominator.bit_length()) // 2 - 1
    while Fraction(4) ** k < ratio:
        k += 1
    return k


def times(value: float, exponent: int) -> float:
    """value·2^exponent; beyond floating point infinite."""
    return float(np.ldexp(value, exponent))


def show_power_of_ten(value: Fraction) -> str:
    """A positive number for a message, which may be beyond floating point: its power of ten."""
    digits = (value.numerator.bit_length() - value.denominator.bit_length()) * math.log10(2.0)
    return f"1e{math.floor(digits)}"


def scale_by_power(X: Any, exponent: int) -> Any:
    """X·2^exponent, of a dense or a sparse matrix."""
    if not sparse.issparse(X):
        return np.asfortranarray(np.ldexp(X, exponent))
    found = sparse.csc_array((np.ldexp(X.data, exponent), X.indices, X.indptr), shape=X.shape)
    found.has_canonical_format = True
    return found


def first_inexact_column(X: Any, exponent: int) -> int | None:
    """The first column of which X·2^exponent holds a value only rounded, for it underflows; None without one."""
    values = X.data if sparse.issparse(X) else X
    lost = np.ldexp(np.ldexp(values, exponent), -exponent) != values
    if not lost.any():
        return None
    if sparse.issparse(X):
        return int(np.searchsorted(X.indptr, int(lost.argmax()), "right")) - 1
    return int(lost.any(axis=0).argmax())


def column_of_largest(X: Any) -> int:
    """The column of the largest |value|."""
    if not sparse.issparse(X):
        return int(np.abs(X).max(axis=0).argmax())
    return int(np.searchsorted(X.indptr, int(np.abs(X.data).argmax()), "right")) - 1


def in_unit(arrays: Mapping[str, npt.NDArray[Any]], exponent: int) -> dict[str, npt.NDArray[Any]]:
    """The arrays of a certificate where columns are in the unit 2^exponent of those that they are about, exactly.

    Dual vectors, their tops and the multipliers of rows are 4^exponent times what they were: α = k·2^−q has another q.
    """
    found = dict(arrays)
    if not exponent or not found:
        return found
    found["dual_q"] = (arrays["dual_q"].astype(np.int64) - 2 * exponent).astype(np.int32)
    if "dual_top" in arrays:
        found["dual_top"] = np.ldexp(arrays["dual_top"], 2 * exponent)
    given = arrays["multipliers"]
    if given.dtype.kind == "f":
        found["multipliers"] = np.ldexp(given, 2 * exponent)
        if np.array_equal(np.ldexp(found["multipliers"], -2 * exponent), given):
            return found
    texts = (one if isinstance(one, float) else one.decode("ascii") for one in given.ravel().tolist())
    exact = [str(Fraction(one) * Fraction(4) ** exponent).encode() for one in texts]
    found["multipliers"] = np.array(exact).reshape(given.shape)
    return found
