"""How a raw table was prepared: what the result states is what the data, read anew, was prepared by."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mipfs.check.rounding import Document, require
from mipfs.data.instance import Instance

_ABOUT = {
    "drop": "the columns that are left out",
    "use": "the columns that are used",
    "impute": "how missing values are filled in",
    "types": "what cells are read as",
    "filled": "what stands for missing values",
    "missing": "how many values were missing",
}


def check_recipe(document: Document, data: Instance) -> None:
    """Compare every part of the recipe, down to the numbers that stand for missing values."""
    stated = (document.get("read") or {}).get("recipe")
    own = None if data.prepared is None else data.prepared.document()
    require(own is None or stated is not None, "the data was prepared by a recipe, and the result states none")
    require(stated is None or own is not None, "the result states how a table was prepared, and the data was not")
    if own is None or stated is None:
        return
    for name, about in _ABOUT.items():
        require(name in stated, f"the result does not say {about}")
        one, other = stated[name], own[name]
        if isinstance(one, dict) and isinstance(other, dict):  # the first entry that differs is enough
            differs = [key for key in (*one, *other) if not _same(one.get(key), other.get(key))][:1]
            about += "".join(f" of {key!r}" for key in differs)
            one, other = ({key: table.get(key) for key in differs} for table in (one, other))
            shown = [*one.values(), None][0], [*other.values(), None][0]
        else:
            shown = one, other
        require(_same(one, other), f"{about}: {shown[0]!r} is stated, and {shown[1]!r} in the data")


def _same(one: object, other: object) -> bool:
    """Whether two values of JSON are the same, of the same kinds: true is no 1."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(_same, one, other))
    numbers = type(one) in (int, float) and type(other) in (int, float)
    return (numbers or type(one) is type(other)) and one == other


def _listed(names: Iterable[str], most: int = 6) -> str:
    """Names in a line."""
    shown = list(names)
    return ", ".join(shown) if len(shown) <= most else f"{', '.join(shown[:most])} and {len(shown) - most} more"


def in_words(stated: Mapping[str, Any]) -> list[str]:
    """What `Prepared.document` says, in words, one line for each part."""
    found = []
    if stated["drop"]:
        found.append(f"columns left out: {_listed(stated['drop'])}")
    if stated["use"] is not None:
        found.append(f"columns used: {_listed(stated['use'])}")
    if stated["types"]:
        found.append(f"cells read as: {_listed(f'{name} {kind}' for name, kind in stated['types'].items())}")
    if stated["impute"]:
        missing = stated["missing"]
        total = sum(missing.values())
        each = (f"{name} {count} ({_stand_in(name, stated)})" for name, count in missing.items())
        found.append(f"missing values: {total} in {len(missing)} columns, filled in" + (": " if missing else ""))
        found[-1] += _listed(each)
    return found


def _stand_in(name: str, stated: Mapping[str, Any]) -> str:
    """What a column's missing values became, in words."""
    how = stated["impute"].get(name, stated["impute"].get("*"))
    value = stated["filled"][name]
    if isinstance(value, str):
        return "a level of their own" if how == "level" else f"the most frequent, {value!r}"
    said = f"{'the most frequent' if how == 'most frequent' else 'the median'}, {value:g}"
    return f"{said}, and a column that says so" if how == "level" else said
