"""What the bundle methods over labellings share: where cuts are asked for.

The masters differ (a simplex QP, a saddle, a conic program, a linear program), and with them what is proven and when to
stop; the labelling that is asked for next is found in one way.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from mipfs.measures import Violated
from mipfs.svm.labellings import Labellings

Point = TypeVar("Point")

INWARD_SHARE = 0.3
"""Cuts are asked for at this share of the way from the best point to the master's: half of the rounds are saved."""


@dataclass(eq=False)
class BestPoint(Generic[Point]):
    """The best point of a primal so far, its value, and how many points were looked at."""

    point: Point
    upper: float = math.inf
    asked: int = 0


def store_most_violated(
    best: BestPoint[Point],
    at: Callable[[float], tuple[float, Point, Violated]],
    labellings: Labellings,
    *,
    share: float = INWARD_SHARE,
    is_closed: Callable[[], bool] = lambda: False,
    both: bool = False,
) -> bool:
    """Store the labelling that is most violated a share of the way from the best point to the master's, or else there.

    Parameters
    ----------
    best : BestPoint
        Takes over what is better.
    at : callable
        At a share of the way: the value of the primal, the point, and the labelling that it violates most.
    labellings : Labellings
    share : float in (0, 1)
    is_closed : callable, whether the best value is good enough
    both : bool, whether the master's point is asked in any case

    Returns
    -------
    bool
        Whether a labelling was new, and the best value is not good enough.
    """
    is_new = False
    for step in (share, 1.0) if math.isfinite(best.upper) else (1.0,):
        value, point, violated = at(step)
        best.asked += 1
        if value < best.upper:
            best.point = point
            best.upper = value
        if is_closed():
            return False
        is_new |= labellings.add(violated)
        if is_new and not both:
            break
    return is_new
