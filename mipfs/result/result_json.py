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
    if not isinstance(document, dict) or document.get("schema") != schema:
        raise ValueError(f"not a result of schema {schema}")
    found = {}
    for name, read in FIELDS.items():
        if name not in document and name not in LATER:
            raise ValueError(f"not a complete result: it has no {name!r}")
        if name in document:
            found[name] = _one(read, document[name], name)
    if "gap" not in document:
        raise ValueError("not a complete result: it has no 'gap'")
    _one(_or_null(_number), document["gap"], "gap")
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


def _require(holds: bool) -> None:
    if not holds:
        raise TypeError


def _text(value: Any) -> str:
    _require(isinstance(value, str))
    return str(value)


def _number(value: Any) -> float:
    _require(isinstance(value, (int, float)) and not isinstance(value, bool))
    number: float = value  # a whole number stays one
    return number


def _divisor(value: Any) -> float:
    _require(_number(value) > 0)
    return float(value)


def _whole(value: Any) -> int:
    _require(isinstance(value, int) and not isinstance(value, bool) and value >= 0)
    return int(value)


def _label(value: Any) -> Any:
    _require(isinstance(value, (str, int, float)))
    return value


def _list(read: Callable[[Any], Any]) -> Callable[[Any], tuple[Any, ...]]:
    def of(value: Any) -> tuple[Any, ...]:
        _require(isinstance(value, list))
        return tuple(read(item) for item in value)

    return of


def _table(read: Callable[[Any], Any]) -> Callable[[Any], dict[str, Any]]:
    def of(value: Any) -> dict[str, Any]:
        _require(isinstance(value, dict))
        return {name: read(item) for name, item in value.items()}

    return of


def _record(**reads: Callable[[Any], Any]) -> Callable[[Any], dict[str, Any]]:
    """A table that has these entries, and perhaps others."""

    def of(value: Any) -> dict[str, Any]:
        _require(isinstance(value, dict))
        return {**value, **{name: read(value[name]) for name, read in reads.items()}}

    return of


def _or_null(read: Callable[[Any], Any], unearned: Any = None) -> Callable[[Any], Any]:
    return lambda value: unearned if value is None else read(value)


def _ends(value: Any) -> tuple[float | None, float | None]:
    _require(len(value) == 2)
    low, high = _list(_or_null(_number))(value)
    return low, high


def _labels(value: Any) -> dict[str, Any]:
    _require(isinstance(value, dict) and value.keys() == {"negative", "positive"})
    return {name: _label(item) for name, item in value.items()}


def _params(value: Any) -> dict[str, Any]:
    _require(isinstance(value, dict))
    for name in ("measure", "loss", "margin"):
        _or_null(_text)(value.get(name))
    for name in ("forced_in", "forced_out"):
        _or_null(_list(_text))(value.get(name))
    _or_null(_table(_number))(value.get("penalty"))
    named = value.get("regulariser")
    _require(named is None or (isinstance(named, dict) and isinstance(named.get("name"), str)))
    _or_null(_table(_ends))(value.get("weight_bounds"))
    _or_null(_table(_number))(value.get("class_weight"))
    for name in ("M", "gap"):
        _or_null(_number)(value.get(name))
    return dict(value)


def _scaling(value: Any) -> dict[str, Any]:
    _require(value["kind"] in ("none", "standard", "unit"))
    center = {"center": _table(_number)} if "center" in value else {}
    return _record(shift=_table(_number), scale=_table(_divisor), **center)(value)


def _flag(value: Any) -> bool:
    _require(isinstance(value, bool))
    return bool(value)


def _near_optimal(value: Any) -> dict[str, Any]:
    support = _record(selected=_list(_text), objective=_number, gap=_or_null(_number))
    asked = {"complete": _flag, "gap": _or_null(_number), "size": _or_null(_whole)}
    _record(supports=_list(support), share=_table(_number), **asked)(value)
    return dict(value)


def _validated(value: Any) -> dict[str, Any]:
    _record(error=_number, selected=_list(_text))(value)
    return dict(value)


