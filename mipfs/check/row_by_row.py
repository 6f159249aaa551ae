"""What the rows fix by themselves, each taken alone, of many nodes at once.

    lower ≤ Σ a_j σ_j ≤ upper            a row over atoms alone; also Σ σ_j ≤ M

The row reaches from `least` to `most` over what is free. Where `most` lies below `lower`, or `least` above `upper`, no
selection is left. Where that is so once a free atom has one of its values, the other one is left, and is fixed; this
goes on until nothing changes. Sums are widened by what rounding may have taken, so that an exact checker fixes no less.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import sparse

from mipfs.check.rounding import U
from mipfs.check.statement import Statement

Mask = npt.NDArray[np.bool_]
States = npt.NDArray[np.int8]


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

    def hold_without_more(self, state: States) -> tuple[Mask, Mask]:
        """Whether all rows hold if no atom is in but those that are fixed to 1 (B, 1), or one more (B, p).

        Where they do, `fix` finds a selection left once that atom is fixed to 0, or to 1.
        """
        if not self.terms:
            return np.ones((state.shape[0], 1), dtype=bool), np.ones(state.shape, dtype=bool)
        a = np.where(state[:, self._atom] == 1, 0.0, self._a)
        sums = np.add.reduceat(self._a - a, self._start, axis=1)
        is_off = (sums < self._lower) | (sums > self._upper)
        more = sums[:, self._row] + a
        is_off_then = (more < self._lower[self._row]) | (more > self._upper[self._row])
        change = is_off_then.astype(np.int64) - is_off[:, self._row]
        count = is_off.sum(axis=1)[:, None]
        return count == 0, count + (self._of_atom @ change.T).T == 0

    def _go_through(self, state: States) -> tuple[Mask, Mask]:
        """Fix in place what each row fixes; at which nodes none is left, and where something was fixed."""
        value, a = state[:, self._atom], self._a
        least = np.add.reduceat(np.where(value < 0, np.minimum(a, 0.0), a * value), self._start, axis=1)
        most = np.add.reduceat(np.where(value < 0, np.maximum(a, 0.0), a * value), self._start, axis=1)
        is_empty = np.any((most < self._lower) | (least > self._upper), axis=1)
        free, size = value < 0, np.abs(a)
        needs_most = free & (most[:, self._row] - size < self._lower[self._row])
        needs_least = free & (least[:, self._row] + size > self._upper[self._row])
        self._set(state, needs_most, a > 0.0)
        self._set(state, needs_least, a < 0.0)
        return is_empty, np.any(needs_most | needs_least, axis=1)

    def _set(self, state: States, where: Mask, is_one: Mask) -> None:
        nodes, terms = np.nonzero(where)
        state[nodes, self._atom[terms]] = is_one[terms]
