"""Every declared model as a file: read by SCIP (or HiGHS) and solved to the value that the model has here."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import cvxpy
import numpy as np
import pyomo.environ as pyo
import pytest

import mipfs
from mipfs import models
from mipfs.atoms.features import Features
from mipfs.atoms.groups import Groups
from mipfs.atoms.tree import Tree
from mipfs.cli import main
from mipfs.cli.written import write
from mipfs.data.instance import Instance, Row
from mipfs.errors import UsageError
from mipfs.formulation import Formulation, algebraic_model
from mipfs.models import structural_dual
from mipfs.problem import Problem
from mipfs.solvers import cones, highs

cp: Any = cvxpy
scip = pytest.importorskip("pyscipopt")
POOL = [[0, 1], [2, 3], [1, 2]]
LOOSE = 1e-4
"""SCIP's tolerance of 1e-9 in w_j² ≤ σ_j t_j lets w_j be 1e-4 where σ_j = 0."""
INSTANCES = Path(__file__).resolve().parents[1] / "instances"


def data(p: int = 4, **more: Any) -> Instance:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, p))
    y = np.where(X[:, 0] + X[:, 1] + 0.7 * rng.normal(size=12) > 0, 1.0, -1.0)
    return Instance.from_arrays(X, y, **more)


def solved_by_scip(path: Path) -> float:
    model = scip.Model()
    model.hideOutput()
    model.readProblem(str(path))
    for name, value in {"limits/time": 30.0, "numerics/feastol": 1e-9, "limits/gap": 1e-7}.items():
        model.setParam(name, value)
    model.optimize()
    assert model.getStatus() in ("optimal", "gaplimit")
    return float(model.getObjVal())


def solved_by_highs(path: Path) -> float:
    h = highs.make_silent_highs()
    h.readModel(str(path))
    h.run()
    return float(h.getInfo().objective_function_value)


BUDGET = (Row("budget", {"x1": 2.0, "x2": 1.0, "x3": 1.0}, -np.inf, 2.0),)
CONIC: dict[str, Callable[[str], Formulation]] = {
    "fgm": lambda loss: models.qcqp_relaxation(data(), M=2, loss=loss),
    "fgm over a hull": lambda loss: models.qcqp_relaxation(data(rows=BUDGET), M=2, loss=loss),
    "boolean": lambda loss: models.boolean_relaxation(
        data(rows=BUDGET, penalty={"x1": 0.1}), M=2, loss=loss, bias=True
    ),
    "nmmkl": lambda loss: models.nmmkl(data(rows=BUDGET), M=2, loss=loss),
    "big-m": lambda loss: models.big_m(data(), M=2, loss=loss),
    "reduced-mkl": lambda loss: models.reduced_mkl(data(), pool=POOL, loss=loss, bias=True),
    "reduced-mkl primal": lambda loss: models.reduced_mkl(data(), pool=POOL, loss=loss, form="primal"),
    "qcqp-ssvm": lambda loss: models.qcqp_ssvm(data(), M=2, loss=loss),
    "plain-svm": lambda loss: models.plain_svm(data(), loss=loss, bias=False),
}


@pytest.mark.sampled(41)
@pytest.mark.parametrize("suffix", [".lp", ".mps", ".nl"])
@pytest.mark.parametrize("loss", ["hinge", "squared-hinge", "logistic"])
@pytest.mark.parametrize("name", CONIC)
def test_conic_programs(name: str, loss: str, suffix: str, tmp_path: Path) -> None:
    declared, path = CONIC[name](loss), tmp_path / f"model{suffix}"
    if loss == "logistic" and suffix != ".nl":
        with pytest.raises(UsageError, match=r"write it as \.nl"):
            write(declared, path)
        assert not path.exists()
        return
    write(declared, path)
    assert cones.solve(declared.cvxpy) == "solved"
    assert solved_by_scip(path) == pytest.approx(declared.cvxpy.value, rel=2e-5)


