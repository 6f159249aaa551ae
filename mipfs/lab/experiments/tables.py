"""The report of a study: rows grouped, averaged and compared in pairs, and the blocks that say it.

As Markdown its charts are SVG files; a terminal and a page show the same blocks.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from mipfs.lab.experiments.study import Row
from mipfs.report.blocks import (
    FAMILY,
    Bars,
    Chart,
    Curve,
    HeatMap,
    LineChart,
    NamedValues,
    ReportBlock,
    Sentence,
    Table,
)
from mipfs.report.visible import escape_text

WIDTH, HEIGHT = 6.4, 3.7
"""Inches of a chart."""
MARKS = "osD^vPX*"
LEAST_APART = 0.08
"""The share of an axis between two ticks that both have a text."""


@dataclass(frozen=True)
class Heading:
    """The title of a section."""

    title: str

    def text(self) -> str:
        return f"\n{self.title}\n"

    def html(self) -> str:
        return f"<h3>{escape_text(self.title)}</h3>"


@dataclass(frozen=True)
class TitledBlock:
    """A block below the title of its section, in one card of a page."""

    heading: Heading
    block: ReportBlock

    def text(self) -> str:
        return self.heading.text() + self.block.text()

    def html(self) -> str:
        return self.heading.html() + self.block.html()


@dataclass(frozen=True)
class Prose:
    """A paragraph whose names in backticks a page shows as code."""

    line: str

    def text(self) -> str:
        return Sentence(self.line).text()

    def html(self) -> str:
        return re.sub("`([^`]+)`", r"<code>\1</code>", Sentence(self.line).html())


def page_blocks(blocks: Iterable[ReportBlock]) -> list[ReportBlock]:
    """The blocks as a page shows them: titles in the card of what they are about, names as code."""
    found: list[ReportBlock] = []
    heading: Heading | None = None
    for block in blocks:
        if isinstance(block, Heading):
            heading = block
            continue
        one: ReportBlock = Prose(block.line) if isinstance(block, Sentence) else block
        if isinstance(block, NamedValues):
            one = NamedValues([(name, value.replace("`", "")) for name, value in block.pairs])
        found.append(one if heading is None else TitledBlock(heading, one))
        heading = None
    return found


def render_markdown(blocks: Iterable[ReportBlock]) -> str:
    """The blocks as Markdown; a chart is a link to its file, which `render_pictures` makes."""
    parts = [_block_markdown(block) for block in blocks]
    return "\n\n".join(part for part in parts if part) + "\n"


def _block_markdown(block: ReportBlock) -> str:
    if isinstance(block, Heading):
        return f"## {block.title}"
    if isinstance(block, Table):
        return table(block)
    if isinstance(block, NamedValues):
        return "\n".join(f"- {name}: {value}" for name, value in block.pairs)
    if isinstance(block, Sentence):
        return block.line.strip()
    if isinstance(block, (LineChart, Bars, HeatMap)):
        return f"![{block.title}]({file_of(block)})" + (f"\n\n{block.note}" if block.note else "")
    return ""


def table(block: Table) -> str:
    """A table; the first columns to the left, numbers to the right."""
    marks = ["---" if i < block.left else "--:" for i in range(len(block.header))]
    lines = [list(block.header), marks, *map(list, block.rows)]
    text = "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |" for cells in lines)
    return f"**{block.title}**\n\n{text}" if block.title else text


def file_of(chart: Chart) -> str:
    """The name of a chart's file, made of its title."""
    return file_name(str(getattr(chart, "title", "")))


def file_name(title: str) -> str:
    """The file of a title."""
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:60] + ".svg"


def render_pictures(blocks: Iterable[ReportBlock]) -> dict[str, bytes]:
    """Every chart as SVG by the name of its file; none where matplotlib is not installed."""
    charts: Sequence[LineChart | Bars | HeatMap] = [b for b in blocks if isinstance(b, (LineChart, Bars, HeatMap))]
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        return {}
    return {file_of(chart): svg(chart) for chart in charts}


def _told_apart(chart: LineChart, ax: Any) -> None:
    """Curves by mark and width, too, since many lie on one another; ticks where the values are."""
    for number, line in enumerate(ax.get_lines()):
        line.set(marker=MARKS[number % len(MARKS)], linewidth=max(0.9, 2.3 - 0.25 * number), markersize=6)
    if chart.is_log:
        from matplotlib.ticker import NullLocator

        ax.set_xticks(list(chart.x), _spaced_ticks(chart.x), fontsize=8)
        ax.xaxis.set_minor_locator(NullLocator())
    ax.grid(True, alpha=0.3)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)


def _spaced_ticks(x: Sequence[float]) -> list[str]:
    """The ticks of a logarithmic axis as text; "" where one would stand on the one before."""
    texts: list[str] = []
    last = -math.inf
    length = math.log(max(x) / min(x)) or 1.0
    for value in x:
        place = math.log(value / min(x)) / length
        fits = place - last >= LEAST_APART
        texts.append(f"{value:g}" if fits else "")
        last = place if fits else last
    return texts


def svg(chart: LineChart | Bars | HeatMap) -> bytes:
    """One chart: the same bytes for the same numbers and the same matplotlib."""
    import matplotlib
    from matplotlib.figure import Figure

    from mipfs.report.axes import draw

    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "mipfs", "font.family": "sans-serif"}):
        figure = Figure(figsize=(WIDTH, HEIGHT), layout="constrained")
        ax = figure.subplots()
        draw(chart, ax, "study")
        if isinstance(chart, LineChart):
            _told_apart(chart, ax)
        if isinstance(chart, Bars):
            ax.spines[["top", "right", "bottom"]].set_visible(False)
        content = io.BytesIO()
        figure.savefig(content, format="svg", metadata={"Date": None})
    return content.getvalue()


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
