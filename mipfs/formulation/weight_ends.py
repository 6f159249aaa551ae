"""Bounds that a user put on the weights of a declared model, as bounds on the weights of its problem.

The weights of a model are those of its data: a bound there divided by a column's scale is one on the user's scale. It
is rounded inward, so that no weight between the rounded ends leaves those that were written. A bound there that
excludes 0 says that the weight is never 0: it forces its feature in.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from mipfs.atoms.groups import Groups
from mipfs.data.bounds import LARGEST, SMALLEST, WeightBounds, both, excluding_0
from mipfs.data.over_weights import WeightRow, check_weight_rows
from mipfs.errors import RowError, UsageError
from mipfs.problem import Problem

End = Fraction | None
ModelRow = tuple[dict[str, float], float, float, str]
"""A row over the weights of a model: coefficients by feature, two ends, infinite for none, and what it is called."""


def on_users_scale(problem: Problem, name: str, low: End, high: End, said: str) -> tuple[float, float]:
    """Ends of the weight of a feature in a model, on the user's scale.

    Parameters
    ----------
    problem : Problem
    name : str, of the feature
    low, high : Fraction, None for no end
    said : str, what the message calls them

    Raises
    ------
    RowError
        They cross, or are of a size that no weight has.
    """
    if low is not None and high is not None and low > high:
        raise RowError(f"{said}: the lower end lies above the upper one")
    scale = Fraction(float(problem.data.scale[problem.data.index[name]]))
    least, most = _scale_end_inward(low, scale, -math.inf, said), _scale_end_inward(high, scale, math.inf, said)
    if least > most:
        raise RowError(f"{said} has no number on the scale of the data between its ends; set them a little apart")
    return least, most


def _scale_end_inward(end: End, scale: Fraction, absent: float, said: str) -> float:
    """An end on the user's scale, no farther out than what was written; `absent` is what an absent one is."""
    if end is None:
        return absent
    exact = end / scale
    if exact and not Fraction(SMALLEST) <= abs(exact) <= Fraction(LARGEST):
        raise RowError(f"{said}: an end that is not 0 must be of a size from {SMALLEST:g} to {LARGEST:g}")
    found = float(exact)
    is_out = Fraction(found) < exact if absent < 0.0 else Fraction(found) > exact
    return math.nextafter(found, -absent) if is_out else found


def together(*parts: Mapping[str, tuple[float, float]]) -> WeightBounds:
    """What keeps all of some bounds.

    Raises
    ------
    RowError
        They leave a feature no weight.
    """
    try:
        return both(*parts)
    except UsageError as error:
        raise RowError(str(error)) from None


def part_rows(problem: Problem, found: Sequence[ModelRow]) -> tuple[WeightBounds, list[ModelRow]]:
    """Rows over one weight alone as its bounds on the user's scale, and the others.

    Raises
    ------
    RowError
        Ends that cross.
    """
    bounds: WeightBounds = {}
    others = list[ModelRow]()
    for terms, low, high, said in found:
        held = {name: a for name, a in terms.items() if a}
        if len(held) != 1 or problem.atoms.kind != "features":
            others.append((terms, low, high, said))
            continue
        ((name, a),) = held.items()
        ends = [Fraction(end) / Fraction(a) if math.isfinite(end) else None for end in (low, high)]
        least, most = ends if a > 0 else ends[::-1]
        bounds = together(bounds, {name: on_users_scale(problem, name, least, most, said)})
    return bounds, others


def with_rows(problem: Problem, found: Sequence[ModelRow]) -> Problem:
    """The problem with further rows over its weights, which a model has on the scale of its data.

    Σ a_j w_j of the model is Σ a_j scale_j w_j on the user's scale; a coefficient is rounded once, far less than the
    allowance of a row.

    Raises
    ------
    RowError
        Weights of 0 break a row, or a number that is too small or large.
    """
    if not found:
        return problem
    data = problem.data
    rows: list[WeightRow] = []
    for terms, low, high, said in found:
        if not low <= 0.0 <= high:
            raise RowError(f"{said} leaves out weights that are all 0; rows over weights have lower <= 0 <= upper")
        scaled = {name: a * float(data.scale[data.index[name]]) for name, a in terms.items()}
        try:
            rows += check_weight_rows([(scaled, low, high)], data.index, data.like)
        except UsageError as error:
            raise RowError(f"{said}: {error}") from None
    return problem.replace(weight_rows=[*problem.rows_over_weights, *rows])


def with_bounds(problem: Problem, found: Mapping[str, tuple[float, float]], said: str) -> Problem:
    """The problem with further bounds on its weights; features of those that exclude 0 are forced in.

    Raises
    ------
    RowError
        It is about neither single features nor groups.
    """
    if not found:
        return problem
    if problem.atoms.kind not in ("features", "groups"):
        raise RowError(f"{said}: bounds are about weights of features or groups, not of {problem.atoms.kind}")
    bounds = together(problem.weight_bounds or {}, found)
    inside = tuple(dict.fromkeys([*(problem.forced_in or ()), *excluding_0(found)]))
    return problem.replace(weight_bounds=bounds, forced_in=inside)


def named_in(problem: Problem, key: Any, said: str) -> str:
    """The column that a weight of a model is of, by its key there: its name, of groups (group, name).

    Raises
    ------
    RowError
        It is of no feature or group, or one of several copies of its column.
    """
    if problem.selects_features:
        if problem.atoms.kind != "features":
            raise RowError(f"{said}; they are about weights of single features, not {problem.atoms.kind}")
        return str(key)
    if not isinstance(problem.atoms, Groups):
        raise RowError(f"{said}; they are about weights of features or groups, not {problem.atoms.kind}")
    name = str(key[1])
    if name in problem.atoms.shared:
        raise RowError(
            f"{said}, and {name!r} stands in several groups: its weight is the sum of one for each; give its sign to "
            "the whole in weight_bounds"
        )
    return name
