"""HiGHS: linear programs and MILPs over the selection, built once and kept alive.

The one door to highspy. Whatever HiGHS solves here, it solves on a thread of ours (`mipfs.plumbing.own_threads`), and
what it says to every call is looked at: what it did not do as it was told is an error.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from mipfs.errors import MipfsError, NumericalError
from mipfs.plumbing import own_threads
from mipfs.plumbing.arrays import Array
from mipfs.solvers.vectors import is_whole

if TYPE_CHECKING:
    import highspy


Statuses = npt.NDArray[np.int8]

SMALLEST_ENTRY = 1e-12
"""HiGHS leaves entries of a matrix out that are no larger: the least that it can be told."""
OPTIONS: dict[str, Any] = {
    "threads": 1,  # a helper would wait for work on a core that our own threads and processes have
    "primal_feasibility_tolerance": 1e-9,
    "dual_feasibility_tolerance": 1e-9,
    "mip_feasibility_tolerance": 1e-9,
    "mip_rel_gap": 0.0,
    "mip_abs_gap": 0.0,
    "small_matrix_value": SMALLEST_ENTRY,
}
"""Of every model: tolerances as tight as HiGHS allows."""
SAFER: tuple[dict[str, Any], ...] = (
    {"presolve": "off"},
    {"presolve": "on"},
    {"presolve": "off", "simplex_strategy": 4},  # the primal simplex method
)
"""What a solve that fails is tried with again, from no basis."""
ABOVE = 1e-6
"""How far a MILP's bound may lie above the value of its own solution, relatively, by tolerances."""


@dataclass(frozen=True)
class MilpSolution:
    """What one solve left behind.

    Attributes
    ----------
    status : {"optimal", "infeasible", "unbounded", "stopped", "failed"}
        "infeasible" and "unbounded" are HiGHS's word; "failed" is anything that is neither an answer nor a limit, also
        by safer ways.
    values : (n_columns,) ndarray, or None without a feasible point
    bound : float, the solver's dual bound less the error of its tolerances
    """

    status: str
    values: Array | None
    bound: float


