"""Killed at random moments, or on a full disk: commands go on, and no good file is lost or left half written."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks, kills, mounts")
if sys.platform == "linux":
    from tests import killed

SOLVE = ("solve", "fsp-m", "data.svm", "-p", "M=2", "-p", "C=0.1", "--scale", "standard", "--json", "r.json", "--quiet")
PATH = ("path", "data.svm", "-p", "C=0.1", "--scale", "standard", "--json", "r.json", "--quiet")


@pytest.mark.every
@pytest.mark.slow
def test_runs_that_are_killed_end_as_one_that_is_not() -> None:
    cases = [case for case in killed.CASES if case.name not in ("study", "monolithic")]
    assert killed.campaign(4, 7, cases) == []


@pytest.mark.slow
def test_killed_drivers_end_with_the_bytes_of_one_that_is_not() -> None:
    cases = [case for case in killed.CASES if case.name in ("kelley", "gbd")]
    assert killed.campaign(4, 11, cases) == []


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 2 MB with the data on it."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounts a small file system, which root may")
    try:
        killed.data_in(tmp_path)
        (folder / "data.svm").write_bytes((tmp_path / "data.svm").read_bytes())
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def filled(folder: Path, left: int) -> Path:
    """Fill the file system but for some bytes."""
    ballast = folder / "ballast"
    room = os.statvfs(folder)
    ballast.write_bytes(b"\0" * max(0, room.f_bavail * room.f_bsize - left))
    return ballast


@pytest.mark.slow
@pytest.mark.parametrize("by", ["disk", "limit"])
def test_a_full_disk_takes_no_earlier_result(by: str, disk: Path) -> None:
    assert killed.called(SOLVE, disk)[0] == 0
    before = {path.name: path.read_bytes() for path in disk.glob("r*")}
    assert len(before) == 2
    most = 1000 if by == "limit" else None
    if by == "disk":
        filled(disk, 4096)
    code, said, _ = killed.called((*SOLVE, "--gap", "1e-6"), disk, most_bytes=most)
    assert code == 2, said
    assert "cannot be written" in said
    assert len(said.strip().splitlines()) == 1
    assert {path.name: path.read_bytes() for path in disk.glob("r*")} == before
    assert not [path for path in disk.iterdir() if path.name.endswith((".part", ".kept"))]


@pytest.mark.slow
def test_a_checkpoint_that_finds_no_room_does_not_end_the_run(disk: Path, tmp_path: Path) -> None:
    result = str(tmp_path / "r.json")
    line = (*SOLVE[:-2], result, "--quiet", "--checkpoint", "s.npz")
    assert killed.called((*line, "-o", "iteration_limit=1"), disk)[0] == 0
    before = (disk / "s.npz").read_bytes()
    filled(disk, 4096)
    code, said, _ = killed.called(line, disk)
    assert code == 0, said
    assert "last checkpoint stands" in said
    assert (disk / "s.npz").read_bytes() == before
    assert (tmp_path / "r.json").exists()


@pytest.mark.slow
def test_a_path_goes_on_when_there_is_room_again(disk: Path, tmp_path: Path) -> None:
    result = str(tmp_path / "r.json")
    line = (*PATH[:-2], result, "--quiet", "--M", "1:4")
    ballast = filled(disk, 40_000)
    code, said, _ = killed.called((*line, "--checkpoint", "p.points"), disk)
    assert code == 0, said
    assert "not kept there" in said
    kept = (disk / "p.points").read_bytes()
    assert kept.endswith(b"\n")
    ballast.unlink()
    code, said, _ = killed.called(("resume", "p.points", "--quiet", "--json", result), disk)
    assert code == 0, said
    assert (disk / "p.points").read_bytes().startswith(kept)
    assert (disk / "p.points").read_bytes().count(b"\n") == 5


@pytest.mark.slow
def test_a_conversion_goes_on_when_there_is_room_again(disk: Path, tmp_path: Path) -> None:
    line = ("convert", str(tmp_path / "data.svm"), "store", "--quiet")
    ballast = filled(disk, 8192)
    code, said, _ = killed.called(line, disk)
    assert code == 2, said
    assert "make room" in said or "No space left" in said
    assert not (disk / "store").exists() or not (disk / "store" / "manifest.json").exists()
    ballast.unlink()
    code, said, _ = killed.called(line, disk)
    assert code == 0, said
