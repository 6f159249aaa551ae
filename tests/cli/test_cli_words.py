"""Tables of words and numbers: whole columns of words as groups, beside the numbers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.cli.outcome import Cli


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """The class follows a number and a word."""
    r = np.random.default_rng(0)
    lines = ["age,colour,noise,town,y"]
    for _ in range(80):
        age, noise = r.standard_normal(2)
        colour, town = r.choice(["red", "green", "blue"]), r.choice(["a", "b", "c"])
        score = 2.0 * age + 2.0 * (colour == "red") - 1.0 + 0.1 * r.standard_normal()
        lines.append(f"{age:.4f},{colour},{noise:.4f},{town},{int(score > 0)}")
    path = tmp_path / "mixed.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_groups_of_words_leave_the_numbers_in(cli: Cli, table: Path, tmp_path: Path) -> None:
    saved = tmp_path / "r.json"
    done = cli("solve", "fsp-m", table, "--label", "y", "-p", "M=2", "-p", "C=1", "-p", "atoms=groups", "--json", saved)
    assert done.code == 0, done.err
    assert "2 of 4 groups of 8 features" in done.out
    assert "colour=red" in done.out
    assert set(json.loads(saved.read_text(encoding="utf-8"))["selected"]) == {"age", "colour"}
    checked = cli("verify", saved, table)
    assert checked.code == 0
    assert "certificate  accepted" in checked.out
    assert "of 4" in checked.out
