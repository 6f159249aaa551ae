"""The losses as an interior point sees them: margins, dual variables in a box, and slacks between the two.

    m + ξ − s = b(α),   α s = μ,   (top − α) ξ = μ,   b(α) = −d/dα of the conjugate: the margin at which α is the slope

    hinge: b = 1;   squared hinge: b = 1 − α/c and no ξ, for the box has no top;   logistic: b = log((c − α)/α)

The logistic loss keeps α inside its box by itself, but only with the slacks is a step towards the boundary as long as
that of a linear program: b alone would let α fall no faster than its own size over the residual.
"""

from __future__ import annotations

import numpy as np

from mipfs.kernels.vectors import to_boundary
from mipfs.plumbing.arrays import Array


class Terms:
    """A loss Σ c_i ℓ(m_i): dual variables, slacks, and the D and γ of dα = D(γ − dm).

    A loss's own class says `bend` alone, from ``self.c``, ``self.alpha`` and ``self.beta``, the room up to the top.

    Parameters
    ----------
    c : (n,) weights > 0
    alpha : (n,) where to begin, inside the box
    top : (n,) upper ends of the box, as `mipfs.losses.base.Loss.top` says them, inf where it is open
    """

    def __init__(self, c: Array, alpha: Array, top: Array) -> None:
        self.c = c
        self.alpha = alpha
        self.beta = top - alpha
        self.has_top = bool(np.isfinite(top[0]))
        self.d_alpha, self.ds, self.d_xi = np.zeros(c.size), np.zeros(c.size), np.zeros(c.size)
        # Slacks of one, or more where a small weight would leave its product below the others.
        level = float(np.mean(np.minimum(alpha, self.beta))) if self.has_top else float(np.mean(alpha))
        self.s = level / alpha
        self.xi = level / self.beta if self.has_top else np.zeros(c.size)

    def lift(self, mu: float) -> None:
        """Lengthen the slacks of small products up to μ."""
        self.s = np.maximum(self.s, mu / self.alpha)
        if self.has_top:
            self.xi = np.maximum(self.xi, mu / self.beta)

    def bend(self) -> tuple[Array | float, Array | float]:
        """b(α), the margin at which −cℓ' is α, and −b'(α) ≥ 0: (n,) each, or a number where all are one."""
        raise NotImplementedError

    def linearise(self, m: Array) -> Array:
        """Residuals at margins m (n,); returns D (n,)."""
        value, curve = self.bend()
        self.residual = m + self.xi - self.s - value
        self.D: Array = 1.0 / (self.s / self.alpha + (self.xi / self.beta if self.has_top else 0.0) + curve)
        return self.D

    def products(self) -> tuple[float, int]:
        """Sum and number of the complementarity products."""
        if not self.has_top:
            return float(self.alpha @ self.s), self.c.size
        return float(self.alpha @ self.s + self.beta @ self.xi), 2 * self.c.size

    def target(self, mu: float, second: bool) -> Array:
        """γ (n,) for a target μ, with the second-order terms of the last direction where asked."""
        self.ca = mu - self.alpha * self.s - (self.d_alpha * self.ds if second else 0.0)
        gamma = self.ca / self.alpha - self.residual
        if self.has_top:
            self.cb = mu - self.beta * self.xi + (self.d_alpha * self.d_xi if second else 0.0)
            gamma -= self.cb / self.beta
        return gamma

    def direction(self, d_alpha: Array) -> None:
        """Take over a direction."""
        self.d_alpha = d_alpha
        self.ds = (self.ca - self.s * d_alpha) / self.alpha
        if self.has_top:
            self.d_xi = (self.cb + self.xi * d_alpha) / self.beta

    def longest(self) -> float:
        """Step to the boundary, inf where there is none."""
        step: float = min(to_boundary(self.alpha, self.d_alpha), to_boundary(self.s, self.ds))
        if self.has_top:
            step = min(step, to_boundary(self.beta, -self.d_alpha), to_boundary(self.xi, self.d_xi))
        return step

    def move(self, step: float) -> None:
        """Take the step."""
        self.alpha = self.alpha + step * self.d_alpha
        self.s = self.s + step * self.ds
        if self.has_top:
            self.beta = self.beta - step * self.d_alpha
            self.xi = self.xi + step * self.d_xi
