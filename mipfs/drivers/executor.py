"""Who explores the open nodes of `branch`: the seam between its tree and threads, processes, or other machines.

A batch of nodes is cut into parts. An executor takes parts and gives back what was found below each node, in any order;
the tree merges in its own, so that the answer does not depend on who explores. A node is open until what was found
below it is here: what a worker had in hand when it died is explored by threads of this process instead.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import numpy as np

from mipfs.drivers.tree import Tree
from mipfs.drivers.tree_proof import Node
from mipfs.inner.node_solver import Found, Order, Packed, whole
from mipfs.inner.rows_node import Ask
from mipfs.plumbing.machine import at_work, cores
from mipfs.proof.duals import DualStore


class Lost(Exception):
    """A part will not come back: its worker went away, and nobody else explores it."""


@dataclass(eq=False)
class Part:
    """Nodes that are explored together.

    Attributes
    ----------
    tree, nodes, asks : open nodes of the tree, and what is asked of each, which does not depend on when it is explored
    executor, handle : who explores them, and what it calls them
    found : what was found below each node; None while nothing is here, or where the run had to stop before
    is_out : whether it is awaited
    """

    tree: Tree
    nodes: Sequence[Node]
    asks: Sequence[Ask]
    executor: Executor
    handle: Any = None
    found: Sequence[Found] | None = None
    is_out: bool = True

    def orders(self) -> tuple[list[Order], Packed, float | None]:
        """What `NodeSolver.explore` is asked elsewhere: nodes, their dual vectors, and the seconds that are left."""
        duals = self.tree.proof.duals
        deadline = self.tree.run.deadline
        assert isinstance(duals, DualStore)
        used, place = np.unique([node.dual for node in self.nodes], return_inverse=True)
        orders = [
            Order(node.states, node.warm, int(k), ask)
            for node, k, ask in zip(self.nodes, place, self.asks, strict=True)
        ]
        return orders, duals.packed(used), None if deadline is None else max(0.0, deadline - time.monotonic())


class Executor(ABC):
    """Explores the nodes of one run at a time. All methods are called by one thread."""

    @abstractmethod
    def open(self, tree: Tree) -> None:
        """Begin with a tree; ``tree.solver()`` is a `NodeSolver`, which can be pickled and explores elsewhere."""

    @property
    @abstractmethod
    def capacity(self) -> int:
        """How many parts are explored at a time, at least 1."""

    def part_size(self, tree: Tree, count: int) -> int:
        """How many nodes each part has of a batch of `count` nodes."""
        return -(-count // (tree.settings.ahead * self.capacity))

    @abstractmethod
    def submit(self, part: Part) -> Any:
        """Take a part, and return at once a handle of it; ``part.orders()`` is what `NodeSolver.explore` takes."""

    @abstractmethod
    def result(self, handle: Any, seconds: float) -> Sequence[Any] | None:
        """What was found below each node of a part, as it is or `slim`; None if it is not here after `seconds`.

        Raises
        ------
        Lost
            It will not come; what the work itself raises, such as a `UsageError`, is raised as it is.
        """

    @abstractmethod
    def withdraw(self, handle: Any) -> Sequence[Any] | None:
        """The run must stop, and nobody waits for a part: None, or what has been found below each of its nodes."""

    @abstractmethod
    def close(self) -> None:
        """Let go of what `open` took; it may be opened again."""


class Threads(Executor):
    """Threads of this process, which see the tree itself.

    Parameters
    ----------
    count : int, optional, by default as many as the process may use cores
    """

    def __init__(self, count: int | None = None) -> None:
        self._count = count or cores()

    def open(self, tree: Tree) -> None:
        """Start the threads."""
        self._pool = ThreadPoolExecutor(self._count)

    @property
    def capacity(self) -> int:
        """How many threads explore at a time."""
        return self._count

    def part_size(self, tree: Tree, count: int) -> int:
        """Several nodes where one compiled call explores several, and fewer than leave a thread without work."""
        return max(1, min(tree.relaxation.together, count // (tree.settings.parts * self._count)))

    def submit(self, part: Part) -> Future[list[Found]]:
        """Explore a part in the next free thread."""
        return self._pool.submit(part.tree.explore, part.nodes, part.tree.duals(part.nodes), part.asks)

    def result(self, handle: Future[list[Found]], seconds: float) -> Sequence[Found] | None:
        """What was found below each node of a part, or None after `seconds`."""
        wait([handle], timeout=seconds)
        return handle.result() if handle.done() else None

    def withdraw(self, handle: Future[list[Found]]) -> Sequence[Found] | None:
        """Wait: the solver hears that the run must stop, and gives up soon with what it has."""
        return handle.result()

    def close(self) -> None:
        """Wait until the threads are done, and end them."""
        self._pool.shutdown()


class Exploration:
    """The parts of a tree that are out, with its executor or, where that lost them, with threads of this process.

    Parameters
    ----------
    tree : Tree, planted: what is in play does not change any more
    """

    def __init__(self, tree: Tree) -> None:
        options = tree.run.options
        self.tree = tree
        self._here = Threads(at_work(options.threads))
        self._out = list[Part]()
        self._executor: Executor = options.executor or self._here
        if options.client is not None:
            from mipfs.drivers.workers import Workers

            self._executor = Workers(options.client)

    def __enter__(self) -> Exploration:
        self._here.open(self.tree)
        if self._executor is not self._here:
            self._executor.open(self.tree)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for part in self._out:
            self._withdraw(part)
        if self._executor is not self._here:
            self._executor.close()
        self._here.close()

    def begin(self, nodes: Sequence[Node], cutoff: float) -> list[tuple[Part, int]]:
        """Hand out the nodes of a batch; a ticket for each."""
        self._out = [part for part in self._out if part.is_out]
        size = max(1, self._executor.part_size(self.tree, len(nodes)))
        asks = [self.tree.asked(node, cutoff) for node in nodes]
        ranges = [slice(at, at + size) for at in range(0, len(nodes), size)]
        parts = [Part(self.tree, nodes[one], asks[one], self._executor) for one in ranges]
        for part in parts:
            part.handle = self._executor.submit(part)
        self._out += parts
        return [(part, k) for part in parts for k in range(len(part.nodes))]

    def result(self, ticket: tuple[Part, int]) -> Found | None:
        """Wait for what was found below a node; None where the run had to stop before, and the node is still open."""
        part, k = ticket
        while part.is_out:
            try:
                found = part.executor.result(part.handle, self.tree.settings.poll_seconds)
            except Lost:
                part.executor = self._here
                part.handle = self._here.submit(part)
                continue
            if found is not None:
                part.found = [whole(one) for one in found]
                part.is_out = False
            elif self.tree.run.must_stop:
                self._withdraw(part)
        return None if part.found is None else part.found[k]

    def again(self, ticket: tuple[Part, int], node: Node) -> tuple[Part, int]:
        """The ticket of a node that is called otherwise by now."""
        part, k = ticket
        part.nodes = [*part.nodes[:k], node, *part.nodes[k + 1 :]]
        return ticket

    def _withdraw(self, part: Part) -> None:
        """Wait no longer than the executor of a part asks for."""
        if part.is_out:
            self.tree.stop[0] = 1
            part.is_out = False
            found = part.executor.withdraw(part.handle)
            part.found = None if found is None else [whole(one) for one in found]
