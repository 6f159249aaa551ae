"""Where machine code lies: who may write there, who finds it, and what happens where it cannot be kept."""

from __future__ import annotations

import errno
import logging
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from numba.core import caching, config

from mipfs.compiled import compiled, kept

RUN = """
import numpy as np
from mipfs.kernels.face_descent import multiply
out = np.ones(2)
multiply(np.eye(2), np.array([3.0, 4.0]), out)
print(*out, sum(multiply.stats.cache_hits.values()), sum(multiply.stats.cache_misses.values()))
"""
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="owners and modes")


@pytest.fixture
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Nothing is known yet of folders; the user's is in a folder of the test."""
    monkeypatch.setattr(config, "CACHE_DIR", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    caches = (kept.home, kept.cache_folders, kept.warn_not_kept)
    for one in caches:
        one.cache_clear()
    yield tmp_path
    for one in caches:
        one.cache_clear()


def _copy(folder: Path) -> Path:
    """A copy of the package, as in another environment."""
    left_out = shutil.ignore_patterns("__pycache__")
    shutil.copytree(kept.PACKAGE, folder / "mipfs", ignore=left_out)
    return folder


def _ran(package: Path, **environment: str) -> list[str]:
    """What `RUN` says with that copy of the package."""
    known = {name: value for name, value in os.environ.items() if name not in ("NUMBA_CACHE_DIR", "HOME")}
    ran = subprocess.run(
        [sys.executable, "-c", RUN], env={**known, "PYTHONPATH": str(package), **environment},
        capture_output=True, text=True, check=True, cwd=package,
    )  # fmt: skip
    return ran.stdout.split()


@pytest.mark.slow
def test_environments_share_code_and_a_read_only_installation_has_its_own(tmp_path: Path) -> None:
    first, second = _copy(tmp_path / "first"), _copy(tmp_path / "second")
    own = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    assert _ran(first, **own) == ["3.0", "4.0", "0", "1"]
    assert _ran(second, **own) == ["3.0", "4.0", "1", "0"]
    assert stat.S_IMODE((tmp_path / "cache" / "mipfs").stat().st_mode) == 0o700
    beside = first / "mipfs" / "__pycache__"
    assert _ran(first, NUMBA_CACHE_DIR=str(beside)) == ["3.0", "4.0", "0", "1"]
    nowhere = {"XDG_CACHE_HOME": "/dev/null/cache", "TMPDIR": str(tmp_path)}
    assert _ran(first, **nowhere) == ["3.0", "4.0", "1", "0"]
    with (second / "mipfs" / "kernels" / "kinds.py").open("a", encoding="utf-8") as file:
        file.write("# edited\n")
    assert _ran(second, **own) == ["3.0", "4.0", "0", "1"]


def test_the_users_folder_is_by_name_then_by_home(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert kept.users_own() == fresh / "cache" / "mipfs"
    monkeypatch.setenv("XDG_CACHE_HOME", "not/absolute")
    monkeypatch.setenv("HOME", str(fresh))
    own = "Library/Caches" if sys.platform == "darwin" else ".cache"
    assert kept.users_own() == fresh / own / "mipfs"
    monkeypatch.delenv("HOME")
    pwd = pytest.importorskip("pwd")
    home = Path(pwd.getpwuid(os.getuid()).pw_dir)
    assert kept.users_own() == (home / own / "mipfs" if home.is_dir() else None)
    monkeypatch.setenv("HOME", str(fresh / "nowhere"))
    assert kept.users_own() is None


def test_without_a_home_code_lies_in_a_private_folder_for_temporary_files(
    fresh: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(kept, "users_own", lambda: None)
    with caplog.at_level(logging.INFO, logger="mipfs"):
        for _ in range(2):
            assert kept.home() == fresh / f"mipfs-{os.geteuid()}" / f"mipfs-{kept.key()}"
    assert len(caplog.records) == 1
    assert stat.S_IMODE((fresh / f"mipfs-{os.geteuid()}").stat().st_mode) == 0o700


def _open(folder: Path) -> None:
    folder.mkdir(parents=True)
    folder.chmod(0o777)


def _link(folder: Path) -> None:
    (folder.parent / "elsewhere").mkdir(parents=True, mode=0o700)
    folder.symlink_to(folder.parent / "elsewhere")


def _others(folder: Path) -> None:
    folder.mkdir(parents=True, mode=0o700)
    os.chown(folder, 12345, -1)


@pytest.mark.parametrize("spoil", [_open, _link, _others])
def test_a_folder_that_others_could_write_to_is_not_used(fresh: Path, spoil: object) -> None:
    if spoil is _others and os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    spoil(fresh / "cache" / "mipfs")  # type: ignore[operator]
    assert kept.home() == fresh / f"mipfs-{os.geteuid()}" / f"mipfs-{kept.key()}"
    kept.home.cache_clear()
    shutil.rmtree(fresh / f"mipfs-{os.geteuid()}")
    spoil(fresh / f"mipfs-{os.geteuid()}")  # type: ignore[operator]
    assert kept.home() is None
    assert kept.cache_folders() in ([], [kept.lies_beside()])


def test_a_folder_within_is_looked_at_too(fresh: Path) -> None:
    (fresh / "cache" / "mipfs").mkdir(parents=True, mode=0o700)
    _open(fresh / "cache" / "mipfs" / f"mipfs-{kept.key()}")
    assert kept.home() == fresh / f"mipfs-{os.geteuid()}" / f"mipfs-{kept.key()}"


def test_what_cannot_be_written_to_is_read(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for named in (True, False):
        monkeypatch.setattr(config, "CACHE_DIR", str(fresh / "named") if named else "")
        for one in (kept.home, kept.cache_folders):
            one.cache_clear()
        folder = kept.home()
        assert folder is not None
        assert kept.cache_folders()[-1:] == [folder]
        with monkeypatch.context() as patched:
            patched.setattr(kept, "_make_folder", lambda *_, **__: None)
            for one in (kept.home, kept.cache_folders):
                one.cache_clear()
            assert kept.home() is None
            assert kept.cache_folders()[-1:] == [folder]


def _twice(x: float) -> float:
    return 2.0 * x


def test_a_full_disk_is_said_once_and_the_program_goes_on(
    fresh: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(caching.IndexDataCacheFile, "save", full)
    twice = compiled()(_twice)
    with caplog.at_level(logging.WARNING, logger="mipfs"):
        assert (twice(2.0), twice(3)) == (4.0, 6.0)
        monkeypatch.setattr(kept, "home", lambda: None)
        assert (compiled()(_twice)(2.0), compiled()(_twice)(3.0)) == (4.0, 6.0)
    said = [record.getMessage() for record in caplog.records]
    assert [("No space left" in line, "no folder" in line) for line in said] == [(True, False), (False, True)]


def test_a_file_that_is_not_whole_is_compiled_anew(fresh: Path) -> None:
    assert compiled()(_twice)(2.0) == 4.0
    folder = kept.home()
    assert folder is not None
    for path in folder.glob("*.nb?"):
        path.write_bytes(path.read_bytes()[:-7])
    again = compiled()(_twice)
    assert again(2.0) == 4.0
    assert sum(again.stats.cache_hits.values()) == 0
    for path in folder.glob("*.nbi"):
        path.write_bytes(b"")
    assert compiled()(_twice)(3.0) == 6.0
