"""``mipfs bench`` and ``mipfs baselines``: tables, JSON, exit codes, and a benchmark that is killed at any moment."""

from __future__ import annotations

import html
import json
import os
import random
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mipfs
from mipfs.lab import baselines
from mipfs.lab.studies import reading
from mipfs.lab.studies.bench import bench_lead
from tests.cli.outcome import Cli
from tests.schemas import broken, schema

ROOT = Path(__file__).resolve().parents[2]
CREDIT = ROOT / "instances" / "credit.csv"
TIMES = ("seconds", "cpu_seconds", "choice_seconds", "memory_bytes")
ASKED = ("--methods", "rfe,uniform,cd-svm", "--M", "2,4", "--C", "0.1,1", "--folds", "3", "--scale", "standard")


def strict(text: str) -> Any:
    return json.loads(text, parse_constant=lambda name: pytest.fail(name))


def without_times(found: Any) -> Any:
    if isinstance(found, dict):
        return {name: without_times(one) for name, one in found.items() if name not in TIMES}
    return [without_times(one) for one in found] if isinstance(found, list) else found


@pytest.mark.slow
def test_the_page_draws_what_the_table_holds(cli: Cli, tmp_path: Path) -> None:
    target = tmp_path / "bench.html"
    outcome = cli("bench", CREDIT, *ASKED, "--report", target)
    assert (outcome.code, outcome.err) == (0, "")
    text = target.read_text(encoding="utf-8")
    assert "Test accuracy against the number of features" in text
    assert "Seconds of a fit" in text
    assert "rfe" in text
    assert f"written to {target}" in outcome.out
    refused = cli("bench", CREDIT, *ASKED, "--report", CREDIT)
    assert refused.code == 2


def test_the_command_that_makes_a_classifier_solves_what_was_compared(cli: Cli, tmp_path: Path) -> None:
    data, target = tmp_path / "loans.csv", tmp_path / "path.json"
    data.write_bytes(CREDIT.read_bytes())
    given = ("--label", "repaid", "--scale", "unit", "--class-weight", "yes:1.5,no:2", "--no-bias", "--seed", "3")
    asked = ("--methods", "uniform", "--M", "2", "--C", "0.123456789", "--folds", "3")
    out = cli("bench", data, *asked, *given, "-o", tmp_path / "bench.json").out
    line = next(line for line in out.splitlines() if line.startswith("to use one: mipfs "))
    command = shlex.split(line.removeprefix("to use one: mipfs "))
    command = [{"DATA": str(data), "path.json": str(target)}.get(word, word) for word in command]
    assert cli(*command, "--label", "repaid").code == 0
    found = mipfs.SolutionPath.load(target)
    point = found.points[0].result
    assert (point.scaling["kind"], point.params["C"], point.params["bias"]) == ("unit", 0.123456789, False)
    assert point.params["class_weight"] == {"yes": 1.5, "no": 2.0}
    assert (found.folds, found.seed) == (3, 3)


