"""Parameters, checked against what is declared of them: a type and a range in their annotations, and one check for all.

    @dataclass(frozen=True)
    class Options(Declared):                      every field is checked when one is made
        gap: Share = 1e-4
        threads: Annotated[int, Within(1)] | None = None

    @declared
    def write(name: str, *, seed: Seed = 0): ...  every argument, at every call

A number is taken as its kind (an integer of NumPy as an int), names as a tuple of str. What is neither a type of Python
nor a class is not looked at.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import inspect
import itertools
import math
import numbers
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, wraps
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from mipfs.errors import UsageError

P = ParamSpec("P")
R = TypeVar("R")

WHOLE = "a whole number"
NUMBER = "a number"
MOST_CHARACTERS = 60
"""Characters of a value that a message repeats."""
MANY_DIGITS = 20
"""Digits from which on a whole number is shown by its size: Python refuses to write thousands of them."""
UNLIMITED = 2.0**31 - 1.0
"""The upper end of a range from which on it is none to speak of: the largest integer of many libraries."""
LONG_ONES = (collections.abc.Sequence, list)
SEQUENCES = (tuple, list, collections.abc.Sequence, collections.abc.Iterable)
_REFUSED = object()


@dataclass(frozen=True)
class NumberRange:
    """The range of a number; NaN lies in none.

    Attributes
    ----------
    least, most : the ends, which belong to it
    above, below : ends that do not
    of : str, what the number counts or measures, such as "seconds"
    finite : bool, whether infinity is refused
    hint : str, what else a message says
    """

    least: float = -math.inf
    most: float = math.inf
    above: float = -math.inf
    below: float = math.inf
    of: str = ""
    finite: bool = True
    hint: str = ""

    def __contains__(self, value: float) -> bool:
        if math.isinf(value):
            return not self.finite and (value > 0 or self.least == value)
        return self.least <= value <= self.most and self.above < value < self.below

    def words(self, kind: str) -> str:
        """A number of that kind in this range."""
        low, high = max(self.least, self.above), min(self.most, self.below)
        opens = "(" if self.above == low else "["
        closes = ")" if self.below == high else "]"
        positive = kind == NUMBER and low == 0 and opens == "("
        what = "a positive number" if positive else kind
        what = f"{what} of {self.of}" if self.of else what
        if high >= UNLIMITED:
            return what if positive or math.isinf(low) else f"{what} {'>' if opens == '(' else '>='} {low:g}"
        if positive or math.isinf(low):
            return f"{what} {'below' if closes == ')' else 'up to'} {high:g}"
        inside = f"from {low:g} to {high:g}" if opens + closes == "[]" else f"in {opens}{low:g}, {high:g}{closes}"
        return f"{what} {inside}; {self.hint}" if self.hint else f"{what} {inside}"


ANY = NumberRange(finite=False)
"""Of a number without a range."""
Count = Annotated[int, NumberRange(1)]
Natural = Annotated[int, NumberRange(0)]
Positive = Annotated[float, NumberRange(above=0)]
Excess = Annotated[float, NumberRange(0)]
"""A relative gap, say, as large as one likes."""
Share = Annotated[float, NumberRange(0, below=1)]
Gap = Annotated[float, NumberRange(0, below=1, hint="0.02 is 2%")]
"""A relative gap: 2 for 2% would ask for nothing, or for everything."""
Seconds = Annotated[float, NumberRange(0, of="seconds", finite=False)]
"""Infinite where there is no limit."""
Gigabytes = Annotated[float, NumberRange(above=0, of="gigabytes", finite=False)]
"""Of 10⁹ bytes."""
Seed = Natural
Names = tuple[str, ...]


class Declared:
    """Base of a dataclass whose fields are checked when one is made."""

    def __post_init__(self) -> None:
        assert dataclasses.is_dataclass(self)
        check_fields(self, *(field.name for field in dataclasses.fields(self)))


def check_fields(record: Any, *names: str) -> None:
    """Check some fields of a dataclass, and take their values as their kinds."""
    owner: Any = type(record)
    kinds = _kinds(owner)
    for name in names:
        object.__setattr__(record, name, _checked(name, getattr(record, name), kinds[name]))


def check_arguments(function: Callable[P, R]) -> Callable[P, R]:
    """A function whose arguments are checked at every call."""
    signature = inspect.signature(function)
    many = {name for name, one in signature.parameters.items() if one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD)}

    @wraps(function)
    def checks(*args: P.args, **kwargs: P.kwargs) -> R:
        bound = signature.bind(*args, **kwargs)
        kinds = _kinds(function)
        for name, value in bound.arguments.items():
            if name in kinds and name not in many:
                bound.arguments[name] = _checked(name, value, kinds[name])
        return function(*bound.args, **bound.kwargs)

    return checks


def arguments_of(function: Callable[..., Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments by name as a function declares them; what a user's own does not annotate is as it was given."""
    try:
        kinds = _kinds(function)
    except (NameError, AttributeError, TypeError):  # annotations that mean nothing when they are resolved
        kinds = {}
    return {name: _checked(name, value, kinds[name]) if name in kinds else value for name, value in given.items()}


