"""The largest Δ(ȳ) − w'a(ȳ) of a measure in rational arithmetic, at scores that are whole numbers times a power of two.

What floating point leaves in doubt is summed again: of a table the few (a, b) whose values come near the maximum, of a
ranking every pair, or every negative at the few places that come near its best one. Harmonic numbers, which the average
precision is made of, are whole multiples of 2^−`HARMONIC_DIGITS`, off by one for every term.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import accumulate

import numpy as np

from mipfs.check.measure import StatedMeasure
from mipfs.check.rounding import Array, U

HARMONIC_DIGITS = 300
"""Binary digits of a harmonic number: the terms of 2^40 samples are off by less than 1e-75."""
MOST_EXACT_VALUES = 1 << 17
"""Values that are computed exactly at most: where more are tied, the maximum is left to floating point."""


def worst(measure: StatedMeasure, whole: Sequence[int], exponent: int) -> Fraction | None:
    """The largest Δ(ȳ) − w'a(ȳ), at least 0, at scores whole_i·2^exponent; None where too many come near it."""
    finer = max(0, exponent + 2)  # so that a half is a whole number too
    scores = [value << finer for value in whole]
    unit = Fraction(2) ** (exponent - finer)
    positive = measure.positive.tolist()
    top = sorted(one for one, is_positive in zip(scores, positive, strict=True) if is_positive)
    others = sorted((one for one, is_positive in zip(scores, positive, strict=True) if not is_positive), reverse=True)
    if measure.name == "roc-auc":
        return _pairwise_loss(top, others, unit) / Fraction(measure.D)
    if measure.name == "average-precision":
        return _worst_ranking_value(measure, top, others, unit)
    return _worst_labelling_value(measure, top, others, unit)


def _pairwise_loss(top: list[int], others: list[int], unit: Fraction) -> Fraction:
    """Σ over the pairs of max(0, 1 − 2(f_i − f_j))."""
    one = round(1 / unit)
    sums = [0, *accumulate(others)]
    rising = others[::-1]
    total = 0
    for score in top:
        # Of a positive at f_i the pairs with f_j > f_i − ½ count, each 1 − 2(f_i − f_j).
        swapped = len(rising) - bisect_right(rising, score - one // 2)
        total += swapped * (one - 2 * score) + 2 * sums[swapped]
    return total * unit


def _worst_labelling_value(
    measure: StatedMeasure, top: list[int], others: list[int], unit: Fraction
) -> Fraction | None:
    """The maximum over all (a, b) but that of the samples themselves, which is 0."""
    share = unit * 2 / Fraction(measure.D)
    missed, lifted = ([0, *accumulate(part)] for part in (top, others))
    near = list[tuple[int, int]]()
    best = Fraction(0)
    low, high = (np.array([float(value * share) for value in part]) for part in (missed, lifted))
    off = 16 * U * (1.0 + float(np.abs(low).max()) + float(np.abs(high).max()))
    for pair in measure.near(low, high, off):
        near.append(pair)
        if len(near) > MOST_EXACT_VALUES:
            return None
    for a, b in near:
        best = max(best, _measure_loss(measure, a, b) + share * (lifted[b] - missed[measure.P - a]))
    return best


def _measure_loss(measure: StatedMeasure, a: int, b: int) -> Fraction:
    """Δ with a positives and b negatives labelled +1."""
    if measure.name == "error":
        return Fraction(measure.P - a + b, measure.P + measure.N)
    if measure.name in ("f1", "fbeta"):
        weight = Fraction(measure.weight)
        return 1 - (1 + weight) * a / (a + b + weight * measure.P)
    return 1 - Fraction(a, measure.whole)


def _worst_ranking_value(measure: StatedMeasure, top: list[int], others: list[int], unit: Fraction) -> Fraction | None:
    """Σ over the negatives of the largest sum of what it adds to be lifted over the last positives, one by one.

    That is i/(i + j − 1) − i/(i + j) = j/(i + j) − (j − 1)/(i + j − 1), over P, for the j-th negative and the i-th
    positive: over i = P − r + 1 … P a difference of harmonic numbers.
    """
    P = measure.P
    count = 0
    total = Fraction(0)
    H = [0, *accumulate((1 << HARMONIC_DIGITS) // m for m in range(1, P + len(others) + 1))]
    sums = [0, *accumulate(top)]
    share = unit * 2 / Fraction(measure.D)
    fine = Fraction(1, P << HARMONIC_DIGITS)
    rounded = np.array([float(value * unit) for value in top])
    for j, score in enumerate(others, 1):
        best = Fraction(0)
        for r in _candidate_lifts(measure, rounded, float(score * unit), j):
            lost = j * (H[P + j] - H[P + j - r]) - (j - 1) * (H[P + j - 1] - H[P + j - 1 - r])
            best = max(best, lost * fine - share * (sums[r] - r * score))
            count += 1
        if count > MOST_EXACT_VALUES + 4 * len(others):
            return None
        total += best
    return total


def _candidate_lifts(measure: StatedMeasure, top: Array, score: float, j: int) -> Iterator[int]:
    """Over how many positives the j-th negative may be lifted to add most."""
    P = measure.P
    i = np.arange(measure.P, 0, -1)
    lost = i / ((i + j) * (i + j - 1.0) * P)
    moved = 2.0 * (top - score) / measure.D
    sums = np.cumsum(lost - moved)
    size = float(lost.sum()) + 2.0 * (float(np.abs(top).sum()) + P * abs(score)) / measure.D
    yield from (np.flatnonzero(sums >= max(0.0, float(sums.max())) - 8 * (P + 16) * U * size) + 1).tolist()
