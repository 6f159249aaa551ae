"""The B monomials of degree 3 of largest score, exact over all of them: a search for pairs for every third feature.

    |ω_ijk| ≤ f q_i q_j q_k,   q_j³ = Σ |v_i| |x_ij|³     (Hölder; f = √6 γ^1.5, the largest factor)

Features come in order of falling q, the third one last: the search ends where q_1² q_i reaches the B-th best no more.
Its pairs are those of v∘x_i (`mipfs.atoms.pair_search`), among the features before it with q_1 q_i q_j large enough.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mipfs.atoms.pair_search import BELOW, NUMBERS, TINY, BestPairs, FeatureSums, PairSearch, Scope
from mipfs.errors import StoppedError, UsageError
from mipfs.kernels.bound import U
from mipfs.plumbing.arrays import Array, Integers

MOST_PRODUCTS = 1e12
"""Products of a search at most."""
LEVEL_FEATURES = 24
"""Features of largest q whose monomials set the level."""


class TripleSearch(PairSearch):
    """Finds the best monomials of degree 3; see `PairSearch`."""

    def _take_low_degrees(self, best: BestPairs, v: Array, weights: FeatureSums, must_stop: Callable[[], bool]) -> None:
        if self.monomials.has_one:
            super()._take_low_degrees(best, v, weights, must_stop)
        q = self._cubic_norms(v)
        order = np.argsort(-q, kind="stable")
        order = order[q[order] > 0.0]
        factor = self.monomials.factor([1, 1, 1])
        for last in range(min(LEVEL_FEATURES, order.size)):
            self._take_ending_with(best, v, order[: last + 1], factor, must_stop)
        self._check_cost(order, q, best.level / factor * BELOW)
        for last in range(LEVEL_FEATURES, order.size):
            low = best.level / factor * BELOW
            if q[order[0]] ** 2 * q[order[last]] < low:
                return
            kept = order[: last + 1][q[order[: last + 1]] * q[order[0]] * q[order[last]] >= low]
            kept = kept if kept[-1:] == order[last] else np.append(kept, order[last])
            self._take_ending_with(best, v, kept, factor, must_stop)
            if must_stop():
                raise StoppedError

    def radius(self, v: Array) -> float:
        """A bound on |computed − exact| of every |ω|."""
        q = float(self._cubic_norms(v).max(initial=0.0))
        total = float(np.abs(v).sum())
        factor = self.monomials.factor
        repeats: tuple[list[int], ...] = ([], [1], [2], [1, 1], [3], [2, 1], [1, 1, 1])
        sizes = [factor(one) * q ** sum(one) * total ** (1 - sum(one) / 3) for one in repeats]
        return float(2.0 * (v.size + 16) * U * max(sizes) + v.size * TINY)

    def _cubic_norms(self, v: Array) -> Array:
        """(Σ |v| |x|³)^(1/3) of every feature."""
        weight = np.abs(v)
        sums = np.zeros(self.monomials.p)
        if self.is_sparse:
            cubes = abs(self.X)
            cubes.data **= 3
            sums = np.asarray(cubes.T @ weight, dtype=float)
        else:
            step = max(1, NUMBERS // max(1, v.size))
            for start in range(0, sums.size, step):
                sums[start : start + step] = weight @ np.abs(self.X[:, start : start + step]) ** 3
        return np.asarray(np.cbrt(sums) * (1.0 + 1e-9))

    def _take_ending_with(
        self, best: BestPairs, v: Array, columns: Integers, factor: float, must_stop: Callable[[], bool]
    ) -> None:
        """Take in the best monomials of the last of `columns` and two of them."""
        third = int(columns[-1])
        x = self.X[:, [third]].toarray()[:, 0] if self.is_sparse else self.X[:, third]
        weighed = v * x
        squares = self._weighted_squares(np.abs(weighed), columns)
        q = np.sqrt(squares) * (1.0 + (v.size + 8) * U)
        scope = Scope(v, weighed, factor, (third,), float(q.max()))
        alone = np.flatnonzero(factor * squares >= max(best.level - scope.error, TINY))
        if alone.size:  # x_j² x_i
            ids = self._pair_numbers((third,), columns[alone], columns[alone])
            best.add(ids, self.sizes(ids, v))
        order = np.argsort(-q, kind="stable")
        order = order[q[order] > 0.0]
        self._take_best_pairs(columns[order], q[order], best, scope, must_stop)

    def _weighted_squares(self, weight: Array, columns: Integers) -> Array:
        """Σ weight x² of some features."""
        if self.is_sparse:
            part = self.X[:, columns]
            part.data = part.data**2
            return np.asarray(part.T @ weight, dtype=float)
        found = np.empty(columns.size)
        step = max(1, NUMBERS // max(1, weight.size))
        for start in range(0, columns.size, step):
            found[start : start + step] = weight @ self.X[:, columns[start : start + step]] ** 2
        return found

    def _check_cost(self, order: Integers, q: Array, low: float) -> None:
        """Refuse a search that the bound does not make short.

        Raises
        ------
        UsageError
        """
        most = q[order[:1]].sum()
        kept = order[most * most * q[order] >= low]
        if self.is_sparse:
            rows = np.bincount(self.X[:, kept].indices, minlength=self.X.shape[0]).astype(float)
            cost = float((rows**3).sum()) / 6.0
        else:
            sizes = np.sort(q[kept])[::-1]
            partners = np.searchsorted(-sizes, -low / (most * sizes), "right") if low > 0 else np.arange(kept.size)
            cost = float((np.minimum(partners, np.arange(kept.size)).astype(float) ** 2).sum()) * self.X.shape[0] / 2.0
        if cost > MOST_PRODUCTS:
            raise UsageError(
                f"degree 3 over {self.monomials.p} features takes up to {cost:.1g} products a search, more than "
                f"{MOST_PRODUCTS:g}; take degree 2 or fewer features"
            )
