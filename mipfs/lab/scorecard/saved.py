"""A scorecard as JSON, and read back: it holds its result, so that it scores new rows, raw tables too, by itself."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from mipfs.errors import DataError
from mipfs.lab.scorecard.card import VERSION, Scorecard
from mipfs.lab.scorecard.columns import Column
from mipfs.plumbing.declared import declared
from mipfs.result import saved_card
from mipfs.result.result import Result, Status, StopReason
from mipfs.result.saved_card import REMEDY

KINDS = ("two values", "scaled", "threshold")


@declared
def read_scorecard(path: str | Path) -> Scorecard:
    """Read a scorecard that `mipfs scorecard --json` or `Scorecard.save` wrote.

    Parameters
    ----------
    path : path-like

    Returns
    -------
    Scorecard
        As it was, but `truth` and `totals_in_training` are empty: `rates()`, `error` and `auc` say what they said.

    Raises
    ------
    DataError
        There is no scorecard in it, or one that does not hold together.

    Examples
    --------
    >>> from mipfs import read_scorecard
    >>> read_scorecard("card.json").predict(frame)  # doctest: +SKIP
    """
    path = Path(path)
    document, result = saved_card.load(path)
    saved_card.check_unchanged(document, path)
    try:
        card = _card(document, result, path)
        if card.version > 1:
            _check_whole(document, card)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataError(f"not a complete scorecard: {error!r}", REMEDY, path=path) from None
    return card


def _check_whole(document: Mapping[str, Any], card: Scorecard) -> None:
    """Refuse what the card that was read does not say: a field that nothing reads, or that follows from others."""
    again = card.document()
    for name in (*document, *again):
        if name not in ("result", "sha256") and (name not in document or document[name] != again.get(name)):
            raise ValueError(f"{name!r} is not what the rest of it says")


def _card(document: Mapping[str, Any], result: Result, path: Path) -> Scorecard:
    version = _whole(document.get("version", 1))
    if version != VERSION and "version" in document:
        raise DataError(f"rule {version} of scoring is unknown", "read it by a later version of mipfs", path=path)
    columns = tuple(_column(one, result) for one in document["card"])
    numbers = {name: _number(document[name]) for name in ("scale", "intercept", "objective", "seconds")}
    if not columns or numbers["scale"] <= 0.0 or not math.isfinite(numbers["intercept"] / numbers["scale"]):
        raise ValueError("no columns, or no threshold")
    return Scorecard(
        result=result,
        columns=columns,
        points=tuple(_whole(one["points"]) for one in document["card"]),
        most_points=_whole(document["most_points"]),
        bound=_number(document["bound"]),
        unrounded=math.inf if document["unrounded"] is None else _number(document["unrounded"]),
        status=Status[document["status"]],
        stop_reason=StopReason[document["stop_reason"]],
        asked=_number(document["asked"]),
        nodes=_whole(document["nodes"]),
        truth=np.zeros(0),
        totals_in_training=np.zeros(0),
        stated={"totals": [_total(row) for row in document["totals"]], **_shares(document)},
        version=version,
        bins=_whole(document["bins"]) if version > 1 else 0,
        **numbers,
    )


def _shares(document: Mapping[str, Any]) -> dict[str, float]:
    area = document["roc_auc"]
    return {"error": _number(document["error"]), "roc_auc": math.nan if area is None else _number(area)}


def _total(row: Mapping[str, Any]) -> dict[str, Any]:
    """A range of totals: its ends, how many samples it has and how many are positive, and what is decided."""
    samples, positives = _whole(row["samples"]), _whole(row["positives"])
    if not 0 <= positives <= samples or samples == 0 or not isinstance(row["decision"], (str, int, float)):
        raise ValueError(f"{dict(row)!r} is no range of totals")
    return {**row, "from": _number(row["from"]), "to": _number(row["to"])}


def _column(one: Mapping[str, Any], result: Result) -> Column:
    """A column as its entry says; `center` and `size` are of the objective, and not needed to score."""
    threshold = None if one["threshold"] is None else _number(one["threshold"])
    if one["kind"] not in KINDS or (one["kind"] == "threshold") != (threshold is not None):
        raise ValueError(f"a column of the kind {one['kind']!r}")
    if one["feature"] not in result.weights:
        raise ValueError(f"{one['feature']!r} is no feature of the result")
    unit = _number(one["unit"])
    if unit == 0.0:
        raise ValueError("a column whose unit is 0")
    return Column(one["feature"], one["kind"], _number(one["origin"]), unit, threshold, 0.0, 1.0)


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ValueError(f"{value!r} is no number")
    return float(value)


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"{value!r} is no whole number")
    return value


def stated_result(result: Result) -> dict[str, Any]:
    """A result in the JSON of a card: without its history."""
    return dict(json.loads(dataclasses.replace(result, trace=type(result.trace)(())).to_json()))
