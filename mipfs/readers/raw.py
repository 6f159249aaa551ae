"""A recipe on the columns of a raw table: which of them are read, and what their missing values are filled with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs.data.instance import misspelling_hint
from mipfs.data.recipe import LEVEL, MISSING_LEVEL, NOTHING, Filled, Recipe, fill_value
from mipfs.data.rules import BOOLEAN_RULES, CELLS_RULES, FIRST_RULES, RULES, TWO_WORDS_RULES
from mipfs.errors import DataError

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
            raise DataError("the recipe leaves no feature column", "use or keep one at least", path=path)
        seen = Counter(names[k] for k in kept)
        for twice in (name for name, count in seen.items() if count > 1):
            may_go = self.known is None and twice not in roles
            cure = "give each its own name" + (f", or --drop {twice!r}" if may_go else "")
            raise DataError(f"two columns are called {twice!r}", cure, path=path, line=line)
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
