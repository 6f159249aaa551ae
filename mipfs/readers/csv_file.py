"""CSV: a header of column names, then one sample per line."""

from __future__ import annotations

import csv
import io
import math
import warnings
from array import array
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from mipfs.errors import DataError, DataWarning
from mipfs.readers.cells import prepare_column
from mipfs.readers.columns import (
    BAG,
    IMPUTE,
    OF_ROLE,
    PLAIN,
    WEIGHT,
    Column,
    Label,
    RecipeInUse,
    Table,
    how_many,
    label_among,
    require_label,
    to_table,
)
from mipfs.readers.csv_comments import SEPARATORS, without_comments
from mipfs.readers.files import check_unpacked, opened

FEW = 1 << 16
"""Rows of a batch at most, where it is not all."""
AT_ONCE = 1 << 16
"""Cells that are held as rows at a time."""
ROW_NUMBERS = ("", "Unnamed: 0")
"""What an unnamed first column is called, and what pandas makes of that."""

_LEAVE_OUT = "fill it in, or leave out the sample or the column"
FILL = f"{_LEAVE_OUT}, or {IMPUTE}"


@dataclass(frozen=True)
class LinePlaces:
    """Cells that stand on lines (`mipfs.readers.cells.Places`)."""

    path: Path
    lines: Sequence[int]
    cure: str = "correct the cell; categories are written as words throughout"

    def error(self, i: int, message: str, remedy: str) -> DataError:
        return DataError(message, remedy, path=self.path, line=self.lines[i])

    def here(self, i: int) -> str:
        return ""

    def other(self, i: int) -> str:
        return f"on line {self.lines[i]}"

    def some(self, kept: Sequence[int]) -> LinePlaces:
        return LinePlaces(self.path, array("q", [self.lines[i] for i in kept]))


def read_csv(path: Path, label: Label = None, labelled: bool = True, preparing: RecipeInUse = PLAIN) -> Table:
    """Read a CSV file (UTF-8, header), packed by gzip or bzip2 or not.

    The separator is the comma, or the semicolon, tab or bar where that makes more columns of the first two lines. A
    column of numbers is a feature; a column of words becomes one feature per distinct word. The columns ``bag`` and
    ``sample_weight``, where they stand, are not features, nor is an unnamed first column of row numbers. Lines that
    begin with # and have fewer cells than the header are comments; the last of those above the first line is the
    header where it has as many cells as that line, which holds numbers only.

    Raises
    ------
    DataError
        With the line: a column without a name or named twice, a line that is too short or too long, a missing
        or infinite value, a word among numbers, a comma that may stand between thousands; no label column; no samples.

    Warns
    -----
    DataWarning
        A column of row numbers is left out, decimal commas are read, or words are hardly categories.
    """
    check_unpacked(path)
    with opened(path) as stream:
        found = list(batches(path, stream, label, labelled=labelled, preparing=preparing))
    if not found:
        raise DataError("no samples under the header", "give one sample per line", path=path)
    names, columns, lines = found[0]
    return to_table(names, columns, path=path, label=label, labelled=labelled, lines=lines, preparing=preparing)


def batches(
    path: Path,
    stream: IO[bytes],
    label: Label,
    *,
    labelled: bool = True,
    cells: int | None = None,
    done: int = 0,
    preparing: RecipeInUse = PLAIN,
) -> Iterator[tuple[list[str], list[Column], npt.NDArray[np.int64]]]:
    """Names of the columns, the columns, and the lines of some rows, one after the other.

    Parameters
    ----------
    path : named in messages
    stream : of the unpacked bytes
    label, labelled : as `to_table` takes them
    cells : about how many make a batch; None: all. What a column is is decided in each batch, and whether the first one
        counts the rows in the first
    done : rows that are passed over: whole batches of an earlier reading
    preparing : which columns are read and how; a missing value that is filled in later is NaN, or an empty word

    Raises
    ------
    DataError
        As `read_csv`.
    """
    names: list[str] = []
    kept: list[int] = []
    for header, first, every, lines in text_batches(path, stream, cells):
        if not names:
            names = header[_counts_rows(header, every[0], path, first) :]
            mixing = (label_among(label, names), BAG)
            if labelled:
                require_label(mixing[0], names, path)
            left_out = len(header) - len(names)
            kept = [left_out + k for k in preparing.kept(names, (*mixing, WEIGHT), path, first)]
            kept = [k for k in kept if labelled or header[k] != mixing[0]]  # new rows may lack their labels
            names = [header[k] for k in kept]
        done -= len(lines)
        if done >= 0:
            continue
        given = [every[k] for k in kept]
        of = {name: OF_ROLE if name in (*mixing, WEIGHT) else preparing for name in names}
        _check_missing(given, lines, path, of, (*mixing, WEIGHT))
        pairs = zip(names, given, strict=True)
        where = LinePlaces(path, lines)
        columns = [prepare_column(name, cell, where, name in mixing, of[name]) for name, cell in pairs]
        yield names, columns, np.array(lines, dtype=np.int64)


