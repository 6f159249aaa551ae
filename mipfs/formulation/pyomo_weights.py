"""Bounds and fixings that a user put on the weights ``svm.w`` of a Pyomo model."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from mipfs.data.bounds import FREE, WeightBounds
from mipfs.errors import RowError
from mipfs.formulation.pyomo_attach import AttachedProblem
from mipfs.formulation.weight_ends import named_in, on_users_scale


def bounds_of(attached: AttachedProblem) -> WeightBounds:
    """The bounds on the weights of a model, on the user's scale; those of the problem that it was built of are not.

    Raises
    ------
    RowError
        Ends that cross, a weight that is fixed at what is no number, is no real number, or of no feature or group.
    """
    found: WeightBounds = {}
    problem = attached.problem
    for key, w in {} if attached.weights is None else attached.weights.items():
        if w.fixed:
            value = w.value
            said = f"{w.name} is fixed at {value}, which"
            if value is None or not math.isfinite(value):
                raise RowError(f"{w.name} is fixed at {value}; a weight is fixed at a number, or has bounds")
            ends: tuple[Any, Any] = (value, value)
        else:
            if not w.is_continuous():
                raise RowError(f"{w.name} has the domain {w.domain}; a weight is a real number")
            ends = w.bounds
            said = f"the interval {tuple(ends)} of {w.name}"
        if _is_free(ends):
            continue
        name = named_in(problem, key, f"{w.name} has bounds")
        low, high = (None if end is None or end == none else end for end, none in zip(ends, FREE, strict=True))
        if not all(end is None or math.isfinite(end) for end in (low, high)):
            raise RowError(f"{said} has an end that is no number")
        low, high = (None if end is None else Fraction(float(end)) for end in (low, high))
        found[name] = on_users_scale(problem, name, low, high, said)
    return found


def _is_free(ends: Any) -> bool:
    """Whether there is no end."""
    return all(end is None or end == none for end, none in zip(ends, FREE, strict=True))
