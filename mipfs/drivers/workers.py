"""The nodes of `branch` on the workers of a Dask cluster.

The node solver travels once; a batch goes as bundles of nodes with their dual vectors, warm starts and the cutoff of
the moment, and comes back as pieces of the proof. A node counts as open until its piece is here. So what a worker had
in hand when it died is asked for again, and where the scheduler goes away, or no worker is left, this process goes on.
The tree is that of the same batches on threads.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from threading import Event
from types import TracebackType
from typing import Any

import numpy as np

from mipfs import compiled
from mipfs.drivers.hands import Threads
from mipfs.drivers.tree import POLL_SECONDS, Node, Tree
from mipfs.errors import UsageError
from mipfs.inner.node_solver import NodeSolver, Order, Packed, slim, whole
from mipfs.plumbing.cluster import FETCH, LOST, TRIES, Cluster, killed, refused, scattered
from mipfs.proof.duals import DualStore

LATE = 30.0
"""Seconds after which the scheduler is asked whether some worker has a bundle that is not back; where none has, it goes
out again."""
AHEAD = 2
"""Bundles of a batch for every thread of the workers."""


@dataclass(eq=False)
class Bundle:
    """Nodes that go out together.

    Attributes
    ----------
    future : of Dask; None while there is no worker to give them to
    solver : of Dask, the node solver that they went out with: where it was lost, they wait for nobody
    since : seconds on the clock when they went out
    done : set when the future is settled
    found : the pieces, once they are back
    here : explorations in this process instead
    """

    nodes: Sequence[Node]
    cutoff: float
    future: Any = None
    solver: Any = None
    since: float = 0.0
    done: Event = field(default_factory=Event)
    tries: int = 0
    found: list[Any] | None = None
    here: list[Future[Any]] | None = None


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
        self._solver, self._there, self._version = tree.solver(), None, compiled.key()
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
        self._out = [bundle for bundle in self._out if bundle.found is None and bundle.here is None]
        size = max(1, -(-len(nodes) // max(1, AHEAD * sum(self._cluster.threads().values()))))
        bundles = [Bundle(nodes[start : start + size], cutoff) for start in range(0, len(nodes), size)]
        for bundle in bundles:
            self._send(bundle)
        self._out += bundles
        return [(bundle, k) for bundle in bundles for k in range(len(bundle.nodes))]

    def result(self, ticket: tuple[Bundle, int]) -> Any:
        """Wait for an exploration; None where the run must stop before it is back: the node is open as it was."""
        bundle, k = ticket
        while not self._settled(bundle):
            if self.run.must_stop:
                self._withdraw(bundle)
                return None
        if bundle.here is not None:
            return self.here.result(bundle.here[k])
        assert bundle.found is not None
        return bundle.found[k]

    def _settled(self, bundle: Bundle) -> bool:
        """Whether the pieces are here, or are made here; waits a moment for that."""
        if bundle.found is not None or bundle.here is not None:
            return True
        if self._cluster.is_alone():
            self._take(bundle)
            return True
        if bundle.future is None:
            self._send(bundle)
        if bundle.future is None:
            time.sleep(POLL_SECONDS)
            return False
        if not bundle.done.wait(POLL_SECONDS):
            late = time.monotonic() - bundle.since > LATE
            if bundle.solver.status != "finished" or (late and not self._is_in_hand(bundle)):
                self._withdraw(bundle)
                if late and bundle.tries >= TRIES:
                    self._take(bundle)
            return False
        status = bundle.future.status
        if status == "finished":
            try:
                bundle.found = [whole(piece) for piece in bundle.future.result(timeout=FETCH)]
                bundle.future = None
                return True
            except LOST:
                self._cluster.stale()  # what held the pieces is gone
        elif status == "error":
            error = bundle.future.exception()
            if not killed(error):
                raise refused(error)
            self._take(bundle)
            return True
        bundle.future = None
        if bundle.tries >= TRIES:
            self._take(bundle)
        return False

    def _send(self, bundle: Bundle) -> None:
        """Give a bundle to the workers, if there are some."""
        if not self._cluster.threads():
            return
        try:
            if self._there is None or self._there.status != "finished":
                self._there = scattered(self.client, self._solver, broadcast=True)
            orders, packed = self._orders(bundle)
            deadline = self.run.deadline
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            future = self.client.submit(
                explored, self._there, orders, packed, left, self._version, pure=False, retries=0
            )
        except LOST:
            self._cluster.failed()
            return
        bundle.done, bundle.tries, bundle.future = Event(), bundle.tries + 1, future
        bundle.solver, bundle.since = self._there, time.monotonic()
        future.add_done_callback(lambda _future, done=bundle.done: done.set())

    def _is_in_hand(self, bundle: Bundle) -> bool:
        """Whether some worker has it, as far as the scheduler says; that is asked for anew after as long a wait."""
        bundle.since = time.monotonic()
        return self._cluster.has(bundle.future.key)

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

    def _take(self, bundle: Bundle) -> None:
        """Explore a bundle here."""
        self._withdraw(bundle)
        bundle.here = self.here.begin(bundle.nodes, bundle.cutoff)

    def _withdraw(self, bundle: Bundle) -> None:
        if bundle.future is not None and self.client.status == "running":
            bundle.future.cancel()
        bundle.future = None


def explored(solver: NodeSolver, orders: list[Order], packed: Packed, seconds: float | None, ours: str) -> list[Any]:
    """What a worker does: explore from some nodes."""
    if compiled.key() != ours:
        raise UsageError("a worker has another version of mipfs or numba than this process; install the same there")
    return [slim(piece) for piece in solver.explore(orders, packed, seconds)]