def text_batches(
    path: Path, stream: IO[bytes], cells: int | None = None
) -> Iterator[tuple[list[str], int, list[list[str]], array[int]]]:
    """The header and its line, and the columns of some rows as they stand with their lines, one after the other.

    Parameters
    ----------
    path : named in messages
    stream : of the unpacked bytes
    cells : about how many make a batch; None: all

    Raises
    ------
    DataError
        No CSV in UTF-8, no header, a column without a name, or a row of another length; with the line.
    """
    text = io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")
    reader = csv.reader([])
    try:
        plain = without_comments(text)
        head = [*_next_record(plain), *_next_record(plain)]
        reader = csv.reader(chain(head, plain), delimiter=_guess_separator(head), strict=True)
        header = [name.strip() for name in next(filter(None, reader), [])]
        first = reader.line_num
        _check_header(header, path, first)
        for columns, lines in _read_row_blocks(reader, len(header), path, cells):
            yield header, first, columns, lines
    except csv.Error as error:
        remedy = "correct the quotes; columns are separated by commas, semicolons, tabs or bars, not by blanks"
        raise DataError(f"not CSV: {error}", remedy, path=path, line=reader.line_num) from None
    except UnicodeDecodeError:
        remedy = "save it as UTF-8: encoding='utf-8' in pandas, fileEncoding = 'UTF-8' in R"
        raise DataError("not a text file in UTF-8", remedy, path=path) from None
    finally:
        text.detach()  # who opened the stream closes it


def _read_row_blocks(
    reader: Any, width: int, path: Path, cells: int | None
) -> Iterator[tuple[list[list[str]], array[int]]]:
    """The columns of some rows, and their lines, one after the other.

    Rows become columns a few at a time: a list for every row of a narrow table is thirty times its text.
    """
    most = math.inf if cells is None else max(1, min(FEW, cells // width))
    at_once = min(most, max(1, AT_ONCE // width))
    columns: list[list[str]] = [[] for _ in range(width)]
    rows = list[list[str]]()
    lines = array("q")
    for row in reader:
        if not row:
            continue
        if len(row) != width:
            one_more = "; R writes names of rows so: write.csv(data, FILE, row.names = FALSE)"
            remedy = f"give every column one cell{one_more if len(row) == width + 1 and not lines else ''}"
            raise DataError(f"{len(row)} cells under {width} columns", remedy, path=path, line=reader.line_num)
        rows.append(row)
        lines.append(reader.line_num)
        if len(rows) == at_once or len(lines) == most:
            _add(columns, rows)
            rows = []
        if len(lines) == most:
            yield columns, lines
            columns = [[] for _ in range(width)]
            lines = array("q")
    if lines:
        _add(columns, rows)
        yield columns, lines


def _add(columns: list[list[str]], rows: list[list[str]]) -> None:
    """Put rows below columns."""
    for column, cells in zip(columns, zip(*rows, strict=True), strict=False):  # no cells where there are no rows
        column.extend(cells)


def _next_record(text: Iterator[str]) -> Iterator[str]:
    """The lines of the next record that is not empty: they end where the quotes are closed."""
    quotes = 0
    blank = True
    for line in text:
        yield line
        quotes = quotes + line.count('"')
        blank = blank and not line.strip()
        if quotes % 2 == 0 and not blank:
            return


def _guess_separator(head: list[str]) -> str:
    """The separator of the first two records: the one that makes most columns, the same number of them in both."""
    found = SEPARATORS[0]
    most = 1
    for separator in SEPARATORS:
        with suppress(csv.Error):
            sizes = {len(row) for row in csv.reader(head, delimiter=separator, strict=True) if row}
            if len(sizes) == 1 and max(sizes) > most:
                found = separator
                most = max(sizes)
    return found


def _counts_rows(header: list[str], column: list[str], path: Path, line: int) -> bool:
    """Whether the first column has no name and counts the rows, in whatever order: it is left out."""
    if header[0] not in ROW_NUMBERS:
        return False
    first = [cell.strip() for cell in column]
    if all(cell.isascii() and cell.isdigit() for cell in first) and len(set(first)) == len(first):
        warnings.warn(
            f"{path}: the unnamed first column holds row numbers and is left out; name it to keep it",
            DataWarning,
            stacklevel=2,
        )
        return True
    if header[0]:
        return False
    remedy = "name it, or write the table without names of rows (row.names = FALSE in R, index=False in pandas)"
    raise DataError("column 1 has no name, and holds no row numbers", remedy, path=path, line=line)


def _check_header(header: list[str], path: Path, line: int) -> None:
    if not header:
        raise DataError("the file is empty", "write the names of the columns on the first line", path=path)
    for place, name in enumerate(header, 1):
        if not name and (place > 1 or len(header) == 1):
            raise DataError(f"column {place} has no name", "name every column", path=path, line=line)


def _check_missing(
    cells: list[list[str]],
    lines: array[int],
    path: Path,
    preparing: Mapping[str, RecipeInUse],
    roles: Collection[str],
) -> None:
    """Refuse missing values that are not to be filled in: the first of them, and the columns that have some."""
    found = {}
    for (name, one), column in zip(preparing.items(), cells, strict=True):
        if one.allows(name):
            continue
        odd = {cell for cell in set(column) if one.is_missing(cell)}
        if odd:
            places = [i for i, cell in enumerate(column) if cell in odd]
            found[name] = places[0], len(places), column[places[0]]
    if not found:
        return
    name, (first, count, cell) = next(iter(found.items()))
    more = how_many(count, name, found)
    remedy = _LEAVE_OUT if name in roles else FILL
    raise DataError(f"column {name!r} has no value ({cell!r}){more}", remedy, path=path, line=lines[first])
