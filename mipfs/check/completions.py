"""Many dual vectors about the completions of one selection: what they rule out together, on what is left of them.

Where all places but one are taken, a node that is screened by one dual vector after the other holds the selection S
itself and S with one more free atom j. Each is worth g + Σ over S of cost_i (+ cost_j) at least, by any of the vectors:
their order does not matter, and what one of them lifts to the level needs no other. So they are evaluated many at a
time, by one product of matrices, on the columns that are left.
"""

from __future__ import annotations

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
        """Dual vectors, for `left`."""
        return Vectors(self._duals, ids)

    def left(
        self, vectors: Vectors, first: int, last: int, inside: Integers, free: Integers, level: float
    ) -> tuple[Integers, bool]:
        """Rule out completions of a selection.

        Parameters
        ----------
        vectors, first, last : the dual vectors, from the first one up to the last one, which is not one of them
        inside, free : (d,) and (f,) atoms of the selection, and those of which one more may be in
        level : float, what is worth this at least is ruled out

        Returns
        -------
        left : those of `free` that are not ruled out
        is_open : bool, whether the selection itself is not
        """
        is_open = True
        at, count = first, AT_ONCE[0]
        while at < last and (is_open or free.size):
            end = min(last, at + max(1, min(count, NUMBERS_AT_ONCE // max(1, free.size))))
            g, v, total = vectors.part(at, end)
            at = end
            count = min(4 * count, AT_ONCE[1])
            held = self._atom_costs(v, total, inside)
            base = np.append(g[:, None], held.T, axis=1)
            value, size = base.sum(axis=1), np.abs(base).sum(axis=1)
            # Sums of d + 2 numbers are off by (d + 1)u of the sum of their sizes; twice that, and more, is taken off.
            slack = 2.0 * (inside.size + 4) * U
            is_open = is_open and not bool(np.any(value - slack * size >= level))
            if free.size:
                cost = self._atom_costs(v, total, free)
                lower = (value + cost) - slack * (size + np.abs(cost))
                free = free[~np.any(lower >= level, axis=1)]
        return free, is_open

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
