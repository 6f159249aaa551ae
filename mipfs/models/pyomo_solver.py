"""``pyomo.environ.SolverFactory("mipfs")``: the models of this package solved as any Pyomo model is.

    model = models.fsp_m(data, M=5)
    results = pyomo.environ.SolverFactory("mipfs").solve(model, timelimit=60, options={"gap": 1e-6})

It is a solver of Pyomo's newer interface (`pyomo.contrib.solver`), which offers it through the older one as well. It
takes models that `mipfs.models` built, with whatever `mipfs.solve` takes of changes to them; any other is refused, for
nothing in it says which data it is about. Only exact drivers are offered, whose bound is that of the model.
"""

from __future__ import annotations

import datetime
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from pyomo.common.collections import ComponentMap
from pyomo.common.config import ConfigValue
from pyomo.contrib.solver.common.base import Availability, SolverBase
from pyomo.contrib.solver.common.config import BranchAndBoundConfig
from pyomo.contrib.solver.common.factory import SolverFactory
from pyomo.contrib.solver.common.results import Results, SolutionStatus, TerminationCondition
from pyomo.contrib.solver.common.solution_loader import SolutionLoader
from pyomo.contrib.solver.common.util import (
    NoDualsError,
    NoFeasibleSolutionError,
    NoOptimalSolutionError,
    NoReducedCostsError,
    NoSolutionError,
)

from mipfs.errors import UsageError
from mipfs.formulation import compile as compile_model
from mipfs.formulation import problem_of
from mipfs.formulation.start_values import support_of
from mipfs.problem import Problem
from mipfs.result.result import Result, Status, StopReason
from mipfs.run.live_lines import LiveLines

NAME = "mipfs"
_CONDITIONS = {
    StopReason.TIME_LIMIT: TerminationCondition.maxTimeLimit,
    StopReason.ITERATION_LIMIT: TerminationCondition.iterationLimit,
    StopReason.INTERRUPTED: TerminationCondition.interrupted,
    StopReason.MEMORY_LIMIT: TerminationCondition.interrupted,
    StopReason.INFEASIBLE: TerminationCondition.provenInfeasible,
}
"""Why we stopped, in Pyomo's words, which have none for the other reasons."""


class Config(BranchAndBoundConfig):  # type: ignore[misc]
    """Pyomo's options of a branch-and-bound solver, and ``driver`` and ``warm_start``."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        names = ConfigValue(domain=str, default=None, description="The driver; branch by default.")
        self.driver: str | None = self.declare("driver", names)
        begin = ConfigValue(domain=bool, default=False, description="Begin from the values of the variables.")
        self.warm_start: bool = self.declare("warm_start", begin)


class Mipfs(SolverBase):  # type: ignore[misc]
    """The solver that Pyomo finds under the name ``mipfs``.

    ``time_limit`` and ``rel_gap`` are those of `mipfs.solve`, ``solver_options`` (``options`` of the older interface)
    its other options by name, ``tee=True`` prints its progress; ``abs_gap`` is refused, for no gap of ours is absolute.
    ``results.extra_info.result`` is the `mipfs.Result`, with the certificate to save.
    """

    CONFIG = Config()

    def available(self) -> Availability:
        """It always is."""
        return Availability.FullLicense

    def version(self) -> tuple[int, ...]:
        """That of the package."""
        return tuple(int(part) for part in re.findall(r"\d+", sys.modules["mipfs"].__version__)[:3])

    def solve(self, model: Any, **kwds: Any) -> Results:
        """Solve a model of `mipfs.models`.

        Parameters
        ----------
        model : Pyomo model that `mipfs.models` built
        **kwds : options of `CONFIG`, for this call

        Returns
        -------
        pyomo.contrib.solver.common.results.Results

        Raises
        ------
        UsageError, RowError
            Another model, or what `mipfs.solve` refuses.
        NoOptimalSolutionError, NoFeasibleSolutionError
            Pyomo's, where ``raise_exception_on_nonoptimal_result`` or ``load_solutions`` asks for more than was found.
        """
        from mipfs.drivers import going_on, last, solve

        config = self.config(value=kwds, preserve_implicit=True)
        began = datetime.datetime.now(datetime.UTC)
        problem = _declared_problem(model)
        options = _solve_options(config, model, problem)
        lines = [LiveLines(stream) for stream in config.tee]
        try:
            asked = options.pop("warm", None)
            before = asked
            if asked in (None, True):
                is_able = options["driver"] in (None, *going_on())
                before = last.usable_last_result(model, problem) if is_able else None
            result = solve(problem, observers=lines, warm=before, **options)
        finally:
            for one in lines:
                one.flush()
        if asked is not False:
            last.keep(model, result)
        results = self._pyomo_results(model, problem, result, config)
        results.timing_info.start_timestamp = began
        results.timing_info.wall_time = (datetime.datetime.now(datetime.UTC) - began).total_seconds()
        if result.status is not Status.OPTIMAL and config.raise_exception_on_nonoptimal_result:
            raise NoOptimalSolutionError()
        if config.load_solutions:
            if not result.has_classifier:
                raise NoFeasibleSolutionError()
            results.solution_loader.load_solution()
        return results

    def _pyomo_results(self, model: Any, problem: Problem, result: Result, config: Any) -> Results:
        """What was found, in Pyomo's words."""
        results = Results()
        results.solution_loader = Loader(model, problem, result)
        results.solver_name, results.solver_version = NAME, self.version()
        results.solver_config, results.solver_log = config, result.summary()
        optimal = result.status is Status.OPTIMAL
        found = SolutionStatus.optimal if optimal else SolutionStatus.feasible
        results.solution_status = found if result.has_classifier else SolutionStatus.noSolution
        if optimal:
            results.termination_condition = TerminationCondition.convergenceCriteriaSatisfied
        elif result.status is Status.NUMERICAL:
            results.termination_condition = TerminationCondition.error
        else:
            results.termination_condition = _CONDITIONS.get(result.stop_reason, TerminationCondition.unknown)
        results.incumbent_objective = result.objective if result.has_classifier else None
        results.objective_bound = result.bound
        results.extra_info.add("result", ConfigValue(default=result))
        results.extra_info.add("stop_reason", ConfigValue(default=result.stop_reason.name))
        results.extra_info.add("bound_source", ConfigValue(default=result.bound_source))
        return results


