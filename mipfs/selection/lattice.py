"""That no whole numbers satisfy rows, shown in exact arithmetic: what no tree of linear programs over unbounded
variables can show, such as x1 + x2 = 2 z - 4 u with one of x1, x2 in.

With g the greatest common divisor of the coefficients a of a row over whole numbers z, a'z runs through the multiples
of g. If its bounds leave none of them, nothing satisfies the row. If they leave one, the row is an equation, whose
whole solutions are z = z0 + U t with whole numbers t, one fewer (by Euclid's algorithm, a unimodular U); the other rows
and the bounds of z are then rows over t. This decides every system of equations over the integers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from mipfs.plumbing.arrays import Array
from mipfs.selection.rows import Rows

MOST_NUMBERS = 20_000
"""Numbers of the rows over free whole variables up to which it is tried: fractions are slow."""

Term = tuple[dict[int, Fraction], Fraction | None, Fraction | None]
"""A row over z: its coefficients, and its ends, None where there is none."""


@dataclass
class _Points:
    """z = z0 + Σ_k t_k U_k, the whole t_k free: `steps` are the columns U_k, of which entries that are 0 are left out.

    They start out as all whole numbers.
    """

    z0: dict[int, int]
    steps: list[dict[int, int]]

    def over_parameters(self, row: dict[int, Fraction]) -> tuple[list[Fraction], Fraction]:
        """A row over z as a row over t: its coefficients and its constant."""
        slopes = [sum((a * step[j] for j, a in row.items() if j in step), Fraction(0)) for step in self.steps]
        return slopes, sum((a * self.z0.get(j, 0) for j, a in row.items()), Fraction(0))

    def meet(self, slopes: list[int], value: int) -> None:
        """Keep the points with Σ_k slopes_k t_k = value, where the slopes have no common divisor but 1."""
        slopes = list(slopes)
        while len(there := [k for k, slope in enumerate(slopes) if slope]) > 1:
            least = min(there, key=lambda k: abs(slopes[k]))
            for k in there:
                if k != least:
                    times = slopes[k] // slopes[least]
                    slopes[k] -= times * slopes[least]
                    self.steps[k] = _plus(self.steps[k], self.steps[least], -times)
        only = there[0]
        self.z0 = _plus(self.z0, self.steps.pop(only), value * slopes[only])  # the slope is 1 or −1


def no_whole_numbers(rows: Rows, chosen: Array, low: Array, high: Array) -> bool:
    """Whether it is shown that no extra variables (e,) in a box satisfy the rows beside a selection (p,).

    It reads the rows and bounds in which all variables that are not fixed are whole numbers. Where it shows nothing,
    there may or may not be values.
    """
    terms = _terms(rows, chosen, low, high)
    if terms is None:
        return False
    whole = sorted({j for row, _, _ in terms for j in row})
    points = _Points({}, [{j: 1} for j in whole])
    is_new = True
    while is_new:
        is_new = False
        for row, least, most in terms:
            slopes, constant = points.over_parameters(row)
            ends = [None if end is None else end - constant for end in (least, most)]
            g = _common_divisor(slopes)
            if not g:
                if (ends[0] is not None and ends[0] > 0) or (ends[1] is not None and ends[1] < 0):
                    return True
                continue
            if ends[0] is None or ends[1] is None:
                continue
            first, last = math.ceil(ends[0] / g), math.floor(ends[1] / g)
            if first > last:
                return True
            if first == last:
                points.meet([int(slope / g) for slope in slopes], first)
                is_new = True
    return False


def _terms(rows: Rows, chosen: Array, low: Array, high: Array) -> list[Term] | None:
    """The rows whose free variables are whole numbers, and the bounds of these; None where these are too many."""
    p = chosen.size
    fixed = np.concatenate([chosen, np.where(low == high, low, np.nan)])
    is_whole = np.concatenate([np.zeros(p, bool), rows.extra.integer])
    indptr, indices, data = rows.matrix.indptr, rows.matrix.indices, rows.matrix.data
    is_free = np.isnan(fixed[indices])
    places = [slice(indptr[r], indptr[r + 1]) for r in range(len(rows))]
    read = [r for r, at in enumerate(places) if is_free[at].any() and np.all(is_whole[indices[at]] | ~is_free[at])]
    if sum(int(np.count_nonzero(is_free[places[r]])) for r in read) > MOST_NUMBERS:
        return None
    terms: list[Term] = []
    for r in read:
        row, constant, at = dict[int, Fraction](), Fraction(0), places[r]
        for j, a in zip(indices[at].tolist(), data[at].tolist(), strict=True):
            if math.isnan(fixed[j]):
                row[j - p] = Fraction(a)
            else:
                constant += Fraction(a) * Fraction(float(fixed[j]))
        least, most = _exact(float(rows.low[r]), constant), _exact(float(rows.high[r]), constant)
        terms.append((row, least, most))
    for k in sorted({j for row, _, _ in terms for j in row}):
        terms.append(({k: Fraction(1)}, _exact(float(low[k])), _exact(float(high[k]))))
    return terms


def _exact(end: float, less: Fraction = Fraction(0)) -> Fraction | None:
    """A bound less a number as a fraction; None where there is no bound."""
    return Fraction(end) - less if math.isfinite(end) else None


def _common_divisor(values: list[Fraction]) -> Fraction:
    """The greatest common divisor of rational numbers; 0 where all are 0."""
    denominator = math.lcm(*(value.denominator for value in values))
    return Fraction(math.gcd(*(int(value * denominator) for value in values)), denominator)


def _plus(one: dict[int, int], other: dict[int, int], times: int) -> dict[int, int]:
    """one + times · other, without its zeros."""
    return {j: v for j in {*one, *other} if (v := one.get(j, 0) + times * other.get(j, 0))}
