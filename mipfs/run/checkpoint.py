"""The state of a run as arrays and numbers, in memory or in a file: what a limit or a crash stopped can go on.

A driver that can be taken up again yields what makes its own part of it. A state is bound to its problem by a
stamp (data, atoms, loss, C, M, rows, costs) and to its contents by a digest.
"""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mipfs.errors import DataError, UsageError
from mipfs.plumbing.digest import digest
from mipfs.plumbing.output_file import save
from mipfs.problem import Problem
from mipfs.readers.arrays import load_arrays

if TYPE_CHECKING:
    from mipfs.run.run import Run

Arrays = dict[str, npt.NDArray[Any]]

VERSION = 3
"""Version of a state: what the drivers keep in it."""
EVERY = 300.0
"""Seconds from one writing of a checkpoint to the next."""
SHARE = 20.0
"""A checkpoint that takes long is written no more often than so many times as long as that."""


@dataclass(frozen=True, eq=False)
class State:
    """Where a run stands.

    Attributes
    ----------
    driver : str
    stamp : str, of the problem
    arrays : mapping of name to ndarray, the driver's own and what every run has (bound, incumbent, iteration)
    """

    driver: str
    stamp: str
    arrays: Mapping[str, npt.NDArray[Any]]

    @classmethod
    def of(cls, run: Run, driver: str, own: Arrays) -> State:
        """Where a run stands: the driver's own part, and what every run has."""
        return cls(driver, stamp_of(run.problem), {**own, **_of_run(run)})

    def save(self, path: str | Path) -> None:
        """Write it, whole or not at all.

        Raises
        ------
        UsageError
            The file cannot be written.
        """
        stream = io.BytesIO()
        about = np.frombuffer(json.dumps([self.driver, self.stamp, self.digest, VERSION]).encode(), dtype=np.uint8)
        np.savez(stream, about=about, **self.arrays)  # type: ignore[arg-type]
        save([(Path(path), stream.getvalue())])

    @classmethod
    def load(cls, path: str | Path) -> State:
        """Read one that `save` wrote.

        Raises
        ------
        DataError
            No such file, or no state of a run, or a damaged one.
        """
        arrays = load_arrays(Path(path))
        try:
            driver, stamp, said, *version = json.loads(arrays.pop("about").tobytes())
        except (KeyError, ValueError, TypeError):
            remedy = "give the file that checkpoint= or --checkpoint wrote"
            raise DataError("this is no state of a run", remedy, path=path) from None
        if version != [VERSION]:
            raise DataError("this is the state of a run of another version of mipfs", "begin the run anew", path=path)
        state = cls(driver, stamp, arrays)
        if state.digest != said:
            raise DataError("the state is damaged: its digest differs", "begin the run anew", path=path)
        return state

    @property
    def digest(self) -> str:
        """SHA-256 of the arrays."""
        parts = [
            f"{name} {array.dtype.str} {array.shape} ".encode() + np.ascontiguousarray(array).tobytes()
            for name, array in sorted(self.arrays.items())
        ]
        return digest(parts)

    def check(self, problem: Problem, driver: str) -> None:
        """Refuse the state of another problem or driver.

        Raises
        ------
        UsageError
        """
        if self.driver != driver:
            raise UsageError(f"resume: the state is one of driver {self.driver!r}, not {driver!r}")
        if self.stamp != stamp_of(problem):
            raise UsageError(
                "resume: the state is one of another problem: data, scaling, loss, C, M, rows or costs differ"
            )

    @property
    def bound(self) -> float:
        """The bound of the run."""
        return float(self.arrays["run_numbers"][0])

    @property
    def upper(self) -> float:
        """Its upper side of a relaxation."""
        return float(self.arrays["run_numbers"][1])

    @property
    def gap(self) -> float:
        """The gap that was asked of it."""
        return float(self.arrays["run_numbers"][3])


class Keeper:
    """Keeps the last state of a run, in a file where there is one.

    Parameters
    ----------
    path : path-like, optional
    every : float > 0, seconds between two writings; the last state is always kept
    """

    def __init__(self, path: str | Path | None = None, every: float = EVERY) -> None:
        self.path, self.every = path, every
        self.state: State | None = None
        self._next = time.monotonic() + every

    def due(self) -> bool:
        """Whether it is time to write."""
        return self.path is not None and time.monotonic() >= self._next

    def keep(self, make: Callable[[], State]) -> None:
        """Take over where a run stands."""
        begin = time.monotonic()
        self.state = make()
        if self.path is not None:
            self.state.save(self.path)
        self._next = time.monotonic() + max(self.every, SHARE * (time.monotonic() - begin))


def stamp_of(problem: Problem) -> str:
    """SHA-256 of everything that a problem states."""
    rows = problem.selection.rows
    told = [
        *(problem.atoms.stamp, problem.loss, problem.bias, problem.C, problem.M, problem.margin),
        *(problem.measure, problem.beta, problem.k, problem.forced_in, problem.forced_out),
        *(rows.extra.names, rows.names),
    ]
    arrays = [problem.penalty, rows.matrix.data, rows.matrix.indices, rows.matrix.indptr, rows.low, rows.high]
    arrays += [*rows.extra.box, rows.extra.integer]
    parts = [json.dumps(told, ensure_ascii=False).encode(), *(np.ascontiguousarray(part).tobytes() for part in arrays)]
    return digest(parts)


def _of_run(run: Run) -> Arrays:
    """What every run has."""
    kept: Arrays = {"run_numbers": np.array([run.bound, run.upper, run.iteration, run.options.gap], dtype=float)}
    if run.incumbent is not None:
        found = run.incumbent
        kept |= {"run_selected": found.selected, "run_w": found.w, "run_b": np.array(found.b)}
    return kept


def taken_up(run: Run, state: State) -> None:
    """Give a run the incumbent and the count of the one that it goes on with; the bound comes from the driver."""
    run.iteration = int(state.arrays["run_numbers"][2])
    if "run_selected" in state.arrays:
        run.offer(state.arrays["run_selected"], state.arrays["run_w"], float(state.arrays["run_b"]))
