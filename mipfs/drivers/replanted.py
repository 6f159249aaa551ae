"""An earlier tree of `branch` planted anew for a problem that was edited: its leaves cover the new selections, too.

    old tree   splits, screenings, and a dual vector α at every leaf that bounded what the leaf holds
    new tree   the same splits; screenings by the same α at the new cutoff; at every leaf lower(α) in the new problem:
               closed where that reaches the new cutoff, else an open node, from which the search goes on

A split says nothing of rows, M or costs, and covers {0, 1}^p whatever these are; a dual vector of the new dual set is a
bound for every S (`mipfs.run.warm`). So nothing of the old proof is believed: what a leaf was closed by is evaluated on
the new problem, what rows or M had refuted is propagated anew, and open nodes are nodes like any other.

Nodes are looked at level by level, many at a time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs.drivers.tree import SearchTree
from mipfs.drivers.tree_proof import OpenNode
from mipfs.drivers.waiting import packed_all
from mipfs.inner.boolean_node import FREE, INSIDE, OUTSIDE, WarmStart
from mipfs.inner.old_duals import initial_intercepts, scores_all
from mipfs.inner.prices import RowPrices
from mipfs.kernels.bound import gains, rounded_down, trade_gains
from mipfs.plumbing.arrays import Array, Integers, replace_at
from mipfs.proof.duals import DualStore
from mipfs.proof.proof import SCREENED
from mipfs.run.swaps import climb
from mipfs.run.warm import OldTree

States = npt.NDArray[np.int8]
RHO = 0.5
"""Where the smoothing of a node begins that is opened anew: as the interior point leaves it to the kernels."""
SPREAD = 0.2
"""The share of the least gain that counts within which σ is taken for fractional where a leaf begins anew."""
HALVINGS = 20
"""Bisections of the level at which these σ fill the places that are left."""
TINY = 1e-300
"""What is no divisor is this."""
EXCESS = 1e-9
"""By how much an old ray must break a row, relative to its numbers: more than what anyone's rounding may be."""
NUMBERS = 1 << 25
"""Numbers that its dual vectors have on the atoms at most, 256 MB; of a larger tree the support alone is used."""


@dataclass(eq=False)
class TreeLevel:
    """Some nodes on their way down.

    at : (m,) places in the old tree;  place : (m,) in the new one;  states : (m, k);  dual : (m,) the last seen above
    """

    at: Integers
    place: Integers
    states: States
    dual: Integers

    def part(self, rows: Any) -> TreeLevel:
        """Some of them."""
        return TreeLevel(self.at[rows], self.place[rows], self.states[rows], self.dual[rows])

    @classmethod
    def join_levels(cls, levels: Sequence[TreeLevel]) -> TreeLevel:
        """All of several."""
        each = zip(*((one.at, one.place, one.states, one.dual) for one in levels), strict=True)
        return cls(*(np.concatenate(part) for part in each))


@dataclass(frozen=True, eq=False)
class PricedDuals:
    """Dual vectors on the new problem, with multipliers of its rows.

    Attributes
    ----------
    g : (D,) rounded down;  scores, omega : (D, k) rounded up, and as they are computed (sizes, where they have no sign)
    constants, penalties : (Y,), (Y, k) what each of the multipliers adds to g, and makes of the penalties
    shifts : (Y, k) A'y
    numbers, prices : (Y,) how the proof and the open nodes number the multipliers
    """

    g: Array
    scores: Array
    omega: Array
    constants: Array
    penalties: Array
    shifts: Array
    numbers: Integers
    prices: Integers

    def gains(self, dual: Integers, y: Integers) -> Array:
        """γ of every atom (m, k) by dual vectors and multipliers."""
        return np.asarray(gains(self.scores[dual], self.penalties[y]))

    def base(self, dual: Integers, y: Integers) -> Array:
        """What the gains are taken off (m,), rounded down."""
        g, constant = self.g[dual], self.constants[y]
        return np.asarray(rounded_down(g + constant, np.abs(g) + np.abs(constant), 2))


