"""CSV: a header of column names, then one sample per line."""

from __future__ import annotations

import csv
import io
import math
import re
import warnings
from array import array
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from mipfs.errors import DataError, DataWarning
from mipfs.readers import typed
from mipfs.readers.columns import BAG, WEIGHT, Label, how_many, label_among, require_label, to_table
from mipfs.readers.csv_comments import SEPARATORS, without_comments
from mipfs.readers.files import check_unpacked, opened
from mipfs.readers.raw import IMPUTE, PLAIN, Column, Preparing, scattered, words_of
from mipfs.readers.table import Table

MISSING = frozenset({"", "?", "na", "n/a", "nan", "null"})
"""Cells that stand for a missing value, in any case."""

FEW = 1 << 16
"""Rows of a batch at most, where it is not all."""
AT_ONCE = 1 << 16
"""Cells that are held as rows at a time."""
ROW_NUMBERS = ("", "Unnamed: 0")
"""What an unnamed first column is called, and what pandas makes of that."""

_DECIMAL = re.compile(r"[+-]?(\d+(,\d*)?|,\d+)([eE][+-]?\d+)?", re.ASCII)
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?", re.ASCII)
"""Numbers with a decimal comma, and with commas between thousands; 1,234 may be either."""
_LEAVE_OUT = "fill it in, or leave out the sample or the column"
FILL = f"{_LEAVE_OUT}, or {IMPUTE}"


def read_csv(path: Path, label: Label = None, labelled: bool = True, preparing: Preparing = PLAIN) -> Table:
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
    preparing: Preparing = PLAIN,
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
    text = io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")
    reader = csv.reader([])
    try:
        plain = without_comments(text)
        head = [*_record(plain), *_record(plain)]
        reader = csv.reader(chain(head, plain), delimiter=_separator(head), strict=True)
        header = [name.strip() for name in next(filter(None, reader), [])]
        first = reader.line_num
        _check_header(header, path, first)
        names: list[str] = []
        kept: list[int] = []
        for every, lines in _rows(reader, len(header), path, cells):
            if not names:
                names = header[_counts_rows(header, every[0], path, first) :]
                mixing = (label_among(label, names), BAG)
                if labelled:
                    require_label(mixing[0], names, path)
                left_out = len(header) - len(names)
                kept = [left_out + k for k in preparing.kept(names, (*mixing, WEIGHT), path)]
                kept = [k for k in kept if labelled or header[k] != mixing[0]]  # new rows may lack their labels
                names = [header[k] for k in kept]
            done -= len(lines)
            if done >= 0:
                continue
            given = [every[k] for k in kept]
            of = {name: PLAIN if name in (*mixing, WEIGHT) else preparing for name in names}
            _check_missing(given, lines, path, of, (*mixing, WEIGHT))
            pairs = zip(names, given, strict=True)
            columns = [_prepared(name, cell, lines, path, name in mixing, of[name]) for name, cell in pairs]
            yield names, columns, np.array(lines, dtype=np.int64)
    except csv.Error as error:
        raise DataError(f"not CSV: {error}", "correct the quotes", path=path, line=reader.line_num) from None
    except UnicodeDecodeError:
        raise DataError("not a text file in UTF-8", "save it as UTF-8", path=path) from None
    finally:
        text.detach()  # who opened the stream closes it


def _rows(reader: Any, width: int, path: Path, cells: int | None) -> Iterator[tuple[list[list[str]], array[int]]]:
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
            raise DataError(
                f"{len(row)} cells under {width} columns", "give every column one cell", path=path, line=reader.line_num
            )
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


def _record(text: Iterator[str]) -> Iterator[str]:
    """The lines of the next record that is not empty: they end where the quotes are closed."""
    quotes = 0
    blank = True
    for line in text:
        yield line
        quotes = quotes + line.count('"')
        blank = blank and not line.strip()
        if quotes % 2 == 0 and not blank:
            return


def _separator(head: list[str]) -> str:
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
    raise DataError("column 1 has no name, and holds no row numbers", "name every column", path=path, line=line)


def _check_header(header: list[str], path: Path, line: int) -> None:
    if not header:
        raise DataError("the file is empty", "write the names of the columns on the first line", path=path)
    seen: set[str] = set()
    for place, name in enumerate(header, 1):
        if not name and (place > 1 or len(header) == 1):
            raise DataError(f"column {place} has no name", "name every column", path=path, line=line)
        if name in seen:
            raise DataError(f"two columns are called {name!r}", "give each its own name", path=path, line=line)
        seen.add(name)


