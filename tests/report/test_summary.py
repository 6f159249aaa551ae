"""What a result says of itself: one line, a report, HTML, a data frame, progress, and what to try next."""

from __future__ import annotations

import dataclasses
import io
import math
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mipfs
from mipfs.cli.output import show_result
from mipfs.errors import UsageError
from mipfs.report.blocks import NamedValues, Sentence, Table, as_html, as_text
from mipfs.report.progress import progress
from mipfs.result.advice import advice_in_words, gap_trend
from mipfs.result.result import Record, Result, Status, StopReason, Trace
from mipfs.run.live_lines import LiveLines, live_lines
from tests.html_tree import Tree

ROOT = Path(__file__).resolve().parents[2]
DATA = mipfs.read(ROOT / "instances" / "wdbc.svm", scale="standard")


@pytest.fixture(scope="module")
def result() -> Result:
    return mipfs.solve(mipfs.Problem(DATA, M=2, C=0.01))


@pytest.fixture(scope="module")
def open_result() -> Result:
    return mipfs.solve(mipfs.Problem(DATA, M=8, C=10.0), time_limit=0.5)


def test_a_line(result: Result) -> None:
    line = repr(result)
    assert "\n" not in line
    assert len(line) <= 120
    for words in ("OPTIMAL", f"{result.objective:.8g}", "2 of 30 features", "branch"):
        assert words in line
    empty = dataclasses.replace(result, status=Status.NO_SOLUTION, objective=math.inf, selected=())
    assert "objective" not in repr(empty)
    assert repr(Result.from_json(result.to_json())) == line


def test_the_summary_is_the_report_of_the_command_line(result: Result, capsys: pytest.CaptureFixture[str]) -> None:
    show_result(result)
    assert capsys.readouterr().out == result.summary() + "\n"
    near = mipfs.solve(mipfs.Problem(DATA, M=1, C=0.01), pool_gap=0.05)
    show_result(near)
    printed = capsys.readouterr().out
    assert printed == near.summary() + "\n"
    assert "Near-optimal supports" in printed


def test_html_says_the_same_and_escapes(result: Result) -> None:
    odd = dataclasses.replace(result, selected=("<b>&x",), weights={"<b>&x": 1.0}, columns={"<b>&x": 0})
    text = odd._repr_html_()
    assert "&lt;b&gt;&amp;x" in text
    assert "<b>&x" not in text
    shown = Tree(result._repr_html_())
    assert not shown.wrong + Tree(text).wrong
    assert not shown.handlers
    said = " ".join(shown.texts)
    for words in ("OPTIMAL (the gap is closed)", f"{result.objective:.8g}", "No allowed selection", *result.selected):
        assert words in said
    assert shown.tags["figure"] == 2, "how the gap closed, and the features"
    assert len(result._repr_html_()) < 60_000


def test_blocks() -> None:
    blocks = [NamedValues([("a", "1"), ("long", "2")]), Table(("n", "v"), [("x", "1.5")], title="T"), Sentence("  end")]
    assert as_text(blocks) == "a     1\nlong  2\n\nT\n  n    v\n  x  1.5\n  end"
    assert "<p>end</p>" in as_html(blocks)


def test_the_trace_as_a_frame(result: Result, monkeypatch: pytest.MonkeyPatch) -> None:
    pandas = pytest.importorskip("pandas")
    frame = result.trace.to_frame()
    assert list(frame.columns) == ["seconds", "iteration", "objective", "bound", "gap"]
    assert len(frame) == len(result.trace)
    assert frame.bound.iloc[-1] == result.trace[-1].bound
    unearned = Trace([Record(0.0, 0, math.inf, -math.inf), Record(1.0, 1, 2.0, 1.0, upper=1.5)]).to_frame()
    assert unearned.isna().to_numpy().tolist() == [[False, False, True, True, True, True], [False] * 6]
    assert unearned.upper[1] == 1.5
    assert len(Trace().to_frame()) == 0
    relaxed = mipfs.solve(mipfs.Problem(DATA, M=3, C=0.1), "kelley")
    assert "upper" in relaxed.trace.to_frame()
    assert isinstance(Result.from_json(result.to_json()).trace.to_frame(), pandas.DataFrame)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UsageError, match=r"needs pandas, which is not installed; pip install pandas"):
        result.trace.to_frame()


