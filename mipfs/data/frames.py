"""Data frames: what has columns of names is taken by these, never by where they stand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mipfs.errors import UsageError

PANDAS = "give a pandas data frame, or an array whose columns stand as in training"


def is_frame(value: Any) -> bool:
    """Whether a value is a data frame as pandas has them, rather than a path or an array."""
    return hasattr(value, "columns") and hasattr(value, "iloc")


def as_frame(X: Any) -> Any:
    """X, or the pandas frame of what has columns by name and is none, such as a polars frame or an Arrow table.

    Raises
    ------
    UsageError
        It is lazy, or it does not become a pandas frame.
    """
    what = f"a {type(X).__name__} of {type(X).__module__.partition('.')[0]}"
    if hasattr(X, "collect_schema") and hasattr(X, "collect"):
        raise UsageError(f"{what} is a plan, not data; give .collect() of it")
    if is_frame(X) or not _has_columns(X):
        return X
    if not hasattr(X, "to_pandas"):
        raise UsageError(f"{what} has columns of its own kind; {PANDAS}")
    try:
        import pandas
    except ImportError:
        raise UsageError(f"{what} is read by the names of its columns through pandas: pip install pandas") from None
    try:
        return X.to_pandas()
    except ImportError:  # polars asks for pyarrow too
        return pandas.DataFrame({name: X[name].to_numpy() for name in X.columns})
    except ValueError as error:  # whole numbers of 128 bits
        raise UsageError(
            f"{what} does not become a pandas frame ({error}); cast the column, such as to Float64"
        ) from None


def as_rows(X: Any) -> Any:
    """As `as_frame`, and of rows by the names of their cells: a mapping, a pandas series, a sequence of mappings.

    A mapping of names to columns is a table, too.

    Raises
    ------
    UsageError
        As `as_frame`; columns of several lengths.
    """
    records = _as_records(X)
    return as_frame(X) if records is None else _of_records(records)


def is_by_names(X: Any) -> bool:
    """Whether a value is rows by the names of their cells, which stand in no order."""
    return _as_records(X) is not None


def _is_named(row: Any) -> bool:
    """Whether a value is a mapping of names, which SciPy's matrices of keys are not."""
    return isinstance(row, Mapping) and all(isinstance(name, str) for name in row)


def _as_records(X: Any) -> Any:
    """Rows by the names of their cells, or columns by theirs; None where X is something else."""
    if _is_named(X):
        return X if any(np.ndim(cell) for cell in X.values()) else [X]
    if hasattr(X, "to_frame") and hasattr(X, "iloc") and not hasattr(X, "columns"):  # a pandas series
        return [{str(name): cell for name, cell in X.items()}]
    if isinstance(X, (list, tuple)) and len(X) and all(map(_is_named, X)):
        return list(X)
    return None


def _of_records(records: Any) -> Any:
    try:
        import pandas
    except ImportError:
        raise UsageError("rows by the names of their cells are read through pandas: pip install pandas") from None
    try:
        found = pandas.DataFrame(records)
    except ValueError as error:
        raise UsageError(f"a mapping of names to columns is no table: {error}") from None
    if not found.shape[1]:
        raise UsageError("a row by the names of its cells has none; give {column: cell}")
    return found


def names_of(X: Any) -> list[str] | None:
    """The names of the columns of a data frame; None of an array."""
    return [str(name) for name in X.columns] if is_frame(X) else None


def _has_columns(X: Any) -> bool:
    """Whether a value has columns, as data frames and tables have, and no array or matrix does."""
    return any(isinstance(getattr(X, name, None), (list, tuple)) for name in ("column_names", "columns"))
