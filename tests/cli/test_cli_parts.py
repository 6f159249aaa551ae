"""The parts of the command line: parameters, tables and the live display."""

from __future__ import annotations

import io
import math
import sys

import pytest

from mipfs.cli.live import _View, live_table
from mipfs.cli.options import parse_names, parse_params
from mipfs.cli.output import number, percent, show_table
from mipfs.errors import UsageError
from mipfs.result.result import Record


def test_parameters_become_numbers_where_they_are() -> None:
    given = ["M=5", "C=1e-2", "lambda=3", "bias=false", "loss=hinge", "depth=-2", "rate=.5", "kind=a=b", "exact=true"]
    assert parse_params(given) == {
        "M": 5, "C": 0.01, "lam": 3, "bias": False, "loss": "hinge",
        "depth": -2, "rate": 0.5, "kind": "a=b", "exact": True,
    }  # fmt: skip


@pytest.mark.parametrize("text", ["C=1_000", "C=0x10", "C=1,5", "C=١", "M=1e1", "M=true", "bias=1", "lambda=inf"])
def test_what_only_resembles_a_number_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=f"-p {text}"):
        parse_params([text])


def test_names_may_hold_blanks_and_quoted_commas() -> None:
    assert parse_names('worst area, "a,b",x') == ("worst area", "a,b", "x")
    assert parse_names("") == ()


def test_numbers_that_were_not_earned_are_a_dash_and_a_gap_is_not_rounded_to_zero() -> None:
    assert (number(math.inf), number(-math.inf), number(1 / 3)) == ("-", "-", "0.33333333")
    assert (percent(math.inf), percent(0.0), percent(1e-9), percent(0.12345)) == ("-", "0%", "<0.0001%", "12.3%")


def test_a_piped_table_is_plain_and_aligned(capsys: pytest.CaptureFixture[str]) -> None:
    show_table(("feature", "weight"), [("a", "1"), ("long name", "-10.5")])
    assert capsys.readouterr().out == "  feature    weight\n  a               1\n  long name   -10.5\n"


def test_the_live_table_is_silent_when_piped_or_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    with live_table(quiet=False) as observers:
        assert observers == ()
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with live_table(quiet=True) as observers:
        assert observers == ()
    with live_table(quiet=False) as observers:
        assert len(observers) == 1


@pytest.mark.parametrize("unkept", [False, True])
def test_a_long_run_says_how_the_next_one_is_kept(unkept: bool) -> None:
    from rich.console import Console

    view, screen = _View(unkept), io.StringIO()
    console = Console(file=screen, width=120)
    console.print(view)
    assert "--checkpoint" not in screen.getvalue()
    view.began -= 1000.0
    console.print(view)
    assert ("--checkpoint FILE" in screen.getvalue()) == unkept


def test_the_live_table_shows_the_latest_record() -> None:
    from rich.console import Console

    view, screen = _View(), io.StringIO()
    console = Console(file=screen, width=120)
    console.print(view)
    view.see(Record(0.5, 7, 44.25, 40.125, 5, {"cuts": 12, "nodes": 3}))
    console.print(view)
    for words in ("iteration", "44.25", "40.125", "9.32%", "features", "cuts", "12", "nodes"):
        assert words in screen.getvalue()


@pytest.mark.parametrize("width", [30, 60, 80, 200])
def test_incumbent_and_gap_are_never_cut(width: int) -> None:
    from rich.console import Console

    view, screen = _View(), io.StringIO()
    counters = {"root free": 30, "nodes": 123456, "newton steps": 1234567, "stalled": 10, "subproblems": 99999}
    view.see(Record(12345.6, 1234567, -1.2345678e-05, -1.3345678e-05, 12, counters))
    Console(file=screen, width=width).print(view)
    shown = screen.getvalue()
    assert "-1.2345678e-05" in shown
    assert "8.1%" in shown
    assert max(map(len, shown.splitlines())) <= width
    if width >= 80:
        for words in ("-1.3345678e-05", "1234567", "12345678", "features", "30 root free"):
            assert words in shown or words == "12345678"


def test_the_live_table_of_a_path_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    from types import SimpleNamespace

    from rich.console import Console

    from mipfs.cli.live_path import View
    from mipfs.result.result import Status

    view, screen = View(), io.StringIO()
    names = tuple(f"a rather long name {k}" for k in range(9))
    for M in range(40):
        numbers = {"objective": 12345.678 + M, "bound": 12345.5, "gap": 0.000123, "seconds": 123.45}
        view.add(SimpleNamespace(place={"M": M}, status=Status.FEASIBLE, selected=names, **numbers))  # type: ignore[arg-type]
    view.begin("M = 41")
    Console(file=screen, width=80, height=24).print(view)
    lines = screen.getvalue().splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    assert "12384.678" in screen.getvalue()
    assert "0.0123%" in screen.getvalue()


@pytest.mark.parametrize("width", [40, 80, 120])
def test_numbers_of_a_table_are_never_cut_on_a_terminal(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    screen = Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("TERM", "dumb")
    header = ("M", "status", "objective", "bound", "gap", "size", "seconds", "carried", "cuts", "subproblems")
    row = ("1", "optimal", "14.058342", "14.056936", "0.01%", "1", "0.28", "0", "2", "14")
    show_table(header, [row], title="The path")
    show_table(("feature", "weight"), [("a name that is as long as a sentence, or two of them", "-0.12345678")])
    shown = screen.getvalue()
    for cell in (*header, *row, "-0.12345678"):
        assert cell in shown
    if width >= 80:
        assert max(map(len, shown.splitlines())) <= width
