"""The logistic loss L(m) = Σ c_i log(1 + e^(−m_i)) (Tan 2014, section 5.2, (37)).

Dual set A = {0 ≤ α ≤ c} (and y'α = 0 with a free bias),
g(α) = −Σ [α_i log(α_i/c_i) + (c_i − α_i) log(1 − α_i/c_i)]: Tan 2014 (37) drops the constant n C log C.
α_i = c_i/(1 + e^(m_i)) at the optimum.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import expit, xlog1py, xlogy

from mipfs.compiled import compiled
from mipfs.kernels.loss import ArrayLoss, LossKernels
from mipfs.losses import base
from mipfs.losses.terms import Terms
from mipfs.plumbing.arrays import Array
from mipfs.stated import StatedLoss, U

PROXIMAL_STEPS = 3
"""Newton's steps of a proximal step: it begins at the last margin, which is near."""
ARRAY_STEPS, LEAST = 4, 1e-30
"""Newton's steps of a proximal step in arrays; what a logarithm is of there at least."""


@compiled(nogil=True, fastmath=True)
def at_margins(m, alpha, c, rho, beta, sums):  # type: ignore[no-untyped-def]
    """β = c/(1 + e^m); L(m), and g(β) = L(m) + m'β."""
    loss = 0.0
    total = 0.0
    for i in range(m.size):
        e = math.exp(-abs(m[i]))
        beta[i] = c[i] * (e if m[i] > 0.0 else 1.0) / (1.0 + e)
        loss += c[i] * (max(-m[i], 0.0) + math.log1p(e))
        total += m[i] * beta[i]
    sums[0] = loss
    sums[1] = loss + total


@compiled(nogil=True, fastmath=True)
def slope(t, m, move, alpha, c, rho, sums):  # type: ignore[no-untyped-def]
    """The derivative of the loss along a step."""
    total = 0.0
    for i in range(m.size):
        margin = m[i] + t * move[i]
        e = math.exp(-abs(margin))
        total -= c[i] * move[i] * (e if margin > 0.0 else 1.0) / (1.0 + e)
    sums[0] = total


@compiled(nogil=True)
def curvature(beta, c, rho, inner, curve, sums):  # type: ignore[no-untyped-def]
    """β(c − β)/c."""
    count = 0
    for i in range(beta.size):
        value = beta[i] * (c[i] - beta[i]) / c[i] if c[i] > 0.0 else 0.0
        if value > 1e-12 * c[i]:
            curve[i] = value
            inner[count] = i
            count += 1
    sums[0] = count


@compiled(nogil=True)
def dual(alpha, c, sums):  # type: ignore[no-untyped-def]
    """g(α); α and c − α stand for the errors inside the logarithms."""
    total = 0.0
    size = 0.0
    for i in range(alpha.size):
        share = alpha[i] / c[i]
        first = alpha[i] * math.log(share) if alpha[i] > 0.0 else 0.0
        second = (c[i] - alpha[i]) * math.log1p(-share) if alpha[i] < c[i] else 0.0
        total -= first + second
        size += abs(first) + abs(second) + c[i]
    sums[0] = total
    sums[1] = size


@compiled(nogil=True, fastmath=True, inline="always")
def falling(h):  # type: ignore[no-untyped-def]
    """1/(1 + e^h) in float32: e^(−|h|) is (e^t)^64, t = −|h|/64, so that the loop around it is one of vectors.

    The fifth Taylor polynomial of e^t is 3e-7 off where e^(−|h|) is not negligible.
    """
    one = np.float32(1)
    t = max(-abs(h) * np.float32(1 / 64), -one)
    e = np.float32(1 / 24) + t * np.float32(1 / 120)
    e = one + t * (one + t * (np.float32(1 / 2) + t * (np.float32(1 / 6) + t * e)))
    e *= e
    e *= e
    e *= e
    e *= e
    e *= e
    e *= e
    small = e / (one + e)
    return small if h > 0 else one - small


@compiled(nogil=True, fastmath=True)
def proximal(m, d, c, part, relax, alpha):  # type: ignore[no-untyped-def]
    """h − v = part·c/(1 + e^h), by Newton's steps between v and v + part·c."""
    one, zero = np.float32(1), np.float32(0)
    for i in range(m.size):
        v = m[i] + m[i] - d[i]
        weight = part * c[i]
        low, high = v, v + weight
        h = min(max(m[i], low), high)
        for _ in range(PROXIMAL_STEPS):
            share = falling(h)
            over = h - v - weight * share
            high = min(high, h) if over > zero else high
            low = max(low, h) if over <= zero else low
            h -= over / (one + weight * share * (one - share))
            h = min(max(h, low), high)
        alpha[i] = h - v
        d[i] += relax * (h - m[i])


