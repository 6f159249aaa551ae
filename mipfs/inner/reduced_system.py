"""The system of a step of the interior point: built, factored and solved, in whichever form is smaller.

    (B + Z'DZ) dw = …   with k unknowns,    (D⁻¹ + Z B⁻¹ Z') dα = …   with n,
    B = diag(1/κ) − h Q⁻¹ h' + G S⁻¹ G',    h = −t/κ,    G = h Q⁻¹ A'

both bordered by the free intercept; see `mipfs.inner.interior`, which sets the scalings.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgError, cho_factor
from scipy.linalg.blas import dgemm
from scipy.linalg.lapack import dpotrs

from mipfs.kernels.gram import scale_lower
from mipfs.losses.terms import Terms
from mipfs.plumbing.arrays import Array, Integers, scatter

LEAST_LIFT = 1e-15
"""Relative lift of the diagonal before it is factored, multiplied by a hundred where the factor fails."""
MOST_REFINEMENTS, EXACT_RESIDUAL = 2, 1e-10
"""Refinements of a direction at most, and the relative residual that needs none."""


class ScaledDesign(Protocol):
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
class RowPolytope:
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


def cardinality(count: int, room: int | None) -> RowPolytope:
    """0 ≤ σ ≤ 1 with Σσ ≤ room where that says anything."""
    rows = int(room is not None and room < count)
    A = np.ones((rows, count))
    u = np.full(rows, float(room or 0))
    return RowPolytope(A, u, np.zeros(rows, bool), np.zeros(count), np.ones(count))


@dataclass(frozen=True, eq=False)
class CholeskyFactor:
    """A Cholesky factor of a matrix whose diagonal was scaled to one, and the scale."""

    factor: tuple[Array, bool]
    root: Array

    @classmethod
    def of(cls, M: Array) -> CholeskyFactor | None:
        """Factor M by its lower triangle, which is overwritten; lifted where it is not positive definite.

        None where that does not help.
        """
        diagonal = np.diag(M).copy()
        if not np.all(np.isfinite(diagonal)) or np.any(diagonal <= 0):
            return None
        root = 1.0 / np.sqrt(diagonal)
        scale_lower(M, root)
        lift = LEAST_LIFT
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
        if scale.size == 0:
            return np.zeros(right.shape)
        return np.asarray(scale * dpotrs(self.factor[0], scale * right, lower=1)[0])


class ReducedSystem:
    """The system of a step and its factor, at the point and with the scalings that the iteration sets."""

    Z: ScaledDesign
    y: Array
    loss: Terms
    bias: bool
    polytope: RowPolytope
    free: Integers
    atom: Integers
    single: bool
    dual_form: bool
    w: Array
    x: Array
    D: Array
    h: Array
    q: Array
    zeta: Array
    kappa: Array
    rows: CholeskyFactor | None

    def _rows_solve(self, right: Array) -> Array:
        """S⁻¹ right, right (r,) or (r, k); without rows `right` itself."""
        return right if self.rows is None else self.rows.solve(right)

    def _factor_reduced(self, D: Array, S: Array, kappa: Array) -> bool:
        """Build and factor the smaller system."""
        A = self.polytope.A
        h = self.h
        q = self.q
        atom = self.atom
        k = self.w.size
        self.E = 1.0 / kappa
        per = self.zeta[atom]
        own = kappa[self.free]
        scaled = scatter((k, len(S)), self.free, (h / q[atom])[:, None] * A.T[atom])
        self.G = scaled
        if self.single:
            # One column to a σ: 1/κ − h²/q = ζ/(κq), for q = t²/κ + ζ and h = −t/κ.
            self.E[self.free] = per / (own * q[atom])
        if not self.dual_form:
            return self._factor_primal(D, S)
        return self._factor_dual(D, S)

    def _factor_primal(self, D: Array, S: Array) -> bool:
        k = self.w.size
        border = int(self.bias)
        M = np.empty((k + border, k + border), order="F")
        M[:k, :k] = self.Z.gram(D)
        M[np.arange(k), np.arange(k)] += self.E
        if not self.single:
            same = self.atom[:, None] == self.atom[None, :]
            M[np.ix_(self.free, self.free)] -= same * np.outer(self.h, self.h / self.q[self.atom])
        if border:
            M[k, :k], M[k, k] = self.Z.pull(D * self.y), (D * np.square(self.y)).sum()
        if len(S) and k:
            wide = np.zeros((2, k + border, len(S)))
            wide[0, :k], wide[1, :k] = self.G, self._rows_solve(self.G.T).T
            M = dgemm(1.0, wide[0], wide[1], beta=1.0, c=M, trans_b=True, overwrite_c=True)
        return self._factor_of(M)

    def _factor_dual(self, D: Array, S: Array) -> bool:
        n = self.y.size
        border = int(self.bias)
        self.T: CholeskyFactor | None = None
        inverse = self._inverse_columns()
        M = self.Z.outer(inverse[0])
        if inverse[1] is not None:
            M += inverse[1] @ inverse[1].T
        if len(S):
            # The rows' part of B leaves by Woodbury: T = S + G'B0⁻¹G.
            self.BG = self._apply_inverse0(self.G)
            self.T = CholeskyFactor.of(S + self.G.T @ self.BG)
            if self.T is None:
                return False
            ZB = np.column_stack([self.Z.times(self.BG[:, r]) for r in range(len(S))])
            M = dgemm(-1.0, ZB, self.T.solve(ZB.T), beta=1.0, c=M, overwrite_c=True)
        M[np.arange(n), np.arange(n)] += 1.0 / D
        done = self._factor_of(M)
        if done and border:
            # The intercept borders the factor: y'dα is put right by a multiple of F⁻¹y.
            self.Fy = self._factored.solve(self.y)
            self.yFy = float(self.y @ self.Fy)
        return done

    def _factor_of(self, M: Array) -> bool:
        factored = CholeskyFactor.of(M)
        if factored is not None:
            self._factored = factored
        return factored is not None

    def _inverse_columns(self) -> tuple[Array, Array | None]:
        """B0⁻¹ as weights of the columns and, with groups, the extra columns Z_g h σ_g/√ζ_g."""
        if self.single:
            return 1.0 / self.E, None
        own = self.kappa
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
        """B0⁻¹ f, B0 = diag(1/κ) − h Q⁻¹ h' without the rows; f is (k,) or (k, r)."""
        if self.single:
            return f / (self.E if f.ndim == 1 else self.E[:, None])
        if f.ndim == 2:
            return np.column_stack([self._apply_inverse0(column) for column in f.T])
        out = self.kappa * f
        inner = np.zeros(self.q.size)
        np.add.at(inner, self.atom, self.h * f[self.free])
        out[self.free] += self.h * (np.square(self.x) / self.zeta * inner)[self.atom]
        return out

    def _apply_inverse(self, f: Array) -> Array:
        """B⁻¹f (k,), of f (k,), rows included."""
        out = self._apply_inverse0(f)
        if self.T is not None:
            out = out - self.BG @ self.T.solve(self.G.T @ out)
        return out

    def _reduced_directions(self, R: Array, f: Array, g: Array, gamma: Array) -> tuple[Array, float, Array, Array]:
        """dw, db, dα and dm of the reduced system."""
        A = self.polytope.A
        q = self.q
        rows = self._rows_solve(A @ (R / q) - g)
        PR = (R - A.T @ rows) / q
        f[self.free] -= self.h * PR[self.atom]
        right = f, gamma, float(self.y @ self.loss.alpha)
        return self._solved_dual(*right) if self.dual_form else self._solved_primal(*right)

    def _solved_primal(self, f: Array, gamma: Array, rb: float) -> tuple[Array, float, Array, Array]:
        """B dw − Z'dα = f, y'dα = −rb, dα = D(γ − dm): by the k×k factor, refined on the equations themselves."""
        Z = self.Z
        y = self.y
        D = self.D
        k = self.w.size
        dw = np.zeros(k)
        db = 0.0
        dm = np.zeros(y.size)
        d_alpha = D * gamma
        for turn in range(1 + MOST_REFINEMENTS):
            left = f - self._apply_B(dw) + Z.pull(d_alpha)
            if self.bias:
                left = np.append(left, rb + float(y @ d_alpha))
            size = self._factored.size(left)
            if turn == 0:
                first = size
            elif size <= EXACT_RESIDUAL * first:
                break
            change = self._factored.solve(left)
            dw = dw + change[:k]
            db = db + (float(change[-1]) if self.bias else 0.0)
            dm = Z.times(dw) + (y * db if self.bias else 0.0)
            d_alpha = D * (gamma - dm)
        return dw, db, d_alpha, dm

    def _solved_dual(self, f: Array, gamma: Array, rb: float) -> tuple[Array, float, Array, Array]:
        """The system of `_solved_primal` by the n×n factor: (D⁻¹ + ZB⁻¹Z') dα = γ − ZB⁻¹f − y db, refined."""
        Z = self.Z
        y = self.y
        D = self.D
        base = self._apply_inverse(f)
        dw = base
        db = 0.0
        dm = Z.times(base)
        d_alpha = np.zeros(y.size)
        for turn in range(1 + MOST_REFINEMENTS):
            left = gamma - dm - d_alpha / D
            size = self._factored.size(left)
            if turn == 0:
                first = size
            elif size <= EXACT_RESIDUAL * first:
                break
            change = self._factored.solve(left)
            if self.bias:
                step = (float(y @ (d_alpha + change)) + rb) / self.yFy
                change = change - step * self.Fy
                db = db + step
            d_alpha = d_alpha + change
            dw = base + self._apply_inverse(Z.pull(d_alpha))
            dm = Z.times(dw) + (y * db if self.bias else 0.0)
        return dw, db, d_alpha, dm

    def _apply_B(self, w: Array) -> Array:
        """Bw (k,), of w (k,)."""
        out = self.E * w
        if not self.single:
            inner = np.bincount(self.atom, self.h * w[self.free], minlength=self.q.size) / self.q
            out[self.free] -= self.h * inner[self.atom]
        return out + self.G @ self._rows_solve(self.G.T @ w)
