"""The state that every run shares: incumbent, bound, clock, limits, observers. One place decides termination.

Also here: what a limit or a crash stopped can go on: the state of a run (`mipfs.result.state`) is kept, and taken up.

A driver that can be taken up again yields what makes its own part of it.
"""

from __future__ import annotations

import math
import os
import time
import warnings
import weakref
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import wraps
from itertools import chain
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import numpy as np
import numpy.typing as npt

from mipfs.errors import CheckpointWarning, ContradictionError, DataError, UsageError
from mipfs.plumbing import total_limit
from mipfs.plumbing.arrays import Array, Arrays
from mipfs.plumbing.blocks import inside
from mipfs.plumbing.machine import at_work, one_blas_thread
from mipfs.plumbing.memory import MemoryLimit
from mipfs.plumbing.output_file import is_stream
from mipfs.plumbing.signals import InterruptHandler, handle_signals, interrupt_after_strike, silence_interrupts, tell
from mipfs.problem import Problem
from mipfs.result.advice import LIMITS
from mipfs.result.gap import relative_gap
from mipfs.result.result import Record, Status, StopReason
from mipfs.result.state import ANEW, RunState, StartCommand, stamp_of
from mipfs.run.claimed import ClaimedBound
from mipfs.run.incumbent import Incumbent
from mipfs.run.outcome import Outcome
from mipfs.settings import DriverSettings

if TYPE_CHECKING:
    from mipfs.run.warm import RunStart


P = ParamSpec("P")
R = TypeVar("R")
DAMAGED = LookupError, ValueError, TypeError, AttributeError, ArithmeticError, StopIteration, ContradictionError
"""What goes wrong where the parts of a state do not fit."""
OF_SUMS = "checkpoint and resume are for losses that are a sum over the samples; for measures take driver two_layer"
"""Why other drivers keep no state of a measure's problem."""
EVERY = 30.0
"""Seconds from one writing of a checkpoint to the next."""
SHARE = 20.0
"""Time between two writings at least, as a multiple of what the last one took."""


class Keeper:
    """Keeps the last state of a run, in a file where there is one.

    Parameters
    ----------
    path : path-like, optional
    every : float > 0, seconds between two writings; the last state is always kept
    began : StartCommand, optional
    """

    def __init__(self, path: str | Path | None = None, every: float = EVERY, began: StartCommand | None = None) -> None:
        self.path = path
        self.began = StartCommand() if began is None else began
        self.every = every
        self.state: RunState | None = None
        self._next = time.monotonic() + every

    @property
    def room(self) -> Path | None:
        """The folder of the file, where what a run reads seldom may lie too."""
        return None if self.path is None or is_stream(Path(self.path)) else Path(os.path.realpath(self.path)).parent

    def due(self) -> bool:
        """Whether it is time to write."""
        return self.path is not None and time.monotonic() >= self._next

    def keep(self, make: Callable[[], RunState]) -> None:
        """Take over where a run stands; a file that cannot be written is warned about, and stays as it was."""
        begin = time.monotonic()
        self.state = None if self.path is not None else self.state
        self.state = replace(make(), began=self.began)
        if self.path is not None:
            try:
                self.state = self.state.kept(self.path)
            except UsageError as error:  # a full disk, say: hours of work are not lost to it
                warnings.warn(f"{error}; the run goes on, its last checkpoint stands", CheckpointWarning, stacklevel=2)
        self._next = time.monotonic() + max(self.every, SHARE * (time.monotonic() - begin))


def state_of(run: Run, driver: str) -> RunState:
    """Where a run last stood between two steps: the driver's own part, and what every run has."""
    rest = run.resting
    assert rest is not None
    return RunState(driver, stamp_of(run.problem), {**rest.made(), **_of_run(run, rest)})


