"""What whole numbers rule out, in exact arithmetic: what no tree of linear programs over unbounded variables can show.

With multipliers u of rows low ≤ a'x ≤ high that lie between two ends each, Σ u a'x lies between two ends as well. Where
its coefficients are whole on σ and on whole variables, and 0 on all others that are not fixed, it is a whole number but
for what is fixed: no point satisfies the rows if its ends leave none. Such u are a proof, which the certificate has
(docs/certificate.md): 6 z1 + 10 z2 = 15 has u = 1/2.

They are found by elimination. Real variables go first, by Gauss. Then the rows are integer vectors; those that leave
one value each are equations, brought to a lower triangular H by column operations of Euclid (a Hermite form): the whole
points that meet them are z = Σ τ_j v_j, the first k of the whole τ_j known, the others free. A row has no value there
if no multiple of g lies between its ends, g the greatest common divisor of its coefficients on the free τ; then row/g
is whole on the free τ, and multiples of at most 1/(2 H_ee) of the equations make it whole on the others.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from mipfs.plumbing.arrays import Array, Mask, terms_of

if TYPE_CHECKING:
    from mipfs.selection.selection import Selection

MOST_NUMBERS = 20_000
"""Numbers of the rows over free whole variables up to which it is tried: fractions are slow."""
MOST_BITS = 3000
"""Bits of a number that comes up: beyond it, it is given up. A multiplier has 1000 characters at most."""
MOST_CHARACTERS = 1000
"""Of a multiplier as text, in the certificate."""
SELECTED, FIRST_EXTRA = -1, -2
"""In place of a row: Σσ, from 0 to M, and the first extra variable, of which the others follow downwards."""

Multipliers = dict[int, Fraction]
"""By row: those of the user, `SELECTED`, and extra variables from `FIRST_EXTRA` on, whose rows are their bounds."""
Ends = tuple[Fraction, Fraction]


class _TooLarge(Exception):
    """Numbers became too long."""


@dataclass
class _Row:
    """A combination of rows: its coefficients by column, without zeros, and its multipliers."""

    a: dict[int, Fraction]
    u: Multipliers

    def plus(self, other: _Row, times: Fraction) -> _Row:
        """This and `times` · the other one."""
        return _Row(_add_multiple(self.a, other.a, times), _add_multiple(self.u, other.u, times))


@dataclass
class _Points:
    """The whole points z = Σ_j τ_j v_j that meet equations, with the τ of the first ones known.

    Attributes
    ----------
    known : the v_j whose τ_j are `values`
    free : the other v_j
    H : of every equation its coefficients on the known τ, as many as were known with it
    shown : the multipliers of every equation
    """

    free: list[dict[int, int]]
    known: list[dict[int, int]] = field(default_factory=list)
    values: list[int] = field(default_factory=list)
    H: list[list[int]] = field(default_factory=list)
    shown: list[Multipliers] = field(default_factory=list)

    def over(self, a: Mapping[int, Fraction]) -> tuple[list[Fraction], list[Fraction]]:
        """A row over z as a row over τ: its coefficients on those that are known, and on the free ones."""

        def on(step: dict[int, int]) -> Fraction:
            few, many = (a, step) if len(a) < len(step) else (step, a)
            return sum((Fraction(a[j] * step[j]) for j in few if j in many), Fraction(0))

        return [on(step) for step in self.known], [on(step) for step in self.free]

    def complete_multipliers(self, u: Multipliers, known: Sequence[Fraction], *, is_zero: bool) -> Multipliers:
        """u and as little of the equations as makes it whole on the known τ, where it is `known`; or 0 there."""
        y = [Fraction(0)] * len(self.H)
        for j in reversed(range(len(self.H))):
            rest = known[j] + sum((y[e] * self.H[e][j] for e in range(j + 1, len(self.H))), Fraction(0))
            y[j] = ((0 if is_zero else round(rest)) - rest) / self.H[j][j]
        for e, times in enumerate(y):
            u = _add_multiple(u, self.shown[e], times)
        return u

    def meet(self, known: Sequence[Fraction], slopes: Sequence[Fraction], u: Multipliers, g: int, value: int) -> None:
        """Keep the points at which an integer row, known and slopes over τ with g their divisor, has τ_new = value."""
        left = [int(slope) for slope in slopes]
        while len(there := [k for k, slope in enumerate(left) if slope]) > 1:
            least = min(there, key=lambda k: abs(left[k]))
            for k in there:
                if k != least:
                    times = left[k] // left[least]
                    left[k] -= times * left[least]
                    self.free[k] = _add_integer_multiple(self.free[k], self.free[least], -times)
        only = there[0]
        step = self.free.pop(only)
        self.known.append(step if left[only] > 0 else {j: -v for j, v in step.items()})
        self.values.append(value)
        self.H.append([*(int(one) for one in known), g])
        self.shown.append(u)
        if any(v.bit_length() > MOST_BITS for one in self.free for v in one.values()):
            raise _TooLarge

    @property
    def first(self) -> dict[int, int]:
        """The point at which the free τ are 0."""
        found = dict[int, int]()
        for step, value in zip(self.known, self.values, strict=True):
            found = _add_integer_multiple(found, step, value)
        return found


class WholeNumbers:
    """The rows of a set S that lie between two ends, and what follows as some variables are whole numbers.

    Parameters
    ----------
    selection : Selection
    """

    def __init__(self, selection: Selection) -> None:
        rows = selection.given.rows
        self.n_features = selection.n_features
        self._rows = rows
        self._most = self.n_features if selection.M is None else min(selection.M, self.n_features)
        two = np.flatnonzero(np.isfinite(rows.low) & np.isfinite(rows.high))
        self._two = two.tolist()
        self._count = int(np.diff(rows.matrix.indptr)[two].sum()) if two.size else 0

    @cached_property
    def is_whole(self) -> Mask:
        """Which variables (p + e,) are whole numbers."""
        return np.concatenate([np.ones(self.n_features, dtype=bool), self._rows.extra.integer])

    @cached_property
    def _row_ends(self) -> dict[int, Ends]:
        """The ends of the rows that have two."""
        found = {r: (Fraction(float(self._rows.low[r])), Fraction(float(self._rows.high[r]))) for r in self._two}
        return found | {SELECTED: (Fraction(0), Fraction(self._most))}

    @cached_property
    def _row_terms(self) -> dict[int, dict[int, Fraction]]:
        """The terms of the rows that have two ends, by column."""
        found = {r: {j: Fraction(a) for j, a in terms_of(self._rows.matrix, r)} for r in self._two}
        return found | {SELECTED: dict.fromkeys(range(self.n_features), Fraction(1))}

    @cached_property
    def may_rule_out(self) -> bool:
        """Whether anything may follow: some row lies between ends nearer than a multiple of its coefficients."""
        if not 0 < self._count <= MOST_NUMBERS or self.n_features > MOST_NUMBERS:
            return False
        return any(self._coefficient_sizes(r) for r in self._two)

    @cached_property
    def is_likely_to(self) -> bool:
        """Whether it may, by more than rows whose coefficients are all of one size, of which ends leave a multiple.

        These are mostly counts (exactly k of some), of which nothing follows that a tree does not show as soon.
        """
        return self.may_rule_out and any(self._is_uneven(r) for r in self._two)

    def undecided(self, low: Array, high: Array) -> int:
        """An atom that is not fixed in a box (p + e,), in a row that may rule something out once it is; -1 without."""
        rows = (r for r in self._two if self.is_likely_to and self._is_uneven(r))
        atoms = (j for r in rows for j in self._row_terms[r] if j < self.n_features)
        return next((j for j in atoms if low[j] < high[j]), -1)

    def _coefficient_sizes(self, r: int) -> set[Fraction]:
        """The sizes of a row's coefficients of whole variables; none where its ends are far apart."""
        sizes = {abs(a) for j, a in self._row_terms[r].items() if self.is_whole[j]}
        low, high = self._row_ends[r]
        return sizes if sizes and high - low < max(sizes) else set()

    def _is_uneven(self, r: int) -> bool:
        sizes = self._coefficient_sizes(r)
        low, high = self._row_ends[r]
        return len(sizes) > 1 or any(math.ceil(low / size) > math.floor(high / size) for size in sizes)

    def refutation(self, low: Array, high: Array) -> Multipliers | None:
        """Multipliers that show that a box (p + e,) holds nothing of S; None where none are found."""
        found = self._solve_one(low, high)
        return found if isinstance(found, dict) and self.refutes_box(found, low, high) else None

    def points(self, low: Array, high: Array) -> _Points | None:
        """The whole points that meet the equations among the rows in a box (p + e,); None where there are none."""
        found = self._solve_one(low, high)
        return found if isinstance(found, _Points) and found.known else None

    def refutes_box(self, u: Multipliers, low: Array, high: Array) -> bool:
        """Whether multipliers show that a box (p + e,) holds nothing of S, by what the certificate says of them."""
        if any(len(str(value)) > MOST_CHARACTERS for value in u.values()):
            return False
        a = dict[int, Fraction]()
        for r, value in u.items():
            a = _add_multiple(a, self._terms_of_row(r), value)
        least, most = self._ends_with_fixings(u, low, high)
        for j, value in a.items():
            if low[j] == high[j]:
                least, most = least - value * Fraction(float(low[j])), most - value * Fraction(float(low[j]))
            elif not self.is_whole[j] or value.denominator != 1:
                return False
        return math.ceil(least) > math.floor(most)

    def _terms_of_row(self, r: int) -> dict[int, Fraction]:
        """The terms of a row."""
        return self._row_terms[r] if r > FIRST_EXTRA else {self.n_features + FIRST_EXTRA - r: Fraction(1)}

    def _ends_with_fixings(self, u: Multipliers, low: Array, high: Array) -> Ends:
        """The ends of a combination, with what is fixed."""
        least, most = Fraction(0), Fraction(0)
        for r, value in u.items():
            ends = self._row_ends[r] if r > FIRST_EXTRA else _ends_at(low, high, self.n_features + FIRST_EXTRA - r)
            least, most = least + value * ends[value < 0], most + value * ends[value > 0]
        return least, most

    def _solve_one(self, low: Array, high: Array) -> Multipliers | _Points | None:
        """What `_integer_points` says of a box; None too where no row rules anything out, or there is too much to look
        at.
        """
        if not self.may_rule_out:
            return None
        try:
            return self._integer_points(low, high)
        except _TooLarge:
            return None

    def _integer_points(self, low: Array, high: Array) -> Multipliers | _Points | None:
        """Multipliers that rule the box out, or what is left of it; None where rounding leaves it in doubt."""
        fixed = {j: Fraction(float(low[j])) for j in np.flatnonzero(low == high).tolist()}
        rows = self._whole_rows(low, high, fixed)
        points = _Points([{j: 1} for j in sorted({j for row in rows for j in row.a})])
        parts = {r: self._fixed_part(r, fixed) for r in {r for row in rows for r in row.u}}

        def ends_of(u: Multipliers) -> Ends:
            least, most = self._ends_with_fixings(u, low, high)
            part = sum((value * parts[r] for r, value in u.items()), Fraction(0))
            return least - part, most - part

        widths = [most - least for least, most in (ends_of(row.u) for row in rows)]
        waiting = [rows[k] for k in sorted(range(len(rows)), key=widths.__getitem__)]
        is_new = True
        while is_new:
            is_new, before, waiting = False, waiting, []
            for row in before:
                known, slopes = points.over(row.a)
                g = int(_greatest_common_divisor(slopes))
                u = {r: value / max(g, 1) for r, value in row.u.items()}
                shown = points.complete_multipliers(u, [one / max(g, 1) for one in known], is_zero=not g)
                least, most = ends_of(shown)
                if least > most or (g and math.ceil(least) > math.floor(most)):
                    return shown
                if not g:
                    if least > 0 or most < 0:  # times a number that brings it around 1/2
                        return {r: value / (least + most) for r, value in shown.items()}
                    continue
                least, most = ends_of(row.u)
                offset = sum((v * k for v, k in zip(points.values, known, strict=True)), Fraction(0))
                first, last = math.ceil((least - offset) / g), math.floor((most - offset) / g)
                if first > last:
                    return None
                if first == last:
                    points.meet(known, slopes, row.u, g, first)
                    is_new = True
                else:
                    waiting.append(row)
        return points

    def _fixed_part(self, r: int, fixed: Mapping[int, Fraction]) -> Fraction:
        """What a row is on the variables that are fixed."""
        a = self._terms_of_row(r)
        few, many = (a, fixed) if len(a) < len(fixed) else (fixed, a)
        return sum((a[j] * fixed[j] for j in few if j in many), Fraction(0))

    def _whole_rows(self, low: Array, high: Array, fixed: Mapping[int, Fraction]) -> list[_Row]:
        """Integer rows without a common divisor over what is not fixed, real variables eliminated."""
        free = [
            _Row({j: a for j, a in self._row_terms[r].items() if j not in fixed}, {r: Fraction(1)})
            for r in self._row_ends
        ]
        used = {j for row in free if SELECTED not in row.u for j in row.a}
        free = [row for row in free if row.a and (SELECTED not in row.u or used >= row.a.keys())]
        # the bounds of extra variables are rows, too: last, so that as few of them as it takes are used
        ends = (j for j in sorted(used) if j >= self.n_features and math.isfinite(low[j]) and math.isfinite(high[j]))
        free += [_Row({j: Fraction(1)}, {FIRST_EXTRA - j + self.n_features: Fraction(1)}) for j in ends]
        found, pivots = list[_Row](), dict[int, _Row]()
        for row in free:
            while (real := next((j for j in row.a if not self.is_whole[j]), -1)) in pivots:
                row = row.plus(pivots[real], -row.a[real] / pivots[real].a[real])
            if real >= 0:
                pivots[real] = row
            elif row.a:
                g = _greatest_common_divisor(row.a.values())
                row = _Row({j: a / g for j, a in row.a.items()}, {r: value / g for r, value in row.u.items()})
                found.append(row)
        return found


def _ends_at(low: Array, high: Array, j: int) -> Ends:
    return Fraction(float(low[j])), Fraction(float(high[j]))


def _greatest_common_divisor(values: Iterable[Fraction]) -> Fraction:
    """The greatest common divisor of rational numbers; 0 where all are 0."""
    held = list(values)
    denominator = math.lcm(*(value.denominator for value in held))
    return Fraction(math.gcd(*(int(value * denominator) for value in held)), denominator)


def _add_multiple(one: Mapping[int, Fraction], other: Mapping[int, Fraction], times: Fraction) -> dict[int, Fraction]:
    """one + times · other, without its zeros."""
    found = dict(one)
    for j, value in other.items():
        new = found.get(j, Fraction(0)) + times * value
        if new.denominator.bit_length() > MOST_BITS:
            raise _TooLarge
        if new:
            found[j] = new
        else:
            found.pop(j, None)
    return found


def _add_integer_multiple(one: dict[int, int], other: dict[int, int], times: int) -> dict[int, int]:
    """one + times · other, without its zeros."""
    return {j: v for j in {*one, *other} if (v := one.get(j, 0) + times * other.get(j, 0))}
