"""The proof of one dual vector: what a relaxation leaves behind, and a run that kept no tree of its own.

    lower(α) = g(α) + min over σ ∈ S of (c − ½ s(α))'σ

With rows the inner minimum is a MILP: a small tree of LPs, every leaf with its multipliers and the same dual vector.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from mipfs.certificate.proof import Proof
from mipfs.drivers.cuts import Cut, CutPool, cut_from_dual, decoded, dual_value_below
from mipfs.drivers.evidence import SLACK, empty_proof, no_dual
from mipfs.drivers.multipliers import broken_row, cancelled, farkas, inner_below
from mipfs.drivers.run import Run
from mipfs.losses import get_loss
from mipfs.losses.labellings import Combination
from mipfs.problem import Problem
from mipfs.selection import Selection

Array = npt.NDArray[np.float64]

LEAVES = 2000
"""Leaves at most to certify one inner minimum over rows."""
WHOLE = 1e-6
"""Distance from 0 or 1 up to which a relaxed σ_j counts as integral."""


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
    it proves stands in `Proof.bound`: less than `wanted` after `LEAVES` leaves, or where extra variables are integer.
    """
    selection, proof = problem.selection, empty_proof(problem)
    cost, place = problem.penalty - 0.5 * cut.slopes, proof.duals.add(*cut.dual)
    if selection.is_plain:
        inner = selection.minimise(cost)[1]
        proof.close(proof.root, place)
    else:
        inner = _over_rows(proof, place, selection, cost, wanted - cut.constant - 1e-10 * abs(wanted))
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
    proof = single(problem, zero_cut(problem) if cut is None or lower < run.bound else cut, run.bound)
    assert proof.bound is not None
    if run.bound - proof.bound > 0.5 * SLACK * max(1e-10, abs(run.bound)):
        run.bound, run.closed = proof.bound, True
    run.outcome.proof, run.outcome.proof_slack = proof, 0.5 * SLACK
    run.outcome.proof_kind = "tree" if problem.selection.is_plain else "relaxation"


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
    """The proof that S is empty; None when `LEAVES` leaves do not show it, or only integer extra variables do."""
    selection, proof = problem.selection, empty_proof(problem)
    low, high = selection.sigma_bounds()
    if selection.is_plain or np.any(low > high):
        proof.refute(proof.root)
        return proof
    dual = proof.duals.add(*no_dual(problem))
    return proof if _over_rows(proof, dual, selection, np.zeros(problem.atoms.count), np.inf) == np.inf else None


def _over_rows(proof: Proof, dual: int, selection: Selection, cost: Array, wanted: float) -> float:
    """Branch-and-bound on min cost'σ over S, kept in the proof; the bound that its leaves reach."""
    from mipfs.backends import highs

    scale, first = float(np.abs(cost).max(initial=0.0)) or 1.0, int(selection.M is not None)
    oracle, model = selection.oracle(), highs.selection_model(selection, relaxed=True)
    model.h.setOptionValue("presolve", "off")
    highs.set_costs(model.h, cost / scale)
    least, stack = np.inf, [(proof.root, *selection.sigma_bounds())]
    while stack:
        node, low, high = stack.pop()
        ray = broken_row(selection, low, high)
        if ray is not None or selection.exceeds(low):
            proof.refute(node, ray)
            continue
        highs.fix_columns(model.h, low, high)
        solution = model.solve()
        y, sigma = np.zeros(len(selection.rows)), 0.5 * (low + high)
        if solution.status == "infeasible":
            ray = farkas(model, selection, low, high)
            if ray is not None:
                proof.refute(node, ray)
                continue
        elif solution.values is not None and solution.status == "optimal":
            y, sigma = model.multipliers()[first:] * scale, np.clip(solution.values[: cost.size], low, high)
        multipliers = cancelled(selection, y)
        multipliers = np.zeros(y.size) if multipliers is None else multipliers
        bound = inner_below(selection, multipliers, low, high, cost)
        undecided = np.where(low < high, np.minimum(sigma, 1.0 - sigma), -1.0)
        j = int(np.argmax(undecided))
        done = undecided[j] < 0.0 or (undecided[j] <= WHOLE and oracle.contains(sigma > 0.5))
        if bound >= wanted or done or proof.n_nodes >= 2 * LEAVES:
            proof.close(node, dual, multipliers)
            least = min(least, bound)
            continue
        for value, child in enumerate(proof.split(node, j)):
            box = low.copy(), high.copy()
            box[0][j] = box[1][j] = value
            stack.append((child, *box))
    return least
