"""Who explores the nodes of `branch`: threads of this process. Those of a cluster: `mipfs.drivers.workers`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Protocol

from mipfs.drivers.tree import Tree
from mipfs.drivers.tree_proof import Node
from mipfs.plumbing.machine import cores

Ticket = tuple[Future[list[Any]], int]


class Hands(Protocol):
    """Takes nodes, in batches, and gives back what was found below each."""

    def begin(self, nodes: Sequence[Node], cutoff: float) -> list[Any]:
        """Hand out the nodes of a batch; a ticket for each."""

    def result(self, ticket: Any) -> Any:
        """Wait for an exploration; None where the run had to stop before, and the node is still open."""


class Threads:
    """Threads of this process, which see the tree itself.

    Parameters
    ----------
    tree : Tree
    pool : ThreadPoolExecutor
    threads : int, how many it has
    """

    def __init__(self, tree: Tree, pool: ThreadPoolExecutor, threads: int) -> None:
        self.tree, self.pool, self.threads = tree, pool, threads

    def begin(self, nodes: Sequence[Node], cutoff: float) -> list[Ticket]:
        """Hand out the nodes of a batch, small ones several at a time."""
        duals, together = self.tree.duals(list(nodes)), self.tree.relaxation.together
        size = max(1, min(together, len(nodes) // (self.tree.settings.parts * self.threads)))
        found: list[Ticket] = []
        for at in range(0, len(nodes), size):
            some = slice(at, at + size)
            future = self.pool.submit(self.tree.explore, nodes[some], duals[some], cutoff)
            found += [(future, k) for k in range(len(nodes[some]))]
        return found

    def result(self, ticket: Ticket) -> Any:
        """Wait for an exploration; it is told to give up when the run must stop."""
        future, k = ticket
        return self.tree.result(future)[k]


@contextmanager
def hands_of(tree: Tree) -> Iterator[Hands]:
    """Those that the options of the run name."""
    options = tree.run.options
    threads = options.threads or cores()
    with ThreadPoolExecutor(threads) as pool:
        here = Threads(tree, pool, threads)
        if options.client is None:
            yield here
            return
        from mipfs.drivers.workers import Workers

        with Workers(tree, options.client, here) as there:
            yield there
