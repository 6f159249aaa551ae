"""The frame of the studies: units, the store, reports, the index, and the counting that verdicts rest on."""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse, stats
from sklearn.metrics import f1_score

import mipfs
from mipfs.atoms.groups import Groups
from mipfs.errors import DataError, UsageError
from mipfs.generators import paul_2016, tan_2014_groups
from mipfs.lab.baselines.linear import Linear, plain_svm
from mipfs.lab.experiments import (
    STUDIES,
    fits,
    get_study,
    index,
    measures,
    measures_report,
    prices,
    recall,
    rules,
    sketch,
    tan2014,
    tan2014_report,
)
from mipfs.lab.experiments import run as experiment
from mipfs.lab.experiments.exactness import at_the_same, at_their_own, one_standard_error
from mipfs.lab.experiments.fits import CHOOSERS, error, f1, fit_by_driver, objective, try_choices
from mipfs.lab.experiments.run import PAGE, ROWS, TABLE, StudyStore, as_csv, load_results, plain, run
from mipfs.lab.experiments.study import PaperClaim, Row, Study, Unit
from mipfs.lab.experiments.tables import (
    Heading,
    average_pairs,
    count_comparisons,
    curves,
    interval,
    mean,
    page_blocks,
    pairs,
    render_markdown,
    render_pictures,
    sign_test,
    standard_error,
)
from mipfs.lab.sketch import select
from mipfs.lab.studies.folds import Fold, fold
from mipfs.plumbing import about
from mipfs.plumbing.arrays import Array
from mipfs.report.blocks import NamedValues, ReportBlock, Sentence, Table
from mipfs.result.result import StopReason
from mipfs.run import side_by_side

INSTANCES = Path(__file__).parents[3] / "instances"
REPORTS = Path(__file__).parents[3] / "reports" / "studies"


def made(measured: list[int] | None = None) -> Study:
    """A study of squares, which fails at 3 and needs data at 4."""
    seen = [] if measured is None else measured

    def units() -> list[Unit]:
        return [Unit({"k": k}, quick=k < 2, needs="no_such_set" if k == 4 else "") for k in range(5)]

    def measure(unit: Unit) -> list[Row]:
        k = unit.params["k"]
        seen.append(k)
        if k == 3:
            raise UsageError("three is refused\nand more")
        return [{"method": name, "square": k * k + shift} for name, shift in (("a", 0), ("b", 1))]

    def report(rows: Sequence[Row]) -> list[ReportBlock]:
        return [
            Table(["k", "square"], [[str(row["k"]), str(row["square"])] for row in rows], "Squares | of k"),
            curves("The squares", rows, "k", "square", labels=("k", "k²")),
        ]

    def claims(rows: Sequence[Row]) -> list[PaperClaim]:
        return [PaperClaim("Squares grow", "confirmed", f"{len(rows)} rows")]

    return Study("squares", "Squares", "nobody", "All of it.", units, measure, report, claims)


def test_a_run_that_was_stopped_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MIPFS_DATA", raising=False)
    seen: list[int] = []
    assert not run(made(seen), tmp_path, time_limit=0.0).lines
    quick = run(made(seen), tmp_path, quick=True)
    assert (seen, quick.asked, quick.reached, quick.total) == ([0, 1], 2, 2, 5)
    whole = run(made(seen), tmp_path)
    assert seen == [0, 1, 2, 3]  # none twice
    assert whole.skipped == {"MIPFS_DATA is unset": 1}
    assert [row.get("square") for row in whole.rows] == [0, 1, 1, 2, 4, 5, None]
    assert whole.rows[-1] == {"k": 3, "failed": "three is refused"}
    assert len(whole.good) == 6
    again = run(made(seen), tmp_path)
    assert (seen, again.rows) == ([0, 1, 2, 3], whole.rows)


