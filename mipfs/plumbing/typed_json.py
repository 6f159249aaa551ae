"""JSON read by annotations: a document is stated once, as a class, and one reader holds values to it.

    class RowEntry(TypedDict):                a table that stays one, with what else stands in it
        name: str
        lb: float | None
        origin: NotRequired[str]

    @dataclass
    class Rung: ...                           a table that becomes an object; a field with a default may be missing

    read(document["rows"], tuple[RowEntry, ...])

What a table has beside its stated entries is kept: later versions write more, and a checker refuses what it does not
know. A number that is whole stays so. `docs/schemas.py` makes the JSON schemas from the same classes, which say what is
written; `Written` and `JUDGED` mark where a reader takes more than that, because the checker is the one to judge it.
"""

from __future__ import annotations

import dataclasses
import enum
import json
import math
import sys
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import PurePath
from typing import Annotated, Any, Literal, NotRequired, Union, get_args, get_origin, get_type_hints, is_typeddict

import numpy as np

from mipfs.plumbing.declared import NumberRange

Reader = Callable[[Any], Any]
LONGEST = 60
"""Characters of a value that a message repeats."""


class FieldError(ValueError):
    """A value that is not of its kind, or an entry that is missing; the message says where."""

    def __init__(self, value: Any, place: tuple[str | int, ...] = (), is_missing: bool = False) -> None:
        super().__init__(value, place, is_missing)
        self.value, self.place, self.is_missing = value, place, is_missing

    def __str__(self) -> str:
        where = "".join(map(_path_step, self.place)).removeprefix(".")
        return f"it has no '{where}'" if self.is_missing else f"'{where}' cannot be {_shorten_json(self.value)}"

    def inside(self, name: str | int) -> FieldError:
        """This error, seen from the table or list that the value stands in."""
        return FieldError(self.value, (name, *self.place), self.is_missing)


@dataclass(frozen=True)
class Null:
    """Mark: null stands for this value, which JSON has no number for."""

    value: float


@dataclass(frozen=True)
class Such:
    """Mark: what else must hold of a value; a condition that cannot be evaluated does not hold."""

    holds: Callable[[Any], bool]


@dataclass(frozen=True)
class Pattern:
    """Mark: the regular expression that a string matches, for the schema."""

    text: str


@dataclass(frozen=True)
class Written:
    """Mark: what is written is of this kind, narrower than what is read, and `always`, though it need not be read."""

    kind: Any
    always: bool = False


JUDGED = "judged by the checker"
"""Mark of an entry of this kind that is not looked at here."""
Whole = Annotated[int, NumberRange(0)]
"""A whole number, 0 or more."""
Sizes = dict[str, Whole]
Numbers = dict[str, float]
Texts = tuple[str, ...]
Label = str | int | float | bool
Sha256 = Annotated[str, Written(Annotated[str, Pattern("^[0-9a-f]{64}$")])]
FileName = Annotated[
    str, Such(lambda name: name not in ("", "..") and name == PurePath(name).name and "\0" not in name)
]
"""The name of a file that lies beside the document."""


def read(value: Any, kind: Any) -> Any:
    """A value of JSON as a kind.

    Parameters
    ----------
    value : parsed JSON
    kind : annotation
        bool, int, float, str, None, Any, a Literal, an Enum (by name), ``dict[str, K]``, ``list[K]``,
        ``tuple[K, ...]``, ``tuple[K, L]``, a union, a TypedDict, a dataclass; or one of these Annotated with
        `NumberRange` (of what is no number, its length), `Null` or `Such`.

    Raises
    ------
    FieldError
        A ValueError whose message names the place, and the value there.
    """
    return reader_of(kind)(value)


@cache
def reader_of(kind: Any) -> Reader:
    """What reads values of a kind."""
    origin = get_origin(kind)
    if kind is Any:
        return lambda value: value
    if origin is Annotated:
        return _reader_of_marked(*get_args(kind))
    if origin in (Union, types.UnionType):
        return _any_of(get_args(kind))
    if origin is Literal:
        known = [(type(one), one) for one in get_args(kind)]
        return _checked_reader(lambda value: (type(value), value) in known)
    if origin in (dict, Mapping):
        return _mapping_reader(*map(reader_of, get_args(kind))) if get_args(kind) else _checked_reader(_PLAIN[dict])
    if origin in (list, tuple):
        return _sequence_reader(origin, get_args(kind))
    if is_typeddict(kind) or dataclasses.is_dataclass(kind):
        return _record_reader(kind)
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return _reader_of_named(kind)
    return _checked_reader(_PLAIN[kind])


