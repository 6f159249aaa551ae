"""Whether rows hold at a selection, for some values of their extra variables: in exact arithmetic, by elimination."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from tests.interval_oracles import Chosen

Inequality = tuple[tuple[Fraction, ...], Fraction]
"""a and c of aᵀu ≤ c over the extra variables."""
ALLOWANCE = Fraction(1, 2**40)
"""How far a row may be missed, relative to its largest coefficient of σ or a whole variable, and its bound."""


def rows_hold(rows: Any, chosen: Chosen, count: int) -> bool:
    """Whether they do: whole variables with bounds by trying all, real ones by Fourier and Motzkin's elimination."""
    A, extra = rows.matrix.toarray(), rows.extra
    e = len(extra)
    given: list[Inequality] = []
    for i in range(A.shape[0]):
        counted = [*A[i, :count].tolist(), *(float(A[i, count + k]) for k in range(e) if extra.integer[k])]
        largest = max((abs(Fraction(v)) for v in counted), default=Fraction(0))
        total = sum((Fraction(float(A[i, j])) for j in chosen), Fraction(0))
        a = tuple(Fraction(float(v)) for v in A[i, count:])
        for end, sign in ((float(rows.lb[i]), -1), (float(rows.ub[i]), 1)):
            if math.isfinite(end):
                room = Fraction(end) + sign * ALLOWANCE * (largest + abs(Fraction(end))) - total
                given.append((tuple(sign * v for v in a), sign * room))
    for k in range(e):
        unit = tuple(Fraction(int(m == k)) for m in range(e))
        given += [(unit, Fraction(float(extra.ub[k])))] if math.isfinite(extra.ub[k]) else []
        given += [(tuple(-v for v in unit), -Fraction(float(extra.lb[k])))] if math.isfinite(extra.lb[k]) else []
    whole = [k for k in range(e) if extra.integer[k]]
    bounded = [k for k in whole if math.isfinite(extra.lb[k]) and math.isfinite(extra.ub[k])]
    (last,) = [k for k in whole if k not in bounded] or [None]
    ranges = [range(math.ceil(extra.lb[k]), math.floor(extra.ub[k]) + 1) for k in bounded]
    real = [k for k in range(e) if not extra.integer[k]]
    for values in itertools.product(*ranges):
        left = [_put(one, bounded, values) for one in given]
        for k in real:
            left = _eliminated(left, k)
        if _has_whole(left, last):
            return True
    return False


def _put(one: Inequality, ids: Sequence[int], values: Sequence[int]) -> Inequality:
    a, c = list(one[0]), one[1]
    for k, value in zip(ids, values, strict=True):
        c -= a[k] * value
        a[k] = Fraction(0)
    return tuple(a), c


def _eliminated(given: list[Inequality], k: int) -> list[Inequality]:
    """What a system says of the other variables."""
    low = [(a, c) for a, c in given if a[k] < 0]
    high = [(a, c) for a, c in given if a[k] > 0]
    made = [
        (tuple(x * b[k] - y * a[k] for x, y in zip(a, b, strict=True)), c * b[k] - d * a[k])
        for (a, c), (b, d) in itertools.product(low, high)
    ]
    return [(a, c) for a, c in given if a[k] == 0] + made


def _has_whole(given: list[Inequality], k: int | None) -> bool:
    """Whether a system over one whole variable, or over none, has a solution."""
    if any(c < 0 for a, c in given if not any(a)):
        return False
    if k is None:
        return True
    high = min((c / a[k] for a, c in given if a[k] > 0), default=None)
    low = max((c / a[k] for a, c in given if a[k] < 0), default=None)
    return high is None or low is None or math.ceil(low) <= math.floor(high)
