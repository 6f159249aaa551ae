"""Rows grouped, averaged and compared in pairs, for the reports of studies."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy import stats

from mipfs.lab.experiments.study import Row
from mipfs.report.blocks import Table
from mipfs.report.charts import FAMILY, Curve, LineChart

DASH = "–"
WHISKERS = "Whiskers: one standard error of the mean on either side."
POINTS = (100.0, " points")
"""The factor and the unit of a share."""
COVERED = 0.95
"""Coverage of the intervals in brackets."""


def group_rows(rows: Iterable[Row], *names: str) -> dict[tuple[Any, ...], list[Row]]:
    """Rows by their values of some columns, in the order in which these come."""
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(row.get(name) for name in names), []).append(row)
    return found


def values(rows: Iterable[Row], name: str) -> list[float]:
    """The numbers of a column, those that are there."""
    return [float(row[name]) for row in rows if row.get(name) is not None]


def mean(rows: Iterable[Row], name: str) -> float:
    """The mean of a column; NaN where it is empty."""
    found = values(rows, name)
    return float(np.mean(found)) if found else math.nan


def standard_error(rows: Iterable[Row], name: str) -> float:
    """The standard error of that mean; NaN of fewer than two."""
    found = values(rows, name)
    return float(np.std(found, ddof=1) / math.sqrt(len(found))) if len(found) > 1 else math.nan


def of(rows: Iterable[Row], **values: Any) -> list[Row]:
    """The rows that have these values."""
    return [row for row in rows if all(row.get(name) == value for name, value in values.items())]


def show_number(value: float | None, form: str = "{:.3f}") -> str:
    """A number in a form, a dash for none."""
    return DASH if value is None or not math.isfinite(value) else form.format(value)


def percent(value: float | None, digits: int = 2) -> str:
    """A share as a percentage."""
    return DASH if value is None or not math.isfinite(value) else f"{100 * value:.{digits}f}%"


def with_error(rows: Sequence[Row], name: str = "accuracy", digits: int = 2) -> str:
    """The mean of a share in percent with its standard error, a dash for no rows."""
    if not rows:
        return DASH
    return f"{100 * mean(rows, name):.{digits}f} ± {show_number(100 * standard_error(rows, name), f'{{:.{digits}f}}')}"


def out_of(rows: Sequence[Row], name: str = "proven") -> str:
    """How many of the rows hold something."""
    return f"{sum(bool(row[name]) for row in rows)} of {len(rows)}"


Column = tuple[str, Callable[[Sequence[Row]], str]]
"""The head of a column, and what it says of some rows."""


def average(head: str, name: str, form: str = "{:.3f}") -> Column:
    """The mean of a number."""
    return head, lambda rows: show_number(mean(rows, name), form)


def count(head: str) -> Column:
    """The number of rows."""
    return head, lambda rows: str(len(rows))


def across(name: str, values: Iterable[Any], cell: Callable[[Sequence[Row]], str], head: str = "{}") -> list[Column]:
    """A column for every value that a line's rows differ in, of those that have it; a dash where none do."""

    def at(value: Any) -> Callable[[Sequence[Row]], str]:
        return lambda rows: cell(mine) if (mine := of(rows, **{name: value})) else DASH

    return [(head.format(value), at(value)) for value in values]


def tabulate(
    groups: Iterable[tuple[tuple[Any, ...], Sequence[Row]]],
    keys: Sequence[str],
    columns: Sequence[Column],
    title: str = "",
    left: int = 1,
) -> Table:
    """A line for every group of rows: its key, and what the columns say of it."""
    lines = [[*map(_name_key, key), *(cell(rows) for _, cell in columns)] for key, rows in groups]
    return Table([*keys, *(head for head, _ in columns)], lines, title, left)


def _name_key(key: Any) -> str:
    return DASH if key is None else f"{key:g}" if isinstance(key, float) else str(key)