_PLAIN: Mapping[Any, Callable[[Any], bool]] = {
    str: lambda value: isinstance(value, str),
    bool: lambda value: isinstance(value, bool),
    int: lambda value: isinstance(value, int) and not isinstance(value, bool),
    float: lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
    dict: lambda value: isinstance(value, dict),
    types.NoneType: lambda value: value is None,
}


@cache
def entries_of(kind: Any) -> dict[str, tuple[Any, bool]]:
    """The entries of a TypedDict or dataclass: the kind of each, and whether it must be there."""
    names = vars(sys.modules[kind.__module__])  # given, so that a lambda in an annotation sees them, too
    hints = get_type_hints(kind, globalns=names, include_extras=True)
    if is_typeddict(kind):
        found = {name: (hint, True) for name, hint in hints.items()}
        return {name: (get_args(hint)[0], False) if get_origin(hint) is NotRequired else (hint, needed)
                for name, (hint, needed) in found.items()}  # fmt: skip
    without = {one.name: one.default is one.default_factory is dataclasses.MISSING for one in dataclasses.fields(kind)}
    return {name: (hints[name], needed) for name, needed in without.items()}


def _record_reader(kind: Any) -> Reader:
    reads = {name: (reader_of(hint), needed) for name, (hint, needed) in entries_of(kind).items()
             if not (get_origin(hint) is Annotated and JUDGED in get_args(hint))}  # fmt: skip
    makes = dataclasses.is_dataclass(kind)

    def of(value: Any) -> Any:
        if not isinstance(value, dict):
            raise FieldError(value)
        found = {}
        for name, (read_entry, needed) in reads.items():
            if name in value:
                try:
                    found[name] = read_entry(value[name])
                except FieldError as error:
                    raise error.inside(name) from None
            elif needed:
                raise FieldError(None, (name,), is_missing=True)
        return kind(**found) if makes else {**value, **found}

    return of


def _mapping_reader(read_name: Reader, read_item: Reader) -> Reader:
    def of(value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise FieldError(value)
        return {_read_item(read_name, name, name): _read_item(read_item, item, name) for name, item in value.items()}

    return of


def _sequence_reader(origin: Any, kinds: tuple[Any, ...]) -> Reader:
    """Of a list or tuple of any length, or of a tuple with a kind for every item."""
    each = [reader_of(one) for one in kinds if one is not Ellipsis]
    is_long = origin is list or Ellipsis in kinds

    def of(value: Any) -> Any:
        if not isinstance(value, list) or not (is_long or len(value) == len(each)):
            raise FieldError(value)
        return origin(_read_item(each[0 if is_long else k], item, k) for k, item in enumerate(value))

    return of


def _read_item(read_item: Reader, item: Any, name: str | int) -> Any:
    try:
        return read_item(item)
    except FieldError as error:
        raise error.inside(name) from None


def _any_of(kinds: tuple[Any, ...]) -> Reader:
    """The first of several kinds that fits; of one or null, the place of what is wrong in the one."""
    several = [reader_of(one) for one in kinds if one is not types.NoneType]
    takes_null = len(several) < len(kinds)

    def of(value: Any) -> Any:
        if value is None and takes_null:
            return None
        if len(several) == 1:
            return several[0](value)
        for one in several:
            try:
                return one(value)
            except FieldError:
                pass
        raise FieldError(value)

    return of


def _reader_of_marked(kind: Any, *marks: Any) -> Reader:
    inner = reader_of(kind)
    conditions = [one.holds for one in marks if isinstance(one, Such)]
    conditions += [_in_range(one) for one in marks if isinstance(one, NumberRange)]
    null = next((one for one in marks if isinstance(one, Null)), None)

    def of(value: Any) -> Any:
        if null is not None and value is None:
            return null.value
        found = inner(value)
        try:
            if all(holds(found) for holds in conditions):
                return found
        except (TypeError, ValueError, LookupError, AttributeError):
            pass
        raise FieldError(value)

    return of


def _in_range(within: NumberRange) -> Callable[[Any], bool]:
    return lambda value: (value if isinstance(value, (int, float)) else len(value)) in within


def _checked_reader(holds: Callable[[Any], bool]) -> Reader:
    def of(value: Any) -> Any:
        if not holds(value):
            raise FieldError(value)
        return value

    return of


def _reader_of_named(kind: type[enum.Enum]) -> Reader:
    def of(value: Any) -> enum.Enum:
        if not isinstance(value, str) or value not in kind.__members__:
            raise FieldError(value)
        return kind[value]

    return of


def _path_step(name: str | int) -> str:
    if isinstance(name, int):
        return f"[{name}]"
    return f".{name}" if name.isidentifier() or name.replace("-", "_").isidentifier() else f"[{_shorten_json(name)}]"


def _shorten_json(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def plain(value: Any) -> Any:
    """A value in JSON's own types: objects by their fields, members of an Enum by name, null for what is not finite."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    return value
