"""The logistic loss L(m) = Σ c_i log(1 + e^(−m_i)) (Tan 2014, section 4).

Dual set A = {0 ≤ α ≤ c} (and y'α = 0 with a free bias),
g(α) = −Σ [α_i log(α_i/c_i) + (c_i − α_i) log(1 − α_i/c_i)]: Tan 2014 (37) drops the constant n C log C.
α_i = c_i/(1 + e^(m_i)) at the optimum.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import xlog1py, xlogy

from mipfs.kernels.kinds import LOGISTIC
from mipfs.losses import base
from mipfs.losses.terms import Terms
from mipfs.svm import smooth

Array = npt.NDArray[np.float64]


class LogisticTerms(Terms):
    """log(1 + e^−m): b = log((c − α)/α)."""

    def bend(self) -> tuple[Array, Array]:
        return np.log(self.beta / self.alpha), 1.0 / self.alpha + 1.0 / self.beta


class Logistic(base.Loss):
    """Σ c_i log(1 + e^(−m_i))."""

    name, kernel, target, has_free_slacks, says_sign = "logistic", LOGISTIC, 0.0, True, False
    terms, solver_class = LogisticTerms, smooth.Solver

    def value(self, margins: Array, c: Array) -> float:
        """L(m)."""
        return self.at_slacks(-margins, c)

    def at_slacks(self, slacks: Array, c: Array) -> float:
        """Σ c_i log(1 + e^ξ_i)."""
        return float(c @ np.logaddexp(0.0, slacks))

    def dual_value(self, alpha: Array, c: Array) -> float:
        """g(α) = −Σ [α_i log(α_i/c_i) + (c_i − α_i) log(1 − α_i/c_i)]."""
        share = alpha / c
        return -float(np.sum(xlogy(alpha, share) + xlog1py(c - alpha, -share)))

    def dual_magnitude(self, alpha: Array, c: Array) -> float:
        """Sum of the absolute terms of g(α).

        Every term is as large as its two products; α and c − α stand for the errors inside the logarithms.
        """
        share = alpha / c
        return float(np.sum(np.abs(xlogy(alpha, share)) + np.abs(xlog1py(c - alpha, -share)) + c))

    def assumed_error(self, c: Array) -> float:
        """An ulp or so of every logarithm."""
        return 1e-15 * float(c.sum())

    def conic(self, cp: Any, xi: Any, c: Array) -> Any:
        """Σ c_i log(1 + e^ξ_i)."""
        return c @ cp.logistic(xi)

    def conic_dual(self, cp: Any, alpha: Any, c: Array) -> Any:
        """The entropy of α/c."""
        return c @ (cp.entr(cp.multiply(1 / c, alpha)) + cp.entr(1 - cp.multiply(1 / c, alpha)))

    @property
    def algebraic(self) -> Callable[[Any, Any], Any]:
        """ℓ, at least log(1 + e^ξ)."""
        return lambda xi, ell: ell


LOSS = Logistic()
