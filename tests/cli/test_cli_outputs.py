"""Outputs of the command line: no input or earlier output is lost, and a stream that cannot be written is one line."""

from __future__ import annotations

import gc
import json
import os
import shutil
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

import mipfs
from mipfs.cli import output
from mipfs.errors import UsageError
from tests.cli.attack import environment, interrupted
from tests.cli.outcome import Cli

pytestmark = pytest.mark.skipif(os.name != "posix", reason="POSIX shells and devices")
MIPFS = f"{sys.executable} -m mipfs"


def shell(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", line], cwd=folder, env=environment(), capture_output=True, text=True, timeout=60, check=False
    )


@pytest.fixture
def saved(cli: Cli, small: Path) -> Path:
    """A result, with the data beside it."""
    assert cli("solve", "fsp-m", small, "-p", "M=1", "--json", small.with_name("r.json")).code == 0
    return small.with_name("r.json")


@pytest.mark.slow
def test_an_output_that_is_an_input_is_refused(cli: Cli, small: Path, saved: Path) -> None:
    folder = small.parent
    small.with_suffix(".toml").write_text("[select]\nM = 1\n")
    (folder / "rows.lp").write_text("Subject To\n few: x1 + x2 <= 1\nEnd\n")
    (folder / "link.svm").symlink_to("small.svm")
    (folder / "mine.py").write_text("import mipfs\ndef build(data):\n    return mipfs.Problem(data, M=1)\n")
    before = {path: path.read_bytes() for path in folder.iterdir()}
    solve = ("solve", "fsp-m", small, "--subject-to", folder / "rows.lp", "--validation", small)
    lines = [(*solve, "--json", folder / name) for name in ("small.svm", "small.toml", "rows.lp", "link.svm")]
    lines += [("solve", folder / "mine.py", small, "--json", folder / "mine.py")]
    lines += [("compare", small, "--json", small), ("path", small, "--M", "1", "--json", small)]
    for command in ("verify", "predict", "evaluate"):
        lines += [(command, saved, small, "--json", place) for place in (saved, small, folder / "r.cert.npz")]
    for line in lines:
        outcome = cli(*line)
        assert (outcome.code, outcome.out, outcome.err.count("\n")) == (2, "", 1), line
        assert "is read here, and would be overwritten" in outcome.err
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_a_certificate_does_not_overwrite_data_either(cli: Cli, small: Path) -> None:
    data = small.with_name("r.cert.npz")
    shutil.copy(small, small.with_name("r.cert.svm"))
    import numpy as np

    np.savez(data, X=np.array([[1.0, 0.0], [-1.0, 2.0]]), y=np.array([1, -1]))
    outcome = cli("solve", "fsp-m", data, "-p", "M=1", "--json", small.with_name("r.json"))
    assert outcome.code == 2
    assert "r.cert.npz is read here" in outcome.err


def test_generate_replaces_nothing_unasked(cli: Cli, tmp_path: Path) -> None:
    place = tmp_path / "credit.csv"
    place.write_text("mine")
    outcome = cli("generate", "credit", "--out", place)
    assert outcome.code == 2
    assert "is there already and holds something else; give another --out, or --force" in outcome.err
    assert place.read_text() == "mine"
    assert cli("generate", "credit", "--out", place, "--force").code == 0
    written = place.read_bytes()
    assert cli("generate", "credit", "--out", place).code == 0, "the same bytes again"
    place.with_suffix(".toml").write_text("mine")
    assert cli("generate", "credit", "--out", place).code == 2
    assert place.read_bytes() == written


@pytest.mark.every
@pytest.mark.slow
def test_the_json_is_saved_before_standard_output_turns_out_to_be_full_or_closed(small: Path) -> None:
    for number, (stream, reason) in enumerate({"> /dev/full": "no space left", ">&-": "bad file descriptor"}.items()):
        done = shell(f"{MIPFS} solve fsp-m small.svm -p M=1 --json r{number}.json {stream}", small.parent)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
        assert f"standard output cannot be written: {reason}" in done.stderr
        assert json.loads((small.parent / f"r{number}.json").read_text())["status"] == "OPTIMAL"
        assert shell(f"{MIPFS} verify r{number}.json small.svm", small.parent).returncode == 0


