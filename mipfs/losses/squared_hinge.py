"""The squared hinge L(m) = Σ (c_i/2) max(0, 1 − m_i)² (Tan 2014, (5)).

Dual set A = {α ≥ 0} (and y'α = 0 with a free bias), g(α) = Σ α_i − α_i²/(2c_i): the linear term is
missing in Tan 2014 (7)–(9). α_i = c_i max(0, 1 − m_i) at the optimum.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mipfs.kernels.kinds import SQUARED_HINGE
from mipfs.losses import smooth
from mipfs.losses.dyadic import Integers, balanced

Array = npt.NDArray[np.float64]


def value(margins: Array, c: Array) -> float:
    """L(m) for margins (n,) and loss weights c (n,)."""
    return 0.5 * float(c @ np.square(np.maximum(0.0, 1.0 - margins)))


def dual_from_margins(margins: Array, c: Array) -> Array:
    """α = −L'(m), shape (n,)."""
    alpha: Array = c * np.maximum(0.0, 1.0 - margins)
    return alpha


def dual_value(alpha: Array, c: Array) -> float:
    """g(α) = Σ α_i − α_i²/(2c_i)."""
    return float(np.sum(alpha - alpha * alpha / (2.0 * c)))


def dual_magnitude(alpha: Array, c: Array) -> float:
    """Sum of the absolute terms of g(α), which bounds its rounding error."""
    return float(np.sum(alpha + alpha * alpha / (2.0 * c)))


def feasible_dual(alpha: Array, c: Array, y: Array, bias: bool) -> tuple[Integers, int]:
    """α on a grid on which α ≥ 0 and y'α = 0 are integer identities; see `mipfs.losses.dyadic`."""
    return balanced(alpha, np.full(alpha.size, np.inf), y, bias)


class Solver(smooth.Solver):
    """The squared-hinge SVM by semismooth Newton."""

    kind = SQUARED_HINGE
