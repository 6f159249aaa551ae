"""The exact benchmark: a tiny run is stored, resumed and rendered; its numbers agree with independent ones."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import gmean

ROOT = Path(__file__).resolve().parents[1]
TINY = ["--samples", "40", "--features", "6", "--driver", "gbd", "--time-limit", "60"]


@pytest.fixture(autouse=True)
def _parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))


def run(*arguments: str) -> str:
    command = [sys.executable, str(ROOT / "benchmarks" / "exact.py"), *arguments]
    env = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    assert done.returncode == 0, done.stderr
    return done.stdout


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(text) for text in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.slow
def test_a_tiny_run_is_stored_resumed_and_rendered(tmp_path: Path) -> None:
    """The optimum is that of enumeration with Clarabel."""
    from mipfs.generators import aytug_one
    from tests.references import svm_reference

    store = tmp_path / "exact.jsonl"
    command = ["aytug", *TINY, "--seeds", "1", "2", "--store", str(store)]
    run(*command)
    first = store.read_text(encoding="utf-8")
    found = lines(store)
    assert len(found) == 2
    for line in found:
        drawn = aytug_one(40, 6, line["M"], line["seed"])
        X, y = drawn["train"]
        supports = itertools.combinations(range(6), min(drawn["M"], 6))
        best = min(svm_reference(X[:, list(S)], y, np.ones(40)).value for S in supports)
        assert line["status"] == "OPTIMAL"
        assert line["gap"] <= 1e-4
        assert line["bound"] <= best * (1 + 1e-6)
        assert line["objective"] == pytest.approx(best, rel=1e-4)
        assert len(line["support"]) <= line["M"] == np.random.default_rng([line["seed"], 1]).integers(1, 7)
    # a torn line, as a killed run leaves it, is passed over; what is stored is not measured again
    store.write_text(first + '{"key": "40x6', encoding="utf-8")
    run(*command)
    assert lines_but_torn(store) == found
    run(*command[:-3], "2", "3", "--store", str(store))
    assert [line["seed"] for line in lines_but_torn(store)] == [1, 2, 3]
    assert "Made by" in (tmp_path / "exact.md").read_text(encoding="utf-8")


def lines_but_torn(path: Path) -> list[dict[str, Any]]:
    return [json.loads(t) for t in path.read_text(encoding="utf-8").splitlines() if t.endswith("}")]


@pytest.mark.slow
def test_scip_agrees_with_ours_on_a_tiny_problem(tmp_path: Path) -> None:
    pytest.importorskip("pyscipopt")
    store = tmp_path / "exact.jsonl"
    said = run("panel", *TINY, "--seeds", "1", "--no-special", "--solvers", "ours", "scip", "--store", str(store))
    ours, scip = lines(store)
    assert (ours["solver"], scip["solver"]) == ("gbd", "scip")
    assert ours["status"] == scip["status"] == "OPTIMAL"
    assert scip["objective"] == pytest.approx(ours["objective"], rel=2e-4)
    assert "gbd against scip on 1 problems" in said


def test_the_means_are_those_of_scipy() -> None:
    from exact_parts.render_aytug import shifted_mean

    seconds = [0.2, 3.0, 600.0]
    assert shifted_mean(seconds) == pytest.approx(gmean(np.array(seconds) + 1.0) - 1.0, rel=1e-12)


def test_an_unproven_run_counts_its_limit_and_is_measured_again_with_more_time(tmp_path: Path) -> None:
    from exact_parts.render_aytug import _counted
    from exact_parts.store import Store

    store = Store(tmp_path / "a.jsonl")
    store.add("open", status="TIME_LIMIT", limit=10.0, seconds=9.0, others_busy=0.7)
    store.add("shut", status="OPTIMAL", limit=10.0, seconds=9.0, others_busy=0.0)
    open_, shut = store.get("open", 10.0), store.get("shut", 99.0)
    assert open_ is not None
    assert shut is not None
    assert (_counted(open_, "seconds"), _counted(shut, "seconds")) == (10.0, 9.0)
    assert store.get("open", 11.0) is None
    calm = Store(store.path, calm=0.5)
    assert calm.get("open", 10.0) is None
    assert calm.get("shut", 10.0) is not None


def test_time_per_node_leaves_the_root_out() -> None:
    from exact_parts.throughput import per_node

    assert per_node([(0.5, 0), (1.0, 1), (1.5, 11), (3.0, 101)]) == {"root_seconds": 1.0, "microseconds": 2e4}
    assert per_node([(0.5, 1)]) == {"root_seconds": 0.5, "microseconds": None}
