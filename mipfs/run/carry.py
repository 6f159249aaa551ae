"""What one solve leaves to the next on the same data: the cuts that matter there, and a support to begin from.

A Benders cut η ≥ g(α) − ½ s(α)'σ (Aytug 2015, (10)) holds for every S, M and c; for another C its dual vector is made
feasible there and evaluated again (`adapt_cuts`). But most cuts of a finished tree speak about one leaf of it, and a
master that takes them all in spends more time on its LPs than they save. What is carried are the cuts that make up the
bound of the next problem's relaxation.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from mipfs.atoms import same_data
from mipfs.errors import UsageError
from mipfs.inner.epigraph import Epigraph
from mipfs.kernels.bound import gains, rounded_down
from mipfs.losses import get_loss
from mipfs.plumbing.arrays import scatter
from mipfs.plumbing.own_threads import in_own_thread
from mipfs.problem import Problem
from mipfs.proof.cuts import Cut, CutPool, Dual, cut_from_dual, cut_of_dual, decode_dual, feasible_dual, value_below
from mipfs.solvers import highs
from mipfs.svm.labellings import combine_labellings, feasible

MOST_LPS = 200
"""LPs at most to find the cuts that matter."""
CUTS_AT_ONCE = 10
"""Violated cuts that enter the LP at a time."""


def adapt_cuts(pool: CutPool, problem: Problem) -> CutPool:
    """The cuts of a pool as they hold for `problem`, as a pool of its own.

    A larger C leaves them valid, for the dual set and g grow with it; where g depends on C it is evaluated again. For a
    smaller C' the dual vector is multiplied by C'/C, but for the squared hinge, whose dual set has no top.

    Raises
    ------
    UsageError
        The cuts are of other data, atoms, loss, bias or regulariser: they say nothing about this problem.
    """
    own = CutPool(problem)
    if pool.problem.data.exponent != problem.data.exponent:  # in another unit, of which nothing is taken over
        return own
    _check_same(pool.problem, problem)
    ratio = problem.C / pool.problem.C
    loss = get_loss(problem.loss)
    shrinks = ratio < 1.0 and loss.has_top
    constant = (ratio == 1.0 or not loss.dual_depends_on_c) and not problem.weight_rows  # whose allowance goes with C
    for i in range(len(pool)):
        cut = pool.cut(i)
        if shrinks:
            shrink = _shrunk_labelled if problem.is_joint else _shrink_cut
            cut = shrink(problem, cut, ratio)
        elif not constant:
            cut = replace(cut, constant=value_below(problem, decode_dual(cut.dual)))
        own.add(cut)
    return own


def _check_same(before: Problem, now: Problem) -> None:
    """Refuse cuts of another problem."""
    for name in ("loss", "bias", "measure", "beta", "k", "regulariser", "weight_rows"):
        old, new = getattr(before, name), getattr(now, name)
        if name == "weight_rows":  # of which g is evaluated again: only the ends may be others, the same that there are
            old, new = (
                [
                    (row.coefficients, math.isfinite(row.lower), math.isfinite(row.upper))
                    for row in problem.rows_over_weights
                ]
                for problem in (before, now)
            )
        if old != new:
            raise UsageError(f"pool: its cuts are of {name} = {old!r}, the problem has {new!r}; leave the pool out")
    if before.atoms is not now.atoms and before.atoms.stamp != now.atoms.stamp:
        what = "atoms" if same_data(before.data, now.data) else "data"
        raise UsageError(f"pool: its cuts are of other {what} than the problem's; leave the pool out")


def _shrink_cut(problem: Problem, cut: Cut, ratio: float) -> Cut:
    """The cut of ratio·α, made feasible."""
    dual: Dual = feasible_dual(problem, ratio * decode_dual(cut.dual))
    return cut_of_dual(problem, dual)


def _shrunk_labelled(problem: Problem, cut: Cut, ratio: float) -> Cut:
    """The cut of ratio·α over labellings; no Δ is above 1, so what the rounding moves costs no more than its size."""
    counts, whole, q = cut.dual
    alpha = ratio * np.ldexp(whole.astype(float), -q)
    whole, q = feasible(alpha, problem.C, problem.measured.largest)
    moved = float(np.abs(np.ldexp(whole.astype(float), -q) - alpha).sum())
    value = rounded_down(ratio * cut.constant - moved, ratio * abs(cut.constant) + moved + problem.C, alpha.size)
    v = combine_labellings(problem.measured, counts, np.zeros(alpha.size), whole, q).v
    return cut_from_dual(problem, problem.data.y * v, value, (counts, whole, q))


def carry_cuts(pool: CutPool, problem: Problem) -> CutPool:
    """The cuts that matter for `problem`, as a pool of its own.

    Parameters
    ----------
    pool : CutPool
        See `adapt_cuts` for what it may hold.
    problem : Problem
    """
    whole = adapt_cuts(pool, problem)
    chosen = CutPool(problem)
    for i in _binding_cuts(whole, problem) if len(whole) else ():
        chosen.add(whole.cut(i))
    return chosen


def support(pool: CutPool, problem: Problem, selected: tuple[str, ...]) -> tuple[str, ...] | None:
    """A support for `problem` next to that of a neighbour: dropped from where it is too large, added to where it may.

    What a feature is worth is read off the cut that is tightest at the neighbour's support, ½ s_j − c_j.

    Parameters
    ----------
    pool : CutPool, valid for `problem`; may be empty
    problem : Problem
    selected : tuple of str, the neighbour's support

    Returns
    -------
    tuple of str, a selection of S; None when there is none
    """
    held = scatter(problem.atoms.count, problem.atoms_of(selected), 1.0)
    worth = np.zeros_like(held)
    if len(pool):
        worth = np.maximum(gains(pool.slopes[int(np.argmax(pool.values(held)))], problem.penalty), 0.0)
    room = 0 if problem.M is None else max(0, problem.M - len(selected))
    outside = np.where(held > 0.0, 0.0, worth)
    outside[np.argsort(-outside, kind="stable")[room:]] = 0.0
    # What is held comes first: adding never pushes it out.
    sigma = problem.selection.repair(outside + held * (worth + 2.0 * worth.sum() + 1.0))
    return None if sigma is None else tuple(problem.atoms.names[g] for g in np.flatnonzero(sigma).tolist())


@in_own_thread
def _binding_cuts(pool: CutPool, problem: Problem) -> list[int]:
    """Positions of the cuts that were binding on the way to min c'σ + max over the pool, σ in the relaxed S.

    All of them when that program cannot be solved. No bound is read off it.
    """
    p = problem.atoms.count
    scale = max(1e-300, float(np.abs(pool.constants).max()))
    rows = Epigraph(problem.selection, problem.penalty, scale, relaxed=True)
    wanted = [int(np.argmax(pool.constants))]
    inside = []
    binding = set[int]()
    for _ in range(MOST_LPS):
        for i in wanted:
            rows.add(float(pool.constants[i]), pool.slopes[i])
        inside += wanted
        solution = highs.solve(rows.program)
        if solution.values is None or solution.status != "optimal":
            return list(range(len(pool)))
        multipliers = rows.program.multipliers()[rows.first :]
        binding |= {inside[k] for k in np.flatnonzero(multipliers > 0.0)}
        violation = pool.values(np.clip(solution.values[:p], 0.0, 1.0)) / scale - solution.values[rows.eta]
        worst = np.argsort(-violation, kind="stable")[:CUTS_AT_ONCE]
        wanted = [int(i) for i in worst[violation[worst] > 1e-6]]
        if not wanted:
            break
    return sorted(binding)