class HighsModel:
    """A program in HiGHS: min cost'x over rows and bounds, some x whole.

    Parameters
    ----------
    presolve : bool
        Without it an infeasible LP shows a ray, and the last basis is gone on from.

    Raises
    ------
    NumericalError
        By every method that HiGHS does not take over the numbers of as they are.

    Notes
    -----
    For one thread at a time. A solve that Ctrl-C cut short may still be at work for a moment: whatever is called next
    waits for its end.
    """

    def __init__(self, *, presolve: bool = True) -> None:
        self._h = make_silent_highs()
        self._is_mip = False
        self._at_work = threading.Lock()
        self._asked = threading.Event()
        self._listens = False
        for name, value in OPTIONS.items():
            self.set_option(name, value)
        if not presolve:
            self.set_option("presolve", "off")

    @property
    def n_columns(self) -> int:
        """How many variables it has."""
        return int(self._idle_highs.getNumCol())

    @property
    def n_rows(self) -> int:
        """How many rows it has."""
        return int(self._idle_highs.getNumRow())

    def set_option(self, name: str, value: Any) -> None:
        """Set an option of HiGHS.

        Raises
        ------
        MipfsError
            HiGHS has no such option, or not this value.
        """
        _set_option(self._idle_highs, name, value)

    def add_columns(self, lower: Array, upper: Array) -> None:
        """Add variables without cost."""
        self._call_highs("the variables", "addVars", lower.size, lower, upper)

    def add_column(
        self, cost: float, lower: float, upper: float, rows: Sequence[int] | npt.NDArray[Any] = (), values: Any = ()
    ) -> None:
        """Add a variable, with entries in some rows; those up to `SMALLEST_ENTRY` are left out."""
        ids, entries = _keep_entries(rows, values)
        self._call_highs("a variable", "addCol", cost, lower, upper, ids.size, ids, entries)

    def make_whole(self, columns: npt.NDArray[Any]) -> None:
        """Ask for whole numbers in some columns."""
        import highspy

        kinds = np.full(columns.size, highspy.HighsVarType.kInteger)
        self._call_highs("the variables", "changeColsIntegrality", columns.size, columns.astype(np.int32), kinds)
        self._is_mip = self._is_mip or columns.size > 0

    def add_row(
        self, lower: float, upper: float, columns: npt.NDArray[Any], values: Array, what: str = "a row"
    ) -> None:
        """Add a row, as it is.

        Parameters
        ----------
        what : str, the row in messages
        """
        ids, entries = columns.astype(np.int32), np.ascontiguousarray(values)
        self._call_highs(what, "addRow", lower, upper, ids.size, ids, entries)

    def add_cut(self, lower: float, columns: npt.NDArray[Any], values: Array) -> None:
        """Add a row ≥ lower that is good to have: entries up to `SMALLEST_ENTRY` are left out."""
        self.add_row(lower, highs_infinity(), *_keep_entries(columns, values), "a cut")

    def add_cuts(self, lower: Array, entries: Array) -> None:
        """Add rows ≥ lower (k,) that are good to have, of the first columns: entries (k, m), small ones left out."""
        entries = np.where(np.abs(entries) > SMALLEST_ENTRY, entries, 0.0)
        self.add_rows(lower, np.full(lower.size, highs_infinity()), sparse.csr_array(entries), "a cut")

    def add_rows(self, lower: Array, upper: Array, matrix: Any, what: str = "the rows") -> None:
        """Add rows of a csr matrix, as they are."""
        indptr, indices = matrix.indptr.astype(np.int32), matrix.indices.astype(np.int32)
        self._call_highs(what, "addRows", lower.size, lower, upper, matrix.nnz, indptr, indices, matrix.data)

    def delete_rows(self, rows: npt.NDArray[Any]) -> None:
        """Take some rows out."""
        self._call_highs("the end of some rows", "deleteRows", rows.size, rows.astype(np.int32))

    def fix_columns(self, lower: Array, upper: Array) -> None:
        """Change the bounds of the first columns."""
        self._call_highs("fixed features", "changeColsBounds", lower.size, _index_range(lower.size), lower, upper)

    def set_costs(self, cost: Array, first: int = 0) -> None:
        """Change the cost of some columns, one beside the other."""
        costs = np.ascontiguousarray(cost)
        self._call_highs("the costs", "changeColsCost", costs.size, _index_range(costs.size) + np.int32(first), costs)

    def set_row_bounds(self, lower: Array, upper: Array, first: int) -> None:
        """Change the bounds of some rows, one below the other."""
        places = _index_range(lower.size) + np.int32(first)
        self._call_highs("the bounds of the rows", "changeRowsBounds", lower.size, places, lower, upper)

    def basis(self) -> tuple[Statuses, Statuses]:
        """The status of every column and every row in the last basis, by HiGHS's numbers; empty where there is none."""
        with _highs_errors():
            found = self._idle_highs.getBasis()
            parts = (found.col_status, found.row_status) if found.valid else ((), ())
            columns, rows = (np.array([int(status) for status in part], dtype=np.int8) for part in parts)
            return columns, rows

    def begin_at(self, columns: Statuses, rows: Statuses) -> None:
        """Begin the next solve at what `basis` said; from nothing where that is empty, or no basis of this program."""
        import highspy

        if not columns.size:
            return
        basis = highspy.HighsBasis()
        kinds = {int(kind): kind for kind in highspy.HighsBasisStatus.__members__.values()}
        with _highs_errors():
            basis.col_status = [kinds[status] for status in columns.tolist()]
            basis.row_status = [kinds[status] for status in rows.tolist()]
            basis.valid = True
            if self._idle_highs.setBasis(basis) != highspy.HighsStatus.kOk:
                self.start_cold()

    def start_cold(self) -> None:
        """Begin the next solve from nothing: without the last basis."""
        self._call_highs("a new beginning", "clearSolver")

    def multipliers(self) -> Array:
        """The multipliers of the rows (n_rows,) at the last optimum of an LP.

        Raises
        ------
        NumericalError
            There are none.
        """
        with _highs_errors():
            solution = self._idle_highs.getSolution()
            found = np.array(solution.row_dual, dtype=float) if solution.dual_valid else np.empty(0)
            if solution.dual_valid and is_whole(found, self._h.getNumRow()):
                return found
        raise NumericalError("HiGHS has no multipliers of a linear program that it has solved")

    def ray(self) -> Array | None:
        """A Farkas ray (n_rows,) of an infeasible LP; None without one."""
        try:
            with _highs_errors():
                status, found, values = self._call_in_own_thread(self._idle_highs.getDualRay)  # type: ignore[attr-defined]  # may solve
                ray = np.array(values, dtype=float)
                return ray if found and _is_done(status) and is_whole(ray, self._h.getNumRow()) else None
        except NumericalError:
            return None

    def run(self, must_stop: Callable[[], bool] = lambda: False) -> str:
        """Have HiGHS solve it, once; the status of that as in `MilpSolution`, or "open": unbounded or infeasible."""
        h = self._idle_highs
        try:
            done = _is_done(self._call_in_own_thread(h.run, must_stop))
            with _highs_errors():
                said = _status_words().get(h.getModelStatus(), "failed")
                done = done and (said != "optimal" or self._is_answered())
        except NumericalError:
            return "failed"
        return said if done else "failed"

    def _is_answered(self) -> bool:
        """Whether what HiGHS calls an optimum has values, of an LP multipliers too, and of a MILP no bound above it."""
        h = self._h
        found, value = h.getSolution(), h.getObjectiveValue()
        if not found.value_valid or not is_whole(found.col_value, h.getNumCol()) or not np.isfinite(value):
            return False
        if self._is_mip:
            return bool(h.getInfo().mip_dual_bound <= value + ABOVE * (1.0 + abs(value)))
        return bool(found.dual_valid and is_whole(found.row_dual, h.getNumRow()))

    def solution(self, status: str) -> MilpSolution:
        """What the last solve left, under this status."""
        h = self._idle_highs
        if status == "infeasible":
            return MilpSolution(status, None, np.inf)
        if status in ("failed", "unbounded"):
            return MilpSolution(status, None, -np.inf)
        import highspy

        with _highs_errors():
            if status == "optimal" and not self._is_mip:
                return MilpSolution(
                    status, np.array(h.getSolution().col_value), _finite_or_minus_inf(h.getObjectiveValue())
                )
            info = h.getInfo()
            feasible = info.primal_solution_status == int(highspy.SolutionStatus.kSolutionStatusFeasible)
            found = np.array(h.getSolution().col_value, dtype=float) if feasible else None
            found = None if found is None or not is_whole(found, h.getNumCol()) else found
            return MilpSolution(status, found, _finite_or_minus_inf(info.mip_dual_bound) if self._is_mip else -np.inf)

    @contextmanager
    def with_options(self, options: dict[str, Any]) -> Iterator[None]:
        """Other options for a while."""
        before = {name: self._idle_highs.getOptionValue(name)[1] for name in options}
        for name, value in options.items():
            self.set_option(name, value)
        try:
            yield
        finally:
            for name, value in before.items():
                self.set_option(name, value)

    def _call_highs(self, what: str, name: str, *given: Any) -> None:
        """Call a method of HiGHS that takes something over; `what` that is, in messages."""
        with _highs_errors():
            status = getattr(self._idle_highs, name)(*given)
        require_accepted(status, what)

    @property
    def _idle_highs(self) -> highspy.Highs:
        """HiGHS, not at work."""
        with self._at_work:
            return self._h

    def _call_in_own_thread(self, work: Callable[[], Any], must_stop: Callable[[], bool] = lambda: False) -> Any:
        """What a call of HiGHS returns that a thread of ours makes."""

        def alone() -> Any:
            with self._at_work, _highs_errors():
                return work()

        self._asked.clear()
        return own_threads.call_in_own_thread(alone, must_stop, self._interrupt_highs)

    def _interrupt_highs(self) -> None:
        """Have HiGHS end what it is at.

        It listens from the first time on: before, it would only wait for Python in every iteration.
        """
        self._asked.set()
        if not self._listens:
            asked, h, self._listens = self._asked, self._h, True
            for callback in (h.cbSimplexInterrupt, h.cbIpmInterrupt, h.cbMipInterrupt):
                callback.subscribe(lambda event: event.interrupt(asked.is_set()))