@pytest.mark.slow
def test_the_table_shows_what_the_json_holds(cli: Cli, tmp_path: Path) -> None:
    target = tmp_path / "bench.json"
    outcome = cli("bench", CREDIT, *ASKED, "-o", target, "--seed", "4")
    assert (outcome.code, outcome.err) == (0, "")
    document = strict(target.read_text())
    assert document["complete"]
    assert not broken(document, schema("bench"))
    assert document["params"]["seed"] == 4
    page = tmp_path / "page.html"
    assert cli("report", target, "-o", page).code == 0  # the page of --report, later
    assert bench_lead(reading.load(target)) in html.unescape(page.read_text(encoding="utf-8"))
    assert "is a benchmark, which has no classifier" in cli("report", target, "--data", CREDIT, "-o", page).err
    assert [(row["method"], row["M"]) for row in document["rows"]] == [
        ("rfe", 2), ("rfe", 4), ("uniform", 2), ("uniform", 4), ("cd-svm", None),
    ]  # fmt: skip
    lines = [line.split() for line in outcome.out.splitlines()]
    for row in document["rows"]:
        size = "all" if row["M"] is None else str(row["M"])
        line = next(line for line in lines if line[:2] == [row["method"], size])
        assert line[2:4] == [f"{row['value']:.4f}", f"{row['standard_error']:.4f}"]
        assert row["value"] == pytest.approx(np.mean(row["values"]))
        assert row["stability"] is None or f"{row['stability']['index']:.3f}" in line
    data = mipfs.read(CREDIT, scale="standard")
    asked = {"C": [0.1, 1.0], "folds": 3, "seed": 4}
    found = mipfs.bench(data, ["rfe", "uniform", "cd-svm"], [2, 4], **asked)
    assert without_times(strict(found.to_json())["rows"]) == without_times(document["rows"])
    alone = cli("bench", CREDIT, *ASKED, "--seed", "4", "--json", "-")
    assert without_times(strict(alone.out)["records"]) == without_times(document["records"])
    assert cli("bench", CREDIT, *ASKED, "--quiet").out == ""


@pytest.mark.slow
def test_going_on_with_a_file(cli: Cli, tmp_path: Path) -> None:
    target = tmp_path / "bench.json"
    cli("bench", CREDIT, *ASKED, "-o", target, "--quiet")
    whole = strict(target.read_text())
    target.write_text(json.dumps({**whole, "complete": False, "records": whole["records"][:7]}))
    refused = cli("bench", CREDIT, *ASKED, "-o", target)
    assert refused.code == 2
    assert "holds an unfinished benchmark of 7 fits; go on with --resume" in refused.err
    # What is not said again is as the file has it.
    assert cli("bench", CREDIT, "--scale", "standard", "--resume", "-o", target, "--quiet").code == 0
    assert without_times(strict(target.read_text())) == without_times(whole)
    fewer = cli("bench", CREDIT, "--scale", "standard", "--methods", "rfe", "--resume", "-o", target)
    assert (fewer.code, without_times(strict(target.read_text()))) == (0, without_times(whole))  # none is taken out
    other = cli("bench", CREDIT, "--scale", "unit", "--resume", "-o", target)
    assert other.code == 2
    assert "was made with scaling = standard, and unit is asked for" in other.err
    before = target.read_bytes()
    again = cli("bench", CREDIT, *ASKED, "-o", target, "--quiet")  # nor is a finished one lost
    assert (again.code, target.read_bytes()) == (2, before)
    assert "holds a finished benchmark of" in again.err


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((), "--methods is not given; name some of fgm"),
        (("--methods", "rfe"), "--M is not given"),
        (("--methods", "rfee", "--M", "2"), "method 'rfee' is not known; did you mean 'rfe'"),
        (("--methods", "rfe", "--M", "2", "--resume"), "--resume goes on with a file; name it with -o FILE"),
        (("--methods", "rfe", "--M", "2", "--plot", "x.jpg"), "a plot is one of .png"),
        (("--methods", "rfe", "--M", "2", "--C", "a"), "write numbers separated by commas"),
        (("--methods", "rfe", "--M", "99"), "M = 99 must be an integer from 1 to 12"),
        (("--methods", "rfe", "--M", "2", "--jobs", "0"), "jobs = 0 must be a whole number >= 1"),
        (("--methods", "rfe", "--M", "2", "-o", CREDIT), "is read here, and would be overwritten"),
    ],
)
def test_bad_usage_is_one_line(cli: Cli, args: tuple[object, ...], message: str) -> None:
    outcome = cli("bench", CREDIT, *args)
    assert (outcome.code, outcome.out) == (2, "")
    assert message in outcome.err
    assert outcome.err.count("\n") == 1


