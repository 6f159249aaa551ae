"""The proof of one dual vector: what a relaxation leaves behind (`mipfs.run.proven`), and a run that kept no tree.

    lower(α) = g(α) + min over σ ∈ S of (c − ½ s(α))'σ

With rows the inner minimum is a MILP: a tree of LPs (`mipfs.proof.row_tree`), all leaves with the same dual vector.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from mipfs.kernels.bound import add_down, gains, lower
from mipfs.plumbing.arrays import Array
from mipfs.problem import Problem
from mipfs.proof.cuts import Cut, CutPool, cut_from_dual, cut_of_dual, feasible_dual
from mipfs.proof.evidence import empty_proof, no_dual
from mipfs.proof.proof import Proof
from mipfs.proof.row_tree import over_rows, try_refute
from mipfs.svm.labellings import LabellingsDual


def zero_cut(problem: Problem) -> Cut:
    """The cut of α = 0."""
    return Cut(0.0, np.zeros(problem.atoms.count), no_dual(problem))


def cut_of(problem: Problem, given: Array | LabellingsDual) -> Cut:
    """The cut of a dual vector, rounded to a feasible one."""
    if isinstance(given, LabellingsDual):
        return cut_from_dual(problem, problem.data.y * given.v, given.value_below, given.dual)
    return cut_of_dual(problem, feasible_dual(problem, given))


def single(problem: Problem, cut: Cut, wanted: float, must_stop: Callable[[], bool] = bool) -> Proof:
    """The proof of one dual vector, as far as `wanted` (its lower(α)) where that can be reached.

    With rows the inner minimum is a MILP: a tree of LPs, each with its multipliers, all on the same dual vector. What
    it proves stands in `Proof.bound`: less than `wanted` where `over_rows` gives up.
    """
    selection = problem.selection
    proof = empty_proof(problem)
    cost = -gains(cut.slopes, problem.penalty)
    place = proof.duals.add(*cut.dual)
    if selection.is_plain:
        inner = selection.minimise(cost)[1]
        proof.close(proof.root, place)
    else:
        lacking = wanted - cut.constant - 1e-10 * abs(wanted)
        inner = over_rows(proof, proof.root, selection.sigma_bounds(), place, selection, cost, lacking, must_stop)
    proof.bound = add_down(cut.constant, inner)
    return proof


def at_hand(problem: Problem, pool: CutPool | None, must_stop: Callable[[], bool] = bool) -> Proof:
    """The proof of the best single cut of a run that kept no tree: less than its bound, but not nothing."""
    lb, ub = problem.selection.sigma_bounds()
    best = zero_cut(problem)
    most = -math.inf
    for cut in [best] if pool is None else [best, *(pool.cut(s) for s in range(len(pool)))]:
        value = lower(cut.constant, gains(cut.slopes, problem.penalty), lb > 0.5, (lb < 0.5) & (ub > 0.5), problem.M)
        best, most = (cut, value) if value > most else (best, most)
    return single(problem, best, math.inf, must_stop)


def prove_emptiness(problem: Problem, must_stop: Callable[[], bool] = bool) -> Proof | None:
    """The proof that S is empty; None when `over_rows` gives up, as it does once `must_stop` says so."""
    selection = problem.selection
    proof = empty_proof(problem)
    low, high = selection.sigma_bounds()
    if selection.is_plain or np.any(low > high):
        proof.refute(proof.root)
        return proof
    dual = proof.duals.add(*no_dual(problem))
    return proof if try_refute(proof, proof.root, (low, high), dual, selection, must_stop) else None
