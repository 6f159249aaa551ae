"""Branch-and-bound on the selection, with the Boolean relaxation at every node.

    take the open nodes of least bound; solve their relaxations (each earns a bound from a feasible dual vector)
    in order: close the nodes whose bound reaches the cutoff; fix what screening fixes in the others, round them to
    incumbents, and split them on the fractional feature of largest |w_j|

Nodes are taken in batches of a fixed size, solved by as many threads as there are, and merged in order, so the tree
and the answer do not depend on the number of threads. Selections with rows, groups and trees, and structural losses
have no closed form for the inner minimisation: there the nodes are LPs over shared cuts (`mipfs.drivers.gbd`).
"""

from __future__ import annotations

import heapq
import itertools
import math
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from mipfs.certificate.proof import Proof
from mipfs.drivers import gbd
from mipfs.drivers.boolean_node import FREE, INSIDE, OUTSIDE, Outcome, Relaxation, States, Warm, carries
from mipfs.drivers.carry import taken_over
from mipfs.drivers.cuts import CutPool
from mipfs.drivers.evidence import empty_proof
from mipfs.drivers.heuristics import Supports
from mipfs.drivers.run import Run
from mipfs.instance import Instance

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

CAPABILITY = gbd.CAPABILITY
BATCH = 8
"""Nodes solved at a time; a fixed number keeps the tree independent of the threads."""
SHARE = 4.0
"""A node is left once upper − lower is at most this share of its distance to the cutoff: its fate is clear."""
ROUNDINGS, ROUNDING_NODES = 50, 20
"""The first nodes are all rounded to an incumbent, later ones one in so many."""
SEARCH_AFTER = 20
"""Nodes from which on a swap search around the incumbent pays."""
LEAF_GAP = 1e-11
"""Relative gap to which a node with one selection is solved before it is closed."""
WHOLE = 1e-6
"""Distance from 0 or 1 up to which a relaxed σ_j counts as integral."""
SLACK = 1e-11
"""Nodes are closed this much (relative) above the asked cutoff, so that a checker's own rounding fits below it."""


@dataclass(frozen=True)
class Options:
    """Options of `branch`.

    Parameters
    ----------
    gap : float in [0, 1), default 1e-4
        Relative gap at which the incumbent counts as optimal.
    time_limit : float, optional, in seconds
    iteration_limit : int, optional, number of nodes
    seed : int
        Unused: nothing in this driver is random.
    start : tuple of str, optional
        A support to begin from; it must satisfy the rows.
    validation : Instance, optional
        Stop when the error on it has not improved for `patience` classifiers.
    patience : int, default 20
    pool : CutPool, optional
        Cuts of an earlier run (`Result.pool`) on the same data, atoms, loss and bias; C, M and rows may differ. It is
        not changed: where one is given, also an empty ``CutPool(problem)``, the result has all cuts at hand.
    threads : int, optional
        By default all cores that the process may use. The tree and the answer do not depend on it.
    pool_gap : float >= 0, optional
        Find all supports whose objective is within this relative gap of the optimum.
    pool_size : int >= 1, optional
        Find the best so many supports (with `pool_gap`: the best of those).
    """

    gap: float = 1e-4
    time_limit: float | None = None
    iteration_limit: int | None = None
    seed: int = 0
    start: tuple[str, ...] | None = None
    validation: Instance | None = None
    patience: int = 20
    pool: CutPool | None = field(default=None, repr=False)
    threads: int | None = None
    pool_gap: float | None = None
    pool_size: int | None = None


@dataclass(frozen=True, eq=False)
class Node:
    """An open node: bound, its place in the proof, the dual vector that earned the bound, fixings, a warm start.

    `tight` asks for a full solve: the relaxation was integral, and its fate not clear.
    """

    bound: float
    place: int
    dual: int
    states: States
    warm: Warm
    tight: bool = False


