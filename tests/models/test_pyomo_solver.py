"""`SolverFactory("mipfs")` in both of Pyomo's interfaces, against enumeration and what Pyomo asks of a solver."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
from pyomo.contrib.solver.common.factory import SolverFactory
from pyomo.contrib.solver.common.results import SolutionStatus, TerminationCondition
from pyomo.contrib.solver.common.util import (
    NoDualsError,
    NoFeasibleSolutionError,
    NoOptimalSolutionError,
    NoSolutionError,
)

import mipfs
from mipfs import models
from mipfs.errors import RowError, StartWarning, UsageError
from mipfs.models import benders
from tests.certificate.trees import checked
from tests.formulation.test_charges import NAMES, C, best, data, plus


def made(**given: Any) -> Any:
    model = models.fsp_m(data(), **{"M": 3, "C": C, **given})
    sigma = model.select.sigma
    model.select.u = pyo.Var(domain=pyo.NonNegativeReals)
    model.select.either = pyo.Constraint(expr=sigma["a"] + sigma["b"] + model.select.u <= 1)
    return model


OPTIMUM = best("hinge", True, np.zeros(5), allowed=lambda S: not {0, 1} <= S)


def test_the_newer_interface(tmp_path: Path) -> None:
    model = made()
    results = SolverFactory("mipfs").solve(model, rel_gap=1e-7, time_limit=60)
    assert results.solution_status is SolutionStatus.optimal
    assert results.termination_condition is TerminationCondition.convergenceCriteriaSatisfied
    assert results.incumbent_objective == pytest.approx(OPTIMUM, rel=1e-6)
    assert OPTIMUM * (1 - 1e-6) <= results.objective_bound <= results.incumbent_objective
    assert results.solver_name == "mipfs"
    assert results.solver_version == tuple(int(part) for part in mipfs.__version__.split("."))
    assert results.timing_info.wall_time > 0
    assert pyo.value(model.objective) == pytest.approx(OPTIMUM, rel=1e-6)
    assert model.select.u.value is not None
    result = results.extra_info.result
    assert {j for j in NAMES if model.select.sigma[j].value == 1} == set(result.selected)
    assert checked(result, data(), tmp_path).accepted


def test_the_older_interface_prints_and_takes_options() -> None:
    model = made()
    solver = pyo.SolverFactory("mipfs")
    assert solver.available()
    printed = io.StringIO()
    results = solver.solve(model, tee=printed, timelimit=60, options={"gap": 1e-7, "driver": "gbd"})
    assert results.solver.termination_condition == pyo.TerminationCondition.optimal
    assert results.problem.upper_bound == pytest.approx(OPTIMUM, rel=1e-6)
    assert results.problem.lower_bound <= results.problem.upper_bound
    pyo.assert_optimal_termination(results)
    assert "incumbent" in printed.getvalue()
    assert pyo.value(model.objective) == pytest.approx(OPTIMUM, rel=1e-6)
    solver.options["gap"] = 1e-6
    assert solver.solve(model).problem.upper_bound == pytest.approx(OPTIMUM, rel=1e-5)


def test_edits_of_the_objective_are_solved() -> None:
    model = models.fsp_m(data(), M=3, C=C)
    plus(model)
    results = SolverFactory("mipfs").solve(model, rel_gap=1e-7)
    assert results.incumbent_objective == pytest.approx(best("hinge", True, [0.9, 0.1, 0.0, 2.5, 0.4]), rel=1e-6)
    assert pyo.value(model.objective) == pytest.approx(results.incumbent_objective, rel=1e-9)


def test_nothing_is_loaded_unless_it_is_asked_for() -> None:
    model = made()
    results = SolverFactory("mipfs").solve(model, load_solutions=False)
    assert all(v.value is None for v in model.select.sigma.values())
    loader = results.solution_loader
    assert (loader.get_number_of_solutions(), loader.get_solution_ids()) == (1, [None])
    values = loader.get_vars()
    assert values[model.select.sigma["c"]] in (0.0, 1.0)
    assert all(v.value is None for v in model.select.sigma.values())
    only = loader.get_vars([model.svm.b])
    assert list(only) == [model.svm.b]
    for duals in (loader.get_duals, loader.get_reduced_costs):
        with pytest.raises(Exception, match="a mixed-integer model has no"):
            duals()
    model.dual = pyo.Suffix(direction=pyo.Suffix.IMPORT)
    with pytest.raises(NoDualsError):
        loader.load_solution()
    model.del_component("dual")
    loader.load_vars()
    assert pyo.value(model.objective) == pytest.approx(OPTIMUM, rel=2e-4)


def test_limits_and_infeasible_rows_in_the_words_of_pyomo() -> None:
    model = made()
    solver = SolverFactory("mipfs")
    with pytest.raises(NoOptimalSolutionError):
        solver.solve(model, time_limit=0.0, rel_gap=0.0)
    stopped = solver.solve(model, time_limit=0.0, rel_gap=0.0, **_lenient())
    assert stopped.termination_condition is TerminationCondition.maxTimeLimit
    assert stopped.solution_status in (SolutionStatus.feasible, SolutionStatus.noSolution)
    model.select.many = pyo.Constraint(expr=sum(model.select.sigma.values()) >= 4)
    found = solver.solve(model, **_lenient())
    assert found.termination_condition is TerminationCondition.provenInfeasible
    assert found.solution_status is SolutionStatus.noSolution
    assert found.incumbent_objective is None
    assert set(found.extra_info.result.conflict) >= {"many"}
    with pytest.raises(NoSolutionError):
        found.solution_loader.get_vars()
    with pytest.raises(NoFeasibleSolutionError):
        solver.solve(model, raise_exception_on_nonoptimal_result=False)
    legacy = pyo.SolverFactory("mipfs").solve(model, load_solutions=False)
    assert legacy.solver.termination_condition == pyo.TerminationCondition.infeasible


def _lenient() -> dict[str, bool]:
    return {"load_solutions": False, "raise_exception_on_nonoptimal_result": False}


def test_what_it_cannot_honour_is_refused_in_one_line() -> None:
    solver = SolverFactory("mipfs")
    changed = made()
    changed.mine = pyo.Constraint(expr=changed.svm.b >= 0)
    problem = mipfs.problem_of(made())
    for model, options, message in (
        (pyo.ConcreteModel(), {}, "built by mipfs.models"),
        (problem, {}, "takes a Pyomo model that mipfs.models built, not Problem"),
        (benders.rmp(problem), {}, "RMP is only a bound"),
        (made(), {"abs_gap": 0.1}, "no gap here is absolute"),
        (made(), {"rel_gap": 2.0}, "0.02 is 2%"),
        (made(), {"rel_gap": 0.1, "solver_options": {"gap": 0.1}}, "gap is given twice"),
        (made(), {"solver_options": {"mipgap": 0.1}}, "no option 'mipgap'; did you mean 'gap'"),
        (made(), {"solver_options": {"driver": "kelley"}}, "has the exact ones"),
    ):
        with pytest.raises(UsageError, match=message) as raised:
            solver.solve(model, **options)
        assert "\n" not in str(raised.value)
    with pytest.raises(RowError, match="mine is new"):
        solver.solve(changed)


def test_a_warm_start_from_the_values_of_the_model() -> None:
    model = made()
    for name, s in model.select.sigma.items():
        s.set_value(1.0 if name in ("c", "d") else 1e-9)
    results = SolverFactory("mipfs").solve(model, warm_start=True, rel_gap=1e-7)
    assert results.incumbent_objective == pytest.approx(OPTIMUM, rel=1e-6)
    for s in model.select.sigma.values():
        s.set_value(1.0)
    with pytest.warns(StartWarning, match="the rows do not allow"):
        again = SolverFactory("mipfs").solve(model, warm_start=True, rel_gap=1e-7)
    assert again.incumbent_objective == pytest.approx(OPTIMUM, rel=1e-6)


@pytest.mark.slow
def test_it_is_found_once_a_model_is_built_and_import_mipfs_stays_light() -> None:
    program = (
        "import sys, mipfs\n"
        "assert 'pyomo' not in sys.modules\n"
        "import mipfs.models\n"
        "assert 'pyomo' not in sys.modules\n"
        "import numpy as np\n"
        "data = mipfs.Instance.from_arrays(np.eye(4), [1, -1, 1, -1])\n"
        "model = mipfs.models.fsp_m(data, M=1)\n"
        "import pyomo.environ as pyo\n"
        "assert pyo.SolverFactory('mipfs').available()\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)
    program = "import pyomo.environ as pyo\nfrom mipfs import models\nassert pyo.SolverFactory('mipfs').available()\n"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)
