"""``--total-limit``: the whole command ends in time, with what it has, and says that a limit ended it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from mipfs.plumbing import total_limit
from tests.cli.outcome import Cli

SECONDS = "10"
"""Enough to load the kernels where other work is beside."""


@pytest.fixture
def noise(tmp_path: Path) -> Path:
    """Data that take much longer."""
    r = np.random.default_rng(0)
    X, y = r.normal(size=(200, 60)), np.where(r.random(200) < 0.5, 1, -1)
    lines = [
        f"{label:+d} " + " ".join(f"{j + 1}:{v:.6g}" for j, v in enumerate(row))
        for row, label in zip(X, y, strict=True)
    ]
    path = tmp_path / "noise.svm"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(autouse=True)
def _ends() -> Iterator[None]:
    yield
    assert not total_limit.is_up()
    assert total_limit._timer is None


@pytest.mark.slow
def test_a_solve_says_that_a_limit_of_time_stopped_it(cli: Cli, noise: Path, tmp_path: Path) -> None:
    found = tmp_path / "r.json"
    line = ("solve", "fsp-m", noise, "-p", "M=10", "-p", "C=1", "--quiet", "--json", found)
    assert cli(*line, "--total-limit", SECONDS).code == 0
    said = json.loads(found.read_text())
    assert (said["status"], said["stop_reason"]) == ("FEASIBLE", "TIME_LIMIT")
    assert cli("verify", found, noise).code == 0


@pytest.mark.slow
def test_a_path_keeps_the_points_that_it_has(cli: Cli, noise: Path, tmp_path: Path) -> None:
    found = tmp_path / "p.json"
    line = ("path", noise, "--M", "1:12", "-p", "C=1", "--quiet", "--json", found)
    assert cli(*line, "--total-limit", SECONDS).code == 0
    said = json.loads(found.read_text())
    assert said["interrupted"]
    assert 0 < len(said["points"]) < 12


@pytest.mark.slow
@pytest.mark.parametrize("how", [["--joint"], ["--points", "15", "--gap", "0"]])
def test_a_card_ends_at_it(cli: Cli, noise: Path, tmp_path: Path, how: list[str]) -> None:
    """Also while it is made of a solve, or of a card for each near-optimal set."""
    found, card = tmp_path / "r.json", tmp_path / "c.json"
    solved = ("solve", "fsp-m", noise, "-p", "M=3", "-p", "C=1", "-p", "loss=logistic", "--pool-size", "5")
    assert cli(*solved, "--time-limit", "5", "--quiet", "--json", found).code == 0
    line = ("scorecard", found, noise, "--bins", "6", "--quiet", "--json", card, *how)
    assert cli(*line, "--time-limit", "1").code == 0  # what is compiled is there
    began = time.monotonic()
    # A fifth of the limit of time is for a first card: it ends just as the total limit strikes.
    assert cli(*line, "--time-limit", "60", "--total-limit", "15").code == 0
    assert time.monotonic() - began < 40
    said = json.loads(card.read_text())
    assert 0.0 <= said["bound"] <= said["objective"]
    assert cli("verify", card, noise).code == 0


def test_nothing_begins_after_it(cli: Cli, noise: Path) -> None:
    told = cli("solve", "fsp-m", noise, "-p", "M=10", "--quiet", "--total-limit", "1e-6")
    assert (told.code, "--total-limit ended the command" in told.err) == (4, True)


@pytest.mark.parametrize("given", ["0", "-1", "inf", "nan"])
def test_what_is_no_limit_is_refused(cli: Cli, noise: Path, given: str) -> None:
    told = cli("solve", "fsp-m", noise, "-p", "M=2", "--total-limit", given)
    assert (told.code, "finite number of seconds > 0" in told.err) == (2, True)
