"""A scorecard in a file, for whatever needs no more of it than its JSON and its result: `mipfs verify` and errors.

The laboratory, which makes cards, writes and reads them by this file too.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from mipfs.errors import DataError
from mipfs.plumbing import strict_json
from mipfs.proof import pair
from mipfs.result import result_json
from mipfs.result.documents import CARD
from mipfs.result.result import Result

REMEDY = "give what `mipfs scorecard --json` wrote"
CHANGED = "take the card as `mipfs scorecard --json` wrote it, or make it anew"
SIGNED = 2
"""The version of cards that have a digest."""
VALUE_DIGITS = 12
"""Significant digits of a value that count, so that one that was scaled and scaled back is the same."""


def load(path: str | Path) -> tuple[dict[str, Any], Result]:
    """The JSON of a card, and the result inside with the certificate beside the card.

    Raises
    ------
    DataError
        No such file, no card in it, or no complete result in that.
    """
    path = Path(path)

    def parsed() -> tuple[tuple[dict[str, Any], Result], Mapping[str, Any] | None]:
        try:
            document = strict_json.parse_json(result_json.read(path))
        except ValueError as error:
            raise DataError(f"not a JSON document ({error})", REMEDY, path=path) from None
        if not isinstance(document, dict) or document.get("kind") != CARD:
            raise DataError("it holds no scorecard", REMEDY, path=path)
        inside = document.get("result")
        if document.get("schema") != 1 or not isinstance(inside, dict) or "params" not in inside:
            raise DataError(
                "an earlier version wrote it, without what scores new rows", "make the card anew", path=path
            )
        result = Result.from_json(json.dumps(inside), path=path)
        return (document, result), result.certificate

    (document, result), sidecar = pair.read(path, parsed)
    if sidecar is not None and sidecar.found:
        result = replace(result, sidecar=sidecar.content)
    return document, result


def sign_document(document: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON of a card with the field "sha256": the digest of the rest."""
    rest = {name: value for name, value in document.items() if name != "sha256"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return rest | {"sha256": hashlib.sha256(text.encode()).hexdigest()}


def check_unchanged(document: Mapping[str, Any], path: Path) -> None:
    """Refuse a card of version 2 whose text is not the one that was written.

    Raises
    ------
    DataError
        Its digest is another one, or missing, or it says that it is of version 1, which has none.
    """
    unsigned = "version" not in document and ("bins" in document or "sha256" in document)
    if unsigned or (document.get("version") == SIGNED and sign_document(document) != document):
        raise DataError("the card was changed: its sha256 is not that of its text", CHANGED, path=path)


def condition(kind: str, origin: float, unit: float, threshold: float | None) -> str:
    """In words, what a point of a column is for; its numbers are those that decide."""
    if threshold is not None:
        return f"at least {exact(threshold)}"
    if kind == "two values":
        larger = float(f"{origin + unit:.{VALUE_DIGITS}g}")
        return f"is {exact(larger)}" + ("" if origin == 0.0 else f", not {exact(origin)}")
    return f"per {exact(unit)}" + (f" above {exact(origin)}" if origin else "")


def exact(value: float) -> str:
    """The shortest decimal that is read as the number: 40, 0.1, 1700000450."""
    return repr(float(value)).removesuffix(".0")
