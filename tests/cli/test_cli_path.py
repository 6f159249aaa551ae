"""``mipfs path``: the tables, the JSON, the exit codes, Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import mipfs
from mipfs.cli.live_path import View
from mipfs.cli.output import OutputTargets
from mipfs.cli.path import _split_axes, finish_path
from mipfs.lab.studies.solution_path import SolutionPath
from mipfs.report.numbers import percent
from tests.cli.outcome import Cli

ROOT = Path(__file__).resolve().parents[2]
CREDIT, WDBC = ROOT / "instances" / "credit.csv", ROOT / "instances" / "wdbc.svm"


def strict(text: str) -> Any:
    return json.loads(text, parse_constant=lambda name: pytest.fail(name))


@pytest.mark.slow
def test_the_tables_show_what_the_json_holds(cli: Cli, tmp_path: Path) -> None:
    target = tmp_path / "path.json"
    outcome = cli(
        "path", CREDIT, "-p", "C=0.5", "--M", "2:5", "--folds", "3", "--cold", "--seed", "1", "--json", target
    )
    assert (outcome.code, outcome.err) == (0, "")
    document = strict(target.read_text())
    assert [line["M"] for line in document["points"]] == [2, 3, 4, 5]
    lines = [line.split() for line in outcome.out.splitlines() if line.startswith("  ")]
    for point in document["points"]:
        numbers, support = (line for line in lines if line[0] == str(point["M"]))
        assert numbers[1] == point["status"].lower()
        assert f"{point['objective']:.8g}" in numbers
        assert f"{point['error']:.4f}" in numbers
        assert " ".join(support[1:]) == ", ".join(point["selected"])
        result = mipfs.Result.from_json(json.dumps(point["result"]))
        assert len(result.predict(mipfs.read(CREDIT))) == 200
    assert f"chosen by 3 folds: M = {document['chosen']}, error" in outcome.out
    assert "so the path saved" in outcome.out
    assert f"written to {target}" in outcome.out
    single = mipfs.solve(mipfs.Problem(mipfs.read(CREDIT), M=3, C=0.5), gap=1e-7)
    assert document["points"][1]["objective"] == pytest.approx(single.objective, rel=1e-4)


def test_the_json_on_standard_output_is_alone(cli: Cli, small: Path) -> None:
    outcome = cli("path", small, "--C", "1,0.1", "-p", "M=1", "--json", "-")
    document = strict(outcome.out)
    assert (document["axis"], document["params"]["C"], document["params"]["M"]) == ("C", [1.0, 0.1], 1)
    assert document["points"][0]["seconds_saved"] is None
    assert cli("path", small, "--M", "1,2", "--quiet").out == ""
    by_lambda = strict(cli("path", small, "--lambda", "0.5,0", "-p", "loss=squared-hinge", "--json", "-").out)
    assert [line["lambda"] for line in by_lambda["points"]] == [0.5, 0.0]
    assert by_lambda["params"]["loss"] == "squared-hinge"


def test_a_single_value_beside_an_axis_is_a_parameter() -> None:
    auto = ({"lam": "auto:6"}, {"C": 0.1, "M": 5})
    assert _split_axes("5", "0.1", "auto:6", None) == auto
    assert _split_axes("1:2", None, "0.5", None) == ({"M": range(1, 3)}, {"lam": 0.5})
    assert _split_axes("1:2", "1", "0.5", None) == ({"M": range(1, 3)}, {"C": 1.0, "lam": 0.5})
    assert _split_axes("1:2", "0.1,1", "0.5", None) == ({"M": range(1, 3), "C": [0.1, 1.0]}, {"lam": 0.5})
    assert _split_axes("3", "1", None, "rows.lp") == ({}, {"C": 1.0, "M": 3})


@pytest.mark.slow
def test_the_one_standard_error_rule_shows_both_points(cli: Cli, tmp_path: Path) -> None:
    target = tmp_path / "path.json"
    args = ("--scale", "standard", "--C", "1,0.01", "--M", "2:4", "--folds", "4", "--seed", "2")
    outcome = cli("path", CREDIT, *args, "--one-se", "--json", target)
    assert (outcome.code, outcome.err) == (0, "")
    document = strict(target.read_text())
    assert (document["axis"], document["rule"]) == ("C,M", "one-se")
    points = document["points"]
    assert [(point["C"], point["M"]) for point in points] == [(C, M) for C in (1.0, 0.01) for M in (2, 3, 4)]
    simplest_first = sorted(points, key=lambda point: (point["C"], point["M"]))
    least = min(simplest_first, key=lambda point: round(point["error"], 10))
    most = least["error"] + least["deviation"] / 2
    chosen = next(point for point in simplest_first if point["error"] <= most + 1e-10)
    for name, point in (("least_error", least), ("one_se", chosen), ("chosen", chosen)):
        assert document[name] == {"C": point["C"], "M": point["M"]}
    assert f"the simplest whose error is at most {most:.4f}" in outcome.out
    closing = {line.split("  ")[0]: line for line in outcome.out.splitlines()}
    for name, point in (("least error", least), ("one-se, chosen", chosen)):
        shown = f"C = {point['C']:g}, M = {point['M']}, error {point['error']:.4f} ± {point['deviation'] / 2:.4f}"
        assert f"{shown}, {point['status'].lower()}, gap {percent(point['gap'])}" in closing[name]
    lines = [line.split() for line in outcome.out.splitlines() if line.startswith("  ")]
    marked = {(float(line[0]), int(line[1])): " ".join(line[13:]) for line in lines if "optimal" in line}
    expected = {(point["C"], point["M"]): [] for point in points}
    expected[least["C"], least["M"]].append("least error")
    expected[chosen["C"], chosen["M"]].append("one-se")
    assert marked == {value: ", ".join(names) for value, names in expected.items()}
    supports = [line for line in lines if "optimal" not in line and line[1].isdigit()]
    assert [" ".join(line[2:]) for line in supports] == [", ".join(point["selected"]) for point in points]
    single = cli("path", CREDIT, *args)
    assert "choice" not in single.out
    assert f"chosen by 4 folds: C = {least['C']:g}, M = {least['M']}, error" in single.out


def test_rows_one_after_the_other_and_rows_at_every_point(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "rows.lp").write_text("Subject To\n one: late_payments + age <= 1\n two: loan + age >= 1\nEnd\n")
    args = ("-p", "C=0.5", "--json", "-")
    walked = strict(cli("path", CREDIT, "--rows", tmp_path / "rows.lp", *args).out)
    assert [line["added"] for line in walked["points"]] == ["", "one", "two"]
    everywhere = strict(cli("path", CREDIT, "--M", "5", "--subject-to", tmp_path / "rows.lp", *args).out)
    assert everywhere["points"][0]["objective"] == pytest.approx(walked["points"][2]["objective"], rel=2e-4)
    assert walked["points"][1]["objective"] > walked["points"][0]["objective"] * (1 + 1e-3)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("args", "said"),
    [
        ((), "one of --M, --C, --lambda and --rows"),
        (("--M", "1:2", "--lambda", "1,2"), "or over --M and --C together"),
        (("--M", "1:2", "--C", "1,2", "--lambda", "1,2"), "or over --M and --C together"),
        (("--M", "1:2", "--C", "1", "--rows", "rows.lp"), "or over --M and --C together"),
        (("--lambda", "1,2", "--C", "1", "-p", "C=1"), "-p C and --C are both given"),
        (("--M", "1:2", "--C", "1", "-p", "C=1"), "-p C and --C are both given"),
        (("--M", "1:2", "--C", "1", "--one-se"), "give folds too"),
        (("--M", "2:1"), "write FIRST:LAST"),
        (("--M", "1-2"), "write FIRST:LAST"),
        (("--M", "1:9"), "M = 3 must lie between 0 and 2"),
        (("--M", "1,1"), "given twice"),
        (("--M", "1:2", "-p", "M=1"), "-p M and --M are both given"),
        (("--lambda", "1", "-p", "lambda=1"), "-p lambda and --lambda are both given"),
        (("--M", "1:2", "-p", "T=3"), "path has no parameter 'T'"),
        (("--C", "1,x"), "write numbers separated by commas"),
        (("--C", "nan"), "must be a positive number"),
        (("--C", "0"), "must be a positive number"),
        (("--lambda=-1",), "penalties must be finite"),
        (("--M", "1", "--folds", "1"), "folds = 1"),
        (("--M", "1", "--gap", "2"), "gap = 2.0"),
        (("--M", "1", "--driver", "gdb"), "did you mean 'gbd'"),
        (("--M", "1", "--json", "/nowhere/at/all.json"), "no such folder"),
    ],
)
def test_bad_usage_is_one_line(cli: Cli, small: Path, args: tuple[str, ...], said: str) -> None:
    outcome = cli("path", small, *args)
    assert outcome.code == 2
    assert said in outcome.err
    assert outcome.err.count("\n") == 1


def test_contradicting_rows_are_exit_code_3(cli: Cli, small: Path, tmp_path: Path) -> None:
    (tmp_path / "rows.lp").write_text("Subject To\n never: x1 + x2 >= 3\nEnd\n")
    outcome = cli("path", small, "--M", "1:2", "--subject-to", tmp_path / "rows.lp")
    assert outcome.code == 3
    assert "'never'" in outcome.err
    (tmp_path / "both.lp").write_text("Subject To\n both: x1 + x2 >= 2\nEnd\n")
    some = cli("path", small, "--M", "1:2", "--subject-to", tmp_path / "both.lp")
    assert (some.code, some.err) == (0, "")
    assert "infeasible" in some.out


def test_a_path_that_reached_nothing_is_exit_code_4(capsys: pytest.CaptureFixture[str]) -> None:
    assert finish_path(SolutionPath("M", {"M": [1, 2]}, "gbd", (), interrupted=True), OutputTargets()) == 4
    assert "stopped before any classifier was found" in capsys.readouterr().err


@pytest.mark.every
@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
def test_ctrl_c_keeps_the_finished_points_and_writes_the_json(tmp_path: Path) -> None:
    target = tmp_path / "path.json"
    args = [sys.executable, "-m", "mipfs", "path", str(WDBC), "--scale", "standard", "-p", "C=32", "--gap", "1e-9"]
    begin = time.monotonic()
    subprocess.run([*args, "--M", "1"], check=True, capture_output=True)  # compiles the kernels where that is needed
    subprocess.run([*args, "--M", "1"], check=True, capture_output=True)
    with subprocess.Popen(
        [*args, "--M", "1:15", "--json", str(target)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        time.sleep(time.monotonic() - begin)  # long enough for the first point, whatever the machine
        process.send_signal(signal.SIGINT)
        asked = time.monotonic()
        out, err = process.communicate(timeout=30)
        waited = time.monotonic() - asked
    assert (process.returncode, err) == (0, "")
    assert "interrupted, or its total limit was up: these are the points that were reached" in out
    document = strict(target.read_text())
    assert document["interrupted"]
    assert 1 <= len(document["points"]) < 15
    assert document["points"][0]["status"] == "OPTIMAL"
    assert document["points"][-1]["stop_reason"] == "INTERRUPTED"
    assert waited < 3, "a second, and room for a busy machine"


def test_the_live_table_has_a_row_for_every_point() -> None:
    view = View()
    data = mipfs.read(CREDIT)
    found = mipfs.path(
        mipfs.Problem(data, C=0.1), M=[2, 3], on_begin=view.begin, on_point=view.add, observers=[view.see]
    )
    console = Console(width=200, record=True, file=open(os.devnull, "w"))  # noqa: SIM115
    console.print(view)
    shown = console.export_text()
    for point in found.points:
        assert ", ".join(point.selected) in shown
    assert "M = 3:" in shown
    mipfs.path(mipfs.Problem(data), C=[0.1], M=[1], on_begin=view.begin, on_point=view.add, observers=[view.see])
    console.print(view)
    assert "0.1, 1" in (shown := console.export_text())
    assert "C = 0.1, M = 1:" in shown
    assert "incumbent" in shown


def test_a_path_for_a_measure(cli: Cli, small: Path) -> None:
    outcome = cli("path", small, "-p", "measure=f1", "-p", "C=10", "--M", "1:2")
    assert (outcome.code, outcome.err) == (0, "")
    assert "measure = f1" in outcome.out
    assert outcome.out.count("optimal") == 2
