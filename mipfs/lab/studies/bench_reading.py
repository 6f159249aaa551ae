"""A saved benchmark read back: its setting and its records, every field of the kind that `mipfs bench` writes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mipfs.errors import DataError, UsageError
from mipfs.lab.studies.bench_methods import get_method
from mipfs.lab.studies.bench_setting import Setting
from mipfs.lab.studies.bench_unit import DONE, Record
from mipfs.plumbing import strict_json
from mipfs.plumbing.json_fields import Reader, divisor, flag, number, or_null, record, require, sequence, text, whole

SCHEMA = 1
KIND = "bench"
REMEDY = "give what `mipfs bench -o FILE` wrote"


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
        named = isinstance(document, dict) and document.get("kind") == KIND
        if not named or not strict_json.is_schema(document.get("schema"), SCHEMA):
            raise ValueError("another kind of document")
        records = _read("records", sequence(record()), document)
        p = _read("n_features", whole, document) if p is None else p
        for one in records:
            _check_record(one, p)
        return _setting(_read("params", record(), document)), records, document["complete"] is True
    except OSError as error:
        raise DataError("cannot be read", (error.strerror or str(error)).lower(), path=path) from None
    except (ValueError, KeyError, TypeError, UsageError) as error:
        raise DataError(f"is no benchmark ({error})", REMEDY, path=path) from None


def _setting(document: Any) -> Setting:
    """The setting of a document, each field of its kind."""
    for name, read in _SETTING.items():
        if name in document:
            _read(name, read, document)
    for name in document["methods"]:
        get_method(name)
    return Setting.from_document(document)


def _check_record(one: Mapping[str, Any], p: int) -> None:
    """Refuse a record that lacks a field, or has one of another kind."""
    for name, read in {**_UNIT, **(_DONE if one.get("status") == DONE else {})}.items():
        _read(name, read, one)
    if one.get("selected") is not None:
        chosen = _read("selected", sequence(whole), one)
        if max(chosen, default=-1) >= p or len(set(chosen)) < len(chosen):
            raise ValueError("'selected' is not what a benchmark has there")


def _read(name: str, read: Reader, document: Mapping[str, Any]) -> Any:
    """A field of a document."""
    try:
        return read(document[name])
    except (KeyError, TypeError):
        raise ValueError(f"{name!r} is not what a benchmark has there") from None


def _above(least: int) -> Reader:
    """A whole number above another one."""

    def of(value: Any) -> int:
        require(whole(value) > least)
        return int(value)

    return of


def _weights(value: Any) -> Any:
    """Class weights as a setting has them: a word, or pairs of a label and a number."""
    return value if value is None or isinstance(value, str) else sequence(_pair)(value)


def _pair(value: Any) -> tuple[str, float]:
    require(isinstance(value, list) and len(value) == 2)
    return text(value[0]), number(value[1])


_SETTING: Mapping[str, Reader] = {
    "methods": sequence(text), "M": sequence(whole), "C": sequence(divisor), "folds": _above(1), "inner": _above(1),
    "repeats": _above(0), "measure": text, "beta": or_null(number), "k": or_null(whole), "bias": flag, "seed": whole,
    "time_limit": or_null(number), "source": text, "data_sha256": text, "scaling": text, "ideal": sequence(text),
    "class_weight": _weights,
}  # fmt: skip
"""The fields of a setting, and what each holds."""
_UNIT: Mapping[str, Reader] = {
    "method": text, "M": or_null(whole), "fold": whole, "status": text, "message": text,
}  # fmt: skip
_DONE: Mapping[str, Reader] = {
    "value": number, "n_features": whole, "selected": or_null(sequence(whole)), "C": number, "seconds": number,
    "choice_seconds": number, "memory_bytes": or_null(number), "proof": or_null(text), "gap": or_null(number),
    "stopped": or_null(text),
}  # fmt: skip
"""The fields of every record, and of one that is done."""
