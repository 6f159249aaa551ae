"""What a certificate claims where dual vectors prove a bound: less, by what a checker's rounding may take off."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mipfs.losses import get_loss
from mipfs.problem import Problem, report_value

UNDERFLOW = 1e-300
"""What the checker takes off for products that underflow is less, in units of the largest c_i where that exceeds 1."""
ULPS = 2.0**-49
"""Relative rounding of the few operations that lead from a bound to its claim and back."""


@dataclass(frozen=True)
class ClaimedBound:
    """The claim for a bound of the unit margin, as the problem reports it.

        claim(b) = b − relative·|b| − absolute, and at least 0 where b is: no value of (P) is negative.

    Where extra variables have costs, values may be. What such a sum loses does not go with its own size, for its parts
    may cancel: relative·worth is taken off on top, and what their own sums lose is a part of `absolute`.

    Parameters
    ----------
    relative : float
        The sums of the drivers and of the checker differ by less, for both take off the errors of g and of every ω_j.
    absolute : float, what is assumed of logarithms, and what underflows
    margin : {"unit", "rho"}
    exponent : int, of the unit of the data
    worth : float, what no v(σ) exceeds, where extra variables have costs; None where no value is negative
    """

    relative: float
    absolute: float
    margin: str
    exponent: int = 0
    worth: float | None = None

    @classmethod
    def of(cls, problem: Problem, relative: float) -> ClaimedBound:
        """The claims of a problem's bounds."""
        assumed = float(get_loss(problem.loss).assumed_error(problem.c_i))
        absolute = assumed + UNDERFLOW * max(1.0, float(problem.c_i.max()))
        worth = None
        if problem.has_extra_costs:
            worth, absolute = _objective_ceiling(problem), absolute + ULPS * _largest_extra_cost(problem)
        return cls(relative, absolute, problem.margin, problem.data.exponent, worth)

    def unit(self, bound: float) -> float:
        """The claim in the unit margin."""
        if not math.isfinite(bound):
            return bound
        less = bound - (self.relative * (abs(bound) + (self.worth or 0.0)) + self.absolute)
        return max(0.0, less) if bound >= 0.0 and self.worth is None else less

    def __call__(self, bound: float) -> float:
        return report_value(self.unit(bound), self.margin, self.exponent)

    def proof_of(self, value: float) -> float:
        """A bound from which on at least `value` (unit margin) is claimed."""
        if not math.isfinite(value) or (value <= 0.0 and self.worth is None):
            return value
        above = value + self.absolute + self.relative * (self.worth or 0.0)
        return above + abs(above) * (2.0 * self.relative + ULPS)


def _objective_ceiling(problem: Problem) -> float:
    """What no v(σ) exceeds: the loss where all weights are 0, or C of a measure."""
    if problem.is_joint:
        return problem.C
    loss = get_loss(problem.loss)
    signs = (-1.0, 0.0, 1.0) if problem.bias else (0.0,)
    return min(float(loss.value(b * problem.data.y, problem.c_i)) for b in signs)


def _largest_extra_cost(problem: Problem) -> float:
    """Σ |d_k z_k| at most, of an open variable |d_k|; and all penalties."""
    extra = problem.selection.rows.extra
    far = np.maximum(*(np.where(np.isfinite(end), np.abs(end), 1.0) for end in extra.box))
    return float(np.abs(extra.cost) @ far + np.sum(problem.penalty))
