"""CSV: a header of column names, then one sample per line."""

from __future__ import annotations

import csv
import io
from array import array
from pathlib import Path

import numpy as np

from mipfs.errors import DataError
from mipfs.readers.columns import BAG, LABEL, Column, to_table
from mipfs.readers.files import opened
from mipfs.readers.table import Table

MISSING = frozenset({"", "?", "na", "n/a", "nan", "null"})
"""Cells that stand for a missing value, in any case."""

_FILL = "fill it in, or leave out the sample or the column"


def read_csv(path: Path, label: str | None = None, labelled: bool = True) -> Table:
    """Read a CSV file (comma, UTF-8, header), packed by gzip or bzip2 or not.

    A column of numbers is a feature; a column of words becomes one feature per distinct word. The columns
    ``bag`` and ``sample_weight``, where they stand, are not features.

    Raises
    ------
    DataError
        With the line: a column without a name or named twice, a line that is too short or too long, a missing
        or infinite value, a word among numbers; no label column; no samples.
    """
    with opened(path) as stream, io.TextIOWrapper(stream, encoding="utf-8-sig", newline="") as text:
        reader = csv.reader(text, strict=True)
        rows: list[list[str]] = []
        lines = array("q")
        try:
            header = [name.strip() for name in next(reader, [])]
            _check_header(header, path, reader.line_num)
            for row in reader:
                if not row:
                    continue
                if len(row) != len(header):
                    message = f"{len(row)} cells under {len(header)} columns"
                    raise DataError(message, "give every column one cell", path=path, line=reader.line_num)
                rows.append(row)
                lines.append(reader.line_num)
        except csv.Error as error:
            raise DataError(f"not CSV: {error}", "correct the quotes", path=path, line=reader.line_num) from None
        except UnicodeDecodeError:
            raise DataError("not a text file in UTF-8", "save it as UTF-8", path=path) from None
    if not rows:
        raise DataError("no samples under the header", "give one sample per line", path=path)
    numbers = np.array(lines, dtype=np.int64)
    cells = zip(*rows, strict=True)
    mixing = (LABEL if label is None else label, BAG)
    columns = [_column(name, cell, lines, path, name in mixing) for name, cell in zip(header, cells, strict=True)]
    return to_table(header, columns, path=path, label=label, labelled=labelled, lines=numbers)


def _check_header(header: list[str], path: Path, line: int) -> None:
    if not header:
        raise DataError("the file is empty", "write the names of the columns on the first line", path=path)
    seen: set[str] = set()
    for place, name in enumerate(header, 1):
        if not name:
            raise DataError(f"column {place} has no name", "name every column", path=path, line=line)
        if name in seen:
            raise DataError(f"two columns are called {name!r}", "give each its own name", path=path, line=line)
        seen.add(name)


def _column(name: str, cells: tuple[str, ...], lines: array[int], path: Path, mixed: bool) -> Column:
    """The column as numbers, or else as words; only labels and bags may mix the two, and are words then."""
    try:
        numbers = np.array(array("d", map(float, cells)))
        numeric = "_" not in "".join(cells)  # Python reads 1_000 as a number
    except ValueError:
        numeric = False
    if numeric and np.all(np.isfinite(numbers)):
        return numbers
    number_at = word_at = None
    for i, cell in enumerate(cells):
        if cell.strip().lower() in MISSING:
            raise DataError(f"column {name!r} has no value ({cell!r})", _FILL, path=path, line=lines[i])
        value = _number(cell)
        if value is not None and not np.isfinite(value):
            message, remedy = f"column {name!r} is {cell.strip()!r}", "every value must be a finite number"
            raise DataError(message, remedy, path=path, line=lines[i])
        if value is None:
            word_at = i if word_at is None else word_at
        else:
            number_at = i if number_at is None else number_at
    if word_at is not None and number_at is not None and not mixed:
        message = f"column {name!r} is {cells[word_at]!r} here and the number {cells[number_at]!r} on line "
        remedy = "correct the cell; categories are written as words throughout"
        raise DataError(f"{message}{lines[number_at]}", remedy, path=path, line=lines[word_at])
    return np.array([cell.strip() for cell in cells])


def _number(cell: str) -> float | None:
    try:
        return None if "_" in cell else float(cell)
    except ValueError:
        return None
