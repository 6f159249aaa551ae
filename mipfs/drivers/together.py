"""One tree for all values of a row's end: what a frontier searches before its points, which differ in that alone.

    a node is one for every value that it is open at, each with its own fixings, incumbent and proof
    relax a node at one of its values; the dual vector bounds it at every other one, too, once the row's multiplier is
    the best there: close it where a bound reaches the cutoff, fix what is fixed there, split the rest for all of them

Neighbours share most of what they need: german (M = 10, C = 1) takes 379 relaxations for twelve budgets, and 1,939 for
one after the other. A value that the budget of nodes leaves open is searched like any other problem, from the incumbent
found here. Nodes are relaxed level by level, all those of one value in one compiled call.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs.drivers.pieces import ProofPieces
from mipfs.drivers.replanted import RHO, BoundedNodes
from mipfs.drivers.tree_proof import TreeProof
from mipfs.drivers.waiting import packed_all, unpack_open_node
from mipfs.inner.boolean_node import FREE, INSIDE, OUTSIDE, States, WarmStart
from mipfs.inner.old_duals import scores_all
from mipfs.inner.rows_node import RowsRelaxation, choose_relaxation
from mipfs.inner.subproblem import SolvedSubproblem, Subproblem
from mipfs.kernels.bound import gains, rounded_down
from mipfs.kernels.structures import LIMITS
from mipfs.kernels.subtree import LEAF, OPEN
from mipfs.kernels.units import OPEN_NODE, ExploredPieces, FirstDuals, OpenNodes
from mipfs.plumbing.arrays import Array, Integers, Mask, mask_of, replace_at
from mipfs.problem import Problem
from mipfs.proof.duals import DualStore
from mipfs.proof.evidence import empty_proof
from mipfs.run.run import Run
from mipfs.settings import BranchSettings

CARRIED = frozenset({"gap", "time_limit", "memory_limit", "certificate", "threads", "seed", "settings"})
"""Options that it knows of."""
RELAXED_BY = "kernels", "batch"


@dataclass(eq=False)
class NodeAtValue:
    """A node at one of the values: its place in that value's proof, what is fixed there, and what bounds it."""

    value: int
    place: int
    states: States
    bound: float = -math.inf
    dual: int = 0
    y: float = 0.0


@dataclass(eq=False)
class SharedNode:
    """A node where it is open, from the tightest value on, and where its relaxation begins.

    at, atom : the value that it was relaxed at last, and what that would split; −1 for none
    """

    sides: list[NodeAtValue]
    warm: WarmStart
    at: int = -1
    atom: int = -1

    def side(self, value: int) -> NodeAtValue | None:
        """The node at a value, if it is open there."""
        return next((side for side in self.sides if side.value == value), None)


class ValueTree(TreeProof):
    """The proof at one value, with the dual vectors of all.

    Parameters
    ----------
    run : Run, of the problem with this value, which gets the incumbents
    relaxation : RowsRelaxation, with the rows of that problem
    duals : DualStore
    """

    def __init__(self, run: Run, relaxation: RowsRelaxation, duals: DualStore) -> None:
        self.relaxation = relaxation
        super().__init__(run)
        self.proof.duals = duals
        self.is_open = False
        self.n_nodes = self.steps = 0
        self._reached = math.inf, run.cutoff

    @property
    def cutoff(self) -> float:
        """Nodes are closed from here on: it is asked for often, and moves with the incumbent alone."""
        if self._reached[0] != self.run.objective:
            self._reached = self.run.objective, self.run.cutoff
        return self._reached[1]


