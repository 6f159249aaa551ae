"""What do other people's solvers make of the declared models: who reads them, who is right, and how long it takes?

python benchmarks/declared_solvers.py            # writes reports/declared_solvers.md
pip install pyscipopt casadi                     # SCIP and Bonmin, which are no dependencies of this package

FSP-M as `mipfs.models` declares it, given to the solvers of Pyomo and CVXPY, and to the drivers of this package.
MindtPy and GDPopt come with Pyomo; MindtPy asks for an NLP solver (ipopt, GAMS or BARON), GDPopt's LOA and RIC for one
that gives dual values. GDPopt's LBB hands a model without disjunctions to its MINLP solver as it stands. A value is
right where it is the proven optimum of `branch` at a gap of 1e-6 to within 1e-4 of it; one below it is of a point that
violates its rows, by as much as the solver allows. Bonmin, which CasADi carries, reads the .nl file that Pyomo writes.

Sparse logistic models as Liu, Shafiee and Lodi make theirs (ICML 2025), of our own draws: Gaussian columns with
correlation 1/2 to the power of their distance, ten weights of 1, evenly spaced, labels by the logistic model, no
intercept, M = 10, C = 1/2 (a ridge of weight 1), and a box on every weight, whose size is ours, or none. A value is
right where it is that of `branch`; the gap is that of the bound that is proven.
"""

from __future__ import annotations

import logging
import os
import platform
import resource
import tempfile
import warnings
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pyomo.environ as pyo
from exact_parts.markdown import DASH, table
from real_parts.problems import N_TRUE, peers
from threadpoolctl import threadpool_limits

import mipfs
from mipfs import models
from mipfs.data.instance import Instance
from mipfs.generators import aytug_one

ROOT = Path(__file__).resolve().parents[1]
LIMIT = 60.0
"""CPU seconds of SCIP, and wall seconds of GDPopt and MindtPy."""
CPU = {"timing/clocktype": 1, "limits/time": LIMIT}
"""SCIP counts CPU seconds, which other work does not shorten."""
RIGHT, SMALL = 1e-4, 100
"""Relative; and the rows of the problems on which every loss is tried."""
LOSSES = ("hinge", "squared-hinge")
BOX = 2.0
SMALL_SIZE, SIZES, LARGE_LIMIT = 50, (50, 1000, 2000), 40.0
"""Samples, and as many features: all who read the logistic model are given the first, `branch` all, for as many wall
seconds."""
SUBSOLVERS = {"mip_solver": "appsi_highs", "nlp_solver": "scip_direct", "minlp_solver": "scip_direct"}
MINLP = {"minlp_solver_args": {"options": CPU}}
SCIP = "scip_direct"
Solve = Callable[[Instance, dict[str, Any]], tuple[float, str]]
"""Takes data and parameters of FSP-M; gives the objective of what the solver left in the model, and its word for it."""


def problems() -> dict[str, tuple[Instance, dict[str, Any]]]:
    """A made problem and one of the repository's, each small enough for all."""
    made = Instance.from_arrays(*aytug_one(60, 8, 3, 1)["train"])
    wdbc = mipfs.read(ROOT / "instances" / "wdbc.svm", scale="standard")
    return {"made 60 × 8": (made, {"M": 3, "C": 4.0}), "wdbc 569 × 30": (wdbc, {"M": 4, "C": 0.1})}


def by_pyomo(name: str, **options: Any) -> Solve:
    """A solver of Pyomo on the model that `models.fsp_m` declares."""

    def solve(data: Instance, params: dict[str, Any]) -> tuple[float, str]:
        model = models.fsp_m(data, **params)
        found = pyo.SolverFactory(name).solve(model, **options)
        return float(pyo.value(model.objective)), str(found.solver.termination_condition)

    return solve


def by_cvxpy(name: str, **options: Any) -> Solve:
    """A solver of CVXPY on the mixed-integer program of `models.big_m`."""

    def solve(data: Instance, params: dict[str, Any]) -> tuple[float, str]:
        import cvxpy as cp

        program = models.big_m(data, binary=True, **params).cvxpy
        bare = cp.Problem(program.objective, program.constraints)
        bare.solve(solver=name, **options)
        return float(bare.value), str(bare.status)

    return solve


def by_bonmin(data: Instance, params: dict[str, Any]) -> tuple[float, str]:
    """Bonmin of CasADi on the .nl file of the model that `models.fsp_m` declares."""
    casadi = import_module("casadi")
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "model.nl")
        models.fsp_m(data, **params).write(path, format="nl")
        read = casadi.NlpBuilder()
        read.import_nl(path, {})
    program = {"x": casadi.vertcat(*read.x), "f": read.f, "g": casadi.vertcat(*read.g)}
    quiet = {"time_limit": LIMIT, "bb_log_level": 0, "nlp_log_level": 0}
    options = {"discrete": list(read.discrete), "print_time": False, "bonmin": quiet}
    solver = casadi.nlpsol("solver", "bonmin", program, options)
    found = solver(x0=read.x_init, lbx=read.x_lb, ubx=read.x_ub, lbg=read.g_lb, ubg=read.g_ub)
    return float(found["f"]), str(solver.stats()["return_status"]).lower()


def by_driver(name: str) -> Solve:
    """A driver of this package, on the same declared model."""

    def solve(data: Instance, params: dict[str, Any]) -> tuple[float, str]:
        options = {"threads": 1} if name == "branch" else {}
        result = mipfs.solve(models.fsp_m(data, **params), name, **options)
        return result.objective, f"{result.status.name.lower()}, gap {result.gap:.0e}"

    return solve