def pairs(rows: Sequence[Row], one: str, other: str, name: str, key: Sequence[str]) -> list[tuple[float, float]]:
    """The values of a column for two methods on the same cells."""
    mine: Mapping[Any, float]
    mine, theirs = (
        {tuple(row.get(k) for k in key): float(row[name]) for row in rows if row["method"] == method and name in row}
        for method in (one, other)
    )
    return [(value, theirs[cell]) for cell, value in mine.items() if cell in theirs]


def average_pairs(
    rows: Sequence[Row], one: str, other: str, name: str, key: Sequence[str], by: Sequence[str]
) -> list[tuple[float, float]]:
    """`pairs`, averaged over the cells of each draw (the columns `by`), which are no independent observations."""
    found = [pairs(some, one, other, name, key) for some in group_rows(rows, *by).values()]
    return [(float(np.mean([a for a, _ in both])), float(np.mean([b for _, b in both]))) for both in found if both]


def difference(found: Sequence[tuple[float, float]]) -> float:
    """The mean of the first less the second; NaN of none."""
    return float(np.mean([a - b for a, b in found])) if found else math.nan


def bounds(found: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """The 95% interval of the mean difference (Student's t); the whole line of fewer than two pairs."""
    differences = [a - b for a, b in found]
    if len(differences) < 2:
        return -math.inf, math.inf
    centre, error = float(np.mean(differences)), float(np.std(differences, ddof=1)) / math.sqrt(len(differences))
    half = float(stats.t.ppf(0.5 + 0.5 * COVERED, len(differences) - 1)) * error
    return centre - half, centre + half


def interval(found: Sequence[tuple[float, float]], scale: tuple[float, str] = POINTS) -> str:
    """The mean difference, times a factor and with a unit, with its `bounds` in brackets where there are two pairs."""
    if not found:
        return DASH
    factor, unit = scale
    low, high = bounds(found)
    text = f"{factor * difference(found):+.2f}{unit}"
    return f"{text} [{factor * low:+.2f}, {factor * high:+.2f}]" if math.isfinite(low) else text


def count_comparisons(found: Sequence[tuple[float, float]], tolerance: float = 1e-12) -> tuple[int, int, int]:
    """How often the first is less, the second is less, and they are equal."""
    less = sum(a < b - tolerance for a, b in found)
    more = sum(b < a - tolerance for a, b in found)
    return less, more, len(found) - less - more


def sign_test(less: int, more: int) -> float:
    """Two-sided p-value of the sign test, ties left out."""
    n = less + more
    if not n:
        return 1.0
    tail = sum(math.comb(n, k) for k in range(min(less, more) + 1)) / 2.0**n
    return min(1.0, 2.0 * tail)


STANDING = ("exact's error less its, points", "sets: exact better / worse / equal", "sign test p")


def standing(found: Sequence[tuple[float, float]]) -> list[str]:
    """What `STANDING` heads, of the errors of the exact method and of another one on every set."""
    less, more, equal = count_comparisons(found)
    ahead = show_number(100 * difference(found), "{:+.2f}")
    return [ahead, f"{less} / {more} / {equal}", f"{sign_test(less, more):.2g}"]


def curves(
    title: str,
    rows: Sequence[Row],
    x: str,
    y: str,
    by: str = "method",
    *,
    labels: tuple[str, str] = ("", ""),
    spread: bool = True,
    of: Callable[[Sequence[Row], str], float] = mean,
    **look: Any,
) -> LineChart:
    """A curve for every value of `by`: the mean of `y`, with one standard error, against `x`."""
    if spread:
        look.setdefault("note", WHISKERS)
    ticks = sorted({row[x] for row in rows if row.get(x) is not None})
    drawn = []
    for number, ((name,), mine) in enumerate(group_rows(rows, by).items()):
        at = group_rows(mine, x)
        points = [of(at.get((tick,), []), y) for tick in ticks]
        errors = [standard_error(at.get((tick,), []), y) for tick in ticks]
        drawn.append(
            Curve(
                str(name),
                [None if math.isnan(v) else v for v in points],
                FAMILY[number % len(FAMILY)],
                [None if math.isnan(v) else v for v in errors] if spread else None,
            )
        )
    return LineChart(title, ticks, drawn, x_label=labels[0], y_label=labels[1], **look)
