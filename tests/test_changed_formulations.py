"""A CVXPY formulation that a user changed: its rows hold in every driver, against enumeration, or it is refused."""

from __future__ import annotations

import dataclasses
import itertools
import operator
import pickle
from collections.abc import Callable, Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

import cvxpy
import numpy as np
import pytest

import mipfs
from mipfs import models
from mipfs.cli import main
from mipfs.data.instance import Instance
from mipfs.errors import RowError, UsageError
from mipfs.formulation import Formulation, compile, load
from mipfs.models import structural_dual
from mipfs.problem import Problem
from mipfs.result.result import Result, Status
from tests import structural_oracles
from tests.oracles import svm_value

cp: Any = cvxpy
P, N, M = 5, 18, 3
POOL = [[0, 1], [2, 3], [0, 4], [1, 2, 3], [3], []]
Change = tuple[Callable[[Any], list[Any]], Callable[[frozenset[int]], bool]]


@lru_cache
def data() -> Instance:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(N, P)) + 0.3
    y = np.where(X[:, 0] + 0.8 * X[:, 1] - 0.6 * X[:, 4] + 0.6 * rng.normal(size=N) > 0.3, 1.0, -1.0)
    return Instance.from_arrays(X, y, scale="standard", feature_names=["a", "b", "c", "d", "worst texture"])


def parity(sigma: Any) -> list[Any]:
    pairs = cp.Variable(integer=True, name="pairs")
    return [cp.sum(sigma) == 2 * pairs, pairs >= 1]


def either(sigma: Any) -> list[Any]:
    pick = cp.Variable(2, boolean=True, name="pick")
    return [sigma[:2] <= pick, sigma[2:4] <= 1 - pick, cp.sum(pick) <= 1]


def shared(sigma: Any) -> list[Any]:
    load = cp.Variable(3, nonneg=True, name="load")
    return [load[0] + load[1] == 3 * sigma["a"] + 2 * sigma["b"], load <= 2, load[2] == 0, cp.sum(load) <= 3]


def _picks(S: frozenset[int]) -> bool:
    """σ[0] ≤ pick[0], σ[1] ≤ pick[1], σ[2] ≤ 1 − pick[0], σ[3] ≤ 1 − pick[1], pick[0] + pick[1] ≤ 1."""
    return any(
        a + b <= 1 and all(j not in S or ok for j, ok in zip(range(4), (a == 1, b == 1, a == 0, b == 0), strict=True))
        for a, b in itertools.product((0, 1), repeat=2)
    )


CHANGES: dict[str, Change] = {
    "at most two": (lambda s: [s["a"] + s["b"] + s["worst texture"] <= 2], lambda S: len(S & {0, 1, 4}) <= 2),
    "without": (lambda s: [s["worst texture"] == 0, s[["a"]] == s[[1]]], lambda S: 4 not in S and (0 in S) == (1 in S)),
    "budget": (lambda s: [np.array([2.0, 2, 1, 1, 1]) @ s <= 3], lambda S: sum(2 if j < 2 else 1 for j in S) <= 3),
    "parity": (parity, lambda S: len(S) == 2),
    "either": (either, _picks),
    "shared": (shared, lambda S: not {0, 1} <= S),
}


FORMULATIONS: dict[str, Callable[[], Formulation]] = {
    "fgm": lambda: models.qcqp_relaxation(data(), M=M, C=2.0),
    "boolean": lambda: models.boolean_relaxation(data(), M=M, C=2.0, loss="logistic", bias=True),
    "nmmkl": lambda: models.nmmkl(data(), M=M, C=2.0),
    "big-m": lambda: models.big_m(data(), M=M, C=2.0, U=40.0),
    "big-m binary": lambda: models.big_m(data(), M=M, C=2.0, binary=True),
    "reduced-mkl dual": lambda: models.reduced_mkl(data(), pool=POOL, M=M, C=2.0),
    "reduced-mkl primal": lambda: models.reduced_mkl(data(), pool=POOL, M=M, C=2.0, form="primal", loss="hinge"),
}


@lru_cache
def value(loss: str, bias: bool, support: frozenset[int]) -> float:
    columns = sorted(support)
    Z = data().X[:, columns] if columns else np.zeros((N, 0))
    return svm_value(Z, data().y, np.full(N, 2.0), bias, loss).upper


