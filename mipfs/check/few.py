"""The few atoms that a plain proof rests on, of any number: its check holds one block of columns, and these.

A plain proof is about single features, without rows, λ, extra variables, screening and near-optimal supports: a tree
that fixes the atoms F, and dual vectors d. Below a leaf the least of c'σ takes what is fixed there, and of the rest the
most negative costs, M of them at most. The free ones are all but those of F at most, so the M + |F| most negative costs
of d hold M most negative ones of the free atoms, or all that are negative: with the costs of F the bound of every
leaf is that of all costs. Any other proof asks for the cost of every atom, and is checked with vectors over the atoms.
"""

from __future__ import annotations

import copy

import numpy as np

from mipfs.check.dual_vectors import COLUMNS_PER_BLOCK, NUMBERS_PER_BLOCK, Duals
from mipfs.check.leaves import SCREENED, CoverTree
from mipfs.check.rounding import Array, Integers, require
from mipfs.check.statement import Statement
from mipfs.check.steps import LEAF


class FewAtomsBound:
    """What dual vectors prove of a few atoms, as `Duals.rows`.

    Parameters
    ----------
    duals : Duals
    used : (D,) the dual vectors that leaves have, ascending
    fixed : (f,) positions of the atoms F, ascending
    keep : int, how many of the most negative costs are held for every dual vector

    Attributes
    ----------
    ids : (k,) positions of the atoms that are held, ascending: F, and those of the most negative costs
    """

    per_block = 1
    bytes_at_once = 0

    def __init__(self, duals: Duals, used: Integers, fixed: Integers, keep: int) -> None:
        self.used = used
        self.fixed = fixed
        self.keep = keep
        self._g, self._held = np.full(used.size, -np.inf), np.zeros((used.size, fixed.size))
        self._best: list[tuple[Integers, Array]] = [(np.empty(0, dtype=np.int64), np.empty(0)) for _ in used]
        at_once = max(1, NUMBERS_PER_BLOCK // max(duals.n, min(duals.statement.p, COLUMNS_PER_BLOCK)))
        for start in range(0, duals.count, at_once):
            ids = np.arange(start, min(start + at_once, duals.count))
            rows = np.flatnonzero((used >= start) & (used < start + at_once))
            if rows.size:
                g, blocks = duals.in_blocks(ids)
                local = used[rows] - start
                seen = 0
                self._g[rows] = np.array(g)[local]
                for first, costs in blocks:
                    require(first == seen, "the blocks of the columns are not one after the other")
                    self._take_costs(rows, first, costs[local])
                    seen += costs.shape[1]
                require(seen == duals.statement.p, "the blocks of the columns are not all columns")
        self.ids = np.unique(np.concatenate([fixed, *(ids for ids, _ in self._best)]))

    def _take_costs(self, rows: Integers, first: int, costs: Array) -> None:
        """Take in the costs (B, k) of a block of atoms, of the dual vectors in these rows."""
        costs = np.where(np.isnan(costs), -np.inf, costs)  # of columns beyond floating point
        here = np.flatnonzero((self.fixed >= first) & (self.fixed < first + costs.shape[1]))
        self._held[np.ix_(rows, here)] = costs[:, self.fixed[here] - first]
        for d, cost in zip(rows.tolist(), costs, strict=True):
            ids, kept = self._best[d]
            # Once as many are held as needed, only costs below the largest of them matter.
            level = kept.max() if 0 < kept.size == self.keep else 0.0
            new = np.flatnonzero(cost < level)
            ids = np.concatenate([ids, first + new])
            kept = np.concatenate([kept, cost[new]])
            if kept.size > self.keep:
                least = np.argpartition(kept, max(self.keep - 1, 0))[: self.keep]
                ids = ids[least]
                kept = kept[least]
            self._best[d] = ids, kept

    def rows(self, ids: Integers) -> tuple[list[float], Array]:
        """g(α) and the costs (B, k) of dual vectors; 0 where one is of no use to it."""
        g = list[float]()
        rows = np.zeros((ids.size, self.ids.size))
        for row, d in zip(rows, np.searchsorted(self.used, ids).tolist(), strict=True):
            best, kept = self._best[d]
            row[np.searchsorted(self.ids, best)] = kept
            row[np.searchsorted(self.ids, self.fixed)] = self._held[d]
            g.append(float(self._g[d]))
        return g, rows

    def take_seen(self) -> Integers:
        """None: all were found to be feasible at once."""
        return np.empty(0, dtype=np.int64)

    def mark(self, ids: Integers) -> None:
        """Nothing: see `take_seen`."""


def over_few(statement: Statement, duals: Duals, tree: CoverTree) -> tuple[Statement, Duals | FewAtomsBound, CoverTree]:
    """What `least_bound` needs of a plain proof, over a few atoms; of any other one, and of a small one, as it is."""
    plain = statement.atoms.single and statement.atoms.scale is None and not (statement.lb.size or statement.extra)
    if not plain or SCREENED in tree.feature:
        return statement, duals, tree
    leaves = [node for j, node in tree.steps if j == LEAF]
    used = np.unique([tree.dual[node] for node in leaves if tree.dual[node] >= 0]).astype(np.int64)
    fixed = np.union1d(tree.steps.split, statement.fixed)
    keep = max(statement.M, 0) + fixed.size
    if any(tree.multiplier[node] >= 0 for node in leaves) or used.size * (fixed.size + used.size * keep) > statement.p:
        return statement, duals, tree
    few = FewAtomsBound(duals, used, fixed, keep)
    over = copy.copy(statement)
    renamed = copy.copy(tree)
    over.p = few.ids.size
    over.forced = statement.forced[few.ids]
    place = {j: k for k, j in enumerate(few.ids.tolist())}
    renamed.steps = tree.steps.rename(place)
    return over, few, renamed
