"""Columns of mean 1000 without a bias, weights from 1e-6 to 1e6: drivers end around the enumerated optimum."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import mipfs
from mipfs import Instance, Problem
from mipfs.kernels import subtree
from mipfs.result.result import Status
from tests.oracles import hinge_value


def far_from_the_origin(seed: int) -> Problem:
    rng, n, p = np.random.default_rng(seed), 13, 9
    X = rng.normal(size=(n, p)) + rng.choice([0, 10, 1e3], p)
    y = np.where(X @ rng.normal(size=p) > np.median(X @ rng.normal(size=p)), 1.0, -1.0)
    y[:2] = 1, -1
    data = Instance.from_arrays(X, y, sample_weight=10.0 ** rng.uniform(-6, 6, n))
    return Problem(data, bias=False, M=4, C=91.0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_exact_drivers_close_and_the_relaxation_ends(seed: int) -> None:
    problem = far_from_the_origin(seed)
    X, y = np.asarray(problem.data.X), problem.data.y
    best = min(
        hinge_value(X[:, list(ids)], y, problem.c_i, False).upper
        for size in range(5)
        for ids in itertools.combinations(range(X.shape[1]), size)
    )
    for driver in ("branch", "gbd"):
        result = mipfs.solve(problem, driver, gap=1e-3, time_limit=60)
        assert result.status is Status.OPTIMAL
        assert result.objective <= best * (1 + 2e-3)
        assert result.bound <= best * (1 + 1e-6)
        assert mipfs.verify(result, problem.data).accepted
    relaxed = mipfs.solve(problem, "kelley", gap=1e-3, time_limit=60)
    assert relaxed.status in (Status.RELAXED, Status.OPTIMAL)
    assert relaxed.bound <= best * (1 + 1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("rows", [False, True])
def test_explorations_that_fail_are_left_to_the_interior_point(rows: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every second call divides by zero after it has written over the nodes that it was handed."""
    r = np.random.default_rng(4)
    X, y = r.normal(size=(60, 14)), np.where(r.normal(size=60) > 0, 1.0, -1.0)
    problem = Problem(Instance.from_arrays(X, y), M=5, C=1.0)
    if rows:
        problem = problem.with_rows(r.integers(0, 2, size=(2, 14)).astype(float), -np.inf, [2.0, 3.0])
    right = mipfs.solve(problem, "gbd")
    explore, calls = subtree.explore, itertools.count()

    def failing(*given: Any) -> None:
        explore(*given)
        if next(calls) % 2 == 0:
            raise ZeroDivisionError

    monkeypatch.setattr(subtree, "explore", failing)
    result = mipfs.solve(problem, "branch", threads=1)
    assert next(calls) > 4
    assert result.counters["rescued"] > 0
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(right.objective, rel=2e-4)
    assert mipfs.verify(result, problem.data).accepted
