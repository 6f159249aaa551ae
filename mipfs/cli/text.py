"""Tables for people: rich where a terminal shows them, plain aligned text where they are piped."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

from mipfs.report.blocks import Alarm, NamedValues, ReportBlock, Table
from mipfs.report.numbers import number, percent, state_parameters
from mipfs.report.visible import escape_invisible

__all__ = ["Alarm", "number", "percent", "say", "show_blocks", "show_pairs", "show_table", "state_parameters"]


def say(text: str) -> None:
    """Print a line on standard output, below an empty one where it begins with one."""
    head = text.lstrip("\n")
    print("\n" * (len(text) - len(head)) + escape_invisible(head))


def show_blocks(blocks: Iterable[ReportBlock]) -> None:
    """Print the parts of a report on standard output."""
    for block in blocks:
        if isinstance(block, Table) and sys.stdout.isatty():
            _show_rich(block)
        elif isinstance(block, NamedValues) and sys.stdout.isatty():
            _show_coloured(block)
        else:
            print(block.text(), end="")


def show_table(header: Sequence[str], rows: Sequence[Sequence[str]], *, title: str = "", left: int = 1) -> None:
    """Print a table on standard output; the first `left` columns are aligned to the left, numbers to the right."""
    show_blocks([Table(header, rows, title, left)])


def show_pairs(pairs: Sequence[tuple[str, str]]) -> None:
    """Print ``name  value`` lines, aligned."""
    show_blocks([NamedValues(pairs)])


def _show_coloured(block: NamedValues) -> None:
    """Lines of names and values, those that alarm in red."""
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    for (_, given), (name, value) in zip(block.pairs, block.columns(), strict=True):
        line = Text(name).append(value, style="bold red" if isinstance(given, Alarm) else "")
        console.print(line, soft_wrap=True)


def _show_rich(block: Table) -> None:
    """A table with a frame, without one where that is too wide, as plain text where numbers would still be cut."""
    from rich.box import HEAVY_HEAD
    from rich.console import Console
    from rich.table import Table as Framed
    from rich.text import Text

    console = Console()
    (header, *rows) = block.visible()
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    least = [min(width, FOLDED_WIDTH) if i < block.left else width for i, width in enumerate(widths)]
    if sum(least) + len(least) > console.width:
        print(block.text(), end="")
        return
    framed = sum(least) + 3 * len(least) + 1 <= console.width
    table = Framed(
        title=Text(escape_invisible(block.title)) if block.title else None,
        title_justify="left",
        box=HEAVY_HEAD if framed else None,
        padding=(0, 1) if framed else (0, 1, 0, 0),
        pad_edge=framed,
    )
    for i, name in enumerate(header):
        words = i < block.left
        table.add_column(
            Text(name), justify="left" if words else "right", overflow="fold", no_wrap=not words, min_width=least[i]
        )
    for row in rows:
        table.add_row(*map(Text, row))
    console.print(table)


FOLDED_WIDTH = 24
"""Characters at which a column of words may be folded; numbers never are."""
