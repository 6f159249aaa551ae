"""Output files: whole or not at all, whatever happens meanwhile."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import mipfs
from mipfs.data.instance import Instance
from mipfs.errors import UsageError
from mipfs.plumbing import output_file
from mipfs.problem import Problem
from mipfs.result.result import Result

EARLIER = {"a": b"the certificate of before", "b": b"the result of before"}


def pair(folder: Path) -> list[tuple[Path, bytes]]:
    return [(folder / "a", b"new certificate"), (folder / "b", b"new result")]


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def before(tmp_path: Path) -> Path:
    for name, content in EARLIER.items():
        (tmp_path / name).write_bytes(content)
    return tmp_path


def test_both_files_are_written_and_nothing_is_left_behind(before: Path) -> None:
    output_file.save(pair(before))
    assert contents(before) == {"a": b"new certificate", "b": b"new result"}


@pytest.mark.parametrize("function", ["fsync", "replace", "fchmod", "open"])
@pytest.mark.parametrize("place", [1, 2])
def test_an_error_at_any_step_leaves_what_was_there(
    before: Path, monkeypatch: pytest.MonkeyPatch, function: str, place: int
) -> None:
    real, calls = getattr(os, function), 0

    def fails(*args: object, **options: object) -> object:
        nonlocal calls
        calls += 1
        if calls == place:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(*args, **options)

    monkeypatch.setattr(os, function, fails)
    with pytest.raises(UsageError, match="cannot be written: No space left on device"):
        output_file.save(pair(before))
    monkeypatch.undo()
    assert contents(before) == EARLIER


def test_what_is_new_goes_away_again_when_its_mate_cannot_be_moved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "b").write_bytes(EARLIER["b"])
    real = os.replace

    def fails(source: Path, target: Path) -> None:
        if target.name == "b":
            raise OSError(errno.EBUSY, "Device or resource busy")
        real(source, target)

    monkeypatch.setattr(os, "replace", fails)
    with pytest.raises(UsageError, match="busy"):
        output_file.save(pair(tmp_path))
    assert contents(tmp_path) == {"b": EARLIER["b"]}


def test_a_real_limit_on_file_size_destroys_nothing(before: Path) -> None:
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    large = [(before / "a", b"x" * 100), (before / "b", b"x" * 100_000)]
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, hard))
        with pytest.raises(UsageError, match="too large"):
            output_file.save(large)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert contents(before) == EARLIER


def test_three_interrupts_while_saving_wait_for_it(before: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.fsync

    def interrupted(handle: int) -> None:
        for _ in range(3):
            signal.raise_signal(signal.SIGINT)
        real(handle)

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        output_file.save(pair(before))
    assert contents(before) == {"a": b"new certificate", "b": b"new result"}


def test_links_permissions_and_the_umask(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    real, link = tmp_path / "store" / "real", tmp_path / "link"
    real.write_bytes(b"old")
    real.chmod(0o640)
    link.symlink_to(real)
    output_file.save([(link, b"new"), (tmp_path / "fresh", b"new")])
    assert link.is_symlink()
    assert real.read_bytes() == b"new"
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE((tmp_path / "fresh").stat().st_mode) == 0o666 & ~mask


@pytest.mark.skipif(os.name != "posix" or os.getuid() == 0, reason="root may write everywhere")
def test_a_write_protected_file_is_refused(before: Path) -> None:
    (before / "b").chmod(0o444)
    with pytest.raises(UsageError, match="write-protected"):
        output_file.save(pair(before))
    assert contents(before) == EARLIER


@pytest.mark.parametrize("name", ["x" * 300, "no/folder", "a/b", "."])
def test_a_place_that_is_none_is_refused_beforehand(before: Path, name: str) -> None:
    for call in (output_file.check, lambda path: output_file.save([(path, b"")])):
        with pytest.raises(UsageError, match="cannot be written"):
            call(before / name if name != "." else Path(name))
    assert contents(before) == EARLIER


def test_an_output_that_is_an_input_is_refused(before: Path) -> None:
    (before / "link").symlink_to("a")
    os.link(before / "a", before / "hard")
    for name in ("a", "link", "hard", "./a"):
        with pytest.raises(UsageError, match="is read here"):
            output_file.check(before / name, [before / "a"])
    output_file.check(before / "b", [before / "a", before / "absent", "x" * 300])


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_pipes_and_devices_are_written_to_as_they_are(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append((tmp_path / "pipe").read_bytes()))
    reader.start()
    output_file.save([(tmp_path / "pipe", b"text")])
    reader.join(10)
    assert read == [b"text"]
    output_file.save([(Path("/dev/null"), b"text")])
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    with pytest.raises(UsageError, match="No space left"):
        output_file.save([(Path("/dev/full"), b"text")])
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]


def solved() -> tuple[Instance, Result]:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(14, 4))
    data = Instance.from_arrays(X, np.where(X[:, 0] > 0, 1, -1))
    return data, mipfs.solve(Problem(data, M=2))


def test_a_result_and_its_certificate_are_a_pair_wherever_they_go(tmp_path: Path) -> None:
    data, result = solved()
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "first.json").write_text("")
    (tmp_path / "link.json").symlink_to("store/first.json")
    result.save(tmp_path / "link.json")
    stated = json.loads((tmp_path / "link.json").read_text())["certificate"]
    sidecar = tmp_path / "store" / "first.cert.npz"
    assert stated["file"] == sidecar.name
    assert stated["sha256"] == hashlib.sha256(sidecar.read_bytes()).hexdigest()
    for path in (tmp_path / "link.json", tmp_path / "store" / "first.json"):
        assert mipfs.verify(Result.load(path), data).accepted
    Result.load(tmp_path / "link.json").save(tmp_path / "second.json")
    again = Result.load(tmp_path / "second.json")
    assert (tmp_path / "second.cert.npz").read_bytes() == sidecar.read_bytes()
    assert mipfs.verify(again, data).accepted


def test_a_full_disk_keeps_the_earlier_pair_and_the_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, result = solved()
    result.save(tmp_path / "r.json")
    earlier = contents(tmp_path)
    other = mipfs.solve(Problem(data, M=1))

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(UsageError):
            other.save(tmp_path / "r.json")
    assert contents(tmp_path) == earlier
    assert mipfs.verify(Result.load(tmp_path / "r.json"), data).accepted
    assert (other.certificate, other.path) == (None, None)
    other.save(tmp_path / "r.json")
    assert mipfs.verify(Result.load(tmp_path / "r.json"), data).accepted


WRITES = """
import os, sys, time
from pathlib import Path
from mipfs.plumbing import output_file
real, calls = os.replace, 0
def struck(*args):
    global calls
    calls += 1
    if calls == int(sys.argv[3]):
        print("struck", flush=True)
        os.kill(os.getpid(), 9) if sys.argv[2] == "killed" else time.sleep(60)
    return real(*args)
