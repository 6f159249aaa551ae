"""From a result and new data to decision values: which columns the weights belong to, and on which scale."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from mipfs.data.instance import Instance
from mipfs.errors import UsageError
from mipfs.readers.frames import as_words, column_values, is_frame
from mipfs.result.interactions import functions_of, made_of, summed, used_columns

if TYPE_CHECKING:
    from mipfs.result.result import Result

Array = npt.NDArray[np.float64]
SHOWN = 12
"""Columns or categories that a message lists."""


def decision_values(result: Result, X: Any) -> Array:
    """w'x + b of every row of `X`, shape (n,); see `Result.decision_function`."""
    if made_of(result) is not None:
        return summed(result, X, decision_values)
    made = functions_of(result)
    if made is not None and getattr(X.block().values if isinstance(X, Instance) else X, "raw", None) is None:
        return _of_made(result, made, X)
    names = list(result.weights)
    weights = np.array([result.weights[name] for name in names], dtype=float)
    if isinstance(X, Instance):
        return _of_instance(result, X, names, weights)
    if is_frame(X):
        values = np.array([_of_frame(result, X, name) for name in names]).reshape(len(names), len(X))
        return np.asarray(weights @ values + result.intercept)
    try:
        matrix = X if sparse.issparse(X) else np.asarray(X, dtype=float)
    except (TypeError, ValueError):
        raise UsageError(
            "X holds words; give numbers, a data frame with the columns of training, or an Instance"
        ) from None
    if matrix.ndim != 2 or matrix.shape[1] != result.n_features:
        raise UsageError(f"the array has shape {matrix.shape}; the classifier needs (n, {result.n_features})")
    ids = [result.columns[name] for name in names]
    return np.asarray(matrix[:, ids] @ weights + result.intercept)


def inputs(result: Result) -> tuple[tuple[str, ...], int]:
    """The features that the classifier uses, by name, and how many features the user's data has."""
    made = functions_of(result)
    return (used_columns(result), result.n_features) if made is None else (tuple(made["features"]), made["n_features"])


def count_of(result: Result) -> int:
    """How many there are to select from."""
    made = made_of(result)
    if made is not None:
        return int(made["count"])
    names = None if result.atoms is None else result.atoms.get("names")
    return inputs(result)[1] if names is None else len(names)


def sizes(result: Result) -> dict[str, float]:
    """The weight of every selected atom that is a feature, and ‖w_j‖ of a function of a feature that is made."""
    if functions_of(result) is None:
        return {name: result.weights.get(name, 0.0) for name in result.selected}
    squares = dict.fromkeys(result.selected, 0.0)
    for name, weight in result.weights.items():
        squares[name.rpartition("[")[0]] += weight * weight
    return {name: math.sqrt(value) for name, value in squares.items()}


def _of_made(result: Result, made: Mapping[str, Any], X: Any) -> Array:
    """w'φ(x) + b: the features that are used are looked up as those of any classifier, the columns are made of them."""
    from mipfs.atoms.registry import decision

    columns = {name: one["column"] for name, one in made["features"].items()}
    raw = replace(result, columns=columns, n_features=made["n_features"], atoms=None, intercept=0.0, weights={})
    values = {name: decision_values(replace(raw, weights={name: 1.0}), X) for name in columns}
    if not values:
        return decision_values(replace(raw, intercept=result.intercept), X)
    return decision(made, result.weights, values) + result.intercept


def _of_instance(result: Result, data: Instance, names: list[str], weights: Array) -> Array:
    known, absent = _words_of(result), np.zeros(len(names), dtype=bool)
    for k, name in enumerate(names):
        column = _column_of_words(name, known)
        if column is None or column not in data.words or data.words[column] == known[column]:
            continue
        for word in data.words[column]:
            if word not in known[column]:
                row = int(np.argmax(data.block(np.array([data.index[f"{column}={word}"]])).dense() != 0))
                raise _unseen(data.source or "the data", column, word, row, known[column])
        absent[k] = name not in data.index  # no row has the word
    kept = np.flatnonzero(~absent)
    ids = [column_of(names[k], result.columns[names[k]], result.n_features, data) for k in kept]
    return scores_on(data, np.array(ids, dtype=np.int64), weights[kept], result.intercept)


