"""Cells of text as a column of numbers or of words, whatever carries them: CSV, Parquet, a data frame."""

from __future__ import annotations

import re
import warnings
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np

from mipfs.data.recipe import number_of
from mipfs.errors import DataError, DataWarning
from mipfs.readers import typed
from mipfs.readers.columns import Column, RecipeInUse, scatter_column, words_of

_DECIMAL = re.compile(r"[+-]?(\d+(,\d*)?|,\d+)([eE][+-]?\d+)?", re.ASCII)
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?", re.ASCII)
"""Numbers with a decimal comma, and with commas between thousands; 1,234 may be either."""

BOOLEANS = {"true": 1.0, "false": 0.0}


class Places(Protocol):
    """Where the cells of a column stand, for messages."""

    @property
    def path(self) -> Path:
        """The file."""

    def error(self, i: int, message: str, remedy: str) -> DataError:
        """The error about a cell."""

    def here(self, i: int) -> str:
        """The place of the cell that an error is about, in words after a blank; "" where the error has the line."""

    def other(self, i: int) -> str:
        """The place of another cell in words."""

    def some(self, kept: Sequence[int]) -> Places:
        """The places of some of the cells."""

    @property
    def cure(self) -> str:
        """What to do where a column has words beside numbers."""


def prepare_column(name: str, cells: Sequence[str], places: Places, mixed: bool, preparing: RecipeInUse) -> Column:
    """The column as its type says, NaN or an empty word where a value is missing and filled in later.

    Parameters
    ----------
    name : of the column
    cells : a missing value that may not be filled in was refused
    places : where they stand
    mixed : whether words beside numbers make it a column of words, as of labels and bags
    preparing : what is done to it

    Raises
    ------
    DataError
        A number that is not finite, words beside numbers, a cell that is not of the column's type.
    """
    kind = preparing.recipe.types.get(name)
    if kind is not None:

        def refuse(i: int) -> DataError:
            what = "write the dates in one way" if kind.startswith("date") else "correct the cell"
            remedy = f"{what}, or {typed.other_type_remedy(name, cells, kind)}"
            return places.error(i, f"column {name!r} is {cells[i]!r}{places.here(i)}, which is no {kind}", remedy)

        return typed.numbers(cells, kind, preparing.is_missing, refuse)
    booleans = preparing.reads_booleans(name)
    if not preparing.allows(name):
        return column_of(name, cells, places, mixed, booleans)
    there = [i for i, cell in enumerate(cells) if not preparing.is_missing(cell)]
    if len(there) == len(cells):
        return column_of(name, cells, places, mixed, booleans)
    if not there:
        return np.full(len(cells), np.nan)
    known = column_of(name, [cells[i] for i in there], places.some(there), mixed, booleans)
    return scatter_column(known, there, len(cells))


def column_of(name: str, cells: Sequence[str], places: Places, mixed: bool, booleans: bool = False) -> Column:
    """The column as numbers, or else as words; only labels and bags may mix the two, and are words then.

    Where `booleans`, True and False in any case are the numbers 1 and 0, if all cells say one of them.
    """
    try:
        numbers = np.array(array("d", map(float, cells)))
        numeric = "_" not in "".join(cells)  # Python reads 1_000 as a number
    except ValueError:
        numeric = False
    if numeric and np.all(np.isfinite(numbers)):
        return numbers
    if booleans and all(cell.strip().lower() in BOOLEANS for cell in cells):
        return np.array([BOOLEANS[cell.strip().lower()] for cell in cells])
    number_at = word_at = None
    for i, cell in enumerate(cells):
        value = number_of(cell)
        if value is not None and not np.isfinite(value):
            message = f"column {name!r} is {cell.strip()!r}{places.here(i)}"
            raise places.error(i, message, "every value must be a finite number")
        if value is None:
            word_at = i if word_at is None else word_at
        else:
            number_at = i if number_at is None else number_at
    if word_at is not None and not mixed and (decimals := _decimal_commas(name, cells, places)) is not None:
        return decimals
    if word_at is not None and number_at is not None and not mixed:
        here = places.here(word_at) or " here"
        message = f"column {name!r} is {cells[word_at]!r}{here} and the number {cells[number_at]!r}"
        hint = typed.type_remedy(name, cells) or places.cure
        raise places.error(word_at, f"{message} {places.other(number_at)}", hint)
    return words_of([cell.strip() for cell in cells])


def _decimal_commas(name: str, cells: Sequence[str], places: Places) -> Column | None:
    """A column of numbers with decimal commas, read as such; None where it is another one.

    Raises
    ------
    DataError
        Every comma may stand between thousands.
    """
    stripped = [cell.strip() for cell in cells]
    with_comma = [i for i, cell in enumerate(stripped) if "," in cell]
    if not with_comma:
        return None
    thousands = [_THOUSANDS.fullmatch(cell) is not None for cell in stripped]
    if all(thousands[i] for i in with_comma) and all(
        thousands[i] or number_of(cell) is not None for i, cell in enumerate(stripped)
    ):
        at = with_comma[0]
        example = stripped[at]
        raise places.error(
            at,
            f"column {name!r} is {example!r}{places.here(at)}, with a comma between thousands or before decimals",
            f"write {example.replace(',', '')} or {example.replace(',', '.', 1)}, throughout the column, or give "
            f'--types "{name}=decimal comma" or "{name}=currency"',
        )
    if not all(map(_DECIMAL.fullmatch, stripped)):
        return None
    example = stripped[with_comma[0]]
    warnings.warn(
        f"{places.path}: column {name!r} has decimal commas: {example} is read as {example.replace(',', '.')}",
        DataWarning,
        stacklevel=2,
    )
    return np.array([float(cell.replace(",", ".")) for cell in stripped])
