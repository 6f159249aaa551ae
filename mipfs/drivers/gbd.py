"""Generalized Benders Decomposition for (P) (Aytug 2015, Table 1, GBD-M and GBD-λ).

    Step 1  solve SUB at σ: an SVM on the selected columns; its dual vector is a cut
    Step 2  solve the relaxed master over the cuts for the next σ; stop when the bounds meet

Differences from the paper, without which ``master="milp"`` begins (`mipfs.lab.shelf.milp_master`): the master is one
branch-and-cut tree instead of a MIP from scratch per iteration (`mipfs.drivers.master`), cuts are also taken at
fractional σ (root cuts, valid because v is convex on [0, 1]^p) at a point between the master's σ and an inner one
(in-out stabilisation), and incumbents come from rounding and swaps too.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal, cast

import numpy as np
import numpy.typing as npt

from mipfs.capability import ALL_LOSSES, ALL_REGULARISERS, COSTS, PRICED, Capability, needs_ridge
from mipfs.data.constant import CONSTANT
from mipfs.drivers import master_state
from mipfs.drivers.common_options import SupportOptions
from mipfs.drivers.earlier import EarlierTree
from mipfs.drivers.master import Master
from mipfs.drivers.master_node import MasterNode
from mipfs.drivers.shelf import load_published
from mipfs.errors import UsageError
from mipfs.inner import boolean, tall
from mipfs.inner.boolean_node import NEGLIGIBLE_SIGMA
from mipfs.inner.subproblem import Subproblem
from mipfs.plumbing.arrays import Array, mask_of, scatter
from mipfs.problem import Problem
from mipfs.proof.cuts import CutPool
from mipfs.proof.evidence import COMBINED_SLACK, WIDE_WEIGHT_RATIO, Evidence, EvidenceTree, no_evidence
from mipfs.proof.saved import restored_cuts
from mipfs.result.state import RunState
from mipfs.run.carry import adapt_cuts
from mipfs.run.heuristics import Supports
from mipfs.run.near_optimal import LISTED_GAP, is_asked
from mipfs.run.run import Run, Steps, refusing_broken_state, restore_run
from mipfs.run.swaps import climb
from mipfs.run.ties import near_optimal_list
from mipfs.run.validation import Validator
from mipfs.selection.oracle import SelectionOracle
from mipfs.settings import GbdSettings

CAPABILITY = Capability(
    losses=ALL_LOSSES,
    bound="earned, certified",
    regularisers=ALL_REGULARISERS,
    selection=PRICED,
    weight_rows=True,
    is_exact=True,
    no_state=master_state.why_none,
    goes_on=True,
    kernel_options=("master", "subproblem"),
    slow_values=("conic", "milp"),
    papers=("aytug2015",),
)


@dataclass(frozen=True)
class Options(SupportOptions):
    """Options of `gbd`.

    Parameters
    ----------
    gap : float in [0, 1), default 1e-4
        Relative gap at which the incumbent counts as optimal.
    time_limit : float, optional, in seconds
    memory_limit : float, optional, in gigabytes that the process may hold
    iteration_limit : int, optional, number of cuts
    start : tuple of str, optional
        A support to begin from; it must satisfy the rows.
    validation : Instance, optional
        Stop when the error on it has not improved for `patience` classifiers (Aytug 2015, section 3.4).
    patience : int, default 20
    pool : CutPool, optional
        Cuts of an earlier run (`Result.pool`) on the same data, atoms, loss and bias; C, M and rows may differ. It is
        not changed: where one is given, also an empty ``CutPool(problem)``, the result has all cuts at hand.
    keep_cuts : bool, default False
        Have the cuts at hand in the result, as arrays (`Result.cuts`).
    pool_gap : float >= 0, optional
        Find all supports whose objective is within this relative gap of the optimum.
    pool_size : int >= 1, optional
        Number of best supports to find (with `pool_gap`: the best of those).
    master : {"tree", "milp"}
        One branch-and-cut tree, or as published a MILP by HiGHS per iteration with all cuts (Aytug 2015, Table 1); the
        tree then proves what that found.
    subproblem : {"newton", "conic"}
        The SVM by semismooth Newton steps, or declared in CVXPY and solved by Clarabel
        (`mipfs.lab.shelf.conic_subproblem`), for losses that are a sum over the samples.
    """

    keep_cuts: bool = False
    master: Literal["tree", "milp"] = "tree"
    subproblem: Literal["newton", "conic"] = "newton"
    SETTINGS: ClassVar = GbdSettings


def run(run: Run) -> Steps:
    """Solve the problem of `run`; what is found is left in it."""
    return search(run, run.options.master, run.options.subproblem)


def search(run: Run, master_by: str = "tree", by: str = "newton") -> Steps:
    """Solve the problem of `run` with this master and subproblem; `branch` comes here too."""
    run.outcome.proof_slack = COMBINED_SLACK
    begun = begin(run, by)
    if begun is None:
        return
    (supports, first), settings = begun, run.settings.master
    subproblem = supports.subproblem
    pool = _initial_pool(run)
    tol = max(1e-9, 1e-2 * run.options.gap)
    run.outcome.pool = pool
    master, rounded, earlier = master_state.resume_master(run, supports, pool)
    if master is None:
        if master_state.is_at_its_beginning(run):
            run.rest_copied(partial(master_state.initial_state, pool), is_first=True)
        start = None
        if master_by == "milp" and run.problem.has_extra_costs:
            raise UsageError(f"master = 'milp' is the published one, which has no {COSTS}; leave it out")
        if master_by == "milp" and earlier is None:
            start = yield from load_published("milp master").by_milp(run, supports, pool, first)
        master = _plant_master(run, supports, pool, first, start, tol)
        rounded = -1
    run.raise_bound(min(master.bound, run.objective))
    if run.resting is None or run.stop() is None:  # what a limit cut off is done again
        run.rest_copied(partial(master_state.save_master, master, supports, rounded, earlier), is_first=True)
    while run.stop() is None:
        point = master.relax(
            supports.cutoff, lambda: run.must_stop, run.deadline, partial(_is_done, supports)
        )  # Step 2
        run.raise_bound(min(master.bound, run.objective))
        if point is None:
            run.closed = master.exhausted
            continue
        solved = subproblem.solve(point.separate, supports.tol if point.is_integral else tol)  # Step 1
        master.add(solved.cut)
        master.learn(point.separate, solved.value, subproblem.weights())
        run.iteration += 1
        if point.is_integral:
            supports.offer(point.sigma > 0.5, solved)
        if master.n_nodes <= 1:
            if run.iteration % settings.rounding_cuts == 0:
                supports.round(point.separate)
        elif master.n_nodes // settings.rounding_nodes > rounded:
            supports.round(point.separate)
            if rounded < 0:
                climb(supports, pool)
            rounded = master.n_nodes // settings.rounding_nodes
        supports.reduce()
        run.count(cuts=len(pool), subproblems=subproblem.count, nodes=master.n_nodes, lps=master.n_lps)
        run.record()
        if master.comes_to_rest(run.problem.data.block().nnz):
            run.rest_copied(partial(master_state.save_master, master, supports, rounded, earlier))
        yield None
    yield run.left_at(partial(master_state.save_master, master, supports, rounded, earlier))
    run.outcome.found = near_optimal_list(supports)
    _leave_proof(run, master, earlier)


def _plant_master(
    run: Run,
    supports: Supports,
    pool: CutPool,
    first: npt.NDArray[np.bool_],
    start: tuple[float, Evidence] | None,
    tol: float,
) -> Master:
    """The master before its first node is solved, with the cut of a point inside S and what the relaxation proves."""
    problem = run.problem
    selection = run.problem.selection
    inner = _inner_point(run.oracle, first)
    low, high = selection.sigma_bounds()
    # The relaxation's rows have no costs of extra variables.
    carried = boolean.carries(problem) and not problem.has_extra_costs
    solver = boolean.Boolean(problem, lambda: run.must_stop, run.settings.relaxation) if carried else None
    # The SVM on all atoms comes first: where a limit stops what follows, its dual vector still gives a bound.
    known = None if solver is None else tall.known_classifier(solver, high)
    if known is not None:
        supports.subproblem.start_cold()
        supports.round(scatter(problem.atoms.count, known.owner, np.square(known.w)))
    begins_small = carried and (known is not None or _is_large(problem, inner, run.settings.master.largest_step))
    value = 0.0
    if not begins_small:
        root = supports.subproblem.solve(inner, tol)
        pool.add(root.cut)
        supports.round(root.cut.slopes)
        value = root.value
    if solver is not None:
        relaxed = solver.solve(low, high, tol, known=known)
        y = None if selection.is_plain else relaxed.multipliers
        found = relaxed.lower, Evidence(np.array([pool.add(relaxed.cut)]), np.ones(1), y)
        start = found if start is None or found[0] > start[0] else start
        if begins_small:
            value = relaxed.upper if np.isfinite(relaxed.upper) else relaxed.lower
            inner = np.where(relaxed.sigma > NEGLIGIBLE_SIGMA, relaxed.sigma, 0.0)
            supports.round(relaxed.cut.slopes)
    if (start is None or start[0] < 0.0) and not problem.has_extra_costs:
        start = 0.0, no_evidence()  # a limit came before a better one
    scale = max(1e-6, abs(value))
    return Master(
        selection,
        problem.penalty,
        pool,
        scale,
        inner,
        record=EvidenceTree(problem, pool, lambda: run.must_stop),
        start=start,
        settings=run.settings.master,
    )


def _is_large(problem: Problem, sigma: Array, most: float) -> bool:
    """Whether one Newton step of the SVM on a support takes more than `most` multiplications: none is cut short.

    Its system is factorised densely, in a third of its cube, however sparse the data are.
    """
    n, k = problem.data.n_samples, int(np.count_nonzero(sigma))
    share = problem.data.block().nnz / max(1, n * problem.data.n_features)
    return n * k * min(n, k) * share + min(n, k) ** 3 / 3 > most


def _is_done(supports: Supports, node: MasterNode) -> bool:
    """Whether all that a node holds is counted in a list of near-optimal supports, not listed."""
    full = supports.run.problem.M is not None and int(node.lb.sum()) >= supports.run.problem.M
    sizes = node.weights if node.weights.size else None
    return supports.has_ties_only(node.lb > 0, node.free & (not full), node.bound, sizes)


def _leave_proof(run: Run, master: Master, earlier: EarlierTree | None) -> None:
    """Leave the proof in the run, and take off its bound what rounding the dual vectors may cost."""
    assert master.record is not None
    is_less = earlier is not None and earlier.outlives(min(master.bound, run.objective), run)
    combined = earlier.proof if earlier is not None and is_less else master.record.finish(master.open_nodes())
    run.outcome.proof = combined
    if combined is not None and not run.wants_all:
        combined.tree.trim(run.bound)
    cost = 0.0 if combined is None else combined.rounding(run.problem)
    run.sharpness = 1.0
    if cost > 0.0:
        run.bound -= 1.01 * cost
        # No more cuts bring back what this takes off a closed gap.
        run.closed = run.closed or run.stop() is None


def _initial_pool(run: Run) -> CutPool:
    """The cuts to begin with: those of a pool that was given, or of the run that this one goes on with."""
    problem = run.problem
    given = run.options.pool
    if np.max(problem.c_i) > WIDE_WEIGHT_RATIO * np.min(problem.c_i):
        run.sharpness = run.settings.master.sharper
    if run.resume is None and given is None and run.warm is not None:
        return run.warm.pool()
    if run.resume is None:
        return CutPool(problem) if given is None else adapt_cuts(given, problem)
    return _pool_of(run, run.resume)


@refusing_broken_state
def _pool_of(run: Run, state: RunState) -> CutPool:
    """The cuts of the run that this one goes on with."""
    pool = CutPool(run.problem)
    restore_run(run, state)
    restored_cuts(pool, dict(state.arrays))
    return pool


def begin(run: Run, by: str = "newton") -> tuple[Supports, npt.NDArray[np.bool_]] | None:
    """How every exact run begins: the first incumbent, from the user's start or from S; None when S is empty.

    Parameters
    ----------
    run : Run
    by : {"newton", "conic"}, the subproblem

    Returns
    -------
    supports : Supports
    first : (p,) ndarray of bool, the cheapest selection
    """
    options = run.options
    run.wants_all = is_asked(run)
    first, _ = run.cheapest()
    if first is None:
        return None
    validator = None if options.validation is None else Validator(run, options.validation, options.patience)
    # Costs of extra variables may cancel the values of the SVMs.
    is_fine = run.wants_all or run.problem.has_extra_costs
    tol = min(LISTED_GAP if is_fine else 1e-7, max(1e-10, 1e-3 * options.gap))
    supports = Supports(run, _make_subproblem(run, by), tol=tol, validator=validator)
    supports.evaluate(_start(run, options.start) if options.start is not None else _first_support(run, first))
    return supports, first


def _first_support(run: Run, first: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """The support that an earlier result left, where there is one of S; else the first that is."""
    found = None if run.warm is None else run.warm.first()
    return found if found is not None and run.oracle.contains(found) else first


def _make_subproblem(run: Run, by: str) -> Subproblem:
    """The subproblem by a method: "newton", or Clarabel's."""
    if by == "newton":
        return Subproblem(run.problem, lambda: run.must_stop)
    needs_ridge(run.problem, f"subproblem = {by!r}")
    # (Aytug 2015, SUB) has no rows over weights: nothing would hold them.
    if run.problem.weight_rows:
        raise UsageError(f"subproblem = {by!r} knows no rows over the weights; leave it, or weight_rows, out")
    conic = load_published("conic subproblem").ConicSubproblem(run.problem, lambda: run.must_stop, lambda: run.deadline)
    return cast(Subproblem, conic)


