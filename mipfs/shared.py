"""The problem of one selection for several classes, each against the rest: a feature counts once for all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mipfs import atoms
from mipfs.data.against_rest import with_bounds
from mipfs.data.instance import Instance
from mipfs.data.stacked import INTERCEPT, stack_instances
from mipfs.errors import UsageError
from mipfs.problem import Problem
from mipfs.selection.of_groups import compile_rows

TAKEN = ("M", "C", "lam", "loss", "bias", "forced_in", "forced_out", "weight_bounds")
"""What a shared support takes of the parameters of a problem."""


def shared_problem(instances: Sequence[Instance], **params: Any) -> Problem:
    """The problem of one selection for all classes: min over σ of Σ_k of their objectives, Σ σ_j <= M.

    Parameters
    ----------
    instances : the data of every class against the rest; rows, costs and forced features of the first hold, and
        `mipfs.data.against_rest.weigh_classes` gives the classes weights
    **params : of `TAKEN`, as in `Problem`; `bias` says whether every class has an intercept, which is penalised as a
        weight is (`mipfs.data.stacked`); `weight_bounds`, on the user's scale, are by ``feature|class``, or by feature,
        of every class then, in place of those that the data of each class has

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
    bounds = given.pop("weight_bounds", None)
    data = stack_instances(instances if bounds is None else with_bounds(instances, bounds), bias)
    groups = atoms.make("groups", data)
    if bias:
        M = given.get("M")
        given["M"] = M + 1 if isinstance(M, int) and not isinstance(M, bool) else M
        if (forced := given.get("forced_in")) is not None:
            given["forced_in"] = (*((forced,) if isinstance(forced, str) else forced), INTERCEPT)
        lam = given.get("lam")
        if isinstance(lam, (int, float)) and lam:
            given["lam"] = {**dict.fromkeys(instances[0].feature_names, float(lam)), INTERCEPT: 0.0}
    rows = compile_rows(instances[0].rows, {name: g for g, name in enumerate(groups.names)}, instances[0].groups)
    return Problem(data, bias=False, atoms=groups, rows=rows, **given)
