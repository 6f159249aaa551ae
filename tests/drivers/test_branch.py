"""Branch-and-bound against enumeration; the same tree for any number of threads; limits, interrupts, certificates."""

from __future__ import annotations

import itertools
import threading
import time
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

import mipfs
from mipfs.data.instance import Instance
from mipfs.drivers import gbd, solve
from mipfs.drivers.branch import BranchAndBound, Options
from mipfs.drivers.executor import Exploration
from mipfs.drivers.pacing import PacedSearch
from mipfs.drivers.tree import SearchTree
from mipfs.generators import aytug_one
from mipfs.kernels.subtree import LEAF
from mipfs.plumbing import machine
from mipfs.problem import Problem
from mipfs.proof.proof import Proof
from mipfs.result.result import Record, Status, StopReason
from mipfs.result.state import RunState
from mipfs.run.run import Run
from mipfs.run.swaps import climb
from mipfs.settings import BranchSettings, SearchSettings
from tests.drivers.test_gbd import best, draw


def one(n: int, p: int, M: int, C: float, seed: int = 1) -> Problem:
    X, y = aytug_one(n, p, M, seed=seed)["train"]
    return Problem(Instance.from_arrays(X, y), M=M, C=C)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("lam", [0.0, 1.5])
@pytest.mark.parametrize("M", [0, 1, 3, None])
def test_equals_enumeration(M: int | None, lam: float, bias: bool) -> None:
    problem = Problem(draw(3), M=M, lam=lam, C=2.0, bias=bias)
    value, _ = best(problem)
    result = solve(problem, "branch", gap=1e-7)
    assert result.status is Status.OPTIMAL
    assert result.stop_reason is StopReason.GAP_CLOSED
    assert result.objective == pytest.approx(value, rel=1e-6)
    assert result.bound <= value * (1 + 1e-9)
    assert result.bound == pytest.approx(value, rel=1e-6)
    assert mipfs.verify(result, problem.data).accepted


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("n", "p", "M", "C", "optimum"),
    [
        (500, 20, 10, 1.0, 174.809),
        (500, 20, 10, 32.0, 1660.786),
        (500, 50, 10, 32.0, 1867.432),
        (500, 50, 25, 1.0, 194.598),
    ],
)
def test_published_optima_with_certificates(n: int, p: int, M: int, C: float, optimum: float) -> None:
    problem = one(n, p, M, C)
    result = solve(problem, "branch")
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(optimum, rel=1e-4)
    report = mipfs.verify(result, problem.data)
    assert report.accepted, report.reason
    assert report.seconds < 10


def test_one_thread_and_two_grow_the_same_tree() -> None:
    problem = one(300, 30, 12, 4.0)
    results = [solve(problem, "branch", threads=threads) for threads in (1, 2, 2)]
    assert len({(r.objective, r.bound, r.selected, tuple(sorted(r.counters.items()))) for r in results}) == 1
    assert results[0].counters["nodes"] > 30
    traces = [[(t.iteration, t.objective, t.bound) for t in r.trace] for r in results]
    assert traces[0] == traces[1] == traces[2]