def best(problem: Problem, allowed: Callable[[frozenset[int]], bool]) -> float:
    sets = (frozenset(S) for k in range(M + 1) for S in itertools.combinations(range(P), k))
    return min(value(problem.loss, problem.bias, S) for S in sets if allowed(S))


def right(result: Result, problem: Problem, change: Change, names: Iterable[str]) -> None:
    allowed, optimum = change[1], best(problem, change[1])
    chosen = frozenset(data().index[name] for name in result.selected)
    assert allowed(chosen)
    assert len(chosen) <= M
    solver = 1e-6 if result.bound_source == "solver" else 1e-9
    assert result.bound <= optimum * (1 + solver)
    assert result.objective >= optimum * (1 - 1e-7)
    assert [row["name"] for row in result.rows] == list(names)
    assert len(result.rows) > 0
    if result.status is Status.OPTIMAL:
        assert result.objective == pytest.approx(optimum, rel=2e-4)
    if result.bound_source == "dual":
        report = mipfs.verify(result, data())
        assert report.accepted, report.reason


@pytest.mark.slow
@pytest.mark.parametrize("kind", CHANGES)
@pytest.mark.parametrize("name", FORMULATIONS)
def test_added_rows_hold_in_every_driver(name: str, kind: str) -> None:
    change, made = CHANGES[kind], FORMULATIONS[name]()
    assert made.sigma is not None
    changed = made.with_constraints(change[0](made.sigma))
    names = compile(changed).rows.names  # type: ignore[union-attr]
    assert compile(made) is made.problem
    exact = best(made.problem, change[1])
    for driver in (None, "branch", "gbd", "kelley", "conic"):
        try:
            result = mipfs.solve(changed, driver)
        except UsageError as error:
            if "integer variables" not in str(error) or name != "big-m binary":
                raise
            continue
        right(result, made.problem, change, names)
        if driver in ("branch", "gbd"):
            assert result.status is Status.OPTIMAL
            assert result.objective == pytest.approx(exact, rel=2e-4)
        assert changed.sigma is not None
        assert np.array_equal(np.flatnonzero(changed.sigma.value), data().columns_of(result.selected))


PAIRS = [  # each a process: two for every formulation and every change, of which one is slow
    pytest.param(name, kind, marks=() if (i - k) % len(CHANGES) == 0 else pytest.mark.slow)
    for i, name in enumerate(FORMULATIONS)
    for k, kind in enumerate(CHANGES)
    if (i - k) % len(CHANGES) in (0, 2)
]


@pytest.mark.slow
@pytest.mark.sampled(1)
@pytest.mark.parametrize(("name", "kind"), PAIRS)
def test_added_rows_hold_in_scip(name: str, kind: str) -> None:
    pytest.importorskip("pyscipopt", reason="the monolithic driver needs SCIP (extra 'scip')")
    change, made = CHANGES[kind], FORMULATIONS[name]()
    changed = made.with_constraints(change[0](made.sigma))
    result = mipfs.solve(changed, "monolithic", gap=1e-6)
    right(result, made.problem, change, compile(changed).rows.names)  # type: ignore[union-attr]
    assert (result.status, result.bound_source) == (Status.OPTIMAL, "solver")
    assert result.objective == pytest.approx(best(made.problem, change[1]), rel=1e-5)
    assert changed.sigma is not None
    assert np.array_equal(np.flatnonzero(changed.sigma.value), data().columns_of(result.selected))


@pytest.mark.slow
def test_however_the_row_was_added() -> None:
    change = CHANGES["at most two"]
    ways: dict[str, Callable[[Formulation, list[Any]], Formulation]] = {
        "with_constraints": lambda f, new: f.with_constraints(new),
        "replace": lambda f, new: dataclasses.replace(
            f, cvxpy=cp.Problem(f.cvxpy.objective, [*f.cvxpy.constraints, *new])
        ),
        "new": lambda f, new: Formulation(
            f.problem, cp.Problem(f.cvxpy.objective, f.cvxpy.constraints + new), f.sigma, f.variables
        ),
        "same expression": lambda f, new: dataclasses.replace(
            f, cvxpy=cp.Problem(type(f.cvxpy.objective)(f.cvxpy.objective.expr), [*new, *f.cvxpy.constraints])
        ),
        "pickled": lambda f, new: pickle.loads(pickle.dumps(f.with_constraints(new))),
        "twice": lambda f, new: f.with_constraints(new).with_constraints([f.sigma["a"] <= 1]),
    }

    for name, make in FORMULATIONS.items():
        for way, add in ways.items():
            f = make()
            changed = add(f, change[0](f.sigma))
            rows = compile(changed).rows
            assert rows is not None
            assert rows.matrix.toarray()[0].tolist() == [1.0, 1.0, 0.0, 0.0, 1.0], (name, way)
            assert (rows.ub[0], len(rows)) == (2.0, 2 if way == "twice" else 1)
            if way == "new" and name != "big-m binary":
                right(mipfs.solve(changed), f.problem, change, rows.names)


