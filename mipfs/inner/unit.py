"""A unit of work of `branch`: some open nodes, with all that is asked of whoever explores them, as arrays.

It is what goes to a thread, a process or another machine; what it holds depends on the tree alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mipfs.kernels.structures import NO_MEMORY
from mipfs.kernels.subtree import DEAR, STUCK
from mipfs.kernels.units import ExploredPieces, FirstDuals, OpenNodes
from mipfs.plumbing.arrays import Array
from mipfs.selection.derived import ChvatalGomory


class ColumnOrder(NamedTuple):
    """Which columns of a node with two free places are put in, by their order (`mipfs.kernels.enumeration`).

    begin, end : from where on, and up to where
    is_first : whether the unit is the first of its node that is handed out; the others go on where the one before ends
    """

    begin: int
    end: int
    is_first: bool


class ExplorationRules(NamedTuple):
    """What explorations are told: nothing, where no rule keeps a state and no row is separated.

    All units of a batch are told the same, which is fixed when it is handed out, and what they learn is put together in
    their order: it does not matter who explores, or who is done first.

    memory : (k, ·) of the branching rule
    derived : rows of S that were separated during the search, behind those that the problem has
    """

    memory: Array
    derived: tuple[ChvatalGomory, ...] = ()

    def __reduce__(self) -> Any:
        """Nothing travels as its name."""
        return "NOTHING" if self is NOTHING else (ExplorationRules, tuple(self))


NOTHING = ExplorationRules(NO_MEMORY)


@dataclass(frozen=True, eq=False)
class NodeUnit:
    """Open nodes that are explored together.

    Attributes
    ----------
    nodes : OpenNodes; those whose prices seem to lose much are for the interior point
    duals : FirstDuals, that earned their bounds
    limits : (B,) LIMITS of each
    prices : (B, rows) multipliers that earned their bounds
    is_enumerated : whether all their selections are looked at, in place of their relaxations
    turn : ColumnOrder, optional, of the one node with two free places that is enumerated
    told : ExplorationRules, the same to all units of a batch
    """

    nodes: OpenNodes
    duals: FirstDuals
    limits: npt.NDArray[Any]
    prices: Array
    is_enumerated: bool = False
    turn: ColumnOrder | None = None
    told: ExplorationRules = NOTHING

    def __len__(self) -> int:
        return self.limits.size

    @property
    def size(self) -> int:
        """How many nodes it is, where every column that is put in counts as one."""
        return len(self) if self.turn is None else self.turn.end - self.turn.begin

    @property
    def goes_on(self) -> bool:
        """Whether it goes on where the unit before ends: its node is that one's."""
        return self.turn is not None and not self.turn.is_first

    @property
    def is_dear(self) -> bool:
        """Whether the prices of some of its nodes seem to lose much, so that they are found anew."""
        return bool(np.any(self.nodes.heads["why"] == DEAR))

    def stuck(self, found: ExploredPieces) -> NodeUnit:
        """The nodes that were not brought home from all of these, for another, with the same limits: without weights,
        which each holds in its own way, and with no word of how old their prices are."""
        heads, fresh = found.back.heads, found.totals["duals"] - 1
        of = np.repeat(np.arange(len(self)), found.counts)
        before = len(self) + np.cumsum(fresh) - fresh - 1
        dual = np.where(heads["dual"] > 0, heads["dual"] + before[of], of)
        at = np.flatnonzero(heads["why"] == STUCK)
        nodes, duals = found.back._replace(heads=heads[at]), self.duals.followed_by(found)
        nodes.heads["weights"], nodes.heads["age"] = 0, 0
        prices = np.concatenate([self.prices, found.prices])[dual[at]]
        return NodeUnit(nodes, duals.part(dual[at]), self.limits[of[at]], prices, told=self.told)


class UnitResult(NamedTuple):
    """What came of a unit.

    found : what the first who relaxed its nodes leaves of each, in their order; None where there was nothing to do
    rescued : what others leave of nodes that are stuck among those that the one before left, in their order
    """

    found: ExploredPieces | None
    rescued: list[ExploredPieces]
