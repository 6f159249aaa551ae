"""The ladder of relaxations on one problem: what every rung proves, how far it is from the best classifier, its price.

plain ≤ QCQP-SSVM = SDP-SSVM ≤ NMMKL = Boolean ≤ convex hull ≤ exact, and plain ≤ big-M ≤ exact. A rung that cannot
carry penalties, forced features and rows is a bound without them.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mipfs import drivers, formulation
from mipfs.drivers import kelley
from mipfs.drivers.run import Observer, Run, parameters
from mipfs.errors import UsageError
from mipfs.losses import loss_of
from mipfs.problem import Problem
from mipfs.result import SCHEMA, Record, Result, Status, StopReason, relative_gap
from mipfs.signals import heard

CONIC: Mapping[str, str] = {
    "plain": "plain-svm",
    "big-m": "big-m",
    "qcqp-ssvm": "qcqp-ssvm",
    "sdp-ssvm": "sdp-ssvm",
    "nmmkl": "nmmkl",
}
"""The rungs that are programs for Clarabel, and the formulations that declare them."""
RUNGS = (*CONIC, "boolean", "convex-hull", "exact")
GAP, KELLEY_GAP = 1e-6, 1e-7
"""Relative gap to which the exact and the conic rungs are solved (the latter reach 1e-9), and those of `kelley`."""
MAX_EXACT = 100_000
"""Features beyond which the master problem of the exact rung, whose cuts are dense, no longer fits."""


@dataclass(frozen=True)
class Rung:
    """One line of the ladder.

    Attributes
    ----------
    name : str
    is_bound : bool
        Whether its value bounds the problem from below; every rung does.
    value : float, the bound it proves; -inf when it proves none
    gap : float, (incumbent − value) / max(1e-10, |incumbent|); inf when either is missing
    seconds : float
    size : mapping of str to int, or None: variables, constraints and nonzeros of its program
    status : str, "solved", "optimal", or in a few words why not
    """

    name: str
    is_bound: bool
    value: float
    gap: float
    seconds: float
    size: Mapping[str, int] | None
    status: str


@dataclass(frozen=True, eq=False)
class Comparison:
    """What `compare` returns.

    Attributes
    ----------
    params : mapping, what was asked
    incumbent : float, value of the best classifier that any rung found; inf when there is none
    selected : tuple of str, its features
    ladder : tuple of Rung
    conflict : tuple of str, a smallest conflicting set of rows when no selection satisfies them
    """

    params: Mapping[str, Any]
    incumbent: float
    selected: tuple[str, ...]
    ladder: tuple[Rung, ...]
    conflict: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> Rung:
        """The rung of that name."""
        for rung in self.ladder:
            if rung.name == name:
                return rung
        raise KeyError(name)

    def document(self) -> dict[str, Any]:
        """``{schema, params, incumbent, ladder: [...]}``, schema 1; what was not earned is None."""
        return {
            "schema": SCHEMA,
            "params": dict(self.params),
            "incumbent": _finite(self.incumbent),
            "ladder": [
                {name: _finite(value) for name, value in dataclasses.asdict(rung).items()} for rung in self.ladder
            ],
        }

    def to_json(self) -> str:
        """`document` as JSON."""
        return json.dumps(self.document(), indent=2, ensure_ascii=False, allow_nan=False)


def compare(
    model: Any,
    *,
    rungs: Sequence[str] | None = None,
    time_limit: float | None = 60.0,
    callback: Callable[[Record], object] | None = None,
    observers: Iterable[Observer] = (),
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

    Returns
    -------
    Comparison
        After Ctrl-C too, with the rungs that were reached.

    Raises
    ------
    UsageError
        An unknown rung or model, or a time limit that is none.
    """
    problem = formulation.compile(model)
    chosen = _chosen(rungs)
    if time_limit is not None and not time_limit >= 0:
        raise UsageError(f"time limit = {time_limit!r} must be a number of seconds >= 0")
    params = {**parameters(problem), "time_limit": time_limit}
    if problem.selection.minimise(problem.penalty)[0] is None:
        ladder = tuple(_idle(name, "no selection satisfies the rows") for name in chosen)
        return Comparison(params, math.inf, (), ladder, problem.selection.conflict())
    climb = _Climb(problem, {"time_limit": time_limit, "callback": callback, "observers": tuple(observers)})
    found = [climb.rung(name) for name in chosen]
    gaps = [relative_gap(climb.incumbent, rung.value) for rung in found]
    ladder = tuple(dataclasses.replace(rung, gap=gap) for rung, gap in zip(found, gaps, strict=True))
    return Comparison(params, climb.incumbent, climb.selected, ladder)


