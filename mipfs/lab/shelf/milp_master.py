"""Benders' decomposition with a MILP per iteration, as published (Aytug 2015, Table 1): ``master="milp"`` of `gbd`.

    Step 1  solve SUB at σ: its dual vector is a cut, its classifier may be the incumbent
    Step 2  solve RMP over all cuts, a MILP from scratch by HiGHS; stop when its bound meets the incumbent

    RMP  min c'σ + η   s.t.   σ ∈ S,   η ≥ g(α_s) − ½ s(α_s)'σ for every cut s                          Aytug 2015, (10)

RMP is the Pyomo model of `mipfs.models.benders`, a program to print and to edit; HiGHS gets its rows as they stand.

The bound that HiGHS gives is its word, no more than RMP is worth at its own solution, by the cuts as they stand: it
says when to stop, and is counted as earned nowhere. The tree of `gbd`, which begins with all cuts and the incumbent
that are found here, then proves the value by LPs and their multipliers.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping
from functools import partial
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyomo.environ as pyo
from pyomo.repn import generate_standard_repn

from mipfs.drivers.earlier import split_by_prefix
from mipfs.drivers.rounding import round_to
from mipfs.kernels.bound import add_down, gains
from mipfs.models.benders import add_cut, rmp
from mipfs.plumbing.arrays import Array, Integers
from mipfs.problem import Problem
from mipfs.proof.cuts import Cut, CutPool
from mipfs.proof.evidence import Evidence
from mipfs.proof.saved import saved_cuts
from mipfs.run.heuristics import Supports
from mipfs.run.run import Made, Run, refusing_broken_state
from mipfs.settings import RoundingSettings
from mipfs.solvers import highs


class Milp:
    """RMP as it is declared, in HiGHS, to which cuts are added.

    Parameters
    ----------
    problem : Problem
    scale : float > 0, size of the objective; the MILP is solved in units of it

    Attributes
    ----------
    model : Pyomo model
    """

    def __init__(self, problem: Problem, scale: float) -> None:
        self.problem, self.scale = problem, scale
        self.model = rmp(problem.replace(rows=problem.selection.solver_rows))
        variables = list(self.model.component_data_objects(pyo.Var))
        self._at = {id(v): k for k, v in enumerate(variables)}
        self.program = highs.HighsModel()
        ends = [(v.value, v.value) if v.fixed else v.bounds for v in variables]
        infinity = highs.highs_infinity()
        low = np.array([-infinity if a is None else float(a) for a, _ in ends])
        high = np.array([infinity if b is None else float(b) for _, b in ends])
        self.program.add_columns(low, high)
        self.program.make_whole(np.flatnonzero([v.is_integer() or v.is_binary() for v in variables]))
        costs = np.zeros(len(variables))
        ids, values, _ = self._linear_terms(self.model.lower.expr)
        costs[ids] = values / scale
        self.program.set_costs(costs)
        for row in self.model.select.component_data_objects(pyo.Constraint, active=True):
            self._add(row, 1.0)
        self._sigma = np.array([self._at[id(v)] for v in self.model.select.sigma.values()])

    def add(self, cut: Cut) -> None:
        """Take in a cut, as a row divided by its largest coefficient."""
        self._add(add_cut(self.model, cut), max(1.0, 0.5 * float(cut.slopes.max(initial=0.0))))

    def _add(self, row: Any, by: float) -> None:
        """Give a constraint to HiGHS, divided by a number."""
        ids, values, constant = self._linear_terms(row.body)
        low = -highs.highs_infinity() if row.lower is None else (pyo.value(row.lower) - constant) / by
        high = highs.highs_infinity() if row.upper is None else (pyo.value(row.upper) - constant) / by
        kept = np.abs(values / by) > highs.SMALLEST_ENTRY
        self.program.add_row(low, high, ids[kept], values[kept] / by, f"the row {row.name!r}")

    def _linear_terms(self, expression: Any) -> tuple[Integers, Array, float]:
        """Columns, coefficients and constant of a linear expression."""
        found = generate_standard_repn(expression, compute_values=True)
        ids = np.array([self._at[id(v)] for v in found.linear_vars], dtype=np.int64)
        return ids, np.array(found.linear_coefs, dtype=float), float(found.constant)

    def solve(self, run: Run) -> tuple[npt.NDArray[np.bool_] | None, float, bool]:
        """The next σ, None where HiGHS has none; HiGHS's bound on RMP, and whether it was at its end."""
        self.program.start_cold()  # from scratch: no start from the last solution, which is no part of a state
        found = highs.solve(self.program, deadline=run.deadline, stop=lambda: run.must_stop)
        sigma = None if found.values is None else found.values[self._sigma] > 0.5
        if sigma is None or found.status != "optimal":
            return sigma, -np.inf, False
        return sigma, found.bound * self.scale, True


