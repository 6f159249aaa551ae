"""Formulations by name and from users' files: parameters, errors and the Problem behind each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mipfs
from mipfs import models
from mipfs.data.instance import Instance
from mipfs.errors import RowError, UsageError
from mipfs.formulation import Formulation, compile, load, problem_of, table
from mipfs.problem import Problem


@pytest.fixture
def data() -> Instance:
    rng = np.random.default_rng(0)
    return Instance.from_arrays(rng.normal(size=(8, 3)), [1, -1] * 4)


def write(folder: Path, text: str) -> Path:
    path = folder / "mine.py"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_table_names_what_can_be_loaded() -> None:
    for entry in table():
        loaded = load(entry.name)
        assert loaded.parameters == entry.parameters
        assert loaded.path.name == entry.file
        assert loaded.path.is_file()
        assert loaded.entry is entry


@pytest.mark.parametrize(
    ("name", "params", "wanted"),
    [
        ("fsp-m", {"M": 2, "C": 0.5}, {"M": 2, "C": 0.5}),
        ("fsp-m", {"B": 1, "bias": False}, {"M": 1, "bias": False}),
        ("fsp-lambda", {"lambda": 0.25}, {"lam": 0.25, "M": None}),
        ("fsp-lambda", {"lam": 0.25, "loss": "hinge"}, {"lam": 0.25, "loss": "hinge"}),
    ],
)
def test_parameters_by_the_names_of_the_command_line(
    data: Instance, name: str, params: dict[str, Any], wanted: dict[str, Any]
) -> None:
    problem = load(name)(data, params)
    assert isinstance(problem, Problem)
    assert problem.data is data
    assert {key: getattr(problem, key) for key in wanted} == wanted
    model = load(name).build(data, **{"lam" if k == "lambda" else "M" if k == "B" else k: v for k, v in params.items()})
    attached = problem_of(model)
    assert {key: getattr(attached, key) for key in wanted} == wanted


@pytest.mark.parametrize(
    ("name", "params", "message"),
    [
        ("fsp-m", {"N": 2}, "no parameter 'N'; .*it takes M, C, loss, bias"),
        ("fsp-m", {"M": 2, "lambda": 1}, "no parameter 'lambda'; it takes"),
        ("fsp-m", {"M": 2, "B": 2}, "'B' is another name of 'M'"),
        ("fsp-m", {"B": 2, "M": 2}, "'B' is another name of 'M'"),
        ("fsp-m", {"M": 2, "los": "hinge"}, "did you mean 'loss'"),
        ("fsp-m", {}, "needs M"),
        ("fsp-lambda", {}, "needs a value for lambda"),
        ("fsp-lambda", {"lambda": 1, "M": 2}, "no parameter 'M'; .*it takes lambda, C, loss, bias"),
    ],
)
def test_wrong_parameters(data: Instance, name: str, params: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        load(name)(data, params)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("fsp_m", "did you mean 'fsp-m'"),
        ("FSP-lamda", "did you mean 'fsp-lambda'"),
        ("qqqq", "one of fsp-m, fsp-lambda, fgm, .* or a .py file"),
        ("nowhere/mine.py", "no such file"),
    ],
)
def test_wrong_names(name: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        load(name)


def test_a_users_file(tmp_path: Path, data: Instance) -> None:
    path = write(
        tmp_path,
        """
import pyomo.environ as pyo
import mipfs
from mipfs import models

def build(data, *, M, lam=0.0, share=0.5):
    model = models.fsp_m(data, M=M)
    model.select.more = pyo.Constraint(expr=model.select.sigma["x1"] + model.select.sigma["x2"] >= share)
    return model
""",
    )
    loaded = load(path)
    assert loaded.parameters == ("M", "lambda", "share")
    assert loaded.entry is None
    model = loaded(data, {"M": 2, "lambda": 1.0})
    assert problem_of(model).M == 2
    assert compile(model).rows.names == ("more",)
    with pytest.raises(UsageError, match=r"no parameter 'C'; it takes M, lambda, share"):
        loaded(data, {"M": 2, "C": 1.0})


def test_a_users_file_may_take_anything_and_return_a_problem(tmp_path: Path, data: Instance) -> None:
    path = write(
        tmp_path, "from mipfs import Problem\ndef build(data, **params):\n    return Problem(data, **params)\n"
    )
    assert load(str(path))(data, {"M": 1, "lam": 2.0}).lam == 2.0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def build(data:\n    pass\n", r"mine\.py:1: "),
        ("import nothing_of_that_name\n", r"mine\.py:1: ModuleNotFoundError"),
        ("x = 1\ny = x / 0\n", r"mine\.py:2: ZeroDivisionError: division by zero"),
        ("x = 1\n", r"mine\.py: defines no function build"),
        ("build = 3\n", r"mine\.py: defines no function build"),
        ("def build():\n    pass\n", r"mine\.py: build takes no argument"),
    ],
)
def test_files_that_cannot_be_loaded(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as raised:
        load(write(tmp_path, text))
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("    return data.nothing\n", r"mine\.py:2: AttributeError"),
        ("    raise ValueError('two\\nlines')\n", r"mine\.py:2: ValueError: two lines"),
        ("    return None\n", r"mine\.py: build returned NoneType"),
        (
            "    import pyomo.environ as pyo\n    return pyo.ConcreteModel()\n",
            r"mine\.py: build returned ConcreteModel",
        ),
        ("    import mipfs\n    return mipfs.Problem(data, M=9)\n", "M = 9"),
    ],
)
def test_builds_that_fail(tmp_path: Path, data: Instance, body: str, message: str) -> None:
    loaded = load(write(tmp_path, "def build(data):\n" + body))
    with pytest.raises(UsageError, match=message) as raised:
        loaded(data, {})
    assert "\n" not in str(raised.value)


def test_the_problem_behind_each_kind(data: Instance) -> None:
    problem = Problem(data, M=1)
    assert problem_of(problem) is problem
    assert compile(problem) is problem
    declared = Formulation(problem, None, None, {})
    assert problem_of(declared) is problem
    assert compile(declared) is problem
    model = models.fsp_m(data, M=1)
    model.select.sigma["x2"].fix(0)
    assert problem_of(model).forced_out == ()
    assert compile(model).forced_out == ("x2",)
    model.select.sigma["x2"].fix(0.5, skip_validation=True)
    with pytest.raises(RowError, match="x2"):
        compile(model)
    with pytest.raises(UsageError, match="no formulation is called 'fmg'"):
        mipfs.solve(Problem(data, M=1, formulation="fmg"))
    for other in (data, "fsp-m", None):
        with pytest.raises(UsageError, match="no problem to solve"):
            problem_of(other)


def test_a_formulation_is_one_line() -> None:
    from mipfs import models

    data = Instance.from_arrays(np.random.default_rng(0).normal(size=(8, 3)), [1, -1] * 4)
    line = repr(models.qcqp_relaxation(data, M=2))
    assert line.startswith("<Formulation fgm, ")
    assert "\n" not in line
    assert len(line) < 240
