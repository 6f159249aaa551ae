"""The lines of a scorecard on the data: what each counts, and the total of every row by the stated rule.

Totals are taken in doubles, each operation rounded once, as docs/scorecard.md says: that is what a card decides by.
What the user's table had is found from the scaled data as the shortest decimals with these scaled values.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from mipfs.check.rounding import Array, Document, number, require
from mipfs.data.instance import Instance

VALUE_DIGITS, TOTAL_DIGITS, UNIT_DIGITS = 12, 13, 6
"""Significant digits of a value that count, of what is added up for a total, and of a unit."""
FIRST_DECIMALS = 9
"""Decimals of a total that count by the first rule."""
LINE = {"feature", "kind", "origin", "unit", "threshold", "points"}
MOST_POINTS = 1000
MOST_BINS = 1000
MOST_DECIMALS = 17
MOST_DIGITS = 17
LARGEST_POWER = 300
PREFIX = "joint_"
"""Of the arrays that prove the features and points of a card together (`mipfs.check.card_joint`)."""


@dataclass(frozen=True, eq=False)
class CardLine:
    """A line of the card on the data.

    Attributes
    ----------
    feature, kind : str
    origin, unit : float
    threshold : float or None
    points : int, λ
    size : float, s of ½ (s a λ)²
    moved : float, what the scaling takes off the column: (shift − origin)/unit; 0 of a threshold
    values : (n,) the user's values, to 12 digits but for the kind "scaled"
    """

    feature: str
    kind: str
    origin: float
    unit: float
    threshold: float | None
    points: int
    size: float
    moved: float
    values: Array

    def counts(self) -> Array:
        """x (n,), in doubles."""
        if self.threshold is not None:
            return (self.values >= self.threshold).astype(float)
        return (self.values - self.origin) / self.unit

    def exactly(self, i: int) -> Fraction:
        """x of row i."""
        value = float(self.values[i])
        if self.threshold is not None:
            return Fraction(value >= self.threshold)
        return (Fraction(value) - Fraction(self.origin)) / Fraction(self.unit)


def lines_of(document: Document, version: int, data: Instance) -> list[CardLine]:
    """The lines of a card, after all that stands in them was compared with the data and the result."""
    most = document["most_points"]
    require(type(most) is int and 1 <= most <= MOST_POINTS, f"most_points is {most!r}, no whole number from 1 to 1000")
    given = document["card"]
    require(isinstance(given, list), "the card is no list of lines")
    for one in given:
        require(
            isinstance(one, dict) and one.keys() == LINE, f"a line of the card has other fields than {sorted(LINE)}"
        )
    names = [*document["result"]["weights"]]
    found, at = [], 0
    for name in names:
        end = at
        while end < len(given) and given[end]["feature"] == name:
            end += 1
        require(end > at, f"the card has no line for {name!r} where one is due: the result's features, in their order")
        found += _of_feature(name, given[at:end], document, version, data)
        at = end
    require(at == len(given), "the card has a line for a feature that has no weight in the result, or one twice")
    kinds = {line.kind for line in found} - {"two values"}
    require(version > 1 or len(kinds) < 2, "the card has both thresholds and scaled columns")
    return found


def _of_feature(
    name: str, given: list[dict[str, Any]], document: Document, version: int, data: Instance
) -> list[CardLine]:
    """The lines of one feature."""
    j = data.index[name]
    values = users_values(data, j)
    short = to_digits(values, np.abs(values), VALUE_DIGITS)
    ends = np.unique(short)
    scale, shift = float(data.scale[j]), float(data.shift[j])
    bins = document["bins"] if version > 1 else 2 if given[0]["kind"] == "threshold" else 0
    if ends.size > 2 and bins >= 2:
        return _check_thresholds(name, given, document, short, scale, None if version == 1 else cuts(short, ends, bins))
    (one,) = given if len(given) == 1 else (None,)
    require(one is not None, f"the card has {len(given)} lines for {name!r}, which has one column")
    assert one is not None
    if ends.size == 2:
        kind, origin, unit, held = "two values", float(ends[0]), float(ends[1] - ends[0]), short
    elif version == 1:
        kind, origin, unit, held = "scaled", shift, scale, values
    else:
        unit = float(f"{scale:.{UNIT_DIGITS}g}")
        kind, origin, held = (
            "scaled",
            round(shift, UNIT_DIGITS - 1 - int(decimal_exponents(np.array([unit]))[0])),
            values,
        )
    _require_same_fields(name, one, {"kind": kind, "origin": origin, "unit": unit, "threshold": None})
    size = 1.0 if version == 1 and kind == "scaled" else scale / unit
    points = _checked_points(name, one, document)
    return [CardLine(name, kind, origin, unit, None, points, size, (shift - origin) / unit, held)]


def _check_thresholds(
    name: str, given: list[dict[str, Any]], document: Document, short: Array, scale: float, due: list[float] | None
) -> list[CardLine]:
    """The lines of a feature that was cut; of the first version, which has no `bins`, none are due."""
    stated = [number(one["threshold"], f"a threshold of {name!r}") for one in given]
    rising = all(low < high for low, high in zip([float(short.min()), *stated], stated, strict=False))
    require(rising and stated[-1] <= short.max(), f"the thresholds of {name!r} do not rise within the data: {stated}")
    require(due is None or stated == due, f"the thresholds of {name!r} are {stated}, but {due} of these data")
    found = []
    for one, at in zip(given, stated, strict=True):
        _require_same_fields(name, one, {"kind": "threshold", "origin": 0.0, "unit": 1.0})
        share = float((short >= at).mean())
        size = math.sqrt(share * (1.0 - share)) if scale != 1.0 else 1.0
        found.append(CardLine(name, "threshold", 0.0, 1.0, at, _checked_points(name, one, document), size, 0.0, short))
    return found


def due_lines(name: str, bins: int, data: Instance) -> list[tuple[CardLine, Fraction]]:
    """The lines that a feature has on a card of version 2, without points, and s² of each exactly."""
    j = data.index[name]
    values = users_values(data, j)
    short = to_digits(values, np.abs(values), VALUE_DIGITS)
    ends = np.unique(short)
    scale, shift = float(data.scale[j]), float(data.shift[j])
    if ends.size > 2 and bins >= 2:
        found = []
        for at in cuts(short, ends, bins):
            share = Fraction(int(np.count_nonzero(short >= at)), short.size)
            square = share * (1 - share) if scale != 1.0 else Fraction(1)
            found.append((CardLine(name, "threshold", 0.0, 1.0, at, 0, math.sqrt(square), 0.0, short), square))
        return found
    if ends.size == 2:
        kind, origin, unit, held = "two values", float(ends[0]), float(ends[1] - ends[0]), short
    else:
        unit = float(f"{scale:.{UNIT_DIGITS}g}")
        origin = round(shift, UNIT_DIGITS - 1 - int(decimal_exponents(np.array([unit]))[0]))
        kind, held = "scaled", values
    moved = (shift - origin) / unit
    return [
        (
            CardLine(name, kind, origin, unit, None, 0, scale / unit, moved, held),
            (Fraction(scale) / Fraction(unit)) ** 2,
        )
    ]


def ends_of(name: str, document: Document) -> tuple[int, int]:
    """The least and the most points that a line of a feature may have."""
    most = document["most_points"]
    low, high = (document["result"]["params"].get("weight_bounds") or {}).get(name, (None, None))
    return (0 if low is not None and low >= 0 else -most), (0 if high is not None and high <= 0 else most)


def cuts(short: Array, ends: Array, bins: int) -> list[float]:
    """The thresholds of values (n,) whose distinct ones are `ends`: numbers of few digits at their quantiles."""
    rising = np.sort(short)
    found = set()
    for k in range(1, bins):
        value = rising[math.ceil((rising.size - 1) * (k / bins))]
        place = max(1, int(np.searchsorted(ends, value)))
        found.add(_short_number_between(float(ends[place - 1]), float(ends[place])))
    return sorted(found)


def _short_number_between(low: float, high: float) -> float:
    """The middle to the fewest digits with which it lies in (low, high]; between whole numbers a whole one."""
    middle = 0.5 * low + 0.5 * high
    if low.is_integer() and high.is_integer():
        middle = float(math.ceil(middle))
    tried = (float(f"{middle:.{digits}g}") for digits in range(1, MOST_DIGITS))
    return next((one for one in tried if low < one <= high), high)


def _require_same_fields(name: str, one: dict[str, Any], right: dict[str, Any]) -> None:
    for field, value in right.items():
        stated = one[field] if value is None or isinstance(value, str) else number(one[field], f"{field} of {name!r}")
        require(stated == value, f"{field} of {name!r} is {stated!r}, but {value!r} of these data")


def _checked_points(name: str, one: dict[str, Any], document: Document) -> int:
    points: Any = one["points"]
    most = document["most_points"]
    require(
        type(points) is int and abs(points) <= most, f"points of {name!r}, {points!r}, are not from -K to K = {most}"
    )
    require(not document["result"]["params"].get("weight_rows"), "points keep no rows over the weights")
    low, high = (document["result"]["params"].get("weight_bounds") or {}).get(name, (None, None))
    excludes_0 = (low is not None and low > 0) or (high is not None and high < 0)
    require(not excludes_0, f"points keep no bounds that exclude 0, as those of {name!r} do")
    require(points >= 0 or low is None or low < 0, f"points of {name!r} are below 0, which its weight must not be")
    require(points <= 0 or high is None or high > 0, f"points of {name!r} are above 0, which its weight must not be")
    return int(points)


def users_values(data: Instance, j: int) -> Array:
    """The column j (n,) as the user gave it: the shortest decimals that have the scaled values."""
    block = data.block(np.array([j]))
    held = block.values if isinstance(block.values, np.ndarray) else block.values.toarray()
    column = np.asarray(held, dtype=float).ravel()
    shift, scale = (0.0 if data.center[j] else float(data.shift[j])), float(data.scale[j])
    if shift == 0.0 and scale == 1.0:
        return column
    each, place = np.unique(column, return_inverse=True)
    return np.array([_unscale(one, shift, scale) for one in each.tolist()])[place.ravel()]


def _unscale(scaled: float, shift: float, scale: float) -> float:
    near = scaled * scale + shift
    size = max(abs(near), abs(shift))
    first = -int(decimal_exponents(np.array([size]))[0])
    for decimals in range(first, first + MOST_DECIMALS):
        tried = round(near, decimals)
        if (tried - shift) / scale == scaled:
            return tried
    beside = (math.nextafter(near, math.inf), math.nextafter(near, -math.inf))
    return next((one for one in (near, *beside) if (one - shift) / scale == scaled), near)


def decimal_exponents(sizes: Array) -> Any:
    """⌊log10 size⌋ of sizes (n,), 0 of 0; a logarithm that was rounded to a whole number is looked at again."""
    held = np.where(sizes == 0.0, 1.0, sizes)
    e = np.floor(np.log10(held)).astype(int)
    e -= 10.0**e > held
    return e + (10.0 ** (e + 1) <= held)


def to_digits(values: Array, sizes: Array, digits: int) -> Array:
    """Values (n,) to the decimals that `digits` significant digits of `sizes` (n,) have."""
    places = digits - 1 - decimal_exponents(sizes)
    power = 10.0 ** np.minimum(np.abs(places), LARGEST_POWER)
    found = np.where(places >= 0, np.rint(values * power) / power, np.rint(values / power) * power)
    return np.asarray(found, dtype=float)


def totals(lines: list[CardLine], threshold: float, version: int) -> tuple[Array, Array, float]:
    """The totals (n,) of the rows, as they are where the area under the curve is taken, and as they are compared.

    Returns
    -------
    totals, compared : (n,)
    room : float, what the ends of a range may be off: a unit of the last digit that counts
    """
    n = lines[0].values.size
    found, sizes = np.zeros(n), np.zeros(n)
    for line in lines:
        term = line.points * line.counts()
        found += term
        sizes += np.abs(term)
    if version == 1:
        return found, np.round(found, FIRST_DECIMALS), 1.01 * 10.0**-FIRST_DECIMALS + 1e-12 * float(sizes.max())
    sizes += abs(threshold)
    found = to_digits(found, sizes, TOTAL_DIGITS)
    return found, found, 1.01e-12 * float(sizes.max())
