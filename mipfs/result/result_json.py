"""From the JSON of a result back to its fields, every one of the kind that schema 1 says: what is left out or odd is
named, so that nothing that reads a result meets a surprise later."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path, PurePath
from typing import Any

import numpy as np

from mipfs.data.recipe import Recipe
from mipfs.errors import DataError, UsageError
from mipfs.plumbing import strict_json
from mipfs.plumbing.json_fields import divisor, flag, number, or_null, record, require, sequence, table, text, whole
from mipfs.readers.files import opened
from mipfs.settings import DriverSettings, restored


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


def plain(value: Any) -> Any:
    """A value in JSON's own types, with null for what is not finite."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def fields(document: Any, schema: int) -> dict[str, Any]:
    """The fields of a result of that schema, as plain values of the right kind.

    Raises
    ------
    ValueError
        Another schema, or a field that is missing or of the wrong kind; the message names it.
    """
    if not isinstance(document, dict) or not strict_json.is_schema(document.get("schema"), schema):
        raise ValueError(f"not a result of schema {schema}")
    found = {}
    for name, read in FIELDS.items():
        if name not in document and name not in LATER:
            raise ValueError(f"not a complete result: it has no {name!r}")
        if name in document:
            found[name] = _one(read, document[name], name)
    if "gap" not in document:
        raise ValueError("not a complete result: it has no 'gap'")
    _one(or_null(number), document["gap"], "gap")
    products = "kind" in ((found.get("atoms") or {}).get("made") or {})
    known = {*found["atoms"]["names"]} if products else found["columns"]
    strangers = [name for name in found["weights"] if name not in known]
    if products:
        strangers += _without_parts(found)
    if strangers:
        raise ValueError(f"not a complete result: the weight of {strangers[0]!r} has no column")
    if not products and (found.get("atoms") or {}).get("made") is not None:
        others = [name for name in found["weights"] if name.rpartition("[")[0] not in found["selected"]]
        if others:
            raise ValueError(f"not a complete result: {others[0]!r} has a weight, and its function is not selected")
    if any(column >= found["n_features"] for column in found["columns"].values()):
        raise ValueError(f"not a complete result: a column lies beyond n_features = {found['n_features']}")
    return found


def _without_parts(found: dict[str, Any]) -> list[str]:
    """Weights of products whose features have no column, shift or scale in the result."""
    parts = dict(zip(found["atoms"]["names"], found["atoms"]["made"]["parts"], strict=True))
    tables = found["columns"], found["scaling"]["shift"], found["scaling"]["scale"]
    return [
        name for name in found["weights"] if not all(one in table for one in parts.get(name, ()) for table in tables)
    ]


def _one(read: Callable[[Any], Any], value: Any, name: str) -> Any:
    try:
        return read(value)
    except (TypeError, KeyError, AttributeError):
        pass
    raise ValueError(f"not a complete result: {name!r} cannot be {_short(value)}")


def _label(value: Any) -> Any:
    require(isinstance(value, (str, int, float)))
    return value


def _ends(value: Any) -> tuple[float | None, float | None]:
    require(len(value) == 2)
    low, high = sequence(or_null(number))(value)
    return low, high


def _labels(value: Any) -> dict[str, Any]:
    require(isinstance(value, dict) and value.keys() == {"negative", "positive"})
    return {name: _label(item) for name, item in value.items()}


def _params(value: Any) -> dict[str, Any]:
    require(isinstance(value, dict))
    for name in ("measure", "loss", "margin"):
        or_null(text)(value.get(name))
    for name in ("forced_in", "forced_out"):
        or_null(sequence(text))(value.get(name))
    or_null(table(number))(value.get("penalty"))
    named = value.get("regulariser")
    require(named is None or (isinstance(named, dict) and isinstance(named.get("name"), str)))
    or_null(table(_ends))(value.get("weight_bounds"))
    or_null(table(number))(value.get("class_weight"))
    for name in ("M", "gap"):
        or_null(number)(value.get(name))
    return dict(value)


def _scaling(value: Any) -> dict[str, Any]:
    require(value["kind"] in ("none", "standard", "unit"))
    center = {"center": table(number)} if "center" in value else {}
    return record(shift=table(number), scale=table(divisor), **center)(value)


