"""The differential test: drivers against brute force on generated problems, for as long as asked.

    python -m tests.differential --count 20000 --seed 1                 # the campaign: problems 1, 2, 3, ...
    python -m tests.differential --case 1234                            # one of its problems again
    python -m tests.differential --count 2000 --neighbours              # where others use the solvers too
    python -m tests.differential --cases plain --seconds 60 --driver gbd
    python -m tests.differential --cases atoms --seconds 60             # scaled features, groups and trees

The campaign (`tests.draws`, judged by `tests.judge`) goes where doubles are no reference, looks at every number that a
result states, and prints a table of what it met and a line for every fault that repeats it. The other kinds of cases
are of ordinary size and ask for the optimum itself, an optimal support, and a conflict where nothing is allowed; they
stop at the first failure with exit code 1 and the line that repeats it (``--keep-going`` collects them all). A new
driver joins with a line in `DRIVERS` and in ``draws.DRIVERS``, a new check with a line in `CHECKS`, a new loss in
``oracles.LOSSES`` and ``strategies.LOSSES``, a new kind of row in ``strategies.ROWS``, one of data in
``strategies.DATA`` and ``draws.DATA``.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from tests import atom_cases, campaign, oracles, strategies
from tests.atom_cases import AtomCase
from tests.oracles import BruteForce, Support, Value
from tests.strategies import Case

AGREE = 1e-6
"""Relative difference at which objective, bound and brute force still agree."""

ABOVE = 1e-9
"""How far, relative to the optimum, a bound may stand above it: the reference's own width, no more."""

Solve = Callable[..., Any]


@dataclass(frozen=True)
class Driver:
    """How a driver is asked for an exact answer.

    Attributes
    ----------
    name : str
    options : mapping, for a proof to `AGREE`
    share : float
        The share of the problems that it is tried on (slow drivers take a sample).
    earned : bool
        Whether its bound is earned; a solver's word may be off by the solver's tolerance `AGREE`.
    starts : bool
        Whether it can begin from a given support.
    losses : tuple of str
        The losses that it carries.
    """

    name: str
    options: Mapping[str, Any]
    share: float = 1.0
    earned: bool = True
    starts: bool = True
    losses: tuple[str, ...] = strategies.LOSSES


DRIVERS: Mapping[str, Driver] = {
    "branch": Driver("branch", {"gap": 1e-7}),
    "gbd": Driver("gbd", {"gap": 1e-7}),
    "monolithic": Driver("monolithic", {"gap": 1e-7}, share=0.3, earned=False, starts=False, losses=("hinge",)),
}


@dataclass(frozen=True, eq=False)
class Trial:
    """One problem, its exact solution, and the driver under test."""

    case: Case
    driver: Driver
    solve: Solve

    @cached_property
    def exact(self) -> BruteForce:
        """Brute force over the allowed supports; they must not be empty."""
        case = self.case
        return oracles.brute_force(
            case.scaled, case.y, case.c_i, case.allowed, case.penalty, case.bias, loss=case.loss, tie=AGREE
        )

    @cached_property
    def rng(self) -> np.random.Generator:
        """Draws of the checks, such as how long a run may last."""
        return np.random.default_rng([20151, self.case.seed])

    def run(self, **options: Any) -> Any:
        """Solve the case, with options on top of the driver's own."""
        case, chosen = self.case, {**self.driver.options, **options}
        if case.start and case.allowed and self.driver.starts:
            begin = case.allowed[int(self.rng.integers(len(case.allowed)))]
            chosen["start"] = [case.names[j] for j in sorted(begin)]
        return self.solve(case.problem(), driver=self.driver.name, **chosen)


CASES: Mapping[str, Callable[[int], Case]] = {
    "plain": strategies.case,
    "badly-scaled": strategies.badly_scaled,
    "atoms": atom_cases.case,
}
"""Where problems come from."""


def expect(holds: bool | np.bool_, message: str) -> None:
    """Fail with a message (unlike ``assert``, also under ``python -O``)."""
    if not holds:
        raise AssertionError(message)


def scale_of(value: Value) -> float:
    """What relative differences are relative to."""
    return max(1e-10, abs(value.upper))


def bound_is_valid(trial: Trial, bound: float) -> None:
    """A bound is never above the optimum."""
    optimum, room = trial.exact.value, ABOVE if trial.driver.earned else AGREE
    excess = (bound - optimum.upper) / scale_of(optimum)
    expect(excess <= room, f"bound {bound!r} is {excess:.1e} above the optimum {optimum.upper!r}")


def incumbent_is_real(trial: Trial, result: Any) -> None:
    """The incumbent is allowed, and its objective recomputes from the JSON and is no better than its support's."""
    case = trial.case
    document = json.loads(result.to_json())
    support = frozenset(case.names.index(name) for name in document["selected"])
    expect(support in case.allowed, f"{sorted(document['selected'])} is not an allowed selection")
    again, b = oracles.objective_of_json(document, case.X, case.y, case.c_i, case.penalty, case.names, case.loss)
    objective = document["objective"]
    own = trial.exact.of(support)
    expect(
        abs(again - objective) <= 1e-9 * max(1.0, case.c_i.sum()) + AGREE * abs(objective) * 1e-2,
        f"objective {objective!r}, but the JSON's weights give {again!r}",
    )
    expect(case.bias or abs(b) <= 1e-8 * (1.0 + abs(document["intercept"])), f"an intercept {b!r} without a bias")
    expect(
        objective >= own.lower - 1e-9 * scale_of(own),
        f"objective {objective!r} is below {own.lower!r}, the least that its support allows",
    )


