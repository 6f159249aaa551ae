"""A run that a limit stopped goes on where it was: same optimum, bounds that never fall, certificates of the whole."""

from __future__ import annotations

import itertools
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mipfs
from mipfs.atoms.groups import Groups
from mipfs.data.instance import Instance
from mipfs.errors import DataError, UsageError
from mipfs.problem import Problem
from mipfs.result.result import Status
from mipfs.result.state import RunState
from mipfs.settings import BatchSettings, BranchSettings

KINDS = ("plain", "rows", "extra", "groups")


def hard(kind: str = "plain", seed: int = 0, loss: str = "hinge", C: float = 1.0) -> Problem:
    """A problem of some hundred nodes."""
    r = np.random.default_rng([3, seed])
    X = r.normal(size=(60, 16)) * r.uniform(0.3, 2.0, 16)
    y = np.where(X @ r.normal(size=16) + 2.0 * r.normal(size=60) > 0, 1, -1)
    data = Instance.from_arrays(X, y)
    atoms = Groups(data, {f"g{i}": [i, (i + 5) % 16] for i in range(16)}, scaling="norm") if kind == "groups" else None
    problem = Problem(data, M=5, C=C, loss=loss, atoms=atoms)
    if kind in ("rows", "extra"):
        problem = problem.with_rows(r.integers(0, 2, size=(2, 16)).astype(float), -np.inf, [2.0, 3.0])
    return problem


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["hinge", "squared-hinge", "logistic"])
@pytest.mark.parametrize("kind", ["plain", "rows", "groups"])
def test_branch_goes_on_slice_by_slice(kind: str, loss: str) -> None:
    problem = hard(kind, loss=loss, C=10.0)
    whole = mipfs.solve(problem, "branch", gap=1e-6)
    state: RunState | None = None
    bounds, limit = [-np.inf], 0
    few = BranchSettings(batch=BatchSettings(below=2, handed=2))  # else groups are done in one unit
    options: Any = {"gap": 1e-6, "checkpoint": True, "settings": few}
    for _ in range(500):
        limit += 8
        result = mipfs.solve(problem, "branch", iteration_limit=limit, resume=state, **options)
        report = mipfs.verify(result, problem.data)
        assert report.accepted, report.reason
        bounds.append(result.bound)
        state = result.state
        if result.status is Status.OPTIMAL:
            break
    assert result.status is Status.OPTIMAL
    assert len(bounds) > 2, "it was stopped at least once"
    assert all(one <= other + 1e-9 * abs(other) for one, other in itertools.pairwise(bounds))
    assert result.objective == pytest.approx(whole.objective, rel=1e-6)


