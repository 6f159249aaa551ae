"""Branch-and-bound on some atoms, grown until the rest is proven out: the whole problem's optimum, bound and proof."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

import mipfs
from mipfs.atoms.groups import Groups
from mipfs.atoms.made import Made
from mipfs.atoms.pairs import Pairs
from mipfs.atoms.tree import Tree
from mipfs.data.instance import Instance
from mipfs.drivers import growing
from mipfs.errors import UsageError
from mipfs.problem import Problem
from mipfs.result.result import Record, Result, Status, StopReason
from mipfs.run.warm_up import StopRequest, prepare
from tests.drivers.test_gbd import best

KINDS = ("features", "groups", "tree")


def drawn(seed: int, loss: str, kind: str, rows: bool) -> Problem:
    """A problem of 8 to 40 samples and up to 12 features, some of them equal or zero, scales apart."""
    r = np.random.default_rng([5, seed])
    n, p = int(r.integers(8, 40)), int(r.integers(5, 12))
    X = r.normal(size=(n, p)) * r.uniform(0.1, 3.0, p)
    X[:, 0], X[:, 2] = X[:, 1], X[:, 2] * (seed % 3 > 0)
    y = np.where(X @ r.normal(size=p) + r.normal(size=n) > 0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    data = Instance.from_arrays(X, y)
    atoms: Any = None
    if kind == "groups":
        atoms = Groups(data, {f"g{i}": sorted({*r.integers(0, p, 3).tolist()}) for i in range(5)}, scaling="norm")
    elif kind == "tree":
        atoms = Tree(data, {f"x{j + 1}": f"n{j % 3}" for j in range(p)}, scaling="norm")
    C, lam = float(10 ** r.uniform(-2, 2)), float(r.choice([0.0, 0.1]))
    problem = Problem(data, loss=loss, bias=bool(seed % 2), M=3, C=C, lam=lam, atoms=atoms)
    if rows:
        q = problem.atoms.count
        A = r.integers(-2, 3, size=(2, q)).astype(float)
        problem = problem.with_rows(A, -np.inf, r.integers(0, 3, 2).astype(float))
        problem = problem.with_rows(r.integers(0, 2, size=(1, q)), 1.0, np.inf)
    return problem


def begun(problem: Problem, seed: int) -> tuple[str, ...]:
    names, r = problem.atoms.names, np.random.default_rng(seed)
    return tuple(names[int(g)] for g in np.flatnonzero(r.random(len(names)) < 0.3)) or (names[0],)


@pytest.mark.sampled(59)
@pytest.mark.parametrize("rows", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("loss", ["hinge", "squared-hinge", "logistic"])
@pytest.mark.parametrize("seed", range(3))
def test_equals_the_whole(seed: int, loss: str, kind: str, rows: bool) -> None:
    problem = drawn(seed, loss, kind, rows)
    whole = mipfs.solve(problem, "branch", gap=1e-6)
    parts = mipfs.solve(problem, "branch", gap=1e-6, active=begun(problem, seed))
    assert parts.status is whole.status
    if whole.status is Status.OPTIMAL:
        assert parts.objective == pytest.approx(whole.objective, rel=1e-5)
        assert parts.counters["active"] <= problem.atoms.count
    report = mipfs.verify(parts, problem.data)
    assert report.accepted, report.reason


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(6))
def test_equals_enumeration(seed: int) -> None:
    problem = drawn(seed, "hinge", "features", rows=seed % 2 == 0)
    result = mipfs.solve(problem, "branch", gap=1e-7, active=begun(problem, seed))
    if result.status is Status.INFEASIBLE:
        pytest.skip("the rows allow nothing")
    assert result.objective == pytest.approx(best(problem)[0], rel=1e-6, abs=1e-12)


@pytest.mark.sampled(11)
@pytest.mark.parametrize("seed", range(8))
def test_a_limit_leaves_a_bound_that_is_proven(seed: int) -> None:
    problem = drawn(seed, "hinge", KINDS[seed % 3], rows=False)
    optimum = mipfs.solve(problem, "branch", gap=1e-7).objective
    for limit in (0, 1, 3, 8):
        result = mipfs.solve(problem, "branch", gap=1e-7, active=begun(problem, seed), iteration_limit=limit)
        assert result.bound <= optimum * (1 + 1e-9)
        report = mipfs.verify(result, problem.data)
        assert report.accepted, report.reason


def wide(seed: int = 0) -> Problem:
    """Few samples, many features, some of which the labels follow."""
    r = np.random.default_rng(seed)
    X = r.normal(size=(40, 600))
    y = np.where(X[:, :3].sum(axis=1) + 0.3 * r.normal(size=40) > 0, 1, -1)
    return Problem(Instance.from_arrays(X, y), M=3, C=0.01)


def test_what_is_left_out_is_shown_until_it_is_proven_out() -> None:
    problem, seen = wide(), list[Record]()
    whole = mipfs.solve(problem, "branch")
    result = mipfs.solve(problem, "branch", active=tuple(f"x{j}" for j in range(300, 350)), callback=seen.append)
    assert result.status is Status.OPTIMAL
    assert result.selected == whole.selected
    assert 50 < result.counters["active"] < 600, "not all features were needed"
    assert result.counters["rounds"] >= 2
    assert mipfs.verify(result, problem.data).accepted
    bounds = [record.bound for record in seen]
    assert bounds == sorted(bounds)


def test_only_features_that_matter_are_taken_in() -> None:
    problem = wide(1)
    best_ones = mipfs.solve(problem, "branch").selected
    result = mipfs.solve(problem, "branch", active=best_ones)
    assert result.selected == best_ones
    assert result.status is Status.OPTIMAL


def test_an_incumbent_stays_and_interrupts_are_heard() -> None:
    problem = wide(2)

    def stop(record: Record) -> bool:
        return record.counters.get("rounds", 0) >= 1

    result = mipfs.solve(problem, "branch", active=("x1",), gap=1e-9, callback=stop)
    assert result.selected
    assert mipfs.verify(result, problem.data).accepted


class Products(Made):
    """x_1 x_j."""

    @property
    def names(self) -> list[str]:
        return [f"{self.data.feature_names[0]} x {name}" for name in self.data.feature_names]

    def make(self, ids: Any) -> Any:
        X = self.data.block().values
        return X[:, :1] * X[:, ids]


def test_columns_that_are_made_are_held_only_where_they_matter() -> None:
    r = np.random.default_rng(4)
    X = r.normal(size=(60, 400))
    y = np.where(X[:, 0] * X[:, 7] - X[:, 0] * X[:, 9] + 0.3 * r.normal(size=60) > 0, 1, -1)
    data = Instance.from_arrays(X, y)
    products = Products(data)
    result: Result = mipfs.solve(Problem(data, atoms=products, M=2, C=0.02), "branch")
    explicit = Instance.from_arrays(X[:, :1] * X, y)
    stored = mipfs.solve(Problem(explicit, M=2, C=0.02), "branch")
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(stored.objective, rel=2e-4)
    assert result.counters["active"] < 400
    assert mipfs.verify(result, products.view).accepted


@pytest.mark.parametrize(
    "option", [{"pool_gap": 0.01}, {"pool_size": 3}, {"validation": wide().data}], ids=["gap", "size", "validation"]
)
def test_what_it_does_not_carry_is_refused(option: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="do not go together"):
        mipfs.solve(wide(), "branch", active=("x1",), **option)


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(UsageError, match="no feature is called 'y1'"):
        mipfs.solve(wide(), "branch", active=("y1",))


def hard() -> Problem:
    """More than a second of work: sixty features of noise, of which ten are taken at a large C."""
    r = np.random.default_rng(7)
    X = r.normal(size=(120, 60))
    return Problem(Instance.from_arrays(X, np.sign(X[:, 0] + r.normal(size=120))), M=10, C=10.0)


def test_a_limit_is_the_reason_that_is_given() -> None:
    """A part must stop when the whole run must: that was told as an interrupt, which ends every study."""
    problem = hard()
    some = problem.atoms.names[:20]
    late = mipfs.solve(problem, "branch", active=some, time_limit=0.4)
    assert late.stop_reason is StopReason.TIME_LIMIT
    found = mipfs.path(problem, M=[9, 10], driver="branch", active=some, time_limit=0.3)
    assert [point.result.stop_reason for point in found.points] == [StopReason.TIME_LIMIT] * 2
    assert not found.interrupted
    end = time.monotonic() + 0.4
    asked = mipfs.solve(problem, "branch", active=some, stop=lambda: time.monotonic() > end)
    assert asked.stop_reason is StopReason.INTERRUPTED
    few = mipfs.solve(problem, "branch", active=some, iteration_limit=3)
    assert few.stop_reason is StopReason.ITERATION_LIMIT


def test_the_kernels_of_a_part_are_compiled_while_the_clock_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    """What relaxes the nodes of a part may be another than that of the whole, of which the kernels are there."""
    problem = drawn(1, "hinge", "features", False)
    mipfs.solve(problem, "branch", active=begun(problem, 1))  # what is compiled is there
    asked: list[int] = []

    def slow(driver: Any, part: Problem, options: Any) -> StopRequest:
        asked.append(part.atoms.count)
        time.sleep(0.6)
        return prepare(driver, part, options)

    monkeypatch.setattr(growing, "prepare", slow)
    result = mipfs.solve(problem, "branch", active=begun(problem, 1), time_limit=0.5)
    assert result.status is Status.OPTIMAL
    assert result.seconds < 0.5
    assert 0 < asked[0] <= problem.atoms.count


@pytest.mark.parametrize("kind", ["active", "pairs", "splines", "rows"])
def test_a_limit_before_anything_was_found_leaves_a_classifier(kind: str) -> None:
    """As it does where all atoms are in play: that of the selection that asks for nothing."""
    problem = hard()
    data = problem.data
    if kind == "rows":
        problem = problem.with_rows(np.ones((1, 60)), 2.0, np.inf).replace(forced_in=("x3",))
    if kind in ("pairs", "splines"):
        problem = Problem(data, M=3, C=10.0, atoms=mipfs.atoms.make(kind, data))
    some = None if kind in ("pairs", "splines") else ("x5",)
    result = mipfs.solve(problem, "branch", active=some, time_limit=0.0)
    assert result.stop_reason is StopReason.TIME_LIMIT
    assert result.status is Status.FEASIBLE
    assert result.bound <= result.objective
    assert kind != "rows" or ("x3" in result.selected and len(result.selected) >= 2)
    assert mipfs.verify(result, data).accepted


def test_a_bound_is_never_below_that_of_no_dual_vector() -> None:
    """The dual vector of the intercept alone proved -8.7e6 of the products of three features at a logistic loss."""
    data = mipfs.read("instances/wdbc.svm", scale="standard")
    plain = Problem(data, M=3, C=10.0, loss="logistic", bias=False)
    dear = plain.replace(forced_in=("mean area",), lam=5.0)
    pairs = plain.replace(atoms=Pairs(data, degree=3))
    for problem, some in ((pairs, None), (plain, ("mean area",)), (dear, ("mean area",))):
        result = mipfs.solve(problem, "branch", active=some, time_limit=0.0)
        assert 0.0 <= result.bound <= result.objective
        assert mipfs.verify(result, data).accepted
