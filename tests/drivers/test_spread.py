"""`kelley` with columns on the workers of a Dask cluster: selection, bound and trace of one process, whoever dies."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import mipfs
from mipfs.atoms import spread
from mipfs.atoms.features import Features
from mipfs.atoms.groups import Groups
from mipfs.atoms.top import TopFeatures
from mipfs.data.blocked import split_in_memory
from mipfs.data.instance import Instance, Scaling
from mipfs.errors import UsageError
from mipfs.plumbing import cluster as clusters
from mipfs.problem import Problem
from mipfs.result.result import Record
from tests.dask_cases import compare, start

distributed = pytest.importorskip("distributed", reason="Dask is not installed: pip install 'mipfs[dask]'")

# Each worker of a cluster loads everything anew: `make test` has the clusters of test_workers.py alone.
pytestmark = pytest.mark.slow


def text(n: int = 200, p: int = 3000, seed: int = 0, scale: Scaling = "none") -> Instance:
    """Sparse columns of a few words each, the first ones with a say."""
    r = np.random.default_rng([5, seed])
    X = sparse.random_array(
        (n, p), density=0.02, rng=r, format="csc", data_sampler=lambda size: r.uniform(0.1, 2.0, size)
    )
    y = np.where(X[:, :40] @ r.normal(size=40) + 0.3 * r.normal(size=n) > 0, 1.0, -1.0)
    return Instance.from_arrays(X, y, scale=scale)


def table(n: int = 80, p: int = 120, scale: Scaling = "standard") -> Instance:
    """Dense columns, some of them equal."""
    r = np.random.default_rng(7)
    X = r.normal(3.0, 2.0, size=(n, p))
    X[:, p // 2 : p // 2 + 5] = X[:, : min(5, p - p // 2)]
    score = X[:, :6].sum(axis=1) + r.normal(size=n)
    return Instance.from_arrays(X, np.where(score > np.median(score), 1, -1), scale=scale)


CASES = {
    "text": lambda: text(),
    "text, unit": lambda: text(scale="unit"),
    "text, centred": lambda: text(scale="standard"),
    "dense": lambda: table(),
    "one column": lambda: table(p=1),
    "blocks": lambda: blocked(text()),
    "dense blocks": lambda: blocked(table(scale="none")),
    "one block": lambda: blocked(text(), 10**6),
}


def blocked(data: Instance, width: int = 700) -> Instance:
    """The same data in blocks of columns."""
    return Instance.from_arrays(split_in_memory(data.block().values, min(width, data.n_features)), data.y)


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with start() as client:
        yield client


@pytest.mark.sampled(5)
@pytest.mark.parametrize("case", CASES)
def test_selection_bound_and_trace_are_those_of_memory(client: Any, case: str, tmp_path: Path) -> None:
    data = CASES[case]()
    problem = Problem(data, loss="squared-hinge", M=min(8, data.n_features), C=1.0, bias=case != "text, unit")
    here = mipfs.solve(problem, "kelley")
    there = mipfs.solve(problem, "kelley", client=client)
    compare(there, here, tmp_path)
    report = mipfs.verify(there, data)
    assert report.accepted, report.reason


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_other_losses_and_limits(client: Any, loss: str, tmp_path: Path) -> None:
    problem = Problem(text(seed=1), loss=loss, M=5, C=0.5)
    here, there = (mipfs.solve(problem, "kelley", T=4, **options) for options in ({}, {"client": client}))
    compare(there, here, tmp_path)


@pytest.mark.parametrize("B", [1, 3, 50, 4000])
def test_the_best_columns_are_those_of_a_product(client: Any, B: int) -> None:
    """Against a dense product: ids, scores, and the bound on the others."""
    for data in (text(), table(), text(scale="standard")):
        features = Features(data)
        search = spread.Spread(features, client, lambda: False)
        assert len(search._groups) == 2
        for seed in range(3):
            v = np.random.default_rng(seed).normal(size=data.n_samples)
            exact = np.abs(data.block().dense().T @ v)
            ids, sizes = TopFeatures(features, search).best(v, B)
            order = np.argsort(-exact, kind="stable")[: ids.size]
            np.testing.assert_allclose(sizes, exact[order], rtol=1e-9)
            np.testing.assert_allclose(exact[ids], exact[order], rtol=1e-9)
            rest = search.best(v, B).rest
            left = np.delete(exact, ids).max(initial=0.0)
            assert (rest if not search.squared else np.sqrt(rest)) >= left * (1 - 1e-9)


@pytest.mark.parametrize(("case", "count"), [("text", 1), ("blocks", 2)])
def test_workers_that_are_killed_lose_nothing(case: str, count: int, tmp_path: Path) -> None:
    data = CASES[case]()
    problem = Problem(data, loss="squared-hinge", M=8, C=1.0)
    here = mipfs.solve(problem, "kelley", gap=1e-6)
    assert here.counters["selections"] >= 3
    with start() as own:
        pids, struck = list(own.run(os.getpid).values())[:count], list[int]()

        def strike(record: Record) -> None:
            if record.iteration == 2 and not struck:
                struck.extend(pids)
                for pid in pids:
                    os.kill(pid, signal.SIGKILL)

        there = mipfs.solve(problem, "kelley", gap=1e-6, client=own, callback=strike)
    assert struck
    compare(there, here, tmp_path)


def test_a_worker_that_dies_in_the_middle_of_scoring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is killed by what it is asked, the first time; the parts go to the other one."""
    problem = Problem(text(), loss="squared-hinge", M=8, C=1.0)
    here = mipfs.solve(problem, "kelley")
    mark = tmp_path / "struck"

    def deadly(share: spread.Share, B: int, v: Any) -> Any:
        try:
            mark.touch(exist_ok=False)
        except FileExistsError:
            return share.here().best(v, B)
        os.kill(os.getpid(), signal.SIGKILL)
        return None

    monkeypatch.setattr(spread, "best", deadly)
    with start() as own:
        there = mipfs.solve(problem, "kelley", client=own)
    assert mark.exists()
    compare(there, here, tmp_path)


