"""The Boolean relaxation by a structured primal-dual interior point: no scale, loss or row stops it.

    min  ½ Σ_g ‖w_g‖²/σ_g + c'σ + L(Zw + yb)   over w, b, 0 ≤ σ ≤ 1, lb ≤ A(σ, e) ≤ ub

The rows of Z leave with D = 1/(slack over dual), σ with q = ‖w_g‖²/σ_g³ + ζ_g, ζ = z/σ + v/(1 − σ), the rows of A as a
Schur complement S of their number. What is left is one of two positive definite systems, whichever is smaller:

    (B + Z'DZ) dw = …   with k unknowns,    (D⁻¹ + Z B⁻¹ Z') dα = …   with n,
    B = diag(1/σ) − h Q⁻¹ h' + G S⁻¹ G',    h = −w/σ²,    G = h Q⁻¹ A'

both bordered by the free intercept. One iteration is one product and one Cholesky factor. The losses differ in D alone.
Mehrotra's predictor and corrector; one step length for both sides, because the perspective terms are not linear.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.linalg.blas import dgemm

from mipfs.inner.pointwise import Pointwise, to_boundary
from mipfs.kernels.gram import scale_lower

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

BACK = 0.99
"""Share of the way to the boundary that a step may go."""
REGULAR = 1e-15
"""Relative lift of the diagonal before it is factored, multiplied by a hundred where the factor fails."""
PROXIMAL = 1e-7
"""Weight of ½(e − last e)² for the extra variables, which have no curvature of their own, and maybe no ends."""
REFINEMENTS, EXACT = 2, 1e-10
"""Refinements of a direction at most, and the relative residual that needs none."""
INSIDE = 1e-15
"""Least distance of a point that is begun from to the ends of its box, relative to their distance."""
NEWCOMER = 0.1
"""σ of an atom that comes in later, as a share of the mean of those that are there."""
MAX_STEPS = 200
"""Steps after which the numbers are taken as they are."""


class Design(Protocol):
    """The columns Z = y∘x, scaled, of the features in play."""

    @property
    def shape(self) -> tuple[int, int]:
        """(n, k)."""

    def times(self, w: Array) -> Array:
        """Zw, shape (n,)."""

    def pull(self, alpha: Array) -> Array:
        """Z'α, shape (k,)."""

    def gram(self, weights: Array) -> Array:
        """Lower triangle of Z' diag(weights) Z, shape (k, k), in Fortran's order."""

    def outer(self, weights: Array) -> Array:
        """Lower triangle of Z diag(weights) Z', shape (n, n), in Fortran's order."""


@dataclass(frozen=True, eq=False)
class Polytope:
    """0 ≤ x ≤ 1 on σ, ends of their own on the extra variables, and rows A x ≤ u or A x = u.

    Attributes
    ----------
    A : (r, m) ndarray; u : (r,); equal : (r,) bool, which rows are equations
    low, high : (m,) ends of x = (σ, e); infinite ones only of extra variables
    """

    A: Array
    u: Array
    equal: npt.NDArray[np.bool_]
    low: Array
    high: Array


def cardinality(count: int, room: int | None) -> Polytope:
    """0 ≤ σ ≤ 1 with Σσ ≤ room where that says anything."""
    rows = int(room is not None and room < count)
    A, u = np.ones((rows, count)), np.full(rows, float(room or 0))
    return Polytope(A, u, np.zeros(rows, bool), np.zeros(count), np.ones(count))


@dataclass(frozen=True, eq=False)
class Point:
    """An iterate: weights (k,), intercept, x = (σ, e) (m,), α (n,) inside its box, multipliers (r,) of the rows A."""

    w: Array
    b: float
    x: Array
    alpha: Array
    multipliers: Array
    steps: int


