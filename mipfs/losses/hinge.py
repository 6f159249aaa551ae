"""The hinge loss L(m) = Σ c_i max(0, 1 − m_i): value, dual set and the SVM on selected columns.

Dual set A = {0 ≤ α ≤ c} (and y'α = 0 with a free bias), g(α) = Σ α_i (Aytug 2015, the dual of SUB, (5) and (6)).
α cannot be recovered from the primal: at a margin of 1 it is anything in the box.
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
from mipfs.stated import StatedLoss

NEGLIGIBLE_SHARE = 1e-7
"""Entries of a dual vector below this share of the largest are clipped rather than hold its multiple back."""


@compiled(nogil=True, fastmath=True)
def at_margins(m, alpha, c, rho, beta, sums):  # type: ignore[no-untyped-def]
    """β = clip(α + ρ(1 − m), 0, c); L(m) and Σ β."""
    loss = 0.0
    total = 0.0
    for i in range(m.size):
        short = 1.0 - m[i]
        value = min(max(alpha[i] + rho * short, 0.0), c[i])
        beta[i] = value
        loss += c[i] * max(0.0, short)
        total += value
    sums[0] = loss
    sums[1] = total


@compiled(nogil=True, fastmath=True)
def slope(t, m, move, alpha, c, rho, sums):  # type: ignore[no-untyped-def]
    """The derivative of the smoothed loss along a step."""
    total = 0.0
    for i in range(m.size):
        total -= min(max(alpha[i] + rho * (1.0 - (m[i] + t * move[i])), 0.0), c[i]) * move[i]
    sums[0] = total


@compiled(nogil=True)
def curvature(beta, c, rho, inner, curve, sums):  # type: ignore[no-untyped-def]
    """ρ where 0 < β < c, but for what a grid rounds off."""
    count = 0
    for i in range(beta.size):
        if 0.0 < beta[i] < (1.0 - 1e-9) * c[i]:
            curve[i] = rho
            inner[count] = i
            count += 1
    sums[0] = count


@compiled(nogil=True)
def dual(alpha, c, sums):  # type: ignore[no-untyped-def]
    """g(α) = Σ α."""
    total = 0.0
    for i in range(alpha.size):
        total += alpha[i]
    sums[0] = total
    sums[1] = total


@compiled(nogil=True, fastmath=True)
def proximal(m, d, c, part, relax, alpha):  # type: ignore[no-untyped-def]
    """h = v + part·c below the kink, 1 at it, v beyond."""
    one = np.float32(1)
    for i in range(m.size):
        v = m[i] + m[i] - d[i]
        h = max(v, min(v + part * c[i], one))
        alpha[i] = h - v
        d[i] += relax * (h - m[i])


ARRAYS = ArrayLoss(
    proximal=lambda xp, v, weight, m: xp.maximum(v, xp.minimum(v + weight, 1.0)),
    value=lambda xp, m, c: xp.sum(c * xp.maximum(1.0 - m, 0.0), axis=1, dtype=xp.float64),
    dual=lambda xp, alpha, c: xp.sum(alpha, axis=1, dtype=xp.float64),
)


class HingeTerms(Terms):
    """max(0, 1 − m): b = 1."""

    def bend(self) -> tuple[float, float]:
        return 1.0, 0.0


class Hinge(base.Loss):
    """Σ c_i max(0, 1 − m_i)."""

    name = "hinge"
    is_smooth = False
    dual_depends_on_c = False
    vanishes = True
    slack_degree = 1
    kernels = LossKernels(at_margins, slope, curvature, dual, proximal, ARRAYS, is_smoothed=True)
    terms = HingeTerms

    def value(self, margins: Array, c: Array) -> float:
        """L(m)."""
        return self.at_slacks(1.0 - margins, c)

    def at_slacks(self, slacks: Array, c: Array) -> float:
        """c'max(0, ξ)."""
        return float(c @ np.maximum(0.0, slacks))

    def dual_value(self, alpha: Array, c: Array) -> float:
        """g(α) = Σ α_i."""
        return float(alpha.sum())

    def dual_magnitude(self, alpha: Array, c: Array) -> float:
        """Sum of the absolute terms of g(α)."""
        return float(alpha.sum())

    def best_multiple(self, alpha: Array, c: Array, squares: float) -> float:
        """Σα/squares, unless the box is in the way."""
        held = alpha > NEGLIGIBLE_SHARE * float(alpha.max(initial=0.0))
        most = float(np.min(c[held] / alpha[held], initial=np.inf))
        return min(most, float(alpha.sum()) / max(squares, 1e-300))

    def intercept(self, values: Array, y: Array, c: Array, b: float) -> float:
        """The middle of all b that minimise the loss."""
        return central_intercept(values, y, c)

    def conic(self, cp: Any, xi: Any, c: Array) -> Any:
        """c'ξ."""
        return c @ xi

    def conic_dual(self, cp: Any, alpha: Any, c: Array) -> Any:
        """Σ α_i."""
        return cp.sum(alpha)

    @property
    def algebraic(self) -> Callable[[Any, Any], Any]:
        """ξ."""
        return lambda xi, ell: xi


LOSS = Hinge()


class Stated(StatedLoss):
    """As the checker states it."""

    words = "C Σ max(0, 1 − m_i)"

    def losses(self, short: Array) -> Array:
        """max(0, short)."""
        return np.maximum(0.0, short)

    def steepest(self, short: Array) -> Array:
        """1 where there is a loss."""
        return np.where(short > 0.0, 1.0, 0.0)

    def dual_below(self, alpha: Array, sums: Array, c: Array) -> Array:
        """Σα, which is rounded once."""
        return sums


def central_intercept(values: Array, y: Array, c: Array) -> float:
    """The middle of all b that minimise Σ c_i max(0, 1 − y_i(f_i + b)): the hinge loss leaves an interval at times.

    Sample i bends the sum at b = y_i − f_i, where its slope grows by c_i, from −Σ of c over the positives: a weighted
    median.

    Parameters
    ----------
    values : (n,) f_i = w'x_i
    y : (n,) of ±1, both of them
    c : (n,) loss weights > 0
    """
    bends = y - values
    order = np.argsort(bends, kind="stable")
    bends = bends[order]
    reached = np.cumsum(c[order])
    level = float(c[y > 0].sum())
    slack = 1e-12 * float(reached[-1])
    low, high = np.minimum(np.searchsorted(reached, [level - slack, level + slack]), bends.size - 1)
    return 0.5 * float(bends[low] + bends[high])