def _near_optimal(value: Any) -> dict[str, Any]:
    support = record(selected=sequence(text), objective=number, gap=or_null(number))
    asked = {"complete": flag, "gap": or_null(number), "size": or_null(whole)}
    record(supports=sequence(support), share=table(number), **asked)(value)
    return dict(value)


def _validated(value: Any) -> dict[str, Any]:
    record(error=number, selected=sequence(text))(value)
    return dict(value)


def _atoms(value: Any) -> dict[str, Any]:
    record(names=or_null(sequence(text)))(value)
    if value.get("made") is not None and "kind" in value["made"]:
        kernel = {"degree": whole, "gamma": number, "r": number, "count": whole}
        made = record(kind=text, parts=sequence(sequence(text)), heredity=or_null(text), **kernel)(value["made"])
        require(made["kind"] == "monomials" and made["degree"] in (2, 3) and value["names"] is not None)
        require(len(made["parts"]) == len(value["names"]))
    elif value.get("made") is not None:
        place = record(column=whole, shift=number, scale=divisor, map=table(_numbers))
        said = record(name=text, options=record(), n_features=whole, scaling=text, features=table(place))
        record(data_sha256=text)(said(value["made"]))
    return dict(value)


def _read(value: Any) -> dict[str, Any]:
    found = record(label=or_null(text), words=table(sequence(text)))(value)
    for name in ("left_out", "kept"):
        if name in found:
            found[name] = list(sequence(text)(found[name]))
    if found.get("recipe") is not None:
        counted = {"filled": table(_label), "missing": table(whole)}
        try:
            Recipe.of_document(record(**counted)(found["recipe"]))
        except UsageError:
            raise TypeError from None
    return found


def _calibration(value: Any) -> dict[str, Any]:
    numbers = {"a": number, "b": number} if value["method"] == "sigmoid" else {"x": _numbers, "y": _numbers}
    found = record(method=text, samples=whole, folds=whole, **numbers)(value)
    require(found["method"] in ("sigmoid", "isotonic"))
    if found["method"] == "isotonic":
        x, y = found["x"], found["y"]
        require(isinstance(x, tuple) and isinstance(y, tuple) and len(x) == len(y) > 0 and list(x) == sorted(x))
    return found


def _settings(value: Any) -> DriverSettings | None:
    """The record in use; None where it is one of another version."""
    return restored(record(record=text)(value))


def _numbers(value: Any) -> Any:
    return sequence(number)(value) if isinstance(value, list) else number(value)


def _file_name(value: Any) -> str:
    require(isinstance(value, str) and value not in ("", "..") and value == PurePath(value).name and "\0" not in value)
    return str(value)


def _step(value: Any) -> dict[str, Any]:
    values = {"objective": or_null(number, math.inf), "bound": or_null(number, -math.inf)}
    found = record(seconds=number, iteration=whole, **values)(value)
    return found | {"upper": or_null(number, math.inf)(value.get("upper"))}


_free = or_null(number)
FIELDS: Mapping[str, Callable[[Any], Any]] = {
    "status": text,
    "stop_reason": text,
    "objective": or_null(number, math.inf),
    "bound": or_null(number, -math.inf),
    "selected": sequence(text),
    "weights": table(number),
    "intercept": or_null(number, math.nan),
    "params": _params,
    "driver": text,
    "seconds": number,
    "counters": table(number),
    "trace": sequence(_step),
    "labels": _labels,
    "columns": table(whole),
    "n_features": whole,
    "scaling": _scaling,
    "data_sha256": text,
    "rows": sequence(record(name=text, terms=table(number), lb=_free, ub=_free, origin=text)),
    "conflict": sequence(text),
    "relaxed": or_null(record(upper=or_null(number), lower=or_null(number))),
    "validated": or_null(_validated),
    "bound_source": text,
    "certificate": or_null(record(kind=text, bound=_free, gap=number, file=_file_name, sha256=text)),
    "versions": table(text),
    "extra": table(record()),
    "atoms": or_null(_atoms),
    "near_optimal": or_null(_near_optimal),
    "read": or_null(_read),
    "command": or_null(text),
    "settings": or_null(_settings),
    "calibration": or_null(_calibration),
    "rules": whole,
}
"""The fields of schema 1, and what reads each."""
LATER = ("extra", "near_optimal", "atoms", "read", "command", "settings", "calibration", "rules")
"""Fields that are not in every JSON of schema 1."""


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:60]}..."
