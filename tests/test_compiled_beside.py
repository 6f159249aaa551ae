"""Processes that compile beside: what they leave on disk, and that none outlives who started it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import mipfs
from mipfs import Instance, Problem
from mipfs.drivers import branch
from mipfs.kernels.face_descent import multiply
from mipfs.pointers import Step
from mipfs.run import beside

ROOT = Path(__file__).resolve().parents[1]
SLEEP = "import os, time; open({path!r}, 'w').write(str(os.getpid())); time.sleep(60)"
TWICE = """
import numpy as np
from mipfs.kernels.face_descent import multiply
multiply(np.ones((2, 2)), np.ones(2), np.ones(2))
print(sum(multiply.stats.cache_misses.values()), sum(multiply.stats.cache_hits.values()))
"""


def _is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def _pid(path: Path) -> int:
    for _ in range(600):
        if path.exists() and path.read_text(encoding="utf-8"):
            return int(path.read_text(encoding="utf-8"))
        time.sleep(0.05)
    raise AssertionError("no process began")


@pytest.mark.slow
def test_a_kernel_is_compiled_beside_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    step = Step.of(multiply, np.ones((2, 2)), np.ones(2), np.ones(2))
    beside.compile_beside([[beside.job_of(step)]], lambda: False)
    assert [path.name.split("-")[0] for path in tmp_path.rglob("*.nbc")] == ["kernels.face_descent.multiply"]


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="asks /proc")
def test_processes_beside_end_when_they_are_told_to(tmp_path: Path) -> None:
    path = tmp_path / "pid"
    job = "builtins", "exec", (SLEEP.format(path=str(path)),)
    beside.compile_beside([[job]], lambda: path.exists() and path.read_text(encoding="utf-8") != "")
    assert not _is_alive(_pid(path))


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="asks /proc")
def test_a_process_beside_ends_with_the_one_that_started_it(tmp_path: Path) -> None:
    path = tmp_path / "pid"
    job = "builtins", "exec", (SLEEP.format(path=str(path)),)
    code = f"from mipfs.run.beside import compile_beside; compile_beside([[{job!r}]], lambda: False)"
    parent = subprocess.Popen([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(ROOT)})
    child = _pid(path)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    for _ in range(200):
        if not _is_alive(child):
            return
        time.sleep(0.05)
    raise AssertionError(f"process {child} goes on")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no locks of files there")
def test_of_two_processes_that_miss_a_kernel_one_compiles_it(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NUMBA_CACHE_DIR": str(tmp_path)}
    both = [
        subprocess.Popen([sys.executable, "-c", TWICE], env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    assert sorted(process.communicate()[0].split() for process in both) == [["0", "1"], ["1", "0"]]


@pytest.mark.parametrize("rows", [False, True])
def test_the_kernels_of_branch_are_those_that_its_runs_call(rows: bool) -> None:
    """The types that are said ahead are those met: after a run all of them are kept, and each was met."""
    r = np.random.default_rng(4)
    X, y = r.normal(size=(60, 14)), np.where(r.normal(size=60) > 0, 1.0, -1.0)
    problem = Problem(Instance.from_arrays(X, y), M=5, C=1.0)
    if rows:
        problem = problem.with_rows(r.integers(0, 2, size=(2, 14)).astype(float), -np.inf, [2.0, 3.0])
    assert mipfs.solve(problem, "branch", threads=1).counters["nodes"] > 1
    lists = branch.kernels(problem)
    # relax, the model, the rule and maybe the prices; the loss's five; what lays units out, and gathers them; of nodes
    # that stall what settles and plants them, the rule, and again what lays out and gathers
    assert [len(steps) for steps in lists] == [1, (4 if rows else 3) + 5 + 2 + 5]
    assert not beside.missing(lists)
    for step in [one for steps in lists for one in steps]:
        assert step.type.arguments in step.function.overloads
