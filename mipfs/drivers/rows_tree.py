"""The tree of `branch` over selections with rows, and over groups, trees and scaled features.

The nodes are those of `mipfs.inner.rows_node`: next to its dual vector a node has prices of the rows, which the proof
keeps as multipliers. What the rows fix in a node is fixed at once (`mipfs.inner.propagation`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs.drivers.pieces import Left, Numbers, Pieces
from mipfs.drivers.tree import ROUNDING_NODES, ROUNDINGS, WHOLE, Node, Tree
from mipfs.inner.boolean_node import FREE, INSIDE, OUTSIDE, Outcome, States
from mipfs.inner.node_solver import NodeSolver
from mipfs.inner.propagation import Fixed
from mipfs.inner.rows_node import Ask, RowsOutcome, RowsRelaxation
from mipfs.kernels import subtree
from mipfs.kernels.structures import Piece
from mipfs.proof.multipliers import cancelled
from mipfs.proof.proof import REFUTED, Multipliers, Proof
from mipfs.run.heuristics import Supports
from mipfs.run.run import Run

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class RowsNode(Node):
    """An open node, and the multipliers of the rows that earned its bound together with its dual vector.

    Attributes
    ----------
    y : (r,)
    age : nodes above it that only stepped them, since the interior point found some
    anew : whether they are to be found anew before the subtree below the node is explored
    """

    y: Array = field(default_factory=lambda: np.zeros(0))
    age: int = 0
    anew: bool = False


class RowsTree(Tree):
    """The open nodes, the proof of the closed ones, and the node solver that they share.

    Attributes
    ----------
    lost : bool, whether something was used that no multipliers show exactly: there is no certificate
    """

    relaxation: RowsRelaxation  # type: ignore[assignment]  # its nodes have prices

    def __init__(self, run: Run, supports: Supports, tol: float) -> None:
        super().__init__(run, supports, tol)
        self.lost = False

    def relaxed(self, alive: Integers) -> RowsRelaxation:  # type: ignore[override]
        """The node solver on some of the atoms."""
        return RowsRelaxation(self.run.problem, alive, lambda: self.run.must_stop, self.stop)

    def plant(self) -> None:
        """Solve the root, find incumbents, screen, and go on with the atoms that are left."""
        problem, first = self.run.problem, self.relaxation.propagation(self._first)
        place, states = self.take(self.proof.root, first)
        self.n_nodes = 1
        if first.broken is not None:  # a run begins with a selection that satisfies the rows
            self.refute(place, self.relaxation.propagation.ray(first.broken))
            return
        outcome, cut = self.relaxation.solve_root(states, self.tol)
        self.steps = outcome.steps
        self.supports.pool.add(cut)
        self.round(outcome)
        self.dive(np.argsort(-(0.5 * cut.slopes - problem.penalty)[self.relaxation.alive], kind="stable"))
        self.climb()
        bound, *fixed = self.relaxation.bound(outcome.whole, outcome.q, outcome.prices, states, self.cutoff)
        nothing, free = np.zeros_like(outcome.whole), self.relaxation.pricing.none
        least, *others = self.relaxation.bound(nothing, outcome.q, free, states, self.cutoff)
        if least > bound:  # a limit came so early that α = 0 proves more
            bound, fixed, outcome = least, others, replace(outcome, whole=nothing, prices=free)
        dual = self.proof.add_dual(outcome.whole, outcome.q)
        place, states = self.screen(place, dual, outcome.prices.y, states, *fixed)
        self.run.counters["root_free"] = int(np.count_nonzero(states == FREE))
        keep = np.flatnonzero(states != OUTSIDE)
        warm = outcome.warm
        if keep.size < states.size:
            self.relaxation = self.relaxation.restricted(keep)
            states, warm = states[keep], type(warm)(warm.w[keep], warm.b, warm.rho)
        self.enter(RowsNode(bound, place, dual, states, warm, y=outcome.prices.y))

    def asked(self, node: Node, cutoff: float) -> tuple[Any, ...]:
        """What the node solver is told beside the node's states, warm start and dual vector: the prices above all."""
        assert isinstance(node, RowsNode)
        level, until = self.level(node, cutoff), self.until(node, cutoff)
        return (Ask(node.y, node.age, node.anew, node.bound, cutoff, level, self.tol, *until),)

    def solver(self) -> NodeSolver:
        """What makes the node solver anew; the rows are over all atoms."""
        return NodeSolver(self.run.problem, self.relaxation.alive)

    def merge(self, found: Iterable[tuple[Node, Any]]) -> None:
        """Take over, in order, what solves found, each as soon as it is there, then the subtrees that were explored."""
        nodes, pieces = list[RowsNode](), list[Piece]()
        for node, outcome in found:
            assert isinstance(node, RowsNode)
            if isinstance(outcome, Piece):
                nodes.append(node)
                pieces.append(outcome)
            else:
                self.take_in(node, outcome)
        if not nodes:
            return
        joined = Pieces(pieces, [node.place for node in nodes], [node.dual for node in nodes])
        first = np.array([self.number(node.y) for node in nodes])
        others = [self.number(y) for piece in pieces for y in piece.prices[1 : int(piece.totals["duals"][0])]]
        joined.enter(self.proof, self.relaxation.alive, Numbers(first, np.array(others, dtype=np.int64), self.rays))

        def made(t: int, left: Left) -> RowsNode:
            piece, told = pieces[t], Node(*left.told)
            of = piece.nodes[left.row]
            y, age = piece.prices[of["parent"]].copy(), int(of["age"])
            return RowsNode(**vars(told), y=y, age=age, anew=left.why == subtree.DEAR)

        self.take_pieces(pieces, joined, made)

    def number(self, y: Array) -> int:
        """The proof's number of multipliers; −1 where the rows play no part."""
        shown = self.shown(y)
        return -1 if shown is None else self.proof.keep(shown)

    @cached_property
    def rays(self) -> Integers:
        """The proof's numbers of the multipliers that show one side of a row to be broken."""
        propagation = self.relaxation.propagation
        sides = (propagation.cause(side) for side in range(2 * propagation.count))
        return np.array([self.proof.keep(propagation.ray(cause)) for cause in sides], dtype=np.int64)

    def rescue(self, node: Node) -> None:
        """Solve a node on which the Newton steps stalled by the interior point."""
        self.rescued += 1
        (alpha,), cutoff = self.duals([node]), self.cutoff
        outcome = self.relaxation.explore(node.states, node.warm, alpha, *self.asked(node, cutoff))
        self.take_in(node, outcome)

    def take_in(self, node: Node, outcome: RowsOutcome) -> None:
        """Close the node, or fix, round and split it."""
        assert isinstance(node, RowsNode)
        self.n_nodes += 1
        self.steps += outcome.steps
        if outcome.ray is not None:
            self.refute(node.place, outcome.ray)
            return
        better = outcome.bound > node.bound
        bound, dual, y = node.bound, node.dual, node.y
        if better or outcome.fixed_in.size or outcome.fixed_out.size:
            fresh = self.proof.add_dual(outcome.whole, outcome.q)
            if better:
                bound, dual, y = outcome.bound, fresh, outcome.prices.y
        if bound >= self.cutoff:
            self.shut(node.place, dual, y, bound)
            return
        place, states = node.place, node.states
        if outcome.fixed_in.size or outcome.fixed_out.size:
            place, states = self.screen(place, fresh, outcome.prices.y, states, outcome.fixed_in, outcome.fixed_out)
            after = self.relaxation.propagation(states)
            place, states = self.take(place, after)
            if after.broken is not None:
                self.refute(place, self.relaxation.propagation.ray(after.broken))
                return
        free = np.flatnonzero(states == FREE)
        if self.run.problem.M is not None and np.count_nonzero(states == INSIDE) >= self.run.problem.M:
            free = free[:0]
        node = RowsNode(bound, place, dual, states, outcome.warm, y=y)
        if free.size == 0:
            self.leaf(node)
            return
        sigma = outcome.sigma[free]
        undecided = np.minimum(sigma, 1.0 - sigma) > WHOLE
        if not undecided.any() or self.n_nodes <= ROUNDINGS or self.n_nodes % ROUNDING_NODES == 0:
            self.round(outcome)
            if bound >= self.cutoff:
                self.shut(place, dual, y, bound)
                return
        size = np.abs(outcome.warm.w[free])
        self.split(node, int(free[np.argmax(np.where(undecided, size + 1e-300, -1.0) if undecided.any() else size)]))

    def round(self, outcome: Outcome) -> None:
        """Offer what diving by the relaxed σ, and by the size of the weights, leads to."""
        size = np.abs(outcome.warm.w).astype(float)
        wanted = np.flatnonzero(outcome.sigma > 0.0)
        for scores in (outcome.sigma + 1e-3 * size / (size.max(initial=0.0) + 1e-300), size):
            self.dive(wanted[np.argsort(-scores[wanted], kind="stable")])

    def round_sizes(self, size: npt.NDArray[np.floating[Any]], total: float) -> None:
        """Offer what diving by size leads to."""
        wanted = np.flatnonzero(size > 0.0)
        self.dive(wanted[np.argsort(-size[wanted], kind="stable")])

    def dive(self, order: Integers) -> None:
        """Offer the selection that takes the alive atoms in this order as far as the rows allow."""
        states = self.relaxation.propagation.dive(order)
        if states is None:
            return
        sigma = np.zeros(self.run.problem.atoms.count, dtype=bool)
        sigma[self.relaxation.alive[states == INSIDE]] = True
        if not self.supports.was_seen(sigma) and self.run.problem.selection.contains(sigma):
            self.supports.evaluate(sigma)

    def split(self, node: RowsNode, j: int) -> None:
        """Open both children of a node on atom j, with what the rows fix in them."""
        places = self.proof.split(node.place, int(self.relaxation.alive[j]))
        if len(self.run.problem.selection.rows.extra) == 0:
            self.proof.bear(node.place, node.dual, node.bound, self.shown(node.y))
        for value, place in zip((OUTSIDE, INSIDE), places, strict=True):
            states = node.states.copy()
            states[j] = value
            self.enter(replace(node, place=place, states=states, anew=False))

    def narrow(self, alive: Integers) -> None:
        """Go on with the atoms `alive` alone, as an earlier run did."""
        if alive.size < self.relaxation.alive.size:
            self.relaxation = self.relaxation.restricted(np.searchsorted(self.relaxation.alive, alive))

    def enter(self, node: RowsNode) -> None:
        """Keep a node with what the rows fix in it, unless they leave it nothing."""
        after = self.relaxation.propagation(node.states)
        place, states = self.take(node.place, after)
        if after.broken is not None:
            self.refute(place, self.relaxation.propagation.ray(after.broken))
            return
        self.push(replace(node, place=place, states=states))

    def leaf(self, node: Node) -> None:
        """One selection is left: evaluate it, and close the node with its own dual vector."""
        assert isinstance(node, RowsNode)
        problem, pricing = self.run.problem, self.relaxation.pricing
        sigma = np.zeros(problem.atoms.count, dtype=bool)
        sigma[self.relaxation.alive[node.states == INSIDE]] = True
        if not self.run.oracle.contains(sigma):
            low = sigma.astype(float)
            self.refute(node.place, pricing.by_lp(np.zeros(low.size), low, low)[1])
            return
        if is_told := node.bound < self.cutoff:
            only = np.where(node.states == INSIDE, INSIDE, OUTSIDE).astype(np.int8)
            whole, q = self.relaxation.rounded(self.alone(sigma))
            bound = self.relaxation.bound(whole, q, pricing.none, only, math.inf)[0]
            if bound > node.bound:
                self.shut(node.place, self.proof.add_dual(whole, q), pricing.none.y, bound, is_told=True)
                return
        self.shut(node.place, node.dual, node.y, node.bound, is_told=is_told)

    def pop(self, count: int) -> list[Node]:
        """The open nodes of least bound, at most `count`; those beyond the cutoff are closed."""
        nodes: list[Node] = []
        cutoff = self.cutoff
        while self._heap and len(nodes) < count:
            node = self._pop()
            if node.bound >= cutoff or self.has_ties_only(node):
                self.shut(node.place, node.dual, node.y, node.bound)
            else:
                nodes.append(node)
        return nodes

    def finish(self) -> Proof | None:
        """The proof of the bound: open nodes are closed with what they have; None when that was lost."""
        while self._heap:
            node = self._pop()
            self.shut(node.place, node.dual, node.y, node.bound)
        if not self.run.wants_all:
            self.proof.trim(self.run.bound)
        return self.proof if self.n_nodes and not self.lost else None

    def screen(
        self, place: int, dual: int, y: Array, states: States, goes_in: Integers, goes_out: Integers
    ) -> tuple[int, States]:
        """Fix atoms whose other value the dual vector and prices rule out."""
        atoms = np.concatenate([goes_in, goes_out])
        if atoms.size == 0:
            return place, states
        place = self.proof.screen(place, dual, self.shown(y))
        self.done(self.cutoff)
        states = states.copy()
        states[goes_in], states[goes_out] = INSIDE, OUTSIDE
        return place, states

    def take(self, place: int, after: Fixed) -> tuple[int, States]:
        """Fix what propagation fixed: the other sides hold no selection, as the row behind each shows."""
        start = 0
        for cause, group in itertools.groupby(after.rays):
            stop = start + len(list(group))
            atoms = after.atoms[start:stop]
            values = (after.states[atoms] == INSIDE).astype(np.int8)
            place = self.proof.fix(place, self._at(atoms), values, REFUTED, self.relaxation.propagation.ray(cause))
            start = stop
        return place, after.states

    def refute(self, place: int, ray: Multipliers | None) -> None:
        """Close a node that holds no selection, by a Farkas ray; without one there is no certificate."""
        self.lost = self.lost or ray is None
        self.proof.refute(place, ray)

    def shut(self, place: int, dual: int, y: Array, bound: float, *, is_told: bool = False) -> None:
        """Close a node that is done, and keep its bound; `is_told` where no more can be said of it."""
        self.proof.close(place, dual, self.shown(y))
        self.done(bound, is_told=is_told)

    def shown(self, y: Array) -> Multipliers | None:
        """The multipliers as the proof keeps them; None where the rows play no part."""
        if not y.any():
            return None
        if len(self.run.problem.selection.rows.extra) == 0:
            return y
        mended = cancelled(self.run.problem.selection, y)
        self.lost = self.lost or mended is None
        return mended

    def _at(self, j: Integers) -> Integers:
        """Positions of alive atoms among all."""
        return self.relaxation.alive[j]

    def _pop(self) -> RowsNode:
        """The open node of least bound."""
        node = super().take_least()
        assert isinstance(node, RowsNode)
        return node
