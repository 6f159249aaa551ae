"""How a raw table was prepared: which columns were left out, what cells mean, and what stands for missing values.

The statistics that missing values are filled with are those of the rows at hand: a part of the data, such as the
training part of a fold, has its own (`Prepared.refill`), so that nothing of the other rows is in it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from mipfs.errors import UsageError
from mipfs.plumbing.arrays import Array, Integers

MEDIAN, FREQUENT, LEVEL = "median", "most frequent", "level"
HOWS = (MEDIAN, FREQUENT, LEVEL)
OTHERS = "*"
"""Stands for every column that `impute` does not name."""
MISSING_LEVEL = "missing"
"""The word that a missing value becomes where it is a level of its own."""
MISSING = frozenset({"", "?", "na", "n/a", "nan", "null"})
"""Cells that stand for a missing value, in any case."""
DATE, DAY_FIRST, MONTH_FIRST = "date", "date d/m/y", "date m/d/y"
CURRENCY, PERCENT, DECIMAL_COMMA = "currency", "percent", "decimal comma"
TYPES = (
    *(DATE, DAY_FIRST, MONTH_FIRST, CURRENCY, PERCENT, DECIMAL_COMMA),
    *(f"{CURRENCY} {DECIMAL_COMMA}", f"{PERCENT} {DECIMAL_COMMA}"),
)
"""What cells can be said to mean (`mipfs.readers.typed`)."""


@dataclass(frozen=True)
class Recipe:
    """What is done to a raw table before it is data.

    Attributes
    ----------
    drop : tuple of str, columns that are left out
    use : tuple of str, or None: the columns that are features, where not all are
    impute : mapping of a column, or "*" for all others, to one of `HOWS`; a missing value is an error elsewhere
    types : mapping of a column to one of `TYPES`
    marks : tuple of str, cells of features that stand for a missing value beside `MISSING`, such as "-" and "-999"
    """

    drop: tuple[str, ...] = ()
    use: tuple[str, ...] | None = None
    impute: Mapping[str, str] = field(default_factory=dict)
    types: Mapping[str, str] = field(default_factory=dict)
    marks: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, drop: Any = None, use: Any = None, impute: Any = None, types: Any = None, missing: Any = None
    ) -> Recipe:
        """The recipe that these say; None says nothing.

        Parameters
        ----------
        drop : sequence of str, or one of them; columns that are left out
        use : sequence of str, or one of them; columns that alone are features
        impute : str, or mapping of str to str
        types : mapping of str to str
        missing : sequence of str or numbers, or one of them; cells that stand for a missing value

        Raises
        ------
        UsageError
            Something of another kind, or unknown; or both `drop` and `use` name a column.
        """
        dropped = _checked_names("drop", drop) or ()
        used = _checked_names("use", use)
        both = [name for name in dropped if used is not None and name in used]
        if both:
            raise UsageError(f"drop and use both name {both[0]!r}; leave it out of one of them")
        given = {OTHERS: impute} if isinstance(impute, str) else impute
        imputed, typed = _checked_table("impute", given, HOWS), _checked_table("types", types, TYPES)
        return cls(dropped, used, imputed, typed, _missing_marks(missing))

    @classmethod
    def of_document(cls, stated: Mapping[str, Any] | None) -> Recipe:
        """The recipe that the JSON of a result states; None is that nothing was done."""
        if stated is None:
            return cls()
        parts = {name: stated[name] for name in ("drop", "use", "impute", "types")}
        return cls.of(**parts, missing=stated.get("marks"))

    def __bool__(self) -> bool:
        return bool(self.drop or self.use is not None or self.impute or self.types or self.marks)

    def document(self) -> dict[str, Any]:
        """The recipe in JSON's own types; `marks` only where there are some, as earlier versions had none."""
        use = None if self.use is None else list(self.use)
        found = {"drop": list(self.drop), "use": use, "impute": dict(self.impute), "types": dict(self.types)}
        return found | ({"marks": list(self.marks)} if self.marks else {})

    def without(self, column: str) -> Recipe:
        """It, of which a column is no feature unless `use` names it."""
        return self if self.use is not None or column in self.drop else replace(self, drop=(*self.drop, column))

    def is_missing(self, cell: str) -> bool:
        """Whether a cell of a feature stands for a missing value: as one of `MISSING`, or as a mark, text or number."""
        text = cell.strip().lower()
        return (
            text in MISSING
            or text in self._lower_case_marks
            or (bool(self.numbers) and number_of(text) in self.numbers)
        )

    @cached_property
    def numbers(self) -> frozenset[float]:
        """The marks that say numbers: whatever says the same number is missing."""
        return frozenset(value for mark in self.marks if (value := number_of(mark)) is not None)

    @cached_property
    def _lower_case_marks(self) -> frozenset[str]:
        return frozenset(mark.lower() for mark in self.marks)

    def how(self, column: str) -> str | None:
        """What is done about missing values of a column."""
        return self.impute.get(column, self.impute.get(OTHERS))

    def named(self) -> dict[str, tuple[str, ...]]:
        """The columns that each part of it names."""
        imputed = tuple(name for name in self.impute if name != OTHERS)
        return {"drop": self.drop, "use": self.use or (), "impute": imputed, "types": tuple(self.types)}

    def keeps(self, column: str) -> bool:
        """Whether a column that has no role stays."""
        return column not in self.drop and (self.use is None or column in self.use)


