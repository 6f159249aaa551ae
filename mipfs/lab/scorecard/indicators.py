"""A table as banks cut it: each column of numbers as thresholds, special codes and missing cells, columns of 0 and 1.

    income from 40      1 where the value is a number that is no special code, and 40 or more
    income is -9        1 where the cell is that code; of one above 40 the first is called income from 40 but not 999
    income is missing   1 where the cell is empty, or says that it is missing

These are the candidates of a selection: what is selected is then a choice of features *and* of thresholds, and the
proof of the result is about both. Rows over them say how many features a card may use, and how many thresholds each.
A cell that is missing or a code is from no threshold on. A card of such features is scored from the raw cells alone.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mipfs.data.recipe import MISSING_LEVEL, Recipe
from mipfs.errors import DataError, DataWarning, UsageError
from mipfs.lab.scorecard.columns import snap_values, thresholds
from mipfs.plumbing.registry import suggest_name
from mipfs.readers.csv_file import LinePlaces, text_batches
from mipfs.readers.files import check_unpacked, opened
from mipfs.report.numbers import many
from mipfs.report.visible import as_json
from mipfs.result.saved_card import exact

KIND, SCHEMA = "indicators", 1
CELLS = Recipe()
"""It says which cells are missing."""
OF_LP = re.compile(r"[^A-Za-z0-9_]")


class Table(dict[str, list[str]]):
    """The cells of every column of a CSV file.

    Attributes
    ----------
    places : LinePlaces, the lines of its rows
    header : int, the line of its names
    """

    def __init__(self, cells: Mapping[str, list[str]], places: LinePlaces, header: int) -> None:
        super().__init__(cells)
        self.places, self.header = places, header


@dataclass(frozen=True)
class ColumnCuts:
    """How a column is cut; one without thresholds, codes and missing cells is of words, and stays as it is.

    Attributes
    ----------
    name : str
    thresholds : tuple of float, ascending
    codes : tuple of float, its special codes
    seen : tuple of float, those that stood in it in training, which have a column
    missing : bool, whether cells of it are missing
    is_words : bool
    """

    name: str
    thresholds: tuple[float, ...] = ()
    codes: tuple[float, ...] = ()
    seen: tuple[float, ...] = ()
    missing: bool = False
    is_words: bool = False

    @property
    def steps(self) -> list[str]:
        """The names of its thresholds, by which a reader knows what counts."""
        found = []
        for at in self.thresholds:
            above = " or ".join(exact(code) for code in self.codes if code >= at)
            found.append(f"{self.name} from {exact(at)}" + (f" but not {above}" if above else ""))
        return found

    @property
    def others(self) -> list[str]:
        """The names of its codes, and of what is missing."""
        return [*(f"{self.name} is {exact(code)}" for code in self.seen), *[f"{self.name} is missing"] * self.missing]

    def of(self, cell: str, row: int, places: LinePlaces) -> list[str]:
        """What a cell is in each of its columns; an error names the line of its row."""
        if self.is_words:
            return [word_of(cell)]
        value = None if CELLS.is_missing(cell) else number(cell)
        if value is None and not (CELLS.is_missing(cell) and self.missing):
            what = "missing, and no cell was in training" if CELLS.is_missing(cell) else f"{cell!r}, which is no number"
            raise places.error(row, f"{self.name!r} is {what}", "correct the cell, or leave the row out")
        is_code = value in self.codes
        steps = [value is not None and not is_code and value >= at for at in self.thresholds]
        codes = [value == code for code in self.seen]
        return [str(int(one)) for one in (*steps, *codes, *[value is None] * self.missing)]


@dataclass(frozen=True)
class Indicators:
    """How a table is cut.

    Attributes
    ----------
    label : str, the column that stays as it is
    cuts : tuple of ColumnCuts, of the other columns in their order
    """

    label: str
    cuts: tuple[ColumnCuts, ...]

    @classmethod
    def of(cls, table: Table, label: str, count: int, special: Mapping[str, tuple[float, ...]]) -> Indicators:
        """The cuts of a table: `count` thresholds of a column at most, at the quantiles of its ordinary numbers.

        `special` has the special codes of columns by their names, "*" those of all others.

        Raises
        ------
        UsageError
            No column of that name, or special codes of none.
        """
        if label not in table:
            hint = suggest_name(label, list(table), f"there are {', '.join(map(repr, table))}")
            raise UsageError(f"no column is called {label!r}; say by --label which one holds the labels: {hint}")
        if strange := [name for name in special if name != "*" and (name not in table or name == label)]:
            raise UsageError(f"special codes are given of {strange[0]!r}, which is no column of numbers")
        names = [name for name in table if name != label]
        if not names:
            raise UsageError(f"the table has no column beside {label!r}")
        cuts = (_cut_column(name, table[name], count, special.get(name, special.get("*", ()))) for name in names)
        return cls(label, tuple(cuts))

    def rows(self, table: Table) -> Iterator[list[str]]:
        """The header of a table that is cut like this one, and its rows.

        Raises
        ------
        DataError
            With the line: a column is missing, or a cell is no number, or missing where none was in training.

        Warns
        -----
        DataWarning
            A special code that training did not see: it is from no threshold on, and has no column.
        """
        if absent := [cut.name for cut in self.cuts if cut.name not in table]:
            remedy = "give a table with the columns of training"
            path = table.places.path
            raise DataError(f"the table has no column {absent[0]!r}", remedy, path=path, line=table.header)
        for cut in self.cuts:
            _warn_of_unseen(cut, table[cut.name])
        judged = [self.label] if self.label in table else []
        yield [
            *(name for cut in self.cuts for name in ([cut.name] if cut.is_words else cut.steps + cut.others)),
            *judged,
        ]
        for i in range(len(table[self.cuts[0].name])):
            cells = [one for cut in self.cuts for one in cut.of(table[cut.name][i], i, table.places)]
            yield [*cells, *(table[name][i] for name in judged)]

    def lp(self, features: int | None, each: int | None, words: Mapping[str, Sequence[str]]) -> str:
        """Rows that allow `features` columns of the table at most, and `each` thresholds of a column, as an LP file.

        `words` has the features of every column of words: it counts as one, however many of them are selected.

        Raises
        ------
        UsageError
            No column of numbers, or one whose name no row can have.
        """
        lines, uses = [], []
        if odd := [cut.name for cut in self.cuts if cut.name[:1].isdigit()]:
            raise UsageError(f"{odd[0]!r} begins with a digit, and names in rows do not; rename the column")
        if all(cut.is_words for cut in self.cuts):
            raise UsageError("no column of the table is of numbers: there are no thresholds to write rows about")
        for cut in self.cuts:
            use = f"extra_{OF_LP.sub('_', cut.name)}"
            held = ((), words.get(cut.name, ())) if cut.is_words else (cut.steps, cut.others)
            steps, others = ([OF_LP.sub("_", name) for name in names] for names in held)
            if not (steps or others):
                continue
            lines += [f" {name} - {use} <= 0" for name in (*steps, *others)]  # without them the relaxation is weak
            if each is not None and each < len(steps):
                lines.append(f" {' + '.join(steps)} - {each} {use} <= 0")
            uses.append(use)
        if features is not None:
            lines.append(f" {' + '.join(uses)} <= {features}")
        return "\n".join(["Minimize", " obj:", "Subject To", *lines, "Binaries", f" {' '.join(uses)}", "End", ""])

    def document(self) -> dict[str, Any]:
        """As the JSON has it."""
        cuts = [
            {name: [*held] if isinstance(held, tuple) else held for name, held in vars(cut).items()}
            for cut in self.cuts
        ]
        return {"schema": SCHEMA, "kind": KIND, "label": self.label, "columns": cuts}

    def to_json(self) -> str:
        """`document` as JSON."""
        return as_json(self.document())

    @classmethod
    def load(cls, path: Path) -> Indicators:
        """Read what `to_json` wrote.

        Raises
        ------
        DataError
            It holds something else.
        """
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            if found["kind"] != KIND or found["schema"] != SCHEMA:
                raise ValueError
            return cls(str(found["label"]), tuple(_cut_read(one) for one in found["columns"]))
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            raise DataError("no cuts of a table", "give what `mipfs bins` wrote beside its table", path=path) from None


def _warn_of_unseen(cut: ColumnCuts, cells: Sequence[str]) -> None:
    """Say which special codes of a column training did not see, and in how many cells they stand."""
    unseen = {*cut.codes} - {*cut.seen}
    found = [value for value in map(number, cells) if value in unseen] if unseen else []
    if found:
        warnings.warn(
            f"{cut.name!r} holds special codes that training did not see, such as {exact(found[0])}, in "
            f"{many(len(found), 'row', 'rows')}; each counts in no line of a card",
            DataWarning,
            stacklevel=3,
        )


def _cut_read(one: Mapping[str, Any]) -> ColumnCuts:
    """A cut of its JSON."""
    steps, codes, seen = (tuple(map(float, one[name])) for name in ("thresholds", "codes", "seen"))
    return ColumnCuts(str(one["name"]), steps, codes, seen, bool(one["missing"]), bool(one["is_words"]))


def _cut_column(name: str, cells: Sequence[str], count: int, codes: tuple[float, ...]) -> ColumnCuts:
    """How a column of training is cut."""
    there = [number(cell) for cell in cells if not CELLS.is_missing(cell)]
    missing = len(there) < len(cells)
    if any(value is None for value in there):
        return ColumnCuts(name, missing=missing, is_words=True)
    values = [value for value in there if value is not None]
    ordinary = snap_values(np.array([value for value in values if value not in codes]))
    ends = np.unique(ordinary)
    found: list[float] = []
    if ends.size == 2:
        found = [float(ends[1])]
    elif ends.size > 2:
        found = thresholds(ordinary, ends, count + 1)
    return ColumnCuts(name, tuple(found), codes, tuple(code for code in codes if code in values), missing)


def word_of(cell: str) -> str:
    """The word of a cell of a column of words; a missing one has a word of its own."""
    return MISSING_LEVEL if CELLS.is_missing(cell) else cell


def number(cell: str) -> float | None:
    """The number of a cell to 12 digits; None where it has none."""
    try:
        value = float(cell)
    except ValueError:
        return None
    return float(snap_values(np.array([value]))[0]) if math.isfinite(value) else None


def read_table(path: Path) -> Table:
    """The cells of a CSV file by column, as `mipfs.readers.csv_file` finds them.

    Raises
    ------
    DataError
        No such file, no CSV, a row of another length, a name twice, or no rows.
    """
    check_unpacked(path)
    with opened(path) as stream:
        found = [*text_batches(path, stream)]
    if not found or len({*found[0][0]}) < len(found[0][0]):
        raise DataError("no rows below its names, or a name twice", "give a CSV file with a header", path=path)
    header, first, columns, lines = found[0]
    cells = {name: [cell.strip() for cell in column] for name, column in zip(header, columns, strict=True)}
    return Table(cells, LinePlaces(path, lines), first)


def csv_text(rows: Iterator[list[str]]) -> str:
    """Rows as CSV."""
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerows(rows)
    return stream.getvalue()
