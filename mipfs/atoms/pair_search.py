"""The B monomials of degree 2 of largest score, exact over all of them and without their columns.

    ω_jk = √2 γ Σ_i v_i x_ij x_ik,   |ω_jk| ≤ √2 γ q_j q_k,   q_j² = Σ_i |v_i| x_ij²     (Cauchy and Schwarz)

Features come in order of falling q, so of a feature only the first ones before it can be partners, and the search ends
where q_1 q_j reaches the B-th best no more. Where no value is negative, q_j² may be the larger of the two sums over
v_i > 0 and over v_i < 0, for |ω| is the difference of two numbers ≥ 0. A few features of largest q, and the best pairs
of the last call, set the level; squares, single features and the constant take one pass over the data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from mipfs.atoms.implicit import Search
from mipfs.atoms.monomials import Monomials
from mipfs.errors import StoppedError
from mipfs.kernels.bound import U
from mipfs.plumbing.arrays import Array, Integers

TINY = float(np.finfo(float).tiny)
LEVEL_FEATURES = 128
"""Features of largest q whose pairs are looked at first."""
PAIRS_AT_ONCE, PRODUCTS_PER_CALL = 1 << 16, 1 << 27
"""Pairs that a pass of the sparse kernel may find before they are sifted, and products that it makes at most."""
FEATURES_PER_BLOCK, PARTNERS_PER_BLOCK = 256, 2048
"""Features of a dense block, and their partners in one product."""
NUMBERS = 1 << 22
"""Numbers of a block of columns."""
BELOW = 1.0 - 1e-7
"""q is off by less than this."""


@dataclass(eq=False)
class BestPairs:
    """The B best so far, of equal ones the lowest number; what is below `least` never counts."""

    B: int
    least: float
    ids: Integers = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    sizes: Array = field(default_factory=lambda: np.empty(0))

    @property
    def level(self) -> float:
        """What a monomial must reach to be among them."""
        return float(self.sizes[-1]) if self.B and self.ids.size == self.B else self.least

    def add(self, ids: Integers, sizes: Array) -> None:
        """Take in some more; those that stand there already must come with the same sizes."""
        high = np.flatnonzero(sizes >= max(self.level, TINY))
        merged, place = np.unique(np.concatenate([self.ids, ids[high]]), return_index=True)
        values = np.concatenate([self.sizes, sizes[high]])[place]
        if merged.size > self.B > 0:
            level = np.partition(values, -self.B)[-self.B]
            merged = merged[values >= level]
            values = values[values >= level]
        order = np.lexsort((merged, -values))[: self.B]
        self.ids = merged[order]
        self.sizes = values[order]


@dataclass(frozen=True, eq=False)
class FeatureSums:
    """What one pass over the data says of every feature: Σ v x, Σ v x², and q."""

    linear: Array
    squares: Array
    q: Array


@dataclass(frozen=True, eq=False)
class Scope:
    """Which products of two different features are looked at.

    Attributes
    ----------
    v : (n,)
    weighed : (n,) v, times the third feature where one is fixed
    factor : float, of the monomials; of those with a third feature the largest
    fixed : what stands in every monomial beside the two: nothing, −1 for the number 1, or a feature
    most : float, the largest q_j = √Σ |weighed| x_j²
    """

    v: Array
    weighed: Array
    factor: float
    fixed: tuple[int, ...]
    most: float

    @property
    def is_exact(self) -> bool:
        """Whether sums of weighed products in the order of the rows are those of the monomials, to the last bit."""
        return self.weighed is self.v

    @cached_property
    def error(self) -> float:
        """How far two ways of summing an |ω| may be apart."""
        return 4.0 * (self.v.size + 16) * U * self.factor * self.most**2


class PairSearch(Search):
    """Finds the best monomials of degree 2 again and again, for changing v.

    Parameters
    ----------
    X : (n, p) dense array in Fortran order or csc_array, not centred
    monomials : Monomials; of a higher degree those of at most two features are found (`mipfs.atoms.triple_search`)

    Attributes
    ----------
    work : int, products that the last call made
    """

    def __init__(self, X: Any, monomials: Monomials) -> None:
        self.X = X
        self.monomials = monomials
        self.work = 0
        self.is_sparse = bool(sparse.issparse(X))
        self._last = np.empty(0, dtype=np.int64)
        self._constant = monomials.factor([])
        self._single = monomials.factor([1])
        self._square = monomials.factor([2])
        self._cross = monomials.factor([1, 1])
        self._none = (-1,) * (monomials.degree - 2)

    @cached_property
    def _is_nonnegative(self) -> bool:
        return bool((self.X.data if self.is_sparse else self.X).min(initial=0.0) >= 0.0)

    def weights(self, v: Array) -> FeatureSums:
        """Σ v x, Σ v x² and q of every feature; q is not too small by more than `BELOW` allows."""
        p = self.monomials.p
        linear, squares, plus, minus = (np.empty(p) for _ in range(4))
        if self.is_sparse:
            from mipfs.kernels.products import column_weights

            column_weights(self.X.data, self.X.indices, self.X.indptr, v, linear, squares, plus, minus)
        else:
            above, below = np.maximum(v, 0.0), np.maximum(-v, 0.0)
            step = max(1, NUMBERS // max(1, v.size))
            for start in range(0, p, step):
                part = slice(start, start + step)
                X = self.X[:, start : start + step]
                linear[part], X = v @ X, X * X
                plus[part], minus[part] = above @ X, below @ X
            self._sum_in_row_order(squares, linear, v)
        q = np.sqrt(np.maximum(plus, minus) if self._is_nonnegative else plus + minus)
        return FeatureSums(linear, squares, q)

    def _sum_in_row_order(self, squares: Array, linear: Array, v: Array) -> None:
        """The sums over dense columns, taken in the order of the rows: equal columns have equal sums."""
        from mipfs.kernels.products import products

        every = np.arange(self.monomials.p, dtype=np.int64)
        products(self.X, np.stack([every, every], axis=1), v, squares)
        products(self.X, every[:, None], v, linear)

    def sizes(self, ids: Integers, v: Array) -> Array:
        """|ω| of given monomials, (k,), by sums in the order of the rows."""
        from mipfs.kernels.products import products

        members = self.monomials.members(ids)
        sums = np.empty(ids.size)
        step = max(1, NUMBERS // max(1, 2 * v.size)) if self.is_sparse else ids.size
        for start in range(0, ids.size, max(1, step)):
            part = members[start : start + step]
            X = self.X
            if self.is_sparse:
                used = np.unique(part[part >= 0])
                X = X[:, used].toarray(order="F")
                part = np.where(part < 0, -1, np.searchsorted(used, part))
            products(X, part, v, sums[start : start + step])
        return np.abs(sums) * self.monomials.factors(members)

    def search(
        self, v: Array, B: int, least: float = 0.0, must_stop: Callable[[], bool] = bool
    ) -> tuple[Integers, Array]:
        """At most B monomials of largest |ω| ≥ `least`, and their |ω|. All others are below the last, or below `least`.

        Raises
        ------
        StoppedError
            `must_stop` said so before it was done.
        """
        best = BestPairs(B, max(least, 0.0))
        weights = self.weights(v)
        self.work = 0
        if B <= 0:
            return best.ids, best.sizes
        if self._last.size:
            best.add(self._last, self.sizes(self._last, v))
        self._take_low_degrees(best, v, weights, must_stop)
        self._last = best.ids
        return best.ids, best.sizes

    def _take_low_degrees(self, best: BestPairs, v: Array, weights: FeatureSums, must_stop: Callable[[], bool]) -> None:
        """Take in the best monomials of at most two features."""
        self._take_singles(best, v, weights)
        q = weights.q
        scope = Scope(v, v, self._cross, self._none, float(weights.q.max(initial=0.0)))
        order = np.argsort(-q, kind="stable")
        order = order[q[order] > 0.0]
        # The features of largest q set the level; then all that q_j q_k says may still reach it.
        heads = order[: max(LEVEL_FEATURES, int(np.ceil(np.sqrt(8.0 * best.B))))]
        self._take_best_pairs(heads, q[heads], best, scope, must_stop)
        kept = order[self._cross * q[order] * scope.most >= best.level * BELOW]
        if kept.size > heads.size:
            self._take_best_pairs(kept, q[kept], best, scope, must_stop)

    def radius(self, v: Array) -> float:
        """A bound on |computed − exact| of every |ω|, for columns that are rounded as `Monomials.columns` rounds them.

        γ_{n+8} Σ_i |v_i x_ij x_ik| ≤ γ_{n+8} q_j q_k, doubled for the error of q and for what underflows.
        """
        q = float(self._all_weights(v).max(initial=0.0))
        total = float(np.abs(v).sum())
        size = max(self._constant * total, self._single * q * np.sqrt(total), self._square * q * q, self._cross * q * q)
        return float(2.0 * (v.size + 16) * U * size + v.size * TINY)

    def _all_weights(self, v: Array) -> Array:
        """√Σ |v| x² of every feature."""
        return np.sqrt(np.maximum(self.weights(np.abs(v)).squares, 0.0))

    def _take_singles(self, best: BestPairs, v: Array, weights: FeatureSums) -> None:
        """Squares, single features and the constant."""
        p = self.monomials.p
        every = np.arange(self.monomials.p, dtype=np.int64)
        found = [([every, every], self._square * np.abs(weights.squares))]
        if self.monomials.has_one:
            one = np.full(p, -1)
            found.append(([one, every], self._single * np.abs(weights.linear)))
            found.append(([one[:1], one[:1]], np.array([self._constant * abs(_in_order(v))])))
        for (left, right), sizes in found:
            high = np.flatnonzero(sizes >= max(best.level, TINY))
            best.add(self._pair_numbers(self._none, left[high], right[high]), sizes[high])

    def _pair_numbers(self, fixed: tuple[int, ...], left: Integers, right: Integers) -> Integers:
        """The numbers of monomials of two features and what is fixed beside them."""
        return self.monomials.ids(np.stack([*(np.full(left.size, j) for j in fixed), left, right], axis=1))

    def _take_best_pairs(
        self, columns: Integers, q: Array, best: BestPairs, scope: Scope, must_stop: Callable[[], bool]
    ) -> None:
        """Take in the best pairs of different features among `columns`, in order of falling q, (k,) each."""
        if columns.size >= 2:
            within = self._among_sparse if self.is_sparse else self._among_dense
            within(columns, q, best, scope, must_stop)

    def _among_sparse(
        self, columns: Integers, q: Array, best: BestPairs, scope: Scope, must_stop: Callable[[], bool]
    ) -> None:
        from mipfs.kernels.products import ChosenColumns, ChosenRows, PairScratch, StoredColumns, pairs_above, rows_of

        X = self.X
        v = scope.weighed
        m = columns.size
        filled = int((X.indptr[columns + 1] - X.indptr[columns]).sum())
        stored = StoredColumns(X.data, X.indices, X.indptr)
        chosen = ChosenColumns(columns, q)
        rows = ChosenRows(np.empty(v.size + 1, np.int64), np.empty(filled, np.int32), np.empty(filled))
        rows_of(stored, columns, v, rows)
        size = max(PAIRS_AT_ONCE, m)
        room = PairScratch(np.empty(m), np.full(m, -1, np.int32), np.empty((size, 2), np.int32), np.empty(size))
        begin = 1
        while begin < m:
            # The level rises with what is found, and leaves less to look at.
            low = max(best.level, TINY) if scope.is_exact else max(best.level - scope.error, 0.0)
            least = low / scope.factor * BELOW
            begin, count, work = pairs_above(stored, chosen, rows, v, least, begin, PRODUCTS_PER_CALL, room)
            self.work += work
            left, right = columns[room.found[:count].T]
            self._take_pairs(best, left, right, room.sizes[:count], scope)
            if begin < m and must_stop():
                raise StoppedError

    def _among_dense(
        self, columns: Integers, q: Array, best: BestPairs, scope: Scope, must_stop: Callable[[], bool]
    ) -> None:
        """Blocks of products; what may be among the best is summed again in the order of the rows."""
        v = scope.weighed
        factor = scope.factor
        for start in range(0, columns.size, FEATURES_PER_BLOCK):
            part = columns[start : start + FEATURES_PER_BLOCK]
            # q falls: no pair of this block or a later one reaches the level.
            if factor * q[0] * q[start] < best.level * BELOW:
                return
            weighed = self.X[:, part] * v[:, None]
            far = start + part.size
            reached = int(np.searchsorted(-q[:far], -max(best.level, TINY) * BELOW / (factor * q[start]), "right"))
            for first in range(0, min(reached, far), PARTNERS_PER_BLOCK):
                others = columns[first : min(first + PARTNERS_PER_BLOCK, reached, far)]
                sums = np.abs(self.X[:, others].T @ weighed)
                self.work += sums.size * v.size
                sums[np.arange(first, first + others.size)[:, None] >= np.arange(start, far)] = -1.0  # each once
                high = np.flatnonzero(sums.ravel() * factor >= max(best.level - scope.error, 0.0))
                self._take_pairs(best, others[high // part.size], part[high % part.size], sums.ravel()[high], scope)
                if must_stop():
                    raise StoppedError

    def _take_pairs(self, best: BestPairs, left: Integers, right: Integers, sums: Array, scope: Scope) -> None:
        """Take in pairs with these |Σ|, those of dense columns after they were summed in the order of the rows."""
        if self.is_sparse and scope.is_exact:
            high = np.flatnonzero(scope.factor * sums >= best.level)
            best.add(self._pair_numbers(scope.fixed, left[high], right[high]), scope.factor * sums[high])
            return
        for high in self._in_parts(best, sums, scope):
            ids = self._pair_numbers(scope.fixed, left[high], right[high])
            best.add(ids, self.sizes(ids, scope.v))

    def _in_parts(self, best: BestPairs, sums: Array, scope: Scope) -> Iterator[Integers]:
        """Places of sums that may be among the best, the largest first: they lift the level for those that follow."""
        order = np.argsort(-sums, kind="stable")
        start, step = 0, 4 * best.B + 64
        while start < order.size:
            part = order[start : start + step]
            part = part[scope.factor * sums[part] >= best.level - scope.error]
            if not part.size:
                return
            yield part
            start, step = start + step, 2 * step


def _in_order(v: Array) -> float:
    """Σ v in order, as the columns of the kernels are summed."""
    return float(np.cumsum(v)[-1]) if v.size else 0.0
