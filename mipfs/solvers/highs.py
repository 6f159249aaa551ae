"""HiGHS: linear programs and MILPs over the selection, built once and kept alive."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mipfs.errors import NumericalError

if TYPE_CHECKING:
    import highspy

    from mipfs.selection.selection import Selection

Array = npt.NDArray[np.float64]

POLL_SECONDS = 0.05
"""How often a running solve looks at the clock and at the interrupt flag."""
FIRST_LOOK = 0.002
"""The first time: most solves are that short."""
PATIENCE = 1.0
"""Seconds that an exception waits for HiGHS to hear it."""


@dataclass(frozen=True)
class MilpSolution:
    """What one solve left behind.

    Attributes
    ----------
    status : {"optimal", "infeasible", "stopped", "failed"}
        "infeasible" is HiGHS's word; "failed" is anything that is neither an answer nor a limit.
    values : (n_columns,) ndarray, or None without a feasible point
    bound : float, the solver's dual bound less the error of its tolerances
    """

    status: str
    values: Array | None
    bound: float


@dataclass(frozen=True, eq=False)
class SelectionModel:
    """The set S in HiGHS: columns sigma, then the extra variables in units of their own; rows in units too.

    Attributes
    ----------
    h : highspy.Highs
    units : (r,) powers of two, by which every row of S was multiplied (the cardinality row, the first, by 1)
    columns : (e,) powers of two: an extra variable is this times its column
    """

    h: highspy.Highs
    units: Array
    columns: Array

    def solve(self, stop: Callable[[], bool] | None = None) -> MilpSolution:
        """Run HiGHS until it ends or `stop` says so; `values` are sigma and extra variables as the rows have them."""
        solution = solve(self.h, stop=stop)
        if solution.values is None:
            return solution
        values, p = solution.values.copy(), self.h.getNumCol() - self.columns.size
        values[p:] *= self.columns
        return MilpSolution(solution.status, values, solution.bound)

    def multipliers(self) -> Array:
        """The LP's multipliers (r,) of the rows of S as they stand, the cardinality row first."""
        return np.array(self.h.getSolution().row_dual)[: self.units.size] * self.units

    def ray(self) -> Array | None:
        """HiGHS's Farkas ray (r,) in the model's own units, its largest entry 1; None without one."""
        _, found, values = self.h.getDualRay()  # type: ignore[attr-defined]
        if not found:
            return None
        y = np.array(values)[: self.units.size]
        return np.asarray(y / max(float(np.abs(y).max(initial=0.0)), 1e-300))


def accepted(status: Any, what: str) -> None:
    """Require that HiGHS took over what it was given, as it was given.

    Raises
    ------
    NumericalError
    """
    import highspy

    if status != highspy.HighsStatus.kOk:
        raise NumericalError(f"HiGHS does not take over {what}; its numbers are out of range")


@cache
def _silent(option: str) -> type[highspy.Highs]:
    import highspy

    class Silent(highspy.Highs):
        def enableCallbacks(self) -> None:
            self.setOptionValue(option, False)
            super().enableCallbacks()  # type: ignore[no-untyped-call]

    return Silent


def silent(option: str = "output_flag") -> highspy.Highs:
    """A HiGHS with an option off from the beginning.

    From 1.16 on its constructor prints a banner as soon as it sets up its callbacks, before anybody can ask it not to.
    """
    h = _silent(option)()
    h.setOptionValue(option, False)
    return h


def new_model(threads: int = 1) -> highspy.Highs:
    """A silent HiGHS with tolerances as tight as it allows."""
    h = silent()
    h.setOptionValue("threads", threads)
    h.setOptionValue("primal_feasibility_tolerance", 1e-9)
    h.setOptionValue("dual_feasibility_tolerance", 1e-9)
    h.setOptionValue("mip_feasibility_tolerance", 1e-9)
    h.setOptionValue("mip_rel_gap", 0.0)
    h.setOptionValue("mip_abs_gap", 0.0)
    h.setOptionValue("small_matrix_value", 1e-12)
    return h


def selection_model(selection: Selection, *, relaxed: bool = False, threads: int = 1) -> SelectionModel:
    """The set S as a HiGHS model with zero cost; its rows are implied by those of S (`mipfs.selection.scaled_rows`).

    Raises
    ------
    NumericalError
        HiGHS refuses a part of it.
    """
    import highspy

    h = new_model(threads)
    rows, p, names = selection.scaled, selection.n_features, selection.rows.names
    lb, ub = selection.sigma_bounds()
    lower, upper = np.concatenate([lb, rows.low]), np.concatenate([ub, rows.high])
    accepted(h.addVars(lower.size, lower, upper), "the variables")
    if not relaxed:
        integer = np.concatenate([np.ones(p, bool), selection.rows.extra.integer])
        columns = np.flatnonzero(integer).astype(np.int32)
        kinds = np.full(columns.size, highspy.HighsVarType.kInteger)
        accepted(h.changeColsIntegrality(columns.size, columns, kinds), "the variables")
    if selection.M is not None:
        status = h.addRow(-highspy.kHighsInf, float(selection.M), p, np.arange(p, dtype=np.int32), np.ones(p))
        accepted(status, "the cardinality row")
    matrix = rows.matrix
    for r, name in enumerate(names):
        start, stop = matrix.indptr[r], matrix.indptr[r + 1]
        entries = matrix.indices[start:stop].astype(np.int32), matrix.data[start:stop]
        accepted(h.addRow(float(rows.lb[r]), float(rows.ub[r]), int(stop - start), *entries), f"the row {name!r}")
    units = rows.units if selection.M is None else np.append(1.0, rows.units)
    return SelectionModel(h, units, rows.columns)