class InteriorPoint:
    """The iteration.

    Parameters
    ----------
    Z : Design of k columns
    y : (n,) labels
    loss : Pointwise, at a dual vector inside its box
    bias : whether the intercept is free
    atom : (k,) the σ of every column; -1 where it is fixed at 1
    penalty : (m,) cost of x
    polytope : Polytope of x
    dual_form : bool, optional
        Solve the n×n system; by default where n is smaller.
    """

    def __init__(
        self,
        Z: Design,
        y: Array,
        loss: Pointwise,
        bias: bool,
        atom: Integers,
        penalty: Array,
        polytope: Polytope,
        dual_form: bool | None = None,
    ) -> None:
        self.Z, self.y, self.loss, self.bias = Z, y, loss, bias
        self.polytope, self.penalty = polytope, penalty
        self.free = np.flatnonzero(atom >= 0)
        self.atom = atom[self.free]
        n, k = Z.shape
        m = penalty.size
        self.single = self.atom.size == np.unique(self.atom).size
        self.dual_form = n < k if dual_form is None else dual_form
        low, high = polytope.low, polytope.high
        self.has_low, self.has_high = np.isfinite(low), np.isfinite(high)
        self.below, self.above = np.where(self.has_low, low, 0.0), np.where(self.has_high, high, 0.0)
        owned = np.zeros(m, bool)
        owned[self.atom] = True
        self.proximal = np.where(owned, 1e-20, PROXIMAL)
        self.steps, self.mu = 0, 0.5
        self._begin(k, m)

    def _begin(self, k: int, m: int) -> None:
        """x inside its box and, where they allow it, its rows; w = 0; every product near one half."""
        A = self.polytope.A
        x = np.where(self.has_low & self.has_high, 0.5 * (self.below + self.above), self.below + self.above)
        x = x + (self.has_low & ~self.has_high) - (self.has_high & ~self.has_low)
        if len(A):
            width = np.where(self.has_low & self.has_high, self.above - self.below, 1.0)
            use = np.abs(A) @ width
            room = np.where(self.polytope.equal, np.inf, self.polytope.u - A @ self.below)
            share = float(np.min(np.where(use > 0, 0.9 * room / np.maximum(use, 1e-300), np.inf), initial=0.5))
            if share > 0:
                x = np.where(self.has_low & self.has_high, self.below + min(0.5, share) * width, x)
        self.x = x
        self.w, self.omega, self.b = np.zeros(k), np.zeros(k), 0.0
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
        self.b, self.tau, self.r = last.b, last.tau, last.r
        self.w[columns], self.omega = last.w, self.Z.pull(self.loss.alpha)
        self.omega[columns] = last.omega
        held = last.x[last.atom] - last.below[last.atom]
        self.x[:] = self.below + NEWCOMER * float(held.sum()) / max(1, held.size)
        self.x[places] = last.x
        # The last point may have come so near to an end that rounding put it there.
        both = self.has_low & self.has_high
        room = np.where(both, INSIDE * (self.above - self.below), 0.0)
        self.x = np.where(both, np.clip(self.x, self.below + room, self.above - room), self.x)
        self.z, self.v = np.zeros(self.x.size), np.zeros(self.x.size)
        self.z[places], self.v[places] = last.z, last.v
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
    def point(self) -> Point:
        """Where the iteration is."""
        return Point(self.w, self.b, self.x, self.loss.alpha, self.tau, self.steps)

    def step(self) -> bool:
        """One predictor and corrector; False when the numbers allow no more."""
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):  # numbers that are none end the iteration
            return self._step()

    def _step(self) -> bool:
        loss, polytope, A = self.loss, self.polytope, self.polytope.A
        k = self.w.size
        D = loss.linearise(self.Z.times(self.w) + (self.y * self.b if self.bias else 0.0))
        gap_low, gap_high = self.x - self.below, self.above - self.x
        low, high = self.has_low, self.has_high
        zeta = np.where(low, self.z / np.where(low, gap_low, 1.0), 0.0)
        zeta = zeta + np.where(high, self.v / np.where(high, gap_high, 1.0), 0.0) + self.proximal
        sigma = np.ones(k)
        sigma[self.free] = self.x[self.atom]
        of, sf = self.omega[self.free], sigma[self.free]
        squares = np.bincount(self.atom, np.square(of), minlength=self.x.size)
        q = squares / np.where(squares > 0, self.x, 1.0) + zeta
        self.h = -of / sf
        self.q, self.zeta, self.sigma = q, zeta, sigma
        pulled = self.Z.pull(loss.alpha)
        apart = sigma * self.omega - self.w
        rs = self.penalty - 0.5 * squares - self.z + self.v + A.T @ self.tau
        rr = polytope.u - A @ self.x - self.r
        total, number = loss.products()
        number += int(low.sum() + high.sum() + np.count_nonzero(~polytope.equal))
        total += float(
            self.z @ np.where(low, gap_low, 0.0) + self.v @ np.where(high, gap_high, 0.0) + self.tau @ self.r
        )
        mu = self.mu = total / max(number, 1)
        theta = np.where(polytope.equal, 0.0, self.r / np.where(polytope.equal, 1.0, self.tau))
        S = (A / q) @ A.T
        S[np.diag_indices_from(S)] += theta
        self.D, self.S = D, S
        self.rows = Factor.of(S.copy()) if len(S) else None
        if (len(S) and self.rows is None) or not self._factor(D, S, sigma):
            return False

        def solve(target: float, second: tuple[Array, ...] | None) -> tuple[Any, ...]:
            cz, cv = target - self.z * gap_low, target - self.v * gap_high
            ct, rp, R = target - self.tau * self.r, apart, -rs
            if second is not None:
                cz, cv, ct = cz - second[0], cv - second[1], ct - second[2]
                rp, R = rp + second[3], R + second[4]
            R = R + np.bincount(self.atom, self.h * rp[self.free], minlength=self.x.size)
            R = R + np.where(low, cz / np.where(low, gap_low, 1.0), 0.0)
            R = R - np.where(high, cv / np.where(high, gap_high, 1.0), 0.0)
            g = np.where(polytope.equal, rr, rr - ct / np.where(polytope.equal, 1.0, self.tau))
            gamma = loss.target(target, second is not None)
            dw, db, d_alpha, _ = self._directions(R, pulled + (rp - sigma * self.omega) / sigma, g, gamma)
            U = R - np.bincount(self.atom, self.h * dw[self.free], minlength=self.x.size)
            d_tau = self._rows_solve(A @ (U / q) - g)
            dx = (U - A.T @ d_tau) / q
            dz = np.where(low, (cz - self.z * dx) / np.where(low, gap_low, 1.0), 0.0)
            dv = np.where(high, (cv + self.v * dx) / np.where(high, gap_high, 1.0), 0.0)
            dr = np.where(polytope.equal, 0.0, rr - A @ dx)
            d_omega = (dw - rp) / sigma
            d_omega[self.free] += self.h * dx[self.atom]
            loss.direction(d_alpha)
            return dw, db, d_omega, dx, dz, dv, d_tau, dr

        def longest(d: tuple[Any, ...]) -> float:
            _, _, _, dx, dz, dv, d_tau, dr = d
            unequal = ~polytope.equal
            pairs = (
                (gap_low[low], dx[low]),
                (gap_high[high], -dx[high]),
                (self.z[low], dz[low]),
                (self.v[high], dv[high]),
            )
            rows = (self.tau[unequal], d_tau[unequal]), (self.r[unequal], dr[unequal])
            return min(1.0, BACK * min(loss.longest(), *(to_boundary(a, b) for a, b in (*pairs, *rows))))

        first = solve(0.0, None)
        reach = longest(first)
        center = max(1e-3, (1.0 - reach) ** 3)
        _, _, d_omega, dx, dz, dv, d_tau, dr = first
        bent = np.zeros(k)
        bent[self.free] = reach * d_omega[self.free] * dx[self.atom]
        curved = np.bincount(self.atom, 0.5 * reach * np.square(d_omega[self.free]), minlength=dx.size).astype(float)
        second = (reach * dz * dx, -reach * dv * dx, reach * d_tau * dr, bent, curved)
        last = solve(center * mu, second)
        if not all(np.all(np.isfinite(part)) for part in last):
            return False
        reach = self.reach = longest(last)
        dw, db, d_omega, dx, dz, dv, d_tau, dr = last
        self.w, self.b, self.omega = self.w + reach * dw, self.b + reach * db, self.omega + reach * d_omega
        self.x = self.x + reach * dx
        self.z, self.v = self.z + reach * dz, self.v + reach * dv
        self.tau, self.r = self.tau + reach * d_tau, self.r + reach * dr
        loss.move(reach)
        self.steps += 1
        return reach > 1e-9 and self.steps < MAX_STEPS

    def _rows_solve(self, right: Array) -> Array:
        """S⁻¹ right."""
        return right if self.rows is None else self.rows.solve(right)

    def _factor(self, D: Array, S: Array, sigma: Array) -> bool:
        """Build and factor the smaller system."""
        A, h, q, atom = self.polytope.A, self.h, self.q, self.atom
        k = self.w.size
        self.E = np.ones(k)
        per = self.zeta[atom]
        own = sigma[self.free]
        scaled = np.zeros((k, len(S)))
        scaled[self.free] = (h / q[atom])[:, None] * A.T[atom]
        self.G = scaled
        if self.single:
            self.E[self.free] = per / (own * q[atom])
        else:
            self.E[self.free] = 1.0 / own
        if not self.dual_form:
            return self._factor_primal(D, S)
        return self._factor_dual(D, S)

    def _factor_primal(self, D: Array, S: Array) -> bool:
        k, border = self.w.size, int(self.bias)
        M = np.empty((k + border, k + border), order="F")
        M[:k, :k] = self.Z.gram(D)
        M[np.arange(k), np.arange(k)] += self.E
        if not self.single:
            same = self.atom[:, None] == self.atom[None, :]
            M[np.ix_(self.free, self.free)] -= same * np.outer(self.h, self.h / self.q[self.atom])
        if border:
            M[k, :k], M[k, k] = self.Z.pull(D * self.y), D.sum()
        if len(S) and k:
            wide = np.zeros((2, k + border, len(S)))
            wide[0, :k], wide[1, :k] = self.G, self._rows_solve(self.G.T).T
            M = dgemm(1.0, wide[0], wide[1], beta=1.0, c=M, trans_b=True, overwrite_c=True)
        return self._factor_of(M)

    def _factor_dual(self, D: Array, S: Array) -> bool:
        n, border = self.y.size, int(self.bias)
        self.T: Factor | None = None
        inverse = self._inverse_columns()
        M = self.Z.outer(inverse[0])
        if inverse[1] is not None:
            M += inverse[1] @ inverse[1].T
        if len(S):
            self.BG = self._apply_inverse0(self.G)
            self.T = Factor.of(S + self.G.T @ self.BG)
            if self.T is None:
                return False
            ZB = np.column_stack([self.Z.times(self.BG[:, r]) for r in range(len(S))])
            M = dgemm(-1.0, ZB, self.T.solve(ZB.T), beta=1.0, c=M, overwrite_c=True)
        M[np.arange(n), np.arange(n)] += 1.0 / D
        done = self._factor_of(M)
        if done and border:
            self.Fy = self._factored.solve(self.y)
            self.yFy = float(self.y @ self.Fy)
        return done

    def _factor_of(self, M: Array) -> bool:
        factored = Factor.of(M)
        if factored is not None:
            self._factored = factored
        return factored is not None

    def _inverse_columns(self) -> tuple[Array, Array | None]:
        """B0⁻¹ as weights of the columns and, with groups, the extra columns Z_g h σ_g/√ζ_g."""
        if self.single:
            return 1.0 / self.E, None
        own = self.sigma
        m = self.q.size
        factor = self.x / np.sqrt(self.zeta)
        w = np.zeros(self.w.size)
        extra = np.zeros((self.y.size, m))
        for g in range(m):
            members = self.free[self.atom == g]
            if members.size:
                w[:] = 0.0
                w[members] = self.h[self.atom == g] * factor[g]
                extra[:, g] = self.Z.times(w)
        return own, extra

    def _apply_inverse0(self, f: Array) -> Array:
        """B0⁻¹ f, B0 = diag(1/σ) − h Q⁻¹ h' without the rows; f is (k,) or (k, r)."""
        if self.single:
            return f / (self.E if f.ndim == 1 else self.E[:, None])
        if f.ndim == 2:
            return np.column_stack([self._apply_inverse0(column) for column in f.T])
        out = self.sigma * f
        inner = np.zeros(self.q.size)
        np.add.at(inner, self.atom, self.h * f[self.free])
        out[self.free] += self.h * (np.square(self.x) / self.zeta * inner)[self.atom]
        return out

    def _apply_inverse(self, f: Array) -> Array:
        """B⁻¹ f."""
        out = self._apply_inverse0(f)
        if self.T is not None:
            out = out - self.BG @ self.T.solve(self.G.T @ out)
        return out

    def _directions(self, R: Array, f: Array, g: Array, gamma: Array) -> tuple[Array, float, Array, Array]:
        """dw, db, dα and dm of the reduced system."""
        A, q = self.polytope.A, self.q
        rows = self._rows_solve(A @ (R / q) - g)
        PR = (R - A.T @ rows) / q
        f[self.free] -= self.h * PR[self.atom]
        right = f, gamma, float(self.y @ self.loss.alpha)
        return self._solved_dual(*right) if self.dual_form else self._solved_primal(*right)

    def _solved_primal(self, f: Array, gamma: Array, rb: float) -> tuple[Array, float, Array, Array]:
        """B dw − Z'dα = f, y'dα = −rb, dα = D(γ − dm): by the k×k factor, refined on the equations themselves."""
        Z, y, D, k = self.Z, self.y, self.D, self.w.size
        dw, db, dm, d_alpha = np.zeros(k), 0.0, np.zeros(y.size), D * gamma
        for turn in range(1 + REFINEMENTS):
            left = f - self._times(dw) + Z.pull(d_alpha)
            if self.bias:
                left = np.append(left, rb + float(y @ d_alpha))
            size = self._factored.size(left)
            if turn == 0:
                first = size
            elif size <= EXACT * first:
                break
            change = self._factored.solve(left)
            dw, db = dw + change[:k], db + (float(change[-1]) if self.bias else 0.0)
            dm = Z.times(dw) + (y * db if self.bias else 0.0)
            d_alpha = D * (gamma - dm)
        return dw, db, d_alpha, dm

    def _solved_dual(self, f: Array, gamma: Array, rb: float) -> tuple[Array, float, Array, Array]:
        """The same by the n×n factor."""
        Z, y, D = self.Z, self.y, self.D
        base = self._apply_inverse(f)
        dw, db, dm, d_alpha = base, 0.0, Z.times(base), np.zeros(y.size)
        for turn in range(1 + REFINEMENTS):
            left = gamma - dm - d_alpha / D
            size = self._factored.size(left)
            if turn == 0:
                first = size
            elif size <= EXACT * first:
                break
            change = self._factored.solve(left)
            if self.bias:
                step = (float(y @ (d_alpha + change)) + rb) / self.yFy
                change, db = change - step * self.Fy, db + step
            d_alpha = d_alpha + change
            dw = base + self._apply_inverse(Z.pull(d_alpha))
            dm = Z.times(dw) + (y * db if self.bias else 0.0)
        return dw, db, d_alpha, dm

    def _times(self, w: Array) -> Array:
        """B w."""
        out = self.E * w
        if not self.single:
            inner = np.bincount(self.atom, self.h * w[self.free], minlength=self.q.size) / self.q
            out[self.free] -= self.h * inner[self.atom]
        return out + self.G @ self._rows_solve(self.G.T @ w)


