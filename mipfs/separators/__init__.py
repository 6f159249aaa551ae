"""Separators of `branch`: rows that hold for all of S and that a fractional σ breaks, one family a file.

A separator is a function ``separate(selection, sigma)`` of the set S, with the user's rows alone, and of a σ in
[0, 1]^p of a node's relaxation. It yields derivations (`mipfs.selection.derived`), whose rows are then rows of all
nodes. Those that σ does not break are left out. No yield can harm a proof: the certificate states each row that was
taken, and the checkers derive it anew. It must depend on its arguments alone; then the tree does not depend on threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from mipfs.errors import UsageError
from mipfs.plumbing.declared import show_value
from mipfs.plumbing.registry import Registry, enter_offers, part_of

if TYPE_CHECKING:  # commands that solve nothing list separators too
    from mipfs.selection.derived import ChvatalGomory
    from mipfs.selection.selection import Selection

    Separator = Callable[[Selection, npt.NDArray[np.float64]], Iterable[ChvatalGomory]]

SEPARATORS = Registry(
    "separator",
    {
        "covers": "mipfs.separators.covers",
    },
)


def get_separator(name: str) -> Separator:
    """The function of a separator.

    Raises
    ------
    UsageError
        No separator of that name.
    """
    enter_offers("mipfs.separators", name, SEPARATORS)
    if name not in SEPARATORS:
        raise UsageError(f"separate = {show_value(name)} is not known; it is one of {', '.join(SEPARATORS)}")
    said = f"separate = {show_value(name)}"
    found = part_of(said, SEPARATORS[name], "separate", "a function separate(selection, sigma)")
    if not callable(found):
        raise UsageError(f"{said}: {SEPARATORS[name]} has no function separate(selection, sigma)")
    return found  # type: ignore[no-any-return]
