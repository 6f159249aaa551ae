"""What is found by its name in a registry."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Iterable, Mapping, MutableMapping
from importlib.metadata import entry_points
from types import ModuleType

from mipfs.errors import UsageError
from mipfs.plumbing.declared import show_value


def suggest_name(name: object, known: Iterable[str], otherwise: str) -> str:
    """What to give in place of an unknown name: one that is spelt like it, or else what `otherwise` says."""
    close = difflib.get_close_matches(str(name), known, n=1)
    return f"did you mean {close[0]!r}?" if close else otherwise


def module_of(kind: str, name: str, registry: Mapping[str, str]) -> ModuleType:
    """The module that a registry has under a name.

    Parameters
    ----------
    kind : str, what it is, for the message
    name : str
    registry : mapping of name to module

    Raises
    ------
    UsageError
        No such name.
    """
    if not isinstance(name, str) or name not in registry:
        hint = suggest_name(name, registry, f"it is one of {', '.join(registry)}")
        raise UsageError(f"{kind} {show_value(name)} is not known; {hint}")
    return importlib.import_module(registry[name])


def enter_offers(group: str, name: object, registry: MutableMapping[str, str]) -> None:
    """Enter what installed packages offer under an unknown name: their entry points of a group.

    An entry point names a module, ``huber = "my_package.huber"``; names that the registry has are left as they are.
    """
    if not isinstance(name, str) or name in registry:
        return
    for point in entry_points(group=group, name=name):
        registry.setdefault(name, point.module)


def find_offered_module(groups: Iterable[str], name: str) -> str | None:
    """The module that an installed package offers under a name, in any of the groups; None where none does."""
    found = (point.module for group in groups for point in entry_points(group=group, name=name))
    return next(found, None)
