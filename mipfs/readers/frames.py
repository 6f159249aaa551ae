"""A pandas data frame, read as a table file is: pandas itself is not needed for that."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs.errors import DataError, DataWarning
from mipfs.readers.columns import BAG, MOST_NAMED, Column, Label, label_among, require_label, to_table
from mipfs.readers.csv_file import ROW_NUMBERS
from mipfs.readers.table import Table

FRAME = Path("the data frame")
"""How messages call it."""
_FILL = "fill it in (fillna), or leave out the row (dropna) or the column"


def is_frame(value: Any) -> bool:
    """Whether a value is a data frame rather than a path or an array."""
    return hasattr(value, "columns") and hasattr(value, "iloc")


def from_frame(frame: Any, label: Label = None, labelled: bool = True) -> Table:
    """Give the columns of a data frame the roles that those of a CSV file have; its index is no feature.

    Raises
    ------
    DataError
        No rows, two columns of one name, a missing or infinite value, a column of neither numbers nor words, no label
        column.
    """
    names = [str(name) for name in frame.columns]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise DataError(f"two columns are called {twice!r}", "give each its own name", path=FRAME)
    if len(frame) == 0:
        raise DataError("no samples", "give at least one row of each class", path=FRAME)
    if names[0] in ROW_NUMBERS and _counts_rows(frame.iloc[:, 0]):
        warnings.warn(
            f"{FRAME}: the column {names[0]!r} holds row numbers and is left out; rename it to keep it",
            DataWarning,
            stacklevel=3,
        )
        return from_frame(frame.iloc[:, 1:], label, labelled)
    mixing = (label_among(label, names), BAG)
    if labelled:
        require_label(mixing[0], names, FRAME)
    gaps = [name for k, name in enumerate(names) if frame.iloc[:, k].isna().any()]
    columns = [column_values(frame, k, name, name in mixing, gaps) for k, name in enumerate(names)]
    return to_table(names, columns, path=FRAME, label=label, labelled=labelled)


def _counts_rows(series: Any) -> bool:
    """Whether a column is the index that a CSV file was written with: whole numbers >= 0, all of them different."""
    values = np.asarray(series)
    return values.dtype.kind in "iu" and bool(np.all(values >= 0)) and np.unique(values).size == values.size


def column_values(frame: Any, k: int, name: str, mixed: bool = False, gaps: Sequence[str] = ()) -> Column:
    """Column k of a data frame as numbers, or as words where it holds words or is of pandas's categories.

    Raises
    ------
    DataError
        See `from_frame`; `mixed`, of labels and bags, allows words beside numbers, `gaps` are the columns with missing
        values.
    """
    series = frame.iloc[:, k]
    missing = np.flatnonzero(np.asarray(series.isna()))
    if missing.size:
        row = place_of(frame.index, int(missing[0]))
        more = f", {missing.size} values in all" if missing.size > 1 else ""
        others = [other for other in gaps if other != name]
        more += f"; so have {', '.join(map(repr, others[:MOST_NAMED]))}" if others else ""
        raise DataError(f"column {name!r} has no value at {row}{more}", _FILL, path=FRAME)
    values = np.asarray(series)
    if str(series.dtype) == "category" and not (mixed and values.dtype.kind in "biuf"):
        return as_words(values)
    if values.dtype.kind in "biuf":
        return _finite(values.astype(np.float64), name, frame.index)
    if values.dtype.kind not in "OUST" or values.ndim != 1:
        raise DataError(
            f"column {name!r} has the type {series.dtype}", "give numbers or words, or leave the column out", path=FRAME
        )
    is_word = np.fromiter((isinstance(value, str) for value in values), dtype=bool, count=len(values))
    if is_word.all() or (mixed and is_word.any()):
        return as_words(values)
    if is_word.any():
        word = int(np.argmax(is_word))
        number = int(np.argmin(is_word))
        raise DataError(
            f"column {name!r} is {values[word]!r} at {place_of(frame.index, word)} and {values[number]!r} at "
            f"{place_of(frame.index, number)}",
            "make them all numbers or all words (astype)",
            path=FRAME,
        )
    try:
        return _finite(values.astype(np.float64), name, frame.index)
    except (TypeError, ValueError, OverflowError):
        raise DataError(
            f"column {name!r} holds a {type(values[0]).__name__}",
            "give numbers or words, or leave the column out",
            path=FRAME,
        ) from None


def as_words(values: npt.NDArray[Any]) -> npt.NDArray[np.str_]:
    """Values as words: 3.0 is the word 3, and blanks around a word do not count."""
    return np.array([_word(value) for value in values.tolist()], dtype=np.str_)


def _word(value: Any) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value).strip()


def place_of(index: Any, i: int) -> str:
    """A row as its frame calls it: its label in the index, not how many rows stand before it."""
    return f"index {index[i]!r}" if isinstance(index[i], str) else f"index {index[i]}"


def _finite(numbers: npt.NDArray[np.float64], name: str, index: Any) -> npt.NDArray[np.float64]:
    bad = np.flatnonzero(~np.isfinite(numbers))
    if bad.size:
        raise DataError(
            f"column {name!r} is {numbers[bad[0]]} at {place_of(index, int(bad[0]))}",
            "every value must be a finite number",
            path=FRAME,
        )
    return numbers
