"""The linear program under ONSVM, LPSVM, FSV and l1-AROM, by HiGHS: hinge loss and a weighted ℓ1 norm.

    min over w, b, ξ   Σ_j r_j |w_j| + Σ_i c_i ξ_i      s.t.  y_i (w'x_i + b) + ξ_i ≥ 1,  ξ ≥ 0
    dual               max Σ_i α_i      s.t.  |ω_j(α)| ≤ r_j for all j,  y'α = 0,  0 ≤ α ≤ c        ω = X'(α∘y)

It is the dual that HiGHS gets, a row for each feature: another c or r, or another feature, changes bounds or adds rows,
and the last basis stays dual feasible. Features stand in it once they violate |ω_j| ≤ r_j (column generation, as in
Dedieu, Antipova, Mazumder 2022), so any number of them will do, and sparse ones stay sparse. A weight that is to be 0
or more has the row ω_j ≤ r_j alone, one that is to be 0 or less −ω_j ≤ r_j.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from mipfs.data.instance import Instance
from mipfs.errors import NumericalError, UsageError
from mipfs.inner.watch import balance_classes
from mipfs.lab.baselines.linear import Linear, bracket
from mipfs.plumbing.arrays import Array, Integers, mask_of, scatter
from mipfs.solvers import highs

FIRST_FEATURES, MOST_ENTERING = 100, 100
"""Features in the first program, and new ones that a round adds at most, or as many as there are."""
VIOLATION_SHARE = 1e-9
"""|ω_j| may exceed r_j by this share."""
ZERO_SHARE = 1e-9
"""A weight below this share of the largest one is a zero of the program; an entry of a column likewise."""
SEARCH_RANGE = 1e5
"""A parameter is searched up to this multiple of its start: nothing but round-off changes beyond."""
MOST_WEIGHT_RATIO = 1e7
"""Largest ratio of c_i to r_j that HiGHS gets: from there on it would not tell the norm from its tolerances."""
NOISE_SHARE = 1e-6
"""Share of the largest possible score below which a score is round-off."""
MOST_NUMBERS, BYTES_PER_NUMBER = 2e8, 24
"""Entries of a program at most, for the features that its solution may need, and the bytes that HiGHS takes for one."""


@dataclass(frozen=True, eq=False)
class Vertex:
    """A solution of the program, at a vertex.

    Attributes
    ----------
    ids : (k,) int64, ascending positions of the features with a non-zero weight
    w : (k,) their weights on the scaled data
    b : float, the intercept on centred columns
    alpha : (n,) multipliers of the margins
    """

    ids: Integers
    w: Array
    b: float
    alpha: Array

    def dense(self, p: int) -> Array:
        """w with its zeros, (p,)."""
        return scatter(p, self.ids, self.w)


class OneNorm:
    """The program of one data set; features and the basis are kept from one (c, r) to the next.

    Parameters
    ----------
    data : Instance
    bias : bool, whether b is free; without it b = 0
    name : str, who asks, for messages

    Raises
    ------
    UsageError
        More samples than a linear program takes.
    """

    def __init__(self, data: Instance, bias: bool, name: str) -> None:
        n, p = data.block().shape
        width = min(n, p)  # a vertex has no more features than samples
        entries = width * n * data.block().density
        if entries > MOST_NUMBERS:
            raise UsageError(
                f"{name} solves linear programs of up to {n} samples x {width} features, about "
                f"{BYTES_PER_NUMBER * entries / 1e9:.0f} GB; give fewer samples, or take the baseline l1-svm"
            )
        self.data = data
        self.bias = bias
        self.name = name
        self.ids: Integers = np.empty(0, dtype=np.int64)
        self.units = np.empty(0)
        # whether w_j may be above 0, and below
        self.above, self.below = np.ones((2, p if data.weight_bounds else 1), dtype=bool)
        for one, (low, high) in data.weight_bounds.items():
            j = data.index[one]
            self.above[j] = high > 0.0
            self.below[j] = low < 0.0
        self._lp = highs.HighsModel()
        self._lp.add_columns(np.zeros(n), np.zeros(n))
        self._lp.set_costs(np.full(n, -1.0))
        infinity = highs.highs_infinity()
        ends = (0.0, 0.0) if bias else (-infinity, infinity)
        self._lp.add_column(0.0, *ends)  # π = −y'α: the centres of columns that are centred implicitly, without a bias
        self._lp.add_row(0.0, 0.0, np.arange(n + 1), np.append(data.y, 1.0))

    def solve(self, c: Array, r: Array) -> Vertex:
        """Solve.

        Parameters
        ----------
        c : (n,) >= 0, weights of the samples; 0 leaves one out
        r : (p,) >= 0, weights of the features; inf leaves one out

        Raises
        ------
        NumericalError
            HiGHS finds no optimum.
        """
        if not self.ids.size:
            self._enter_features(self._score_magnitudes(balance_classes(c, self.data.y)), r, FIRST_FEATURES, 0.0)
        while True:
            vertex = self._restricted_program(c, r)
            if not self._enter_features(
                self._score_magnitudes(vertex.alpha), r, max(MOST_ENTERING, self.ids.size), 1.0 + VIOLATION_SHARE
            ):
                return vertex

    def _score_magnitudes(self, alpha: Array) -> Array:
        """|ω_j(α)| of all features, (p,), 0 where ω_j has the sign that w_j must not have."""
        omega = self.data.block().pull(alpha * self.data.y)
        return np.maximum(np.where(self.above, omega, 0.0), np.where(self.below, -omega, 0.0))

    def _enter_features(self, scores: Array, r: Array, most: int, above: float) -> bool:
        """Take in the features of largest |ω_j|/r_j, those above a number only; whether there were any."""
        out = mask_of(scores.size, self.ids)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(out | np.isinf(r), -1.0, np.where(scores > 0.0, scores / r, 0.0))
        order = np.argsort(-ratio, kind="stable")[:most]
        new = np.sort(order[ratio[order] > above])
        if not new.size:
            return False
        block = sparse.csc_array(self.data.block(new).values)
        largest = np.asarray(abs(block).max(axis=0).todense()).ravel()
        units = np.ldexp(1.0, -np.frexp(np.where(largest > 0.0, largest, 1.0))[1])
        rows = sparse.csr_array((block * self.data.y[:, None] * units).T)
        if not self.bias:
            rows = sparse.csr_array(sparse.hstack([rows, (self.data.center[new] * units)[:, None]]))
        rows.data[np.abs(rows.data) <= highs.SMALLEST_ENTRY] = 0.0
        rows.eliminate_zeros()
        free = np.full(new.size, highs.highs_infinity())
        self._lp.add_rows(-free, free, rows, "the features")
        self.ids = np.concatenate([self.ids, new])
        self.units = np.concatenate([self.units, units])
        return True

    def _restricted_program(self, c: Array, r: Array) -> Vertex:
        """The program over the features that stand in it."""
        ends = r[self.ids] * self.units
        infinity = highs.highs_infinity()
        finite = ends[np.isfinite(ends) & (ends > 0.0)]
        size = min(float(c.max()), float(finite.max(initial=0.0)) or np.inf)
        size = size if size > 0.0 else 1.0  # both sides in units in which the smaller one is about 1
        self._lp.fix_columns(np.zeros(self.data.n_samples), np.minimum(c / size, MOST_WEIGHT_RATIO))
        ends = np.where(np.isfinite(ends), ends / size, infinity)
        above, below = (np.broadcast_to(side, self.data.n_features)[self.ids] for side in (self.above, self.below))
        self._lp.set_row_bounds(np.where(below, -ends, -infinity), np.where(above, ends, infinity), first=1)
        solution = self._optimal_vertex()
        multipliers = -self._lp.multipliers()
        w, size_of = multipliers[1:] * self.units, np.abs(multipliers[1:])  # the sizes of columns of one scale
        used = np.flatnonzero(size_of > ZERO_SHARE * size_of.max(initial=0.0))
        used = used[np.argsort(self.ids[used])]
        ids = self.ids[used]
        w = w[used]
        b = float(multipliers[0]) + float(self.data.center[ids] @ w) if self.bias else 0.0
        return Vertex(ids, w, b, np.clip(solution[: self.data.n_samples] * size, 0.0, c))

    def _optimal_vertex(self) -> Array:
        """The columns' values at an optimum: from the last basis, or from none where that has led HiGHS astray."""
        solution = highs.solve(self._lp)
        if solution.status in ("infeasible", "unbounded"):  # it is neither
            self._lp.start_cold()
            solution = highs.solve(self._lp)
        if solution.status != "optimal" or solution.values is None:
            raise NumericalError(f"{self.name}: HiGHS finds no optimum of the linear program; scale the data")
        return solution.values