def check_value(name: str, value: Any, hint: Any) -> Any:
    """A value as it was declared.

    Raises
    ------
    UsageError
        One line: the value, and what it must be.
    """
    return _checked(name, value, _alternative_types(hint))


def _checked(name: str, value: Any, several: tuple[_Kind, ...]) -> Any:
    """A value as one of several kinds; `check_value` says what it raises."""
    for kind in several:
        found = _convert_value(value, kind)
        if found is not _REFUSED:
            return found
    if isinstance(value, str) and any(_holds_names(kind) for kind in several):
        return (value,)  # one name where a list of them is meant
    said = f"{shown_name(name)} = {show_value(value)}"
    kinds = [kind for kind in several if kind.plain is not types.NoneType]
    if all(kind.origin is Literal for kind in kinds):
        choices = [repr(choice) for kind in kinds for choice in get_args(kind.plain)]
        raise UsageError(f"{said} is unknown; it is one of {', '.join(choices)}")
    for kind in kinds:  # of a list with a wrong item, what is wrong with that
        if kind.origin in SEQUENCES and kind.items and isinstance(value, (list, tuple)):
            for item in value:
                _checked(name, item, kind.items[0])
    words = [*map(_kind_in_words, kinds), *(["None"] if len(kinds) < len(several) else [])]
    raise UsageError(f"{said} must be {' or '.join(dict.fromkeys(words))}")