os.replace = struck
output_file.save([(Path(sys.argv[1]) / name, b"theirs") for name in ("a", "b")])
"""


@pytest.mark.sampled(2)
@pytest.mark.skipif(sys.platform == "win32", reason="there are no such locks")
@pytest.mark.parametrize("place", [1, 2])
def test_what_a_killed_run_left_goes_with_the_next_one_and_what_is_at_work_stays(before: Path, place: int) -> None:
    """Killed, or waiting, before the first or between the two moves."""
    for name in ("mine.part", ".a.part", ".a.0123456.kept", ".c.01234567.part", ".a.0123456g.part"):
        (before / name).write_bytes(b"another's")
    others = {*contents(before)}
    line = [sys.executable, "-c", WRITES, str(before)]
    for _ in range(3):
        assert subprocess.run([*line, "killed", str(place)], check=False, capture_output=True).returncode == -9
    left = {*contents(before)} - others
    assert left
    with subprocess.Popen([*line, "waits", str(place)], stdout=subprocess.PIPE) as waits:
        try:
            assert waits.stdout is not None
            assert waits.stdout.readline() == b"struck\n"
            assert not left & {*contents(before)}, "it cleared what was left before it wrote"
            at_work = {*contents(before)} - others
            output_file.save(pair(before))
            assert {*contents(before)} == others | at_work
        finally:
            waits.kill()
    output_file.save(pair(before))
    assert {*contents(before)} == others
    assert (before / "b").read_bytes() == b"new result"


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such locks")
def test_without_locks_nothing_is_cleared(before: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import fcntl

    def knows_none(handle: int, how: int) -> None:
        raise OSError(errno.ENOLCK, "no locks")

    left = before / ".a.01234567.part"
    left.write_bytes(b"of a machine beside, say")
    with monkeypatch.context() as patched:
        patched.setattr(fcntl, "flock", knows_none)
        output_file.save(pair(before))
    assert {*contents(before)} == {*EARLIER, left.name}
    output_file.save(pair(before))
    assert {*contents(before)} == {*EARLIER}


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="the system does not say what is open")
def test_a_writer_that_fails_leaves_no_file_open(before: Path) -> None:
    def fails(_stream: object) -> None:
        raise ValueError("no such content")

    handles = set(os.listdir("/proc/self/fd"))
    for content in (fails, b"fine"):
        with contextlib.suppress(ValueError):
            output_file.save([(before / "a", content)])
    assert set(os.listdir("/proc/self/fd")) == handles
    assert {*contents(before)} == {*EARLIER}
