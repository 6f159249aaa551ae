"""Branch and bound over the features of a card and their points together, with its proof.

    min over whole λ in a box, points for at most M features, a > 0, b of
        ½ Σ (s_j a λ_j)² + Σ c_i ℓ(y_i (a λ'x_i + b))

Over the features the tree follows the one by which the problem of real weights was solved (`Guide`), which proves most
sets to be worth more than the best card. Every dual vector bounds every selection of features and every box of points
(`mipfs.lab.scorecard.cone`), so that one pool of them serves all nodes, and where the guide ends the best of the pool
is taken, all of it at once. Where M features are in, the relaxation over their points is solved, which adds its dual
vector to the pool. The tree is that of docs/certificate.md, *Features and points together*.
"""

from __future__ import annotations

import heapq
import itertools
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs.errors import NumericalError
from mipfs.lab.scorecard.columns import Column
from mipfs.lab.scorecard.cone import ConeProof, Ground, Whole, solve_cone
from mipfs.lab.scorecard.search import ROUNDED_AT_A_NODE, ROUNDED_AT_THE_ROOT, BoxNode, BoxSearch, reason_of_interrupt
from mipfs.lab.scorecard.within import PlacedRows, largest_sum
from mipfs.plumbing.arrays import Array
from mipfs.plumbing.signals import hearing_signals, hold_signals, is_any_interrupted
from mipfs.proof.duals import DualStore
from mipfs.proof.proof import SCREENED
from mipfs.result.gap import relative_gap
from mipfs.result.result import Status, StopReason

OPEN, OUT, IN = -1, 0, 1
"""States of a candidate."""
LEAF, DOUBLED = -1, -2
"""In place of what a node is split on."""
NONE = -1
"""In place of a dual vector: no card is left."""
BELOW = 1e-11
"""What the claimed bound lies below the one that was computed, relative: room for the rounding of other checkers."""
PREFIX = "joint_"
"""Before the names of the arrays of the proof."""
States = npt.NDArray[np.int8]


@dataclass(frozen=True, eq=False)
class CardCandidates:
    """What a card may be made of.

    Attributes
    ----------
    names : tuple of F str, the features
    columns : tuple of k Column, those of one feature after those of another, in the order of `names`
    ground : Ground, all n samples in these columns
    low, high : (k,) ends of the points
    most : int, K
    M : int, features with points at most
    within : PlacedRows or None, rows over the features with points
    """

    names: tuple[str, ...]
    columns: tuple[Column, ...]
    ground: Ground
    low: Whole
    high: Whole
    most: int
    M: int
    within: PlacedRows | None = None

    @cached_property
    def owner(self) -> Whole:
        """The feature (k,) of every column."""
        place = {name: f for f, name in enumerate(self.names)}
        return np.array([place[column.feature] for column in self.columns], dtype=np.int64)

    @cached_property
    def starts(self) -> Whole:
        """The first column (F,) of every feature."""
        return np.searchsorted(self.owner, np.arange(len(self.names)))

    def of(self, state: States) -> Whole:
        """The columns of the features that are in."""
        return np.flatnonzero((state == IN)[self.owner])

    def closed(self, state: States) -> States:
        """States (F,) where those that are open and may not come in any more are out."""
        if np.count_nonzero(state == IN) == self.M:
            return np.where(state == OPEN, OUT, state).astype(np.int8)
        return state if self.within is None else self.within.closed(state)

    def largest(self, costs: Array, state: States) -> Array:
        """The largest sum of costs (D, F) over open features that may come in together, or more, (D,)."""
        found = largest_sum(costs[:, state == OPEN], self.M - int(np.count_nonzero(state == IN)))
        return found if self.within is None else np.minimum(found, self.within.largest(costs, state))


@dataclass(frozen=True, eq=False)
class Guide:
    """The tree of a run over real weights, by the arrays of its certificate, and its dual vectors.

    Attributes
    ----------
    alphas : (D, n) dual vectors
    feature : (N,) what a node is split on; `SCREENED`, or −1 of a leaf
    children : (N, 2)
    dual : (N,) position of its dual vector, negative where there is none
    """

    alphas: Array
    feature: Whole
    children: Whole
    dual: Whole

    @classmethod
    def none(cls, n: int) -> Guide:
        """That of no run."""
        nothing = np.zeros(0, dtype=np.int64)
        return cls(np.zeros((0, n)), nothing, nothing.reshape(0, 2), nothing)


