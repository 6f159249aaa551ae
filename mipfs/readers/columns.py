"""From named columns of numbers or words, as CSV and Parquet hold them, to a `Table`.

Also here: `Table`, what a data file holds, before labels are mapped and columns scaled.

Also here: a recipe on the columns of a raw table: which of them are read, and what their missing values are filled
with.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from mipfs.data.instance import Labels, misspelling_hint
from mipfs.data.matrix import compact_storage
from mipfs.data.recipe import LEVEL, MISSING_LEVEL, NOTHING, Filled, Recipe, fill_value
from mipfs.data.rules import BOOLEAN_RULES, CELLS_RULES, FIRST_RULES, RULES, TWO_WORDS_RULES
from mipfs.data.table_reading import StatedWords, TableReading, WordsColumn
from mipfs.errors import DataError, DataWarning, LabelError
from mipfs.plumbing.arrays import Array
from mipfs.readers.typed import describe_reading, fits_both_orders, looks_like, type_remedy
from mipfs.report.numbers import first_of

Column = npt.NDArray[np.float64] | npt.NDArray[np.str_] | npt.NDArray[np.object_]
IMPUTE = "give --impute median (or 'most frequent', level) or --drop NAME, or impute and drop under [data]"


@dataclass(frozen=True)
class RecipeInUse:
    """A recipe in use: on a table to learn from, or on one that a classifier is used on.

    Attributes
    ----------
    recipe : Recipe
    known : mapping of column to number or word, or None
        What stands for missing values, of a classifier; None to learn it. Columns that it does not use are left out.
    features : the features that the classifier uses
    meant : columns of words that are said to be features, so that nothing is said of how many words they have
    rules : the version of the rules by which a table is read
    is_new : whether the table is one that a classifier is used on
    narrow : whether columns that the classifier does not look at are passed over
    booleans : columns that may hold True and False, of a table that is read in pieces; None: the cells say it
    """

    recipe: Recipe = NOTHING
    known: Mapping[str, float | str] | None = None
    features: Collection[str] = ()
    meant: Collection[str] = ()
    rules: int = RULES
    is_new: bool = False
    narrow: bool = False
    booleans: Collection[str] | None = None

    def is_missing(self, cell: str) -> bool:
        """Whether a cell stands for a missing value."""
        return self.recipe.is_missing(cell)

    def reads_cells(self, column: str) -> bool:
        """Whether text in a column of a data frame or a Parquet file is read as the cells of a CSV file are.

        In training the rules say so. A classifier knows what its features are: numbers, of which a web form sends text,
        or words, which may look like numbers.
        """
        return self.holds_numbers(column) if self.is_new else self.rules >= CELLS_RULES

    def reads_booleans(self, column: str) -> bool:
        """Whether a column of text that says True and False throughout holds numbers, 1 and 0."""
        if self.is_new:
            return self.holds_numbers(column)
        may = self.booleans is None or column in self.booleans
        return may and column not in self.meant and self.rules >= BOOLEAN_RULES

    def holds_numbers(self, column: str) -> bool:
        """Whether a classifier looks at the numbers of a column, or at where they were missing."""
        filled = self.known is not None and not isinstance(self.known.get(column, ""), str)
        return filled or column in self.features

    def strips_words(self, column: str) -> bool:
        """Whether blanks around the words of new rows do not count: but for earlier rules no word has any."""
        words = [name.removeprefix(f"{column}=") for name in self.features if name.startswith(f"{column}=")]
        return self.is_new and all(word == word.strip() for word in words)

    def spelling(self, column: str) -> Callable[[str], str] | None:
        """How a classifier that knows True and False as words of a column spells them; None where it does not.

        New rows may be true and false of their own kind where training met another word, or text.
        """
        words = [name.removeprefix(f"{column}=") for name in self.features if name.startswith(f"{column}=")]
        if not self.is_new or not words or self.holds_numbers(column):
            return None
        ways = (str.upper, str.lower)
        return next((way for way in ways if any(word in map(way, ("True", "False")) for word in words)), str)

    def makes_one(self, words: int) -> bool:
        """Whether a column of that number of words makes one feature, of the last in order, and not one of each.

        In rows that a classifier is used on two words may be two of many.
        """
        return words == 2 and self.rules >= TWO_WORDS_RULES and not self.is_new

    def called(self, columns: Iterable[Any], label: Collection[str] = ()) -> list[str]:
        """The names of the columns of a data frame, without blanks around them, as those of a CSV file."""
        if not self.is_new and self.rules < CELLS_RULES:
            return [str(name) for name in columns]
        return [name if self._needs_column(name) or name in label else name.strip() for name in map(str, columns)]

    def allows(self, column: str) -> bool:
        """Whether missing values of a column are filled in."""
        return self.recipe.how(column) is not None

    def kept(self, names: Sequence[str], roles: Collection[str], path: Path, line: int | None = None) -> list[int]:
        """The places of the columns that are read: those with a role, and the features that stay; `line` names them.

        Raises
        ------
        DataError
            The recipe names a column that is not there, leaves out the labels, or leaves nothing; two columns of one
            name are read.
        """
        if self.known is None:
            for what, named in self.recipe.named().items():
                for name in named:
                    if name not in names:
                        hint = misspelling_hint(name, [*names])
                        raise DataError(f"{what} names the column {name!r}, which is not there", hint, path=path)
                    if name in roles and what != "use":
                        raise DataError(f"{what} names {name!r}, which is no feature", "leave it out of it", path=path)
        kept = [k for k, name in enumerate(names) if name in roles or self.recipe.keeps(name)]
        if self.features and (self.narrow or (self.known is not None and self.recipe)):
            kept = [k for k in kept if names[k] in roles or self._needs_column(names[k])]
        if all(names[k] in roles for k in kept) and self.known is None and self.recipe:
            used = self.recipe.use or ()
            if used and all(name in roles for name in used):
                raise DataError(f"use names {used[0]!r}, which is no feature", "name another column", path=path)
            raise DataError("the recipe leaves no feature column", "use or keep one at least", path=path)
        seen = Counter(names[k] for k in kept)
        for twice in (name for name, count in seen.items() if count > 1):
            raise DataError(f"two columns are called {twice!r}", "give each its own name", path=path, line=line)
        return kept

    def _needs_column(self, column: str) -> bool:
        """Whether the classifier looks at a column."""
        return column in self.features or any(name.startswith(f"{column}=") for name in self.features)

    def fill(
        self, names: Sequence[str], columns: Sequence[npt.NDArray[Any]], path: Path
    ) -> tuple[list[str], list[npt.NDArray[Any]], tuple[Filled, ...]]:
        """Columns without missing values, which are NaN among numbers and empty among words; and what was filled in.

        Raises
        ------
        DataError
            A column has no value at all.
        """
        found_names, found, filled = list[str](), list[npt.NDArray[Any]](), list[Filled]()
        for name, column in zip(names, columns, strict=True):
            how = self.recipe.how(name)
            found_names.append(name)
            if how is None:
                found.append(column)
                continue
            value = self._fill_value(name, column, how, path)
            if isinstance(value, str) and column.dtype.kind == "f" and np.all(np.isnan(column)):
                column = np.full(column.shape, "", dtype=np.str_)  # nothing there says that these are words
            if isinstance(value, float) and column.dtype.kind != "f":
                column = _as_numbers(name, column, path)
            gaps = np.isnan(column) if column.dtype.kind == "f" else column == ""
            rows = np.flatnonzero(gaps).astype(np.int64)
            words = column.dtype.kind != "f"
            if rows.size:
                column = column.astype(object) if words else column.copy()
                column[rows] = str(value) if words else float(value)
            found.append(words_of(column.tolist()) if words else column)
            features = tuple(f"{name}={word}" for word in np.unique(found[-1])) if words else (name,)
            filled.append(Filled(name, how, value, rows, features))
            if how == LEVEL and not words and (rows.size or self.known is not None):
                found_names.append(f"{name}={MISSING_LEVEL}")
                found.append(gaps.astype(float))
        return found_names, found, tuple(filled)

    def _fill_value(self, name: str, column: npt.NDArray[Any], how: str, path: Path) -> float | str:
        """What stands for a missing value of a column."""
        if self.known is not None and (name in self.known or self.features):
            if name not in self.known:
                remedy = "give a result that was not changed"
                raise DataError(f"the result does not say what stands for a missing {name!r}", remedy, path=path)
            return self.known[name]
        words = column.dtype.kind != "f"
        there = column[column != ""] if words else column[~np.isnan(column)]
        if there.size == 0:
            raise DataError(f"column {name!r} has no value at all", "--drop it ([data] drop)", path=path)
        if words and how == LEVEL:
            return MISSING_LEVEL
        found: float | str = fill_value(there, how)
        return found


PLAIN = RecipeInUse()
OF_ROLE = RecipeInUse(booleans=())
"""Of a bag or a weight: True is no number there."""
AS_IT_IS = RecipeInUse(rules=FIRST_RULES)
"""Text in a data frame or a Parquet file is words, whatever it says."""
SHORT = 64
"""Characters of a word up to which NumPy may give every word of a column the room of the longest."""


def words_of(cells: Sequence[str]) -> npt.NDArray[Any]:
    """A column of words: an array of strings, or of objects where one of them is long.

    NumPy makes every string of an array as wide as the longest, four bytes a character: of a hundred thousand rows one
    cell of as many characters would take 40 GB.
    """
    if max(map(len, cells), default=0) <= SHORT:
        return np.array(cells, dtype=np.str_)
    found = np.empty(len(cells), dtype=object)
    found[:] = cells
    return found


def _as_numbers(name: str, column: npt.NDArray[Any], path: Path) -> npt.NDArray[np.float64]:
    """Words that say numbers, of a column that held numbers in training."""
    found = np.full(column.shape, np.nan)
    for i, word in enumerate(column.tolist()):
        try:
            found[i] = float(word) if word else np.nan
        except ValueError:
            message = f"column {name!r} is {word!r} in row {i + 1}, and held numbers in training"
            raise DataError(message, "write a number", path=path) from None
    return found


def numbers_among(words: Column) -> Column:
    """Words as the numbers that they say, where all say one: a column of numbers with a word for a missing value."""
    try:
        found = np.array([float(word) for word in words.tolist() if "_" not in word])
    except ValueError:
        return words
    return found if found.size == words.size and np.all(np.isfinite(found)) else words


def scatter_column(known: Column, there: Sequence[int] | npt.NDArray[Any], n: int) -> Column:
    """A column of `n` rows that is known at the places `there`, and NaN or an empty word elsewhere."""
    if known.dtype.kind == "f":
        numbers = np.full(n, np.nan)
        numbers[there] = known
        return numbers
    words: npt.NDArray[Any] = np.full(n, "", dtype=known.dtype)
    words[there] = known
    return words


def again(stated: Mapping[str, Any] | None, features: Collection[str]) -> RecipeInUse:
    """What a result states of its raw table, to be done again for a classifier that uses these features."""
    if stated is None:
        return RecipeInUse(features=frozenset(features), is_new=True)
    return RecipeInUse(Recipe.of_document(stated), dict(stated["filled"]), frozenset(features), is_new=True)


@dataclass(frozen=True, eq=False)
class Table:
    """The contents of a data file.

    Attributes
    ----------
    X : (n, p) ndarray in Fortran order or csc_array of float64
    labels : (n,) ndarray of float or str, or None where the file has none
    names : tuple of p str, or None where the file names no features
    groups : mapping of a string column to the names of its one-hot features
    others : mapping of a column of two words to the one that has no feature, as the other's feature says it
    bags : (n,) ndarray of int, or None
    sample_weight : (n,) ndarray, or None
    lines : (n,) ndarray of int, or None
        The line each sample stands on; None for a file without lines.
    label : str, or None
        The column or array that the labels stand in, where it has a name.
    signs : (n,) ndarray of -1.0 and +1.0 with what the two are called, in place of `labels`, or None
    filled : tuple of Filled, the columns whose missing values are filled in
    recipe : Recipe or None, by which the table was prepared before it was stored
    reading : TableReading or None, what a store says of the columns of words of the table that it was made of
    """

    X: Any
    labels: npt.NDArray[Any] | None
    names: tuple[str, ...] | None = None
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    bags: npt.NDArray[np.int64] | None = None
    sample_weight: Array | None = None
    lines: npt.NDArray[np.int64] | None = None
    label: str | None = None
    signs: tuple[Array, Labels] | None = None
    filled: tuple[Filled, ...] = ()
    recipe: Recipe | None = None
    reading: TableReading | None = None
    others: Mapping[str, str] = field(default_factory=dict)

    @property
    def words(self) -> dict[str, tuple[str, ...]]:
        """The words of every column of words, sorted: what stands behind ``column=`` in its features, and others."""
        found = {name: [one[len(name) + 1 :] for one in made] for name, made in self.groups.items()}
        return {name: tuple([self.others[name], *own] if name in self.others else own) for name, own in found.items()}


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


def which_words(groups: Collection[str]) -> str:
    """What a message says of the columns of words that there are."""
    return f"columns of words are: {', '.join(map(repr, [*groups][:MOST_NAMED])) or 'none'}"


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
            raise DataError(f"no column of words is called {name!r}", which_words(groups), path=path)
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
