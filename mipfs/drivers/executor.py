"""Who explores the open nodes of `branch`: the seam between its tree and threads, processes, or other machines.

A batch of nodes is cut into units of work, as the tree alone decides. An executor takes units and gives back what was
found below their nodes, in any order; the tree merges in its own, so that the answer does not depend on who explores.
A node is open until what was found below it is here: what a worker had in hand when it died is explored by threads of
this process instead.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from threading import Lock
from types import TracebackType
from typing import Any

from mipfs.drivers.tree import SearchTree
from mipfs.inner.unit import NodeUnit, UnitResult
from mipfs.plumbing.blocks import inside
from mipfs.plumbing.machine import at_work, cores


class Lost(Exception):
    """A unit will not come back: its worker went away, and nobody else explores it."""


@dataclass(eq=False)
class PendingUnit:
    """A unit that was handed out.

    Attributes
    ----------
    unit : NodeUnit
    executor, handle : who explores it, and what it calls it
    found : what was found; None while nothing is here, or where the run had to stop before
    is_out : whether it is awaited
    """

    unit: NodeUnit
    executor: Executor
    handle: Any = None
    found: UnitResult | None = None
    is_out: bool = True


class Executor(ABC):
    """Explores the nodes of one run at a time. All methods are called by one thread."""

    @abstractmethod
    def open(self, tree: SearchTree) -> None:
        """Begin with a tree; ``tree.solver()`` is a `NodeSolver`, which can be pickled and explores elsewhere."""

    @abstractmethod
    def submit(self, unit: NodeUnit, seconds: float | None) -> Any:
        """Take a unit, which is to end within some seconds, and return at once a handle of it."""

    @abstractmethod
    def result(self, handle: Any, seconds: float) -> UnitResult | None:
        """What came of a unit; None if it is not here after `seconds`.

        Raises
        ------
        Lost
            It will not come; what the work itself raises, such as a `UsageError`, is raised as it is.
        """

    @abstractmethod
    def withdraw(self, handle: Any) -> UnitResult | None:
        """The run must stop, and nobody waits for a unit: None, or what has been found below its nodes."""

    @abstractmethod
    def close(self) -> None:
        """Let go of what `open` took; it may be opened again."""


class Threads(Executor):
    """Threads of this process, which share the tree's own node solver.

    Those that no unit needs help inside a node.

    Parameters
    ----------
    count : int, optional, by default as many as the process may use cores
    """

    def __init__(self, count: int | None = None) -> None:
        self.count = count or cores()
        self._n_out = 0
        self._lock = Lock()

    def open(self, tree: SearchTree) -> None:
        """Start the threads."""
        self._relaxation = tree.relaxation
        self._pool = ThreadPoolExecutor(self.count)

    def submit(self, unit: NodeUnit, seconds: float | None) -> Future[UnitResult]:
        """Explore a unit in the next free thread; the solver hears by itself when the run must stop."""
        self._change_count(1)
        return self._pool.submit(self._explore_unit, unit)

    def _explore_unit(self, unit: NodeUnit) -> UnitResult:
        try:
            with inside(self._for_each):
                return self._relaxation.explore_unit(unit)
        finally:
            self._change_count(-1)

    def _change_count(self, more: int) -> None:
        with self._lock:
            self._n_out += more

    def _for_each(self) -> int:
        """Threads for every unit that is out."""
        return max(1, self.count // max(1, self._n_out))

    def beside(self, work: Callable[[], None]) -> Future[None]:
        """Do other work of the run in the next free thread."""
        return self._pool.submit(work)

    def result(self, handle: Future[UnitResult], seconds: float) -> UnitResult | None:
        """What came of a unit, or None after `seconds`."""
        if not handle.done():
            wait([handle], timeout=seconds)
        return handle.result() if handle.done() else None

    def withdraw(self, handle: Future[UnitResult]) -> UnitResult | None:
        """Wait: the solver hears that the run must stop, and gives up soon with what it has."""
        return handle.result()

    def close(self) -> None:
        """Wait until the threads are done, and end them."""
        self._pool.shutdown()


class Exploration:
    """The units of a tree that are out, with its executor or, where that lost them, with threads of this process.

    Parameters
    ----------
    tree : SearchTree, planted: what is in play does not change any more
    executor : Executor, optional, who explores in place of these threads
    """

    def __init__(self, tree: SearchTree, executor: Executor | None = None) -> None:
        self.tree = tree
        self._here = Threads(at_work(tree.run.options.threads))
        self._out = list[PendingUnit]()
        self._executor: Executor = executor or self._here

    def __enter__(self) -> Exploration:
        self._here.open(self.tree)
        if self._executor is not self._here:
            self._executor.open(self.tree)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for part in self._out:
            self._withdraw_part(part)
        if self._executor is not self._here:
            self._executor.close()
        self._here.close()

    def begin(self, units: Sequence[NodeUnit]) -> list[PendingUnit]:
        """Hand out units."""
        deadline = self.tree.run.deadline
        seconds = None if deadline is None else max(0.0, deadline - time.monotonic())
        parts = [PendingUnit(unit, self._executor, self._executor.submit(unit, seconds)) for unit in units]
        self._out = [part for part in self._out if part.is_out] + parts
        return parts

    def beside(self, works: Sequence[Callable[[], None]]) -> Callable[[], None]:
        """Do other work of the run in threads of this process; returns what waits for it, and hears of limits."""
        futures = [self._here.beside(work) for work in works]

        def waited() -> None:
            while wait(futures, timeout=self.tree.settings.poll_seconds).not_done:
                if self.tree.run.must_stop:
                    self.tree.stop[0] = 1
            for future in futures:
                future.result()

        return waited

    def result(self, part: PendingUnit) -> UnitResult | None:
        """Wait for what came of a unit; None where the run had to stop before, and its nodes are still open."""
        while part.is_out:
            try:
                found = part.executor.result(part.handle, self.tree.settings.poll_seconds)
            except Lost:
                part.executor = self._here
                part.handle = self._here.submit(part.unit, None)
                continue
            if found is not None:
                part.found = found
                part.is_out = False
            elif self.tree.run.must_stop:
                self._withdraw_part(part)
        return part.found

    def _withdraw_part(self, part: PendingUnit) -> None:
        """Wait no longer than the executor of a part asks for."""
        if part.is_out:
            self.tree.stop[0] = 1
            part.is_out = False
            part.found = part.executor.withdraw(part.handle)
