"""`mipfs.path`: problems that differ in M, C, lambda or rows, each solved with what a neighbour left.

Every path is walked from its easy end: small M, small C, large lambda, few rows. A support of a smaller M is allowed
for a larger one, cuts hold for a larger C as they are, and what Ctrl-C leaves is as many points as the time allowed.
(On WDBC either direction took the same number of subproblems, within 10%.) Over C and M there is a walk along M for
every C, which begins with what the smallest M left at the C before.

Optima are monotone along every axis, so a bound of one point holds for every point whose optimum is not smaller.
"""

from __future__ import annotations

import dataclasses
import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from mipfs import drivers
from mipfs.drivers import branch
from mipfs.drivers.default import DEFAULT
from mipfs.errors import UsageError
from mipfs.lab.studies.choice import least_error, one_standard_error
from mipfs.lab.studies.folds import Fold, fold_of, stratified
from mipfs.lab.studies.lambdas import lambda_values, parsed
from mipfs.lab.studies.point_store import Kept, PointStore
from mipfs.lab.studies.solution_path import Point, SolutionPath
from mipfs.lab.studies.steps import Place, Steps, place_text, steps_of
from mipfs.plumbing.declared import Positive, Seed, declared
from mipfs.problem import Problem
from mipfs.proof.cuts import CutPool
from mipfs.report.numbers import number, percent
from mipfs.result.result import Result, Status, StopReason
from mipfs.result.state import Began
from mipfs.run.carry import carry, support
from mipfs.run.run import Observer, parameters
from mipfs.selection.selection import Rows
from mipfs.widened import widened


@declared
def path(
    model: Any,
    *,
    M: Iterable[int] | None = None,
    C: Iterable[Positive] | None = None,
    lam: Iterable[float] | str | None = None,
    rows: Rows | Sequence[Any] | None = None,
    driver: str | None = None,
    folds: int | None = None,
    one_se: bool = False,
    seed: Seed = 0,
    cold: bool = False,
    on_begin: Callable[[str], object] | None = None,
    on_point: Callable[[Point], object] | None = None,
    observers: Iterable[Observer] = (),
    verbose: bool = False,
    checkpoint: str | Path | Checkpoint | None = None,
    resume: str | Path | None = None,
    **options: Any,
) -> SolutionPath:
    """Solve a problem for every value of one parameter, for all pairs of M and C, or with rows added one by one.

    Parameters
    ----------
    model : Problem, Pyomo model of a formulation, or Formulation
    M, C, lam : iterable of numbers
        The values. Just one of these and `rows` is given, or M and C: then every M is solved for every C.
        ``lam="auto"``, or "auto:20", takes 10, or 20, from two SVMs, down from where nothing is selected
        (`mipfs.lab.studies.lambdas`).
    rows : Rows, or sequence of Rows or of (A, lb, ub) as for `Problem.with_rows`
        The first point is the problem as it is; then the rows of a `Rows`, or the members of a sequence, are
        added one after the other.
    driver : str, optional
        As for `mipfs.solve`. Cuts and starts are carried to a driver that has the options ``pool`` and ``start``.
    folds : int >= 2, optional
        Choose by stratified cross-validation: every fold walks the path too, with the same C. The error is the share
        of wrong labels, or Δ of the measure of a structural loss, such as 1 − F1.
    one_se : bool
        Choose the simplest point within one standard error of the least validation error (`lab.studies.choice`): the
        smallest C, then the smallest M, or the largest lambda. It needs `folds`, and is not defined along rows.
    seed : int
        Of the folds and of the driver.
    cold : bool
        Solve every point again without anything carried, to measure what was saved.
    on_begin : callable, optional
        Receives a few words about every solve when it begins.
    on_point : callable, optional
        Receives every `Point` of the whole data when it is there.
    observers : iterable of callables that receive every iteration record
    verbose : bool, default False
        Print on standard error what is being solved, and every point when it is there.
    checkpoint : path-like, optional
        A new file, to which every solve is appended when it is done.
    resume : path-like, optional
        Such a file of the same data, problem and driver: what it holds is not solved again, the rest is appended. The
        values of the path and the folds may be others; where a limit or the gap is, what is proven stays.
    **options
        Options of the driver; ``time_limit`` is in seconds for every point.

    Returns
    -------
    SolutionPath
        After Ctrl-C too, with the points that were reached; then nothing is chosen.

    Raises
    ------
    UsageError
        None or several of M, C, lam and rows, other than M and C; a value twice or out of its range; `one_se` without
        folds or along rows; what `mipfs.solve` refuses; a checkpoint that is there already.
    DataError
        What `resume` names is of another path or version, or missing.
    """
    from mipfs.formulation import compile as compile_model

    base = compile_model(model)
    if one_se and folds is None:
        raise UsageError("one_se chooses by the errors of the folds; give folds too, such as folds = 10")
    if one_se and rows is not None:
        raise UsageError("one_se needs an order from simple to complex, which added rows have not; leave it out")
    if isinstance(lam, str):
        lam = lambda_values(base, parsed(lam))
    steps = steps_of(base, M, C, lam, rows)
    name = DEFAULT if driver is None else driver
    if verbose:
        on_begin, on_point = _aloud(on_begin, _say), _aloud(on_point, _say_point)
    walk = Walk(name, {"seed": seed, **options}, cold, on_begin, on_point, tuple(observers))
    walk.store = _store(base, steps, walk, checkpoint, resume)
    if folds is not None and base.atoms.raw is not base.data:
        made = "folds are for atoms that are columns of the data, and these are made of all its samples"
        raise UsageError(f"{made}; leave folds out, and evaluate the points on samples that were held back")
    parts = [] if folds is None else stratified(base.data, folds, seed)
    points = _tightened(walk.points(steps))
    if parts and not walk.interrupted:
        points = walk.validated(points, steps, parts)
    compared = [] if walk.interrupted else points
    least, simplest = least_error(compared), None if rows is not None else one_standard_error(compared)
    chosen = simplest if one_se else least
    points.sort(key=lambda point: steps.turn(point.place))
    params = {**parameters(base), **{axis: list(asked) for axis, asked in steps.asked.items()}}
    return SolutionPath(
        ",".join(steps.asked),
        params,
        name,
        tuple(points),
        walk.interrupted,
        folds,
        seed,
        chosen=None if chosen is None else chosen.value,
        least_error=None if least is None else least.value,
        one_se=None if simplest is None else simplest.value,
        rule="one-se" if one_se else "least-error",
        fold=fold_of(parts) if parts and not walk.interrupted else None,
    )