@pytest.mark.sampled(11)
@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("--help > /dev/full", 2), ("--version >&-", 2), ("--help | head -c 0", 0), ("models 2>&- | head -1", 0),
        ("solve fsp-m small.svm -p M=1 -q >&- 2>&- <&-", 0), ("solve fsp-m no.svm -p M=1 2>/dev/full", 2),
        ("solve fsp-m small.svm -p M=1 --json - | head -c 9", 0), ("solve fsp-m small.svm -p M=1 --json /dev/full", 2),
        ("solve fsp-m small.svm -p M=1 -q --json /dev/stdout | grep OPTIMAL", 0),
    ],
)  # fmt: skip
def test_streams_of_every_kind(small: Path, line: str, code: int) -> None:
    done = shell(f"set -o pipefail; {MIPFS} {line}", small.parent)
    assert done.returncode == code, done.stderr
    assert done.stderr.count("\n") == (1 if code and "2>" not in line else 0)
    assert [path.name for path in small.parent.iterdir()] == ["small.svm"]


@pytest.mark.slow
def test_what_cannot_be_saved_is_still_shown(small: Path) -> None:
    done = shell(f"ulimit -f 0; {MIPFS} solve fsp-m small.svm -p M=1 --json r.json | cat", small.parent)
    assert "status     OPTIMAL" in done.stdout
    assert "r.cert.npz: cannot be written: File too large" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("seed", [105])
def test_signals_leave_the_incumbent_and_a_whole_pair(seed: int) -> None:
    assert interrupted(seed) == ""


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_more_signals(seed: int) -> None:
    assert interrupted(seed) == ""


def test_a_certificate_that_was_cut_is_a_warning_on_one_line(cli: Cli, tmp_path: Path) -> None:
    target = tmp_path / "result.json"
    line = ("solve", "fsp-m", "instances/wdbc.svm", "--scale", "standard", "-p", "M=5", "-o", "iteration_limit=200")
    outcome = cli(*line, "--json", target, "--certificate-limit", "0.004")
    assert outcome.code == 0
    assert outcome.err.startswith(
        "mipfs: warning: to keep its certificate below 0.004 MB, result.json claims the bound "
    )
    assert outcome.err.count("\n") == 1
    assert (tmp_path / "result.cert.npz").stat().st_size <= 4000
    assert cli("verify", target, "instances/wdbc.svm", "--scale", "standard").code == 0
    for limit in ("0", "-3", "nan"):
        assert cli(*line, "--certificate-limit", limit).code == 2


def test_a_run_without_a_certificate_writes_its_result_alone(cli: Cli, tmp_path: Path) -> None:
    line = ("solve", "fsp-m", "instances/wdbc.svm", "--scale", "standard", "-p", "M=2", "--json", tmp_path / "r.json")
    assert cli(*line, "--no-certificate").code == 0
    assert [path.name for path in tmp_path.iterdir()] == ["r.json"]
    outcome = cli("verify", tmp_path / "r.json", "instances/wdbc.svm", "--scale", "standard")
    assert outcome.code == 2
    assert "without --no-certificate" in outcome.err
    assert cli(*line, "--no-certificate", "--driver", "gbd").code == 2


def test_data_that_may_not_be_meant_so_is_a_warning_on_one_line(cli: Cli, tmp_path: Path) -> None:
    rows = "\n".join(f"{i};${i}.5;{'yes' if i % 3 else 'no'}" for i in range(30))
    (tmp_path / "d.csv").write_text(f"x;income;label\n{rows}\n")
    outcome = cli("solve", "fsp-m", tmp_path / "d.csv", "-p", "M=1")
    assert outcome.code == 0
    lines = outcome.err.splitlines()
    assert [line.startswith("mipfs: warning: ") for line in lines] == [True, True]
    assert "column 'x' counts the rows" in lines[0]
    assert "column 'income' holds 30 different words in 30 rows, such as '$0.5'" in lines[1]
    assert cli("solve", "fsp-m", tmp_path / "d.csv", "-p", "M=1", "--quiet").err == ""


