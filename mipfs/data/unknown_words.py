"""Words of a column of words that training did not see: an error, or none of the words that it saw."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Literal, Never, get_args

from mipfs.errors import DataWarning, UsageError

Unknown = Literal["refuse", "none"]
"""What such a word is taken for; "none": its row has 0 in the feature of every known word, unless these are two."""


def is_none(unknown: Any) -> bool:
    """Whether such a word is none of the known ones.

    Raises
    ------
    UsageError
        It is none of `Unknown`.
    """
    if not isinstance(unknown, str) or unknown not in get_args(Unknown):
        raise UsageError(f"unknown = {unknown!r} is unknown; it is {' or '.join(map(repr, get_args(Unknown)))}")
    return unknown == "none"


def refuse_none_of_two(column: str, words: Sequence[str], word: str) -> Never:
    """Refuse that a word is none of the two of a column: the feature of one of them is 0 where the other one is.

    Raises
    ------
    UsageError
    """
    raise UsageError(
        f"column {column!r} is {word!r}, which training did not see, and unknown='none' cannot take it for none of its "
        f"two words: one feature says which of {words[0]!r} and {words[1]!r} it is; leave the row out, or write one of "
        "the two"
    )


def warn_of_unknown(where: Any, column: str, word: str, count: int) -> None:
    """Say how many rows hold such words of a column.

    Warns
    -----
    DataWarning
    """
    rows = "1 row" if count == 1 else f"{count} rows"
    warnings.warn(
        f"{where}: column {column!r} holds words that training did not see, such as {word!r}, in {rows}; each counts "
        "as none of the known words",
        DataWarning,
        stacklevel=3,
    )
