"""Enumeration in units of work: whoever takes them, whatever is lost or stopped, and what a limit leaves."""

from __future__ import annotations

import itertools
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mipfs
from mipfs import Problem
from mipfs.drivers.anchors import UnitCutter
from mipfs.drivers.executor import Threads
from mipfs.drivers.tree import SearchTree
from mipfs.inner.unit import NodeUnit, UnitResult
from mipfs.kernels.units import OpenNodes
from mipfs.plumbing import machine
from mipfs.result.result import Status
from mipfs.settings import BranchSettings, CompletionSettings
from tests.drivers.test_few_features import KINDS, drawn, is_right
from tests.drivers.test_resumed import written
from tests.drivers.test_units_tree import Scattered, bytes_of, made

MANY = BranchSettings(completions=CompletionSettings(block=1500, front=3, units=7, many=1.0, column_worth=50))
"""Units of a few columns, a level before the rest, and many columns split off by one relaxation."""
TINY = BranchSettings(
    completions=CompletionSettings(
        block=60, front=2, units=3, many=1.0, apart=2, together=3, ordered=4, columns=3, column_worth=10
    )
)
CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "pairs": ({}, {}),
    "pairs, squared hinge": ({"loss": "squared-hinge"}, {}),
    "pairs, logistic": ({"loss": "logistic"}, {}),
    "pairs, weights": ({"weights": True}, {}),
    "pairs, penalties": ({"lam": 0.1}, {}),
    "pairs, rows": ({"rows": True}, {}),
    "pairs, list by gap": ({}, {"pool_gap": 0.05}),
    "pairs, list by size": ({"rows": True}, {"pool_size": 6}),
    "pairs, no certificate": ({}, {"certificate": False}),
    "triples": ({"M": 3, "p": 45}, {}),
    "triples, rows": ({"M": 3, "p": 40, "rows": True}, {}),
    "triples, list": ({"M": 3, "p": 40}, {"pool_gap": 0.02}),
    "one": ({"M": 1, "p": 200}, {}),
}


def few(case: str, seed: int = 0) -> Problem:
    return made(seed, **({"n": 30, "p": 90, "M": 2} | CASES[case][0]))


@pytest.fixture
def batches(monkeypatch: pytest.MonkeyPatch) -> list[list[NodeUnit]]:
    """The enumerated units of every batch of a test; eight threads may work."""
    seen, before = list[list[NodeUnit]](), UnitCutter.units

    def units(anchors: UnitCutter, nodes: OpenNodes, cutoff: float, most: float) -> tuple[list[NodeUnit], OpenNodes]:
        found = before(anchors, nodes, cutoff, most)
        if anchors.tree.run.problem.data.n_samples >= 30 and found[0]:  # smaller ones only warm kernels up
            seen.append(found[0])
        return found

    monkeypatch.setattr(UnitCutter, "units", units)
    monkeypatch.setattr(machine, "cores", lambda: 8)
    return seen


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("case", CASES)
def test_the_bytes_do_not_depend_on_who_enumerates(
    case: str, seed: int, batches: list[list[NodeUnit]], tmp_path: Path
) -> None:
    problem, options = few(case, seed), {"gap": 1e-6, "settings": MANY, **CASES[case][1]}
    runs: list[dict[str, Any]] = [{"threads": count} for count in (1, 2, 3, 8)]
    runs += [{"executor": Scattered(k), "threads": 2} for k in (seed, seed + 7)]
    wanted = None
    for number, run in enumerate(runs):
        batches.clear()
        result = mipfs.solve(problem, "branch", **options, **run)
        assert result.status is Status.OPTIMAL
        turns = [[(bytes_of(unit), unit.turn) for unit in units] for units in batches]
        found = written(result, tmp_path / str(number)), turns
        wanted = found if wanted is None else wanted
        assert found == wanted, run
    assert "one" in case or max(map(len, batches)) > 3
    assert options.get("certificate") is False or mipfs.verify(result, problem.data).accepted


@pytest.mark.sampled(97)
@pytest.mark.parametrize(
    ("kind", "loss", "bias", "M"),
    [*itertools.product(KINDS, ("hinge", "squared-hinge", "logistic"), (True, False), (2, 3))],
)
def test_the_best_of_all_in_small_units(kind: str, loss: str, bias: bool, M: int) -> None:
    problem, values = drawn(kind, loss, bias, M, 1.0)
    is_right(mipfs.solve(problem, "branch", settings=TINY), problem, values)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", ["plain", "penalties", "rows"])
