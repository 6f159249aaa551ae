"""Rows over the weights as the interior point sees them: samples of infinite weight, whose loss is to break a row.

    d'w − s = −o,   ν s = μ            of an end of a row: a hinge that has no top, and bends at −o in place of 1
    d'w = o,   ν of any sign           of a row whose ends meet: a step leaves δ dν of it, which the next one takes

The intercept has no part in them: where Z = y∘x is bordered by y they have 0.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from mipfs.data.over_weights import RowEnds
from mipfs.kernels.vectors import to_boundary
from mipfs.losses.terms import Terms
from mipfs.plumbing.arrays import Array, Integers

EQUAL_WIDTH = 1e-9
"""A row this narrow, relative to its numbers, is an equation to the interior point."""
DELTA = 1e-9
"""δ, of rows whose largest coefficient is about that of the data."""


class RowSidesTerms:
    """The rows over the weights that an interior point has: an equation, or the ends of a row.

    Attributes
    ----------
    matrix : (m, p) csr_array of d, on the scale of the data
    bends : (m,) −o of an end, 0 of an equation
    equal : (m,) bool
    """

    def __init__(self, ends: RowEnds) -> None:
        places = dict[int, list[int]]()
        for k, (r, _) in enumerate(ends.of):
            places.setdefault(r, []).append(k)
        widths = ends.offsets
        # The end, and the opposite one of an equation.
        kept = list[tuple[int, int]]()
        for both in places.values():
            if len(both) == 2 and float(widths[both].sum()) <= EQUAL_WIDTH:
                kept.append((both[0], both[1]))
            else:
                kept += [(k, -1) for k in both]
        self.count = ends.count
        self._own: Integers = np.array([k for k, _ in kept], dtype=np.int64)
        self._other: Integers = np.array([k for _, k in kept], dtype=np.int64)
        self.equal = self._other >= 0
        self.matrix: Any = ends.matrix[self._own]
        self.bends = np.where(self.equal, 0.0, -widths[self._own])

    def with_box(self, ids: Integers, low: Array, high: Array) -> RowSidesTerms:
        """These, and behind them low ≤ w ≤ high of the columns `ids` (k,), all with σ = 1, as rows of their own.

        Where ω leaves a box w has no slope, and the iteration would circle between a row and the box.
        """
        found = copy.copy(self)
        at_low, at_high = np.flatnonzero(np.isfinite(low)), np.flatnonzero(np.isfinite(high))
        columns = np.concatenate([ids[at_low], ids[at_high]])
        values = np.concatenate([np.ones(at_low.size), -np.ones(at_high.size)])
        shape = columns.size, self.matrix.shape[1]
        own = sparse.csr_array((values, columns, np.arange(columns.size + 1)), shape=shape)
        found.matrix = sparse.csr_array(sparse.vstack([self.matrix, own]))
        found.bends = np.concatenate([self.bends, low[at_low], -high[at_high]])
        found.equal = np.append(self.equal, np.zeros(columns.size, dtype=bool))
        return found

    def __len__(self) -> int:
        return int(self.bends.size)

    def of_ends(self, nu: Array) -> Array:
        """ν ≥ 0 (count,) of every end, of multipliers (m,)."""
        found, own = np.zeros(self.count), nu[: self._own.size]
        equal = self.equal[: self._own.size]
        found[self._own] = np.maximum(own, 0.0)
        found[self._other[equal]] = np.maximum(-own[equal], 0.0)
        return found

    def cost(self, nu: Array) -> float:
        """What multipliers (m,) take off g, but for the allowance of equations."""
        return -float(self.bends @ nu)

    def allowed(self, nu: Array) -> Array:
        """Multipliers (m,) of the sign that they must have."""
        return np.where(self.equal, nu, np.maximum(nu, 0.0))

    def broken(self, m: Array) -> Array:
        """How far d'w (m,) is from keeping every row."""
        return np.asarray(np.where(self.equal, np.abs(m), np.maximum(self.bends - m, 0.0)))


class WithSides(Terms):
    """The terms of a loss, and behind them those of rows over the weights.

    Parameters
    ----------
    own : Terms, of the samples
    sides : RowSidesTerms
    """

    def __init__(self, own: Terms, sides: RowSidesTerms) -> None:
        self.own = own
        self.n = own.alpha.size
        self.unequal: npt.NDArray[np.bool_] = ~sides.equal
        self.bends = sides.bends
        level = own.products()[0] / max(1, own.products()[1])
        self.slack = np.maximum(-sides.bends, 1.0)
        self.nu = np.where(self.unequal, level / self.slack, 0.0)
        self.d_nu, self.d_slack = np.zeros(len(sides)), np.zeros(len(sides))
        self._join()

    def _join(self) -> None:
        self.alpha = np.append(self.own.alpha, self.nu)

    def lift(self, mu: float) -> None:
        """Lengthen the slacks of small products up to μ."""
        self.own.lift(mu)
        self.slack = np.where(self.unequal, np.maximum(self.slack, mu / np.where(self.unequal, self.nu, 1.0)), 1.0)

    def linearise(self, m: Array) -> Array:
        """Residuals at margins m (n + m,); returns D."""
        D = self.own.linearise(m[: self.n])
        self.residual = m[self.n :] - self.bends - np.where(self.unequal, self.slack, 0.0)
        rows = np.where(self.unequal, self.nu / self.slack, 1.0 / DELTA)
        self.D = np.append(D, rows)
        return self.D

    def products(self) -> tuple[float, int]:
        """Sum and number of the complementarity products."""
        total, number = self.own.products()
        own = float(self.nu[self.unequal] @ self.slack[self.unequal])
        return total + own, number + int(np.count_nonzero(self.unequal))

    def target(self, mu: float, second: bool) -> Array:
        """γ for a target μ, with the second-order terms of the last direction where asked."""
        gamma = self.own.target(mu, second)
        self.lacking = mu - self.nu * self.slack - (self.d_nu * self.d_slack if second else 0.0)
        rows = np.where(self.unequal, self.lacking / np.where(self.unequal, self.nu, 1.0), 0.0) - self.residual
        return np.append(gamma, rows)

    def direction(self, d_alpha: Array) -> None:
        """Take over a direction."""
        self.own.direction(d_alpha[: self.n])
        self.d_nu = d_alpha[self.n :]
        nu = np.where(self.unequal, self.nu, 1.0)
        self.d_slack = np.where(self.unequal, (self.lacking - self.slack * self.d_nu) / nu, 0.0)

    def longest(self) -> float:
        """Step to the boundary, inf where there is none."""
        held = self.unequal
        rows: float = min(
            to_boundary(self.nu[held], self.d_nu[held]), to_boundary(self.slack[held], self.d_slack[held])
        )
        return min(self.own.longest(), rows)

    def move(self, step: float) -> None:
        """Take the step."""
        self.own.move(step)
        self.nu = self.nu + step * self.d_nu
        self.slack = self.slack + step * self.d_slack
        self._join()
