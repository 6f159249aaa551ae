"""The nodes of `branch` on the workers of a Dask cluster.

Dask starts on every worker what explores, and gives it the node solver, once in a run. Units of work go from this
process to it, and pieces of the proof come back, over a line of their own (`mipfs.plumbing.lines`): a task of Dask
costs this process milliseconds, as long as many a unit takes to explore, a message over a line a tenth of one. A worker
has some units in hand, so that none waits for a message. Where lines cannot be (an encrypted cluster, or one whose
workers do not reach this process), every unit is a task of Dask.

What a worker had in hand when it died is asked of another one, and where the scheduler goes away, or no worker is
left, this process goes on. The tree is that of the same batches on threads.
"""

from __future__ import annotations

import itertools
import logging
import math
import pickle
import selectors
import struct
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from queue import SimpleQueue
from threading import Thread
from typing import Any

import numpy as np

from mipfs.drivers.executor import Executor, Lost
from mipfs.drivers.tree import SearchTree
from mipfs.inner.node_solver import NodeSolver
from mipfs.inner.unit import NodeUnit, UnitResult
from mipfs.plumbing.cluster import (
    LOST_ERRORS,
    MOST_FETCHES,
    POLL_SECONDS,
    Cluster,
    ClusterTask,
    has_killed,
    local_error,
)
from mipfs.plumbing.lines import Connection, Listener, seen_from

LOG = logging.getLogger("mipfs")
NUMBER = struct.Struct("<q")
"""Before what came of a unit: which one it is."""
GONE = OSError, EOFError


@dataclass(eq=False)
class UnitRequest:
    """A unit that is asked for.

    Attributes
    ----------
    unit : NodeUnit;  end : when it is to be given up, by `time.monotonic`
    found : what came of it, as bytes;  tries : workers that died over it
    is_dropped : nobody waits for it any more;  task : where it is one of Dask
    """

    unit: NodeUnit
    end: float
    found: bytes | None = None
    tries: int = 0
    is_dropped: bool = False
    task: ClusterTask | None = None

    @property
    def seconds(self) -> float | None:
        """What is left of its time."""
        return None if math.isinf(self.end) else max(0.0, self.end - time.monotonic())


@dataclass(eq=False)
class WorkerState:
    """What explores on a worker.

    Attributes
    ----------
    worker : its address;  future : of the task that it is
    line : to it, once it has connected;  out : the errands that it has in hand, the first at work
    """

    worker: str
    future: Any
    line: Connection | None = None
    out: dict[int, UnitRequest] = field(default_factory=dict)


