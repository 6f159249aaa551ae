"""One Dask cluster for everything: `mipfs solve --dask`, scikit-learn's searches, the 90 problems."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cli.outcome import Cli
from tests.dask_cases import start

distributed = pytest.importorskip("distributed", reason="Dask is not installed: pip install 'mipfs[dask]'")
ROOT = Path(__file__).resolve().parents[2]
CREDIT, WDBC = ROOT / "instances" / "credit.csv", ROOT / "instances" / "wdbc.svm"


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with distributed.Client(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0") as client:
        yield client


def without_times(document: dict[str, Any]) -> dict[str, Any]:
    for record in (document, *document["trace"]):
        del record["seconds"]
    del document["certificate"], document["command"]
    return document


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("model", "options", "within"), [("fsp-m", ["-o", "batch=8"], True), ("fgm", [], False)])
def test_the_answer_is_that_of_this_process(
    cli: Cli, tmp_path: Path, model: str, options: list[str], within: bool
) -> None:
    """With workers that are threads of this process, too."""
    with start(within=within) as client:
        compared(client, cli, tmp_path, model, options)


def compared(client: Any, cli: Cli, tmp_path: Path, model: str, options: list[str]) -> None:
    """The answer on a cluster is that of this process."""
    asked = ["solve", model, WDBC, "--scale", "standard", "-p", "M=2", "-p", "C=0.1", *options]
    where = ["--dask", client.scheduler.address]
    found = []
    for name, more in (("here", []), ("there", where)):
        outcome = cli(*asked, *more, "--json", tmp_path / f"{name}.json")
        assert (outcome.code, outcome.err) == (0, "")
        found.append(without_times(json.loads((tmp_path / f"{name}.json").read_text(encoding="utf-8"))))
    assert found[0] == found[1]
    assert "dask" not in json.dumps(found[1])
    assert client.status == "running"


def test_what_has_no_work_for_a_cluster_says_so(cli: Cli) -> None:
    outcome = cli("solve", "fsp-m", CREDIT, "-p", "M=3", "--driver", "gbd", "--dask", "tcp://127.0.0.1:1")
    assert outcome.code == 2
    assert "--dask: driver 'gbd' works in one process; branch and kelley can use a cluster" in outcome.err
    outcome = cli("solve", "fsp-m", CREDIT, "-p", "M=3", "--dask", "nowhere://1")
    assert outcome.code == 2
    assert "no Dask scheduler at 'nowhere://1'" in outcome.err


@pytest.mark.every
@pytest.mark.slow
def test_a_grid_over_M_and_C_runs_on_the_cluster(client: Any) -> None:
    joblib, search = pytest.importorskip("joblib"), pytest.importorskip("sklearn.model_selection")
    from mipfs import FGMClassifier

    r = np.random.default_rng(0)
    X = r.normal(size=(90, 12))
    y = np.where(X[:, 0] - X[:, 1] + 0.5 * r.normal(size=90) > 0, "yes", "no")
    grid = {"M": [1, 2, 4], "C": [0.1, 1.0]}
    here = search.GridSearchCV(FGMClassifier(), grid, cv=3).fit(X, y)
    with joblib.parallel_config(backend="dask"):
        there = search.GridSearchCV(FGMClassifier(), grid, cv=3, n_jobs=2).fit(X, y)
    assert there.best_params_ == here.best_params_
    np.testing.assert_array_equal(there.cv_results_["mean_test_score"], here.cv_results_["mean_test_score"])
    np.testing.assert_array_equal(there.predict(X), here.predict(X))


@pytest.mark.slow
def test_the_problems_of_aytug_run_on_the_cluster(client: Any, tmp_path: Path) -> None:
    store = tmp_path / "exact.jsonl"
    command = [sys.executable, ROOT / "benchmarks" / "exact.py", "aytug", "--samples", "40", "--features", "6"]
    command += ["--seeds", "1", "2", "3", "--time-limit", "60", "--store", store, "--dask", client.scheduler.address]
    env = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "HOME": os.environ.get("HOME", str(tmp_path))}
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False, env=env)
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in store.read_text(encoding="utf-8").splitlines()]
    assert sorted(line["seed"] for line in found) == [1, 2, 3]
    assert {line["status"] for line in found} == {"OPTIMAL"}
    assert all(line["verified"] for line in found)