NOTHING = Recipe()


def _checked_names(what: str, given: Any) -> tuple[str, ...] | None:
    if given is None:
        return None
    names = [given] if isinstance(given, str) else list(given) if isinstance(given, (list, tuple)) else [None]
    odd = [name for name in names if not isinstance(name, str) or not name]
    if odd:
        raise UsageError(f"{what} = {given!r}: give names of columns, such as {what}=['id']")
    return tuple(dict.fromkeys(names))


def number_of(text: str) -> float | None:
    """The number that a cell says, by Python; None of a word."""
    try:
        return None if "_" in text else float(text)
    except ValueError:
        return None


def _missing_marks(given: Any) -> tuple[str, ...]:
    """Marks as texts; a number is the text that says it."""
    if given is None:
        return ()
    marks = list(given) if isinstance(given, (list, tuple, set, frozenset)) else [given]
    for mark in marks:
        if isinstance(mark, bool) or not isinstance(mark, (str, int, float)) or not str(mark).strip():
            raise UsageError(f"missing = {given!r}: give marks of missing values, such as missing=['-', '-999']")
    texts = (str(mark).strip() for mark in marks)
    return tuple(dict.fromkeys(texts))


def _checked_table(what: str, given: Any, known: Sequence[str]) -> dict[str, str]:
    if given is None:
        return {}
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise UsageError(f"{what} = {given!r}: give {{column: kind}}; kinds are {', '.join(map(repr, known))}")
    return {name: _known_kind(what, name, kind, known) for name, kind in given.items()}


def _known_kind(what: str, name: str, kind: Any, known: Sequence[str]) -> str:
    """One of the known words, whatever stands between its parts."""
    found = {_normalised_text(one): one for one in known}.get(_normalised_text(str(kind)))
    if found is None:
        about = "" if name == OTHERS else f" of {name!r}"
        raise UsageError(f"{what}{about} is {kind!r}; it is one of {', '.join(map(repr, known))}")
    return found


def _normalised_text(kind: str) -> str:
    return " ".join(kind.casefold().replace("_", " ").replace("-", " ").replace(",", " ").replace("+", " ").split())


@dataclass(frozen=True, eq=False)
class Filled:
    """A column of the table, and what its missing values were filled with.

    Attributes
    ----------
    name : str
    how : one of `HOWS`
    value : float, or str of words: what stands for a missing value
    rows : (m,) ndarray of int64, where it was missing
    features : tuple of str
        Features that hold it: the column itself, of numbers; of words one for every word, of two words one alone.
    """

    name: str
    how: str
    value: float | str
    rows: Integers
    features: tuple[str, ...]

    @property
    def is_fitted(self) -> bool:
        """Whether what stands for a missing value depends on the other rows."""
        return self.how != LEVEL or not isinstance(self.value, str)


