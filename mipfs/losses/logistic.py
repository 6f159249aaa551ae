"""The logistic loss L(m) = Σ c_i log(1 + e^(−m_i)) (Tan 2014, section 4).

Dual set A = {0 ≤ α ≤ c} (and y'α = 0 with a free bias),
g(α) = −Σ [α_i log(α_i/c_i) + (c_i − α_i) log(1 − α_i/c_i)]: Tan 2014 (37) drops the constant n C log C.
α_i = c_i/(1 + e^(m_i)) at the optimum.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import expit, xlog1py, xlogy

from mipfs.kernels.kinds import LOGISTIC
from mipfs.losses import smooth
from mipfs.losses.dyadic import Integers, balanced

Array = npt.NDArray[np.float64]


def value(margins: Array, c: Array) -> float:
    """L(m) for margins (n,) and loss weights c (n,)."""
    return float(c @ np.logaddexp(0.0, -margins))


def dual_from_margins(margins: Array, c: Array) -> Array:
    """α = −L'(m), shape (n,)."""
    alpha: Array = c * expit(-margins)
    return alpha


def dual_value(alpha: Array, c: Array) -> float:
    """g(α) = −Σ [α_i log(α_i/c_i) + (c_i − α_i) log(1 − α_i/c_i)]."""
    share = alpha / c
    return -float(np.sum(xlogy(alpha, share) + xlog1py(c - alpha, -share)))


def dual_magnitude(alpha: Array, c: Array) -> float:
    """Sum of the absolute terms of g(α), which bounds its rounding error.

    Every term is as large as its two products; α and c − α stand for the errors inside the logarithms.
    """
    share = alpha / c
    return float(np.sum(np.abs(xlogy(alpha, share)) + np.abs(xlog1py(c - alpha, -share)) + c))


def feasible_dual(alpha: Array, c: Array, y: Array, bias: bool) -> tuple[Integers, int]:
    """α on a grid on which 0 ≤ α ≤ c and y'α = 0 are integer identities; see `mipfs.losses.dyadic`."""
    return balanced(alpha, c, y, bias)


class Solver(smooth.Solver):
    """Regularised logistic regression by Newton's method."""

    kind = LOGISTIC
