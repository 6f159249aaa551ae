"""How the columns of words of a table were taken: what the rules leave out, what options kept (docs/certificate.md)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from mipfs.data.rules import FIRST_RULES


@dataclass(frozen=True)
class WordsColumn:
    """Why the rules leave a column of words out: its different words, and the type of cells that these look like."""

    words: int
    kind: str | None = None


@dataclass(frozen=True)
class TableReading:
    """What the rules say of the columns of words of a table, and what was done.

    Attributes
    ----------
    kept : tuple of str, columns of words that ``words`` named as features
    left_out : tuple of str, columns of words that are no features, in the order of the table
    apart : mapping of every column that the rules leave out unless an option names it, to why
    is_raw : bool, whether the table itself was read; False of a column store, which says what it was made of
    """

    kept: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    apart: Mapping[str, WordsColumn] = field(default_factory=dict)
    is_raw: bool = True

    def follows(self, kept: Collection[str], used: Collection[str]) -> list[str]:
        """The columns that the rules leave out where an option keeps some, or uses some."""
        return [name for name in self.apart if name not in kept and name not in used]


@dataclass(frozen=True)
class StatedWords:
    """What a result says of the columns of words: its table is read again by it, and by the rules.

    Of a column that the rules do not leave out nothing of this changes anything.

    Attributes
    ----------
    kept : tuple of str, columns that an option kept
    left_out : tuple of str or None, columns that were left out: of the first rules, which do not state what was kept;
        where these state nothing, as of a column store, the rules are applied
    """

    kept: tuple[str, ...] = ()
    left_out: tuple[str, ...] | None = None

    @classmethod
    def of(cls, rules: int, read: Mapping[str, Collection[str]] | None) -> StatedWords:
        """What the entry ``read`` of a result says under its rules."""
        said = read or {}
        if rules > FIRST_RULES:
            return cls(kept=tuple(said.get("kept") or ()))
        gone = said.get("left_out")
        return cls(left_out=None if gone is None else tuple(gone))

    def keeps(self, apart: Collection[str], there: Collection[str]) -> tuple[str, ...]:
        """The columns of words that are features all the same, of those that are `there`."""
        if self.left_out is not None:
            return tuple(name for name in apart if name not in self.left_out)
        return tuple(name for name in dict.fromkeys(self.kept) if name in there)
