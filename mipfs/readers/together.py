"""The column that says which samples belong together: those of a patient, a customer, a day."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from mipfs.data.instance import Instance, misspelling_hint
from mipfs.data.recipe import Recipe
from mipfs.data.split import Split
from mipfs.errors import DataError, DataWarning, UsageError
from mipfs.plumbing.arrays import Integers
from mipfs.readers.columns import BAG, RecipeInUse, Table


def split_of(data: Instance, table: Table | None, column: str) -> Split:
    """What the data says of a column by which folds are made.

    Parameters
    ----------
    data : Instance
    table : Table of that column alone, or None where the file is no table of named columns
    column : str, else a feature, or "bag" where the data has bags

    Raises
    ------
    UsageError
        Data of another kind that has no such feature, or one value alone.
    """
    if column == BAG and data.bags is not None:
        of = data.bags
    elif table is not None:
        of = _number_cells(table)
    else:
        if column not in data.index:
            raise UsageError(
                f"folds_by names {column!r}, which is no feature; {misspelling_hint(column, data.feature_names)}"
            )
        of = np.unique(data.block(data.columns_of([column])).dense()[:, 0], return_inverse=True)[1]
    split = Split(column, np.asarray(of, dtype=np.int64))
    if split.count < 2:
        raise UsageError(f"folds_by: {column!r} has one value alone; folds need two at least")
    return split


def column_alone(column: str, rules: int) -> RecipeInUse:
    """How a table is read for one column of it."""
    return RecipeInUse(Recipe(use=(column,)), meant=(column,), rules=rules)


def _number_cells(table: Table) -> Integers:
    """A number for every different cell of a table of one column, of numbers or of words."""
    p = table.X.shape[1]
    values = np.asarray(table.X @ np.arange(1.0, p + 1.0)).ravel()  # of words one feature is 1 in each row, or none
    return np.asarray(np.unique(values, return_inverse=True)[1], dtype=np.int64)


def read_quietly(read: Callable[[], Table], path: Any) -> Table:
    """The table that `read` gives, of which nothing is said; an error says what asked for it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        try:
            return read()
        except DataError as error:
            raise DataError(error.message.replace("use names", "folds_by names"), error.remedy, path=path) from None
