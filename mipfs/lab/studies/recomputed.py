"""`mipfs verify path.json DATA --recompute`: the folds of a path solved again, and their errors compared.

The document states the problem, the folds and the seed, and the same seed gives the same solves: the path is walked
again on every fold as `mipfs.path` walks it. What a limit cut, there or here, cannot be compared, and is named.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs.atoms.features import Features
from mipfs.check.folds import FOUND, GONE
from mipfs.check.rounding import NEAR
from mipfs.check.several import DocumentReport
from mipfs.data.instance import Instance, Row
from mipfs.data.over_weights import of_stated
from mipfs.lab.studies.folds import Fold, fold_of, parts_in, stratify
from mipfs.lab.studies.steps import PathSteps, place_text, steps_of
from mipfs.lab.studies.walk import PathWalk
from mipfs.problem import Problem
from mipfs.regularisers import get_regulariser
from mipfs.result.advice import CUT_SHORT
from mipfs.selection.rows import Rows

LIMITS = {reason.name for reason in CUT_SHORT}


def recompute_folds(
    found: DocumentReport, document: Mapping[str, Any], data: Instance, fold: npt.NDArray[Any] | None
) -> DocumentReport:
    """What was found of a path, after its folds were solved again.

    Parameters
    ----------
    found : DocumentReport, of `mipfs.check.paths.check_path`
    document : mapping, the JSON
    data : Instance, as the path was solved on
    fold : (n,) the fold of every sample as the archive has it, or None
    """
    odd = _reason_not_recomputable(document)
    if odd:
        return replace(found, unchecked=(*found.unchecked, f"the folds, solved again: {odd}"))
    if document.get("folds_by") is not None:
        if fold is None:
            return replace(found, unchecked=(*found.unchecked, "the folds, solved again: the archive has none"))
        parts = parts_in(data, fold)
    else:
        parts = stratify(data, document["folds"], document["seed"])
        if fold is not None and not np.array_equal(fold, fold_of(parts, data.n_samples)):
            return replace(found, accepted=False, reason=f"the folds are not those of the seed {document['seed']}")
    wrong, unknown, compared = _compare_errors(document, data, parts)
    if wrong:
        return replace(found, accepted=False, reason=f"the folds, solved again: {wrong}")
    left = (one for one in found.unchecked if one not in (FOUND, GONE))
    names = (f"the errors at {place}: {why}" for place, why in unknown.items())
    said = ("folds", f"solved again: {compared} errors agree")
    return replace(found, said=(*found.said, said), unchecked=(*left, *names))


def _compare_errors(
    document: Mapping[str, Any], data: Instance, parts: Sequence[Fold]
) -> tuple[str, dict[str, str], int]:
    """The first error that is another, the places that cannot be compared and why, and how many errors agree."""
    points = document["points"]
    steps = _steps_of_path(document, _problem_of_path(document, data))
    options: dict[str, Any] = {"seed": document["seed"], "gap": points[0]["result"]["params"]["gap"]}
    cut = [point for point in points if point["stop_reason"] in LIMITS]
    if cut:
        options["time_limit"] = max(1.0, *(float(point["seconds"]) for point in cut))
    walk = PathWalk(document["driver"], options, False, None, None, ())
    axes = document["axis"].split(",")
    stated = {place_text({axis: point[axis] for axis in axes}): point for point in points}
    unknown = {place: "a limit stopped it" for place, point in stated.items() if point["stop_reason"] in LIMITS}
    compared = 0
    for number, part in enumerate(parts):
        for solved in walk.solved(steps.on(part.train), ""):
            place, result = place_text(solved.place), solved.result
            errors = stated[place]["errors"] if place in stated else ()
            if not errors or place in unknown:
                continue
            if result.stop_reason.name in LIMITS or not result.has_classifier:
                unknown[place] = f"fold {number}, solved again, ended with {result.stop_reason.name}"
                continue
            error = part.error(result, steps.problems[0], document.get("by"))
            if abs(error - errors[number]) > NEAR:
                return f"{place}: the error of fold {number} is {error!r}, and {errors[number]!r} is stated", {}, 0
            compared += 1
    return "", unknown, compared


def _reason_not_recomputable(document: Mapping[str, Any]) -> str:
    """Why the folds of a path cannot be solved again; "" where they can."""
    first = document["points"][0]["result"]
    if document["folds"] is None:
        return "the path has no folds"
    if first["atoms"] is not None:
        return "the document does not say how what is selected is made on other samples"
    if any(point["result"].get("extra") for point in document["points"]):
        return "rows with variables of their own cannot be posed again"
    over = first["params"].get("weight_rows") or ()
    if any(row["upper"] is not None and row["lower"] == -row["upper"] for row in over):
        return "a row over the weights with the ends −ε and ε may be parity, which every fold makes of its own samples"
    return ""


def _problem_of_path(document: Mapping[str, Any], data: Instance) -> Problem:
    """The problem of a path at its first value of every axis, or with the rows that it began with."""
    params = {**document["params"]}
    for axis in document["axis"].split(","):
        if axis != "rows":
            params[axis] = params[axis][0]
    given = {
        name: params[name] for name in ("loss", "bias", "M", "C", "measure", "beta", "k", "margin") if name in params
    }
    weights = params.get("class_weight") or {}
    balanced = bool(weights) and _is_balanced(data, weights)
    regulariser = dict(params.get("regulariser") or {})
    if regulariser:
        given["regulariser"] = get_regulariser(regulariser.pop("name"), **regulariser)
    if params.get("constant") is not None:
        given["intercept_scaling"] = params["constant"]
    return Problem(
        data,
        atoms=Features(data),
        lam=params["lambda"],
        rows=_rows_of_json(_in_order(document)[0]["result"]["rows"], data),
        forced_in=tuple(params.get("forced_in") or ()),
        forced_out=tuple(params.get("forced_out") or ()),
        weight_bounds=params.get("weight_bounds") or {},
        weight_rows=of_stated(params),
        class_weight="balanced" if balanced else {_label_of_data(data, name): value for name, value in weights.items()},
        cardinality=params["M"] is not None,
        **given,
    )


def _is_balanced(data: Instance, weights: Mapping[str, float]) -> bool:
    """Whether weights of classes are those of "balanced", which every fold computes anew."""
    even = data.class_weights("balanced")
    own = [weights.get(str(label)) for label in (data.labels.negative, data.labels.positive)]
    return even is not None and all(a is not None and math.isclose(a, b) for a, b in zip(own, even, strict=True))


def _label_of_data(data: Instance, name: str) -> Any:
    return next((one for one in (data.labels.negative, data.labels.positive) if str(one) == name), name)


def _rows_of_json(stated: Sequence[Mapping[str, Any]], data: Instance) -> Rows:
    """Rows of the JSON."""
    rows = [
        Row(
            one["name"],
            one["terms"],
            -math.inf if one["lb"] is None else one["lb"],
            math.inf if one["ub"] is None else one["ub"],
            one["origin"],
        )
        for one in stated
    ]
    return Rows.of(rows, data.index)


def _in_order(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The points, along rows from the fewest on."""
    points = list(document["points"])
    return sorted(points, key=lambda point: int(point["rows"])) if document["axis"] == "rows" else points


def _steps_of_path(document: Mapping[str, Any], problem: Problem) -> PathSteps:
    """The steps of a path."""
    params = document["params"]
    if document["axis"] != "rows":
        values = {axis: params[axis] for axis in document["axis"].split(",")}
        return steps_of(problem, values.get("M"), values.get("C"), values.get("lambda"), None)
    points = _in_order(document)
    held = [point["result"]["rows"] for point in points]
    more = [rows[len(before) :] for before, rows in itertools.pairwise(held)]
    return steps_of(problem, None, None, None, [_rows_of_json(one, problem.data) for one in more])