def test_what_other_code_measured_is_measured_again_where_that_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run of that kind goes on where it was too, and what cannot be measured here keeps its rows."""
    monkeypatch.delenv("MIPFS_DATA", raising=False)
    seen: list[int] = []
    monkeypatch.setattr(experiment, "commit", lambda: "0ld")
    run(made(seen), tmp_path, jobs=1)
    store = StudyStore(tmp_path / ROWS, "squares")
    store.add(Unit({"k": 4}), [{"square": 16}], 0.0)
    monkeypatch.setattr(experiment, "commit", lambda: "new")
    seen.clear()
    stopped = run(made(seen), tmp_path, jobs=1, again=True, time_limit=0.0)
    assert (seen, stopped.reached, len(stopped.lines)) == ([], 1, 5)
    assert run(made(seen), tmp_path, quick=True, jobs=1, again=True).reached == 2
    renewed = run(made(seen), tmp_path, jobs=1, again=True)
    assert (seen, renewed.reached, renewed.skipped) == ([0, 1, 2, 3], 5, {})
    assert [line["commit"] for line in renewed.lines] == ["new"] * 4 + ["0ld"]
    facts = renewed.blocks()[1]
    assert isinstance(facts, NamedValues)
    assert ("commit of the code", "new: 4 units, 0ld: 1 unit") in facts.pairs
    assert run(made(seen), tmp_path, jobs=1, again=True).reached == 5
    monkeypatch.setattr(experiment, "commit", lambda: None)  # an installed package: the version decides
    run(made(seen), tmp_path, jobs=1, again=True)
    assert seen == [0, 1, 2, 3]


def test_the_commit_is_that_of_the_package_and_none_outside_a_checkout(tmp_path: Path) -> None:
    where = Path(mipfs.__file__).parents[1]
    if (where / ".git").exists():
        assert re.fullmatch(r"[0-9a-f]{8,}[+]?", about.commit.__wrapped__() or "")
    shutil.copy(about.__file__, tmp_path / "about.py")
    asked = "import about; about.__file__ = 'x/y/about.py'; print(about.commit())"
    told = subprocess.run([sys.executable, "-c", asked], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert told.stdout == "None\n"


def test_a_unit_in_which_ctrl_c_came_is_not_stored_and_those_before_it_are(tmp_path: Path) -> None:
    """Also where what the unit calls takes the signal as a limit and gives what it has."""

    def measure(unit: Unit) -> list[Row]:
        if unit.params["k"] == 1:
            with suppress(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
        return [{"value": unit.params["k"]}]

    study = Study("struck", "", "", "", lambda: [Unit({"k": k}) for k in range(3)], measure, lambda rows: [])
    found = run(study, tmp_path, jobs=1)
    assert found.interrupted
    assert [row["value"] for row in found.rows] == [0]
    assert set(StudyStore(tmp_path / ROWS, "struck").lines()) == {"k=0"}


@pytest.mark.slow
def test_ctrl_c_loses_no_unit_that_another_process_has_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This process is in a long unit while the other one does all others."""
    monkeypatch.setattr(side_by_side, "BEGIN_SECONDS", 0.0)

    def measure(unit: Unit) -> list[Row]:
        if unit.params["k"] == 0:
            end = time.monotonic() + 60.0
            while not (tmp_path / ROWS).is_file() or (tmp_path / ROWS).read_bytes().count(b"\n") < 3:
                assert time.monotonic() < end
                time.sleep(0.02)
            signal.raise_signal(signal.SIGINT)
        return [{"value": unit.params["k"]}]

    study = Study("struck", "", "", "", lambda: [Unit({"k": k}) for k in range(4)], measure, lambda rows: [])
    found = run(study, tmp_path, jobs=2)
    assert found.interrupted
    assert [row["value"] for row in found.rows] == [1, 2, 3]


@pytest.mark.slow
def test_the_folder_holds_report_pictures_and_every_number(tmp_path: Path) -> None:
    found = run(made(), tmp_path)
    found.save(tmp_path)
    page = (tmp_path / PAGE).read_text(encoding="utf-8")
    assert page.startswith("# Squares\n")
    for words in ("`mipfs study squares`", "**Squares | of k**", "| 2 | 4 |"):
        assert words in page
    assert "![The squares](the-squares.svg)" in page
    assert b"<svg" in (tmp_path / "the-squares.svg").read_bytes()
    rows = list(csv.DictReader(io.StringIO((tmp_path / TABLE).read_text(encoding="utf-8"))))
    assert [row["square"] for row in rows] == ["0", "1", "1", "2", "4", "5", ""]
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.name != PAGE}
    load_results(made(), tmp_path).save(
        tmp_path
    )  # out of the rows alone, to the byte; the page alone says what was left out
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.name != PAGE} == before
    assert found.document()["claims"] == [
        {"said": "Squares grow", "verdict": "confirmed", "measured": "6 rows", "details": "", "figure": "", "brief": ""}
    ]


