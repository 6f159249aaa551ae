"""Nodes of `branch` with one or two free places, enumerated where that is cheaper than relaxing them.

A node with one free place has one completion for every free column: dual vectors rule them out one after the other
(`mipfs.kernels.completions`), and each is a place of the proof that is screened, since screening fixes to 0 whatever
its dual vector lifts to the cutoff. What no dual vector rules out is split off and looked at as any other leaf: it
improves on the incumbent, belongs to the list that was asked for, or breaks a row.

A node with two free places is split on one column after the other, the most promising first: where it is in, one place
is left (`mipfs.kernels.enumeration`). Its columns are cut into units of work, whose number and content depend on the
tree alone: one at first, which leaves the node with what its dual vector could not fix, then some, then hundreds.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs.drivers.tree import SearchTree
from mipfs.drivers.tree_proof import OpenNode
from mipfs.drivers.waiting import words_of
from mipfs.inner.boolean_node import WarmStart
from mipfs.inner.completions import are_few, are_pairs_few, first_places
from mipfs.inner.unit import ColumnOrder, NodeUnit
from mipfs.kernels.subtree import APART, GIVEN_BACK
from mipfs.kernels.units import BITS, FirstDuals, OpenNodes
from mipfs.plumbing.arrays import Integers
from mipfs.settings import CompletionSettings


class UnitCutter:
    """Cuts the nodes of a tree that are enumerated into units of work.

    Parameters
    ----------
    tree : SearchTree
    """

    def __init__(self, tree: SearchTree) -> None:
        run = tree.run
        self.tree = tree
        self.settings: CompletionSettings = run.settings.completions
        self.is_on = run.options.nodes == "newton" and are_few(run.problem, self.settings)
        self._first = first_places(run.problem)
        self._M = run.problem.M or 0
        if self.is_on:
            # It is made here once, before threads ask for it.
            _ = tree.relaxation.completions

    @property
    def has_one_place(self) -> bool:
        """Whether the root has one free place, so that its relaxation says no more than an enumeration."""
        return self.is_on and self._first == 1

    def open_root(self) -> None:
        """Open the root as it is, without its relaxation; the cut of the incumbent's SVM is kept for other problems."""
        tree = self.tree
        incumbent = tree.run.incumbent
        if incumbent is not None and not tree.run.must_stop:
            sigma = incumbent.sigma(tree.run.problem.atoms.count).astype(float)
            tree.supports.pool.add(tree.supports.subproblem.solve(sigma, self.settings.tol).cut)
        relaxation = tree.relaxation
        first = relaxation.propagation(tree.first)
        place, states = tree.take(tree.proof.root, first)
        tree.n_nodes = 1
        if first.broken is not None:
            tree.refute(place, relaxation.propagation.ray(first.broken))
            return
        none = relaxation.pricing.none
        whole, q = relaxation.rounded(np.zeros(tree.run.problem.data.n_samples))
        bound, *_ = relaxation.bound(whole, q, none, states, math.inf)
        warm = WarmStart(np.zeros(states.size, dtype=np.float32), 0.0, 0.5)
        tree.enter(OpenNode(bound, place, tree.proof.add_dual(whole, q), states, warm, y=none.y))

    def level(self) -> float:
        """Up to which value all pairs are proven next, for a limit may leave no more than that; inf for none.

        Where the root has two free places and many pairs, once its first unit has found an incumbent: multiples of a
        share of the incumbent's value, one after the other.
        """
        tree, one = self.tree, self.settings
        if not self.is_on or self._first != 2 or tree.n_open != 1 or math.isfinite(tree.level):
            return math.inf
        node = tree.waiting.first(self._count_in_play)
        free = float(self._count_free(node)[0])
        is_first = int(node.heads["age"][0]) == 0 or self._M - int(node.heads["inside"][0]) != 2
        if is_first or 0.5 * free * free * tree.run.problem.data.n_samples < one.many:
            return math.inf
        step = one.level * tree.cutoff
        if not 0.0 < step < math.inf:
            return math.inf
        # What is as good as a level is not proven anew.
        number = round(max(0.0, tree.run.bound) / step) + 1
        return number * step if number <= one.levels and number * one.level < 1.0 else math.inf

    def units(self, nodes: OpenNodes, cutoff: float, most: float) -> tuple[list[NodeUnit], OpenNodes]:
        """The units of work of the nodes that are enumerated, and the others.

        Parameters
        ----------
        nodes : OpenNodes, taken from those that wait
        cutoff : float
        most : columns that may be put in, with the nodes that are taken whole, about; one at least
        """
        heads = nodes.heads
        if not self.is_on or not heads.size:
            return [], nodes
        # The enumerator is made of the columns that are alive now.
        _ = self.tree.relaxation.completions
        places = self._M - heads["inside"]
        free = self._count_free(nodes)
        takes = self._are_enumerated(heads, places, free)
        units, single = list[NodeUnit](), np.flatnonzero(takes & (places == 1))
        for group in self._batches_with_one_free(free[single]):
            units.append(self._make_unit(nodes, single[group], cutoff))
        left = most - single.size
        for at in np.flatnonzero(takes & (places == 2)).tolist():
            if units and (left <= 0 or len(units) >= self.settings.units):
                self.tree.waiting.extend(
                    compact_nodes(nodes._replace(heads=heads[at : at + 1]), self._count_in_play), in_order=True
                )
                continue
            turns = self._column_turns(int(free[at]), int(heads["age"][at]), max(1.0, left))
            left -= turns[-1].end
            first = self._make_unit(nodes, np.array([at]), cutoff)
            units += [NodeUnit(first.nodes, first.duals, first.limits, first.prices, True, turn) for turn in turns]
        return units, nodes._replace(heads=heads[~takes])

    @property
    def _count_in_play(self) -> int:
        """How many atoms are in play."""
        return self.tree.relaxation.alive.size

    def _count_free(self, nodes: OpenNodes) -> Integers:
        """How many atoms are free in each of some nodes."""
        k = self._count_in_play
        words = nodes.heads["start"][:, None] + np.arange(-(-k // BITS))
        out = np.bitwise_count(nodes.words[words].view(np.uint32)).sum(axis=1)
        return np.asarray(k - out - nodes.heads["inside"], dtype=np.int64)

    def _are_enumerated(self, heads: npt.NDArray[Any], places: Integers, free: Integers) -> npt.NDArray[np.bool_]:
        """Which nodes are enumerated: by their free places, and how many selections they hold."""
        is_small = (self._first == 2) | are_pairs_few(free, self.settings)
        takes = (places == 1) | ((places == 2) & is_small)
        return np.asarray(takes & (free > 0) & (heads["why"] != GIVEN_BACK) & (heads["why"] != APART))

    def _batches_with_one_free(self, free: Integers) -> list[Integers]:
        """Nodes with one free place, as many together as are a unit."""
        work = np.cumsum(free * self.tree.run.problem.data.n_samples) // self.settings.block
        return [np.flatnonzero(work == one) for one in np.unique(work)]

    def _column_turns(self, free: int, age: int, most: float) -> list[ColumnOrder]:
        """The next columns of a node with two free places, as many together as are a unit.

        First one unit, which says how many columns there really are; then few, in which the best selections are.
        """
        count = int(min(free, most))
        candidates = np.cumsum(free - np.arange(count)) * self.tree.run.problem.data.n_samples
        units = 1 if age == 0 else self.settings.front if age == 1 else self.settings.units
        ends = np.append(np.flatnonzero(np.diff(candidates // self.settings.block)) + 1, count)[:units].tolist()
        return [ColumnOrder(begin, end, begin == 0) for begin, end in zip([0, *ends], ends, strict=False)]

    def _make_unit(self, nodes: OpenNodes, at: Integers, cutoff: float) -> NodeUnit:
        """A unit of some nodes; no dual vector is needed of those that earned their bounds."""
        own = compact_nodes(nodes._replace(heads=nodes.heads[at]), self._count_in_play)
        prices = np.zeros((at.size, self.tree.prices.rows))
        return NodeUnit(
            own, FirstDuals.none(), self.tree.limits(own.heads["bound"], cutoff), prices, is_enumerated=True
        )


def compact_nodes(nodes: OpenNodes, size: int) -> OpenNodes:
    """Some nodes over `size` atoms with their own words alone."""
    heads = nodes.heads.copy()
    sizes = words_of(heads, size)
    starts = heads["start"].copy()
    heads["start"] = np.cumsum(sizes) - sizes
    at = np.repeat(starts - heads["start"], sizes) + np.arange(int(sizes.sum()))
    return OpenNodes(heads, nodes.words[at])
