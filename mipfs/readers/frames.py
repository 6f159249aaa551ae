"""A pandas data frame, read as a table file is: pandas itself is not needed for that."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs.data.rules import BOOLEAN_RULES, CELLS_RULES
from mipfs.errors import DataError, DataWarning
from mipfs.readers import typed
from mipfs.readers.cells import prepare_column
from mipfs.readers.columns import (
    AS_IT_IS,
    BAG,
    OF_ROLE,
    PLAIN,
    WEIGHT,
    Column,
    Label,
    RecipeInUse,
    Table,
    how_many,
    label_among,
    numbers_among,
    require_finite,
    require_label,
    scatter_column,
    to_table,
    words_of,
)
from mipfs.readers.csv_file import ROW_NUMBERS

FRAME = Path("the data frame")
"""How messages call it."""
_FILL = "fill it in (fillna, or impute='median'), or leave out the row (dropna) or the column (drop=[...])"


def from_frame(frame: Any, label: Label = None, labelled: bool = True, preparing: RecipeInUse = PLAIN) -> Table:
    """Give the columns of a data frame the roles that those of a CSV file have; its index is no feature.

    Raises
    ------
    DataError
        No rows, two columns of one name, a missing or infinite value, a column of neither numbers nor words, no label
        column.
    """
    asked = [label] if isinstance(label, str) else list(label or ())
    names = preparing.called(frame.columns, asked)
    if not any(one in names for one in asked):
        label = [one.strip() for one in asked]
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
    of = {names[k]: _column_recipe(names[k], mixing[0], roles, preparing) for k in kept}
    gaps = [
        names[k]
        for k in kept
        if not preparing.allows(names[k]) and gaps_of(frame.iloc[:, k], names[k], of[names[k]]).any()
    ]
    columns = [column_values(frame, k, names[k], names[k] in mixing, gaps, of[names[k]]) for k in kept]
    if mixing[0] in of and preparing.rules >= BOOLEAN_RULES:
        place = names.index(mixing[0])
        columns[kept.index(place)] = as_booleans(frame.iloc[:, place], columns[kept.index(place)])
    names = [names[k] for k in kept]
    return to_table(names, columns, path=FRAME, label=label, labelled=labelled, preparing=preparing)


def as_booleans(given: Any, numbers: Column) -> Column:
    """A column of labels as True and False where all values are one of them; otherwise as it is."""
    is_boolean = str(getattr(given, "dtype", "")) != "category" and _are_booleans(given)
    return numbers == 1.0 if is_boolean else numbers


def _are_booleans(values: Iterable[Any]) -> bool:
    return all(isinstance(value, (bool, np.bool_)) for value in values)


def _column_recipe(name: str, label: str, roles: Sequence[str], preparing: RecipeInUse) -> RecipeInUse:
    """How a column is read: text as cells, but for the labels, which users get back as they gave them."""
    if name == label or (name in roles and preparing.rules < CELLS_RULES):
        return AS_IT_IS
    return OF_ROLE if name in roles else preparing


def _counts_rows(series: Any) -> bool:
    """Whether a column is the index that a CSV file was written with: whole numbers >= 0, all of them different."""
    values = np.asarray(series)
    return values.dtype.kind in "iu" and bool(np.all(values >= 0)) and np.unique(values).size == values.size


def gaps_of(series: Any, name: str, preparing: RecipeInUse) -> npt.NDArray[np.bool_]:
    """Where a column of a data frame has a missing value, (n,): none at all, or one that stands for it as in a file."""
    gaps = np.array(series.isna())
    kind, marks = np.asarray(series).dtype.kind, preparing.recipe.numbers
    if kind in "iuf":
        return gaps | np.isin(series, [*marks]) if marks else gaps
    if kind in "OUST" and (preparing.allows(name) or (preparing.reads_cells(name) and str(series.dtype) != "category")):
        gaps |= [
            preparing.is_missing(value) if isinstance(value, str) else _is_marked(value, marks) for value in series
        ]
    return gaps


def _is_marked(value: Any, marks: Collection[float]) -> bool:
    """Whether a value beside text is a number that stands for a missing value."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value in marks


