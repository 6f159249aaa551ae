"""Names and labels that a terminal, a browser, a spreadsheet or TeX would obey: whatever shows them writes them out."""

from __future__ import annotations

import csv
import io
import json
import random
import re
from pathlib import Path

import pytest

from mipfs.lab.experiments.run import as_csv
from mipfs.report.axes import plain_text
from mipfs.report.visible import in_cell
from tests.cli.outcome import Cli, Outcome

NAMES = (
    *("=cmd()", "\x1b[31mred", "<script>alert(1)</script>", "$x^2$ %_\\input{a}", "\u202ertl", "@a,b"),
    *('"q"', "+1", "sp ace;"),
)
POSITIVE, NEGATIVE = "=1+1", "\x1b]0;t\x07<b>"


@pytest.fixture
def nasty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two dozen samples under such names, in the folder of the test."""
    r = random.Random(1)
    stream = io.StringIO()
    write = csv.writer(stream, lineterminator="\n")
    write.writerow([*NAMES, "label"])
    for i in range(24):
        sign = i % 2
        values = [round(r.gauss(2 * sign * (k in (1, 2)), 1), 2) for k in range(len(NAMES))]
        write.writerow([*values, POSITIVE if sign else NEGATIVE])
    (tmp_path / "d.csv").write_text(stream.getvalue(), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def harmless(outcome: Outcome, *pages: str) -> str:
    """Assert that an outcome and pages obey nobody; what was printed."""
    assert outcome.code == 0, outcome.err
    said = outcome.out + outcome.err
    assert all(one.isprintable() or one == "\n" for one in said), repr(said)
    for page in pages:
        text = Path(page).read_text(encoding="utf-8")
        assert all(one.isprintable() or one == "\n" for one in text)
        assert not re.search(r"<script>alert|<b>\"|t\\x07<b>", text)
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    return outcome.out


SOLVE = ("solve", "fsp-m", "d.csv", "-p", "M=2", "-p", "C=1", "--positive", POSITIVE)


def test_a_result_its_page_and_its_predictions(cli: Cli, nasty: Path) -> None:
    said = harmless(cli(*SOLVE, "--json", "r.json", "--report", "r.html"), "r.html")
    assert r"\x1b[31mred" in said
    assert r"below 0 for \x1b]0;t\x07<b>" in said
    assert json.loads(harmless(cli(*SOLVE, "--json", "-")))["labels"] == {"negative": NEGATIVE, "positive": POSITIVE}
    table = list(csv.reader(io.StringIO(harmless(cli("predict", "r.json", "d.csv", "--scores")))))
    assert {row[0] for row in table} == {"label", f"'{POSITIVE}", r"\x1b]0;t\x07<b>"}
    for command in ("verify", "evaluate"):
        harmless(cli(command, "r.json", "d.csv"))


@pytest.mark.slow
def test_what_else_shows_names(cli: Cli, nasty: Path) -> None:
    same = ("--positive", POSITIVE)
    harmless(cli(*SOLVE, "--json", "r.json"))
    harmless(cli("path", "d.csv", "--M", "1:2", "-p", "C=1", *same, "--json", "p.json", "--report", "p.html"), "p.html")
    harmless(cli("scorecard", "r.json", "d.csv", *same, "--json", "c.json", "--report", "c.html"), "c.html")
    harmless(cli("compare", "d.csv", "-p", "M=1", "-p", "C=1", *same, "--json", "l.json"))
    harmless(cli("stability", "d.csv", "--M", "1", "--C", "1", "--draws", "3", *same))
    harmless(cli("bench", "d.csv", "--methods", "information-gain", "--M", "1", "--folds", "2", "--C", "1", *same))
    harmless(cli("report", "r.json", "p.json", "-o", "all.html"), "all.html")
    harmless(cli("predict", "c.json", "d.csv", "--scores"))
    for suffix in (".lp", ".mps"):
        harmless(cli(*SOLVE, "--write", f"m{suffix}"))
        assert all(one.isprintable() or one in "\n\t" for one in Path(f"m{suffix}").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("=1+1", "'=1+1"), ("+a", "'+a"), ("-a", "'-a"), ("@a", "'@a"), (" =a", "' =a"), ("\uff1da", "'\uff1da"),
        ("\t=a", r"\t=a"), ("\x1b=a", r"\x1b=a"), ("-1", "-1"), ("+1.5e3", "+1.5e3"), ("-1+1", "'-1+1"), ("a=1", "a=1"),
        (-1, -1), (0.5, 0.5), ("", ""),
    ],
)  # fmt: skip
def test_a_cell_is_no_formula(given: object, shown: object) -> None:
    assert in_cell(given) == shown


def test_the_table_of_a_study_holds_no_formula() -> None:
    text = as_csv([{"=name": "=1+1", "b": ["@x", 1], "c": None, "d": -1.5}])
    assert list(csv.reader(io.StringIO(text))) == [["'=name", "b", "c", "d"], ["'=1+1", "'@x 1", "", "-1.5"]]


def test_text_beside_a_chart_is_no_formula_of_matplotlib_or_tex() -> None:
    matplotlib = pytest.importorskip("matplotlib")
    assert plain_text("$x$ a_b") == r"\$x\$ a_b"
    with matplotlib.rc_context({"text.usetex": True}):
        shown = plain_text("$x$ a_b %{\\input}~^&#")
    assert shown == r"\$x\$ a\_b \%\{\textbackslash{}input\}\textasciitilde{}\textasciicircum{}\&\#"
