"""The hull of all selections made of some atoms, {0 ≤ σ ≤ 1, Σσ ≤ M}, and its two extremal problems.

most(s)  = max over σ of  Σ_g σ_g (½ s_g − c_g)            the regulariser's conjugate, at s_g = ‖ω_g‖²
least(s) = min over σ of  Σ_g (½ s_g / σ_g + c_g σ_g)      the regulariser itself, at s_g = ‖x_g‖²
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from mipfs.kernels.bound import gains, largest
from mipfs.kernels.perspective import IN, classify_weights
from mipfs.plumbing.arrays import Array, Integers, Mask


@dataclass(frozen=True, eq=False)
class AtomPolytope:
    """{0 ≤ σ ≤ 1, Σσ ≤ M} of G atoms, some of them forced in, and the rows that belong to every atom.

    Attributes
    ----------
    cost : (G,) c_g
    free : (G,) of bool, False where σ_g = 1
    room : how many of the free atoms may be in
    atom : (m,) the atom of every row of a matrix over columns
    """

    cost: Array
    free: Mask
    room: int
    atom: Integers

    @property
    def bounded(self) -> bool:
        """Whether Σσ ≤ room can bind: there are more free atoms than room."""
        return self.room < int(np.count_nonzero(self.free))

    def most(self, squares: Array) -> float:
        """The largest Σ_g σ_g (½ s_g − c_g) for s (G,) >= 0."""
        gain = gains(squares, self.cost)
        return float(gain[~self.free].sum()) + float(largest(gain[self.free], self.room).sum())

    def least(self, squares: Array) -> tuple[float, Array]:
        """The least Σ_g (½ s_g / σ_g + c_g σ_g) for s (G,) >= 0, and its σ, σ_g = min(1, √s_g/τ_g)."""
        f = self.free
        sigma = np.ones(self.cost.size)
        norms = np.sqrt(squares[f])
        if norms.size:
            classes = np.empty(norms.size, dtype=np.int64)
            tau = np.empty(norms.size)
            classify_weights(norms, self.cost[f], 0, min(self.room, norms.size), classes, tau)
            part = np.divide(norms, tau, out=np.zeros(norms.size), where=tau > 0.0)
            part[classes == IN] = 1.0
            sigma[f] = part * min(1.0, self.room / max(float(part.sum()), 1e-300))
        shares = np.divide(squares, sigma, out=np.where(squares > 0.0, np.inf, 0.0), where=sigma > 0.0)
        return 0.5 * float(shares.sum()) + float(self.cost @ sigma), sigma

    @cached_property
    def _column_to_atom_sums(self) -> Any:
        count = self.cost.size
        m = self.atom.size
        if count == m and np.array_equal(self.atom, np.arange(m)):
            return None
        return sparse.csr_array((np.ones(m), (self.atom, np.arange(m))), shape=(count, m))

    def sums(self, rows: Array) -> Array:
        """Sums of (m, …) over the rows of every atom, shape (G, …)."""
        return rows if self._column_to_atom_sums is None else np.asarray(self._column_to_atom_sums @ rows)

    def spread(self, values: Array) -> Array:
        """The value of every atom (G,) for each of its rows, shape (m,)."""
        return values if self._column_to_atom_sums is None else values[self.atom]

    def gram(self, B: Array, sigma: Array, omega: Array, weights: Array) -> Array:
        """Σ_g σ_g B_g'B_g + weights_g q_g q_g' with q_g = B_g'ω_g of B (m, K) and ω (m,), shape (K, K)."""
        if self._column_to_atom_sums is None:
            rows = np.sqrt(sigma + omega * omega * weights)[:, None] * B
        else:
            q = self.sums(omega[:, None] * B)
            rows = np.vstack([np.sqrt(self.spread(sigma))[:, None] * B, np.sqrt(weights)[:, None] * q])
        return np.asarray(rows.T @ rows)