@dataclass(frozen=True, eq=False)
class BoundedNodes:
    """Some nodes, each bounded by a dual vector.

    Attributes
    ----------
    bound : (m,) rounded down
    order : (m, k) the free atoms by falling gain, all others behind
    falling : (m, k) their gains, −∞ of the others
    count, room : (m,) how many of them count, and how many may
    """

    bound: Array
    order: Integers
    falling: Array
    count: Integers
    room: Integers

    def part(self, rows: Any) -> BoundedNodes:
        """Some of them."""
        return BoundedNodes(self.bound[rows], self.order[rows], self.falling[rows], self.count[rows], self.room[rows])

    @classmethod
    def of(cls, base: Array, gain: Array, states: States, most: int) -> BoundedNodes:
        """The bounds of nodes (m, k) with at most `most` atoms inside; see `mipfs.kernels.bound.earned`."""
        held = np.where(states == INSIDE, gain, 0.0)
        free = np.where(states == FREE, gain, -np.inf)
        order = np.argsort(-free, axis=1, kind="stable")
        falling = np.take_along_axis(free, order, axis=1)
        room = most - np.count_nonzero(states == INSIDE, axis=1)
        count = np.maximum(0, np.minimum(room, np.count_nonzero(falling > 0.0, axis=1)))
        sums = np.cumsum(np.maximum(falling, 0.0), axis=1)
        top = np.append(np.zeros((count.size, 1)), sums, axis=1)[np.arange(count.size), count]
        size = np.abs(base) + np.abs(held).sum(axis=1) + top
        with np.errstate(invalid="ignore"):
            bound = rounded_down(base - held.sum(axis=1) - top, size, gain.shape[1] + 4)
        return cls(np.where(size < np.inf, bound, -np.inf), order, falling, count, room)

    @property
    def counting(self) -> Array:
        """σ (m, k) of the free atoms, by falling gain, where those that count are in."""
        return (np.arange(self.falling.shape[1]) < self.count[:, None]).astype(float)

    def spread(self, share: float) -> Array:
        """A guess at σ (m, k) of the free atoms, by falling gain: from 1 to 0 around the least gain that counts, within
        this share of it on both sides, and Σσ ≤ room.
        """
        gain = np.append(np.maximum(self.falling, 0.0), np.zeros((self.count.size, 1)), axis=1)
        last = np.take_along_axis(gain, np.maximum(self.count - 1, 0)[:, None], axis=1)
        width = 2.0 * share * last + TINY
        low, high = np.zeros_like(last), gain[:, :1] + width
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            is_over = np.clip(0.5 + (gain - middle) / width, 0.0, 1.0).sum(axis=1) > self.room
            low, high = np.where(is_over[:, None], middle, low), np.where(is_over[:, None], high, middle)
        return np.where(gain > 0.0, np.clip(0.5 + (gain - high) / width, 0.0, 1.0), 0.0)[:, :-1]

    def screen(self, cutoff: float) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """Which free atoms (m, k) go in, and which go out, at a cutoff: as `mipfs.kernels.bound.earned` fixes them."""
        rows, k = np.arange(self.count.size), self.falling.shape[1]
        place = np.arange(k)[None, :]
        padded = np.append(self.falling, np.full((rows.size, 1), -np.inf), axis=1)
        following = np.maximum(0.0, padded[rows, self.count])[:, None]
        is_full = (self.count > 0) & (self.count == self.room)
        weakest = np.where(is_full, padded[rows, np.maximum(self.count - 1, 0)], 0.0)[:, None]
        bound, counts, is_free = self.bound[:, None], place < self.count[:, None], self.falling > -np.inf
        falling = np.where(is_free, self.falling, 0.0)
        stays = counts & (trade_gains(bound, falling, following) >= cutoff)
        goes = is_free & ~counts & (trade_gains(bound, weakest, falling) >= cutoff)
        stays = np.logical_and.accumulate(stays, axis=1)
        goes = np.logical_or.accumulate(goes, axis=1) & is_free
        goes |= (self.room <= 0)[:, None] & is_free
        inside, out = np.zeros_like(stays), np.zeros_like(goes)
        np.put_along_axis(inside, self.order, stays, axis=1)
        np.put_along_axis(out, self.order, goes, axis=1)
        return inside, out


