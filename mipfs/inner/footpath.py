"""Nodes of `branch` that the interior point relaxes, one after the other: whatever can be selected, with any rows.

What becomes of them is what becomes of nodes that compiled code relaxes, by the same code
(`mipfs.kernels.subtree.settle_relaxed`); the interior point is one more way to relax. It takes extra variables, bounds
that exclude 0 and every loss, and the nodes that neither Newton's steps nor ADMM bring home.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mipfs.inner.boolean_node import FREE, INSIDE, OUTSIDE, PLACES_PER_NODE, NodeOutcome, States, WarmStart, branching
from mipfs.inner.prices import RowPrices
from mipfs.kernels import subtree, units
from mipfs.kernels.batch_structures import AliveAtoms
from mipfs.kernels.prices import WHOLE
from mipfs.kernels.structures import (
    LIMITS,
    NO_MEMORY,
    DualGrid,
    ExplorationScratch,
    ExploredPiece,
    RowSides,
    only_read,
    steering_of,
)
from mipfs.kernels.units import ExploredPieces, FirstDuals, OpenNodes
from mipfs.losses import get_loss
from mipfs.plumbing.arrays import Array, Integers
from mipfs.pointers import Step
from mipfs.problem import Problem
from mipfs.proof.cuts import dual_top
from mipfs.proof.proof import Multipliers
from mipfs.settings import NodeSettings
from mipfs.svm.dyadic import finest_bits

BELOW = 1
"""Nodes that are solved below one: its own."""
RHO = 0.5
"""Where the smoothing of a node begins whose parent the interior point has solved."""

Handed = tuple[AliveAtoms, DualGrid, RowSides, npt.NDArray[Any], ExploredPiece, ExplorationScratch]
"""What `settle_relaxed` takes beside a branching rule and the number of a piece."""


@dataclass(frozen=True, eq=False)
class RowsOutcome(NodeOutcome):
    """A solved node and the prices of its rows.

    Attributes
    ----------
    prices : RowPrices, which with the dual vector earn the bound
    ray : (r,) multipliers that show that the rows leave the node no selection, or None
    """

    prices: RowPrices
    ray: Multipliers | None = None


class NodeTolerances(NamedTuple):
    """How far the interior point solves a node: `cutoff`, `tol` and `share` of LIMITS (`mipfs.kernels.structures`)."""

    cutoff: float
    tol: float
    share: float


class Footpath:
    """What relaxes nodes one after the other, beside `mipfs.inner.boolean_node.BooleanRelaxation` and
    `mipfs.inner.batch`.

    Parameters
    ----------
    problem : Problem with a pointwise loss
    alive : (k,) positions of the atoms that no screening has excluded
    stop : (1,) int8, set from outside to give up
    relax : what solves the relaxation of a node with its states and its parent's warm start and dual vector
    rule : a branching rule, a compiled function of `mipfs.branching`
    nodes : NodeSettings, of what nodes have in common
    """

    def __init__(
        self,
        problem: Problem,
        alive: Integers,
        stop: States,
        relax: Callable[[States, WarmStart, Array, NodeTolerances], RowsOutcome],
        rule: Any,
        nodes: NodeSettings,
    ) -> None:
        self.problem, self.alive, self.stop, self.rule = problem, alive, stop, rule
        self.relax = relax
        self._steering = steering_of(nodes)
        self._branch = branching(rule, np.empty(0, dtype=np.int64), np.empty(0), np.empty(0))[1]

    def explore_all(
        self,
        nodes: OpenNodes,
        duals: FirstDuals,
        limits: npt.NDArray[Any],
        sides: RowSides,
        prices: Array,
        memory: Array = NO_MEMORY,
    ) -> ExploredPieces:
        """Relax open nodes, and prune or split each.

        Parameters
        ----------
        nodes, duals, limits, sides, prices, memory : as of `mipfs.inner.boolean_node.BooleanRelaxation.explore_all`
        """
        count = limits.size
        handed = _, grid, _, own_limits, pieces, work = self._settling_arguments(count, sides, memory)
        own_limits[:] = limits
        units.lay_out_nodes(nodes, duals, grid.c, pieces, work.first)
        pieces.prices[:, 0] = prices
        subtree.plant_all(pieces)
        pieces.nodes["why"][:, 0], pieces.nodes["age"][:, 0] = subtree.OPEN, 0
        for of in range(count):
            if not self.stop[0]:
                self._settle_node(handed, of)
        return units.gather_pieces(pieces)

    def _settle_node(self, handed: Handed, of: int) -> None:
        """Relax one node; what becomes of it."""
        alive, _, _, limits, pieces, work = handed
        total, node, limit = pieces.totals[of, 0], pieces.nodes[of, 0], limits[of]
        inside, free = (np.flatnonzero(pieces.states[of, 0] == state) for state in (INSIDE, FREE))
        is_leaf = free.size == 0 or 0 <= alive.M <= inside.size
        warm = WarmStart(pieces.weights[of, 0], float(node["intercept"]), float(node["rho"]))
        if not is_leaf:
            ask = NodeTolerances(float(limit["cutoff"]), float(limit["tol"]), float(limit["share"]))
            outcome = self.relax(pieces.states[of, 0], warm, work.first[of], ask)
            total["steps"] += outcome.steps
        if is_leaf or outcome.ray is not None:
            total["solved"] += 1
            node["why"] = subtree.LEAF if is_leaf else subtree.BARREN
            return
        self._read(outcome, handed, (inside, free))
        subtree.settle_relaxed(self._branch.made(), *handed, of)
        sigma = outcome.sigma[free]
        if pieces.sums[of, 0] >= 0.0 and not np.any(np.minimum(sigma, 1.0 - sigma) > WHOLE):
            # Place 0 has the weights of a first node, of which few are rounded; those of place 1 always are.
            pieces.offers[of, 1], pieces.sums[of, 1] = pieces.offers[of, 0], pieces.sums[of, 0]
            pieces.sums[of, 0], total["offers"] = -1.0, 2

    def _read(self, outcome: RowsOutcome, handed: Handed, fixed: tuple[Integers, Integers]) -> None:
        """Lay out a relaxation in `work`: as what compiled code finds, in its units."""
        alive, grid, _, _, _, work = handed
        inside, free = fixed
        now, newton, columns = work.now[0], work.newton[0], np.append(inside, free)
        count = columns.size
        now["node"], now["forced"], now["count"] = 0, inside.size, count
        now["room"] = free.size if alive.M < 0 else min(alive.M - inside.size, free.size)
        now["is_leaf"] = now["completes"] = now["undecided"] = 0
        now["lower"], now["upper"] = outcome.bound / grid.size, np.inf
        now["bound"], now["exponent"], now["sum"] = outcome.bound, outcome.q, outcome.sigma.sum()
        newton["why"], newton["rho"], newton["intercept"] = 0, RHO, outcome.warm.b
        work.columns[:count] = columns
        work.w[:count] = outcome.warm.w[columns] / np.sqrt(grid.size)
        work.sigma[:count] = outcome.sigma[columns]
        states = np.full(self.alive.size, FREE, dtype=np.int8)
        states[outcome.fixed_in], states[outcome.fixed_out] = INSIDE, OUTSIDE
        work.fixed[:count] = states[columns]
        work.wholes[1] = outcome.whole
        work.y[:] = outcome.prices.y

    def _settling_arguments(self, count: int, sides: RowSides, memory: Array = NO_MEMORY) -> Handed:
        """What `settle_relaxed` takes, for `count` nodes: limits and what they begin with are unset."""
        problem, k, n, m = self.problem, self.alive.size, self.problem.dual_size, BELOW + 1
        c, rows, most = dual_top(problem), sides.indptr.size - 1, -1 if problem.M is None else problem.M
        penalty = only_read(np.array(problem.penalty[self.alive], dtype=float))
        alive = AliveAtoms(only_read(np.zeros(1, dtype=np.int64)), penalty, most)
        top, bits = only_read(get_loss(problem.loss).top(problem.c_i)), finest_bits(problem.data.n_samples)
        grid = DualGrid(only_read(c), top, float(problem.c_i.max()), bool(np.any(c != c[0])), bits, np.inf)
        work = ExplorationScratch.of(n, k, rows, BELOW, count, self.stop, self._steering)
        places = 3 * m - 2 + (6 * k + PLACES_PER_NODE if rows else 0)
        pieces = ExploredPiece.of(count, m, k, rows, places, m * (8 * n + n // 4 + 4))
        return alive, grid, sides, np.empty(count, LIMITS), pieces, work._replace(memory=only_read(memory))

    def kernels(self, sides: RowSides) -> list[Step]:
        """What it calls, not compiled yet."""
        handed = _, grid, _, _, pieces, work = self._settling_arguments(0, sides)
        settle = Step.of(subtree.settle_relaxed, self._branch, *handed, 0)
        plant = Step.of(subtree.plant_all, pieces)
        return [settle, self._branch, plant, *units.steps(pieces, grid.c, work.first)]