def _of_run(run: Run, rest: RunSnapshot) -> Arrays:
    """What every run has."""
    gap = float(run.options.gap)
    kept: Arrays = {
        "run_numbers": np.array([rest.bound, rest.upper, rest.iteration, gap, rest.seconds, run.fruitless], dtype=float)
    }
    for name, found in (("run", rest.incumbent), ("spare", _spare_incumbent(run, rest))):
        if found is not None:
            kept |= {f"{name}_selected": found.selected, f"{name}_w": found.w, f"{name}_b": np.array(found.b)}
    records = run.trace[: rest.n_records]
    counters = [*dict.fromkeys(chain(rest.counters, *(record.counters for record in records)))]
    totals = [
        [-1 if (n := one.get(name)) is None else n for name in counters] for one in _counters_of_records(rest, records)
    ]
    numbers = [[one.seconds, one.iteration, one.objective, one.bound, one.n_selected, one.upper] for one in records]
    return kept | {
        "trace": np.array(numbers, dtype=float).reshape(-1, 6),
        "counters": np.array(counters, dtype=np.str_),
        "counts": np.array(totals, dtype=np.int64).reshape(len(totals), -1),
    }


def _spare_incumbent(run: Run, rest: RunSnapshot) -> Incumbent | None:
    """The best classifier that the run has beyond where it stood, and what it was given of that kind."""
    known = math.inf if rest.incumbent is None else rest.incumbent.objective
    others = (one for one in (run.incumbent, run.spare) if one is not None and one.objective < known)
    return min(others, key=lambda one: one.objective, default=None)


def _counters_of_records(rest: RunSnapshot, records: Sequence[Record]) -> list[Mapping[str, int]]:
    """The counters of every record, and last those of the run."""
    return [*(record.counters for record in records), rest.counters]


