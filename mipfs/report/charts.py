"""What a chart shows, apart from how it is drawn: `figure.py` (HTML) and `axes.py` (matplotlib) take these numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from mipfs.report.blocks import Table

Numbers = Sequence[float | None]
"""Values of a curve; None where there is none."""
ROLES = ("incumbent", "bound", "upper", "first", "second", "third", "fourth", "fifth", "sixth")
"""What a colour stands for: the three sides of a gap, then the members of any family of curves."""
FAMILY = ROLES[3:]


@dataclass(frozen=True)
class Curve:
    """One curve of `LineChart`.

    Attributes
    ----------
    name : str
    y : sequence of m float or None
    role : one of `ROLES`
    spread : sequence of m float or None, optional
        A whisker of that length on both sides of every value.
    percent : bool
        Shown as a percentage.
    """

    name: str
    y: Numbers
    role: str = "first"
    spread: Numbers | None = None
    percent: bool = False


class Chart:
    """A block of a report that text leaves out: the same numbers stand in its table."""

    table: Table | None

    def text(self) -> str:
        """Nothing: a terminal gets the tables."""
        return ""

    def html(self) -> str:
        """A figure with its table behind it."""
        from mipfs.report.figure import figure

        return figure(self)


@dataclass(frozen=True)
class LineChart(Chart):
    """Curves over a common axis.

    Attributes
    ----------
    title : str
    x : sequence of m float, ascending
    curves : sequence of Curve
    is_step : bool
        Each value holds until the next one; otherwise the values are joined, each with a dot.
    between : tuple of int, optional
        Two curves, the space between which is shaded: the gap.
    x_label, y_label : str
    before, after : str
        What stands before and after a value of x: ``M = 3``, ``0.5 s``.
    is_log, is_log_y : bool, an axis is logarithmic
    limits, x_limits : (low, high), optional
        What is shown of y and of x; all values by default. The last value of steps holds until the end of x.
    hover : sequence of Curve
        What is read at a point but not drawn, such as the gap.
    note : str, a sentence below the chart
    table : Table or None, the numbers
    """

    title: str
    x: Sequence[float]
    curves: Sequence[Curve]
    is_step: bool = False
    between: tuple[int, int] | None = None
    x_label: str = ""
    y_label: str = ""
    before: str = ""
    after: str = ""
    is_log: bool = False
    is_log_y: bool = False
    limits: tuple[float, float] | None = None
    x_limits: tuple[float, float] | None = None
    hover: Sequence[Curve] = ()
    note: str = ""
    table: Table | None = None


@dataclass(frozen=True)
class Bar:
    """One bar: from zero to a value; `text` stands beside it, `detail` is read when one points at it."""

    name: str
    value: float | None
    text: str
    role: str = "bound"
    detail: str = ""


@dataclass(frozen=True)
class Bars(Chart):
    """Bars from zero, one below the other.

    Attributes
    ----------
    title : str
    bars : sequence of Bar
    mark : (value, its name), optional
        A line across all bars.
    is_signed : bool
        Zero stands in the middle.
    note : str
    table : Table or None
    """

    title: str
    bars: Sequence[Bar]
    mark: tuple[float, str] | None = None
    is_signed: bool = False
    note: str = ""
    table: Table | None = None


@dataclass(frozen=True)
class HeatMap(Chart):
    """A heat map.

    Attributes
    ----------
    title : str
    rows, columns : sequences of str, their names
    cells : sequence of rows of float in [0, 1]
    details : sequence of str, what is said of each column
    right : sequence of str, what stands beside each row; empty for nothing
    right_title : str
    x_label : str
    words : (word for 0, word for anything else)
    note : str
    table : Table or None
    """

    title: str
    rows: Sequence[str]
    columns: Sequence[str]
    cells: Sequence[Sequence[float]]
    details: Sequence[str] = ()
    right: Sequence[str] = ()
    right_title: str = ""
    x_label: str = ""
    words: tuple[str, str] = ("not selected", "selected")
    note: str = ""
    table: Table | None = None


@dataclass(frozen=True)
class Marks:
    """Points of a `Scatter`, or the ends of a line through it; `role` is one of `ROLES`."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    role: str
    is_line: bool = False


@dataclass(frozen=True)
class Scatter(Chart):
    """Points in a plane, of several kinds, and lines between them.

    Attributes
    ----------
    title : str
    marks : sequence of Marks
    x_label, y_label : str
    note : str, a sentence below the chart
    table : Table or None, the numbers
    """

    title: str
    marks: Sequence[Marks]
    x_label: str = ""
    y_label: str = ""
    note: str = ""
    table: Table | None = None


@dataclass(frozen=True)
class Detail:
    """How much of a long series is shown.

    Attributes
    ----------
    columns : int
        Columns of the picture that a curve is thinned to: more than a screen has pixels.
    records : int, lines of the table behind a trace
    rows, supports : int, features and supports of a heat map
    """

    columns: int = 2000
    records: int = 200
    rows: int = 60
    supports: int = 120

    def halve(self) -> Detail:
        """The next coarser one."""
        return replace(
            self, columns=self.columns // 2, records=self.records // 2, rows=self.rows // 2, supports=self.supports // 2
        )


@dataclass(frozen=True)
class Mosaic(Chart):
    """A confusion: counts, tinted by their share of a line, what is right apart from what is wrong.

    It is its own table.
    """

    title: str
    header: tuple[str, str]
    rows: Sequence[tuple[str, int, int]]
    note: str = ""
    table: Table | None = None


def plain(values: Numbers) -> list[Any]:
    """The values as JSON has them: null for what is not finite."""
    return [None if v is None or not abs(v) < float("inf") else v for v in values]