def test_a_list_of_constraints_does_not_grow() -> None:
    for make in FORMULATIONS.values():
        f = make()
        for made in (f, f.with_constraints([f.sigma["b"] == 0])):
            row, before = made.sigma["a"] == 0, len(made.cvxpy.constraints)
            for grow in (
                lambda made=made, row=row: made.cvxpy.constraints.append(row),
                lambda made=made, row=row: made.cvxpy.constraints.extend([row]),
                lambda made=made, row=row: made.cvxpy.constraints.insert(0, row),
                lambda made=made, row=row: operator.iadd(made.cvxpy.constraints, [row]),
            ):
                with pytest.raises(RowError, match=r"does not grow; add rows by formulation.with_constraints"):
                    grow()
            assert len(made.cvxpy.constraints) == before


def test_a_program_of_ones_own_stays_what_it_is() -> None:
    f = models.boolean_relaxation(data(), M=M, C=2.0)
    program = cp.Problem(f.cvxpy.objective, f.cvxpy.constraints)
    made = Formulation(f.problem, program, f.sigma, f.variables)
    assert made.cvxpy is program
    assert type(program) is cp.Problem


@pytest.mark.slow
def test_no_selection_satisfies_the_program() -> None:
    for make in FORMULATIONS.values():
        f = make()
        for new in (
            [f.sigma["a"] + f.sigma["b"] >= 2.5],
            [f.sigma["a"] == 0, f.sigma["a"] == 1],
            [cp.sum(f.sigma) >= 4],
        ):
            for driver in (None, "branch", "kelley", "conic"):
                result = mipfs.solve(f.with_constraints(new), driver)
                assert result.status is Status.INFEASIBLE
                assert result.conflict


def other_changes(f: Formulation) -> dict[str, Callable[[], Formulation]]:
    """What is refused, by the words of the refusal."""
    sigma, w, own = f.sigma, f.variables["w"], cp.Variable(name="mine")
    program = f.cvxpy
    return {
        "is about w; only": lambda: f.with_constraints([w[0] + w[1] + sigma[0] <= 1]),
        "is about alpha|is about w|is about xi": lambda: f.with_constraints([f.variables["xi"] <= 1]),
        "is not linear": lambda: f.with_constraints([cp.sum_squares(sigma) <= 2]),
        "is no linear row": lambda: f.with_constraints([cp.SOC(own, sigma)]),
        "is PSD|is symmetric": lambda: f.with_constraints([cp.Variable((2, 2), PSD=True, name="S")[0, 0] <= sigma[0]]),
        "parameter without a value": lambda: f.with_constraints([sigma[0] <= cp.Parameter()]),
        "not finite": lambda: f.with_constraints([np.array([np.inf, 1, 1, 1, 1]) @ sigma <= 1]),
        "the objective of .* was changed": lambda: dataclasses.replace(
            f, cvxpy=cp.Problem(cp.Minimize(2 * program.objective.expr), program.constraints)
        ),
        "was dropped": lambda: dataclasses.replace(f, cvxpy=cp.Problem(program.objective, program.constraints[1:])),
        "the problem of .* was changed": lambda: dataclasses.replace(f, problem=f.problem.replace(C=3.0)),
        "the sigma of .* was changed": lambda: dataclasses.replace(f, sigma=cp.Variable(P)),
        "the is_relaxation of .* was changed|the lagrangian": lambda: dataclasses.replace(f, is_relaxation=False),
    }


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")  # CVXPY on an infinite coefficient
def test_other_changes_are_refused_by_name() -> None:
    for make in (FORMULATIONS["fgm"], FORMULATIONS["big-m"]):
        f = make()
        wrong = other_changes(f)
        sigma = f.sigma
        for message, change in wrong.items():
            for driver in (None, "branch", "gbd", "kelley", "conic"):
                with pytest.raises(RowError, match=message) as raised:
                    mipfs.solve(change(), driver)
                assert "\n" not in str(raised.value)
        other = make()
        with pytest.raises(RowError, match=r"mixes variables of two formulations|is about"):
            compile(f.with_constraints([other.sigma[0] <= sigma[0]]))


