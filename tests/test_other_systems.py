"""What Windows and macOS lack or do otherwise, taken away or done here: a stand-in for such machines.

`LACKING` removes what Python has on Linux alone, before anything is imported; a process then goes the whole way.
"""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mipfs import compiled
from mipfs.compiled import cache
from mipfs.convert import transpose
from mipfs.errors import UsageError
from mipfs.plumbing import alarm, machine, memory, output_file

ROOT = Path(__file__).resolve().parents[1]
LACKING = """
import os, signal, sys
from pathlib import Path
for name in ("fcntl", "resource"):
    sys.modules[name] = None
for name in ("sched_getaffinity", "register_at_fork", "fork", "fchown", "sysconf", "geteuid", "getuid"):
    delattr(os, name)
for name in ("SIGHUP", "SIGALRM", "setitimer", "SIGKILL"):
    delattr(signal, name)
read, write, opened, linked = Path.read_text, Path.write_text, os.open, os.link
def missing(self, *given, **named):
    if str(self).startswith("/proc"):
        raise FileNotFoundError(str(self))
    return read(self, *given, **named)
def refused(self, *given, **named):
    if str(self).startswith("/proc"):
        raise FileNotFoundError(str(self))
    return write(self, *given, **named)
def no_folder(path, *given, **named):  # Windows opens no folder as a file
    if os.path.isdir(path):
        raise PermissionError(13, "Permission denied", str(path))
    return opened(path, *given, **named)
def no_link(*given, **named):
    raise OSError(1, "Operation not permitted")
Path.read_text, Path.write_text, os.open, os.link = missing, refused, no_folder, no_link
"""
WAY = """
from mipfs.cli import main
def told(*arguments):
    code = main(list(arguments))
    assert code == 0, (arguments, code)
told("solve", "fsp-m", "d.csv", "--M", "2", "--json", "r.json", "--checkpoint", "c", "--quiet")
told("verify", "r.json", "d.csv")
told("convert", "d.csv", "d.store")
assert not Path("d.store.unfinished").exists()
told("solve", "fsp-m", "d.store", "--M", "2", "--json", "r.json", "--quiet")  # over the one that stands there
told("solve", "fsp-m", "d.store", "--driver", "gbd", "--M", "2", "--quiet", "--time-limit", "30")
told("verify", "r.json", "d.store")
assert main(["solve", "fsp-m", "d.csv", "--M", "2", "--memory-limit", "4"]) == 2
"""
PLATFORM_ONLY = {
    "fcntl",
    "resource",
    "pwd",
    "grp",
    "termios",
    "tty",
    "pty",
    "msvcrt",
    "winreg",
    "_winapi",
    "posix",
    "nt",
}


@pytest.mark.slow
def test_the_whole_way_without_what_is_linux_alone(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = np.round(rng.standard_normal((30, 5)), 3)
    lines = [",".join([*map(str, row), "yes" if row[0] + row[1] > 0 else "no"]) for row in X.tolist()]
    (tmp_path / "d.csv").write_text("a,b,c,d,e,label\n" + "\n".join(lines) + "\n", encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", LACKING + WAY],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "does not say how much memory" in done.stderr
    assert json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))["status"] == "OPTIMAL"
    assert not [path.name for path in tmp_path.iterdir() if path.name.endswith((".part", ".kept", ".unfinished"))]


@pytest.mark.slow
def test_every_file_can_be_imported_and_reads_the_same_anywhere() -> None:
    for path in (ROOT / "mipfs").rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            if node in tree.body:  # bare at the top: a lack of it is met at the import
                assert not PLATFORM_ONLY & set(names), f"{path}:{node.lineno}"
            # The link at the top, which is a file with a path in it where git makes none.
            assert not [name for name in names if name.split(".")[0] == "models"], f"{path}:{node.lineno}"
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and path.name != "memory.py":
                is_text = node.func.attr == "read_text" or (node.func.attr == "write_text" and len(node.args) == 1)
                named = any(word.arg == "encoding" for word in node.keywords)
                assert named or not is_text, f"{path}:{node.lineno}: no encoding"


