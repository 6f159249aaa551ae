"""The ladder of relaxations on one problem: what every rung proves, how far it is from the best classifier, its price.

plain ≤ QCQP-SSVM = SDP-SSVM ≤ NMMKL = decomposed SDP = Boolean ≤ convex hull ≤ exact, and plain ≤ big-M ≤ exact. A
rung that cannot carry penalties, forced features and rows is a bound without them, and the order holds all the more.

Every rung leaves a lower bound that is earned and an upper bound on its own value. It is "solved" where the two meet;
what a weaker rung has proven, a stronger one has too; and what lies above a classifier's value is no bound.
"""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import numpy as np

from mipfs import drivers, formulation
from mipfs.data.constant import CONSTANT
from mipfs.drivers import kelley, rounding
from mipfs.errors import NumericalError, UsageError
from mipfs.formulation.program import TooLargeError
from mipfs.inner.subproblem import Subproblem
from mipfs.plumbing.declared import Seconds, check_arguments
from mipfs.plumbing.signals import hearing_signals
from mipfs.plumbing.typed_json import Such, Texts, Whole, Written, read
from mipfs.problem import Problem
from mipfs.report.blocks import NamedValues, ReportBlock, Reported, Table
from mipfs.report.frame import pandas_for
from mipfs.report.numbers import number, percent, state_parameters
from mipfs.report.visible import as_json, escape_invisible, finite_or_none
from mipfs.result.advice import ends_all
from mipfs.result.gap import relative_gap
from mipfs.result.result import SCHEMA, Record, Result, Status, StopReason
from mipfs.result.result_document import Bound, Objective
from mipfs.run.parameters import parameters
from mipfs.run.run import Observer, Run
from mipfs.widened import widen_problem


def ladder_blocks(comparison: Comparison, n_rows: int | None = None) -> list[ReportBlock]:
    """The problem, the best classifier, and every rung with its bound; `n_rows` is the number of the user's rows."""
    pairs = [
        ("problem", state_parameters(comparison.params)),
        ("incumbent", f"{number(comparison.incumbent)} with {len(comparison.selected)} features"),
        *([] if n_rows is None else [("rows", str(n_rows))]),
    ]
    lines = [
        (
            rung.name,
            rung.status,
            number(rung.value),
            percent(rung.gap),
            f"{rung.seconds:.2f}",
            _program_size_text(rung.size),
        )
        for rung in comparison.ladder
    ]
    header = ("rung", "status", "bound", "gap", "seconds", "size")
    return [NamedValues(pairs), Table(header, lines, title="The ladder", left=2)]


def _program_size_text(size: Any) -> str:
    return "-" if size is None else f"{size['constraints']} x {size['variables']}"


CONIC: Mapping[str, str] = {
    "plain": "plain-svm",
    "big-m": "big-m",
    "qcqp-ssvm": "qcqp-ssvm",
    "sdp-ssvm": "sdp-ssvm",
    "nmmkl": "nmmkl",
    "decomposed-sdp": "decomposed-sdp",
}
"""The rungs that are programs for Clarabel, and the formulations that declare them."""
RUNGS = (*CONIC, "boolean", "convex-hull", "exact")
RUNG_GAP, KELLEY_GAP = 1e-6, 1e-7
"""Relative gap at which a rung counts as solved, and the one that `kelley` is asked for."""
RELAXATIONS = ("plain", "qcqp-ssvm", "sdp-ssvm", "nmmkl", "decomposed-sdp", "boolean", "convex-hull")
WEAKER: Mapping[str, Sequence[str]] = {
    **{name: RELAXATIONS[:k] for k, name in enumerate(RELAXATIONS)},
    "big-m": ("plain",),
    "exact": (*RELAXATIONS, "big-m"),
}
"""The rungs whose value is at most that of a rung (`mathematics`: the proven order), whatever the rows and atoms."""
FAILED = "failed: the numbers are too hard for Clarabel"
CONTRADICTION = 1e-9
"""A bound this far (relative) above the value of a classifier is more than round-off: it is wrong."""
MAX_EXACT = 100_000
"""Features beyond which the master problem of the exact rung, whose cuts are dense, no longer fits."""


class SizeEntry(TypedDict):
    """The size of a program."""

    variables: Whole
    constraints: Whole
    nonzeros: NotRequired[Whole]


def _is_size(size: Any) -> bool:
    return bool(read(size, SizeEntry))


@dataclass(frozen=True)
class Rung:
    """One line of the ladder.

    Attributes
    ----------
    name : str
    is_bound : bool
        Whether its value bounds the problem from below; every rung does.
    value : float, the bound it proves; -inf when it proves none
    gap : float, as of `mipfs.result.result.relative_gap`
    seconds : float
    size : mapping of str to int, or None: variables, constraints and nonzeros of its program
    status : str
        "solved": its own two bounds meet to `RUNG_GAP`; "optimal"; "numerical" where what it claims contradicts a
        classifier, and no bound is printed; or in a few words why not.
    """

    name: str
    is_bound: bool
    value: Bound
    gap: Objective
    seconds: float
    size: Annotated[Mapping[str, int], Written(SizeEntry), Such(_is_size)] | None
    status: str


