"""Blocks that threads share inside a node: the same bytes with any number of threads, none shared of small data."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import mipfs
from mipfs import Instance, Problem
from mipfs.drivers import executor
from mipfs.inner import designs, tall
from mipfs.inner.boolean import Boolean
from mipfs.inner.rows_node import RowsRelaxation
from mipfs.plumbing import blocks, machine, own_threads
from mipfs.plumbing.blocks import count_of, cut, inside, run_each
from mipfs.settings import RelaxationSettings
from tests.drivers.test_resumed import written
from tests.test_concurrency import ends

THREADS = 1, 2, 3, 8


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Data of a few thousand numbers count as large, and their blocks as worth it."""
    monkeypatch.setattr(blocks, "LARGE", 1000)
    for name, value in (("BLOCK_NUMBERS", 64), ("BLOCK_WORK", 64.0), ("BLOCK_WORK_PER_NUMBER", 0.0)):
        monkeypatch.setattr(designs, name, value)
    monkeypatch.setattr(tall, "BLOCK_NUMBERS", 64)


def made(kind: str, n: int, p: int, **more: Any) -> Problem:
    """A problem whose best columns are easy to see."""
    r = np.random.default_rng([n, p])
    X = r.normal(size=(n, p))
    y = np.where(X[:, :4] @ np.array([2.0, -1.5, 1.0, 1.0]) + 1.5 * r.normal(size=n) > 0.0, 1, -1)
    values = sparse.csc_array(X * (r.random(X.shape) < 0.1)) if kind == "sparse" else X
    return Problem(Instance.from_arrays(values, y), **{"M": 3, "C": 0.1, **more})


def for_all_threads(work: Callable[[], Any]) -> list[Any]:
    """What a call returns with every number of threads."""
    found = []
    for threads in THREADS:
        with inside(lambda threads=threads: threads):  # type: ignore[misc]
            found.append(work())
    return found


@pytest.mark.sampled(3)
@pytest.mark.parametrize("threads", [*THREADS, 40])
def test_every_block_is_done_once_by_as_many_threads(threads: int) -> None:
    done, seen = [0] * 20, set[int]()

    def work(block: int) -> None:
        done[block] += 1
        seen.add(threading.get_ident())
        time.sleep(0.02)

    with inside(lambda: threads):
        run_each(work, 20)
    assert done == [1] * 20
    assert 1 <= len(seen) <= threads
    assert (len(seen) > 1) == (threads > 1)
    seen.clear()
    run_each(work, 5)
    assert len(seen) == 1


def test_an_error_in_a_block_ends_them_all() -> None:
    begun = []

    def work(block: int) -> None:
        begun.append(block)
        time.sleep(0.01)
        if block == 1:
            raise MemoryError

    for threads in (1, 3):
        begun.clear()
        with pytest.raises(MemoryError), inside(lambda: threads):  # noqa: B023
            run_each(work, 1000)
        count = len(begun)
        assert count < 20
        time.sleep(0.05)
        assert len(begun) == count


def test_blocks_depend_on_the_shape_alone() -> None:
    assert count_of(1000, 1000, 100) == 1
    assert count_of(1001, 1000, 100) == blocks.MOST
    assert count_of(10**6, 2, 0) == 1
    assert cut(np.arange(11), 4).tolist() == [0, 3, 5, 8, 10]
    assert cut(np.array([0, 0, 9, 9, 10]), 2).tolist() == [0, 2, 4]
    assert cut(np.arange(3), 4).tolist()[-1] == 2
    assert cut(np.zeros(1), 3).tolist() == [0, 0, 0, 0]


@pytest.mark.sampled(5)
@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize(("n", "k"), [(400, 30), (30, 400), (2000, 5)])
def test_products_are_those_of_one_thread_to_the_bit(kind: str, n: int, k: int, small: None) -> None:
    r = np.random.default_rng(n)
    dense = r.normal(size=(n, k)) * (r.random((n, k)) < 0.3)
    if kind == "sparse":
        design: designs.Dense | designs.Sparse = designs.Sparse(sparse.csc_array(dense), bool)
    else:
        design = designs.Dense(np.asfortranarray(dense), bool)
    v, w = r.random(k), r.random(n)

    def products() -> tuple[Any, ...]:
        return design.times(v), design.pull(w), np.tril(design.gram(w)), np.tril(design.outer(v))

    found = for_all_threads(products)
    wanted = dense @ v, dense.T @ w, np.tril(dense.T @ (w[:, None] * dense)), np.tril(dense @ (v[:, None] * dense.T))
    for one, other in zip(found[0], wanted, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)
    for others in found[1:]:
        assert all(np.array_equal(one, other) for one, other in zip(found[0], others, strict=True))