def _proximal_of_arrays(xp: Any, v: Any, weight: Any, m: Any) -> Any:
    """h = v + weight/(1 + e^h), by Newton's steps between v and v + weight, as `proximal`."""
    low, high = v, v + weight
    h = xp.clip(m, low, high)
    for _ in range(ARRAY_STEPS):
        e = xp.exp(-xp.abs(h))
        share = xp.where(h > 0.0, e, 1.0) / (1.0 + e)
        over = h - v - weight * share
        low, high = xp.where(over > 0.0, low, xp.maximum(low, h)), xp.where(over > 0.0, xp.minimum(high, h), high)
        h = xp.clip(h - over / (1.0 + weight * share * (1.0 - share)), low, high)
    return h


def _value_of_arrays(xp: Any, m: Any, c: Any) -> Any:
    """L(m)."""
    return xp.sum(c * (xp.maximum(-m, 0.0) + xp.log1p(xp.exp(-xp.abs(m)))), axis=1, dtype=xp.float64)


def _dual_of_arrays(xp: Any, alpha: Any, c: Any) -> Any:
    """−Σ [α log(α/c) + (c − α) log(1 − α/c)]."""
    share = alpha / c
    parts = (one * xp.log(xp.maximum(one, LEAST)) for one in (share, 1.0 - share))
    return -xp.sum(c * sum(parts), axis=1, dtype=xp.float64)


ARRAYS = ArrayLoss(_proximal_of_arrays, _value_of_arrays, _dual_of_arrays)


class LogisticTerms(Terms):
    """log(1 + e^−m): b = log((c − α)/α)."""

    def bend(self) -> tuple[Array, Array]:
        return np.log(self.beta / self.alpha), 1.0 / self.alpha + 1.0 / self.beta


class Logistic(base.Loss):
    """Σ c_i log(1 + e^(−m_i))."""

    name = "logistic"
    target = 0.0
    has_free_slacks = True
    says_sign = False
    says_odds = True
    kernels = LossKernels(at_margins, slope, curvature, dual, proximal, ARRAYS, is_steady=True)
    terms = LogisticTerms

    def value(self, margins: Array, c: Array) -> float:
        """L(m)."""
        return self.at_slacks(-margins, c)

    def at_slacks(self, slacks: Array, c: Array) -> float:
        """Σ c_i log(1 + e^ξ_i)."""
        return float(c @ np.logaddexp(0.0, slacks))

    def derivatives(self, margins: Array, c: Array) -> tuple[Array, Array]:
        """c/(1 + e^m), and its slope c e^m/(1 + e^m)²."""
        share = np.asarray(expit(-margins), dtype=float)
        return c * share, c * share * (1.0 - share)

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


class Stated(StatedLoss):
    """As the checker states it: log(1 + exp(s)) of s = −m."""

    words = "C Σ log(1 + exp(−m_i))"
    target = 0.0
    least = 2.0**-1022
    """The smallest share that has all its digits."""

    def losses(self, short: Array) -> Array:
        """log(1 + exp(short))."""
        return np.logaddexp(0.0, short)

    def steepest(self, short: Array) -> Array:
        """1/(1 + exp(−short))."""
        return np.asarray(1.01 * np.exp(-np.logaddexp(0.0, -short)))

    def dual_below(self, alpha: Array, sums: Array, c: Array) -> Array:
        """−Σ α log(α/c) + (c − α) log(1 − α/c), and the same of c − α where that is less.

        The second logarithm is that of what is near 1, taken of its distance to 1. So both terms are right but for some
        10 ulp each, however small g is beside Σ c; a share that underflows makes g smaller.
        """
        rest = c - alpha
        share = np.maximum(np.minimum(alpha, rest) / c, self.least)
        terms = np.minimum(alpha, rest) * np.log(share) + np.maximum(alpha, rest) * np.log1p(-share)
        return np.asarray(terms.sum(axis=1) * -(1.0 - 1.01 * (c.size + 40) * U))
