"""Whatever a public function is given, it does its work or raises a `MipfsError`, no exception of Python's own."""

from __future__ import annotations

import inspect
import random
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import mipfs
from mipfs import formulation, models
from mipfs.convert import convert
from mipfs.data.instance import Instance
from mipfs.errors import MipfsError, UsageError
from mipfs.formulation.program import Formulation
from mipfs.problem import Problem
from mipfs.result.result import Result

SAMPLE, ALL = 250, 2000
LEFT_OUT = {"self", "cls", "args", "kwargs", "options", "params", "client", "jobs", "verbose", "checkpoint"}
"""Parameters that take anything, or that would start processes."""


def wrong_values(data: Instance) -> list[Any]:
    """Values of many types, of which most are wrong for most parameters."""
    return [
        *(None, True, 0, 3, -1, 2.5, float("nan"), float("inf"), 1j, 10**400, "x1", "", "nothing", b"bytes"),
        *([], [[]], [1, "a"], [None], (), {}, {"x1": 1.0}, {3: 4}, set(), range(3), object(), lambda *given: []),
        *(np.array(["a"]), np.zeros((2, 3)), np.float64(1.5), np.array(3), np.array([None, 1]), np.datetime64("2020")),
        *(sparse.eye_array(3).tocsr(), pd.DataFrame({"a": [1, 2], "b": ["c", "d"]}), pd.Series([1.0]), data, iter(())),
    ]


