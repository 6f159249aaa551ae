"""The live table: an observer that shows the latest iteration record while a driver works."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO, TypeVar, cast

from mipfs.cli.output import number, percent
from mipfs.cli.streams import natives_apart

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult

    from mipfs.result.result import Record
    from mipfs.run.beside import Progress

V = TypeVar("V", bound="Compiled")


@contextmanager
def live_table(quiet: bool, unkept: bool = False) -> Iterator[tuple[Callable[[Record], None], ...]]:
    """The observers to hand to a driver: one on a terminal, none when piped or quiet.

    A long run that is `unkept` says how the next one is kept.
    """
    with draw_view(_View(unkept), quiet) as view:
        yield () if view is None else (view.see,)


@contextmanager
def draw_view(view: V, quiet: bool) -> Iterator[V | None]:
    """A view, drawn on a terminal as long as this lasts; None when piped or quiet.

    What takes long before the clock starts is said there too.
    """
    if quiet or not (sys.stdout.isatty() and sys.stderr.isatty()):
        with notes(None, quiet), natives_apart():
            yield None
        return
    from rich.console import Console
    from rich.live import Live

    shown = cast("RenderableType", view)
    with Live(shown, console=Console(stderr=True), refresh_per_second=5, transient=True), notes(view):
        yield view


@contextmanager
def notes(view: Compiled | None, quiet: bool = False) -> Iterator[None]:
    """What the package's log says at level INFO: on standard error, but for the progress of compiling, in a view.

    Where there is no terminal, only that much is compiled is said, in a line.
    """
    handler = _Notes(view)
    log = logging.getLogger("mipfs")
    level = log.level
    if not quiet:
        log.addHandler(handler)
        log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(level)


class _Notes(logging.StreamHandler[TextIO]):
    """See `notes`."""

    def __init__(self, view: Compiled | None) -> None:
        super().__init__(sys.stderr)
        self._view = view

    def emit(self, record: logging.LogRecord) -> None:
        """Show a record, or hand its progress to the view."""
        progress: Progress | None = getattr(record, "progress", None)
        if progress is not None and self._view is not None:
            self._view.compiling = progress
        elif sys.stderr.isatty() or (progress is not None and progress.expected):
            super().emit(record)


class Compiled:
    """A view that shows a line in place of its table while kernels are compiled."""

    compiling: Progress | None = None

    def is_compiling(self) -> bool:
        """Whether kernels are being compiled, before the clock starts."""
        return self.compiling is not None and not self.compiling.is_over

    def line(self, width: int) -> RenderableType:
        """A bar, how many functions of about how many, and seconds, on one line of that width."""
        from rich.progress_bar import ProgressBar
        from rich.table import Table

        assert self.compiling is not None
        done = self.compiling.functions
        expected = self.compiling.expected
        about = "compiling kernels, once"
        of = f" of about {expected}" if expected else ""
        tail = f"{done}{of} functions  {time.monotonic() - self.compiling.began:.0f} s"
        if width < len(about) + len(tail) + 8:
            about = "compiling"
            tail = tail.replace(" of about ", "/").replace(" functions", "")
        room = max(4, min(40, width - len(about) - len(tail) - 4))
        total = max(expected, done + 1) if expected else None
        shown = Table.grid(padding=(0, 2, 0, 0))
        for _ in range(3):
            shown.add_column(no_wrap=True)
        shown.add_row(about, ProgressBar(total=total, completed=done, width=room), tail)
        return shown


class _View(Compiled):
    """The latest record, drawn anew at every refresh so that the clock runs between iterations.

    Numbers are never cut: in a narrow terminal columns are left out instead, the counters stand below.
    """

    def __init__(self, unkept: bool = False) -> None:
        self.began = time.monotonic()
        self.unkept = unkept
        self.record: Record | None = None

    def see(self, record: Record) -> None:
        self.record = record

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.table import Table
        from rich.text import Text

        if self.is_compiling():
            self.began = time.monotonic()
            yield self.line(options.max_width)
            return
        cells = {"seconds": f"{time.monotonic() - self.began:.1f}"}
        counters = ""
        if self.record is not None:
            r = self.record
            cells |= {
                "iteration": str(r.iteration),
                "incumbent": number(r.objective),
                "bound": number(r.bound),
                "gap": percent(r.gap),
                "features": str(r.n_selected),
            }
            counters = ", ".join(f"{value} {name.replace('_', ' ')}" for name, value in r.counters.items() if value)
        shown = _fitting_columns(
            {name: max(len(name), len(cells.get(name, ""))) for name in COLUMNS}, options.max_width
        )
        table = Table(*shown)
        for column in table.columns:
            column.no_wrap = True
            column.justify = "right"
        table.add_row(*(cells.get(name, "") for name in shown))
        yield table
        if counters:
            yield Text(counters, style="dim", overflow="ellipsis", no_wrap=True)
        if self.unkept and time.monotonic() - self.began > LONG:
            yield Text(KEEP, style="dim", overflow="ellipsis", no_wrap=True)


LONG = 60.0
"""Seconds after which a run without a checkpoint says how to have one."""
KEEP = "Ctrl-C ends it with what it has; with --checkpoint FILE a run can go on later"
COLUMNS = ("seconds", "iteration", "incumbent", "bound", "gap", "features")
LEAST = ("features", "iteration", "seconds", "bound")
"""What is left out first where the terminal is narrow."""


def _fitting_columns(widths: Mapping[str, int], room: int) -> list[str]:
    """The columns that fit, each with three characters for its borders."""
    shown = list(widths)
    for name in LEAST:
        if sum(widths[one] + 3 for one in shown) + 1 > room:
            shown.remove(name)
    return shown
