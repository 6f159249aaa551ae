"""What `predict` uses of a result, and the objective of (P) at it: everything is recomputed from the data."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from mipfs.check.rounding import Array, Document, Integers, U, number, require
from mipfs.check.statement import Statement
from mipfs.data.instance import Instance

OBJECTIVE = 1e-9
"""Allowance on a recomputed objective, relative."""


@dataclass(frozen=True, eq=False)
class Classifier:
    """The incumbent: its atoms, and weights and intercept on the scaled data.

    Attributes
    ----------
    chosen : (k,) positions of the atoms with σ = 1
    ids, w : (m,) columns and their weights
    b : float
    rho : float, the margin that is asked for: 1, or ρ of the ρ-form
    far : float, the size of the terms that b is the sum of
    objective, error : float, at least the exact objective but for `error`; inf where there is no incumbent
    """

    chosen: Integers
    ids: Integers
    w: Array
    b: float
    rho: float
    far: float
    objective: float = math.inf
    error: float = 0.0


def read(statement: Statement, document: Document) -> Classifier:
    """The incumbent of a result, after all that the JSON says of it was compared with the data."""
    data, said = statement.data, document["n_features"]
    names = {"negative": data.labels.negative, "positive": data.labels.positive}
    for side, name in names.items():
        label = document["labels"][side]
        same = label == name or str(label) == str(name)
        require(same, f"the {side} label is {label!r}, but {name!r} in the data: every prediction would change")
    require(type(said) is int and said == data.n_features, f"{said!r} features, but the data has {data.n_features}")
    chosen, ids = statement.ids(document["selected"]), _columns(document["weights"], data)
    if document["objective"] is None:
        empty = chosen.size == ids.size == 0 and document["intercept"] is None
        require(empty, "features are selected, or have weights, but there is no objective")
        found = Classifier(chosen, ids, np.empty(0), 0.0, 1.0, 0.0)
    else:
        found = _evaluated(statement, document, chosen, ids)
    _check_reading(data, document.get("read"))
    _check_places(statement, document, {int(j) for g in chosen for j in statement.atoms.columns(g)})
    return found


def _check_places(statement: Statement, document: Document, used: set[int]) -> None:
    """Columns, shift and scale of the features that are used are those of the data."""
    data, places = statement.data, document["columns"]
    for name, place in places.items():
        right = data.index.get(name)
        require(type(place) is int and place == right, f"feature {name!r} is column {place!r}, but {right} in the data")
    require({*places.values()} == used, "the columns of the result are not those of the selected features")
    for what, values in (("shift", data.shift), ("scale", data.scale)):
        stated = dict(document["scaling"][what])
        require(stated.keys() == places.keys(), f"the {what} is not that of the selected features")
        for name, one in stated.items():
            exact = float(values[data.index[name]])
            require(one == exact, f"the {what} of {name!r} is {one!r}, but {exact!r} in the data")
    # training on sparse data centres what it has divided: which of the two comes first is a matter of rounding
    for name, one in dict(document["scaling"].get("center", {})).items():
        require(name in places, f"there is a center of {name!r}, which is not selected")
        shift, scale = (float(values[data.index[name]]) for values in (data.shift, data.scale))
        close = abs(number(one, "a center") * scale - shift) <= 8 * U * abs(shift)
        require(close, f"the center of {name!r} is {one!r}, which is not its shift over its scale")


def _check_reading(data: Instance, read: Any) -> None:
    """The column of the labels and the words of columns of words are those of the data, where it has them."""
    if read is None:
        return
    label, words = read["label"], dict(read["words"])
    same = label is None or data.label is None or label == data.label
    require(same, f"the labels stand in the column {data.label!r} of the data, not in {label!r}")
    for column, seen in words.items() if data.words else ():
        require(column in data.words, f"{column!r} is no column of words of the data")
        require([*seen] == [*data.words[column]], f"the words of the column {column!r} are not those of the data")


def _columns(names: Any, data: Instance) -> Integers:
    for name in names:
        require(name in data.index, f"the data has no feature {name!r}")
    return np.array([data.index[name] for name in names], dtype=np.int64)


def _evaluated(statement: Statement, document: Document, chosen: Integers, ids: Integers) -> Classifier:
    """The incumbent with its objective, after its membership in S."""
    data, claimed = statement.data, number(document["objective"], "the objective")
    total = float(statement.c.sum())
    require(chosen.size == np.unique(chosen).size, "a feature is selected twice")
    x = np.array([number(one["value"], "an extra variable") for one in statement.extra.values()])
    whole = np.array([one["integer"] for one in statement.extra.values()], dtype=bool)
    inside = (x >= statement.low) & (x <= statement.high)
    require(np.all(inside), "an extra variable lies outside its bounds")
    require(np.all(~whole | (x == np.rint(x))), "an extra variable is no whole number")
    broken = statement.holds(chosen, x)
    require(not broken, broken)
    used = {int(j) for g in chosen for j in statement.atoms.columns(g)}
    require(all(int(j) in used for j in ids), "a feature that is not selected has a weight")
    weights = np.array([number(value, "a weight") for value in document["weights"].values()])
    b = number(document["intercept"], "the intercept")
    w, moved = weights * data.scale[ids], weights * data.shift[ids]
    far = abs(b) + float(np.abs(moved).sum())
    b += math.fsum(moved)
    none = statement.bias or abs(b) * total <= 16 * U * total * far + OBJECTIVE * max(1e-10, abs(claimed))
    require(none, "there is an intercept, but the problem has no bias")
    b, far = (b, far) if statement.bias else (0.0, 0.0)
    rho = 1.0 if statement.margin == "unit" else -2.0 * claimed
    require(rho > 0, f"the objective of the ρ-form is {claimed!r}, it must be negative")
    found, error = value(statement, chosen, Classifier(chosen, ids, w, b, rho, far))
    require(math.isfinite(found + error), "the objective of the selected features is beyond floating point")
    meets = abs(found - claimed) <= OBJECTIVE * max(1e-10, abs(found)) + error
    require(meets, f"the objective of the selected features is {found!r}, not {claimed!r}")
    return Classifier(chosen, ids, w, b, rho, far, max(found, claimed), error)


def value(statement: Statement, chosen: Integers, at: Classifier) -> tuple[float, float]:
    """The objective of (P) with the atoms `chosen` and the weights of `at` on their columns, and its rounding error.

    A column of several chosen atoms has its weight split among them as costs least: ½ w²/(Σ λ_g²).
    """
    atoms, data = statement.atoms, statement.data
    lam = np.ones(chosen.size) if atoms.scale is None else atoms.scale[chosen]
    largest = float(lam.max(initial=0.0)) or 1.0
    parts = [atoms.columns(g) for g in chosen]
    each = np.repeat((lam / largest) ** 2, [part.size for part in parts])
    columns, place = np.unique(np.concatenate([*parts, at.ids]), return_inverse=True)
    room = np.bincount(place[: each.size], each, columns.size)[place[each.size :]]  # of the columns at.ids
    held = np.flatnonzero(room > 0)
    require(chosen is not at.chosen or not np.any(np.delete(at.w, held)), "a weight stands on an atom of scale zero")
    ids, w = at.ids[held], at.w[held]
    per_atom = w / (largest * np.sqrt(room[held]))
    center, Z = data.center[ids], data.block(ids).values
    m = data.y * (np.asarray(Z @ w).ravel() + (at.b - float(center @ w)))
    far = at.far + float(np.abs(center) @ np.abs(w))
    off = (ids.size + 16) * U * (np.asarray(abs(Z) @ np.abs(w)).ravel() + far)
    require(np.all(np.isfinite(m + off)), "a margin is beyond floating point")
    loss, error = statement.loss_at(m, off, at.rho)
    regular = float(statement.penalty[chosen].sum() + 0.5 * per_atom @ per_atom)
    if statement.margin == "rho":
        return regular + loss - at.rho, error + 8 * U * (regular + loss + at.rho)
    return regular + loss, error