def fix_columns(h: highspy.Highs, lower: Array, upper: Array) -> None:
    """Change the bounds of the first columns."""
    accepted(h.changeColsBounds(lower.size, np.arange(lower.size, dtype=np.int32), lower, upper), "fixed features")


def set_costs(h: highspy.Highs, cost: Array) -> None:
    """Change the cost of the first columns."""
    costs = np.ascontiguousarray(cost)
    accepted(h.changeColsCost(cost.size, np.arange(cost.size, dtype=np.int32), costs), "the costs")


def solve(h: highspy.Highs, *, deadline: float | None = None, stop: Callable[[], bool] | None = None) -> MilpSolution:
    """Run HiGHS until it ends, the deadline (``time.monotonic``) passes or `stop` says so.

    The solver runs in a thread of its own, so Ctrl-C and limits are honoured within `POLL_SECONDS`
    even where HiGHS itself looks at the clock rarely.
    """
    import highspy

    if deadline is None and stop is None:
        h.run()
    elif deadline is not None and time.monotonic() >= deadline:
        return MilpSolution("stopped", None, -np.inf)
    else:
        _run_interruptibly(h, lambda: _late(deadline) or (stop is not None and stop()))
    if h.getModelStatus() == highspy.HighsModelStatus.kUnboundedOrInfeasible:
        return _decided(h)
    return _answer(h)


def _late(deadline: float | None) -> bool:
    return deadline is not None and time.monotonic() > deadline


def _run_interruptibly(h: highspy.Highs, must_stop: Callable[[], bool]) -> None:
    """Run HiGHS in a thread until it ends or hears that it must stop.

    highspy has this too (``startSolve``), but with one lock for all models of the process: two threads with a model
    each are told "Solver is already running".
    """
    asked, errors = threading.Event(), list[BaseException]()

    def hear(event: Any) -> None:
        if asked.is_set():
            event.interrupt()

    def work() -> None:
        try:
            h.run()
        except BaseException as error:
            errors.append(error)

    h.cbSimplexInterrupt += hear
    h.cbIpmInterrupt += hear
    h.cbMipInterrupt += hear
    worker = threading.Thread(target=work, daemon=True)
    worker.start()
    try:
        worker.join(FIRST_LOOK)
        while worker.is_alive():
            if must_stop():
                asked.set()
            worker.join(POLL_SECONDS)
    finally:
        asked.set()  # where an exception came, such as Ctrl-C
        worker.join(PATIENCE)
    if not worker.is_alive():
        h.cbSimplexInterrupt -= hear
        h.cbIpmInterrupt -= hear
        h.cbMipInterrupt -= hear
    if errors:
        raise errors[0]


def _decided(h: highspy.Highs) -> MilpSolution:
    """The answer without presolve, which leaves open whether a model is unbounded or infeasible."""
    _, presolve = h.getOptionValue("presolve")
    h.setOptionValue("presolve", "off")
    h.run()
    h.setOptionValue("presolve", presolve)
    return _answer(h)


def _answer(h: highspy.Highs) -> MilpSolution:
    import highspy

    Status = highspy.HighsModelStatus
    status, info = h.getModelStatus(), h.getInfo()
    if status == Status.kInfeasible:
        return MilpSolution("infeasible", None, np.inf)
    feasible = info.primal_solution_status == int(highspy.SolutionStatus.kSolutionStatusFeasible)
    values = np.array(h.getSolution().col_value) if feasible else None
    limits = (Status.kTimeLimit, Status.kIterationLimit, Status.kSolutionLimit, Status.kInterrupt)
    said = "optimal" if status == Status.kOptimal else "stopped" if status in limits else "failed"
    return MilpSolution(said, values, _bound(h, info))


def _bound(h: highspy.Highs, info: Any) -> float:
    import highspy

    is_mip = any(kind != highspy.HighsVarType.kContinuous for kind in h.getLp().integrality_)
    if is_mip:
        value = float(info.mip_dual_bound)
    elif h.getModelStatus() == highspy.HighsModelStatus.kOptimal:
        value = float(info.objective_function_value)
    else:
        return -np.inf
    return value if np.isfinite(value) else -np.inf


def infinity() -> float:
    """What HiGHS takes for infinity."""
    import highspy

    return float(highspy.kHighsInf)
