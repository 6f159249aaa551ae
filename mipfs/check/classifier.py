"""What `predict` uses of a result, and the objective of (P) at it: everything is recomputed from the data.

Also here: margins in rational arithmetic, for the samples of which floating point cannot tell the loss.

All numbers of (P) are floats, so that a margin is a whole number times a power of two: Python's integers hold it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from mipfs.check.bounded import BoundedRidge
from mipfs.check.known import names_label
from mipfs.check.regulariser import terms_above
from mipfs.check.rounding import NEAR, TINY, Array, Document, Integers, U, number, require
from mipfs.check.statement import Statement
from mipfs.data.instance import Instance
from mipfs.data.rules import FIRST_RULES

AT_ONCE = 1 << 18
"""Values that are held as Python's integers at a time, each of some 60 bytes."""
DIGITS = 53
"""Binary digits of a float."""


def margin_shortfalls(
    X: Any, y: Array, weights: Sequence[Fraction], b: Fraction, target: float
) -> tuple[list[int], int]:
    """How far margins fall short: target − y_i(x_i'w + b), as whole numbers (n,) and the exponent of a power of two.

    Parameters
    ----------
    X : (n, k) array, or sparse matrix, of the columns that have weights
    y : (n,) labels
    weights, b : rational numbers whose denominators are powers of two
    """
    by_row = X if isinstance(X, np.ndarray) else X.tocsr()
    step = max(1, AT_ONCE // max(1, len(weights)))
    ends = [(start, min(start + step, y.size)) for start in range(0, y.size, step)]
    parts = [_of_rows(_as_dense(by_row[low:high]), y[low:high], weights, b, target) for low, high in ends]
    least = min(exponent for _, exponent in parts)
    return [one << (exponent - least) for whole, exponent in parts for one in whole], least


def round_scaled(whole: Iterable[int], exponent: int) -> Array:
    """The floats nearest to whole_i·2^exponent."""
    above, below = 1 << max(exponent, 0), 1 << max(-exponent, 0)
    return np.array([(one * above) / below for one in whole], dtype=float)  # a quotient is rounded correctly


def _as_dense(X: Any) -> Array:
    return np.asarray(X if isinstance(X, np.ndarray) else X.toarray(), dtype=float)


def _of_rows(X: Array, y: Array, weights: Sequence[Fraction], b: Fraction, target: float) -> tuple[list[int], int]:
    terms = [*_scaled_products(X, weights), (np.full(y.size, b.numerator, dtype=object), _power_of_two_exponent(b))]
    goal = Fraction(target)
    # All terms are multiples of one power of two: sums of integers are exact.
    least = min([_power_of_two_exponent(goal), *(exponent for _, exponent in terms)])
    total = np.zeros(y.size, dtype=object)
    for whole, exponent in terms:
        total += whole << (exponent - least)
    found: list[int] = (
        (goal.numerator << (_power_of_two_exponent(goal) - least)) - np.where(y > 0, total, -total)
    ).tolist()
    return found, least


def _scaled_products(X: Array, weights: Sequence[Fraction]) -> Iterator[tuple[Any, int]]:
    """x_ij w_j of column after column: integers (n,) and the exponent of the power of two that they are times."""
    for column, weight in zip(X.T, weights, strict=True):
        mantissa, exponent = np.frexp(column)
        whole = np.ldexp(mantissa, DIGITS).astype(np.int64)
        held = np.flatnonzero(whole)
        least = int(exponent[held].min()) if held.size else 0
        places = np.zeros(column.size, dtype=object)
        places[held] = (exponent[held] - least).tolist()
        yield (whole.astype(object) << places) * weight.numerator, least - DIGITS + _power_of_two_exponent(weight)


def _power_of_two_exponent(value: Fraction) -> int:
    """The e of a rational number numerator·2^e."""
    return 1 - value.denominator.bit_length()


DOUBTFUL_ERROR = 1e-11
"""The error of an objective, relative, above which margins are recomputed exactly: far below `NEAR`."""
NOTHING = Fraction(0)
MOST_ERROR = 1e-6
"""The error, relative, from which on rounding leaves an objective in doubt, whatever is claimed of it."""


@dataclass(frozen=True, eq=False)
class StatedClassifier:
    """The incumbent: its atoms, and weights and intercept.

    Attributes
    ----------
    chosen : (k,) positions of the atoms with σ = 1
    ids, weights : (m,) columns and their weights on the user's scale, as `predict` uses them
    b : the intercept on the scaled data, exactly: the user's + Σ weight·shift, or 0 without a bias
    rho : float, the margin that is asked for: 1, or ρ of the ρ-form
    objective, error : float, at least the exact objective but for `error`; inf where there is no incumbent
    """

    chosen: Integers
    ids: Integers
    weights: Array
    b: Fraction
    rho: float
    objective: float = math.inf
    error: float = 0.0


def read(statement: Statement, document: Document) -> StatedClassifier:
    """The incumbent of a result, after all that the JSON says of it was compared with the data."""
    data = statement.data
    said = document["n_features"]
    for side, name in {"negative": data.labels.negative, "positive": data.labels.positive}.items():
        label = document["labels"][side]
        changed = f"the {side} label is {label!r}, but {name!r} in the data: every prediction would change"
        require(names_label(label, name), changed)
    require(type(said) is int and said == data.n_features, f"{said!r} features, but the data has {data.n_features}")
    chosen = statement.ids(document["selected"])
    ids = _feature_columns(document["weights"], data)
    if document["objective"] is None:
        empty = chosen.size == ids.size == 0 and document["intercept"] is None
        require(empty, "features are selected, or have weights, but there is no objective")
        found = StatedClassifier(chosen, ids, np.empty(0), Fraction(0), 1.0)
    else:
        found = _evaluate_incumbent(statement, document, chosen)
    used = {int(j) for g in chosen for j in statement.atoms.columns(g)}
    _check_places(statement, document, used)
    _check_weightless(data, document, used)
    return found


def _check_weightless(data: Instance, document: Document, used: set[int]) -> None:
    """What is said to have no weight is what is selected and has none, where that is said."""
    names = document.get("weightless")
    if names is None:
        return
    ids = {*_feature_columns(names, data).tolist()}
    require(len({*names}) == len(names), "a feature is said twice to have no weight")
    require(used >= ids, "a feature that is not selected is said to have no weight")
    held = {
        int(j)
        for j, w in zip(_feature_columns(document["weights"], data), document["weights"].values(), strict=True)
        if w
    }
    for j in sorted(used):
        is_said = j in ids
        said = f"{data.feature_names[j]!r} is {'' if is_said else 'not '}said to have no weight"
        require(is_said == (j not in held), f"{said}, and has {'one' if is_said else 'none'}")


def _check_places(statement: Statement, document: Document, used: set[int]) -> None:
    """Columns, shift, scale and centre of the features that are used are those of the data; no centre is 0."""
    data = statement.data
    places = document["columns"]
    for name, place in places.items():
        right = data.index.get(name)
        require(type(place) is int and place == right, f"feature {name!r} is column {place!r}, but {right} in the data")
    require({*places.values()} == used, "the columns of the result are not those of the selected features")
    centred = {name for name in places if data.rules == FIRST_RULES and data.center[data.index[name]]}
    for what, values, names in (
        ("shift", data.shift, places.keys()),
        ("scale", data.scale, places.keys()),
        ("center", data.center, centred),
    ):
        require(what in document["scaling"] or what == "center", f"the {what} of the selected features is not stated")
        stated = dict(document["scaling"].get(what, {}))
        require(stated.keys() == names, f"the {what} is not that of the selected features")
        for name, one in stated.items():
            exact = float(values[data.index[name]])
            require(
                number(one, f"the {what} of {name!r}") == exact,
                f"the {what} of {name!r} is {one!r}, but {exact!r} in the data",
            )


def _feature_columns(names: Any, data: Instance) -> Integers:
    for name in names:
        require(name in data.index, f"the data has no feature {name!r}")
    return np.array([data.index[name] for name in names], dtype=np.int64)


def _evaluate_incumbent(statement: Statement, document: Document, chosen: Integers) -> StatedClassifier:
    """The incumbent with its objective, after its membership in S."""
    x = statement.witness(one["value"] for one in statement.extra.values())
    require(chosen.size == np.unique(chosen).size, "a feature is selected twice")
    broken = statement.holds(chosen, x)
    require(not broken, broken)
    return evaluate_stated(statement, chosen, document, "the selected features", statement.extra_cost(x))


def evaluate_stated(
    statement: Statement, chosen: Integers, stated: Mapping[str, Any], whose: str, extra: Fraction = NOTHING
) -> StatedClassifier:
    """The classifier of some atoms as a mapping states it, its "objective" compared with what its weights have.

    `extra` is what the stated values of the extra variables cost.
    """
    claimed = number(stated["objective"], f"the objective of {whose}")
    at = place_weights(statement, chosen, stated, claimed, whose)
    found, error = require_certain(*value(statement, chosen, at, extra=extra), whose)
    meets = abs(found - claimed) <= NEAR * abs(found) + error
    require(meets, f"the objective of {whose} is {found!r}, not {claimed!r}")
    return replace(at, objective=max(found, claimed), error=error)


def require_certain(found: float, error: float, whose: str) -> tuple[float, float]:
    """A value and its error, after rounding was found to leave it in no doubt."""
    require(math.isfinite(found + error), f"the objective of {whose} is beyond floating point")
    tells = error <= MOST_ERROR * abs(found)
    require(tells, f"the objective of {whose} is {found!r} but for {error:g} of rounding: too much to tell")
    return found, error


def place_weights(
    statement: Statement, chosen: Integers, stated: Mapping[str, Any], claimed: float, whole: str = ""
) -> StatedClassifier:
    """Weights and intercept of some atoms, without a value; `claimed` has the ρ of the ρ-form.

    `whole` says whose they are where every σ is 1: the weights then lie between their bounds.
    """
    ids = _feature_columns(stated["weights"], statement.data)
    used = {int(j) for g in chosen for j in statement.atoms.columns(g)}
    require(all(int(j) in used for j in ids), "a feature that is not selected has a weight")
    weights = np.array([number(value, "a weight") for value in stated["weights"].values()])
    if whole and isinstance(statement.regulariser, BoundedRidge):
        statement.regulariser.check_weights(stated["weights"], used, whole)
    if statement.ends is not None:
        statement.ends.check_weights(stated["weights"], whole or "the relaxation")
    b = _exact_intercept(statement, ids, weights, number(stated["intercept"], "the intercept"))
    rho = 1.0 if statement.margin == "unit" else -2.0 * claimed
    require(rho > 0, f"the objective of the ρ-form is {claimed!r}, it must be negative")
    held = np.flatnonzero(weights)
    return StatedClassifier(chosen, ids[held], weights[held], b, rho)


def _exact_intercept(statement: Statement, ids: Integers, weights: Array, stated: float) -> Fraction:
    """The intercept on the scaled data, exactly; without a bias it is 0, and the stated one what that rounds to."""
    shift = statement.data.shift[ids]
    moved = [Fraction(w) * Fraction(s) for w, s in zip(weights.tolist(), shift.tolist(), strict=True) if w and s]
    b = sum(moved, Fraction(stated))
    if statement.bias:
        return b
    size = sum(map(abs, moved), abs(Fraction(stated)))
    require(abs(b) <= (len(moved) + 8) * Fraction(U) * size, "there is an intercept, but the problem has no bias")
    return Fraction(0)


def value(
    statement: Statement, chosen: Integers, at: StatedClassifier, sigma: Array | None = None, extra: Fraction = NOTHING
) -> tuple[float, float]:
    """The objective of (P) with the atoms `chosen` and the weights of `at` on their columns, and its rounding error.

    A column of several chosen atoms has its weight split among them as costs least: ½ w²/(Σ λ_g² σ_g). `sigma` (k,) is
    that of the atoms chosen, by default 1; `extra` is what the extra variables cost.
    """
    part = np.ones(chosen.size) if sigma is None else sigma
    held, room, largest = _find_weights(statement, chosen, at, part)
    ids = at.ids[held]
    data = statement.data
    if statement.regulariser is None:
        w = at.weights[held] * data.scale[ids]
        per_atom = w / (largest * np.sqrt(room[held]))
        regular = float(statement.penalty[chosen] @ part + 0.5 * per_atom @ per_atom)
    else:
        w_exactly = [
            Fraction(a) * Fraction(b) for a, b in zip(at.weights[held].tolist(), data.scale[ids].tolist(), strict=True)
        ]
        regular = float(statement.penalty[chosen] @ part) + terms_above(
            statement.regulariser, ids, w_exactly, room[held]
        )
    if statement.constant is not None:
        regular += float((at.b / Fraction(statement.constant)) ** 2 / 2)
    lost = (chosen.size + ids.size + 16) * (2.0 * U * regular + (TINY if np.any(at.weights) else 0.0))
    beside = regular + float(extra)
    loss, error = _loss_with_error(statement, StatedClassifier(chosen, ids, at.weights[held], at.b, at.rho), beside)
    if statement.margin == "rho":
        return regular + loss - at.rho, error + lost + 8 * U * (regular + loss + at.rho)
    return beside + loss, error + lost + 2.0 * U * (loss + abs(float(extra)) + abs(beside))


def _find_weights(
    statement: Statement, chosen: Integers, at: StatedClassifier, part: Array
) -> tuple[Integers, Array, float]:
    """Which weights stand on the atoms `chosen`, Σ λ_g² σ_g of every column relative to the largest λ², and that λ."""
    atoms = statement.atoms
    lam = np.ones(chosen.size) if atoms.scale is None else atoms.scale[chosen]
    largest = float(lam.max(initial=0.0)) or 1.0
    parts = [atoms.columns(g) for g in chosen]
    each = np.repeat((lam / largest) ** 2 * part, [one.size for one in parts])
    columns, place = np.unique(np.concatenate([*parts, at.ids]), return_inverse=True)
    room = np.bincount(place[: each.size], each, columns.size).astype(float)[place[each.size :]]  # of columns at.ids
    held: Integers = np.flatnonzero(room > 0)
    require(not np.any(np.delete(at.weights, held)), "a weight stands on an atom of scale zero")
    return held, room, largest


def _loss_with_error(statement: Statement, at: StatedClassifier, regular: float) -> tuple[float, float]:
    """L at the weights, and its error: in floating point, and where that does not tell it, of exact margins."""
    data = statement.data
    target = statement.target(at.rho)
    scale = statement.data.scale[at.ids]
    exact = [Fraction(w) * Fraction(s) for w, s in zip(at.weights.tolist(), scale.tolist(), strict=True)]
    block, of = data.exactly(at.ids)
    exact = [exact[k] for k in of.tolist()]
    at_zero = at.b - sum((w * Fraction(c) for w, c in zip(exact, block.center.tolist(), strict=True)), Fraction(0))
    Z = block.values
    w = np.array([float(one) for one in exact])
    b = float(at_zero)
    scores = np.asarray(Z @ w).ravel() + b
    tiny = TINY if any(exact) or at_zero else 0.0  # of what underflows
    beside = 0.0  # what columns on another scale may be off
    if statement.scaled is not None and statement.scaled.sizes is not None:
        beside = 1.01 * float(statement.scaled.sizes[at.ids] @ np.abs(w[: at.ids.size]))
    off = (of.size + 16) * (U * (np.asarray(abs(Z) @ np.abs(w)).ravel() + (abs(b) + abs(target))) + tiny) + beside
    require(np.all(np.isfinite(scores) & np.isfinite(off)), "a margin is beyond floating point")
    short = target - data.y * scores
    loss, error, doubt = statement.loss_at(short, off)
    most = DOUBTFUL_ERROR * abs(regular + loss - (at.rho if statement.margin == "rho" else 0.0))
    unsure = np.flatnonzero(doubt > 0.5 * most / data.n_samples) if statement.is_sum else np.arange(data.n_samples)
    if error > most and unsure.size:
        rows = (Z if isinstance(Z, np.ndarray) else Z.tocsr())[unsure]
        whole, exponent = margin_shortfalls(rows, data.y[unsure], exact, at_zero, target)
        exactly = None if beside else statement.exact_loss(whole, exponent)
        if exactly is not None:
            return exactly
        short[unsure] = round_scaled(whole, exponent)
        off[unsure] = U * np.abs(short[unsure]) + tiny + beside
        loss, error, _ = statement.loss_at(short, off)
    return loss, error