class Tree:
    """The open nodes, the proof of the closed ones, and the node solver that they share.

    Parameters
    ----------
    run : Run
    supports : Supports
    tol : relative gap to which the relaxation of a node without a clear fate is solved
    """

    def __init__(self, run: Run, supports: Supports, tol: float) -> None:
        self.run, self.supports, self.tol = run, supports, tol
        problem = run.problem
        lb, ub = problem.selection.sigma_bounds()
        self.proof = empty_proof(problem)
        self.relaxation = Relaxation(problem, np.flatnonzero(ub > 0.5))
        self.floor = math.inf
        self.n_nodes = self.steps = 0
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
        run = self.run
        if run.incumbent is None:
            return math.inf
        closed = min(run.objective, run.cutoff + SLACK * abs(run.objective))
        return max(closed, self.supports.cutoff)

    def plant(self) -> None:
        """Solve the root, find incumbents, screen, and go on with the features that are left."""
        relaxation, n_samples = self.relaxation, self.run.problem.data.n_samples
        outcome = relaxation.solve_cold(self._first, self.tol, lambda: self.run.must_stop)
        self.n_nodes, self.steps = 1, outcome.steps
        self.supports.pool.add(relaxation.cut(outcome))
        self.round(outcome)
        self.supports.round(self.supports.pool.slopes[-1])
        if self.run.problem.atoms.count > n_samples:  # screening pays for a good incumbent, and solves are cheap
            self.supports.search(self.supports.pool)
        dual = self.proof.add_dual(outcome.whole, outcome.q)
        bound, goes_in, goes_out = relaxation.bound(outcome.whole, outcome.q, self._first, self.cutoff)
        place, states = self.fix(self.proof.root, dual, self._first, goes_in, goes_out)
        keep = np.flatnonzero(states != OUTSIDE)
        self.run.counters["root_free"] = int(np.count_nonzero(states == FREE))
        warm = outcome.warm
        if keep.size < states.size:
            self.relaxation = Relaxation(self.run.problem, relaxation.alive[keep])
            states, warm = states[keep], Warm(warm.w[keep], warm.b, warm.rho)
        self.push(Node(bound, place, dual, states, warm))

    def push(self, node: Node) -> None:
        """Keep an open node."""
        heapq.heappush(self._heap, (node.bound, next(self._order), node))

    def pop(self, count: int) -> list[Node]:
        """The open nodes of least bound, at most `count`; those beyond the cutoff are closed."""
        nodes: list[Node] = []
        cutoff = self.cutoff
        while self._heap and len(nodes) < count:
            node = heapq.heappop(self._heap)[2]
            if node.bound >= cutoff:
                self.close(node.place, node.dual, node.bound)
            else:
                nodes.append(node)
        return nodes

    def solve(self, node: Node, alpha: Array, cutoff: float) -> Outcome:
        """Solve a node's relaxation from its dual vector (any thread)."""
        tol, share = (1e-10, 0.0) if node.tight else (self.tol, SHARE)
        if not math.isfinite(cutoff):
            share = 0.0
        return self.relaxation.solve(node.states, node.warm, alpha, cutoff, tol, share, lambda: self.run.must_stop)

    def duals(self, nodes: list[Node]) -> list[Array]:
        """The dual vectors that the nodes start from; siblings, which come together, share theirs."""
        read: dict[int, Array] = {}
        for index in {node.dual for node in nodes}:
            whole, q = self.proof.dual(index)
            read[index] = np.ldexp(whole.astype(float), -q)
        return [read[node.dual] for node in nodes]

    def merge(self, node: Node, outcome: Outcome) -> None:
        """Close the node, or fix, round and split it."""
        self.n_nodes += 1
        self.steps += outcome.steps
        better = outcome.bound > node.bound
        dual, bound = node.dual, max(node.bound, outcome.bound)
        if better or outcome.fixed_in.size or outcome.fixed_out.size:
            fresh = self.proof.add_dual(outcome.whole, outcome.q)
            dual = fresh if better else dual
        if bound >= self.cutoff:
            self.close(node.place, dual, bound)
            return
        place, states = node.place, node.states
        if outcome.fixed_in.size or outcome.fixed_out.size:
            place, states = self.fix(place, fresh, states, outcome.fixed_in, outcome.fixed_out)
        free = np.flatnonzero(states == FREE)
        if self.run.problem.M is not None and np.count_nonzero(states == INSIDE) >= self.run.problem.M:
            free = free[:0]
        if free.size == 0:
            self.leaf(Node(bound, place, dual, states, outcome.warm))
            return
        sigma = outcome.sigma[free]
        undecided = np.minimum(sigma, 1.0 - sigma) > WHOLE
        if not undecided.any() or self.n_nodes <= ROUNDINGS or self.n_nodes % ROUNDING_NODES == 0:
            self.round(outcome)
            if bound >= self.cutoff:
                self.close(place, dual, bound)
                return
        if not undecided.any() and not node.tight:
            self.push(Node(bound, place, dual, states, outcome.warm, tight=True))
            return
        size = np.abs(outcome.warm.w[free])
        j = int(free[np.argmax(np.where(undecided, size + 1e-300, -1.0) if undecided.any() else size)])
        for value, child in zip((OUTSIDE, INSIDE), self.proof.split(place, int(self.relaxation.alive[j])), strict=True):
            fixed = states.copy()
            fixed[j] = value
            self.push(Node(bound, child, dual, fixed, outcome.warm))

    def leaf(self, node: Node) -> None:
        """One selection is left: evaluate it, and close the node with its own dual vector."""
        sigma = np.zeros(self.run.problem.atoms.count, dtype=bool)
        sigma[self.relaxation.alive[node.states == INSIDE]] = True
        self.supports.evaluate(sigma)
        if node.bound < self.cutoff:
            only = np.where(node.states == INSIDE, INSIDE, OUTSIDE).astype(np.int8)
            svm = self.supports.subproblem.solve(sigma.astype(float), LEAF_GAP).svm
            whole, q = self.relaxation.rounded(svm.alpha)
            bound = self.relaxation.bound(whole, q, only, math.inf)[0]
            if bound > node.bound:
                node = Node(bound, node.place, self.proof.add_dual(whole, q), only, node.warm)
        self.close(node.place, node.dual, node.bound)

    def round(self, outcome: Outcome) -> None:
        """Offer the features of largest |w|, as many as the relaxed σ add up to."""
        size = np.abs(outcome.warm.w).astype(float) + 1e-3 * outcome.sigma
        count = max(1, round(float(outcome.sigma.sum())))
        largest = np.argsort(-size, kind="stable")[:count]
        scores = np.zeros(self.run.problem.atoms.count)
        scores[self.relaxation.alive[largest]] = size[largest]
        self.supports.round(scores)

    def fix(self, place: int, dual: int, states: States, goes_in: Integers, goes_out: Integers) -> tuple[int, States]:
        """Fix features whose other value the dual vector rules out."""
        features = np.concatenate([goes_in, goes_out])
        if features.size == 0:
            return place, states
        values = np.concatenate([np.ones(goes_in.size, np.int8), np.zeros(goes_out.size, np.int8)])
        place = self.proof.fix(place, self.relaxation.alive[features], values, dual)
        self.floor = min(self.floor, self.cutoff)
        states = states.copy()
        states[goes_in], states[goes_out] = INSIDE, OUTSIDE
        return place, states

    def close(self, place: int, dual: int, bound: float) -> None:
        """Keep the bound of a node that is done."""
        self.proof.close(place, dual)
        self.floor = min(self.floor, bound)

    def finish(self) -> Proof | None:
        """The proof of the bound: open nodes are closed with the dual vectors that they have."""
        for _, _, node in self._heap:
            self.proof.close(node.place, node.dual)
        return self.proof if self.n_nodes else None


