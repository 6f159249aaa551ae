"""A search beside a run's own, in a thread of its own: what it finds is kept apart until the run takes it over."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property
from itertools import islice

import numpy as np
import numpy.typing as npt

from mipfs.inner.subproblem import Subproblem
from mipfs.plumbing.arrays import Array, Integers, Mask
from mipfs.problem import Problem
from mipfs.run.heuristics import Supports
from mipfs.run.part import PartialRun
from mipfs.run.run import Run
from mipfs.run.swaps import Swaps, climb_in_steps


class SideRun(PartialRun):
    """A run on the problem of another one, which does not hear of what is found here.

    Parameters
    ----------
    whole : Run
    """

    def __init__(self, whole: Run) -> None:
        # The whole run keeps the limits, of memory too: begun late, a limit of its own could be passed already.
        options = replace(whole.options, memory_limit=None)
        super().__init__(whole, np.arange(whole.problem.atoms.count), options)
        self.sharpness = whole.sharpness
        self.catch_up()

    def part_of(self, problem: Problem, held: Integers) -> Problem:
        """The problem as it is."""
        return problem

    def offer(self, selected: npt.ArrayLike, w: Array, b: float) -> float:
        """Offer a classifier to this run alone."""
        return Run.offer(self, selected, w, b)

    def catch_up(self) -> None:
        """Take over the other run's incumbent, where it is better."""
        if self.whole.objective < self.objective:
            self.incumbent = self.whole.incumbent


class StrandSupports:
    """The selections and SVMs of one strand, and how it climbs with them; made where it first works.

    The climbs stand apart from the strand that keeps them, which would be held by itself else.

    Parameters
    ----------
    whole : Supports, of the run
    is_apart : bool, as of `SearchStrand`
    """

    def __init__(self, whole: Supports, is_apart: bool) -> None:
        self.whole, self.is_apart = whole, is_apart

    @cached_property
    def supports(self) -> Supports:
        """What it finds."""
        whole = self.whole
        if not self.is_apart:
            return whole
        run = SideRun(whole.run)
        subproblem = Subproblem(run.problem, lambda: run.must_stop)
        subproblem.take_up(whole.subproblem.kept()())
        return Supports(run, subproblem, whole.tol, beside=whole)

    def collect(self) -> None:
        """Give the run what was found since this was last done."""
        if self.is_apart and "supports" in vars(self):
            self.whole.take_over(self.supports)

    def climbing(self) -> Iterator[None]:
        """Climb from the incumbent, SVM after SVM."""
        self._catch_up()
        yield from climb_in_steps(self.supports, self.supports.pool)

    def sweeping(self, sigma: Mask, at: tuple[float, Array], part: tuple[int, int], width: int) -> Iterator[None]:
        """A part of what a sweep tries at a selection, as `Swaps.sweeping` takes it."""
        self._catch_up()
        yield from Swaps(self.supports, self.supports.pool).sweeping(sigma, at, part, width)

    def searching(self, sigma: Mask | None, random: np.random.Generator) -> Iterator[None]:
        """Climb from a selection, if one is given, then from the incumbent shaken, again and again; SVM after SVM."""
        swaps = Swaps(self.supports, self.supports.pool)
        self._catch_up()
        if sigma is not None:
            yield from swaps.climbing(sigma)
        while (yield from swaps.restarting(random)):
            self._catch_up()

    def _catch_up(self) -> None:
        run = self.supports.run
        if isinstance(run, SideRun):
            run.catch_up()


class SearchStrand:
    """One of the searches for incumbents that go on at once, with selections, SVMs and an order of its own.

    What it does depends on what it is asked, and on what the run had found when it was asked: not on when it is done,
    nor on the others.

    Parameters
    ----------
    supports : Supports, of the run
    is_apart : bool, whether it keeps what it finds until `collect`; else it works on `supports` themselves

    Attributes
    ----------
    own : StrandSupports
    climbs : iterator, optional, what it goes on with: None where nothing is left
    climbed : SVMs that this took
    """

    def __init__(self, supports: Supports, is_apart: bool) -> None:
        self.own = StrandSupports(supports, is_apart)
        self.climbs: Iterator[None] | None = None
        self.climbed = 0

    def work(self, rounding: Callable[[Supports], None], most: int) -> None:
        """Round, then go on with the climbs by `most` SVMs."""
        supports = self.own.supports
        rounding(supports)
        begun = supports.subproblem.count
        if self.climbs is not None and sum(1 for _ in islice(self.climbs, most)) < most:
            self.climbs = None
        self.climbed += supports.subproblem.count - begun

    def collect(self) -> int:
        """Give the run what was found since this was last done; returns how many SVMs its climbs took."""
        self.own.collect()
        climbed, self.climbed = self.climbed, 0
        return climbed


class Climb:
    """A climb from the incumbent to where no swap improves upon it, which some strands share.

    What each finds counts when all of them are collected: then the next step begins at the best of it.

    Parameters
    ----------
    run : Run
    strands : list of SearchStrand
    """

    def __init__(self, run: Run, strands: list[SearchStrand]) -> None:
        self._run, self._strands = run, strands
        self._widths = run.settings.swaps.few, run.settings.swaps.many
        self._at, self._value = -1, math.inf
        if len(strands) == 1:
            strands[0].climbs = strands[0].own.climbing()

    def goes_on(self) -> bool:
        """Whether it is not at its end; where a step is done, the next one begins."""
        run, strands = self._run, self._strands
        is_better = run.objective < self._value
        is_at_work = any(strand.climbs is not None for strand in strands)
        if len(strands) == 1 or (is_at_work and not is_better):
            return is_at_work
        self._at, self._value = 0 if is_better else self._at + 1, run.objective
        if run.incumbent is None or self._at == len(self._widths):
            return False
        sigma, sizes = run.incumbent.sigma(run.problem.atoms.count), np.zeros(run.problem.atoms.count)
        ids, w = run.incumbent.selected, run.incumbent.w
        sizes[ids] = np.sqrt(np.bincount(run.problem.atoms.columns(ids).atom, np.square(w), minlength=ids.size))
        for k, strand in enumerate(strands):
            strand.climbs = strand.own.sweeping(sigma, (self._value, sizes), (k, len(strands)), self._widths[self._at])
        return True
