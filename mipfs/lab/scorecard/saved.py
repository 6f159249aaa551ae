"""A scorecard as JSON, and read back: it holds its result, so that it scores new rows, raw tables too, by itself."""

from __future__ import annotations

import hashlib
import io
import math
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import numpy as np
import numpy.typing as npt

from mipfs.check.known import EVERY_ARRAY, OF_CARDS
from mipfs.errors import DataError
from mipfs.lab.scorecard.card import VERSION, CardFamily, OddsScale, Scorecard
from mipfs.lab.scorecard.columns import Column
from mipfs.lab.scorecard.within import CardRows
from mipfs.plumbing import typed_json
from mipfs.plumbing.declared import Count, Excess, NumberRange, Positive, Share, check_arguments
from mipfs.plumbing.typed_json import JUDGED, Null, Sha256, Such, Whole, Written
from mipfs.readers.arrays import load_arrays, write_arrays
from mipfs.readers.room import PROOF_TIMES
from mipfs.result import saved_card, sidecar
from mipfs.result.result import Result
from mipfs.result.result_document import LabelsEntry, ResultDocument
from mipfs.result.saved_card import REMEDY
from mipfs.result.status import Status, StopReason

LATER = "read it by a later version of mipfs"


class PointsEntry(TypedDict):
    """A column and its points."""

    feature: str
    kind: Literal["two values", "scaled", "threshold"]
    origin: float
    unit: Annotated[float, Such(lambda unit: unit != 0.0), Written(Positive)]
    threshold: float | None
    points: int


Points = Annotated[PointsEntry, Such(lambda one: (one["kind"] == "threshold") == (one["threshold"] is not None))]
TotalsEntry = TypedDict(
    "TotalsEntry",
    {"from": float, "to": float, "samples": Count, "positives": Whole, "decision": str | int | float},
)
"""A range of totals: its ends, how many samples it has and how many are positive, and what is decided."""
Totals = Annotated[TotalsEntry, Such(lambda row: row["positives"] <= row["samples"])]


class WithinEntry(TypedDict):
    """At most `columns` of the parts, and `each` of the thresholds of one; a part has thresholds and others."""

    columns: Count | None
    each: Count | None
    parts: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]


class JointEntry(TypedDict):
    """What the bound is proven for, with features and points together."""

    M: Count
    out: tuple[str, ...]
    within: NotRequired[WithinEntry]


class OddsEntry(TypedDict):
    """How totals are scores of odds."""

    score: float
    odds: Positive
    double: float
    origin: float
    per_point: float


class CardDocument(TypedDict):
    """What mipfs scorecard --json writes."""

    schema: Literal[1]
    kind: Literal["scorecard"]
    version: NotRequired[Literal[2]]
    status: Annotated[Status, Written(Literal["OPTIMAL", "FEASIBLE"])]
    stop_reason: StopReason
    objective: float
    bound: float
    gap: Annotated[Excess, JUDGED]
    unrounded: Annotated[float, Null(math.inf)]
    asked: Annotated[float, Written(Share)]
    most_points: Annotated[int, Written(Count)]
    bins: NotRequired[Annotated[int, Written(Whole)]]
    scale: Positive
    intercept: float
    card: Annotated[tuple[Points, ...], NumberRange(1)]
    totals: Annotated[list[Totals], Written(Annotated[list[Totals], NumberRange(1)])]
    error: Annotated[float, Written(Excess)]
    roc_auc: float | None
    labels: Annotated[LabelsEntry, JUDGED]
    result: Annotated[ResultDocument, JUDGED]
    data_sha256: Annotated[Sha256, JUDGED]
    joint: NotRequired[JointEntry]
    odds: NotRequired[OddsEntry]
    nodes: Annotated[int, Written(Whole)]
    seconds: Annotated[float, Written(Excess)]
    sha256: NotRequired[Annotated[Sha256, JUDGED]]


@check_arguments
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
    if document.get("version", VERSION) != VERSION:
        raise DataError(f"rule {document['version']} of scoring is unknown", LATER, path=path)
    result, own = _split_result_and_card(document, result, path)
    try:
        card = _card_of_document(typed_json.read(document, CardDocument), result, own)
        if card.version > 1:
            _check_whole(document, card)
    except ValueError as error:
        raise DataError(f"not a complete scorecard: {error}", REMEDY, path=path) from None
    return card


def _split_result_and_card(
    document: Mapping[str, Any], result: Result, path: Path
) -> tuple[Result, Mapping[str, npt.NDArray[Any]]]:
    """The result with the certificate that is its own, and the arrays of the card's proof, which stand in one file."""
    content = sidecar.held_sidecar(result) if "joint" in document else None
    if content is None or result.certificate is None:
        return result, {}
    arrays = load_arrays(path, content, known=EVERY_ARRAY, times=PROOF_TIMES)
    own = {name: held for name, held in arrays.items() if name in OF_CARDS}
    rest = io.BytesIO()
    write_arrays({name: held for name, held in arrays.items() if name not in own}, rest, zipfile.ZIP_DEFLATED)
    entry = {**result.certificate, "sha256": hashlib.sha256(rest.getvalue()).hexdigest()}
    return replace(result, certificate=entry, sidecar=rest.getvalue()), own


def _check_whole(document: Mapping[str, Any], card: Scorecard) -> None:
    """Refuse what the card that was read does not say: a field that nothing reads, or that follows from others."""
    again = card.document()
    for name in (*document, *again):
        if name not in ("result", "sha256") and (name not in document or document[name] != again.get(name)):
            raise ValueError(f"{name!r} is not what the rest of it says")


def _card_of_document(found: Any, result: Result, own: Mapping[str, npt.NDArray[Any]]) -> Scorecard:
    """The card of a `CardDocument`; `center` and `size` of a column are of the objective, and not needed to score."""
    strangers = [one["feature"] for one in found["card"] if one["feature"] not in result.weights]
    if strangers:
        raise ValueError(f"{strangers[0]!r} is no feature of the result")
    if not math.isfinite(found["intercept"] / found["scale"]):
        raise ValueError("no threshold")
    version = found.get("version", 1)
    if version > 1 and "bins" not in found:
        raise ValueError("it has no 'bins'")
    same = ("most_points", "bound", "unrounded", "status", "stop_reason", "asked", "nodes", "seconds")
    numbers = {name: float(found[name]) for name in ("scale", "intercept", "objective")}
    area = math.nan if found["roc_auc"] is None else found["roc_auc"]
    return Scorecard(
        result=result,
        columns=tuple(
            Column(one["feature"], one["kind"], float(one["origin"]), float(one["unit"]), one["threshold"], 0.0, 1.0)
            for one in found["card"]
        ),
        points=tuple(one["points"] for one in found["card"]),
        truth=np.zeros(0),
        totals_in_training=np.zeros(0),
        stated={"totals": found["totals"], "error": found["error"], "roc_auc": area},
        version=version,
        bins=found["bins"] if version > 1 else 0,
        joint=None
        if found.get("joint") is None
        else CardFamily(
            found["joint"]["M"],
            tuple(found["joint"]["out"]),
            own,
            within=CardRows.read(found["joint"]["within"]) if "within" in found["joint"] else None,
        ),
        odds=None if found.get("odds") is None else OddsScale(**found["odds"]),
        **{name: found[name] for name in same} | numbers,
    )
