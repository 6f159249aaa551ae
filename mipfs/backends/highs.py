"""HiGHS: linear programs and MILPs over the selection, built once and kept alive."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import highspy

    from mipfs.selection import Selection

Array = npt.NDArray[np.float64]

POLL_SECONDS = 0.05
"""How often a running solve looks at the clock and at the interrupt flag."""


@dataclass(frozen=True)
class MilpSolution:
    """What one solve left behind.

    Attributes
    ----------
    status : {"optimal", "infeasible", "stopped"}
    values : (n_columns,) ndarray, or None without a feasible point
    bound : float, the solver's dual bound less the error of its tolerances
    """

    status: str
    values: Array | None
    bound: float


def new_model(threads: int = 1) -> highspy.Highs:
    """A silent HiGHS with tolerances as tight as it allows."""
    import highspy

    h = highspy.Highs()
    h.setOptionValue("output_flag", False)
    h.setOptionValue("threads", threads)
    h.setOptionValue("primal_feasibility_tolerance", 1e-9)
    h.setOptionValue("dual_feasibility_tolerance", 1e-9)
    h.setOptionValue("mip_feasibility_tolerance", 1e-7)
    h.setOptionValue("mip_rel_gap", 0.0)
    h.setOptionValue("mip_abs_gap", 0.0)
    return h


def selection_model(selection: Selection, *, relaxed: bool = False, threads: int = 1) -> highspy.Highs:
    """The set S as a HiGHS model: columns sigma, then the user's extra variables; zero cost."""
    import highspy

    h = new_model(threads)
    extra, p = selection.rows.extra, selection.n_features
    lb, ub = selection.sigma_bounds()
    lower, upper = np.concatenate([lb, extra.lb]), np.concatenate([ub, extra.ub])
    h.addVars(lower.size, lower, upper)
    if not relaxed:
        integer = np.concatenate([np.ones(p, bool), extra.integer])
        columns = np.flatnonzero(integer).astype(np.int32)
        kinds = np.full(columns.size, highspy.HighsVarType.kInteger)
        h.changeColsIntegrality(columns.size, columns, kinds)
    matrix = selection.rows.matrix
    if selection.M is not None:
        h.addRow(-highspy.kHighsInf, float(selection.M), p, np.arange(p, dtype=np.int32), np.ones(p))
    for r in range(matrix.shape[0]):
        start, stop = matrix.indptr[r], matrix.indptr[r + 1]
        h.addRow(
            float(selection.rows.lb[r]),
            float(selection.rows.ub[r]),
            int(stop - start),
            matrix.indices[start:stop].astype(np.int32),
            matrix.data[start:stop],
        )
    return h


def fix_columns(h: highspy.Highs, lower: Array, upper: Array) -> None:
    """Change the bounds of the first columns."""
    h.changeColsBounds(lower.size, np.arange(lower.size, dtype=np.int32), lower, upper)


def set_costs(h: highspy.Highs, cost: Array) -> None:
    """Change the cost of the first columns."""
    h.changeColsCost(cost.size, np.arange(cost.size, dtype=np.int32), np.ascontiguousarray(cost))


def solve(h: highspy.Highs, *, deadline: float | None = None, stop: Callable[[], bool] | None = None) -> MilpSolution:
    """Run HiGHS until it ends, the deadline (``time.monotonic``) passes or `stop` says so.

    The solver runs in a thread of its own, so Ctrl-C and limits are honoured within `POLL_SECONDS`
    even where HiGHS itself looks at the clock rarely.
    """
    import highspy

    if deadline is None and stop is None:
        h.run()
    else:
        h.HandleUserInterrupt = True
        remaining = np.inf if deadline is None else deadline - time.monotonic()
        if remaining <= 0:
            return MilpSolution("stopped", None, -np.inf)
        h.startSolve()
        finished, _ = h.wait(0.002)
        while not finished:
            finished, _ = h.wait(POLL_SECONDS)
            late = deadline is not None and time.monotonic() > deadline
            if not finished and (late or (stop is not None and stop())):
                h.cancelSolve()
        h.HandleUserInterrupt = False
    status, info = h.getModelStatus(), h.getInfo()
    if status in (highspy.HighsModelStatus.kInfeasible, highspy.HighsModelStatus.kUnboundedOrInfeasible):
        return MilpSolution("infeasible", None, np.inf)
    feasible = info.primal_solution_status == int(highspy.SolutionStatus.kSolutionStatusFeasible)
    values = np.array(h.getSolution().col_value) if feasible else None
    return MilpSolution(
        "optimal" if status == highspy.HighsModelStatus.kOptimal else "stopped", values, _bound(h, info)
    )


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