def test_a_broadcast_that_never_ends_is_the_last_one(
    client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dask's waits for ever, with the scheduler's lock, where a worker dies in its middle: here a test has the lock."""

    async def hold(dask_scheduler: Any) -> None:
        await dask_scheduler._replica_lock.acquire("test")

    async def let_go(dask_scheduler: Any) -> None:
        dask_scheduler._replica_lock.release("test")

    monkeypatch.setattr(spread, "SCHEDULER_SECONDS", 0.5)
    problem = Problem(text(), loss="squared-hinge", M=8, C=1.0)
    here = mipfs.solve(problem, "kelley")
    client.run_on_scheduler(hold)
    try:
        began = time.monotonic()
        there = mipfs.solve(problem, "kelley", client=client)
        assert time.monotonic() - began < 10.0
    finally:
        client.run_on_scheduler(let_go)
    compare(there, here, tmp_path)


def test_without_workers_this_process_scores(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clusters, "WORKER_SECONDS", 0.2)
    monkeypatch.setattr(clusters, "threads_of", lambda client: {})
    problem = Problem(text(), loss="squared-hinge", M=8, C=1.0)
    with start(within=True) as client:
        here, there = (mipfs.solve(problem, "kelley", **options) for options in ({}, {"client": client}))
        compare(there, here, tmp_path)
    assert caplog.text.count("no Dask worker is left; nothing is lost, this process scores the columns") == 1


def test_what_cannot_be_spread_is_refused(client: Any) -> None:
    data = table(p=12)
    problem = Problem(data, loss="squared-hinge", M=3, C=1.0)
    rows = problem.with_rows(np.ones((1, 12)), -np.inf, 2.0)
    groups = Problem(data, atoms=Groups(data, {"a": [0, 1], "b": [2, 3]}), loss="squared-hinge", M=1, C=1.0)
    for other in (rows, groups, problem.replace(lam=0.1)):
        with pytest.raises(UsageError, match="single features under a cardinality row alone"):
            mipfs.solve(other, "kelley", client=client)
    with pytest.raises(UsageError, match=r"client = 1 is no dask\.distributed\.Client"):
        mipfs.solve(problem, "kelley", client=1)