class Loader(SolutionLoader):  # type: ignore[misc]
    """The incumbent of a result, for the variables of its model."""

    def __init__(self, model: Any, problem: Problem, result: Result) -> None:
        self._pyomo_model = model
        self._problem = problem
        self._result = result

    def get_number_of_solutions(self) -> int:
        """One, or none."""
        return int(self._result.has_classifier)

    def get_vars(self, vars_to_load: Sequence[Any] | None = None) -> Mapping[Any, float]:
        """The values of the variables that are not fixed, or of those that are asked for."""
        from mipfs.result.loaded import point_of

        if not self._result.has_classifier:
            raise NoSolutionError()
        from mipfs.formulation.pyomo_values import values_of  # which may be what imports Pyomo, and with it this file

        found: Mapping[Any, float] = ComponentMap(values_of(self._pyomo_model, point_of(self._result, self._problem)))
        if vars_to_load is None:
            return found
        asked: Mapping[Any, float] = ComponentMap((v, found.get(v, v.value)) for v in vars_to_load)
        return asked

    def get_duals(self, cons_to_load: Sequence[Any] | None = None) -> NoReturn:
        """A mixed-integer model has none."""
        raise NoDualsError("a mixed-integer model has no duals")

    def get_reduced_costs(self, vars_to_load: Sequence[Any] | None = None) -> NoReturn:
        """A mixed-integer model has none."""
        raise NoReducedCostsError("a mixed-integer model has no reduced costs")


def _declared_problem(model: Any) -> Problem:
    """The problem that a model stands for.

    Raises
    ------
    UsageError
        It is none of this package, or the master of Benders' decomposition, whose objective is another.
    """
    if isinstance(model, Problem) or not hasattr(model, "component"):
        kind = type(model).__name__
        raise UsageError(f"SolverFactory('mipfs') takes a Pyomo model that mipfs.models built, not {kind}")
    problem_of(model)
    if model.component("svm") is None:
        raise UsageError(
            "RMP is only a bound on the problem; solve it with HiGHS, or the problem by mipfs.solve(model)"
        )
    return compile_model(model)


def _solve_options(config: Any, model: Any, problem: Problem) -> dict[str, Any]:
    """The options of `mipfs.solve` that a configuration asks for.

    Raises
    ------
    UsageError
        An absolute gap, or an option in two places.
    """
    from mipfs.drivers import exact_drivers, is_exact

    if config.abs_gap is not None:
        raise UsageError("abs_gap: no gap here is absolute; give rel_gap, (objective - bound)/|objective|")
    options = dict(config.solver_options.value())
    for ours, theirs in (("time_limit", "time_limit"), ("gap", "rel_gap"), ("threads", "threads")):
        value = getattr(config, theirs)
        if value is not None and ours in options:
            raise UsageError(f"{ours} is given twice: as {theirs} and in solver_options")
        if value is not None:
            options[ours] = value
    begins = options.pop("warm_start", config.warm_start)
    start = support_of(model, problem) if begins else None
    if start is not None:
        options["start"] = start
    options.setdefault("driver", config.driver)
    if options["driver"] is not None and not is_exact(options["driver"]):
        known = ", ".join(exact_drivers())
        raise UsageError(f"driver = {options['driver']!r}: SolverFactory('mipfs') has the exact ones, {known}")
    return options


def register() -> None:
    """Enter the solver under its name in both of Pyomo's factories."""
    SolverFactory.register(name=NAME, doc="Feature selection of SVMs, solved to proven optimality")(Mipfs)


register()
