"""The nodes of `branch` on the workers of a Dask cluster.

The node solver travels once; a batch goes as parts, nodes with their dual vectors, warm starts and the cutoff of the
moment, and comes back as pieces of the proof. What a worker had in hand when it died is asked for again, and where the
scheduler goes away, or no worker is left, this process goes on. The tree is that of the same batches on threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mipfs.drivers.executor import Executor, Lost, Part
from mipfs.drivers.tree import Tree
from mipfs.inner.node_solver import NodeSolver, slim
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

    @property
    def capacity(self) -> int:
        """The threads of all workers, as they were a moment ago."""
        return max(1, sum(self._cluster.threads().values()))

    def submit(self, part: Part) -> Task:
        """Send a part to a worker, and the node solver to all where none holds it."""

        def submit() -> tuple[Any, Sequence[Any]]:
            if self._there is None or self._there.status != "finished":
                self._there = self._cluster.scattered(self._solver)
            return self.client.submit(explored, self._there, *part.orders(), pure=False, retries=0), [self._there]

        return Task(self._cluster, submit)

    def result(self, handle: Task, seconds: float) -> Sequence[Any] | None:
        """The pieces if they are there; the task waits a moment for that."""
        if handle.settled() and handle.found is not None:
            return list(handle.found)
        if handle.failed or self._cluster.is_alone():
            handle.withdraw()
            raise Lost
        return None

    def withdraw(self, handle: Task) -> None:
        """Leave a part: its nodes are open as they were."""
        handle.withdraw()

    def close(self) -> None:
        """Let the workers forget the node solver."""
        self._there = None


def explored(solver: NodeSolver, *orders: Any) -> list[Any]:
    """What a worker does with a part: explore from its nodes, and make small what is found."""
    return [slim(piece) for piece in solver.explore(*orders)]
