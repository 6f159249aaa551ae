"""A shared support: the problem of all classes as one, and its solve."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mipfs import drivers
from mipfs.data.instance import Instance
from mipfs.data.stacked import unstacked
from mipfs.problem import Problem
from mipfs.result.result import Result, Status
from mipfs.shared import features_among, shared_problem


def solve_shared(
    instances: Sequence[Instance], driver: str | None = None, *, options: Any = None, **params: Any
) -> Result:
    """Solve `shared_problem`; `options` are those of `mipfs.solve`."""
    return drivers.solve(shared_problem(instances, **params), driver, **(options or {}))


def parts_of(together: Result, instances: Sequence[Instance], **params: Any) -> tuple[Result, ...]:
    """What every class has of a shared support: its weights and intercept, on the user's scale, without a proof."""
    features = features_among(together.selected)
    given = {name: params[name] for name in ("C", "loss") if name in params}
    found = []
    for data, (weights, b) in zip(instances, unstacked(instances, together.weights), strict=True):
        problem = Problem(data, M=len(features), forced_in=features, bias=params.get("bias", True), **given)
        like = drivers.solve(problem)  # for how columns are scaled and read, of which a result tells
        ids = np.array([data.index[name] for name in features], dtype=np.int64)
        own = np.array([weights.get(name, 0.0) for name in features])
        at = b + float(own @ data.shift[ids])
        value = problem.evaluate(ids, own * data.scale[ids], at)
        changed: dict[str, Any] = {"weights": weights, "intercept": b, "objective": value, "bound": -math.inf}
        changed |= {"status": Status.FEASIBLE, "stop_reason": together.stop_reason, "claim": None, "certificate": None}
        found.append(replace(like, **changed, trace=type(like.trace)(()), declare=None))
    return tuple(found)