def hinge_value(data: Instance, c: Array, ids: Integers, w: Array, b: float) -> float:
    """Σ c_i max(0, 1 − y_i (w'x_i + b)) of weights on the scaled data."""
    return float(c @ np.maximum(0.0, 1.0 - data.y * data.block(ids).scores(w, b)))


def first_weight(data: Instance) -> float:
    """A C up to which the one-norm SVM has no features: α = C s, balanced, shows it."""
    return 1.0 / (largest_score(data, data.sample_weight) or 1.0)


def largest_score(data: Instance, c: Array) -> float:
    """max_j |ω_j(α)| of the balanced α = c, or the most that round-off may leave of it; 0 where X is."""
    v = balance_classes(c, data.y) * data.y
    block = data.block()
    reach = max(float(block.values.max()), -float(block.values.min()), float(np.abs(block.center).max()))
    return max(float(np.abs(block.pull(v)).max()), NOISE_SHARE * reach * float(np.abs(v).sum()))


def of_size(fit: Callable[[float], Linear], M: int, start: float, scale: Any) -> Linear:
    """A fit on M features by a method whose parameter alone decides their number.

    Where no fit that was tried along the parameter has M of them (their number may jump), it is the smallest fit beyond
    without all but its M largest weights, and has no objective; fewer than M only where every fit has.

    Parameters
    ----------
    fit : fits at a value of the parameter, which is searched by `mipfs.lab.baselines.linear.bracket`
    M : int >= 1
    start : float > 0
    scale : (p,) of the data: weights are compared on the scaled columns
    """
    known: dict[float, Linear] = {}

    def at(C: float) -> Linear:
        C = min(C, SEARCH_RANGE * start)
        if C not in known:
            known[C] = fit(C)
        return known[C]

    below, above = bracket(at, M, start)
    if above is None or (below is not None and below.ids.size == M):
        assert below is not None
        return below
    keep = np.sort(np.argsort(-np.abs(above.w * scale[above.ids]), kind="stable")[:M])
    return Linear(above.ids[keep], above.w[keep], above.b, above.C)
