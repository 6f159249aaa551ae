"""From a result and new data to decision values: which columns the weights belong to, and on which scale.

The values of the columns are brought to the scale of training by the arithmetic of training
(`mipfs.data.matrix.scaled_user_values`), and added up in an order that depends on the row alone (`mipfs.data.linear`):
a row of the training data has the decision value of the classifier whose objective was proven, wherever it stands.
"""

from __future__ import annotations

import math
import re
from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from mipfs.data import linear
from mipfs.data.checks import as_array
from mipfs.data.frames import as_rows, is_frame
from mipfs.data.instance import Instance
from mipfs.data.matrix import scaled_user_values
from mipfs.data.rules import TWO_WORDS_RULES
from mipfs.data.unknown_words import Unknown, is_none, refuse_none_of_two, warn_of_unknown
from mipfs.errors import DataError, UsageError
from mipfs.plumbing.arrays import Array, Integers
from mipfs.readers import read_new
from mipfs.readers.columns import again
from mipfs.readers.frames import as_words, column_values, place_of
from mipfs.report.numbers import first_of
from mipfs.result.interactions import functions_of, groups_of, made_of, sum_functions, used_columns

if TYPE_CHECKING:
    from mipfs.result.result import Result

CUT = re.compile(r"(.+) (from|is) (-?\d+(?:\.\d+)?(?:e[+-]?\d+)?|missing)(?: but not (.*))?")
"""Names of the features that `mipfs bins` makes of a column."""
MOST_DIGITS = 17
"""Significant digits that tell all doubles apart."""
MOST_NAMES = 12
"""Columns or categories that a message lists."""
NUMBERS = "give numbers, a data frame or rows with the names of training (a dict, or a list of them), or an Instance"


@dataclass(frozen=True, eq=False)
class Inputs:
    """The features that a classifier looks at, and how training scaled them: (value − shift)/scale − center.

    Attributes
    ----------
    names : tuple of str
    columns : tuple of int, where they stood in training
    n_features : int, of the training data
    shift, scale, center : (k,); one of shift and center is 0: by the first rules (`mipfs.data.rules`) sparse columns
        are divided first, and centred then
    """

    names: tuple[str, ...]
    columns: tuple[int, ...]
    n_features: int
    shift: Array
    scale: Array
    center: Array

    @classmethod
    def of(cls, result: Result) -> Inputs:
        """Those of a result over features of the data, or over products or functions of them."""
        made = functions_of(result)
        if made is None:
            return cls._inputs_over(result, used_columns(result))
        places = [*made["features"].values()]
        columns = tuple(one["column"] for one in places)
        shift, scale, center = ([one.get(key, 0.0) for one in places] for key in ("shift", "scale", "center"))
        return cls._scale_columns(tuple(made["features"]), columns, made["n_features"], shift, scale, center)

    @classmethod
    def of_computed_columns(cls, result: Result) -> Inputs:
        """Those of a result over functions, where the columns that are made of the features are given themselves."""
        return cls._inputs_over(result, tuple(result.weights))

    @classmethod
    def _inputs_over(cls, result: Result, names: tuple[str, ...]) -> Inputs:
        shift, scale = result.scaling["shift"], result.scaling["scale"]
        center = result.scaling.get("center", {})
        columns = tuple(result.columns[name] for name in names)
        values = ([table.get(name, usual) for name in names] for table, usual in ((shift, 0), (scale, 1), (center, 0)))
        return cls._scale_columns(names, columns, result.n_features, *values)

    @classmethod
    def _scale_columns(
        cls, names: tuple[str, ...], columns: tuple[int, ...], n_features: int, *table: Sequence[float]
    ) -> Inputs:
        shift, scale, center = (np.array(values, dtype=float) for values in table)
        return cls(names, columns, n_features, np.where(center == 0.0, shift, 0.0), scale, center)

    def by_name(self, values: Values) -> dict[str, Array]:
        """The columns (n,) of new rows as the scaled training data has them, dense."""
        found = values.matrix.toarray() if sparse.issparse(values.matrix) else values.matrix
        divided = found if values.are_divided else scaled_user_values(found, self.shift, self.scale)
        return dict(zip(self.names, np.ascontiguousarray((divided - self.center).T), strict=True))

    def match(self, data: Instance, ids: Integers) -> bool:
        """Whether the columns `ids` (k,) of an instance are scaled as these are."""
        if np.any(self.center) or np.any(data.center[ids]):  # what is centred implicitly is rounded once more
            return False
        return np.array_equal(data.shift[ids], self.shift) and np.array_equal(data.scale[ids], self.scale)


