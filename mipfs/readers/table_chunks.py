"""CSV and Parquet in pieces of rows: every column keeps one kind, numbers or words, from the first piece on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from mipfs.errors import DataError
from mipfs.readers import csv_file, parquet
from mipfs.readers.chunks import Chunk
from mipfs.readers.columns import BAG, PLAIN, WEIGHT, Column, Label, RecipeInUse, label_among, require_label
from mipfs.readers.files import plainly_opened

CELLS = 1 << 20
"""Cells of a piece."""


class ColumnEncoder:
    """From named columns to entries; a provisional column for every column of numbers, and for every word that is met.

    Parameters
    ----------
    path : named in messages
    names : of all columns
    label : the label column, or names of which the first that is there is meant
    known : what `state` gave, None at the beginning
    """

    def __init__(self, path: Path, names: Sequence[str], label: Label, known: dict[str, Any] | None) -> None:
        self.path = path
        self.names = list(names)
        self.label = label_among(label, names)
        require_label(self.label, names, path)
        self.features = [name for name in names if name not in (self.label, BAG, WEIGHT)]
        if not self.features:
            raise DataError("no feature column", "give at least one column beside the labels", path=path)
        known = known or {"rows": 0, "width": 0, "numbers": {}, "words": {}}
        self.rows = int(known["rows"])
        self.width = int(known["width"])
        self.numbers: dict[str, int] = dict(known["numbers"])
        self.words: dict[str, dict[str, int]] = {name: dict(words) for name, words in known["words"].items()}

    def state(self) -> dict[str, Any]:
        """What a later reading goes on from."""
        known = {"rows": self.rows, "width": self.width, "numbers": self.numbers, "words": self.words}
        return {**known, "names": self.features, "label": self.label}

    def chunk(self, columns: Sequence[Column], lines: Any) -> Chunk:
        """The next rows."""
        by_name = dict(zip(self.names, columns, strict=True))
        n = len(columns[0])
        rows = []
        ids = []
        values = []
        for name in self.features:
            column = by_name[name]
            if column.dtype.kind == "f":
                self._refuse_other_kind(name, self.words, "words", lines)
                used = np.flatnonzero(column)
                place = self.numbers.setdefault(name, self.width)
                self.width = max(self.width, place + 1)
                rows.append(used)
                ids.append(np.full(used.size, place))
                values.append(column[used].astype(float))
            else:
                self._refuse_other_kind(name, self.numbers, "numbers", lines)
                rows.append(np.arange(n))
                ids.append(self._encode_words(name, column))
                values.append(np.ones(n))
        row = np.concatenate(rows)
        order = np.argsort(row, kind="stable")
        self.rows += n
        bags = by_name.get(BAG)
        weights = by_name.get(WEIGHT)
        return Chunk(
            by_name[self.label],
            np.bincount(row, minlength=n).astype(np.int64),
            np.concatenate(ids)[order].astype(np.int32),
            np.concatenate(values)[order],
            self.width,
            None if bags is None else self._bag_numbers(bags, lines),
            None if weights is None else self._sample_weights(weights, lines),
            lines,
            self.state(),
        )

    def _encode_words(self, name: str, column: Column) -> Any:
        known = self.words.setdefault(name, {})
        found, codes = np.unique(column, return_inverse=True)
        for word in found.tolist():
            if word not in known:
                known[word] = self.width
                self.width += 1
        return np.array([known[word] for word in found.tolist()])[codes]

    def _refuse_other_kind(self, name: str, others: Any, what: str, lines: Any) -> None:
        """Refuse a column that was of the other kind before."""
        if name in others:
            raise DataError(
                f"column {name!r} holds {what} above this line, and something else here",
                "correct the cells; categories are written as words throughout",
                path=self.path,
                line=None if lines is None else int(lines[0]),
            )

    def _bag_numbers(self, column: Column, lines: Any) -> Any:
        numbers = column.astype(float) if column.dtype.kind == "f" else np.full(len(column), np.nan)
        bad = np.flatnonzero(~((np.trunc(numbers) == numbers) & (np.abs(numbers) < 2**53)))
        if bad.size:
            message = f"the bag is {column.tolist()[bad[0]]!r}; a store has whole numbers for bags"
            line = None if lines is None else int(lines[bad[0]])
            raise DataError(message, "number the bags", path=self.path, line=line)
        return numbers.astype(np.int64)

    def _sample_weights(self, column: Column, lines: Any) -> Any:
        if column.dtype.kind != "f":
            raise DataError(
                f"the column {WEIGHT!r} holds words", "give positive numbers, or rename the column", path=self.path
            )
        return column.astype(float)


def name_columns(
    position: dict[str, Any], names: Sequence[str]
) -> tuple[list[int], list[str], dict[str, list[str]], dict[str, str]]:
    """Provisional columns in the order of the features, the names of these, groups of words, and words without one.

    Parameters
    ----------
    position : the last `Chunk.position`
    names : of the columns of the table
    """
    order = []
    found = []
    groups = {}
    others = {}
    for name in names:
        if name in position["numbers"]:
            order.append(int(position["numbers"][name]))
            found.append(name)
        elif name in position["words"]:
            words = sorted(position["words"][name].items())
            if PLAIN.makes_one(len(words)):
                others[name] = words.pop(0)[0]
            order += [place for _, place in words]
            groups[name] = [f"{name}={word}" for word, _ in words]
            found += groups[name]
    return order, found, groups, others


Prepare = Callable[[Sequence[str], Sequence[Column], Sequence[str], Path], tuple[list[str], list[Column]]]
"""Fills missing values of a piece: names, columns, roles and path to names and columns."""


def batches_of(
    kind: str, path: Path, stream: IO[bytes], label: Label, done: int, preparing: RecipeInUse = PLAIN
) -> Iterator[tuple[list[str], list[Column], Any]]:
    """Names, columns and lines of some rows of a table, one after the other; `done` rows are passed over."""
    if kind == "csv":
        return csv_file.batches(path, stream, label, cells=CELLS, done=done, preparing=preparing)
    return parquet.batches(path, plainly_opened, cells=CELLS, done=done, preparing=preparing, label=label)


def table_chunks(
    kind: str,
    path: Path,
    stream: IO[bytes],
    label: Label,
    position: dict[str, Any] | None,
    preparing: RecipeInUse = PLAIN,
    prepare: Prepare | None = None,
) -> Iterator[Chunk]:
    """The samples of a CSV or Parquet file; what `mipfs.read` refuses is refused, where it is met."""
    table: ColumnEncoder | None = None
    done = 0 if position is None else int(position["rows"])
    for names, columns, lines in batches_of(kind, path, stream, label, done, preparing):
        if prepare is not None:
            names, columns = prepare(names, columns, (label_among(label, names), BAG, WEIGHT), path)
        table = table or ColumnEncoder(path, names, label, position)
        yield table.chunk(columns, lines)