@pytest.mark.parametrize("certificate", [True, False])
def test_leaves_whose_svms_are_dear_wait_for_the_search_beside(
    certificate: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The optimum that there is where they are closed at once, whoever works; a limit leaves none out of the proof."""
    problem = one(100, 20, 8, 4.0)
    dear = BranchSettings(search=SearchSettings(dear=1e-9, after_nodes=0, rest=0.1, rest_share=10**6))
    asked: dict[str, Any] = {"batch": 8, "pool_gap": 0.05, "certificate": certificate}
    waited, close = list[bool](), SearchTree.close_leaves
    monkeypatch.setattr(
        SearchTree,
        "close_leaves",
        lambda tree: (waited.extend(leaf.alpha is not None for leaf in tree.leaves), close(tree)),
    )
    at_once = solve(problem, "branch", **asked)
    assert waited
    assert not any(waited)
    results = [solve(problem, "branch", threads=threads, settings=dear, **asked) for threads in (1, 2)]
    assert any(waited)
    assert len({(r.objective, r.bound, r.selected, tuple(sorted(r.counters.items()))) for r in results}) == 1
    assert results[0].status is Status.OPTIMAL
    lists = [one.near_optimal["supports"] for one in (results[0], at_once) if one.near_optimal is not None]
    assert len({tuple(tuple(one["selected"]) for one in found) for found in lists}) == 1
    for limit in (20, 60, 100, 140):
        cut = solve(problem, "branch", iteration_limit=limit, settings=dear, **asked)
        assert cut.bound <= at_once.objective * (1 + 1e-6)
        report = mipfs.verify(cut, problem.data) if certificate else None
        assert report is None or report.accepted, report


def test_a_state_holds_the_leaves_that_wait_for_their_svms(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that goes on from it ends with the same set as one that was never left, from other batches."""
    problem, trees, step = one(100, 20, 8, 4.0), list[SearchTree](), BranchAndBound.step
    monkeypatch.setattr(BranchAndBound, "step", lambda self, *out: (trees.append(self.tree), step(self, *out))[1])
    settings = BranchSettings(search=SearchSettings(dear=1e-9, after_nodes=0))
    asked: dict[str, Any] = {"batch": 8, "pool_gap": 0.05, "settings": settings}
    whole, states = solve(problem, "branch", **asked), list[RunState]()
    with mipfs.start(problem, "branch", **asked) as session:
        while session.step() and len(states) < 2:
            if trees[-1].leaves:
                states.append(session.state)
    assert states
    for state in states:
        assert np.count_nonzero(state.arrays["node_why"] == LEAF)
        result = solve(problem, "branch", resume=state, **asked)
        assert (result.selected, result.status) == (whole.selected, whole.status)
        assert result.objective == pytest.approx(whole.objective, rel=settings.tree.leaf_gap)
        assert mipfs.verify(result, problem.data).accepted


def test_no_more_threads_work_than_there_are_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "cores", lambda: 2)
    assert [machine.at_work(asked) for asked in (None, 1, 2, 8)] == [2, 1, 2, 2]
    tree = SimpleNamespace(run=SimpleNamespace(options=Options(threads=8)))
    assert Exploration(cast(Any, tree))._here.count == 2


@pytest.mark.parametrize("hopeful", [0.0, 1.0], ids=["the gap is large", "the gap is small"])
def test_the_climb_goes_in_slices(hopeful: float) -> None:
    """Seven or three SVMs beside a batch at most, by the gap, and together those of the whole climb."""
    most = 3 if hopeful else 7

    def opened() -> SearchTree:
        none = {"pause": 0.0, "share": 0.0, "beside": 0.0, "brief": 0.0}
        asked = {"after_nodes": 0, "at_once": 7, "few": 3, "strands": 1}
        settings = BranchSettings(search=SearchSettings(hopeful=hopeful, **asked, **none))
        run = Run(one(300, 30, 12, 4.0), Options(), settings=settings)
        begun = gbd.begin(run)
        assert begun is not None
        tree = SearchTree(run, begun[0], 1e-6)
        tree.open_root()
        run.raise_bound(tree.bound)
        return tree

    whole, tree = opened(), opened()
    climb(whole.supports, whole.supports.pool)
    search, counts = PacedSearch(tree), [tree.supports.subproblem.count]
    while counts[-1] < whole.supports.subproblem.count:
        works = search.take_jobs()
        search.collect(lambda works=works: [work() for work in works])
        counts.append(tree.supports.subproblem.count)
    assert len(counts) > 2
    assert np.diff(counts).max() == most
    assert counts[-1] == whole.supports.subproblem.count
    assert tree.run.objective == whole.run.objective


def test_a_search_that_rests_goes_on_with_strands_and_solvers_made_anew() -> None:
    run = Run(one(300, 30, 12, 4.0), Options())
    begun = gbd.begin(run)
    assert begun is not None
    tree = SearchTree(run, begun[0], 1e-6)
    tree.open_root()
    search, oracle = PacedSearch(tree), run.oracle
    works = search.take_jobs()
    search.collect(lambda: [work() for work in works])
    oracle.minimise_relaxed(np.ones(30))
    before = search._strands, oracle._relaxed_model
    search.restart_search()
    assert search._strands is not before[0]
    assert oracle._relaxed_model is not before[1]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("limit", [50, None])