def by_milp(
    run: Run, supports: Supports, pool: CutPool, first: npt.NDArray[np.bool_]
) -> Generator[Made, None, tuple[float, Evidence] | None]:
    """Run Table 1 from a first selection, or where the run that this one goes on with stood; all cuts are in `pool`.

    Returns
    -------
    (bound, Evidence) or None
        The best that a single cut proves where S is a cardinality row.
    """
    problem = run.problem
    sigma, scale = first, max(1e-6, abs(run.objective))
    if run.resume is not None:
        sigma, scale = _taken_up(run.resume.arrays, supports)
    milp = Milp(problem, scale)
    best = cast("tuple[float, Evidence] | None", None)
    for i in range(len(pool)):
        milp.add(pool.cut(i))
        best = _better_evidence(best, problem, pool, i)
    is_over = run.resume is not None and bool(run.resume.arrays["milp_over"])
    while not is_over and run.stop() is None:
        solved = supports.subproblem.solve(sigma.astype(float), supports.tol)  # Step 1
        supports.offer(sigma, solved)
        place = pool.add(solved.cut)
        milp.add(solved.cut)
        best = _better_evidence(best, problem, pool, place)
        if best is not None:
            run.raise_bound(min(best[0], run.objective))
        run.iteration += 1
        begin = time.perf_counter()
        following, bound, is_solved = milp.solve(run)  # Step 2
        if following is not None and not is_solved:  # HiGHS was stopped: what it had may be the incumbent all the same
            round_to(run, [following.astype(float)], settings=RoundingSettings())
            following = None
        if following is not None:  # what RMP is worth there is an upper bound on its minimum
            bound = min(bound, float(problem.penalty[following].sum() + pool.values(following.astype(float)).max()))
        run.counters["milp_ms"] += round(1000 * (time.perf_counter() - begin))
        run.count(cuts=len(pool), subproblems=supports.subproblem.count, milps=run.iteration)
        run.record()
        is_over = is_solved and following is None
        if following is not None:
            is_over = bound >= supports.cutoff or supports.was_seen(following)
            sigma = following
        run.oracle.drop_solvers()
        yield partial(_save_master, pool, supports, sigma, scale, is_over)
        if following is None:
            break
    return best


def _better_evidence(
    best: tuple[float, Evidence] | None, problem: Problem, pool: CutPool, place: int
) -> tuple[float, Evidence] | None:
    """What a cut proves where S is a cardinality row, if that is more than the best one does."""
    if not problem.selection.is_plain:
        return None
    inner = problem.selection.minimise(-gains(pool.slopes[place], problem.penalty))[1]
    lower = add_down(float(pool.constants[place]), inner)
    return (lower, Evidence(np.array([place]), np.ones(1))) if best is None or lower > best[0] else best


def _save_master(
    pool: CutPool, supports: Supports, following: npt.NDArray[np.bool_], scale: float, is_over: bool
) -> dict[str, npt.NDArray[Any]]:
    """The cuts, what was evaluated, where the next cut is wanted, and whether the tree takes over."""
    return {
        **saved_cuts(pool),
        **supports.arrays(),
        **{f"sub_{name}": array for name, array in supports.subproblem.kept()().items()},
        "milp_next": following,
        "milp_scale": np.array(scale),
        "milp_over": np.array(is_over),
    }


@refusing_broken_state
def _taken_up(kept: Mapping[str, npt.NDArray[Any]], supports: Supports) -> tuple[npt.NDArray[np.bool_], float]:
    """Go on with what `_save_master` kept: where the next cut is wanted, and the unit of the objective."""
    supports.take_up(kept)
    supports.subproblem.take_up(split_by_prefix(kept, "sub_")[0])
    sigma, scale = kept["milp_next"], float(kept["milp_scale"])
    if sigma.shape != (supports.run.problem.atoms.count,) or sigma.dtype != np.bool_ or not 0.0 < scale < np.inf:
        raise ValueError("the next cut is wanted at another number of atoms")
    return sigma, scale
