"""Values that are known between two bounds, and their ratios."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Interval:
    """A number known to lie in [low, high], 0 <= low <= high."""

    low: float
    high: float

    def over(self, other: Interval) -> Interval | None:
        """The ratio of this number to another; None where the other is zero."""
        if other.high <= 0.0:
            return None
        return Interval(self.low / other.high, self.high / other.low if other.low > 0.0 else math.inf)