def refusing_broken_state(function: Callable[P, R]) -> Callable[P, R]:
    """Make what goes on from a state refuse one that does not hold together, though its digest is right."""

    @wraps(function)
    def restored(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except DAMAGED as error:
            raise DataError(f"resume: the state does not hold together ({_first_line_of_error(error)})", ANEW) from None

    return restored


def _first_line_of_error(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


@refusing_broken_state
def restore_run(run: Run, state: RunState) -> None:
    """Give a run the incumbent, the counts and the trace of the one that it goes on with.

    The bound comes from the driver. What a step found that was cut off is no incumbent: it would steer the run another
    way than one that was not cut off.
    """
    kept = state.arrays
    run.iteration = int(kept["run_numbers"][2])
    run.before = _not_negative(kept["run_numbers"][4])
    run.fruitless = 1 + int(_not_negative(kept["run_numbers"][5]))
    for name in ("run", "spare"):
        if f"{name}_selected" in kept:
            selected, w, b = kept[f"{name}_selected"], kept[f"{name}_w"], float(kept[f"{name}_b"])
            if not (np.isfinite(w).all() and np.isfinite(b)):
                raise ValueError("the weights are not finite")
            if name == "run":
                run.offer(selected, w, b)
            else:
                run.spare = Incumbent(selected, np.array(w), b, run.problem.evaluate(selected, w, b))
    *run.trace, last = _records_of_state(kept)
    run.count(**last.counters)


def _records_of_state(kept: Mapping[str, npt.NDArray[Any]]) -> list[Record]:
    """The trace of a state, and behind it a record that has but the counters of the run."""
    numbers, names, counts = kept["trace"], kept["counters"].tolist(), kept["counts"]
    if numbers.shape != (len(counts) - 1, 6) or counts.shape[1:] != (len(names),) or np.isnan(numbers).any():
        raise ValueError("the trace has other records than counters")
    made = []
    for row, totals in zip([*numbers.tolist(), [0.0] * 6], counts.tolist(), strict=True):
        seconds, iteration, objective, bound, n_selected, upper = row
        known = {str(name): total for name, total in zip(names, totals, strict=True) if total >= 0}
        made.append(Record(_not_negative(seconds), int(iteration), objective, bound, int(n_selected), known, upper))
    return made


def _not_negative(value: float) -> float:
    """A finite number that is not below 0.

    Raises
    ------
    ValueError
        It is another one.
    """
    if not 0.0 <= value < math.inf:
        raise ValueError("a count or a time is none")
    return float(value)


Observer = Callable[[Record], object]
Made = Callable[[], dict[str, npt.NDArray[Any]]] | None
"""What makes the driver's part of a state; None where it has none."""
Steps = Generator[Made, None, None]
"""What a driver's ``run(run)`` is: it yields where it can pause."""

REPEATED_SECONDS = 0.3
"""Seconds in which further signals mean the same as the first."""
MOST_FRUITLESS = 3
"""Runs in a row, each going on with the last, that may end within their first step before that is taken as it is."""
COPIED = 20.0
"""Time between two copies of where a run stands at least, as a multiple of what the last one took."""
FIRST_STEP_SECONDS = 0.7
"""Seconds that the first step of a run may take which is asked to stop before it is done."""


def _asked_of(run: Run) -> Callable[[], bool]:
    """Whether a run must stop; whoever asks does not keep it, and what it holds, in memory."""
    held = weakref.ref(run)
    return lambda: (alive := held()) is not None and alive.must_stop


def settings_of(options: Any, given: DriverSettings | None = None) -> DriverSettings:
    """The settings of a driver: those given, or its defaults, and what its options say of them."""
    settings: DriverSettings = getattr(options, "SETTINGS", DriverSettings)() if given is None else given
    return options.steering(settings) if hasattr(options, "steering") else settings


@dataclass(frozen=True, eq=False)
class RunSnapshot:
    """Where a run last stood between two steps: what its state is made of, whatever the next step has begun.

    Attributes
    ----------
    made : what makes the driver's own part, of values that no later step changes (or at once)
    bound, upper, iteration, incumbent, counters : those of the run
    n_records : int, how long its trace was
    seconds : float, that it had worked
    """

    made: Callable[[], dict[str, npt.NDArray[Any]]]
    bound: float
    upper: float
    iteration: int
    incumbent: Incumbent | None
    counters: Mapping[str, int]
    n_records: int
    seconds: float


class Run:
    """One run of a driver on a problem.

    Parameters
    ----------
    problem : Problem
    options : the driver's options (gap, time_limit, iteration_limit at least)
    settings : DriverSettings, optional, the driver's; by default its own, ``Options.SETTINGS``
    observers : callables that receive every iteration record
    callback : callable, optional
        Receives the record too; a true return value stops the run.

    Attributes
    ----------
    sharpness : float in (0, 1], share of the asked gap that is worked to, where the end takes off a bit of the bound
    resume : RunState, optional, of the run that this one goes on with
    warm : RunStart, optional, what an earlier result of a problem near this one leaves to it
    before : float, the seconds that it had worked
    last_record : Record, optional, the last iteration record
    spare : Incumbent, optional, what that run found in a step that was cut off: it steers nothing, and counts last
    is_kept : bool, whether anybody asks for its state
    is_exact : bool, whether a run that goes on from where this one stands goes the same way: only there a kill finds it
    resting : RunSnapshot, optional
        Where the run last stood between two steps: one that goes on there goes the same way.
    fruitless : int, how many runs in a row, of which one went on with the other, came to no end of a step
    room : Path, optional, a folder where what is read seldom may lie; without one it is in memory
    interrupted, asked : bool
        Whether it is to stop now, and whether after its first record (or `FIRST_STEP_SECONDS`): so it was asked before.
    is_over : callable, asked wherever work may be given up: whether it is to stop now
    """

    def __init__(
        self,
        problem: Problem,
        options: Any,
        *,
        observers: Iterable[Observer] = (),
        callback: Callable[[Record], object] | None = None,
        settings: DriverSettings | None = None,
    ) -> None:
        self.problem = problem
        self.options = options
        self.settings: Any = settings_of(options, settings)
        self.observers = tuple(observers)
        self.last_record: Record | None = None
        self.callback = callback
        self.incumbent: Incumbent | None = None
        self.bound = -math.inf
        self.upper = math.inf
        self.bound_source = "dual"
        self.is_certified = True
        self.iteration = 0
        self.counters: Counter[str] = Counter()
        self.trace: list[Record] = []
        self.interrupted = self.asked = False
        self.is_over: Callable[[], bool] = bool  # never
        self.closed = False
        self.wants_all = False
        self.infeasible = False
        self.failed = False
        self.early: StopReason | None = None
        self.outcome = Outcome()
        self._claimed = ClaimedBound.of(problem, self.outcome.proof_slack)  # a pass over the samples: once
        self.sharpness = 1.0
        self.resume: RunState | None = None
        self.warm: RunStart | None = None
        self.before = 0.0
        self.spare: Incumbent | None = None
        self.is_kept = False
        self.resting: RunSnapshot | None = None
        self.is_exact = True
        self._next_copy = -math.inf
        self.fruitless = 0
        self.room: Path | None = None
        self.oracle = problem.selection.oracle(self.settings.selections)
        self.oracle.must_stop = _asked_of(self)
        self.conflict: tuple[str, ...] = ()
        self._memory = MemoryLimit(getattr(options, "memory_limit", None))
        self._begin = time.monotonic()
        self._paused: float | None = None

    @property
    def is_near(self) -> bool:
        """Whether it begins with what a problem near this one left: its result, or its cuts and a support."""
        given = [getattr(self.options, name, None) for name in ("pool", "start")]
        return self.warm is not None or all(one is not None for one in given)

    def pause(self) -> None:
        """Stop the clock."""
        self._paused = time.monotonic()

    def go_on(self) -> None:
        """Let the clock go on."""
        if self._paused is not None:
            self._begin = self._begin + time.monotonic() - self._paused
            self._paused = None

    @property
    def elapsed(self) -> float:
        """Seconds that the run has worked."""
        return (time.monotonic() if self._paused is None else self._paused) - self._begin

    @property
    def seconds(self) -> float:
        """Seconds that it has worked, with those of the runs that it goes on with."""
        return self.before + self.elapsed

    def take_snapshot(self, made: Callable[[], dict[str, npt.NDArray[Any]]]) -> None:
        """Take note of where the run stands, between two steps."""
        now = self.bound, self.upper, self.iteration, self.incumbent, dict(self.counters)
        self.resting = RunSnapshot(made, *now, len(self.trace), self.seconds)

    def rest_copied(self, saved: Callable[[], dict[str, npt.NDArray[Any]]], *, is_first: bool = False) -> None:
        """Take note of where the run stands, of values that later steps change: they are copied.

        At the first step, at the next rest, and then as often as a share of the time allows.
        """
        self.oracle.drop_solvers()
        begin = time.monotonic()
        if not self.is_kept or begin < self._next_copy:
            return
        made = {name: np.array(array) for name, array in saved().items()}
        if not is_first:
            self.fruitless, self._next_copy = 0, begin + (1.0 + COPIED) * (time.monotonic() - begin)
        self.take_snapshot(lambda: made)

    def left_at(self, saved: Callable[[], dict[str, npt.NDArray[Any]]]) -> Made:
        """What the last state is made of, if not of the last copy: of the end of a run that is done.

        Of one that a limit stopped only where some runs in a row came to no copy.
        """
        return saved if self.stop() not in LIMITS or self.came_to_rest(is_cut=True) else None

    def came_to_rest(self, is_cut: bool) -> bool:
        """Whether a step that has ended is one to go on from.

        One that a limit cut off is done again by the run that goes on, as if nobody had stopped it; but where some runs
        in a row did not come to the end of one step, what there is of it has to do.
        """
        if is_cut and self.fruitless < MOST_FRUITLESS:
            return False
        self.fruitless = 0
        self.oracle.drop_solvers()
        return self.is_kept

    @property
    def deadline(self) -> float | None:
        """When the time limit passes, on the clock of ``time.monotonic``."""
        limit = self.options.time_limit
        return None if limit is None else self._begin + limit

    @property
    def objective(self) -> float:
        """The incumbent's value; inf before there is one."""
        return math.inf if self.incumbent is None else self.incumbent.objective

    @property
    def claimed(self) -> ClaimedBound:
        """What the certificate claims for a bound: status, records and the result are about that."""
        if self._claimed.relative != self.outcome.proof_slack:
            self._claimed = replace(self._claimed, relative=self.outcome.proof_slack)
        return self._claimed

    @property
    def cutoff(self) -> float:
        """A node whose bound reaches this cannot keep the gap open: not even the gap to what is claimed for it."""
        if self.incumbent is None:
            return math.inf
        value = self.problem.reported(self.objective)
        asked = self.problem.unit_margin(value - self._sharpened_gap * abs(value))
        return min(self.objective, self.claimed.proof_of(asked))

    @property
    def _sharpened_gap(self) -> float:
        return self.sharpness * float(self.options.gap)

    def worth_closing(self, value: float) -> float:
        """How far a bound may stay below a value (unit margin) so that the gap, as it is reported, is the asked one."""
        reported = self.problem.reported(value)
        if not math.isfinite(reported):
            return 0.0
        return value - self.problem.unit_margin(reported - self._sharpened_gap * abs(reported))

    def late(self) -> Callable[[], bool]:
        """Whether what proves a result that is at hand, begun now, must stop: a limit passed, and a moment besides."""
        begin, grace, limit = time.monotonic(), float(self.settings.selections.grace), self.options.time_limit
        room = math.inf if limit is None else max(grace, limit - self.elapsed)

        def is_late() -> bool:
            past = time.monotonic() - begin
            return past > room or (past > grace and (self._heed_interrupt or self._memory.is_reached))

        return is_late

    def cheapest(self) -> tuple[npt.NDArray[np.bool_] | None, float]:
        """The selection of least cost, and a bound on that: drivers begin so. None, and the conflict, if S is empty."""
        first, least = self.oracle.minimise(self.problem.penalty)
        if first is None:
            self.infeasible, self.conflict = True, self.problem.selection.conflict(lambda: self.must_stop)
        # No penalty is negative: a least cost of 0 was rounded down.
        return first, least if self.problem.has_extra_costs else max(least, 0.0)

    def offer(self, selected: npt.ArrayLike, w: Array, b: float) -> float:
        """Evaluate a classifier on the raw data and keep it if it is the best; returns its value."""
        ids = np.asarray(selected, dtype=np.int64)
        objective = self.problem.evaluate(ids, w, b)
        if objective < self.objective:
            self.incumbent = Incumbent(ids, np.array(w, dtype=float), float(b), objective)
            self._hold_bound_below_objective()
        return objective

    def offer_spare(self) -> None:
        """Offer what an earlier run found in a step that was cut off, when all else is done."""
        if self.spare is not None:
            self.offer(self.spare.selected, self.spare.w, self.spare.b)

    def reserve(self, n_bytes: float) -> None:
        """Leave as much of the memory limit for writing what was found."""
        self._memory.reserved = n_bytes

    def count(self, **totals: int) -> None:
        """Take over running totals for the counters."""
        for name, total in totals.items():
            self.counters[name] = total

    def lower_upper(self, value: float) -> None:
        """Take over an upper bound on the relaxation that is being solved; it never rises."""
        self.upper = min(self.upper, value)

    def raise_bound(self, value: float) -> None:
        """Take over an earned lower bound on (P), unless a larger one stands.

        Raises
        ------
        ContradictionError
            It lies above the incumbent's objective by more than the rounding of that.
        """
        if value > self.bound:
            self.bound = value
            self._hold_bound_below_objective()

    def _hold_bound_below_objective(self) -> None:
        """Hold the bound below the objective, which it may exceed by the objective's rounding alone."""
        incumbent = self.incumbent
        if incumbent is None or self.bound <= incumbent.objective or self.infeasible:
            return
        above = self.problem.evaluate_above(incumbent.selected, incumbent.w, incumbent.b)
        if self.bound > above:
            raise ContradictionError(self.bound, above)
        self.bound = incumbent.objective

    def record(self) -> Record:
        """Make the iteration record and hand it to the observers."""
        n_selected = 0 if self.incumbent is None else self.incumbent.selected.size - bool(self.problem.data.constant)
        counters = dict(self.counters)
        upper = self.problem.reported(self.upper)
        upper = min(upper, self.trace[-1].upper) if self.trace else upper  # as it is stated it may be an ulp above
        values = [*self._reported_values, upper]
        record = Record(self.seconds, self.iteration, values[0], values[1], n_selected, counters, values[2])
        last = self.trace[-1] if self.trace else None
        if last is None or (last.objective, last.bound, last.upper) != tuple(values):
            self.trace.append(record)
        self.last_record = record
        for observer in self.observers:
            observer(record)
        if self.asked or (self.callback is not None and self.callback(record)):
            self.interrupted = True
        return record

    @property
    def must_stop(self) -> bool:
        """Whether work in progress should be given up: an interrupt, or a limit of time or memory."""
        return self._heed_interrupt or self._is_late or self._memory.is_reached

    @property
    def _is_late(self) -> bool:
        """Whether the time limit has passed, on a clock that stands still in a pause."""
        deadline = self.deadline
        now = time.monotonic() if self._paused is None else self._paused
        return deadline is not None and now >= deadline

    @property
    def _heed_interrupt(self) -> bool:
        """Whether it is to stop for an interrupt; one before the first record waits for that, but not for long."""
        late = self.asked and self.elapsed >= FIRST_STEP_SECONDS
        self.interrupted = self.interrupted or late or self.is_over()
        return self.interrupted

    def stop(self) -> StopReason | None:
        """Why to stop, or None. The one place that decides termination."""
        if self.infeasible:
            return StopReason.INFEASIBLE
        if (self.is_optimal and (self.closed or not self.wants_all)) or self.is_relaxed:
            return StopReason.GAP_CLOSED
        if self.early is not None:
            return self.early
        if self._heed_interrupt:
            return StopReason.TIME_LIMIT if total_limit.is_up() else StopReason.INTERRUPTED
        if self._is_late:
            return StopReason.TIME_LIMIT
        if self._memory.is_reached:
            return StopReason.MEMORY_LIMIT
        limit = self.options.iteration_limit
        if limit is not None and self.iteration >= limit:
            return StopReason.ITERATION_LIMIT
        return StopReason.NUMERICAL if self.closed or self.failed else None

    @property
    def is_optimal(self) -> bool:
        """Whether the gap is closed."""
        return relative_gap(*self._reported_values) <= self._sharpened_gap

    @property
    def is_relaxed(self) -> bool:
        """Whether the relaxation is solved: its own two bounds meet."""
        return relative_gap(self.problem.reported(self.upper), self._reported_values[1]) <= self._sharpened_gap

    @property
    def _reported_values(self) -> tuple[float, float]:
        """Objective and bound as the result has them: only there the gap is the one that was asked for."""
        return self.problem.reported(self.objective), self.claimed(self.bound)

    def status(self) -> Status:
        """What we have."""
        if self.infeasible:
            return Status.INFEASIBLE
        if self.is_optimal:
            return Status.OPTIMAL
        if self.failed:
            return Status.NUMERICAL
        if self.is_relaxed:
            return Status.RELAXED
        return Status.NO_SOLUTION if self.incumbent is None else Status.FEASIBLE


@contextmanager
def interruptible(run: Run) -> Iterator[None]:
    """Turn the first Ctrl-C (or SIGTERM, SIGHUP) into a request to stop, the second into KeyboardInterrupt.

    A terminal that closes sends some at once: those of the next `REPEATED_SECONDS` are the first. BLAS runs on
    one thread meanwhile: the subproblems are small, and a second one costs more than it brings. Of long data what this
    thread does, such as a root, is shared by as many threads as the run may have, in blocks (`mipfs.plumbing.blocks`).
    """
    strike, first = InterruptHandler(), time.monotonic() if run.interrupted or run.asked else None

    def ask(number: int, frame: FrameType | None) -> None:
        nonlocal first
        if first is None:
            first = time.monotonic()
        elif time.monotonic() - first >= REPEATED_SECONDS:
            strike(number, frame)
        tell()
        run.asked = True
        run.interrupted = run.interrupted or bool(run.trace)

    threads = at_work(getattr(run.options, "threads", None))
    with (
        silence_interrupts(),
        interrupt_after_strike(strike),
        handle_signals(ask),
        one_blas_thread(),
        inside(lambda: threads),
    ):
        yield
