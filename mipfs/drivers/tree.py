"""The open nodes of a branch-and-bound over the atoms, the proof of the closed ones, and their node solver.

A batch of nodes is explored by any threads, each a subtree in compiled code, and merged in order; see
`mipfs.drivers.branch`, whose tree this is. Who relaxes a node (`mipfs.inner.rows_node`) does not matter here: what is
left of it is a piece of the proof and open nodes. The tree opens the root, and evaluates the selections that are left.

The user's rows are fixed and refuted by propagation (`mipfs.inner.propagation`), a node's bound holds them by
multipliers y, which its children inherit, and where extra variables are whole numbers `gbd` takes over. A problem
without rows has none to propagate and no multipliers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs.branching import RULES, begin_memory, get_rule, learn_from_splits
from mipfs.drivers.pieces import Offer, ProofPieces, one_after_the_other
from mipfs.drivers.separating import Separation, is_bound_lifted, relaxation_sigmas
from mipfs.drivers.tree_proof import OpenNode, TreeProof
from mipfs.drivers.waiting import NodeQueue, pack_open_node, unpack_open_node
from mipfs.inner import rule_trial
from mipfs.inner.boolean_node import FREE, INSIDE, MOST_TOGETHER, OUTSIDE, States, WarmStart, carries
from mipfs.inner.completions import are_few, are_pairs_few, first_places
from mipfs.inner.footpath import RowsOutcome
from mipfs.inner.node_solver import NodeSolver
from mipfs.inner.rows_node import RowsRelaxation
from mipfs.inner.unit import NOTHING, ExplorationRules, NodeUnit, UnitResult
from mipfs.kernels import subtree
from mipfs.kernels.bound import gains
from mipfs.kernels.structures import LIMITS
from mipfs.kernels.units import ExploredPieces, OpenNodes
from mipfs.plumbing.arrays import Array, Arrays, Integers, mask_of, scatter
from mipfs.proof.cuts import Cut
from mipfs.proof.proof import Proof
from mipfs.run.heuristics import Supports
from mipfs.run.run import Run
from mipfs.run.swaps import climb
from mipfs.settings import TreeSettings

NO_PLACE = 1 << 62
"""More pieces than ever come together."""


class SearchTree(TreeProof):
    """The open nodes, the proof of the closed ones, and the node solver that they share.

    Parameters
    ----------
    run : Run
    supports : Supports
    tol : relative gap to which the relaxation of a node without a clear fate is solved
    """

    def __init__(self, run: Run, supports: Supports, tol: float) -> None:
        super().__init__(run)
        self.supports = supports
        self.tol = tol
        self.settings: TreeSettings = run.settings.tree
        self.rule = get_rule(self.settings.branching)
        problem = run.problem
        self.separation = Separation(problem, run.options.separate, run.settings.separation)
        self.stop = np.zeros(1, dtype=np.int8)
        lb, ub = problem.selection.sigma_bounds()
        self._try_rule(int(np.count_nonzero(ub > 0.5)))
        self.relaxation = self.relaxed(np.flatnonzero(ub > 0.5))
        self.is_plain = self.relaxation.relax != "interior" and problem.selection.is_plain
        self.loss = 0.0
        self.n_nodes = self.steps = self.stalled = self.rescued = self.rounding = 0
        self.enumerated = self.svms = self.svm_steps = 0
        self.pace = 0.0
        self._measured: object = object()  # no incumbent yet, nor None
        self._svm_numbers = 0
        self.level = math.inf
        self.above: Arrays = {}
        self.offers = list[Offer]()
        self.leaves = list[Leaf]()
        self.waiting = NodeQueue(run.room)
        self._memory = NOTHING.memory
        self.splits = list[npt.NDArray[Any]]()
        self.first = np.where(lb[self.relaxation.alive] > 0.5, INSIDE, FREE).astype(np.int8)

    def _try_rule(self, in_play: int) -> None:
        """Refuse a rule of the user's that fails on made nodes, of up to as many atoms as may be chosen here."""
        name = self.settings.branching
        rule_trial.check(name, self.rule, begin_memory(name, 1).shape[1], in_play)
        rule_trial.check_learning(name, in_play)

    @property
    def bound(self) -> float:
        """Lower bound on (P): the least over open and closed nodes."""
        return min(self.floor, self.waiting.least, *(leaf.node.bound for leaf in self.leaves))

    @property
    def cutoff(self) -> float:
        """Nodes are closed from here on: just above the asked gap, or above the last support that is wanted.

        Before, all may be proven up to a level; `above` is the tree as it stood when that began.
        """
        return min(self.level, self.supports.cutoff)

    def relaxed(self, alive: Integers) -> RowsRelaxation:
        """The node solver on some of the atoms."""
        run = self.run
        stops = (lambda: run.must_stop), self.stop
        settings = run.settings
        steering = settings.relaxation, self.rule, settings.nodes, settings.completions
        how: Any = {"batch": settings.batch, "relax": run.options.relax, "device": run.options.device or "cpu"}
        return RowsRelaxation(run.problem, alive, *stops, *steering, **how)

    def solver(self) -> NodeSolver:
        """What makes the node solver anew: from the features in play alone, but for rows, which are over all atoms."""
        problem = self.run.problem
        alive = self.relaxation.alive
        if self.is_plain and carries(problem):
            problem = problem.restricted(alive)
            alive = np.arange(alive.size)
        settings = self.run.settings
        few = settings.completions if are_few(self.run.problem, settings.completions) else None
        rule, how = RULES[self.settings.branching], {"relax": self.relaxation.relax, "device": self.relaxation.device}
        return NodeSolver(problem, alive, self.loss, rule, settings.nodes, few, settings.batch, **how)

    def open_root(self) -> None:
        """Solve the root, find incumbents, screen, and go on with the atoms that are left."""
        first = self.relaxation.propagation(self.first)
        place, states = self.take(self.proof.root, first)
        self.n_nodes = 1
        # A guard: whoever opens a tree knows a selection of S, so that no row refutes the root.
        if first.broken is not None:
            self.refute(place, self.relaxation.propagation.ray(first.broken))
            return
        outcome, cut = self._separated_root(states)
        self.supports.pool.add(cut)
        if self.is_plain and self.relaxation.has_weights and self.run.must_stop:
            self.supports.offer_largest(self.relaxation.alive, outcome.warm, self.relaxation.boolean.off)
        elif self.is_plain:
            self.round(outcome)
            self.supports.round(cut.slopes)
        else:
            self.round(outcome)
            gain = gains(cut.slopes, self.run.problem.penalty)[self.relaxation.alive]
            self.dive(np.argsort(-gain, kind="stable"))
        self.climb()
        self.enter(self._screened_root(place, states, outcome))

    def _separated_root(self, states: States) -> tuple[RowsOutcome, Cut]:
        """The root's relaxation, with the rows that the separator finds as long as they lift its bound."""
        best = self.relaxation.solve_root(states, self.tol)
        self.steps = best[0].steps
        settings, sigma = self.separation.settings, best[0].sigma
        for _ in range(settings.rounds):
            if not self.separation.is_on or self.run.must_stop or not self.separate([self._whole_sigma(sigma)]):
                break
            again = self.relaxation.solve_root(states, self.tol)
            self.steps += again[0].steps
            is_lifted = is_bound_lifted(best[0].bound, again[0].bound, settings.worth)
            sigma = again[0].sigma
            best = again if again[0].bound > best[0].bound else best
            if not is_lifted:
                break
        return best

    def _whole_sigma(self, sigma: Array) -> Array:
        """σ (p,) of all atoms, from that of the alive ones."""
        return scatter(self.run.problem.atoms.count, self.relaxation.alive, sigma)

    def _screened_root(self, place: int, states: States, outcome: RowsOutcome) -> OpenNode:
        """The root with what its dual vector fixes; the node solver goes on without what is fixed to 0."""
        cutoff = self._root_screening_cutoff
        y = outcome.prices
        whole = outcome.whole
        nothing = np.zeros_like(outcome.whole)
        none = self.relaxation.pricing.none
        bound, goes_in, goes_out = self.relaxation.bound(whole, outcome.q, y, states, cutoff)
        least, *others = self.relaxation.bound(nothing, outcome.q, none, states, cutoff)
        if not self.run.problem.has_extra_costs:  # its value is what is forced in costs, whatever a sum takes off
            least = max(least, 0.0)
        # A limit came so early that α = 0 proves more.
        if least > bound:
            bound, (goes_in, goes_out), whole, y = least, others, nothing, none
        dual = self.proof.add_dual(whole, outcome.q)
        place, states = self.screen(place, dual, y.y, states, goes_in, goes_out, cutoff)
        self.run.counters["root_free"] = int(np.count_nonzero(states == FREE))
        keep = np.flatnonzero(states != OUTSIDE)
        warm = outcome.warm
        if keep.size < states.size:
            self.relaxation = self.relaxation.restricted(keep)
            states = states[keep]
            warm = WarmStart(warm.w[keep], warm.b, warm.rho)
        self.coarsen_at(bound)
        return OpenNode(bound, place, dual, states, warm, y=y.y)

    def coarsen_at(self, value: float) -> None:
        """Round dual vectors as the gap at a value allows: an infinite one, of a list that is not full, allows none."""
        allows = self.is_plain and math.isfinite(value)
        self.loss = self.settings.bytes_share * self.run.options.gap * abs(value) if allows else 0.0
        self.relaxation.coarsen(self.loss)

    def climb(self) -> None:
        """Climb to a good incumbent, for what it lets the root screen; many samples had a climb before the root."""
        n_samples = self.run.problem.data.n_samples
        if n_samples < min(self.run.problem.atoms.count, self.run.settings.root.large):
            climb(self.supports, self.supports.pool)

    def begin_anew(self) -> None:
        """Forget the open nodes and the proof."""
        self.waiting, self.leaves = NodeQueue(self.run.room), []
        self.begin_proof()

    def narrow(self, alive: Integers) -> None:
        """Go on with the atoms `alive` alone, as an earlier run did."""
        if alive.size < self.relaxation.alive.size:
            self.relaxation = self.relaxation.restricted(np.searchsorted(self.relaxation.alive, alive))
        self.relaxation.coarsen(self.loss)

    def forget(self, taken: Sequence[NodeUnit]) -> None:
        """Keep of a proof that nobody wants what open nodes need; those that are being explored are renumbered, too."""
        held, leaves = [unit.nodes.heads for unit in taken if not unit.goes_on], self.packed_leaves()
        held += [self.waiting.heads, *(leaf.heads for leaf in leaves)]
        duals = self.moved(np.concatenate([heads["dual"] for heads in held]))
        prices = self.prices.only(np.concatenate([heads["prices"] for heads in held]))
        at = 0
        for heads in held:
            own = slice(at, at + heads.size)
            heads["place"], heads["dual"], heads["prices"] = np.arange(own.start, own.stop), duals[own], prices[own]
            at = own.stop
        for leaf, nodes in zip(self.leaves, leaves, strict=True):
            leaf.node = self.node(nodes, 0)

    def push(self, node: OpenNode) -> None:
        """Put a node among the open ones, by its bound."""
        self.waiting.extend(self.packed(node))

    def packed(self, node: OpenNode) -> OpenNodes:
        """A node as those that wait are kept."""
        nodes = pack_open_node(node.states, node.warm, node.bound, node.place, node.dual)
        nodes.heads["prices"], nodes.heads["age"], nodes.heads["why"] = self.prices.add(node.y), node.age, node.why
        nodes.heads["atom"], nodes.heads["share"] = node.atom, node.share
        return nodes

    def node(self, nodes: OpenNodes, at: int) -> OpenNode:
        """One of some open nodes, as an object."""
        head = nodes.heads[at]
        states, warm = unpack_open_node(nodes, at, self.relaxation.alive.size)
        names = "place", "dual", "prices", "age", "why", "atom"
        place, dual, prices, age, why, atom = (int(head[name]) for name in names)
        share = float(head["share"])
        return OpenNode(float(head["bound"]), place, dual, states, warm, self.prices[prices], age, why, atom, share)

    def enter(self, node: OpenNode) -> None:
        """Keep a node with what the rows fix in it, unless they leave it nothing."""
        after = self.relaxation.propagation(node.states)
        place, states = self.take(node.place, after)
        if after.broken is not None:
            self.refute(place, self.relaxation.propagation.ray(after.broken))
            return
        self.push(replace(node, place=place, states=states))

    @property
    def within_reach(self) -> int:
        """How many open nodes are worth handing out together: where the least bound is far, it is lifted first."""
        return int(np.count_nonzero(self.waiting.bounds <= self.lifted_to(self.waiting.least, self.cutoff)))

    def lifted_to(self, least: float, cutoff: float) -> float:
        """The bound up to which nodes are explored next: a step above the least one, or the cutoff where it is near.

        Where nodes are dear it is a part of the way at most: a batch is few nodes there, and none is explored long
        before its turn.
        """
        settings, way = self.settings, cutoff - least
        level = settings.level_early if self.relaxed_work < settings.early else settings.level
        step = level * max(abs(cutoff), way)
        if self.per_node > settings.dear:
            step = min(step, way / settings.steps)
        return least + step if settings.near * abs(cutoff) < way < math.inf else cutoff

    def pop(self, count: int) -> OpenNodes:
        """The open nodes of least bound, at most `count`; those beyond the cutoff are closed."""
        k = self.relaxation.alive.size
        while len(self.waiting):
            if self.waiting.least >= self.cutoff:
                self.close_all(self.waiting.clear())
                break
            nodes = self.waiting.pop(count, k)
            heads = nodes.heads
            closed = (heads["bound"] >= self.cutoff) | self._ties_only(nodes)
            if not closed.any():
                return nodes
            self.close_all(heads[closed])
            if not closed.all():
                return nodes._replace(heads=heads[~closed])
        return OpenNodes.empty()

    def _ties_only(self, nodes: OpenNodes) -> npt.NDArray[np.bool_]:
        """Which of some open nodes hold nothing but what is counted in a list of near-optimal supports."""
        found = np.zeros(nodes.heads.size, dtype=bool)
        if self.run.wants_all:
            for at in np.flatnonzero(nodes.heads["bound"] >= self.run.cutoff).tolist():
                found[at] = self.has_ties_only(self.node(nodes, at))
        return found

    def has_ties_only(self, node: OpenNode) -> bool:
        """Whether all that a node holds is counted in a list of near-optimal supports, not listed."""
        if not self.run.wants_all or not node.bound >= self.run.cutoff:
            return False
        alive = self.relaxation.alive
        M = self.run.problem.M
        count = self.run.problem.atoms.count
        inside = np.zeros(count, dtype=bool)
        free = np.zeros(count, dtype=bool)
        sizes = np.zeros(count)
        inside[alive[node.states == INSIDE]] = True
        if M is None or np.count_nonzero(inside) < M:
            free[alive[node.states == FREE]] = True
        sizes[alive] = node.warm.w
        return self.supports.has_ties_only(inside, free, node.bound, sizes)

    @property
    def memory(self) -> Array:
        """(k, ·) what the branching rule has learnt of the atoms in play; what is in play changes at the root alone."""
        if self._memory.shape[0] != self.relaxation.alive.size:
            self._memory = begin_memory(self.settings.branching, self.relaxation.alive.size)
        return self._memory

    def remember(self, memory: Array) -> None:
        """Go on with what the branching rule had learnt."""
        self._memory = memory

    def learn(self) -> None:
        """Let the branching rule learn from the splits that were merged since, in their order."""
        if self.splits:
            splits, self.splits = one_after_the_other(self.splits), []
            self._memory = learn_from_splits(self.settings.branching, self.memory, splits)

    @property
    def told(self) -> ExplorationRules:
        """What the units of the next batch are told."""
        return ExplorationRules(self.memory, self.derived) if self.memory.size or self.derived else NOTHING

    def separate(self, points: Iterable[Array]) -> bool:
        """Ask the separator about some σ (p,); whether there are more rows now."""
        found = self.separation.found(points, lambda: self.run.must_stop)
        if found:
            self.strengthen(found)
        return bool(found)

    def separate_at(self, nodes: OpenNodes) -> None:
        """Ask it about the first of some open nodes, before they are handed out."""
        if self.separation.is_on and nodes.heads.size:
            few = nodes._replace(heads=nodes.heads[: self.separation.settings.points])
            self.separate(relaxation_sigmas(self.relaxation, few, self.prices.of(few.heads["prices"])))

    def units(self, nodes: OpenNodes, cutoff: float) -> list[NodeUnit]:
        """The units of work of some open nodes: how many, and which nodes each has, depends on the tree alone."""
        count = nodes.heads.size
        least, worth = self.settings.least_units, self.settings.unit_work
        size = self.relaxation.unit_size(count, least)
        if self.pace:
            size = max(size, min(count // least, MOST_TOGETHER, int(worth / self.per_node)))
            size = max(size, min(count // 2, MOST_TOGETHER, int(self.settings.unit_least / self.per_node)))
        sizes = np.diff(np.append(np.arange(0, count, size), count))
        return self.cut(nodes, sizes, self.limits(nodes.heads["bound"], cutoff))

    def cut(
        self, nodes: OpenNodes, sizes: Integers, limits: npt.NDArray[Any], told: ExplorationRules | None = None
    ) -> list[NodeUnit]:
        """The units of work of some open nodes, of sizes (U,) that add up to them; by default told what is known."""
        told = self.told if told is None else told
        prices = self.prices.of(nodes.heads["prices"])[:, : self.n_rows - len(self.derived) + len(told.derived)]
        ends = np.cumsum(sizes)
        duals = self.first_duals(nodes.heads)
        each = [slice(*one) for one in zip((ends - sizes).tolist(), ends.tolist(), strict=True)]
        return [NodeUnit(nodes.part(own), duals.between(own), limits[own], prices[own], told=told) for own in each]

    def limits(self, bound: Array, cutoff: float) -> npt.NDArray[Any]:
        """How far the subtrees below nodes of these bounds are explored, and how far relaxations are solved.

        Subtrees are explored up to a line a step above the least of these bounds, and those of nodes near the cutoff
        all the way. A relaxation is left at a share of its distance to the cutoff, and that of a node
        that is far only once it lifts the bound.
        """
        settings = self.settings
        found = np.zeros(bound.size, LIMITS)
        found["cutoff"], found["tol"], found["level"] = cutoff, self.tol, math.inf
        if math.isfinite(cutoff):
            is_far = cutoff - bound > settings.near * abs(cutoff)
            found["level"] = np.where(is_far, self.lifted_to(bound.min(initial=cutoff), cutoff), cutoff)
            found["share"], found["rises"] = settings.clear, is_far
        if self.splits_apart:
            found["apart"] = self._count_apart(bound, cutoff)
        return found

    @cached_property
    def splits_apart(self) -> bool:
        """Whether nodes with two free places are enumerated, and others split into many of them by one relaxation."""
        problem, few = self.run.problem, self.run.settings.completions
        return are_few(problem, few) and first_places(problem) > 2 and are_pairs_few(problem.atoms.count, few)

    def _count_apart(self, bound: Array, cutoff: float) -> Array:
        """How many columns one relaxation splits off nodes: many where the cutoff is far, or the tree large."""
        few, size = self.run.settings.completions, max(abs(cutoff), np.finfo(float).tiny)
        way = np.clip((cutoff - bound) / size, 0.0, 1.0) if cutoff < math.inf else 1.0
        large = min(few.most_columns, self.enumerated // few.column_worth)
        return np.asarray(np.maximum(np.floor(few.columns * way), large), dtype=float)

    def merge(
        self, units: Sequence[NodeUnit], found: Sequence[UnitResult | None], before: Callable[[], None] = lambda: None
    ) -> None:
        """Take over, in order, what was found below the nodes of units; nodes that nobody came to are open as before.

        First all pieces, as whole arrays; then, once `before` is done, what is left as one selection each: these ask
        for SVMs, and where those are dear, or many, they are closed after the next batch.
        """
        begun = self.steps - self.svm_steps
        leaves = self.enter_all(units, found)
        self.keep_pace(units, found, self.steps - self.svm_steps - begun)
        before()
        self.close_leaves()
        waits = self.is_dear or len(leaves) >= self.settings.leaves
        for node in leaves:
            self.leaf(node, waits)
        self.learn()

    def keep_pace(self, units: Sequence[NodeUnit], found: Sequence[UnitResult | None], steps: int) -> None:
        """Learn how many Newton steps a node takes that is handed out, with what is explored below it."""
        pairs = zip(units, found, strict=True)
        count = sum(len(unit) for unit, one in pairs if one is not None and not unit.is_enumerated)
        if count and self.relaxation.relax == "kernels":
            self.pace = 0.5 * (self.pace + steps / count) if self.pace else steps / count

    @property
    def per_node(self) -> float:
        """The work of a node that is handed out, in units of `SearchSettings.unit`; 0 where none was seen yet."""
        return float(self.pace * self._size / self.run.settings.search.unit)

    def enter_all(self, units: Sequence[NodeUnit], found: Sequence[UnitResult | None]) -> list[OpenNode]:
        """Enter what was found, then what others found of the nodes that were stuck in it; returns leaves."""
        heads, pieces, rescued = list[npt.NDArray[Any]](), list[ExploredPieces](), list[list[ExploredPieces]]()
        goes_on = list[bool]()
        for unit, one in zip(units, self._fill_gaps(units, found), strict=True):
            if one is None:
                if not unit.goes_on:
                    self.waiting.extend(unit.nodes, in_order=True)
            elif one.found is not None:
                if unit.is_enumerated:
                    self.count_enumerated(one.found.totals)
                heads.append(unit.nodes.heads)
                pieces.append(one.found)
                rescued.append(one.rescued)
                goes_on.append(unit.goes_on)
        if not pieces:
            return []
        stuck, leaves = self.take_pieces(ProofPieces(pieces, heads, goes_on))
        self.rescued += stuck.size
        while stuck.size:
            pieces, rescued = [one[0] for one in rescued if one], [one[1:] for one in rescued]
            heads = np.split(stuck, np.cumsum([one.totals.size for one in pieces])[:-1])
            stuck, more = self.take_pieces(ProofPieces(pieces, heads, [False] * len(pieces)))
            leaves += more
        return leaves

    def _fill_gaps(self, units: Sequence[NodeUnit], found: Sequence[UnitResult | None]) -> list[UnitResult | None]:
        """What came of units, with nothing between two that go on with one node: what is missing there is left open."""
        whole, comes, relaxation = list(found), False, self.relaxation
        for at in range(len(units) - 1, -1, -1):
            one, unit = whole[at], units[at]
            # A part without answer, since nothing was left to do or no time, is open like a part that nobody came to.
            if one is not None and one.found is None and unit.turn is not None:
                one = whole[at] = None
            if one is None and comes:
                sides = relaxation.strengthen(unit.told.derived).propagation.sides
                one = whole[at] = relaxation.completions.left_open(unit, sides)
            comes = unit.goes_on and (comes or one is not None)
        return whole

    def take_pieces(self, pieces: ProofPieces) -> tuple[npt.NDArray[Any], list[OpenNode]]:
        """Enter pieces into the proof, and keep what they left open; returns the records of stuck nodes, and leaves."""
        back = self.attach(pieces)
        self.count(pieces)
        why = back.heads["why"]
        is_leaf, is_stuck = (why == subtree.LEAF) | (why == subtree.BARREN), why == subtree.STUCK
        leaves = [self.node(back, at) for at in np.flatnonzero(is_leaf).tolist()]
        stuck = back.heads[is_stuck]
        why[why == subtree.REST] = subtree.OPEN
        is_apart = is_leaf | is_stuck
        self.waiting.extend(back._replace(heads=back.heads[~is_apart]) if is_apart.any() else back)
        return stuck, leaves

    def count(self, pieces: ProofPieces) -> None:
        """Count what explorations did, and keep which weights are to be rounded."""
        totals = pieces.totals
        self.steps += int(totals["steps"].sum())
        self.stalled += int(totals["stalled"].sum())
        self.done(float(totals["floor"].min()))
        if self.memory.size:
            self.splits.append(pieces.splits)
        self._take_offers(pieces, self.n_nodes + np.cumsum(totals["solved"]))
        self.n_nodes += int(totals["solved"].sum())

    def _take_offers(self, pieces: ProofPieces, solved: Integers) -> None:
        """Keep what is to be rounded: all that is offered, but of pieces' first nodes only some, far between.

        At first it is all, unless the leaves of an earlier tree were rounded: then `rounding` is below 0.

        solved : (B,) the nodes that are solved up to the end of each piece
        """
        settings, at, sign = self.settings, 0, -1 if self.rounding < 0 else 1
        others, first = np.flatnonzero(pieces.has_others), np.flatnonzero(pieces.is_first)
        early = int(np.searchsorted(solved, settings.roundings, side="right")) if sign > 0 else 0
        while True:
            late = int(np.searchsorted(solved, abs(self.rounding)))
            due = next_of(first, at)
            due = due if due < early else next_of(first, max(at, late))
            at = min(due, next_of(others, at))
            if at == NO_PLACE:
                return
            self.offers += pieces.offers(at, with_first=at == due)
            n_nodes = int(solved[at])
            self.rounding = sign * (n_nodes + max(settings.rounding_every, int(self.nodes_per_rounding(n_nodes))))
            at += 1

    def count_enumerated(self, totals: npt.NDArray[Any]) -> None:
        """Count the selections whose completions were enumerated, the SVMs of that, and their steps."""
        self.enumerated += int(totals["solved"].sum())
        self.svms += int(totals["svms"].sum())
        self.svm_steps += int(totals["steps"].sum())

    def leaf(self, node: OpenNode, waits: bool) -> None:
        """One selection is left, or none: close the node with its own dual vector, at once unless it `waits`."""
        sigma = self.selection_of(node)
        if node.why == subtree.BARREN or not self.run.oracle.contains(sigma):
            low, high = sigma.astype(float), sigma.astype(float)
            if node.why == subtree.BARREN:
                high[self.relaxation.alive[node.states == FREE]] = 1.0
            self.refute(node.place, self.relaxation.pricing.by_lp(np.zeros(low.size), low, high)[1])
        elif node.bound >= self.cutoff:
            self.close(node, node.bound, is_final=False)
        else:
            self.leaves.append(Leaf(node, sigma))
            if not waits:
                self.close_leaves()

    def selection_of(self, node: OpenNode) -> npt.NDArray[np.bool_]:
        """(count,) the atoms that are in a node."""
        return mask_of(self.run.problem.atoms.count, self.relaxation.alive[node.states == INSIDE])

    def close_leaves(self) -> None:
        """Close what is one selection each with its own dual vector, which a search beside may have found already."""
        leaves, self.leaves = self.leaves, []
        for leaf in leaves:
            node = leaf.node
            if leaf.alpha is None and node.bound >= self.cutoff:
                self.close(node, node.bound, is_final=False)
                continue
            alpha = self.solve_leaf(leaf, self.supports) if leaf.alpha is None else leaf.alpha
            bound, whole, q = self.relaxation.bound_selection(alpha, node.states)
            if bound > node.bound:
                y = self.relaxation.pricing.none.y
                node = replace(node, bound=bound, dual=self.proof.add_dual(whole, q), y=y)
            self.close(node, node.bound, is_final=True)

    def take_leaves(self, nodes: OpenNodes) -> None:
        """Have leaves wait for their SVMs, as they did where a state was kept.

        Raises
        ------
        ValueError
            One is no selection of S.
        """
        for at in range(nodes.heads.size):
            node = self.node(nodes, at)
            sigma = self.selection_of(node)
            if not self.run.oracle.contains(sigma):
                raise ValueError("a leaf that is no selection")
            self.leaves.append(Leaf(node, sigma))

    def packed_leaves(self) -> list[OpenNodes]:
        """The leaves that wait for their SVMs, each as open nodes are kept."""
        return [self.packed(leaf.node) for leaf in self.leaves]

    def solve_leaf(self, leaf: Leaf, supports: Supports) -> Array:
        """The dual vector of a leaf's SVM, near enough to close it; the classifier is offered to `supports`."""
        solved = supports.subproblem.solve(leaf.sigma.astype(float), self.settings.leaf_gap)
        supports.offer(leaf.sigma, solved)
        leaf.alpha = alpha = solved.svm.alpha
        return alpha

    def round(self, outcome: RowsOutcome) -> None:
        """Offer what the relaxed σ, and the size of the weights, lead to."""
        size = np.abs(outcome.warm.w).astype(float)
        if self.is_plain:
            self.round_sizes(size + 1e-3 * outcome.sigma, float(outcome.sigma.sum()))
            return
        wanted = np.flatnonzero(outcome.sigma > 0.0)
        for scores in (outcome.sigma + 1e-3 * size / (size.max(initial=0.0) + 1e-300), size):
            self.dive(wanted[np.argsort(-scores[wanted], kind="stable")])

    def round_sizes(self, size: npt.NDArray[np.floating[Any]], total: float, supports: Supports | None = None) -> None:
        """Offer the features of largest size, as many as `total` says; with rows, what diving by size leads to.

        To `supports`, by default the tree's own; with rows to these.
        """
        if not self.is_plain:
            wanted = np.flatnonzero(size > 0.0)
            self.dive(wanted[np.argsort(-size[wanted], kind="stable")])
            return
        count = max(1, round(total))
        largest = np.argsort(-size, kind="stable")[:count]
        top = np.minimum(size[largest], 1e30)
        scores = scatter(self.run.problem.atoms.count, self.relaxation.alive[largest], top)
        own = self.supports if supports is None else supports
        # Only an incumbent is wanted of the relaxation, no cut.
        own.round(scores, min(own.run.objective, self.run.objective))

    def dive(self, order: Integers) -> None:
        """Offer the selection that takes the alive atoms in this order as far as the rows allow."""
        states = self.relaxation.propagation.dive(order)
        if states is None:
            return
        sigma = mask_of(self.run.problem.atoms.count, self.relaxation.alive[states == INSIDE])
        if not self.supports.was_seen(sigma) and self.run.problem.selection.contains(sigma):
            self.supports.evaluate(sigma)

    @property
    def _size(self) -> int:
        """What a Newton step is counted for: samples times features in play."""
        return max(1, self.run.problem.data.n_samples * self.relaxation.alive.size)

    @property
    def relaxed_work(self) -> float:
        """Newton steps on relaxations so far, times samples and features, in units of `SearchSettings.unit`."""
        one = self._size * self.relaxation.step / self.run.settings.search.unit
        return float((self.steps - self.svm_steps) * one)

    @property
    def work(self) -> float:
        """What was done so far, in the same units: an SVM on completions counts as many scores as it costs."""
        scores = self.svms * self.run.settings.completions.worth * self.run.problem.data.n_samples
        return float(self.relaxed_work + scores / self.run.settings.search.unit)

    @property
    def svm_work(self) -> float:
        """What an SVM of the search costs, in these units, on as many stored numbers as `measure_svm` found."""
        one = self.run.settings.search
        return float((one.call + one.row * self.run.problem.data.n_samples + one.number * self._svm_numbers) / one.unit)

    def measure_svm(self) -> None:
        """Count the stored numbers of the incumbent's columns, or of all: while nothing is searched for beside."""
        found, problem = self.run.incumbent, self.run.problem
        if found is not self._measured:
            columns = None if found is None else problem.atoms.columns(found.selected).ids
            self._measured, self._svm_numbers = found, problem.data.block(columns).nnz

    @property
    def is_dear(self) -> bool:
        """Whether an SVM takes so long that it is solved beside the nodes wherever that can be."""
        dear: float = self.run.settings.search.dear
        return self.svm_work >= dear

    def nodes_per_rounding(self, n_nodes: int) -> float:
        """How many nodes lie between two roundings at least, which come one after the other, and nodes on all cores."""
        by_work = self.svm_work * n_nodes / (self.run.settings.search.beside * max(self.work, 1e-9))
        return float(max(by_work, n_nodes / self.settings.rounding_share))

    def pointed_to(self) -> npt.NDArray[np.bool_] | None:
        """The selection of S that the open node of least bound points to."""
        if not len(self.waiting):
            return None
        alive = self.relaxation.alive
        node = self.node(self.waiting.first(alive.size), 0)
        promise = np.abs(node.warm.w) + 1e30 * (node.states == INSIDE)
        scores = scatter(self.run.problem.atoms.count, alive, np.where(node.states == OUTSIDE, 0.0, promise))
        return self.run.oracle.repair(scores)

    @property
    def _root_screening_cutoff(self) -> float:
        """What screens at the root: where that leaves little, it is the bound, and better than the asked gap allows."""
        cutoff = self.cutoff
        objective = self.run.objective
        unused = self.run.settings.root.unused
        return cutoff + unused * (objective - cutoff) if cutoff < objective < math.inf else cutoff

    @property
    def n_open(self) -> int:
        """The number of open nodes, with the leaves that wait for their SVMs."""
        return len(self.waiting) + len(self.leaves)

    def finish(self) -> Proof | None:
        """The proof of the bound; None where none was begun, or where it was lost."""
        heads = one_after_the_other([self.waiting.heads, *(leaf.heads for leaf in self.packed_leaves())])
        return self.finish_proof(heads) if self.n_nodes else None


@dataclass
class Leaf:
    """A node that is one selection of S, and waits for the dual vector of its SVM.

    node, sigma : the node, and its selection (count,) bool;  alpha : (n,) the dual vector, once it is there
    """

    node: OpenNode
    sigma: npt.NDArray[np.bool_]
    alpha: Array | None = None


def next_of(places: Integers, least: int) -> int:
    """The first of some places, in order, that is no less than another one."""
    at = int(np.searchsorted(places, least))
    return int(places[at]) if at < places.size else NO_PLACE
