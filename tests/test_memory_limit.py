"""A memory limit: the run ends before the process holds more, with incumbent, bound and certificate."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import mipfs
from mipfs import Instance, Problem, StopReason
from mipfs.errors import UsageError
from mipfs.plumbing import memory


def hard(n: int = 60, p: int = 40) -> Problem:
    """Labels of noise: a tree of many nodes."""
    r = np.random.default_rng(5)
    X = r.standard_normal((n, p))
    return Problem(Instance.from_arrays(X, np.where(r.random(n) < 0.5, 1.0, -1.0)), M=8, C=1.0)


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """What the operating system tells, from the last on again and again; it is asked at every look."""
    numbers = [10**8]
    monkeypatch.setattr(memory, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr(memory, "_read_status", lambda _key: numbers.pop(0) if len(numbers) > 1 else numbers[0])
    return numbers


def test_it_is_reached_at_its_reserve_and_stays_so(told: list[int]) -> None:
    told[:] = [1, 949_999_999, 950_000_000, 1]
    limit = memory.MemoryLimit(1.0)
    assert [limit.is_reached for _ in range(3)] == [False, True, True]
    assert not memory.MemoryLimit(None).is_reached
    assert not memory.MemoryLimit(float("inf")).is_reached


@pytest.mark.parametrize("driver", ["branch", "gbd", "kelley"])
def test_a_run_ends_with_a_proven_bound(driver: str, told: list[int], tmp_path: Path) -> None:
    problem = hard()
    mipfs.solve(problem, driver, iteration_limit=1)
    told[:] = [10**8] * 30 + [10**9]
    result = mipfs.solve(problem, driver, memory_limit=1.0)
    assert result.stop_reason is StopReason.MEMORY_LIMIT
    assert np.isfinite(result.bound)
    assert result.bound < result.objective < np.inf
    result.save(tmp_path / "r.json")
    assert mipfs.verify(mipfs.Result.load(tmp_path / "r.json"), problem.data).accepted
    assert "MEMORY_LIMIT" in repr(result) or "memory limit" in result.summary()


def test_a_limit_below_what_is_held_is_refused_with_both_numbers(told: list[int]) -> None:
    with pytest.raises(UsageError, match=r"memory_limit = 0.05: the process holds 0.10 GB before"):
        mipfs.solve(hard(), memory_limit=0.05)
    with pytest.raises(UsageError, match="positive number of gigabytes"):
        mipfs.solve(hard(), memory_limit=0.0)
    with pytest.raises(UsageError, match="no option 'memory_limit'"):
        mipfs.solve(hard(), "conic", memory_limit=1.0)


@pytest.mark.every
@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="asks /proc")
def test_the_process_holds_no_more_than_a_tenth_above_it() -> None:
    problem = hard(200, 100)
    mipfs.solve(problem, iteration_limit=1)
    held = memory._read_status("VmRSS")
    assert held is not None
    limit = (held + 2.5e7) / (0.95 * 1e9)
    result = mipfs.solve(problem, memory_limit=limit, time_limit=120)
    assert result.stop_reason is StopReason.MEMORY_LIMIT
    after = memory._read_status("VmRSS")
    assert after is not None
    assert after <= 1.1e9 * limit
