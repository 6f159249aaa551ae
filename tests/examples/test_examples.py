"""The scripts under examples/: each ends in a certificate that was checked."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = sorted((ROOT / "examples").glob("*.py"))


def run(path: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    env = environment | {"PYTHONPATH": str(ROOT)}
    return subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=False, env=env)


@pytest.mark.slow
@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_an_example_ends_in_a_certificate(path: Path) -> None:
    done = run(path, dict(os.environ))
    if done.returncode != 0 and done.stderr.startswith("skipped"):
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr

    assert done.stdout.count("certificate accepted") >= 2


def test_there_are_four_and_those_with_data_say_why_they_skip() -> None:
    assert {path.stem for path in SCRIPTS} == {"genes", "credit", "spam", "interactions"}
    listed = (ROOT / "examples" / "README.md").read_text(encoding="utf-8")
    for path in SCRIPTS:
        assert path.name in listed
        assert ("skipped: set MIPFS_DATA" in path.read_text(encoding="utf-8")) == (path.stem != "interactions")