def test_a_torn_last_line_is_measured_again_and_a_wrong_one_is_named(tmp_path: Path) -> None:
    run(made(), tmp_path, quick=True)
    path = tmp_path / ROWS
    text = path.read_text(encoding="utf-8")
    path.write_text(text[:-20], encoding="utf-8")
    seen: list[int] = []
    run(made(seen), tmp_path, quick=True)
    assert seen == [1]
    assert set(StudyStore(path, "squares").lines()) == {"k=0"} | {"k=1"}
    path.write_text("{}\n" + text, encoding="utf-8")
    with pytest.raises(DataError, match=r"rows\.jsonl.*1.*is no line of a study"):
        StudyStore(path, "squares").lines()


def test_files_of_others_are_not_replaced(tmp_path: Path) -> None:
    (tmp_path / PAGE).write_text("my own page", encoding="utf-8")
    with pytest.raises(UsageError, match=r"README\.md that is none of a study"):
        run(made(), tmp_path)
    folder = tmp_path / "squares"
    StudyStore(folder / ROWS, "circles").add(Unit({"k": 1}), [], 0.0)
    with pytest.raises(DataError, match="is of the study 'circles'"):
        run(made(), folder)
    run(get_study("aytug"), tmp_path / "aytug", time_limit=0.0)
    StudyStore(tmp_path / "aytug" / ROWS, "aytug").add(get_study("aytug").units()[0], [], 0.0)
    with pytest.raises(UsageError, match="is no index of studies"):
        index.write_index(tmp_path)


def test_the_store_keeps_plain_numbers(tmp_path: Path) -> None:
    row = {"a": np.float64(1 / 3), "b": np.arange(2), "c": np.nan, "d": True, "e": np.int64(7), "f": "x,y"}
    line = StudyStore(tmp_path / "new" / ROWS, "other").add(Unit({"k": 1}), [row], 0.5)
    assert line["rows"] == [{"k": 1, "a": 0.3333333333, "b": [0, 1], "c": None, "d": True, "e": 7, "f": "x,y"}]
    assert json.loads((tmp_path / "new" / ROWS).read_text(encoding="utf-8")) == line
    assert as_csv(line["rows"]) == 'k,a,b,c,d,e,f\n1,0.3333333333,0 1,,True,7,"x,y"\n'
    assert plain({"x": (np.inf,)}) == {"x": [None]}


@pytest.mark.parametrize("name", STUDIES)
def test_every_study_says_what_it_is(name: str) -> None:
    study = get_study(name)
    assert study.name == name
    assert study.title
    assert study.source
    assert len(study.design) > 100
    units = list(study.units())
    assert len({unit.key for unit in units}) == len(units)
    assert 0 < sum(unit.quick for unit in units) < len(units)
    assert study.claims([]) == []


def test_the_index_lists_studies_and_claims(tmp_path: Path) -> None:
    found = run(made(), tmp_path)
    page = index.index([found])
    assert "\n1. **Confirmed.** Squares grow. *Measured:* 6 rows ([squares](squares/README.md)).\n" in page
    assert "\n### Nobody\n" in page
    assert "| nobody | 1 | 0 | 0 | 0 | 0 | 1 |" in page
    cpu = sum(line["cpu_seconds"] for line in found.lines)
    assert f"| [squares](squares/README.md) | Squares | 4 of 5 | {cpu:,.0f} | {cpu / 4:,.0f} |" in page
    with pytest.raises(UsageError, match="holds no study's rows"):
        index.write_index(tmp_path)


@pytest.mark.slow
@pytest.mark.skipif(not REPORTS.is_dir(), reason="the reports are in the repository alone")
def test_the_pages_in_the_repository_come_out_of_their_rows() -> None:
    """And the ten claims at the top have their figures on these pages."""
    kept = [name for name in STUDIES if (REPORTS / name / ROWS).is_file()]
    found = [one for name in kept if (one := load_results(get_study(name), REPORTS / name)).lines]
    top = []
    for one in found:
        folder = REPORTS / one.study.name
        assert (folder / TABLE).read_text(encoding="utf-8") == as_csv(one.rows), one.study.name
        blocks = one.blocks()
        text = f"# {one.study.title}\n\n" + render_markdown(blocks)
        titles = {getattr(block, "title", "") for block in blocks}
        top += [(claim.figure, titles) for claim in one.claims if claim.figure]
        assert (folder / PAGE).read_text(encoding="utf-8") == text, one.study.name
    page = index.index(found)
    assert (REPORTS / PAGE).read_text(encoding="utf-8") == page
    assert len(page.splitlines()) <= 150  # a reviewer reads it to the end
    assert len(top) == index.TOP
    assert [figure for figure, titles in top if figure not in titles] == []


