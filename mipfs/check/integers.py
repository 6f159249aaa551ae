"""Leaves without whole numbers: a combination of rows that is a whole number at every selection, where there is none.

With multipliers u of rows whose activities lie between ends, Σ u·activity lies between L and H. Where its coefficients
on what is not fixed at a leaf are whole for atoms and whole variables and 0 for all others, it is a whole number but
for the part that is fixed. That no whole number lies between L and H, both less that part, shows that the leaf is
empty. It is rational arithmetic; what found u does not matter.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np
import numpy.typing as npt

from mipfs.check.rounding import Array, Arrays, read_rational, require
from mipfs.check.statement import Statement

NAMES = ("integer_start", "integer_row", "integer_value")
MOST_CHARACTERS = 1000
"""Of a multiplier as text."""
SELECTED, FIRST_EXTRA = -1, -2
"""In place of a row: Σσ, and the first extra variable, of which the others follow downwards."""


class LeafFixings(Protocol):
    """What is fixed at a leaf: atoms (p,), −1 where one is not, and the ends of the extra variables (e,), (e,)."""

    state: npt.NDArray[np.int8]
    ends: tuple[Array, Array]


@dataclass(frozen=True)
class RowCombination:
    """A combination of rows: what it is on atoms and extra variables, and where it lies.

    Attributes
    ----------
    a : mapping of the position of an atom, or p + k of an extra variable, to its coefficient, without zeros
    everywhere : Fraction, added to the coefficient of every atom
    broken : the positions of atoms whose coefficient is no whole number, None where it is that of every atom
    low, high : Fraction, or None where an end is missing
    own : mapping of k to the multiplier of the k-th extra variable, whose ends are those at the leaf
    """

    a: dict[int, Fraction]
    everywhere: Fraction
    broken: list[int] | None
    low: Fraction | None
    high: Fraction | None
    own: dict[int, Fraction]


class Combinations:
    """The combinations of a certificate.

    Parameters
    ----------
    statement : Statement
    arrays : mapping of the sidecar
    """

    def __init__(self, statement: Statement, arrays: Arrays) -> None:
        self.statement = statement
        held = [name for name in NAMES if name in arrays]
        require(len(held) in (0, len(NAMES)), "the certificate has a part of its combinations of rows")
        self.parts: list[list[tuple[int, Fraction]]] = self._read(*(arrays[name] for name in NAMES)) if held else []
        self._made: dict[int, RowCombination] = {}

    def _read(self, start: Array, row: Array, value: Array) -> list[list[tuple[int, Fraction]]]:
        require(self.statement.is_exact, f"rules {self.statement.rules} have no leaves without whole numbers")
        kinds = start.dtype.kind in "iu" and row.dtype.kind in "iu" and value.dtype.kind == "S"
        shaped = start.ndim == row.ndim == value.ndim == 1 and start.size > 0 and row.size == value.size
        require(kinds and shaped, "the combinations of rows are malformed")
        ends, rows, texts = start.tolist(), row.tolist(), value.tolist()
        ordered = ends == sorted(ends) and ends[0] == 0 and ends[-1] == len(rows)
        require(ordered, "the combinations of rows do not follow one another")
        least, most = FIRST_EXTRA - len(self.statement.extra), len(self.statement.rows)
        require(all(least < r < most for r in rows), "a combination has a row that does not exist")
        require(all(len(text) <= MOST_CHARACTERS for text in texts), "a multiplier is longer than 1000 characters")
        held = [(r, read_rational(text, "a multiplier")) for r, text in zip(rows, texts, strict=True)]
        parts = [held[first:last] for first, last in itertools.pairwise(ends)]
        require(all(len(dict(part)) == len(part) for part in parts), "a combination has a row twice")
        return parts

    def _combination(self, number: int) -> RowCombination:
        """A combination, summed once."""
        if number not in self._made:
            self._made[number] = self._sum_rows(self.parts[number])
        return self._made[number]

    def _sum_rows(self, part: list[tuple[int, Fraction]]) -> RowCombination:
        statement = self.statement
        a, own, everywhere = dict[int, Fraction](), dict[int, Fraction](), Fraction(0)
        low: Fraction | None = Fraction(0)
        high: Fraction | None = Fraction(0)
        for r, u in part:
            if not u:
                continue
            if r <= FIRST_EXTRA:
                k = FIRST_EXTRA - r
                own[k] = u
                a[statement.p + k] = a.get(statement.p + k, Fraction(0)) + u
                continue
            if r == SELECTED:
                everywhere = u
                ends = 0.0, float(min(statement.M, statement.p))
            else:
                ends = float(statement.lb[r]), float(statement.ub[r])
                span = slice(statement.by_row.indptr[r], statement.by_row.indptr[r + 1])
                places, values = statement.by_row.indices[span].tolist(), statement.by_row.data[span].tolist()
                for j, value in zip(places, values, strict=True):
                    a[j] = a.get(j, Fraction(0)) + u * Fraction(value)
            low, high = _add_multiple(low, u, ends), _add_multiple(high, -u, ends, -1)
        broken = [j for j, value in a.items() if j < statement.p and (value + everywhere).denominator != 1]
        named = sum(j < statement.p for j in a)
        is_all = everywhere.denominator != 1 and named < statement.p
        return RowCombination({j: v for j, v in a.items() if v}, everywhere, None if is_all else broken, low, high, own)

    def show_empty(self, number: int, fixed: LeafFixings) -> bool:
        """Whether a combination shows that a leaf holds no selection."""
        require(0 <= number < len(self.parts), "a leaf without whole numbers has no combination of rows")
        statement, of = self.statement, self._combination(number)
        state, (lower, upper) = fixed.state, fixed.ends
        low, high = of.low, of.high
        for k, u in of.own.items():
            ends = float(lower[k]), float(upper[k])
            low, high = _add_multiple(low, u, ends), _add_multiple(high, -u, ends, -1)
        inside = np.flatnonzero(state == 1)
        if low is None or high is None or not self._is_whole(of, fixed, is_full=inside.size >= statement.M):
            return False
        part = of.everywhere * int(inside.size)
        held = set(inside.tolist()) if of.a else set()
        for j, value in of.a.items():
            if j < statement.p:
                part += value if j in held else 0
            elif lower[j - statement.p] == upper[j - statement.p]:
                part += value * Fraction(float(lower[j - statement.p]))
        return math.ceil(low - part) > math.floor(high - part)

    def _is_whole(self, of: RowCombination, fixed: LeafFixings, *, is_full: bool) -> bool:
        """Whether the coefficients of all that is not fixed are whole, and 0 where the variable is not.

        `is_full`: as many atoms are fixed to 1 as may be, which fixes the others to 0.
        """
        statement, state, (lower, upper) = self.statement, fixed.state, fixed.ends
        if is_full:
            broken = list[int]()
        elif of.broken is None:
            free = np.flatnonzero(state < 0).tolist()
            broken = [j for j in free if (of.everywhere + of.a.get(j, Fraction(0))).denominator != 1]
        else:
            broken = [j for j in of.broken if state[j] < 0]
        if broken:
            return False
        loose = [j - statement.p for j in of.a if j >= statement.p]
        loose = [k for k in loose if lower[k] != upper[k]]
        return all(statement.whole[k] and of.a[statement.p + k].denominator == 1 for k in loose)


def _add_multiple(total: Fraction | None, u: Fraction, ends: tuple[float, float], sign: int = 1) -> Fraction | None:
    """A sum and sign·u times the lower end where u > 0, the upper one where u < 0; None where one is missing."""
    end = ends[0] if u > 0 else ends[1]
    return None if total is None or not math.isfinite(end) else total + sign * u * Fraction(end)
