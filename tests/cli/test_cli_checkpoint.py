"""``mipfs solve --checkpoint`` and ``--resume``: also what Ctrl-C stopped goes on."""

from __future__ import annotations

import inspect
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import mipfs
from mipfs.result.state import RunState, StartCommand
from tests.cli.attack import environment
from tests.cli.outcome import Cli


@pytest.fixture
def noise(tmp_path: Path) -> Path:
    """Data that take a while."""
    r = np.random.default_rng(0)
    X, y = r.normal(size=(120, 30)), np.where(r.random(120) < 0.5, 1, -1)
    rows = [" ".join(f"{j + 1}:{v:.6g}" for j, v in enumerate(row)) for row in X]
    lines = [f"{label:+d} {row}" for label, row in zip(y, rows, strict=True)]
    path = tmp_path / "noise.svm"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_limit_and_then_the_rest(cli: Cli, small: Path) -> None:
    folder = small.parent
    state, first, last = folder / "state.npz", folder / "a.json", folder / "b.json"
    line = ("solve", "fsp-m", small, "-p", "M=1", "--quiet")
    assert cli(*line, "--time-limit", "0", "--checkpoint", state, "--json", first).code in (0, 3)
    assert cli(*line, "--resume", state, "--json", last).code == 0
    assert json.loads(last.read_text())["status"] == "OPTIMAL"
    assert cli("verify", last, small).code == 0