def _atoms(value: Any) -> dict[str, Any]:
    _record(names=_or_null(_list(_text)))(value)
    if value.get("made") is not None and "kind" in value["made"]:
        kernel = {"degree": _whole, "gamma": _number, "r": _number, "count": _whole}
        made = _record(kind=_text, parts=_list(_list(_text)), heredity=_or_null(_text), **kernel)(value["made"])
        _require(made["kind"] == "monomials" and made["degree"] in (2, 3) and value["names"] is not None)
        _require(len(made["parts"]) == len(value["names"]))
    elif value.get("made") is not None:
        place = _record(column=_whole, shift=_number, scale=_divisor, map=_table(_numbers))
        said = _record(name=_text, options=_record(), n_features=_whole, scaling=_text, features=_table(place))
        _record(data_sha256=_text)(said(value["made"]))
    return dict(value)


def _read(value: Any) -> dict[str, Any]:
    found = _record(label=_or_null(_text), words=_table(_list(_text)))(value)
    if "left_out" in found:
        found["left_out"] = list(_list(_text)(found["left_out"]))
    if found.get("recipe") is not None:
        counted = {"filled": _table(_label), "missing": _table(_whole)}
        try:
            Recipe.of_document(_record(**counted)(found["recipe"]))
        except UsageError:
            raise TypeError from None
    return found


def _calibration(value: Any) -> dict[str, Any]:
    numbers = {"a": _number, "b": _number} if value["method"] == "sigmoid" else {"x": _numbers, "y": _numbers}
    found = _record(method=_text, samples=_whole, folds=_whole, **numbers)(value)
    _require(found["method"] in ("sigmoid", "isotonic"))
    if found["method"] == "isotonic":
        x, y = found["x"], found["y"]
        _require(isinstance(x, tuple) and isinstance(y, tuple) and len(x) == len(y) > 0 and list(x) == sorted(x))
    return found


def _settings(value: Any) -> DriverSettings | None:
    """The record in use; None where it is one of another version."""
    return restored(_record(record=_text)(value))


def _numbers(value: Any) -> Any:
    return _list(_number)(value) if isinstance(value, list) else _number(value)


def _file_name(value: Any) -> str:
    _require(isinstance(value, str) and value not in ("", "..") and value == PurePath(value).name and "\0" not in value)
    return str(value)


def _step(value: Any) -> dict[str, Any]:
    values = {"objective": _or_null(_number, math.inf), "bound": _or_null(_number, -math.inf)}
    found = _record(seconds=_number, iteration=_whole, **values)(value)
    return found | {"upper": _or_null(_number, math.inf)(value.get("upper"))}


_free = _or_null(_number)
FIELDS: Mapping[str, Callable[[Any], Any]] = {
    "status": _text,
    "stop_reason": _text,
    "objective": _or_null(_number, math.inf),
    "bound": _or_null(_number, -math.inf),
    "selected": _list(_text),
    "weights": _table(_number),
    "intercept": _or_null(_number, math.nan),
    "params": _params,
    "driver": _text,
    "seconds": _number,
    "counters": _table(_number),
    "trace": _list(_step),
    "labels": _labels,
    "columns": _table(_whole),
    "n_features": _whole,
    "scaling": _scaling,
    "data_sha256": _text,
    "rows": _list(_record(name=_text, terms=_table(_number), lb=_free, ub=_free, origin=_text)),
    "conflict": _list(_text),
    "relaxed": _or_null(_record(upper=_or_null(_number), lower=_or_null(_number))),
    "validated": _or_null(_validated),
    "bound_source": _text,
    "certificate": _or_null(_record(kind=_text, bound=_free, gap=_number, file=_file_name, sha256=_text)),
    "versions": _table(_text),
    "extra": _table(_record()),
    "atoms": _or_null(_atoms),
    "near_optimal": _or_null(_near_optimal),
    "read": _or_null(_read),
    "command": _or_null(_text),
    "settings": _or_null(_settings),
    "calibration": _or_null(_calibration),
}
"""The fields of schema 1, and what reads each."""
LATER = ("extra", "near_optimal", "atoms", "read", "command", "settings", "calibration")
"""Fields that are not in every JSON of schema 1."""


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:60]}..."
