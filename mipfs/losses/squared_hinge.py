"""The squared hinge L(m) = Σ (c_i/2) max(0, 1 − m_i)² (Tan 2014, (5)).

Dual set A = {α ≥ 0} (and y'α = 0 with a free bias), g(α) = Σ α_i − α_i²/(2c_i): the linear term is
missing in Tan 2014 (7)–(9). α_i = c_i max(0, 1 − m_i) at the optimum.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mipfs.compiled import compiled
from mipfs.kernels.loss import ArrayLoss, LossKernels
from mipfs.losses import base
from mipfs.losses.terms import Terms
from mipfs.plumbing.arrays import Array
from mipfs.stated import StatedLoss, U
from mipfs.svm.dyadic import pieces


@compiled(nogil=True, fastmath=True)
def at_margins(m, alpha, c, rho, beta, sums):  # type: ignore[no-untyped-def]
    """β = c max(0, 1 − m); L(m), and g(β) = L(m) + m'β."""
    loss = 0.0
    total = 0.0
    for i in range(m.size):
        short = max(0.0, 1.0 - m[i])
        value = c[i] * short
        beta[i] = value
        loss += 0.5 * value * short
        total += m[i] * value
    sums[0] = loss
    sums[1] = loss + total


@compiled(nogil=True, fastmath=True)
def slope(t, m, move, alpha, c, rho, sums):  # type: ignore[no-untyped-def]
    """The derivative of the loss along a step."""
    total = 0.0
    for i in range(m.size):
        total -= c[i] * max(1.0 - (m[i] + t * move[i]), 0.0) * move[i]
    sums[0] = total


@compiled(nogil=True)
def curvature(beta, c, rho, inner, curve, sums):  # type: ignore[no-untyped-def]
    """c where β > 0."""
    count = 0
    for i in range(beta.size):
        if beta[i] > 0.0:
            curve[i] = c[i]
            inner[count] = i
            count += 1
    sums[0] = count


@compiled(nogil=True)
def dual(alpha, c, sums):  # type: ignore[no-untyped-def]
    """g(α) = Σ α − α²/(2c)."""
    total = 0.0
    size = 0.0
    for i in range(alpha.size):
        bend = alpha[i] * alpha[i] / (2.0 * c[i])
        total += alpha[i] - bend
        size += alpha[i] + bend
    sums[0] = total
    sums[1] = size


@compiled(nogil=True, fastmath=True)
def proximal(m, d, c, part, relax, alpha):  # type: ignore[no-untyped-def]
    """h = (v + part·c)/(1 + part·c) where v < 1, v beyond."""
    one = np.float32(1)
    for i in range(m.size):
        v = m[i] + m[i] - d[i]
        weight = part * c[i]
        h = max(v, (v + weight) / (one + weight))
        alpha[i] = h - v
        d[i] += relax * (h - m[i])


ARRAYS = ArrayLoss(
    proximal=lambda xp, v, weight, m: xp.where(v < 1.0, (v + weight) / (1.0 + weight), v),
    value=lambda xp, m, c: xp.sum(0.5 * c * xp.square(xp.maximum(1.0 - m, 0.0)), axis=1, dtype=xp.float64),
    dual=lambda xp, alpha, c: xp.sum(alpha - 0.5 * alpha * alpha / c, axis=1, dtype=xp.float64),
)


class SquaredHingeTerms(Terms):
    """½ max(0, 1 − m)²: b = 1 − α/c."""

    def bend(self) -> tuple[Array, Array]:
        return 1.0 - self.alpha / self.c, 1.0 / self.c


class SquaredHinge(base.Loss):
    """Σ (c_i/2) max(0, 1 − m_i)²."""

    name = "squared-hinge"
    max_slope = np.inf
    has_rho = True
    says_sign = False
    vanishes = True
    slack_degree = 2
    kernels = LossKernels(at_margins, slope, curvature, dual, proximal, ARRAYS)
    terms = SquaredHingeTerms

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


class Stated(StatedLoss):
    """As the checker states it."""

    words = "(C/2) Σ max(0, 1 − m_i)²"
    max_slope = np.inf
    has_rho = True

    def losses(self, short: Array) -> Array:
        """½ max(0, short)²."""
        least = np.maximum(0.0, short)
        return 0.5 * least * least

    def steepest(self, short: Array) -> Array:
        """max(0, short)."""
        return np.maximum(0.0, short)

    def dual_below(self, alpha: Array, sums: Array, c: Array) -> Array:
        """Σα − Σα²/(2c)."""
        squares = np.sum(alpha * alpha / (2.0 * c), axis=1)
        return np.asarray(sums - squares - 1.01 * (c.size + 8) * U * (sums + squares))