@dataclasses.dataclass(frozen=True)
class Checkpoint:
    """A new file for the solves of a path, and how that began on the command line."""

    path: str | Path
    began: Began


def _store(
    base: Problem, steps: Steps, walk: Walk, checkpoint: str | Path | Checkpoint | None, resume: str | Path | None
) -> PointStore | None:
    """Where the solves are kept, if anywhere."""
    if checkpoint is not None and resume is not None:
        raise UsageError(
            "resume goes on with the file that it names, and keeps there what it solves; leave checkpoint out"
        )
    if checkpoint is None and resume is None:
        return None
    given = checkpoint if isinstance(checkpoint, Checkpoint) else Checkpoint(checkpoint or "", Began())
    place = given.path if resume is None else resume
    about = base, tuple(steps.asked), walk.driver, walk.options
    return PointStore(place, *about, began=given.began, goes_on=resume is not None)


def _aloud(given: Callable[[Any], object] | None, say: Callable[[Any], object]) -> Callable[[Any], None]:
    """A watcher that also says what it hears."""

    def watch(news: Any) -> None:
        say(news)
        if given is not None:
            given(news)

    return watch


def _say(about: str) -> None:
    print(f"solving {about}", file=sys.stderr, flush=True)


def _say_point(point: Point) -> None:
    numbers = f"objective {number(point.objective)}, bound {number(point.bound)}, gap {percent(point.gap)}"
    words = f"{place_text(point.place)}: {point.status.name}, {numbers}, {point.seconds:.2f} s"
    print(words, file=sys.stderr, flush=True)