def test_all_within_a_gap_in_small_units(kind: str) -> None:
    problem, values = drawn(kind, "hinge", True, 2, 1.0)
    result = mipfs.solve(problem, "branch", pool_gap=0.1, settings=TINY)
    assert result.near_optimal is not None
    found = {frozenset(int(name[1:]) for name in one["selected"]) for one in result.near_optimal["supports"]}
    least = min(values.values())
    wanted = {one for one, value in values.items() if value <= 1.1 * least}
    same = {one for one in wanted if any(other < one and values[other] <= values[one] * (1 + 1e-7) for other in wanted)}
    assert found == wanted - same
    assert mipfs.verify(result, problem.data).accepted


@pytest.mark.slow
def test_the_bound_moves_before_the_end() -> None:
    """All pairs are proven up to two levels first: what a limit leaves is that, with its own proof."""
    problem = few("pairs")
    without = BranchSettings(completions=CompletionSettings(block=1500, front=3, units=7, many=1e18))
    whole = mipfs.solve(problem, "branch", settings=MANY)
    bare = mipfs.solve(problem, "branch", settings=without)
    assert whole.status is bare.status is Status.OPTIMAL
    assert whole.objective == pytest.approx(bare.objective, rel=1e-9)
    share = CompletionSettings().level
    half = whole.counters["nodes"] // 2 + 12
    cut = mipfs.solve(problem, "branch", settings=MANY, iteration_limit=half)
    assert cut.status is Status.FEASIBLE
    assert cut.bound >= 0.99 * share * whole.objective
    assert mipfs.verify(cut, problem.data).accepted
    first = next(record.bound for record in whole.trace if record.bound > whole.trace[0].bound)
    assert 0.99 * share * whole.objective <= first < whole.bound
    assert any(0.99 * 2.0 * share * whole.objective <= record.bound < 0.99 * whole.bound for record in whole.trace)
    late = bare.counters["nodes"] // 3
    assert mipfs.solve(problem, "branch", settings=without, iteration_limit=late).bound < cut.bound


class Dropping(Threads):
    """Threads that do not give back every third unit."""

    def open(self, tree: SearchTree) -> None:
        super().open(tree)
        self.number = itertools.count()
        self.kept = dict[Future[UnitResult], bool]()

    def submit(self, unit: NodeUnit, seconds: float | None) -> Future[UnitResult]:
        handle = super().submit(unit, seconds)
        self.kept[handle] = unit.turn is None or next(self.number) % 3 != 1
        return handle

    def result(self, handle: Future[UnitResult], seconds: float) -> UnitResult | None:
        return super().result(handle, seconds if self.kept[handle] else 0.01) if self.kept[handle] else None

    def withdraw(self, handle: Future[UnitResult]) -> UnitResult | None:  # type: ignore[override]
        found = super().withdraw(handle)
        return found if self.kept[handle] else None


@pytest.mark.slow
@pytest.mark.parametrize("case", ["pairs", "pairs, rows", "triples"])
def test_what_does_not_come_back_is_open_still(case: str, tmp_path: Path) -> None:
    """Units between others that came: their columns are nodes of their own, and the run goes on from there."""
    problem = few(case)
    whole = mipfs.solve(problem, "branch", gap=1e-6, settings=MANY)
    cut = mipfs.solve(
        problem, "branch", gap=1e-6, settings=MANY, executor=Dropping(2), time_limit=1.0, checkpoint=tmp_path / "s.npz"
    )
    assert cut.status is not Status.OPTIMAL
    assert cut.bound <= whole.objective
    assert mipfs.verify(cut, problem.data).accepted
    again = mipfs.solve(problem, "branch", gap=1e-6, settings=MANY, resume=tmp_path / "s.npz")
    assert again.status is Status.OPTIMAL
    assert again.objective == pytest.approx(whole.objective, rel=1e-9)
    assert mipfs.verify(again, problem.data).accepted


@pytest.mark.sampled(5)
@pytest.mark.parametrize("limit", [1, 7, 40, 90])
def test_a_limit_of_nodes_counts_columns(limit: int) -> None:
    problem = few("pairs")
    settings = BranchSettings(completions=CompletionSettings(block=1500, many=1e18))
    result = mipfs.solve(problem, "branch", settings=settings, iteration_limit=limit)
    assert result.counters["nodes"] <= limit + 8
    assert mipfs.verify(result, problem.data).accepted


def test_ties_are_looked_at_in_turns() -> None:
    """Hundreds of selections of one value, each of which is in a list: some at a time."""
    r = np.random.default_rng(3)
    x = r.standard_normal((20, 1))
    X = np.hstack([np.tile(x, 15), r.standard_normal((20, 30))])
    y = np.where(x[:, 0] + 0.3 * r.standard_normal(20) > 0.0, 1.0, -1.0)
    problem = Problem(mipfs.Instance.from_arrays(X, y), M=1)
    result = mipfs.solve(problem, "branch", pool_gap=1e-6, settings=TINY)
    assert result.near_optimal is not None
    assert len(result.near_optimal["supports"]) == 15
    assert mipfs.verify(result, problem.data).accepted
