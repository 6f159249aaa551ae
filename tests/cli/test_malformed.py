"""Seeded malformed command lines: one line, the right exit code, nothing lost."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from mipfs.cli import main
from tests.cli.attack import process, run_all

pytestmark = pytest.mark.skipif(os.name != "posix", reason="POSIX paths and devices")


def inside(args: Sequence[str], folder: Path) -> tuple[int, str, str]:
    """The command line inside the test's process."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(args)
    return code, out.getvalue(), err.getvalue()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_inside_a_process(seed: int) -> None:
    assert run_all(seed, 17, inside) == []


@pytest.mark.slow
def test_as_processes() -> None:
    assert run_all(99, 4, process) == []


@pytest.mark.every
@pytest.mark.slow
@pytest.mark.parametrize(("seed", "count"), [(0, 15), (1, 15), (99, 8)])
def test_more_processes(seed: int, count: int) -> None:
    """Of the five hundred that ``python -m tests.cli.attack`` runs, some others."""
    assert run_all(seed, count, process) == []
