"""A saved benchmark read back: its setting and its records, every field of the kind that `mipfs bench` writes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from mipfs.errors import DataError, UsageError
from mipfs.lab.studies.bench_methods import get_method
from mipfs.lab.studies.bench_setting import Setting
from mipfs.lab.studies.bench_unit import DONE, Record
from mipfs.plumbing import strict_json

SCHEMA = 1
KIND = "bench"
REMEDY = "give what `mipfs bench -o FILE` wrote"
Holds = Callable[[Any], bool]


def load(path: str | Path, p: int | None = None) -> tuple[Setting, tuple[Record, ...], bool]:
    """Setting and records of a saved benchmark, and whether it was complete.

    Parameters
    ----------
    path : path-like
    p : int, optional, the features of its data; those of the document by default

    Raises
    ------
    DataError
        No such file, or no benchmark.
    """
    try:
        document = strict_json.parsed(Path(path).read_text(encoding="utf-8"))
        if not isinstance(document, dict) or (document.get("schema"), document.get("kind")) != (SCHEMA, KIND):
            raise ValueError("another kind of document")
        records = document["records"]
        _require("records", isinstance(records, list))
        p = document["n_features"] if p is None else p
        _require("n_features", _count(p))
        for record in records:
            _check_record(record, p)
        return _setting(document["params"]), tuple(records), document["complete"] is True
    except OSError as error:
        raise DataError("cannot be read", (error.strerror or str(error)).lower(), path=path) from None
    except (ValueError, KeyError, TypeError, UsageError) as error:
        raise DataError(f"is no benchmark ({error})", REMEDY, path=path) from None


def _setting(document: Any) -> Setting:
    """The setting of a document, each field of its kind."""
    _require("params", isinstance(document, dict))
    for name, holds in _SETTING.items():
        if name in document:
            _require(name, holds(document[name]))
    for name in document["methods"]:
        get_method(name)
    return Setting.from_document(document)


def _check_record(record: Any, p: int) -> None:
    """Refuse a record that lacks a field, or has one of another kind."""
    _require("records", isinstance(record, dict))
    kinds = {**_UNIT, **(_DONE if record.get("status") == DONE else {})}
    for name, holds in kinds.items():
        _require(name, name in record and holds(record[name]))
    chosen = record.get("selected")
    _require("selected", chosen is None or (_list(_count)(chosen) and all(j < p for j in chosen)))
    _require("selected", chosen is None or len(set(chosen)) == len(chosen))


def _require(name: str, holds: bool) -> None:
    if not holds:
        raise ValueError(f"{name!r} is not what a benchmark has there")


def _count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _flag(value: Any) -> bool:
    return isinstance(value, bool)


def _or_null(holds: Holds) -> Holds:
    return lambda value: value is None or holds(value)


def _list(holds: Holds) -> Holds:
    return lambda value: isinstance(value, list) and all(map(holds, value))


def _weights(value: Any) -> bool:
    """Class weights as a setting has them: a word, or pairs of a label and a number."""
    pair = _list(lambda one: isinstance(one, list) and len(one) == 2 and _text(one[0]) and _number(one[1]))
    return value is None or isinstance(value, str) or pair(value)


_SETTING: Mapping[str, Holds] = {
    "methods": _list(_text), "M": _list(_count), "C": _list(lambda value: _number(value) and value > 0),
    "folds": lambda value: _count(value) and value > 1, "inner": lambda value: _count(value) and value > 1,
    "repeats": lambda value: _count(value) and value > 0, "measure": _text, "beta": _or_null(_number),
    "k": _or_null(_count), "bias": _flag, "seed": _count, "time_limit": _or_null(_number), "source": _text,
    "data_sha256": _text, "scaling": _text, "ideal": _list(_text), "class_weight": _weights,
}  # fmt: skip
"""The fields of a setting, and what each holds."""
_UNIT: Mapping[str, Holds] = {
    "method": _text, "M": _or_null(_count), "fold": _count, "status": _text, "message": _text,
}  # fmt: skip
_DONE: Mapping[str, Holds] = {
    "value": _number, "n_features": _count, "selected": _or_null(_list(_count)), "C": _number, "seconds": _number,
    "choice_seconds": _number, "memory_bytes": _or_null(_number), "proof": _or_null(_text), "gap": _or_null(_number),
    "stopped": _or_null(_text),
}  # fmt: skip
"""The fields of every record, and of one that is done."""
