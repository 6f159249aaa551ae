"""What every part of the checker rests on: the unit round-off, and how something that is not proven is refused."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Arrays = Mapping[str, npt.NDArray[Any]]
Document = Mapping[str, Any]

U = 2.0**-53
TINY = 2.0**-1074
"""The smallest float: a product that underflows is off by at most this, whatever its size."""


class Rejected(Exception):
    """What a certificate does not prove, in one line."""


def require(holds: Any, reason: str) -> None:
    """Reject unless it holds."""
    if not holds:
        raise Rejected(reason)


def number(value: Any, what: str) -> float:
    """A finite number of the JSON; a text, a truth value or an infinity is none."""
    require(type(value) in (int, float) and abs(value) <= 1.7e308, f"{what} is {value!r}, no finite number")
    return float(value)


def absent_or(value: Any, absent: float, what: str) -> float:
    """A finite number of the JSON, or what null stands for."""
    return absent if value is None else number(value, what)


def down(value: float) -> float:
    """The next float below; -inf for what is no number."""
    return math.nextafter(value, -math.inf) if value == value else -math.inf