@pytest.mark.slow
def test_silent_by_default_and_lines_when_asked(capsys: pytest.CaptureFixture[str]) -> None:
    problem = mipfs.Problem(DATA, M=2, C=0.01)
    mipfs.solve(problem)
    assert capsys.readouterr() == ("", "")
    for driver in ("branch", "gbd", "kelley"):
        found = mipfs.solve(problem, driver, verbose=True)
        out, err = capsys.readouterr()
        lines = [line for line in err.splitlines() if "compil" not in line]
        assert out == ""
        assert lines.pop(0).startswith("settings: ")
        assert lines[0].split() == ["seconds", "iteration", "incumbent", "bound", "gap", "features"]
        assert lines[-1].split()[2:4] == [f"{found.objective:.8g}", f"{found.trace[-1].bound:.8g}"]
        assert all(len(line) <= 80 for line in lines)
    mipfs.path(problem, M=[1, 2], verbose=True)
    out, err = capsys.readouterr()
    assert (out, "solving M = 1" in err, "M = 2: OPTIMAL, objective" in err) == ("", True, True)
    mipfs.compare(problem, rungs=["plain", "exact"], verbose=True)
    assert "rung exact" in capsys.readouterr().err


def test_lines_are_few_and_end_with_the_last() -> None:
    stream = io.StringIO()
    lines = LiveLines(stream, "about")
    for k in range(1000):
        lines(Record(k / 1000, k, 10.0, k / 100.0, 3))
    lines.flush()
    lines.flush()
    shown = stream.getvalue().splitlines()
    assert shown[0] == "about"
    assert len(shown) == 4
    assert shown[-1].split()[1] == "999"
    with live_lines(False) as observers:
        assert observers == ()


