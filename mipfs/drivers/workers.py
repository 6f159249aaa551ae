"""The nodes of `branch` on the workers of a Dask cluster.

The node solver travels once; units of work go out as arrays (`mipfs.inner.unit`), and come back as pieces of the
proof. What a worker had in hand when it died is asked for again, and where the scheduler goes away, or no worker is
left, this process goes on. The tree is that of the same batches on threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mipfs.drivers.executor import Executor, Lost
from mipfs.drivers.tree import Tree
from mipfs.inner.node_solver import NodeSolver
from mipfs.inner.unit import Explored, Unit
from mipfs.plumbing.cluster import Cluster, Task


class Workers(Executor):
    """The workers of a client.

    Parameters
    ----------
    client : dask.distributed.Client
    """

    def __init__(self, client: Any) -> None:
        self.client = client

    def open(self, tree: Tree) -> None:
        """Look who is there; the node solver travels when it is first needed."""
        self._solver = tree.solver()
        self._there = None
        self._cluster = Cluster(self.client, "the search goes on in this process")

    def submit(self, unit: Unit, seconds: float | None) -> Task:
        """Send a unit to a worker, and the node solver to all where none holds it."""

        def submit() -> tuple[Any, Sequence[Any]]:
            if self._there is None or self._there.status != "finished":
                self._there = self._cluster.scattered(self._solver)
            return self.client.submit(explored, self._there, unit, seconds, pure=False, retries=0), [self._there]

        return Task(self._cluster, submit)

    def result(self, handle: Task, seconds: float) -> Explored | None:
        """What was found if it is there; the task waits a moment for that."""
        if handle.settled() and handle.found is not None:
            return Explored(*handle.found)
        if handle.failed or self._cluster.is_alone():
            handle.withdraw()
            raise Lost
        return None

    def withdraw(self, handle: Task) -> None:
        """Leave a unit: its nodes are open as they were."""
        handle.withdraw()

    def close(self) -> None:
        """Let the workers forget the node solver."""
        self._there = None


def explored(solver: NodeSolver, unit: Unit, seconds: float | None) -> Explored:
    """What a worker does with a unit."""
    return solver.explore(unit, seconds)
