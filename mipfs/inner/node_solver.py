"""A node solver that travels: what makes it goes to another process once, explorations are asked for many times.

What it gives is that of the solver at home, bit for bit where the processors are the same.
"""

from __future__ import annotations

import threading
from importlib import import_module
from typing import Any

import numpy as np

from mipfs.compiled import kept
from mipfs.errors import UsageError
from mipfs.inner.boolean_node import States
from mipfs.inner.rows_node import RowsRelaxation
from mipfs.inner.unit import NodeUnit, UnitResult
from mipfs.plumbing.arrays import Integers
from mipfs.plumbing.locks import ProcessLock
from mipfs.plumbing.machine import one_blas_thread
from mipfs.problem import Problem
from mipfs.settings import BatchSettings, CompletionSettings, NodeSettings

MAKING = ProcessLock()


class NodeSolver:
    """What a node solver is made of, and the solver once it was used.

    Parameters
    ----------
    problem : Problem
    alive : (k,) positions of the atoms that no screening has excluded
    loss : float, as of `BooleanRelaxation.coarsen`
    rule : str, the module of a branching rule
    nodes, batch : NodeSettings and BatchSettings
    completions : CompletionSettings, optional, where nodes are enumerated
    relax, device : str, as of `RowsRelaxation`
    """

    def __init__(
        self,
        problem: Problem,
        alive: Integers,
        loss: float,
        rule: str,
        nodes: NodeSettings,
        completions: CompletionSettings | None = None,
        batch: BatchSettings = BatchSettings(),
        *,
        relax: str | None = None,
        device: str = "cpu",
    ) -> None:
        self.problem = problem
        self.alive = alive
        self.loss = loss
        self.rule = rule
        self.nodes = nodes
        self.completions = completions
        self.batch = batch
        self.relax = relax
        self.device = device
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
                given: Any = {"rule": rule, "nodes": self.nodes, "batch": self.batch}
                given |= {"relax": self.relax, "device": self.device}
                made = RowsRelaxation(self.problem, self.alive, lambda: False, never, **given)
                made.coarsen(self.loss)
                if self.completions is not None:
                    made.of_completions = self.completions
                    # Units of all threads share it, so it is made before the first of them asks.
                    _ = made.completions
                self._made = made
        return self._made.stopped_by(stop)

    def explore(self, unit: NodeUnit, seconds: float | None, stop: States | None = None) -> UnitResult:
        """Explore from the nodes of a unit; after `seconds` what is left is given up early.

        Parameters
        ----------
        unit : NodeUnit
        seconds : float >= 0, optional
        stop : (1,), optional, is set from outside to give up earlier
        """
        stop = np.zeros(1, dtype=np.int8) if stop is None else stop
        alarm = None if seconds is None else threading.Timer(seconds, stop.fill, (1,))
        if alarm is not None:
            alarm.daemon = True
            alarm.start()
        try:
            with one_blas_thread():
                # BLAS adds in another order with more threads, and last bits would differ between machines.
                return self.made(stop).explore_unit(unit)
        finally:
            if alarm is not None:
                alarm.cancel()
