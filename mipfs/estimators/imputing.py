"""What an estimator does to raw columns: text that says numbers by `types`, missing values by what `fit` learnt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from mipfs.data.frames import as_rows, is_frame
from mipfs.data.instance import misspelling_hint
from mipfs.data.recipe import LEVEL, OTHERS, Filled, Prepared, Recipe, fill_value
from mipfs.errors import DataError, UsageError
from mipfs.plumbing.arrays import Array, Integers
from mipfs.readers.columns import RecipeInUse
from mipfs.readers.frames import FRAME, column_values


@dataclass(frozen=True, eq=False)
class Imputer:
    """How raw columns are read, and what stands for missing values.

    Attributes
    ----------
    recipe : Recipe, kinds of columns and what is done about missing values
    known : mapping of a column of a data frame to a number or a word; empty of an array
    names : tuple of str, the columns of the data frame with what is made beside them
    values : (p,) ndarray of an array's columns; empty of a data frame
    """

    recipe: Recipe
    known: Mapping[str, float | str]
    names: tuple[str, ...]
    values: Array

    @classmethod
    def learnt(cls, X: Any, impute: Any, types: Any = None, sample_weight: Any = None) -> Imputer | None:
        """Of the samples that have a weight; None where nothing is to be filled in or read by a kind.

        Raises
        ------
        UsageError
            `impute` or `types` is none of what `mipfs.read` takes, or names columns of an array.
        DataError
            A column has no value at all.
        """
        if impute is None and types is None:
            return None
        recipe = Recipe.of(impute=impute, types=types)
        if is_frame(X):
            rows = _weighed_samples(sample_weight, len(X))
            part = X if rows is None else X.iloc[rows]
            preparing = RecipeInUse(recipe)
            every = [str(name) for name in X.columns]
            for what, named in recipe.named().items():
                for name in named:
                    if name not in every:
                        hint = misspelling_hint(name, every)
                        raise UsageError(f"{what} names the column {name!r}, which is not there; {hint}")
            names, known = list[str](), dict[str, float | str]()
            for k, name in enumerate(every):
                if not preparing.allows(name):
                    names.append(name)
                    continue
                made, _, filled = preparing.fill([name], [column_values(part, k, name, preparing=preparing)], FRAME)
                names += made
                known |= {one.name: one.value for one in filled}
            return cls(recipe, known, tuple(names), np.empty(0))
        how = recipe.impute.get(OTHERS)
        if types is not None:
            raise UsageError(f"types = {types!r} is about columns with names; give a data frame")
        if how in (None, LEVEL) or len(recipe.impute) > 1:
            raise UsageError(f"impute = {impute!r} is about columns with names; give a data frame, or impute='median'")
        Z = _numeric_copy(X)
        if Z is None:
            return cls(recipe, {}, (), np.empty(0))  # which scikit-learn refuses
        rows = _weighed_samples(sample_weight, Z.shape[0])
        part = Z if rows is None else Z[rows]
        return cls(recipe, {}, (), np.array([_fill_value(part, j, str(how)) for j in range(part.shape[1])]))

    def filled(self, X: Any) -> tuple[Any, tuple[Filled, ...]]:
        """X without missing values, and which these were; X itself where it has other columns."""
        return self._in_frame(X) if is_frame(X) else self._in_array(X)

    def _in_frame(self, X: Any) -> tuple[Any, tuple[Filled, ...]]:
        import pandas

        numbers = (name for name, value in self.known.items() if isinstance(value, float))
        preparing = RecipeInUse(self.recipe, self.known, frozenset(numbers), is_new=True)
        columns: dict[str, Any] = {}
        found = list[Filled]()
        for k, column in enumerate(X.columns):
            name = str(column)
            if name not in self.known:
                is_typed = name in self.recipe.types
                columns[name] = column_values(X, k, name, preparing=preparing) if is_typed else X.iloc[:, k]
                continue
            values = column_values(X, k, name, preparing=preparing)
            made, contents, filled = preparing.fill([name], [values], FRAME)
            found += filled
            of = {key: one for key, one in zip(made, contents, strict=True) if key in self.names}
            columns |= {key: one if one.dtype.kind == "f" else one.astype(object) for key, one in of.items()}
        beside = [name for name in self.names if name in columns]
        order = [name for name in columns if name not in beside]
        return pandas.DataFrame(columns, index=X.index)[[*beside, *order]], tuple(found)

    def _in_array(self, X: Any) -> tuple[Any, tuple[Filled, ...]]:
        Z = _numeric_copy(X)
        if Z is None or Z.shape[1] != self.values.size:
            return X, ()
        how, found = self.recipe.impute[OTHERS], list[Filled]()
        for j, value in enumerate(self.values):
            rows = _missing_rows(Z, j)
            if sparse.issparse(Z):
                part = slice(Z.indptr[j], Z.indptr[j + 1])
                Z.data[part] = np.where(np.isnan(Z.data[part]), value, Z.data[part])
            else:
                Z[rows, j] = value
            found.append(Filled(f"x{j + 1}", how, float(value), rows, (f"x{j + 1}",)))
        return Z, tuple(found)


def prepared_of(X: Any, imputer: Imputer | None) -> tuple[Any, Prepared | None]:
    """Rows as they are given, without missing values where an imputer fills them in; and what it filled in."""
    rows = as_rows(X)
    if imputer is None:
        return rows, None
    found, filled = imputer.filled(rows)
    return found, Prepared(imputer.recipe, filled)


def fill_missing(prepared: Prepared, X: Any, names: Any, fit: Integers) -> Any:
    """A validated X, its missing values filled in by what the rows `fit` say; a data frame where it is one."""
    matrix = X.to_numpy() if is_frame(X) else X
    every = [f"x{j + 1}" for j in range(matrix.shape[1])] if names is None else [str(name) for name in names]
    index = {name: j for j, name in enumerate(every)}
    found = prepared.over(index).refill(matrix, index, fit)
    return type(X)(found, columns=X.columns, index=X.index) if is_frame(X) else found


def _weighed_samples(sample_weight: Any, n: int) -> Integers | None:
    """The samples that have a weight, where some have none."""
    held = np.asarray(sample_weight) != 0
    if sample_weight is None or held.shape != (n,):
        return None
    return None if held.all() or not held.any() else np.flatnonzero(held)


def _numeric_copy(X: Any) -> Any:
    """A copy of an array or a sparse matrix as numbers; None of what is none."""
    if sparse.issparse(X):
        return None if X.dtype.kind not in "biuf" else sparse.csc_array(X, dtype=np.float64, copy=True)
    try:
        found = np.array(X, dtype=np.float64, order="F")
    except (TypeError, ValueError):
        return None
    return found if found.ndim == 2 else None


def _missing_rows(Z: Any, j: int) -> Integers:
    """The rows of a column that have no value."""
    if sparse.issparse(Z):
        part = slice(Z.indptr[j], Z.indptr[j + 1])
        return np.asarray(Z.indices[part][np.isnan(Z.data[part])], dtype=np.int64)
    return np.flatnonzero(np.isnan(Z[:, j])).astype(np.int64)


def _fill_value(Z: Any, j: int, how: str) -> float:
    """What stands for a missing value of a column."""
    column = Z[:, [j]].toarray()[:, 0] if sparse.issparse(Z) else Z[:, j]
    there = column[~np.isnan(column)]
    if not there.size:
        raise DataError(f"column {j} of X has no value at all", "leave it out")
    return float(fill_value(there, how))
