"""The proof of one dual vector: what a relaxation leaves behind, and a run that kept no tree of its own.

    lower(α) = g(α) + min over σ ∈ S of (c − ½ s(α))'σ

With rows the inner minimum is a MILP: a tree of LPs (`row_tree`), all leaves with the same dual vector.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from mipfs.atoms.implicit import some
from mipfs.losses import get_loss
from mipfs.losses.labellings import Combination
from mipfs.problem import Problem
from mipfs.proof.cuts import Cut, CutPool, cut_from_dual, decoded, dual_value_below
from mipfs.proof.evidence import empty_proof, no_dual
from mipfs.proof.proof import Proof
from mipfs.proof.row_tree import is_refuted, over_rows
from mipfs.run.run import Run

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


def zero_cut(problem: Problem) -> Cut:
    """The cut of α = 0."""
    return Cut(0.0, np.zeros(problem.atoms.count), no_dual(problem))


def cut_of(problem: Problem, given: Array | Combination) -> Cut:
    """The cut of a dual vector, rounded to a feasible one."""
    c, y = problem.c_i, problem.data.y
    if isinstance(given, Combination):
        return cut_from_dual(problem.atoms, y * given.v, y, given.value_below, given.dual)
    loss = get_loss(problem.loss)
    dual = loss.feasible_dual(given, c, y, problem.bias)
    alpha = decoded(dual)
    return cut_from_dual(problem.atoms, alpha, y, dual_value_below(loss, alpha, c), dual)


def single(problem: Problem, cut: Cut, wanted: float) -> Proof:
    """The proof of one dual vector, as far as `wanted` (its lower(α)) where that can be reached.

    With rows the inner minimum is a MILP: a tree of LPs, each with its multipliers, all on the same dual vector. What
    it proves stands in `Proof.bound`: less than `wanted` where `over_rows` gives up.
    """
    selection, proof = problem.selection, empty_proof(problem)
    cost, place = problem.penalty - 0.5 * cut.slopes, proof.duals.add(*cut.dual)
    if selection.is_plain:
        inner = selection.minimise(cost)[1]
        proof.close(proof.root, place)
    else:
        lacking = wanted - cut.constant - 1e-10 * abs(wanted)
        inner = over_rows(proof, proof.root, selection.sigma_bounds(), place, selection, cost, lacking)
    proof.bound = cut.constant + inner - 1e-14 * (abs(cut.constant) + abs(inner))
    return proof


def prove(run: Run, lower: float, cut: Cut | None) -> None:
    """The certificate: the best dual vector at the root, and where S has rows a small tree for its inner minimum.

    A MILP solver's word may say more than the tree shows: then the bound of the run is what is shown.

    Parameters
    ----------
    run : Run
    lower, cut : the largest lower(α) of the run, and the cut of α; where its bound is larger, α = 0 proves it
    """
    problem = run.problem
    if not np.isfinite(run.bound):
        return
    _leave(run, single(problem, zero_cut(problem) if cut is None or lower < run.bound else cut, run.bound))


def prove_plain(run: Run, alpha: Array, lower: Callable[[Array, float], tuple[Integers, float]]) -> None:
    """The certificate of one dual vector where S is a cardinality row, without a cost of every atom.

    Of atoms that are too many to hold it is over those that the dual vector likes best, and those selected.

    Parameters
    ----------
    run : Run
    alpha : (n,) the dual vector
    lower : the best selection for an exactly feasible α and its g, ascending, and lower(α), rounded down
    """
    problem, loss = run.problem, get_loss(run.problem.loss)
    if not np.isfinite(run.bound):
        return
    dual = loss.feasible_dual(alpha, problem.c_i, problem.data.y, problem.bias)
    exact, held = decoded(dual), None
    ids, bound = lower(exact, dual_value_below(loss, exact, problem.c_i))
    bound = bound if exact.any() else 0.0
    del exact
    if not problem.atoms.is_held:
        chosen = ids[:0] if run.incumbent is None else run.incumbent.selected
        held = run.outcome.held = some(np.union1d(ids, np.union1d(chosen, run.outcome.mixed)))
    proof = empty_proof(problem, held=held)
    proof.close(proof.root, place := proof.duals.add(*dual))
    proof.bound, proof.outside = bound, None if held is None else place
    _leave(run, proof)


def _leave(run: Run, proof: Proof) -> None:
    """Leave the proof of one dual vector in the run, whose bound is no more than that shows."""
    assert proof.bound is not None
    if run.bound > proof.bound:
        run.bound, run.closed = proof.bound, True
    run.outcome.proof = proof
    run.outcome.proof_kind = "tree" if run.problem.selection.is_plain else "relaxation"


def at_hand(problem: Problem, pool: CutPool | None) -> Proof:
    """The proof of the best single cut of a run that kept no tree: less than its bound, but not nothing."""
    lb, ub = problem.selection.sigma_bounds()
    best, most = zero_cut(problem), -math.inf
    for cut in [best] if pool is None else [best, *(pool.cut(s) for s in range(len(pool)))]:
        cost = problem.penalty - 0.5 * cut.slopes
        taken = np.sort(np.minimum(cost[(lb < 0.5) & (ub > 0.5)], 0.0))[: problem.M]
        value = cut.constant + float(cost[lb > 0.5].sum() + taken.sum())
        best, most = (cut, value) if value > most else (best, most)
    return single(problem, best, math.inf)


def emptiness(problem: Problem) -> Proof | None:
    """The proof that S is empty; None when `over_rows` gives up."""
    selection, proof = problem.selection, empty_proof(problem)
    low, high = selection.sigma_bounds()
    if selection.is_plain or np.any(low > high):
        proof.refute(proof.root)
        return proof
    dual = proof.duals.add(*no_dual(problem))
    return proof if is_refuted(proof, proof.root, (low, high), dual, selection) else None