class Walk:
    """Solves the problems of a path one after the other.

    Parameters
    ----------
    driver, options, cold, on_begin, on_point, observers : as for `path`
    """

    def __init__(
        self,
        driver: str,
        options: dict[str, Any],
        cold: bool,
        on_begin: Callable[[str], object] | None,
        on_point: Callable[[Point], object] | None,
        observers: tuple[Observer, ...],
    ) -> None:
        fields = {field.name: field.default for field in dataclasses.fields(drivers.get_driver(driver).Options)}
        for name in ("pool", "start"):
            if name in options:
                raise UsageError(f"{name} is what a path carries along; leave it out")
        self.driver = driver
        self.options = options
        self.cold = cold
        self.observers = observers
        self.on_begin: Callable[[str], object] = on_begin or (lambda words: None)
        self.on_point: Callable[[Point], object] = on_point or (lambda point: None)
        self.takes_pool, self.takes_start = "pool" in fields, "start" in fields
        self.gap_asked = float(options.get("gap", fields["gap"]))
        self.interrupted = False
        self.store: PointStore | None = None

    def points(self, steps: Steps) -> list[Point]:
        """The points in the order of the walk, those that were reached before an interrupt."""
        done: list[Point] = []
        try:
            for point, problem in zip(self.solved(steps, ""), steps.problems, strict=False):
                if self.cold and not self.interrupted:
                    again = self._cold(problem, place_text(point.place))
                    point = point if self.interrupted else dataclasses.replace(point, cold=again)
                done.append(point)
                self.on_point(point)
        except KeyboardInterrupt:
            self.interrupted = True
        return done

    def validated(self, points: list[Point], steps: Steps, parts: Sequence[Fold]) -> list[Point]:
        """The points with their validation errors; as they were after an interrupt."""
        errors: list[list[float]] = []
        classifiers: list[list[dict[str, Any] | None]] = []
        try:
            for number, fold in enumerate(parts, 1):
                about = f"fold {number} of {len(parts)}, "
                solved = [point.result for point in self.solved(steps.on(fold.train), about)]
                asked = steps.problems[0]  # the points differ in nothing that the error depends on
                errors.append([fold.error(one, asked) if one.has_classifier else math.nan for one in solved])
                classifiers.append([fold.classifier(one) if one.has_classifier else None for one in solved])
                if self.interrupted:  # which the next solve would take for its own
                    break
        except KeyboardInterrupt:
            self.interrupted = True
        if self.interrupted:
            return points
        # A point that some fold has no classifier for cannot be compared with the others.
        found = [errs if all(map(math.isfinite, errs)) else () for errs in zip(*errors, strict=True)]
        whole = [each if all(one is not None for one in each) else () for each in zip(*classifiers, strict=True)]
        return [
            dataclasses.replace(point, errors=errs, fold_classifiers=of_folds if errs else ())
            for point, errs, of_folds in zip(points, found, whole, strict=True)
        ]

    def solved(self, steps: Steps, about: str) -> Iterator[Point]:
        """Solve the problems of the steps, one after the other, until an interrupt."""
        problems = [widened(problem) for problem in steps.problems]
        pool = CutPool(problems[0])
        best: tuple[str, ...] = ()
        first = pool, best
        for k, (place, added, problem) in enumerate(zip(steps.places, steps.added, problems, strict=True)):
            if k % steps.leg == 0:
                pool, best = first  # nearer than the end of the leg before
            kept = None if self.store is None else self.store.find(problem)
            if kept is None:
                self.on_begin(f"{about}{place_text(place)}")
                kept, pool = self._carried(problem, pool, best)
            result = kept.result
            if self.interrupted and not result.has_classifier:
                return
            best = result.selected or best
            if k % steps.leg == 0:
                first = pool, best
            said = kept.about
            yield Point(
                place, result, result.bound, self.gap_asked, float(said["seconds"]), int(said["cuts_carried"]),
                int(said["cuts"]), tuple(map(str, said["start"])), added,
            )  # fmt: skip
            if self.interrupted:
                return

    def _carried(self, problem: Problem, pool: CutPool, best: tuple[str, ...]) -> tuple[Kept, CutPool]:
        """Solve a point with what the one before left, and keep it; its own cuts."""
        began = time.perf_counter()
        given: dict[str, Any] = {}
        grows = self.driver == "branch" and branch.grows(problem, self.options.get("active"))
        if self.takes_pool and not grows:
            given["pool"] = pool = carry(pool, problem)
        start = support(pool, problem, best) if best and self.takes_start else None
        if start is not None:
            given["start"] = start
        n_carried = len(pool)
        spent = time.perf_counter() - began
        result = self._solve(problem, given)
        pool = pool if result.pool is None else result.pool
        result = dataclasses.replace(result, pool=None)  # many points, one pool
        seconds = spent + result.seconds
        about = {"seconds": seconds, "cuts_carried": n_carried, "cuts": len(pool) - n_carried, "start": start or ()}
        if self.store is not None and not self.interrupted:
            self.store.add(problem, result, about)
        return Kept(result, about), pool

    def _cold(self, problem: Problem, about: str) -> Result:
        """Solve a point from nothing, unless that is kept."""
        kept = None if self.store is None else self.store.find(problem, cold=True)
        if kept is not None:
            return kept.result
        self.on_begin(f"{about}, cold")
        result = self._solve(problem, {})
        if self.store is not None and not self.interrupted:
            none = {"seconds": result.seconds, "cuts_carried": 0, "cuts": 0, "start": ()}
            self.store.add(problem, result, none, cold=True)
        return result

    def _solve(self, problem: Problem, carried: dict[str, Any]) -> Result:
        result = drivers.solve(problem, self.driver, observers=self.observers, **self.options, **carried)
        self.interrupted = result.stop_reason is StopReason.INTERRUPTED
        return result


def _tightened(points: Sequence[Point]) -> list[Point]:
    """The points with the best bound of those whose optimum is not larger."""
    tight = []
    for point in points:
        best = max(other.bound for other in points if _no_larger(other.place, point.place))
        infeasible = point.result.status is Status.INFEASIBLE
        tight.append(point if infeasible else dataclasses.replace(point, bound=best))
    return tight


def _no_larger(one: Place, other: Place) -> bool:
    """Whether the optimum at `one` is at most that at `other`: it falls in M, and rises in C, lambda and with rows."""
    return all(one[axis] >= other[axis] if axis == "M" else one[axis] <= other[axis] for axis in one)
