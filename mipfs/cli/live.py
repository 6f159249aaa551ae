"""The live table: an observer that shows the latest iteration record while a driver works."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from mipfs.cli.streams import natives_apart
from mipfs.cli.text import number, percent

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

    from mipfs.result.result import Record


@contextmanager
def live_table(quiet: bool) -> Iterator[tuple[Callable[[Record], None], ...]]:
    """The observers to hand to a driver: one on a terminal, none when piped or quiet.

    What takes long before the clock starts is said there too.
    """
    notes = logging.StreamHandler(sys.stderr)
    log = logging.getLogger("mipfs")
    if not quiet and sys.stderr.isatty():
        log.addHandler(notes)
        log.setLevel(logging.INFO)
    try:
        with _table(quiet) as observers:
            yield observers
    finally:
        log.removeHandler(notes)


@contextmanager
def _table(quiet: bool) -> Iterator[tuple[Callable[[Record], None], ...]]:
    if quiet or not (sys.stdout.isatty() and sys.stderr.isatty()):
        with natives_apart():
            yield ()
        return
    from rich.console import Console
    from rich.live import Live

    view = _View()
    with Live(view, console=Console(stderr=True), refresh_per_second=5, transient=True):
        yield (view.see,)


class _View:
    """The latest record, drawn anew at every refresh so that the clock runs between iterations.

    Numbers are never cut: in a narrow terminal columns are left out instead, the counters stand below.
    """

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.record: Record | None = None

    def see(self, record: Record) -> None:
        self.record = record

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.table import Table
        from rich.text import Text

        cells, counters = {"seconds": f"{time.monotonic() - self.began:.1f}"}, ""
        if self.record is not None:
            r = self.record
            cells |= {"iteration": str(r.iteration), "incumbent": number(r.objective), "bound": number(r.bound)}
            cells |= {"gap": percent(r.gap), "features": str(r.n_selected)}
            counters = ", ".join(f"{value} {name.replace('_', ' ')}" for name, value in r.counters.items() if value)
        shown = _fitting({name: max(len(name), len(cells.get(name, ""))) for name in COLUMNS}, options.max_width)
        table = Table(*shown)
        for column in table.columns:
            column.no_wrap, column.justify = True, "right"
        table.add_row(*(cells.get(name, "") for name in shown))
        yield table
        if counters:
            yield Text(counters, style="dim", overflow="ellipsis", no_wrap=True)


COLUMNS = ("seconds", "iteration", "incumbent", "bound", "gap", "features")
LEAST = ("features", "iteration", "seconds", "bound")
"""What is left out first where the terminal is narrow."""


def _fitting(widths: Mapping[str, int], room: int) -> list[str]:
    """The columns that fit, each with three characters for its borders."""
    shown = list(widths)
    for name in LEAST:
        if sum(widths[one] + 3 for one in shown) + 1 > room:
            shown.remove(name)
    return shown
