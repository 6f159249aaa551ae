"""Branch and bound over whole points λ in a box, for any scale a ≥ 0 and intercept b (`mipfs.lab.scorecard.cone`).

Points that may all be doubled are as good as their double at half the scale: a box that holds such points alone is left
out, its doubles lie in another.
"""

from __future__ import annotations

import heapq
import itertools
import time
from dataclasses import dataclass, field

import numpy as np

from mipfs.errors import NumericalError
from mipfs.lab.scorecard.cone import ConeProof, Ground, Whole, solve_cone
from mipfs.plumbing import total_limit
from mipfs.plumbing.arrays import Array
from mipfs.plumbing.signals import hearing_signals, hold_signals, is_any_interrupted
from mipfs.result.gap import relative_gap
from mipfs.result.result import Status, StopReason

ROUNDED_AT_THE_ROOT = 40
"""Scales that the real weights are divided by and rounded at the root."""
ROUNDED_AT_A_NODE = 3
"""As many at every node."""
WHOLE_ENOUGH = 1e-6
"""Distance below which a point is whole."""


def reason_of_interrupt() -> StopReason:
    """What a search says that a signal ended: it is Ctrl-C, or the total limit of the command."""
    return StopReason.TIME_LIMIT if total_limit.is_up() else StopReason.INTERRUPTED


@dataclass(frozen=True, eq=False)
class BoxSearchResult:
    """What the search ends with: points (k,), scale, intercept, objective on the ground, bound, and how it ended.

    `real` is F of the best points that are no whole numbers.
    """

    points: Whole
    scale: float
    intercept: float
    objective: float
    bound: float
    status: Status
    stop_reason: StopReason
    real: float
    nodes: int


@dataclass(frozen=True, eq=False)
class BoxNode:
    """A box of points, and a number below the objective of all of them."""

    bound: float
    low: Whole
    high: Whole


