"""The methods of a regulariser of one's own, called once before it is first used: what they return has the right shape.

What they return of it is looked at by `mipfs.regularisers.laws`.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from mipfs.errors import UsageError
from mipfs.plumbing.extension import file_of, is_own, told_by_name

METHODS = ("value", "conjugate", "weight", "curvature")
FEATURES = 3
"""Features whose terms are asked for at once."""


def check(regulariser: Any, count: int) -> None:
    """Refuse a regulariser of `count` features whose methods fail, or return no number of every feature.

    Those of the package are tested instead.

    Raises
    ------
    UsageError
    """
    owner = type(regulariser)
    if is_own(owner.__module__):
        return
    said = f"the regulariser {getattr(regulariser, 'name', owner.__name__)!r}"
    if not dataclasses.is_dataclass(owner):
        raise UsageError(
            f"{said}: the class {owner.__name__} of {file_of(owner)} is no dataclass, whose fields are its parameters; "
            "decorate it with @dataclass(frozen=True)"
        )
    k = min(count, FEATURES)
    with told_by_name(f"{said}: check or at", owner):
        regulariser.check(count)
        own = regulariser.at(np.arange(k))
    for name in METHODS:
        method = getattr(own, name)
        with np.errstate(all="ignore"), told_by_name(f"{said}: {name}", method):
            found = method(np.linspace(-0.5, 0.5, k))
        if not isinstance(found, np.ndarray) or found.shape != (k,) or found.dtype.kind not in "biuf":
            what = f"an array of shape {found.shape}" if isinstance(found, np.ndarray) else type(found).__name__
            raise UsageError(
                f"{said}: {name} of {file_of(method)} returns {what} for an array of shape ({k},); "
                "it returns an array with a number for every feature"
            )