class DualPool:
    """Dual vectors over all samples, each with what it proves: g (D,), and of every feature ½ Σ (q_j/s_j)² (D, F)."""

    def __init__(self, among: CardCandidates) -> None:
        self.among = among
        c = among.ground.c
        self.store = DualStore(c.size, None if np.all(c == c[0]) else c)
        self.proofs: list[ConeProof] = []
        self._g, self._costs = np.empty(64), np.empty((64, len(among.names)), order="F")

    @property
    def g(self) -> Array:
        return self._g[: len(self.proofs)]

    @property
    def costs(self) -> Array:
        return self._costs[: len(self.proofs)]

    def add(self, alpha: Array) -> int:
        """Store an approximate dual vector (n,), made feasible; returns its position."""
        ground, d = self.among.ground, len(self.proofs)
        proof = ConeProof.of(ground, alpha, ground.y.size)
        if d == self._g.size:
            self._g, self._costs = (np.concatenate([held, np.empty_like(held)]) for held in (self._g, self._costs))
        # A weight has no sign that its points may not have.
        up = np.where(self.among.high > 0, proof.q + proof.off, 0.0)
        down = np.where(self.among.low < 0, proof.off - proof.q, 0.0)
        q = np.maximum(0.0, np.maximum(up, down))
        self._g[d] = proof.g
        self._costs[d] = 0.5 * np.add.reduceat(q * q, self.among.starts) * (1.0 + 1e-14)
        with hold_signals():  # one that is half added would count
            self.store.add(proof.whole, proof.shift)
            self.proofs.append(proof)
        return d

    def best(self, state: States) -> tuple[float, int]:
        """The largest bound of a node whose boxes are whole, and the dual vector that has it."""
        found = self.g - self.costs[:, state == IN].sum(axis=1) - self.among.largest(self.costs, state)
        d = int(np.argmax(found))
        return self._sum_rounded_down(d, float(found[d])), d

    def bound_of_node(self, d: int, state: States) -> float:
        """What dual vector d proves of a node whose boxes are whole."""
        costs = self.costs[d : d + 1]
        found = self._g[d] - costs[0, state == IN].sum() - self.among.largest(costs, state)[0]
        return self._sum_rounded_down(d, float(found))

    def near(self, d: int, state: States, cutoff: float) -> Whole:
        """Open features of which dual vector d may prove that they are in, or out: all that it does as the state is."""
        ids = np.flatnonzero(state == OPEN)
        rest = self.among.M - int(np.count_nonzero(state == IN))
        if self.among.within is not None or rest <= 0 or rest >= ids.size:
            return ids
        costs = self._costs[d, ids]
        least = self._g[d] - self._costs[d, state == IN].sum() - cutoff + 1e-9 * abs(self._g[d])
        last, next_one = -np.partition(-costs, (rest - 1, rest))[rest - 1 : rest + 1]
        top = float(largest_sum(costs[None], rest)[0])
        without = top - costs + next_one  # of one that is among the largest and goes out
        beyond = top - last + costs  # of another that comes in
        return np.asarray(ids[np.where(costs >= last, without, beyond) <= least])

    def _sum_rounded_down(self, d: int, found: float) -> float:
        """A sum of g(α) and costs that are no larger, rounded down."""
        return max(0.0, found - 1e-13 * abs(float(self._g[d])))

    def bound(self, d: int, columns: Whole, low: Whole, high: Whole) -> float:
        """What dual vector d proves where the features of these columns are in, all others out, of a box of points."""
        return self.proofs[d].over(columns).bound(self.among.ground.d[columns], low, high)

    def arrays(self, used: Whole) -> dict[str, npt.NDArray[np.generic]]:
        """Some of the dual vectors as the sidecar has them."""
        return {f"{PREFIX}{name}": held for name, held in self.store.part(used).arrays().items()}


@dataclass(eq=False)
class CardTree:
    """The nodes of the proof: what each is split on, at which value, its children, and its dual vector."""

    split: list[int] = field(default_factory=lambda: [LEAF])
    value: list[int] = field(default_factory=lambda: [0])
    children: list[tuple[int, int]] = field(default_factory=lambda: [(-1, -1)])
    leaf: list[int] = field(default_factory=lambda: [NONE])

    def reopen(self, node: int, size: int) -> None:
        """Make a node a leaf again that was split when there were `size` nodes, and forget those after them."""
        for held in (self.split, self.value, self.children, self.leaf):
            del held[size:]
        self.split[node], self.value[node], self.children[node] = LEAF, 0, (-1, -1)

    def branch(self, node: int, split: int, value: int = 0) -> tuple[int, int]:
        """Split a leaf; its two children."""
        first = len(self.split)
        self.split[node], self.value[node], self.children[node] = split, value, (first, first + 1)
        for _ in range(2):
            self.split.append(LEAF)
            self.value.append(0)
            self.children.append((-1, -1))
            self.leaf.append(NONE)
        self.leaf[node] = NONE
        return first, first + 1