def is_missing(cell: str) -> bool:
    """Whether a cell stands for a missing value."""
    return cell.strip().lower() in MISSING


def _check_missing(
    cells: list[list[str]],
    lines: array[int],
    path: Path,
    preparing: Mapping[str, Preparing],
    roles: Collection[str],
) -> None:
    """Refuse missing values that are not to be filled in: the first of them, and the columns that have some."""
    found = {}
    for (name, one), column in zip(preparing.items(), cells, strict=True):
        if one.allows(name):
            continue
        odd = {cell for cell in set(column) if is_missing(cell)}
        if odd:
            places = [i for i, cell in enumerate(column) if cell in odd]
            found[name] = places[0], len(places), column[places[0]]
    if not found:
        return
    name, (first, count, cell) = next(iter(found.items()))
    more = how_many(count, name, found)
    remedy = _LEAVE_OUT if name in roles else FILL
    raise DataError(f"column {name!r} has no value ({cell!r}){more}", remedy, path=path, line=lines[first])


def _prepared(
    name: str, cells: Sequence[str], lines: array[int], path: Path, mixed: bool, preparing: Preparing
) -> Column:
    """The column as its type says, NaN or an empty word where a value is missing and filled in later."""
    kind = preparing.recipe.types.get(name)
    if kind is not None:

        def refuse(i: int) -> DataError:
            what = "write the dates in one way" if kind.startswith("date") else "correct the cell"
            return DataError(
                f"column {name!r} is {cells[i]!r}, which is no {kind}",
                f"{what}, or {typed.instead(name, cells, kind)}",
                path=path,
                line=lines[i],
            )

        return typed.numbers(cells, kind, is_missing, refuse)
    if not preparing.allows(name):
        return _column(name, cells, lines, path, mixed)
    there = [i for i, cell in enumerate(cells) if not is_missing(cell)]
    if len(there) == len(cells):
        return _column(name, cells, lines, path, mixed)
    if not there:
        return np.full(len(cells), np.nan)
    known = _column(name, [cells[i] for i in there], array("q", [lines[i] for i in there]), path, mixed)
    return scattered(known, there, len(cells))


def _column(name: str, cells: Sequence[str], lines: array[int], path: Path, mixed: bool) -> Column:
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
        value = _number(cell)
        if value is not None and not np.isfinite(value):
            raise DataError(
                f"column {name!r} is {cell.strip()!r}", "every value must be a finite number", path=path, line=lines[i]
            )
        if value is None:
            word_at = i if word_at is None else word_at
        else:
            number_at = i if number_at is None else number_at
    if word_at is not None and not mixed and (decimals := _decimal_commas(name, cells, lines, path)) is not None:
        return decimals
    if word_at is not None and number_at is not None and not mixed:
        message = f"column {name!r} is {cells[word_at]!r} here and the number {cells[number_at]!r} on line "
        hint = typed.remedy(name, cells)
        raise DataError(
            f"{message}{lines[number_at]}",
            hint or "correct the cell; categories are written as words throughout",
            path=path,
            line=lines[word_at],
        )
    return words_of([cell.strip() for cell in cells])


def _number(cell: str) -> float | None:
    try:
        return None if "_" in cell else float(cell)
    except ValueError:
        return None


def _decimal_commas(name: str, cells: Sequence[str], lines: array[int], path: Path) -> Column | None:
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
        thousands[i] or _number(cell) is not None for i, cell in enumerate(stripped)
    ):
        example = stripped[with_comma[0]]
        raise DataError(
            f"column {name!r} is {example!r}, with a comma between thousands or before decimals",
            f"write {example.replace(',', '')} or {example.replace(',', '.', 1)}, throughout the column, or give "
            f'--types "{name}=decimal comma" or "{name}=currency"',
            path=path,
            line=lines[with_comma[0]],
        )
    if not all(map(_DECIMAL.fullmatch, stripped)):
        return None
    example = stripped[with_comma[0]]
    warnings.warn(
        f"{path}: column {name!r} has decimal commas: {example} is read as {example.replace(',', '.')}",
        DataWarning,
        stacklevel=2,
    )
    return np.array([float(cell.replace(",", ".")) for cell in stripped])