def solved_exactly(trial: Trial) -> None:
    """OPTIMAL; objective and bound equal brute force; an optimal support, the same one where it is unique."""
    result, optimum = trial.run(), trial.exact.value
    status, reason = result.status.name, result.stop_reason.name
    # A solver that stops at its own tolerance may leave a little more than was asked, and then must say so.
    close = not trial.driver.earned and status == "FEASIBLE" and result.gap <= AGREE
    expect(close or (status, reason) == ("OPTIMAL", "GAP_CLOSED"), f"{status}, {reason}, gap {result.gap:.1e}")
    for name, value in (("objective", result.objective), ("bound", result.bound)):
        off = (value - optimum.upper) / scale_of(optimum)
        expect(abs(off) <= AGREE, f"{name} {value!r} is {off:.1e} off the optimum {optimum.upper!r}")
    bound_is_valid(trial, result.bound)
    incumbent_is_real(trial, result)
    support = frozenset(trial.case.names.index(name) for name in result.selected)
    own = trial.exact.of(support)
    expect(
        own.lower <= optimum.upper + AGREE * scale_of(optimum),
        f"{sorted(support)} has the value {own.upper!r}, the optimum is {optimum.upper!r}",
    )
    if len(trial.exact.optimal) == 1:
        only = trial.exact.optimal[0]
        expect(support == only, f"selected {sorted(support)}, the unique solution is {sorted(only)}")
    trace = [(record.objective, record.bound) for record in result.trace]
    expect(len(trace) > 0, "the trace is empty")
    for _, bound in trace:
        bound_is_valid(trial, bound)
    for before, after in itertools.pairwise(trace):
        expect(after[0] <= before[0] and after[1] >= before[1], f"the trace got worse: {before} then {after}")


def stopped_early(trial: Trial) -> None:
    """A run that a callback, a limit or a loose gap ends early still has a bound and an incumbent that are valid."""
    count = int(trial.rng.integers(1, 6))
    seen = itertools.count(1)
    ways: list[dict[str, Any]] = [
        {"callback": lambda record: next(seen) >= count},
        {"iteration_limit": count},
        {"time_limit": float(trial.rng.choice([1e-6, 1e-3, 1e-2]))},
        {"gap": float(trial.rng.choice([0.3, 0.05, 1e-3]))},
    ]
    options = ways[int(trial.rng.integers(len(ways) if trial.driver.earned else 3))]
    result, optimum = trial.run(**options), trial.exact.value
    status, what = result.status.name, f"after {sorted(options)} "
    expect(status in ("OPTIMAL", "FEASIBLE", "NO_SOLUTION"), what + f"the status is {status}")
    bound_is_valid(trial, result.bound)
    asked = options.get("gap", trial.driver.options["gap"])
    # The contract's second way to be optimal: an absolute gap of 1e-12 max(1, C n).
    closed = result.gap <= asked or result.objective - result.bound <= 1e-12 * max(1.0, trial.case.c_i.sum())
    expect((status == "OPTIMAL") == closed, what + f"the status is {status} at the gap {result.gap:.1e}")
    expect((status == "NO_SOLUTION") == (not np.isfinite(result.objective)), what + f"{status}, {result.objective}")
    if status != "NO_SOLUTION":
        least = optimum.lower - ABOVE * scale_of(optimum)
        expect(result.objective >= least, what + f"the objective {result.objective!r} is below {optimum.lower!r}")
        incumbent_is_real(trial, result)


def infeasible(trial: Trial) -> None:
    """INFEASIBLE, with a conflict that really is one and loses that when any of its members goes."""
    result = trial.run()
    expect(result.status.name == "INFEASIBLE", f"{result.status.name} where no selection is allowed")
    expect(not np.isfinite(result.objective), f"an objective {result.objective!r} where no selection is allowed")
    conflict = json.loads(result.to_json())["conflict"]
    items = conflict_items(trial.case)
    expect(set(conflict) <= set(items), f"the conflict {conflict} names something else than {sorted(items)}")
    expect(len(set(conflict)) == len(conflict) > 0, f"the conflict is {conflict}")
    expect(not allowed_by(trial.case, conflict), f"{conflict} can be satisfied together")
    for name in conflict:
        rest = [other for other in conflict if other != name]
        expect(bool(allowed_by(trial.case, rest)), f"{conflict} is not minimal: {rest} is a conflict already")
    if not trial.case.extras and len(items) <= 8:
        for smaller in smaller_conflicts(trial.case, len(conflict)):
            raise AssertionError(f"{conflict} is not smallest: {smaller} is a conflict too")


