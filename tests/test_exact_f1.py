"""The best M features for a measure by ``driver="branch"``, which takes the cuts of `gbd`, against brute force."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import f1_score

from mipfs.cli import main
from mipfs.data.instance import Instance
from mipfs.drivers import solve
from mipfs.problem import Problem
from mipfs.result.result import Status
from tests.structural_oracles import labellings, structural_svm


def draw(seed: int, n: int = 7, p: int = 5) -> Instance:
    r = np.random.default_rng(seed)
    X = r.standard_normal((n, p))
    y = np.where(X[:, 0] - X[:, 1] + r.standard_normal(n) > 0.4, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    return Instance.from_arrays(X, y)


def enumerated(data: Instance, name: str, M: int, C: float, lam: float = 0.0) -> dict[tuple[int, ...], float]:
    """c'σ + v(σ) of every selection, all labellings written out."""
    losses, V = labellings(name, data.y)
    chosen = [ids for k in range(M + 1) for ids in itertools.combinations(range(data.n_features), k)]
    return {ids: structural_svm(data.X[:, ids], losses, V, C)[0] + lam * len(ids) for ids in chosen}


@pytest.mark.sampled(5)
@pytest.mark.parametrize("seed", range(8))
def test_branch_equals_brute_force(seed: int) -> None:
    data, name = draw(seed), ("f1", "f1", "prbep", "roc-auc")[seed % 4]
    M, C, lam = 1 + seed % 3, 10.0 ** (seed / 4), 0.02 * (seed % 2)
    values = enumerated(data, name, M, C, lam)
    best = min(values.values())
    asked = Problem(data, loss="structural", bias=False, measure=name, M=M, C=C, lam=lam)
    result = solve(asked, "branch", gap=1e-7)
    assert (result.status, result.driver) == (Status.OPTIMAL, "branch")
    assert result.objective == pytest.approx(best, rel=1e-6)
    assert best * (1 - 1e-6) <= result.bound <= best * (1 + 1e-9)
    found = tuple(sorted(int(feature[1:]) - 1 for feature in result.selected))
    assert values[found] == pytest.approx(best, rel=1e-6)


def test_rows_hold() -> None:
    data = draw(3)
    asked = Problem(data, loss="structural", bias=False, measure="f1", M=3, C=20.0)
    asked = asked.with_rows([[1.0, 1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, -1.0, 0.0]], [-np.inf, 0.0], [1.0, np.inf])
    values = {
        ids: value
        for ids, value in enumerated(data, "f1", 3, 20.0).items()
        if not {0, 1} <= set(ids) and (3 not in ids or 2 in ids)
    }
    result = solve(asked, "branch", gap=1e-7)
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(min(values.values()), rel=1e-6)


def test_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = draw(6)
    rows = [
        f"{int(label)} " + " ".join(f"{j + 1}:{x:.17g}" for j, x in enumerate(row))
        for label, row in zip(data.y, data.X, strict=True)
    ]
    path = tmp_path / "small.svm"
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    given = [
        "-p",
        "measure=f1",
        "-p",
        "M=2",
        "-p",
        "C=30",
        "-p",
        "bias=false",
        "--driver",
        "branch",
        "--gap",
        "1e-7",
        "--json",
        "-",
    ]
    assert main(["solve", "structural", str(path), *given]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert (found["status"], found["driver"]) == ("OPTIMAL", "branch")
    assert found["objective"] == pytest.approx(min(enumerated(data, "f1", 2, 30.0).values()), rel=1e-6)
    w = np.array([found["weights"].get(f"x{j + 1}", 0.0) for j in range(5)])
    assert f1_score(data.y > 0, data.X @ w > 0) > 0.5
