"""v(σ) by Newton's method on the dual with a barrier and a line search: it descends through any kinks of h'.

    F(α) = −g(α) + Σ σ_j h_j(ω_j(α)) − μ Σ [log α_i + log(top_i − α_i)]  over y'α = 0,   μ → 0
    F' = −g'(α) + Zw − μ/α + μ/(top − α),   w = σh'(ω),   F'' = diag(D) + Z diag(σh''(ω)) Z'

F is convex and its slope Lipschitz: there is always a step that falls. The interior point (`mipfs.inner.interior`) is
faster, and takes steps that nothing ensures to fall: where it circles between two sides of a kink, this takes over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from mipfs.losses.base import Loss
from mipfs.plumbing.arrays import Array
from mipfs.regularisers.base import Regulariser

FIRST, FALL = 0.1, 0.2
"""μ to begin with, relative to the largest weight, and its factor from one minimisation to the next."""
NEAR = 0.1
"""A minimisation ends where its last step promises no more than this share of μ."""
BACK, DECREASE = 0.99, 1e-4
"""Share of the way to the boundary that a step may go, and of the promised decrease that it must bring."""
LAST, MOST = 1e-16, 600
"""The last μ, and steps in all."""


@dataclass(frozen=True, eq=False)
class BarrierDual:
    """The dual of one SVM on columns with fixed σ.

    Attributes
    ----------
    Z : (n, k) columns y∘x
    y, c : (n,) labels and loss weights
    loss, regulariser : Loss and Regulariser
    share : (k,) σ
    bias : bool
    """

    Z: Array
    y: Array
    c: Array
    loss: Loss
    regulariser: Regulariser
    share: Array
    bias: bool

    @property
    def top(self) -> Array:
        """The upper ends of the box, (n,)."""
        return self.loss.top(self.c)

    def value(self, alpha: Array, mu: float) -> float:
        """F(α)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            # At the boundary F is inf, and no step is taken.
            inside = float(np.log(alpha).sum())
            if self.loss.has_top:
                inside += float(np.log(self.top - alpha).sum())
        worth = float(self.share @ self.regulariser.conjugate(self.Z.T @ alpha))
        return worth - float(self.loss.dual_value(alpha, self.c)) - mu * inside

    def step(self, alpha: Array, mu: float) -> tuple[Array, Array, float, float]:
        """Newton's step, the weights at α, the intercept (the multiplier of y'α = 0) and the decrease it promises."""
        terms = self.loss.terms_at(self.c, alpha)
        margins, D = terms.bend()
        omega = self.Z.T @ alpha
        w = self.share * self.regulariser.weight(omega)
        slope = self.Z @ w - margins - mu / alpha
        D = D + mu / np.square(alpha)
        if self.loss.has_top:
            slope = slope + mu / terms.beta
            D = D + mu / np.square(terms.beta)
        kappa = self.share * self.regulariser.curvature(omega)
        root = self.Z[:, kappa > 0.0] * np.sqrt(kappa[kappa > 0.0])
        M = np.eye(root.shape[1]) + root.T @ (root / D[:, None])
        factor = cho_factor(M) if root.shape[1] else None

        # (D + root root')⁻¹ right, by Woodbury's formula.
        def solved(right: Array) -> Array:
            first = right / D
            return first if factor is None else first - root @ cho_solve(factor, root.T @ first) / D

        direction = -solved(slope)
        b = 0.0
        if self.bias:
            across = solved(self.y)
            b = float(self.y @ direction) / float(self.y @ across)
            direction = direction - b * across
        return direction, w, b, -float(slope @ direction)


def descend(dual: BarrierDual, alpha: Array) -> Iterator[tuple[Array, Array, float]]:
    """α, w and b of iterate after iterate, from an α inside its box with y'α = 0, until the numbers allow no more."""
    mu = FIRST
    for _ in range(MOST):
        direction, w, b, promised = dual.step(alpha, mu)
        yield alpha, w, b
        if promised <= NEAR * mu or not np.isfinite(promised):
            mu *= FALL
            if mu < LAST:
                return
            continue
        length = _search_step(lambda trial: dual.value(trial, mu), dual, alpha, direction, promised)  # noqa: B023
        if length == 0.0:
            mu *= FALL
        alpha = alpha + length * direction


def _search_step(
    F: Callable[[Array], float], dual: BarrierDual, alpha: Array, direction: Array, promised: float
) -> float:
    """A step length that falls enough, inside the box; 0 where rounding shows none."""
    room = [np.where(direction < 0.0, -alpha / np.minimum(direction, -1e-300), np.inf)]
    if dual.loss.has_top:
        room.append(np.where(direction > 0.0, (dual.top - alpha) / np.maximum(direction, 1e-300), np.inf))
    length = min(1.0, BACK * float(np.min(room)))
    before = F(alpha)
    for _ in range(50):
        if F(alpha + length * direction) <= before - DECREASE * length * promised:
            return length
        length *= 0.5
    return 0.0
