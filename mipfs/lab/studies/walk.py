"""`mipfs.path`: problems that differ in M, C, lambda or rows, each solved with what a neighbour left.

Every path is walked from its easy end: small M, small C, large lambda, few rows. A support of a smaller M is allowed
for a larger one, cuts hold for a larger C as they are, and what Ctrl-C leaves is as many points as the time allowed.
(On WDBC either direction took the same number of subproblems, within 10%.) Over C and M there is a walk along M for
every C, which begins with what the smallest M left at the C before.

Optima are monotone along every axis, so a bound of one point holds for every point whose optimum is not smaller.

Also here: which point of a path cross-validation chooses: the one of least error, or the simplest that is hardly
worse.

The one-standard-error rule (Breiman et al. 1984, section 3.4.3; Hastie et al. 2009, section 7.10): of the points whose
error is at most the least one plus its standard error, s/√k over k folds, take the simplest. Differences below that are
noise of the folds, and the simpler problem is the one whose proof closes.
"""

from __future__ import annotations

import dataclasses
import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from mipfs import drivers
from mipfs.drivers.default import DEFAULT
from mipfs.drivers.together import SharedTree, share
from mipfs.errors import UsageError
from mipfs.lab.studies.between import between_points, check_asked
from mipfs.lab.studies.chains import SolvedStep, walk_chains
from mipfs.lab.studies.folds import Fold, check_both, fold_of, require_columns, settle_folds, stratify
from mipfs.lab.studies.lambdas import lambda_values, parse_count
from mipfs.lab.studies.point_store import PointStore, StoredSolve
from mipfs.lab.studies.solution_path import PathPoint, SolutionPath
from mipfs.lab.studies.steps import (
    MovedRow,
    PathSteps,
    Place,
    is_moved,
    is_optimum_falling,
    over_end,
    place_text,
    steps_of,
)
from mipfs.measures.judged import check_by
from mipfs.plumbing.declared import Count, Natural, Positive, Seed, check_arguments
from mipfs.plumbing.signals import hearing_signals
from mipfs.problem import Problem
from mipfs.proof.cuts import CutPool
from mipfs.report.numbers import number, percent
from mipfs.result.advice import ends_all
from mipfs.result.result import Result, Status
from mipfs.result.state import StartCommand
from mipfs.run.carry import carry_cuts, support
from mipfs.run.parameters import parameters
from mipfs.run.run import Observer
from mipfs.run.side_by_side import jobs_of, limits_of
from mipfs.selection.selection import Rows
from mipfs.widened import widen_problem

COUNTED_DIGITS = 12
"""Decimals of an error that count: below them means of the same shares differ by the order of their sum."""


def least_error(points: Sequence[PathPoint]) -> PathPoint | None:
    """The point of least validation error, of equal ones the first.

    Parameters
    ----------
    points : sequence of PathPoint, from the simplest on; those without errors or without a classifier are left out

    Returns
    -------
    Point, or None when no point can be compared
    """
    return min(_comparable_points(points), key=lambda point: round(point.error, COUNTED_DIGITS), default=None)


def one_standard_error(points: Sequence[PathPoint]) -> PathPoint | None:
    """The first point whose error is at most that of `least_error` plus its standard error; otherwise the same."""
    best = least_error(points)
    most = math.nan if best is None else round(best.error + best.standard_error, COUNTED_DIGITS)
    return next((point for point in _comparable_points(points) if round(point.error, COUNTED_DIGITS) <= most), None)


def _comparable_points(points: Sequence[PathPoint]) -> list[PathPoint]:
    return [point for point in points if point.errors and point.result.has_classifier]


