"""How a relaxation becomes incumbents: rankings of the atoms, the allowed selection of largest total, splicing."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

import numpy as np

from mipfs.atoms import BestSearch
from mipfs.inner.alike import AT_A_TIME, group_alike_samples
from mipfs.inner.face_layer import FacePool
from mipfs.inner.restricted import RestrictedSolution, SelectionPool
from mipfs.inner.subproblem import Subproblem
from mipfs.kernels.bound import gains
from mipfs.plumbing.arrays import Array, Integers, Mask, scatter
from mipfs.problem import Problem
from mipfs.proof.cuts import scores_of
from mipfs.run.heuristics import Supports
from mipfs.run.part import PartialRun
from mipfs.run.run import Run
from mipfs.settings import RoundingSettings


class Rounding:
    """Makes incumbents of what a relaxation has found.

    Parameters
    ----------
    run : Run
    top : BestSearch, optional
        Finds the best features: incumbents are looked for among these and those that the relaxation uses, so nothing
        is as long as all features are. By default all atoms are looked at.
    """

    def __init__(self, run: Run, top: BestSearch | None = None) -> None:
        count = run.problem.atoms.count
        self.run = run
        self.settings: RoundingSettings = run.settings.rounding
        self.wide = max(self.settings.wide, 4 * (count if run.problem.M is None else run.problem.M))
        self.top = None if 2 * self.wide >= count or run.problem.weight_rows else top

    def at_nothing(self) -> None:
        """Offer the selection that asks for nothing: what S forces, or what it allows first."""
        run = self.run if self.top is None else self._restricted_run(np.zeros(1, dtype=np.int64))
        round_to(run, [np.zeros(run.problem.atoms.count)])

    def at_selection(self, sigma: Mask) -> None:
        """Offer a selection (p,), or the allowed one next to it."""
        ids = np.flatnonzero(sigma)
        if self.top is None:
            round_to(self.run, [sigma.astype(float)])
        elif ids.size:
            round_to(self._restricted_run(ids), [np.ones(ids.size)])

    def by_scores(self, alpha: Array) -> None:
        """Offer the allowed selection of largest Σ c_j at α, less its cost: FGM-B as published (Tan 2010, 3.2)."""
        problem = self.run.problem
        scores = gains(scores_of(problem, alpha * problem.dual_signs), problem.penalty)
        round_to(self.run, [scores])

    def of_mixture(self, pool: SelectionPool, last: RestrictedSolution) -> None:
        """Offer the selection of largest σ; not of a run that must stop, which comes to `of_all` at once."""
        if self.run.must_stop:
            return
        among = None if self.top is None else pool.used
        run = self.run if among is None else self._restricted_run(among)
        round_to(run, [_mix_sigma(pool, last, self.run.problem.atoms.count, among)])

    def of_all(self, pool: SelectionPool, last: RestrictedSolution, most: int | None = 0) -> None:
        """Offer what every ranking leads to, spliced by `most` SVMs (None: any)."""
        count = self.run.problem.atoms.count
        if self.top is None:
            round_to(
                self.run, rounding_rankings(self.run.problem, pool, last) + self.generated(pool, np.arange(count)), most
            )
            return
        y = self.run.problem.data.y
        left = sys.maxsize if most is None else most
        among = np.union1d(pool.used, self.top.best(last.alpha * y, self.wide)[0])
        by = rounding_rankings(self.run.problem, pool, last, among) + self.generated(pool, among)
        for _ in range(self.settings.rounds):
            part = self._restricted_run(among)
            left -= round_to(part, by, left)
            if left <= 0 or part.incumbent is None or self.run.must_stop or self.run.is_optimal:
                return
            sigma = np.bincount(part.incumbent.selected, minlength=among.size).astype(float)
            chosen = among[part.incumbent.selected]
            kinds = part.alike
            v = Subproblem(part.problem, lambda: self.run.must_stop).solve(sigma, self.settings.rough_gap).svm.alpha
            # Its memory is free before the vector over all samples, or the next part, needs some.
            del part
            if kinds is not None:
                kinds.forget()
                v = kinds.spread(v, self.run.problem.c_i)
            v = np.multiply(v, y, out=v)
            more = np.setdiff1d(self.top.best(v, 2 * chosen.size)[0], among)
            if not more.size:
                return
            among = np.union1d(among, more)
            del kinds, v
            by = [np.isin(among, chosen).astype(float)]

    def generated(self, pool: SelectionPool, among: Integers) -> list[Array]:
        """The last selections of a `FacePool`, over the atoms `among` (k,), ascending: as there are few, they
        differ.
        """
        members = pool.members[-self.settings.starts :] if isinstance(pool, FacePool) else []
        return [np.isin(among, ids).astype(float) for ids, _ in members]

    def _restricted_run(self, among: Integers) -> MergedRun:
        """The run over some of the features."""
        return MergedRun(self.run, among)


class MergedRun(PartialRun):
    """The run over some of the features, with one weighted sample for those that are alike on them.

    Parameters
    ----------
    whole : Run, over single features
    held : (k,) ascending positions
    """

    def __init__(self, whole: Run, held: Integers) -> None:
        self.alike = group_alike_samples(whole.problem, held)
        super().__init__(whole, held)

    def part_of(self, problem: Problem, held: Integers) -> Problem:
        """The problem over these features and kinds of samples."""
        if self.alike is None:
            return problem.restricted(held)
        data = self.alike.instance(problem.data.sample_weight)
        return problem.restricted(held, problem.atoms.restricted(held, data))


def rounding_rankings(
    problem: Problem, pool: SelectionPool, last: RestrictedSolution, among: Integers | None = None
) -> list[Array]:
    """By what a relaxation is rounded: |w|, σ, and the score at the last α (FGM-B of Tan 2010); each (count,).

    Of the atoms `among` (k,) alone, ascending, which hold all that the relaxation uses, each (k,).

    σ ties inside every selection until many of them are mixed. Where atoms cost something, also σ − ½, and the score
    is what it gains, ½ s − c.
    """
    used = pool.used
    v = last.alpha * problem.dual_signs
    sigma = _mix_sigma(pool, last, problem.atoms.count, among)
    place = used if among is None else np.searchsorted(among, used)
    columns = problem.atoms.columns(used)
    held, of_last = np.unique(last.ids, return_inverse=True)
    at = np.searchsorted(held, columns.ids)
    total = np.bincount(of_last, last.w, held.size)
    w = np.where(np.append(held, -1)[at] == columns.ids, np.append(total, 0.0)[at], 0.0)  # −1: no column
    inner = np.divide(w, columns.scale, out=np.zeros(w.size), where=columns.scale > 0.0)
    sizes = np.zeros(sigma.size)
    gain = np.zeros(sigma.size)
    sizes[place] = np.sqrt(np.bincount(columns.atom, np.square(inner), used.size))
    gain[place] = gains(_scores_in_blocks(problem, used, v), problem.penalty[used])
    return [sizes, sigma, gain, *([sigma - 0.5] if problem.has_penalty else [])]


def _scores_in_blocks(problem: Problem, used: Integers, v: Array) -> Array:
    """The scores of some atoms (k,) at a dual vector, of not too many columns at a time."""
    if problem.weight_rows:
        return scores_of(problem, v)[used]
    at_a_time = AT_A_TIME if problem.selects_features else max(1, used.size)
    few = (used[start : start + at_a_time] for start in range(0, used.size, at_a_time))
    return np.concatenate([np.empty(0), *(problem.atoms.restricted(ids).scores(v) for ids in few)])


def _mix_sigma(pool: SelectionPool, last: RestrictedSolution, count: int, among: Integers | None) -> Array:
    """σ of the relaxation, (count,), or of the atoms `among` alone."""
    mixed = pool.sparse_mixture(last.mu)
    used = np.array([*mixed], dtype=np.int64)
    values = np.minimum([*mixed.values()], 1.0)
    return scatter(
        count if among is None else among.size, used if among is None else np.searchsorted(among, used), values
    )


def round_to(run: Run, by: Sequence[Array], most: int | None = 0, settings: RoundingSettings | None = None) -> int:
    """For each ranking the allowed selection of largest total, refitted; then spliced by `most` SVMs (None: any).

    A run that must stop takes the first ranking only, and gives its SVM `RoundingSettings.grace`: of a million samples
    it would take seconds. Returns how many SVMs were solved.
    """
    settings = run.settings.rounding if settings is None else settings
    until = time.monotonic() + settings.grace
    subproblem = Subproblem(run.problem, lambda: run.must_stop and time.monotonic() >= until)
    exact = Supports(run, subproblem, tol=settings.refit_gap)
    begin = []
    for k, scores in enumerate(by):
        sigma = None if k and run.must_stop else run.oracle.repair(scores)
        if sigma is not None:
            exact.evaluate(sigma)
            begin.append(sigma)
    if most == 0 or run.incumbent is None or run.is_optimal:
        return subproblem.count
    rough = Supports(run, subproblem, tol=settings.rough_gap)
    last = subproblem.count + (sys.maxsize if most is None else most)
    for sigma in [None, *begin]:  # None: the incumbent
        rough.splice(sigma, last - subproblem.count)
    if not run.must_stop:
        exact.evaluate(run.incumbent.sigma(run.problem.atoms.count))
    return subproblem.count
