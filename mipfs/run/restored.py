"""A result of a problem whose columns were in another unit, as one of the user's (`mipfs.data.unit`): exactly.

Values are in the user's unit already (`Problem.reported`), and so are weights, by the scale of the data.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from mipfs.data.unit import times
from mipfs.problem import Problem
from mipfs.result.result import Result


def restore_unit(result: Result, problem: Problem) -> Result:
    """The result of a problem that `Problem.in_unit` made as one of the problem that it was made of."""
    e = problem.data.exponent
    if not e:
        return result
    powers = {"C": -2 * e, "lambda": -2 * e, "penalty": -2 * e, "constant": e}
    params = {
        name: _scale_by_power(given, powers[name]) if name in powers else given for name, given in result.params.items()
    }
    return dataclasses.replace(
        result,
        params=params,
        scaling={**result.scaling, "scale": _scale_by_power(result.scaling["scale"], -e)},
        alpha=None if result.alpha is None else np.ldexp(result.alpha, -2 * e),
    )


def _scale_by_power(given: Any, exponent: int) -> Any:
    """A number, or each of several, times 2^exponent."""
    if isinstance(given, Mapping):
        return {name: times(one, exponent) for name, one in given.items()}
    return [times(one, exponent) for one in given] if isinstance(given, list) else times(given, exponent)
