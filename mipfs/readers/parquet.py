"""Parquet, through pyarrow: an optional extra."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mipfs.errors import DataError, MissingExtraError
from mipfs.readers import room, typed
from mipfs.readers.columns import BAG, WEIGHT, Label, all_different, finite, label_among, to_table
from mipfs.readers.csv_file import FEW, FILL, is_missing
from mipfs.readers.files import opened
from mipfs.readers.parquet_size import unpacked_bytes
from mipfs.readers.raw import PLAIN, Column, Preparing, numbers_among, scattered, words_of
from mipfs.readers.table import Table

CELL = 8
"""Bytes of a value: it becomes a double, or refers to a word."""


def read_parquet(path: Path, label: Label = None, labelled: bool = True, preparing: Preparing = PLAIN) -> Table:
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
    preparing: Preparing = PLAIN,
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
            names = feature_columns(file.schema_arrow.names, path)
            roles = (label_among(label, names), BAG, WEIGHT)
            names = [names[k] for k in preparing.kept(names, roles, path) if labelled or names[k] != roles[0]]
            size = stream.seek(0, os.SEEK_END)
            file = _in_bounds(file, stream, names, size, path)
            for part in (
                [file.read(columns=names)]
                if cells is None
                else file.iter_batches(max(1, min(FEW, cells // len(names))), columns=names)
            ):
                done -= part.num_rows
                if done < 0 and part.num_rows:
                    of = [PLAIN if name in roles else preparing for name in names]
                    pairs = zip(names, of, strict=True)
                    arrays = ((name, _decoded(_joined(part.column(name)), size, path), one) for name, one in pairs)
                    yield names, [column(name, values, path, one) for name, values, one in arrays], None
    except pa.ArrowException as error:
        reason = str(error).splitlines()[0]
        raise DataError(f"not a Parquet file: {reason}", "write it again", path=path) from None
    except UnicodeDecodeError:
        raise DataError("a name or a word in it is not text in UTF-8", "write it again", path=path) from None
    except ValueError as error:
        raise DataError(f"not a Parquet file: {error}", "write it again", path=path) from None


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


def _decoded(values: Any, size: int, path: Path) -> Any:
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


def _joined(values: Any) -> Any:
    """An Arrow array of its chunks."""
    return values.combine_chunks() if hasattr(values, "combine_chunks") else values


def feature_columns(given: Sequence[str], path: Path) -> list[str]:
    """The columns but for pandas's row index, which it stores as a column of this name; all different."""
    return all_different([name for name in given if not name.startswith("__index_level_")], path)


def column(name: str, values: Any, path: Path, preparing: Preparing = PLAIN) -> Column:
    """An Arrow array as numbers or words; what is missing or neither is refused by its place.

    A missing value that `preparing` fills in later is NaN, or an empty word.
    """
    import pyarrow as pa

    kind = values.type
    if pa.types.is_dictionary(kind):
        values = values.dictionary_decode()
        kind = values.type
    said = preparing.recipe.types.get(name)
    if said is not None:
        return _typed(name, values, said, path, preparing.allows(name))
    numeric = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    if not (numeric or pa.types.is_decimal(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        raise DataError(f"column {name!r} has the type {kind}", "store numbers or words", path=path)
    if preparing.allows(name):
        return _with_gaps(name, values, path)
    _check_complete(name, values, path)
    array = values.to_numpy(zero_copy_only=False)
    if not (numeric or pa.types.is_decimal(kind)):
        return words_of(array.tolist())
    return finite(np.asarray(array, dtype=np.float64), name, path, lambda i: f"in row {i + 1}")


def _check_complete(name: str, values: Any, path: Path) -> None:
    """Refuse an Arrow array that lacks a value."""
    if values.null_count:
        row = int(np.flatnonzero(values.is_null().to_numpy(zero_copy_only=False))[0]) + 1
        raise DataError(f"column {name!r} has no value in row {row}", FILL, path=path)


def _with_gaps(name: str, values: Any, path: Path) -> Column:
    """A column whose missing values, null or NaN, are filled in later."""
    import pyarrow as pa
    import pyarrow.compute as pc

    gaps = np.array(values.is_null(nan_is_null=True).to_numpy(zero_copy_only=False))
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):  # words that say so, as in CSV
        gaps |= [one is not None and is_missing(one) for one in values.to_pylist()]
    if gaps.all():
        return np.full(len(gaps), np.nan)
    known = column(name, pc.filter(values, pa.array(~gaps)), path)
    if known.dtype.kind != "f" and np.count_nonzero(gaps) > values.null_count:
        known = numbers_among(known)
    return scattered(known, ~gaps, len(gaps))


def _typed(name: str, values: Any, kind: str, path: Path, gaps: bool) -> Column:
    """A column whose cells mean what the recipe says; Arrow's dates and moments are dates."""
    import pyarrow as pa

    if not gaps:
        _check_complete(name, values, path)
    if kind.startswith("date") and pa.types.is_temporal(values.type):
        return typed.days(values.to_numpy(zero_copy_only=False))
    cells = values.to_pylist()

    def refuse(i: int) -> DataError:
        message = f"column {name!r} is {cells[i]!r} in row {i + 1}, which is no {kind}"
        return DataError(message, f"correct it, or {typed.instead(name, cells, kind)}", path=path)

    return typed.numbers(cells, kind, lambda cell: gaps and (cell is None or is_missing(str(cell))), refuse)