@dataclass(eq=False)
class BoxSearch:
    """One run over the points low ≤ λ ≤ high, where every entry of low is 0 or −most, and of high 0 or most."""

    ground: Ground
    low: Whole
    high: Whole
    most: int
    samples: int
    gap: float
    deadline: float
    best: float = np.inf
    at: tuple[Whole, float, float] | None = None
    settled: float = np.inf
    nodes: int = 0
    real: float = np.inf
    known: set[tuple[int, ...]] = field(default_factory=set)
    proof: ConeProof | None = None

    def run(self) -> BoxSearchResult:
        """Search until the gap is closed, the time is up, or Ctrl-C."""
        reason, count = StopReason.GAP_CLOSED, itertools.count()
        heap = [(0.0, next(count), BoxNode(0.0, self.low, self.high))]
        self.try_points(np.zeros(self.low.size, dtype=np.int64))
        try:
            with hearing_signals():
                while heap and heap[0][0] < self.cutoff:
                    if is_any_interrupted():  # what ran before it took the signal as its own
                        reason = reason_of_interrupt()
                        break
                    if self.nodes and time.monotonic() >= self.deadline:
                        reason = StopReason.TIME_LIMIT
                        break
                    children = self.children(heap[0][2])  # Ctrl-C in here leaves the node where it is
                    with hold_signals():  # no child is lost
                        heapq.heappop(heap)
                        for child in children:
                            heapq.heappush(heap, (child.bound, next(count), child))
        except KeyboardInterrupt:
            reason = reason_of_interrupt()
        assert self.at is not None
        bound = min(self.settled, self.best, heap[0][0] if heap else np.inf)
        status = Status.OPTIMAL if relative_gap(self.best, bound) <= self.gap else Status.FEASIBLE
        if status is Status.FEASIBLE and reason is StopReason.GAP_CLOSED:
            reason = StopReason.NUMERICAL
        return BoxSearchResult(*self.at, self.best, bound, status, reason, self.real, self.nodes)

    @property
    def cutoff(self) -> float:
        """The bound from which on a box is of no interest."""
        return self.best - self.gap * abs(self.best)

    def children(self, node: BoxNode) -> list[BoxNode]:
        """The halves of a box that may hold something better; what is left out is `settled`."""
        w, b, alpha = solve_cone(self.ground, node.low, node.high)
        proof = ConeProof.of(self.ground, alpha, self.samples)
        bound = max(node.bound, proof.bound(self.ground.d, node.low, node.high))
        root = self.nodes == 0
        self.nodes += 1
        if root:
            self.real = self.ground.value(w, b)
        scales = self.scales(w, node, ROUNDED_AT_THE_ROOT if root else ROUNDED_AT_A_NODE)
        for a in scales:
            self.try_points(np.clip(np.rint(w / a).astype(np.int64), node.low, node.high), proof)
        if root:
            self.improve(proof)
        if bound >= self.cutoff or np.array_equal(node.low, node.high):
            self.settled = min(self.settled, bound)
            return []
        halves = self.halves(node, w / scales[0] if scales else np.zeros(w.size))
        kept = []
        for low, high in halves:
            if max(int(high.max()), -int(low.min())) <= self.most // 2:
                continue  # the doubles of these points are as good
            least = max(bound, proof.bound(self.ground.d, low, high))
            if least >= self.cutoff:
                self.settled = min(self.settled, least)
            else:
                kept.append(BoxNode(least, low, high))
        return kept

    def halves(self, node: BoxNode, t: Array) -> list[tuple[Whole, Whole]]:
        """Two boxes at the point that is least whole for its weight, or at the widest one."""
        j, at = self.cut(node, t)
        high, low = node.high.copy(), node.low.copy()
        high[j], low[j] = at, at + 1
        return [(node.low, high), (low, node.high)]

    def cut(self, node: BoxNode, t: Array) -> tuple[int, int]:
        """The column j and the value at which a box is halved, λ_j ≤ value and λ_j ≥ value + 1."""
        far = np.abs(t - np.rint(t)) * self.ground.d
        wide = (node.high - node.low).astype(float)
        far[wide == 0] = 0.0
        j = int(np.argmax(far)) if far.max() > WHOLE_ENOUGH * self.ground.d.max() else int(np.argmax(wide))
        return j, int(np.clip(np.floor(t[j]), node.low[j], node.high[j] - 1))

    def scales(self, w: Array, node: BoxNode, count: int) -> list[float]:
        """Scales a > 0 with which w lies in the cone of a box, the least first: it has the largest points."""
        low, high = node.low, node.high
        if not np.any(w):
            return []
        with np.errstate(divide="ignore", invalid="ignore"):
            ends = np.where(w > 0, w / high, w / low)
            others = np.where(low > 0, w / low, np.where(high < 0, w / high, np.inf))
        ends = ends[(w != 0) & np.isfinite(ends)]
        least, largest = float(ends.max(initial=0.0)), float(others.min())
        if not least > 0.0:
            return []
        largest = min(max(least, largest), least * self.most)
        return np.geomspace(least, largest, count).tolist() if largest > least else [least]

    def improve(self, proof: ConeProof) -> None:
        """Single points up and down by one or two, as long as that helps."""
        assert self.at is not None
        before = np.inf
        while self.best < before:
            before, start = self.best, self.at[0]
            for j in range(start.size):
                for step in (-2, -1, 1, 2):
                    tried = start.copy()
                    tried[j] += step
                    if self.low[j] <= tried[j] <= self.high[j] and time.monotonic() < self.deadline:
                        self.try_points(tried, proof)

    def try_points(self, points: Whole, proof: ConeProof | None = None) -> None:
        """The best scale and intercept for some points, where nothing says that they are no better."""
        points = points // max(1, int(np.gcd.reduce(points)))
        key = tuple(points.tolist())
        if key in self.known or (proof is not None and proof.bound(self.ground.d, points, points) >= self.best):
            return
        self.known.add(key)
        along = self.ground.along(points) if points.any() else self.ground.constant()
        one = np.ones(1, dtype=np.int64)
        try:
            w, b, _ = solve_cone(along, one if points.any() else one * 0, one if points.any() else one * 0)
        except NumericalError:
            if self.at is None:  # of no points at all, which a card has at least
                raise
            return
        a = max(float(w[0]), 0.0)
        value = self.ground.value(a * points.astype(float), b)
        if value < self.best:
            self.best = value
            self.at = (points, a, b) if a > 0.0 else (points * 0, 1.0, b)