@dataclass(frozen=True, eq=False)
class Values:
    """The columns (n, k) of new rows that a classifier looks at: the user's, or (value − shift)/scale of training."""

    matrix: Any
    are_divided: bool = False


def decision_values(result: Result, X: Any, unknown: Unknown = "refuse") -> Array:
    """w'x + b of every row of `X`, shape (n,); see `Result.decision_function`."""
    if is_none(unknown):
        X = _rows_of_known_words(result, X)
    made = functions_of(result)
    if made is not None and isinstance(X, Instance) and getattr(X.block().values, "raw", None) is not None:
        return _of_features(result, Inputs.of_computed_columns(result), X)
    if made is None and made_of(result) is None:
        return _of_features(result, Inputs.of(result), X)
    inputs = Inputs.of(result)
    values = _input_values(result, inputs, X)
    columns = inputs.by_name(values)
    n = values.matrix.shape[0]
    if made is None:
        return sum_functions(result, columns, n)
    from mipfs.atoms.registry import decision

    return (decision(made, result.weights, columns) if columns else np.zeros(n)) + result.intercept


def _of_features(result: Result, inputs: Inputs, X: Any) -> Array:
    """w'x + b, where every weight is that of a column of `X`."""
    values = _input_values(result, inputs, X)
    weights = np.array([result.weights[name] for name in inputs.names], dtype=float)
    if not values.are_divided:
        return linear.decision(values.matrix, weights, result.intercept, inputs.shift, inputs.scale)
    divided = linear.combine_columns(values.matrix, weights * inputs.scale)
    return divided + linear.at_means(weights, result.intercept, inputs.shift)


def user_columns(result: Result, X: Any, unknown: Unknown = "refuse") -> dict[str, Array]:
    """The values (n,) of every feature that the classifier uses in the rows of `X`, on the user's scale, dense."""
    if is_none(unknown):
        X = _rows_of_known_words(result, X)
    found = Inputs.of(result)
    values = _input_values(result, found, X)
    matrix = values.matrix.toarray() if sparse.issparse(values.matrix) else np.asarray(values.matrix)
    if values.are_divided:
        matrix = as_given(matrix, found.shift, found.scale)
    return dict(zip(found.names, np.ascontiguousarray(matrix.T, dtype=float), strict=True))


def using(result: Result, data: Instance, names: Sequence[str]) -> Result:
    """A result that looks at these features of its training data, whatever its own classifier uses, as training did.

    Their weights are 1: it is for `user_columns`, and for rows of other data.
    """
    ids = data.columns_of(list(names))
    table = {
        key: {name: float(held[j]) for name, j in zip(names, ids.tolist(), strict=True)}
        for key, held in (("shift", data.shift), ("scale", data.scale), ("center", data.center))
    }
    read = None if result.read is None else {**result.read, "words": {c: [*seen] for c, seen in data.words.items()}}
    return replace(
        result,
        weights=dict.fromkeys(names, 1.0),
        columns=dict(zip(names, ids.tolist(), strict=True)),
        scaling={**result.scaling, **table},
        read=read,
    )


def as_given(divided: Array, shift: Array, scale: Array) -> Array:
    """The user's values (n, k) of columns that were scaled: the shortest decimals whose scaled values these are.

    Scaled back, 16.2 may be 16.199999999999996, and 0 a rounding error of the shift.
    """
    found = divided * scale + shift
    sizes = np.maximum(np.abs(found), np.abs(shift))
    first = -np.floor(np.log10(np.where(sizes == 0.0, 1.0, sizes))).astype(int)
    is_open = np.broadcast_to((shift != 0.0) | (scale != 1.0), found.shape).copy()
    for more in range(MOST_DIGITS + 2):
        if not np.any(is_open):
            break
        if more < MOST_DIGITS:
            power = 10.0 ** np.clip(np.abs(first + more), 0, 300)
            with np.errstate(over="ignore"):
                tried = np.where(first + more >= 0, np.rint(found * power) / power, np.rint(found / power) * power)
        else:  # as many digits as there are, and scaled back to the double beside it
            tried = np.nextafter(found, np.inf if more == MOST_DIGITS else -np.inf)
        is_it = is_open & (scaled_user_values(tried, shift, scale) == divided)
        found[is_it] = tried[is_it]
        is_open &= ~is_it
    return found


def classifier_inputs(result: Result) -> tuple[tuple[str, ...], int]:
    """The features that the classifier uses, by name, and how many features the user's data has."""
    found = Inputs.of(result)
    return found.names, found.n_features


