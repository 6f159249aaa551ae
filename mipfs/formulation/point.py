"""A classifier as the variables of a model hold it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from mipfs.losses import get_loss
from mipfs.plumbing.arrays import Array
from mipfs.problem import Problem


@dataclass(frozen=True, eq=False)
class ClassifierPoint:
    """A classifier on the scale of a problem's data.

    Attributes
    ----------
    sigma : (count,) of 0 and 1
    v : (k,) weights of the columns of all atoms (`Atoms.columns`), times their λ; zero where σ = 0
    t : (count,) ‖v_g‖² of every atom
    w : (p,) weights of the features
    b, rho : float, the intercept, and the margin that is asked for: 1, or ρ of the ρ-form
    margins : (n,) y∘(Xw + b)
    extra : tuple of float or None, the values of the user's extra variables
    """

    sigma: Array
    v: Array
    t: Array
    w: Array
    b: float
    rho: float
    margins: Array
    extra: tuple[float | None, ...]

    def unit(self) -> ClassifierPoint:
        """The point divided by ρ (its t by ρ²), so that the margin is 1."""
        scaled = {name: getattr(self, name) / self.rho for name in ("v", "w", "b", "margins")}
        return replace(self, t=self.t / self.rho**2, rho=1.0, **scaled)

    def slacks(self, loss: str) -> Array:
        """ξ, shape (n,): y_i f(x_i) + ξ_i ≥ ρ, for the logistic loss ≥ 0."""
        found: Array = get_loss(loss).slacks(self.margins, self.rho)
        return found


def shared_values(problem: Problem, point: ClassifierPoint) -> Mapping[str, Any]:
    """What most formulations have of a classifier: the variables ``w``, ``b``, ``rho`` and ``xi``."""
    return {"w": point.w, "b": point.b, "rho": point.rho, "xi": point.slacks(problem.loss)}
