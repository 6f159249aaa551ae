"""The master of a bundle method over all selections of some atoms: a saddle point, by a primal-dual interior point.

    max over β ≥ 0, Σβ = 1   min over 0 ≤ σ ≤ 1, Σσ ≤ M   d'β + c'σ − ½ Σ_g σ_g ‖ω_g‖²,   ω = Bβ

This is Mao 2013, (16), with the hull of a pool replaced by a polytope; a forced atom has σ_g = 1. With x_g = σ_g ω_g it
is the primal min ½ Σ ‖x_g‖²/σ_g + c'σ + ξ with ξ ≥ d_k − b_k'x, whose slack is s_k. The optimality conditions are

    ½‖ω_g‖² − c_g + z_g − y_g − η = 0,   Σβ = 1,   β_k s_k = σ_g z_g = (1 − σ_g) y_g = η (M − Σσ) = μ → 0

and a Newton step on them is one Cholesky factorisation of the order of β, whatever the number of atoms. Points near the
central path are what cutting planes want, vertices are not (Gondzio, González-Brevis and Munari 2013): μ is brought
down to what the gap of the caller is worth and no further, and the next call goes on from there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_solve

from mipfs.inner.polytope import AtomPolytope
from mipfs.plumbing.arrays import Array, Arrays, Mask
from mipfs.settings import SaddleSettings
from mipfs.svm.central import LEAST_RIDGE, longest_step, regularised_cholesky

PARTS = "beta", "slack", "sigma", "low", "high"
"""The vectors of an iterate, as a state names them."""
LEAST_GAP = 1e-15
"""Values are at most 1, so that round-off is about this large: products that are to be smaller vanish, and divide."""


class Saddle:
    """The iterate, kept from call to call.

    Parameters
    ----------
    settings : SaddleSettings, optional

    Attributes
    ----------
    beta : (K + 1,) the first is that of ȳ = y, with d = 0 and b = 0: it takes up the slack of Σα ≤ C
    sigma : (G,)
    mu : mean product at the end of the last call
    """

    def __init__(self, settings: SaddleSettings = SaddleSettings()) -> None:
        self.settings = settings
        self.beta = np.ones(1)
        self._s = np.ones(1)
        self._xi = 1.0
        self.sigma = np.empty(0)
        self._z = np.empty(0)
        self._y = np.empty(0)
        self._eta = 0.0
        self.mu = 1.0

    def kept(self) -> Callable[[], Arrays]:
        """What makes arrays of the iterate, which every step makes anew."""
        numbers = np.array([self._xi, self._eta, self.mu])
        held = dict(zip(PARTS, (self.beta, self._s, self.sigma, self._z, self._y), strict=True))
        return lambda: {"saddle_numbers": numbers, **{f"saddle_{name}": array for name, array in held.items()}}

    def take_up(self, kept: Mapping[str, npt.NDArray[Any]]) -> None:
        """Go on from what `kept` made.

        Raises
        ------
        ValueError
            Its parts do not fit.
        """
        self.beta, self._s, self.sigma, self._z, self._y = (
            np.array(kept[f"saddle_{name}"], dtype=float) for name in PARTS
        )
        self._xi, self._eta, self.mu = kept["saddle_numbers"].tolist()
        parts = self.beta, self._s, self.sigma, self._z, self._y, kept["saddle_numbers"]
        is_one = self.beta.shape == self._s.shape and self.sigma.shape == self._z.shape == self._y.shape
        if not is_one or any(part.ndim != 1 or not np.isfinite(part).all() for part in parts):
            raise ValueError("the iterate of the master has parts of different sizes")

    def keep(self, labellings: Mask) -> None:
        """Forget all labellings but some, shape (K,)."""
        kept = np.append(True, labellings)
        self.beta = self.beta[kept] / self.beta[kept].sum()
        self._s = self._s[kept]

    def solve(self, B: Array, d: Array, S: AtomPolytope, gap: float) -> None:
        """Follow the central path until the products add up to about `gap`, or round-off ends it.

        Parameters
        ----------
        B : (m, K), a column for every labelling: those of the last call first
        d : (K,)
        S : AtomPolytope of the atoms, those of the last call first
        gap : float >= 0; below `LEAST_GAP` it is that
        """
        d = np.append(0.0, d)
        f = S.free
        gap = max(gap, LEAST_GAP)
        self._grow_sets(B, d, S)
        count = d.size + 2 * int(np.count_nonzero(f)) + int(S.bounded)
        target = gap / count
        step = 1.0
        anew = False
        for _ in range(self.settings.steps):
            omega, half, slack, dual = self._exact_values(B, d, S)
            # s and z are free of constraints: they take their exact values where these are well positive
            self._s = np.where(slack > 0.1 * self._s, slack, self._s)
            self._z = np.where(f & (dual > 0.1 * self._z), dual, self._z)
            off = max(np.abs(self._s - slack).max(), np.abs(self._z - dual)[f].max(initial=0.0))
            self.mu = self._sum_of_products(S) / count
            if (self.mu <= self.settings.close * target and off <= gap) or (step <= self.settings.stuck and anew):
                break
            if step <= self.settings.stuck:
                self._begin_anew(B, d, S)
                step = 1.0
                anew = True
                continue
            shrink = self.settings.shrink if step > self.settings.short else 1.0 - (1.0 - self.settings.shrink) * step
            step = self._newton_step(B, d, S, (omega, half, slack), max(target, shrink * self.mu))

    def _sum_of_products(self, S: AtomPolytope) -> float:
        f = S.free
        sigma = self.sigma
        total = float(self.beta @ self._s + sigma[f] @ self._z[f] + (1.0 - sigma[f]) @ self._y[f])
        return total + (self._eta * (S.room - float(sigma[f].sum())) if S.bounded else 0.0)

    def _grow_sets(self, B: Array, d: Array, S: AtomPolytope) -> None:
        """Central values for atoms that are new, then for labellings that are new."""
        known = self.sigma.size
        K = self.beta.size
        mu = self.mu
        beta = np.append(self.beta, np.zeros(d.size - K))
        omega = B @ beta[1:]
        # Σσ ≤ M is new: all atoms begin anew.
        if S.bounded and self._eta == 0.0:
            known = 0
        self._place_on_central_path(0.5 * S.sums(omega * omega) - S.cost, S, known, mu)
        if d.size > K:
            pull = _labelling_pulls(B, S, self.sigma, omega)
            # ξ ≤ 1 can always be had: where x needs more it shrinks, and β with it
            shares = np.linspace(1.0, 0.1, 10)
            tops = np.max(d[:, None] - pull[:, None] * shares, axis=0)
            share = float(shares[np.argmin(tops)]) if tops[0] > 1.0 else 1.0
            beta *= share
            beta[0] += 1.0 - share
            slack = self._xi - d + share * pull
            lift = 1.001 * max(0.0, -float(slack.min())) + mu
            self._xi += lift
            self._s = np.maximum(slack + lift, 1e-3 * mu)
            beta[K:] = np.minimum(mu / self._s[K:], 0.5 / d.size)
        self.beta = beta / beta.sum()

    def _place_on_central_path(self, gains: Array, S: AtomPolytope, known: int, mu: float) -> None:
        """σ, z, y of all atoms but the first `known`, and with known = 0 also η, on the central path at their gains."""
        f = S.free
        if known == gains.size and known > 0:
            return
        if S.bounded and known == 0:
            self._eta = max(float(np.sort(gains[f])[::-1][S.room]), mu / np.count_nonzero(f))
        # excess + μ/σ − μ/(1 − σ) = 0 at σ = ½ (1 + e/(1 + √(1 + e²))), e = excess/2μ
        e = 0.5 * (gains[known:] - self._eta) / mu
        sigma = np.clip(0.5 * (1.0 + e / (1.0 + np.sqrt(1.0 + e * e))), 1e-9, 1.0 - 1e-9)
        self.sigma = np.append(self.sigma[:known], np.where(f[known:], sigma, 1.0))
        self._z = np.append(self._z[:known], np.where(f[known:], mu / sigma, 0.0))
        self._y = np.append(self._y[:known], np.where(f[known:], mu / (1.0 - sigma), 0.0))
        total = float(self.sigma[f].sum())
        if S.bounded and total > (1.0 - self.settings.inside) * S.room:
            self.sigma[f] *= (1.0 - self.settings.inside) * S.room / total

    def _begin_anew(self, B: Array, d: Array, S: AtomPolytope) -> None:
        """A point well inside, with a β near the present one."""
        self.beta = 0.9 * self.beta / self.beta.sum() + 0.1 / d.size
        omega = B @ self.beta[1:]
        size = 0.1 * max(float(d @ self.beta), 1e-12)
        self._place_on_central_path(0.5 * S.sums(omega * omega) - S.cost, S, 0, size / d.size)
        slack = _labelling_pulls(B, S, self.sigma, omega) - d
        self._xi = size - float(slack.min())
        self._s = self._xi + slack

    def _newton_step(self, B: Array, d: Array, S: AtomPolytope, at: tuple[Array, Array, Array], mu: float) -> float:
        """One Newton step towards the products `mu`; its length in [0, 1]."""
        (omega, half, slack), f, beta, s, xi = at, S.free, self.beta, self._s, self._xi
        sigma = self.sigma
        z = self._z
        y = self._y
        eta = self._eta
        rest = np.where(f, 1.0 - sigma, 1.0)
        weights = np.where(f, 1.0 / np.where(f, z / sigma + y / rest, 1.0), 0.0)
        rho = np.where(f, half - S.cost - eta + mu / sigma - mu / rest, 0.0)
        # H dβ − Q'Θ1 dη + 1 dξ = right,   h dη − 1'ΘQ dβ = level,   1'dβ = 1 − Σβ
        H = np.diag(s / beta)  # + Σ_g σ_g B_g'B_g + Q'ΘQ with rows q_g = B_g'ω_g and Θ = diag(weights)
        H[1:, 1:] += S.gram(B, sigma, omega, weights)
        right = mu / beta - slack - _labelling_pulls(B, S, weights * rho, omega)
        gather = np.zeros(beta.size)
        h = 1.0
        level = 0.0
        room = S.room - float(sigma[f].sum())
        if S.bounded:
            gather = _labelling_pulls(B, S, weights, omega)
            h = room / eta + float(weights.sum())
            level = mu / eta - room + float((weights * rho).sum())
            H -= np.outer(gather, gather / h)
            right += gather * (level / h)
        factor = regularised_cholesky(H, LEAST_RIDGE * float(np.max(np.diag(H))), self.settings.ridges)
        if factor is None:
            return 0.0
        one = cho_solve(factor, np.ones(beta.size))
        beta_step = cho_solve(factor, right)
        xi_step = (float(beta_step.sum()) - (1.0 - float(beta.sum()))) / float(one.sum())
        beta_step = beta_step - xi_step * one
        eta_step = (level + float(gather @ beta_step)) / h if S.bounded else 0.0
        sigma_step = weights * (S.sums(omega * (B @ beta_step[1:])) - eta_step + rho)
        s_step = mu / beta - s - s / beta * beta_step
        z_step = np.where(f, mu / sigma - z - z / sigma * sigma_step, 0.0)
        y_step = np.where(f, mu / rest - y + y / rest * sigma_step, 0.0)
        pairs = [(beta, beta_step), (s, s_step), (sigma, sigma_step), (rest, -sigma_step), (z, z_step), (y, y_step)]
        if S.bounded:
            pairs += [(np.array([eta, room]), np.array([eta_step, -float(sigma_step.sum())]))]
        step = min(longest_step(value, change, self.settings.boundary) for value, change in pairs)
        if not step > self.settings.stuck:
            return 0.0
        worst = self.settings.excess * self.mu * (beta.size + 2 * f.size)
        while True:
            self.beta = beta + step * beta_step
            self._s = s + step * s_step
            self._xi = xi + step * xi_step
            self.sigma = sigma + step * sigma_step
            self._z = z + step * z_step
            self._y = y + step * y_step
            self._eta = eta + step * eta_step
            if step <= self.settings.short or self._excess_products(B, d, S) <= worst:
                return step
            step *= 0.5

    def _exact_values(self, B: Array, d: Array, S: AtomPolytope) -> tuple[Array, Array, Array, Array]:
        """ω, ½‖ω_g‖², and the exact values of s and z."""
        omega = B @ self.beta[1:]
        half = 0.5 * S.sums(omega * omega)
        slack = self._xi - d + _labelling_pulls(B, S, self.sigma, omega)
        return omega, half, slack, self._eta + self._y + S.cost - half

    def _excess_products(self, B: Array, d: Array, S: AtomPolytope) -> float:
        """What the curvature of the conditions has added to the products."""
        _, _, slack, dual = self._exact_values(B, d, S)
        extra = np.where(S.free, self.sigma * np.maximum(0.0, dual - self._z), 0.0)
        return float(self.beta @ np.maximum(0.0, slack - self._s)) + float(extra.sum())


def _labelling_pulls(B: Array, S: AtomPolytope, weights: Array, omega: Array) -> Array:
    """Σ_g weights_g b_kg'ω_g of every labelling, with a zero for ȳ = y, shape (K + 1,)."""
    return np.append(0.0, B.T @ (S.spread(weights) * omega))