@pytest.mark.parametrize("name", ["plain_svm", "qcqp_ssvm", "sdp_ssvm", "onsvm"])
def test_programs_without_a_selection_take_no_rows(name: str) -> None:
    f = getattr(models, name)(data(), M=M)
    assert f.sigma is None
    with pytest.raises(RowError, match=r"is about xi; .*has no sigma"):
        mipfs.solve(f.with_constraints([f.variables["xi"][0] <= 1]))
    dropped = dataclasses.replace(f, cvxpy=cp.Problem(f.cvxpy.objective, f.cvxpy.constraints[1:]))
    with pytest.raises(RowError, match="was dropped"):
        mipfs.solve(dropped)
    # a row of the problem holds in what is rounded
    under = load({"plain_svm": "plain-svm"}.get(name, name.replace("_", "-"))).declare(  # type: ignore[misc]
        f.problem.with_rows([[0.0, 0, 0, 0, 1]], -np.inf, 0.0)
    )
    assert "worst texture" not in mipfs.solve(under).selected


@pytest.mark.sampled(2)
@pytest.mark.parametrize("bias", [False, True])
def test_the_structural_dual(bias: bool) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(8, 4))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=8) > 0, 1.0, -1.0)
    small = Instance.from_arrays(X, y)
    problem = structural_dual.problem(small, measure="f1", M=2, C=30.0, bias=bias)
    losses, V = structural_oracles.labellings("f1", y)
    counts = np.zeros((1, 8))
    f = structural_dual.declare(problem, counts, np.zeros(1), [[0, 1], [2]])
    changed = f.with_constraints(
        [f.sigma["x1"] + f.sigma["x2"] <= cp.Variable(boolean=True, name="u"), f.sigma[3] == 0]
    )
    optimum = min(
        structural_oracles.structural_svm(np.column_stack([X[:, list(S)], bias * np.ones(8)]), losses, V, 30.0)[0]
        for S in ((), (0,), (1,), (2,), (0, 2), (1, 2))
    )
    for driver in (None, "branch", "gbd", "two_layer"):
        result = mipfs.solve(changed, driver)
        assert result.bound <= optimum * (1 + 1e-7)
        assert result.objective >= optimum * (1 - 1e-6)
        assert not {"x1", "x2"} <= set(result.selected)
        assert "x4" not in result.selected
        if driver in ("branch", "gbd"):
            assert result.objective == pytest.approx(optimum, rel=1e-4)
    assert mipfs.solve(changed).driver == "two_layer"


def own(problem: Problem, *more: Any, sigma: Any = None, flat: Any = lambda s: s) -> Formulation:
    """A program of a user's own: the Boolean relaxation of the squared hinge, written anew."""
    X, y = problem.data.X, problem.data.y
    sigma = cp.Variable(P, name="mine") if sigma is None else sigma
    entry = flat(sigma)
    w, t, xi = cp.Variable(P), cp.Variable(P), cp.Variable(N)
    rows = [sigma >= 0, sigma <= 1, cp.sum(sigma) <= M, cp.multiply(y, X @ w) + xi >= 1]
    rows += [cp.quad_over_lin(w[j], entry[j]) <= t[j] for j in range(P)]
    rows += [constraint(sigma) for constraint in more]
    program = cp.Problem(cp.Minimize(0.5 * cp.sum(t) + 0.5 * problem.C * cp.sum_squares(xi)), rows)
    return Formulation(problem, program, sigma, {"w": w})