def test_averages_over_a_draw_count_once() -> None:
    rows = [
        {"seed": s, "B": B, "method": m, "x": 10 * s + B + (m == "a")} for s in (1, 2) for B in (1, 3) for m in "ab"
    ]
    assert average_pairs(rows, "a", "b", "x", ["seed", "B"], ["seed"]) == [(13.0, 12.0), (23.0, 22.0)]


def test_pairs_and_their_test() -> None:
    rows = [{"seed": k, "method": m, "x": v} for k, (a, b) in enumerate([(1.0, 2.0), (3.0, 3.0), (5.0, 4.0)])
            for m, v in (("a", a), ("b", b))]  # fmt: skip
    rows.append({"seed": 9, "method": "a", "x": 7.0})
    found = pairs(rows, "a", "b", "x", ["seed"])
    assert found == [(1.0, 2.0), (3.0, 3.0), (5.0, 4.0)]
    assert count_comparisons(found) == (1, 1, 1)
    assert mean(rows, "x") == pytest.approx(25 / 7)
    assert standard_error(rows, "x") == pytest.approx(stats.sem([row["x"] for row in rows]))
    for less, more in ((0, 0), (3, 1), (10, 2), (5, 5)):
        exact = stats.binomtest(less, less + more).pvalue if less + more else 1.0
        assert sign_test(less, more) == pytest.approx(exact)


def test_the_interval_of_a_mean_difference_is_students() -> None:
    found = [(0.9, 0.8), (0.7, 0.7), (0.8, 0.75), (0.6, 0.62)]
    differences = [100 * (a - b) for a, b in found]
    low, high = stats.ttest_1samp(differences, 0.0).confidence_interval(0.95)
    assert interval(found) == f"{np.mean(differences):+.2f} points [{low:+.2f}, {high:+.2f}]"
    assert interval(found[:1]) == "+10.00 points"
    assert interval([]) == "–"


def test_one_standard_error_takes_the_least_place_within_it() -> None:
    errors = {
        (5, 0.1): [0.10, 0.10, 0.13],
        (2, 1.0): [0.11, 0.12, 0.12],
        (2, 0.1): [0.2, 0.2, 0.2],
        (1, 0.1): [0.5] * 3,
    }
    assert one_standard_error(errors) == (2, 1.0)  # 0.11667 <= 0.11 + 0.01
    assert one_standard_error({}) is None


def test_error_and_f1_are_those_of_scikit_learn() -> None:
    random = np.random.default_rng(1)
    X, y = random.standard_normal((40, 3)), np.where(random.random(40) < 0.4, 1.0, -1.0)
    linear = Linear(np.array([0, 2]), np.array([1.0, -2.0]), 0.1, 1.0)
    called = np.where(X[:, 0] - 2 * X[:, 2] + 0.1 > 0, 1.0, -1.0)
    assert error(linear, X, y) == pytest.approx(np.mean(called != y))
    assert f1(linear, X, y) == pytest.approx(f1_score(y, called))
    assert f1(Linear(np.array([0]), np.array([0.0]), -1.0, 1.0), X, -np.ones(40)) == 0.0


def test_the_objective_of_a_fit_is_that_of_the_driver() -> None:
    data = mipfs.read(INSTANCES / "wdbc.svm", scale="standard")
    fit = fit_by_driver(mipfs.Problem(data, M=2, C=0.5), "branch")
    assert objective(data, fit.linear, 0.5) == pytest.approx(fit.facts["objective"], rel=1e-6)
    assert fit.facts["proven"]
    assert fit.linear.ids.size == 2


@pytest.mark.slow
def test_a_limit_of_cpu_seconds_stops_a_run() -> None:
    """What was found until then is a result, and no Ctrl-C; a limit that is not reached changes nothing."""
    data = mipfs.read(INSTANCES / "wdbc.svm", scale="standard")
    whole = fits.solve_by(mipfs.Problem(data, M=5, C=1.0), "branch", cpu_limit=1000.0)
    stopped = fits.solve_by(mipfs.Problem(data, M=5, C=1.0), "branch", cpu_limit=0.0)
    assert whole.stop_reason is StopReason.GAP_CLOSED
    assert stopped.stop_reason is StopReason.INTERRUPTED
    assert len(stopped.trace) < len(whole.trace)
    assert stopped.bound <= whole.objective <= stopped.objective


