"""The interior point on many sparse columns: its n×n system by conjugate gradients, behind a factor of few columns.

    K dα + y db = …,   y'dα = …,   K = D⁻¹ + Z B⁻¹ Z'
    P = D̂⁻¹ + Z_A B_A⁻¹ Z_A',      D̂⁻¹ = D⁻¹ + diag(Z_I E_I⁻¹ Z_I')

A, the core, are the columns whose weight 1/E_j matters; of the others, I, only the diagonal is kept, which is exact for
columns with one entry. P⁻¹ is a |A|×|A| factor of E_A + … + Z_A'D̂Z_A and two products (Woodbury). The intercept borders
that factor, so P⁻¹ keeps y'dα as it is: projected conjugate gradients (Gould, Hribar and Nocedal 2001), whose residual
drops its multiple of y in every iteration, or rounding brings it back. Towards the end both K and P are ruled by the
few columns in play, whatever their number outside, and a step takes some ten products with Z.
"""

from __future__ import annotations

import numpy as np

from mipfs.inner.designs import Interrupted, Sparse
from mipfs.inner.interior import InteriorPoint
from mipfs.inner.reduced_system import CholeskyFactor
from mipfs.plumbing.arrays import Array
from mipfs.settings import InteriorSettings


def is_worthwhile(shape: tuple[int, int], rows: int, settings: InteriorSettings) -> bool:
    """Whether many samples meet many sparse columns, one to a σ, and few rows of the polytope."""
    return min(shape) > settings.least and rows <= settings.rows


class IterativeInteriorPoint(InteriorPoint):
    """The iteration; `InteriorPoint` says what the parameters are.

    Attributes
    ----------
    products : int, conjugate gradient iterations of all steps
    most : int, columns in the core at most
    """

    Z: Sparse

    def _starting_point(self, k: int) -> None:
        super()._starting_point(k)
        assert self.single
        self.dual_form = True
        self.squares = self.Z.by_columns.power(2)
        self._squares_turned = self.squares.T
        self.lone = np.diff(self.Z.by_columns.indptr) <= 1
        self.most = int(np.cbrt(3.0 * self.settings.core_work * max(1, self.Z.by_columns.nnz)))
        self.products = 0
        self._levels: list[float] = []

    def step(self) -> bool:
        """One predictor and corrector; False when the numbers allow no more, or the steps lead nowhere."""
        went_on = super().step()
        levels, settings = self._levels, self.settings
        levels.append(self.mu)
        if len(levels) <= settings.patience or levels[-1 - settings.patience] > settings.late:
            return went_on
        return went_on and self.mu <= settings.slow * levels[-1 - settings.patience]

    def _factor_dual(self, D: Array, S: Array) -> bool:
        k = self.w.size
        border = int(self.bias)
        # What a column adds to the diagonal of K, relative to D⁻¹; a column of one entry is exact there.
        part = (self._squares_turned @ D) / self.E
        part[self.lone] = 0.0
        core = np.flatnonzero(part > self.settings.core)
        if core.size > self.most:
            core = np.sort(np.argpartition(-part, self.most)[: self.most])
        self.core, size = core, core.size
        outside = 1.0 / self.E
        outside[core] = 0.0
        self.D_hat = 1.0 / (1.0 / D + self.squares @ outside)
        self.ZA = Sparse(self.Z.by_columns[:, core], self.Z.must_stop)
        M = np.zeros((size + border, size + border), order="F")
        M[:size, :size] = self.ZA.gram(self.D_hat)
        M[np.arange(size), np.arange(size)] += self.E[core]
        if border:
            M[size, :size], M[size, size] = self.ZA.pull(self.D_hat * self.y), self.D_hat.sum()
        self.T: CholeskyFactor | None = None
        if len(S) and k:
            self.BG = self._apply_inverse0(self.G)
            self.T, inner = (
                CholeskyFactor.of(S + self.G.T @ self.BG),
                CholeskyFactor.of(S + self.G.T @ (self.G * outside[:, None])),
            )
            if self.T is None or inner is None:
                return False
            M[:size, :size] += self.G[core] @ inner.solve(self.G[core].T)
        return size + border == 0 or self._factor_of(M)

    def _apply_preconditioner(self, r: Array) -> tuple[Array, float]:
        """P⁻¹ r, and the multiple of y that it takes off r."""
        u = self.D_hat * r
        size = self.core.size
        right = self.ZA.pull(u)
        if self.bias:
            right = np.append(right, float(self.y @ u))
        if right.size == 0:
            return u, 0.0
        left = self._factored.solve(right)
        shift = self.ZA.times(left[:size])
        db = 0.0
        if self.bias:
            db = float(left[size])
            shift = shift + db * self.y
        return u - self.D_hat * shift, db

    def _apply_system(self, v: Array) -> Array:
        """Kv (n,), of v (n,)."""
        return v / self.D + self.Z.times(self._apply_inverse(self.Z.pull(v)))

    def _solved_dual(self, f: Array, gamma: Array, rb: float) -> tuple[Array, float, Array, Array]:
        """B dw − Z'dα = f and y'dα = −rb hold; what is left of dα = D(γ − dm) is as small as the step needs."""
        y = self.y
        Z = self.Z
        settings = self.settings
        db = 0.0
        base = self._apply_inverse(f)
        d_alpha = np.zeros(y.size)
        r = gamma - Z.times(base)
        if self.bias:
            d_alpha = -rb / float(self.D_hat.sum()) * (self.D_hat * y)
            r = r - self._apply_system(d_alpha)
        enough = max(settings.finest, min(settings.roughest, settings.residual * self.mu))
        first = 0.0
        last = 1.0
        p = np.zeros(y.size)
        for turn in range(settings.products):
            z, shift = self._apply_preconditioner(r)
            r = r - shift * y
            db = db + shift
            size = float(r @ z)
            first = first or size
            if not size > enough**2 * first:
                break
            p = z + (size / last if turn else 0.0) * p
            last = size
            q = self._apply_system(p)
            curvature = float(p @ q)
            if not curvature > 0.0:
                break
            d_alpha = d_alpha + (size / curvature) * p
            r = r - (size / curvature) * q
            self.products += 1
            if Z.must_stop():
                raise Interrupted
        dw = base + self._apply_inverse(Z.pull(d_alpha))
        return dw, db, d_alpha, Z.times(dw) + (y * db if self.bias else 0.0)
