"""The regularisers, one file each: the term r(w) of a weight, in one object (`base.Regulariser`).

The room imports nothing of the solver's. The checker looks in this table for what a result names, and runs the class
`Stated` of that file apart (`mipfs.check.stated`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mipfs.errors import UsageError
from mipfs.plumbing.registry import Registry, enter_offers, part_of

if TYPE_CHECKING:
    from mipfs.regularisers.base import Regulariser

REGULARISERS = Registry("regulariser", {"ridge": "mipfs.regularisers.ridge", "box": "mipfs.regularisers.box"})
"""The module of every regulariser, by its name: ``KIND`` is its class there, `Stated` what the checker has of it."""


def get_regulariser(given: Any, **parameters: Any) -> Regulariser:
    """A regulariser by its name and parameters, or the one that is given.

    Raises
    ------
    UsageError
        No regulariser of that name, or parameters that it does not take.
    """
    from mipfs.regularisers.base import Regulariser

    if isinstance(given, Regulariser):
        return given
    enter_offers("mipfs.regularisers", given, REGULARISERS)
    if not isinstance(given, str) or given not in REGULARISERS:
        raise UsageError(f"regulariser {given!r} is not known; it is one of {', '.join(REGULARISERS)}")
    kind = part_of(
        f"regulariser {given!r}", REGULARISERS[given], "KIND", "a class of mipfs.regularisers.base.Regulariser"
    )
    try:
        made: Regulariser = kind(**parameters)
    except TypeError as error:
        raise UsageError(f"regulariser {given!r}: {error}") from None
    return made