@dataclass(frozen=True, eq=False)
class CardNode:
    """An open node: candidates' states (F,), the columns that are in with their box, its bound and who proves it.

    `guide` is the node of the guide that it follows; −1 for none.
    """

    place: int
    state: States
    columns: Whole
    low: Whole
    high: Whole
    bound: float
    dual: int
    guide: int = -1

    @property
    def is_whole(self) -> bool:
        """Whether no feature is open."""
        return not bool(np.any(self.state == OPEN))


@dataclass(frozen=True, eq=False)
class JointSearchResult:
    """What the search ends with: points (k,) of all columns of the candidates, objective, proven bound, and the proof.

    `supports` are the sets of features whose points were looked at.
    """

    points: Whole
    scale: float
    intercept: float
    objective: float
    bound: float
    status: Status
    stop_reason: StopReason
    nodes: int
    supports: int
    arrays: Mapping[str, npt.NDArray[np.generic]]


class JointSearch:
    """One run.

    Parameters
    ----------
    among : CardCandidates
    guide : Guide
    start : points (k,), scale, intercept and objective of a card to be no worse than
    gap : float, relative gap at which the search ends
    deadline : float, of the monotonic clock
    """

    def __init__(
        self, among: CardCandidates, guide: Guide, start: tuple[Whole, float, float, float], gap: float, deadline: float
    ) -> None:
        self.among, self.guide, self.gap, self.deadline = among, guide, gap, deadline
        self.pool, self.tree = DualPool(among), CardTree()
        self.at, self.best = start[:3], start[3]
        self.settled, self.nodes = np.inf, 0
        self._count = itertools.count()
        self._heap: list[tuple[float, int, CardNode]] = []
        self._searches: dict[tuple[int, ...], tuple[BoxSearch, Whole]] = {}
        for alpha in guide.alphas:
            self.pool.add(alpha)
        nothing = np.zeros(1, dtype=np.int64)  # the card without points
        alike, place = replace(among.ground, Z=np.zeros((among.ground.y.size, 1)), d=np.ones(1)).alike()
        self.pool.add(self._spread_over_samples(alike, solve_cone(alike, nothing, nothing)[2], place))

    def _spread_over_samples(self, alike: Ground, alpha: Array, place: Whole) -> Array:
        """The dual vector (n,) of all samples that one of gathered samples stands for: by their weights."""
        return np.asarray(alpha[place] * (self.among.ground.c / alike.c[place]))

    @property
    def cutoff(self) -> float:
        """The bound from which on a node is of no interest."""
        return self.best - self.gap * abs(self.best)

    def run(self) -> JointSearchResult:
        """Search until the gap is closed, the time is up, or Ctrl-C."""
        reason = StopReason.GAP_CLOSED
        root = np.full(len(self.among.names), OPEN, dtype=np.int8)
        self._push_part(replace(self._make_part(0, root), guide=0 if self.guide.feature.size else -1))
        try:
            with hearing_signals():
                while self._heap and self._heap[0][0] < self.cutoff:
                    if is_any_interrupted():  # what ran before it took the signal as its own
                        reason = reason_of_interrupt()
                        break
                    if time.monotonic() >= self.deadline:
                        reason = StopReason.TIME_LIMIT
                        break
                    size = len(self.tree.split)
                    children = self._children_of(self._heap[0][2])
                    with hold_signals():  # no child is lost
                        heapq.heappop(self._heap)
                        for child in children:
                            self._push_part(child)
        except KeyboardInterrupt:
            if self._heap and self.tree.split[self._heap[0][2].place] != LEAF:
                self.tree.reopen(self._heap[0][2].place, size)
            reason = reason_of_interrupt()
        for _, _, part in sorted(self._heap):
            bound, dual = part.bound, part.dual
            if bound < self.settled and not part.is_whole:  # the pool has not been asked about it, and it is the least
                own, d = self.pool.best(part.state)
                bound, dual = (own, d) if own > bound else (bound, dual)
            self._settle_leaf(part.place, dual, bound)
        bound = min(self.settled - BELOW * abs(self.settled), self.best)
        status = Status.OPTIMAL if relative_gap(self.best, bound) <= self.gap else Status.FEASIBLE
        if status is Status.FEASIBLE and reason is StopReason.GAP_CLOSED:
            reason = StopReason.NUMERICAL
        supports = len(self._searches)
        return JointSearchResult(*self.at, self.best, bound, status, reason, self.nodes, supports, self._proof_arrays())

    def _push_part(self, part: CardNode) -> None:
        heapq.heappush(self._heap, (part.bound, next(self._count), part))

    def _settle_leaf(self, place: int, dual: int, bound: float) -> None:
        self.tree.leaf[place] = dual
        self.settled = min(self.settled, bound)

    def _make_part(
        self,
        place: int,
        state: States,
        known: tuple[float, int] | None = None,
        guide: int = -1,
    ) -> CardNode:
        """A node with whole boxes; with M features in, those that are open are out.

        `known` is a bound with its dual vector, of a node above; without it the pool is asked.
        """
        state = self.among.closed(state)
        columns = self.among.of(state)
        low, high = self.among.low[columns], self.among.high[columns]
        if known is None or not np.any(state == OPEN):
            own = self.pool.best(state)
            known = own if known is None or own[0] > known[0] else known
        return CardNode(place, state, columns, low, high, *known, guide)

    def _children_of(self, part: CardNode) -> list[CardNode]:
        """The parts of a node that may hold something better; what is left out is settled."""
        self.nodes += 1
        found = self._of_points(part) if part.is_whole else self._of_features(part)
        kept = []
        for child in found:
            if child.bound >= self.cutoff or (child.is_whole and not child.columns.size):
                self._settle_leaf(child.place, child.dual, child.bound)
            else:
                kept.append(child)
        return kept

    def _of_features(self, part: CardNode) -> list[CardNode]:
        """Split as the guide does, or on the open feature that the best dual vector has the most of."""
        g = part.guide
        if g >= 0 and self.guide.dual[g] >= 0:
            d = int(self.guide.dual[g])
            if self.guide.feature[g] == SCREENED:
                return [self._screen_features(part, d, int(self.guide.children[g, 0]))]
            own = self.pool.bound_of_node(d, part.state)
            part = replace(part, bound=own, dual=d) if own > part.bound else part
            if part.bound >= self.cutoff:
                return [part]
        if g >= 0 and self.guide.feature[g] >= 0:
            f, below = int(self.guide.feature[g]), self.guide.children[g]
            if f >= part.state.size:  # whether a part is used at all
                return self._of_part(part, f - part.state.size, below)
            if part.state[f] == OPEN:
                return self._split_on_feature(part, f, (part.bound, part.dual), below)
            return [replace(part, guide=int(below[int(part.state[f])]))]
        bound, dual = self.pool.best(part.state)
        if bound >= self.cutoff:
            return [replace(part, bound=bound, dual=dual)]
        costs = np.where(part.state == OPEN, self.pool.costs[dual], -1.0)
        return self._split_on_feature(part, int(np.argmax(costs)))

    def _of_part(self, part: CardNode, g: int, below: Whole) -> list[CardNode]:
        """Split on an open feature of a part: where it is in, the part is used; the last one decides otherwise."""
        assert self.among.within is not None
        own = self.among.within.of_part[g]
        still = own[part.state[own] == OPEN]
        if np.any(part.state[own] == IN) or not still.size:
            return [replace(part, guide=int(below[int(np.any(part.state[own] == IN))]))]
        return self._split_on_feature(part, int(still[0]), (part.bound, part.dual), (part.guide, int(below[1])))

    def _split_on_feature(
        self, part: CardNode, f: int, known: tuple[float, int] | None = None, below: Any = (-1, -1)
    ) -> list[CardNode]:
        """The children of a node that is split on feature f, by the bound of the node or of the pool."""
        parts = []
        for value, place in zip((OUT, IN), self.tree.branch(part.place, f), strict=True):
            state = part.state.copy()
            state[f] = value
            parts.append(self._make_part(place, state, known, int(below[value])))
        return parts

    def _screen_features(self, part: CardNode, d: int, below: int) -> CardNode:
        """A chain of splits on the features whose other side dual vector d proves to be of no interest."""
        place, state, bound = part.place, part.state.copy(), part.bound
        for f in self.pool.near(d, state, self.cutoff).tolist():
            for value in (IN, OUT) if state[f] == OPEN else ():
                state[f] = value
                own = self.pool.bound_of_node(d, state)
                if own >= self.cutoff:
                    both = self.tree.branch(place, f)
                    self._settle_leaf(both[value], d, own)
                    state[f], place = 1 - value, both[1 - value]
                    break
                state[f] = OPEN
            state = self.among.closed(state)
        own = self.pool.bound_of_node(d, state)
        known = (own, d) if own > bound else (bound, part.dual)
        return self._make_part(place, state, known, below)

    def _box_search(self, columns: Whole) -> tuple[BoxSearch, Whole]:
        """The search over the points of some columns, and the place (n,) of every sample in its ground."""
        key = tuple(columns.tolist())
        if key not in self._searches:
            ground, place = self.among.ground.over(columns).alike()
            low, high = self.among.low[columns], self.among.high[columns]
            search = BoxSearch(ground, low, high, self.among.most, self.among.ground.y.size, self.gap, self.deadline)
            search.at = np.zeros(columns.size, dtype=np.int64), 1.0, 0.0
            self._searches[key] = search, place
        return self._searches[key]

    def _of_points(self, part: CardNode) -> list[CardNode]:
        """Split on a point, after the relaxation over the box was solved and rounded."""
        search, place = self._box_search(part.columns)
        search.best = self.best
        try:
            w, _, alpha = solve_cone(search.ground, part.low, part.high)
        except NumericalError:
            return self._given_up(part)
        d = self.pool.add(self._spread_over_samples(search.ground, alpha, place))
        bound, dual = part.bound, part.dual
        own = self.pool.bound(d, part.columns, part.low, part.high)
        if own >= bound:
            bound, dual = own, d
        node = BoxNode(bound, part.low, part.high)
        scales = self._round_card(part, search, node, w)
        if bound >= self.cutoff or np.array_equal(part.low, part.high):
            self._settle_leaf(part.place, dual, bound)
            return []
        return self._split_box(part, search, node, w / scales[0] if scales else np.zeros(w.size), dual)

    def _given_up(self, part: CardNode) -> list[CardNode]:
        """A node whose relaxation no solver could solve keeps the bound that it has."""
        self._settle_leaf(part.place, part.dual, part.bound)
        return []

    def _round_card(self, part: CardNode, search: BoxSearch, node: BoxNode, w: Array) -> list[float]:
        """Cards near the relaxation are tried, and the best one kept; the scales that were tried."""
        root = search.nodes == 0
        search.nodes += 1
        scales = search.scales(w, node, ROUNDED_AT_THE_ROOT if root else ROUNDED_AT_A_NODE)
        proof = self.pool.proofs[-1].over(part.columns)
        for a in scales:
            search.try_points(np.clip(np.rint(w / a).astype(np.int64), node.low, node.high), proof)
        if search.best < self.best:
            search.improve(proof)
            assert search.at is not None
            points = np.zeros(len(self.among.columns), dtype=np.int64)
            points[part.columns] = search.at[0]
            self.at, self.best = (points, search.at[1], search.at[2]), search.best
        return scales

    def _split_box(self, part: CardNode, search: BoxSearch, node: BoxNode, t: Array, dual: int) -> list[CardNode]:
        """Both halves of a box; one whose points may be doubled is left out."""
        j, at = search.cut(node, t)
        parts = []
        split = len(self.among.names) + int(part.columns[j])
        for side, place in enumerate(self.tree.branch(part.place, split, at)):
            low, high = node.low.copy(), node.high.copy()
            if side:
                low[j] = at + 1
            else:
                high[j] = at
            if max(int(high.max()), -int(low.min())) <= self.among.most // 2:
                self.tree.split[place] = DOUBLED
                continue
            own = self.pool.bound(dual, part.columns, low, high)
            parts.append(replace(part, place=place, low=low, high=high, bound=own, dual=dual))
        return parts

    def _proof_arrays(self) -> dict[str, npt.NDArray[np.generic]]:
        """The proof as the sidecar has it."""
        leaf = np.array(self.tree.leaf, dtype=np.int32)
        used = np.unique(leaf[leaf >= 0])
        place = np.full(len(self.pool.proofs) + 1, NONE, dtype=np.int32)
        place[used] = np.arange(used.size)
        return {
            f"{PREFIX}split": np.array(self.tree.split, dtype=np.int32),
            f"{PREFIX}value": np.array(self.tree.value, dtype=np.int32),
            f"{PREFIX}children": np.array(self.tree.children, dtype=np.int32).reshape(-1, 2),
            f"{PREFIX}leaf": np.where(leaf >= 0, place[leaf], NONE).astype(np.int32),
        } | self.pool.arrays(used.astype(np.int64))
