"""What a report is made of, and its two renderings: aligned text, and HTML for notebooks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

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
    """A part of a report: `NamedValues`, `Table` and `Sentence` here, the charts of `charts.py`."""

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
