"""What was asked of a problem, as its result and its state say it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mipfs.data.bounds import bounds_document
from mipfs.data.classes import by_label
from mipfs.data.constant import CONSTANT
from mipfs.errors import UsageError
from mipfs.problem import Problem
from mipfs.result.posed import why_other_data
from mipfs.result.result import Result

SAME = ("M", "C", "lambda", "loss", "bias", "margin", "measure", "beta", "k", "class_weight")
"""Parameters by which a result is one of a problem."""


def parameters(problem: Problem) -> Mapping[str, Any]:
    """What was asked, for the result: M, C, lambda, loss, bias, the data's own penalties and forced features."""
    lam = problem.lam
    if isinstance(lam, Mapping):
        given: Any = {name: float(value) for name, value in lam.items()}
    else:
        values = np.asarray(lam, dtype=float)
        given = float(values) if values.ndim == 0 else [float(value) for value in values]
    wide = problem.data.constant  # of a problem that `mipfs.widened` made, what was asked is without that column
    params = {
        "M": problem.M if problem.M is None else problem.M - bool(wide),
        "C": problem.C,
        "lambda": given[:-1] if wide and isinstance(given, list) else given,
        "loss": problem.loss,
        "bias": problem.bias or bool(wide),
    }
    where_asked = {
        "constant": wide or (float(problem.intercept_scaling) if problem.has_constant else None),
        "measure": problem.measure,
        "beta": problem.beta,
        "k": problem.k,
        "regulariser": None if problem.regulariser.is_ridge or problem.weight_bounds else problem.regulariser.stated,
        "weight_bounds": bounds_document(problem.weight_bounds or {}) or None,
        "class_weight": by_label(problem.class_weights, problem.data.labels),
        "margin": None if problem.margin == "unit" else problem.margin,
        "penalty": dict(problem.data.penalty) or None,
        "forced_in": [name for name in problem.forced_in or () if not wide or name != CONSTANT] or None,
        "forced_out": list(problem.forced_out or ()) or None,
    }
    return params | {name: value for name, value in where_asked.items() if value is not None}


def check_result_of(problem: Problem, result: Result) -> None:
    """Refuse a result that is one of another problem: on other data, on another scale, or with other parameters.

    Of atoms that are no single features the data is not compared: that of the problem may be made of the raw data.

    Raises
    ------
    UsageError
        It says what differs.
    """
    if result.atoms is None and (why := why_other_data(result, problem.data)):
        raise UsageError(f"the result is of other data than the problem's ({why}); give the problem that was solved")
    asked = parameters(problem)
    for name in SAME:
        if (before := result.params.get(name)) != (now := asked.get(name)):
            raise UsageError(
                f"the result is of {name} = {before}, the problem of {name} = {now}; give the problem that was solved"
            )