@pytest.mark.sampled(3)
@pytest.mark.parametrize("line", [("solve", "fsp-m", "--M", "1"), ("path", "--M", "1:2"), ("compare", "--M", "1")])
def test_what_was_found_is_kept_elsewhere_where_its_folder_is_gone(
    cli: Cli, small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: tuple[str, ...]
) -> None:
    """The folder vanishes after it was checked, as the run begins."""
    here, gone = tmp_path / "here", tmp_path / "gone"
    here.mkdir()
    gone.mkdir()
    monkeypatch.chdir(here)
    command = line[: 1 + (line[0] == "solve")]
    target = gone / "r.json"
    checked = output.check_target

    def vanishes(*args: Any, **options: Any) -> None:
        checked(*args, **options)
        shutil.rmtree(gone, ignore_errors=True)

    monkeypatch.setattr(output, "check_target", vanishes)
    done = cli(*command, small, *line[len(command) :], "--json", target, "--quiet")
    assert done.code == 2
    assert len(done.err.strip().splitlines()) == 1
    (kept,) = here.glob("mipfs-*/r.json")
    assert str(kept) in done.err
    assert not gone.exists()
    if line[0] != "compare":
        assert cli("verify", kept, small).code == 0


@pytest.mark.skipif(sys.platform == "win32", reason="there a folder that is somebody's current one stays")
def test_in_a_folder_that_was_removed_one_line_says_so(
    cli: Cli, small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    here.rmdir()
    for given in (("--json", "r.json"), ("--report", "r.html"), ("--checkpoint", tmp_path / "c.state")):
        refused = cli("solve", "fsp-m", small, "--M", "1", "--quiet", *given)
        assert refused.code == 2
        assert "the current folder was removed" in refused.err
        assert len(refused.err.strip().splitlines()) == 1
    monkeypatch.chdir(tmp_path)


def test_an_option_of_other_drivers_is_refused_by_their_names(cli: Cli, small: Path) -> None:
    for line in (("qcqp-ssvm", small, "--M", "1"), ("fsp-m", small, "--M", "1", "--driver", "monolithic")):
        refused = cli("solve", *line, "--memory-limit", "2")
        assert refused.code == 2
        assert "'memory_limit', branch, gbd, kelley, two_layer have it" in refused.err
        assert "did you mean" not in refused.err


def test_a_saved_result_leaves_no_file_open(small: Path, tmp_path: Path) -> None:
    result = mipfs.solve(mipfs.Problem(mipfs.read(small), M=1))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", ResourceWarning)
        result.save(tmp_path / "r.json")
        gc.collect()
    assert [str(one.message) for one in told if issubclass(one.category, ResourceWarning)] == []


def test_the_certificate_of_another_result_is_not_replaced(cli: Cli, small: Path, saved: Path) -> None:
    """Certificates of r and r.json have one name."""
    solve = ("solve", "fsp-m", small, "-p", "M=1", "-p", "C=3", "--quiet", "--json")
    refused = cli(*solve, small.with_name("r"))
    assert refused.code == 2
    assert "the certificate of" in refused.err
    assert len(refused.err.splitlines()) == 1
    assert cli("verify", saved, small, "-q").code == 0
    with pytest.raises(UsageError, match="the certificate of"):
        mipfs.Result.load(saved).save(small.with_name("r"))
    assert cli(*solve, small.with_name("one")).code == 0
    assert cli(*solve, small.with_name("one.json")).code == 2
    small.with_name("two").write_text("notes")
    assert cli(*solve, small.with_name("two.json")).code == 0
