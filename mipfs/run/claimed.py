"""What a certificate claims where dual vectors prove a bound: less, by what a checker's rounding may take off."""

from __future__ import annotations

import math
from dataclasses import dataclass

from mipfs.losses import get_loss
from mipfs.problem import Problem, reported

UNDERFLOW = 1e-300
"""What the checker takes off for products that underflow is less, in units of the largest c_i where that exceeds 1."""
ULPS = 2.0**-49
"""Relative rounding of the few operations that lead from a bound to its claim and back."""


@dataclass(frozen=True)
class Claimed:
    """The claim for a bound of the unit margin, as the problem reports it.

        claim(b) = b − relative·|b| − absolute, and at least 0 where b is: no value of (P) is negative.

    Parameters
    ----------
    relative : float
        The sums of the drivers and of the checker differ by less, for both take off the errors of g and of every ω_j.
    absolute : float, what is assumed of logarithms, and what underflows
    margin : {"unit", "rho"}
    exponent : int, of the unit of the data
    """

    relative: float
    absolute: float
    margin: str
    exponent: int = 0

    @classmethod
    def of(cls, problem: Problem, relative: float) -> Claimed:
        """The claims of a problem's bounds."""
        assumed = float(get_loss(problem.loss).assumed_error(problem.c_i))
        absolute = assumed + UNDERFLOW * max(1.0, float(problem.c_i.max()))
        return cls(relative, absolute, problem.margin, problem.data.exponent)

    def unit(self, bound: float) -> float:
        """The claim in the unit margin."""
        if not math.isfinite(bound):
            return bound
        less = bound - (self.relative * abs(bound) + self.absolute)
        return max(0.0, less) if bound >= 0.0 else less

    def __call__(self, bound: float) -> float:
        return reported(self.unit(bound), self.margin, self.exponent)

    def proof_of(self, value: float) -> float:
        """A bound from which on at least `value` (unit margin) is claimed."""
        if value <= 0.0 or not math.isfinite(value):
            return value
        return (value + self.absolute) * (1.0 + 2.0 * self.relative + ULPS)
