"""Ctrl-C and its relatives: SIGTERM (a scheduler's) and SIGHUP (a terminal that closed) ask for the same.

Handlers stand only while a block runs, in the main thread, and a signal that is ignored (`nohup`) stays ignored.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))

Handler = Callable[[int, FrameType | None], Any]


class _Held:
    """A handler that keeps signals for later."""

    def __init__(self) -> None:
        self.came: list[int] = []

    def __call__(self, number: int, _frame: FrameType | None) -> None:
        self.came.append(number)


@contextmanager
def handle_signals(handler: Handler) -> Iterator[None]:
    """Let `handler` hear the signals while the block runs; one that an outer `hold_signals` keeps is heard at once."""
    previous: dict[int, Any] = {}
    try:
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                if signal.getsignal(number) not in (signal.SIG_IGN, None):
                    previous[number] = signal.signal(number, handler)
        for outer in {id(found): found for found in previous.values() if isinstance(found, _Held)}.values():
            while outer.came:
                handler(outer.came.pop(0), None)
        yield
    finally:
        for number, found in previous.items():
            if signal.getsignal(number) is handler:
                signal.signal(number, found)


def ignore() -> None:
    """Let no signal change what a process that has done its work says at its end."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def exit_after_strike(code: int) -> None:
    """End a process that was struck with its exit code.

    Where a `KeyboardInterrupt` met an ``exec`` of a string (dataclasses are made so), CPython 3.11 ends the process by
    SIGINT at last, though it was caught: `sys.exit` would not be heard.
    """
    if not InterruptHandler.any_came:
        return
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(code)


@contextmanager
def silence_interrupts() -> Iterator[None]:
    """Say nothing of a `KeyboardInterrupt` that met a place where Python cannot raise it, such as a callback of C.

    What else could not be raised is said at the end of the block. Meanwhile the hook is a function of C: in one of
    Python the next signal could strike.
    """
    said = sys.unraisablehook
    kept = list[Any]()
    sys.unraisablehook = kept.append
    try:
        yield
    finally:
        sys.unraisablehook = said
        for args in kept:
            if (
                args.exc_type is not KeyboardInterrupt and not InterruptHandler.any_came
            ):  # else half-made objects complain too
                said(args)


class InterruptHandler:
    """A handler that raises `KeyboardInterrupt`, and knows that it did.

    Attributes
    ----------
    any_came : bool, of the class: whether some strike did in this process
    came : bool, it did
    asked : bool, what runs inside took a signal as a request to stop, and may have ended before it could follow
    """

    any_came = False

    def __init__(self) -> None:
        self.came = self.asked = False

    @property
    def has_been(self) -> bool:
        """Whether a signal came after which nothing more should begin.

        Its `KeyboardInterrupt` met a place where none can be raised (`silence_interrupts`), or a run was asked at its
        very end.
        """
        return self.came or self.asked

    def __call__(self, _number: int, _frame: FrameType | None) -> None:
        self.came = InterruptHandler.any_came = True
        tell()
        raise KeyboardInterrupt


@contextmanager
def interrupt_after_strike(strike: InterruptHandler) -> Iterator[None]:
    """Whatever error ends the block after a strike is the interrupt: it may have met a lock that was half released."""
    try:
        yield
    except Exception as error:
        if strike.came:
            raise KeyboardInterrupt from error
        raise


_listening: list[InterruptHandler] = []


@contextmanager
def hearing_signals() -> Iterator[InterruptHandler]:
    """A block in which a signal is a `KeyboardInterrupt`, also inside `hold_signals`; it knows of what was caught
    inside.
    """
    strike = InterruptHandler()
    _listening.append(strike)
    try:
        with interrupt_after_strike(strike), handle_signals(strike):
            yield strike
    finally:
        _listening.remove(strike)


def tell() -> None:
    """Have all blocks that hear know of a signal that asks what runs to stop, without an error."""
    for strike in _listening:
        strike.asked = True


def is_any_interrupted() -> bool:
    """Whether some block that hears has had a signal after which nothing more should begin
    (`InterruptHandler.has_been`).
    """
    return any(strike.has_been for strike in _listening)


@contextmanager
def hold_signals(deliver: bool = True) -> Iterator[None]:
    """Keep signals away from a block that must be finished.

    Parameters
    ----------
    deliver : bool
        Whether one that came is raised again after the block. A command that has come to its output has nothing
        left to stop.
    """
    keeper = _Held()
    try:
        with handle_signals(keeper):
            yield
    finally:
        if deliver and keeper.came:
            signal.raise_signal(keeper.came[0])
