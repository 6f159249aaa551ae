"""The losses as an interior point sees them: dα = D(γ − dm), with slacks of their own."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt
from scipy.special import expit

Array = npt.NDArray[np.float64]

FLAT = 200.0
"""Margins of the logistic loss beyond this are as good as infinite."""


class Pointwise(Protocol):
    """A loss Σ c_i ℓ(m_i) as the interior point sees it: slacks of its own, and D and γ of dα = D(γ − dm)."""

    alpha: Array

    def linearise(self, m: Array) -> Array:
        """Residuals at margins m (n,); returns D (n,)."""

    def products(self) -> tuple[float, int]:
        """Sum and number of the complementarity products."""

    def target(self, mu: float, second: bool) -> Array:
        """γ (n,) for a target μ, with the second-order terms of the last direction where asked."""

    def direction(self, d_alpha: Array, dm: Array) -> None:
        """Take over a direction."""

    def longest(self) -> float:
        """Step to the boundary, inf where there is none."""

    def move(self, step: float) -> None:
        """Take the step."""


class Hinge:
    """m + ξ − s = 1 with α s = μ and (c − α) ξ = μ."""

    def __init__(self, c: Array, alpha: Array) -> None:
        self.c, self.alpha, self.beta = c, alpha, c - alpha
        self.s = np.ones(c.size)
        self.xi = np.ones(c.size)

    def linearise(self, m: Array) -> Array:
        self.rp, self.rc = m + self.xi - 1.0 - self.s, self.c - self.alpha - self.beta
        self.D: Array = 1.0 / (self.s / self.alpha + self.xi / self.beta)
        return self.D

    def products(self) -> tuple[float, int]:
        return float(self.alpha @ self.s + self.beta @ self.xi), 2 * self.c.size

    def target(self, mu: float, second: bool) -> Array:
        ca, cb = mu - self.alpha * self.s, mu - self.beta * self.xi
        if second:
            ca, cb = ca - self.d_alpha * self.ds, cb - self.d_beta * self.d_xi
        self.ca, self.cb = ca, cb
        return ca / self.alpha - (cb - self.xi * self.rc) / self.beta - self.rp

    def direction(self, d_alpha: Array, dm: Array) -> None:
        self.d_alpha, self.d_beta = d_alpha, self.rc - d_alpha
        self.d_xi = (self.cb - self.xi * self.d_beta) / self.beta
        self.ds = dm + self.d_xi + self.rp

    def longest(self) -> float:
        pairs = (self.alpha, self.d_alpha), (self.beta, self.d_beta), (self.s, self.ds), (self.xi, self.d_xi)
        return min(to_boundary(x, d) for x, d in pairs)

    def move(self, step: float) -> None:
        self.alpha, self.beta = self.alpha + step * self.d_alpha, self.beta + step * self.d_beta
        self.s, self.xi = self.s + step * self.ds, self.xi + step * self.d_xi


class SquaredHinge:
    """m + α/c − s = 1 with α s = μ."""

    def __init__(self, c: Array, alpha: Array) -> None:
        self.c, self.alpha = c, alpha
        self.s = np.ones(c.size)

    def linearise(self, m: Array) -> Array:
        self.rp = m + self.alpha / self.c - 1.0 - self.s
        self.D: Array = 1.0 / (self.s / self.alpha + 1.0 / self.c)
        return self.D

    def products(self) -> tuple[float, int]:
        return float(self.alpha @ self.s), self.c.size

    def target(self, mu: float, second: bool) -> Array:
        self.ca = mu - self.alpha * self.s - (self.d_alpha * self.ds if second else 0.0)
        return self.ca / self.alpha - self.rp

    def direction(self, d_alpha: Array, dm: Array) -> None:
        self.d_alpha, self.ds = d_alpha, dm + d_alpha / self.c + self.rp

    def longest(self) -> float:
        return min(to_boundary(self.alpha, self.d_alpha), to_boundary(self.s, self.ds))

    def move(self, step: float) -> None:
        self.alpha, self.s = self.alpha + step * self.d_alpha, self.s + step * self.ds


class Logistic:
    """u = m with α = c/(1 + e^u): no slack; steps are taken in u, so α stays inside its box."""

    def __init__(self, c: Array, alpha: Array) -> None:
        self.c, self.alpha = c, alpha
        self.u = np.log((c - alpha) / alpha)

    def linearise(self, m: Array) -> Array:
        self.residual = self.u - m
        self.D: Array = np.maximum(self.c / (2.0 + 2.0 * np.cosh(np.clip(self.u, -FLAT, FLAT))), 1e-300)
        return self.D

    def products(self) -> tuple[float, int]:
        return 0.0, 0

    def target(self, mu: float, second: bool) -> Array:
        return self.residual

    def direction(self, d_alpha: Array, dm: Array) -> None:
        self.d_alpha, self.du = d_alpha, dm - self.residual

    def longest(self) -> float:
        return np.inf

    def move(self, step: float) -> None:
        self.u = np.clip(self.u + step * self.du, -FLAT, FLAT)
        self.alpha = self.c * expit(-self.u)


def to_boundary(x: Array, d: Array) -> float:
    """The largest step at which x + step·d ≥ 0."""
    falls = d < 0.0
    return float(np.min(x[falls] / -d[falls])) if falls.any() else np.inf


POINTWISE = {"hinge": Hinge, "squared-hinge": SquaredHinge, "logistic": Logistic}
"""The losses that are a sum over the samples, by name."""
