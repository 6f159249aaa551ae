"""The statement that was checked, in words, and how it differs from what the data's own description asks for."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mipfs.check import phrases
from mipfs.check.bounded import BoundedRidge
from mipfs.check.made import MadeAtoms
from mipfs.check.rounding import require
from mipfs.check.statement import Statement
from mipfs.data.instance import Instance, Row
from mipfs.data.over_groups import RowsOverFeatures, over_features

Key = tuple[str, tuple[tuple[str, float], ...], float, float]
BINARY = {"lb": 0.0, "ub": 1.0, "integer": True}
"""The variable that stands for a group of features in rows."""


def in_words(statement: Statement, read: Sequence[str] = ()) -> tuple[str, ...]:
    """The problem, one line for each of its parts and rows; and how a table was `read`."""
    data = statement.data
    params = statement.params
    atoms = statement.atoms
    what = "features" if atoms.single else "atoms"
    raw = atoms.raw if isinstance(atoms, MadeAtoms) else data
    loss = statement.stated.words if statement.margin == "unit" else phrases.RHO
    own = statement.regulariser
    bounds = own.words if isinstance(own, BoundedRidge) else ""
    term = phrases.PLAIN_TERM if own is None or bounds else phrases.describe_regulariser(own.words)
    lines = [
        phrases.objective(term, loss, params["C"], phrases.intercept(statement.bias, statement.constant)),
        f"data: {data.n_samples} samples, {raw.n_features} features, scale {raw.scaling!r}",
        _describe_selection(statement, what),
        *read,
    ]
    if bounds:
        lines.append(f"weights: {bounds}")
    lines += [f"weights: {one}" for one in ([] if statement.ends is None else statement.ends.words())]
    if "measure" in params:
        lines.insert(1, phrases.measure(params))
    if statement.class_weights is not None:
        lines.append(_describe_class_weights(statement.class_weights, data))
    if not np.all(data.sample_weight == 1.0):
        its = "its own weight" if statement.class_weights is None else "the weights of its class and its own"
        lines.append(f"sample i has C times {its}")
    if not atoms.single:
        lines.append(f"{atoms.count} atoms of {int(atoms.sizes.sum())} columns, such as {_describe_atom(statement, 0)}")
    if isinstance(atoms, MadeAtoms):
        lines.append(phrases.describe_functions(atoms.made))
    if atoms.scale is not None:
        lines.append(f"the {what} are scaled by λ from {atoms.scale.min():.6g} to {atoms.scale.max():.6g}")
    if statement.penalty.any():
        lines.append(f"penalties: {_describe_penalties(statement)}")
    lines += [_describe_row(row) for row in statement.rows]
    lines += [phrases.extra(name, one) for name, one in statement.extra.items()]
    return tuple(lines)


def _describe_class_weights(weights: tuple[float, float], data: Instance) -> str:
    """The weights of the classes."""
    pairs = zip((data.labels.negative, data.labels.positive), weights, strict=True)
    return f"class weights: {phrases.class_weights(pairs)}"


def _describe_selection(statement: Statement, what: str) -> str:
    names, fixed = statement.atoms.names, statement.fixed
    always, never = ([names[int(j)] for j in fixed[statement.forced[fixed] == value]] for value in (1, 0))
    return phrases.selection(statement.params["M"], f"{statement.p} {what}", always, never)


def _describe_atom(statement: Statement, g: int) -> str:
    names = statement.data.feature_names
    return f"{statement.atoms.names[g]} = {{{phrases.list_names(names[int(j)] for j in statement.atoms.columns(g))}}}"


def _describe_penalties(statement: Statement) -> str:
    c = statement.penalty
    names = statement.atoms.names
    if c.strides == (0,) or np.all(c == c[0]):  # one number for all, or equal ones
        return f"{phrases.number(c[0])} each"
    return phrases.list_names(f"{names[int(j)]} {phrases.number(c[j])}" for j in np.flatnonzero(c))


def _describe_row(row: Mapping[str, Any]) -> str:
    origin = f" ({row['origin']})" if row.get("origin") else ""
    return f"row {row['name']!r}: {phrases.row(row)}{origin}"


def compare(statement: Statement, given: Mapping[str, Any] | None) -> tuple[str, ...]:
    """What the data's description asks for and the statement does not; rows that were given are its rows, or rejected.

    A model may be without a row of the description: its user took it out. That is said, and the model is what counts.

    Parameters
    ----------
    statement : Statement
    given : mapping {"rows", "extra"}, optional
        The rows that the user says hold beside those of the data, as the JSON of a result has them.

    Returns
    -------
    tuple of str
        What differs, one line each.
    """
    data = statement.data
    stated = [_key_of_row(row) for row in statement.rows]
    found = list[str]()
    over = over_features(data.rows, statement.atoms.index, data.groups)
    own = [*map(_key_of_given, over.rows)]
    asks = "the data asks for {}; the result's problem does not have it"
    found += [asks.format(_row_text(row)) for row in _rows_left_out(statement, over, stated)]
    for value, names, word in ((1, data.select.forced_in, "in"), (0, data.select.forced_out, "out")):
        index = statement.atoms.index
        forced = statement.forced
        met = (statement.M < 0 or (name in index and forced[index[name]] == value) for name in names)
        left = [name for name, holds in zip(names, met, strict=True) if not holds]
        found += [f"the data forces {name!r} {word}; the result's problem does not" for name in left]
    if given is not None:
        held = [key for key in own if key in stated]
        extra = {name: BINARY for name in over.counted if name in statement.extra} | dict(given["extra"])
        _compare_rows(statement, [*held, *map(_key_of_row, given["rows"])], extra)
    found += _bounds_left_out(statement)
    found += _weight_rows_left_out(statement)
    wanted = data.class_weights(data.class_weight)
    if wanted is not None and wanted != statement.class_weights:
        has = "none" if statement.class_weights is None else _describe_class_weights(statement.class_weights, data)
        found.append(f"the data asks for {_describe_class_weights(wanted, data)}; the result has {has}")
    asked = data.select.M
    M = statement.params["M"]
    same = asked is None or asked == M
    return (*found, *(() if same else (f"M is {'none' if M is None else M}; the data asks for {asked}",)))


def _bounds_left_out(statement: Statement) -> list[str]:
    """The bounds on weights that the data asks for, and within which the statement does not hold them."""
    stated = statement.params.get("weight_bounds") or {}
    found = []
    for name, asked in statement.data.weight_bounds.items():
        low, high = stated.get(name, (None, None))
        least, most = (-math.inf if low is None else low), (math.inf if high is None else high)
        if not asked[0] <= least <= most <= asked[1]:
            held = [*asked]
            found.append(f"the data asks for a weight of {name!r} in {held}; the result's problem does not")
    return found


def _weight_rows_left_out(statement: Statement) -> list[str]:
    """The rows over the weights that the data asks for, and the statement does not have."""
    stated = [] if statement.ends is None else statement.ends.stated
    found = []
    for row in statement.data.weight_rows:
        low, high = (end if math.isfinite(end) else None for end in (row.lower, row.upper))
        if (row.terms, low, high) not in stated:
            said = phrases.weight_row(row.terms, low, high, 0.0)
            found.append(f"the data asks for {said}; the result's problem does not have it")
    return found


def _rows_left_out(statement: Statement, over: RowsOverFeatures, stated: Sequence[Key]) -> list[Row]:
    """The rows of the data that the statement does not have, as they are written over features."""
    tied = all(_key_of_given(row) in stated for row in over.ties)
    held = {name: tied and _is_binary(statement.extra.get(name)) for name in over.counted}
    left = []
    for rows, row in zip(over.written, statement.data.rows, strict=True):
        has = all(_key_of_given(one) in stated for one in rows)
        if not (has and all(held.get(name, True) for one in rows for name in one.terms)):
            left.append(row)
    return left


def _is_binary(extra: Mapping[str, Any] | None) -> bool:
    return extra is not None and all(extra.get(what) == value for what, value in BINARY.items())


def _compare_rows(statement: Statement, wanted: Sequence[Key], extra: Mapping[str, Any]) -> None:
    """Reject rows and extra variables that are not exactly the wanted ones."""
    left = list(wanted)
    for row in statement.rows:
        key = _key_of_row(row)
        hint = " (--model FILE.py gives those of a model)" if str(row.get("origin", "")).startswith("model.") else ""
        require(key in left, f"{_describe_row(row)}: it is neither a row of the data nor one of those given{hint}")
        left.remove(key)
    require(not left, f"the given row {left[0][0] if left else ''!r} is no row of the result's problem")
    require(statement.extra.keys() == extra.keys(), "the extra variables are not those of the given rows")
    for name, one in statement.extra.items():
        same = all(one[what] == extra[name][what] for what in ("lb", "ub", "integer"))
        same = same and one.get("cost", 0.0) == extra[name].get("cost", 0.0)
        require(same, f"extra variable {name!r} has other bounds, another cost or kind, than in the given rows")


def _row_key(name: str, terms: Mapping[str, float], low: float, high: float) -> Key:
    return name, tuple(sorted((term, float(a)) for term, a in terms.items() if a != 0)), low, high


def _key_of_given(row: Row) -> Key:
    return _row_key(row.name, row.terms, row.lb, row.ub)


def _key_of_row(row: Mapping[str, Any]) -> Key:
    low, high = (-math.inf if row["lb"] is None else row["lb"]), (math.inf if row["ub"] is None else row["ub"])
    return _row_key(row["name"], row["terms"], float(low), float(high))


def _row_text(row: Row) -> str:
    ends = [float(end) if math.isfinite(end) else None for end in (row.lb, row.ub)]
    return _describe_row({"name": row.name, "terms": row.terms, "lb": ends[0], "ub": ends[1], "origin": row.origin})
