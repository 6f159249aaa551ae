"""A shared support: the problem of all classes as one, and its solve."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mipfs import drivers
from mipfs.atoms.features import Features
from mipfs.data.instance import Instance
from mipfs.data.rules import EXACT_RULES
from mipfs.data.stacked import bounds_of, features_among, unstack_weights
from mipfs.problem import Problem
from mipfs.result.result import Result, Status, Trace
from mipfs.result.sidecar import hexadecimal_scaling
from mipfs.run.finish import class_names_for_json, described_at, package_versions, reading
from mipfs.run.parameters import parameters
from mipfs.selection.rows import Rows
from mipfs.shared import shared_problem


def solve_shared(
    instances: Sequence[Instance], driver: str | None = None, *, options: Any = None, **params: Any
) -> Result:
    """Solve `shared_problem`; `options` are those of `mipfs.solve`."""
    return drivers.solve(shared_problem(instances, **params), driver, **(options or {}))


def stating_scaling(together: Result, instances: Sequence[Instance]) -> Result:
    """The result of `solve_shared` as a document of the classes holds it: its certificate has the features' scaling.

    Its own data is the stack, whose columns are scaled already, and which is of scale none.
    """
    if together.claim is None:
        return together
    return replace(together, claim=replace(together.claim, scaling=hexadecimal_scaling(instances[0])))


def parts_of(together: Result, instances: Sequence[Instance], **params: Any) -> tuple[Result, ...]:
    """What every class has of a shared support: its weights and intercept, on the user's scale, without a proof."""
    features = features_among(together.selected)
    given: dict[str, Any] = {name: params[name] for name in ("C", "loss", "bias") if name in params}
    bounds = together.params.get("weight_bounds") or {}
    held = [replace(one, weight_bounds={}) for one in instances]
    parts = zip(held, unstack_weights(instances, together.weights), strict=True)
    return tuple(
        _result_of_class(together, data, features, own, {**given, "weight_bounds": bounds_of(bounds, data)})
        for data, own in parts
    )


def _result_of_class(
    together: Result,
    data: Instance,
    features: Sequence[str],
    own: tuple[dict[str, float], float],
    given: dict[str, Any],
) -> Result:
    """The classifier of one class, judged on its data."""
    weights, b = own
    none = Rows.empty(data.n_features)
    chosen: dict[str, Any] = {"M": len(features), "forced_in": tuple(features), "forced_out": (), "rows": none}
    problem = Problem(data, atoms=Features(data), **chosen, **given)
    ids = np.array([data.index[name] for name in features], dtype=np.int64)
    w = np.array([weights.get(name, 0.0) for name in features])
    described = described_at(problem, ids)
    return Result(
        status=Status.FEASIBLE,
        stop_reason=together.stop_reason,
        objective=problem.evaluate(ids, w * data.scale[ids], b + float(w @ data.shift[ids])),
        bound=-math.inf,
        selected=tuple(features),
        weights=weights,
        intercept=b,
        weightless=tuple(name for name in features if not weights.get(name)),
        params={**parameters(problem), "gap": together.params["gap"]},
        driver=together.driver,
        seconds=0.0,
        counters={},
        trace=Trace(()),
        labels=class_names_for_json(data),
        versions=package_versions(),
        rules=max(data.rules, EXACT_RULES),
        read=reading(problem.atoms, described["columns"], features),
        **described,
    )