class ComparisonDocument(TypedDict):
    """What mipfs compare --json writes."""

    schema: Literal[1]
    command: NotRequired[str | None]
    params: dict[str, Any]
    incumbent: Objective
    selected: NotRequired[Texts]
    conflict: NotRequired[Texts]
    ladder: tuple[Rung, ...]


@dataclass(frozen=True, eq=False)
class Comparison(Reported):
    """What `compare` returns.

    Attributes
    ----------
    params : mapping, what was asked
    incumbent : float, value of the best classifier that any rung found; inf when there is none
    selected : tuple of str, its features
    ladder : tuple of Rung
    conflict : tuple of str, a smallest conflicting set of rows when no selection satisfies them
    command : str or None, the command line that it came from
    """

    params: Mapping[str, Any]
    incumbent: float
    selected: tuple[str, ...]
    ladder: tuple[Rung, ...]
    conflict: tuple[str, ...] = ()
    command: str | None = None

    def __repr__(self) -> str:
        bounds = ", ".join(f"{escape_invisible(rung.name)} {number(rung.value)}" for rung in self.ladder)
        return f"<Comparison incumbent {number(self.incumbent)}, {bounds}>"

    def blocks(self) -> list[ReportBlock]:
        """Of the report: the ladder."""
        return ladder_blocks(self)

    def __getitem__(self, name: str) -> Rung:
        """The rung of that name."""
        for rung in self.ladder:
            if rung.name == name:
                return rung
        raise KeyError(name)

    def to_frame(self) -> Any:
        """The ladder as a pandas data frame, a row for each rung; what was not earned is NaN.

        Raises
        ------
        UsageError
            pandas is not installed.
        """
        pandas = pandas_for("comparison.to_frame()")
        rows = [dataclasses.asdict(rung) for rung in self.ladder]
        frame = pandas.DataFrame(rows)
        for name in ("value", "gap"):
            frame[name] = frame[name].where(frame[name].abs() < math.inf)
        return frame

    def document(self) -> dict[str, Any]:
        """``{schema, params, incumbent, ladder: [...]}``, schema 1; what was not earned is None.

        Beside them ``selected``, the features of the best classifier, ``conflict``, and ``command`` where there was
        one.
        """
        command = {} if self.command is None else {"command": self.command}
        return {
            "schema": SCHEMA,
            **command,
            "params": dict(self.params),
            "incumbent": finite_or_none(self.incumbent),
            "selected": list(self.selected),
            "conflict": list(self.conflict),
            "ladder": [
                {name: finite_or_none(value) for name, value in dataclasses.asdict(rung).items()}
                for rung in self.ladder
            ],
        }

    def to_json(self) -> str:
        """`document` as JSON."""
        return as_json(self.document())

    @classmethod
    def load(cls, path: str | Path) -> Comparison:
        """Read what `to_json` gave, or `mipfs compare --json` wrote; a `DataError` names what is odd."""
        from mipfs.lab.studies import reading

        return reading.load_kind(path, cls)

    def shown(self) -> list[ReportBlock]:
        """In a notebook: the problem and the chart of the ladder."""
        from mipfs.lab.studies.charts import ladder_chart

        return [self.blocks()[0], ladder_chart(self)]

    def plot_ladder(self, ax: Any = None) -> Any:
        """Draw the bound of every rung and the best classifier's value with matplotlib.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; new axes by default.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        MissingExtraError
            matplotlib is not installed.
        """
        from mipfs.lab.studies.charts import ladder_chart
        from mipfs.report.axes import draw

        return draw(ladder_chart(self), ax, "plot_ladder()")