def test_a_resumed_run_does_not_begin_anew() -> None:
    problem = hard(seed=1)
    whole = mipfs.solve(problem, "branch", gap=1e-6)
    half = mipfs.solve(problem, "branch", gap=1e-6, iteration_limit=whole.counters["nodes"] // 2, checkpoint=True)
    assert half.status is not Status.OPTIMAL
    rest = mipfs.solve(problem, "branch", gap=1e-6, resume=half.state)
    assert rest.status is Status.OPTIMAL
    assert rest.counters["nodes"] <= 1.5 * whole.counters["nodes"]
    assert rest.trace[len(half.trace)].bound >= half.bound - 1e-9 * abs(half.bound)


def _list(result: mipfs.Result) -> list[tuple[frozenset[str], float]]:
    """The supports of a list that is complete, with their values."""
    assert result.near_optimal is not None
    assert result.near_optimal["complete"] is True
    return sorted(
        ((frozenset(one["selected"]), round(one["objective"], 6)) for one in result.near_optimal["supports"]),
        key=lambda one: (one[1], sorted(one[0])),
    )


@pytest.mark.sampled(29)
@pytest.mark.parametrize("kind", ["plain", "rows", "groups", "ties"])
@pytest.mark.parametrize("asked", [{"pool_size": 6}, {"pool_gap": 0.03}, {"pool_gap": 0.05, "pool_size": 9}])
@pytest.mark.parametrize("driver", ["branch", "gbd"])
def test_a_list_goes_on_slice_by_slice(kind: str, asked: dict[str, Any], driver: str) -> None:
    problem = _tied() if kind == "ties" else hard(kind, seed=2)
    whole = mipfs.solve(problem, driver, **asked)
    state: RunState | None = None
    step = max(8, whole.counters["nodes"] // 3)
    for limit in itertools.count(step, step):
        result = mipfs.solve(problem, driver, iteration_limit=limit, checkpoint=True, resume=state, **asked)
        state = result.state
        assert mipfs.verify(result, problem.data).accepted
        if result.near_optimal is not None and result.near_optimal["complete"]:
            break
        assert limit < 40 * whole.counters["nodes"], "it does not come to an end"
    assert limit > step, "it was stopped at least once"
    assert _list(result) == _list(whole)


def _tied() -> Problem:
    """Two columns that are never of use: every set with one of them has the value of the set without."""
    problem = hard(seed=4)
    X = np.asarray(problem.data.X).copy()
    X[:, 3] = X[:, 9] = 0.0
    X[0, [3, 9]] = 1e-9
    return Problem(Instance.from_arrays(X, problem.data.y), M=4, C=1.0)


@pytest.mark.sampled(17)
@pytest.mark.parametrize("before", [{}, {"iteration_limit": 30}, {"pool_size": 2}, {"pool_gap": 0.01}])
@pytest.mark.parametrize("kind", ["plain", pytest.param("rows", marks=pytest.mark.slow)])
@pytest.mark.parametrize("driver", ["branch", pytest.param("gbd", marks=pytest.mark.slow)])
def test_a_longer_list_of_a_run_that_had_none_or_a_shorter_one(kind: str, before: dict[str, Any], driver: str) -> None:
    problem = hard(kind, seed=3)
    first = mipfs.solve(problem, driver, checkpoint=True, **before)
    longer = mipfs.solve(problem, driver, resume=first.state, pool_size=8)
    assert longer.bound >= first.bound - 1e-9 * abs(first.bound)
    assert mipfs.verify(longer, problem.data).accepted
    assert _list(longer) == _list(mipfs.solve(problem, driver, pool_size=8))


@pytest.mark.slow
@pytest.mark.parametrize("driver", ["gbd", "kelley"])
def test_other_drivers_go_on(driver: str, tmp_path: Path) -> None:
    problem = hard("rows", loss="squared-hinge")
    whole = mipfs.solve(problem, driver)
    file = tmp_path / "state.npz"
    cut = mipfs.solve(problem, driver, iteration_limit=3, checkpoint=file)
    assert cut.state is not None
    rest = mipfs.solve(problem, driver, resume=file)
    assert rest.status is whole.status
    assert rest.bound == pytest.approx(whole.bound, rel=2e-4)
    assert rest.bound >= cut.bound - 1e-9 * abs(cut.bound)
    assert mipfs.verify(rest, problem.data).accepted


@pytest.mark.slow
def test_extra_variables_go_on() -> None:
    from mipfs.selection.rows import Extras, Rows

    problem = hard()
    extra = Extras(("z",), np.array([0.0]), np.array([2.0]), np.array([False]))
    matrix = np.append(np.ones(16), -1.0)[None, :]
    problem = problem.replace(rows=Rows(matrix, np.array([-np.inf]), np.array([1.5]), ("budget",), ("",), extra))
    whole = mipfs.solve(problem, "branch", gap=1e-6)
    cut = mipfs.solve(problem, "branch", gap=1e-6, iteration_limit=20, checkpoint=True)
    rest = mipfs.solve(problem, "branch", gap=1e-6, resume=cut.state)
    assert rest.status is Status.OPTIMAL
    assert rest.objective == pytest.approx(whole.objective, rel=1e-6)
    assert mipfs.verify(rest, problem.data).accepted


def test_a_state_is_plain_data(tmp_path: Path) -> None:
    problem = hard()
    state = mipfs.solve(problem, "branch", iteration_limit=40, checkpoint=tmp_path / "s.npz").state
    assert state is not None
    read = RunState.load(tmp_path / "s.npz")
    assert read.digest == state.digest
    assert pickle.loads(pickle.dumps(state)).digest == state.digest
    assert not any(array.dtype.hasobject for array in state.arrays.values())


def test_the_file_is_kept_while_it_runs(tmp_path: Path) -> None:
    file, seen = tmp_path / "s.npz", list[bool]()
    problem = hard(seed=2)

    def look(record: Any) -> bool:
        seen.append(file.exists())
        return len(seen) > 3 and seen[-1]

    result = mipfs.solve(problem, "branch", gap=1e-9, checkpoint=file, checkpoint_every=1e-6, callback=look)
    assert any(seen) or result.status is Status.OPTIMAL
    assert RunState.load(file).driver == "branch"


@pytest.mark.parametrize("change", [{"C": 2.0}, {"M": 4}, {"loss": "logistic"}, {"lam": 0.1}, {"bias": False}])
def test_another_problem_is_refused(change: dict[str, Any]) -> None:
    state = mipfs.solve(hard(), "branch", iteration_limit=20, checkpoint=True).state
    with pytest.raises(UsageError, match="another problem"):
        mipfs.solve(hard().replace(**change), "branch", resume=state)


def test_other_data_rows_and_drivers_are_refused(tmp_path: Path) -> None:
    state = mipfs.solve(hard("rows"), "branch", iteration_limit=20, checkpoint=True).state
    for other in (hard(), hard("rows", seed=5)):
        with pytest.raises(UsageError, match="another problem"):
            mipfs.solve(other, "branch", resume=state)
    with pytest.raises(UsageError, match="one of driver 'branch'"):
        mipfs.solve(hard("rows"), "gbd", resume=state)
    with pytest.raises(UsageError, match="drivers branch, gbd, kelley"):
        mipfs.solve(hard(), "conic", checkpoint=True)
    with pytest.raises(UsageError, match="do not go together with active"):
        mipfs.solve(hard(), "branch", checkpoint=True, active=("x1",))
    file = tmp_path / "x.npz"
    np.savez(file, a=np.zeros(3))
    with pytest.raises(DataError, match="no state of a run"):
        mipfs.solve(hard(), "branch", resume=file)


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "s.npz"
    state = mipfs.solve(hard(), "branch", iteration_limit=20, checkpoint=True).state
    assert state is not None
    arrays = dict(state.arrays)
    arrays["node_bound"] = arrays["node_bound"] + 1.0
    forged = RunState(state.driver, state.stamp, arrays)
    object.__setattr__(forged, "arrays", arrays)
    forged.save(file)
    with np.load(file) as kept:
        raw = {name: kept[name] for name in kept.files}
    raw["node_bound"] = raw["node_bound"] + 1.0
    np.savez(file, **raw)
    with pytest.raises(DataError, match="digest"):
        RunState.load(file)
    file.write_bytes(file.read_bytes()[:-200])
    with pytest.raises(DataError):
        RunState.load(file)