class SharedTree:
    """The search at all values.

    Parameters
    ----------
    problems : problems that differ in one end of their only row, from the tightest on
    sign : float, 1 where that is an upper end, −1 for a lower one
    """

    def __init__(self, problems: Sequence[Problem], sign: float) -> None:
        self.problems, self.sign, self.last = problems, sign, problems[-1]
        self.ends = np.array([self._end(one) for one in problems])
        self.trees: list[ValueTree] = []
        self._last_run: Run | None = None

    def _end(self, problem: Problem) -> float:
        """The end of the row, of "at most"."""
        rows = problem.selection.rows
        return float(rows.high[0] if self.sign > 0.0 else -rows.low[0])

    def settle(self, run: Run) -> bool:
        """Whether the problem of a run is solved by what is shared; the first one that asks has it searched."""
        value = int(np.flatnonzero(self.ends == self._end(run.problem))[0])
        if not self.trees:
            self._begin(run, value)
            self._search(run)
        tree = self.trees[value]
        for other in (tree.run, self._last_run):
            if other is not None and other is not run and (known := other.incumbent) is not None:
                run.offer(known.selected, known.w, known.b)
        self._last_run = run  # of a tighter value: what it finds is allowed at the next
        if tree.is_open:
            return False
        run.raise_bound(min(tree.floor, run.objective))
        tree.run.bound, run.closed, run.iteration = run.bound, True, tree.n_nodes
        run.outcome.proof = tree.finish_proof(np.empty(0, OPEN_NODE))
        run.count(nodes=tree.n_nodes, newton_steps=tree.steps, subproblems=0 if value else self.subproblem.count)
        return True

    def _begin(self, run: Run, value: int) -> None:
        """A proof for every value, that of the run at its own, one node solver, one solver of SVMs."""
        low, high = self.last.selection.sigma_bounds()
        alive, stop = np.flatnonzero(high > 0.5), np.zeros(1, dtype=np.int8)
        settings = run.settings
        self.steering, self.clear = settings.together, settings.tree.clear
        self.base = RowsRelaxation(
            self.last, alive, lambda: self._must_stop(run), stop, settings.relaxation, nodes=settings.nodes,
            batch=settings.batch, relax=run.options.relax,
        )  # fmt: skip
        self.first = np.where(low[alive] > 0.5, INSIDE, FREE).astype(np.int8)
        self.most = alive.size + 1 if self.last.M is None else self.last.M
        self.tol = max(1e-10, 0.02 * run.options.gap)
        duals = empty_proof(self.last).duals
        assert isinstance(duals, DualStore)
        self.store = duals
        each = [run if at == value else Run(one, run.options) for at, one in enumerate(self.problems)]
        self.trees = [ValueTree(one, self.base.with_rows_of(one.problem), self.store) for one in each]
        self.subproblem = Subproblem(self.last, lambda: self._must_stop(run))
        self.coefficients = self.sign * self.base.pricing.on_atoms.toarray()[alive, 0]
        self.largest = (
            float(self.coefficients.max(initial=0.0)) if self.coefficients.min(initial=0.0) >= 0.0 else math.inf
        )
        self.g, self.scores = np.empty(0), np.empty((0, alive.size))
        self.tried = set[bytes]()
        self.n_nodes = 0

    def _must_stop(self, run: Run) -> bool:
        """Whether to give up; what is left of the first point's time is for that point."""
        limit = run.options.time_limit
        return run.must_stop or (limit is not None and run.elapsed > 0.5 * limit)

    def _search(self, run: Run) -> None:
        """Level by level, until nothing is open, or the budget is spent; what few values share is left to each."""
        steering, size = self.steering, self.last.data.n_samples * max(1, self.base.alive.size)
        budget, nodes = min(steering.nodes, steering.numbers // size), self._root()
        alone = list[SharedNode]()
        while 0 < len(nodes) <= steering.widest and self.n_nodes + len(nodes) < budget and not self._must_stop(run):
            before = len(nodes)
            alone += [node for node in nodes if len(node.sides) <= steering.alone]
            nodes = self._next_level([node for node in nodes if len(node.sides) > steering.alone])
            run.iteration = self.n_nodes
            run.count(nodes=self.n_nodes, subproblems=self.subproblem.count)
            run.record()
            if steering.doubled < len(nodes) > 1.9 * before:
                break
        for side in (side for node in nodes for side in node.sides):
            self.trees[side.value].is_open = True
        for value, tree in enumerate(self.trees):
            own = [(node, one) for node in alone if (one := node.side(value)) is not None]
            if own and not tree.is_open:
                self._explore_alone(value, own, budget)
            tree.is_open |= tree.run.incumbent is None or not tree.floor >= tree.cutoff

    def _next_level(self, nodes: Sequence[SharedNode]) -> list[SharedNode]:
        """What is left once each of some nodes is relaxed at the value at which most of its way is left."""
        groups, cutoff = defaultdict[int, list[SharedNode]](list), self._cutoffs()
        for node in nodes:
            groups[max(node.sides, key=lambda side: cutoff[side.value] - side.bound).value].append(node)
        self._apply([pair for value, members in groups.items() for pair in self._relaxed(value, members)])
        for node in nodes:
            if (side := node.side(node.at)) is not None:
                self._dive(side, node.warm.w, self.steering.dives)
        return [below for node in nodes for below in self._go_on(node)]

    def _cutoffs(self) -> Array:
        return np.array([tree.cutoff for tree in self.trees])

    def _root(self) -> list[SharedNode]:
        """The root where its rows leave it something, relaxed at the middle value."""
        node = SharedNode([], WarmStart(np.zeros(self.first.size, np.float32), 0.0, RHO))
        for value, tree in enumerate(self.trees):
            after = tree.relaxation.propagation(self.first)
            tree.is_open = after.broken is not None
            if not tree.is_open:
                node.sides.append(NodeAtValue(value, *tree.take(tree.proof.root, after)))
        if not node.sides:
            return []
        middle = node.sides[len(node.sides) // 2]
        outcome, _ = self.trees[middle.value].relaxation.solve_root(middle.states, self.tol)
        node.warm = outcome.warm
        self._count(middle.value, 1, outcome.steps)
        dual = self.store.add(outcome.whole, outcome.q)
        self._score()
        for side in node.sides:
            self._dive(side, node.warm.w, 0.0)
        self._apply([(node, side, dual) for side in node.sides])
        self.least = min((side.bound for side in node.sides), default=math.inf)
        return [node] if node.sides else []

    def _packed(self, value: int, own: Sequence[tuple[SharedNode, NodeAtValue]]) -> tuple[OpenNodes, FirstDuals]:
        """Some nodes at a value as the kernels take them, with their dual vectors."""
        tree, warm = self.trees[value], [node.warm for node, _ in own]
        nodes = packed_all(
            np.array([side.states for _, side in own]), np.array([one.w for one in warm]),
            np.array([one.b for one in warm]), RHO,
        )  # fmt: skip
        heads = nodes.heads
        heads["rho"] = [one.rho for one in warm]
        heads["bound"], heads["place"], heads["dual"] = np.array([(s.bound, s.place, s.dual) for _, s in own]).T
        heads["prices"] = tree.prices.add_all(np.array([[side.y] for _, side in own]))
        return nodes, tree.first_duals(heads)

    def _explore(self, value: int, nodes: OpenNodes, duals: FirstDuals, level: float, share: float) -> ExploredPieces:
        """Explore from some nodes at a value in one compiled call."""
        tree, kernel = self.trees[value], self.base.kernel
        assert kernel is not None
        limits = np.zeros(nodes.heads.size, LIMITS)
        limits["cutoff"], limits["tol"], limits["level"], limits["share"] = tree.cutoff, self.tol, level, share
        limits["rises"] = level == -math.inf
        prices = tree.prices.of(nodes.heads["prices"])
        return kernel.explore_all(nodes, duals, limits, tree.relaxation.propagation.sides, prices)

    def _relaxed(self, value: int, members: Sequence[SharedNode]) -> list[tuple[SharedNode, NodeAtValue, int]]:
        """Relax nodes at a value; new dual vectors, each with its node wherever that is open."""
        own = [(node, side) for node in members if (side := node.side(value)) is not None]
        found = self._explore(value, *self._packed(value, own), -math.inf, self.steering.clear)
        self._count(value, len(own), int(found.totals["steps"].sum()))
        count, sizes, kept = found.totals["duals"] - 1, found.totals["bytes"], found.duals
        ends = kept["end"] + np.repeat(np.cumsum(sizes) - sizes, count)
        first = self.store.extend(found.packed, ends, kept["grid"], kept["top"], kept["width"])
        dual, back = first + np.cumsum(count) - count, np.cumsum(found.counts) - found.counts
        for k, node in enumerate(members):
            node.at, node.atom = value, -1
            if found.counts[k]:
                node.atom = abs(int(found.back.heads["atom"][back[k]])) - 1
                node.warm = unpack_open_node(found.back, int(back[k]), self.first.size)[1]
        return [(node, side, int(dual[k])) for k, node in enumerate(members) if count[k] for side in node.sides]

    def _explore_alone(self, value: int, own: Sequence[tuple[SharedNode, NodeAtValue]], budget: int) -> None:
        """Explore all below nodes at a value that few others share, in compiled calls alone."""
        tree = self.trees[value]
        nodes, duals = self._packed(value, own)
        while nodes.heads.size:
            found = self._explore(value, nodes, duals, math.inf, self.clear)
            pieces = ProofPieces([found], [nodes.heads], [False])
            back, totals = tree.attach(pieces), pieces.totals
            self._count(value, int(totals["solved"].sum()), int(totals["steps"].sum()))
            tree.done(float(totals["floor"].min()))
            why = back.heads["why"]
            for at in np.flatnonzero(why == LEAF).tolist():
                self._enter_leaf(value, back, at)
            nodes = back._replace(heads=back.heads[why != LEAF])
            if np.any(why[why != LEAF] != OPEN) or self.n_nodes >= budget:
                tree.is_open = tree.is_open or nodes.heads.size > 0
                return
            duals = tree.first_duals(nodes.heads)

    def _enter_leaf(self, value: int, back: OpenNodes, at: int) -> None:
        """Close one selection that an exploration left."""
        tree, head = self.trees[value], back.heads[at]
        states, warm = unpack_open_node(back, at, self.first.size)
        y = float(tree.prices[int(head["prices"])][0])
        states = np.where(states == INSIDE, INSIDE, OUTSIDE).astype(np.int8)
        side = NodeAtValue(value, int(head["place"]), states, float(head["bound"]), int(head["dual"]), y)
        node = SharedNode([side], warm)
        self._close(node, side) if side.bound >= tree.cutoff else self._close_leaf(node, side)

    def _count(self, value: int, nodes: int, steps: int) -> None:
        self.n_nodes, tree = self.n_nodes + nodes, self.trees[value]
        tree.n_nodes, tree.steps = tree.n_nodes + nodes, tree.steps + steps

    def _score(self) -> None:
        """Evaluate the dual vectors that are new in the store."""
        if self.g.size < len(self.store):
            g, scores, _ = scores_all(self.base, self.store.part(np.arange(self.g.size, len(self.store))))
            self.g, self.scores = np.append(self.g, g), np.concatenate([self.scores, scores])

    def _apply(self, fresh: Sequence[tuple[SharedNode, NodeAtValue, int]]) -> None:
        """Bound nodes at their values by dual vectors; close them there, or fix what is fixed."""
        self._score()
        if not fresh:
            return
        states = np.array([side.states for _, side, _ in fresh])
        value, dual = np.array([[side.value, d] for _, side, d in fresh]).T
        gain, cutoff = gains(self.scores[dual], self.base.penalty), self._cutoffs()[value]
        y = -self.sign * self._multipliers(gain, self.ends[value], states)
        bounded = self._bounded(dual, y, value, states)
        inside, out = bounded.screen(cutoff[:, None])
        for k, (node, side, d) in enumerate(fresh):
            if bounded.bound[k] > side.bound:
                side.bound, side.dual, side.y = float(bounded.bound[k]), d, float(y[k])
            if side.bound >= cutoff[k]:
                self._close(node, side)
            elif inside[k].any() or out[k].any():
                goes = np.flatnonzero(inside[k]), np.flatnonzero(out[k])
                tree = self.trees[side.value]
                side.place, side.states = tree.screen(side.place, d, y[k : k + 1], side.states, *goes, float(cutoff[k]))
                self._propagate(node, side)

    def _bounded(self, dual: Integers, y: Array, value: Integers, states: States) -> BoundedNodes:
        """Nodes (m, k) bounded by dual vectors and multipliers."""
        prices, g = self.base.pricing.of_each(y, self.sign * self.ends[value], self.base.alive), self.g[dual]
        base = rounded_down(g + prices.constant, np.abs(g) + np.abs(prices.constant), 2)
        gain = gains(self.scores[dual], prices.penalties(self.base.penalty))
        return BoundedNodes.of(base, gain, states, self.most)

    def _multipliers(self, gain: Array, end: Array, states: States) -> Array:
        """The size of the row's multiplier that bounds each node (m, k) best.

        What it takes off is convex and piecewise linear: two points close in on the least, where their tangents meet.
        """
        own, places = self.coefficients, np.arange(gain.shape[1])
        free, room = states == FREE, self.most - np.count_nonzero(states == INSIDE, axis=1)
        left = end - (states == INSIDE) @ own

        def tangent(y: Array, at: Integers) -> tuple[Array, Array]:
            adjusted = np.where(free[at], np.maximum(gain[at] - y[:, None] * own, 0.0), 0.0)
            order = np.argsort(-adjusted, axis=1)
            falling = adjusted[np.arange(at.size)[:, None], order]
            counts = (places < room[at, None]) & (falling > 0.0)
            return y * left[at] + (counts * falling).sum(axis=1), left[at] - (counts * own[order]).sum(axis=1)

        found, least = np.zeros(end.size), float(np.abs(own[own != 0.0]).min(initial=math.inf))
        below, falls = tangent(found, np.arange(end.size))
        at = np.flatnonzero(falls < 0.0)
        low, below, falls = found[at], below[at], falls[at]
        high = np.full(at.size, 2.0 * float(gain.max(initial=0.0)) / least)
        above, rises = tangent(high, at)
        for _ in range(self.steering.tangents):
            with np.errstate(divide="ignore", invalid="ignore"):
                meet = (below - above + rises * high - falls * low) / (rises - falls)
            meet = np.where(np.isfinite(meet), np.clip(meet, low, high), high)
            value, slope = tangent(meet, at)
            up = slope >= 0.0
            low, high = np.where(up, low, meet), np.where(up, meet, high)
            below, above = np.where(up, below, value), np.where(up, value, above)
            falls, rises = np.where(up, falls, slope), np.where(up, slope, rises)
        found[at] = np.where(below < above, low, high)
        return found

    def _propagate(self, node: SharedNode, side: NodeAtValue) -> None:
        """Fix what the row fixes; a node that it leaves nothing is no longer open at that value."""
        if self.ends[side.value] - self.coefficients[side.states == INSIDE].sum() >= self.largest:
            return
        tree = self.trees[side.value]
        after = tree.relaxation.propagation(side.states)
        side.place, side.states = tree.take(side.place, after)
        if after.broken is not None:
            tree.refute(side.place, tree.relaxation.propagation.ray(after.broken))
            node.sides.remove(side)

    def _close(self, node: SharedNode, side: NodeAtValue, *, is_final: bool = False) -> None:
        tree = self.trees[side.value]
        tree.proof.close(side.place, side.dual, tree.shown(np.array([side.y])))
        tree.done(side.bound, is_final=is_final)
        node.sides.remove(side)

    def _dive(self, side: NodeAtValue, w: npt.NDArray[np.floating[Any]], share: float) -> None:
        """Offer the selection of a node that takes the largest weights, as far as the row allows at a value."""
        order = np.argsort(-np.abs(w), kind="stable")
        states = np.where(side.states == INSIDE, INSIDE, OUTSIDE).astype(np.int8)
        left = self.ends[side.value] - self.coefficients[states == INSIDE].sum()
        room = self.most - np.count_nonzero(states == INSIDE)
        for j in order[(side.states[order] == FREE) & (w[order] != 0.0)].tolist():
            if room > 0 and self.coefficients[j] <= left:
                states[j], left, room = INSIDE, left - self.coefficients[j], room - 1
        if left < 0.0:  # a row that asks for atoms
            found = self.trees[side.value].relaxation.propagation.dive(order[w[order] != 0.0])
            if found is None:
                return
            states = found
        sigma = self._selection(states)
        if sigma.tobytes() not in self.tried:
            cutoff, is_promising = self._wanted(sigma, share)
            if is_promising:
                self._solve(sigma, 1e-7, cutoff)

    def _wanted(self, sigma: Mask, share: float) -> tuple[float, bool]:
        """The value from which on a selection is no incumbent anywhere, and whether the dual vectors leave it a share
        of the way from the root to there.
        """
        own = sigma[self.base.alive]
        cutoff = float(self._cutoffs()[self.coefficients[own].sum() <= self.ends].max(initial=-math.inf))
        values = self.g - 0.5 * self.scores[:, own].sum(axis=1) + self.base.penalty[own].sum()
        way = cutoff - float(values.max(initial=-math.inf))
        return cutoff, way > (share * (cutoff - self.least) if share and cutoff < math.inf else 0.0)

    def _selection(self, states: States) -> Mask:
        return mask_of(self.last.atoms.count, self.base.alive[states == INSIDE])

    def _solve(self, sigma: Mask, tol: float, enough: float = math.inf) -> SolvedSubproblem:
        """Solve the SVM of a selection, and offer its classifier wherever that is allowed."""
        self.tried.add(sigma.tobytes())
        solved = self.subproblem.solve(sigma.astype(float), tol, enough)
        taken = self.coefficients[sigma[self.base.alive]].sum()
        for tree, end in zip(self.trees, self.ends, strict=True):
            if solved.value < tree.run.objective and taken <= end and tree.run.oracle.contains(sigma):
                tree.run.offer(solved.ids, solved.svm.w, solved.svm.b)
        return solved

    def _go_on(self, node: SharedNode) -> Iterator[SharedNode]:
        """What is left of a node that was relaxed: itself, where it is closed at that value; else its children."""
        for side in list(node.sides):
            if side.bound >= self.trees[side.value].cutoff:
                self._close(node, side)
            elif side.value == node.at and not np.any(side.states == FREE):
                self._close_leaf(node, side)
        if node.sides and node.side(node.at) is None:
            yield node
        elif node.sides:
            free = np.any([side.states == FREE for side in node.sides], axis=0)
            if node.atom < 0 or not free[node.atom]:
                node.atom = int(np.argmax(np.where(free, np.abs(node.warm.w), -1.0)))
            yield from self._children(node)

    def _children(self, node: SharedNode) -> list[SharedNode]:
        """Both sides of a split; a value at which the atom is fixed goes on in one of them."""
        out, inside = SharedNode([], node.warm), SharedNode([], node.warm)
        for side in node.sides:
            state = side.states[node.atom]
            if state != FREE:
                (inside if state == INSIDE else out).sides.append(side)
                continue
            places = self.trees[side.value].proof.split(side.place, int(self.base.alive[node.atom]))
            for child, place, kept in zip((out, inside), places, (OUTSIDE, INSIDE), strict=True):
                states = replace_at(side.states, node.atom, kept)
                if np.count_nonzero(states == INSIDE) > self.most:
                    self.trees[side.value].proof.refute(place, None)
                    continue
                below = NodeAtValue(side.value, place, states, side.bound, side.dual, side.y)
                child.sides.append(below)
                self._propagate(child, below)
        return [child for child in (inside, out) if child.sides]

    def _close_leaf(self, node: SharedNode, side: NodeAtValue) -> None:
        """One selection is left at a value, and not ruled out there: the dual vector of its SVM closes it."""
        sigma, tree = self._selection(side.states), self.trees[side.value]
        for enough in (tree.cutoff, math.inf):
            solved = self._solve(sigma, tree.run.settings.tree.leaf_gap, enough)
            bound, whole, q = self.base.bound_selection(solved.svm.alpha, side.states)
            if bound > side.bound:
                side.bound, side.dual, side.y = bound, self.store.add(whole, q), 0.0
            if side.bound >= tree.cutoff:
                break
        self._close(node, side, is_final=True)


def share(problems: Sequence[Problem], side: str, options: Mapping[str, Any]) -> SharedTree | None:
    """The search for problems that differ in one end of a row, from the tightest on; None where it does not carry them.

    Parameters
    ----------
    side : "ub" or "lb", which end of the row it is
    options : of the driver `branch`, as they are given
    """
    one = problems[-1]
    limit = options.get("time_limit")
    if not CARRIED.issuperset(options) or one.is_one_master or one.exponent:
        return None
    steering = (options.get("settings") or BranchSettings()).together
    if len(problems) < steering.values or (limit is not None and limit < steering.seconds):
        return None
    rows, size = one.selection.rows, one.data.n_samples * one.atoms.count
    is_single = len(rows) == 1 and not len(rows.extra) and not one.weight_rows and not one.derived
    is_held = one.atoms.is_held and one.data.block().is_stored
    if not (is_single and is_held) or steering.numbers // max(1, size) < steering.least:
        return None
    return SharedTree(problems, 1.0 if side == "ub" else -1.0) if choose_relaxation(one) in RELAXED_BY else None