@dataclass(frozen=True, eq=False)
class Factor:
    """A Cholesky factor of a matrix whose diagonal was scaled to one, and the scale."""

    factor: tuple[Array, bool]
    root: Array

    @classmethod
    def of(cls, M: Array) -> Factor | None:
        """Factor M by its lower triangle, which is overwritten; lifted where it is not positive definite.

        None where that does not help.
        """
        diagonal = np.diag(M).copy()
        if not np.all(np.isfinite(diagonal)) or np.any(diagonal <= 0):
            return None
        root = 1.0 / np.sqrt(diagonal)
        scale_lower(M, root)
        lift = REGULAR
        while lift < 1e-4:
            np.fill_diagonal(M, 1.0 + lift)
            try:
                return cls(cho_factor(M, lower=True, check_finite=False), root)
            except (LinAlgError, ValueError):
                lift *= 100.0
        return None

    def size(self, right: Array) -> float:
        """Norm of a right side in the scale of the factor."""
        return float(np.linalg.norm(self.root * right))

    def solve(self, right: Array) -> Array:
        """M⁻¹ right, right (k,) or (k, r)."""
        scale = self.root if right.ndim == 1 else self.root[:, None]
        return np.asarray(scale * cho_solve(self.factor, scale * right, check_finite=False))


def iterate(method: InteriorPoint, look: Callable[[Point], bool]) -> Point:
    """Iterate until `look` at a point says that it is enough."""
    while not look(method.point) and method.step():
        pass
    return method.point
