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


def test_a_store_is_told_what_it_lacks(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "a.svm").write_text("1 1:2 2:1\n-1 2:1\n1 1:1\n-1 1:0.5 2:3\n")
    assert cli("convert", tmp_path / "a.svm", tmp_path / "s", "--quiet").code == 0
    for option, given in (("--preselect", "bss:1"), ("--validation", tmp_path / "a.svm")):
        refused = cli("solve", "fsp-m", tmp_path / "s", "--M", "1", option, given)
        assert refused.code == 2
        assert f"{option} is for columns that lie in memory, and those of a column store lie in files" in refused.err
    made = cli("solve", "fsp-m", tmp_path / "a.svm", "--M", "1", "-p", "atoms=pairs", "--preselect", "bss:1")
    assert made.code == 2
    assert "--preselect is for features of the data, not for atoms that are made of them" in made.err