SOLVERS: dict[str, Solve] = {
    "mipfs, branch": by_driver("branch"),
    "mipfs, gbd": by_driver("gbd"),
    "mipfs, monolithic (SCIP)": by_driver("monolithic"),
    "Pyomo, SCIP": by_pyomo(SCIP, options=CPU),
    "Pyomo, HiGHS": by_pyomo("appsi_highs"),
    **{
        f"Pyomo, GDPopt {name}": by_pyomo("gdpopt", algorithm=name, **SUBSOLVERS, **MINLP)
        for name in ("LBB", "LOA", "RIC", "enumerate")
    },
    **{
        f"Pyomo, MindtPy {name}": by_pyomo("mindtpy", strategy=name, mip_solver="appsi_highs", time_limit=LIMIT)
        for name in ("OA", "ECP", "GOA")
    },
    "CasADi, Bonmin": by_bonmin,
    "CVXPY, SCIP on big-M": by_cvxpy("SCIP", scip_params=CPU),
    "CVXPY, HiGHS on big-M": by_cvxpy("HIGHS"),
}


def cpu_seconds() -> float:
    """Of this process and of those that it ran."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def judge(solve: Solve, data: Instance, params: dict[str, Any], best: float) -> list[str]:
    """Whether the model is read, whether the value is right, and the CPU seconds."""
    begin = cpu_seconds()
    try:
        value, word = solve(data, params)
    except Exception as error:  # whatever a package refuses is what is reported
        return [
            f"{type(error).__name__}: {str(error).strip().splitlines()[0].rstrip('.')}".replace("|", "/"),
            DASH,
            DASH,
        ]
    off = value / best - 1.0
    return [word, "right" if abs(off) <= RIGHT else f"{off:+.1e}", f"{cpu_seconds() - begin:.2f}"]


def lines_of(loss: str) -> list[list[str]]:
    """All solvers on all problems of one loss."""
    lines = []
    for title, (data, params) in problems().items():
        if loss != LOSSES[0] and data.n_samples > SMALL:
            continue
        asked = {**params, "loss": loss}
        best = mipfs.solve(mipfs.Problem(data, **asked), gap=1e-6).objective
        for name, solve in SOLVERS.items():
            lines.append([title, loss, name, *judge(solve, data, asked, best)])
            print(*lines[-1], sep=" | ", flush=True)
    return lines


def by_branch(data: Instance, asked: dict[str, Any]) -> mipfs.Result:
    """What `branch` finds and proves in its time."""
    return mipfs.solve(mipfs.Problem(data, **asked), "branch", threads=1, time_limit=LARGE_LIMIT)


def sparse_logistic_lines() -> list[list[str]]:
    """Who solves sparse logistic models with as many features as samples."""
    lines = []
    for n, has_box in [(n, has_box) for n in SIZES for has_box in (False, True)]:
        data = Instance.from_arrays(*peers(n, n, 1, None))
        box = {"weight_bounds": dict.fromkeys(data.feature_names, (-BOX, BOX))} if has_box else {}
        asked = {"M": N_TRUE, "C": 0.5, "loss": "logistic", "bias": False, **box}
        by_branch(data, {**asked, "M": 2})  # what is compiled is there
        title = [f"{n:,}", f"±{BOX:g}" if has_box else DASH]
        begin = cpu_seconds()
        found = by_branch(data, asked)
        said = f"{found.status.name.lower()}, gap {found.gap:.1e}, {found.counters['nodes']:,} nodes"
        lines.append([*title, "mipfs, branch", said, f"{found.objective:.6g}", f"{cpu_seconds() - begin:.2f}"])
        print(*lines[-1], sep=" | ", flush=True)
        for name in ("Pyomo, SCIP", "CasADi, Bonmin") if n == SMALL_SIZE else ():
            lines.append([*title, name, *judge(SOLVERS[name], data, asked, found.objective)])
            print(*lines[-1], sep=" | ", flush=True)
    return lines


def list_versions() -> str:
    """Of the packages that had a part."""
    found = [f"mipfs {mipfs.__version__}"]  # that of an installation may be older than the checkout
    for name in ("pyomo", "cvxpy", "pyscipopt", "highspy", "casadi"):
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            found.append(f"{name} not installed")
    return ", ".join(found)


def report() -> str:
    """The page."""
    lines = [line for loss in LOSSES for line in lines_of(loss)]
    head = ["problem", "loss", "solver", "what it says", "value", "CPU s"]
    about, made = (__doc__ or "").split("\n\n", 2)[2].strip().rsplit("\n\n", 1)
    wide = table(["n = p", "box", "solver", "what it says", "value", "CPU s"], sparse_logistic_lines())
    return (
        "# Other people's solvers on the declared models\n\nMade by `python benchmarks/declared_solvers.py`.\n\n"
        f"{about}\n\nCPU seconds of one call of one thread, with the model's building; SCIP stops after {LIMIT:g} of "
        f"them.\n\n{table(head, lines)}\n\n## Sparse logistic models\n\n{made}\n\n{wide}\n\n"
        f"Python {platform.python_version()}; {list_versions()}.\n"
    )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    logging.disable(logging.ERROR)
    os.environ["OMP_NUM_THREADS"] = "1"
    with threadpool_limits(1):
        page = report()
    (ROOT / "reports" / "declared_solvers.md").write_text(page, encoding="utf-8")