@check_arguments
def compare(
    model: Any,
    *,
    rungs: Sequence[str] | None = None,
    time_limit: Seconds | None = 60.0,
    callback: Callable[[Record], object] | None = None,
    observers: Iterable[Observer] = (),
    verbose: bool = False,
) -> Comparison:
    """Solve every rung of the ladder on one problem.

    Parameters
    ----------
    model : Problem, Pyomo model of a formulation, or Formulation
        With all rows, extra variables and fixings that stand in it.
    rungs : sequence of str, optional
        Some of `RUNGS`; all of them by default.
    time_limit : float, seconds per rung; None for no limit
    callback : callable, optional
        Receives every iteration record; a true return value ends the comparison.
    observers : iterable of callables that receive every iteration record
    verbose : bool, default False
        Say on standard error which rung is being solved, and print its incumbent, bound and gap.

    Returns
    -------
    Comparison
        After Ctrl-C too, with the rungs that were reached.

    Raises
    ------
    UsageError
        An unknown rung or model, or a time limit that is none.
    """
    compiled = formulation.compile(model)
    compiled.require_near("a comparison of relaxations")
    problem = widen_problem(compiled)
    chosen = _choose_names(rungs)
    params = {**parameters(problem), "time_limit": time_limit}
    if problem.selection.minimise(problem.penalty)[0] is None:
        ladder = tuple(_unsolved_rung(name, "no selection satisfies the rows") for name in chosen)
        return Comparison(params, math.inf, (), ladder, problem.selection.conflict())
    options = {"time_limit": time_limit, "callback": callback, "observers": tuple(observers), "verbose": verbose}
    climb = _Climb(problem, options)
    found = list[RungResult]()
    for name in chosen:
        if verbose:
            print(f"rung {name}", file=sys.stderr, flush=True)
        found.append(climb.rung(name))
    ladder = settle_rungs(found, climb.incumbent, problem)
    return Comparison(params, climb.incumbent, climb.selected, ladder)


@dataclass(frozen=True)
class RungResult:
    """What was found on one rung, before it is compared with the others.

    Attributes
    ----------
    name : str
    lower : float, the bound that it earned by itself; -inf for none
    upper : float, an upper bound on its own value; inf for none
    seconds, size : as in `Rung`
    status : str, what to say where its bounds do not meet
    solved : str, what to say where they do
    ran : bool, whether it was solved at all
    """

    name: str
    lower: float
    upper: float
    seconds: float
    size: Mapping[str, int] | None
    status: str
    solved: str = "solved"
    ran: bool = True


def settle_rungs(climbed: Sequence[RungResult], incumbent: float, problem: Problem) -> tuple[Rung, ...]:
    """The rungs with their proven values; see the module for how.

    Parameters
    ----------
    climbed : sequence of RungResult, in the order of `RUNGS`
    incumbent : float, value of the best classifier that any of them found
    problem : Problem
    """
    limit = incumbent + CONTRADICTION * abs(incumbent) if math.isfinite(incumbent) else math.inf
    proven: dict[str, float] = {}
    rungs = []
    for one in climbed:
        wrong = one.lower > limit
        value = -math.inf if wrong else min(one.lower, incumbent)
        if one.ran and not wrong:
            value = max([value, *(proven[name] for name in WEAKER[one.name] if name in proven)])
        proven[one.name] = value
        upper = min(one.upper, incumbent)  # no relaxation is above a classifier
        meets = math.isfinite(upper) and abs(upper - value) <= RUNG_GAP * abs(upper)
        status = "numerical" if wrong else one.solved if one.ran and meets else one.status
        rungs.append(Rung(one.name, True, value, relative_gap(incumbent, value), one.seconds, one.size, status))
    return tuple(rungs)


