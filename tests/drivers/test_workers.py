"""`branch` on the workers of a Dask cluster: the tree, the answer and the proof of one process, whoever dies."""

from __future__ import annotations

import contextlib
import itertools
import os
import pickle
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mipfs
from mipfs.atoms.groups import Groups
from mipfs.data.instance import Instance
from mipfs.drivers import workers
from mipfs.drivers.tree import SearchTree
from mipfs.errors import UsageError
from mipfs.inner.node_solver import NodeSolver
from mipfs.inner.unit import NodeUnit, UnitResult
from mipfs.kernels.units import ExploredPieces
from mipfs.plumbing import cluster as clusters
from mipfs.problem import Problem
from mipfs.result.result import Record, Result, Status, StopReason
from mipfs.settings import BranchSettings, TreeSettings
from tests.dask_cases import compare, start
from tests.oracles import brute_force

distributed = pytest.importorskip("distributed", reason="Dask is not installed: pip install 'mipfs[dask]'")

KINDS = ("hinge", "logistic", "weighted", "costs", "rows", "extra", "groups")


def hard(kind: str = "hinge", n: int = 60, p: int = 14, M: int | None = 4, C: float = 1.0) -> Problem:
    """A problem of some hundred nodes."""
    r = np.random.default_rng([3, n, p])
    X = r.normal(size=(n, p)) * r.uniform(0.3, 2.0, p)
    y = np.where(X @ r.normal(size=p) + 2.0 * r.normal(size=n) > 0, 1, -1)
    weights = r.uniform(0.5, 2.0, n) if kind == "weighted" else None
    data = Instance.from_arrays(X, y, sample_weight=weights)
    atoms = Groups(data, {f"g{i}": [i, (i + 5) % p] for i in range(p)}, scaling="norm") if kind == "groups" else None
    lam: Any = 0.2 if kind == "costs" else 0.0
    problem = Problem(
        data,
        M=None if kind == "costs" else M,
        C=C,
        lam=lam,
        atoms=atoms,
        loss="logistic" if kind == "logistic" else "hinge",
    )
    if kind in ("rows", "extra"):
        problem = problem.with_rows(r.integers(0, 2, size=(2, p)).astype(float), -np.inf, [2.0, 3.0])
    return problem


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with start() as client:
        yield client


@pytest.fixture
def own() -> Iterator[Any]:
    """A cluster that a test may wreck."""
    with start() as client:
        yield client


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_the_tree_and_the_proof_are_those_of_threads(client: Any, kind: str, tmp_path: Path) -> None:
    problem = hard(kind)
    here = mipfs.solve(problem, "branch", gap=1e-6, batch=16)
    there = mipfs.solve(problem, "branch", gap=1e-6, batch=16, client=client)
    assert there.status is Status.OPTIMAL
    compare(there, here, tmp_path)
    report = mipfs.verify(there, problem.data)
    assert report.accepted, report.reason


@pytest.mark.slow
def test_a_branching_rule_is_that_of_threads(client: Any, tmp_path: Path) -> None:
    """Any number of threads, and the workers: one tree."""
    rule = {"branching": "most-fractional", "gap": 1e-6, "batch": 16}
    usual, one, many, there = (
        mipfs.solve(hard(), "branch", **{**rule, **more})
        for more in ({"branching": None}, {"threads": 1}, {"threads": 3}, {"client": client})
    )
    assert usual.counters["nodes"] != one.counters["nodes"]
    for other, name in ((many, "many"), (there, "away")):
        (tmp_path / name).mkdir()
        compare(other, one, tmp_path / name)


def test_the_answer_is_the_best_of_all_selections(client: Any) -> None:
    problem = hard(n=40, p=8, M=2, C=0.5)
    found = mipfs.solve(problem, "branch", gap=1e-8, client=client)
    data = problem.data
    allowed = [frozenset(pair) for pair in itertools.combinations(range(8), 2)]
    best = brute_force(data.block().dense(), data.y, problem.c_i, allowed, problem.penalty, True)
    assert found.status is Status.OPTIMAL
    assert found.objective == pytest.approx(best.value.upper, rel=1e-6)
    assert found.bound <= best.value.upper * (1 + 1e-9)
    assert frozenset(data.feature_names.index(name) for name in found.selected) in best.optimal


@pytest.mark.slow
def test_a_view_that_grows_is_explored_by_the_workers(client: Any) -> None:
    problem = hard(p=12, M=3)
    part = problem.data.feature_names[:4]
    here, there = (mipfs.solve(problem, "branch", active=part, **options) for options in ({}, {"client": client}))
    assert there.status is here.status is Status.OPTIMAL
    assert there.objective == pytest.approx(here.objective, rel=1e-4)
    assert mipfs.verify(there, problem.data).accepted