def test_where_every_method_is_refused(cli: Cli, tmp_path: Path) -> None:
    data, target = tmp_path / "thin.svm", tmp_path / "bench.json"
    r = np.random.default_rng(0)
    lines = (f"{label} " + " ".join(f"{j + 1}:{r.random():.3f}" for j in range(20) if r.random() < 0.15)
             for label in np.resize(["+1", "-1"], 40))  # fmt: skip
    data.write_text("\n".join(lines) + "\n")
    asked = ("--scale", "standard", "--M", "3", "--C", "1", "--folds", "2")
    outcome = cli("bench", data, "--methods", "rfe,cd-svm", *asked, "-o", target)
    assert outcome.code == 2
    assert "no method left a classifier; the first, rfe: SVM-RFE cannot centre sparse columns" in outcome.err
    assert "refused: SVM-RFE cannot centre" in outcome.out
    assert strict(target.read_text())["rows"][0]["notes"] == {
        "refused: SVM-RFE cannot centre sparse columns; use scale 'unit' or 'none', or dense data": 2
    }
    mixed = cli("bench", data, "--methods", "rfe,uniform", *asked)
    assert (mixed.code, mixed.err) == (0, "")


def killed(args: list[str], target: Path, seconds: float, number: int) -> int:
    """Run until a signal after so many seconds; the records that the file then holds, -1 when it was done before."""
    process = subprocess.Popen([*args, "--resume"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        process.wait(seconds)
        assert process.returncode == 0
        return -1
    except subprocess.TimeoutExpired:
        process.send_signal(number)
        process.wait(60)
        return len(strict(target.read_text())["records"]) if target.exists() else 0


@pytest.mark.every
@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="POSIX signals")
@pytest.mark.parametrize("seed", range(1))
def test_killed_at_random_moments_and_resumed_it_is_the_same(seed: int, tmp_path: Path) -> None:
    draw, whole, target = random.Random(seed), tmp_path / "whole.json", tmp_path / "killed.json"
    args = [
        sys.executable,
        "-m",
        "mipfs",
        "bench",
        str(CREDIT),
        "--quiet",
        *ASKED,
        "--methods",
        "fgm,rfe,uniform,cd-svm",
    ]
    began = time.monotonic()
    subprocess.run([*args, "-o", str(whole)], check=True)
    took, counts = time.monotonic() - began, [0]
    for number in (signal.SIGKILL, signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        found = killed([*args, "-o", str(target)], target, draw.uniform(0.4, 0.95) * took, number)
        if found < 0:
            break
        counts.append(found)
    subprocess.run([*args, "-o", str(target), "--resume"], check=True)
    assert counts == sorted(counts)
    assert without_times(strict(target.read_text())) == without_times(strict(whole.read_text()))


@pytest.mark.slow  # a process that imports everything anew
@pytest.mark.skipif(os.name != "posix", reason="POSIX signals")
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_an_interrupt_says_how_to_go_on(jobs: str, tmp_path: Path) -> None:
    target = tmp_path / "my bench.json"
    args = [
        sys.executable,
        "-m",
        "mipfs",
        "bench",
        str(CREDIT),
        *ASKED,
        "--folds",
        "20",
        "--jobs",
        jobs,
        "-o",
        str(target),
    ]
    process = subprocess.Popen(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 120
    while not target.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert "of 100" in out
    assert f"--scale standard --resume -o '{target}'" in err
    assert not strict(target.read_text())["complete"]


def test_the_table_of_baselines(cli: Cli, tmp_path: Path) -> None:
    outcome = cli("baselines")
    assert (outcome.code, outcome.err) == (0, "")
    document = strict(cli("baselines", "--json", "-").out)
    names = [line["name"] for line in document["baselines"]]
    assert names == [*baselines.available(), *baselines.references()]
    for line in document["baselines"]:
        assert line["features"] == ("all" if line["name"] in baselines.references() else "at most M")
        assert all(isinstance(value, str) and value for value in line.values())
        assert line["what"] in outcome.out
    assert cli("baselines", "--quiet").out == ""
