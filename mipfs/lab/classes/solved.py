"""A shared support: the problem of all classes as one, and its solve."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mipfs import atoms, drivers
from mipfs.data.instance import Instance
from mipfs.data.stacked import INTERCEPT, stacked, unstacked
from mipfs.errors import UsageError
from mipfs.problem import Problem
from mipfs.result.result import Result, Status

TAKEN = ("M", "C", "lam", "loss", "bias", "forced_in", "forced_out")
"""What a shared support takes of the parameters of a problem."""


def shared_problem(instances: Sequence[Instance], **params: Any) -> Problem:
    """The problem of one selection for all classes: min over σ of Σ_k of their objectives, Σ σ_j <= M.

    Parameters
    ----------
    instances : the data of every class against the rest
    **params : of `TAKEN`, as in `Problem`; `bias` says whether every class has an intercept, which is penalised as a
        weight is (`mipfs.data.stacked`)

    Raises
    ------
    UsageError
        Another parameter.
    """
    odd = [name for name in params if name not in TAKEN]
    if odd:
        raise UsageError(f"a shared support takes no {odd[0]}; it takes {', '.join(TAKEN)}")
    given = dict(params)
    bias = given.pop("bias", True)
    if not isinstance(bias, bool):
        raise UsageError(f"bias = {bias!r} must be true or false")
    data = stacked(instances, bias)
    if bias:
        M = given.get("M")
        given["M"] = M + 1 if isinstance(M, int) and not isinstance(M, bool) else M
        forced = given.get("forced_in") or ()
        given["forced_in"] = (*((forced,) if isinstance(forced, str) else forced), INTERCEPT)
        lam = given.get("lam")
        if isinstance(lam, (int, float)) and lam:
            given["lam"] = {**dict.fromkeys(instances[0].feature_names, float(lam)), INTERCEPT: 0.0}
    return Problem(data, bias=False, atoms=atoms.make("groups", data), **given)


def solve_shared(
    instances: Sequence[Instance], driver: str | None = None, *, options: Any = None, **params: Any
) -> Result:
    """Solve `shared_problem`; `options` are those of `mipfs.solve`."""
    return drivers.solve(shared_problem(instances, **params), driver, **(options or {}))


def features_of(result: Result) -> tuple[str, ...]:
    """The features of a shared support."""
    return tuple(name for name in result.selected if name != INTERCEPT)


def parts_of(together: Result, instances: Sequence[Instance], **params: Any) -> tuple[Result, ...]:
    """What every class has of a shared support: its weights and intercept, on the user's scale, without a proof."""
    features = features_of(together)
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