@pytest.mark.slow
def test_a_limit_and_ctrl_c_leave_what_is_proven(client: Any) -> None:
    problem = hard(n=300, p=60, M=10)
    began = time.monotonic()
    limited = mipfs.solve(problem, "branch", time_limit=1.0, client=client)
    assert time.monotonic() - began < 10.0
    assert limited.stop_reason is StopReason.TIME_LIMIT

    def strike(record: Record) -> None:
        if record.iteration > 200:
            signal.raise_signal(signal.SIGINT)

    struck = mipfs.solve(problem, "branch", callback=strike, client=client)
    assert struck.stop_reason is StopReason.INTERRUPTED
    for result in (limited, struck):
        assert 0.0 < result.bound < result.objective
        report = mipfs.verify(result, problem.data)
        assert report.accepted, report.reason


def test_a_state_goes_from_the_workers_to_this_process_and_back(client: Any) -> None:
    problem = hard(n=80)
    whole_run = mipfs.solve(problem, "branch", gap=1e-6)
    limit = whole_run.counters["nodes"] // 2
    half = mipfs.solve(problem, "branch", gap=1e-6, client=client, iteration_limit=limit, checkpoint=True, batch=8)
    assert half.state is not None
    state = pickle.loads(pickle.dumps(half.state))  # nothing of the client is in it
    for options in ({}, {"client": client}):
        rest = mipfs.solve(problem, "branch", gap=1e-6, resume=state, **options)
        assert rest.status is Status.OPTIMAL
        assert rest.objective == pytest.approx(whole_run.objective, rel=1e-6)
        assert mipfs.verify(rest, problem.data).accepted


def wrecked(problem: Problem, own: Any, strike: Callable[[], object], after: int, **options: Any) -> Result:
    """A run in whose middle something happens."""
    struck: list[int] = []

    def watch(record: Record) -> None:
        if record.iteration >= after and not struck:
            struck.append(record.iteration)
            strike()

    result = mipfs.solve(problem, "branch", batch=4, client=own, callback=watch, **options)
    assert struck
    return result


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "count"), [("hinge", 2), ("rows", 1)])
def test_workers_that_are_killed_lose_nothing(own: Any, kind: str, count: int, tmp_path: Path) -> None:
    problem = hard(kind, n=100, p=20, M=5, C=10.0 if kind == "rows" else 1.0)
    here = mipfs.solve(problem, "branch", batch=4)
    assert here.counters["nodes"] > 40
    pids = list(own.run(os.getpid).values())[:count]
    there = wrecked(problem, own, lambda: [os.kill(pid, signal.SIGKILL) for pid in pids], here.counters["nodes"] // 3)
    compare(there, here, tmp_path)
    report = mipfs.verify(there, problem.data)
    assert report.accepted, report.reason


@pytest.mark.every
@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.every)])
def test_workers_that_die_again_and_again_at_any_moment_lose_nothing(own: Any, seed: int, tmp_path: Path) -> None:
    """Nine are killed, those that begin in their place too, while they load, explore, or send what they found."""
    problem = hard(("hinge", "rows")[seed], n=100, p=24, M=6, C=10.0 if seed == 1 else 1.0)
    here = mipfs.solve(problem, "branch", batch=4)
    r, over, killed = random.Random(seed), threading.Event(), list[int]()

    def attack() -> None:
        while len(killed) < 9 and not over.wait(r.uniform(0.05, 0.5)):
            alive = [nanny.pid for nanny in own.cluster.workers.values() if nanny.pid]
            if alive:
                killed.append(r.choice(alive))
                with contextlib.suppress(ProcessLookupError):
                    os.kill(killed[-1], signal.SIGKILL)

    attacker = threading.Thread(target=attack)
    attacker.start()
    try:
        there = mipfs.solve(problem, "branch", batch=4, client=own)
    finally:
        over.set()
        attacker.join()
    assert len(set(killed)) >= 2
    compare(there, here, tmp_path)
    report = mipfs.verify(there, problem.data)
    assert report.accepted, report.reason


