"""The benchmark of BSS runs, and its two forms take the same columns."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "benchmarks" / "sketch.py"


def run(monkeypatch: pytest.MonkeyPatch, *args: str) -> None:
    """The script with such arguments, in this process."""
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), *args])
    monkeypatch.setattr(sys, "path", list(sys.path))
    runpy.run_path(str(SCRIPT), run_name="__main__")


def test_the_table_has_the_ratio_and_the_versions(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    run(monkeypatch, "--n-features", "800", "--rank", "12", "--r", "30", "--steps", "0")
    out = capsys.readouterr().out.splitlines()
    assert out[0].startswith("numpy ")
    assert "NumPy/ours" in out[1]
    assert out[2].split()[:4] == ["lognormal", "800", "12", "30"]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "data.svm.gz").write_bytes((SCRIPT.parents[1] / "instances" / "wdbc.svm").read_bytes())
    monkeypatch.setenv("MIPFS_DATA", str(tmp_path))
    monkeypatch.delenv("MIPFS_DATA")
    with pytest.raises(SystemExit, match="MIPFS_DATA is not set"):
        run(monkeypatch, "--sets", "colon_alon")
