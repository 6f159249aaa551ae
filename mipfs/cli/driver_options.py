"""``-o NAME=VALUE``: options of the driver that have no flag of their own, read as their kind in its ``Options``."""

from __future__ import annotations

import types
from collections.abc import Sequence
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import typer

from mipfs.errors import UsageError

Option = Annotated[
    list[str] | None,
    typer.Option("--option", "-o", metavar="NAME=VALUE", help="An option of the driver, e.g. -o master=milp."),
]

FLAGS = ("gap", "time_limit", "memory_limit", "seed", "start", "validation", "pool_gap", "pool_size")
"""Options that have a flag of their own."""


def parse_options(given: Sequence[str], driver: str) -> dict[str, Any]:
    """The driver's options that ``-o`` gives.

    Raises
    ------
    UsageError
        No such option, one that has a flag of its own, one given twice, or a value of another kind.
    """
    from mipfs import drivers

    kinds = {
        name: kind
        for name, kind in get_type_hints(drivers.get_driver(driver).Options).items()
        if name not in FLAGS and _is_readable(kind)
    }
    options: dict[str, Any] = {}
    for text in given:
        name, equals, value = text.partition("=")
        name = name.replace("-", "_")
        if not equals or not value:
            raise UsageError(f"-o {text}: write NAME=VALUE, for example -o master=milp")
        if name in FLAGS:
            raise UsageError(f"-o {text}: give it as --{name.replace('_', '-')} {value}")
        if name not in kinds:
            raise UsageError(f"-o {text}: driver {driver!r} has no such option; it has {', '.join(kinds) or 'none'}")
        if name in options:
            raise UsageError(f"-o {text}: {name} was given twice")
        options[name] = _read(text, name, value, kinds[name])
    return options


def _alternative_types(kind: Any) -> list[Any]:
    """The kinds that a value may be of, without None."""
    several = get_origin(kind) in (Union, types.UnionType)
    return [one for one in (get_args(kind) if several else (kind,)) if one is not type(None)]


def _is_readable(kind: Any) -> bool:
    return all(one in (int, float, bool, str) or get_origin(one) is Literal for one in _alternative_types(kind))


def _read(text: str, name: str, value: str, kind: Any) -> Any:
    """The value as its kind."""
    (only,) = _alternative_types(kind)
    if get_origin(only) is Literal:
        if value not in get_args(only):
            raise UsageError(f"-o {text}: {name} is one of {', '.join(get_args(only))}")
        return value
    if only is str:
        return value
    if only is bool:
        if value not in ("true", "false"):
            raise UsageError(f"-o {text}: {name} must be true or false")
        return value == "true"
    try:
        return int(value) if only is int else float(value)
    except ValueError:
        raise UsageError(f"-o {text}: {name} must be {'a whole number' if only is int else 'a number'}") from None
