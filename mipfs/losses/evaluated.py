"""L at a classifier, and how far rounding may have taken it off: the margins in twice the precision where that matters.

At C = 1e8 a margin that is 1 but for rounding costs as much as a weight of 1e-4, on columns of mean 1e5 one of 3. So a
loss that floats leave open is summed again of products and sums with their rounding errors (Ogita, Rump and
Oishi 2005): what is left is a rounding of the short itself, and some (k u)² of what it is the sum of.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import sparse

from mipfs.data.block import Block
from mipfs.plumbing.arrays import Array, Integers

U = 2.0**-53
DOUBTFUL_ERROR = 1e-12
"""Error of the loss, relative to the objective, from which on its margins are computed in twice the precision."""
DOUBTFUL_JOINT_ERROR, MOST_EXACT_NUMBERS = 1e-9, 1 << 18
"""As `DOUBTFUL_ERROR`, for the loss of a measure, in doubt earlier; and the most numbers that are summed exactly."""
PRODUCTS_AT_ONCE = 1 << 18
"""Products of a dense block that are held at once."""
SPLITTER = 2.0**27 + 1.0
"""x·SPLITTER cuts x into two halves of 26 bits (Veltkamp 1968)."""


@dataclass(frozen=True, eq=False)
class CompensatedWeights:
    """A classifier on the scaled data, its weights and its intercept in two floats each.

    Attributes
    ----------
    w, w_rest : (k,) ndarray, weights of the columns of a block, and what they have beyond
    b, b_rest : float
    """

    w: Array
    b: float
    w_rest: Array
    b_rest: float = 0.0

    @classmethod
    def of(cls, w: Array, b: float) -> CompensatedWeights:
        """Of floats."""
        return cls(w, b, np.zeros(w.size))

    @classmethod
    def products(cls, w: Array, scale: Array, b: Fraction) -> CompensatedWeights:
        """Weights times a scale each, neither near what underflows, and a rational intercept."""
        high, low = _two_product(w, scale)
        intercept, rest = _as_two_floats(b)
        return cls(high, intercept, low, rest)

    @classmethod
    def exactly(cls, w: list[Fraction], b: Fraction) -> CompensatedWeights:
        """The nearest of rational numbers."""
        pairs = [_as_two_floats(value) for value in [*w, b]]
        high, low = np.array(pairs, dtype=float).reshape(-1, 2).T
        return cls(high[:-1], float(high[-1]), low[:-1], float(low[-1]))

    def at_zero(self, center: Array) -> tuple[float, float]:
        """b − center'w."""
        used = np.flatnonzero(center)
        if not used.size:
            return self.b, self.b_rest
        terms = zip(center[used].tolist(), self.w[used].tolist(), self.w_rest[used].tolist(), strict=True)
        moved = sum((Fraction(c) * (Fraction(high) + Fraction(low)) for c, high, low in terms), Fraction(0))
        return _as_two_floats(Fraction(self.b) + Fraction(self.b_rest) - moved)


def evaluate_loss(
    loss: Any, block: Block, y: Array, c: Array, at: CompensatedWeights, beside: float
) -> tuple[float, float]:
    """L at the weights of some columns, and what it may be too small by.

    Parameters
    ----------
    loss : mipfs.losses.base.Loss, or one of a measure, of which a few scores are summed exactly
    block : Block, of n samples and k columns
    y, c : (n,) labels and loss weights
    at : CompensatedWeights of the k columns
    beside : float ≥ 0, what stands beside L in the objective
    """
    n, k = block.shape
    scores = block.scores(at.w, at.b)
    scores *= y
    value = float(loss.value(scores, c))
    size = _score_magnitude(block, at)
    is_sum = hasattr(loss, "at_slacks")
    off = 2.0 * (k + 8) * U * size
    if not is_sum:  # of sums over the samples too, and of Δ
        off += 8.0 * (n + 16) * U * (size + 1.0)
    scores -= off
    error = float(loss.value(scores, c)) - value
    if not is_sum:
        exactly = _of_measure(loss.measure, block, at) if error > DOUBTFUL_JOINT_ERROR * (beside + value) else None
        return (value, error) if exactly is None else (float(c[0]) * exactly, 4.0 * U * float(c[0]) * exactly)
    if error > DOUBTFUL_ERROR * (beside + value):
        scores += off
        slacks = np.asarray(loss.target - scores)
        rows = np.arange(n) if loss.has_free_slacks else np.flatnonzero(slacks > -2.0 * off)
        slacks = _accurate_slacks(block, y, rows, at, loss.target)
        c = c[rows]
        value = float(loss.at_slacks(slacks, c))
        error = float(loss.at_slacks(slacks + (2.0 * U * np.abs(slacks) + 4.0 * (k + 8) * U * off), c)) - value
    return value, error + 2.0 * (n + 16) * U * value


