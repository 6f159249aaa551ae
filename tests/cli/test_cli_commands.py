"""``mipfs demo``, ``mipfs models`` and ``mipfs generate``."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path

import pytest

import mipfs
from mipfs.cli import demo
from mipfs.drivers import DRIVERS
from mipfs.formulation import table
from tests.cli.outcome import Cli


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The demo leaves its page in the current folder."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.slow
def test_the_demo_proves_its_answer_and_shows_how(cli: Cli) -> None:
    outcome = cli("demo")
    assert (outcome.code, outcome.err) == (0, "")
    for words in (
        "OPTIMAL (the gap is closed)",
        "How the gap closed",
        "100% |",
        "classify",
        "The ladder",
        "convex-hull",
        "Next:",
    ):
        assert words in outcome.out
    # The best three features by enumeration of all 4,060 supports with libsvm: 53.607623.
    assert "53.6076" in outcome.out
    assert outcome.out.endswith("All of it on a page to look at: mipfs-demo.html\n")
    text = Path("mipfs-demo.html").read_text(encoding="utf-8")
    assert "53.6076" in text
    assert "worst perimeter" in text
    assert "The ladder of relaxations" in text
    assert "On the data it was trained on" in text


def test_the_json_of_the_demo_is_a_result(cli: Cli) -> None:
    result = mipfs.Result.from_json(cli("demo", "--json", "-").out)
    assert result.status is mipfs.Status.OPTIMAL
    assert result.params["M"] == demo.PARAMS["M"] == len(result.selected)


def test_the_shipped_instance_is_found_in_a_wheel_and_in_a_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert demo.shipped_path(demo.INSTANCE).is_file()
    monkeypatch.setattr(demo, "__file__", str(tmp_path / "mipfs" / "cli" / "demo.py"))
    inside = tmp_path / "mipfs" / "instances" / "d.svm"
    beside = tmp_path / "instances" / "d.svm"
    assert demo.shipped_path("d.svm") == beside
    inside.parent.mkdir(parents=True)
    inside.touch()
    assert demo.shipped_path("d.svm") == inside


def test_models_lists_every_formulation_and_driver(cli: Cli) -> None:
    document = json.loads(cli("models", "--json", "-").out)
    assert [line["name"] for line in document["formulations"]] == [entry.name for entry in table()]
    for line in document["formulations"]:
        assert (Path(demo.__file__).parents[2] / line["file"]).is_file()
    assert [line["driver"] for line in document["drivers"]] == list(DRIVERS)
    text = cli("models").out
    for line in (*document["formulations"], *document["drivers"]):
        assert all(cell in text for cell in line.values())


def test_generate_writes_an_instance_that_solve_reads(cli: Cli, tmp_path: Path) -> None:
    args = ("generate", "aytug-one", "--n-samples", "40", "--n-features", "6", "--M", "2", "--seed", "1")
    outcome = cli(*args, "--out", tmp_path)
    assert outcome.code == 0
    path = Path(outcome.out.strip())
    data = mipfs.read(path)
    assert (data.n_samples, data.n_features, data.select.M) == (40, 6, 2)
    assert path.parent == tmp_path
    first = path.read_bytes()
    assert json.loads(cli(*args, "--out", tmp_path, "--json", "-").out)["data"] == str(path)
    assert path.read_bytes() == first, "the same seed gives the same bytes"
    solved = cli("solve", "fsp-m", path, "--json", "-")
    assert json.loads(solved.out)["status"] == "OPTIMAL"
    assert math.isfinite(json.loads(solved.out)["objective"])


def test_a_stability_without_draws_says_what_was_not_reached(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """The classifier of the whole data was found."""
    data = Path(__file__).parents[2] / "instances" / "credit.csv"
    found = mipfs.stability(mipfs.Problem(mipfs.read(data), M=2), draws=2)
    monkeypatch.setattr(mipfs, "stability", lambda *_, **__: dataclasses.replace(found, sets=()), raising=False)
    outcome = cli("stability", data, "--M", "2", "--draws", "2")
    assert outcome.code == 4
    assert "stopped before any draw of the samples was solved" in outcome.err
