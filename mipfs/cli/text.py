"""Tables for people: rich where a terminal shows them, plain aligned text where they are piped."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

from mipfs.report.blocks import Block, Pairs, Table
from mipfs.report.numbers import number, percent, stated

__all__ = ["number", "percent", "show_blocks", "show_pairs", "show_table", "stated"]


def show_blocks(blocks: Iterable[Block]) -> None:
    """Print the parts of a report on standard output."""
    for block in blocks:
        if isinstance(block, Table) and sys.stdout.isatty():
            _show_rich(block.header, block.rows, block.title, block.left)
        else:
            print(block.text(), end="")


def show_table(header: Sequence[str], rows: Sequence[Sequence[str]], *, title: str = "", left: int = 1) -> None:
    """Print a table on standard output; the first `left` columns are aligned to the left, numbers to the right."""
    show_blocks([Table(header, rows, title, left)])


def show_pairs(pairs: Sequence[tuple[str, str]]) -> None:
    """Print ``name  value`` lines, aligned."""
    show_blocks([Pairs(pairs)])


def _show_rich(header: Sequence[str], rows: Sequence[Sequence[str]], title: str, left: int) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=title or None, title_justify="left")
    for i, name in enumerate(header):
        table.add_column(escape(name), justify="left" if i < left else "right", overflow="fold")
    for row in rows:
        table.add_row(*map(escape, row))
    Console().print(table)
