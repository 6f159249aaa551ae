"""A run over some of the atoms of another one's problem: what it finds is offered there."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs.plumbing.arrays import Array, Integers
from mipfs.problem import Problem
from mipfs.result.result import StopReason
from mipfs.run.run import Observer, Run


class PartialRun(Run):
    """The run over the atoms `held`, which stops when the whole one must.

    Parameters
    ----------
    whole : Run
    held : (k,) ascending positions of atoms, the forced ones among them
    options : of the driver that runs on it; by default those of the whole run
    observers : as of `Run`
    """

    def __init__(self, whole: Run, held: Integers, options: Any = None, observers: tuple[Observer, ...] = ()) -> None:
        self.whole = whole
        self.held = held
        problem = self.part_of(whole.problem, held)
        super().__init__(problem, options or whole.options, observers=observers, settings=whole.settings)

    def part_of(self, problem: Problem, held: Integers) -> Problem:
        """The problem of the part."""
        return problem.restricted(held)

    @property
    def deadline(self) -> float | None:
        """When the time limit of the whole run passes."""
        return self.whole.deadline

    @property
    def _heed_interrupt(self) -> bool:
        """Whether it is to stop for an interrupt."""
        self.interrupted = self.interrupted or self.whole.must_stop
        return self.interrupted

    def stop(self) -> StopReason | None:
        """Why to stop, or None; where the whole run must, its reason: a limit is none of its own."""
        reason = super().stop()
        return self.whole.stop() or reason if reason is StopReason.INTERRUPTED else reason

    def offer(self, selected: npt.ArrayLike, w: Array, b: float) -> float:
        """Offer a classifier to this run, and to the whole one if it is its best."""
        ids = np.asarray(selected, dtype=np.int64)
        objective = super().offer(ids, w, b)
        if objective < self.whole.objective:
            self.whole.offer(self.held[ids], w, b)
        return objective