@pytest.mark.slow
def test_a_run_goes_on_by_its_own_command_with_another_limit(
    cli: Cli, noise: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    line = ("solve", "fsp-m", noise.name, "-p", "M=3", "-p", "C=1", "-o", "iteration_limit=5", "-o", "threads=1")
    assert cli(*line, "--checkpoint", "state.npz", "--json", "r.json", "--quiet").code == 0
    first = json.loads(Path("r.json").read_text())
    assert first["stop_reason"] == "ITERATION_LIMIT"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    more = "--gap", "1e-6", "--seed", "3", "--json", "again.json"
    again = cli("resume", "../state.npz", "-o", "iteration-limit=100000", *more)
    assert again.code == 0, again.err
    second = json.loads((elsewhere / "again.json").read_text())
    assert second["status"] == "OPTIMAL"
    assert second["gap"] <= 1e-6
    monkeypatch.chdir(tmp_path)
    whole = cli(*line[:7], "--gap", "1e-6", "--json", "whole.json")
    assert whole.code == 0
    assert json.loads(Path("whole.json").read_text())["selected"] == second["selected"]
    assert cli("resume", "state.npz", "--quiet").code == 0  # which ended there: its state is kept in the same file


def test_what_cannot_be_gone_on_with_is_refused_in_one_line(cli: Cli, small: Path) -> None:
    data = mipfs.read(small)
    mipfs.solve(mipfs.Problem(data, M=1), iteration_limit=1, checkpoint=small.with_name("py.state"))
    refused = cli("resume", small.with_name("py.state"))
    assert refused.code == 2
    assert "begun in Python" in refused.err
    refused = cli("resume", small)
    assert refused.code == 2
    assert "no state of a run" in refused.err
    assert len(refused.err.strip().splitlines()) == 1


def test_a_state_of_other_data_is_refused(cli: Cli, small: Path) -> None:
    state, other = small.with_name("state.npz"), small.with_name("other.svm")
    other.write_text(small.read_text() + "+1 1:3 2:1\n")
    assert cli("solve", "fsp-m", small, "-p", "M=1", "--checkpoint", state).code == 0
    refused = cli("solve", "fsp-m", other, "-p", "M=1", "--resume", state)
    assert refused.code == 2
    assert "another problem" in refused.err


def test_the_data_is_not_overwritten(cli: Cli, small: Path) -> None:
    refused = cli("solve", "fsp-m", small, "-p", "M=1", "--checkpoint", small)
    assert refused.code == 2
    assert "--checkpoint" in refused.err


def test_a_path_goes_on_by_its_own_command(
    cli: Cli, small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    line = ("path", small, "--M", "1:2", "-p", "C=0.1", "--quiet")
    assert cli(*line, "--checkpoint", "p.points", "--json", "r.json").code == 0
    kept = Path("p.points").read_bytes()
    Path("p.points").write_bytes(b"".join(kept.splitlines(keepends=True)[:2]))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    assert cli("resume", "../p.points", "--json", "again.json").code == 0
    assert len((tmp_path / "p.points").read_bytes().splitlines()) == 3
    first, second = (json.loads(path.read_text()) for path in (tmp_path / "r.json", elsewhere / "again.json"))
    assert [point["selected"] for point in first["points"]] == [point["selected"] for point in second["points"]]
    for refused in (
        cli("resume", tmp_path / "p.points", "--pool-size", "3"),
        cli("resume", tmp_path / "p.points", "--seed", "3"),
        cli(*line, "--checkpoint", tmp_path / "p.points"),
        cli("path", small, "--M", "1:2", "-p", "C=0.2", "--resume", tmp_path / "p.points"),
        cli("path", small, "--M", "1:2", "--resume", small),
    ):
        assert refused.code == 2
        assert len(refused.err.strip().splitlines()) == 1


@pytest.mark.slow
def test_resume_is_a_process_like_any_other(small: Path) -> None:
    folder = small.parent
    data = mipfs.read(small)
    mipfs.solve(mipfs.Problem(data, M=1), iteration_limit=1, checkpoint=folder / "s.npz")
    state = RunState.load(folder / "s.npz")
    arguments = ("solve", "fsp-m", small.name, "-p", "M=1")
    replace(state, began=StartCommand(arguments, str(folder))).save(folder / "s.npz")
    run = subprocess.run(
        [sys.executable, "-m", "mipfs", "resume", "s.npz", "--json", "-"],
        cwd=folder, env=environment(), capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert "Traceback" not in run.stderr
    assert json.loads(run.stdout)["status"] == "OPTIMAL"


def test_a_run_that_begins_anew_over_a_state_says_so(cli: Cli, small: Path) -> None:
    state = small.parent / "again.state"
    command = ("solve", "fsp-m", small, "-p", "M=2", "-p", "C=1", "--checkpoint", state)
    said = f"replaces what is in {state}; `mipfs resume {state}` goes on with that"
    assert [said in cli(*given).err for given in (command, command, ("resume", state))] == [False, True, False]


def test_an_interval_of_checkpoints_is_a_positive_number(cli: Cli, small: Path) -> None:
    refused = cli("solve", "fsp-m", small, "-p", "M=1", "--checkpoint", small.with_name("s"), "--checkpoint-every", "0")
    assert refused.code == 2
    assert "--checkpoint-every 0" in refused.err


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_ctrl_c_leaves_a_state_that_goes_on(noise: Path) -> None:
    state, found = noise.with_name("state.npz"), noise.with_name("r.json")
    line = [sys.executable, "-m", "mipfs", "solve", "fsp-m", str(noise), "-p", "M=12", "-p", "C=1", "--gap", "1e-9"]
    run = subprocess.Popen(
        [*line, "--checkpoint", str(state), "--checkpoint-every", "1", "--json", str(found)],
        cwd=noise.parent, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip
    while not state.exists() and run.poll() is None:
        time.sleep(0.1)
    time.sleep(2.0)
    run.send_signal(signal.SIGINT)
    _, err = run.communicate(timeout=60)
    assert run.returncode in (0, 3, 130), err
    first = json.loads(found.read_text())
    again = noise.with_name("again.json")
    rest = subprocess.run(
        [*line, "--resume", str(state), "--time-limit", "2", "--json", str(again)],
        cwd=noise.parent, env=environment(), capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert rest.returncode in (0, 3), rest.stderr
    second = json.loads(again.read_text())
    assert second["bound"] >= first["bound"] * (1 - 1e-9)
    assert second["counters"]["nodes"] >= first["counters"]["nodes"]


def _made_to_say(state: Path, *arguments: str, folder: Path) -> None:
    """A state that says it began by another command."""
    replace(RunState.load(state), began=StartCommand(arguments, str(folder))).save(state)


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    "named",
    [
        ("--module", "theirs.py"),
        ("--module=theirs.py",),
        ("-qpC=1", "--module", "theirs.py"),
        ("--json", "../mine.txt"),
        ("--report=../mine.txt",),
        ("--write", "../mine.lp"),
        ("--dask", "tcp://127.0.0.1:1"),
    ],
    ids=" ".join,
)
def test_a_state_decides_neither_what_runs_nor_what_is_written(
    cli: Cli, small: Path, tmp_path: Path, named: tuple[str, ...]
) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    state, ran = theirs / "c.state", tmp_path / "ran"
    (theirs / "theirs.py").write_text(f"open({str(ran)!r}, 'w').close()\n")
    for mine in ("mine.txt", "mine.lp"):
        (tmp_path / mine).write_text("mine")
    line = ("solve", "fsp-m", str(small), "--M", "1")
    assert cli(*line, "--checkpoint", state, "--quiet").code == 0
    _made_to_say(state, *line, *named, folder=theirs)
    refused = cli("resume", state, "--quiet")
    assert refused.code == 2
    assert named[-1].rpartition("=")[2] in refused.err
    assert "--trust" in refused.err
    assert len(refused.err.strip().splitlines()) == 1
    assert not ran.exists()
    assert {(tmp_path / mine).read_text() for mine in ("mine.txt", "mine.lp")} == {"mine"}


def test_a_formulation_of_a_state_runs_where_the_file_is_trusted(cli: Cli, small: Path, tmp_path: Path) -> None:
    ran, state = tmp_path / "ran", tmp_path / "c.state"
    own = tmp_path / "own.py"
    build = "from mipfs import models\ndef build(data, **params): return models.fsp_m(data, **params)\n"
    own.write_text(build + f"open({str(ran)!r}, 'w').close()\n")
    assert cli("solve", own, small, "-p", "M=1", "--checkpoint", state, "--quiet").code == 0
    ran.unlink()
    refused = cli("resume", state)
    assert refused.code == 2
    assert "MODEL" in refused.err
    assert not ran.exists()
    assert cli("resume", state, "--trust", "--quiet").code == 0
    assert ran.exists()


def test_a_state_writes_beside_itself_and_where_it_is_told_to(
    cli: Cli, small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    monkeypatch.chdir(tmp_path)
    line = ("solve", "fsp-m", small, "--M", "1", "--quiet", "--checkpoint", "kept/c.state")
    assert cli(*line, "--json", "kept/r.json").code == 0
    Path("kept/r.json").unlink()
    assert cli("resume", "kept/c.state").code == 0
    assert Path("kept/r.json").exists()
    assert cli(*line, "--json", "r.json").code == 0
    assert cli("resume", "kept/c.state").code == 2
    assert cli("resume", "kept/c.state", "--json", "other.json").code == 0
    assert Path("other.json").exists()
    monkeypatch.chdir(kept)
    Path("link.json").symlink_to(tmp_path / "r.json")  # in the folder, and leads out of it
    _made_to_say(Path("c.state"), "solve", "fsp-m", str(small), "--M", "1", "--json", "link.json", folder=kept)
    assert cli("resume", "c.state").code == 2


def test_points_of_a_path_decide_neither_what_runs_nor_what_is_written(
    cli: Cli, small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    Path("theirs.py").write_text("open('ran', 'w').close()\n")
    line = ("path", small, "--M", "1:2", "--quiet", "--checkpoint")
    for k, named in enumerate((("--module", "theirs.py"), ("--json", "mine.json"))):
        assert cli(*line, f"theirs/{k}.points", *named).code == 0
        for left in ("ran", "mine.json"):
            Path(left).unlink(missing_ok=True)
        refused = cli("resume", f"theirs/{k}.points")
        assert refused.code == 2
        assert " ".join(named) in refused.err
        assert not Path("ran").exists()
        assert not Path("mine.json").exists()


def test_every_parameter_of_a_command_that_goes_on_is_known_to_run_nothing_or_is_asked_about() -> None:
    """A new option of `solve` or `path` is put into one of these, or into what a file cannot decide."""
    from mipfs.cli import path, resume, solve

    harmless = {
        "data_file", "param", "M", "C", "lam", "rows", "driver", "option", "subject_to", "nonnegative",
        "nonpositive", "weight_bounds", "weight_rows", "box", "time_limit", "memory_limit", "gap", "start",
        "validation", "pool_gap", "pool_size", "preselect", "checkpoint_every", "resume", "certificate_limit",
        "no_certificate", "shared_support", "calibrate", "folds", "one_se", "cold", "jobs", "scale", "label",
        "positive", "drop", "use", "impute", "types", "words", "missing", "checks", "quiet",
        "seed", "total_limit", "warm", "then", "held_out", "folds_by", "by", "between",
    }  # fmt: skip
    for function in (solve.solve, path.path):
        assert set(inspect.signature(function).parameters) <= {*harmless, *resume.RUNS, *resume.WRITES}
    assert not harmless & {*resume.RUNS, *resume.WRITES}
