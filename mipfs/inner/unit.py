"""A unit of work of `branch`: some open nodes, with all that is asked of whoever explores them, as arrays.

It is what goes to a thread, a process or another machine; what it holds depends on the tree alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mipfs.inner.boolean_node import States, Warm
from mipfs.kernels.structures import NO_MEMORY, Piece
from mipfs.kernels.subtree import DEAR, STUCK
from mipfs.kernels.units import FirstDuals, Found, OpenNodes, laid_out
from mipfs.plumbing.arrays import Array, Integers
from mipfs.selection.derived import ChvatalGomory


class Turn(NamedTuple):
    """Which columns of a node with two free places are put in, by their order (`mipfs.kernels.enumeration`).

    begin, end : from where on, and up to where
    is_first : whether the unit is the first of its node that is handed out; the others go on where the one before ends
    """

    begin: int
    end: int
    is_first: bool


class Told(NamedTuple):
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
        return "NOTHING" if self is NOTHING else (Told, tuple(self))


NOTHING = Told(NO_MEMORY)


@dataclass(frozen=True, eq=False)
class Unit:
    """Open nodes that are explored together.

    Attributes
    ----------
    nodes : OpenNodes; those whose prices seem to lose much are solved by the interior point
    duals : FirstDuals, that earned their bounds
    limits : (B,) LIMITS of each
    prices : (B, rows) multipliers that earned their bounds
    is_enumerated : whether all their selections are looked at, in place of their relaxations
    turn : Turn, optional, of the one node with two free places that is enumerated
    told : Told, the same to all units of a batch
    """

    nodes: OpenNodes
    duals: FirstDuals
    limits: npt.NDArray[Any]
    prices: Array
    is_enumerated: bool = False
    turn: Turn | None = None
    told: Told = NOTHING

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
    def explored(self) -> npt.NDArray[np.bool_]:
        """(B,) which nodes are explored from, where there are kernels."""
        return np.asarray(self.nodes.heads["why"] != DEAR)

    def part(self, at: Integers) -> Unit:
        """Some of its nodes."""
        nodes = self.nodes._replace(heads=self.nodes.heads[at])
        return Unit(nodes, self.duals.part(at), self.limits[at], self.prices[at], told=self.told)

    def stuck(self, found: Found) -> Unit:
        """The nodes that explorations from all of these left since their relaxation stalled, with the same limits."""
        heads, fresh = found.back.heads, found.totals["duals"] - 1
        of = np.repeat(np.arange(len(self)), found.counts)
        before = len(self) + np.cumsum(fresh) - fresh - 1
        dual = np.where(heads["dual"] > 0, heads["dual"] + before[of], of)
        at = np.flatnonzero(heads["why"] == STUCK)
        nodes, duals = found.back._replace(heads=heads[at]), self.duals.followed_by(found)
        return Unit(nodes, duals.part(dual[at]), self.limits[of[at]], self.prices[of[at]], told=self.told)

    def opened(self, c: Array, count: int) -> list[tuple[States, Warm, Array]]:
        """States, warm start and dual vector of every node over `count` atoms, at loss weights c (n,)."""
        pieces = Piece.of(len(self), 1, count, 0, 1, 0)
        first = np.empty((len(self), c.size))
        laid_out(self.nodes, self.duals, c, pieces, first)
        heads = self.nodes.heads
        warms = [
            Warm(pieces.weights[t, 0], float(heads["intercept"][t]), float(heads["rho"][t])) for t in range(len(self))
        ]
        return [(pieces.states[t, 0], warm, first[t]) for t, warm in enumerate(warms)]


class Explored(NamedTuple):
    """What came of a unit.

    explored : (B,) which nodes were explored from
    found : what these leave, in their order; None where there was none
    outcomes : of the others, in their order
    rescued : of the nodes that are stuck among those that explorations left, in their order
    """

    explored: npt.NDArray[np.bool_]
    found: Found | None
    outcomes: list[Any]
    rescued: list[Any]