def _of_measure(measure: Any, block: Block, at: CompensatedWeights) -> float | None:
    """The largest Δ(ȳ) − w'a(ȳ), or 0, of exact scores; None where they are too many, or nothing computes it."""
    n, k = block.shape
    if n * max(1, k) > MOST_EXACT_NUMBERS:
        return None
    w = [Fraction(high) + Fraction(low) for high, low in zip(at.w.tolist(), at.w_rest.tolist(), strict=True)]
    moved = sum((one * Fraction(c) for one, c in zip(w, block.center.tolist(), strict=True)), Fraction(0))
    rows = block.dense(np.zeros(k)).tolist()
    scores = [sum((one * Fraction(x) for one, x in zip(w, row, strict=True) if x), -moved) for row in rows]
    found = measure.excess(scores)
    return None if found is None else float(found)


def _score_magnitude(block: Block, at: CompensatedWeights) -> float:
    """At least Σ_j |w_j x_ij| + |b| of every sample."""
    return float((block.largest() + np.abs(block.center)) @ np.abs(at.w)) + abs(at.b)


def _accurate_slacks(block: Block, y: Array, rows: Integers, at: CompensatedWeights, target: float) -> Array:
    """target − y(x'w + b) of some samples, nearly as if it was rounded once, (r,)."""
    total, lost = _double_scores(block.values, rows, at, _score_magnitude(block, at))
    b, rest = at.at_zero(block.center)
    total, missing = _two_sum(total, b)
    lost += missing + rest
    slack, missing = _two_sum(target, -y[rows] * total)
    return np.asarray(slack + (missing - y[rows] * lost))


def _double_scores(values: Any, rows: Integers, at: CompensatedWeights, size: float) -> tuple[Array, Array]:
    """x'w of some samples in two floats each, (r,), where no Σ_j |w_j x_ij| is above `size`.

    Let σ be a power of two above 2·size. Then p̄ = fl(fl(σ + p) − σ) is p on a grid of uσ, sums of such p̄ are exact in
    any order, and p − p̄, of at most uσ, is exact and summed as floats (Rump, Ogita and Oishi 2008): k u times k uσ is
    lost at most.
    """
    sigma = 2.0 ** (math.frexp(size)[1] + 1)
    if sparse.issparse(values):
        column = np.repeat(np.arange(at.w.size), np.diff(values.indptr))
        product, lost = _two_product(values.data, at.w[column])
        on_grid = (sigma + product) - sigma
        lost += (product - on_grid) + at.w_rest[column] * values.data
        summed = (np.bincount(values.indices, each, values.shape[0]) for each in (on_grid, lost))
        total, missing = (np.asarray(each[rows], dtype=float) for each in summed)
        return total, missing
    total = np.zeros(rows.size)
    missing = np.zeros(rows.size)
    step = max(1, PRODUCTS_AT_ONCE // max(1, rows.size))
    for first in range(0, at.w.size, step):
        part = slice(first, first + step)
        x = values[rows, part]
        product, lost = _two_product(x, at.w[part])
        on_grid = (sigma + product) - sigma
        total += on_grid.sum(axis=1)
        missing += (lost + (product - on_grid) + at.w_rest[part] * x).sum(axis=1)
    return total, missing


def _two_sum(a: Any, b: Any) -> tuple[Any, Any]:
    """a + b, rounded, and what rounding took off (Knuth 1969)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _two_product(x: Array, w: Array) -> tuple[Array, Array]:
    """x·w, rounded, and what rounding took off (Dekker 1971)."""
    product = x * w
    (x_high, x_low), (w_high, w_low) = _split_float(x), _split_float(w)
    return product, ((x_high * w_high - product) + x_high * w_low + x_low * w_high) + x_low * w_low


def _split_float(x: Any) -> tuple[Any, Any]:
    far = SPLITTER * x
    high = far - (far - x)
    return high, x - high


def _as_two_floats(value: Fraction) -> tuple[float, float]:
    """The nearest float, and that of what is left."""
    high = float(value)
    return high, float(value - Fraction(high))
