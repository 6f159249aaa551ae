"""The live table of a path: a row for every point that is done, and what is being solved now."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from mipfs.cli.live import Compiled, draw_view
from mipfs.cli.output import number, percent

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

    from mipfs.lab.studies.solution_path import PathPoint
    from mipfs.result.result import Record


@contextmanager
def live_path(quiet: bool) -> Iterator[dict[str, Any]]:
    """The watchers to hand to `mipfs.path`: some on a terminal, none when piped or quiet."""
    with draw_view(View(), quiet) as view:
        yield {} if view is None else {"on_begin": view.begin, "on_point": view.add, "observers": (view.see,)}


class View(Compiled):
    """The points so far and the latest iteration record, drawn anew at every refresh."""

    def __init__(self) -> None:
        self.points: list[PathPoint] = []
        self.about = ""
        self.began = time.monotonic()
        self.record: Record | None = None

    def begin(self, about: str) -> None:
        """A solve begins."""
        self.about = about
        self.began = time.monotonic()
        self.record = None

    def add(self, point: PathPoint) -> None:
        """A point is there."""
        self.points.append(point)

    def see(self, record: Record) -> None:
        """An iteration record of the solve in progress."""
        self.record = record

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.box import SIMPLE
        from rich.table import Table
        from rich.text import Text

        table = Table(box=SIMPLE)
        for name in ("value", "status", "objective", "bound", "gap", "seconds", "size"):
            table.add_column(name, no_wrap=True)
        room = max(3, console.size.height - 6)  # the latest points: what is above them would push them off the screen
        for p in self.points[-room:]:
            numbers = (number(p.objective), number(p.bound), percent(p.gap), f"{p.seconds:.2f}")
            values = ", ".join(f"{value:g}" for value in p.place.values())
            table.add_row(values, p.status.name.lower(), *numbers, str(len(p.selected)))
        yield table
        if self.points:
            yield Text(f"latest: {', '.join(self.points[-1].selected)}", no_wrap=True, overflow="ellipsis")
        if self.is_compiling():
            yield self.line(options.max_width)
            return
        now = f"{self.about or 'preparing'}: {time.monotonic() - self.began:.1f} s"
        if self.record is not None:
            r = self.record
            now += f", incumbent {number(r.objective)}, bound {number(r.bound)}, gap {percent(r.gap)}"
        yield Text(now)