def count_of(result: Result) -> int:
    """How many there are to select from."""
    made = made_of(result)
    if made is not None:
        return int(made["count"])
    names = None if result.atoms is None else result.atoms.get("names")
    return Inputs.of(result).n_features if names is None else len(names)


def weight_by_feature(result: Result) -> dict[str, float]:
    """The weight of every feature that is selected, or stands in a group that is; ‖w_j‖ of a function that is made."""
    if (groups := groups_of(result)) is not None:
        alone = {
            name: 0.0 for name in result.selected if not any(one in result.weights for one in groups.get(name, ()))
        }
        return {**result.weights, **alone}
    if functions_of(result) is None:
        return {name: result.weights.get(name, 0.0) for name in result.selected}
    squares = dict.fromkeys(result.selected, 0.0)
    for name, weight in result.weights.items():
        squares[name.rpartition("[")[0]] += weight * weight
    return {name: math.sqrt(value) for name, value in squares.items()}


def _input_values(result: Result, inputs: Inputs, X: Any) -> Values:
    """The columns that are looked at.

    Raises
    ------
    UsageError
        A column is missing, or holds words that training did not see.
    DataError
        A value that is no finite number.
    """
    X = _read(result, X)
    if isinstance(X, Instance):
        return _of_instance(result, inputs, X)
    if is_frame(X):
        columns = [_of_frame(result, inputs, X, k) for k in range(len(inputs.names))]
        return Values(np.array(columns).reshape(len(columns), len(X)).T)
    matrix = _as_numbers(sparse.csr_array(X) if sparse.issparse(X) else as_array(X))
    if matrix.ndim != 2 or matrix.shape[1] != inputs.n_features:
        raise UsageError(f"the array has shape {matrix.shape}; the classifier needs (n, {inputs.n_features})")
    used = matrix[:, list(inputs.columns)].astype(np.float64)
    _check_finite(used, inputs.names)
    return Values(used)


def _read(result: Result, X: Any) -> Any:
    """Rows as they are looked at: a data frame by the recipe of training, where there is one."""
    X = as_rows(X)
    if not is_frame(X) or result.recipe is None:
        return X
    return read_new(X, names=Inputs.of(result).names, remembered=result.label_column, recipe=result.recipe)


def _as_numbers(matrix: Any) -> Any:
    """An array or sparse matrix of real numbers."""
    if matrix.dtype.kind in "biuf":
        return matrix
    if matrix.dtype.kind not in "OUS":
        raise UsageError(f"X holds values of type {matrix.dtype}; {NUMBERS}")
    try:
        if matrix.dtype.kind == "O":
            return matrix.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        pass
    raise UsageError(f"X holds words; {NUMBERS}")


def _check_finite(used: Any, names: Sequence[str]) -> None:
    """Refuse NaN and infinity: no label stands for them."""
    if np.all(np.isfinite(used.data if sparse.issparse(used) else used)):
        return
    found = sparse.coo_array(used)
    at = int(np.argmin(np.isfinite(found.data)))
    row = int(found.coords[0][at]) + 1
    column = names[int(found.coords[1][at])]
    value = found.data[at]
    raise DataError(f"row {row} has {value} for {column!r}, which the classifier uses", "give finite numbers")


def _of_instance(result: Result, inputs: Inputs, data: Instance) -> Values:
    """The columns of an instance: as they are where it is scaled as the training data was, else the user's values."""
    absent = _absent_words(result, inputs, data)
    said = [_said_by_another(name, data) for name in inputs.names]
    kept = np.flatnonzero(~absent)
    places = [column_of(said[k] or inputs.names[k], inputs.columns[k], inputs.n_features, data) for k in kept]
    ids = np.array(places, dtype=np.int64)
    if not absent.any() and not any(said) and inputs.match(data, ids):
        return Values(data.block(ids).values, are_divided=True)
    found = user_values(data, ids)
    if absent.any() or any(said):
        full = np.zeros((data.n_samples, absent.size))
        full[:, kept] = found.toarray() if sparse.issparse(found) else found
        turned = [k for k in kept if said[k]]
        full[:, turned] = 1.0 - np.rint(full[:, turned])
        found = full
    return Values(found)


def _said_by_another(name: str, data: Instance) -> str | None:
    """The one feature of a column of two words, where `name` is the other word's; None where it is none such."""
    if name in data.index:
        return None
    for column, words in data.words.items():
        if len(words) == 2 and name in (f"{column}={word}" for word in words):
            return next((one for one in (f"{column}={word}" for word in words) if one in data.index), None)
    return None


