"""Parquet, through pyarrow: an optional extra."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from mipfs.data.rules import BOOLEAN_RULES, CELLS_RULES, FIRST_RULES
from mipfs.errors import DataError, MissingExtraError
from mipfs.readers import room, typed
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
    label_among,
    numbers_among,
    require_finite,
    scatter_column,
    to_table,
    words_of,
)
from mipfs.readers.csv_file import FEW, FILL
from mipfs.readers.files import opened
from mipfs.readers.parquet_size import unpacked_bytes

CELL = 8
"""Bytes of a value: it becomes a double, or refers to a word."""


def read_parquet(path: Path, label: Label = None, labelled: bool = True, preparing: RecipeInUse = PLAIN) -> Table:
    """Read a Parquet file; its columns have the same roles as those of a CSV file.

    Raises
    ------
    MissingExtraError
        pyarrow is not installed.
    DataError
        Not a Parquet file; a missing or infinite value; a column of neither numbers nor words; no label column.
    """
    found = list(batches(path, opened, preparing=preparing, label=label, labelled=labelled))
    if not found:
        raise DataError("the file has no samples", "give at least one row of each class", path=path)
    names, columns, _ = found[0]
    return to_table(names, columns, path=path, label=label, labelled=labelled, preparing=preparing)


def batches(
    path: Path,
    open_: Callable[[Path], Any],
    *,
    cells: int | None = None,
    done: int = 0,
    preparing: RecipeInUse = PLAIN,
    label: Label = None,
    labelled: bool = True,
) -> Iterator[tuple[list[str], list[Column], None]]:
    """Names of the columns and the columns of some rows, one after the other; None for the lines, of which it has none.

    Parameters
    ----------
    path : Path
    open_ : opens it
    cells : about how many make a batch; None: all
    done : rows that are passed over
    preparing : which columns are read and how; a missing value that is filled in later is NaN, or an empty word
    label, labelled : as `to_table` takes them

    Raises
    ------
    MissingExtraError, DataError
        As `read_parquet`.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise MissingExtraError("pyarrow", "parquet", f"reading {path}") from None
    try:
        with open_(path) as stream:
            file = pq.ParquetFile(stream)
            columns = feature_columns(file.schema_arrow.names, path)
            strips = preparing.is_new or preparing.rules >= BOOLEAN_RULES
            asked = (label,) if isinstance(label, str) else tuple(label or ())
            names = preparing.called(columns, asked) if strips else columns
            roles = (label_among(label, names), BAG, WEIGHT)
            kept = [k for k in preparing.kept(names, roles, path) if labelled or names[k] != roles[0]]
            names, columns = [names[k] for k in kept], [columns[k] for k in kept]
            said = {field.name for field in file.schema_arrow if pa.types.is_dictionary(field.type)}
            size = stream.seek(0, os.SEEK_END)
            file = _in_bounds(file, stream, columns, size, path)
            for part in (
                [file.read(columns=columns)]
                if cells is None
                else file.iter_batches(max(1, min(FEW, cells // len(names))), columns=columns)
            ):
                done -= part.num_rows
                if done < 0 and part.num_rows:
                    arrays = [_decode_array(_join_chunks(part.column(one)), size, path) for one in columns]
                    words = [one in said for one in columns]
                    given = zip(names, arrays, words, strict=True)
                    yield names, [_read(*one, path, roles, preparing) for one in given], None
    except pa.ArrowException as error:
        reason = str(error).splitlines()[0]
        raise DataError(f"not a Parquet file: {reason}", "write it again", path=path) from None
    except UnicodeDecodeError:
        raise DataError("a name or a word in it is not text in UTF-8", "write it again", path=path) from None
    except ValueError as error:
        raise DataError(f"not a Parquet file: {error}", "write it again", path=path) from None


def _read(name: str, values: Any, is_said: bool, path: Path, roles: tuple[str, ...], preparing: RecipeInUse) -> Column:
    """A column of some rows: of a role or a feature; `is_said`: whether its type says that its text is words."""
    if name not in roles:
        return column(name, values, path, replace(preparing, rules=FIRST_RULES) if is_said else preparing)
    as_cells = name != roles[0] and preparing.rules >= CELLS_RULES
    found = column(name, values, path, OF_ROLE if as_cells else AS_IT_IS, mixed=name != WEIGHT)
    if name != roles[0] or preparing.rules < BOOLEAN_RULES:
        return found
    if found.dtype.kind == "f":
        return found == 1.0 if values.type == "bool" else found
    return words_of([word.strip() for word in found.tolist()])


def _in_bounds(file: Any, stream: Any, names: Sequence[str], size: int, path: Path) -> Any:
    """The file, words as codes of their different ones, where its columns take no more than a file of its size may.

    A run of a million rows takes some bytes, and a page of zeros a thousandth.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    fields = {field.name: field.type for field in file.schema_arrow}
    places = {file.metadata.schema.column(k).path: k for k in range(file.metadata.num_columns)}
    nested = [name for name in names if name not in places]
    if nested:
        message = f"column {nested[0]!r} has the type {fields[nested[0]]}"
        raise DataError(message, "store numbers or words", path=path)
    needed = CELL * file.metadata.num_rows * len(names)
    if needed <= room.most(size):
        needed += unpacked_bytes(stream, file.metadata, (places[name] for name in names))
    if needed > room.most(size):
        raise room.too_large(path, size)
    words = [name for name in names if pa.types.is_string(fields[name]) or pa.types.is_large_string(fields[name])]
    return pq.ParquetFile(stream, read_dictionary=words) if words else file


def _decode_array(values: Any, size: int, path: Path) -> Any:
    """An Arrow array without codes, where its words take no more than a file of `size` bytes may."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_dictionary(values.type):
        return values
    words = values.dictionary
    if pa.types.is_string(words.type) or pa.types.is_large_string(words.type):
        needed = pc.sum(pc.take(pc.binary_length(words).cast(pa.int64()), values.indices)).as_py() or 0
        if needed > room.most(size):
            raise room.too_large(path, size)
    return values.dictionary_decode()


def _join_chunks(values: Any) -> Any:
    """An Arrow array of its chunks."""
    return values.combine_chunks() if hasattr(values, "combine_chunks") else values


def feature_columns(given: Sequence[str], path: Path) -> list[str]:
    """The columns but for pandas's row index, which it stores as a column of this name."""
    return [name for name in given if not name.startswith("__index_level_")]


@dataclass(frozen=True)
class RowPlaces:
    """Cells that stand in rows (`mipfs.readers.cells.Places`); `places`: which rows, where not all are meant."""

    path: Path
    places: Sequence[int] | None = None
    cure: str = "correct the cell, or store words as a dictionary (astype('category') in pandas)"

    def error(self, i: int, message: str, remedy: str) -> DataError:
        return DataError(message, remedy, path=self.path)

    def here(self, i: int) -> str:
        return f" {self.other(i)}"

    def other(self, i: int) -> str:
        return f"in row {(i if self.places is None else self.places[i]) + 1}"

    def some(self, kept: Sequence[int]) -> RowPlaces:
        return RowPlaces(self.path, kept)


def column(name: str, values: Any, path: Path, preparing: RecipeInUse = PLAIN, mixed: bool = False) -> Column:
    """An Arrow array as numbers or words; what is missing or neither is refused by its place.

    A missing value that `preparing` fills in later is NaN, or an empty word; `mixed` as of `prepare_column`.
    """
    import pyarrow as pa

    kind = values.type
    if pa.types.is_dictionary(kind):
        values = values.dictionary_decode()
        kind = values.type
    said = preparing.recipe.types.get(name)
    if said is not None:
        return _typed_column(name, values, said, path, preparing)
    numeric = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    if not (numeric or pa.types.is_decimal(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        raise DataError(f"column {name!r} has the type {kind}", "store numbers or words", path=path)
    spell = preparing.spelling(name)
    if pa.types.is_boolean(kind) and spell is not None:
        if not preparing.allows(name):
            _check_complete(name, values, path)
        return words_of(["" if value is None else spell(str(value)) for value in values.to_pylist()])
    if _is_text(kind) and preparing.reads_cells(name) and values.null_count < len(values):
        cells = ["" if cell is None else cell for cell in values.to_pylist()]
        if not preparing.allows(name):
            _check_complete(name, values, path, np.array([preparing.is_missing(cell) for cell in cells]))
        return prepare_column(name, cells, RowPlaces(path), mixed, preparing)
    if preparing.allows(name):
        return _with_gaps(name, values, path, preparing)
    _check_complete(name, values, path, _find_marks(values, preparing))
    array = values.to_numpy(zero_copy_only=False)
    if not (numeric or pa.types.is_decimal(kind)):
        words = array.tolist()
        return words_of([word.strip() for word in words] if preparing.strips_words(name) else words)
    return require_finite(np.asarray(array, dtype=np.float64), name, path, lambda i: f"in row {i + 1}")


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _find_marks(values: Any, preparing: RecipeInUse) -> Any:
    """Where numbers are marks of missing values; False of text, which is read by its cells."""
    marks = preparing.recipe.numbers
    if not marks or _is_text(values.type) or values.type == "bool":
        return False
    return np.isin(np.asarray(values.to_numpy(zero_copy_only=False), dtype=np.float64), [*marks])


def _check_complete(name: str, values: Any, path: Path, marked: Any = False) -> None:
    """Refuse an Arrow array that lacks a value, or has a mark in its place."""
    gaps = values.is_null().to_numpy(zero_copy_only=False) | marked
    if np.any(gaps):
        raise DataError(f"column {name!r} has no value in row {int(np.argmax(gaps)) + 1}", FILL, path=path)


def _with_gaps(name: str, values: Any, path: Path, preparing: RecipeInUse) -> Column:
    """A column whose missing values, null or NaN, are filled in later."""
    import pyarrow as pa
    import pyarrow.compute as pc

    gaps = np.array(values.is_null(nan_is_null=True).to_numpy(zero_copy_only=False)) | _find_marks(values, preparing)
    if _is_text(values.type):  # words that say so, as in CSV
        gaps |= [one is not None and preparing.is_missing(one) for one in values.to_pylist()]
    if gaps.all():
        return np.full(len(gaps), np.nan)
    known = column(name, pc.filter(values, pa.array(~gaps)), path, AS_IT_IS)
    if known.dtype.kind != "f" and preparing.strips_words(name):
        known = words_of([word.strip() for word in known.tolist()])
    if known.dtype.kind != "f" and np.count_nonzero(gaps) > values.null_count:
        known = numbers_among(known)
    return scatter_column(known, ~gaps, len(gaps))


def _typed_column(name: str, values: Any, kind: str, path: Path, preparing: RecipeInUse) -> Column:
    """A column whose cells mean what the recipe says; Arrow's dates and moments are dates."""
    import pyarrow as pa

    gaps = preparing.allows(name)
    if not gaps:
        _check_complete(name, values, path)
    if kind.startswith("date") and pa.types.is_temporal(values.type):
        return typed.days_since_1970(values.to_numpy(zero_copy_only=False))
    cells = values.to_pylist()

    def refuse(i: int) -> DataError:
        message = f"column {name!r} is {cells[i]!r} in row {i + 1}, which is no {kind}"
        return DataError(message, f"correct it, or {typed.other_type_remedy(name, cells, kind)}", path=path)

    return typed.numbers(cells, kind, lambda cell: gaps and (cell is None or preparing.is_missing(str(cell))), refuse)
