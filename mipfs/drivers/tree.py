"""The open nodes of a branch-and-bound over the features, the proof of the closed ones, and their node solver.

A batch of nodes is explored by any threads, each a subtree in compiled code, and merged in order; see
`mipfs.drivers.branch`, whose tree this is.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs.drivers.pieces import Left, Pieces
from mipfs.inner.boolean_node import FREE, INSIDE, OUTSIDE, Outcome, Relaxation, States, Warm
from mipfs.inner.node_solver import NodeSolver
from mipfs.kernels import subtree
from mipfs.kernels.structures import Piece
from mipfs.proof.evidence import empty_proof
from mipfs.proof.proof import Proof
from mipfs.run.heuristics import Supports
from mipfs.run.run import Run
from mipfs.run.swaps import Swaps

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

SHARE = 4.0
"""A node is left once upper − lower is at most this share of its distance to the cutoff: its fate is clear."""
FAR = 0.1
"""Nodes further below the cutoff than this share of it are left only once they rise above their parent's bound: there
the bound is what a limit leaves."""
ROUNDINGS, ROUNDING_NODES = 50, 50
"""The first nodes are all rounded to an incumbent, later ones one in so many."""
LEAF_GAP = 1e-11
"""Relative gap to which a node with one selection is solved before it is closed."""
WHOLE = 1e-6
"""Distance from 0 or 1 up to which a relaxed σ_j counts as integral."""
AHEAD = 0.25
"""Share of the way from a node's bound to the cutoff up to which the subtree below it is explored at once. All the way
takes a tenth off the time of a proof, and leaves half as much again open where a limit strikes (500×100, M = 52)."""
ROUNDED = 0.01
"""Share of the asked gap that rounding dual vectors to fewer bytes may cost."""
POLL_SECONDS = 0.05
"""How often limits and Ctrl-C are looked at while nodes are explored."""
HALF = 0.5
"""Share of the asked gap that screening at the root leaves unused."""
UNIT = 2e7
"""Newton steps times samples and features that make up a unit of work: about a hundredth of a second."""
LARGE = 2_000
"""Samples, and atoms, from which on a root takes seconds: a climb to an incumbent comes before it."""


@dataclass(frozen=True, eq=False)
class Node:
    """An open node: bound, its place in the proof, the dual vector that earned the bound, fixings, a warm start."""

    bound: float
    place: int
    dual: int
    states: States
    warm: Warm


class Tree:
    """The open nodes, the proof of the closed ones, and the node solver that they share.

    Parameters
    ----------
    run : Run
    supports : Supports
    tol : relative gap to which the relaxation of a node without a clear fate is solved

    Attributes
    ----------
    floor, closed_at : float, the least bound of the nodes that are done, and of those that more could be said of
    """

    def __init__(self, run: Run, supports: Supports, tol: float) -> None:
        self.run, self.supports, self.tol = run, supports, tol
        problem, self.stop = run.problem, np.zeros(1, dtype=np.int8)
        lb, ub = problem.selection.sigma_bounds()
        self.proof = empty_proof(problem)
        self.relaxation = self.relaxed(np.flatnonzero(ub > 0.5))
        self.floor, self.closed_at, self.loss = math.inf, math.inf, 0.0
        self.n_nodes = self.steps = self.stalled = self.rescued = self.rounded = 0
        self._order = itertools.count()
        self._heap: list[tuple[float, int, Node]] = []
        self._first = np.where(lb[self.relaxation.alive] > 0.5, INSIDE, FREE).astype(np.int8)

    @property
    def bound(self) -> float:
        """Lower bound on (P): the least over open and closed nodes."""
        return min(self.floor, self._heap[0][0]) if self._heap else self.floor

    @property
    def cutoff(self) -> float:
        """Nodes are closed from here on: just above the asked gap, or above the last support that is wanted."""
        return self.supports.cutoff

    def relaxed(self, alive: Integers) -> Relaxation:
        """The node solver on some of the features."""
        return Relaxation(self.run.problem, alive, self.stop)

    def solver(self) -> NodeSolver:
        """What makes the node solver anew, from the features in play alone."""
        alive = self.relaxation.alive
        return NodeSolver(self.run.problem.restricted(alive), np.arange(alive.size), self.loss)

    def plant(self) -> None:
        """Solve the root, find incumbents, screen, and go on with the features that are left."""
        relaxation = self.relaxation
        outcome = relaxation.solve_root(self._first, self.tol, lambda: self.run.must_stop)
        self.n_nodes, self.steps = 1, outcome.steps
        self.supports.pool.add(relaxation.cut(outcome))
        self.round(outcome)
        self.supports.round(self.supports.pool.slopes[-1])
        self.climb()
        whole, nothing = outcome.whole, np.zeros_like(outcome.whole)
        cutoff = self._root_cutoff
        found = relaxation.bound(whole, outcome.q, self._first, cutoff)
        least = relaxation.bound(nothing, outcome.q, self._first, cutoff)
        if least[0] > found[0]:  # a limit came so early that α = 0 proves more
            whole, found = nothing, least
        dual = self.proof.add_dual(whole, outcome.q)
        bound, goes_in, goes_out = found
        place, states = self.fix(self.proof.root, dual, self._first, goes_in, goes_out, cutoff)
        keep = np.flatnonzero(states != OUTSIDE)
        self.run.counters["root_free"] = int(np.count_nonzero(states == FREE))
        warm = outcome.warm
        if keep.size < states.size:
            self.relaxation = self.relaxed(relaxation.alive[keep])
            states, warm = states[keep], Warm(warm.w[keep], warm.b, warm.rho)
        self.loss = ROUNDED * self.run.options.gap * abs(bound)
        self.relaxation.coarsen(self.loss)
        self.push(Node(bound, place, dual, states, warm))

    def climb(self) -> None:
        """Climb to a good incumbent, for what it lets the root screen; many samples had a climb before the root."""
        n_samples, count = self.run.problem.data.n_samples, self.run.problem.atoms.count
        if n_samples < min(count, LARGE):
            self.supports.search(self.supports.pool)

    def narrow(self, alive: Integers) -> None:
        """Go on with the features `alive` alone, as an earlier run did."""
        self.relaxation = self.relaxed(alive)
        self.relaxation.coarsen(self.loss)

    def open(self) -> list[Node]:
        """The open nodes, those of least bound first."""
        return [node for _, _, node in sorted(self._heap, key=lambda entry: entry[:2])]

    def take_least(self) -> Node:
        """The open node of least bound, which is open no more."""
        return heapq.heappop(self._heap)[2]

    def push(self, node: Node) -> None:
        """Keep an open node."""
        heapq.heappush(self._heap, (node.bound, next(self._order), node))

    def pop(self, count: int) -> list[Node]:
        """The open nodes of least bound, at most `count`; those beyond the cutoff are closed."""
        nodes: list[Node] = []
        cutoff = self.cutoff
        while self._heap and len(nodes) < count:
            node = self.take_least()
            if node.bound >= cutoff or self.has_ties_only(node):
                self.close(node.place, node.dual, node.bound)
            else:
                nodes.append(node)
        return nodes

    def has_ties_only(self, node: Node) -> bool:
        """Whether all that a node holds is counted in a list of near-optimal supports, not listed."""
        if not self.run.wants_all or not node.bound >= self.run.cutoff:
            return False
        alive, M, count = self.relaxation.alive, self.run.problem.M, self.run.problem.atoms.count
        inside, free, sizes = np.zeros(count, dtype=bool), np.zeros(count, dtype=bool), np.zeros(count)
        inside[alive[node.states == INSIDE]] = True
        if M is None or np.count_nonzero(inside) < M:
            free[alive[node.states == FREE]] = True
        sizes[alive] = node.warm.w
        return self.supports.has_ties_only(inside, free, node.bound, sizes)

    def explore(self, nodes: Sequence[Node], duals: Sequence[Array], cutoff: float) -> list[Any]:
        """Explore the subtrees below some nodes, with the dual vectors that earned their bounds (any thread)."""
        told = [
            (node.states, node.warm, alpha, *self.asked(node, cutoff)) for node, alpha in zip(nodes, duals, strict=True)
        ]
        return list(self.relaxation.explore_all(told))

    def asked(self, node: Node, cutoff: float) -> tuple[Any, ...]:
        """What the node solver is told beside the node's states, warm start and dual vector."""
        share, known = self.until(node, cutoff)
        return node.bound, cutoff, self.level(node, cutoff), self.tol, share, math.isfinite(known)

    def until(self, node: Node, cutoff: float) -> tuple[float, float]:
        """How far its relaxation is solved: a share of its distance to the cutoff, and the bound that it must lift."""
        if not math.isfinite(cutoff):
            return 0.0, -math.inf
        return SHARE, node.bound if cutoff - node.bound > FAR * abs(cutoff) else -math.inf

    def level(self, node: Node, cutoff: float) -> float:
        """Its subtree is explored up to this bound: a share of the way to the cutoff."""
        return node.bound + AHEAD * (cutoff - node.bound) if math.isfinite(cutoff) else math.inf

    def duals(self, nodes: list[Node]) -> list[Array]:
        """The dual vectors that the nodes start from; siblings, which come together, share theirs."""
        read: dict[int, Array] = {}
        for index in {node.dual for node in nodes}:
            whole, q = self.proof.dual(index)
            read[index] = np.ldexp(whole.astype(float), -q)
        return [read[node.dual] for node in nodes]

    def merge(self, found: Iterable[tuple[Node, Any]]) -> None:
        """Take over, in order, what explorations left: pieces of the proof, open nodes, offers."""
        whole = list(found)
        if not whole:
            return
        pieces = [piece for _, piece in whole]
        joined = Pieces(pieces, [node.place for node, _ in whole], [node.dual for node, _ in whole])
        joined.enter(self.proof, self.relaxation.alive)
        self.take_pieces(pieces, joined, lambda t, left: Node(*left.told))

    def take_pieces(self, pieces: Sequence[Piece], joined: Pieces, made: Callable[[int, Left], Node]) -> None:
        """Count what explorations did, keep what they left open, and round to incumbents.

        Parameters
        ----------
        pieces, joined : the same, one by one and together
        made : the open node of a piece, by the piece's position
        """
        for t, (piece, all_left) in enumerate(zip(pieces, joined.left(), strict=True)):
            total = joined.totals[t]
            self.n_nodes += int(total["solved"])
            self.steps += int(total["steps"])
            self.stalled += int(total["stalled"])
            self.done(float(total["floor"]))
            for left in all_left:
                node = made(t, left)
                if left.why == subtree.LEAF:
                    self.leaf(node)
                elif left.why == subtree.STUCK:
                    self.rescue(node)
                else:
                    self.push(node)
            often = self.n_nodes <= ROUNDINGS or self.n_nodes // ROUNDING_NODES > self.rounded
            for offer in range(0 if often and piece.sums[0] >= 0.0 else 1, int(total["offers"])):
                self.round_sizes(piece.offers[offer], piece.sums[offer])
                self.rounded = self.n_nodes // ROUNDING_NODES

    def rescue(self, node: Node) -> None:
        """Solve a node on which the Newton steps stalled by the interior point; it goes on with what that found."""
        self.rescued += 1
        outcome = self.relaxation.solve_root(node.states, self.tol, lambda: self.run.must_stop)
        bound, goes_in, goes_out = self.relaxation.bound(outcome.whole, outcome.q, node.states, self.cutoff)
        dual, place, states = node.dual, node.place, node.states
        if bound > node.bound or goes_in.size or goes_out.size:
            fresh = self.proof.add_dual(outcome.whole, outcome.q)
            dual = fresh if bound > node.bound else dual
            place, states = self.fix(place, fresh, states, goes_in, goes_out)
        warm = Warm(outcome.warm.w, outcome.warm.b, -outcome.warm.rho)
        self.push(Node(max(bound, node.bound), place, dual, states, warm))

    def leaf(self, node: Node) -> None:
        """One selection is left: evaluate it, and close the node with its own dual vector."""
        sigma = np.zeros(self.run.problem.atoms.count, dtype=bool)
        sigma[self.relaxation.alive[node.states == INSIDE]] = True
        if is_told := node.bound < self.cutoff:
            only = np.where(node.states == INSIDE, INSIDE, OUTSIDE).astype(np.int8)
            whole, q = self.relaxation.rounded(self.alone(sigma))
            bound = self.relaxation.bound(whole, q, only, math.inf)[0]
            if bound > node.bound:
                node = Node(bound, node.place, self.proof.add_dual(whole, q), only, node.warm)
        self.close(node.place, node.dual, node.bound, is_told=is_told)

    def alone(self, sigma: npt.NDArray[np.bool_]) -> Array:
        """The dual vector of a selection of S, near enough to close its leaf; its classifier is offered."""
        solved = self.supports.subproblem.solve(sigma.astype(float), LEAF_GAP)
        self.supports.offer(sigma, solved)
        return solved.svm.alpha

    def round(self, outcome: Outcome) -> None:
        """Offer the features of largest |w|, as many as the relaxed σ add up to."""
        self.round_sizes(np.abs(outcome.warm.w) + 1e-3 * outcome.sigma, float(outcome.sigma.sum()))

    def round_sizes(self, size: npt.NDArray[np.floating[Any]], total: float) -> None:
        """Offer the features of largest size, as many as `total` says."""
        count = max(1, round(total))
        largest = np.argsort(-size, kind="stable")[:count]
        scores = np.zeros(self.run.problem.atoms.count)
        scores[self.relaxation.alive[largest]] = np.minimum(size[largest], 1e30)
        self.supports.round(scores)

    @property
    def work(self) -> float:
        """Newton steps so far, times samples and features, in units of `UNIT`."""
        return self.steps * self.run.problem.data.n_samples * self.relaxation.alive.size / UNIT

    def searching(self) -> Iterator[None]:
        """Climb from where the open node of least bound points to, then from the incumbent shaken; SVM after SVM."""
        run, swaps = self.run, Swaps(self.supports, self.supports.pool)
        if self._heap:
            node = self._heap[0][2]
            scores = np.zeros(run.problem.atoms.count)
            scores[self.relaxation.alive] = np.abs(node.warm.w) + 1e30 * (node.states == INSIDE)
            scores[self.relaxation.alive[node.states == OUTSIDE]] = 0.0
            sigma = run.oracle.repair(scores)
            if sigma is not None:
                yield from swaps.climbing(sigma)
        yield from swaps.shaking(np.random.default_rng(0))

    @property
    def _root_cutoff(self) -> float:
        """What screens at the root: where that leaves little, it is the bound, and better than the asked gap allows."""
        cutoff, objective = self.cutoff, self.run.objective
        return cutoff + HALF * (objective - cutoff) if cutoff < objective < math.inf else cutoff

    def fix(
        self,
        place: int,
        dual: int,
        states: States,
        goes_in: Integers,
        goes_out: Integers,
        cutoff: float | None = None,
    ) -> tuple[int, States]:
        """Fix features whose other value the dual vector rules out at a cutoff, by default the tree's."""
        features = np.concatenate([goes_in, goes_out])
        if features.size == 0:
            return place, states
        place = self.proof.screen(place, dual)
        self.done(self.cutoff if cutoff is None else cutoff)
        states = states.copy()
        states[goes_in], states[goes_out] = INSIDE, OUTSIDE
        return place, states

    @property
    def n_open(self) -> int:
        """Number of open nodes."""
        return len(self._heap)

    def result(self, future: Future[list[Any]]) -> list[Any]:
        """Wait for some explorations; they are told to give up when the run must stop."""
        while not future.done():
            wait([future], timeout=POLL_SECONDS)
            if self.run.must_stop:
                self.stop[0] = 1
        return future.result()

    def close(self, place: int, dual: int, bound: float, *, is_told: bool = False) -> None:
        """Keep the bound of a node that is done; `is_told` where no more can be said of it."""
        self.proof.close(place, dual)
        self.done(bound, is_told=is_told)

    def done(self, bound: float, *, is_told: bool = False) -> None:
        """Keep the bound of what is done."""
        self.floor = min(self.floor, bound)
        if not is_told:
            self.closed_at = min(self.closed_at, bound)

    def finish(self) -> Proof | None:
        """The proof of the bound: open nodes are closed with the dual vectors that they have."""
        for _, _, node in self._heap:
            self.proof.close(node.place, node.dual)
        if not self.run.wants_all:  # of a list of near-optimal supports all leaves count
            self.proof.trim(self.run.bound)
        return self.proof if self.n_nodes else None