def _absent_words(result: Result, inputs: Inputs, data: Instance) -> npt.NDArray[np.bool_]:
    """Features ``column=word`` of words that no row of an instance has, (k,).

    Raises
    ------
    UsageError
        A row has a word that training did not see, or the result does not say which words it saw.
    """
    known = _words_of(result)
    absent = np.zeros(len(inputs.names), dtype=bool)
    for k, name in enumerate(inputs.names):
        column = _column_of_words(name, known)
        if column is None and (strange := next((c for c in data.words if name.startswith(f"{c}=")), None)) is not None:
            raise UsageError(
                f"{data.source or 'the data'}: {strange!r} is a column of words, and the result uses {name!r} but does "
                f"not say which words training saw (read.words): it was changed, or found on arrays; give a result "
                f"that was not changed, or the column {name!r} itself, of 0 and 1"
            )
        if column is None or column not in data.words or data.words[column] == known[column]:
            continue
        for word in data.words[column]:
            if word not in known[column]:
                row = int(_rows_with(data, f"{column}={word}")[0])
                raise _unseen_word_error(data.source or "the data", column, word, f"in row {row + 1}", known[column])
        absent[k] = name not in data.index and _said_by_another(name, data) is None
    return absent


def of_known_words(result: Result, data: Instance) -> Instance:
    """The rows, where a word that training did not see is none of the words of its column; how many is said.

    Warns
    -----
    DataWarning
        There are such rows.
    """
    known, kept = _words_of(result), dict(data.words)
    for column in (one for one in known if one in data.words):
        strange = [word for word in data.words[column] if word not in known[column]]
        if strange:
            if _is_one(result, column, known[column]):
                refuse_none_of_two(column, known[column], strange[0])
            count = sum(_rows_with(data, f"{column}={word}").size for word in strange)
            warn_of_unknown(data.source or "the data", column, strange[0], count)
        kept[column] = tuple(word for word in data.words[column] if word in known[column])
    return replace(data, words=kept)


def _rows_of_known_words(result: Result, X: Any) -> Any:
    """Rows of any kind where a word that training did not see is none of the known ones; an array has no words."""
    X = _read(result, X)
    if isinstance(X, Instance):
        return of_known_words(result, X)
    if not is_frame(X):
        return X
    there = _column_positions(X)
    known = {column: words for column, words in _words_of(result).items() if column in there}
    X = X.copy(deep=False)
    for column, words in known.items():
        at = there[column]
        found = _words_of_column(X, at, column, words)
        strange = ~np.isin(found, words)
        if strange.any():
            if _is_one(result, column, words):
                refuse_none_of_two(column, words, str(found[strange][0]))
            warn_of_unknown("the data frame", column, str(found[strange][0]), int(strange.sum()))
        for word in words:
            if f"{column}={word}" not in there:  # which is taken as it stands
                X[f"{column}={word}"] = (found == word).astype(float)
    return X


def _is_one(result: Result, column: str, words: Sequence[str]) -> bool:
    """Whether a column of two words was one feature in training."""
    return result.rules >= TWO_WORDS_RULES and len(words) == 2


def _column_positions(frame: Any) -> dict[str, int]:
    """Where the columns of a data frame stand, by name, and by the name without blanks around it."""
    names = {str(column): at for at, column in enumerate(frame.columns)}
    return {name.strip(): at for name, at in names.items()} | names


def _rows_with(data: Instance, feature: str) -> Integers:
    """The rows that have a word, by its feature of 0 and 1."""
    other = _said_by_another(feature, data)
    values = user_values(data, np.array([data.index[other or feature]]))
    has = (values.toarray() if sparse.issparse(values) else values)[:, 0] > 0.5
    return np.flatnonzero(~has if other else has)


def user_values(data: Instance, ids: Integers) -> Any:
    """The columns `ids` (k,) of an instance on the user's scale: sparse ones stay sparse but for a shift."""
    if np.any(data.center[ids]) and (kept := data.unscaled_of(ids)) is not None:
        return kept
    values = data.block(ids).values
    scale = data.scale[ids]
    shift = np.where(data.center[ids] == 0.0, data.shift[ids], 0.0)  # nothing was taken off what is centred implicitly
    if not sparse.issparse(values):
        return values if data.scaling == "none" else values * scale + shift
    product = values * scale
    return product.toarray() + shift if np.any(shift) else product


