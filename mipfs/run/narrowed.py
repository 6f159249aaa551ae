"""What was found over a constant column (`mipfs.widened`), in the words of the problem that was asked: without it.

Its weight is the intercept (`mipfs.run.stored`); it is no feature, nobody selected it, and M does not count it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from mipfs.data.constant import CONSTANT
from mipfs.problem import Problem
from mipfs.result.result import Result


def narrow_result(result: Result, problem: Problem) -> Result:
    """The result of a problem that `widened` made as one of the problem that it was made of; any other as it is."""
    data = problem.data
    if data.constant == 0.0:
        return result
    scaling = {
        key: value if isinstance(value, str) else _mapping_without_constant(value)
        for key, value in result.scaling.items()
    }
    return dataclasses.replace(
        result,
        selected=_without_constant(result.selected),
        weightless=None if result.weightless is None else _without_constant(result.weightless),
        columns=_mapping_without_constant(result.columns),
        n_features=result.n_features - 1,
        scaling=scaling,
        data_sha256=data.bare_sha256,
        near_optimal=_narrow_list(result.near_optimal),
        relaxed=_narrow_relaxed(result.relaxed),
        validated=_selected_without_constant(result.validated),
        atoms=_atoms_without_constant(result.atoms),
    )


def _without_constant(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(name for name in names if name != CONSTANT)


def _mapping_without_constant(by_name: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in by_name.items() if name != CONSTANT}


def _selected_without_constant(one: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return None if one is None else {**one, "selected": list(_without_constant(one["selected"]))}


def _narrow_list(near: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    if near is None:
        return None
    return {
        **near,
        "supports": [_selected_without_constant(one) for one in near["supports"]],
        "share": _mapping_without_constant(near["share"]),
    }


def _narrow_relaxed(relaxed: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    if relaxed is None:
        return None
    found = {**relaxed, "sigma": _mapping_without_constant(relaxed["sigma"])}
    return (
        found
        if "mixture" not in found
        else {**found, "mixture": [_selected_without_constant(one) for one in found["mixture"]]}
    )


def _atoms_without_constant(atoms: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Of atoms that are listed all but the last one."""
    return None if atoms is None else {key: None if one is None else one[:-1] for key, one in atoms.items()}
