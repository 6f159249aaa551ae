"""Files that are whole when they are there, and the state of an unfinished conversion."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from mipfs.errors import UsageError

STATE = "state.json"


def save(path: Path, array: Any) -> None:
    """Write an array beside its place and move it there."""
    beside = path.with_name(path.name + ".part")
    _write(beside, lambda stream: np.save(stream, np.asarray(array), allow_pickle=False), path)


def write_text(path: Path, text: str) -> None:
    """Write a text, in UTF-8, beside its place and move it there."""
    _write(path.with_name(path.name + ".part"), lambda stream: stream.write(text.encode()), path)


def _write(beside: Path, fill: Any, path: Path) -> None:
    try:
        with beside.open("wb") as stream:
            fill(stream)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(beside, path)
    except OSError as error:
        reason = error.strerror or str(error)
        raise UsageError(f"{path}: cannot be written: {reason}; make room, and convert again to go on") from None


def load_state(folder: Path, stamp: dict[str, Any]) -> dict[str, Any] | None:
    """The state of a conversion of the same source with the same options; None where there is none."""
    try:
        state = json.loads((folder / STATE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return state if isinstance(state, dict) and state.get("stamp") == stamp else None


def has_runs(folder: Path) -> bool:
    """Whether a conversion of whatever source has come to its first run."""
    try:
        state = json.loads((folder / STATE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(state, dict) and bool(state.get("runs"))


def save_state(folder: Path, state: dict[str, Any]) -> None:
    """Keep where the conversion stands."""
    write_text(folder / STATE, json.dumps(state))


class GrowingFile:
    """A file of numbers, one for every sample, that grows with the rows.

    Parameters
    ----------
    path : Path
    dtype : of the numbers
    rows : that are known to be good; what stands behind them is cut off
    """

    def __init__(self, path: Path, dtype: str, rows: int) -> None:
        self.path = path
        self.dtype = np.dtype(dtype)
        path.touch()
        os.truncate(path, rows * self.dtype.itemsize)
        self._stream: io.BufferedWriter = path.open("ab")

    def add(self, values: Any) -> None:
        """The numbers of the next samples."""
        self._stream.write(np.ascontiguousarray(values, dtype=self.dtype).data)

    def settle(self) -> None:
        """What was added is on disk."""
        self._stream.flush()
        os.fsync(self._stream.fileno())

    def close(self) -> Any:
        """All of them, mapped."""
        self.settle()
        self._stream.close()
        if not os.path.getsize(self.path):
            return np.empty(0, dtype=self.dtype)
        return np.memmap(self.path, dtype=self.dtype, mode="r")