CHECKS: Mapping[str, Sequence[Callable[[Trial], None]]] = {
    "feasible": (solved_exactly, stopped_early),
    "infeasible": (infeasible,),
}


def conflict_items(case: Case) -> list[str]:
    """The names that a conflict may consist of."""
    forced = [f"forced_in[{name}]" for name in case.forced_in] + [f"forced_out[{name}]" for name in case.forced_out]
    return [row.name for row in case.rows] + ([] if case.M is None else ["cardinality"]) + forced


def allowed_by(case: Case, items: Sequence[str]) -> list[Support]:
    """The supports that some of a case's conditions allow."""
    return oracles.allowed_supports(
        case.names,
        case.M if "cardinality" in items else None,
        [row for row in case.rows if row.name in items],
        [name for name in case.forced_in if f"forced_in[{name}]" in items],
        [name for name in case.forced_out if f"forced_out[{name}]" in items],
        case.extras,
    )


def smaller_conflicts(case: Case, size: int) -> Iterator[tuple[str, ...]]:
    """Sets of fewer than `size` conditions without a common support (extra variables apart)."""
    names = conflict_items(case)
    allowed = {name: frozenset(allowed_by(case, [name])) for name in names}
    for fewer in range(1, size):
        for items in itertools.combinations(names, fewer):
            if not frozenset.intersection(*(allowed[name] for name in items)):
                yield items


def check(case: Case, driver: Driver, solve: Solve) -> str:
    """Put one driver through one case, with a loss that the driver carries.

    Returns
    -------
    str
        ``feasible`` or ``infeasible``.

    Raises
    ------
    AssertionError
        With what is wrong.
    """
    kind = "feasible" if case.allowed else "infeasible"
    if case.loss not in driver.losses:
        case = replace(case, loss=driver.losses[0])
    trial = Trial(case, driver, solve)
    for one in CHECKS[kind]:
        one(trial)
    return kind


def describe(case: Case | AtomCase) -> str:
    """A case in one line."""
    n, p = case.X.shape
    return f"n={n} p={p} M={case.M} C={case.C:.6g} rows={len(case.rows)}: " + ", ".join(case.tags)


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.differential", description=__doc__)
    parser.add_argument("--count", type=int, help="how many problems (default: as many as the seconds allow)")
    parser.add_argument("--seconds", type=float, help="how long to go on (default 60 without --count)")
    parser.add_argument("--seed", type=int, default=1, help="the first problem (default 1)")
    parser.add_argument("--case", type=int, help="only this problem")
    known = sorted({*DRIVERS, *campaign.DRIVERS})
    parser.add_argument("--driver", choices=known, action="append", help="by default branch and gbd; of draws all")
    parser.add_argument("--cases", choices=sorted([*CASES, "draws"]), default="draws", help="what is drawn (draws)")
    parser.add_argument("--keep-going", action="store_true", help="collect failures instead of stopping at the first")
    parser.add_argument("--neighbours", action="store_true", help="of draws: CVXPY, Pyomo and HiGHS solve in between")
    parser.add_argument("--failures", type=int, default=200, help="of draws: so many are printed (default 200)")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None, solve: Solve | None = None) -> int:
    """Run the test; see the module.

    Parameters
    ----------
    argv : sequence of str, optional
        Command-line arguments.
    solve : callable, optional
        What to test in place of `mipfs.solve`.

    Returns
    -------
    int
        0 when all passed, 1 otherwise.
    """
    arguments = _arguments(argv)
    if arguments.count is None and arguments.seconds is None:
        arguments.seconds = 60.0
    if solve is None:
        from mipfs.drivers import solve as solve_problem

        solve = solve_problem
    if arguments.cases == "draws":
        return campaign.main(arguments, solve)
    drivers = [DRIVERS[name] for name in arguments.driver or ["branch", "gbd"]]
    seeds = itertools.count(arguments.seed) if arguments.case is None else iter([arguments.case])
    seeds = seeds if arguments.count is None else itertools.islice(seeds, arguments.count)
    seconds = math.inf if arguments.seconds is None else arguments.seconds
    until, kinds, passed, failed = time.monotonic() + seconds, Counter[str](), 0, 0
    for seed in seeds:
        if time.monotonic() > until:
            break
        case = CASES[arguments.cases](seed)
        for driver in drivers:
            if arguments.case is None and np.random.default_rng(seed).random() >= driver.share:
                continue
            try:
                put: Callable[..., str] = atom_cases.check if arguments.cases == "atoms" else check
                kinds.update({put(case, driver, solve), driver.name, *case.tags})
                passed += 1
            except Exception as error:  # whatever went wrong is a failure of this case, to be named and repeated
                failed += 1
                if not isinstance(error, AssertionError):
                    traceback.print_exc(limit=-3, file=sys.stdout)
                what = f"{type(error).__name__}: {error}"
                again = f"--cases {arguments.cases} --case {seed} --driver {driver.name}"
                print(f"FAILED case {seed} ({describe(case)})\n  {what}")
                print(f"  again: python -m tests.differential {again}", flush=True)
        if failed and not arguments.keep_going:
            break
    print(", ".join(f"{kind}: {count}" for kind, count in kinds.most_common()))
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
