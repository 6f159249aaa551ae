"""How a raw table became columns: what a result states of it is what follows from the data by the rules it names.

The data was read anew, by the rules (`mipfs.readers`) and not by what the result says: see *Rules* in
docs/certificate.md. Of arrays and column stores there is no raw file, and that is said.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mipfs.check.known import rules_of
from mipfs.check.rounding import Document, require
from mipfs.data.instance import Instance
from mipfs.data.rules import FIRST_RULES
from mipfs.data.table_reading import TableReading

DEFAULT_LABEL = "label"
"""The column of the labels of a table that states none."""
STATED = ("label", "words", "left_out", "kept")
"""What every result on a table says since the second rules."""
NO_TABLE = "how a table became these columns: the data has no raw file"
NO_WORDS = "the words of columns of words, which this data does not have as such"

_ABOUT = {
    "drop": "the columns that are left out",
    "use": "the columns that are used",
    "impute": "how missing values are filled in",
    "types": "what cells are read as",
    "marks": "which cells stand for missing values",
    "filled": "what stands for missing values",
    "missing": "how many values were missing",
}


def check_reading(document: Document, data: Instance) -> None:
    """Compare all that a result states of how its table was read with what follows from the data.

    Parameters
    ----------
    document : mapping, the JSON of a result
    data : Instance, the user's own, of which columns may be made
    """
    rules, read, table = rules_of(document), document.get("read"), data.reading
    require(read is None or isinstance(read, Mapping), f"read is {read!r}, no names with values")
    said: Mapping[str, Any] = {} if read is None else read
    if table is not None and table.is_raw and rules > FIRST_RULES:
        for name in STATED:
            follows = f"rules {rules} ask for label, words, left_out and kept"
            require(
                name in said, f"the result does not say how the table was read: read has no {name!r}, and {follows}"
            )
    if read is not None and rules > FIRST_RULES:
        for name in STATED[:2]:
            require(name in read, f"read has no {name!r}; what is no table has null in its place")
        require(("left_out" in read) == ("kept" in read), "read has one of left_out and kept, and not the other")
    _check_label(said.get("label"), data, rules)
    if table is not None or data.words:
        _check_words(said.get("words", {}), document, data)
    check_recipe(document, data)
    _check_left_out(said, (said.get("recipe") or {}).get("use") or (), data, rules)


def _check_label(stated: Any, data: Instance, rules: int) -> None:
    """The labels stand in the column that is stated."""
    own = data.label
    require(stated is None or isinstance(stated, str), f"the column of the labels is {stated!r}")
    asked = data.reading is not None and data.reading.is_raw and rules > FIRST_RULES
    if own is None or (stated is None and not asked):
        return
    require(
        (DEFAULT_LABEL if stated is None else stated) == own,
        f"the labels stand in the column {own!r} of the data, not in {stated!r}",
    )


def _check_words(stated: Any, document: Document, data: Instance) -> None:
    """Words are stated of the columns of words that are used, and of no others: all words of the data, in order."""
    require(isinstance(stated, Mapping), f"the words of columns of words are {stated!r}, no names with values")
    names = {*document["columns"], *document["selected"]}
    for column, own in data.words.items():
        used = column in names or any(f"{column}={word}" in names for word in own)
        require(
            not used or column in stated, f"{column!r} is a column of words that is used, and its words are not said"
        )
        require(used or column not in stated, f"words are stated of the column {column!r}, which is not used")
    for column, seen in stated.items():
        require(column in data.words, f"{column!r} is no column of words of the data")
        same = isinstance(seen, list | tuple) and [*seen] == [*data.words[column]]
        require(
            same,
            f"the words of the column {column!r} are not those of the data: "
            f"{_first_difference(seen, data.words[column])}",
        )


def _first_difference(seen: Any, own: Sequence[str]) -> str:
    """The first place at which words are others than those of the data."""
    stated = [*seen] if isinstance(seen, list | tuple) else []
    k = next((k for k, word in enumerate(own) if k >= len(stated) or stated[k] != word), len(own))
    one = repr(stated[k]) if k < len(stated) else "nothing"
    return f"{one} is stated where {repr(own[k]) if k < len(own) else 'nothing'} follows"


def _check_left_out(said: Mapping[str, Any], used: Sequence[str], data: Instance, rules: int) -> None:
    """Columns of words are left out as the rules say, and as the data has it."""
    table = data.reading
    if table is None or not (table.is_raw or "left_out" in said):
        return
    stated = said.get("left_out")
    if stated is None and rules == FIRST_RULES:  # of a column store nothing was stated: what the rules say holds
        return
    gone = _checked_names(stated, "left_out")
    kept = _checked_names(said.get("kept", []), "kept")
    if not table.is_raw:  # what was left out of the table that a store was made of stands in the store alone
        require({*gone} == {*table.left_out}, f"the store was made without {[*table.left_out]}, and not without {gone}")
    elif rules == FIRST_RULES:
        may_be = table.follows((), used)
        for name in gone:
            require(name in may_be, f"left_out names {name!r}, and rules {rules} leave out no more than {may_be}")
    else:
        for name in kept:
            there = name in data.words or name in table.apart
            require(there, f"kept names {name!r}, which is no column of words of the data")
        require(len({*kept}) == len(kept), f"kept names a column twice: {kept}")
        follows = table.follows(kept, used)
        require(gone == follows, f"left_out is {gone}, and by rules {rules} it follows that it is {follows}")
    same = {*gone} == {*table.left_out}
    require(same, f"columns of words that are no features are {[*table.left_out]} in the data, and not {gone}")


def _checked_names(stated: Any, what: str) -> list[str]:
    """A list of names."""
    fits = isinstance(stated, list | tuple) and all(isinstance(name, str) for name in stated)
    require(fits, f"{what} is {stated!r}, no list of names")
    return [*stated]


def reading_in_words(document: Document, data: Instance) -> list[str]:
    """Where the labels stand, which columns are left out and why, and the rules, one line for each."""
    where = "" if data.label is None else f"column {data.label!r}, "
    found = [f"labels: {where}{data.labels.positive!r} is +1 and {data.labels.negative!r} is -1"]
    table = data.reading
    if table is not None:
        used = () if data.prepared is None else data.prepared.recipe.use or ()
        why = {
            name: _reason_against_column(name, table, data.n_samples)
            for name in {**table.apart, **dict.fromkeys(table.left_out)}
        }
        spared = [name for name in table.apart if name not in table.left_out]
        for names, about in (
            (table.left_out, "columns left out by the rules, as their words tell rows apart"),
            (
                [name for name in spared if name not in used],
                "columns kept by an option (words) that the rules leave out",
            ),
            ([name for name in spared if name in used], "columns kept by an option (use) that the rules leave out"),
        ):
            found += [f"{about}: {', '.join(why[name] for name in names)}"] if names else []
    if data.prepared is not None:
        found += in_words(data.prepared.document())
    rules = rules_of(document)
    first = " (a result that names none has these)" if rules == FIRST_RULES else ""
    return [*found, f"rules of reading and scaling: {rules}{first}"]


def _reason_against_column(name: str, table: TableReading, n: int) -> str:
    """A column with what the rules have against it."""
    if name not in table.apart:
        return name
    one = table.apart[name]
    kind = "" if one.kind is None else f" that look like {one.kind}"
    return f"{name} ({one.words} words{kind} in {n} rows)"


def without_table(document: Document, data: Instance) -> tuple[str, ...]:
    """What cannot be checked of how the data was read."""
    table = data.reading
    is_file = data.source != "" and data.block().is_stored
    found = () if (is_file if table is None else table.is_raw) else (NO_TABLE,)
    return found if data.words or not (document.get("read") or {}).get("words") else (*found, NO_WORDS)


def check_recipe(document: Document, data: Instance) -> None:
    """Compare every part of the recipe, down to the numbers that stand for missing values."""
    stated = (document.get("read") or {}).get("recipe")
    own = None if data.prepared is None else data.prepared.document()
    require(own is None or stated is not None, "the data was prepared by a recipe, and the result states none")
    require(stated is None or own is not None, "the result states how a table was prepared, and the data was not")
    if own is None or stated is None:
        return
    require("marks" not in stated or stated["marks"], "marks of missing values are stated, and none is")
    for name, about in _ABOUT.items():
        require(name == "marks" or name in stated, f"the result does not say {about}")
        one, other = stated.get(name), own.get(name)
        if isinstance(one, dict) and isinstance(other, dict):  # the first entry that differs is enough
            differs = [key for key in (*one, *other) if not _same_json(one.get(key), other.get(key))][:1]
            about += "".join(f" of {key!r}" for key in differs)
            one, other = ({key: table.get(key) for key in differs} for table in (one, other))
            shown = [*one.values(), None][0], [*other.values(), None][0]
        else:
            shown = one, other
        require(_same_json(one, other), f"{about}: {shown[0]!r} is stated, and {shown[1]!r} in the data")


def _same_json(one: object, other: object) -> bool:
    """Whether two values of JSON are the same, of the same kinds: true is no 1."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same_json(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(_same_json, one, other))
    numbers = type(one) in (int, float) and type(other) in (int, float)
    return (numbers or type(one) is type(other)) and one == other


