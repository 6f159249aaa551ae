"""The problem that a result solved, posed anew on its data: what `refit` and `scorecard` begin from."""

from __future__ import annotations

from typing import Any

from mipfs.atoms.features import Features
from mipfs.data.instance import Instance
from mipfs.data.over_weights import of_stated
from mipfs.errors import UsageError
from mipfs.losses import is_joint
from mipfs.problem import Problem
from mipfs.result.result import Result

POSED = "loss", "bias", "C"
OF_MEASURE = ("measure", "beta", "k")


def why_other_data(result: Result, data: Instance) -> str:
    """Why data is not what a result was solved on, in words; empty where it is, and on the same scale.

    The digest is of the data as the user gave it: what was scaled otherwise has the same one, and is another problem.
    """
    if data.sha256 != result.data_sha256:
        return "its digest differs"
    kind = result.scaling.get("kind")
    return "" if kind == data.scaling else f"it was scaled {kind!r}, and this is {data.scaling!r}"


def posed_again(result: Result, data: Instance, what: str, **changes: Any) -> Problem:
    """The problem with loss, intercept, C, weights of the classes and bounds on weights of a result.

    Which features may be selected is not carried over: M, rows and penalties are those of `changes`, or none.

    Parameters
    ----------
    result : Result
    data : Instance, the data that it was solved on
    what : what is made of it, for a message
    **changes : parameters of `Problem` that are to be others; None says nothing

    Raises
    ------
    UsageError
        Atoms that are no single features, a term of the weights other than their squares, or a parameter is missing.
    """
    params = result.params
    if result.atoms is not None:
        raise UsageError(f"{what} is for single features, and this result selects others; solve it anew without atoms")
    if params.get("regulariser") is not None:
        raise UsageError(f"{what} is for the squared norm, and this result has another term of the weights")
    if missing := [name for name in POSED if name not in params]:
        raise UsageError(f"{what} poses the problem again, and 'params' of the result has no {missing[0]!r}")
    given: dict[str, Any] = {"atoms": Features(data)} | {name: params[name] for name in POSED}
    given |= {"class_weight": params.get("class_weight") or {}, "weight_bounds": params.get("weight_bounds") or {}}
    given["weight_rows"] = of_stated(params)
    given |= {name: value for name, value in changes.items() if value is not None}
    if is_joint(given["loss"]):
        given |= {name: params[name] for name in OF_MEASURE if params.get(name) is not None}
    return Problem(data, **given)
