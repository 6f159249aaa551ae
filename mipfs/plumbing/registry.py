"""What is found by its name in a registry."""

from __future__ import annotations

import difflib
import importlib
from collections import UserDict
from collections.abc import Iterable, Mapping, MutableMapping
from importlib.metadata import entry_points
from types import ModuleType
from typing import Any, ClassVar, Self

from mipfs.errors import UsageError
from mipfs.plumbing.declared import show_value


class Registry(UserDict[str, str]):
    """Modules by name, to which a program may add its own: the names that it begins with keep their modules.

    Else a certificate would name a loss of the package and be about another one.

    Parameters
    ----------
    kind : str, what is registered, for the message
    own : mapping of name to module, those of the package

    Attributes
    ----------
    entered : set of str, the modules that were entered into any registry beside the package's
    """

    entered: ClassVar[set[str]] = set()
    _by_kind: ClassVar[dict[str, Registry]] = {}
    _told: ClassVar[dict[str, Mapping[str, str]]] = {}

    def __init__(self, kind: str, own: Mapping[str, str]) -> None:
        self.kind, self.own = kind, dict(own)
        super().__init__(own)
        self._by_kind[kind] = self
        self.update(self._told.get(kind, {}))

    @classmethod
    def all_entries(cls) -> dict[str, dict[str, str]]:
        """What a program entered beside the package's own, by kind: for processes that work for it."""
        known = ((kind, {n: m for n, m in one.items() if n not in one.own}) for kind, one in cls._by_kind.items())
        return {kind: entries for kind, entries in known if entries}

    @classmethod
    def enter_all(cls, entries: Mapping[str, Mapping[str, str]]) -> None:
        """Enter what another process has entered, also into registries that this one has not loaded yet."""
        cls._told.update(entries)
        for kind, names in entries.items():
            if kind in cls._by_kind:
                cls._by_kind[kind].update(names)

    def __setitem__(self, name: str, module: str) -> None:
        """Enter a module.

        Raises
        ------
        UsageError
            The name is one of the package, for another module, or what is given is no module's name.
        """
        if not isinstance(module, str):
            raise UsageError(
                f"the {self.kind} {show_value(name)} is entered by the name of its module, a text such as 'my_module', "
                f"not as {show_value(module)}"
            )
        if self.own.get(name, module) != module:
            raise UsageError(
                f"the {self.kind} {name!r} is that of {self.own[name]}, which {show_value(module)} does not replace; "
                "give yours another name"
            )
        super().__setitem__(name, module)
        if name not in self.own:
            Registry.entered.add(module)

    def __or__(self, other: Any) -> dict[str, str]:  # type: ignore[override]
        """What both have, no registry any more."""
        return dict(self) | dict(other)

    def __ror__(self, other: Any) -> dict[str, str]:  # type: ignore[override]
        """What both have, no registry any more."""
        return dict(other) | dict(self)

    def __ior__(self, other: Any) -> Self:  # type: ignore[override]
        """Enter several, one by one: that of the base class enters them unseen."""
        self.update(other)
        return self


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


def part_of(said: str, module: str, part: str, what: str) -> Any:
    """What a file of an extension is entered for, such as its ``LOSS``.

    Parameters
    ----------
    said : str, what names the extension, for the message
    module, part : str
    what : str, what the part is, in words

    Raises
    ------
    UsageError
        The module is not found, or has no such part.
    """
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        raise UsageError(f"{said}: Python finds no module {module!r}; put its folder into sys.path") from error
    if not hasattr(found, part):
        raise UsageError(f"{said}: {module} has no {part}, {what}")
    return getattr(found, part)


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
