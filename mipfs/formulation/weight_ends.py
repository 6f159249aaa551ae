"""Bounds that a user put on the weights of a declared model, as bounds on the weights of its problem.

The weights of a model are those of its data: a bound there divided by a column's scale is one on the user's scale. It
is rounded towards 0, so that no weight between the rounded ends leaves those that were written.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

from mipfs.data.bounds import LARGEST, SMALLEST, WeightBounds, both
from mipfs.errors import RowError
from mipfs.problem import Problem

End = Fraction | None


def on_users_scale(problem: Problem, name: str, low: End, high: End, said: str) -> tuple[float, float]:
    """Ends of the weight of a feature in a model, on the user's scale.

    Parameters
    ----------
    problem : Problem over single features
    name : str, of the feature
    low, high : Fraction, None for no end
    said : str, what the message calls them

    Raises
    ------
    RowError
        They cross, leave out 0, or are of a size that no weight has.
    """
    if low is not None and high is not None and low > high:
        raise RowError(f"{said}: the lower end lies above the upper one")
    if (low is not None and low > 0) or (high is not None and high < 0):
        raise RowError(
            f"{said} leaves out 0, which would force the feature in: bounds hold for features that may be left out; "
            "let 0 be between them, and force the feature in by its sigma"
        )
    scale = Fraction(float(problem.data.scale[problem.data.index[name]]))
    return _towards_0(low, scale, -math.inf, said), _towards_0(high, scale, math.inf, said)


def _towards_0(end: End, scale: Fraction, absent: float, said: str) -> float:
    """An end on the user's scale, no farther from 0 than what was written."""
    if end is None:
        return absent
    exact = end / scale
    if exact and not Fraction(SMALLEST) <= abs(exact) <= Fraction(LARGEST):
        raise RowError(f"{said}: an end that is not 0 must be of a size from {SMALLEST:g} to {LARGEST:g}")
    found = float(exact)
    return math.nextafter(found, 0.0) if abs(Fraction(found)) > abs(exact) else found


def with_bounds(problem: Problem, found: Mapping[str, tuple[float, float]], said: str) -> Problem:
    """The problem with further bounds on its weights.

    Raises
    ------
    RowError
        It is not about single features.
    """
    if not found:
        return problem
    if problem.atoms.kind != "features":
        raise RowError(f"{said}: bounds are about weights of single features, not of {problem.atoms.kind}")
    bounds: WeightBounds = both(problem.weight_bounds or {}, found)
    return problem.replace(weight_bounds=bounds)
