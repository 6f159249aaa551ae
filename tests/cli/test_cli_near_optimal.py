"""``mipfs solve --pool-gap --pool-size``: the tables, the JSON, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import mipfs
from mipfs.cli.output import show_blocks
from mipfs.result.near_report import MOST_LISTED, near_optimal_blocks
from tests.cli.outcome import Cli

INSTANCES = Path(__file__).resolve().parents[2] / "instances"
CREDIT = ("solve", "fsp-m", INSTANCES / "credit.csv", "-p", "C=1")


@pytest.mark.slow
def test_the_tables_say_what_the_python_result_says(cli: Cli, tmp_path: Path) -> None:
    target = tmp_path / "r.json"
    outcome = cli(*CREDIT, "--pool-gap", "0.02", "--json", target)
    assert (outcome.code, outcome.err) == (0, "")
    found = json.loads(target.read_text(encoding="utf-8"))["near_optimal"]
    problem = mipfs.Problem(mipfs.read(INSTANCES / "credit.csv"), C=1.0)
    again = mipfs.solve(problem, "gbd", pool_gap=0.02).near_optimal
    assert again is not None
    assert [one["selected"] for one in found["supports"]] == [one["selected"] for one in again["supports"]]
    count = len(found["supports"])
    assert (found["complete"], found["gap"], found["size"]) == (True, 0.02, None)
    assert f"this set is one of {count} within 2% of the optimum" in outcome.out
    for one in found["supports"]:
        assert ", ".join(one["selected"]) in outcome.out
    share = sum("housing=own" in one["selected"] for one in found["supports"]) / count
    assert f"housing=own {100 * share:.3g}%" in " ".join(outcome.out.split())


@pytest.mark.slow
def test_the_sentences(cli: Cli) -> None:
    assert "this set is the only one within 0.001% of the optimum" in cli(*CREDIT, "--pool-gap", "1e-5").out
    assert "these are the best 3 supports;" in cli(*CREDIT, "--pool-size", "3").out
    assert (
        "this is the best support within 2% of the optimum;"
        in cli(*CREDIT, "--pool-gap", "0.02", "--pool-size", "1").out
    )
    assert "near" not in cli(*CREDIT).out.lower()
    every = cli("solve", "fsp-m", INSTANCES / "credit.csv", "-p", "C=1", "-p", "M=2", "--pool-size", "500").out
    assert "all that the rows allow" in every
    stopped = cli(*CREDIT, "--pool-size", "500", "--time-limit", "0")
    assert stopped.code in (0, 4)
    assert "before the run stopped; there may be others" in stopped.out or stopped.code == 4


def test_long_lists_are_cut_and_say_so(capsys: pytest.CaptureFixture[str]) -> None:
    supports = [{"objective": 1.0 + k, "gap": float(k), "selected": [f"x{k}"]} for k in range(MOST_LISTED + 7)]
    share = {f"x{k}": 1 / (MOST_LISTED + 7) for k in range(MOST_LISTED + 7)}
    show_blocks(near_optimal_blocks({"complete": False, "gap": None, "size": 99, "supports": supports, "share": share}))
    out = capsys.readouterr().out
    assert f"{MOST_LISTED + 7} supports were found before the run stopped" in out
    assert "and 7 supports more" in out
    assert "and 7 features more" in out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--pool-gap", "-1"], "pool_gap = -1.0 must be a number >= 0"),
        (["--pool-gap", "2"], "--pool-gap 2: it is a relative gap below 1, and 0.02 is 2%"),
        (["--pool-size", "0"], "pool_size = 0 must be a whole number >= 1"),
        (["--driver", "kelley", "--pool-gap", "0.1"], "--pool-gap: driver 'kelley' finds no near-optimal supports"),
        (
            ["--driver", "monolithic", "--pool-gap", "0.1", "--pool-size", "2"],
            "--pool-gap and --pool-size: driver 'monolithic' finds no near-optimal supports; give --driver branch",
        ),
    ],
)
def test_what_cannot_be_done_is_refused_in_one_line(cli: Cli, options: list[str], message: str) -> None:
    outcome = cli(*CREDIT, *options)
    assert outcome.code == 2
    assert message in outcome.err
    assert outcome.err.count("\n") == 1