@pytest.mark.slow
def test_a_program_of_ones_own() -> None:
    problem = Problem(data(), loss="squared-hinge", bias=False, M=M, C=2.0)
    assert compile(own(problem)) is problem, "what the problem says already is no row"
    change: Change = (lambda s: [], lambda S: 4 not in S and len(S & {0, 1}) <= 1)
    u = cp.Variable(boolean=True, name="u")
    f = own(problem, lambda s: s[4] == 0, lambda s: s[0] <= u, lambda s: s[1] <= 1 - u)
    for driver in ("branch", "gbd", "kelley"):
        right(mipfs.solve(f, driver), problem, change, compile(f).rows.names)  # type: ignore[union-attr]
    with pytest.raises(UsageError, match="without integer variables"):
        mipfs.solve(f, "conic")
    relaxed = own(problem, lambda s: s[4] == 0, lambda s: s[0] + s[1] <= 1)
    right(mipfs.solve(relaxed), problem, change, compile(relaxed).rows.names)  # type: ignore[union-attr]
    assert mipfs.solve(relaxed).driver == "conic"
    with pytest.raises(RowError, match="is not linear"):
        mipfs.solve(own(problem, lambda s: cp.norm(s) <= 1))
    column = own(problem, lambda s: s[4, 0] == 0, sigma=cp.Variable((P, 1)), flat=lambda s: s[:, 0])
    right(mipfs.solve(column), problem, (change[0], lambda S: 4 not in S), compile(column).rows.names)  # type: ignore[union-attr]
    with pytest.raises(RowError, match="sigma has 3 entries, but there are 5"):
        mipfs.solve(Formulation(problem, relaxed.cvxpy, cp.Variable(3), {}))
    never = own(problem, lambda s: cp.sum(s) >= 4)
    assert mipfs.solve(never).status is Status.INFEASIBLE
    with pytest.raises(UsageError, match="program of the formulation is infeasible"):
        w = relaxed.variables["w"]
        mipfs.solve(relaxed.with_constraints([w >= 1, w <= 0]))


def test_rows_that_a_declaring_option_adds_are_refused() -> None:
    problem = Problem(data(), loss="squared-hinge", bias=False, M=M)

    def declare(given: Problem) -> Formulation:
        f = load("boolean").declare(given)  # type: ignore[misc]
        return f.with_constraints([f.sigma[0] == 0])

    with pytest.raises(RowError, match="rows over sigma that its problem lacks"):
        mipfs.solve(problem, "conic", declare=declare)


FILE = """
import cvxpy as cp
from mipfs import Formulation, models

def build(data, M=3, kind="{kind}"):
    f = models.{name}(data, M=M, C=2.0)
    new = {new}
    return Formulation(f.problem, cp.Problem(f.cvxpy.objective, f.cvxpy.constraints + new), f.sigma, f.variables)
"""


@pytest.mark.slow
def test_mipfs_solve_of_a_users_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    held = data()
    table = np.column_stack([held.X * held.scale + held.shift, held.y])
    csv = tmp_path / "data.csv"
    np.savetxt(csv, table, delimiter=",", header=",".join([*held.feature_names, "label"]), comments="", fmt="%.17g")
    rows = tmp_path / "rows.lp"
    rows.write_text("minimize\nsubject to\n both: a + b <= 1\nend\n")
    mine, out = tmp_path / "mine.py", tmp_path / "result.json"
    for name, driver in (("qcqp_relaxation", "kelley"), ("nmmkl", "conic"), ("big_m", "conic")):
        mine.write_text(FILE.format(name=name, kind="", new='[f.sigma["worst texture"] == 0]'))
        arguments = ["solve", str(mine), str(csv), "--scale", "standard", "--json", str(out), "--quiet"]
        for more in ([], ["--driver", "branch"], ["--subject-to", str(rows)]):
            assert main([*arguments, *more]) == 0, capsys.readouterr().err
            result = Result.load(out)
            assert "worst texture" not in result.selected
            assert result.driver == (more[1] if "--driver" in more else driver)
            assert not ("--subject-to" in more and {"a", "b"} <= set(result.selected))
            assert len(result.rows) == 1 + ("--subject-to" in more)
            if "--driver" in more:
                problem = getattr(models, name).problem(held, M=M, C=2.0)
                assert result.objective == pytest.approx(best(problem, lambda S: 4 not in S), rel=2e-4)
            assert main(["verify", str(out), str(csv), "--scale", "standard"]) == 0
    mine.write_text(FILE.format(name="big_m", kind="", new='[f.variables["w"][0] == f.variables["w"][1]]'))
    for more in ([], ["--driver", "branch"]):
        assert main(["solve", str(mine), str(csv), *more, "--json", str(out), "--quiet"]) == 0
        found = Result.load(out)
        assert len(found.params["weight_rows"]) == 1
        assert found.weights.get("a", 0.0) == pytest.approx(found.weights.get("b", 0.0), abs=1e-9)
    mine.write_text(FILE.format(name="big_m", kind="", new="[cp.sum(f.sigma) >= 4]"))
    assert main(["solve", str(mine), str(csv)]) == 3
