"""Progress of a run in lines of text: what ``verbose=True`` prints on standard error."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from mipfs.report.numbers import number, percent
from mipfs.result.result import Record

LINE_SECONDS = 0.5
"""Seconds between two lines."""
HEADER = " seconds  iteration     incumbent         bound       gap  features"


class LiveLines:
    """An observer that prints the first record, then one that has changed every half a second, and the last.

    Parameters
    ----------
    stream : text stream, optional
        Standard error as it is when the run begins.
    about : str
        What is being solved, on a line of its own.
    """

    def __init__(self, stream: TextIO | None = None, about: str = "") -> None:
        self.stream = sys.stderr if stream is None else stream
        self.about = about
        self.printed = -float("inf")
        self.last: str | None = None
        self.waiting: str | None = None

    def __call__(self, record: Record) -> None:
        line = as_line(record)
        if line.split()[2:] == (self.last or "").split()[2:]:
            return
        self.waiting = line
        if time.monotonic() - self.printed >= LINE_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Print what is waiting."""
        if self.waiting is None:
            return
        if self.last is None:
            print(*filter(None, (self.about, HEADER)), sep="\n", file=self.stream)
        print(self.waiting, file=self.stream, flush=True)
        self.printed, self.last, self.waiting = time.monotonic(), self.waiting, None


def as_line(record: Record) -> str:
    """A record in one line of 68 characters."""
    values = (number(record.objective), number(record.bound), percent(record.gap))
    numbers = f"{values[0]:>12}  {values[1]:>12}  {values[2]:>8}"
    return f"{record.seconds:8.1f}  {record.iteration:9}  {numbers}  {record.n_selected:8}"


@contextmanager
def live_lines(verbose: bool, about: str = "") -> Iterator[tuple[Callable[[Record], None], ...]]:
    """The observers of a verbose run, and none of a silent one; what takes long before the clock starts is said too."""
    if not verbose:
        yield ()
        return
    lines = LiveLines(about=about)
    notes = logging.StreamHandler(sys.stderr)
    log = logging.getLogger("mipfs")
    level = log.level
    log.addHandler(notes)
    log.setLevel(logging.INFO)
    try:
        yield (lines,)
    finally:
        lines.flush()
        log.removeHandler(notes)
        log.setLevel(level)
