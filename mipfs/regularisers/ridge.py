"""The ridge r(w) = ½w²: h(ω) = ½ω², w(ω) = ω. What (P) has where nothing else is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from mipfs.regularisers.base import Array, Regulariser


@dataclass(frozen=True)
class Ridge(Regulariser):
    """½w²."""

    name, formula = "ridge", "½w²"
    is_homogeneous = has_kernels = is_ridge = True

    def value(self, w: Array) -> Array:
        """½w²."""
        return 0.5 * np.square(w)

    def conjugate(self, omega: Array) -> Array:
        """½ω²."""
        return 0.5 * np.square(omega)

    def weight(self, omega: Array) -> Array:
        """ω."""
        return omega

    def curvature(self, omega: Array) -> Array:
        """1."""
        return np.ones(omega.shape)


class Stated:
    """½w², for the checker."""

    words = "½w²"

    def value(self, j: int, w: Fraction) -> Fraction:
        """r(w) of feature j."""
        return w * w / 2

    def conjugate(self, j: int, omega: Fraction) -> Fraction:
        """h(ω) of feature j."""
        return omega * omega / 2


KIND, STATED = Ridge, Stated
RIDGE = Ridge()
