"""A pandas data frame, read as a table file is: pandas itself is not needed for that."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs.errors import DataError, DataWarning
from mipfs.readers import typed
from mipfs.readers.columns import (
    BAG,
    WEIGHT,
    Label,
    all_different,
    finite,
    how_many,
    label_among,
    require_label,
    to_table,
)
from mipfs.readers.csv_file import ROW_NUMBERS, is_missing
from mipfs.readers.raw import PLAIN, Column, Preparing, numbers_among, scattered, words_of
from mipfs.readers.table import Table

FRAME = Path("the data frame")
"""How messages call it."""
_FILL = "fill it in (fillna, or impute='median'), or leave out the row (dropna) or the column (drop=[...])"


def from_frame(frame: Any, label: Label = None, labelled: bool = True, preparing: Preparing = PLAIN) -> Table:
    """Give the columns of a data frame the roles that those of a CSV file have; its index is no feature.

    Raises
    ------
    DataError
        No rows, two columns of one name, a missing or infinite value, a column of neither numbers nor words, no label
        column.
    """
    names = all_different([str(name) for name in frame.columns], FRAME)
    if len(frame) == 0:
        raise DataError("no samples", "give at least one row of each class", path=FRAME)
    if names[0] in ROW_NUMBERS and _counts_rows(frame.iloc[:, 0]):
        warnings.warn(
            f"{FRAME}: the column {names[0]!r} holds row numbers and is left out; rename it to keep it",
            DataWarning,
            stacklevel=3,
        )
        return from_frame(frame.iloc[:, 1:], label, labelled, preparing)
    mixing = (label_among(label, names), BAG)
    if labelled:
        require_label(mixing[0], names, FRAME)
    roles = (*mixing, WEIGHT)
    kept = [k for k in preparing.kept(names, roles, FRAME) if labelled or names[k] != mixing[0]]
    gaps = [names[k] for k in kept if not preparing.allows(names[k]) and frame.iloc[:, k].isna().any()]
    columns = [
        column_values(frame, k, names[k], names[k] in mixing, gaps, PLAIN if names[k] in roles else preparing)
        for k in kept
    ]
    names = [names[k] for k in kept]
    return to_table(names, columns, path=FRAME, label=label, labelled=labelled, preparing=preparing)


def _counts_rows(series: Any) -> bool:
    """Whether a column is the index that a CSV file was written with: whole numbers >= 0, all of them different."""
    values = np.asarray(series)
    return values.dtype.kind in "iu" and bool(np.all(values >= 0)) and np.unique(values).size == values.size


def column_values(
    frame: Any, k: int, name: str, mixed: bool = False, gaps: Sequence[str] = (), preparing: Preparing = PLAIN
) -> Column:
    """Column k of a data frame as numbers, or as words where it holds words or is of pandas's categories.

    Raises
    ------
    DataError
        See `from_frame`; `mixed`, of labels and bags, allows words beside numbers, `gaps` are the columns with missing
        values. One that `preparing` fills in later is NaN, or an empty word.
    """
    series = frame.iloc[:, k]
    missing = np.flatnonzero(np.asarray(series.isna()))
    kind = preparing.recipe.types.get(name)
    if preparing.allows(name) and kind is None:
        gaps_ = np.array(series.isna())
        if np.asarray(series).dtype.kind not in "biuf":  # words that stand for a missing value, as in a file
            gaps_ |= [isinstance(value, str) and is_missing(value) for value in series]
        there = np.flatnonzero(~gaps_)
        if there.size == 0:
            return np.full(len(series), np.nan)
        known = column_values(frame.iloc[there], k, name, mixed)
        if known.dtype.kind != "f" and there.size < len(series) - missing.size:
            known = numbers_among(known)
        return scattered(known, there, len(series))
    if missing.size and not preparing.allows(name):
        row = place_of(frame.index, int(missing[0]))
        more = how_many(missing.size, name, gaps)
        raise DataError(f"column {name!r} has no value at {row}{more}", _FILL, path=FRAME)
    values = np.asarray(series)
    if kind is not None:
        return _typed(series, name, kind, preparing.allows(name))
    if str(series.dtype) == "category" and not (mixed and values.dtype.kind in "biuf"):
        return as_words(values)
    if values.dtype.kind in "biuf":
        return finite(values.astype(np.float64), name, FRAME, lambda i: f"at {place_of(frame.index, i)}")
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
        return finite(values.astype(np.float64), name, FRAME, lambda i: f"at {place_of(frame.index, i)}")
    except (TypeError, ValueError, OverflowError):
        raise DataError(
            f"column {name!r} holds a {type(values[0]).__name__}",
            "give numbers or words, or leave the column out",
            path=FRAME,
        ) from None


def _typed(series: Any, name: str, kind: str, gaps: bool) -> Column:
    """A column whose cells mean what the recipe says; moments of pandas are dates."""
    if kind.startswith("date") and np.asarray(series).dtype.kind == "M":
        return typed.days(np.asarray(series))
    none = np.asarray(series.isna())
    cells = [None if gap else value for gap, value in zip(none, series.tolist(), strict=True)]

    def refuse(i: int) -> DataError:
        return DataError(
            f"column {name!r} is {cells[i]!r} at {place_of(series.index, i)}, which is no {kind}",
            f"correct the cell, or {typed.instead(name, cells, kind)}",
            path=FRAME,
        )

    return typed.numbers(cells, kind, lambda cell: gaps and (cell is None or is_missing(str(cell))), refuse)


def as_words(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Values as words: 3.0 is the word 3, and blanks around a word do not count."""
    return words_of([_word(value) for value in values.tolist()])


def _word(value: Any) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value).strip()


def place_of(index: Any, i: int) -> str:
    """A row as its frame calls it: its label in the index, not how many rows stand before it."""
    return f"index {index[i]!r}" if isinstance(index[i], str) else f"index {index[i]}"
