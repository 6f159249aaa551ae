"""Who explores the nodes of `branch`: threads of this process. Those of a cluster: `mipfs.drivers.workers`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Protocol

from mipfs.drivers.tree import Node, Tree
from mipfs.plumbing.machine import cores


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
    """

    def __init__(self, tree: Tree, pool: ThreadPoolExecutor) -> None:
        self.tree, self.pool = tree, pool

    def begin(self, nodes: Sequence[Node], cutoff: float) -> list[Future[Any]]:
        """Hand out the nodes of a batch."""
        duals = self.tree.duals(list(nodes))
        return [
            self.pool.submit(self.tree.explore, node, alpha, cutoff) for node, alpha in zip(nodes, duals, strict=True)
        ]

    def result(self, ticket: Future[Any]) -> Any:
        """Wait for an exploration; it is told to give up when the run must stop."""
        return self.tree.result(ticket)


@contextmanager
def hands_of(tree: Tree) -> Iterator[Hands]:
    """Those that the options of the run name."""
    options = tree.run.options
    with ThreadPoolExecutor(options.threads or cores()) as pool:
        here = Threads(tree, pool)
        if options.client is None:
            yield here
            return
        from mipfs.drivers.workers import Workers

        with Workers(tree, options.client, here) as there:
            yield there
