"""A run that ends with one dual vector: its proof (`mipfs.proof.single`), and a bound that is no more than it shows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mipfs.atoms.implicit import ensure_one
from mipfs.losses import get_loss
from mipfs.plumbing.arrays import Array, Integers
from mipfs.proof.cuts import Cut, decode_dual, dual_value_below
from mipfs.proof.evidence import empty_proof
from mipfs.proof.proof import Proof
from mipfs.proof.single import single, zero_cut
from mipfs.run.run import Run


def prove_at_root(run: Run, lower: float, cut: Cut | None) -> None:
    """The certificate: the best dual vector at the root, and where S has rows a small tree for its inner minimum.

    A MILP solver's word may say more than the tree shows: then the bound of the run is what is shown.

    Parameters
    ----------
    run : Run
    lower, cut : the largest lower(α) of the run, and the cut of α; where its bound is larger, α = 0 proves it
    """
    if not np.isfinite(run.bound):
        return
    _leave_proof(
        run,
        single(run.problem, zero_cut(run.problem) if cut is None or lower < run.bound else cut, run.bound, run.late()),
    )


def prove_plain(run: Run, alpha: Array, lower: Callable[[Array, float], tuple[Integers, float]]) -> None:
    """The certificate of one dual vector where S is a cardinality row, without a cost of every atom.

    Of atoms that are too many to hold it is over those that the dual vector likes best, and those selected.

    Parameters
    ----------
    run : Run
    alpha : (n,) the dual vector
    lower : the best selection for an exactly feasible α and its g, ascending, and lower(α), rounded down
    """
    problem = run.problem
    loss = get_loss(run.problem.loss)
    if not np.isfinite(run.bound):
        return
    dual = loss.feasible_dual(alpha, problem.c_i, problem.data.y, problem.bias)
    exact = decode_dual(dual)
    held = None
    ids, bound = lower(exact, dual_value_below(loss, exact, problem.c_i))
    bound = bound if exact.any() else 0.0
    del exact
    if not problem.atoms.is_held:
        chosen = ids[:0] if run.incumbent is None else run.incumbent.selected
        held = run.outcome.held = ensure_one(np.union1d(ids, np.union1d(chosen, run.outcome.mixed)))
    proof = empty_proof(problem, held=held)
    proof.close(proof.root, place := proof.duals.add(*dual))
    proof.bound = bound
    proof.outside = None if held is None else place
    _leave_proof(run, proof)


def _leave_proof(run: Run, proof: Proof) -> None:
    """Leave the proof of one dual vector in the run, whose bound is no more than that shows."""
    assert proof.bound is not None
    if run.bound > proof.bound:
        run.bound = proof.bound
        run.closed = True
    run.outcome.proof = proof
    run.outcome.proof_kind = "tree" if run.problem.selection.is_plain else "relaxation"