def column_values(
    frame: Any, k: int, name: str, mixed: bool = False, gaps: Sequence[str] = (), preparing: RecipeInUse = AS_IT_IS
) -> Column:
    """Column k of a data frame as numbers, or as words where it holds words or is of pandas's categories.

    Raises
    ------
    DataError
        See `from_frame`; `mixed`, of labels and bags, allows words beside numbers, `gaps` are the columns with missing
        values. One that `preparing` fills in later is NaN, or an empty word.
    """
    series = frame.iloc[:, k]
    absent = gaps_of(series, name, preparing)
    kind = preparing.recipe.types.get(name)
    if absent.any() and not preparing.allows(name):
        row = place_of(frame.index, int(np.argmax(absent)))
        more = how_many(int(absent.sum()), name, gaps)
        remedy = f"leave out those rows: df.dropna(subset=[{name!r}])" if mixed or name == WEIGHT else _FILL
        raise DataError(f"column {name!r} has no value at {row}{more}", remedy, path=FRAME)
    spell = preparing.spelling(name)
    if spell is not None and _are_booleans(series[~absent]):
        pairs = zip(series, absent, strict=True)
        return words_of(["" if gap else spell(str(bool(value))) for value, gap in pairs])
    values = np.asarray(series)
    if kind is not None:
        return _typed_column(series, name, kind, absent)
    cells = _text_cells(series, preparing) if preparing.reads_cells(name) else None
    if cells is not None:
        return prepare_column(name, cells, IndexPlaces(series.index), mixed, preparing)
    if absent.any():
        there = np.flatnonzero(~absent)
        if there.size == 0:
            return np.full(len(series), np.nan)
        known = column_values(frame.iloc[there], k, name, mixed)
        if known.dtype.kind != "f" and there.size < len(series) - np.count_nonzero(series.isna()):
            known = numbers_among(known)
        return scatter_column(known, there, len(series))
    if str(series.dtype) == "category" and not (mixed and values.dtype.kind in "biuf"):
        return as_words(values)
    if values.dtype.kind in "biuf":
        return require_finite(values.astype(np.float64), name, FRAME, lambda i: f"at {place_of(frame.index, i)}")
    if values.dtype.kind not in "OUST" or values.ndim != 1:
        made = "; days since the first are (x - x.min()).dt.days" if values.dtype.kind == "M" else ""
        remedy = f"give numbers or words, or leave the column out{made}"
        raise DataError(f"column {name!r} has the type {series.dtype}", remedy, path=FRAME)
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
        return require_finite(values.astype(np.float64), name, FRAME, lambda i: f"at {place_of(frame.index, i)}")
    except (TypeError, ValueError, OverflowError):
        raise DataError(
            f"column {name!r} holds a {type(values[0]).__name__}",
            "give numbers or words, or leave the column out",
            path=FRAME,
        ) from None


def _text_cells(series: Any, preparing: RecipeInUse) -> list[str] | None:
    """The cells of a column that holds text alone, "" where there is no value; None of another column.

    Of new rows some cells may be numbers already, as in rows that a program puts together.
    """
    values = np.asarray(series)
    if str(series.dtype) == "category" or values.dtype.kind not in "OUST" or values.ndim != 1:
        return None
    there = [value for value, gap in zip(values, series.isna(), strict=True) if not gap]
    texts = sum(isinstance(value, str) for value in there)
    if not texts or (texts < len(there) and not preparing.is_new):
        return None
    return ["" if gap else str(value) for value, gap in zip(values, series.isna(), strict=True)]


@dataclass(frozen=True)
class IndexPlaces:
    """Cells that stand at labels of an index (`mipfs.readers.cells.Places`)."""

    index: Any
    path: Path = FRAME
    cure: str = "correct the cell, or say that all cells are words: astype('category')"

    def error(self, i: int, message: str, remedy: str) -> DataError:
        return DataError(message, remedy, path=self.path)

    def here(self, i: int) -> str:
        return f" {self.other(i)}"

    def other(self, i: int) -> str:
        return f"at {place_of(self.index, i)}"

    def some(self, kept: Sequence[int]) -> IndexPlaces:
        return IndexPlaces(self.index[list(kept)])


def _typed_column(series: Any, name: str, kind: str, absent: npt.NDArray[np.bool_]) -> Column:
    """A column whose cells mean what the recipe says, NaN where a value is missing; moments of pandas are dates."""
    if kind.startswith("date") and np.asarray(series).dtype.kind == "M":
        return typed.days_since_1970(np.asarray(series))
    cells = [None if gap else value for gap, value in zip(absent, series.tolist(), strict=True)]

    def refuse(i: int) -> DataError:
        return DataError(
            f"column {name!r} is {cells[i]!r} at {place_of(series.index, i)}, which is no {kind}",
            f"correct the cell, or {typed.other_type_remedy(name, cells, kind)}",
            path=FRAME,
        )

    return typed.numbers(cells, kind, lambda cell: cell is None, refuse)


def as_words(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Values as words: 3.0 is the word 3, and blanks around a word do not count."""
    return words_of([_cell_word(value) for value in values.tolist()])


def _cell_word(value: Any) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value).strip()


def place_of(index: Any, i: int) -> str:
    """A row as its frame calls it: its label in the index, not how many rows stand before it."""
    return f"index {index[i]!r}" if isinstance(index[i], str) else f"index {index[i]}"
