"""Data frames with columns of words, or of pandas's categories: a feature for each word, as `mipfs.read` makes them."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from mipfs.data.checks import refuse_masked
from mipfs.data.frames import as_rows, is_frame
from mipfs.data.instance import misspelling_hint
from mipfs.data.recipe import MONTH_FIRST, number_of
from mipfs.data.table_reading import TableReading
from mipfs.data.unknown_words import is_none, refuse_none_of_two, warn_of_unknown
from mipfs.errors import DataError, DataWarning, UsageError
from mipfs.readers.columns import PLAIN, RecipeInUse, hardly_categories, tell_apart
from mipfs.readers.frames import FRAME, as_words, column_values
from mipfs.readers.typed import fits_both_orders, looks_like

Words = dict[str, tuple[str, ...]]


def learn_words(X: Any) -> Words | None:
    """The words of every column of words of a data frame, by its name; of one to be left out none; None without any.

    Raises
    ------
    DataError
        A value is missing, or a column mixes words and numbers.

    Warns
    -----
    DataWarning
        A column is left out, as its words tell rows apart.
    """
    if not is_frame(X):
        return None
    found: Words = {}
    for k in _word_column_candidates(X):
        name = str(X.columns[k])
        values = column_values(X, k, name, preparing=PLAIN)  # text that says numbers is numbers, as in a CSV file
        if values.dtype.kind == "f":
            continue
        words = tuple(str(word) for word in np.unique(values))
        if hardly_categories(words, len(X)):
            kind = looks_like(words)
            cure = "make numbers of it" if kind is None else f"give types={{{name!r}: {kind!r}}}"
            if fits_both_orders(kind, words):
                cure = f"{cure}, or {MONTH_FIRST!r} in its place: all cells fit both orders"
            warnings.warn(
                f"{FRAME}: column {name!r} holds {len(words)} different words in {len(X)} rows, such as {words[0]!r}, "
                f"as IDs and dates do, and is left out; drop it, or {cure}",
                DataWarning,
                stacklevel=4,
            )
            words = ()
        found[name] = words
    return found or None


def reading_of(X: Any, words: Words | None) -> TableReading | None:
    """How the columns of words of a data frame were taken: those without words were left out."""
    if not is_frame(X):
        return None
    gone = [name for name, seen in (words or {}).items() if not seen]
    places = {str(name): k for k, name in enumerate(X.columns)}
    values = {name: column_values(X, places[name], name, preparing=PLAIN) for name in gone}
    features = {name: [f"{name}={word}" for word in np.unique(values[name])] for name in gone}
    return TableReading(left_out=tuple(gone), apart=tell_apart(features, len(X)))


def _word_column_candidates(X: Any) -> list[int]:
    """Places of the columns that may hold words, or what is neither words nor numbers, such as dates."""
    return [k for k, kind in enumerate(X.dtypes) if str(kind) == "category" or getattr(kind, "kind", "O") in "OUSTmM"]


def encode_words(X: Any, words: Words | None, unknown: str = "refuse", needed: Collection[str] | None = None) -> Any:
    """The frame with a column ``column=word`` of 0 and 1 for every word that was learned, in place of the column.

    Of two words it is one column, of the last of them in order.

    Where `unknown` is "none" a word that was not learned is none of them; so it is in a column of which no feature is
    among `needed`, where these are given: it changes nothing.

    Raises
    ------
    UsageError
        No such column, or a word that training did not see; of an array, which has no such columns.
    DataError
        An array that masks values as missing, which scikit-learn would compute with.
    """
    refuse_masked(X, "X")
    are_none, X = is_none(unknown), as_rows(X)
    if not is_frame(X):
        return X
    import pandas

    names, texts, words = [str(name) for name in X.columns], _word_column_candidates(X), words or {}
    if not texts and not any(name in names for name in words):
        return X  # encoded already
    columns: dict[str, Any] = {}
    for k, name in enumerate(names):
        if name not in words:
            columns[name] = _numbers_of_column(X, k, name) if k in texts else X.iloc[:, k].to_numpy()
            continue
        if not words[name]:
            continue
        known = RecipeInUse(features=[f"{name}={word}" for word in words[name]], is_new=True)
        found = as_words(column_values(X, k, name, mixed=True, preparing=known))
        strange = np.flatnonzero(~np.isin(found, words[name]))
        features = {f"{name}={word}": word for word in _words_with_feature(words[name])}
        if needed is not None and not any(one in needed for one in features):
            strange = strange[:0]
        if strange.size and are_none:
            if PLAIN.makes_one(len(words[name])):
                refuse_none_of_two(name, words[name], str(found[strange[0]]))
            warn_of_unknown(FRAME, name, str(found[strange[0]]), strange.size)
        elif strange.size:
            raise UsageError(
                f"column {name!r} is {str(found[strange[0]])!r}, a category that training did not see: it knows "
                f"{', '.join(map(repr, words[name][:12]))}; unknown='none' takes it for none of them"
            )
        columns |= {feature: (found == word).astype(float) for feature, word in features.items()}
    if not columns:
        raise DataError("no feature column", "give at least one column beside the labels", path=FRAME)
    return pandas.DataFrame(columns, index=X.index)


def refuse_missing_columns(X: Any, names: Sequence[str], words: Words, features: Sequence[str]) -> None:
    """Refuse a data frame without a column that training had: neither it nor, where it held words, their features.

    Parameters
    ----------
    X : what rows were given as
    names : of the columns of training
    words : as `learn_words` found them; a column that was left out may be missing
    features : names of the features that the columns became

    Raises
    ------
    UsageError
    """
    if not is_frame(X):
        return
    there = [str(name) for name in X.columns]
    for name in names:
        made = [one for one in features if one == name or (name in words and one.startswith(f"{name}="))]
        if name not in there and made and not set(made) <= set(there):
            raise UsageError(
                f"{FRAME}: there is no column {name!r}, which training had; {misspelling_hint(name, there)}"
            )


def _numbers_of_column(X: Any, k: int, name: str) -> Any:
    """A column that held numbers in training, of text too."""
    found = column_values(X, k, name, preparing=RecipeInUse(features=(name,), is_new=True))
    if found.dtype.kind != "f":
        first = next((word for word in found.tolist() if number_of(word) is None), found[0])
        raise DataError(f"column {name!r} is {first!r}, and held numbers in training", "write a number", path=FRAME)
    return found


def _words_with_feature(words: tuple[str, ...]) -> tuple[str, ...]:
    """The words of a column that have a feature."""
    return words[1:] if PLAIN.makes_one(len(words)) else words


def groups_of(words: Words | None) -> dict[str, tuple[str, ...]]:
    """The features of every column of words, a group."""
    return {
        name: tuple(f"{name}={word}" for word in _words_with_feature(seen))
        for name, seen in (words or {}).items()
        if seen
    }
