"""Many dual vectors about the completions of one selection: what they rule out together, on what is left of them.

Where all places but one are taken, a node that is screened by one dual vector after the other holds the selection S
itself and S with one more free atom j. Each is worth g + Σ over S of cost_i (+ cost_j) at least, by any of the vectors:
what one of them lifts to the level needs no other. So they are evaluated many at a time, by one product of matrices, on
the columns that are left. S itself is ruled out by a vector that leaves at most one j beside it, as it is where they
are taken one after the other: with that j in, or none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mipfs.check.dual_vectors import Duals
from mipfs.check.rounding import Array, Integers, U
from mipfs.check.statement import StatedAtoms, Statement

MOST_NUMBERS = 1 << 25
"""Numbers of the data up to which it is held once more, column by column."""
AT_ONCE = 1, 64
"""Dual vectors that are evaluated together, at first and at most: the first one rules out most."""
NUMBERS_AT_ONCE = 1 << 20
"""Costs that are evaluated together at most."""


class Vectors:
    """Dual vectors that are asked for about one after the other: a block of them is read at a time.

    Parameters
    ----------
    duals : Duals
    ids : (k,) which
    """

    def __init__(self, duals: Duals, ids: Integers) -> None:
        self._duals, self._ids = duals, ids
        self._begin = self._end = 0

    def part(self, first: int, end: int) -> tuple[Array, Array, Array]:
        """g(α) rounded down (B,), v (B, n) and Σv (B,) of those at these places."""
        if first < self._begin or end > self._end:
            self._begin, self._end = first, max(end, min(first + self._duals.per_block, self._ids.size))
            g, *self._held = self._duals.feasible(self._ids[self._begin : self._end])
            self._g = np.array(g)
        part = slice(first - self._begin, end - self._begin)
        v, total = (one[part] for one in self._held)
        return self._g[part], v, total


@dataclass
class OpenCompletions:
    """What no dual vector has lifted to a level yet.

    Attributes
    ----------
    level : float, what is worth this at least is ruled out
    free : (f,) atoms of which one more may be in, ascending
    is_open : bool, whether the selection itself is open
    """

    level: float
    free: Integers
    is_open: bool = True

    @property
    def only(self) -> int | None:
        """The atom that is in the one selection that is left; None where there are more, or none."""
        return int(self.free[0]) if self.free.size == 1 and not self.is_open else None

    def rule_out(self, selection: Array, by_each: Array) -> None:
        """Rule out by what vectors (B,) prove of the selection itself (B,), and with each free atom (f, B)."""
        is_lifted = by_each >= self.level
        self.free = self.free[~np.any(is_lifted, axis=1)]
        lifts_selection = selection >= self.level
        if self.is_open and self.free.size <= 1 and lifts_selection.any():
            is_left = ~np.logical_or.accumulate(is_lifted, axis=1)
            self.is_open = not np.any(lifts_selection & (is_left.sum(axis=0) <= 1))


class CompletionCheck:
    """Evaluates dual vectors on some columns alone.

    Parameters
    ----------
    duals : Duals of a problem over single features without a scale, and with the ridge
    """

    def __init__(self, duals: Duals) -> None:
        statement = duals.statement
        block = statement.data.block()
        X = block.values.toarray() if block.is_sparse else np.asarray(block.values)
        columns = duals.columns(0, X)
        moved = np.array(X.T, dtype=float, order="C")  # a column is a row here, near in memory
        moved[columns.far] -= columns.off[columns.far, None]
        self._duals, self._moved, self._norms = duals, moved, columns.norms
        self._center = statement.data.center - columns.off
        self._is_moved = bool(np.any(self._center)) and not statement.is_balanced
        self._penalty = statement.penalty

    @classmethod
    def of(cls, statement: Statement, duals: object) -> CompletionCheck | None:
        """What evaluates them; None where other costs are asked for, or the data is too large to be held twice."""
        atoms = statement.atoms
        plain = isinstance(duals, Duals) and duals.is_exact and isinstance(atoms, StatedAtoms) and atoms.single
        if not plain or atoms.scale is not None or statement.regulariser is not None or statement.ends is not None:
            return None
        assert isinstance(duals, Duals)
        block = statement.data.block()
        if not block.is_stored or statement.data.n_samples * statement.p > MOST_NUMBERS:
            return None
        return cls(duals)

    def vectors(self, ids: Integers) -> Vectors:
        """Dual vectors, for `rule_out`."""
        return Vectors(self._duals, ids)

    def rule_out(
        self, vectors: Vectors, first: int, last: int, inside: Integers, found: Sequence[OpenCompletions]
    ) -> None:
        """Rule out completions of a selection.

        Parameters
        ----------
        vectors, first, last : the dual vectors, from the first one up to the last one, which is not one of them
        inside : (d,) atoms of the selection
        found : what is open, of which they rule out what they can
        """
        at, count = first, AT_ONCE[0]
        while at < last and any(one.is_open or one.free.size for one in found):
            free = found[0].free if len(found) == 1 else self._free_in_any(found)
            end = min(last, at + max(1, min(count, NUMBERS_AT_ONCE // max(1, free.size))))
            g, v, total = vectors.part(at, end)
            at = end
            count = min(4 * count, AT_ONCE[1])
            held = self._atom_costs(v, total, inside)
            base = np.append(g[:, None], held.T, axis=1)
            value, size = base.sum(axis=1), np.abs(base).sum(axis=1)
            # Sums of d + 2 numbers are off by (d + 1)u of the sum of their sizes; twice that, and more, is taken off.
            slack = 2.0 * (inside.size + 4) * U
            cost = self._atom_costs(v, total, free)
            by_each = (value + cost) - slack * (size + np.abs(cost))
            for one in found:
                known = by_each if one.free.size == free.size else by_each[np.searchsorted(free, one.free)]
                one.rule_out(value - slack * size, known)

    def _free_in_any(self, found: Sequence[OpenCompletions]) -> Integers:
        """The atoms that are free in one of several at least, ascending."""
        is_free = np.zeros(self._norms.size, dtype=bool)
        for one in found:
            is_free[one.free] = True
        return np.flatnonzero(is_free)

    def _atom_costs(self, v: Array, total: Array, ids: Integers) -> Array:
        """c − ½ s of some atoms, rounded down, (k, B), as `Duals.costs` has them."""
        duals = self._duals
        omega = self._moved[ids] @ v.T
        lengths = duals.lengths(v)
        radius = duals.gamma * np.outer(self._norms[ids], lengths) + duals.n * 2.0**-1074
        if self._is_moved:
            shift = np.outer(self._center[ids], total)
            radius += 4 * U * (np.abs(omega) + np.abs(shift))
            omega -= shift
        size = np.abs(omega)
        size += radius
        return duals.lift(size * size, self._penalty[ids][:, None], ~v.any(axis=1))
