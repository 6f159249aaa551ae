"""Nodes of `branch` with one or two free places, closed by enumeration where that is cheaper than relaxing.

A node with one free place has one completion for every free column: dual vectors rule them out one after the other
(`mipfs.kernels.completions`), and each is a place of the proof that is screened, since screening fixes to 0 whatever
its dual vector lifts to the cutoff. What no dual vector rules out is split off and looked at as any other leaf: it
improves on the incumbent, belongs to the list that was asked for, or breaks a row.

A node with two free places is split on one column after the other, the most promising first: where it is in, one place
is left. Columns are taken a batch at a time, whose size depends on the settings alone, by as many threads as there are,
and merged in order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace

import numpy as np

from mipfs.drivers.tree import Tree
from mipfs.drivers.tree_proof import Node
from mipfs.inner.boolean_node import FREE, INSIDE, OUTSIDE, States, Warm
from mipfs.inner.completions import ABOVE, STOPPED, Completions, Found, are_few, first_places
from mipfs.inner.propagation import Fixed
from mipfs.kernels.subtree import GIVEN_BACK
from mipfs.kernels.units import OpenNodes
from mipfs.plumbing.arrays import Arrays, Integers, changed
from mipfs.plumbing.machine import at_work
from mipfs.proof.duals import DualStore
from mipfs.proof.proof import OPEN, SCREENED
from mipfs.settings import CompletionSettings


@dataclass(eq=False)
class Chain:
    """A node whose completions are being ruled out.

    Attributes
    ----------
    place : of the proof, open
    states : (k,) of the alive columns; those ruled out are outside
    empty : the dual vector that rules out what is inside alone, −1 for none
    cutoff : what is ruled out is proven to be worth this at least
    leaves : completions that were looked at one by one
    """

    place: int
    states: States
    empty: int
    cutoff: float
    leaves: int = 0


class Anchors:
    """Closes the nodes of a tree by enumeration.

    Parameters
    ----------
    tree : Tree

    Attributes
    ----------
    closed, solved : int, selections whose completions were enumerated, and the SVMs of that
    """

    def __init__(self, tree: Tree) -> None:
        run = tree.run
        self.tree = tree
        self.settings: CompletionSettings = run.settings.completions
        self.is_on = run.options.nodes == "newton" and are_few(run.problem, self.settings)
        self._first = first_places(run.problem)
        self.closed = self.solved = 0
        self._threads = at_work(run.options.threads)
        self._made: Completions | None = None

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
        warm = Warm(np.zeros(states.size, dtype=np.float32), 0.0, 0.5)
        tree.enter(Node(bound, place, tree.proof.add_dual(whole, q), states, warm, y=none.y))

    def arrays(self) -> Arrays:
        """What was counted."""
        return {"anchors_totals": np.array([self.closed, self.solved])}

    def take_up(self, kept: Arrays) -> None:
        """Go on counting where `arrays` says."""
        self.closed, self.solved = (int(one) for one in kept["anchors_totals"].tolist())

    @property
    def completions(self) -> Completions:
        """Of the columns that are alive now."""
        alive = self.tree.relaxation.alive
        if self._made is None or self._made.alive is not alive:
            self._made = Completions(self.tree.run.problem, alive, self.tree.stop, self.settings)
        return self._made

    def takes(self, node: Node) -> bool:
        """Whether a node is enumerated: by its free places, and how many selections it holds."""
        if not self.is_on or node.why == GIVEN_BACK:
            return False
        places, free = self._places(node), np.count_nonzero(node.states == FREE)
        is_small = self._first == 2 or 0.5 * free * (free - 1) <= self.settings.pairs
        return bool(free > 0 and (places == 1 or (places == 2 and is_small)))

    def enumerated(self, nodes: OpenNodes) -> OpenNodes:
        """Close the nodes that are enumerated, or a part of each, which is opened again; returns the others."""
        if not self.is_on or not nodes.heads.size:
            return nodes
        each = [self.tree.node(nodes, at) for at in range(nodes.heads.size)]
        takes = np.array([self.takes(node) for node in each])
        if takes.any():
            self._close([each[at] for at in np.flatnonzero(takes).tolist()])
        return nodes._replace(heads=nodes.heads[~takes])

    def _close(self, nodes: Sequence[Node]) -> None:
        """Close nodes with one free place; of those with two, close a batch of columns, and open them again."""
        with ThreadPoolExecutor(self._threads) as pool:
            for node in nodes:
                if self._places(node) == 1:
                    self._one_place(node, pool)
                else:
                    self._two_places(node, pool)

    def _one_place(self, node: Node, pool: ThreadPoolExecutor) -> None:
        """Close a node with one free place."""
        cutoff = self.tree.cutoff
        self._finish(node, self._round(node.states, cutoff, pool), cutoff, pool)

    def _round(self, states: States, cutoff: float, pool: ThreadPoolExecutor) -> list[Found]:
        """Rule out completions of what is inside, the candidates shared among the threads."""
        inside, free = np.flatnonzero(states == INSIDE), np.flatnonzero(states == FREE)
        count = max(1, -(-free.size // self.settings.part))
        jobs = [pool.submit(self.completions.of, inside, free[k::count], cutoff) for k in range(count)]
        self._wait(jobs)
        return [job.result() for job in jobs]

    def _two_places(self, node: Node, pool: ThreadPoolExecutor) -> None:
        """Split a node with two free places on the next columns, and close it where each of them is in."""
        tree = self.tree
        propagation = tree.relaxation.propagation
        opened = self._ordered(node)
        if opened is None:
            return
        node, order = opened
        chosen = order[: self.settings.anchors].tolist()
        states, begun, jobs = [node.states], list[Fixed](), list[Future[Found]]()
        cutoff = tree.cutoff
        for j in chosen:
            begun.append(after := propagation(changed(states[-1], j, INSIDE)))
            states.append(changed(states[-1], j, OUTSIDE))
            inside, free = np.flatnonzero(after.states == INSIDE), np.flatnonzero(after.states == FREE)
            jobs.append(pool.submit(self.completions.of, inside, free, cutoff))
        self._wait(jobs)
        place, at = node.place, 0
        for j, after, job in zip(chosen, begun, jobs, strict=True):
            found = job.result()
            if found.why == STOPPED:
                break
            place, inside_place = tree.proof.split(place, int(tree.relaxation.alive[j]))
            below = replace(node, place=tree.take(inside_place, after)[0], states=after.states)
            at += 1
            if after.broken is not None:
                tree.refute(below.place, propagation.ray(after.broken))
            elif self._places(below) == 1:
                self._finish(below, [found], cutoff, pool)
            else:
                tree.push(below)
        self._go_on(replace(node, place=place, states=states[at]))

    def _places(self, node: Node) -> int:
        """The free places of a node."""
        M = self.tree.run.problem.M
        assert M is not None
        return M - int(np.count_nonzero(node.states == INSIDE))

    def _go_on(self, node: Node) -> None:
        """Open again what is left of a node with two free places."""
        if np.any(node.states == FREE):
            self.tree.enter(node)
        else:
            self.tree.leaf(node)

    def _ordered(self, node: Node) -> tuple[Node, Integers] | None:
        """A node with what the SVM on its selection fixes, and its free columns by promise; None where that ends it."""
        tree = self.tree
        relaxation = tree.relaxation
        sigma = np.zeros(tree.run.problem.atoms.count)
        sigma[relaxation.alive[node.states == INSIDE]] = 1.0
        solved = tree.supports.subproblem.solve(sigma, self.settings.tol)
        whole, q = relaxation.rounded(solved.svm.alpha)
        cutoff = tree.cutoff
        none = relaxation.pricing.none
        bound, goes_in, goes_out = relaxation.bound(whole, q, none, node.states, cutoff)
        if bound > node.bound or goes_in.size or goes_out.size:
            dual = tree.proof.add_dual(whole, q)
            node = replace(node, bound=bound, dual=dual, y=none.y) if bound > node.bound else node
            if bound >= cutoff:
                tree.close(node, bound)
                return None
            place, states = tree.screen(node.place, dual, none.y, node.states, goes_in, goes_out, cutoff)
            if np.any(states[goes_in] != node.states[goes_in]):
                tree.enter(replace(node, place=place, states=states))
                return None
            node = replace(node, place=place, states=states)
        free = np.flatnonzero(node.states == FREE)
        if not free.size:
            tree.leaf(node)
            return None
        _, s = relaxation.scores(whole, q)
        gain = 0.5 * s[free] - relaxation.penalty[free]
        return node, free[np.argsort(-gain, kind="stable")]

    def _wait(self, jobs: Sequence[Future[Found]]) -> None:
        """Wait for jobs, and tell them when the run must stop."""
        tree = self.tree
        while wait(jobs, timeout=tree.settings.poll_seconds).not_done:
            if tree.run.must_stop:
                tree.stop[0] = 1

    def _finish(self, node: Node, found: Sequence[Found], cutoff: float, pool: ThreadPoolExecutor) -> None:
        """Enter what ruled out completions of a node into the proof, and go on until all are."""
        tree = self.tree
        self.closed += 1
        tree.n_nodes += 1
        chain = Chain(node.place, node.states.copy(), -1, cutoff)
        while True:
            chain.states[chain.states == FREE] = OUTSIDE
            for one in found:
                chain.states[one.left] = FREE
            for one in found:
                self._enter(chain, one)
            for one in found:
                if one.why == ABOVE and chain.leaves <= self.settings.leaves:
                    self._apart(node, chain, int(one.left[0]))
            if not np.any(chain.states == FREE):
                break
            given_back = chain.leaves > self.settings.leaves
            if given_back or tree.stop[0] or tree.run.must_stop:
                why = GIVEN_BACK if given_back else node.why
                tree.push(replace(node, place=chain.place, states=chain.states, why=why))
                return
            chain.cutoff = tree.cutoff
            found = self._round(chain.states, chain.cutoff, pool)
        self._end(node, chain)

    def _end(self, node: Node, chain: Chain) -> None:
        """Close a node of which what is inside alone is left."""
        if chain.empty >= 0:
            self.tree.proof.close(chain.place, chain.empty)
            self.tree.done(chain.cutoff)
        else:
            self.tree.leaf(replace(node, place=chain.place, states=chain.states))

    def _apart(self, node: Node, chain: Chain, j: int) -> None:
        """Split off a completion that no dual vector rules out, and evaluate it."""
        tree = self.tree
        out, inside = tree.proof.split(chain.place, int(tree.relaxation.alive[j]))
        states = np.where(chain.states == FREE, OUTSIDE, chain.states).astype(np.int8)
        states[j] = INSIDE
        tree.leaf(replace(node, bound=-np.inf, place=inside, states=states))
        chain.states[j] = OUTSIDE
        chain.place = out
        chain.leaves += 1

    def _enter(self, chain: Chain, found: Found) -> None:
        """Put dual vectors into the proof, each as a place that is screened."""
        tree = self.tree
        self.solved += found.solved
        tree.steps += found.steps
        count = found.count
        duals = tree.proof.duals
        assert isinstance(duals, DualStore)
        if not count:
            return
        first = duals.extend(*found.duals)
        feature = np.append(np.full(count, SCREENED), -1)
        children = np.full((count + 1, 2), -1)
        children[:count, 0] = np.arange(1, count + 1)
        dual = np.append(first + np.arange(count), OPEN)
        begun = tree.proof.attach(chain.place, feature, children, dual, np.full(count + 1, -np.inf))
        chain.place = begun + count
        if found.empty >= 0:
            chain.empty = first + found.empty
        tree.done(chain.cutoff)