@pytest.mark.slow
def test_all_ways_to_choose_give_sets_of_the_asked_sizes() -> None:
    data = mipfs.read(INSTANCES / "wdbc.svm", scale="standard")
    best = {}
    for name in CHOOSERS:
        found = try_choices(name, data, [2, 3], [0.1], 1000)
        sizes = {place[0] for place in found}
        assert sizes == ({2, 3} if name != "all features" else {30})
        for (M, C), (ids, facts) in found.items():
            assert 0 < np.unique(ids).size == ids.size <= M
            assert facts["seconds"] >= 0.0
            if M == 3:
                best[name] = objective(data, plain_svm(data, ids, C, True, "hinge"), C)
    assert best["exact"] <= min(best.values()) + 1e-4 * best["exact"]
    # one feature after the other: the first is the one of the largest score at the constant classifier
    assert set(try_choices("forward", data, [2], [0.1], 1)[2, 0.1][0]) <= set(
        try_choices("forward", data, [3], [0.1], 1)[3, 0.1][0]
    )


def test_a_block_that_only_a_page_shows_leaves_no_trace_in_markdown() -> None:
    class Other:
        def text(self) -> str:
            return ""

        def html(self) -> str:
            return "<p></p>"

    assert render_markdown([Other()]) == "\n"
    assert render_pictures([Other()]) == {}


@pytest.mark.slow
@pytest.mark.parametrize("name", STUDIES)
def test_the_quick_subset_of_every_study_runs(name: str, tmp_path: Path) -> None:
    found = run(get_study(name), tmp_path, quick=True)
    if found.skipped and not found.lines:
        pytest.skip("; ".join(found.skipped))
    assert found.reached + sum(found.skipped.values()) == found.asked
    assert len(found.good) == len(found.rows)
    found.save(tmp_path)
    assert (tmp_path / PAGE).stat().st_size > 500


def test_a_peer_that_is_not_installed_is_left_out_with_its_name(tmp_path: Path) -> None:
    units = [Unit({"k": 0}), Unit({"k": 1}, package="no_such_package")]
    study = Study("few", "Few", "nobody", "All of it.", lambda: units, lambda _: [{"a": 1}], lambda _: [])
    found = run(study, tmp_path)
    assert (found.reached, found.skipped) == (1, {"no_such_package is not installed": 1})


def test_abess_chooses_columns_that_vary(monkeypatch: pytest.MonkeyPatch) -> None:
    class LogisticRegression:
        """In place of abess's: the last columns."""

        def __init__(self, support_size: int) -> None:
            self.M = support_size

        def fit(self, X: Array, y: Array) -> LogisticRegression:
            assert np.ptp(X, axis=0).min() > 0
            assert set(y) == {0, 1}
            self.coef_ = np.where(np.arange(X.shape[1]) >= X.shape[1] - self.M, 1.0, 0.0)
            return self

    module = SimpleNamespace(LogisticRegression=LogisticRegression)
    monkeypatch.setitem(sys.modules, "abess", SimpleNamespace(linear=module))
    monkeypatch.setitem(sys.modules, "abess.linear", module)
    X = np.random.default_rng(0).standard_normal((20, 4))
    X[:, 2] = 1.0
    data = mipfs.Instance.from_arrays(X, np.where(X[:, 0] > 0, 1.0, -1.0))
    found = try_choices("abess", data, [1, 2], [0.1, 1.0], 0)
    assert set(found) == {(1, 0.1), (1, 1.0), (2, 0.1), (2, 1.0)}
    assert [found[M, 1.0][0].tolist() for M in (1, 2)] == [[3], [1, 3]]


def test_a_peer_is_compared_at_the_place_of_the_exact_method() -> None:
    place = {"data": "a", "fold": 0, "M": 2, "C": 0.1}
    exact = {**place, "kind": "same", "method": "exact", "objective": 2.0, "excess": 0.0}
    peer = [
        {**place, "M": M, "kind": "every", "method": "abess", "objective": value} for M, value in ((1, 5.0), (2, 3.0))
    ]
    found = at_the_same([exact, *peer])
    assert [(row["method"], row["M"], row["excess"]) for row in found] == [("exact", 2, 0.0), ("abess", 2, 0.5)]


@pytest.mark.slow
def test_what_a_shop_sells_within_a_budget() -> None:
    data = mipfs.read(INSTANCES / "wdbc.svm", scale="standard")
    price = prices.prices(30, 1)
    assert price.min() >= 1.0
    assert price.max() <= prices.DEAREST
    assert (price == np.round(price)).all()
    shop = prices.Shop(data, price)
    budget = float(np.sort(price)[:4].sum())
    reached = {}
    for name, choice in prices.CHOICES.items():
        ids, facts = choice(shop, budget)
        assert price[ids].sum() <= budget
        assert np.unique(ids).size == ids.size
        reached[name] = objective(data, plain_svm(data, ids, prices.C, True, "hinge"), prices.C)
        assert facts.get("proven", True)
    assert reached["exact"] <= min(reached.values()) * (1 + 1e-4)
    assert shop.affordable([2, 0, 1], float(price[2])).tolist() == [2]


