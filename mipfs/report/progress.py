"""How far a long piece of work has come: one line on a terminal that is written over, and nothing anywhere else."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

FIRST_SECONDS, LINE_SECONDS = 1.0, 0.2
"""Seconds before the first line, and between two."""


@contextmanager
def progress(what: str, of: str, verbose: bool = True) -> Iterator[Callable[[int, int], None]]:
    """What to tell how many of how many parts are done; the line is gone at the end.

    Parameters
    ----------
    what, of : str
        ``what 120 of 3000 of, 4 s``.
    verbose : bool
        False: say nothing on a terminal either.
    """
    stream, began, shown = sys.stderr, time.monotonic(), 0.0
    talk, width = verbose and stream.isatty(), 0

    def tell(done: int, total: int) -> None:
        nonlocal shown, width
        now = time.monotonic()
        if not talk or now - began < FIRST_SECONDS or now - shown < LINE_SECONDS:
            return
        line = f"{what} {done} of {total} {of}, {now - began:.0f} s"
        print(f"\r{line.ljust(width)}", end="", file=stream, flush=True)
        shown = now
        width = len(line)

    try:
        yield tell
    finally:
        if width:
            print("\r" + " " * width + "\r", end="", file=stream, flush=True)
