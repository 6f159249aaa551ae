"""The ridge r(w) = ½w²: h(ω) = ½ω², w(ω) = ω. What (P) has where nothing else is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from mipfs.plumbing.arrays import Array
from mipfs.regularisers.base import Regulariser


@dataclass(frozen=True)
class Ridge(Regulariser):
    """½w²."""

    name = "ridge"
    formula = "½w²"
    has_kernels = is_ridge = True

    @property
    def is_homogeneous(self) -> bool:
        """It is."""
        return True

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

    def perspective(self, w: Array, sigma: Array | float) -> Array:
        """½w²/σ: one rounding less."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.divide(0.5 * np.square(w), sigma, out=np.zeros(w.shape), where=w != 0.0))


class Stated:
    """½w², for the checker."""

    words = "½w²"
    is_homogeneous = True

    def value(self, j: int, w: Fraction) -> Fraction:
        """r(w) of feature j."""
        return w * w / 2

    def conjugate(self, j: int, omega: Fraction) -> Fraction:
        """h(ω) of feature j."""
        return omega * omega / 2


KIND = Ridge
RIDGE = Ridge()