def test_the_weight_of_a_class_is_chosen_by_the_others() -> None:
    def row(k: int, weight: float, value: float) -> Row:
        return {"kind": "all", "M": 50, "class": k, "weight": weight, "recall": value}

    rows = [row(0, 1.0, 0.1), row(0, 10.0, 0.9), row(1, 1.0, 0.8), row(1, 10.0, 0.2)]
    assert recall.weight_of(rows, "all", None, 0) == 1.0  # class 1's best
    assert {k: one["recall"] for k, one in recall.choose_rows(rows, "all", None).items()} == {0: 0.1, 1: 0.2}
    # a selection that was measured on one class is compared with all features on that class
    few = {**row(1, 1.0, 0.3), "kind": "kept", "M": 250, "run": "loose", "gap": 0.0, "size": 250, "training": 1.0}
    both = [*({**one, "run": None, "gap": None, "size": 9, "training": 1.0} for one in rows), few]
    table = next(block for block in recall.report(both) if isinstance(block, Table))
    assert [line[:5] for line in table.rows] == [
        ["all", "–", "2", "15.0", "–"],
        ["kept", "250", "1", "30.0", "+10.00 points"],
    ]


def test_the_relaxations_predictor_over_groups_is_that_of_its_features() -> None:
    drawn = tan_2014_groups(120, 60, 2, 0, n_test=10)
    data = mipfs.Instance.from_arrays(*(np.asarray(part, dtype=float) for part in drawn["train"]))
    problem = mipfs.Problem(data, loss="logistic", bias=False, atoms=Groups(data, drawn["groups"]), M=2, C=1.0)
    result = fits.solve_by(problem, "kelley", gap=1e-4)
    found = fits.relaxed_predictor(data, result, 1.0)
    assert (np.diff(found.ids) > 0).all()
    assert found.ids.size % 10 == 0
    assert {data.feature_names[j] for j in found.ids} == set((result.relaxed or {})["weights"])


def test_draws_differ_between_made_data_sets() -> None:
    """Made features matter by their place: the same draw from every set would count one draw several times."""
    X, y = paul_2016(40, 60, 5, 0)["train"]
    drawn = []
    for salt in (" 5 0", " 5 1", " 5 0"):
        cell = sketch.SketchedFold(X[:30], np.asarray(y[:30], dtype=float), X[30:], y[30:], 8, False, 0, salt=salt)
        drawn.append([row["first"] for row in cell.rows() if row["method"] == "uniform"])
    assert drawn[0] == drawn[2]
    assert all(one != other for one, other in zip(drawn[0], drawn[1], strict=True))


def test_stored_products_have_the_polynomial_kernel() -> None:
    X = np.random.default_rng(3).standard_normal((5, 4))
    found = tan2014.stored_products(X)
    assert found.shape == (5, 4 + 10)
    assert found @ found.T + 1.0 == pytest.approx((X @ X.T + 1.0) ** 2)


def test_stored_steps_have_the_intersection_kernel() -> None:
    """Of values beyond the training rows' ends too, which count as these ends; a constant feature is nothing."""
    X = np.column_stack([np.linspace(-1.0, 1.0, 9), np.arange(9.0), np.ones(9)])
    Z = np.vstack([X, [[-3.0, 20.0, 5.0]]])
    found = tan2014.stored_steps(X, Z)
    width = np.array([2.0, 8.0, 0.0]) / tan2014.LEVELS
    level = np.clip(np.rint((Z[:, :2] - X[:, :2].min(axis=0)) / width[:2]), 0, tan2014.LEVELS)
    kernel = (width[:2] * np.minimum(level[:, None, :], level[None, :, :])).sum(axis=2)
    assert found.shape == (10, 3 * tan2014.LEVELS)
    assert found @ found.T == pytest.approx(kernel)


