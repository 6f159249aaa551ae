"""Which atoms may be in, and which may be out, of a selection up to a limit, as the leaves of a tree imply it.

A node that is screened fixes here what its dual vector lifts above the limit, and rows by themselves fix atoms at a
leaf (`mipfs.check.row_by_row`). There atom j may be in where the bound given σ_j = 1 is at most the limit, and may be
out where the one given σ_j = 0 is, if the rows leave a selection then. Many nodes are looked at together, for all
limits (`mipfs.check.one_more`), and where one place is left all vectors of a chain (`mipfs.check.completions`).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from mipfs.check.completions import CompletionCheck, OpenCompletions
from mipfs.check.dual_vectors import Duals
from mipfs.check.integers import Combinations
from mipfs.check.leaves import REFUTED, SCREENED, WITHOUT, CoverTree
from mipfs.check.one_more import GivenEach, given_each, least_over
from mipfs.check.rounding import Array, Arrays, Integers, Mask, States, sum_below
from mipfs.check.row_by_row import RowByRow
from mipfs.check.statement import Statement

ROWS_AT_ONCE, NUMBERS_AT_ONCE = 1024, 1 << 19
"""Nodes that are looked at together at most, and numbers of them."""


class NodeRows(NamedTuple):
    """Nodes with what is fixed there, (B,): one row for a node and a limit.

    Attributes
    ----------
    node, limit : (B,) the node, and which of the limits
    ends : (B,) which ends of the extra variables hold
    state : (B, p) −1 for an atom that is free, or its value
    """

    node: Integers
    limit: Integers
    ends: Integers
    state: States

    def some(self, which: Any) -> NodeRows:
        """Some of them."""
        return NodeRows(self.node[which], self.limit[which], self.ends[which], self.state[which])

    def and_more(self, other: NodeRows) -> NodeRows:
        """These and others."""
        return NodeRows(
            np.concatenate([self.node, other.node]),
            np.concatenate([self.limit, other.limit]),
            np.concatenate([self.ends, other.ends]),
            np.concatenate([self.state, other.state]),
        )


class PossibleAtoms:
    """Goes through a tree, and finds what may be in and what may be out.

    Parameters
    ----------
    statement : Statement
    duals : Duals
    tree : CoverTree
    arrays : mapping of the sidecar
    levels : (k,) limits, unit margin

    Attributes
    ----------
    may_be_in, may_be_out : (k, p) bool
    """

    def __init__(
        self, statement: Statement, duals: Duals, tree: CoverTree, arrays: Arrays, levels: Sequence[float]
    ) -> None:
        self.statement, self.duals, self.tree = statement, duals, tree
        self.levels = np.array(levels)
        self._feature, self._dual, self._multiplier = (
            np.asarray(held, dtype=np.int64) for held in (tree.feature, tree.dual, tree.multiplier)
        )
        self._children = np.asarray(arrays["children"], dtype=np.int64)
        self._whole = dict(arrays["whole"].tolist()) if "whole" in arrays else {}
        self._multipliers = arrays["multipliers"]
        self._combinations = Combinations(statement, arrays)
        self._ends = [(statement.low, statement.high)]
        shape = len(levels), statement.p
        self.may_be_in, self.may_be_out = np.zeros(shape, dtype=bool), np.zeros(shape, dtype=bool)
        self._row_by_row = RowByRow(statement)
        many = tree.has_chains and not statement.has_extra_costs
        self._completions = CompletionCheck.of(statement, duals) if many else None
        goes_on = (self._feature == SCREENED) & (self._multiplier < 0)
        goes_on &= self._children[:, 0] == np.arange(1, self._feature.size + 1)
        self._chain_ends = np.flatnonzero(~goes_on)
        wide = max(1, statement.p, self._row_by_row.terms)
        self._at_once = max(2, min(ROWS_AT_ONCE, NUMBERS_AT_ONCE // wide))
        self._rays: dict[tuple[int, int], tuple[float, Array]] = {}
        self._stack = [self._root_rows()]

    def _root_rows(self) -> NodeRows:
        k = self.levels.size
        zeros = np.zeros(k, dtype=np.int64)
        state = np.tile(np.asarray(self.statement.forced, dtype=np.int8), (k, 1))
        return NodeRows(zeros, np.arange(k), zeros, state)

    def find(self) -> None:
        """Go through all of it."""
        while self._stack:
            rows = self._stack.pop()
            while self._stack and rows.node.size + self._stack[-1].node.size <= self._at_once:
                rows = rows.and_more(self._stack.pop())
            for at in range(0, rows.node.size, self._at_once):
                self._go_on(rows.some(slice(at, at + self._at_once)))

    def _go_on(self, rows: NodeRows) -> None:
        rows = rows.some(self._is_undecided(rows))
        feature = self._feature[rows.node]
        is_leaf, is_screened = feature < 0, feature == SCREENED
        self._evaluate_leaves(rows.some(is_leaf & (self._dual[rows.node] != WITHOUT)))
        self._leaves_without_integers(rows.some(is_leaf & (self._dual[rows.node] == WITHOUT)))
        self._screen_rows(rows.some(is_screened))
        self._split(rows.some(~is_leaf & (feature < self.statement.p)))
        self._split_extra(rows.some(~is_leaf & ~is_screened & (feature >= self.statement.p)))

    def _is_undecided(self, rows: NodeRows) -> Mask:
        """Which rows may hold a selection, and may say something of an atom that is not known yet."""
        fits = np.sum(rows.state == 1, axis=1) <= self.statement.M
        if self.statement.extra:
            empty = np.array([bool(np.any(low > high)) for low, high in self._ends])
            fits &= ~empty[rows.ends]
        new = (rows.state != 0) & ~self.may_be_in[rows.limit]
        new |= (rows.state != 1) & ~self.may_be_out[rows.limit]
        return np.asarray(fits & new.any(axis=1))

    def _fix_row_by_row(self, rows: NodeRows) -> NodeRows:
        """Leaves with what the rows fix there, but for those where they leave no selection."""
        state, is_empty = self._row_by_row.fix(rows.state)
        return rows._replace(state=state).some(~is_empty)

    def _push_rows(self, rows: NodeRows) -> None:
        if rows.node.size:
            self._stack.append(rows)

    def _split(self, rows: NodeRows) -> None:
        on = self._feature[rows.node]
        at = np.arange(on.size)
        for value in (1, 0):
            fits = (rows.state[at, on] < 0) | (rows.state[at, on] == value)
            state = rows.state[fits]
            state[np.arange(state.shape[0]), on[fits]] = value
            self._push_rows(NodeRows(self._children[rows.node[fits], value], rows.limit[fits], rows.ends[fits], state))

    def _split_extra(self, rows: NodeRows) -> None:
        for row, node in enumerate(rows.node.tolist()):
            k, value = int(self._feature[node]) - self.statement.p, self._whole[node]
            low, high = self._ends[int(rows.ends[row])]
            one, other = low.copy(), high.copy()
            other[k], one[k] = min(high[k], value), max(low[k], value + 1)
            for side, ends in ((0, (low, other)), (1, (one, high))):
                self._ends.append(ends)
                child = rows.some(slice(row, row + 1))
                self._push_rows(
                    child._replace(
                        node=self._children[child.node, side], ends=np.array([len(self._ends) - 1]), state=child.state
                    )
                )

    def _screen_rows(self, rows: NodeRows) -> None:
        if self._completions is not None:
            rows = rows.some(~self._screen_chains(rows, self._completions))
        if not rows.node.size:
            return
        alive, found = self._bounds_of_unfixed(rows)
        level = self.levels[rows.limit]
        state = rows.state.copy()
        part = state[:, alive]
        free = part < 0
        part[free & (found.at_zero > level[:, None])] = 1
        part[free & (found.at_one > level[:, None])] = 0
        state[:, alive] = part
        left = found.whole <= level
        self._push_rows(NodeRows(self._children[rows.node, 0], rows.limit, rows.ends, state).some(left))

    def _screen_chains(self, rows: NodeRows, completions: CompletionCheck) -> Mask:
        """Screen by all vectors of a chain together where one place is left; which rows these are, (B,)."""
        end = self._chain_ends[np.searchsorted(self._chain_ends, rows.node)]
        takes = (end > rows.node) & (np.sum(rows.state == 1, axis=1) == self.statement.M - 1)
        same = defaultdict[tuple[int, int, bytes], list[int]](list)
        for at in np.flatnonzero(takes).tolist():
            same[int(rows.node[at]), int(end[at]), np.flatnonzero(rows.state[at] == 1).tobytes()].append(at)
        for (first, last, inside), alike in same.items():
            found = [
                OpenCompletions(math.nextafter(level, math.inf), np.flatnonzero(state < 0))
                for level, state in zip(self.levels[rows.limit[alike]], rows.state[alike], strict=True)
            ]
            vectors = completions.vectors(self._dual[first:last])
            completions.rule_out(vectors, 0, last - first, np.frombuffer(inside, dtype=np.int64), found)
            self._push_rows(self._behind_chain(rows.some(alike), self._children[last - 1, 0], found))
        return np.asarray(takes)

    @staticmethod
    def _behind_chain(rows: NodeRows, node: int, found: Sequence[OpenCompletions]) -> NodeRows:
        """Rows where a chain goes on, with what it fixes; without those where it leaves nothing."""
        state = np.where(rows.state < 0, 0, rows.state).astype(np.int8)
        for row, one in zip(state, found, strict=True):
            row[one.free] = -1 if one.only is None else 1
        left = np.array([one.is_open or one.free.size > 0 for one in found])
        return rows._replace(node=np.full(left.size, node), state=state).some(left)

    def _evaluate_leaves(self, rows: NodeRows) -> None:
        """Note what may be in and out at leaves; rows are asked only where the bounds allow what is not known yet."""
        rows = rows.some(~self._are_refuted(rows))
        has_room = np.sum(rows.state == 1, axis=1) < self.statement.M
        for which in (has_room, ~has_room):
            self._evaluate_open_leaves(rows.some(which))

    def _are_refuted(self, rows: NodeRows) -> Mask:
        """Which leaves are shown to hold no selection by the multipliers of their rows."""
        is_refuted = np.array(self._dual[rows.node] == REFUTED)
        if is_refuted.any():
            _, base, costs, state = self._costs_of_unfixed(rows.some(is_refuted))
            is_refuted[is_refuted] = least_over(base, costs, state, self.statement.M).whole > 0.0
        return is_refuted

    def _evaluate_open_leaves(self, rows: NodeRows) -> None:
        if not rows.node.size:
            return
        allowed = self._allow_by_bounds(rows)
        if self._row_by_row.terms:
            is_new = np.any(
                allowed[0] & ~self.may_be_in[rows.limit] | allowed[1] & ~self.may_be_out[rows.limit], axis=1
            )
            if not is_new.any():
                return
            rows = self._fix_row_by_row(rows.some(is_new))
            allowed = self._allow_by_bounds(rows)
        self._note_possible(rows, *allowed)

    def _allow_by_bounds(self, rows: NodeRows) -> tuple[Mask, Mask]:
        """What may be in and out at leaves as their bounds have it, (B, p) each."""
        may_be_in = np.zeros(rows.state.shape, dtype=bool)
        if not rows.node.size:
            return may_be_in, may_be_in
        alive, found = self._bounds_of_unfixed(rows)
        level = np.where(self._dual[rows.node] == REFUTED, 0.0, self.levels[rows.limit])[:, None]
        may_be_out = np.repeat(found.whole[:, None] <= level, rows.state.shape[1], axis=1)
        may_be_in[:, alive], may_be_out[:, alive] = found.at_one <= level, found.at_zero <= level
        return may_be_in, may_be_out

    def _leaves_without_integers(self, rows: NodeRows) -> None:
        """Leaves without whole numbers: where their combinations do not show it, what is free may be both."""
        rows = self._fix_row_by_row(rows)
        for row, node in enumerate(rows.node.tolist()):
            fixed = _LeafStates(rows.state[row], self._ends[int(rows.ends[row])])
            if not self._combinations.show_empty(int(self._multiplier[node]), fixed):
                one = rows.some(slice(row, row + 1))
                room = np.sum(one.state == 1) < self.statement.M
                self._note_possible(one, (one.state == 1) | ((one.state < 0) & room), one.state != 1)

    def _note_possible(self, rows: NodeRows, may_be_in: Mask, may_be_out: Mask) -> None:
        """Note what the bounds of leaves allow (B, p), and the rows, each by itself, do too."""
        at_zero, at_one = self._row_by_row.surely_leave_some(rows.state)
        self._note(rows, 1, may_be_in, at_one, self.may_be_in)
        self._note(rows, 0, may_be_out, at_zero, self.may_be_out)

    def _note(self, rows: NodeRows, value: int, allowed: Mask, is_sure: Mask, known: Mask) -> None:
        """Enter in `known` (k, p) the atoms that some node allows at a value, where rows leave a selection then."""
        for k in range(self.levels.size):
            known[k] |= (allowed & is_sure)[rows.limit == k].any(axis=0)
        nodes, atoms = np.nonzero(allowed & ~known[rows.limit])
        for at in range(0, nodes.size, self._at_once):
            b, j = nodes[at : at + self._at_once], atoms[at : at + self._at_once]
            is_new = ~known[rows.limit[b], j]
            b, j = b[is_new], j[is_new]
            state = rows.state[b]
            state[np.arange(j.size), j] = value
            is_left = ~self._row_by_row.fix(state)[1]
            known[rows.limit[b[is_left]], j[is_left]] = True

    def _bounds_of_unfixed(self, rows: NodeRows) -> tuple[Integers, GivenEach]:
        """The atoms (k,) that are in or may be in at some of the rows, and the bounds that belong to these."""
        alive, base, costs, state = self._costs_of_unfixed(rows)
        return alive, given_each(base, costs, state, self.statement.M)

    def _costs_of_unfixed(self, rows: NodeRows) -> tuple[Integers, Array, Array, States]:
        """The atoms (k,) that are in or may be in; base (B,), their costs (B, k) and their state (B, k)."""
        keys = np.stack([self._dual[rows.node], self._multiplier[rows.node], rows.ends], axis=1)
        different, which = np.unique(keys, axis=0, return_inverse=True)
        base, cost = self._costs_by_key(different)
        has_room = np.sum(rows.state == 1, axis=1) < self.statement.M
        may_be_in = (rows.state == 1) | ((rows.state < 0) & has_room[:, None])
        which, alive = which.ravel(), np.flatnonzero(may_be_in.any(axis=0))
        alive = alive if alive.size else np.arange(1)
        return alive, base[which], cost[:, alive][which], rows.state[:, alive]

    def _costs_by_key(self, keys: Integers) -> tuple[Array, Array]:
        """Base (B,) and costs (B, p) of dual vectors with multipliers and ends of extra variables (B, 3)."""
        statement = self.statement
        base, cost = np.zeros(keys.shape[0]), np.zeros((keys.shape[0], statement.p))
        there = np.flatnonzero(keys[:, 0] >= 0)
        duals, place = np.unique(keys[there, 0], return_inverse=True)
        for at in range(0, duals.size, self.duals.per_block):
            g, rows = self.duals.rows(duals[at : at + self.duals.per_block])
            of = (place >= at) & (place < at + len(g))
            base[there[of]], cost[there[of]] = np.array(g)[place[of] - at], rows[place[of] - at]
        for row, (dual, multiplier, ends) in enumerate(keys.tolist()):
            if dual == REFUTED:
                base[row], cost[row] = self._costs_of_ray(multiplier, ends)
            elif multiplier >= 0 or statement.has_extra_costs:
                more, cost[row] = statement.reduced(cost[row], self._held(multiplier), self._ends[ends])
                base[row] = sum_below([base[row], *more])
        return base, np.where(np.isnan(cost), -np.inf, cost)

    def _costs_of_ray(self, multiplier: int, ends: int) -> tuple[float, Array]:
        """Base and costs (p,) of multipliers alone, which many leaves share."""
        key = multiplier, ends
        if key not in self._rays:
            if len(self._rays) >= self._at_once:
                self._rays.clear()
            none = np.zeros(self.statement.p)
            more, cost = self.statement.reduced(none, self._held(multiplier), self._ends[ends], is_ray=True)
            self._rays[key] = sum_below(more), cost
        return self._rays[key]

    def _held(self, multiplier: int) -> list[Any]:
        """The multipliers of all rows at a place, zeros where there is none."""
        return self._multipliers[multiplier].tolist() if multiplier >= 0 else [0.0] * self.statement.lb.size


@dataclass
class _LeafStates:
    """What is fixed at a leaf."""

    state: States
    ends: tuple[Array, Array]


def possible(
    statement: Statement, duals: Duals, tree: CoverTree, arrays: Arrays, levels: Sequence[float]
) -> tuple[Mask, Mask]:
    """What may be in and what may be out (k, p), as the leaves have it, at limits (k,) of the unit margin."""
    with np.errstate(all="ignore"):
        found = PossibleAtoms(statement, duals, tree, arrays, levels)
        found.find()
    return found.may_be_in, found.may_be_out
