"""JSON that others may have written: numbers that floating point carries, strings that can be written, not too deep.

No name stands twice in a mapping: of two values under one name every reader takes the one it likes.
"""

from __future__ import annotations

import json
import math
import sys
from typing import Any

MOST_DEPTH = 40
"""Nesting of a document: ours has six levels."""


def parse_json(text: str) -> Any:
    """The document that stands in a text.

    Raises
    ------
    ValueError
        No JSON, or JSON beyond that.
    """
    try:
        document = json.loads(
            text, parse_constant=_refuse, parse_float=_parse_float, parse_int=_parse_int, object_pairs_hook=_unique_keys
        )
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    _check(document, MOST_DEPTH)
    return document


def is_schema(value: Any, schema: int) -> bool:
    """Whether a value is the whole number of a schema: true and 1.0, which equal 1, are none."""
    return type(value) is int and value == schema


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen = set[str]()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise ValueError(f"the name {twice[:30]!r} stands twice in one mapping")
    return found


def _refuse(name: str) -> float:
    raise ValueError(f"{name} is no number of JSON")


def _parse_float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:30]} is beyond floating point")
    return value


def _parse_int(text: str) -> int:
    if len(text) > 310 or abs(int(text)) > sys.float_info.max:
        raise ValueError(f"a number of {len(text)} digits is beyond floating point")
    return int(text)


def _check(value: Any, depth: int) -> None:
    """Refuse what is nested too deeply, and strings that are half of a character."""
    if depth == 0:
        raise ValueError("it is nested too deeply")
    if isinstance(value, str) and not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ValueError(f"{value[:30]!r} holds half of a character") from None
    elif isinstance(value, dict):
        for name, item in value.items():
            _check(name, depth - 1)
            _check(item, depth - 1)
    elif isinstance(value, list):
        for item in value:
            _check(item, depth - 1)