@check_arguments
def path(
    model: Any,
    *,
    M: Iterable[int] | None = None,
    C: Iterable[Positive] | None = None,
    lam: Iterable[float] | str | None = None,
    rows: Rows | Sequence[Any] | None = None,
    driver: str | None = None,
    folds: Any = None,
    by: str | None = None,
    one_se: bool = False,
    between: Natural = 0,
    seed: Seed = 0,
    cold: bool = False,
    on_begin: Callable[[str], object] | None = None,
    on_point: Callable[[PathPoint], object] | None = None,
    observers: Iterable[Observer] = (),
    verbose: bool = False,
    checkpoint: str | Path | Checkpoint | None = None,
    resume: str | Path | None = None,
    jobs: Count | None = None,
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
    folds : int >= 2, splitter of scikit-learn, or iterable of (training, test), optional
        Choose by cross-validation: every fold walks the path too, with the same C. A number is of stratified folds; of
        data that was read with `folds_by` no value of that column is taken apart. A splitter may repeat folds, or keep
        to the order of time. The error is the share of wrong labels, or Δ of the measure of a structural loss, such as
        1 − F1.
    by : {"error", "balanced-accuracy", "f1", "roc-auc", "average-precision", "log-loss"}, optional
        What folds choose by, whatever the loss; the error of what is to be large is 1 less it (`measures.judged`).
    one_se : bool
        Choose the simplest point within one standard error of the least validation error (`lab.studies.choice`): the
        smallest C, then the smallest M, or the largest lambda. It needs `folds`, and is not defined along rows.
    between : int, default 0
        Values of C between each two neighbours along C, in equal ratios, at which the better of their sets is shown
        with a proven gap (`SolutionPath.between`, `SolutionPath.at`).
    seed : int
        Of the folds and of the driver.
    cold : bool
        Solve every point again without anything carried, to measure what was saved.
    on_begin : callable, optional
        Receives a few words about every solve when it begins.
    on_point : callable, optional
        Receives every `PathPoint` of the whole data when it is there.
    observers : iterable of callables that receive every iteration record
    verbose : bool, default False
        Print on standard error what is being solved, and every point when it is there.
    checkpoint : path-like, optional
        A new file, to which every solve is appended when it is done.
    resume : path-like, optional
        Such a file of the same data, problem and driver: what it holds is not solved again, the rest is appended. The
        values of the path and the folds may be others; where a limit or the gap is, what is proven stays.
    jobs : int >= 1, optional
        Walks side by side: that of all data and those of the folds, over C and M one for every C. By default as many
        as there are cores, and one where `on_begin` or `observers` are to hear of every solve; beside others they hear
        of those of this process. The points do not depend on it, but for what a limit cuts. With `cold` it is 1.
    **options
        Options of the driver; ``time_limit`` is in seconds for every point, `memory_limit` is shared by the walks.

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
    if by is not None and folds is None:
        raise UsageError(f"by = {by!r} is what folds choose by; give folds too, such as folds = 10")
    data, count = (base.data, None) if folds is None else settle_folds(base.data, folds)
    if by is not None:
        check_by(by)
    if isinstance(lam, str):
        lam = lambda_values(base, parse_count(lam))
    steps = steps_of(base, M, C, lam, rows)
    if between:
        check_asked(base, C)
    name = DEFAULT if driver is None else driver
    alone = cold or (jobs is None and (on_begin is not None or bool(observers)))
    side = jobs_of(1 if alone else jobs, (1 + (count or 0)) * steps.legs)
    if verbose:
        on_begin, on_point = _printing_watcher(on_begin, _print_step), _printing_watcher(on_point, _say_point)
    walk = PathWalk(name, {"seed": seed, **limits_of(options, side)}, cold, on_begin, on_point, tuple(observers))
    walk.store = _open_point_store(base, steps, walk, checkpoint, resume)
    if count is not None:
        require_columns(base, "folds are", "leave folds out, and evaluate the points on samples that were held back")
    parts = [] if count is None else stratify(data, count, seed)
    check_both(parts, by)
    if side > 1:
        points, walks = walk.side_by_side(steps, parts, side)
    else:
        points = walk.points(steps)
        walks = walk.of_folds(steps, parts)
    points = _tighten_bounds(points, steps.row)
    if parts and not walk.interrupted:
        points = judge_points(points, walks, steps, parts, by)
    compared = [] if walk.interrupted else points
    least, simplest = least_error(compared), None if rows is not None else one_standard_error(compared)
    chosen = simplest if one_se else least
    points.sort(key=lambda point: steps.turn(point.place))
    params = {**parameters(base), **over_weights(base), **{axis: [*asked] for axis, asked in steps.asked.items()}}
    found = SolutionPath(
        ",".join(steps.asked),
        params,
        name,
        tuple(points),
        walk.interrupted,
        count,
        seed,
        chosen=None if chosen is None else chosen.value,
        least_error=None if least is None else least.value,
        one_se=None if simplest is None else simplest.value,
        rule="one-se" if one_se else "least-error",
        fold=fold_of(parts, data.n_samples) if parts and not walk.interrupted else None,
        by=by,
        folds_by=None if data.split is None or not parts else data.split.by,
    )
    return dataclasses.replace(found, between=between_points(found, base.data, between)) if between else found


@check_arguments
def frontier(
    model: Any,
    row: str,
    values: Iterable[float],
    *,
    driver: str | None = None,
    seed: Seed = 0,
    cold: bool = False,
    on_begin: Callable[[str], object] | None = None,
    on_point: Callable[[PathPoint], object] | None = None,
    observers: Iterable[Observer] = (),
    verbose: bool = False,
    **options: Any,
) -> SolutionPath:
    """What a row costs: the proven optimum for every value of its right-hand side.

    The problems are solved from the tightest on, each with the cuts and the support of the one before, or where one row
    of small data moves by one tree for all of them; a bound of a looser one holds for every tighter one.
    `SolutionPath.bought` says, between two values, what a unit bought on average, at least and at most. It is no
    derivative: between two values nothing is known.

    Parameters
    ----------
    model : Problem, Pyomo model of a formulation, or Formulation
    row : str
        The name of a row with one end (a budget, at most or at least k of a group, any of your own), "M", or "parity":
        ε of all rows over the weights with the ends −ε and ε (`mipfs.weight_rows.parity`).
    values : iterable of numbers
        Its right-hand sides; the end that the problem has is replaced.
    driver, seed, cold, on_begin, on_point, observers, verbose, **options
        As for `path`.

    Returns
    -------
    SolutionPath
        Along the axis "end" (or "M"), with `row`. After Ctrl-C too, with the points that were reached.

    Raises
    ------
    UsageError
        No such row, or one with two ends; no values, or one twice; what `mipfs.solve` refuses.
    """
    from mipfs.formulation import compile as compile_model

    base = compile_model(model)
    if row == "M":
        whole = (int(value) if float(value).is_integer() else value for value in values)
        steps = steps_of(base, whole, None, None, None)  # type: ignore[arg-type]
    else:
        steps = over_end(base, row, values)
    if verbose:
        on_begin, on_point = _printing_watcher(on_begin, _print_step), _printing_watcher(on_point, _say_point)
    walk = PathWalk(
        DEFAULT if driver is None else driver, {"seed": seed, **options}, cold, on_begin, on_point, tuple(observers)
    )
    if steps.row is not None and walk.driver == "branch":
        walk.shared = share(steps.problems, steps.row.side, walk.options)
    points = _tighten_bounds(walk.points(steps), steps.row)
    points.sort(key=lambda point: steps.turn(point.place))
    axes = {axis: [*asked] for axis, asked in steps.asked.items()}
    params = {
        **parameters(base),
        **over_weights(base, is_parity=steps.row is not None and steps.row.side == "both"),
        **axes,
    }
    axis = ",".join(steps.asked)
    return SolutionPath(
        axis, params, walk.driver, tuple(points), walk.interrupted, None, seed, row=steps.row or MovedRow("M", "ub")
    )


@dataclasses.dataclass(frozen=True)
class Checkpoint:
    """A new file for the solves of a path, and how that began on the command line."""

    path: str | Path
    began: StartCommand


def _open_point_store(
    base: Problem,
    steps: PathSteps,
    walk: PathWalk,
    checkpoint: str | Path | Checkpoint | None,
    resume: str | Path | None,
) -> PointStore | None:
    """Where the solves are kept, if anywhere."""
    if checkpoint is not None and resume is not None:
        raise UsageError(
            "resume goes on with the file that it names, and keeps there what it solves; leave checkpoint out"
        )
    if checkpoint is None and resume is None:
        return None
    given = checkpoint if isinstance(checkpoint, Checkpoint) else Checkpoint(checkpoint or "", StartCommand())
    place = given.path if resume is None else resume
    about = base, tuple(steps.asked), walk.driver, walk.options
    return PointStore(place, *about, began=given.began, goes_on=resume is not None)


def _printing_watcher(given: Callable[[Any], object] | None, say: Callable[[Any], object]) -> Callable[[Any], None]:
    """A watcher that also says what it hears."""

    def watch(news: Any) -> None:
        say(news)
        if given is not None:
            given(news)

    return watch


def _say_nothing(_news: Any) -> None:
    """For those whom nobody asks."""


def _print_step(about: str) -> None:
    print(f"solving {about}", file=sys.stderr, flush=True)


def _say_point(point: PathPoint) -> None:
    numbers = f"objective {number(point.objective)}, bound {number(point.bound)}, gap {percent(point.gap)}"
    words = f"{place_text(point.place)}: {point.status.name}, {numbers}, {point.seconds:.2f} s"
    print(words, file=sys.stderr, flush=True)


class PathWalk:
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
        on_point: Callable[[PathPoint], object] | None,
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
        self.on_begin: Callable[[str], object] = on_begin or _say_nothing
        self.on_point: Callable[[PathPoint], object] = on_point or _say_nothing
        self.takes_pool, self.takes_start = "pool" in fields, "start" in fields
        self.gap_asked = float(options.get("gap", fields["gap"]))
        self.interrupted = False
        self.store: PointStore | None = None
        self.shared: SharedTree | None = None

    def __getstate__(self) -> dict[str, Any]:
        """In other processes nobody hears of the solves."""
        return {**vars(self), "on_begin": _say_nothing, "on_point": _say_nothing, "observers": ()}

    def points(self, steps: PathSteps) -> list[PathPoint]:
        """The points in the order of the walk, those that were reached before an interrupt."""
        done: list[PathPoint] = []
        try:
            for point, problem in zip(self.solved(steps, ""), steps.problems, strict=False):
                if self.cold and not self.interrupted:
                    again = self._solve_cold(problem, place_text(point.place))
                    point = point if self.interrupted else dataclasses.replace(point, cold=again)
                done.append(point)
                self.on_point(point)
        except KeyboardInterrupt:
            self.interrupted = True
        return done

    def of_folds(self, steps: PathSteps, parts: Sequence[Fold]) -> list[list[PathPoint]]:
        """The points of every fold, of which nothing is to be had after an interrupt."""
        walks: list[list[PathPoint]] = []
        try:
            for fold, about in zip(parts, _name_fold_solves(parts), strict=True):
                if not self.interrupted:
                    walks.append([*self.solved(steps.on(fold.train), about)])
        except KeyboardInterrupt:
            self.interrupted = True
        return walks

    def side_by_side(
        self, steps: PathSteps, parts: Sequence[Fold], jobs: int
    ) -> tuple[list[PathPoint], list[list[PathPoint]]]:
        """The points, and those of every fold, `jobs` walks at a time."""
        every = [steps, *(steps.on(fold.train) for fold in parts)]
        points, *of_folds = walk_chains(self, every, ["", *_name_fold_solves(parts)], jobs)
        return points, of_folds

    def solved(self, steps: PathSteps, about: str) -> Iterator[PathPoint]:
        """Solve the problems of the steps, one after the other, until an interrupt."""
        before: SolvedStep | None = None
        first: SolvedStep | None = None
        for k in range(len(steps.places)):
            if k % steps.leg == 0:
                before = first  # nearer than the end of the leg before
            before = self.step(steps, k, before, about)
            if before is None:
                return
            if k % steps.leg == 0:
                first = before
            yield before.point
            if self.interrupted:
                return

    def step(self, steps: PathSteps, k: int, before: SolvedStep | None, about: str) -> SolvedStep | None:
        """Solve a step with what another one left; None where an interrupt left nothing of it."""
        place, problem = steps.places[k], widen_problem(steps.problems[k].in_unit)
        pool = CutPool(widen_problem(steps.problems[0].in_unit)) if before is None else before.pool
        best = () if before is None else before.best
        kept = None if self.store is None else self.store.find(problem)
        if kept is None:
            self.on_begin(f"{about}{place_text(place)}")
            kept = self._solve_warm(problem, pool, best)
        pool = pool if kept.pool is None else kept.pool
        result = kept.result
        if self.interrupted and not result.has_classifier:
            return None
        said = kept.about
        point = PathPoint(
            place, result, result.bound, self.gap_asked, float(said["seconds"]), int(said["cuts_carried"]),
            int(said["cuts"]), tuple(map(str, said["start"])), steps.added[k],
        )  # fmt: skip
        return SolvedStep(point, pool, result.selected or best)

    def _solve_warm(self, problem: Problem, pool: CutPool, best: tuple[str, ...]) -> StoredSolve:
        """Solve a point with what the one before left, and keep it."""
        began = time.perf_counter()
        given: dict[str, Any] = {}
        own = drivers.get_driver(self.driver)
        grows = hasattr(own, "grows_over_atoms") and own.grows_over_atoms(problem, self.options.get("active"))
        if self.shared is not None:
            given["shared"], best = self.shared, ()
        elif self.takes_pool and not grows:
            given["pool"] = pool = carry_cuts(pool, problem)
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
            self.store.add(problem, result, about, pool=pool if self.takes_pool else None)
        return StoredSolve(result, about, pool)

    def _solve_cold(self, problem: Problem, about: str) -> Result:
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
        with hearing_signals() as strike:
            result = drivers.solve(problem, self.driver, observers=self.observers, **self.options, **carried)
        self.interrupted = strike.has_been or ends_all(result)
        return result


def _name_fold_solves(parts: Sequence[Fold]) -> list[str]:
    """What is said of the solves of every fold."""
    return [f"fold {number} of {len(parts)}, " for number in range(1, len(parts) + 1)]


def judge_points(
    points: Sequence[PathPoint],
    walks: Sequence[Sequence[PathPoint]],
    steps: PathSteps,
    parts: Sequence[Fold],
    by: str | None = None,
) -> list[PathPoint]:
    """The points with the errors of the folds, each of which walked the same steps."""
    asked = steps.problems[0]  # the points differ in nothing that the error depends on
    found = []
    for point, solved in zip(points, zip(*walks, strict=True), strict=True):
        of_folds = [*zip(parts, (one.result for one in solved), strict=True)]
        if all(result.has_classifier for _, result in of_folds):
            errors = tuple(fold.error(result, asked, by) for fold, result in of_folds)
            each = [fold.classifier(result) for fold, result in of_folds]
            if all(map(math.isfinite, errors)):
                classifiers = tuple(one for one in each if one is not None)
                known = classifiers if len(classifiers) == len(parts) else ()
                point = dataclasses.replace(point, errors=errors, fold_classifiers=known)
        found.append(point)  # one that some fold has no classifier for cannot be compared with the others
    return found


def _tighten_bounds(points: Sequence[PathPoint], row: MovedRow | None = None) -> list[PathPoint]:
    """The points with the best bound of those whose optimum is not larger."""
    tight = []
    for point in points:
        best = max(
            other.bound
            for other in points
            if _no_larger(other.place, point.place, row) and is_wider(other.result, point.result)
        )
        infeasible = point.result.status is Status.INFEASIBLE
        tight.append(point if infeasible else dataclasses.replace(point, bound=best))
    return tight


def over_weights(base: Problem, *, is_parity: bool = False) -> dict[str, Any]:
    """The rows over the weights of all points, without their allowances, and without ends where these move."""
    if not base.weight_rows:
        return {}
    rows = [(one, is_parity and is_moved(one)) for one in base.rows_over_weights]
    return {"weight_rows": [one.written() | ({"lower": None, "upper": None} if moves else {}) for one, moves in rows]}


def is_wider(other: Result, one: Result) -> bool:
    """Whether the rows over the weights of one result, within their allowances, allow no more than those of another.

    Their allowances go with the weights that were found: without this the other's bound says nothing here.
    """
    pairs = zip(*(result.params.get("weight_rows") or () for result in (other, one)), strict=True)
    return all(
        _forgiven_end(wide, side) >= _forgiven_end(row, side) for wide, row in pairs for side in ("lower", "upper")
    )


def _forgiven_end(row: dict[str, Any], side: str) -> Fraction | float:
    """How far a row reaches on a side, with its allowance."""
    return math.inf if row[side] is None else abs(Fraction(row[side])) + Fraction(row["allowance"])


def _no_larger(one: Place, other: Place, row: MovedRow | None) -> bool:
    """Whether the optimum at `one` is at most that at `other`: it falls in M, and rises in C, lambda and with rows.

    It falls where a row of "at most" is given more, and rises where one of "at least" asks for more.
    """
    return all(one[axis] >= other[axis] if is_optimum_falling(axis, row) else one[axis] <= other[axis] for axis in one)
