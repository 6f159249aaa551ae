"""Branch-and-bound on some of the atoms, which are grown until the rest is proven out.

    α, L   the dual vector of the Boolean relaxation over all atoms, and the bound that it earns
    A      the atoms to begin with
    repeat solve the problem over A by `mipfs.drivers.branch`: an incumbent, and a bound B_A over A
           B = min(B_A, the least that α proves of a selection with an atom outside A) bounds the whole problem
           A takes in the atoms that α does not rule out at the cutoff, those of least such bound first
    until  B closes the gap, or a limit strikes

What the incumbent leaves open of the atoms outside A is what the choice of A may have cost. The proof begins with a
screening by α, which rules out the atoms outside A, and goes on with the tree over A. Of atoms that are too many to
hold those outside A are found by a search (`mipfs.drivers.searched`), and the proof names α as what rules them out.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs.atoms.implicit import ensure_one
from mipfs.drivers.rounding import round_to
from mipfs.drivers.searched import SearchedBound, search_root
from mipfs.errors import UsageError
from mipfs.inner.boolean import Boolean, SolvedRelaxation
from mipfs.inner.prices import Pricing, RowPrices
from mipfs.kernels.bound import add_down, bounds_with_each_in, gains
from mipfs.plumbing.arrays import Array, Integers, replace_at
from mipfs.proof.cuts import Dual
from mipfs.proof.evidence import empty_proof
from mipfs.proof.multipliers import cancel_multipliers
from mipfs.proof.proof import Proof
from mipfs.result.result import Record
from mipfs.run.part import PartialRun
from mipfs.run.run import Run, Steps
from mipfs.run.warm_up import prepare
from mipfs.settings import RoundingSettings


@dataclass(frozen=True, eq=False)
class Root:
    """What one dual vector proves of the whole problem.

    Attributes
    ----------
    solved : SolvedRelaxation, the relaxation over all atoms
    prices : RowPrices of the rows that it earns its bound with
    least : (count,) a bound on every selection that has the atom
    """

    solved: SolvedRelaxation
    prices: RowPrices
    least: Array

    @property
    def lower(self) -> float:
        """What it proves of all selections."""
        return self.solved.lower

    @property
    def dual(self) -> Dual:
        """The dual vector."""
        return self.solved.cut.dual

    def outside(self, held: Integers) -> float:
        """A bound on every selection with an atom that is not held."""
        return float(np.delete(self.least, held).min(initial=math.inf))

    def missing(self, held: Integers, level: float, most: int) -> Integers:
        """At most `most` of the atoms that are not held and not ruled out at a level, those of least bound first."""
        absent = np.setdiff1d(np.flatnonzero(self.least < level), held)
        return absent[np.argsort(self.least[absent], kind="stable")[:most]]


def solve_root(run: Run) -> Root:
    """Solve the relaxation over all atoms."""
    problem = run.problem
    low, high = problem.selection.sigma_bounds()
    solver = Boolean(problem, lambda: run.must_stop, run.settings.relaxation)
    solved = solver.solve(low, high, run.settings.growth.gap)
    pricing = Pricing(problem.selection)
    prices = pricing.of(solved.multipliers) or pricing.none
    inside, free = np.flatnonzero(low > 0.5), np.flatnonzero((low < 0.5) & (high > 0.5))
    gain = gains(solved.cut.slopes, prices.penalties(problem.penalty))
    base = add_down(solved.cut.constant, prices.constant)
    return Root(solved, prices, bounds_with_each_in(base, gain, inside, free, problem.M))


class ActiveRun(PartialRun):
    """The run over the atoms of A, which tells the whole one what it proves."""

    def __init__(self, whole: Run, held: Integers, options: Any, outside: float) -> None:
        self.outside = outside
        self._before = whole.iteration
        super().__init__(whole, held, options, (self.told,))

    @property
    def proven(self) -> float:
        """The bound on the whole problem: of selections inside, and of those with an atom outside."""
        return min(self.bound, self.outside)

    def told(self, record: Record) -> None:
        """Pass on what was found."""
        whole = self.whole
        whole.raise_bound(self.proven)
        whole.iteration = self._before + self.iteration
        whole.count(**{**record.counters, "active": self.held.size})
        whole.record()


def run(run: Run, search: Callable[[Run], Steps]) -> Steps:
    """Solve the problem of `run` by an exact search over growing parts of it; what is found is left in the run."""
    problem = run.problem
    _check(run)
    found = _first_bound_and_atoms(run)
    if found is None:
        return
    (root, held), best = found, None
    run.raise_bound(root.lower)
    start = run.options.start
    rounds = 0
    run.count(atoms=problem.atoms.count, begun_with=held.size)
    while run.stop() is None:
        rounds += 1
        part = ActiveRun(run, held, _options_left(run, start), root.outside(held))
        _prepare_part(part)
        if run.interrupted:
            break
        for _ in search(part):
            yield None
        run.count(rounds=rounds)
        part.record()
        best = part if best is None or part.proven > best.proven else best
        missing = root.missing(held, run.cutoff, max(1, (run.settings.growth.factor - 1) * held.size))
        if not missing.size or not part.is_optimal:
            run.closed = part.closed and not missing.size
            run.early = None if run.closed else part.stop()
            break
        held = problem.atoms.closed(np.union1d(held, missing))
        assert run.incumbent is not None
        start = tuple(problem.atoms.names[int(g)] for g in run.incumbent.selected)
    _offer_nothing(run)
    run.outcome.proof = _joint_proof(run, root, best)


def _first_bound_and_atoms(run: Run) -> tuple[Root | SearchedBound, Integers] | None:
    """What one dual vector proves, and the atoms to begin with; None where S is empty."""
    if not run.problem.atoms.is_held:
        root = search_root(run)
        named = run.problem.atoms_of([*(run.options.start or ()), *(run.options.active or ())])
        return root, root.first(named, run.settings.growth.least)
    first, _ = run.cheapest()
    if first is None:
        return None
    run.raise_bound(0.0)  # losses and costs are not negative; extra variables with costs are refused
    whole = solve_root(run)
    return whole, np.flatnonzero(_initial_atoms(run, whole, first))


def _offer_nothing(run: Run) -> None:
    """Where a limit came before any classifier: that of the selection that asks for nothing."""
    if run.incumbent is None and not run.infeasible:
        atoms = run.problem.atoms
        part = run if atoms.is_held else PartialRun(run, atoms.closed(np.zeros(1, dtype=np.int64)))
        round_to(part, [np.zeros(part.problem.atoms.count)], settings=RoundingSettings())


def _prepare_part(part: ActiveRun) -> None:
    """Compile what the search of a part calls, while the clock stands: its atoms are fewer, its columns stored.

    What relaxes its nodes, and so what a run compiles before its clock, may be another than that of the whole problem.
    """
    from mipfs.drivers import branch

    whole = part.whole
    for run in (whole, part):
        run.pause()
    try:
        asked = prepare(branch, part.problem, part.options)
    finally:
        for run in (whole, part):
            run.go_on()
    whole.asked = whole.asked or asked.came
    whole.interrupted = whole.interrupted or (asked.came and asked.is_cold)


def _options_left(run: Run, start: tuple[str, ...] | None) -> Any:
    """The options of the next part: what is left of the limits, and a support to begin from."""
    options = run.options
    nodes = None if options.iteration_limit is None else max(0, options.iteration_limit - run.iteration)
    return dataclasses.replace(options, active=None, iteration_limit=nodes, start=start)


def _check(run: Run) -> None:
    """Refuse what a part of the atoms cannot carry.

    Raises
    ------
    UsageError
    """
    problem = run.problem
    options = run.options
    if not problem.atoms.is_held and problem.is_joint:
        raise UsageError(f"{problem.atoms.called} go with losses that are a sum over the samples; take another loss")
    if problem.is_one_master:
        what, remedy = ("active", "leave it out") if options.active else ("a tree on such atoms", "take driver 'gbd'")
        raise UsageError(
            f"{what} takes neither the structural loss nor extra variables that are whole or have costs; {remedy}"
        )
    for name in ("pool", "validation", "pool_gap", "pool_size"):
        if getattr(options, name) is not None:
            if options.active:
                raise UsageError(f"active and {name} do not go together; leave one of them out")
            where = "columns that lie in memory, and these are made as they are needed or lie in files"
            raise UsageError(f"{name} is for {where}; leave it out")


def _initial_atoms(run: Run, root: Root, first: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """The atoms to begin with: those named, or those that the relaxation likes best, and what some selection needs."""
    problem = run.problem
    options = run.options
    held = replace_at(first, problem.atoms_of(options.start or ()), True)
    if options.active:
        held[problem.atoms_of(options.active)] = True
        return held
    mixed = root.solved.sigma > 1e-6
    count = max(run.settings.growth.least, 2 * int(np.count_nonzero(mixed)))
    held[mixed] = True
    held[np.argsort(root.least, kind="stable")[:count]] = True
    held &= problem.selection.sigma_bounds()[1] > 0.5
    return held


def _joint_proof(run: Run, root: Root | SearchedBound, part: ActiveRun | None) -> Proof | None:
    """The dual vector of the root rules out the atoms outside, the tree over those inside does the rest."""
    problem = run.problem
    held = None
    shown = None
    if isinstance(root, SearchedBound):
        chosen = [] if run.incumbent is None else [run.incumbent.selected]
        inside = [] if part is None else [part.held]
        held = run.outcome.held = problem.atoms.closed(
            ensure_one(np.unique(np.concatenate([root.top, *chosen, *inside])))
        )
    elif root.prices.y.any():
        shown = (
            cancel_multipliers(problem.selection, root.prices.y) if len(problem.selection.rows.extra) else root.prices.y
        )
        if shown is None:
            return None
    proof = empty_proof(problem, held=held)
    dual = proof.duals.add(*root.dual)
    proof.outside = None if held is None else dual
    if part is None or run.bound <= root.lower:
        proof.close(proof.root, dual, shown)
        return proof
    tree = part.outcome.proof
    if not isinstance(tree, Proof):
        return None
    places = part.held if held is None else np.searchsorted(held, part.held)
    if held is not None:
        tree = tree.over_rows(part.problem.selection.rows.names, problem.restricted(held).selection.rows.names)
    proof.take_over(proof.screen(proof.root, dual, shown), tree, places)
    return proof