def test_the_bound_does_not_depend_on_when_the_last_nodes_were_left(limit: int | None) -> None:
    problem = one(300, 30, 12, 4.0)
    results = [solve(problem, "branch", threads=threads, iteration_limit=limit) for threads in (2, 1, 2, 2)]
    assert len({(r.stop_reason, r.objective, r.bound, r.selected) for r in results}) == 1


def test_limits_leave_an_incumbent_and_an_earned_bound() -> None:
    problem = one(500, 50, 25, 32.0)
    optimum = 1434.1252
    for limits, reason in (
        ({"time_limit": 0.1}, StopReason.TIME_LIMIT),
        ({"iteration_limit": 60}, StopReason.ITERATION_LIMIT),
    ):
        result = solve(problem, "branch", **limits)
        assert result.status is Status.FEASIBLE
        assert result.stop_reason is reason
        assert result.bound <= optimum * (1 + 1e-6) <= result.objective * (1 + 2e-6)
        report = mipfs.verify(result, problem.data)
        assert report.accepted, report.reason
        assert report.bound == pytest.approx(result.bound, rel=1e-9)
        assert result.claim is not None
        proof = result.claim.proof
        assert isinstance(proof, Proof)
        inner = proof._feature[: proof.n_nodes] >= 0
        assert np.all(proof._value[: proof.n_nodes][inner] < result.bound), "what proves the bound is not split"


def test_a_callback_stops_it() -> None:
    seen: list[Record] = []

    def stop(record: Record) -> bool:
        seen.append(record)
        return len(seen) == 3

    result = solve(one(500, 50, 25, 32.0), "branch", callback=stop)
    assert result.stop_reason is StopReason.INTERRUPTED
    assert all(a.bound <= b.bound and a.objective >= b.objective for a, b in itertools.pairwise(seen))


@pytest.mark.slow
def test_the_time_limit_is_kept_on_large_data() -> None:
    r = np.random.default_rng(0)
    X = r.standard_normal((3000, 400))
    y = np.where(X[:, :40] @ r.standard_normal(40) + r.standard_normal(3000) > 0, 1.0, -1.0)
    problem = Problem(Instance.from_arrays(X, y), M=20, C=10.0)
    solve(problem, "branch", time_limit=0.0)  # compiles
    begin = time.monotonic()
    result = solve(problem, "branch", time_limit=2.0)
    assert time.monotonic() - begin < 8.0
    assert np.isfinite(result.objective)
    assert threading.active_count() < 20


def test_wide_data_are_screened_in_place() -> None:
    """More features than samples: the root leaves few, and the answer is gbd's."""
    r = np.random.default_rng(4)
    X = r.standard_normal((40, 600))
    y = np.where(X[:, 0] - X[:, 1] > 0, 1.0, -1.0)
    problem = Problem(Instance.from_arrays(X, y), loss="squared-hinge", bias=False, M=2, C=0.005)
    result = solve(problem, "branch", gap=1e-6)
    assert result.status is Status.OPTIMAL
    assert result.counters["root_free"] < 600
    assert result.objective == pytest.approx(solve(problem, "gbd", gap=1e-6).objective, rel=2e-6)
    assert mipfs.verify(result, problem.data).accepted


@pytest.mark.slow
def test_el0ps_optima_of_wdbc() -> None:
    """Optima by brute force over all supports; the objective is twice (P)."""
    data = mipfs.read("instances/wdbc.svm", scale="standard")
    for loss, C, lam, value, support in (
        ("squared-hinge", 1.0, 20.0, 129.5992913774, (21, 23, 27)),
        ("squared-hinge", 1.0, 10.0, 97.1727964702, (13, 21, 23, 27)),
        ("logistic", 0.5, 20.0, 135.7377227497, (23, 27)),
        ("logistic", 0.5, 10.0, 110.1174044702, (7, 21, 23)),
    ):
        problem = Problem(data, loss=loss, bias=False, C=C, lam=lam / 2, cardinality=False)
        result = solve(problem, "branch")
        assert result.status is Status.OPTIMAL
        assert 2 * result.objective == pytest.approx(value, rel=1e-9)
        assert tuple(sorted(result.columns[name] for name in result.selected)) == support
