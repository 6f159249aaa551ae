"""What a limit or a crash stopped can go on: the state of a run (`mipfs.result.state`) is kept, and taken up.

A driver that can be taken up again yields what makes its own part of it.
"""

from __future__ import annotations

import math
import os
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import numpy as np
import numpy.typing as npt

from mipfs.errors import CheckpointWarning, ContradictionError, DataError, UsageError
from mipfs.plumbing.arrays import Arrays
from mipfs.plumbing.output_file import is_stream
from mipfs.result.result import Record
from mipfs.result.state import ANEW, RunState, StartCommand, stamp_of
from mipfs.run.incumbent import Incumbent

if TYPE_CHECKING:
    from mipfs.run.run import Run, RunSnapshot

P = ParamSpec("P")
R = TypeVar("R")
DAMAGED = LookupError, ValueError, TypeError, AttributeError, ArithmeticError, StopIteration, ContradictionError
"""What goes wrong where the parts of a state do not fit."""
OF_SUMS = "checkpoint and resume are for losses that are a sum over the samples; for measures take driver two_layer"
"""Why other drivers keep no state of a measure's problem."""
EVERY = 30.0
"""Seconds from one writing of a checkpoint to the next."""
SHARE = 20.0
"""Time between two writings at least, as a multiple of what the last one took."""


class Keeper:
    """Keeps the last state of a run, in a file where there is one.

    Parameters
    ----------
    path : path-like, optional
    every : float > 0, seconds between two writings; the last state is always kept
    began : StartCommand, optional
    """

    def __init__(self, path: str | Path | None = None, every: float = EVERY, began: StartCommand | None = None) -> None:
        self.path = path
        self.began = StartCommand() if began is None else began
        self.every = every
        self.state: RunState | None = None
        self._next = time.monotonic() + every

    @property
    def room(self) -> Path | None:
        """The folder of the file, where what a run reads seldom may lie too."""
        return None if self.path is None or is_stream(Path(self.path)) else Path(os.path.realpath(self.path)).parent

    def due(self) -> bool:
        """Whether it is time to write."""
        return self.path is not None and time.monotonic() >= self._next

    def keep(self, make: Callable[[], RunState]) -> None:
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


def state_of(run: Run, driver: str) -> RunState:
    """Where a run last stood between two steps: the driver's own part, and what every run has."""
    rest = run.resting
    assert rest is not None
    return RunState(driver, stamp_of(run.problem), {**rest.made(), **_of_run(run, rest)})


def _of_run(run: Run, rest: RunSnapshot) -> Arrays:
    """What every run has."""
    gap = float(run.options.gap)
    kept: Arrays = {
        "run_numbers": np.array([rest.bound, rest.upper, rest.iteration, gap, rest.seconds, run.fruitless], dtype=float)
    }
    for name, found in (("run", rest.incumbent), ("spare", _spare_incumbent(run, rest))):
        if found is not None:
            kept |= {f"{name}_selected": found.selected, f"{name}_w": found.w, f"{name}_b": np.array(found.b)}
    records = run.trace[: rest.n_records]
    counters = [*dict.fromkeys(chain(rest.counters, *(record.counters for record in records)))]
    totals = [
        [-1 if (n := one.get(name)) is None else n for name in counters] for one in _counters_of_records(rest, records)
    ]
    numbers = [[one.seconds, one.iteration, one.objective, one.bound, one.n_selected, one.upper] for one in records]
    return kept | {
        "trace": np.array(numbers, dtype=float).reshape(-1, 6),
        "counters": np.array(counters, dtype=np.str_),
        "counts": np.array(totals, dtype=np.int64).reshape(len(totals), -1),
    }


def _spare_incumbent(run: Run, rest: RunSnapshot) -> Incumbent | None:
    """The best classifier that the run has beyond where it stood, and what it was given of that kind."""
    known = math.inf if rest.incumbent is None else rest.incumbent.objective
    others = (one for one in (run.incumbent, run.spare) if one is not None and one.objective < known)
    return min(others, key=lambda one: one.objective, default=None)


def _counters_of_records(rest: RunSnapshot, records: Sequence[Record]) -> list[Mapping[str, int]]:
    """The counters of every record, and last those of the run."""
    return [*(record.counters for record in records), rest.counters]


def refusing_broken_state(function: Callable[P, R]) -> Callable[P, R]:
    """Make what goes on from a state refuse one that does not hold together, though its digest is right."""

    @wraps(function)
    def restored(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except DAMAGED as error:
            raise DataError(f"resume: the state does not hold together ({_first_line_of_error(error)})", ANEW) from None

    return restored


def _first_line_of_error(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


@refusing_broken_state
def restore_run(run: Run, state: RunState) -> None:
    """Give a run the incumbent, the counts and the trace of the one that it goes on with.

    The bound comes from the driver. What a step found that was cut off is no incumbent: it would steer the run another
    way than one that was not cut off.
    """
    kept = state.arrays
    run.iteration = int(kept["run_numbers"][2])
    run.before = _not_negative(kept["run_numbers"][4])
    run.fruitless = 1 + int(_not_negative(kept["run_numbers"][5]))
    for name in ("run", "spare"):
        if f"{name}_selected" in kept:
            selected, w, b = kept[f"{name}_selected"], kept[f"{name}_w"], float(kept[f"{name}_b"])
            if not (np.isfinite(w).all() and np.isfinite(b)):
                raise ValueError("the weights are not finite")
            if name == "run":
                run.offer(selected, w, b)
            else:
                run.spare = Incumbent(selected, np.array(w), b, run.problem.evaluate(selected, w, b))
    *run.trace, last = _records_of_state(kept)
    run.count(**last.counters)


def _records_of_state(kept: Mapping[str, npt.NDArray[Any]]) -> list[Record]:
    """The trace of a state, and behind it a record that has but the counters of the run."""
    numbers, names, counts = kept["trace"], kept["counters"].tolist(), kept["counts"]
    if numbers.shape != (len(counts) - 1, 6) or counts.shape[1:] != (len(names),) or np.isnan(numbers).any():
        raise ValueError("the trace has other records than counters")
    made = []
    for row, totals in zip([*numbers.tolist(), [0.0] * 6], counts.tolist(), strict=True):
        seconds, iteration, objective, bound, n_selected, upper = row
        known = {str(name): total for name, total in zip(names, totals, strict=True) if total >= 0}
        made.append(Record(_not_negative(seconds), int(iteration), objective, bound, int(n_selected), known, upper))
    return made


def _not_negative(value: float) -> float:
    """A finite number that is not below 0.

    Raises
    ------
    ValueError
        It is another one.
    """
    if not 0.0 <= value < math.inf:
        raise ValueError("a count or a time is none")
    return float(value)