@contextmanager
def _highs_errors() -> Iterator[None]:
    """Whatever a call of HiGHS raises, or that what it returns is of another kind, as a failure of it.

    Raises
    ------
    NumericalError
    """
    try:
        yield
    except MipfsError:
        raise
    except Exception as error:
        raise NumericalError(f"HiGHS fails: {type(error).__name__}: {error}") from error


def require_accepted(status: Any, what: str) -> None:
    """Require that HiGHS took over what it was given, as it was given.

    Raises
    ------
    NumericalError
    """
    import highspy

    if status != highspy.HighsStatus.kOk:
        raise NumericalError(f"HiGHS does not take over {what}; its numbers are out of range")


def _is_done(status: Any) -> bool:
    """Whether HiGHS did what it was told, perhaps with a warning such as that a limit came."""
    import highspy

    return status in (highspy.HighsStatus.kOk, highspy.HighsStatus.kWarning)


def _set_option(h: highspy.Highs, name: str, value: Any) -> None:
    import highspy

    if h.setOptionValue(name, value) != highspy.HighsStatus.kOk:
        raise MipfsError(f"HiGHS {h.version()} has no option {name} = {value!r}")


@cache
def _status_words() -> dict[Any, str]:
    """What HiGHS's model statuses mean; "failed" for the others."""
    import highspy

    Status = highspy.HighsModelStatus
    limits = (Status.kTimeLimit, Status.kIterationLimit, Status.kSolutionLimit, Status.kInterrupt)
    answers = {Status.kOptimal: "optimal", Status.kInfeasible: "infeasible", Status.kUnbounded: "unbounded"}
    return {**answers, Status.kUnboundedOrInfeasible: "open", **dict.fromkeys(limits, "stopped")}


