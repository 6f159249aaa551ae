"""Names that are not stored: x1 … xp for data without names, and values by name with a default."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import overload


class Unstored(Sequence[str]):
    """Names that are made when they are asked for."""

    @abstractmethod
    def made(self, j: int) -> str:
        """Name j of 0 … len − 1."""

    @abstractmethod
    def position(self, name: str) -> int | None:
        """The position of a name, None if it is none of these."""

    @overload
    def __getitem__(self, j: int) -> str: ...
    @overload
    def __getitem__(self, j: slice) -> tuple[str, ...]: ...
    def __getitem__(self, j: int | slice) -> str | tuple[str, ...]:
        if isinstance(j, slice):
            return tuple(map(self.made, range(len(self))[j]))
        return self.made(range(len(self))[j])

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.position(name) is not None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, (tuple, list)) and len(self) == len(other) and all(map(str.__eq__, self, other))

    def __hash__(self) -> int:
        return hash((type(self).__name__, len(self)))


class Numbered(Unstored):
    """The names x1 … xp. A million strings cost a hundred megabytes; this costs one number.

    >>> names = Numbered(3)
    >>> names[1], len(names), list(names), names == ("x1", "x2", "x3")
    ('x2', 3, ['x1', 'x2', 'x3'], True)
    """

    def __init__(self, count: int) -> None:
        self._count = count

    def __len__(self) -> int:
        return self._count

    def made(self, j: int) -> str:
        """Name j."""
        return f"x{j + 1}"

    def __eq__(self, other: object) -> bool:
        return len(self) == len(other) if isinstance(other, Numbered) else super().__eq__(other)

    __hash__ = Unstored.__hash__

    def position(self, name: str) -> int | None:
        """The position of a name, None if it is none of these."""
        digits = name[1:]
        if not (name.startswith("x") and digits.isascii() and digits.isdigit() and digits[0] != "0"):
            return None
        return int(digits) - 1 if int(digits) <= self._count else None


class NumberedIndex(Mapping[str, int]):
    """Position of each of names that are not stored.

    >>> NumberedIndex(Numbered(12))["x12"]
    11
    """

    def __init__(self, names: Unstored) -> None:
        self._names = names

    def __getitem__(self, name: str) -> int:
        position = self._names.position(name) if isinstance(name, str) else None
        if position is None:
            raise KeyError(name)
        return position

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class DefaultedValues(Mapping[str, float]):
    """A value for each of some names: 0 where none was given.

    >>> costs = DefaultedValues(NumberedIndex(Numbered(2)), {"x2": 3.0})
    >>> dict(costs)
    {'x1': 0.0, 'x2': 3.0}
    """

    def __init__(self, index: Mapping[str, int], given: Mapping[str, float]) -> None:
        self._index = index
        self.given = dict(given)

    def __getitem__(self, name: str) -> float:
        if name in self.given:
            return self.given[name]
        if name not in self._index:
            raise KeyError(name)
        return 0.0

    def __iter__(self) -> Iterator[str]:
        return iter(self._index)

    def __len__(self) -> int:
        return len(self._index)


def make_unique(names: Iterable[str]) -> list[str]:
    """The names, a repeated one with its number.

    >>> make_unique(["a", "b", "a"])
    ['a', 'b', 'a (2)']
    """
    seen: dict[str, int] = {}
    found = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        found.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return found