def test_the_three_algorithms_of_the_group_lasso_are_judged_on_groups_and_functions() -> None:
    rows: list[Row] = [
        {"part": part, "B": B, "seed": seed, "data": "one", "method": method, "accuracy": accuracy, "size": 3}
        | {"seconds": seconds * (1 + seed), "C": 1.0}
        for part in ("lasso", "lasso-steps")
        for seed in range(6)
        for B in (2, 10)
        for method, accuracy, seconds in (("fgm", 0.9, 2), ("fista", 0.8, B), ("bcd", 0.8, 1), ("active", 0.7, 9))
    ]
    made, steps = (tan2014_report.of(rows, part=part) for part in ("lasso", "lasso-steps"))
    accuracy, seconds = (
        tan2014_report._claim_lasso_accuracy(made, steps),
        tan2014_report._claim_lasso_seconds(made, steps),
    )
    assert (accuracy.verdict, seconds.verdict) == ("refined", "refined")
    assert "made groups, by draw: accuracy of ACTIVE less FISTA's: 0 better, 6 worse" in accuracy.measured
    assert "B = 10, by draw: CPU seconds of FISTA over FGM's: 6 of 6 above 1 (p = 0.031), mean 5" in seconds.measured
    assert "CPU seconds of BCD over FGM's: 0 of 6 above 1" in seconds.measured


def _fold_of_people() -> Fold:
    """80 people, the first of two folds; their third column parts them into two groups that others tell apart too."""
    random = np.random.default_rng(5)
    y = np.where(random.random(80) < 0.5, 1.0, -1.0)
    group = (random.random(80) < 0.5).astype(float)
    X = random.standard_normal((80, 7)) + 0.6 * y[:, None]
    X[:, 2] = group
    X[:, 3:5] += 1.5 * group[:, None]
    data = mipfs.Instance.from_arrays(np.asfortranarray(X), y, scale="standard")
    return fold(data, 2, 0, 0)


def test_parity_in_the_study_of_rules_holds_and_is_as_cheap_as_can_be() -> None:
    part = rules.GroupedFold.of(_fold_of_people(), 2)
    assert part.train.n_features == 6
    found = part.free.scores(part.train)
    apart = found[part.of_one].mean() - found[~part.of_one].mean()
    assert part.shares(part.free).sum() == pytest.approx(apart)
    assert part.within == pytest.approx(rules.CLOSER * abs(apart))
    fitted, proven = part.obey(np.arange(6))
    found = fitted.scores(part.train)
    assert proven
    assert abs(found[part.of_one].mean() - found[~part.of_one].mean()) <= part.within * (1 + 1e-6)
    exact, after, dropped, free = (judge(part) for judge in rules.METHODS["parity"].values())
    assert free.objective <= exact.objective <= min(after.objective, dropped.objective) * (1 + 1e-4)
    assert None not in (exact.apart, after.apart, dropped.apart)


def test_two_budgets_in_the_study_of_rules_hold() -> None:
    part = _fold_of_people()
    costs, budgets = rules._spend_budgets(part)
    found = [judge(part) for judge in rules.METHODS["budgets"].values()]
    assert found[0].proven
    assert found[0].objective <= min(one.objective for one in found) * (1 + 1e-4)
    affordable = [
        ids
        for k in range(8)
        for ids in itertools.combinations(range(7), k)
        if np.all(costs[:, ids].sum(axis=1) <= budgets)
    ]
    best = min(
        objective(part.train, plain_svm(part.train, np.array(ids, dtype=np.int64), 1.0, True, "hinge"), 1.0)
        for ids in affordable
    )
    assert found[0].objective == pytest.approx(best, rel=1e-4)