class DaskExecutor(Executor):
    """The workers of a client.

    Parameters
    ----------
    client : dask.distributed.Client
    """

    def __init__(self, client: Any) -> None:
        self.client = client

    def open(self, tree: SearchTree) -> None:
        """Look who is there, and open a door; the node solver travels when it is first needed."""
        self._solver = tree.solver()
        self._most = tree.settings.in_hand
        self._there: Any = None
        self._cluster = Cluster(self.client, "the search goes on in this process")
        self._numbers = itertools.count()
        self._hands = dict[int, WorkerState]()
        self._waiting = deque[UnitRequest]()
        self._asked = selectors.DefaultSelector()
        host = seen_from(self.client.scheduler.address) if self.client.scheduler is not None else None
        self._door = None if host is None else Listener(host)
        if self._door is not None:
            self._asked.register(self._door, selectors.EVENT_READ)

    def submit(self, unit: NodeUnit, seconds: float | None) -> UnitRequest:
        """Let a worker have a unit as soon as one has less than it may have in hand."""
        errand = UnitRequest(unit, math.inf if seconds is None else time.monotonic() + seconds)
        self._waiting.append(errand)
        self._hand_out()
        return errand

    def result(self, handle: UnitRequest, seconds: float) -> UnitResult | None:
        """What came of a unit, if it is there within some seconds."""
        end = time.monotonic() + seconds
        while handle.found is None and handle.task is None:
            if handle.tries > MOST_FETCHES or self._cluster.is_alone():
                self.withdraw(handle)
                raise Lost
            self._look_after()
            self._take_in(min(POLL_SECONDS, max(0.0, end - time.monotonic())))
            if handle.found is None and time.monotonic() >= end:
                return None
        return self._of_task(handle) if handle.task is not None else _unpack_result(handle.found)

    def withdraw(self, handle: UnitRequest) -> UnitResult | None:
        """Leave a unit: its nodes are open as they were."""
        handle.is_dropped = True
        if handle.task is not None:
            handle.task.withdraw()
        return None

    def close(self) -> None:
        """Hang up: those at work give up, and the workers forget the node solver."""
        for hand in self._hands.values():
            self._hang_up(hand)
        self._asked.close()
        if self._door is not None:
            self._door.close()
        self._hands, self._there, self._door = {}, None, None
        self._waiting.clear()

    def _of_task(self, handle: UnitRequest) -> UnitResult | None:
        """What came of a unit that is a task of Dask; the task waits a moment for that."""
        task = handle.task
        assert task is not None
        if task.settled() and task.found is not None:
            return UnitResult(*task.found)
        if task.failed or self._cluster.is_alone():
            self.withdraw(handle)
            raise Lost
        return None

    def _hand_out(self) -> None:
        """Give what waits to those who have least in hand."""
        while self._waiting:
            if self._waiting[0].is_dropped:
                self._waiting.popleft()
                continue
            if self._door is None:
                errand = self._waiting.popleft()
                errand.task = ClusterTask(self._cluster, lambda errand=errand: self._as_task(errand))  # type: ignore[misc]
                continue
            there = [hand for hand in self._hands.values() if hand.line is not None and len(hand.out) < self._most]
            if not there:
                return
            hand = min(there, key=lambda hand: len(hand.out))
            errand = self._waiting.popleft()
            number = next(self._numbers)
            hand.out[number] = errand
            assert hand.line is not None
            try:
                hand.line.send(pickle.dumps((number, errand.unit, errand.seconds), protocol=5))
            except GONE:
                self._requeue_work(hand)

    def _as_task(self, errand: UnitRequest) -> tuple[Any, Sequence[Any]]:
        there = self._solver_there()
        return self.client.submit(explore_unit, there, errand.unit, errand.seconds, pure=False, retries=0), [there]

    def _solver_there(self) -> Any:
        """The future of the node solver; it travels again where nobody holds it."""
        if self._there is None or self._there.status != "finished":
            self._there = self._cluster.scatter(self._solver)
        return self._there

    def _take_in(self, seconds: float) -> None:
        """Wait for what comes: workers that connect, and what they found."""
        for key, _ in self._asked.select(seconds):
            if key.fileobj is self._door:
                self._let_in()
            elif key.data.line is not None:
                self._take_result(key.data)
        self._hand_out()

    def _let_in(self) -> None:
        """Take over the line of a worker that has just connected, and says which hand it is."""
        assert self._door is not None
        line = self._door.enter()
        if line is None:
            return
        hand = None
        with suppress(*GONE):
            hand = self._hands.get(NUMBER.unpack(line.receive())[0])
        if hand is None or hand.line is not None:
            line.close()
            return
        hand.line = line
        self._asked.register(line, selectors.EVENT_READ, hand)

    def _take_result(self, hand: WorkerState) -> None:
        """Take over what a worker found."""
        assert hand.line is not None
        try:
            said = hand.line.receive()
        except GONE:
            self._requeue_work(hand)
            return
        hand.out.pop(NUMBER.unpack_from(said)[0]).found = said

    def _requeue_work(self, hand: WorkerState) -> None:
        """A worker is gone: what it had in hand waits again, before all else."""
        self._hang_up(hand)
        for at, errand in enumerate(hand.out.values()):
            errand.tries += at == 0
        self._waiting.extendleft(reversed(hand.out.values()))
        self._hands = {number: one for number, one in self._hands.items() if one is not hand}
        self._cluster.stale()

    def _hang_up(self, hand: WorkerState) -> None:
        if hand.line is None:
            if self.client.status == "running":
                hand.future.cancel()
            return
        self._asked.unregister(hand.line)
        hand.line.close()
        hand.line = None

    def _look_after(self) -> None:
        """Let every thread of a worker explore; leave the hands of those that are gone."""
        if self._door is None:
            return
        there = self._cluster.threads()
        is_held = self._there is None or self._there.status == "finished"
        for hand in list(self._hands.values()):
            status = hand.future.status
            if status == "error" and hand.line is None:
                self._note_failure(hand)
            elif there and (hand.worker not in there or (hand.line is None and (status != "pending" or not is_held))):
                self._requeue_work(hand)
        if self._door is not None:
            self._start(there)

    def _start(self, there: dict[str, int]) -> None:
        """Start what explores where a worker has less of it than threads."""
        for worker, threads in there.items():
            for _ in range(threads - sum(hand.worker == worker for hand in self._hands.values())):
                number = next(self._numbers)
                try:
                    self._hands[number] = WorkerState(worker, self._begin_exploration(worker, number))
                except LOST_ERRORS:
                    self._cluster.failed()
                    return

    def _begin_exploration(self, worker: str, number: int) -> Any:
        """The future of what explores on a worker."""
        assert self._door is not None
        at = self._solver_there(), self._door.address, self._door.key, number
        kept_to = {"workers": [worker], "allow_other_workers": False}
        return self.client.submit(explore_all, *at, **kept_to, pure=False, retries=0)

    def _note_failure(self, hand: WorkerState) -> None:
        """Nobody could begin on a worker: it died, does not reach this process, or has another version."""
        error = hand.future.exception()
        self._requeue_work(hand)
        if has_killed(error):
            return
        if not isinstance(error, GONE):
            raise local_error(error)
        LOG.info("workers do not reach this process (%s): every unit of work is a task of the scheduler", error)
        assert self._door is not None
        self._asked.unregister(self._door)
        self._door.close()
        self._door = None
        for other in list(self._hands.values()):
            self._requeue_work(other)
        self._hand_out()


