"""The columns that get points: a column of two values as it is, another by its scale, or by thresholds of it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mipfs.plumbing.arrays import Array
from mipfs.result.saved_card import VALUE_DIGITS, condition

TOTAL_DIGITS = 13
"""Digits of all that is added up for a total, and the threshold, that count; what rounding leaves is below them."""
PRINTED_DIGITS = 6
"""Significant digits of a unit; an origin has its decimals. A card is scored by the numbers that it prints."""


@dataclass(frozen=True)
class Column:
    """What points are given for: (value − origin)/unit of a feature, or 1 from a threshold on.

    Attributes
    ----------
    feature : str
    kind : {"two values", "scaled", "threshold"}
    origin, unit : float, on the user's scale
    threshold : float or None
    center : float, what is taken off the column where the objective is computed, as the scaling of the data does
    size : float, the term of a weight w of the column is ½ (size·w)²
    """

    feature: str
    kind: str
    origin: float
    unit: float
    threshold: float | None
    center: float
    size: float

    @property
    def condition(self) -> str:
        """In words, what a point is for; its numbers are those that decide."""
        return condition(self.kind, self.origin, self.unit, self.threshold)

    def of(self, values: Array) -> Array:
        """The column of the user's values (n,)."""
        if self.threshold is not None:
            return (snap_values(values) >= self.threshold).astype(float)
        if self.kind == "two values":
            return (snap_values(values) - self.origin) / self.unit
        return (values - self.origin) / self.unit


def totals(columns: Sequence[Column], points: Sequence[int], values: Mapping[str, Array]) -> tuple[Array, Array]:
    """Σ points · column (n,) of the user's values (n,) of every feature, and Σ |points · column| (n,)."""
    n = next(iter(values.values())).size
    found, sizes = np.zeros(n), np.zeros(n)
    for column, point in zip(columns, points, strict=True):
        term = point * column.of(values[column.feature])
        found += term
        sizes += np.abs(term)
    return found, sizes


def snap_values(values: Array) -> Array:
    """Values (n,) to `VALUE_DIGITS` significant digits."""
    return to_digits(values, np.abs(values), VALUE_DIGITS)


def to_digits(values: Array, sizes: Array, digits: int) -> Array:
    """Values (n,) to the decimals that `digits` significant digits of `sizes` (n,) have."""
    places = digits - 1 - np.floor(np.log10(np.where(sizes == 0.0, 1.0, sizes))).astype(int)
    power = 10.0 ** np.clip(np.abs(places), 0, 300)
    found = np.where(places >= 0, np.round(values * power) / power, np.round(values / power) * power)
    return np.asarray(found, dtype=float)


def columns_of(values: Mapping[str, Array], scales: Mapping[str, tuple[float, float]], bins: int) -> Iterator[Column]:
    """The columns of a card.

    Parameters
    ----------
    values : mapping of feature to the user's values (n,) in training
    scales : mapping of feature to (shift, scale) of its column in the data that was solved
    bins : int, ranges that a column of more than two values is cut into at its quantiles; 0 leaves it as it is
    """
    for name, raw in values.items():
        shift, scale = scales[name]
        column = snap_values(raw)
        ends = np.unique(column)
        if ends.size == 2:
            origin, unit = float(ends[0]), float(ends[1] - ends[0])
            yield Column(name, "two values", origin, unit, None, (shift - origin) / unit, scale / unit)
        elif bins < 2 or ends.size < 2:
            origin, unit = few_digits(shift, scale)
            yield Column(name, "scaled", origin, unit, None, (shift - origin) / unit, scale / unit)
        else:
            for threshold in thresholds(column, ends, bins):
                share = float((column >= threshold).mean())
                size = float(np.sqrt(share * (1.0 - share))) if scale != 1.0 else 1.0
                yield Column(name, "threshold", 0.0, 1.0, threshold, 0.0, size)


def few_digits(shift: float, scale: float) -> tuple[float, float]:
    """Shift and scale (> 0) of a column as a person copies them: to `PRINTED_DIGITS` digits of the scale."""
    unit = float(f"{scale:.{PRINTED_DIGITS}g}")
    return round(shift, PRINTED_DIGITS - 1 - math.floor(math.log10(unit))), unit


def thresholds(column: Array, ends: Array, bins: int) -> list[float]:
    """Numbers of few digits between values of a column, near its quantiles, ascending."""
    found = set[float]()
    for share in np.arange(1, bins) / bins:
        place = int(np.searchsorted(ends, np.quantile(column, share, method="higher")))
        place = max(place, 1)
        found.add(between(float(ends[place - 1]), float(ends[place])))
    return sorted(found)


def between(low: float, high: float) -> float:
    """The number of fewest digits in (low, high], near the middle; a whole one between whole ones."""
    middle = 0.5 * low + 0.5 * high
    if low.is_integer() and high.is_integer():
        middle = float(np.ceil(middle))
    for digits in range(1, 17):
        tried = float(f"{middle:.{digits}g}")
        if low < tried <= high:
            return tried
    return high
