"""The command line that a result remembers."""

from __future__ import annotations

import pytest

from mipfs.cli.typed import ARGUMENTS, command_line


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        ([], None),
        (["demo", "--open", "-q", "--quiet"], "mipfs demo"),
        (["solve", "fsp-m", "my data.csv", "--json", "-", "-p", "M=3"], "mipfs solve fsp-m 'my data.csv' -p M=3"),
        (["path", "d", "--report=x", "--M", "1:2", "--json=y", "--write", "z.lp"], "mipfs path d --M 1:2"),
        (["solve", "--json", "--json", "d"], "mipfs solve d"),
        (["solve", "\udcff.svm"], "mipfs solve '?.svm'"),
    ],
)
def test_outputs_are_left_out(typed: list[str], kept: str | None) -> None:
    token = ARGUMENTS.set(typed)
    try:
        assert command_line() == kept
    finally:
        ARGUMENTS.reset(token)
