"""The study of stronger relaxations: bounds lie between the root's and the optimum, and the whole is the optimum."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mipfs
from tests.climb_cases import drawn, values_of

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def stronger(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The benchmark's module."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return __import__("stronger")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_bounds_are_between_the_roots_and_the_optimum(stronger: Any, seed: int) -> None:
    M, C = 2, 1.0
    problem = mipfs.Problem(drawn(seed, 40, 6), M=M, C=C)
    best = min(values_of(problem).values())
    X, y = np.asarray(problem.data.block().values), problem.data.y
    root, alpha = stronger.relaxed(X, y, M, C)
    found = mipfs.solve(problem, "kelley", gap=1e-7)
    assert root == pytest.approx(found.bound, rel=1e-5)
    assert abs(float(y @ alpha)) < 1e-5
    assert root + 0.05 * (best - root) <= stronger.closure(X, y, M, C) <= best + 1e-5
    whole = stronger.decomposed(X, y, M, C, np.zeros(40), best, 0)
    assert whole[0][0] == pytest.approx(best, rel=1e-5)
    halves = stronger.decomposed(X, y, M, C, np.arange(40) % 2, best, 10)
    assert root - 1e-4 <= halves[0][0] <= halves[-1][0] <= best + 1e-4


def test_one_disjunction_of_one_feature_is_the_whole_truth(stronger: Any) -> None:
    problem = mipfs.Problem(drawn(4, 40, 1), M=1, C=0.05)
    X, y = np.asarray(problem.data.block().values), problem.data.y
    assert stronger.closure(X, y, 1, 0.05) == pytest.approx(min(values_of(problem).values()), rel=1e-6)


@pytest.mark.slow
def test_what_cannot_be_held_and_what_is_missing_is_said(stronger: Any) -> None:
    with pytest.raises(SystemExit, match="too many to hold"):
        stronger.selections_of(200, 8)
    assert stronger.selections_of(5, 2).sum(axis=1).tolist() == [0.0] + [1.0] * 5 + [2.0] * 10
    environment = {name: value for name, value in os.environ.items() if name != "MIPFS_DATA"}
    command = [sys.executable, "benchmarks/stronger.py", "clusters"]
    ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert ran.returncode == 1
    assert "set MIPFS_DATA" in ran.stderr
