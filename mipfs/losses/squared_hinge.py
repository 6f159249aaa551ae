"""The squared hinge L(m) = Σ (c_i/2) max(0, 1 − m_i)² (Tan 2014, (5)).

Dual set A = {α ≥ 0} (and y'α = 0 with a free bias), g(α) = Σ α_i − α_i²/(2c_i): the linear term is
missing in Tan 2014 (7)–(9). α_i = c_i max(0, 1 − m_i) at the optimum.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs.kernels.kinds import SQUARED_HINGE
from mipfs.losses import base
from mipfs.losses.terms import Terms
from mipfs.svm import smooth
from mipfs.svm.dyadic import pieces

Array = npt.NDArray[np.float64]


class SquaredHingeTerms(Terms):
    """½ max(0, 1 − m)²: b = 1 − α/c."""

    has_top = False

    def bend(self) -> tuple[Array, Array]:
        return 1.0 - self.alpha / self.c, 1.0 / self.c


class SquaredHinge(base.Loss):
    """Σ (c_i/2) max(0, 1 − m_i)²."""

    name, kernel, has_top, has_rho, says_sign = "squared-hinge", SQUARED_HINGE, False, True, False
    vanishes = True
    terms, solver_class = SquaredHingeTerms, smooth.Solver

    def value(self, margins: Array, c: Array) -> float:
        """L(m)."""
        return sum(self.at_slacks(1.0 - margins[at], c[at]) for at in pieces(c.size))

    def at_slacks(self, slacks: Array, c: Array) -> float:
        """½ c'max(0, ξ)²."""
        short = np.maximum(0.0, slacks)
        return 0.5 * float(np.ascontiguousarray(c) @ np.square(short, out=short))

    def dual_value(self, alpha: Array, c: Array) -> float:
        """g(α) = Σ α_i − α_i²/(2c_i)."""
        return sum(float(np.sum(alpha[at] - alpha[at] ** 2 / (2.0 * c[at]))) for at in pieces(c.size))

    def dual_magnitude(self, alpha: Array, c: Array) -> float:
        """Sum of the absolute terms of g(α)."""
        return sum(float(np.sum(alpha[at] + alpha[at] ** 2 / (2.0 * c[at]))) for at in pieces(c.size))

    def best_multiple(self, alpha: Array, c: Array, squares: float) -> float:
        """Σα/(Σα²/c + squares)."""
        own = sum(float(np.sum(alpha[at] ** 2 / c[at])) for at in pieces(c.size))
        return float(alpha.sum()) / max(own + squares, 1e-300)

    def conic(self, cp: Any, xi: Any, c: Array) -> Any:
        """½ Σ c_i ξ_i²."""
        return 0.5 * cp.sum_squares(cp.multiply(np.sqrt(c), xi))

    def conic_dual(self, cp: Any, alpha: Any, c: Array) -> Any:
        """Σ α_i − α_i²/(2c_i)."""
        return cp.sum(alpha) - 0.5 * cp.sum_squares(cp.multiply(1 / np.sqrt(c), alpha))

    @property
    def algebraic(self) -> Callable[[Any, Any], Any]:
        """½ ξ²."""
        return lambda xi, ell: 0.5 * xi**2


LOSS = SquaredHinge()