def _of_frame(result: Result, frame: Any, name: str) -> Array:
    """The values (n,) of one feature in a data frame: its column, or where a column of words has the word.

    Raises
    ------
    UsageError
        No such column, or words that training did not see.
    DataError
        A missing value, or one of another kind.
    """
    places = {str(column): k for k, column in enumerate(frame.columns)}
    if name in places:
        values = column_values(frame, places[name], name)
        if values.dtype.kind == "f":
            return values.astype(float)
        raise UsageError(f"column {name!r} of the data frame holds words, but numbers when the classifier was trained")
    known = _words_of(result)
    column = _column_of_words(name, known)
    place = result.columns[name]
    if column is None and name == f"x{place + 1}" and len(places) == result.n_features:  # trained without names
        return np.asarray(column_values(frame, place, str(frame.columns[place])), dtype=float)
    if column is None or column not in places:
        of = name if column is None else column
        raise UsageError(f"the data frame has no column {of!r}, which the classifier uses; it has {_listed([*places])}")
    found = as_words(column_values(frame, places[column], column, mixed=True))
    strange = np.flatnonzero(~np.isin(found, known[column]))
    if strange.size:
        raise _unseen("the data frame", column, str(found[strange[0]]), int(strange[0]), known[column])
    return np.asarray(found == name[len(column) + 1 :], dtype=float)


def _words_of(result: Result) -> dict[str, tuple[str, ...]]:
    """The words of the columns of words that the classifier uses, as training saw them."""
    words = (result.read or {}).get("words", {})
    return {column: tuple(seen) for column, seen in words.items()}


def _column_of_words(name: str, known: dict[str, tuple[str, ...]]) -> str | None:
    """The column of words that a feature ``column=word`` comes from."""
    return next((c for c, words in known.items() if name.startswith(f"{c}=") and name[len(c) + 1 :] in words), None)


def _unseen(where: str, column: str, word: str, row: int, known: tuple[str, ...]) -> UsageError:
    """The error of a category that training did not see."""
    return UsageError(
        f"{where}: column {column!r} is {word!r} in row {row + 1}, a category that training did not see: it knows "
        f"{_listed(known)}; leave the row out or write one of these"
    )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:SHOWN])) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")


def _dense(column: Any) -> Array:
    return np.asarray(column.toarray() if sparse.issparse(column) else column, dtype=float).ravel()


def scores_on(data: Instance, ids: npt.NDArray[np.int64], weights: Array, intercept: float) -> Array:
    """w'x + b on the columns `ids` of an instance, for weights on the user's scale, shape (n,).

    The instance may be scaled in its own way: that is undone in the weights, so that sparse data stays sparse.
    """
    slopes = weights * data.scale[ids]
    offset = weights @ (data.shift[ids] - data.center[ids] * data.scale[ids])
    return np.asarray(data.block(ids).values @ slopes + offset + intercept)


def weights_by_name(data: Instance, ids: npt.NDArray[np.int64], weights: Array) -> dict[str, float]:
    """The non-zero weights by feature name; those of a column that stands twice are added up."""
    chosen = np.unique(ids)
    sums = np.zeros(chosen.size)
    np.add.at(sums, np.searchsorted(chosen, ids), weights)
    return {data.feature_names[j]: float(w) for j, w in zip(chosen, sums, strict=True) if w != 0.0}


def column_of(name: str, position: int, n_features: int, data: Instance) -> int:
    """The column of `data` that is the feature `name`, which stood at `position` of `n_features`.

    Where one side has no names of its own (they are x1, x2, ...) and both have as many features, the column in
    the same place.

    Raises
    ------
    UsageError
        There is no such column.
    """
    if name in data.index:
        return data.index[name]
    unnamed = f"x{position + 1}"
    if data.n_features == n_features and unnamed in (name, data.feature_names[position]):
        return position
    raise UsageError(
        f"{data.source or 'the data'} has no feature {name!r}, which the classifier uses; "
        "give data with the columns of the training data"
    )
