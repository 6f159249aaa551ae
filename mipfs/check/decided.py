"""Which atoms are in every selection up to a limit, which in none, and which are open, as the leaves imply it.

    limit = U + g|U|,     bound of a leaf given σ_j = v  =  (leaf) over its selections with σ_j = v

A node that is screened fixes here what its dual vector lifts above the limit, and rows by themselves fix atoms at a
leaf (`mipfs.check.row_by_row`). There atom j may be in where the bound given σ_j = 1 is at most the limit, and may be
out where the one given σ_j = 0 is, if the rows leave a selection then. What may be out at no leaf is in every selection
of S whose value is at most the limit; what may be in at no leaf is in none.

Many nodes are looked at together, for all limits: with the k atoms of most negative cost taken, and room for no more,
the bounds given σ_j = 0 and 1 of all j come from the sums of these but one. Sums are rounded down by what their terms
allow.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mipfs.check import derived
from mipfs.check import made as functions
from mipfs.check.dual_vectors import Duals
from mipfs.check.in_unit import in_unit
from mipfs.check.integers import Combinations
from mipfs.check.joint import JOINT
from mipfs.check.known import is_joint, rules_of
from mipfs.check.leaves import REFUTED, SCREENED, WITHOUT, CoverTree
from mipfs.check.rounding import Array, Arrays, Document, Integers, U, above, number, require, sum_below
from mipfs.check.row_by_row import RowByRow
from mipfs.check.scaling import by_rules
from mipfs.check.statement import Statement
from mipfs.data.instance import Instance

Mask = npt.NDArray[np.bool_]
States = npt.NDArray[np.int8]

ROWS_AT_ONCE, NUMBERS_AT_ONCE = 1024, 1 << 19
"""Nodes that are looked at together at most, and numbers of them."""
SURELY = 1e-6
"""What is decided at a limit that is larger by this, relative, is not open."""
FIELDS = frozenset({"gap", "every", "none", "open"})


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


class GivenEach(NamedTuple):
    """Bounds of some rows.

    Attributes
    ----------
    whole : (B,) over all selections of a row
    at_one, at_zero : (B, p) over those with σ_j = 1 and σ_j = 0; ∞ where there are none
    """

    whole: Array
    at_one: Array
    at_zero: Array


def given_each(base: Array, cost: Array, state: States, M: int) -> GivenEach:
    """(leaf) of some rows as they are, and with one atom more fixed.

    Parameters
    ----------
    base : (B,) what does not depend on σ
    cost : (B, p)
    state : (B, p)
    M : int, at least as many as are fixed to 1
    """
    count, p = state.shape
    inside, free = state == 1, state < 0
    room = np.minimum(M - inside.sum(axis=1), p)
    width = min(p, int(room.max(initial=0)) + 1)
    gains = np.where(free & (cost < 0.0), cost, 0.0)
    order = np.argpartition(gains, width - 1, axis=1)[:, :width] if width < p else np.tile(np.arange(p), (count, 1))
    order = np.take_along_axis(order, np.argsort(np.take_along_axis(gains, order, axis=1), axis=1, kind="stable"), 1)
    best = np.take_along_axis(gains, order, axis=1)
    taken = (np.arange(width) < room[:, None]) & (best < 0.0)
    terms = np.where(taken, best, 0.0)
    held = np.where(inside, cost, 0.0)
    fixed = base + held.sum(axis=1)
    size = np.abs(base) + np.abs(held).sum(axis=1) + np.abs(best).sum(axis=1)
    most = 2.02 * U * (np.minimum(M, p) + 8)
    slack = most * size
    before, after = _exclusive_prefix_sums(terms), _exclusive_prefix_sums(terms[:, ::-1])[:, ::-1]
    total = fixed + terms.sum(axis=1) - slack
    is_full = taken.sum(axis=1) == room
    # What comes for one that leaves, and the last one, which leaves for one that comes.
    next_one = np.where(room < width, np.take_along_axis(best, np.minimum(room, width - 1)[:, None], 1)[:, 0], 0.0)
    without = fixed + np.where(is_full & (room > 0), _all_but_last(terms, room), terms.sum(axis=1))
    at_one = np.where(free, (without[:, None] + cost) - slack[:, None] - most * np.abs(cost), total[:, None])
    at_one[free & (room[:, None] == 0)] = np.inf
    at_one[state == 0] = np.inf
    at_zero = np.where(inside, np.inf, np.broadcast_to(total[:, None], state.shape))
    less = (fixed[:, None] + (before + after)) + np.where(is_full, next_one, 0.0)[:, None] - slack[:, None]
    rows, places = np.nonzero(taken)
    atoms = order[rows, places]
    at_zero[rows, atoms] = less[rows, places]
    at_one[rows, atoms] = total[rows]
    return GivenEach(*(np.where(np.isnan(one), -np.inf, one) for one in (total, at_one, at_zero)))


def _exclusive_prefix_sums(terms: Array) -> Array:
    """The sums of the terms before each one, without any difference."""
    sums = np.cumsum(terms, axis=1)
    return np.concatenate([np.zeros((terms.shape[0], 1)), sums[:, :-1]], axis=1)


def _all_but_last(terms: Array, room: Integers) -> Array:
    """The sum of all terms but the one that takes the last place."""
    return np.asarray(np.where(np.arange(terms.shape[1]) == room[:, None] - 1, 0.0, terms).sum(axis=1))


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
        wide = max(1, statement.p, self._row_by_row.terms)
        self._at_once = max(2, min(ROWS_AT_ONCE, NUMBERS_AT_ONCE // wide))
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

    def _evaluate_leaves(self, rows: NodeRows) -> None:
        """Note what may be in and out at leaves; rows are asked only where the bounds allow what is not known yet."""
        if not rows.node.size:
            return
        allowed = self._allow_by_bounds(rows)
        if self._row_by_row.terms:
            is_new = np.any(
                allowed[0] & ~self.may_be_in[rows.limit] | allowed[1] & ~self.may_be_out[rows.limit], axis=1
            )
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
        """The atoms (k,) that are not fixed to 0 in all of the rows, and the bounds that belong to these."""
        keys = np.stack([self._dual[rows.node], self._multiplier[rows.node], rows.ends], axis=1)
        different, which = np.unique(keys, axis=0, return_inverse=True)
        base, cost = self._costs_by_key(different)
        which, alive = which.ravel(), np.flatnonzero((rows.state != 0).any(axis=0))
        alive = alive if alive.size else np.arange(1)
        costs = cost[:, alive][which]
        return alive, given_each(base[which], costs, rows.state[:, alive], self.statement.M)

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
            is_ray = dual == REFUTED
            if multiplier >= 0 or (statement.has_extra_costs and not is_ray):
                held = self._multipliers[multiplier].tolist() if multiplier >= 0 else [0.0] * statement.lb.size
                more, cost[row] = statement.reduced(cost[row], held, self._ends[ends], is_ray=is_ray)
                base[row] = sum_below([base[row], *more])
        return base, np.where(np.isnan(cost), -np.inf, cost)


@dataclass
class _LeafStates:
    """What is fixed at a leaf."""

    state: States
    ends: tuple[Array, Array]


def limit_of(statement: Statement, objective: float, gap: float) -> float:
    """U + g|U| in the unit margin, rounded up."""
    exact = Fraction(objective)
    return statement.unit(above(exact + Fraction(gap) * abs(exact)))


def larger(level: float, by: float) -> float:
    """A limit that is larger by a share of itself."""
    return math.nextafter(level + by * abs(level), math.inf)


def possible(
    statement: Statement, duals: Duals, tree: CoverTree, arrays: Arrays, levels: Sequence[float]
) -> tuple[Mask, Mask]:
    """What may be in and what may be out (k, p), as the leaves have it, at limits (k,) of the unit margin."""
    with np.errstate(all="ignore"):
        found = PossibleAtoms(statement, duals, tree, arrays, levels)
        found.find()
    return found.may_be_in, found.may_be_out


class StatedEntry(NamedTuple):
    """An entry as it is stated: its gap, and masks (p,)."""

    gap: float
    every: Mask
    none: Mask


def _read(entry: Any, statement: Statement) -> StatedEntry:
    require(isinstance(entry, Mapping) and entry.keys() == FIELDS, "what is decided is malformed")
    gap = number(entry["gap"], "the gap of what is decided")
    require(gap >= 0, "the gap of what is decided is negative")
    require(statement.margin == "unit" or gap < 1, "the gap of what is decided in the ρ-form is not below 1")
    rest = [name for name in ("none", "open") if entry[name] is None]
    require(len(rest) <= 1, "'none' and 'open' are both null")
    masks = {
        name: _atom_mask(() if entry[name] is None else entry[name], statement) for name in ("every", "none", "open")
    }
    require(entry["every"] is not None, "what is in every selection is not stated")
    count = np.sum([*masks.values()], axis=0)
    require(np.all(count <= 1), "a feature is decided in two ways")
    if rest:
        masks[rest[0]] = count == 0
    require(rest or np.all(count == 1), "of a feature it is not said whether it is decided")
    return StatedEntry(gap, masks["every"], masks["none"])


def _atom_mask(names: Any, statement: Statement) -> Mask:
    require(isinstance(names, list | tuple), "what is decided is no list of names")
    ids = statement.ids(names)
    require(np.unique(ids).size == ids.size, "a feature is decided twice")
    found = np.zeros(statement.p, dtype=bool)
    found[ids] = True
    return found


def check_decided(
    document: Document, statement: Statement, duals: Duals, tree: CoverTree, arrays: Arrays, chosen: Iterable[int]
) -> tuple[str, ...]:
    """Compare what is said to be decided with what the leaves imply; what was found, in words.

    What the leaves imply by a margin of `SURELY` is not called open; where extra variables have costs, which may
    cancel, nothing is said of what is called open.
    """
    given = document.get("decided")
    if given is None:
        return ()
    require(isinstance(given, list | tuple) and len(given) > 0, "what is decided is no list")
    require(document["objective"] is not None, "something is decided up to an objective that is not there")
    made = (document.get("atoms") or {}).get("made") or {}
    require("kind" not in made, "nothing is decided of products of features, of which not all are held")
    stated = [_read(entry, statement) for entry in given]
    gaps = [one.gap for one in stated]
    require(gaps == sorted({*gaps}), "the gaps of what is decided do not ascend")
    inside = np.zeros(statement.p, dtype=bool)
    inside[list(chosen)] = True
    objective = number(document["objective"], "the objective")
    levels = [limit_of(statement, objective, one.gap) for one in stated]
    names = statement.atoms.names
    may_be_in, may_be_out = possible(statement, duals, tree, arrays, levels)
    weak = list[int]()
    for k, one in enumerate(stated):
        wrong = (one.every & (may_be_out[k] | ~inside)) | (one.none & (may_be_in[k] | inside))
        what = f"{names[int(np.argmax(wrong))] if wrong.any() else ''!r}"
        require(not wrong.any(), f"the leaves do not show that {what} is decided within {one.gap:g}")
        if np.any(~may_be_out[k] & ~one.every) or np.any(~may_be_in[k] & ~one.none):
            weak.append(k)
    if weak and not statement.has_extra_costs:
        far = [larger(levels[k], SURELY) for k in weak]
        may_be_in, may_be_out = possible(statement, duals, tree, arrays, far)
        for row, k in enumerate(weak):
            more = (~may_be_out[row] & inside & ~stated[k].every) | (~may_be_in[row] & ~inside & ~stated[k].none)
            what = f"{names[int(np.argmax(more))] if more.any() else ''!r}"
            require(not more.any(), f"{what} is called open within {stated[k].gap:g}, but the leaves decide it")
    return tuple(
        f"of selections {f'within {100 * one.gap:g}% of it' if one.gap else 'as good as this one'} "
        f"{int(one.every.sum())} are in every one, {int(one.none.sum())} in none, "
        f"{int(np.sum(~(one.every | one.none)))} open"
        for one in stated
    )


class DecidedAtoms(NamedTuple):
    """What is decided at a gap, in positions of atoms: ascending."""

    gap: float
    every: Integers
    none: Integers
    open: Integers
    names: Sequence[str]


def decide_atoms(
    document: Document, arrays: Arrays, data: Instance, gaps: Sequence[float], by: float
) -> list[DecidedAtoms]:
    """What the leaves of a certificate imply, in which a limit counts as larger by a share of itself.

    Parameters
    ----------
    document, arrays, data : as for `mipfs.check.tree.check`
    gaps : relative distances above the objective
    by : float, the share
    """
    data = by_rules(data, rules_of(document))
    _, scaled = functions.on_scale(document, arrays, data)
    document, arrays, scaled, _ = in_unit(document, arrays, scaled)
    of_statement, of_duals = JOINT if is_joint(document) else (Statement, Duals)
    statement = of_statement(document, scaled.data)
    statement.scaled = scaled
    derived.append(statement, document["certificate"].get("derived", ()))
    tree = CoverTree(arrays, statement.p, statement.whole)
    duals = of_duals(statement, arrays)
    objective = number(document["objective"], "the objective")
    levels = [larger(limit_of(statement, objective, gap), by) for gap in gaps]
    may_be_in, may_be_out = possible(statement, duals, tree, arrays, levels)
    inside = np.zeros(statement.p, dtype=bool)
    inside[statement.ids(document["selected"])] = True
    every, none = ~may_be_out & inside, ~may_be_in & ~inside
    rest, names = ~(every | none), statement.atoms.names
    return [
        DecidedAtoms(gap, np.flatnonzero(every[k]), np.flatnonzero(none[k]), np.flatnonzero(rest[k]), names)
        for k, gap in enumerate(gaps)
    ]
