"""The relaxation over atoms that are too many to hold: what its dual vector proves of those that nobody looks at.

A      some atoms, those of largest score first
repeat α = the dual vector of the relaxation over A
       find the best atoms of all for α (`mipfs.atoms.implicit.Search`): lower(α) bounds the relaxation over all of them
       A takes them in
until  the relaxation over A lies no further above lower(α) than it was solved to
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from mipfs.atoms.implicit import Implicit, Search
from mipfs.inner.boolean import Boolean, SolvedRelaxation
from mipfs.kernels.bound import U, gains, lower
from mipfs.losses import get_loss
from mipfs.plumbing.arrays import Array, Integers
from mipfs.problem import Problem
from mipfs.proof.cuts import Dual, decode_dual, dual_value_below
from mipfs.proof.evidence import no_dual
from mipfs.run.run import Run
from mipfs.selection.selection import Rows

TINY = float(np.finfo(float).tiny)
"""What a computed |ω| may be that a search takes for zero."""


@dataclass(frozen=True, eq=False)
class SearchedBound:
    """What one dual vector proves, of atoms that are found by a search.

    Attributes
    ----------
    problem : Problem over `mipfs.atoms.implicit.Implicit`
    search : Search
    dual : Dual, on its grid
    v : (n,) α∘y
    g : float, rounded down
    top : (k,) the at most M best atoms
    squares : (M,) their scores, rounded up, best first; those of atoms that are not there are what a zero may be
    radius : float, a bound on the error of every |ω|
    mixed : atoms that the relaxation uses
    """

    problem: Problem
    search: Search
    dual: Dual
    v: Array
    g: float
    top: Integers
    squares: Array
    radius: float
    mixed: Integers

    @property
    def lower(self) -> float:
        """lower(α)."""
        return self._bound_of_scores(self.squares)

    def _bound_of_scores(self, squares: Array) -> float:
        """The bound of scores (M,) that took three roundings."""
        every = np.arange(squares.size)
        return lower(self.g, gains(squares * (1.0 + 8.0 * U), 0.0), every[:0], every, None)

    def least(self, size: float) -> float:
        """A bound on every selection with an atom of a computed |ω| up to `size`."""
        if not self.squares.size:
            return np.inf
        score = min((size + self.radius) ** 2, float(self.squares[-1]))
        return self._bound_of_scores(np.append(self.squares[:-1], score))

    def outside(self, held: Integers) -> float:
        """A bound on every selection with an atom that is not held."""
        if held.size == self.problem.atoms.count:
            return np.inf
        ids, sizes = self.search.search(self.v, held.size + 1)
        rest = np.flatnonzero(~np.isin(ids, held))
        return self.least(float(sizes[rest[0]]) if rest.size else TINY)

    def missing(self, held: Integers, level: float, most: int) -> Integers:
        """At most `most` of the atoms that are not held and that α does not rule out at a level, best first."""
        if not self.squares.size:
            return held[:0]
        score = 2.0 * (self.g - level) - float(self.squares[:-1].sum())
        score -= 1e-12 * (abs(self.g) + abs(level) + float(self.squares.sum()))
        size = np.sqrt(max(score, 0.0)) - self.radius
        ids = self.search.search(self.v, held.size + most, max(size, 0.0))[0]
        found = ids[~np.isin(ids, held)][:most]
        # Not even a score of 0 is ruled out.
        if size <= 0.0 and found.size < most:
            known = np.union1d(held, found)
            every = np.arange(min(self.problem.atoms.count, known.size + most))
            found = np.concatenate([found, np.setdiff1d(every, known)[: most - found.size]])
        return found

    def first(self, named: Integers, least: int) -> Integers:
        """The atoms to begin with: those named, those of the relaxation, and the best ones."""
        ids = self.search.search(self.v, max(least, 2 * self.mixed.size))[0]
        return self.problem.atoms.closed(np.unique(np.concatenate([named, self.mixed, self.top, ids])))


def search_root(run: Run) -> SearchedBound:
    """Solve the relaxation over all atoms of a problem over atoms that are searched, without the rows of heredity."""
    problem = run.problem
    assert problem.M is not None
    search = cast(Implicit, problem.atoms).search()
    loss = get_loss(problem.loss)
    settings = run.settings.growth
    few = max(settings.entering, 4 * problem.M)
    alpha = loss.Solver(problem.data, problem.c_i, problem.bias).solve(np.empty(0, dtype=np.int64), tol=1e-6).alpha
    best = _judge_dual(problem, search, loss.feasible_dual(alpha, problem.c_i, problem.data.y, problem.bias))
    run.raise_bound(best.lower)
    held = np.sort(search.search(best.v, few)[0])
    for _ in range(settings.rounds if held.size and problem.M else 0):
        solved = _relax_over(run, held)
        now = _judge_dual(problem, search, solved.cut.dual, held[solved.sigma > 1e-6])
        if now.lower > best.lower or not best.mixed.size:
            best = replace(max(now, best, key=lambda one: one.lower), mixed=now.mixed)
        run.raise_bound(best.lower)
        ids = search.search(now.v, max(few, held.size // 2))[0]
        met = solved.upper - best.lower <= settings.gap * abs(solved.upper)
        if run.must_stop or met or np.all(np.isin(ids, held)):
            break
        held = np.union1d(held, ids)
    if best.lower < 0.0 and run.must_stop:  # α = 0 proves more, and no part comes that α is to choose atoms for
        best = _judge_dual(problem, search, no_dual(problem))
        run.raise_bound(max(0.0, best.lower))
    return best


def _relax_over(run: Run, held: Integers) -> SolvedRelaxation:
    """The relaxation over some atoms."""
    part = replace(run.problem.restricted(held), rows=Rows.empty(held.size))
    gap = 0.5 * run.settings.growth.gap
    solver = Boolean(part, lambda: run.must_stop, run.settings.relaxation)
    return solver.solve(*part.selection.sigma_bounds(), gap)


def _judge_dual(problem: Problem, search: Search, dual: Dual, mixed: Integers | None = None) -> SearchedBound:
    """What a feasible dual vector proves."""
    exact = decode_dual(dual)
    M = problem.M or 0
    v = exact * problem.data.y
    top, sizes = search.search(v, M)
    radius = search.radius(v)
    squares = np.full(M, (radius + TINY) ** 2)
    squares[: top.size] = np.square(sizes + radius)
    g = dual_value_below(get_loss(problem.loss), exact, problem.c_i)
    return SearchedBound(problem, search, dual, v, g, top, squares, radius, top[:0] if mixed is None else mixed)