class Replanting:
    """Plants an old tree in a new one, which has no nodes yet.

    Parameters
    ----------
    tree : SearchTree, whose run has an incumbent
    old : OldTree, with dual vectors of the new problem

    Attributes
    ----------
    leaves, open : int, how many leaves it had, and how many of them are open nodes
    """

    def __init__(self, tree: SearchTree, old: OldTree) -> None:
        self.tree, self.old, self.cutoff = tree, old, math.inf
        self.leaves = self.open = 0
        self.offset = 0
        self._scores: tuple[Integers, Array, Array, Array] | None = None

    def plant(self) -> bool:
        """Take over the old tree, if it is one of this M and C; whether it was.

        Its leaves pay for SVMs: a better incumbent leaves fewer of them open. Where those that open lead to a better
        one still, it is planted again.
        """
        tree = self.tree
        relaxation = tree.relaxation
        if not self.old.is_alike or relaxation.propagation(tree.first).broken is not None or not self._is_worthwhile():
            return False
        climb(tree.supports, tree.supports.pool, most=self.old.n_leaves // tree.settings.leaves_per_svm)
        left = self._plant_tree()
        if left is None:
            return True
        self._round(*left[:2])
        if tree.cutoff < self.cutoff:
            tree.begin_anew()
            tree.relaxation, tree.lost = relaxation, False
            left = self._plant_tree()
        if left is not None:
            tree.rounding = -1
            self._open(*left)
        return True

    def _plant_tree(self) -> tuple[TreeLevel, BoundedNodes, Integers] | None:
        """Plant it at the cutoff as it is now; the leaves that are to be opened, and by which multipliers."""
        tree, old = self.tree, self.old
        self.cutoff, self.leaves, self.open = tree.cutoff, 0, 0
        assert isinstance(tree.proof.duals, DualStore)
        place, states = tree.take(tree.proof.root, tree.relaxation.propagation(tree.first))
        tree.n_nodes = 1
        self.offset = tree.proof.duals.append(old.duals)
        at, place, states = self._find_root(place, states)
        if at < 0:
            return None
        self._drop_ruled_out(states)
        states = states[states != OUTSIDE]
        begin = TreeLevel(np.array([at]), np.array([place]), states[None, :], self._top_dual)
        return self._enter_leaves(self._descend_to_leaves(begin))

    @property
    def _top_dual(self) -> Integers:
        """The dual vector that nodes have which none is known of."""
        return np.array([max(0, int(self.old.dual[0]))])

    def _is_worthwhile(self) -> bool:
        """Whether there are dual vectors, and few enough that looking at them is little work."""
        count = len(self.old.duals)
        return count > 0 and count * self.tree.relaxation.alive.size <= NUMBERS

    def _find_root(self, place: int, states: States) -> tuple[int, int, States]:
        """Where the descent begins, after the root's own screening; −1 where its dual vector closes all."""
        tree, old = self.tree, self.old
        if old.feature[0] != SCREENED:
            return 0, place, states
        dual = int(old.dual[0])
        prices = tree.relaxation.pricing.of(old.multipliers[old.multiplier[0]]) or tree.relaxation.pricing.none
        bound, goes_in, goes_out = tree.relaxation.bound(*old.duals.get(dual), prices, states, self.cutoff)
        if bound >= self.cutoff:
            tree.close(OpenNode(bound, place, dual + self.offset, states, _no_warm(states.size), y=prices.y), bound)
            return -1, place, states
        at = int(old.children[0, 0])
        return at, *tree.screen(place, dual + self.offset, prices.y, states, goes_in, goes_out, self.cutoff)

    def _drop_ruled_out(self, states: States) -> None:
        """Go on without the atoms that are out."""
        tree = self.tree
        keep = np.flatnonzero(states != OUTSIDE)
        if keep.size < states.size:
            tree.relaxation = tree.relaxation.restricted(keep)
        self._where = _positions_among_alive(tree.relaxation.alive, tree.run.problem.atoms.count)
        self.priced = self._price_duals()
        tree.run.counters["root_free"] = int(np.count_nonzero(states == FREE))
        tree.coarsen_at(self.cutoff)

    def _scores_all(self) -> tuple[Array, Array, Array]:
        """`scores_all` on the atoms in play, computed once: those in play at a lower cutoff are some of them."""
        alive = self.tree.relaxation.alive
        if self._scores is None or not np.isin(alive, self._scores[0]).all():
            self._scores = alive, *scores_all(self.tree.relaxation, self.old.duals)
        before, g, scores, omega = self._scores
        kept = np.searchsorted(before, alive)
        return g, scores[:, kept], omega[:, kept]

    @cached_property
    def _prices(self) -> list[RowPrices]:
        """Of all multipliers of the old tree."""
        pricing = self.tree.relaxation.pricing
        return [pricing.of(y) or pricing.none for y in self.old.multipliers]

    def _price_duals(self) -> PricedDuals:
        tree, relaxation, every = self.tree, self.tree.relaxation, self._prices
        penalty = tree.run.problem.penalty
        return PricedDuals(
            *self._scores_all(),
            np.array([one.constant for one in every]),
            np.array([one.penalties(penalty)[relaxation.alive] for one in every]),
            np.array([one.shift[relaxation.alive] for one in every]),
            np.array([-1 if (y := tree.shown(one.y)) is None else tree.proof.keep(y) for one in every], dtype=np.int64),
            tree.prices.add_all(np.array([one.y for one in every])),
        )

    def _apply_bounds(self, dual: Integers, y: Integers, states: States) -> BoundedNodes:
        M = self.tree.run.problem.M
        most = states.shape[1] + 1 if M is None else M
        return BoundedNodes.of(self.priced.base(dual, y), self.priced.gains(dual, y), states, most)

    def _descend_to_leaves(self, level: TreeLevel) -> list[TreeLevel]:
        """Go down from some nodes to the leaves."""
        found, old = [], self.old
        where, M = self._where, self.tree.run.problem.M
        while level.at.size:
            level = self._hold_rows(level)
            inside = np.count_nonzero(level.states == INSIDE, axis=1)
            feature = old.feature[level.at]
            ends = (feature < 0) | ((feature != SCREENED) & (feature >= where.size - 1))
            if M is not None:
                ends |= inside == M
            found.append(self._end_leaves(level.part(ends)))
            level, feature = level.part(~ends), feature[~ends]
            is_screened = feature == SCREENED
            level = TreeLevel.join_levels(
                [self._screen_level(level.part(is_screened)), self._split(level.part(~is_screened))]
            )
        return found

    def _hold_rows(self, level: TreeLevel) -> TreeLevel:
        """Refute the nodes that break a row by themselves, or have more than M inside; the others, with what a row by
        itself fixes in them.
        """
        tree, M = self.tree, self.tree.run.problem.M
        proof, propagation = tree.proof, tree.relaxation.propagation
        if propagation.count:
            broken = propagation.room(level.states) < 0.0
            is_broken, side = broken.any(axis=1), broken.argmax(axis=1)
            for one in np.unique(side[is_broken]).tolist():
                places = level.place[is_broken & (side == one)]
                proof.refute_all(places, np.full(places.size, proof.keep(self._ray(one))))
            level = level.part(~is_broken)
            for one, nodes, atoms, values in propagation.fixed_all(level.states):
                if nodes.size:
                    features, number = tree.relaxation.alive[atoms], proof.keep(self._ray(one))
                    level.place = proof.refute_sides(level.place, nodes, features, values == INSIDE, number)
                    level.states[nodes, atoms] = values
        if M is None:
            return level
        over = np.count_nonzero(level.states == INSIDE, axis=1) > M
        proof.refute_all(level.place[over], np.full(np.count_nonzero(over), -1))
        return level.part(~over)

    def _ray(self, side: int) -> Array:
        """The multipliers that show that a row breaks."""
        propagation = self.tree.relaxation.propagation
        return propagation.ray(propagation.cause(side))

    def _end_leaves(self, level: TreeLevel) -> TreeLevel:
        """Leaves, with the dual vector that bounds each: its own, or one from above it."""
        own = self.old.dual[level.at]
        is_leaf = (self.old.feature[level.at] < 0) & (own >= 0)
        return TreeLevel(level.at, level.place, level.states, np.where(is_leaf, own, level.dual))

    def _screen_level(self, level: TreeLevel) -> TreeLevel:
        """Screen at the new cutoff what was screened; nodes that are closed by it are closed."""
        if not level.at.size:
            return level
        old, proof = self.old, self.tree.proof
        dual, y = old.dual[level.at], old.multiplier[level.at]
        bounded = self._apply_bounds(dual, y, level.states)
        closed = bounded.bound >= self.cutoff
        inside, out = bounded.screen(self.cutoff)
        fixed = (inside | out).any(axis=1) & ~closed
        self._close(level.place[closed], dual[closed], y[closed], bounded.bound[closed])
        states = level.states.copy()
        states[inside], states[out] = INSIDE, OUTSIDE
        states[~fixed] = level.states[~fixed]
        place = level.place.copy()
        if fixed.any():
            place[fixed] = proof.screen_all(place[fixed], dual[fixed] + self.offset, self.priced.numbers[y[fixed]])
            self.tree.done(self.cutoff)
        return TreeLevel(old.children[level.at, 0].astype(np.int64), place, states, dual).part(~closed)

    def _split(self, level: TreeLevel) -> TreeLevel:
        """The children of what was split; where its feature is fixed by now, the one child that holds anything."""
        if not level.at.size:
            return level
        old, proof = self.old, self.tree.proof
        feature, rows = old.feature[level.at], np.arange(level.at.size)
        j = self._where[feature]
        held = np.flatnonzero(j >= 0)
        state = replace_at(np.full(rows.size, OUTSIDE, np.int8), held, level.states[held, j[held]])
        below = old.children[level.at].astype(np.int64)
        known = state != FREE
        one = TreeLevel(below[rows, (state == INSIDE).astype(int)], level.place, level.states, level.dual).part(known)
        parts, free = [one], np.flatnonzero(~known)
        if free.size:
            places = proof.split_all(level.place[free], feature[free])
            for side, value in ((0, OUTSIDE), (1, INSIDE)):
                states = replace_at(level.states[free], (np.arange(free.size), j[free]), value)
                parts.append(TreeLevel(below[free, side], places[:, side], states, level.dual[free]))
        return TreeLevel.join_levels(parts)

    def _close(self, places: Integers, dual: Integers, y: Integers, bound: Array) -> None:
        """Close nodes with dual vectors that bound them."""
        if places.size:
            self.tree.proof.close_all(places, dual + self.offset, self.priced.numbers[y])
            self.tree.done(float(bound.min()))
            self.leaves += places.size

    def _refute_leaves(self, level: TreeLevel) -> TreeLevel:
        """Refute the leaves that an old ray still shows to be empty, by far more than any rounding; the others."""
        y, M = self.old.multiplier[level.at], self.tree.run.problem.M
        asked = (self.old.feature[level.at] < 0) & (self.old.dual[level.at] < 0) & (y < len(self.old.multipliers) - 1)
        if not asked.any():
            return level
        at, priced = np.flatnonzero(asked), self.priced
        constant, shift = priced.constants[y[at]], priced.shifts[y[at]]
        least = BoundedNodes.of(constant, shift, level.states[at], shift.shape[1] + 1 if M is None else M).bound
        empty = at[least > EXCESS * (np.abs(constant) + np.abs(shift).sum(axis=1))]
        self.tree.proof.refute_all(level.place[empty], priced.numbers[y[empty]])
        keep = np.ones(level.at.size, dtype=bool)
        keep[empty] = False
        return level.part(keep)

    def _bounded_leaves(self, level: TreeLevel) -> tuple[TreeLevel, BoundedNodes, Integers]:
        """Leaves, what bounds them, and by which multipliers."""
        is_leaf = (self.old.feature[level.at] < 0) & (self.old.dual[level.at] >= 0)
        y = np.where(is_leaf, self.old.multiplier[level.at], len(self.old.multipliers) - 1)
        return level, self._apply_bounds(level.dual, y, level.states), y

    def _enter_leaves(self, found: list[TreeLevel]) -> tuple[TreeLevel, BoundedNodes, Integers]:
        """Close the leaves that are bounded well enough; the others."""
        level = self._refute_leaves(TreeLevel.join_levels(found))
        level, bounded, y = self._bounded_leaves(level)
        closed = bounded.bound >= self.cutoff
        self._close(level.place[closed], level.dual[closed], y[closed], bounded.bound[closed])
        self.open = int(np.count_nonzero(~closed))
        self.leaves += self.open
        return level.part(~closed), bounded.part(~closed), self.priced.prices[y[~closed]]

    def _weights(self, level: TreeLevel, bounded: BoundedNodes, sigma: Array) -> npt.NDArray[np.float32]:
        """What the dual vectors make of the weights (m, k) of nodes, σ (m, k) of the free atoms by falling gain."""
        found = np.empty(level.states.shape)
        np.put_along_axis(found, bounded.order, sigma, axis=1)
        found[level.states == INSIDE] = 1.0
        return np.asarray(found * self.priced.omega[level.dual], dtype=np.float32)

    def _round(self, level: TreeLevel, bounded: BoundedNodes) -> None:
        """Round the nodes of least bound to incumbents: a better one leaves less of the old tree open."""
        settings = self.tree.settings
        count = min(settings.roundings_planted, self.open // settings.leaves_per_svm)
        least = np.argsort(bounded.bound, kind="stable")[:count]
        level, bounded = level.part(least), bounded.part(least)
        for w in self._weights(level, bounded, bounded.counting):
            self.tree.round_sizes(np.abs(w), float(np.count_nonzero(w)))

    def _open(self, level: TreeLevel, bounded: BoundedNodes, prices: Integers) -> None:
        """Let nodes wait, unless a row leaves them nothing."""
        if not level.at.size:
            return
        tree, w = self.tree, self._weights(level, bounded, bounded.spread(SPREAD))
        nodes = packed_all(level.states, w, initial_intercepts(tree.relaxation, w), RHO)
        heads = nodes.heads
        heads["bound"], heads["place"], heads["dual"] = bounded.bound, level.place, level.dual + self.offset
        heads["prices"] = prices
        plain = np.ones(level.at.size, dtype=bool)
        propagation = tree.relaxation.propagation
        for at, states in enumerate(level.states if propagation.counts_places else ()):
            plain[at] = propagation(states).broken is None
            if not plain[at]:
                tree.enter(tree.node(nodes, at))
        tree.waiting.extend(nodes._replace(heads=heads[plain]))
        self.open = len(tree.waiting)


def _positions_among_alive(alive: Integers, count: int) -> Integers:
    """Where every atom is among those that are alive, −1 where it is not; one place more for none."""
    where = np.full(count + 1, -1)
    where[alive] = np.arange(alive.size)
    return where


def _no_warm(size: int) -> WarmStart:
    return WarmStart(np.zeros(size, dtype=np.float32), 0.0, 0.5)
