"""A grown support: inside S, never worse than what it begins with, and there before the root is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mipfs
from mipfs.drivers import gbd
from mipfs.drivers.tree import SearchTree
from mipfs.inner.subproblem import Subproblem
from mipfs.problem import Problem
from mipfs.run.heuristics import Supports
from mipfs.run.run import Run
from mipfs.settings import BranchSettings, RootSettings, SearchSettings
from tests.climb_cases import drawn, values_of

P = 9
LOSSES: tuple[dict[str, Any], ...] = ({"loss": "hinge"}, {"loss": "squared-hinge", "bias": False}, {"loss": "logistic"})


def grown(problem: Problem) -> tuple[Run, Supports]:
    """A run with nothing but what was grown."""
    run = Run(problem, gbd.Options())
    supports = Supports(run, Subproblem(problem), tol=1e-8)
    supports.grow()
    return run, supports


@pytest.mark.sampled(13)
@pytest.mark.parametrize("given", LOSSES, ids=lambda given: given["loss"])
@pytest.mark.parametrize("kind", ["cardinality", "rows", "forced", "penalties"])
def test_it_is_in_S_and_good_for_a_beginning(given: dict[str, Any], kind: str) -> None:
    for seed in range(6):
        data, more = drawn(seed, p=P), {"M": 4}
        if kind == "forced":
            more |= {"forced_in": (data.feature_names[8],), "forced_out": (data.feature_names[0],)}
        problem = Problem(data, C=1.0, **given, **({"lam": 1.0} if kind == "penalties" else more))
        if kind == "rows":
            cost = np.random.default_rng(seed).integers(1, 4, P).astype(float)
            problem = problem.with_rows(cost[None, :], -np.inf, 5.0)
        values = values_of(problem)
        run, supports = grown(problem)
        assert run.incumbent is not None
        reached = tuple(run.incumbent.selected.tolist())
        assert run.objective == pytest.approx(values[reached], rel=1e-6)
        assert run.objective < 0.9 * values[()] if kind == "rows" else run.objective <= np.median(list(values.values()))
        assert supports.subproblem.count <= 7
        for key in supports.found:
            assert tuple(np.flatnonzero(np.unpackbits(np.frombuffer(key, dtype=np.uint8), count=P)).tolist()) in values


def test_half_of_what_is_still_to_come_at_a_time() -> None:
    run, supports = grown(Problem(drawn(3, 200, 60), M=20, C=1.0))
    assert run.incumbent is not None
    assert run.incumbent.selected.size == 20
    sizes = [int(np.unpackbits(np.frombuffer(key, dtype=np.uint8)).sum()) for key in supports.found]
    assert sizes == [0, 10, 15, 18, 19, 20]


def test_it_stops_when_it_is_asked_to() -> None:
    run = Run(Problem(drawn(1, p=P), M=3), gbd.Options())
    supports = Supports(run, Subproblem(run.problem), tol=1e-8)
    run.interrupted = True
    supports.grow()
    assert supports.subproblem.count == 0


def test_without_M_a_support_that_the_rows_forbid_is_cut_back_to_its_largest_weights() -> None:
    problem = Problem(drawn(2, 120, 30), M=None, C=1.0, lam=1e-3).with_rows(np.ones((1, 30)), -np.inf, 5.0)
    run, _ = grown(problem)
    assert run.incumbent is not None
    assert run.incumbent.selected.size == 5
    whole = Subproblem(problem)
    whole.solve(np.ones(30), 1e-8)  # what it grew to, about
    assert set(run.incumbent.selected.tolist()) <= set(np.argsort(-whole.weights())[:12].tolist())


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch) -> list[tuple[float, int]]:
    """Incumbent and SVMs when each root begins; the first is that of the tiny problem that compiles, if it runs."""
    seen: list[tuple[float, int]] = []
    open_root = SearchTree.open_root

    def opened(tree: SearchTree) -> None:
        seen.append((tree.run.objective, tree.supports.subproblem.count))
        open_root(tree)

    monkeypatch.setattr(SearchTree, "open_root", opened)
    return seen


@pytest.mark.parametrize("rows", [False, True])
def test_a_run_has_an_incumbent_before_its_root(rows: bool, planted: list[tuple[float, int]]) -> None:
    problem = Problem(drawn(5, 60, 30), M=6, C=1.0)
    if rows:
        problem = problem.with_rows(np.ones((1, 30)), -np.inf, 5.0)
    empty = Subproblem(problem).solve(np.zeros(30), 1e-8).value
    found = mipfs.solve(problem, "branch")
    assert found.status == mipfs.Status.OPTIMAL
    assert found.objective <= planted[-1][0] < 0.8 * empty


@pytest.mark.sampled(2)
@pytest.mark.parametrize("rows", [False, True])
def test_a_large_problem_has_a_climb_before_its_root_and_no_long_one(
    rows: bool, planted: list[tuple[float, int]]
) -> None:
    problem = Problem(drawn(7, 80, 60), M=12, C=1.0)
    if rows:
        problem = problem.with_rows(np.ones((1, 60)), -np.inf, 10.0)
    seen: dict[str, tuple[float, int]] = {}
    for name, least, most in (("grown", 10**9, 300), ("climbed", 1, 300), ("a few", 1, 7)):
        root, search = RootSettings(large=least), SearchSettings(climbed=most, spliced=5)
        mipfs.solve(problem, "branch", iteration_limit=1, settings=BranchSettings(root=root, search=search))
        seen[name] = planted[-1]
    assert seen["climbed"][0] < seen["grown"][0]
    assert seen["grown"][1] < seen["a few"][1] <= seen["grown"][1] + 5 + 1 + 7
    assert seen["a few"][1] < seen["climbed"][1] <= seen["grown"][1] + 5 + 1 + 300


def test_the_patience_of_a_validation_is_kept_for_the_tree(planted: list[tuple[float, int]]) -> None:
    problem, other = Problem(drawn(5, 60, 30), M=6, C=1.0), drawn(5, 40, 30)
    found = mipfs.solve(problem, "branch", validation=other, patience=2)
    assert planted[-1][1] <= 1  # the first selection, that every run looks at
    assert found.bound > 0.0


def test_what_the_user_begins_with_is_not_grown(planted: list[tuple[float, int]]) -> None:
    problem = Problem(drawn(5, 60, 30), M=3, C=1.0)
    best = mipfs.solve(problem, "branch")
    again = mipfs.solve(problem, "branch", start=tuple(best.selected), iteration_limit=1)
    assert again.objective == pytest.approx(best.objective, rel=1e-9)
    assert again.counters["subproblems"] < best.counters["subproblems"]
    assert planted[-1][0] == pytest.approx(best.objective, rel=1e-9)
    assert planted[-1][1] <= 1
