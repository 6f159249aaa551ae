"""The state of a run as arrays and numbers, in memory or in a file: what `Result.state` holds and ``resume=`` takes.

A state is bound to its problem by a stamp (data, atoms, loss, C, M, rows, costs) and to its contents by a digest.
"""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from mipfs.errors import DataError, UsageError
from mipfs.losses import get_loss
from mipfs.measures import MEASURES
from mipfs.plumbing.digest import digest
from mipfs.plumbing.extension import is_own
from mipfs.plumbing.output_file import is_stream, save
from mipfs.plumbing.tape import pieces
from mipfs.problem import Problem
from mipfs.readers.arrays import load_arrays, write_arrays

VERSION = 8
"""Version of a state: what the drivers keep in it."""
ANEW = "begin the run anew"
"""What remains to be done where a state cannot be gone on with."""
KINDS = "biufSU"
"""Of the arrays of a state: truth values, whole and real numbers, texts."""


@dataclass(frozen=True)
class StartCommand:
    """How a run began on the command line.

    Attributes
    ----------
    arguments : what stood behind ``mipfs``; none where it began in Python
    folder : str, where
    """

    arguments: tuple[str, ...] = ()
    folder: str = ""


@dataclass(frozen=True, eq=False)
class RunState:
    """Where a run stands.

    Attributes
    ----------
    driver : str
    stamp : str, of the problem
    arrays : mapping of name to ndarray, the driver's own and what every run has (bound, incumbent, iteration)
    began : StartCommand
    """

    driver: str
    stamp: str
    arrays: Mapping[str, npt.NDArray[Any]]
    began: StartCommand = StartCommand()

    def save(self, path: str | Path) -> None:
        """Write it, whole or not at all.

        Raises
        ------
        UsageError
            The file cannot be written.
        """
        self._write(Path(path))

    def kept(self, path: str | Path) -> RunState:
        """Write it, and return the same state with its arrays in that file; as it is, where another process took it."""
        written = self._write(Path(path))
        if written is None or written != _file_identity(path):
            return self
        arrays = load_arrays(Path(path), mapped=True)
        if written != _file_identity(path):
            return self
        return replace(self, arrays={name: arrays[name] for name in self.arrays})

    def _write(self, path: Path) -> tuple[int, int] | None:
        """Write it; returns which file that is, None of a stream."""
        told = [self.driver, self.stamp, self.digest, VERSION, self.began.arguments, self.began.folder]
        about = np.frombuffer(json.dumps(told).encode(), dtype=np.uint8)
        files = list[tuple[int, int]]()

        def write(stream: IO[bytes]) -> None:
            write_arrays({"about": about, **self.arrays}, stream)
            said = os.fstat(stream.fileno())
            files.append((said.st_dev, said.st_ino))

        save([(path, write)])
        return None if is_stream(path) else files[0]

    @classmethod
    def load(cls, path: str | Path) -> RunState:
        """Read one that `save` wrote.

        Raises
        ------
        DataError
            No such file, or no state of a run, or a damaged one.
        """
        if os.path.isfile(path) and not zipfile.is_zipfile(path):
            raise DataError(
                "this is no state of a run", "give the file that checkpoint= or --checkpoint wrote", path=path
            )
        arrays = load_arrays(Path(path), mapped=True)
        try:
            driver, stamp, said, version, *began = json.loads(arrays.pop("about").tobytes())
        except (KeyError, ValueError, TypeError):
            raise DataError(
                "this is no state of a run", "give the file that checkpoint= or --checkpoint wrote", path=path
            ) from None
        if version != VERSION or len(began) != 2 or not isinstance(began[0], list):
            raise DataError("this is the state of a run of another version of mipfs", ANEW, path=path)
        state = cls(driver, stamp, arrays, StartCommand(tuple(map(str, began[0])), str(began[1])))
        if any(array.dtype.kind not in KINDS for array in arrays.values()):
            raise DataError("the state holds what no run keeps", ANEW, path=path)
        if state.digest != said:
            raise DataError("the state is damaged: its digest differs", ANEW, path=path)
        return state

    @property
    def digest(self) -> str:
        """SHA-256 of the arrays."""
        return digest(
            chain([f"{name} {array.dtype.str} {array.shape} ".encode()], pieces(array))
            for name, array in sorted(self.arrays.items())
        )

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
                "resume: the state is one of another problem: data, scaling, loss, C, M, rows or costs differ, or the "
                "file of a loss, a regulariser, a measure or atoms of your own"
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


def _file_identity(path: str | Path) -> tuple[int, int] | None:
    """Which file a path leads to."""
    try:
        said = os.stat(path)
    except OSError:
        return None
    return said.st_dev, said.st_ino


def stamp_of(problem: Problem) -> str:
    """SHA-256 of everything that a problem states."""
    rows = problem.selection.rows
    told = [
        *(problem.atoms.stamp, problem.loss, problem.bias, problem.C, problem.M, problem.margin),
        *(problem.measure, problem.beta, problem.k, problem.forced_in, problem.forced_out),
        *([] if problem.regulariser.is_ridge else [problem.regulariser.stated]),
        *[one.written() for one in problem.rows_over_weights],
        *(rows.extra.names, rows.names),
        *_hashes_of_own_code(problem),
    ]
    arrays = [problem.penalty, rows.matrix.data, rows.matrix.indices, rows.matrix.indptr, rows.low, rows.high]
    arrays += [*rows.extra.box, rows.extra.integer, *([rows.extra.cost] if rows.extra.is_costed else [])]
    parts = [json.dumps(told, ensure_ascii=False).encode(), *(np.ascontiguousarray(part).tobytes() for part in arrays)]
    return digest(parts)


def _hashes_of_own_code(problem: Problem) -> list[str]:
    """A hash over what of a problem does not come with the package, if any does: bounds are of that code."""
    loss = get_loss(problem.loss)
    used = [type(loss), type(problem.regulariser), type(problem.atoms)]
    used += [] if problem.measure is None else [import_module(MEASURES[problem.measure]).create]
    own = [one for one in used if not is_own(one.__module__)]
    if not own:
        return []
    from mipfs.compiled.made_of import hash_of_code

    return [hash_of_code(*own, *(value for _, value in sorted(getattr(loss, "__dict__", {}).items())))]
