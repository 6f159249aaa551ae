"""Whoever relaxes a node, what becomes of it is the same: optima, certificates, and who takes over from whom."""

from __future__ import annotations

import itertools
import logging
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import mipfs
from mipfs import Instance, Problem
from mipfs.inner.batch import Batch
from mipfs.inner.boolean_node import BooleanRelaxation
from mipfs.inner.footpath import Footpath
from mipfs.kernels import subtree
from mipfs.result.result import Status
from mipfs.selection.selection import Extras, Rows
from mipfs.settings import BatchSettings, BranchSettings
from tests.drivers.test_rows_tree import enumerated
from tests.oracles import hinge_value

P = 7
HURRIED = BranchSettings(batch=BatchSettings(most=10, stuck=1e-9))
"""Ten iterations of ADMM, after which a node must be solved to a billionth: most go to whoever comes next."""


def drawn(seed: int, fifth: float = 0.0) -> Instance:
    r = np.random.default_rng([31, seed])
    X = r.normal(size=(24, P))
    y = np.where(X[:, :3].sum(axis=1) + fifth * X[:, 5] + r.normal(size=24) > 0.0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    return Instance.from_arrays(X, y)


def cycle(size: int) -> Any:
    """Rows that forbid every two neighbours of a cycle, and ask for (size + 1)/2 of it if feature `size` is in."""
    A = np.zeros((size + 1, P))
    for k in range(size):
        A[k, [k, (k + 1) % size]] = 1.0
    A[size, :size], A[size, size] = -1.0, (size + 1) / 2
    return A, np.append(np.ones(size), 0.0)


def with_extra(problem: Problem, A: Any, high: Any) -> Problem:
    """The rows, the last one through a variable t of one's own without ends: a'σ − t ≤ 0, t ≤ its end."""
    rows, count = A.shape
    whole = np.zeros((rows + 1, count + 1))
    whole[:rows, :count], whole[rows - 1, count], whole[rows, count] = A, -1.0, 1.0
    low, ends = np.full(rows + 1, -np.inf), np.append(np.append(high[:-1], 0.0), high[-1])
    names = tuple(f"r{k}" for k in range(rows + 1))
    extra = Extras(("t",), np.array([-np.inf]), np.array([np.inf]), np.zeros(1, dtype=bool))
    return problem.replace(rows=Rows(sparse.csr_array(whole), low, ends, names, ("",) * (rows + 1), extra))


@pytest.mark.sampled(7)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("has_extra", [False, True])
def test_what_an_lp_shows_to_be_empty_is_refuted(has_extra: bool, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where feature 5 is in, three of a cycle of five are wanted, of which no two neighbours may be: no row says so."""
    left, read = list[int](), Footpath._settle_node

    def settled(footpath: Footpath, handed: Any, of: int) -> None:
        read(footpath, handed, of)
        left.append(int(handed[4].nodes["why"][of, 0]))

    monkeypatch.setattr(Footpath, "_settle_node", settled)
    A, high = cycle(5)
    bare = Problem(drawn(seed, -2.0), M=5, C=2.0)
    plain = bare.with_rows(A, -np.inf, high)
    problem = with_extra(bare, A, high) if has_extra else plain
    X = np.asarray(problem.data.X)
    every = [np.array(bits, dtype=bool) for bits in itertools.product((0, 1), repeat=P)]
    allowed = [s for s in every if s.sum() <= 5 and np.all(A @ s <= high + 1e-9)]
    assert not any(s[5] for s in allowed)
    best = min(hinge_value(X[:, s], problem.data.y, problem.c_i, True).upper for s in allowed)
    result = mipfs.solve(problem, "branch", gap=1e-7, relax="interior", threads=1)
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(best, rel=1e-6)
    assert mipfs.verify(result, problem.data).accepted
    assert subtree.BARREN in left or not has_extra


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", ["plain", "rows", "penalties"])
def test_the_interior_point_ends_where_an_enumeration_does(kind: str) -> None:
    for seed in range(3):
        problem = Problem(drawn(seed), M=3, C=1.0, lam=0.2 if kind == "penalties" else 0.0)
        A = np.array([[1.0, 1, 1, 0, 0, 0, 0], [0, 0, 1, -1, 0, 0, 0]])
        has_rows = kind == "rows"
        problem = problem.with_rows(A, -np.inf, [1.0, 0.0]) if has_rows else problem.replace(rows=Rows.empty(P))
        result = mipfs.solve(problem, "branch", gap=1e-7, relax="interior")
        assert result.status is Status.OPTIMAL
        assert result.objective == pytest.approx(enumerated(problem), rel=1e-6)
        assert mipfs.verify(result, problem.data).accepted


@pytest.mark.sampled(2)
@pytest.mark.parametrize("has_rows", [False, True])
def test_what_admm_does_not_bring_home_is_newtons(has_rows: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """With ten iterations nearly every node is stuck; the tree is closed all the same, by any number of threads."""
    calls = list[tuple[str, int]]()
    for of in (Batch, BooleanRelaxation, Footpath):

        def counted(own: Any, nodes: Any, *others: Any, before: Any = of.explore_all) -> Any:
            calls.append((type(own).__name__, nodes.heads.size))
            return before(own, nodes, *others)

        monkeypatch.setattr(of, "explore_all", counted)
    r = np.random.default_rng(3)
    X = r.normal(size=(60, 16))
    y = np.where(X[:, :5].sum(axis=1) + 2.0 * r.normal(size=60) > 0.0, 1.0, -1.0)
    problem = Problem(Instance.from_arrays(X, y), M=4, C=1.0)
    if has_rows:
        problem = problem.with_rows(r.integers(0, 2, size=(2, 16)).astype(float), -np.inf, [2.0, 3.0])
    right = mipfs.solve(problem, "branch", relax="kernels")
    found = [mipfs.solve(problem, "branch", relax="batch", settings=HURRIED, threads=threads) for threads in (1, 2)]
    assert len({(one.objective, one.bound, one.counters["nodes"]) for one in found}) == 1
    assert found[0].status is Status.OPTIMAL
    assert found[0].counters["rescued"] > 0
    assert found[0].objective == pytest.approx(right.objective, rel=2e-4)
    assert mipfs.verify(found[0], problem.data).accepted
    by = {
        name: sum(count for one, count in calls if one == name) for name in ("Batch", "BooleanRelaxation", "Footpath")
    }
    assert by["BooleanRelaxation"] > 0
    assert by["Footpath"] <= (by["BooleanRelaxation"] if has_rows else 0)


def test_the_log_says_who_relaxes(caplog: pytest.LogCaptureFixture) -> None:
    problem = Problem(drawn(1), M=2, C=1.0)
    with caplog.at_level(logging.DEBUG, logger="mipfs"):
        mipfs.solve(problem, "branch", relax="batch")
        mipfs.solve(problem, "branch", relax="interior")
    said = [record.getMessage() for record in caplog.records if "are relaxed by" in record.getMessage()]
    first = "ADMM, many at a time, those left by Newton's steps in compiled code, those left by the interior point"
    assert any(first in one for one in said)
    assert any(one.endswith("relaxed by the interior point, one after the other") for one in said)
