"""What a limit or a crash stopped can go on: the state of a run (`mipfs.result.state`) is kept, and taken up.

A driver that can be taken up again yields what makes its own part of it.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, TypeVar

import numpy as np

from mipfs.errors import CheckpointWarning, ContradictionError, DataError, UsageError
from mipfs.plumbing.output_file import is_stream
from mipfs.result.state import ANEW, Arrays, Began, State, stamp_of

if TYPE_CHECKING:
    from mipfs.run.run import Run

P = ParamSpec("P")
R = TypeVar("R")
DAMAGED = LookupError, ValueError, TypeError, AttributeError, ArithmeticError, StopIteration, ContradictionError
"""What goes wrong where the parts of a state do not fit."""
EVERY = 300.0
"""Seconds from one writing of a checkpoint to the next."""
SHARE = 20.0
"""Time between two writings at least, as a multiple of what the last one took."""


class Keeper:
    """Keeps the last state of a run, in a file where there is one.

    Parameters
    ----------
    path : path-like, optional
    every : float > 0, seconds between two writings; the last state is always kept
    began : Began, optional
    """

    def __init__(self, path: str | Path | None = None, every: float = EVERY, began: Began | None = None) -> None:
        self.path = path
        self.began = Began() if began is None else began
        self.every = every
        self.state: State | None = None
        self._next = time.monotonic() + every

    @property
    def room(self) -> Path | None:
        """The folder of the file, where what a run reads seldom may lie too."""
        return None if self.path is None or is_stream(Path(self.path)) else Path(os.path.realpath(self.path)).parent

    def due(self) -> bool:
        """Whether it is time to write."""
        return self.path is not None and time.monotonic() >= self._next

    def keep(self, make: Callable[[], State]) -> None:
        """Take over where a run stands; a file that cannot be written is warned about, and stays as it was."""
        begin = time.monotonic()
        self.state = None if self.path is not None else self.state
        self.state = replace(make(), began=self.began)
        if self.path is not None:
            try:
                self.state = self.state.kept(self.path)
            except UsageError as error:  # a full disk, say: hours of work are not lost to it
                warnings.warn(f"{error}; the run goes on, its last checkpoint stands", CheckpointWarning, stacklevel=2)
        self._next = time.monotonic() + max(self.every, SHARE * (time.monotonic() - begin))


def state_of(run: Run, driver: str, own: Arrays) -> State:
    """Where a run stands: the driver's own part, and what every run has."""
    return State(driver, stamp_of(run.problem), {**own, **_of_run(run)})


def _of_run(run: Run) -> Arrays:
    """What every run has."""
    kept: Arrays = {"run_numbers": np.array([run.bound, run.upper, run.iteration, run.options.gap], dtype=float)}
    if run.incumbent is not None:
        found = run.incumbent
        kept |= {"run_selected": found.selected, "run_w": found.w, "run_b": np.array(found.b)}
    return kept


def restoring(function: Callable[P, R]) -> Callable[P, R]:
    """Make what goes on from a state refuse one that does not hold together, though its digest is right."""

    @wraps(function)
    def restored(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except DAMAGED as error:
            raise DataError(f"resume: the state does not hold together ({_reason(error)})", ANEW) from None

    return restored


def _reason(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


@restoring
def taken_up(run: Run, state: State) -> None:
    """Give a run the incumbent and the count of the one that it goes on with; the bound comes from the driver."""
    run.iteration = int(state.arrays["run_numbers"][2])
    if "run_selected" in state.arrays:
        w, b = state.arrays["run_w"], float(state.arrays["run_b"])
        if not (np.isfinite(w).all() and np.isfinite(b)):
            raise ValueError("the weights are not finite")
        run.offer(state.arrays["run_selected"], w, b)
