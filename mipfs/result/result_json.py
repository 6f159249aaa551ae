"""From the JSON of a result back to its fields, every one of its kind (`mipfs.result.result_document`): what is left
out or odd is named, so that nothing that reads a result meets a surprise later."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mipfs.errors import DataError
from mipfs.plumbing import strict_json, typed_json
from mipfs.readers.files import opened
from mipfs.result.result_document import ResultDocument
from mipfs.settings import restore_settings

APART = ("schema", "gap", "extra_cost")
"""Entries that are no fields of a `Result`."""


def read(path: str | Path) -> str:
    """The text of a file.

    Raises
    ------
    DataError
        No such file, or no text.
    """
    with opened(Path(path)) as stream:
        content = stream.read()
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise DataError("not a text file", "give a file written by `mipfs solve --json`", path=path) from None


def checked_fields(document: Any, schema: int) -> dict[str, Any]:
    """The fields of a result of that schema, as plain values of the right kind.

    Raises
    ------
    ValueError
        Another schema, or a field that is missing or of the wrong kind; the message names it.
    """
    if not isinstance(document, dict) or not strict_json.is_schema(document.get("schema"), schema):
        raise ValueError(f"not a result of schema {schema}")
    try:
        whole = typed_json.read(document, ResultDocument)
    except typed_json.FieldError as error:
        raise ValueError(f"not a complete result: {error}") from None
    found = {name: whole[name] for name in typed_json.entries_of(ResultDocument) if name in whole and name not in APART}
    if found.get("settings") is not None:
        found["settings"] = restore_settings(found["settings"])
    if odd := _find_contradiction(found):
        raise ValueError(f"not a complete result: {odd}")
    return found


def _find_contradiction(found: dict[str, Any]) -> str:
    """What one field of a result says against another."""
    made = (found.get("atoms") or {}).get("made")
    products = made is not None and "kind" in made
    known = {*found["atoms"]["names"]} if products else found["columns"]
    strangers = [name for name in found["weights"] if name not in known]
    if products:
        strangers += _without_parts(found)
    if strangers:
        return f"the weight of {strangers[0]!r} has no column"
    if made is not None and not products:
        others = [name for name in found["weights"] if name.rpartition("[")[0] not in found["selected"]]
        if others:
            return f"{others[0]!r} has a weight, and its function is not selected"
    if any(column >= found["n_features"] for column in found["columns"].values()):
        return f"a column lies beyond n_features = {found['n_features']}"
    return ""


def _without_parts(found: dict[str, Any]) -> list[str]:
    """Weights of products whose features have no column, shift or scale in the result."""
    parts = dict(zip(found["atoms"]["names"], found["atoms"]["made"]["parts"], strict=True))
    tables = found["columns"], found["scaling"]["shift"], found["scaling"]["scale"]
    return [
        name for name in found["weights"] if not all(one in table for one in parts.get(name, ()) for table in tables)
    ]
