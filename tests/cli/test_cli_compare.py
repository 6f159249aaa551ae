"""``mipfs compare``: the table, the JSON, the exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import mipfs
from mipfs.lab.studies.ladder import RUNGS
from tests.cli.outcome import Cli

CREDIT = Path(__file__).resolve().parents[2] / "instances" / "credit.csv"


def strict(text: str) -> Any:
    return json.loads(text, parse_constant=lambda name: pytest.fail(name))


@pytest.mark.slow
def test_the_table_shows_what_the_json_holds(cli: Cli, tmp_path: Path) -> None:
    target = tmp_path / "ladder.json"
    outcome = cli("compare", CREDIT, "-p", "C=0.5", "--json", target)
    assert (outcome.code, outcome.err) == (0, "")
    document = strict(target.read_text())
    assert [line["name"] for line in document["ladder"]] == list(RUNGS)
    lines = {line.split()[0]: line for line in outcome.out.splitlines() if line.startswith("  ")}
    for line in document["ladder"]:
        assert f"{line['value']:.8g}" in lines[line["name"]]
        assert line["status"] in lines[line["name"]]
    assert f"{document['incumbent']:.8g}" in outcome.out
    assert f"written to {target}" in outcome.out


def test_the_json_on_standard_output_is_alone(cli: Cli, small: Path) -> None:
    outcome = cli("compare", small, "-p", "M=1", "-p", "loss=squared-hinge", "--json", "-", "--rungs", "plain, exact")
    document = strict(outcome.out)
    assert [line["name"] for line in document["ladder"]] == ["plain", "exact"]
    assert document["params"]["loss"] == "squared-hinge"
    assert cli("compare", small, "-p", "M=1", "--rungs", "plain", "--quiet").out == ""


@pytest.mark.slow
def test_parameters_and_rows_reach_the_problem(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "rows.lp").write_text("Subject To\n one: late_payments + age <= 1\nEnd\n")
    args = ("compare", CREDIT, "-p", "C=0.5", "--rungs", "nmmkl,exact", "--json", "-")
    with_rows = strict(cli(*args, "--subject-to", tmp_path / "rows.lp").out)
    without = strict(cli(*args).out)
    assert with_rows["ladder"][1]["value"] > without["ladder"][1]["value"] * (1 + 1e-3)
    data = mipfs.read(CREDIT)
    assert without["incumbent"] == pytest.approx(mipfs.solve(mipfs.Problem(data, C=0.5)).objective, rel=2e-4)
    by_lambda = cli("compare", CREDIT, "-p", "lambda=1", "-p", "bias=false", "--rungs", "plain", "--json", "-")
    params = strict(by_lambda.out)["params"]
    assert (params["lambda"], params["bias"]) == (1, False)
    assert strict(cli("compare", CREDIT, "-p", "B=2", "--rungs", "plain", "--json", "-").out)["params"]["M"] == 2


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("-p", "T=3"), "compare has no parameter 'T'"),
        (("-p", "M=1", "-p", "B=2"), "another name"),
        (("--rungs", "lp"), "rung 'lp' is not known"),
        (("--time-limit", "-1"), "time_limit = -1.0 must be"),
        (("-p", "M=99"), "M = 99"),
    ],
)
def test_bad_usage_is_one_line(cli: Cli, small: Path, args: tuple[str, ...], said: str) -> None:
    outcome = cli("compare", small, *args)
    assert outcome.code == 2
    assert said in outcome.err
    assert outcome.err.count("\n") == 1


def test_contradicting_rows_are_exit_code_3(cli: Cli, small: Path, tmp_path: Path) -> None:
    (tmp_path / "rows.lp").write_text("Subject To\n never: x1 + x2 >= 3\nEnd\n")
    outcome = cli("compare", small, "-p", "M=1", "--subject-to", tmp_path / "rows.lp")
    assert outcome.code == 3
    assert "'never'" in outcome.err


def test_a_measure_brings_its_loss_along(cli: Cli, small: Path) -> None:
    outcome = cli("compare", small, "-p", "M=1", "-p", "measure=fbeta", "-p", "beta=2", "-p", "C=20", "--json", "-")
    document = strict(outcome.out)
    params = document["params"]
    assert (params["loss"], params["bias"], params["measure"], params["beta"]) == ("structural", True, "fbeta", 2)
    values = {line["name"]: line["value"] for line in document["ladder"]}
    assert values["plain"] <= values["convex-hull"] * (1 + 1e-6) <= values["exact"] * (1 + 2e-6)
    shown = cli("compare", small, "-p", "M=1", "-p", "measure=f1", "--rungs", "plain")
    assert "measure = f1" in shown.out
