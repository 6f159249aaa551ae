"""What the rows fix by themselves, each taken alone, of many nodes at once.

    lower ≤ Σ a_j σ_j ≤ upper            a row over atoms alone; also Σ σ_j ≤ M

The row reaches from `least` to `most` over what is free. Where `most` lies below `lower`, or `least` above `upper`, no
selection is left. Where that is so once a free atom has one of its values, the other one is left, and is fixed; this
goes on until nothing changes. Sums are widened by what rounding may have taken, so that an exact checker fixes no less.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from mipfs.check.rounding import Array, Integers, Mask, States, U
from mipfs.check.statement import Statement


class RowByRow:
    """The rows of a statement that have no extra variables, and Σσ ≤ M.

    Attributes
    ----------
    terms : int, coefficients of all of them; 0 where the statement has no such row, and nothing is fixed
    """

    def __init__(self, statement: Statement) -> None:
        by_row = sparse.csr_array(statement.A)
        by_row.eliminate_zeros()
        own = by_row[:, : statement.p]
        count = np.diff(own.indptr)
        alone = np.flatnonzero((count > 0) & (np.diff(by_row.indptr) == count))
        self.p, self.terms = statement.p, 0
        if not alone.size:
            return
        rows = sparse.csr_array(sparse.vstack([own[alone], sparse.csr_array(np.ones((1, statement.p)))]))
        self._a, self._atom, self._start = rows.data, rows.indices.astype(np.int64), rows.indptr[:-1]
        self._row = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
        self.terms = self._a.size
        lower = np.append(statement.lb[alone], -np.inf)
        upper = np.append(statement.ub[alone], float(min(statement.M, statement.p)))
        size = np.add.reduceat(np.abs(self._a), self._start)
        ends = [np.where(np.isfinite(end), np.abs(end), 0.0) for end in (lower, upper)]
        room = 2.02 * U * (np.diff(rows.indptr) + 8) * (size + np.maximum(*ends))
        self._lower, self._upper = lower - room, upper + room
        self._of_atom = sparse.csr_array(
            (np.ones(self.terms, np.int64), (self._atom, np.arange(self.terms))), shape=(self.p, self.terms)
        )

    def fix(self, state: States) -> tuple[States, Mask]:
        """What is fixed in nodes (B, p) beside what is, and at which of them (B,) no selection is left."""
        state, is_empty = state.copy(), np.zeros(state.shape[0], dtype=bool)
        left = np.arange(state.shape[0]) if self.terms else np.empty(0, dtype=np.int64)
        while left.size:
            part = state[left]
            is_empty[left], has_more = self._go_through(part)
            state[left] = part
            left = left[has_more & ~is_empty[left]]
        return state, is_empty

    def surely_leave_some(self, state: States) -> tuple[Mask, Mask]:
        """Where `fix` is known to find a selection left once one atom more is fixed to 0, and to 1, (B, p) each.

        Either all rows hold if no other atom is in, or the rows of that atom are so far from their ends that nothing
        more is fixed. `state` is as `fix` leaves it.
        """
        if not self.terms:
            every = np.ones(state.shape, dtype=bool)
            return every, every
        at_zero, at_one = self._hold_without_more(state)
        least, most = self._reach(state)
        free = state[:, self._atom] < 0
        size = np.abs(self._a)
        step = size + np.maximum.reduceat(np.where(free, size, 0.0), self._start, axis=1)[:, self._row]
        rises_too_far = least[:, self._row] + step > self._upper[self._row]
        falls_too_far = most[:, self._row] - step < self._lower[self._row]
        is_positive = self._a > 0.0
        at_zero |= self._count_by_atom(np.where(is_positive, falls_too_far, rises_too_far)) == 0
        at_one |= self._count_by_atom(np.where(is_positive, rises_too_far, falls_too_far)) == 0
        return at_zero, at_one

    def _hold_without_more(self, state: States) -> tuple[Mask, Mask]:
        """Whether all rows hold if no atom is in but those that are fixed to 1, and if one more is, (B, p) each."""
        more = np.where(state[:, self._atom] == 1, 0.0, self._a)
        sums = np.add.reduceat(self._a - more, self._start, axis=1)
        is_off = (sums < self._lower) | (sums > self._upper)
        then = sums[:, self._row] + more
        is_off_then = (then < self._lower[self._row]) | (then > self._upper[self._row])
        count = is_off.sum(axis=1)[:, None]
        change = self._count_by_atom(is_off_then) - self._count_by_atom(is_off[:, self._row])
        return np.repeat(count == 0, self.p, axis=1), count + change == 0

    def _count_by_atom(self, terms: Mask) -> Integers:
        """How many of some terms (B, terms) are of every atom, (B, p)."""
        return np.asarray((self._of_atom @ terms.astype(np.int64).T).T)

    def _reach(self, state: States) -> tuple[Array, Array]:
        """The least and the largest sum of every row, (B, rows) each."""
        value, a = state[:, self._atom], self._a
        least = np.where(value < 0, np.minimum(a, 0.0), a * value)
        most = np.where(value < 0, np.maximum(a, 0.0), a * value)
        return np.add.reduceat(least, self._start, axis=1), np.add.reduceat(most, self._start, axis=1)

    def _go_through(self, state: States) -> tuple[Mask, Mask]:
        """Fix in place what each row fixes; at which nodes none is left, and where something was fixed."""
        least, most = self._reach(state)
        is_empty = np.any((most < self._lower) | (least > self._upper), axis=1)
        free, size = state[:, self._atom] < 0, np.abs(self._a)
        needs_most = free & (most[:, self._row] - size < self._lower[self._row])
        needs_least = free & (least[:, self._row] + size > self._upper[self._row])
        self._set(state, needs_most, self._a > 0.0)
        self._set(state, needs_least, self._a < 0.0)
        return is_empty, np.any(needs_most | needs_least, axis=1)

    def _set(self, state: States, where: Mask, is_one: Mask) -> None:
        nodes, terms = np.nonzero(where)
        state[nodes, self._atom[terms]] = is_one[terms]
