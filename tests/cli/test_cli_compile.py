"""``mipfs compile``, and what is shown while kernels compile."""

from __future__ import annotations

import io
import json
import logging
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mipfs.cli import compiled_kinds as kinds
from mipfs.cli import main
from mipfs.cli.live import Compiled, live_table
from mipfs.cli.live_path import View
from mipfs.compiled import kept
from mipfs.run.beside import Progress
from mipfs.run.warm_up import ANNOUNCED

ROOT = Path(__file__).resolve().parents[2]


def test_where_says_what_is_read_and_written(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compile", "--where", "--json", "-"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["read"] == [str(folder) for folder in kept.cache_folders()]
    assert found["written"] == str(kept.home())
    assert main(["compile", "--where"]) == 0
    assert str(kept.home()) in capsys.readouterr().out


def test_every_driver_is_a_kind() -> None:
    assert {"branch sparse", "two_layer dense", "estimators dense", "readers sparse"} <= set(kinds.kinds())


@pytest.mark.slow
def test_kinds_that_fail_are_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(kinds, "kinds", lambda: ["readers dense", "nothing dense"])
    assert main(["compile", "--json", "-"]) == 1
    said = capsys.readouterr()
    found = json.loads(said.out)
    assert (found["kinds"], found["failed"]) == (["readers dense"], ["nothing dense"])
    assert found["bytes"] > 0
    assert re.fullmatch(r"mipfs: error: not compiled: nothing dense; .*\n", said.err)


@pytest.mark.every
@pytest.mark.slow
@pytest.mark.timeout(600)  # it compiles every kernel: 100 s on two cores, more beside another worker
def test_after_compile_nothing_is_compiled(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    run = [sys.executable, "-m", "mipfs"]
    subprocess.run([*run, "compile", "--quiet"], env=environment, check=True, capture_output=True)
    before = sorted(path.name for path in tmp_path.rglob("*.nbc"))
    wdbc = str(ROOT / "instances" / "wdbc.svm")
    for model, more in (("fsp-m", []), ("fsp-m", ["-p", "loss=logistic"]), ("fgm", [])):
        asked = [*run, "solve", model, wdbc, "-p", "M=5", *more, "--scale", "standard", "--time-limit", "5"]
        subprocess.run(asked, env=environment, check=False, capture_output=True)
    assert sorted(path.name for path in tmp_path.rglob("*.nbc")) == before


@pytest.mark.parametrize("width", [40, 80, 120])
@pytest.mark.parametrize("expected", [0, 195])
def test_the_line_while_kernels_compile_fits(width: int, expected: int) -> None:
    from rich.console import Console

    view, screen = View(), io.StringIO()
    view.compiling = Progress(functions=87, expected=expected, began=time.monotonic() - 23.0)
    Console(file=screen, width=width).print(view.line(width))
    lines = screen.getvalue().splitlines()
    assert len(lines) == 1
    assert len(lines[0]) <= width
    assert "87" in lines[0]
    assert "23 s" in lines[0]
    assert str(expected) in lines[0] or not expected
    view.compiling.is_over = True
    assert not view.is_compiling()
    assert not Compiled().is_compiling()


def test_without_a_terminal_much_compiling_is_one_line(capfd: pytest.CaptureFixture[str]) -> None:
    log = logging.getLogger("mipfs")
    with live_table(quiet=False):
        log.info("something else")
        log.info(ANNOUNCED, extra={"progress": Progress()})
        log.info(ANNOUNCED, extra={"progress": Progress(expected=195)})
    with live_table(quiet=True):
        log.info(ANNOUNCED, extra={"progress": Progress(expected=195)})
    assert capfd.readouterr() == ("", f"{ANNOUNCED}\n")


def _children(pid: int) -> set[int]:
    """The processes that a process has started, and that run."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = path.read_text(encoding="utf-8").rsplit(")", 1)[1].split()[:2]
        except OSError:
            continue
        if int(parent) == pid and state != "Z":
            found.add(int(path.parent.name))
    return found


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="asks /proc")
def test_ctrl_c_while_kernels_compile_ends_the_run(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    wdbc, target = str(ROOT / "instances" / "wdbc.svm"), tmp_path / "r.json"
    command = [sys.executable, "-m", "mipfs", "solve", "fsp-m", wdbc, "-p", "M=5", "--json", str(target)]
    run = subprocess.Popen([*command, "--scale", "standard"], env=environment, stderr=subprocess.PIPE, text=True)
    end, children = time.monotonic() + 60.0, set[int]()
    while not children and time.monotonic() < end and run.poll() is None:
        children = _children(run.pid)
        time.sleep(0.05)
    assert children
    time.sleep(1.0)
    children |= _children(run.pid)
    struck = time.monotonic()
    run.send_signal(signal.SIGINT)
    said = run.communicate(timeout=60)[1]
    assert run.returncode == 4
    assert time.monotonic() - struck < 10.0, "a second on an idle machine; compiling its first step takes 15"
    assert said.splitlines() == [
        ANNOUNCED,
        "mipfs: error: interrupted before any classifier was found; let it run for longer",
    ]
    assert not any(Path(f"/proc/{child}").exists() for child in children)
    assert not target.exists() or json.loads(target.read_text(encoding="utf-8"))["stop_reason"] == "INTERRUPTED"
    assert not [path for path in tmp_path.rglob("*") if path.name.endswith(".tmp")]
