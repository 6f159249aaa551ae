"""What every part of the checker rests on: the unit round-off, its readers of numbers, and how something is refused."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
States = npt.NDArray[np.int8]
Arrays = Mapping[str, npt.NDArray[Any]]
Document = Mapping[str, Any]

U = 2.0**-53
TINY = 2.0**-1074
"""The smallest float: a product that underflows is off by at most this, whatever its size."""
NORMAL = 2.0**-1022
"""Numbers below this are rounded to a multiple of `TINY`, and not relative to their size."""
NEAR = 1e-9
"""Two numbers of a result that were computed apart, by others and by the checker, agree to this, relative."""
WRITTEN = re.compile(rb"-?[0-9]+(/[0-9]+)?")
"""A rational number as text, "p" or "p/q"."""


class CertificateError(Exception):
    """What a certificate does not prove, in one line."""


def require(holds: Any, reason: str) -> None:
    """Reject unless it holds."""
    if not holds:
        raise CertificateError(reason)


def refusal_reason(check: Callable[[], object]) -> str:
    """Why a check refuses what it was given, in one line; "" where it does not."""
    try:
        with np.errstate(all="ignore"):  # a forger's numbers beyond floating point are to be refused, not warned of
            check()
    except CertificateError as rejected:
        return " ".join(str(rejected).split())
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, AssertionError) as error:
        return " ".join(f"the certificate is malformed: {type(error).__name__}: {error}".split())
    except (MemoryError, RecursionError) as error:
        return f"the certificate is malformed: {type(error).__name__}"
    return ""


def number(value: Any, what: str) -> float:
    """A finite number of the JSON, that a float holds; a text, a truth value or an infinity is none."""
    require(type(value) in (int, float) and abs(value) <= 1.7e308, f"{what} is {value!r}, no finite number")
    require(float(value) == value, f"{what} is {value!r}, which no float holds")
    return float(value)


def absent_or(value: Any, absent: float, what: str) -> float:
    """A finite number of the JSON, or what null stands for."""
    return absent if value is None else number(value, what)


def read_rational(value: float | bytes, what: str) -> Fraction:
    """The exact value of a float, or of a text "p/q"; Python reads whole numbers of 4300 digits at most."""
    if not isinstance(value, bytes):
        return Fraction(number(value, what))
    require(WRITTEN.fullmatch(value), f"{what} is {value[:40]!r}, no rational number")
    above, _, below = value.decode("ascii").partition("/")
    require(not below or int(below), f"{what} has the denominator 0")
    return Fraction(int(above), int(below or "1"))


def next_float_below(value: float) -> float:
    """The next float below; -inf for what is no number."""
    return math.nextafter(value, -math.inf) if value == value else -math.inf


def below(value: Fraction) -> float:
    """The largest float that is not above; beyond the largest one that one, or -inf."""
    try:
        near = float(value)
    except OverflowError:
        return np.finfo(float).max if value > 0 else -math.inf
    return near if Fraction(near) <= value else math.nextafter(near, -math.inf)


def above(value: Fraction) -> float:
    """The smallest float that is not below."""
    return -below(-value)


def sum_below(terms: Iterable[float]) -> float:
    """The sum, rounded down; -inf where a term is. `math.fsum` rounds once: exact sums stay what they are."""
    held = list(terms)
    total = math.fsum(held)
    if not math.isfinite(total):
        return -math.inf if total != math.inf else total
    # A sum by fsum is correctly rounded: the sign of what is left says on which side of the exact one it lies.
    return total if math.fsum([*held, -total]) >= 0.0 else math.nextafter(total, -math.inf)


def gap_between(objective: float, bound: float) -> float:
    """(objective − bound)/|objective|: 0 where they meet, inf at an objective of 0 otherwise, or without either."""
    if not (math.isfinite(objective) and math.isfinite(bound)):
        return math.inf
    if bound >= objective:
        return 0.0
    return (objective - bound) / abs(objective) if objective else math.inf
