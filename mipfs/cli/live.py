"""The live table: an observer that shows the latest iteration record while a driver works."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from mipfs.cli.text import number, percent

if TYPE_CHECKING:
    from rich.table import Table

    from mipfs.result import Record


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
        yield ()
        return
    from rich.console import Console
    from rich.live import Live

    view = _View()
    with Live(view, console=Console(stderr=True), refresh_per_second=5, transient=True):
        yield (view.see,)


class _View:
    """The latest record, drawn anew at every refresh so that the clock runs between iterations."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.record: Record | None = None

    def see(self, record: Record) -> None:
        self.record = record

    def __rich__(self) -> Table:
        from rich.table import Table

        table = Table("seconds", "iteration", "incumbent", "bound", "gap", "features")
        cells = [f"{time.monotonic() - self.began:.1f}"]
        if self.record is not None:
            r = self.record
            cells += [str(r.iteration), number(r.objective), number(r.bound), percent(r.gap), str(r.n_selected)]
            for name, value in r.counters.items():
                table.add_column(name.replace("_", " "))
                cells.append(str(value))
        table.add_row(*cells)
        return table
