"""The words in which a loss's own file states the loss once more for the checker, which runs that class and no more.

A regulariser's file does likewise, in rational numbers alone (`mipfs.check.regulariser.Stated` says what).
Below every room: what the solver and the checker have in common are these words, and no line of what they compute.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
import numpy.typing as npt

__all__ = ["Array", "StatedLoss", "U"]
Array = npt.NDArray[np.float64]
U = 2.0**-53
"""Unit round-off of doubles."""


class StatedLoss(ABC):
    """L = Σ c_i ℓ_i, convex, of how far margins fall short of a target; n samples.

    Attributes
    ----------
    words : str, L as the checker says it
    max_slope : float, the steepest slope t of ℓ: the dual set is 0 ≤ α ≤ tc, exactly; inf where there is none
    has_rho : bool, whether there is a ρ-form
    target : float, what margins fall short of, in units of the margin: 1, or 0 for a loss of the margin itself
    """

    words: str
    max_slope = 1.0
    has_rho = False
    target = 1.0

    @abstractmethod
    def losses(self, short: Array) -> Array:
        """ℓ (n,) at shorts (n,), right but for 16 units of rounding; it does not fall."""

    @abstractmethod
    def steepest(self, short: Array) -> Array:
        """The slopes of ℓ (n,) there, of the steeper side and not too small: it is for the error of the shorts."""

    @abstractmethod
    def dual_below(self, alpha: Array, sums: Array, c: Array) -> Array:
        """g(α) (B,) less its rounding error but for an ulp, of exact α (B, n) in the dual set; sums: Σα, rounded once.

        A sum of n terms is off by at most 1.01 (n + 8) U times the sum of their sizes, in whatever order it is taken.
        """
