"""``preselect``: every method names features; the exact solve that begins on them proves the whole problem."""

from __future__ import annotations

import numpy as np
import pytest

import mipfs
from mipfs.atoms.groups import Groups
from mipfs.data.instance import Instance
from mipfs.errors import UsageError
from mipfs.lab.baselines import available as baselines
from mipfs.lab.sketch import METHODS
from mipfs.problem import Problem


def wide(seed: int = 0) -> Problem:
    r = np.random.default_rng(seed)
    X = r.normal(size=(40, 300))
    y = np.where(X[:, :3].sum(axis=1) + 0.3 * r.normal(size=40) > 0, 1, -1)
    return Problem(Instance.from_arrays(X, y), M=3, C=0.01)


@pytest.mark.sampled(11)
@pytest.mark.parametrize("method", ["fgm", "bss", "leverage", "approx-bss", "rrqr", "uniform", "rfe", "l1-svm"])
def test_the_whole_is_proven_whatever_was_chosen(method: str) -> None:
    problem = wide()
    begin = mipfs.preselect(problem, f"{method}:60", seed=3)
    assert 0 < len(begin) <= 60
    assert len(set(begin)) == len(begin)
    assert begin == mipfs.preselect(problem, f"{method}:60", seed=3)
    result = mipfs.solve(problem, "branch", active=begin)
    assert result.selected == mipfs.solve(problem, "branch").selected
    assert result.counters["begun_with"] >= len(begin)
    assert mipfs.verify(result, problem.data).accepted


def test_every_method_is_known() -> None:
    for method in (*METHODS, *baselines(), "fgm"):
        with pytest.raises(UsageError, match="give a count"):
            mipfs.preselect(wide(), method)


@pytest.mark.slow
def test_generation_finds_as_many_as_asked_for() -> None:
    for count in (1, 7, 120, 300, 1000):
        assert len(mipfs.preselect(wide(), f"fgm:{count}")) == min(count, 300)


@pytest.mark.parametrize("how", ["bss", "bss:", "bss:0", "bss:-3", "bss:1.5", "nothing:3", "", ":5"])
def test_what_is_malformed_is_refused(how: str) -> None:
    with pytest.raises(UsageError, match="preselect = "):
        mipfs.preselect(wide(), how)


def test_groups_are_refused() -> None:
    problem = wide()
    atoms = Groups(problem.data, {"a": [0, 1], "b": [2]})
    with pytest.raises(UsageError, match="single features"):
        mipfs.preselect(Problem(problem.data, atoms=atoms, M=1), "rfe:2")
