"""The benchmark of selecting for F1: its splits, its choice of settings, and the numbers of its tables."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import f1_score

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import measures

    monkeypatch.setattr(measures, "TRAIN", 100)
    monkeypatch.setattr(measures, "SHARE", 0.1)
    return measures


def drawn() -> tuple[sparse.csr_array, np.ndarray]:
    r = np.random.default_rng(0)
    X = np.where(r.random((400, 20)) < 0.5, r.random((400, 20)), 0.0)
    X[:, 19] = np.arange(1.0, 401.0)  # tells the rows apart
    return sparse.csr_array(X), np.where(X[:, 0] + X[:, 1] > 0.8, 1.0, -1.0)


def test_splits_have_the_share_of_positives_and_no_row_twice(bench: Any) -> None:
    X, y = drawn()
    train, test = bench.split(X, y, 3)
    assert (train.n_samples, int(np.sum(train.y > 0))) == (100, 10)
    assert np.mean(test.y > 0) == pytest.approx(0.1, abs=0.005)
    inner, outer = bench.folds(train, 3)
    rows = [set(part.X.toarray()[:, 19]) for part in (inner, outer, train, test)]
    assert not rows[0] & rows[1]
    assert rows[0] | rows[1] == rows[2]
    assert not rows[2] & rows[3]
    assert np.mean(outer.y > 0) == pytest.approx(0.1, abs=0.04)
    for part in (train, test):
        np.testing.assert_array_equal(part.y, y[part.X.toarray()[:, 19].astype(int) - 1])
    again, _ = bench.split(X, y, 3)
    np.testing.assert_array_equal(again.X.toarray(), train.X.toarray())


@pytest.mark.every
@pytest.mark.slow
def test_f1_of_a_split_is_that_of_scikit_learn(bench: Any) -> None:
    X, y = drawn()
    X[:, [19]] = 0.0
    X = sparse.csr_array(X)
    for method in bench.METHODS:
        lines = bench.run_split(X, y, 1, method, (2,))
        assert {line["fit"] for line in lines} <= {"own", "plain", "F1"}
        for line in lines:
            assert line["n_features"] <= 2
            assert 0.0 <= line["f1"] <= 1.0
        train, test = bench.split(X, y, 1)
        own = next(line for line in lines if line["fit"] == "own")
        model = bench.select(method, train, [2], own["weight"], own["bias"])[2]
        assert own["f1"] == pytest.approx(f1_score(test.y > 0, model.scores(test) > 0))
        assert own["train_f1"] == pytest.approx(f1_score(train.y > 0, model.scores(train) > 0))


def test_the_tables_hold_means_deviations_and_differences(bench: Any) -> None:
    import measures_table

    values = {("two_layer for F1", 1): 0.6, ("two_layer for F1", 2): 0.8, ("FGM", 1): 0.5, ("FGM", 2): 0.9}
    values["FGM", 0] = 0.1  # a split that the protocol was set with: no table has it
    lines = []
    for (method, seed), reached in values.items():
        fits = [
            {"M": 3, "fit": fit, "f1": reached - less, "validation_f1": validation, "n_features": 3}
            | {"objective": 2.0, "bound": 1.5, "select_seconds": 0.25, "weight": 10.0 ** (1 + seed)}
            for fit, less, validation in (("own", 0.0, 0.1), ("plain", 0.1, 0.3), ("F1", 0.2, 0.2))
        ]
        lines.append(
            {"suite": "text", "method": method, "seed": seed, "lines": fits, "machine": MACHINE, "versions": {}}
        )
    page = measures_table.document(lines)
    deviation = np.std([0.6, 0.8], ddof=1)
    row = next(line for line in page.splitlines() if line.startswith("| 3 | two_layer for F1 | 3 |"))
    cells = [cell.strip() for cell in row.split("|")[1:-1]]
    assert cells[3] == f"0.700 ± {deviation:.3f}"
    assert cells[4:7] == [f"0.600 ± {deviation:.3f}", f"0.500 ± {deviation:.3f}", f"0.600 ± {deviation:.3f}"]
    assert cells[7:] == ["25%", "0.2"]
    less = next(line for line in page.splitlines() if re.match(r"\| 3 \| FGM \| [+-]", line))
    assert less.split("|")[3].strip() == f"+0.000 ± {np.std([0.1, -0.1], ddof=1):.3f}, 1 of 2"
    assert page.count("2 splits") == 1
    assert {name: max(weight for weight, _ in bench.METHODS[name]) for name in measures_table.LARGEST} == (
        measures_table.LARGEST
    )
    assert "this often: two_layer for F1 1 of 2, FGM 1 of 2." in page
    tables = [line for line in page.splitlines() if line.startswith("|")]
    assert len({line.count("|") for line in tables[:4]}) == 1


MACHINE = {"cores": 2, "cpu": "any", "memory_gib": 1, "python": "3"}