def show_value(value: Any) -> str:
    """A value for a message: on one line, not too long."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 10**MANY_DIGITS:
        return f"about {'-' if value < 0 else ''}2^{value.bit_length()}"
    try:
        text = repr(value)
    except Exception:  # whatever a foreign object does
        text = f"<{type(value).__name__}>"
    text = " ".join(text.encode("utf-8", "backslashreplace").decode().split())
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}..."


def shown_name(name: str) -> str:
    """A parameter as users write it: Python has no name ``lambda``."""
    return "lambda" if name == "lam" else name


class _Kind(NamedTuple):
    """One kind that a value may be of, read off its annotation once.

    Attributes
    ----------
    plain : the annotation without its range
    within : NumberRange
    origin : what it is a kind of: a type, `Literal`
    items : kinds of the items of a sequence, one entry each of a tuple of fixed length, else one; empty elsewhere
    """

    plain: Any
    within: NumberRange
    origin: Any
    items: tuple[tuple[_Kind, ...], ...]


@cache
def _kinds(owner: Any) -> dict[str, tuple[_Kind, ...]]:
    """The kinds of what a class or function declares, by name."""
    return {name: _alternative_types(hint) for name, hint in get_type_hints(owner, include_extras=True).items()}


def _alternative_types(hint: Any) -> tuple[_Kind, ...]:
    """The kinds that a value may be of."""
    if get_origin(hint) in (Union, types.UnionType):
        return tuple(kind for one in get_args(hint) for kind in _alternative_types(one))
    plain, within = types.NoneType if hint is None else hint, ANY
    if get_origin(hint) is Annotated:
        plain, *more = get_args(hint)
        within = next((one for one in more if isinstance(one, NumberRange)), ANY)
    origin = get_origin(plain) or plain
    inner = get_args(plain) if origin in SEQUENCES else ()
    return (_Kind(plain, within, origin, tuple(_alternative_types(one) for one in inner if one is not Ellipsis)),)


def _convert_value(value: Any, kind: _Kind) -> Any:
    """The value as a kind, `_REFUSED` where it is none of it."""
    plain, within, origin, _ = kind
    if plain in (int, float):
        return _convert_number(value, plain, within)
    if plain is bool:
        return bool(value) if isinstance(value, (bool, np.bool_)) else _REFUSED
    if origin is Literal:
        same = [one for one in get_args(plain) if isinstance(value, type(one)) and one == value]
        same = [] if isinstance(value, bool) and not isinstance(same[0] if same else True, bool) else same
        return same[0] if same else _REFUSED
    if origin in SEQUENCES:
        return _convert_sequence(value, kind)
    if origin is collections.abc.Callable:
        return value if callable(value) else _REFUSED
    if plain is not Any and isinstance(origin, type) and not getattr(origin, "_is_protocol", False):
        return value if isinstance(value, origin) else _REFUSED
    return value


def _convert_number(value: Any, kind: type, within: NumberRange) -> Any:
    """A number of Python or NumPy, in its range."""
    if type(value) is not kind:
        of_kind = numbers.Integral if kind is int else numbers.Real
        if isinstance(value, (bool, np.bool_)) or not isinstance(value, of_kind):
            return _REFUSED
    try:
        found = kind(value)
        return found if found in within else _REFUSED
    except OverflowError:
        return _REFUSED


def _convert_sequence(value: Any, kind: _Kind) -> Any:
    """Items of one kind: a tuple, each of them looked at; of a Sequence, which may be long, the first one."""
    origin, kinds = kind.origin, kind.items
    needed = collections.abc.Collection if origin in LONG_ONES else collections.abc.Iterable
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, needed):
        return _REFUSED
    if len(kinds) > 1:  # a pair: every item has a kind of its own
        items = tuple(value)
        right = len(items) == len(kinds) and all(map(_is_one_of, items, kinds))
        return items if right else _REFUSED
    is_long = origin in LONG_ONES or (origin is collections.abc.Iterable and isinstance(value, range))
    try:
        items = tuple(itertools.islice(value, 1)) if is_long else tuple(value)
    except TypeError:  # an array without dimensions has the methods, and no items
        return _REFUSED
    if kinds and not all(_is_one_of(one, kinds[0]) for one in items):
        return _REFUSED
    return value if is_long else items


def _holds_names(kind: _Kind) -> bool:
    """Whether it is a kind of list of names."""
    return any(len(items) == 1 and items[0].plain is str for items in kind.items)


def _is_one_of(value: Any, kinds: tuple[_Kind, ...]) -> bool:
    """Whether a value is of one of several kinds."""
    return any(_convert_value(value, kind) is not _REFUSED for kind in kinds)


def _kind_in_words(kind: _Kind) -> str:
    """What a value of a kind is called."""
    plain, within, origin, inner = kind
    if plain in (int, float):
        return within.words(WHOLE if plain is int else NUMBER)
    if origin is Literal:
        return ", ".join(map(repr, get_args(plain)))
    if origin in SEQUENCES:
        items = {str: "names", int: "whole numbers", float: "numbers"}
        of = [items[one[0].plain] for one in inner if len(one) == 1 and one[0].plain in items]
        return f"a list of {of[0]}" if of else "a list"
    names: dict[Any, str] = {
        bool: "true or false",
        str: "text",
        Path: "a path",
        collections.abc.Mapping: "a dict",
        collections.abc.Callable: "a function",
    }
    usual = f"of the kind {getattr(origin, '__name__', origin)}"
    return names.get(origin, getattr(origin, "DECLARED_AS", usual))
