"""The benchmark of one measure for every class: what it measures is what scikit-learn says, and what its page shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import f1_score

from mipfs.data.instance import Instance

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import classes

    return classes


def drawn(n: int) -> tuple[sparse.csc_array, np.ndarray]:
    r = np.random.default_rng(n)
    X = np.where(r.random((n, 12)) < 0.5, r.random((n, 12)), 0.0)
    return sparse.csc_array(X), np.where(X[:, 0] + X[:, 1] > 0.9, 1.0, -1.0)


@pytest.mark.slow
def test_every_method_is_measured_and_shown(bench: Any) -> None:
    X, y = drawn(150)
    new, truth = drawn(100)
    lines = []
    for name in bench.MEASURES:
        found = bench.measured(Instance.from_arrays(X, y), sparse.csr_array(new), truth, name, 4)
        assert [one["method"] for one in found] == list(bench.METHODS)
        assert all(0.0 <= one["value"] <= 1.0 for one in found)
        by = {one["method"]: one for one in found}
        assert by["M features"]["n_features"] <= 4 <= by["SVM^perf"]["n_features"] == 12
        assert 0.0 <= by["relaxation"]["gap"] <= 0.011
        machine = {"cores": 1, "cpu": "none", "python": "3.11"}
        versions = {"numpy": "2", "scipy": "1", "numba": "0"}
        lines.append({"group": "a", "measure": name, "M": 4, "lines": found, "machine": machine, "versions": versions})
    page = bench.document(lines)
    assert f"{100 * lines[0]['lines'][1]['value']:.2f}" in page
    assert page.count("\n| ") == 2 + len(bench.METHODS)


def test_values_are_those_of_scikit_learn(bench: Any) -> None:
    X, y = drawn(100)
    model = {"ids": np.array([0, 1]), "w": np.array([1.0, 1.0]), "b": -0.9}
    f = (X[:, [0, 1]] @ np.ones(2)) - 0.9
    assert bench.judged("f1", sparse.csr_array(X), y, model) == pytest.approx(f1_score(y > 0, f > 0))
    P = int((y > 0).sum())
    chosen = np.argsort(-f, kind="stable")
    for name, k in (("recall-at-2p", 2 * P), ("prbep", P)):
        expected = float(np.mean(y[chosen[: min(k, 100)]] > 0)) * min(k, 100) / P
        assert bench.judged(name, sparse.csr_array(X), y, model) == pytest.approx(expected)
