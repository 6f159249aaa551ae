"""The Boolean relaxation by a structured primal-dual interior point: no scale, loss or row stops it.

    min  Σ_j σ_j r(w_j/σ_j) + c'σ + L(Zw + yb)   over w, b, 0 ≤ σ ≤ 1, lb ≤ A(σ, e) ≤ ub

For a regulariser with conjugate h the weights are w = σt, t = h'(ω), where ω = Z'α, and σ is worth h(ω): for the ridge
t = ω and h = ½ω². Let κ = σh''(ω). The rows of Z leave with D = 1/(slack over dual), σ with q = Σ_g t²/κ + ζ_g,
ζ = z/σ + v/(1 − σ), the rows of A as a Schur complement S of their number. What is left is one of two positive definite
systems, whichever is smaller:

    (B + Z'DZ) dw = …   with k unknowns,    (D⁻¹ + Z B⁻¹ Z') dα = …   with n,
    B = diag(1/κ) − h Q⁻¹ h' + G S⁻¹ G',    h = −t/κ,    G = h Q⁻¹ A'

both bordered by the free intercept. One iteration is one product and one Cholesky factor. The losses differ in D alone.
Mehrotra's predictor and corrector; one step length for both sides, because the perspective terms are not linear.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mipfs.inner.reduced_system import CholeskyFactor, ReducedSystem, RowPolytope, ScaledDesign
from mipfs.kernels.vectors import to_boundary
from mipfs.losses.terms import Terms
from mipfs.plumbing.arrays import Array, Integers, mask_of
from mipfs.regularisers.base import Regulariser
from mipfs.settings import InteriorSettings

EXTRA_PROXIMAL_WEIGHT = 1e-7
"""Weight of ½(e − last e)² for the extra variables, which have no curvature of their own, and maybe no ends."""
LEAST_END_DISTANCE = 1e-15
"""Least distance of a point that is begun from to the ends of its box, relative to their distance."""
LEAST_CURVATURE = 1e-8
"""h'' counts as this much at least: where it vanishes (a weight held at 0, or at an end) κ must not."""


@dataclass(frozen=True, eq=False)
class InteriorIterate:
    """An iterate: weights (k,), intercept, x = (σ, e) (m,), α (n,) inside its box, multipliers (r,) of the rows A."""

    w: Array
    b: float
    x: Array
    alpha: Array
    multipliers: Array
    steps: int


@dataclass(frozen=True, eq=False)
class Residuals:
    """What the equations lack at a point: distances to the ends of x (1 where none is), Z'α, σt − w, rows x, A."""

    gap_low: Array
    gap_high: Array
    pulled: Array
    apart: Array
    rs: Array
    rr: Array


@dataclass(frozen=True, eq=False)
class SecondOrderTerms:
    """Terms of second order: of the products with z, v and τ, of w = σt, and of the rows of x."""

    z: Array
    v: Array
    tau: Array
    bent: Array
    curved: Array


@dataclass(frozen=True, eq=False)
class Direction:
    """A step of every unknown but α, which the loss keeps."""

    w: Array
    b: float
    omega: Array
    x: Array
    z: Array
    v: Array
    tau: Array
    r: Array


