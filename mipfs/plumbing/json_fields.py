"""The values of a JSON document, each of its kind: readers that raise a `TypeError` where a value is of another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Reader = Callable[[Any], Any]


def require(holds: bool) -> None:
    """Refuse a value."""
    if not holds:
        raise TypeError


def text(value: Any) -> str:
    """A string."""
    require(isinstance(value, str))
    return str(value)


def number(value: Any) -> float:
    """A number; a whole one stays one."""
    require(isinstance(value, (int, float)) and not isinstance(value, bool))
    found: float = value
    return found


def divisor(value: Any) -> float:
    """A number above 0."""
    require(number(value) > 0)
    return float(value)


def whole(value: Any) -> int:
    """A whole number, 0 or more."""
    require(isinstance(value, int) and not isinstance(value, bool) and value >= 0)
    return int(value)


def sequence(read: Reader) -> Callable[[Any], tuple[Any, ...]]:
    """A list of values of one kind."""

    def of(value: Any) -> tuple[Any, ...]:
        require(isinstance(value, list))
        return tuple(read(item) for item in value)

    return of


def table(read: Reader) -> Callable[[Any], dict[str, Any]]:
    """A table of values of one kind."""

    def of(value: Any) -> dict[str, Any]:
        require(isinstance(value, dict))
        return {name: read(item) for name, item in value.items()}

    return of


def record(**reads: Reader) -> Callable[[Any], dict[str, Any]]:
    """A table that has these entries, and perhaps others."""

    def of(value: Any) -> dict[str, Any]:
        require(isinstance(value, dict))
        return {**value, **{name: read(value[name]) for name, read in reads.items()}}

    return of


def or_null(read: Reader, unearned: Any = None) -> Reader:
    """A value, or null, which stands for `unearned`."""
    return lambda value: unearned if value is None else read(value)


def flag(value: Any) -> bool:
    """True or false."""
    require(isinstance(value, bool))
    return bool(value)