def test_progress_is_for_terminals(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("mipfs.report.progress.FIRST_SECONDS", 0.0)
    monkeypatch.setattr("mipfs.report.progress.LINE_SECONDS", 0.0)
    for stream, verbose, talks in ((Terminal(), True, True), (Terminal(), False, False), (io.StringIO(), True, False)):
        monkeypatch.setattr(sys, "stderr", stream)
        with progress("checked", "leaves", verbose) as tell:
            tell(3, 10)
        assert ("checked 3 of 10 leaves" in stream.getvalue()) == talks
        assert not talks or stream.getvalue().endswith(" \r")


def test_verify_tells_how_far_it_is(result: Result, monkeypatch: pytest.MonkeyPatch) -> None:
    from contextlib import contextmanager

    told: list[tuple[int, int]] = []

    @contextmanager
    def heard(*_: Any) -> Any:
        yield lambda done, total: told.append((done, total))

    monkeypatch.setattr("mipfs.result.verification.progress", heard)
    report = mipfs.verify(result, DATA)
    assert report.accepted
    assert told[-1] == (report.n_leaves, report.n_leaves)


def test_what_to_try(open_result: Result, result: Result) -> None:
    assert open_result.status is Status.FEASIBLE
    words = advice_in_words(open_result)
    assert words.startswith("more time")
    assert "a smaller C (say 1) or the relaxation alone (fgm)" in words
    assert "scale standard" not in words
    assert f"to try     {words}" in open_result.summary()
    assert advice_in_words(result) == ""
    unscaled = dataclasses.replace(open_result, scaling={**open_result.scaling, "kind": "none"})
    assert "scale standard" in advice_in_words(unscaled)
    stalled = dataclasses.replace(unscaled, stop_reason=StopReason.NUMERICAL)
    assert advice_in_words(stalled).startswith("scale standard")
    assert advice_in_words(dataclasses.replace(open_result, stop_reason=StopReason.COMPLETED)) == ""
    relaxed = mipfs.solve(mipfs.Problem(DATA, M=8, C=10.0), "kelley", iteration_limit=1)
    assert "fgm" not in advice_in_words(relaxed)


def test_the_trend() -> None:
    def record(seconds: float, bound: float) -> Record:
        return Record(seconds, 1, 100.0, bound)

    falling = [record(1, 50), record(4, 80), record(9, 90)]
    assert gap_trend(falling, 10.0) == " (the gap fell from 20% to 10% in the second half of the run)"
    assert gap_trend(falling[:2], 10.0) == " (but the gap stood at 20% in the second half of the run)"
    assert gap_trend([], 1.0) == gap_trend([record(1, -math.inf)], 2.0) == gap_trend([record(1.5, 50)], 2.0) == ""


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_columns_far_apart_are_named_at_once(kind: str, tmp_path: Path) -> None:
    from mipfs.cli import main

    rng = np.random.default_rng(0)
    path = tmp_path / "far.svm"
    every = 1 if kind == "dense" else 6
    rows = []
    for i in range(60):
        values = [f"{j + 1}:{v:.6g}" for j, v in enumerate(rng.normal(size=8) * [1e-3, 5e3, *[1.0] * 6])]
        rows.append(f"{i % 2} " + " ".join(v for j, v in enumerate(values) if (i + j) % every == 0 or j == i % 2))
    path.write_text("\n".join(rows) + "\n")
    with pytest.warns(
        mipfs.DataWarning, match=r"norms of the columns are from .* \('x1'\) to .* \('x2'\), and nothing"
    ):
        mipfs.read(path)
    for scale in ("none", "standard", "unit"):
        mipfs.read(path, scale=scale)  # asked for: nothing is said
    assert main(["solve", "fsp-m", str(path), "-p", "M=1", "-p", "C=1e-6", "--quiet"]) == 0


def test_the_advice_is_one_line_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    from mipfs.cli import main

    wdbc = str(ROOT / "instances" / "wdbc.svm")
    args = ["solve", "fsp-m", wdbc, "-p", "M=1", "-p", "C=1e-3"]
    assert main(args) == 0
    lines = capsys.readouterr().err.splitlines()
    assert len([line for line in lines if "--scale standard" in line]) == len(lines) == 1
    assert lines[0].startswith("mipfs: warning: ")
    for more in (["--quiet"], ["--scale", "standard"], ["--scale", "none"]):
        assert main([*args, *more]) == 0
        assert capsys.readouterr().err == ""


def test_rare_words_are_no_matter_of_scale() -> None:
    import warnings

    from scipy import sparse

    from mipfs.readers.advice import advise_scale

    counts = sparse.csc_array(np.eye(5000))
    common = sparse.csc_array(sparse.hstack([sparse.csc_array(np.ones((5000, 1)) * 2), counts, counts * 30]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        advise_scale(common, [f"x{j}" for j in range(10001)], Path("text.svm"))
        advise_scale(np.zeros((3, 4)), list("abcd"), Path("zeros"))
    with pytest.warns(mipfs.DataWarning):
        advise_scale(np.array([[1e200, 1e-200], [1e200, 0.0]]), ["a", "b"], Path("huge"))


def test_advice_takes_room_for_the_entries_and_not_for_every_column() -> None:
    import tracemalloc

    from scipy import sparse

    from mipfs.readers.advice import advise_scale

    width = 10**8
    wide = sparse.csr_array((np.array([1.0, 1e-4]), (np.arange(2), np.array([0, width - 1]))), (2, width))
    tracemalloc.start()
    with pytest.warns(mipfs.DataWarning, match=f"from 0.0001 \\({width - 1}\\) to 1 \\(0\\)"):
        advise_scale(wide, range(width), Path("wide.svm"))  # type: ignore[arg-type]
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 10**6


def test_other_objects_are_short_too() -> None:
    problem = mipfs.Problem(DATA, M=2, C=0.01).with_rows(np.ones((1, 30)), 1, 2)
    assert repr(DATA).endswith("wdbc.svm: 569 samples, 30 features, scale standard>")
    assert repr(problem).startswith("<Problem M = 2, C = 0.01, loss = hinge, 1 rows, on <Instance ")
    ladder = mipfs.compare(problem, rungs=["plain", "exact"])
    assert repr(ladder).startswith(f"<Comparison incumbent {ladder.incumbent:.8g}, plain ")
    assert "exact" in ladder.summary()
    said = " ".join(Tree(ladder._repr_html_()).texts)
    assert f"{ladder.incumbent:.8g}" in said
    assert f"{ladder['exact'].value:.6g}" in said
    assert "along M, 2 points" in repr(mipfs.path(problem, M=[1, 2]))


def test_several_words_of_a_column_are_said_to_count_each(tmp_path: Path) -> None:
    shutil.copy(ROOT / "instances" / "credit.csv", tmp_path)  # without its description, which is about single words
    data = mipfs.read(tmp_path / "credit.csv", label="repaid", scale="standard")
    given: dict[str, Any] = {"M": 3, "C": 0.1, "forced_in": ["housing=own", "housing=rent"]}
    found = mipfs.solve(mipfs.Problem(data, **given), time_limit=20)
    said = " ".join(found.summary().split())
    assert "every word counts: 2 are words of housing; atoms=groups, or words = " in said
    for one in (
        mipfs.solve(mipfs.Problem(data, M=3, C=0.1, forced_in=["housing=own"]), time_limit=20),
        mipfs.solve(mipfs.Problem(data, M=2, C=0.1, atoms=mipfs.atoms.make("groups", data)), time_limit=20),
    ):
        assert "every word counts" not in one.summary()
