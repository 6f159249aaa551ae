"""``mipfs report``, and ``--report`` of the other commands."""

from __future__ import annotations

import json
import os
import shutil
import webbrowser
from pathlib import Path

import numpy as np
import pytest

import mipfs
from mipfs.cli import demo
from mipfs.lab import page
from mipfs.lab.studies import reading
from mipfs.lab.studies.ladder import Comparison
from mipfs.lab.studies.solution_path import SolutionPath
from mipfs.plumbing import output_file
from mipfs.result.result import Result
from tests.cli.outcome import Cli
from tests.html_tree import Tree
from tests.lab.page import page_cases

CREDIT = Path(__file__).resolve().parents[2] / "instances" / "credit.csv"


@pytest.fixture
def credit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the data in an empty folder, which is the current one."""
    for name in ("credit.csv", "credit.toml"):
        shutil.copy(CREDIT.with_name(name), tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def shown(path: Path) -> str:
    tree = Tree(path.read_text(encoding="utf-8"))
    assert not tree.wrong
    return " ".join(tree.texts)


def test_every_command_writes_its_page(cli: Cli, credit: Path) -> None:
    outcome = cli("solve", "fsp-m", "credit.csv", "-p", "C=0.5", "--json", "r.json", "--report", "r.html")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.endswith("page written to r.html\n")
    assert "fsp-m on credit.csv" in shown(credit / "r.html")
    command = "mipfs solve fsp-m credit.csv -p C=0.5"
    assert command in shown(credit / "r.html")
    assert Result.load("r.json").command == command
    assert "r.cert.npz" in shown(credit / "r.html")
    outcome = cli("compare", "credit.csv", "--rungs", "plain,exact", "--json=k.json", "--report=k.html", "-q")
    assert (outcome.code, outcome.out, outcome.err) == (0, "", "")
    assert "mipfs compare credit.csv --rungs plain,exact" in shown(credit / "k.html")
    assert Comparison.load("k.json").command == "mipfs compare credit.csv --rungs plain,exact"
    outcome = cli("path", "credit.csv", "--M", "2:3", "--report", "p.html", "--json", "p.json")
    assert outcome.code == 0
    assert "2 of 2 points are proven optimal" in shown(credit / "p.html")
    assert SolutionPath.load("p.json").command == "mipfs path credit.csv --M 2:3"
    outcome = cli("report", "r.json", "k.json", "p.json", "-o", "all.html", "--json", "-")
    document = json.loads(outcome.out)
    assert (outcome.code, outcome.err) == (0, "")
    assert [one["kind"] for one in document["items"]] == ["Result", "Comparison", "SolutionPath"]
    assert document["bytes"] == (credit / "all.html").stat().st_size < page.document.MOST_BYTES
    assert cli("verify", "r.json", "credit.csv").code == 0, "the command in the JSON is no part of the proof"


def test_a_run_without_a_result_has_a_page_too(cli: Cli, credit: Path) -> None:
    (credit / "rows.lp").write_text("Subject To\n few: income + loan <= 1\n many: income + loan >= 2\nEnd\n")
    outcome = cli("solve", "fsp-m", "credit.csv", "--subject-to", "rows.lp", "--report", "i.html", "--json", "i.json")
    assert outcome.code == 3
    assert "These contradict each other:" in shown(credit / "i.html")
    assert cli("report", "i.json").code == 0
    assert "contradicts the others" in shown(credit / "i.html")
    assert cli("compare", "credit.csv", "--subject-to", "rows.lp", "--report", "c.html", "--json", "c.json").code == 3
    assert cli("report", "c.json", "-o", "d.html").code == 0
    for name in ("c.html", "d.html"):
        assert "These contradict each other: few , many" in shown(credit / name)
    stopped = cli("solve", "fsp-m", "credit.csv", "--time-limit", "0", "--report", "n.html")
    assert (stopped.code == 4) == ("before any classifier was found" in shown(credit / "n.html"))


def test_classifiers_are_judged_on_data(cli: Cli, credit: Path) -> None:
    lines = (credit / "credit.csv").read_text().splitlines()
    (credit / "test.csv").write_text("\n".join([lines[0], *lines[1::3]]) + "\n")
    assert cli("solve", "fsp-m", "credit.csv", "--json", "r.json", "-q").code == 0
    assert cli("path", "credit.csv", "--M", "1:3", "--json", "p.json", "-q").code in (0, 3)
    measured = json.loads(cli("evaluate", "r.json", "test.csv", "--json", "-").out)
    outcome = cli("report", "r.json", "p.json", "--data", "test.csv", "-o", "t.html", "--json", "t.json")
    assert (outcome.code, outcome.err) == (0, "")
    said = shown(credit / "t.html")
    assert "On held-out data" in said
    assert "Along the path, on held-out data" in said
    assert f"{measured['accuracy']:.4f}" in said
    (first, second) = json.loads((credit / "t.json").read_text())["items"]
    assert {name: first["score"][name] for name in measured} == measured
    assert len(second["score"]) == 3
    assert cli("report", "r.json", "--data", "credit.csv").code == 0
    assert "On the data it was trained on" in shown(credit / "r.html")


def test_refusals_are_one_line(cli: Cli, credit: Path) -> None:
    assert cli("solve", "fsp-m", "credit.csv", "--json", "r.json", "-q").code == 0
    (credit / "k.json").write_text('{"schema": 1, "params": {}, "incumbent": 1, "ladder": []}')
    before = {path.name: path.read_bytes() for path in credit.iterdir()}
    for args, said in (
        (("report",), "Missing argument"),
        (("report", "none.json"), "no such file"),
        (("report", "credit.csv"), "not a JSON document"),
        (("report", "r.json", "-o", "r.json"), "is read here, and would be overwritten"),
        (("report", "r.json", "-o", "r.cert.npz"), "is read here, and would be overwritten"),
        (("report", "r.json", "-o", "-"), "give a file, such as page.html"),
        (("report", "r.json", "-o", "no/page.html"), "no such folder"),
        (("report", "r.json", "-o", "x.html", "--json", "x.html"), "another output of this command goes there"),
        (("report", "r.json", "--label", "repaid"), "--data TEST, which is not given"),
        (("report", "k.json", "--data", "credit.csv"), "is a ladder"),
        (("solve", "fsp-m", "credit.csv", "--report", "credit.csv"), "--report credit.csv is read here"),
        (("solve", "fsp-m", "credit.csv", "--report", "credit.toml"), "--report credit.toml is read here"),
        (("solve", "fsp-m", "credit.csv", "--json", "a", "--report", "./a"), "another output"),
        (("solve", "fsp-m", "credit.csv", "--json", "a.json", "--report", "a.cert.npz"), "another output"),
        (("solve", "fsp-m", "credit.csv", "--json", "a", "--checkpoint", "a"), "--checkpoint a: another output"),
        (("solve", "fsp-m", "credit.csv", "--json", "a.json", "--checkpoint", "a.cert.npz"), "another output"),
        (("solve", "fsp-m", "credit.csv", "--json", "a.nl", "--write", "a.nl"), "--write a.nl: another output"),
        (("path", "credit.csv", "--M", "1:2", "--json", "a", "--checkpoint", "a"), "--checkpoint a: another output"),
        (("frontier", "credit.csv", "--row", "b", "--values", "6:8", "--json", "a", "--csv", "a"), "--csv a: another"),
        (("sketch", "credit.csv", "--r", "5", "--json", "a.npz", "-o", "a.npz"), "-o a.npz: another output"),
        (("path", "credit.csv", "--M", "1:2", "--report", "."), "this is no file name"),
        (("compare", "credit.csv", "--report", "-"), "a page is read by a browser"),
    ):
        outcome = cli(*args)
        assert (outcome.code, outcome.out, outcome.err.count("\n")) == (2, "", 1), (args, outcome)
        assert said in outcome.err, args
    assert {path.name: path.read_bytes() for path in credit.iterdir()} == before


@pytest.mark.slow
def test_the_demo_leaves_a_page_and_opens_it(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", lambda url: not opened.append(url))
    monkeypatch.setattr(demo, "_climb_ladder", lambda *_: page_cases.ladder())  # test_cli_commands has the true one
    assert cli("demo", "--quiet").code == 0
    assert list(tmp_path.iterdir()) == [], "where nothing is said nothing is left"
    assert cli("demo", "--open").code == 0
    assert opened == [(tmp_path / "mipfs-demo.html").as_uri()]
    assert "OPTIMAL" in shown(tmp_path / "mipfs-demo.html")
    monkeypatch.setattr(webbrowser, "open", lambda _url: False)
    outcome = cli("demo", "--open", "--quiet", "--report", "mine.html")
    assert (outcome.code, outcome.out) == (0, "")
    assert "no browser was found to open mine.html; open it in one yourself" in outcome.err
    assert (tmp_path / "mine.html").is_file()


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.chmod(0o500)
    monkeypatch.chdir(tmp_path)
    assert Path(demo._page_folder()).parent != Path()


def test_where_the_page_goes_that_nobody_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert demo._page_folder() == demo.PAGE
    (tmp_path / demo.PAGE).mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "other"))
    (tmp_path / "other").mkdir()
    assert demo._page_folder() == str(tmp_path / "other" / demo.PAGE)
    output_file.check(Path(demo._page_folder()))


def test_a_stability_report_is_read_again(cli: Cli, credit: Path) -> None:
    command = ["stability", "credit.csv", "--M", "4", "-p", "C=0.1", "--scale", "standard", "--draws", "2", "--quiet"]
    assert cli(*command, "--json", "s.json").code == 0
    assert cli("report", "s.json").code == 0
    first = json.loads(Path("s.json").read_text())
    assert reading.load("s.json").document() == first
    page = Path("s.html").read_text()
    assert all(one["name"] in page for one in first["features"])
    assert "has no classifier to judge" in cli("report", "s.json", "--data", "credit.csv").err


def test_the_page_of_a_card_judges_it_on_other_data(cli: Cli, credit: Path) -> None:
    assert cli("solve", "fsp-m", "credit.csv", "--M", "3", "-p", "loss=logistic", "--json", "r.json", "-q").code == 0
    assert cli("scorecard", "r.json", "credit.csv", "--bins", "3", "--json", "c.json", "-q").code == 0
    rows = Path("credit.csv").read_text().splitlines()
    Path("held.csv").write_text("\n".join(rows[:60]) + "\n")
    assert cli("report", "c.json", "--data", "held.csv", "--json", "p.json").code == 0
    score = json.loads(Path("p.json").read_text())["items"][0]["score"]
    card = reading.load("c.json")
    data = mipfs.read("held.csv", label="repaid")
    assert score["accuracy"] == pytest.approx(np.mean(card.predict(data) == data.labels.of(data.y)))
    page = Path("c.html").read_text()
    assert "On held-out data" in page
    assert f"of {score['n_samples']} samples of held.csv" in page
    assert "every line that holds counts" in page
