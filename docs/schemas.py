"""The JSON schemas in docs/schemas, made from the classes that state each document (`mipfs.plumbing.typed_json`).

python docs/schemas.py

``sidecar-2.json``, of the arrays of a certificate, is kept by hand: what reads them is the checker, which shares
nothing with those that write.
"""

from __future__ import annotations

import dataclasses
import enum
import json
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin, is_typeddict

from mipfs.lab.scorecard.saved import CardDocument
from mipfs.lab.studies.bench_reading import BenchDocument
from mipfs.lab.studies.ladder import ComparisonDocument
from mipfs.lab.studies.selection_stability import StabilityDocument
from mipfs.plumbing.declared import NumberRange
from mipfs.plumbing.typed_json import Null, Pattern, Written, entries_of
from mipfs.result.path_document import ClassesDocument, PathDocument
from mipfs.result.result_document import CertificateEntry, ResultDocument

FOLDER = Path(__file__).resolve().parent / "schemas"
FILES = {
    "result-1.json": ResultDocument,
    "certificate-1.json": CertificateEntry,
    "path-1.json": PathDocument,
    "classes-1.json": ClassesDocument,
    "compare-1.json": ComparisonDocument,
    "bench-1.json": BenchDocument,
    "card-1.json": CardDocument,
    "stability-1.json": StabilityDocument,
}
"""The file of each document; one that stands in another is referred to by its file."""
PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean", types.NoneType: "null", dict: "object"}
Schema = dict[str, Any]


def schema(name: str) -> Schema:
    """The schema in a file of `FILES`."""
    defs: dict[str, Schema] = {}
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": name}
    body = _table(FILES[name], defs)
    return {
        **head,
        "title": (FILES[name].__doc__ or "").splitlines()[0].rstrip("."),
        **body,
        "$defs": dict(sorted(defs.items())),
    }


def _of(kind: Any, defs: dict[str, Schema]) -> Schema:
    """The schema of a kind; a table that is stated as a class goes to `defs`."""
    origin = get_origin(kind)
    if kind is Any:
        return {}
    if origin is Annotated:
        return _marked(*get_args(kind), defs=defs)
    if origin in (Union, types.UnionType):
        return _any_of([_of(one, defs) for one in get_args(kind)])
    if origin is Literal:
        known = get_args(kind)
        return {"const": known[0]} if len(known) == 1 else {"enum": [*known]}
    if origin in (dict, Mapping) or kind is dict:
        items = _of(get_args(kind)[1], defs) if get_args(kind) else {}
        return {"type": "object", **({"additionalProperties": items} if items else {})}
    if origin in (list, tuple):
        return _sequence(origin, get_args(kind), defs)
    if is_typeddict(kind) or dataclasses.is_dataclass(kind):
        file = next((name for name, one in FILES.items() if one is kind), None)
        if file is not None:
            return {"$ref": file}
        if kind.__name__ not in defs:
            defs[kind.__name__] = {}
            defs[kind.__name__] = _table(kind, defs)
        return {"$ref": f"#/$defs/{kind.__name__}"}
    if issubclass(kind, enum.Enum):
        return {"enum": [*kind.__members__]}
    return {"type": PLAIN[kind]}


def _table(kind: Any, defs: dict[str, Schema]) -> Schema:
    entries = entries_of(kind)
    always = {
        name for name, (hint, needed) in entries.items()
        if needed or any(isinstance(one, Written) and one.always for one in _marks(hint))
    }  # fmt: skip
    found: Schema = {"type": "object", "properties": {name: _of(hint, defs) for name, (hint, _) in entries.items()}}
    found["required"] = [name for name in entries if name in always]
    return {**found, "additionalProperties": False}


def _marks(hint: Any) -> tuple[Any, ...]:
    return get_args(hint)[1:] if get_origin(hint) is Annotated else ()


def _sequence(origin: Any, kinds: tuple[Any, ...], defs: dict[str, Schema]) -> Schema:
    items = [_of(one, defs) for one in kinds if one is not Ellipsis]
    if origin is list or Ellipsis in kinds:
        return {"type": "array", "items": items[0]}
    alike = {"items": items[0]} if all(one == items[0] for one in items) else {"prefixItems": items}
    return {"type": "array", **alike, "minItems": len(items), "maxItems": len(items)}


def _marked(kind: Any, *marks: Any, defs: dict[str, Schema]) -> Schema:
    written = next((one for one in marks if isinstance(one, Written)), None)
    if written is not None:
        return _of(written.kind, defs)
    found = _of(kind, defs)
    for mark in marks:
        if isinstance(mark, Null):
            found = _any_of([found, {"type": "null"}])
        elif isinstance(mark, Pattern):
            found = {**found, "pattern": mark.text}
        elif isinstance(mark, NumberRange):
            found = _ranged(found, mark)
    return found


def _ranged(found: Schema, within: NumberRange) -> Schema:
    """A range of a number, or of the length of a list."""
    number = {
        "minimum": within.least,
        "maximum": within.most,
        "exclusiveMinimum": within.above,
        "exclusiveMaximum": within.below,
    }
    words = {"minItems": within.least, "maxItems": within.most} if found.get("type") == "array" else number
    if "$ref" in found or found.get("type") == "object":
        return found
    return {**found, **{name: _whole(end) for name, end in words.items() if abs(end) < float("inf")}}


def _whole(end: float) -> float | int:
    return int(end) if float(end).is_integer() else end


def _any_of(several: list[Schema]) -> Schema:
    """Any of several schemas: of plain types a list of these."""
    if all(one.keys() == {"type"} for one in several):
        names = [name for one in several for name in ([one["type"]] if isinstance(one["type"], str) else one["type"])]
        return {"type": [*dict.fromkeys(names)]}
    return {"anyOf": several}


def text(name: str) -> str:
    """What stands in a file of `FILES`."""
    return json.dumps(schema(name), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    for name in FILES:
        (FOLDER / name).write_text(text(name), encoding="utf-8")
