"""Standard output and error as a run finds them: closed, full, read by nobody, or of another encoding."""

from __future__ import annotations

import ctypes
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from mipfs.errors import UsageError


class StandardOutput(io.TextIOWrapper):
    """Standard output that says so when it cannot be written, every time: the option parser swallows the first."""

    lost: UsageError | None = None

    def write(self, text: str) -> int:
        with self._giving_up_on_error():
            return super().write(text)

    def flush(self) -> None:
        with self._giving_up_on_error():
            super().flush()

    @contextmanager
    def _giving_up_on_error(self) -> Iterator[None]:
        if self.lost is not None:
            raise self.lost
        try:
            yield
        except OSError as error:
            give_up(self)
            if isinstance(error, BrokenPipeError):
                raise
            reason = (error.strerror or str(error)).lower()
            self.lost = UsageError(f"standard output cannot be written: {reason}; send it elsewhere")
            raise self.lost from None


@contextmanager
def sound_streams() -> Iterator[None]:
    """Give a run streams to write to, and leave nothing in them that Python could not write at its end."""
    _reopen_closed_streams()
    held = sys.stdout
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A feature name that the terminal cannot show must not end a run.
            stream.reconfigure(errors="replace")
    own: StandardOutput | None = None  # none where another command calls this one, whose streams they are
    if isinstance(held, io.TextIOWrapper) and held is sys.__stdout__:
        sys.stdout = own = StandardOutput(
            held.buffer, held.encoding, "replace", line_buffering=held.line_buffering, write_through=held.write_through
        )
    try:
        yield
    finally:
        if own is not None:
            own.lost = None  # reported, and given up
            with suppress(OSError, UsageError):
                own.flush()
            own.lost = None
            own.detach()
            sys.stdout = held
        try:
            sys.stderr.flush()
        except OSError:
            give_up(sys.stderr)


@contextmanager
def natives_apart() -> Iterator[None]:
    """Send what a solver's library prints by itself to standard error: standard output may be a document.

    HiGHS has printed a line now and then, whatever its options said. What Python prints stays where it was.
    """
    own = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        with suppress(OSError, TypeError, AttributeError):  # where there is no C library to be asked for its buffer
            ctypes.CDLL(None).fflush(None)
        os.dup2(own, 1)
        os.close(own)


def give_up(stream: Any) -> None:
    """Let what is still to be written go nowhere: Python tries once more at its end, and complains."""
    with suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)


def _reopen_closed_streams() -> None:
    """Open what was closed, so that no file of ours gets its number, and what a library prints with it."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            # Standard output that was closed cannot be written, and says so; an error message is just lost.
            null = os.open(os.devnull, os.O_WRONLY if name == "stderr" else os.O_RDONLY)
            assert null == number
            if getattr(sys, name) is None:
                mode = "r" if name == "stdin" else "w"
                stream = open(number, mode, encoding="utf-8", closefd=False)  # noqa: SIM115 (it stays open)
                setattr(sys, name, stream)
                setattr(sys, f"__{name}__", stream)