@pytest.mark.parametrize("suffix", [".lp", ".mps"])
def test_the_one_norm_svm_by_highs(suffix: str, tmp_path: Path) -> None:
    declared, path = models.onsvm(data()), tmp_path / f"model{suffix}"
    write(declared, path)
    assert cones.solve(declared.cvxpy) == "solved"
    assert solved_by_highs(path) == pytest.approx(declared.cvxpy.value, rel=1e-7)
    assert solved_by_scip(path) == pytest.approx(declared.cvxpy.value, rel=1e-7)


def test_a_semidefinite_program_by_its_factor(tmp_path: Path) -> None:
    """SCIP finds its value; to prove it takes minutes even for two features."""
    declared, path = models.sdp_ssvm(data(2), M=1), tmp_path / "model.nl"
    write(declared, path)
    assert cones.solve(declared.cvxpy) == "solved"
    model = scip.Model()
    model.hideOutput()
    model.readProblem(str(path))
    model.setParam("limits/time", 8.0)
    model.optimize()
    assert model.getObjVal() == pytest.approx(declared.cvxpy.value, rel=1e-4)


@pytest.mark.parametrize("M", [1, 2, 3])
def test_a_semidefinite_program_by_a_first_order_method(M: int) -> None:
    """SCS takes the cone itself, from the declared program: what no written file holds."""
    declared = models.sdp_ssvm(data(5), M=M)
    assert cones.solve(declared.cvxpy) == "solved"
    value = declared.cvxpy.value
    assert declared.cvxpy.solve(solver="SCS", eps=1e-9, max_iters=100_000) == pytest.approx(value, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".lp", ".nl"])
def test_big_m_in_binaries_and_rows_of_a_user(suffix: str, tmp_path: Path) -> None:
    f = models.big_m(data(), M=2, binary=True)
    pairs = cp.Variable(integer=True, name="pairs")
    changed = f.with_constraints([cp.sum(f.sigma) == 2 * pairs, f.sigma["x1"] + f.sigma["x2"] <= 1])
    path = tmp_path / f"model{suffix}"
    for model in (f, changed):
        write(model, path)
        exact = mipfs.solve(model, "branch", gap=1e-7).objective
        # without integer pairs it is the relaxation of that one row
        if model is f:
            assert solved_by_scip(path) == pytest.approx(exact, rel=1e-5)
        else:
            assert solved_by_scip(path) <= exact * (1 + 1e-6)


def atoms(kind: str) -> Any:
    held = data()
    return {
        "features": lambda: Features(held),
        "scaled": lambda: Features(held, np.array([0.5, 2.0, 1.0, 0.3])),
        "groups": lambda: Groups(held, {"a": ["x1", "x2"], "b": ["x2", "x3"], "c": ["x4"]}, "norm"),
        "tree": lambda: Tree(held, {"x1": "u", "x2": "u", "u": "v", "x3": "v"}),
    }[kind]()


@pytest.mark.sampled(37)
@pytest.mark.parametrize("suffix", [".lp", ".mps", ".nl"])
@pytest.mark.parametrize("kind", ["features", "scaled", "groups", "tree"])
@pytest.mark.parametrize("loss", ["hinge", "squared-hinge", "logistic"])
def test_pyomo_models(loss: str, kind: str, suffix: str, tmp_path: Path) -> None:
    over = atoms(kind)
    problem = Problem(over.data, loss=loss, M=2, lam=0.05, C=2.0, atoms=over)
    path = tmp_path / f"model{suffix}"
    if loss == "logistic" and suffix != ".nl":
        with pytest.raises(UsageError, match=r"write it as \.nl"):
            write(problem, path)
        return
    write(problem, path)
    model = algebraic_model(problem)
    result = mipfs.solve(model, "branch", gap=1e-7)
    assert solved_by_scip(path) == pytest.approx(result.objective, rel=LOOSE)
    assert pyo.value(model.objective) == pytest.approx(result.objective, rel=1e-6), "the incumbent stands in the model"