class _Climb:
    """The state between rungs: the best incumbent, and whether the user wants to stop."""

    def __init__(self, problem: Problem, common: Mapping[str, Any]) -> None:
        self.problem = problem
        self.common = dict(common)
        self.incumbent = math.inf
        self.selected = tuple[str, ...]()
        self.interrupted = False
        self._boolean: RungResult | None = None

    def rung(self, name: str) -> RungResult:
        """Solve one rung; whatever keeps it from being solved becomes its status."""
        if self.interrupted:
            return _missed_rung(name, "not run: interrupted")
        if name == "convex-hull" and self._boolean is not None and self.problem.selection.is_plain:
            return dataclasses.replace(self._boolean, name=name)
        try:
            found = self._solve(name)
        except KeyboardInterrupt:
            self.interrupted = True
            return _missed_rung(name, "interrupted")
        except TooLargeError as error:
            return _missed_rung(name, f"too large: {error}")
        except UsageError as error:
            return _missed_rung(name, f"skipped: {error}")
        except NumericalError:
            return _missed_rung(name, "numerical")
        if name == "boolean":
            self._boolean = found
        return found

    def _solve(self, name: str) -> RungResult:
        if name in CONIC:
            return self._conic_rung(name) if not self.problem.is_joint else self._joint_rung(name)
        if name == "exact":
            if self.problem.atoms.count > MAX_EXACT:
                raise TooLargeError(f"{self.problem.atoms.count} features; at most {MAX_EXACT} here")
            result = self._run("branch")
            rows = result.counters.get("cuts", 0) + len(self.problem.selection.all_rows)
            size = {"variables": self.problem.atoms.count + 1, "constraints": rows}
            solved = "optimal" if result.status is Status.OPTIMAL else "solved"
            return _result_of_rung(name, result.bound, result.objective, result, size, solved)
        if self.problem.is_joint:
            if name == "boolean" and not self.problem.selection.is_plain:
                raise UsageError("two_layer solves the convex hull, which differs where there are rows")
            result = self._run("two_layer")
        else:
            result = self._run("kelley", relaxation="box" if name == "boolean" else "hull")
        size = {"variables": self.problem.data.n_samples, "constraints": result.counters.get("selections", 0)}
        upper = math.inf if result.relaxed is None else result.relaxed["upper"]
        return _result_of_rung(name, result.bound, upper, result, size)

    def _joint_rung(self, name: str) -> RungResult:
        """The structural SVM on all atoms, by its bundle; those of largest weights make a classifier."""
        if name != "plain":
            raise UsageError("it is declared for losses that are a sum over the samples")
        problem = self.problem
        run = Run(self.problem, kelley.Options())
        everything = np.ones(self.problem.atoms.count)
        subproblem = Subproblem(problem)
        with hearing_signals():
            solved = subproblem.solve(everything, 0.1 * RUNG_GAP)
            rounding.round_to(run, [subproblem.weights()])
        if run.incumbent is not None and run.objective < self.incumbent:
            names = tuple(problem.atoms.names[j] for j in run.incumbent.selected)
            names = tuple(name for name in names if not (problem.data.constant and name == CONSTANT))
            self.incumbent = run.objective
            self.selected = names
        assert solved.svm.combination is not None
        size = {"variables": solved.svm.w.size, "constraints": solved.svm.combination.whole.size}
        without = _describe_unknown(formulation.capabilities()["plain-svm"].left_out(problem))
        lower = solved.cut(everything)
        return RungResult(name, lower, solved.svm.primal, run.elapsed, size, "stalled", f"solved{without}")

    def _conic_rung(self, name: str) -> RungResult:
        loaded = formulation.load(CONIC[name])
        entry = loaded.entry
        declare = loaded.declare
        assert entry is not None
        assert declare is not None
        if entry.needs_M and self.problem.M is None:
            raise UsageError("needs M, and the problem has no cardinality row")
        U = self.incumbent
        if name == "big-m" and math.isfinite(U) and self.problem.margin == "unit":
            result = self._run("conic", declare=lambda problem: declare(problem, U))
        else:
            result = self._run("conic", declare=declare)
        counted = "variables" in result.counters  # not where it ended before there was a program
        size = {key: result.counters[key] for key in ("variables", "constraints", "nonzeros")} if counted else None
        if result.relaxed is None:
            found = _result_of_rung(name, -math.inf, math.inf, result, size)
            failed = counted and result.stop_reason is StopReason.NUMERICAL
            return dataclasses.replace(found, status=FAILED) if failed else found
        lower, upper = result.relaxed["lower"], result.relaxed["upper"]
        return _result_of_rung(
            name, lower, upper, result, size, f"solved{_describe_unknown(entry.capability.left_out(self.problem))}"
        )

    def _run(self, driver: str, **options: Any) -> Result:
        own = drivers.get_driver(driver).CAPABILITY
        gap = RUNG_GAP if own.is_exact or own.is_declared else KELLEY_GAP
        with hearing_signals() as strike:
            result = drivers.solve(self.problem, driver, gap=gap, **self.common, **options)
        if result.objective < self.incumbent:
            self.incumbent, self.selected = result.objective, result.selected
        self.interrupted = strike.has_been or ends_all(result)
        return result


def _describe_unknown(left_out: Sequence[str]) -> str:
    """What a rung without a selection does not know."""
    return f" without the {' and '.join(left_out)}" if left_out else ""


def _result_of_rung(
    name: str, lower: float, upper: float, result: Result, size: Mapping[str, int] | None, solved: str = "solved"
) -> RungResult:
    """What the result of a driver says about a rung."""
    done = result.stop_reason in (StopReason.GAP_CLOSED, StopReason.COMPLETED)  # and yet the bounds may not meet
    status = "stalled" if done else result.stop_reason.name.lower().replace("_", " ")
    status = "numerical" if result.status is Status.NUMERICAL else status
    return RungResult(name, lower, upper, result.seconds, size, status, solved)


def _missed_rung(name: str, status: str) -> RungResult:
    return RungResult(name, -math.inf, math.inf, 0.0, None, status, ran=False)


def _unsolved_rung(name: str, status: str) -> Rung:
    return Rung(name, True, -math.inf, math.inf, 0.0, None, status)


def _choose_names(rungs: Sequence[str] | None) -> tuple[str, ...]:
    if rungs is None:
        return RUNGS
    rungs = list(rungs)
    if not rungs:
        raise UsageError(f"no rung is named; name some of {', '.join(RUNGS)}")
    for name in rungs:
        if name not in RUNGS:
            raise UsageError(f"rung {name!r} is not known; it is one of {', '.join(RUNGS)}")
    return tuple(name for name in RUNGS if name in rungs)