def _start(run: Run, names: tuple[str, ...]) -> npt.NDArray[np.bool_]:
    """The support of the user as σ (count,) of bool, which is in S; the constant column of an intercept is in."""
    always = (CONSTANT,) if run.problem.data.constant else ()
    sigma = mask_of(run.problem.atoms.count, run.problem.atoms_of((*names, *always)))
    if not run.oracle.contains(sigma):
        raise UsageError(f"start: the support {', '.join(names)} does not satisfy the rows")
    return sigma


def _inner_point(oracle: SelectionOracle, feasible: npt.NDArray[np.bool_]) -> Array:
    """A point well inside the polytope of S: all features equally, or the middle of several selections."""
    selection = oracle.selection
    lb, ub = selection.sigma_bounds()
    if selection.is_plain:
        free = ub > lb
        room = free.sum() if selection.M is None else selection.M - lb.sum()
        return np.where(free, min(1.0, max(0.0, room) / max(1, free.sum())), lb)
    total = feasible.astype(float)
    count = 1
    for j in range(0, selection.n_features, max(1, selection.n_features // 20)):
        wanted = scatter(selection.n_features, slice(j, j + max(1, selection.n_features // 20)), 1.0)
        found = oracle.repair(wanted + 1e-3)
        if found is not None:
            total = total + found
            count = count + 1
    return np.asarray(total / count)
