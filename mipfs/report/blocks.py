"""What a report is made of, and its two renderings: aligned text, and HTML for notebooks.

Also here: what a chart shows, apart from how it is drawn: `figure.py` (HTML) and `axes.py` (matplotlib) take these
numbers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from mipfs.report.visible import escape_invisible, escape_text


class Alarm(str):
    """A text that is shown in red where there are colours."""

    __slots__ = ()


@dataclass(frozen=True)
class NamedValues:
    """Lines ``name  value``."""

    pairs: Sequence[tuple[str, str]]

    def text(self) -> str:
        return "".join(f"{name}{value}\n" for name, value in self.columns())

    def columns(self) -> list[tuple[str, str]]:
        """Names, all of one width, and values, as a terminal shows them."""
        names = [escape_invisible(name) for name, _ in self.pairs]
        width = max(map(len, names), default=0)
        return [
            (f"{name.ljust(width)}  ", escape_invisible(value))
            for name, (_, value) in zip(names, self.pairs, strict=True)
        ]

    def html(self) -> str:
        return _table_html(
            [[f"<b>{escape_text(name)}</b>", _value_as_html(value)] for name, value in self.pairs], left=2
        )


@dataclass(frozen=True)
class Table:
    """A table; its first `left` columns are aligned to the left, the others are numbers."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: str = ""
    left: int = 1

    def text(self) -> str:
        lines = [f"\n{escape_invisible(self.title)}\n"] if self.title else []
        shown = self.visible()
        widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
        for row in shown:
            cells = (
                cell.ljust(width) if i < self.left else cell.rjust(width)
                for i, (cell, width) in enumerate(zip(row, widths, strict=True))
            )
            lines.append(("  " + "  ".join(cells)).rstrip() + "\n")
        return "".join(lines)

    def visible(self) -> list[list[str]]:
        """Header and rows as a terminal shows them."""
        return [[escape_invisible(cell) for cell in row] for row in (self.header, *self.rows)]

    def html(self) -> str:
        title = f"<p><b>{escape_text(self.title)}</b></p>" if self.title else ""
        return title + _table_html([list(map(escape_text, row)) for row in self.rows], self.left, self.header)


@dataclass(frozen=True)
class Sentence:
    """A sentence of its own."""

    line: str

    def text(self) -> str:
        said = self.line.lstrip("\n")
        return "\n" * (len(self.line) - len(said)) + f"{escape_invisible(said)}\n"

    def html(self) -> str:
        return f"<p>{escape_text(self.line.strip())}</p>"


@dataclass(frozen=True)
class Typed(Sentence):
    """A line that is typed: a page shows it as code, below what is said before it, a terminal as it is."""

    before: str = ""

    def text(self) -> str:
        return Sentence(f"{self.before}{self.line}").text()

    def html(self) -> str:
        said = f"<p>{escape_text(self.before.strip())}</p>" if self.before.strip() else ""
        return f"{said}<pre><code>{escape_text(self.line)}</code></pre>"


class ReportBlock(Protocol):
    """A part of a report: `NamedValues`, `Table`, `Sentence` and the charts."""

    def text(self) -> str:
        """For a terminal; "" for what only a page shows."""

    def html(self) -> str:
        """For a page or a notebook, whatever stands in it escaped."""


def as_text(blocks: Iterable[ReportBlock]) -> str:
    """The blocks one below the other, without a line's end at the end."""
    return "".join(block.text() for block in blocks).rstrip("\n")


def as_html(blocks: Iterable[ReportBlock]) -> str:
    """The blocks as HTML, with the style of charts where there are any; whatever stands in them is escaped."""
    inner = "".join(block.html() for block in blocks)
    if "<figure" not in inner:
        return f"<div>{inner}</div>"
    from mipfs.report.figure import figure_style, without_data

    return f'<div class="mipfs"><style>{figure_style()}</style>{without_data(inner)}</div>'


class Reported(ABC):
    """What has a report of blocks: the command line's, as text, and for notebooks."""

    __slots__ = ()

    @abstractmethod
    def blocks(self) -> list[ReportBlock]:
        """What the report is made of."""

    def summary(self) -> str:
        """The report of the command line as text."""
        return as_text(self.blocks())

    def lead(self) -> str:
        """What a page says first, in a plain sentence; "" for nothing."""
        return ""

    def shown(self) -> list[ReportBlock]:
        """What a notebook shows: the report, or a shorter one with charts."""
        return self.blocks()

    def _repr_html_(self) -> str:
        """The report for a notebook."""
        return as_html(self.shown())


def _value_as_html(value: str) -> str:
    """A value as HTML."""
    said = escape_text(value)
    return f'<span style="color: var(--bad, #b00020)">{said}</span>' if isinstance(value, Alarm) else said


def _table_html(rows: Sequence[Sequence[str]], left: int, header: Sequence[str] = ()) -> str:
    """A table of cells that are HTML already, below the names of its columns, which are text."""
    lines = []
    if header:
        names = (
            f'<th scope="col" style="text-align: {"left" if i < left else "right"}">{escape_text(name)}</th>'
            for i, name in enumerate(header)
        )
        lines.append(f"<tr>{''.join(names)}</tr>")
    for row in rows:
        sides = ("left" if i < left else "right" for i in range(len(row)))
        cells = (f'<td style="text-align: {side}">{cell}</td>' for side, cell in zip(sides, row, strict=True))
        lines.append(f"<tr>{''.join(cells)}</tr>")
    return f"<table>{''.join(lines)}</table>"


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
