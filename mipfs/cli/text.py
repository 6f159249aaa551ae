"""Tables for people: rich where a terminal shows them, plain aligned text where they are piped."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any


def show_table(header: Sequence[str], rows: Sequence[Sequence[str]], *, title: str = "", left: int = 1) -> None:
    """Print a table on standard output; the first `left` columns are aligned to the left, numbers to the right."""
    if sys.stdout.isatty():
        _show_rich(header, rows, title, left)
        return
    if title:
        print(f"\n{title}")
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    for row in (header, *rows):
        cells = (
            cell.ljust(w) if i < left else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        )
        print(("  " + "  ".join(cells)).rstrip())


def show_pairs(pairs: Sequence[tuple[str, str]]) -> None:
    """Print ``name  value`` lines, aligned."""
    width = max(len(name) for name, _ in pairs)
    for name, value in pairs:
        print(f"{name.ljust(width)}  {value}")


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


def number(value: float) -> str:
    """Eight significant digits; a dash for what was not earned."""
    return f"{value:.8g}" if abs(value) < float("inf") else "-"


def percent(gap: float) -> str:
    """A relative gap as a percentage of three significant digits; only a gap of exactly zero is shown as zero."""
    if gap == float("inf"):
        return "-"
    return "<0.0001%" if 0 < gap < 1e-6 else f"{100 * gap:.3g}%"


def stated(params: Mapping[str, Any], without: Sequence[str] = ()) -> str:
    """The parameters of a problem in one line, without those that it does not have."""
    shown = [name for name in ("M", "C", "lambda", "loss", "bias") if name not in without]
    shown += [name for name in ("measure", "beta", "k") if name in params]
    return ", ".join(f"{name} = {_text(params[name])}" for name in shown)


def _text(value: Any) -> str:
    if isinstance(value, list):
        return "one per feature"
    return "none" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
