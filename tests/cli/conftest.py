"""The command line, run inside the test's process."""

from __future__ import annotations

from pathlib import Path

import pytest

from mipfs.cli import main
from tests.cli.outcome import Cli, Outcome

SEPARABLE = "+1 1:1 2:0.5\n-1 1:-1 2:0.25\n+1 1:2 2:1\n-1 1:-2\n"


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    """Call ``mipfs ARGS...``."""

    def call(*args: object) -> Outcome:
        capsys.readouterr()
        code = main([str(arg) for arg in args])
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return call


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """Four samples of two features, separable by the first."""
    path = tmp_path / "small.svm"
    path.write_text(SEPARABLE)
    return path
