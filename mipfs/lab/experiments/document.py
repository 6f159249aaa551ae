"""A report as Markdown, with its charts as SVG files: the same blocks that a terminal and a page show."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from mipfs.report.blocks import NamedValues, ReportBlock, Sentence, Table
from mipfs.report.charts import Bars, Chart, HeatMap, LineChart
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
