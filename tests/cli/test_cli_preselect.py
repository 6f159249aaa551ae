"""``mipfs solve --preselect``: an exact solve that begins on a sketch."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from tests.cli.outcome import Cli


def test_on_the_command_line(cli: Cli, tmp_path: Path) -> None:
    r = np.random.default_rng(5)
    X = r.normal(size=(30, 80))
    y = np.where(X[:, 0] - X[:, 1] + 0.2 * r.normal(size=30) > 0, 1, -1)
    lines = [
        f"{label:+d} " + " ".join(f"{j + 1}:{value:.6g}" for j, value in enumerate(row))
        for label, row in zip(y, X, strict=True)
    ]
    data, out = tmp_path / "wide.svm", tmp_path / "r.json"
    data.write_text("\n".join(lines) + "\n")
    solved = cli("solve", "fsp-m", data, "-p", "M=2", "-p", "C=0.05", "--preselect", "bss:40", "--json", out)
    assert solved.code == 0
    assert "the others are proven out" in solved.out
    assert json.loads(out.read_text())["counters"]["active"] <= 80
    assert cli("verify", out, data).code == 0
    refused = cli("solve", "fsp-m", data, "-p", "M=2", "--driver", "gbd", "--preselect", "bss:40")
    assert refused.code == 2
    assert "--driver branch" in refused.err