@pytest.mark.sampled(5)
@pytest.mark.parametrize("kind", ["features", "groups"])
@pytest.mark.parametrize("bias", [True, False])
def test_the_rho_form_has_rho_for_a_variable(kind: str, bias: bool, tmp_path: Path) -> None:
    over = atoms(kind)
    problem = Problem(over.data, loss="squared-hinge", bias=bias, M=2, C=2.0, atoms=over, margin="rho")
    model, path = algebraic_model(problem), tmp_path / "model.nl"
    write(model, path)
    result = mipfs.solve(model, gap=1e-7)
    assert result.objective < 0
    assert solved_by_scip(path) == pytest.approx(result.objective, rel=10 * LOOSE)
    assert model.svm.rho.value == pytest.approx(-2 * result.objective, rel=1e-9)
    assert pyo.value(model.objective) == pytest.approx(result.objective, rel=1e-6)


@pytest.mark.sampled(13)
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("measure", ["f1", "roc-auc", "error"])
@pytest.mark.parametrize("rows", [(), BUDGET], ids=["plain", "budget"])
def test_the_structural_dual_with_its_labellings(
    measure: str, rows: tuple[Row, ...], bias: bool, tmp_path: Path
) -> None:
    problem = structural_dual.problem(data(rows=rows), measure=measure, M=2, C=20.0, bias=bias)
    declared, path = structural_dual.declare(problem), tmp_path / "model.lp"
    relaxed = mipfs.solve(problem, gap=1e-7)
    assert cones.solve(declared.cvxpy) == "solved"
    assert declared.cvxpy.value == pytest.approx(relaxed.bound, rel=3e-6)
    write(problem, path)
    assert solved_by_scip(path) == pytest.approx(declared.cvxpy.value, rel=1e-5)
    assert declared.sigma is not None
    assert declared.sigma.value.sum() <= 2 + 1e-6


@pytest.mark.slow
def test_a_users_rows_in_a_pyomo_model(tmp_path: Path) -> None:
    model = models.fsp_m(data(feature_names=["a b", "a_b", "c", "d"]), M=3, loss="squared-hinge")
    sigma = model.select.sigma
    model.select.half = pyo.Var(domain=pyo.NonNegativeIntegers)
    model.select.even = pyo.Constraint(expr=sum(sigma.values()) == 2 * model.select.half)
    paths = [tmp_path / f"model{suffix}" for suffix in (".lp", ".mps", ".nl")]
    for path in paths:  # before it is solved: from our optimum SCIP 10.0 ends, "optimal", at what its own check refuses
        write(model, path)
    result = mipfs.solve(model, gap=1e-7)
    for path in paths:
        assert solved_by_scip(path) == pytest.approx(result.objective, rel=LOOSE)


@pytest.mark.slow
def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = tmp_path / "credit.lp", tmp_path / "result.json"
    credit = str(INSTANCES / "credit.csv")
    arguments = ["solve", "fsp-m", credit, "-p", "C=1", "--quiet", "--scale", "standard"]
    assert main([*arguments, "--write", str(path), "--json", str(out)]) == 0
    optimum = json.loads(out.read_text())["objective"]
    assert solved_by_scip(path) == pytest.approx(optimum, rel=1e-4)
    for model, more in (("big-m", ["M=2"]), ("reduced-mkl", ["pool=income;loan"]), ("fgm", ["M=2"])):
        given = [part for text in more for part in ("-p", text)]
        assert main(["solve", model, credit, *given, "--quiet", "--scale", "standard", "--write", str(path)]) == 0
        assert path.stat().st_size > 1000
    before = path.read_bytes()
    for wrong, message in ((str(tmp_path / "model.txt"), r"\.lp, \.mps, \.nl"), (credit, r"\.lp, \.mps, \.nl")):
        capsys.readouterr()
        assert main([*arguments, "--write", wrong]) == 2
        import re

        assert re.search(message, capsys.readouterr().err)
    assert main(["solve", "fsp-m", credit, "-p", "loss=logistic", "--quiet", "--write", str(path)]) == 2
    assert path.read_bytes() == before, "what stood there stays"