def explore_unit(solver: NodeSolver, unit: NodeUnit, seconds: float | None) -> UnitResult:
    """What a worker does with a unit that is a task."""
    return solver.explore(unit, seconds)


def explore_all(solver: NodeSolver, door: tuple[str, int], key: bytes, number: int) -> None:
    """What a worker does in a run: explore the units that come over a line, until it ends.

    It leaves the worker's thread to others meanwhile, as short tasks would.
    """
    from distributed import secede

    with suppress(ValueError):  # outside of a worker
        secede()
    with Connection.to(door, key) as line:
        line.send(NUMBER.pack(number))
        come, stop = SimpleQueue[bytes | None](), np.zeros(1, dtype=np.int8)
        Thread(target=_queue_incoming, args=(line, come, stop), daemon=True).start()
        while (said := come.get()) is not None:
            asked, unit, seconds = pickle.loads(said)
            found: Any
            try:
                found = tuple(solver.explore(unit, seconds, stop))
            except Exception as error:
                # The process that asks raises it.
                found = error
            try:
                line.send(NUMBER.pack(asked) + pickle.dumps(found, protocol=5))
            except GONE:
                return


def _queue_incoming(line: Connection, come: SimpleQueue[bytes | None], stop: Any) -> None:
    """Put units into a queue as they come, so that who sends them never waits; give up where nobody is there."""
    with suppress(*GONE):
        while True:
            come.put(line.receive(None))
    stop[0] = 1
    come.put(None)


def _unpack_result(said: bytes | None) -> UnitResult:
    """What came of a unit; an error is raised."""
    assert said is not None
    found = pickle.loads(memoryview(said)[NUMBER.size :])
    if isinstance(found, BaseException):
        raise local_error(found)
    return UnitResult(*found)
