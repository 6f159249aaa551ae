"""The real-data benchmark: cells run in processes of their own, are stored, resumed and rendered."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(autouse=True)
def _parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of data with one small set in it."""
    random = np.random.default_rng(3)
    X = random.standard_normal((60, 5))
    y = np.where(X[:, 0] - X[:, 1] + 0.5 * random.standard_normal(60) > 0, 1, -1)
    rows = [f"{label} " + " ".join(f"{j + 1}:{v:.4f}" for j, v in enumerate(x)) for label, x in zip(y, X, strict=True)]
    (tmp_path / "data" / "small").mkdir(parents=True)
    (tmp_path / "data" / "small" / "data.svm").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return tmp_path / "data"


def run(*arguments: str, data: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "benchmarks" / "real.py"), *arguments]
    env = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"} | ({"MIPFS_DATA": str(data)} if data else {})
    return subprocess.run(command, capture_output=True, text=True, check=False, env=env)


def stored(path: Path) -> list[dict[str, Any]]:
    return [json.loads(text) for text in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.every
@pytest.mark.slow
def test_roots_of_a_set_of_the_users_own_are_those_of_clarabel_and_are_measured_once(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import real
    from exact_parts.store import Store
    from real_parts import render, stages

    monkeypatch.setenv("MIPFS_DATA", str(folder))
    store = Store(tmp_path / "real.jsonl")
    cells = list(stages.cells("roots", ["small"], 60.0))
    assert len(cells) == 9 * (1 + 2 * 2)  # nine losses and C: the plain SVM, and root and reference for both M
    real.measure(store, cells[:3])
    lines = stored(store.path)
    assert [line["task"] for line in lines] == ["svm", "root", "reference"]
    assert all(line["status"] == "MEASURED" for line in lines)
    assert lines[2]["by"] == "Clarabel"
    assert lines[1]["bound"] == pytest.approx(lines[2]["high"], rel=1.01e-4)
    said = render.document(store.lines())
    assert "1 roots; 0 of them further than 0.0001 (relative) from the reference, 0 slower" in said
    real.measure(store, cells[:3])
    assert stored(store.path) == lines


@pytest.mark.slow
def test_without_data_it_says_so_and_with_a_wrong_set_too(tmp_path: Path, folder: Path) -> None:
    none = run("--stage", "roots", "--store", str(tmp_path / "a.jsonl"))
    assert none.returncode == 0
    assert "MIPFS_DATA is unset" in none.stdout
    wrong = run("--stage", "roots", "--sets", "smal", "--store", str(tmp_path / "b.jsonl"), data=folder)
    assert wrong.returncode == 1
    assert "has no folder smal" in wrong.stderr


@pytest.mark.slow
def test_a_cell_that_hangs_or_fails_is_a_result(monkeypatch: pytest.MonkeyPatch) -> None:
    from real_parts import cell

    monkeypatch.setattr(cell, "BEGIN", 0.0)
    what = {"from": "peers", "n": 50, "p": 5, "seed": 1, "loss": "hinge", "M": 2, "C": 1.0}
    assert cell.run({"task": "root", "what": what, "limit": 1.0}, 0.01)["status"].startswith("KILLED after")
    monkeypatch.setattr(cell, "BEGIN", 60.0)
    answer = cell.run({"task": "root", "what": {**what, "M": -1}, "limit": 1.0}, 10.0)
    assert answer["status"].startswith("FAILED (1): ")
    assert "M = -1" in answer["status"]


def test_rows_of_the_benchmark_hold_what_they_say() -> None:
    from real_parts.problems import build

    what = {"from": "peers", "n": 40, "p": 12, "seed": 1, "loss": "hinge", "M": 4, "C": 1.0}
    problem = build({**what, "rows": ["budget", "conflicts", "implications"]}, None)
    rows = problem.selection.rows
    assert len(rows) == 41
    A = rows.matrix.toarray()
    assert np.all((A[0] >= 1) & (A[0] <= 5))
    assert set(map(tuple, np.sort(A[1:21], axis=1)[:, -2:].tolist())) == {(1.0, 1.0)}
    assert np.all(A[21:].sum(axis=1) == 0)
    assert np.all(rows.ub[1:21] == 1)
    assert np.all(rows.ub[21:] == 0)


def test_resampled_rows_are_rows_of_the_data_with_a_little_noise() -> None:
    from real_parts.problems import NOISE, resampled

    random = np.random.default_rng(0)
    X, y = 100.0 * random.standard_normal((20, 3)), np.where(np.arange(20) % 2 == 0, 1.0, -1.0)
    drawn, labels = resampled(X, y, 200, 5, seed=1)
    assert drawn.shape == (200, 5)
    for row, label in zip(drawn, labels, strict=True):
        near = np.abs(row[:3] - X).max(axis=1)
        assert y[np.argmin(near)] == label
        assert near.min() < 6 * NOISE * X.std(axis=0).max()
    assert np.all(np.corrcoef(drawn[:, 0], drawn[:, 3])[0, 1] > 0.99)  # columns are repeated
    thin, _ = resampled(sparse.csc_array(np.where(random.random((20, 4)) < 0.3, 1.0, 0.0)), y, 50, 4, seed=1)
    assert np.all(np.abs(thin.data - 1.0) < 6 * NOISE)


def test_the_peers_columns_have_the_correlation_that_they_should() -> None:
    from real_parts.problems import peers

    X, y = peers(20_000, 6, seed=2)
    distance = np.abs(np.subtract.outer(np.arange(6), np.arange(6)))
    assert np.allclose(np.corrcoef(X.T), 0.5**distance, atol=0.03)
    assert set(y) == {-1.0, 1.0}


def test_slopes_and_distances() -> None:
    from real_parts.render import distance, slope

    sizes = [1e3, 1e4, 1e5]
    assert slope(sizes, [3.0 * n**1.25 for n in sizes]) == pytest.approx(1.25)
    assert distance(9.0, 9.5, 10.0) == pytest.approx(0.1)
    assert distance(10.5, 9.5, 10.0) == 0.0
    assert distance(None, 1.0, 1.0) is None


@pytest.mark.skipif("MIPFS_DATA" not in os.environ, reason="MIPFS_DATA is unset")
def test_every_set_of_the_panel_is_there() -> None:
    from real_parts.problems import read_from
    from real_parts.stages import SETS

    for name in SETS:
        assert read_from(Path(os.environ["MIPFS_DATA"]) / name).is_file()