def test_what_declares_needs_a_pool() -> None:
    problem = models.reduced_mkl.problem(data(), M=2)  # type: ignore[attr-defined]
    for call in (partial(write, problem, "model.lp"), partial(mipfs.solve, problem)):
        with pytest.raises(UsageError, match="reduced-mkl needs a pool"):
            call()


@pytest.mark.slow
def test_every_file_that_is_asked_for_is_written_as_it_is_alone(tmp_path: Path) -> None:
    credit = str(INSTANCES / "credit.csv")
    line = ["solve", "fsp-m", credit, "-p", "M=2", "--quiet"]
    names = ("a.lp", "b.mps", "c.nl")
    assert main([*line, *(text for name in names for text in ("--write", str(tmp_path / name)))]) == 0
    for name in names:
        alone = tmp_path / f"alone-{name}"
        assert main([*line, "--write", str(alone)]) == 0
        assert (tmp_path / name).read_bytes().splitlines()[2:] == alone.read_bytes().splitlines()[2:]
    (tmp_path / "a.lp").unlink()
    given = [text for name in ("a.lp", "b.txt") for text in ("--write", str(tmp_path / name))]
    assert main([*line, *given]) == 2  # before anything is written
    assert not (tmp_path / "a.lp").exists()
    assert main([*line, *["--write", str(tmp_path / "a.lp")] * 2]) == 2


@pytest.mark.sampled(5)
@pytest.mark.parametrize("labels", [False, True])
@pytest.mark.parametrize("loss", ["hinge", "squared-hinge"])
def test_pyomos_own_write_is_read_by_scip(tmp_path: Path, loss: str, labels: bool) -> None:
    """`model.write` itself, with names that an LP does not hold as they are."""
    named = data(feature_names=["a b", "w[1]", "3x", "e5"])
    model = algebraic_model(Problem(named, M=2, C=0.5, loss=loss))
    target = tmp_path / "x.lp"
    model.write(str(target), io_options={"symbolic_solver_labels": labels})
    best = mipfs.solve(model, gap=1e-8).objective
    assert solved_by_scip(target) == pytest.approx(best, rel=LOOSE)
    assert b"^" in target.read_bytes()
    copy = model.clone()
    copy.write(str(target))
    assert solved_by_scip(target) == pytest.approx(best, rel=LOOSE)


def test_pyomos_own_write_of_a_linear_model_is_read_by_scip_and_highs(tmp_path: Path) -> None:
    named = data(feature_names=["a b", "w[1]", "3x", "e5"])
    problem = Problem(named, M=2, C=0.5)
    cuts = mipfs.solve(problem, "gbd", keep_cuts=True).cuts
    assert cuts is not None
    model = models.benders.rmp(problem, cuts.alphas)
    target = tmp_path / "rmp.lp"
    model.write(str(target), io_options={"symbolic_solver_labels": True})
    best = mipfs.solve(problem, gap=1e-8).objective
    assert solved_by_highs(target) == pytest.approx(best, rel=1e-3)
    assert solved_by_scip(target) == pytest.approx(solved_by_highs(target), rel=1e-6)


def test_the_constant_of_an_objective_is_kept() -> None:
    """`Canonical.offset`, and what a program is worth with a variable fixed, against CVXPY's own value."""
    x, fixed = cp.Variable(2), cp.Variable(2)
    for goal in (cp.Minimize(cp.sum(x) + 1.0), cp.Maximize(3.0 - cp.sum_squares(x)), cp.Minimize(cp.norm(x) + 2.0)):
        rows = [x >= fixed, x[0] + x[1] >= 1]
        sign = 1.0 if isinstance(goal, cp.Minimize) else -1.0
        for at in (np.array([1.0, 2.0]), np.array([-1.0, 0.25])):
            value = cp.Problem(goal, [*rows, fixed == at]).solve(solver=cp.CLARABEL)
            said, low, high = cones.Canonical(cp.Problem(goal, rows)).solve_fixed({fixed: at})
            assert said in ("solved", "almost")
            assert (sign * low, sign * high) == pytest.approx((value, value), rel=1e-6)
