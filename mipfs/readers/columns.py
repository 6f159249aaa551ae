"""From named columns of numbers or words, as CSV and Parquet hold them, to a `Table`."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from mipfs.data.instance import misspelling_hint
from mipfs.data.matrix import compact_storage
from mipfs.data.table_reading import StatedWords, TableReading, WordsColumn
from mipfs.errors import DataError, DataWarning, LabelError
from mipfs.readers.raw import PLAIN, Column, RecipeInUse
from mipfs.readers.table import Table
from mipfs.readers.typed import describe_reading, fits_both_orders, looks_like, type_remedy
from mipfs.report.numbers import first_of

LABEL = "label"
BAG = "bag"
WEIGHT = "sample_weight"
Label = str | Sequence[str] | None
"""The label column, or names of which the first that is there is meant."""
MOST_NAMED = 40
"""Columns that a message lists."""
MOST_WORDS = 20
"""Words of a column from which on it is doubted that they are categories."""
MANY_WORDS, ROWS_A_WORD = 50, 5
"""More words than that, in fewer rows each on the mean, are names (employers, streets): of a new row they say nothing,
and one-hot features of the rare ones fit single rows. The 50 states of a country in 300 rows stay."""
_ORDINARY = "write numbers as 1234.5 (no currency, unit or decimal comma)"
MOST_CHARACTERS = 30
"""Characters of a cell that a message repeats."""


def to_table(
    names: Sequence[str],
    columns: Sequence[Column],
    *,
    path: Path,
    label: Label = None,
    labelled: bool = True,
    lines: npt.NDArray[np.int64] | None = None,
    preparing: RecipeInUse = PLAIN,
) -> Table:
    """Give every column its role; words become one feature ``column=word`` per distinct word, a group; two words one.

    Parameters
    ----------
    names : sequence of str, unique
    columns : sequence of (n,) arrays of finite float or str
    label : str or sequence of str, optional
        The column of labels, or names of which the first that is there is meant; default ``label``.
    labelled : bool
        False: a file without labels will do.
    preparing : RecipeInUse
        What missing values, NaN among numbers and empty among words, are filled with.

    Raises
    ------
    DataError
        No label column, words as sample weights, no feature column left, or one without any value.

    Warns
    -----
    DataWarning
        A column of words that makes more than `MOST_WORDS` features, or that differs in most rows.
    """
    by_name = dict(zip(names, columns, strict=True))
    label = label_among(label, names)
    if labelled:
        require_label(label, names, path)
    labels, bag, weight = (by_name.pop(role, None) for role in (label, BAG, WEIGHT))
    if weight is not None and weight.dtype.kind != "f":
        raise DataError(f"the column {WEIGHT!r} holds words", "give positive numbers, or rename the column", path=path)
    features: list[str] = []
    groups: dict[str, tuple[str, ...]] = {}
    others: dict[str, str] = {}
    parts = list[tuple[npt.NDArray[np.int64], npt.NDArray[np.float64], list[int]]]()
    every, contents, filled = preparing.fill([*by_name], [*by_name.values()], path)
    for name, values in zip(every, contents, strict=True):
        if values.dtype.kind == "f":
            if not preparing.is_new:
                _warn_of_counter(name, values, path)
            features.append(name)
            rows = np.flatnonzero(values)
            parts.append((rows, values[rows].astype(np.float64), [rows.size]))
            continue
        words, codes = np.unique(values, return_inverse=True)
        is_advised = name not in preparing.meant and not preparing.is_new
        if is_advised and not hardly_categories(words.tolist(), len(values)):
            _warn_of_many(name, values, words, path)
        if preparing.makes_one(len(words)):
            others[name], groups[name] = str(words[0]), (f"{name}={words[1]}",)
            features += groups[name]
            rows = np.flatnonzero(codes)
            parts.append((rows, np.ones(rows.size), [rows.size]))
            continue
        groups[name] = tuple(f"{name}={word}" for word in words)
        features += groups[name]
        counts = np.bincount(codes, minlength=len(words)).tolist()
        parts.append((np.argsort(codes, kind="stable"), np.ones(len(values)), counts))
    if not parts:
        raise DataError("no feature column", "give at least one column beside the labels", path=path)
    X = compact_storage(_join_parts(parts, len(columns[0])))
    weights = None if weight is None else weight.astype(np.float64)
    bags = None if bag is None else _bag_numbers(bag)
    called = None if labels is None else label
    return Table(X, labels, tuple(features), groups, bags, weights, lines, called, filled=filled, others=others)


def _join_parts(
    parts: Sequence[tuple[npt.NDArray[np.int64], npt.NDArray[np.float64], list[int]]], n: int
) -> sparse.csc_array:
    """The matrix of columns one after the other: rows and values of their entries, and how many each column has.

    An array for every column, which SciPy would join, takes a hundred times the memory where columns are many.
    """
    ends = np.concatenate([[0], np.cumsum(np.fromiter(chain.from_iterable(part[2] for part in parts), dtype=np.int64))])
    kind = np.int32 if max(n, ends[-1]) < 2**31 else np.int64  # as SciPy chooses
    rows = np.concatenate([part[0].astype(kind) for part in parts])
    values = np.concatenate([part[1] for part in parts])
    return sparse.csc_array((values, rows, ends.astype(kind)), shape=(n, ends.size - 1))


def label_among(label: Label, names: Sequence[str]) -> str:
    """The name of the label column: the first of several that is there, ``label`` where none is asked for."""
    asked = (label,) if isinstance(label, str) else tuple(label or ()) or (LABEL,)
    return next((name for name in asked if name in names), asked[0])


def require_label(label: str, names: Sequence[str], path: Path) -> None:
    """Refuse a table without the label column: its columns are listed."""
    if label not in names:
        raise LabelError(f"no column is called {label!r}", _say_which(label, names), path=path)


def _say_which(label: str, names: Sequence[str]) -> str:
    """What to do where the label column is missing: the columns, and how to name one of them."""
    shown = first_of(names, MOST_NAMED, repr)
    hint = misspelling_hint(label, names)
    hint = f" ({hint})" if hint.startswith("did you mean") else ""
    if all(_is_number(name) for name in names):
        hint = " (the first line must hold the names of the columns)"
    if len(names) == 1 and len(names[0].split()) > 1:
        hint = " (columns are separated by commas, semicolons, tabs or bars, not by blanks)"
    elif len(names) == 1 and label in names[0]:
        hint = " (the whole line is read as one column: columns are separated by commas, semicolons, tabs or bars)"
    return f"say which column holds the labels by --label NAME, label='NAME' in Python{hint}: there are {shown}"


def _is_number(name: str) -> bool:
    try:
        float(name)
    except ValueError:
        return False
    return True


def tells_rows_apart(words: int, rows: int) -> bool:
    """Whether a column of words is hardly one of categories: its words are different in most rows, or many and rare."""
    differs = words > MOST_WORDS and rows < 2 * words
    return differs or (words > MANY_WORDS and rows < ROWS_A_WORD * words)


def hardly_categories(words: Sequence[str], rows: int) -> bool:
    """Whether a column is left out unless it is named: its words tell rows apart, or many say numbers (12.5%)."""
    return tells_rows_apart(len(words), rows) or (len(words) > MOST_WORDS and looks_like(words) is not None)


def without_ids(
    table: Table, names: Sequence[str], words: Sequence[str] | StatedWords, used: Sequence[str], path: Path
) -> tuple[Table, Sequence[str], TableReading]:
    """A table, and the names of its features, without columns of words that tell its rows apart, as IDs do.

    A classifier learns nothing of a new row from the ID of another. `words` are columns that are features all the same,
    or what a result says of these; `used` are the columns that alone are features, where that is asked for.

    Returns
    -------
    The table, its names, and what was left out and why

    Raises
    ------
    DataError
        `words` has a name that is no column of words, or no feature is left.

    Warns
    -----
    DataWarning
        For every column that is left out; of what a result says nothing.
    """
    apart = tell_apart(table.groups, table.X.shape[0])
    if isinstance(words, StatedWords):
        kept = words.keeps([one for one in apart if one not in used], table.groups)
        without = TableReading(apart=apart).follows(kept, used)
    else:
        kept = tuple(dict.fromkeys(words))
        keep = [*kept, *(one for one in used if one in table.groups)]
        without = left_out(table.groups, table.X.shape[0], keep, path, apart)
    reading = TableReading(kept, tuple(without), apart)
    if not without:
        return table, names, reading
    gone = {feature for one in without for feature in table.groups[one]}
    held = [j for j, name in enumerate(names) if name not in gone]
    if not held:
        raise DataError("no feature column", "give at least one column beside the labels", path=path)
    groups = {one: members for one, members in table.groups.items() if one not in without}
    there = tuple(names[j] for j in held)
    part = table.X[:, held]
    X = compact_storage(sparse.csc_array(part)) if sparse.issparse(part) else np.asfortranarray(part)
    return replace(table, X=X, names=there, groups=groups), there, reading


def tell_apart(groups: Mapping[str, Sequence[str]], n: int) -> dict[str, WordsColumn]:
    """The columns of words that are left out of a table of `n` rows unless they are named; `groups`: their features."""
    found = {}
    for one, features in groups.items():
        if len(features) > MOST_WORDS:
            words = [feature[len(one) + 1 :] for feature in features]
            kind = looks_like(words)
            if kind is not None or tells_rows_apart(len(words), n):
                found[one] = WordsColumn(len(words), kind)
    return found


def left_out(
    groups: Mapping[str, Sequence[str]],
    n: int,
    keep: Sequence[str],
    path: Path,
    apart: Mapping[str, WordsColumn] | None = None,
) -> list[str]:
    """The columns of words that `without_ids` leaves out of a table of `n` rows, each with a warning.

    `groups` are the features of each; `apart` is what `tell_apart` says of them.
    """
    for name in keep:
        if name not in groups:
            there = ", ".join(map(repr, [*groups][:MOST_NAMED])) or "none"
            raise DataError(f"no column of words is called {name!r}", f"columns of words are: {there}", path=path)
    words_of = {one: [word[len(one) + 1 :] for word in groups[one]] for one in groups}
    apart = tell_apart(groups, n) if apart is None else apart
    found = TableReading(apart=apart).follows(keep, ())
    kinds = {one: kind for one in found if (kind := apart[one].kind) is not None}
    either = list[str]()
    for one in found:
        words = words_of[one]
        names = n >= 2 * len(words)  # each is met in several rows
        is_either = one in kinds and fits_both_orders(kinds[one], words)
        typed = describe_reading(one, kinds[one], is_either) if one in kinds else ""
        either += [one] if is_either else []
        cure = typed or ("" if names else _ORDINARY)
        kind = "dates, amounts and percentages" if typed else "names" if names else "IDs and dates"
        warnings.warn(
            f"{path}: column {one!r} holds {len(words)} different words in {n} rows, such as "
            f"{_example_value(words[0])!r}, as {kind} do, and is left out; "
            f"{f'{cure}, or ' if cure else ''}name it under [data] words in the .toml beside the data "
            f"(--words {one!r}, words=[{one!r}] in Python) to keep it, or --drop it (drop=[{one!r}])",
            DataWarning,
            stacklevel=4,
        )
    if len(kinds) - len(either) > 1:
        every = ",".join(f"{one}={kind}" for one, kind in kinds.items() if one not in either)
        warnings.warn(f'{path}: all at once: --types "{every}"', DataWarning, stacklevel=4)
    return found


def _example_value(value: Any) -> str:
    return str(value) if len(str(value)) <= MOST_CHARACTERS else f"{str(value)[:MOST_CHARACTERS]}..."


def _warn_of_many(name: str, values: npt.NDArray[Any], words: npt.NDArray[Any], path: Path) -> None:
    """Say so when words are hardly categories: numbers with a sign to them, dates, IDs."""
    count = len(words)
    n = len(values)
    if count <= MOST_WORDS and not 2 < count <= n < 2 * count:
        return
    warnings.warn(
        f"{path}: column {name!r} holds {count} different words in {n} rows, such as {_example_value(values[0])!r}, "
        f"and "
        f"makes a feature of each; "
        f"{type_remedy(name, values) or f'{_ORDINARY}, and --drop IDs and dates ([data] drop)'}",
        DataWarning,
        stacklevel=2,
    )


def _warn_of_counter(name: str, values: npt.NDArray[Any], path: Path) -> None:
    """Say so when numbers count the rows: where the file is sorted by its labels they tell them all."""
    n = len(values)
    if n > MOST_WORDS and values[0] in (0, 1) and np.array_equal(values, values[0] + np.arange(n)):
        warnings.warn(
            f"{path}: column {name!r} counts the rows; --drop it ([data] drop), unless it is a feature",
            DataWarning,
            stacklevel=2,
        )


def require_finite(numbers: npt.NDArray[np.float64], name: str, path: Path, place: Callable[[int], str]) -> Column:
    """The numbers of a column, every one finite; `place` says where one of them is.

    Raises
    ------
    DataError
        A number that is infinite or none.
    """
    bad = np.flatnonzero(~np.isfinite(numbers))
    if bad.size:
        message = f"column {name!r} is {numbers[bad[0]]} {place(int(bad[0]))}"
        raise DataError(message, "every value must be a finite number", path=path)
    return numbers


def how_many(count: int, name: str, incomplete: Iterable[str]) -> str:
    """How many values a column lacks, where it is more than one, and which other columns lack some."""
    others = [other for other in incomplete if other != name]
    more = f", {count} values in all" if count > 1 else ""
    return more + (f"; so have {', '.join(map(repr, others[:MOST_NAMED]))}" if others else "")


def _bag_numbers(column: Column) -> npt.NDArray[np.int64]:
    """Bag numbers: whole numbers as they are, anything else in sorted order."""
    if column.dtype.kind == "f":
        numbers = column.astype(np.float64)
        if np.all(np.trunc(numbers) == numbers) and np.all(np.abs(numbers) < 2**53):
            return numbers.astype(np.int64)
    return np.unique(column, return_inverse=True)[1].astype(np.int64)