@dataclass(frozen=True, eq=False)
class Prepared:
    """A recipe, and what became of the columns in which missing values may be filled in.

    Attributes
    ----------
    recipe : Recipe
    filled : tuple of Filled, in the order of the table
    """

    recipe: Recipe
    filled: tuple[Filled, ...] = ()

    def over(self, features: Collection[str]) -> Prepared:
        """It, of the columns that are features still."""
        kept = (replace(one, features=tuple(f for f in one.features if f in features)) for one in self.filled)
        return replace(self, filled=tuple(one for one in kept if one.features))

    def document(self) -> dict[str, Any]:
        """What the JSON of a result says of it: the recipe, what stands for missing values, and how many there were."""
        return {
            **self.recipe.document(),
            "filled": {one.name: one.value for one in self.filled},
            "missing": {one.name: int(one.rows.size) for one in self.filled if one.rows.size},
        }

    def digest_parts(self) -> list[Any]:
        """What the digest of the data covers of it: the recipe, and which cells were missing."""
        found = [one for one in self.filled if one.rows.size]
        stated = json.dumps([self.recipe.document(), [[one.name, int(one.rows.size)] for one in found]], sort_keys=True)
        return [stated.encode(), *(one.rows.astype(np.int64) for one in found)]

    def part(self, rows: Integers) -> Prepared:
        """It, of some rows, in their new order; one that stands there twice counts twice."""
        missing = (np.flatnonzero(np.isin(rows, one.rows)).astype(np.int64) for one in self.filled)
        return replace(
            self, filled=tuple(replace(one, rows=places) for one, places in zip(self.filled, missing, strict=True))
        )

    def refill(self, X: Any, index: Mapping[str, int], fit: Integers) -> Any:
        """The columns (n, p), with every missing value filled by what the rows `fit` alone say; not in place."""
        changed = [one for one in self.filled if one.rows.size and one.is_fitted]
        if not changed:
            return X
        ids = np.array([index[name] for one in changed for name in one.features], dtype=np.int64)
        held = X[:, ids].toarray() if sparse.issparse(X) else np.array(X[:, ids])
        start = 0
        for one in changed:
            span = slice(start, start + len(one.features))
            start = span.stop
            known = fit[~np.isin(fit, one.rows)]
            held[one.rows, span] = _fill_of(held[known, span], one)
        if not sparse.issparse(X):
            found = np.array(X, order="F")
            found[:, ids] = held
            return found
        others = np.setdiff1d(np.arange(X.shape[1]), ids)
        order = np.argsort(np.concatenate([others, ids]), kind="stable")
        return sparse.csc_array(sparse.hstack([X[:, others], sparse.csc_array(held)], format="csc")[:, order])


def _fill_of(known: Array, one: Filled) -> Any:
    """What the columns (m, k) of the rows that are known say: the statistic, or the row of the most frequent word."""
    if isinstance(one.value, str):
        if not known.shape[0]:
            return 0.0
        if known.shape[1] == 1:  # of two words, of which the first has the smaller value, on whatever scale
            return float(fill_value(known[:, 0], FREQUENT))
        codes = np.argmax(known, axis=1).astype(float)
        return known[int(np.argmax(codes == fill_value(codes, FREQUENT)))]  # as a row that has it, on whatever scale
    return float(fill_value(known[:, 0], one.how)) if known.shape[0] else 0.0


def fill_value(values: npt.NDArray[Any], how: str) -> Any:
    """What stands for a missing value of a column, by scikit-learn's `SimpleImputer`.

    Parameters
    ----------
    values : (m,) ndarray of float or str, m >= 1, the values that are there
    how : one of `HOWS`; of words always the most frequent one, of equally frequent ones the first in order
    """
    from sklearn.impute import SimpleImputer

    words = values.dtype.kind != "f"
    strategy = "most_frequent" if words or how == FREQUENT else "median"
    column = values.astype(object) if words else values
    found = SimpleImputer(strategy=strategy).fit(column[:, None]).statistics_[0]
    return str(found) if words else float(found)
