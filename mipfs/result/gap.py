"""The gap of an objective to a bound, as every report, every record and every decision has it."""

from __future__ import annotations

import math


def relative_gap(objective: float, bound: float) -> float:
    """(objective − bound)/|objective|: 0 where both are equal, else inf at an objective of 0; inf where one is missing.

    There is no absolute allowance: values are of any size, −1/(4v) in the ρ-form.
    """
    if not (math.isfinite(objective) and math.isfinite(bound)):
        return math.inf
    if objective == bound:
        return 0.0
    return (objective - bound) / abs(objective) if objective != 0.0 else math.inf