class InteriorPoint(ReducedSystem):
    """The iteration.

    Parameters
    ----------
    Z : ScaledDesign of k columns
    y : (n,) labels
    loss : Terms, at a dual vector inside its box
    bias : whether the intercept is free
    atom : (k,) the σ of every column; -1 where it is fixed at 1
    penalty : (m,) cost of x
    polytope : RowPolytope of x
    regulariser : Regulariser of the k columns
    share : (k,) σ of the columns where it is fixed, by default 1
    settings : InteriorSettings, optional
    """

    def __init__(
        self,
        Z: ScaledDesign,
        y: Array,
        loss: Terms,
        bias: bool,
        atom: Integers,
        penalty: Array,
        polytope: RowPolytope,
        *,
        regulariser: Regulariser,
        share: Array | None = None,
        settings: InteriorSettings = InteriorSettings(),
    ) -> None:
        self.Z = Z
        self.y = y
        self.loss = loss
        self.bias = bias
        self.regulariser, self.share = regulariser, np.ones(Z.shape[1]) if share is None else share
        self.polytope = polytope
        self.penalty = penalty
        self.settings = settings
        self.free = np.flatnonzero(atom >= 0)
        self.atom = atom[self.free]
        n, k = Z.shape
        m = penalty.size
        self.single = self.atom.size == np.unique(self.atom).size
        # The smaller of both systems is solved.
        self.dual_form = n < k
        low, high = polytope.low, polytope.high
        self.has_low, self.has_high = np.isfinite(low), np.isfinite(high)
        self.below, self.above = np.where(self.has_low, low, 0.0), np.where(self.has_high, high, 0.0)
        owned = mask_of(m, self.atom)
        self.proximal = np.where(owned, 1e-20, EXTRA_PROXIMAL_WEIGHT)
        self.steps = 0
        self.mu = 0.5
        self._starting_point(k)

    def _starting_point(self, k: int) -> None:
        """x inside its box and, where they allow it, its rows; w = 0; every product near one half."""
        A = self.polytope.A
        x = np.where(self.has_low & self.has_high, 0.5 * (self.below + self.above), self.below + self.above)
        x = x + (self.has_low & ~self.has_high) - (self.has_high & ~self.has_low)
        if len(A):
            # Drawn towards the lower ends, so that every row keeps a tenth of its room.
            width = np.where(self.has_low & self.has_high, self.above - self.below, 1.0)
            use = np.abs(A) @ width
            room = np.where(self.polytope.equal, np.inf, self.polytope.u - A @ self.below)
            share = float(np.min(np.where(use > 0, 0.9 * room / np.maximum(use, 1e-300), np.inf), initial=0.5))
            if share > 0:
                x = np.where(self.has_low & self.has_high, self.below + min(0.5, share) * width, x)
        self.x = x
        self.w = np.zeros(k)
        self.omega = np.zeros(k)
        self.b = 0.0
        level = 0.5
        gap_low, gap_high = np.maximum(x - self.below, 1e-3), np.maximum(self.above - x, 1e-3)
        self.z = np.where(self.has_low, level / gap_low, 0.0)
        self.v = np.where(self.has_high, level / gap_high, 0.0)
        self.r = np.where(
            self.polytope.equal, 0.0, np.maximum(self.polytope.u - A @ x, 0.05 * (1.0 + np.abs(self.polytope.u)))
        )
        self.tau = np.where(self.polytope.equal, 0.0, level / np.where(self.polytope.equal, 1.0, self.r))

    def resume(
        self, last: InteriorPoint, columns: npt.NDArray[np.bool_], places: npt.NDArray[np.bool_], excess: float
    ) -> None:
        """Go on from where another run ended that had fewer atoms, the same loss object and the same rows.

        Parameters
        ----------
        last : InteriorPoint
        columns, places : (k,) and (m,) bool, which columns and which entries of x were there, in the same order
        excess : gap of that point as a point of this problem; every product is lifted to its share
        """
        self.b = last.b
        self.tau = last.tau
        self.r = last.r
        self.w[columns], self.omega = last.w, self.Z.pull(self.loss.alpha)
        self.omega[columns] = last.omega
        held = last.x[last.atom] - last.below[last.atom]
        self.x[:] = self.below + self.settings.newcomer * float(held.sum()) / max(1, held.size)
        self.x[places] = last.x
        # The last point may have come so near to an end that rounding put it there.
        both = self.has_low & self.has_high
        room = np.where(both, LEAST_END_DISTANCE * (self.above - self.below), 0.0)
        self.x = np.where(both, np.clip(self.x, self.below + room, self.above - room), self.x)
        self.z, self.v = np.zeros(self.x.size), np.zeros(self.x.size)
        self.z[places], self.v[places] = last.z, last.v
        # Every product is lifted to its share of the excess.
        number = self.loss.products()[1] + int(self.has_low.sum() + self.has_high.sum()) + self.tau.size
        mu = max(last.mu, excess / number)
        self.z = np.where(self.has_low, np.maximum(self.z, mu / np.where(self.has_low, self.x - self.below, 1.0)), 0.0)
        self.v = np.where(
            self.has_high, np.maximum(self.v, mu / np.where(self.has_high, self.above - self.x, 1.0)), 0.0
        )
        unequal = ~self.polytope.equal
        self.r = np.where(unequal, np.maximum(self.r, mu / np.where(unequal, self.tau, 1.0)), 0.0)
        self.loss.lift(mu)

    @property
    def point(self) -> InteriorIterate:
        """The current iterate."""
        return InteriorIterate(self.w, self.b, self.x, self.loss.alpha, self.tau, self.steps)

    def step(self) -> bool:
        """One predictor and corrector; False when the numbers allow no more."""
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            # NaN and inf raise nothing here: `_take_step` answers False to them.
            return self._take_step()

    def _take_step(self) -> bool:
        left = self._factor_system()
        if left is None:
            return False
        # Predictor: towards products of zero; how far it gets says how much the corrector centres.
        first = self._newton_direction(left, 0.0, None)
        reach = self._step_length(left, first)
        center = max(1e-3, (1.0 - reach) ** 3)
        bent = np.zeros(self.w.size)
        curved = np.zeros(self.x.size)
        d_omega = first.omega[self.free]
        slope = self.slope[self.free]
        bent[self.free] = reach * d_omega * first.x[self.atom] * slope
        curved += np.bincount(self.atom, 0.5 * reach * np.square(d_omega) * slope, minlength=self.x.size)
        # Mehrotra's second-order terms, times how far the predictor may go.
        second = SecondOrderTerms(
            reach * first.z * first.x, -reach * first.v * first.x, reach * first.tau * first.r, bent, curved
        )
        last = self._newton_direction(left, center * self.mu, second)
        if not all(np.isfinite(part).all() for part in vars(last).values()):
            return False
        reach = self.reach = self._step_length(left, last)
        self.w = self.w + reach * last.w
        self.b = self.b + reach * last.b
        self.omega = self.omega + reach * last.omega
        self.x = self.x + reach * last.x
        self.z, self.v = self.z + reach * last.z, self.v + reach * last.v
        self.tau = self.tau + reach * last.tau
        self.r = self.r + reach * last.r
        self.loss.move(reach)
        self.steps += 1
        return reach > 1e-9 and self.steps < self.settings.steps

    def _factor_system(self) -> Residuals | None:
        """Factor the system at the point; what its equations lack there, or None where it cannot be factored."""
        loss = self.loss
        polytope = self.polytope
        A = self.polytope.A
        D = loss.linearise(self.Z.times(self.w) + (self.y * self.b if self.bias else 0.0))
        low, high = self.has_low, self.has_high
        # Where there is no end, z and v are 0, and the distance to it counts for nothing.
        gap_low, gap_high = np.where(low, self.x - self.below, 1.0), np.where(high, self.above - self.x, 1.0)
        zeta = self.z / gap_low + self.v / gap_high + self.proximal
        sigma = self.share.copy()
        regulariser = self.regulariser
        free = self.free
        sigma[free] = self.x[self.atom]
        t = regulariser.weight(self.omega)
        self.slope = np.maximum(regulariser.curvature(self.omega), LEAST_CURVATURE)
        squares = np.bincount(self.atom, np.square(t[free]) / self.slope[free], minlength=self.x.size)
        worth = np.bincount(self.atom, regulariser.conjugate(self.omega)[free], minlength=self.x.size)
        # q = Σ_g t²/κ + ζ with κ = σh''.
        q = squares / np.where(squares > 0, self.x, 1.0) + zeta
        self.q = q
        self.zeta = zeta
        self.kappa = sigma * self.slope
        self.h = -t[free] / self.kappa[free]
        total, number = loss.products()
        number += int(low.sum() + high.sum() + np.count_nonzero(~polytope.equal))
        total += float(self.z @ gap_low + self.v @ gap_high + self.tau @ self.r)
        self.mu = total / max(number, 1)
        theta = np.where(polytope.equal, 0.0, self.r / np.where(polytope.equal, 1.0, self.tau))
        # S = A Q⁻¹ A' + diag(slack over multiplier).
        S = (A / q) @ A.T
        S[np.diag_indices_from(S)] += theta
        self.D = D
        self.S = S
        self.rows = CholeskyFactor.of(S.copy()) if len(S) else None
        if (len(S) and self.rows is None) or not self._factor_reduced(D, S, self.kappa):
            return None
        rs = self.penalty - worth - self.z + self.v + A.T @ self.tau
        rr = polytope.u - A @ self.x - self.r
        return Residuals(gap_low, gap_high, self.Z.pull(loss.alpha), sigma * t - self.w, rs, rr)

    def _newton_direction(self, left: Residuals, target: float, second: SecondOrderTerms | None) -> Direction:
        """Where the products go to `target`; `second`: what the step of the predictor bends."""
        low = self.has_low
        high = self.has_high
        q = self.q
        A = self.polytope.A
        equal = self.polytope.equal
        # What the products lack; z, v and the slacks of the rows are eliminated by it.
        cz = target - self.z * left.gap_low
        cv = target - self.v * left.gap_high
        ct = target - self.tau * self.r
        rp = left.apart
        R = -left.rs
        if second is not None:
            cz = cz - second.z
            cv = cv - second.v
            ct = ct - second.tau
            rp = rp + second.bent
            R = R + second.curved
        R = R + np.bincount(self.atom, self.h * rp[self.free], minlength=self.x.size)
        R = R + np.where(low, cz / left.gap_low, 0.0)
        R = R - np.where(high, cv / left.gap_high, 0.0)
        g = np.where(equal, left.rr, left.rr - ct / np.where(equal, 1.0, self.tau))
        gamma = self.loss.target(target, second is not None)
        pulled = left.pulled + (rp - self.kappa * self.omega) / self.kappa
        dw, db, d_alpha, _ = self._reduced_directions(R, pulled, g, gamma)
        U = R - np.bincount(self.atom, self.h * dw[self.free], minlength=self.x.size)
        d_tau = self._rows_solve(A @ (U / q) - g)
        dx = (U - A.T @ d_tau) / q
        dz = np.where(low, (cz - self.z * dx) / left.gap_low, 0.0)
        dv = np.where(high, (cv + self.v * dx) / left.gap_high, 0.0)
        dr = np.where(equal, 0.0, left.rr - A @ dx)
        d_omega = (dw - rp) / self.kappa
        d_omega[self.free] += self.h * dx[self.atom]
        self.loss.direction(d_alpha)
        return Direction(dw, db, d_omega, dx, dz, dv, d_tau, dr)

    def _step_length(self, left: Residuals, d: Direction) -> float:
        """How far one may go along a direction: a share of the way to the boundary, at most 1."""
        low = self.has_low
        high = self.has_high
        unequal = ~self.polytope.equal
        pairs = (
            (left.gap_low[low], d.x[low]),
            (left.gap_high[high], -d.x[high]),
            (self.z[low], d.z[low]),
            (self.v[high], d.v[high]),
            (self.tau[unequal], d.tau[unequal]),
            (self.r[unequal], d.r[unequal]),
        )
        reach: float = min(self.loss.longest(), *(to_boundary(a, b) for a, b in pairs))
        return min(1.0, self.settings.boundary * reach)


def iterate(method: InteriorPoint, look: Callable[[InteriorIterate], bool]) -> InteriorIterate:
    """Iterate until `look` at a point says that it is enough."""
    while not look(method.point) and method.step():
        pass
    return method.point
