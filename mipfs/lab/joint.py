"""A measure with an intercept, for the estimators and `bench`: the problem, and the constant column that it takes.

The structural loss has no bias. An intercept is the weight of a constant column that is always selected, on top of
the M, and penalised as any weight is, as LIBLINEAR has it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mipfs.data.constant import CONSTANT
from mipfs.data.constant import with_constant as widened_by
from mipfs.data.instance import Instance
from mipfs.errors import UsageError
from mipfs.problem import Problem


def constant_of(fit_intercept: bool, intercept_scaling: float) -> float:
    """The value of the constant column; 0 stands for none.

    Raises
    ------
    UsageError
        A scaling that is no number > 0.
    """
    if not fit_intercept:
        return 0.0
    number = isinstance(intercept_scaling, (int, float, np.number)) and not isinstance(intercept_scaling, bool)
    if not number or not 0 < intercept_scaling < math.inf:
        raise UsageError(f"intercept_scaling = {intercept_scaling!r} must be a number > 0")
    return float(intercept_scaling)


def with_constant(instances: Sequence[Instance], value: float) -> list[Instance]:
    """Instances that share a matrix, with a last column of `value`, one new matrix for all; 0 changes nothing."""
    if value == 0.0:
        return list(instances)
    wide = replace(widened_by(instances[0], value), constant=0.0, values_sha256="")
    return [wide, *(replace(wide, y=one.y, labels=one.labels) for one in instances[1:])]


def joint_problem(
    data: Instance,
    measure: str,
    *,
    M: int | None,
    C: float,
    beta: float | None,
    k: int | None,
    constant: float,
    forced_in: Sequence[str] = (),
    **allowed: Any,
) -> Problem:
    """The problem of a measure on data that `with_constant` made: at most M features, and the constant one.

    `allowed` is what else `mipfs.estimators.allowed` says of the selection.
    """
    extra = int(constant != 0.0)
    if isinstance(M, (int, np.integer)) and not isinstance(M, bool):
        M = min(int(M), data.n_features - extra)
    return Problem(
        data,
        loss="structural",
        bias=False,
        M=M + extra if isinstance(M, int) and M >= 0 else M,
        forced_in=(*forced_in, CONSTANT) if extra else tuple(forced_in),
        C=C,
        measure=measure,
        beta=beta,
        k=k,
        **allowed,
    )