def _finite_or_minus_inf(bound: float) -> float:
    return float(bound) if np.isfinite(bound) else -np.inf


def _index_range(size: int) -> npt.NDArray[np.int32]:
    return np.arange(size, dtype=np.int32)


def _keep_entries(places: Any, values: Any) -> tuple[npt.NDArray[np.int32], Array]:
    """Entries that HiGHS does not leave out by itself, with a warning."""
    ids, entries = np.asarray(places, dtype=np.int32), np.asarray(values, dtype=float)
    keep = np.abs(entries) > SMALLEST_ENTRY
    return ids[keep], entries[keep]


@cache
def _silent_class(option: str) -> type[highspy.Highs]:
    import highspy

    class Silent(highspy.Highs):
        def enableCallbacks(self) -> None:
            _set_option(self, option, False)
            super().enableCallbacks()  # type: ignore[no-untyped-call]

    return Silent


def make_silent_highs(option: str = "output_flag") -> highspy.Highs:
    """A HiGHS with an option off from the beginning.

    From 1.16 on its constructor prints a banner as soon as it sets up its callbacks, before anybody can ask it not to.
    """
    h = _silent_class(option)()
    _set_option(h, option, False)
    return h


def read(path: str) -> tuple[Any, str]:
    """The program that stands in a file, as HiGHS reads it; what it complains of, empty where nothing is wrong."""
    import highspy

    h = make_silent_highs("log_to_console")
    log = list[str]()
    h.cbLogging.subscribe(lambda event: log.append(event.message.strip()))
    status = h.readModel(path)
    if status == highspy.HighsStatus.kOk:
        return h.getLp(), ""
    return h.getLp(), next((text for text in reversed(log) if "ERROR" in text or "WARNING" in text), status.name)


def solve(model: HighsModel, *, deadline: float | None = None, stop: Callable[[], bool] | None = None) -> MilpSolution:
    """Run HiGHS until it ends, the deadline (``time.monotonic``) passes or `stop` says so.

    What fails is tried again from no basis, in ways that are `SAFER`. Ctrl-C and limits are honoured within a moment,
    even where HiGHS itself looks at the clock rarely.
    """

    def must_stop() -> bool:
        return (deadline is not None and time.monotonic() >= deadline) or (stop is not None and stop())

    if deadline is not None and time.monotonic() >= deadline:
        return MilpSolution("stopped", None, -np.inf)
    status = model.run(must_stop)
    if status == "open":  # whether it is unbounded or infeasible, presolve leaves open
        with model.with_options({"presolve": "off"}):
            status = model.run(must_stop)
    for options in SAFER:
        if status not in ("failed", "open"):
            break
        model.start_cold()
        with model.with_options(options):
            status = "stopped" if must_stop() else model.run(must_stop)
    return model.solution("failed" if status == "open" else status)


def highs_infinity() -> float:
    """What HiGHS takes for infinity."""
    import highspy

    return float(highspy.kHighsInf)