def cores() -> int:
    """Cores that this process may use; where the system does not say, all there are."""
    usable = getattr(os, "sched_getaffinity", None)
    return (os.cpu_count() or 1) if usable is None else len(usable(0))


def run(run: Run) -> None:
    """Solve the problem of `run`; what is found is left in it."""
    problem, options = run.problem, run.options
    if not carries(problem):
        gbd.run(run)
        return
    begun = gbd.begin(run)
    if begun is None:
        return
    supports = begun[0]
    if options.pool is not None:
        supports.pool = taken_over(options.pool, problem)
    tree = Tree(run, supports, tol=max(1e-10, 0.02 * options.gap))
    tree.plant()
    searched = False
    with ThreadPoolExecutor(options.threads or cores()) as threads:
        while run.stop() is None:
            nodes = tree.pop(BATCH)
            run.closed = not nodes
            cutoffs = itertools.repeat(tree.cutoff, len(nodes))
            outcomes = list(threads.map(tree.solve, nodes, tree.duals(nodes), cutoffs))
            for node, outcome in zip(nodes, outcomes, strict=True):
                tree.merge(node, outcome)
            if not searched and tree.n_nodes > SEARCH_AFTER:
                supports.search(supports.pool)
                searched = True
            run.iteration = tree.n_nodes
            run.raise_bound(min(tree.bound, run.objective))
            totals = {"subproblems": supports.subproblem.count, "cuts": len(supports.pool)}
            run.count(nodes=tree.n_nodes, newton_steps=tree.steps, **totals)
            run.record()
    run.outcome.proof, run.outcome.pool = tree.finish(), supports.pool
    if run.wants_all:
        run.outcome.found = supports.found