@pytest.mark.sampled(2)
@pytest.mark.parametrize("way", ["no line", "nobody at home"])
def test_where_lines_cannot_be_units_are_tasks(
    client: Any, way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks, before = list[Any](), workers.ClusterTask

    class Nobody(workers.Listener):
        def __init__(self, host: str) -> None:
            super().__init__(host)
            self.address = host, 9  # where nothing listens

    def task(*given: Any) -> Any:
        tasks.append(before(*given))
        return tasks[-1]

    monkeypatch.setattr(workers, "ClusterTask", task)
    if way == "no line":
        monkeypatch.setattr(workers, "seen_from", lambda address: None)
    else:
        monkeypatch.setattr(workers, "Listener", Nobody)
    problem = hard(n=100, p=20, M=5)
    there, here = (mipfs.solve(problem, "branch", batch=4, **options) for options in ({"client": client}, {}))
    compare(there, here, tmp_path)
    assert len(tasks) > 5


def test_units_go_over_lines_and_workers_have_time_for_others(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "ClusterTask", None)
    others = list[int]()

    def asks(record: Record) -> None:
        if record.iteration > 20 and not others:
            others.append(client.submit(len, "three", pure=False).result(timeout=60))

    result = mipfs.solve(hard(n=100, p=20, M=5), "branch", batch=4, client=client, callback=asks)
    assert result.status is Status.OPTIMAL
    assert others == [5]
    end = time.monotonic() + 60.0
    while any(client.processing().values()) and time.monotonic() < end:
        time.sleep(0.05)
    assert not any(client.processing().values())


@pytest.mark.slow
def test_without_a_scheduler_this_process_goes_on(own: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    problem = hard(n=100, p=20, M=5)
    here = mipfs.solve(problem, "branch", batch=4)
    there = wrecked(problem, own, lambda: own.cluster.close(timeout=20), 60)
    compare(there, here, tmp_path)
    assert "nothing is lost, the search goes on in this process" in caplog.text


@pytest.mark.slow
def test_without_workers_this_process_goes_on(
    client: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clusters, "WORKER_SECONDS", 0.2)
    monkeypatch.setattr(clusters, "threads_of", lambda client: {})
    problem = hard()
    here = mipfs.solve(problem, "branch", batch=16)
    there = mipfs.solve(problem, "branch", batch=16, client=client)
    compare(there, here, tmp_path)
    assert caplog.text.count("no Dask worker is left; nothing is lost") == 1


@pytest.mark.slow
def test_what_fails_on_a_worker_fails_here(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    class Other(workers.DaskExecutor):
        def open(self, tree: SearchTree) -> None:
            super().open(tree)
            self._solver.version = "another"

    monkeypatch.setattr(workers, "DaskExecutor", Other)
    with pytest.raises(UsageError, match="another version of mipfs or numba"):
        mipfs.solve(hard(), "branch", client=client)


@pytest.mark.slow
def test_what_cannot_be_spread_is_refused(client: Any) -> None:
    problem = hard()
    with pytest.raises(UsageError, match=r"client = 'here' is no dask\.distributed\.Client"):
        mipfs.solve(problem, "branch", client="here")
    with pytest.raises(UsageError, match="one at a time, by Clarabel"):
        mipfs.solve(problem, "branch", client=client, nodes="conic")
    with pytest.raises(UsageError, match="client takes neither the structural loss"):
        mipfs.solve(problem.replace(loss="structural", bias=False, measure="f1"), "branch", client=client)
    with pytest.raises(UsageError, match="driver 'gbd' has no option 'client'"):
        mipfs.solve(problem, "gbd", client=client)
    for batch in (0, 1.5, True):
        with pytest.raises(UsageError, match=r"batch = .* must be a whole number >= 1"):
            mipfs.solve(problem, "branch", batch=batch)
    with pytest.raises(UsageError, match="no Dask scheduler at 'nonsense://here'"):
        clusters.client_of("nonsense://here")


def alone(unit: NodeUnit, at: int) -> NodeUnit:
    """One of its nodes."""
    own = slice(at, at + 1)
    nodes = unit.nodes._replace(heads=unit.nodes.heads[own])
    return NodeUnit(nodes, unit.duals.part(np.array([at])), unit.limits[own], unit.prices[own])


def bytes_of(parts: Sequence[UnitResult]) -> list[bytes]:
    """What came of units, one after the other, array by array; words are counted from the first of all."""
    found = [one.found for one in parts if one.found is not None]
    arrays = [
        np.concatenate([getattr(one, name) for one in found]) for name in ExploredPieces._fields if name != "back"
    ]
    sizes = [one.back.words.size for one in found]
    heads = np.concatenate([one.back.heads for one in found])
    heads["start"] += np.repeat(np.cumsum(sizes) - sizes, [one.back.heads.size for one in found])
    return [array.tobytes() for array in (*arrays, heads, *(one.back.words for one in found))]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["hinge", "weighted", "rows", "groups"])
def test_a_solver_that_travelled_finds_the_same_bits(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a cluster: solver and units are pickled; nodes are explored one by one there, together here."""
    seen, merge = list[int](), SearchTree.merge

    def compared(
        tree: SearchTree, units: Sequence[NodeUnit], all_found: Sequence[UnitResult | None], *before: Any
    ) -> None:
        solver: NodeSolver = pickle.loads(pickle.dumps(tree.solver()))
        for unit, found in zip(units, all_found, strict=True):
            assert found is not None
            away: NodeUnit = pickle.loads(pickle.dumps(unit))
            each = [solver.explore(alone(away, at), 60.0) for at in range(len(unit))]
            back: list[UnitResult] = [UnitResult(*pickle.loads(pickle.dumps(tuple(one)))) for one in each]
            words = b"".join(bytes_of(back)[len(ExploredPieces._fields) :])
            assert [*bytes_of(back)[: len(ExploredPieces._fields)], words] == bytes_of([found])
            seen.append(len(unit))
        merge(tree, units, all_found, *before)

    monkeypatch.setattr(SearchTree, "merge", compared)
    settings = BranchSettings(tree=TreeSettings(least_units=2))
    mipfs.solve(hard(kind, p=30), "branch", threads=1, iteration_limit=400, batch=20, settings=settings)
    assert seen
    assert max(seen) > 1 or kind == "groups"