def test_a_process_of_our_own_hears_no_ctrl_c_of_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    assert machine.new_session_options() == {"start_new_session": True}
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 512, raising=False)
    assert machine.new_session_options() == {"creationflags": 512}


def test_cores_where_the_system_does_not_say_which_may_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 6)
    assert machine.cores() == 6
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert machine.cores() == 1


def test_memory_on_macos_and_where_nobody_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_STATUS", Path("/nowhere/status"))
    monkeypatch.setattr(memory, "_CLEAR", Path("/nowhere/clear"))
    kilobytes = memory._peak_bytes()
    monkeypatch.setattr(sys, "platform", "darwin")  # which counts bytes
    of_mac = memory._peak_bytes()
    assert kilobytes is not None
    assert of_mac is not None
    assert 0.5 < kilobytes / (1024 * of_mac) < 2
    monkeypatch.setitem(sys.modules, "resource", None)
    with memory.measure_peak() as found:
        pass
    assert found.bytes is None
    assert not memory.MemoryLimit(None).is_reached
    with pytest.raises(UsageError, match="does not say how much memory"):
        memory.MemoryLimit(1.0)


def test_no_timer_no_alarm(monkeypatch: pytest.MonkeyPatch) -> None:
    import signal

    monkeypatch.delattr(signal, "setitimer")
    with alarm.raise_after(1e-6):
        assert sum(range(1000)) == 499500


@pytest.mark.parametrize("error", [OSError(37, "No locks available"), BlockingIOError(11, "busy")])
def test_folders_whose_file_system_knows_no_locks(
    error: OSError, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import fcntl

    def flock(*_given: Any) -> None:
        raise error

    monkeypatch.setattr(fcntl, "flock", flock)
    monkeypatch.setattr(output_file, "WAIT_SECONDS", 0.05)
    monkeypatch.setattr(cache, "PATIENCE_SECONDS", 0.05)
    monkeypatch.setattr(cache, "POLL_SECONDS", 0.01)
    entered = []
    with output_file.alone(tmp_path):
        entered.append("output")
    kept = cache.KernelCache(compiled.compiled()(test_no_timer_no_alarm))
    kept._take_lock()
    kept._release_lock()
    if isinstance(error, BlockingIOError):
        with (
            pytest.raises(UsageError, match="another process"),
            transpose._locked_folder(tmp_path / "f", tmp_path / "s"),
        ):
            pass
    else:
        with transpose._locked_folder(tmp_path / "f", tmp_path / "s"):
            entered.append("store")
    assert entered == (["output"] if isinstance(error, BlockingIOError) else ["output", "store"])


def test_a_store_leaves_nothing_where_open_files_cannot_be_removed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "d.csv").write_text("a,b,label\n1,2,0\n2,1,1\n3,0,1\n0,3,0\n", encoding="utf-8")
    removed = shutil.rmtree

    def rmtree(folder: Path, **named: Any) -> None:
        opened = {os.path.realpath(f"/proc/self/fd/{one}") for one in os.listdir("/proc/self/fd")}
        if not any(place.startswith(str(folder)) for place in opened):
            removed(folder, **named)

    monkeypatch.setattr(shutil, "rmtree", rmtree)
    transpose.convert(tmp_path / "d.csv", tmp_path / "d.store")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["d.csv", "d.store"]


def test_an_output_that_windows_holds_open_leaves_what_was_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    place = tmp_path / "r.json"
    place.write_bytes(b"before")

    def replace(*_given: Any) -> None:
        raise PermissionError(13, "The process cannot access the file because it is being used by another process")

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(UsageError, match="used by another process"):
        output_file.save([(place, b"after")])
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("r.json", b"before")]
