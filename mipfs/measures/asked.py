"""What a problem with a measure may ask for."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mipfs.data.unit import times
from mipfs.errors import UsageError
from mipfs.measures import MEASURES
from mipfs.plumbing.declared import check_value, show_value

CONSTANTS = 1e-50, 1e50
"""Sizes of the constant column, in the unit of the others (`mipfs.data.unit`): its square is squared again."""


def check_asked(problem: Any) -> None:
    """Refuse what the structural loss does not go with, of a `mipfs.Problem`.

    Raises
    ------
    UsageError
    """
    if not problem.regulariser.is_ridge:
        raise UsageError(f"the structural loss goes with ½w² alone; leave {problem.term} out")
    if problem.class_weight or np.any(problem.data.sample_weight != 1.0):
        kind = "class weights; leave them out (none)" if problem.class_weight else "sample weights; leave them out"
        raise UsageError(f"the structural loss is joint over the samples and has no {kind}")
    if problem.measure is None:
        raise UsageError(f"the structural loss needs a measure: one of {', '.join(MEASURES)}")
    if not 0.0 < check_value("intercept_scaling", problem.intercept_scaling, float) < math.inf:
        raise UsageError(f"intercept_scaling = {show_value(problem.intercept_scaling)} must be a number > 0")
    low, high = (times(end, problem.exponent) for end in CONSTANTS)
    if problem.bias and not low <= problem.intercept_scaling <= high:
        raise UsageError(
            f"intercept_scaling = {problem.intercept_scaling:g} must be a number from {low:g} to {high:g}, beside "
            f"columns of {problem.data.largest:g}; without an intercept (bias=False) there is none"
        )
