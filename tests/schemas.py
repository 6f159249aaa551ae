"""A small validator of JSON schemas (draft 2020-12): the keywords that `docs/schemas` uses, and no others."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "schemas"
NEWEST = {
    "result": 1, "certificate": 1, "sidecar": 2, "path": 1, "bench": 1, "compare": 1, "classes": 1, "card": 1,
    "stability": 1,
}  # fmt: skip
TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,), "array": (list,), "string": (str,), "boolean": (bool,), "null": (type(None),),
    "integer": (int,), "number": (int, float),
}  # fmt: skip
ABOUT = {"$schema", "$id", "$defs", "title", "description"}
KNOWN = ABOUT | {
    *("$ref", "type", "enum", "const", "anyOf", "required", "properties", "additionalProperties", "items"),
    *("minItems", "maxItems", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "pattern"),
}


@lru_cache
def read(name: str) -> Any:
    """A schema file."""
    return json.loads((FOLDER / name).read_text(encoding="utf-8"))


def schema(kind: str) -> Any:
    """The newest schema of a kind."""
    return read(f"{kind}-{NEWEST[kind]}.json")


def is_of(value: Any, name: str) -> bool:
    """Whether a value is of a type of JSON."""
    return isinstance(value, TYPES[name]) and (name in ("boolean",) or not isinstance(value, bool))


def is_same(value: Any, other: Any) -> bool:
    """Whether two values of JSON are equal: true is not 1."""
    return isinstance(value, bool) == isinstance(other, bool) and bool(value == other)


def broken(value: Any, by: Any, root: Any = None, at: str = "") -> list[str]:
    """Where a value does not have the form of a schema, and why."""
    root = by if root is None else root
    assert set(by) <= KNOWN, f"the validator does not know {set(by) - KNOWN}"
    if "$ref" in by:
        file, _, place = by["$ref"].partition("#/$defs/")
        other = read(file) if file else root
        return broken(value, other["$defs"][place] if place else other, other, at)
    found = []
    types = [by["type"]] if isinstance(by.get("type"), str) else by.get("type", [])
    if types and not any(is_of(value, name) for name in types):
        return [f"{at}: {value!r} is none of {types}"]
    if "enum" in by and not any(is_same(value, one) for one in by["enum"]):
        found.append(f"{at}: {value!r} is none of {by['enum']}")
    if "const" in by and not is_same(value, by["const"]):
        found.append(f"{at}: {value!r} is not {by['const']!r}")
    if "anyOf" in by:
        tried = [broken(value, one, root, at) for one in by["anyOf"]]
        found += [] if not all(tried) else tried[-1]
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        low = value >= by.get("minimum", value) and ("exclusiveMinimum" not in by or value > by["exclusiveMinimum"])
        high = value <= by.get("maximum", value) and ("exclusiveMaximum" not in by or value < by["exclusiveMaximum"])
        found += [] if low and high else [f"{at}: {value!r} is out of range"]
    if isinstance(value, str) and "pattern" in by and not re.search(by["pattern"], value):
        found.append(f"{at}: {value!r} does not match {by['pattern']}")
    if isinstance(value, list):
        fits = by.get("minItems", 0) <= len(value) <= by.get("maxItems", len(value))
        found += [] if fits else [f"{at}: {len(value)} items"]
        for k, one in enumerate(value if "items" in by else ()):
            found += broken(one, by["items"], root, f"{at}/{k}")
    if isinstance(value, dict):
        found += [f"{at}: {name} is missing" for name in by.get("required", ()) if name not in value]
        for name, one in value.items():
            inner = by.get("properties", {}).get(name, by.get("additionalProperties", True))
            if inner is False:
                found.append(f"{at}: {name} is unknown")
            elif inner is not True:
                found += broken(one, inner, root, f"{at}/{name}")
    return found
