"""A recipe on a raw table that is converted: what stands for missing values is found before, in passes of its own."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from mipfs.data.instance import Scaling
from mipfs.data.recipe import FREQUENT, LEVEL, MEDIAN, MISSING_LEVEL, Filled, Recipe, fill_value
from mipfs.errors import DataError, DataWarning, UsageError
from mipfs.plumbing.arrays import Integers
from mipfs.readers import PREPARED, chunks
from mipfs.readers.cells import BOOLEANS
from mipfs.readers.columns import Column, RecipeInUse, left_out
from mipfs.readers.table_chunks import batches_of


@dataclass
class _Seen:
    """What a column of which missing values are filled in was seen to hold."""

    words: Counter[str] = field(default_factory=Counter)
    numbers: int = 0
    gaps: list[Integers] = field(default_factory=list)

    @property
    def rows(self) -> Integers:
        return np.concatenate([np.zeros(0, dtype=np.int64), *self.gaps])


@dataclass(frozen=True, eq=False)
class Survey:
    """A recipe, and what stands for missing values of the whole table.

    Attributes
    ----------
    recipe : Recipe
    filled : tuple of Filled, the columns with a recipe for missing values, in the order of the table
    booleans : columns of text that say True and False throughout
    """

    recipe: Recipe
    filled: tuple[Filled, ...] = ()
    booleans: tuple[str, ...] = ()

    @property
    def reading(self) -> RecipeInUse:
        """How a piece of the table is read."""
        return RecipeInUse(self.recipe, booleans=self.booleans)

    def fill(
        self, names: Sequence[str], columns: Sequence[Column], roles: Sequence[str], path: Path
    ) -> tuple[list[str], list[Column]]:
        """A piece of the table without missing values."""
        if not self.filled:
            return list(names), list(columns)
        adds = {one.name for one in self.filled if _adds_missing_feature(one)}
        impute = {one.name: LEVEL if one.name in adds else MEDIAN for one in self.filled}
        whole = RecipeInUse(Recipe(impute=impute), {one.name: one.value for one in self.filled}, ())
        of_roles = {name: column for name, column in zip(names, columns, strict=True) if name in roles}
        others = [(n, c) for n, c in zip(names, columns, strict=True) if n not in roles]
        found, contents, _ = whole.fill([n for n, _ in others], [c for _, c in others], path)
        return [*of_roles, *found], [*of_roles.values(), *contents]

    def named(self, groups: Mapping[str, Sequence[str]]) -> tuple[Filled, ...]:
        """`filled`, with the features that the words of a column have become."""
        return tuple(replace(one, features=tuple(groups.get(one.name, (one.name,)))) for one in self.filled)


def _adds_missing_feature(one: Filled) -> bool:
    """Whether a column of numbers has a feature beside it that says where it was missing."""
    return one.how == LEVEL and not isinstance(one.value, str) and bool(one.rows.size)


@dataclass(frozen=True, eq=False)
class ConversionRequest:
    """What is asked of a conversion.

    Attributes
    ----------
    survey : Survey
    words : columns of words that are features although they tell rows apart
    label : the column of labels
    scale : what the store's description says of its scale; None: what that of the data says
    """

    survey: Survey
    words: tuple[str, ...]
    label: str
    scale: Scaling | None = None

    def without_ids(self, groups: Mapping[str, Sequence[str]], n: int, path: Path) -> list[str]:
        """The columns of words that are left out, with a word, as `mipfs.read` leaves them out."""
        keep = [*self.words, *(name for name in self.survey.recipe.use or () if name in groups)]
        return left_out(groups, n, keep, path)


@contextmanager
def _reread_table(source: Path, kind: str, label: Any, reading: RecipeInUse) -> Iterator[Any]:
    """The table once more from its beginning."""
    with chunks.unpack_file(source) as (stream, _), warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # the conversion itself says them
        yield batches_of(kind, source, stream, label, 0, reading)


def survey_table(
    source: Path, kind: str, label: Any, recipe: Recipe, room: int, roles: Sequence[str], words: Sequence[str] = ()
) -> Survey:
    """Find what stands for missing values, and which columns of text say True and False throughout.

    Parameters
    ----------
    source : the table
    kind : its format
    label : as `to_table` takes it
    recipe : what is done to it
    room : bytes that may be held at a time
    roles : names of columns that are no features
    words : of columns whose text is words whatever it says

    Raises
    ------
    UsageError
        A recipe for what is no table.
    DataError
        A column has no value at all; what the readers refuse.
    """
    if recipe and kind not in PREPARED:
        what = next(name for name, value in recipe.document().items() if value)
        raise UsageError(f"{what}: {source.name} is no table of named columns; CSV and Parquet are prepared")
    booleans = () if kind not in PREPARED else _find_booleans(source, kind, label, recipe, {*roles, *words})
    if not recipe.impute:
        return Survey(recipe, booleans=booleans)
    reading = RecipeInUse(recipe, booleans=booleans)
    seen, n = _count_values(source, kind, label, reading, roles)
    mixed = [name for name, one in seen.items() if one.words and one.numbers]
    if mixed:
        message = f"column {mixed[0]!r} holds numbers in one part of the file, and words in another"
        raise DataError(message, "correct the cells; categories are written as words throughout", path=source)
    empty = [name for name, one in seen.items() if not one.words and not one.numbers]
    if empty:
        raise DataError(f"column {empty[0]!r} has no value at all", "--drop it ([data] drop)", path=source)
    columns = [name for name, one in seen.items() if not one.words]
    values: dict[str, Any] = {}
    at_once = max(1, room // max(8 * n, 1))
    for start in range(0, len(columns), at_once):
        some = columns[start : start + at_once]
        values |= _fill_values(source, kind, label, reading, some)
    for name, one in seen.items():
        if one.words:
            most = max(one.words.values())
            frequent = min(word for word, count in one.words.items() if count == most)
            values[name] = MISSING_LEVEL if recipe.how(name) == LEVEL else frequent
    filled = (Filled(name, str(recipe.how(name)), values[name], one.rows, (name,)) for name, one in seen.items())
    return Survey(recipe, tuple(filled), booleans)


def _find_booleans(source: Path, kind: str, label: Any, recipe: Recipe, others: Collection[str]) -> tuple[str, ...]:
    """The columns of text that say True and False throughout: most tables have shown in a piece that they have none."""
    maybe, seen = None, set[str]()
    with _reread_table(source, kind, label, RecipeInUse(recipe, booleans=())) as found:
        for names, columns, _ in found:
            here = {name: column for name, column in zip(names, columns, strict=True) if name not in others}
            maybe = [name for name in (here if maybe is None else maybe) if _may_be_boolean(here[name])]
            seen |= {name for name in maybe if here[name].dtype.kind != "f"}
            if not maybe:
                break
    return tuple(name for name in maybe or () if name in seen)


def _may_be_boolean(column: Column) -> bool:
    """Whether all that a piece of a column holds is True and False, and missing values."""
    if column.dtype.kind == "f":
        return bool(np.all(np.isnan(column)))
    return all(word == "" or word.lower() in BOOLEANS for word in np.unique(column).tolist())


def _count_values(
    source: Path, kind: str, label: Any, reading: RecipeInUse, roles: Sequence[str]
) -> tuple[dict[str, _Seen], int]:
    """Of every column with a recipe for missing values the words, how many numbers, and where it is missing."""
    seen = dict[str, _Seen]()
    n = 0
    with _reread_table(source, kind, label, reading) as found:
        for names, columns, _ in found:
            for name, column in zip(names, columns, strict=True):
                if name in roles or not reading.allows(name):
                    continue
                one = seen.setdefault(name, _Seen())
                gaps = np.isnan(column) if column.dtype.kind == "f" else column == ""
                one.gaps.append(np.flatnonzero(gaps).astype(np.int64) + n)
                if column.dtype.kind == "f":
                    one.numbers += int(column.size - gaps.sum())
                else:
                    one.words.update(column[~gaps].tolist())
            n += len(columns[0])
    return seen, n


def _fill_values(source: Path, kind: str, label: Any, reading: RecipeInUse, some: Sequence[str]) -> dict[str, float]:
    """What stands for a missing value of some columns of numbers."""
    held: dict[str, list[Any]] = {name: [] for name in some}
    with _reread_table(source, kind, label, reading) as found:
        for names, columns, _ in found:
            for name, column in zip(names, columns, strict=True):
                if name in held and column.dtype.kind == "f":
                    held[name].append(column[~np.isnan(column)])
    hows = {name: FREQUENT if reading.recipe.how(name) == FREQUENT else MEDIAN for name in some}
    return {name: float(fill_value(np.concatenate(parts), hows[name])) for name, parts in held.items()}


def document(survey: Survey, groups: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """What a store keeps of it."""
    filled = [
        {"name": one.name, "how": one.how, "value": one.value, "rows": one.rows.tolist(), "features": [*one.features]}
        for one in survey.named(groups)
    ]
    return {"recipe": survey.recipe.document(), "filled": filled}
