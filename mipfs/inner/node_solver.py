"""A node solver that travels: what makes it goes to another process once, explorations are asked for many times.

What it gives is that of the solver at home, bit for bit where the processors are the same.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs.compiled import kept
from mipfs.errors import UsageError
from mipfs.inner.boolean_node import States, Warm
from mipfs.inner.rows_node import Ask, RowsOutcome, RowsRelaxation
from mipfs.kernels.structures import Piece
from mipfs.plumbing.arrays import Integers
from mipfs.plumbing.locks import ProcessLock
from mipfs.problem import Problem
from mipfs.proof.duals import DualStore, Whole
from mipfs.settings import NodeSettings

Found = Piece | RowsOutcome
Packed = tuple[bytearray, Whole, Whole, Whole, Whole]
Sparse = tuple[tuple[int, ...], npt.NDArray[np.int32], npt.NDArray[np.float32]]

MAKING = ProcessLock()


@dataclass(frozen=True, eq=False)
class Order:
    """One exploration: the node's states and warm start, the place of its dual vector, what else its solver is told."""

    states: States
    warm: Warm
    dual: int
    ask: Ask


class NodeSolver:
    """What a node solver is made of, and the solver once it was used.

    Parameters
    ----------
    problem : Problem
    alive : (k,) positions of the atoms that no screening has excluded
    loss : float, as of `Relaxation.coarsen`
    rule : str, the module of a branching rule
    nodes : NodeSettings
    """

    def __init__(self, problem: Problem, alive: Integers, loss: float, rule: str, nodes: NodeSettings) -> None:
        self.problem = problem
        self.alive = alive
        self.loss = loss
        self.rule = rule
        self.nodes = nodes
        self.version = kept.version()
        self._made: RowsRelaxation | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_made": None}

    def made(self, stop: States) -> RowsRelaxation:
        """The solver, made when it is first asked for; `stop` (1,) is set from outside to give up.

        Raises
        ------
        UsageError
            Other sources than where it was pickled: its bits would be others.
        """
        if self.version != kept.version():
            raise UsageError("a worker has another version of mipfs or numba than this process; install the same there")
        with MAKING:
            if self._made is None:
                never = np.zeros(1, dtype=np.int8)
                rule = import_module(self.rule).choose
                self._made = RowsRelaxation(self.problem, self.alive, lambda: False, never, rule=rule, nodes=self.nodes)
                self._made.coarsen(self.loss)
        return self._made.stopped_by(stop)

    def explore(self, orders: Sequence[Order], packed: Packed, seconds: float | None) -> list[Found]:
        """Explore from some nodes, one after the other; after `seconds` what is left is given up early.

        Parameters
        ----------
        orders : sequence of Order
        packed : their dual vectors, as of `DualStore.packed`
        seconds : float >= 0, optional
        """
        stop = np.zeros(1, dtype=np.int8)
        c = self.problem.c_i
        duals = DualStore(c.size, None if np.all(c == c[0]) else c)
        duals.extend(*packed)
        alarm = None if seconds is None else threading.Timer(seconds, stop.fill, (1,))
        if alarm is not None:
            alarm.daemon = True
            alarm.start()
        try:
            solver = self.made(stop)
            found = list[Found]()
            for at in range(0, len(orders), solver.together):
                asked = list[tuple[States, Warm, npt.NDArray[np.float64], Ask]]()
                for order in orders[at : at + solver.together]:
                    whole, q = duals.get(order.dual)
                    asked.append((order.states, order.warm, np.ldexp(whole.astype(float), -q), order.ask))
                found += solver.explore_all(asked)
            return found
        finally:
            if alarm is not None:
                alarm.cancel()


def slim(found: Found) -> Any:
    """What an exploration found, in few bytes to send: of the arrays what is in use, of weights what is not zero."""
    if not isinstance(found, Piece):
        return found
    total = found.totals[0]
    n_nodes, n_offers = int(total["nodes"]), int(total["offers"])
    used = {
        "nodes": n_nodes,
        "states": n_nodes,
        "places": total["places"],
        "duals": total["duals"],
        "prices": total["duals"],
        "packed": total["bytes"],
        "sums": n_offers,
    }
    shorter: dict[str, Any] = {name: getattr(found, name)[: int(count)].copy() for name, count in used.items()}
    written = found.sums[:n_offers, None] >= 0.0  # the first may not have been
    offers = np.where(written, found.offers[:n_offers], np.float32(0.0))
    shorter |= {"weights": _sparse(found.weights[:n_nodes]), "offers": _sparse(offers)}
    return found._replace(**shorter)


def whole(found: Any) -> Found:
    """What `slim` made smaller, with weights as they were; anything else as it is."""
    if isinstance(found, Piece) and isinstance(found.weights, tuple):
        return found._replace(weights=_filled(found.weights), offers=_filled(found.offers))
    assert isinstance(found, Found)
    return found


def _sparse(matrix: npt.NDArray[np.float32]) -> Sparse:
    ids = np.flatnonzero(matrix).astype(np.int32)
    return matrix.shape, ids, matrix.ravel()[ids]


def _filled(kept: Any) -> npt.NDArray[np.float32]:
    shape, ids, values = kept
    matrix = np.zeros(int(np.prod(shape)), dtype=np.float32)
    matrix[ids] = values
    return matrix.reshape(shape)