def _of_frame(result: Result, inputs: Inputs, frame: Any, k: int) -> Array:
    """The values (n,) of feature k in a data frame: its column, or where a column of words has the word.

    Raises
    ------
    UsageError
        No such column, or words that training did not see.
    DataError
        A missing value, or one of another kind.
    """
    name = inputs.names[k]
    place = inputs.columns[k]
    places = _column_positions(frame)
    if name in places:
        values = column_values(frame, places[name], name, preparing=again(None, [name]))
        if values.dtype.kind == "f":
            return values.astype(float)
        raise UsageError(f"column {name!r} of the data frame holds words, but numbers when the classifier was trained")
    known = _words_of(result)
    column = _column_of_words(name, known)
    if column is None and name == f"x{place + 1}" and len(places) == inputs.n_features:  # trained without names
        return np.asarray(column_values(frame, place, str(frame.columns[place])), dtype=float)
    if column is None or column not in places:
        of = name if column is None else column
        there = first_of([*places], MOST_NAMES, repr)
        hint = _cut_hint(name, places) or f"it has {there}"
        raise UsageError(f"the data frame has no column {of!r}, which the classifier uses; {hint}")
    found = _words_of_column(frame, places[column], column, known[column])
    strange = np.flatnonzero(~np.isin(found, known[column]))
    if strange.size:
        row = f"at {place_of(frame.index, int(strange[0]))}"
        raise _unseen_word_error("the data frame", column, str(found[strange[0]]), row, known[column])
    return np.asarray(found == name[len(column) + 1 :], dtype=float)


def _words_of_column(frame: Any, place: int, column: str, known: Sequence[str]) -> npt.NDArray[Any]:
    """A column of new rows as words, of which training knew some."""
    preparing = again(None, [f"{column}={word}" for word in known])
    return as_words(column_values(frame, place, column, mixed=True, preparing=preparing))


def _words_of(result: Result) -> dict[str, tuple[str, ...]]:
    """The words of the columns of words that the classifier uses, as training saw them."""
    words = (result.read or {}).get("words", {})
    return {column: tuple(seen) for column, seen in words.items()}


def _column_of_words(name: str, known: dict[str, tuple[str, ...]]) -> str | None:
    """The column of words that a feature ``column=word`` comes from."""
    return next((c for c, words in known.items() if name.startswith(f"{c}=") and name[len(c) + 1 :] in words), None)


def _unseen_word_error(where: str, column: str, word: str, row: str, known: tuple[str, ...]) -> UsageError:
    """The error of a category that training did not see."""
    return UsageError(
        f"{where}: column {column!r} is {word!r} {row}, a category that training did not see: it knows "
        f"{first_of(known, MOST_NAMES, repr)}; leave the row out, write one of these, or let it be none of them "
        "(--unknown none; in Python unknown='none' of predict, predict_proba and decision_function)"
    )


def scores_on(
    data: Instance,
    ids: Integers,
    weights: Array,
    intercept: float,
    shift: Array | None = None,
    scale: Array | None = None,
) -> Array:
    """w'x + b on the columns `ids` of an instance, for weights on the user's scale, shape (n,).

    The instance may be scaled in its own way, which is undone. `shift` and `scale` (k,) are those of training, by whose
    arithmetic the values are then taken.
    """
    none, one = np.zeros(ids.size), np.ones(ids.size)
    taken = none if shift is None else shift, one if scale is None else scale
    return linear.decision(user_values(data, ids), weights, intercept, *taken)


def weights_by_name(data: Instance, ids: npt.NDArray[np.int64], weights: Array) -> dict[str, float]:
    """The non-zero weights by feature name; those of a column that stands twice are added up."""
    chosen = np.unique(ids)
    sums = np.zeros(chosen.size)
    np.add.at(sums, np.searchsorted(chosen, ids), weights)
    held = data.n_features - (data.constant != 0.0)  # the weight of a constant column is the intercept's
    return {data.feature_names[j]: float(w) for j, w in zip(chosen, sums, strict=True) if w != 0.0 and j < held}


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
    hint = _cut_hint(name, data.index) or "give data with the columns of the training data"
    raise UsageError(f"{data.source or 'the data'} has no feature {name!r}, which the classifier uses; {hint}")


def _cut_hint(name: str, there: Container[str]) -> str:
    """How a table becomes one with the features that `mipfs bins` made, where it has the column of this one."""
    cut = CUT.fullmatch(name)
    if cut is None or cut[1] not in there:
        return ""
    return "cut the table as that of training was: mipfs bins TABLE.csv --like TRAINING.bins.json -o CUT.csv"