@pytest.mark.slow
def test_a_class_on_all_documents_says_what_its_last_C_gains(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(2)
    labels, X = np.arange(150) % 3, random.random((150, 12)) * (random.random((150, 12)) < 0.4)
    X[labels == 1, :2] += 0.5
    parts = sparse.csc_array(X[:100]), labels[:100], sparse.csc_array(X[100:]), labels[100:]
    monkeypatch.setattr(measures, "_load_documents", lambda count: parts)
    monkeypatch.setattr(measures, "WHOLE_M", 3)
    rows = {row["method"]: row for row in measures._whole_class(1, "f1")}
    assert set(rows) == {"all", "kept", "relaxed"}
    assert (rows["all"]["size"], rows["kept"]["size"]) == (12, 3)
    for row in rows.values():
        assert -1.0 <= row["last_gain"] <= 1.0
        assert 0.0 <= row["gap"] < 1.0
        assert 0.0 < row["validation"] <= 1.0
    assert rows["all"]["gap"] <= measures.GAP
    assert measures_report.claims([{"part": "whole", "class": 1, **row} for row in rows.values()])[0].verdict == "open"


@pytest.mark.parametrize(("steps", "verdict"), [(100, "refuted"), (5, "not shown")])
def test_f1_on_all_documents_is_judged_by_the_one_rule(steps: int, verdict: str) -> None:
    """Whatever the relaxations leave open, which is told beside."""
    rows: list[Row] = [
        {"class": k, "method": method, "value": value + k / steps, "last_gain": 0.2, "gap": 0.3}
        for k in range(6)
        for method, value in (("relaxed", 0.7), ("kept", 0.6))
    ]
    rows += [{"class": k, "method": "all", "value": 0.8 + k / 100, "last_gain": 0.2, "gap": 0.05} for k in range(6)]
    claim = measures_report._claim_f1(rows, [])
    assert claim.verdict == verdict
    assert "left open by 30% on average" in claim.said
    assert "relaxed 20.0% (gap of the final fits 30.0%)" in claim.details


def test_a_peer_counts_where_the_exact_method_was_run() -> None:
    def row(data: str, method: str) -> Row:
        return {"kind": "chosen", "data": data, "fold": 0, "method": method}

    rows = [row("a", "exact"), row("a", "abess"), row("b", "abess"), {**row("a", "abess"), "kind": "every"}]
    assert at_their_own(rows) == rows[:2]


def test_a_page_has_titles_in_the_cards_of_their_sections() -> None:
    blocks: list[ReportBlock] = [
        Sentence("`exact` is <best>"),
        Heading("All"),
        Table(["a"], [["1"]]),
        NamedValues([("command", "`mipfs`")]),
    ]
    found = page_blocks(blocks)
    assert [block.html() for block in found[:1]] == ["<p><code>exact</code> is &lt;best&gt;</p>"]
    assert found[1].html().startswith("<h3>All</h3>")
    assert found[1].text().startswith("\nAll\n")
    assert "`" not in found[2].html()
    assert len(found) == 3


def test_the_ticks_of_a_logarithmic_axis_stand_apart() -> None:
    from mipfs.lab.experiments.tables import _spaced_ticks

    assert _spaced_ticks([100.0, 500.0, 1000.0, 6000.0, 8000.0]) == ["100", "500", "1000", "6000", ""]
    assert _spaced_ticks([3.0]) == ["3"]


def test_projections_are_the_share_of_r_that_a_name_says() -> None:
    X, y = paul_2016(40, 60, 5, 0)["train"]
    data = mipfs.Instance.from_arrays(X, np.asarray(y, dtype=float))
    for name, projections in (("approx-bss r/4", 4), ("approx-bss r/2", 8)):
        found = sketch._sketch_chooser(name)(data, 16, 1.0, 3)
        asked = select(data, "approx-bss", 16, projections=projections, seed=3, check=False)
        assert sorted(found) == sorted(set(asked.ids.tolist()))


def test_the_measures_selection_is_judged_against_each_rival_at_the_same_number_of_features() -> None:
    """Each at its own best C: the rivals' other C would turn the verdict."""
    values = {"kept": (0.9, 0.1), "l1": (0.7, 0.2), "rfe": (0.1, 0.95), "all": (0.5, 0.5)}
    rows: list[Row] = [
        {"part": "news", "class": k, "measure": "f1", "method": method, "weight": weight, "value": value + k / 100}
        | {"M": None if method == "all" else 50, "size": 50}
        for k in range(6)
        for method, both in values.items()
        for weight, value in zip((1.0, 10.0), both, strict=True)
    ]
    claim = measures_report._claim_against_rivals(rows)
    assert claim.verdict == "refined"
    assert "F1 at M = 50 less that of the SVM on the ℓ1-SVM's features, by class: 6 better" in claim.measured
    assert "+20.00 points [+20.00, +20.00] (confirmed)" in claim.measured
    assert "-5.00 points [-5.00, -5.00] (refuted)" in claim.measured


def test_a_thousandfold_is_judged_where_the_budget_is_largest() -> None:
    rows: list[Row] = [
        {"part": "solvers", "p": 9, "B": B, "seed": seed, "method": method, "seconds": seconds, "accuracy": 0.8}
        | {"upper": 1.0}
        for seed in range(6)
        for B, factor in ((2, 2.0), (20, 500.0))
        for method, seconds in (("prox-fgm", 1.0 + seed), ("mkl-fgm", factor * (1.0 + seed)))
    ]
    claim = tan2014_report._claim_solvers(rows)
    assert claim.verdict == "refined"
    assert "CPU seconds of MKL-FGM over PROX-FGM's at B = 20, by draw: 0 of 6 above 1,000" in claim.measured
