"""The walks of a path side by side, with the points of one after the other.

A part is all data, or the training part of a fold; a chain is its walk along the last axis, where every point takes
what its neighbour left. Over C and M a chain begins with what the smallest M left at the C before. So these first
points are solved before the chains, of one part after the other and of all parts at once; then all chains are.
"""

from __future__ import annotations

import copy
import os
import pickle
import tempfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from mipfs.lab.studies.solution_path import PathPoint
from mipfs.lab.studies.steps import PathSteps
from mipfs.proof.cuts import CutPool
from mipfs.run.side_by_side import LostFit, run_tasks

SUFFIX = ".point"


@dataclass(frozen=True)
class SolvedStep:
    """What came of a step.

    Attributes
    ----------
    point : PathPoint
    pool : CutPool, cuts that the next step may take
    best : tuple of str, the support that it begins from
    """

    point: PathPoint
    pool: CutPool
    best: tuple[str, ...]


class Walker(Protocol):
    """What a chain is walked by (`mipfs.lab.studies.walk.PathWalk`)."""

    interrupted: bool
    on_begin: Callable[[str], object]
    on_point: Callable[[PathPoint], object]

    def step(self, steps: PathSteps, k: int, before: SolvedStep | None, about: str) -> SolvedStep | None:
        """Solve a step with what another one left; None where an interrupt left nothing of it."""


@dataclass(frozen=True)
class Chain:
    """A walk along the last axis.

    Attributes
    ----------
    part : int, which of the parts
    at : int, its first step
    first : SolvedStep or None, what came of that step, where it is solved
    """

    part: int
    at: int
    first: SolvedStep | None = None


@dataclass(frozen=True)
class ChainSetup:
    """What all chains share; `folder` is where every process leaves its points at once, for an interrupt anywhere."""

    walk: Walker
    parts: Sequence[PathSteps]
    names: Sequence[str]
    folder: Path
    here: int = field(default_factory=os.getpid)

    def keep(self, part: int, at: int, point: PathPoint) -> None:
        """Leave a point, and tell of it where this is the process that does."""
        unfinished = self.folder / f"{part}-{at}.part"
        unfinished.write_bytes(pickle.dumps(point))
        unfinished.replace(unfinished.with_suffix(SUFFIX))  # of a folder that goes with the run: no need of a disk
        if os.getpid() == self.here and part == 0:
            self.walk.on_point(point)


@dataclass(frozen=True)
class TaskResult:
    """What came of a task.

    Attributes
    ----------
    solved : sequence of (part, step, what came of it)
    interrupted : bool
    by : int, the process
    """

    solved: Sequence[tuple[int, int, SolvedStep]]
    interrupted: bool
    by: int = field(default_factory=os.getpid)


def walk_chains(walk: Walker, parts: Sequence[PathSteps], names: Sequence[str], jobs: int) -> list[list[PathPoint]]:
    """The points of every part in the order of its steps; after an interrupt those that were reached.

    Parameters
    ----------
    walk : Walker, whose `interrupted` says afterwards whether there was one
    parts : sequence of PathSteps, the first of which is about all data
    names : sequence of str, what is said of the solves of each part
    jobs : int >= 2, chains at a time
    """
    with tempfile.TemporaryDirectory(prefix="mipfs-path-") as folder:
        given = ChainSetup(walk, parts, names, Path(folder))
        every: dict[tuple[int, int], PathPoint] = {}
        try:
            chains = [Chain(k, 0) for k in range(len(parts))]
            if parts[0].legs > 1:
                firsts = _collect_tasks(_solve_first_steps, given, range(len(parts)), jobs, every)
                chains = [Chain(*one) for done in firsts for one in done.solved]
            _collect_tasks(_solve_rest_of_chain, given, chains, jobs, every)
        except KeyboardInterrupt:
            walk.interrupted = True
        for file in Path(folder).glob(f"*{SUFFIX}"):  # of chains that did not come to their end
            part, at = map(int, file.name.removesuffix(SUFFIX).split("-"))
            if (part, at) not in every:
                every[part, at] = pickle.loads(file.read_bytes())
    return [[every[k, at] for _, at in sorted(one for one in every if one[0] == k)] for k in range(len(parts))]


def _collect_tasks(
    work: Callable[[ChainSetup, Any], TaskResult],
    given: ChainSetup,
    tasks: Sequence[Any],
    jobs: int,
    every: dict[tuple[int, int], PathPoint],
) -> list[TaskResult]:
    """What came of the tasks, in their order, their points entered into `every`; raises `KeyboardInterrupt` at one."""
    found: dict[int, TaskResult] = {}
    with closing(run_tasks(work, given, tasks, jobs)) as results:
        for k, done in results:
            if isinstance(done, LostFit):
                raise done
            found[k] = done
            for part, at, solved in done.solved:
                every[part, at] = solved.point
                if done.by != given.here and part == 0:
                    given.walk.on_point(solved.point)
            if done.interrupted:
                raise KeyboardInterrupt
            given.walk.on_begin(f"{len(found)} of {len(tasks)} walks are done")
    return [found[k] for k in sorted(found)]


def _solve_first_steps(given: ChainSetup, part: int) -> TaskResult:
    """The first step of every chain of a part."""
    steps = given.parts[part]
    return _solve_steps(given, part, range(0, len(steps.places), steps.leg), None)


def _solve_rest_of_chain(given: ChainSetup, chain: Chain) -> TaskResult:
    """The steps of a chain that are not solved."""
    end = chain.at + given.parts[chain.part].leg
    return _solve_steps(given, chain.part, range(chain.at + (chain.first is not None), end), chain.first)


def _solve_steps(given: ChainSetup, part: int, numbers: Iterable[int], before: SolvedStep | None) -> TaskResult:
    """Solve some steps of a part, one after the other, until an interrupt."""
    walk, steps = copy.copy(given.walk), given.parts[part]
    found: list[tuple[int, int, SolvedStep]] = []
    for at in numbers:
        solved = walk.step(steps, at, before, given.names[part])
        if solved is None:
            break
        before = solved
        found.append((part, at, solved))
        given.keep(part, at, solved.point)
        if walk.interrupted:
            break
    return TaskResult(found, walk.interrupted)