@pytest.mark.sampled(5)
@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_a_root_is_the_same_with_any_number_of_threads(kind: str, loss: str, small: None) -> None:
    problem = made(kind, 3000, 12, loss=loss)
    low, high = problem.selection.sigma_bounds()

    def solved() -> tuple[Any, ...]:
        whole = Boolean(problem, bool, RelaxationSettings(cheap=1.0))
        known = tall.known_classifier(whole, high)
        assert known is not None
        root = whole.solve(low, high, 1e-6, known=known)
        assert root.cut.dual is not None
        return root.lower, root.upper, root.w.tobytes(), root.cut.dual[0].tobytes(), known.alpha.tobytes()

    found = for_all_threads(solved)
    assert found[1:] == found[:-1]
    assert found[0][0] == pytest.approx(Boolean(problem, bool).solve(low, high, 1e-6).lower, rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "n", "p"), [("dense", 6000, 200), ("sparse", 25_000, 60)])
def test_a_solve_of_large_data_has_the_same_bytes(
    kind: str, n: int, p: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Data above a million numbers, as it is."""
    monkeypatch.setattr(machine, "cores", lambda: 8)
    problem, used = made(kind, n, p), set[int]()
    before = own_threads.share

    def shared(work: Callable[[int, int], object], pieces: int, threads: int) -> None:
        used.add(threads)
        before(work, pieces, threads)

    monkeypatch.setattr(blocks, "share", shared)
    wanted = None
    for threads in THREADS:
        used.clear()
        result = mipfs.solve(problem, "branch", threads=threads)
        assert (max(used) > 1) == (threads > 1)
        assert max(used) <= threads
        found = written(result, tmp_path / str(threads))
        wanted = wanted or found
        assert found == wanted
    report = mipfs.verify(result, problem.data)
    assert report.accepted, report.reason


def test_small_data_have_one_thread_inside_a_node(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: object) -> None:
        raise AssertionError("shared")

    monkeypatch.setattr(machine, "cores", lambda: 8)
    monkeypatch.setattr(designs, "run_each", lambda work, count: work(0) if count == 1 else none())
    assert mipfs.solve(made("dense", 400, 20), "branch").bound > 0.0
    assert mipfs.solve(made("sparse", 3000, 20), "branch").bound > 0.0


def test_units_share_the_threads_that_there_are(monkeypatch: pytest.MonkeyPatch, small: None) -> None:
    """Groups have no kernel: every node is an interior point."""
    from mipfs.atoms.groups import Groups

    monkeypatch.setattr(machine, "cores", lambda: 8)
    seen, before = list[tuple[int, int]](), RowsRelaxation.explore_unit

    def explored(relaxation: RowsRelaxation, unit: Any) -> Any:
        assert isinstance(hands[0], executor.Threads)
        out = hands[0]._n_out
        seen.append((blocks._threads.get()(), out))
        return before(relaxation, unit)

    hands, opened = list[Any](), executor.Threads.open

    def open_(own: executor.Threads, tree: Any) -> None:
        hands[:] = [own]
        opened(own, tree)

    monkeypatch.setattr(RowsRelaxation, "explore_unit", explored)
    monkeypatch.setattr(executor.Threads, "open", open_)
    data = made("dense", 200, 12).data
    groups = Groups(data, {f"g{k}": [k, (k + 5) % 12] for k in range(12)}, scaling="norm")
    mipfs.solve(Problem(data, M=3, atoms=groups), "branch", threads=4, gap=1e-6, relax="interior")
    assert len(seen) > 3
    assert all(1 <= threads <= 4 for threads, _ in seen)
    assert any(threads > 1 for threads, _ in seen)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_child_that_is_forked_after_a_solve_with_threads_solves_the_same(
    small: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "cores", lambda: 3)
    problem = made("sparse", 3000, 12)
    wanted = written(mipfs.solve(problem, "branch", threads=3), tmp_path / "parent")
    child = os.fork()
    if child == 0:
        same = written(mipfs.solve(problem, "branch", threads=3), tmp_path / "child") == wanted
        os._exit(0 if same else 1)
    assert ends(child, 60.0)


def test_two_solves_at_once_are_those_of_one_after_the_other(
    small: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "cores", lambda: 3)
    problems = [made("sparse", 3000, 12), made("dense", 2000, 10)]

    def solved(k: int, name: str) -> Any:
        return written(mipfs.solve(problems[k], "branch", threads=3), tmp_path / f"{name}{k}")

    wanted = [solved(k, "alone") for k in (0, 1)]
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(solved, (0, 1), ("beside", "beside"))) == wanted