class _Climb:
    """The state between rungs: the best incumbent, and whether the user wants to stop."""

    def __init__(self, problem: Problem, common: Mapping[str, Any]) -> None:
        self.problem, self.common = problem, dict(common)
        self.incumbent, self.selected = math.inf, tuple[str, ...]()
        self.interrupted = False
        self._boolean: Rung | None = None

    def rung(self, name: str) -> Rung:
        """Solve one rung; whatever keeps it from being solved becomes its status."""
        if self.interrupted:
            return _idle(name, "not run: interrupted")
        if name == "convex-hull" and self._boolean is not None and self.problem.selection.is_plain:
            return dataclasses.replace(self._boolean, name=name)
        try:
            found = self._solve(name)
        except KeyboardInterrupt:
            self.interrupted = True
            return _idle(name, "interrupted")
        except formulation.TooLargeError as error:
            return _idle(name, f"too large: {error}")
        except UsageError as error:
            return _idle(name, f"skipped: {error}")
        if name == "boolean":
            self._boolean = found
        return found

    def _solve(self, name: str) -> Rung:
        if name in CONIC:
            return self._conic(name) if self.problem.loss != "structural" else self._joint(name)
        if name == "exact":
            if self.problem.atoms.count > MAX_EXACT:
                raise formulation.TooLargeError(f"{self.problem.atoms.count} features; at most {MAX_EXACT} here")
            result = self._run("branch")
            rows = result.counters.get("cuts", 0) + len(self.problem.selection.all_rows[1])
            size = {"variables": self.problem.atoms.count + 1, "constraints": rows}
            return _rung(name, result.bound, result, size, "optimal" if result.status is Status.OPTIMAL else "")
        if self.problem.loss == "structural":
            if name == "boolean" and not self.problem.selection.is_plain:
                raise UsageError("two_layer solves the convex hull, which differs where there are rows")
            result = self._run("two_layer")
        else:
            result = self._run("kelley", relaxation="box" if name == "boolean" else "hull")
        size = {"variables": self.problem.data.n_samples, "constraints": result.counters.get("selections", 0)}
        solved = result.stop_reason in (StopReason.GAP_CLOSED, StopReason.STALLED)
        return _rung(name, result.bound, result, size, "solved" if solved else "")

    def _joint(self, name: str) -> Rung:
        """The structural SVM on all features, by its bundle; the largest weights make a classifier."""
        if name != "plain":
            raise UsageError("it is declared for losses that are a sum over the samples")
        problem, run = self.problem, Run(self.problem, kelley.Options())
        p = problem.data.n_features
        with heard():
            svm = loss_of(problem).Solver(problem.data, problem.c_i, False).solve(np.arange(p), tol=GAP)
        if problem.atoms.count == p:
            kelley.round_to(run, np.abs(svm.w))
        if run.incumbent is not None and run.objective < self.incumbent:
            names = tuple(problem.atoms.names[j] for j in run.incumbent.selected)
            self.incumbent, self.selected = run.objective, names
        size = {"variables": p, "constraints": svm.combination.whole.size}
        return Rung(name, True, svm.dual, math.inf, run.elapsed, size, f"solved{_left_out(problem)}")

    def _conic(self, name: str) -> Rung:
        loaded = formulation.load(CONIC[name])
        entry, declare = loaded.entry, loaded.declare
        assert entry is not None
        assert declare is not None
        if entry.needs_M and self.problem.M is None:
            raise UsageError("needs M, and the problem has no cardinality row")
        U = self.incumbent
        if name == "big-m" and math.isfinite(U) and self.problem.margin == "unit":
            result = self._run("conic", declare=lambda problem: declare(problem, U))
        else:
            result = self._run("conic", declare=declare)
        size = {key: result.counters[key] for key in ("variables", "constraints", "nonzeros")}
        if result.relaxed is None:
            failed = "failed: the numbers are too hard for Clarabel" if result.counters else ""
            return _rung(name, -math.inf, result, size, failed if result.stop_reason is StopReason.STALLED else "")
        value = result.relaxed["lower"]
        left_out = "" if entry.carries_rows else _left_out(self.problem)
        return _rung(name, value, result, size, f"solved{left_out}")

    def _run(self, driver: str, **options: Any) -> Result:
        gap = KELLEY_GAP if driver in ("kelley", "two_layer") else GAP
        result = drivers.solve(self.problem, driver, gap=gap, **self.common, **options)
        if result.objective < self.incumbent:
            self.incumbent, self.selected = result.objective, result.selected
        self.interrupted = result.stop_reason is StopReason.INTERRUPTED
        return result


def _left_out(problem: Problem) -> str:
    """What a rung without a selection does not know."""
    selection = problem.selection
    parts = ["rows"] if len(selection.rows) else []
    parts += ["forced features"] if selection.forced_in or selection.forced_out else []
    parts += ["penalties"] if np.any(problem.penalty) else []
    return f" without the {' and '.join(parts)}" if parts else ""


def _rung(name: str, value: float, result: Result, size: Mapping[str, int], status: str) -> Rung:
    """The rung of a result; an empty status says why the driver stopped."""
    said = status or result.stop_reason.name.lower().replace("_", " ")
    return Rung(name, True, value, math.inf, result.seconds, size, said)


def _idle(name: str, status: str) -> Rung:
    return Rung(name, True, -math.inf, math.inf, 0.0, None, status)


def _chosen(rungs: Sequence[str] | None) -> tuple[str, ...]:
    if rungs is None:
        return RUNGS
    if not rungs:
        raise UsageError(f"no rung is named; name some of {', '.join(RUNGS)}")
    for name in rungs:
        if name not in RUNGS:
            raise UsageError(f"rung {name!r} is not known; it is one of {', '.join(RUNGS)}")
    return tuple(name for name in RUNGS if name in rungs)


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
