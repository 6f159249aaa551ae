"""The nodes of `branch` on the workers of a Dask cluster.

The node solver travels once; a batch goes as bundles of nodes with their dual vectors, warm starts and the cutoff of
the moment, and comes back as pieces of the proof. A node counts as open until its piece is here. So what a worker had
in hand when it died is asked for again, and where the scheduler goes away, or no worker is left, this process goes on.
The tree is that of the same batches on threads.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import numpy as np

from mipfs.compiled import kept
from mipfs.drivers.hands import Threads, Ticket
from mipfs.drivers.tree import Tree
from mipfs.drivers.tree_proof import Node
from mipfs.errors import UsageError
from mipfs.inner.node_solver import NodeSolver, Order, Packed, slim, whole
from mipfs.plumbing.cluster import Cluster, Task
from mipfs.proof.duals import DualStore


@dataclass(eq=False)
class Bundle:
    """Nodes that go out together.

    Attributes
    ----------
    task : what a worker is asked; None once it is settled or withdrawn
    found : the pieces, once they are back
    here : tickets of explorations in this process instead
    """

    nodes: Sequence[Node]
    cutoff: float
    task: Task | None = None
    found: list[Any] | None = None
    here: list[Ticket] | None = None


class Workers:
    """The workers of a client.

    Parameters
    ----------
    tree : Tree, planted: what is in play does not change any more
    client : dask.distributed.Client
    here : Threads, which go on where no worker is left
    """

    def __init__(self, tree: Tree, client: Any, here: Threads) -> None:
        self.tree, self.run, self.client, self.here = tree, tree.run, client, here
        self._solver, self._there, self._version = tree.solver(), None, kept.version()
        self._cluster = Cluster(client, "the search goes on in this process")
        self._out: list[Bundle] = []

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for bundle in self._out:
            self._withdraw(bundle)
        self._there = None

    def begin(self, nodes: Sequence[Node], cutoff: float) -> list[tuple[Bundle, int]]:
        """Hand out the nodes of a batch, as bundles of equal size; a ticket for each node."""
        self._out = [bundle for bundle in self._out if bundle.task is not None]
        size = max(1, -(-len(nodes) // max(1, self.tree.settings.ahead * sum(self._cluster.threads().values()))))
        bundles = [Bundle(nodes[start : start + size], cutoff) for start in range(0, len(nodes), size)]
        for bundle in bundles:
            self._send(bundle)
        self._out += bundles
        return [(bundle, k) for bundle in bundles for k in range(len(bundle.nodes))]

    def result(self, ticket: tuple[Bundle, int]) -> Any:
        """Wait for an exploration; None where the run must stop before it is back: the node is open as it was."""
        bundle, k = ticket
        while bundle.task is not None:
            self._look(bundle, bundle.task)
            if bundle.task is not None and self.run.must_stop:
                self._withdraw(bundle)
        if bundle.here is not None:
            return self.here.result(bundle.here[k])
        return None if bundle.found is None else bundle.found[k]

    def _look(self, bundle: Bundle, task: Task) -> None:
        """Take the pieces if they are there, or make them here where nobody else does; waits a moment for that."""
        if task.settled() and task.found is not None:
            bundle.found, bundle.task = [whole(piece) for piece in task.found], None
        elif task.failed or self._cluster.is_alone():
            self._withdraw(bundle)
            bundle.here = self.here.begin(bundle.nodes, bundle.cutoff)

    def _send(self, bundle: Bundle) -> None:
        """Give a bundle to the workers."""

        def submit() -> tuple[Any, Sequence[Any]]:
            if self._there is None or self._there.status != "finished":
                self._there = self._cluster.scattered(self._solver)
            deadline = self.run.deadline
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            ask = explored, self._there, *self._orders(bundle), left, self._version
            return self.client.submit(*ask, pure=False, retries=0), [self._there]

        bundle.task = Task(self._cluster, submit)

    def _orders(self, bundle: Bundle) -> tuple[list[Order], Packed]:
        """What goes out: the nodes, and the dual vectors that they start from, each once."""
        duals = self.tree.proof.duals
        assert isinstance(duals, DualStore)
        used, place = np.unique([node.dual for node in bundle.nodes], return_inverse=True)
        orders = [
            Order(node.states, node.warm, int(k), self.tree.asked(node, bundle.cutoff))
            for node, k in zip(bundle.nodes, place, strict=True)
        ]
        return orders, duals.packed(used)

    def _withdraw(self, bundle: Bundle) -> None:
        if bundle.task is not None:
            bundle.task.withdraw()
        bundle.task = None


def explored(solver: NodeSolver, orders: list[Order], packed: Packed, seconds: float | None, ours: str) -> list[Any]:
    """What a worker does: explore from some nodes."""
    if kept.version() != ours:
        raise UsageError("a worker has another version of mipfs or numba than this process; install the same there")
    return [slim(piece) for piece in solver.explore(orders, packed, seconds)]