def _list_names(names: Iterable[str], most: int = 6) -> str:
    """Names in a line."""
    shown = list(names)
    return ", ".join(shown) if len(shown) <= most else f"{', '.join(shown[:most])} and {len(shown) - most} more"


def in_words(stated: Mapping[str, Any]) -> list[str]:
    """What `Prepared.document` says, in words, one line for each part."""
    found = []
    if stated["drop"]:
        found.append(f"columns left out by an option (drop): {', '.join(stated['drop'])}")
    if stated["use"] is not None:
        found.append(f"columns that alone are features by an option (use): {', '.join(stated['use'])}")
    if stated["types"]:
        found.append(f"cells read as: {_list_names(f'{name} {kind}' for name, kind in stated['types'].items())}")
    if stated.get("marks"):
        found.append(f"cells that stand for missing values by an option: {_list_names(map(repr, stated['marks']))}")
    if stated["impute"]:
        missing = stated["missing"]
        total = sum(missing.values())
        each = (f"{name} {count} ({_stand_in(name, stated)})" for name, count in missing.items())
        found.append(f"missing values: {total} in {len(missing)} columns, filled in" + (": " if missing else ""))
        found[-1] += _list_names(each)
    return found


def _stand_in(name: str, stated: Mapping[str, Any]) -> str:
    """What a column's missing values became, in words."""
    how = stated["impute"].get(name, stated["impute"].get("*"))
    value = stated["filled"][name]
    if isinstance(value, str):
        return "a level of their own" if how == "level" else f"the most frequent, {value!r}"
    said = f"{'the most frequent' if how == 'most frequent' else 'the median'}, {value:g}"
    return f"{said}, and a column that says so" if how == "level" else said