def targets() -> list[tuple[str, Callable[..., Any], dict[str, Any]]]:
    """Name, function and arguments with which it works."""
    r = np.random.default_rng(0)
    X = r.standard_normal((16, 4))
    y = np.where(X[:, 0] + 0.3 * r.standard_normal(16) > 0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    data = Instance.from_arrays(X, y)
    problem = Problem(data, M=2, C=1.0)
    result = mipfs.solve(problem)
    logistic = mipfs.solve(Problem(data, M=2, loss="logistic"))
    program = models.nmmkl(data, M=2)
    assert isinstance(program, Formulation)
    fgm = Problem(data, loss="squared-hinge", bias=False, M=2)
    return [
        ("Problem", Problem, {"data": data, "M": 2, "C": 1.0}),
        ("Problem of F1", Problem, {"data": data, "M": 2, "loss": "structural", "measure": "f1"}),
        ("with_rows", problem.with_rows, {"A": [[1, 1, 0, 0]], "lb": 0, "ub": 1}),
        ("strengthened", problem.strengthened, {"family": lambda rows: ()}),
        ("solve", mipfs.solve, {"model": problem}),
        ("solve by gbd", mipfs.solve, {"model": problem, "driver": "gbd"}),
        ("solve by kelley", mipfs.solve, {"model": fgm, "driver": "kelley"}),
        ("verify", mipfs.verify, {"result": result, "data": data}),
        ("path", mipfs.path, {"model": problem, "M": [1, 2]}),
        ("compare", mipfs.compare, {"model": problem, "rungs": ["plain"]}),
        ("bench", mipfs.bench, {"data": data, "methods": ["rfe"], "M": [1], "C": [1.0], "folds": 2, "inner": 2}),
        ("read", mipfs.read, {"path": "table.csv"}),
        ("from_arrays", Instance.from_arrays, {"X": X, "y": y}),
        ("fsp_m", models.fsp_m, {"data": data, "M": 2}),
        ("nmmkl", models.nmmkl, {"data": data, "M": 2}),
        ("structural_dual", models.structural_dual, {"data": data, "M": 2, "measure": "f1"}),
        ("with_constraints", program.with_constraints, {"constraints": []}),
        ("problem_of", mipfs.problem_of, {"model": program}),
        ("predict", result.predict, {"X": X}),
        ("decision_function", result.decision_function, {"X": X}),
        ("save", result.save, {"path": "saved.json"}),
        ("load", Result.load, {"path": "saved.json"}),
        ("load_into", result.load_into, {"model": program}),
        ("make", mipfs.atoms.make, {"name": "features", "data": data}),
        ("predict_proba", logistic.predict_proba, {"X": X}),
        ("score", result.score, {"X": X, "y": y}),
        ("evaluate", result.evaluate, {"X": X, "y": y}),
        ("scorecard", mipfs.scorecard, {"result": result, "data": data, "points": 2, "time_limit": 1.0}),
        ("calibrate", mipfs.calibrate, {"model": problem, "result": result, "folds": 2}),
        ("stability", mipfs.stability, {"model": problem, "draws": 3}),
        ("preselect", mipfs.preselect, {"problem": problem, "how": "rfe:2"}),
        ("start", mipfs.start, {"model": problem}),
        ("convert", convert, {"data": "table.csv", "store": "store"}),
        ("read_scorecard", mipfs.read_scorecard, {"path": "card.json"}),
        ("read raw", mipfs.read, {"path": "table.csv", "impute": "median", "types": {"x": "currency"}}),
        ("splines", mipfs.atoms.make, {"name": "splines", "data": data}),
    ]


def options_of(name: str) -> list[str]:
    """Options that a driver takes beside the parameters of `solve`."""
    from mipfs import drivers

    driver = {"solve": "branch", "solve by gbd": "gbd", "solve by kelley": "kelley"}.get(name)
    return [] if driver is None else [*inspect.signature(drivers.get_driver(driver).Options).parameters]


def calls(number: int, seed: int) -> Iterator[tuple[str, Callable[..., Any], dict[str, Any]]]:
    """Calls with one argument, now and then two, of any type."""
    chance = random.Random(seed)
    known = targets()
    data = known[0][2]["data"]
    for _ in range(number):
        name, function, given = chance.choice(known)
        parameters = [*inspect.signature(function).parameters, *options_of(name)]
        names = sorted(set(parameters) - LEFT_OUT)
        picked = chance.sample(names, min(len(names), chance.choice((1, 1, 1, 2))))
        values = {one: chance.choice(wrong_values(data)) for one in picked}
        yield f"{name}({', '.join(f'{k}={v!r}'[:80] for k, v in values.items())})", function, {**given, **values}


def raised(call: Callable[..., Any], given: dict[str, Any]) -> str:
    """The exception of Python's own that a call ends with; "" where there is none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            positional = [
                given.pop(name)
                for name, one in inspect.signature(call).parameters.items()
                if one.kind is one.POSITIONAL_ONLY and name in given
            ]
            call(*positional, **given)
        except MipfsError:
            return ""
        except Exception as error:
            return f"{type(error).__name__}: {error}"
    return ""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "seed"), [(SAMPLE, 1), pytest.param(ALL, 2, marks=pytest.mark.slow)], ids=["sample", "all"]
)
def test_wrong_types_are_errors_of_ours(
    number: int, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("table.csv").write_text("x,colour,label\n1,red,0\n2,blue,1\n3,red,1\n", encoding="utf-8")
    raw = [f"{said} raised {error}" for said, call, given in calls(number, seed) if (error := raised(call, given))]
    assert not raw, "\n".join(raw)


def test_one_name_is_a_list_of_one() -> None:
    data = targets()[0][2]["data"]
    assert Problem(data, M=2, forced_in="x3").forced_in == ("x3",)
    assert Problem(data, M=2, forced_out="x3").forced_out == ("x3",)
    with pytest.raises(UsageError, match="no feature is called 'CRP'"):
        Problem(data, M=2, forced_in="CRP")
    assert mipfs.bench(data, "rfe", [1], C=[1.0], folds=2, inner=2).rows[0].method == "rfe"


def test_one_constraint_is_a_list_of_one() -> None:
    program = models.nmmkl(targets()[0][2]["data"], M=2)
    assert isinstance(program, Formulation)
    one = program.sigma[0] <= 0
    assert len(formulation.compile(program.with_constraints(one)).selection.rows) == 1
    with pytest.raises(UsageError, match="3 is no constraint of CVXPY"):
        program.with_constraints([one, 3])
