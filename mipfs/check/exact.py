"""Margins in rational arithmetic, for the samples of which floating point cannot tell the loss.

All numbers of (P) are floats, so that a margin is a whole number times a power of two: Python's integers hold it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from mipfs.check.rounding import Array

AT_ONCE = 1 << 18
"""Values that are held as Python's integers at a time, each of some 60 bytes."""
DIGITS = 53
"""Binary digits of a float."""


def margin_shortfalls(
    X: Any, y: Array, weights: Sequence[Fraction], b: Fraction, target: float
) -> tuple[list[int], int]:
    """How far margins fall short: target − y_i(x_i'w + b), as whole numbers (n,) and the exponent of a power of two.

    Parameters
    ----------
    X : (n, k) array, or sparse matrix, of the columns that have weights
    y : (n,) labels
    weights, b : rational numbers whose denominators are powers of two
    """
    by_row = X if isinstance(X, np.ndarray) else X.tocsr()
    step = max(1, AT_ONCE // max(1, len(weights)))
    ends = [(start, min(start + step, y.size)) for start in range(0, y.size, step)]
    parts = [_of_rows(_as_dense(by_row[low:high]), y[low:high], weights, b, target) for low, high in ends]
    least = min(exponent for _, exponent in parts)
    return [one << (exponent - least) for whole, exponent in parts for one in whole], least


def round_scaled(whole: Iterable[int], exponent: int) -> Array:
    """The floats nearest to whole_i·2^exponent."""
    above, below = 1 << max(exponent, 0), 1 << max(-exponent, 0)
    return np.array([(one * above) / below for one in whole], dtype=float)  # a quotient is rounded correctly


def _as_dense(X: Any) -> Array:
    return np.asarray(X if isinstance(X, np.ndarray) else X.toarray(), dtype=float)


def _of_rows(X: Array, y: Array, weights: Sequence[Fraction], b: Fraction, target: float) -> tuple[list[int], int]:
    terms = [*_scaled_products(X, weights), (np.full(y.size, b.numerator, dtype=object), _power_of_two_exponent(b))]
    goal = Fraction(target)
    # All terms are multiples of one power of two: sums of integers are exact.
    least = min([_power_of_two_exponent(goal), *(exponent for _, exponent in terms)])
    total = np.zeros(y.size, dtype=object)
    for whole, exponent in terms:
        total += whole << (exponent - least)
    found: list[int] = (
        (goal.numerator << (_power_of_two_exponent(goal) - least)) - np.where(y > 0, total, -total)
    ).tolist()
    return found, least


def _scaled_products(X: Array, weights: Sequence[Fraction]) -> Iterator[tuple[Any, int]]:
    """x_ij w_j of column after column: integers (n,) and the exponent of the power of two that they are times."""
    for column, weight in zip(X.T, weights, strict=True):
        mantissa, exponent = np.frexp(column)
        whole = np.ldexp(mantissa, DIGITS).astype(np.int64)
        held = np.flatnonzero(whole)
        least = int(exponent[held].min()) if held.size else 0
        places = np.zeros(column.size, dtype=object)
        places[held] = (exponent[held] - least).tolist()
        yield (whole.astype(object) << places) * weight.numerator, least - DIGITS + _power_of_two_exponent(weight)


def _power_of_two_exponent(value: Fraction) -> int:
    """The e of a rational number numerator·2^e."""
    return 1 - value.denominator.bit_length()
