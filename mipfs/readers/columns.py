"""From named columns of numbers or words, as CSV and Parquet hold them, to a `Table`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy import sparse

from mipfs.errors import DataError
from mipfs.instance import nearest
from mipfs.matrix import compact
from mipfs.readers.table import Table

Column = npt.NDArray[np.float64] | npt.NDArray[np.str_]

LABEL, BAG, WEIGHT = "label", "bag", "sample_weight"


def to_table(
    names: Sequence[str],
    columns: Sequence[Column],
    *,
    path: Path,
    label: str | None = None,
    labelled: bool = True,
    lines: npt.NDArray[np.int64] | None = None,
) -> Table:
    """Give every column its role; words become one feature ``column=word`` per distinct word, a group.

    Parameters
    ----------
    names : sequence of str, unique
    columns : sequence of (n,) arrays of finite float or str
    label : str, optional
        The column of labels; default ``label``.
    labelled : bool
        False: a file without labels will do.

    Raises
    ------
    DataError
        No label column, words as sample weights, no feature column left.
    """
    by_name = dict(zip(names, columns, strict=True))
    label = LABEL if label is None else label
    if label not in by_name and labelled:
        remedy = f"name the label column ({nearest(label, names)})"
        raise DataError(f"no column is called {label!r}", remedy, path=path)
    labels, bag, weight = (by_name.pop(role, None) for role in (label, BAG, WEIGHT))
    if weight is not None and weight.dtype.kind != "f":
        message = f"the column {WEIGHT!r} holds words"
        raise DataError(message, "give positive numbers, or rename the column", path=path)
    features: list[str] = []
    groups: dict[str, tuple[str, ...]] = {}
    blocks = []
    for name, values in by_name.items():
        if values.dtype.kind == "f":
            features.append(name)
            blocks.append(sparse.csc_array(values.astype(np.float64)[:, None]))
            continue
        words, codes = np.unique(values, return_inverse=True)
        groups[name] = tuple(f"{name}={word}" for word in words)
        features += groups[name]
        rows = np.arange(len(values))
        blocks.append(sparse.csc_array((np.ones(len(values)), (rows, codes)), shape=(len(values), len(words))))
    if not blocks:
        raise DataError("no feature column", "give at least one column beside the labels", path=path)
    X = compact(sparse.hstack(blocks, format="csc"))
    weights = None if weight is None else weight.astype(np.float64)
    return Table(X, labels, tuple(features), groups, None if bag is None else _bags(bag), weights, lines)


def _bags(column: Column) -> npt.NDArray[np.int64]:
    """Bag numbers: whole numbers as they are, anything else in sorted order."""
    if column.dtype.kind == "f":
        numbers = column.astype(np.float64)
        if np.all(np.trunc(numbers) == numbers) and np.all(np.abs(numbers) < 2**53):
            return numbers.astype(np.int64)
    return np.unique(column, return_inverse=True)[1].astype(np.int64)
