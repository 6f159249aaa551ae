"""A scorecard: its result by the code of any result, and all that the card says beside it computed again of the data.

Its objective is recomputed with a bound on the rounding error, in rational arithmetic where floating point leaves it in
doubt; its totals by the stated rule, in doubles (`mipfs.check.points`). That no other points are better is the word of
the search that found them: no certificate has it, and the report says so. Of a card whose features and points were
chosen together it is proven (`mipfs.check.card_joint`).
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from mipfs.check.classifier import DOUBTFUL_ERROR, require_certain
from mipfs.check.in_unit import in_unit
from mipfs.check.known import is_joint, same
from mipfs.check.points import MOST_BINS, PREFIX, CardLine, lines_of, totals
from mipfs.check.result import check_result
from mipfs.check.rounding import NEAR, TINY, Array, Arrays, Document, U, gap_between, number, refusal_reason, require
from mipfs.check.scaling import ScaledData
from mipfs.check.statement import Statement
from mipfs.check.tree import Report, check_unproven
from mipfs.check.workers import ALONE, LeafWorkers
from mipfs.data.instance import Instance
from mipfs.data.unit import times

FIRST = {
    "schema",
    "kind",
    "status",
    "stop_reason",
    "objective",
    "bound",
    "gap",
    "unrounded",
    "asked",
    "most_points",
} | {
    *("scale", "intercept", "card", "totals", "error", "roc_auc", "labels", "result", "data_sha256", "nodes", "seconds")
}
SECOND = FIRST | {"version", "bins", "sha256"}
"""The fields of a card, of which none is left out and no other stands there."""
NEWEST = 2
ODDS_IN_ORDER = ("score", "odds", "double", "origin", "per_point")
ODDS = {*ODDS_IN_ORDER}
"""What says how totals are scores of odds."""
MOST_RANGES = 16
SEARCH = "that no other points up to K are better: the bound is the word of the search, and not proven"
HISTORY = "the history of the search (stop reason, objective with real numbers for points, nodes, seconds)"
UNPROVEN = "that the features are the best: a card of the first version has no certificate"


@dataclass(frozen=True)
class CardReport:
    """What the checker found of a scorecard.

    Attributes
    ----------
    accepted, reason : bool, and what is wrong in one line, "" when accepted
    result : Report, of the result inside, which the features are from
    version : int, the rule by which the card is scored
    status, asked : str and float, of the search for points
    objective : float, recomputed; inf before it was
    bound, gap : float, the word of the search, which only lies below the objective, and what follows from it
    joint : int or None, M of all cards that the bound was proven for; None where it is the word of the search
    within : mapping or None, the rows over the columns and thresholds of these cards, as the card has them
    threshold : float, the total above which the class is the positive one
    totals : tuple of mappings, recomputed: "from", "to", "samples", "positives", "decision"
    error, roc_auc : float, on these data, recomputed
    always : the label that every sample of the data is given; None where the card tells them apart
    unchecked : tuple of str, what stands in the card and was not proven
    """

    accepted: bool
    reason: str
    result: Report = field(default_factory=lambda: Report(False, "it was not looked at"))
    version: int = 0
    status: str = ""
    asked: float = 0.0
    objective: float = math.inf
    bound: float = -math.inf
    gap: float = math.inf
    joint: int | None = None
    within: Mapping[str, Any] | None = None
    threshold: float = math.nan
    totals: tuple[Mapping[str, Any], ...] = ()
    error: float = math.nan
    roc_auc: float = math.nan
    always: Any = None
    unchecked: tuple[str, ...] = ()
    seconds: float = 0.0


def check_card(
    document: Document,
    arrays: Arrays | str,
    data: Instance,
    *,
    given: Mapping[str, Any] | None = None,
    workers: LeafWorkers = ALONE,
) -> CardReport:
    """Check a scorecard, and the result that it is about, against the data.

    Parameters
    ----------
    document : mapping, the JSON of a card
    arrays : mapping, what the sidecar beside it holds, or in words why there is none; of version 1 it is not looked at
    data : Instance, the data that the result was found on, scaled as it was
    given, workers : as of `mipfs.check.result.check_result`
    """
    begin = time.perf_counter()
    found = dict[str, Any]()
    reason = refusal_reason(lambda: _check(document, arrays, data, given, workers, found))
    return CardReport(not reason, reason, **found, seconds=time.perf_counter() - begin)


def _check(
    document: Document,
    arrays: Arrays | str,
    data: Instance,
    given: Mapping[str, Any] | None,
    workers: LeafWorkers,
    found: dict[str, Any],
) -> None:
    version = _card_version(document)
    result = document["result"]
    found |= {"version": version, "unchecked": (SEARCH, HISTORY, *([UNPROVEN] if version == 1 else []))}
    own: dict[str, Any] = {}
    if not isinstance(arrays, str) and any(name.startswith(PREFIX) for name in arrays):
        from mipfs.check.card_joint import split_arrays  # most cards have no such proof

        arrays, own = split_arrays(arrays)
    require(
        "joint" in document or not own, "beside the card stands a proof of features and points that it does not name"
    )
    found["result"] = report = _check_inside(result, arrays, data, version, given, workers)
    require(report.accepted, f"the result inside: {report.reason}")
    _kind_of(result)
    require(same(document["labels"], result["labels"]), "the labels are not those of the result inside")
    require(document["data_sha256"] == result["data_sha256"], "the card is about other data than the result inside")
    scale, intercept = (number(document[name], name) for name in ("scale", "intercept"))
    require(scale > 0.0, f"the scale is {scale!r}, it must be positive")
    threshold = -intercept / scale
    require(math.isfinite(threshold), "no total parts the classes: intercept/scale is beyond floating point")
    lines = lines_of(document, version, data)
    there = in_unit({**result, "certificate": {}}, {}, ScaledData(data))
    statement = Statement(there.document, there.scaled.data)
    if not statement.bias:
        _check_intercept(lines, scale, intercept)
    objective, error = require_certain(*_card_objective(statement, lines, scale, intercept), "the card")
    claimed = number(document["objective"], "the objective of the card")
    asked = times(claimed, 2 * there.exponent)
    meets = abs(objective - asked) <= NEAR * abs(objective) + error
    objective = times(objective, -2 * there.exponent)
    require(meets, f"the objective of the card is {objective!r}, not {claimed!r}")
    found |= {"objective": objective, "threshold": threshold} | _check_search(document, claimed)
    if "odds" in document:
        _check_odds(document, scale, intercept)
    if "joint" in document:
        require(not isinstance(arrays, str), str(arrays))
        from mipfs.check.card_joint import check_joint

        found["joint"] = check_joint(document, own, data, statement)
        found["within"] = document["joint"].get("within")
        found["unchecked"] = (HISTORY,)
    _check_totals(document, data, lines, threshold, version, found)


def _card_version(document: Document) -> int:
    """The version of a card, after its fields and its digest were looked at."""
    require(type(document.get("schema")) is int and document["schema"] == 1, "the schema is not 1")
    require(document.get("kind") == "scorecard", f"the kind is {document.get('kind')!r}, not 'scorecard'")
    version = document.get("version", 1)
    known = type(version) is int and (version == NEWEST or (version == 1 and "version" not in document))
    require(known, f"rule {version!r} of scoring is unknown")
    right = FIRST if version == 1 else SECOND | ({"joint", "odds"} & document.keys())
    strangers, missing = sorted(document.keys() - right), sorted(right - document.keys())
    require(not strangers, f"a card of version {version} has no field {strangers[:1]}")
    require(not missing, f"the card has no {missing[:1]}")
    if version > 1:
        bins = document["bins"]
        fits = type(bins) is int and (bins == 0 or 2 <= bins <= MOST_BINS)
        require(fits, f"bins is {bins!r}, neither 0 nor a number of ranges from 2 to {MOST_BINS}")
        require(
            document["sha256"] == _card_digest(document), "the card was changed: its sha256 is not that of its text"
        )
    return int(version)


def _card_digest(document: Document) -> str:
    """The SHA-256 of the card's own JSON without the field of that name."""
    rest = {name: value for name, value in document.items() if name != "sha256"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _check_inside(
    result: Document,
    arrays: Arrays | str,
    data: Instance,
    version: int,
    given: Mapping[str, Any] | None,
    workers: LeafWorkers,
) -> Report:
    """The result inside, whole, or of the first version in all but its proof."""
    require(isinstance(result, Mapping), "the result inside is none")
    require(result.get("trace") == [], "the result inside has a history, which a card leaves out")
    if version == 1:
        return check_unproven(result, data, given=given)
    if isinstance(arrays, str):
        return Report(False, arrays)
    return check_result(result, arrays, data, given=given, workers=workers)


def _kind_of(result: Document) -> None:
    """Refuse results that a card is not for."""
    params = result["params"]
    require(result["objective"] is not None, "the result inside has no classifier")
    require(result.get("atoms") is None, "the result inside does not select single features")
    require(params.get("regulariser") is None, "the result inside has another term of the weights than their squares")
    is_sum = not is_joint(result) and params.get("margin", "unit") == "unit"
    require(is_sum, "the loss of the result inside is no sum over the samples, or its margin is not 1")


def _check_intercept(lines: list[CardLine], scale: float, intercept: float) -> None:
    """Without an intercept the card's is what the origins of its columns make of none."""
    terms = [Fraction(scale) * line.points * Fraction(line.moved) for line in lines]
    right = -sum(terms, Fraction(0))
    room = Fraction(NEAR) * sum(map(abs, terms), Fraction(0))
    require(
        abs(Fraction(intercept) - right) <= room, f"the intercept is {intercept!r}, but {float(right)!r} without one"
    )


def _card_objective(statement: Statement, lines: list[CardLine], scale: float, intercept: float) -> tuple[float, float]:
    """½ Σ (s a λ)² + Σ c ℓ at the exact sums of the card, in the unit of the statement, and its rounding error."""
    e = statement.data.exponent
    regular = 0.5 * math.fsum(times(line.size * scale * line.points, e) ** 2 for line in lines)
    n, target = statement.data.n_samples, statement.target(1.0)
    found, sizes = np.zeros(n), np.zeros(n)
    for line in lines:
        term = line.points * line.counts()
        found += term
        sizes += np.abs(term)
    y = statement.data.y
    short = target - y * (scale * found + intercept)
    off = (len(lines) + 16) * (U * (scale * sizes + abs(intercept) + abs(target)) + TINY)
    require(np.all(np.isfinite(short) & np.isfinite(off)), "a score of the card is beyond floating point")
    loss, error, doubt = statement.loss_at(short, off)
    most = DOUBTFUL_ERROR * abs(regular + loss)
    if error > most:
        for i in np.flatnonzero(doubt > 0.5 * most / n).tolist():
            short[i], off[i] = _exact_margin_shortfall(lines, i, float(y[i]), (scale, intercept, target))
        loss, error, _ = statement.loss_at(short, off)
    return regular + loss, error + (len(lines) + 16) * (2.0 * U * regular + TINY) + 2.0 * U * loss


def _exact_margin_shortfall(
    lines: list[CardLine], i: int, y: float, at: tuple[float, float, float]
) -> tuple[float, float]:
    """How far the margin of row i falls short, of rational arithmetic rounded once, and how far that is off."""
    scale, intercept, target = map(Fraction, at)
    total = sum((line.points * line.exactly(i) for line in lines), Fraction(0))
    short = float(target - Fraction(y) * (scale * total + intercept))
    return short, U * abs(short) + TINY


def _check_odds(document: Document, scale: float, intercept: float) -> None:
    """How totals are scores of odds: origin and points follow from what was asked, and from scale and intercept."""
    stated, params = document["odds"], document["result"]["params"]
    require(isinstance(stated, Mapping) and stated.keys() == ODDS, f"'odds' has other fields than {sorted(ODDS)}")
    score, odds, double, origin, each = (number(stated[name], f"{name} of the odds") for name in ODDS_IN_ORDER)
    require(params["loss"] == "logistic", f"the loss {params['loss']!r} says no odds")
    require(odds > 0.0 and double != 0.0, "the odds are not above 0, or nothing doubles them")
    weights, labels = params.get("class_weight") or {}, document["labels"]
    ratio = 1.0
    if weights:
        ratio = number(weights[str(labels["positive"])], "a weight") / number(
            weights[str(labels["negative"])], "a weight"
        )
    factor = double / math.log(2.0)
    terms = (score, factor * intercept, -factor * math.log(ratio), -factor * math.log(odds))
    right = {"origin": (origin, math.fsum(terms), sum(map(abs, terms))), "per_point": (each, factor * scale, abs(each))}
    for name, (told, value, size) in right.items():
        require(
            abs(told - value) <= NEAR * size, f"{name} of the odds is {told!r}, but {value!r} follows from the rest"
        )


def _check_search(document: Document, objective: float) -> dict[str, Any]:
    """What the search says of itself: it holds together, no more is known of it."""
    bound, asked, stated = (number(document[name], f"{name} of the card") for name in ("bound", "asked", "gap"))
    kinds: dict[str, Any] = {"stop_reason": str, "nodes": int, "seconds": (int, float)}
    kinds["unrounded"] = (int, float, type(None))
    for name, kind in kinds.items():
        value = document[name]
        require(isinstance(value, kind) and not isinstance(value, bool), f"{name} of the card is {value!r}")
    require(bound <= objective, f"the bound of the card, {bound!r}, lies above its objective {objective!r}")
    require(0 <= asked < 1, f"the asked gap of the card is {asked!r}, it must lie in [0, 1)")
    gap = gap_between(objective, bound)
    room = NEAR * (1.0 + gap)
    require(abs(gap - stated) <= room, f"the gap of the card is {stated!r}, but {gap!r} of its objective and its bound")
    status = document["status"]
    fits = {"OPTIMAL": gap <= asked + room, "FEASIBLE": gap > asked - room}
    require(
        fits.get(status), f"the status of the card is {status!r}, with a gap of {gap:g} where {asked:g} was asked for"
    )
    return {"status": status, "asked": asked, "bound": bound, "gap": gap}


def _check_totals(
    document: Document, data: Instance, lines: list[CardLine], threshold: float, version: int, found: dict[str, Any]
) -> None:
    """The totals of the data, what is decided of them, and how well."""
    own, compared, room = totals(lines, threshold, version)
    positive = data.y > 0
    rows = _ranges_of_totals(compared, positive, threshold, document["result"]["labels"])
    stated = document["totals"]
    fits = isinstance(stated, list) and len(stated) == len(rows)
    require(fits, f"the card does not have the {len(rows)} ranges of the totals of these data")
    for k, (one, right) in enumerate(zip(stated, rows, strict=True), start=1):
        _check_range(k, one, right, room)
    error = float(np.mean((compared > threshold) != positive))
    _require_near(document["error"], error, "error")
    area = _area_under_roc(own, positive)
    if math.isnan(area):
        require(document["roc_auc"] is None, f"roc_auc is {document['roc_auc']!r}, but one class is missing")
    else:
        _require_near(document["roc_auc"], area, "roc_auc")
    decisions = {bool(one) for one in compared > threshold}
    label = document["labels"]["positive" if True in decisions else "negative"]
    found |= {"totals": tuple(rows), "error": error, "roc_auc": area, "always": label if len(decisions) == 1 else None}


def _ranges_of_totals(found: Array, positive: Any, threshold: float, labels: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The ranges of totals (n,), each on one side of the threshold."""
    rows = []
    each = np.unique(found)
    for part in np.array_split(each, min(MOST_RANGES, each.size)):
        for side, decision in ((part[part <= threshold], "negative"), (part[part > threshold], "positive")):
            if side.size:
                inside = (found >= side[0]) & (found <= side[-1])
                counts = {"samples": int(inside.sum()), "positives": int((inside & positive).sum())}
                rows.append({"from": float(side[0]), "to": float(side[-1]), **counts, "decision": labels[decision]})
    return rows


def _check_range(k: int, one: Any, right: Mapping[str, Any], room: float) -> None:
    require(isinstance(one, Mapping) and one.keys() == right.keys(), f"range {k} of the totals has other fields")
    for name in ("samples", "positives"):
        same = type(one[name]) is int and one[name] == right[name]
        require(same, f"range {k} of the totals has {one[name]!r} {name}, but {right[name]} in these data")
    for name in ("from", "to"):
        end = number(one[name], f"{name} of range {k} of the totals")
        require(abs(end - right[name]) <= room, f"range {k} of the totals: {name} is {end!r}, but {right[name]!r}")
    label = right["decision"]
    same = type(one["decision"]) is type(label) and one["decision"] == label
    require(same, f"range {k} of the totals is decided {one['decision']!r}, but the card gives {label!r}")


def _require_near(stated: Any, right: float, name: str) -> None:
    value = number(stated, name)
    require(abs(value - right) <= NEAR, f"{name} is {value!r}, but {right!r} on these data")


def _area_under_roc(found: Array, positive: Any) -> float:
    """The share of pairs of the classes in the right order, ties by half; not a number where a class is missing."""
    above, below = found[positive], np.sort(found[~positive])
    if not (above.size and below.size):
        return math.nan
    pairs = np.searchsorted(below, above, side="left").sum() + np.searchsorted(below, above, side="right").sum()
    return float(pairs / (2.0 * above.size * below.size))
