"""Drivers over products of features: the optimum, the relaxation and heredity, against all products as columns."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import mipfs
from mipfs.atoms.pairs import Pairs
from mipfs.data.instance import Instance
from mipfs.problem import Problem
from mipfs.result.result import Result, Status, StopReason
from mipfs.settings import BranchSettings, GrowthSettings
from tests.certificate.monomials import everything
from tests.oracles import svm_value

LOSSES = ("hinge", "squared-hinge", "logistic")


def drawn(seed: int, p: int = 5, **options: Any) -> Problem:
    r = np.random.default_rng([17, seed])
    n = int(r.integers(12, 40))
    X = r.normal(size=(n, p)) * r.uniform(0.3, 2.0, p)
    if seed % 4 == 1:
        X[:, 1], X[:, 2] = X[:, 0], 0.0
    X = sparse.csc_array(X * (r.random(X.shape) < 0.6)) if seed % 2 else X
    y = np.where(X[:, [0]].sum(axis=1) * X[:, [p - 1]].sum(axis=1) + 0.3 * r.normal(size=n) > 0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    data = Instance.from_arrays(X, y)
    atoms = Pairs(
        data, 0.8, options.pop("r", 0.5), **{k: options.pop(k) for k in ("degree", "heredity") if k in options}
    )
    return Problem(data, atoms=atoms, C=float(10 ** r.uniform(-2, 1)), bias=bool(seed % 3), **{"M": 2, **options})


def expanded(problem: Problem) -> Problem:
    """The same with all products as columns of dense data."""
    atoms: Any = problem.atoms
    names, _, columns = everything(atoms.document(np.array([0]))["made"], atoms.base)
    data = Instance.from_arrays(columns, atoms.base.y, feature_names=names)
    return Problem(data, loss=problem.loss, bias=problem.bias, M=problem.M, C=problem.C)


def solve(problem: Problem, driver: str = "branch", **options: Any) -> Result:
    """By a driver; `branch` begins with few products."""
    few = BranchSettings(growth=GrowthSettings(least=1, entering=3)) if driver == "branch" else None
    return mipfs.solve(problem, driver, settings=few, **options)


@pytest.mark.sampled(19)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("seed", range(6))
def test_branch_finds_the_optimum_over_all(seed: int, loss: str) -> None:
    problem = drawn(seed, loss=loss, degree=2 + (seed == 4), p=3 if seed == 4 else 5, r=0.0 if seed == 5 else 0.5)
    result, whole = solve(problem, gap=1e-6), solve(expanded(problem), gap=1e-6)
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(whole.objective, rel=2e-6)
    assert result.bound == pytest.approx(whole.bound, rel=3e-6)
    report = mipfs.verify(result, problem.atoms.base)  # type: ignore[attr-defined]
    assert report.accepted, report.reason


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(4))
def test_branch_equals_enumeration(seed: int) -> None:
    problem = drawn(seed, loss=LOSSES[seed % 3], p=3)
    whole, best = expanded(problem), np.inf
    for chosen in itertools.combinations(range(whole.data.n_features), 2):
        value = svm_value(whole.data.X[:, list(chosen)], whole.data.y, whole.c_i, whole.bias, whole.loss)
        best = min(best, value.upper)
    assert solve(problem, gap=1e-7).objective == pytest.approx(best, rel=1e-6)


@pytest.mark.sampled(11)
@pytest.mark.parametrize("heredity", ["weak", "strong"])
@pytest.mark.parametrize("seed", range(5))
def test_heredity_equals_enumeration(seed: int, heredity: str) -> None:
    problem = drawn(seed, loss=LOSSES[seed % 3], p=3, heredity=heredity, M=3 if seed % 2 else 2)
    atoms: Any = problem.atoms
    names, parts, _ = everything(atoms.document(np.array([0]))["made"], atoms.base)
    whole, best, where = expanded(problem), np.inf, ()
    for k, how in itertools.product(range(problem.M + 1), [any if heredity == "weak" else all]):
        for chosen in itertools.combinations(range(len(names)), k):
            singles = {parts[g][0] for g in chosen if len(parts[g]) == 1}
            if all(len(parts[g]) < 2 or how(j in singles for j in parts[g]) for g in chosen):
                columns = whole.data.X[:, list(chosen)]
                value = svm_value(columns, whole.data.y, whole.c_i, whole.bias, whole.loss).upper
                best, where = min((best, where), (value, chosen))
    result = solve(problem, gap=1e-7)
    assert result.objective == pytest.approx(best, rel=1e-6)
    report = mipfs.verify(result, atoms.base)
    assert report.accepted, report.reason


@pytest.mark.sampled(11)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("seed", range(3))
def test_kelley_solves_the_relaxation_over_all(seed: int, loss: str) -> None:
    problem = drawn(seed, loss=loss, M=3)
    result, whole = solve(problem, "kelley", gap=1e-6), solve(expanded(problem), "kelley", gap=1e-6)
    assert result.bound == pytest.approx(whole.bound, rel=3e-6)
    assert result.relaxed is not None
    assert whole.relaxed is not None
    assert result.relaxed["upper"] == pytest.approx(whole.relaxed["upper"], rel=3e-6)
    assert result.objective <= whole.objective * 1.05
    report = mipfs.verify(result, problem.atoms.base)  # type: ignore[attr-defined]
    assert report.accepted, report.reason


def test_the_form_with_a_free_margin() -> None:
    problem = drawn(0, loss="squared-hinge").replace(margin="rho", bias=False)
    for driver in ("branch", "kelley"):
        result = solve(problem, driver, gap=1e-6)
        whole = solve(expanded(problem).replace(margin="rho"), driver, gap=1e-6)
        assert result.bound == pytest.approx(whole.bound, rel=1e-5)
        assert mipfs.verify(result, problem.atoms.base).accepted  # type: ignore[attr-defined]


def test_exclusive_or() -> None:
    """No single feature helps; one product of two does."""
    X = np.array([[a, b, c] for a in (-1.0, 1.0) for b in (-1.0, 1.0) for c in (-1.0, 1.0)])
    data = Instance.from_arrays(X, X[:, 0] * X[:, 1])
    result = solve(Problem(data, atoms=Pairs(data), M=1, C=1.0))
    assert result.status is Status.OPTIMAL
    assert result.selected == ("x1 × x2",)
    assert np.all(result.predict(X) == data.y)
    single = solve(Problem(data, M=3, C=1.0))
    assert single.objective == pytest.approx(8.0)  # as without any feature
    assert mipfs.verify(result, data).accepted


@pytest.mark.sampled(2)
@pytest.mark.parametrize("M", [0, 21, 3])
@pytest.mark.parametrize("driver", ["branch", "kelley"])
def test_no_product_and_all_of_them(M: int, driver: str) -> None:
    problem = drawn(2, M=M, loss="squared-hinge")
    result = solve(problem, driver)
    report = mipfs.verify(result, problem.atoms.base)  # type: ignore[attr-defined]
    assert report.accepted, report.reason
    assert len(result.selected) <= M


def test_one_feature() -> None:
    data = Instance.from_arrays(np.array([[-2.0], [0.1], [2.0], [0.2]]), [1, -1, 1, -1])
    result = solve(Problem(data, atoms=Pairs(data), M=1, C=10.0), gap=1e-6)
    assert result.selected == ("x1²",)
    assert mipfs.verify(result, data).accepted


@pytest.mark.sampled(7)
@pytest.mark.parametrize("driver", ["branch", "kelley"])
@pytest.mark.parametrize("limit", [{"time_limit": 0.0}, {"iteration_limit": 0}, {"iteration_limit": 1}])
def test_a_limit_leaves_what_is_proven(driver: str, limit: dict[str, Any]) -> None:
    problem = drawn(0, loss="hinge", M=3).replace(C=10.0)
    optimum = solve(problem, gap=1e-6).objective
    result = solve(problem, driver, **limit)
    assert result.bound <= optimum * (1 + 1e-9) <= result.objective * (1 + 1e-5)
    assert result.stop_reason in (StopReason.TIME_LIMIT, StopReason.ITERATION_LIMIT)
    if result.claim is not None:
        report = mipfs.verify(result, problem.atoms.base)  # type: ignore[attr-defined]
        assert report.accepted, report.reason


def test_start_active_and_names() -> None:
    problem = drawn(0, loss="hinge")
    optimum = solve(problem, gap=1e-6)
    again = solve(problem, gap=1e-6, start=optimum.selected, active=("x1 × x2",))
    assert again.objective == pytest.approx(optimum.objective, rel=1e-6)
    with pytest.raises(mipfs.UsageError, match="no feature is called"):
        solve(problem, start=("x1 × x99",))


def test_the_same_run_twice_is_the_same() -> None:
    problem = drawn(1, loss="hinge", M=3)
    first, second = (solve(problem, driver) for driver in ("branch", "branch"))
    assert (first.objective, first.bound, first.selected) == (second.objective, second.bound, second.selected)
