"""``mipfs solve --checkpoint`` and ``--resume``: also what Ctrl-C stopped goes on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from tests.cli.attack import environment
from tests.cli.outcome import Cli


@pytest.fixture
def noise(tmp_path: Path) -> Path:
    """Data that take a while."""
    r = np.random.default_rng(0)
    X, y = r.normal(size=(120, 30)), np.where(r.random(120) < 0.5, 1, -1)
    rows = [" ".join(f"{j + 1}:{v:.6g}" for j, v in enumerate(row)) for row in X]
    lines = [f"{label:+d} {row}" for label, row in zip(y, rows, strict=True)]
    path = tmp_path / "noise.svm"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_limit_and_then_the_rest(cli: Cli, small: Path) -> None:
    folder = small.parent
    state, first, last = folder / "state.npz", folder / "a.json", folder / "b.json"
    line = ("solve", "fsp-m", small, "-p", "M=1", "--quiet")
    assert cli(*line, "--time-limit", "0", "--checkpoint", state, "--json", first).code in (0, 3)
    assert cli(*line, "--resume", state, "--json", last).code == 0
    assert json.loads(last.read_text())["status"] == "OPTIMAL"
    assert cli("verify", last, small).code == 0


def test_a_state_of_other_data_is_refused(cli: Cli, small: Path) -> None:
    state, other = small.with_name("state.npz"), small.with_name("other.svm")
    other.write_text(small.read_text() + "+1 1:3 2:1\n")
    assert cli("solve", "fsp-m", small, "-p", "M=1", "--checkpoint", state).code == 0
    refused = cli("solve", "fsp-m", other, "-p", "M=1", "--resume", state)
    assert refused.code == 2
    assert "another problem" in refused.err


def test_the_data_is_not_overwritten(cli: Cli, small: Path) -> None:
    refused = cli("solve", "fsp-m", small, "-p", "M=1", "--checkpoint", small)
    assert refused.code == 2
    assert "--checkpoint" in refused.err


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_ctrl_c_leaves_a_state_that_goes_on(noise: Path) -> None:
    state, found = noise.with_name("state.npz"), noise.with_name("r.json")
    line = [sys.executable, "-m", "mipfs", "solve", "fsp-m", str(noise), "-p", "M=12", "-p", "C=1", "--gap", "1e-9"]
    run = subprocess.Popen(
        [*line, "--checkpoint", str(state), "--json", str(found)],
        cwd=noise.parent, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip
    time.sleep(6.0)
    run.send_signal(signal.SIGINT)
    _, err = run.communicate(timeout=60)
    assert run.returncode in (0, 3, 130), err
    first = json.loads(found.read_text())
    again = noise.with_name("again.json")
    rest = subprocess.run(
        [*line, "--resume", str(state), "--time-limit", "2", "--json", str(again)],
        cwd=noise.parent, env=environment(), capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert rest.returncode in (0, 3), rest.stderr
    second = json.loads(again.read_text())
    assert second["bound"] >= first["bound"] * (1 - 1e-9)
    assert second["counters"]["nodes"] >= first["counters"]["nodes"]
