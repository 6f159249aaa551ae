"""The page: what stands on it, that it stands alone, that it stays small, and that no name breaks out of it."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import itertools
import json
import math
import re
from pathlib import Path
from typing import Any

import pytest

import mipfs
from mipfs.errors import UsageError
from mipfs.lab import page
from mipfs.lab.page import lead, reproduce
from mipfs.report.blocks import ReportBlock, Reported, Sentence, Table, Typed
from mipfs.report.numbers import number, percent
from mipfs.result.result import Result, Status
from mipfs.result.score import score
from mipfs.result.words import certificate_words, rows_in_words, status_in_words
from tests.html_tree import Tree
from tests.lab.page import page_cases as cases


def tree_of(*items: page.Item) -> Tree:
    text = page.html(items)
    assert len(text.encode()) < page.document.MOST_BYTES
    tree = Tree(text)
    assert not tree.wrong
    assert not tree.handlers, "nothing is fetched and no attribute runs a script"
    assert [kind for kind, _ in tree.scripts].count("None") == 1
    assert max(tree.ids.values()) == 1
    assert tree.tags["h1"] == 1
    levels = [int(level) for level in re.findall(r"<h(\d)>", text)]
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels)), "no level is left out"
    return tree


def charts(tree: Tree) -> list[Any]:
    return [json.loads(content) for kind, content in tree.scripts if kind == "application/json"]


def test_a_closed_run() -> None:
    result = cases.closed()
    measured = {**score(result, cases.credit()), "source": "credit.csv"}
    tree = tree_of(page.Item("credit", result, measured))
    said = " ".join(tree.texts)
    for words in (
        "OPTIMAL",
        f"No allowed selection has an objective below {number(result.bound)}",
        number(result.objective),
        percent(result.gap),
        "Minimise ½‖w‖² + C Σ max(0, 1 − m_i), C = ",
        "at most 5 of 12 features; always income",
        "This set is one of",
        "How to reproduce it",
        result.data_sha256,
        "predicted no",
        f"{measured['accuracy']:.4f}",
        str(measured["confusion"]["true_positive"]),
    ):
        assert words in said, words
    assert "What to try" not in said
    for name in result.selected:
        assert name in said
    weights, gap, presence, near = charts(tree)
    assert gap["x"] == [record.seconds for record in result.trace]
    assert [c["name"] for c in gap["curves"]] == ["incumbent", "bound", "gap"]
    assert gap["curves"][0]["y"] == [r.objective if math.isfinite(r.objective) else None for r in result.trace]
    assert gap["curves"][1]["y"] == [r.bound if math.isfinite(r.bound) else None for r in result.trace]
    scale = result.scaling["scale"]
    assert {bar["name"]: bar["value"] for bar in weights["bars"]} == {
        name: result.weights[name] * scale[name] for name in result.selected
    }
    found = result.near_optimal
    assert found is not None
    assert {bar["name"]: bar["value"] for bar in presence["bars"]} == dict(found["share"])
    for j, one in enumerate(found["supports"]):
        column = {near["rows"][i] for i in range(len(near["rows"])) if near["cells"][i][j] == 1}
        assert column == set(one["selected"])


@pytest.mark.slow
def test_a_table_stands_behind_every_chart() -> None:
    for item in (cases.closed(), cases.path(), cases.ladder(), cases.long(3000)):
        text = page.html([page.Item("x", item)])
        figures = re.findall(r"<figure.*?</figure>", text, re.DOTALL)
        assert len(figures) >= 1
        for one in figures:
            assert '<details class="behind">' in one
            assert re.search(r'<div class="area" role="img" aria-label="[^"]+"', one) or "bars" in one


def test_open_and_infeasible_and_empty_runs_say_what_to_try() -> None:
    opened = tree_of(page.Item("x", cases.long(200)))
    said = " ".join(opened.texts)
    assert "What to try:" in said
    assert "more time (the gap fell from" in said
    assert "A better selection may exist, but none below" in said
    assert "before the run stopped" in said
    result = cases.infeasible()
    assert result.status is Status.INFEASIBLE
    said = " ".join(tree_of(page.Item("x", result)).texts)
    assert "No selection satisfies the rows. These contradict each other:" in said
    assert said.count("contradicts the others") == len(result.conflict) == 2
    assert "drop or relax one of these rows" in said
    said = " ".join(tree_of(page.Item("x", cases.nothing())).texts)
    assert "The time limit ended the run before any classifier was found." in said
    assert "raise" in said or "more time" in said


@pytest.mark.parametrize("status", list(Status))
@pytest.mark.parametrize("reason", list(mipfs.StopReason))
def test_every_status_has_words(status: Status, reason: mipfs.StopReason) -> None:
    for result in (cases.closed(), cases.nothing()):
        found = dataclasses.replace(result, status=status, stop_reason=reason)
        if status in (Status.OPTIMAL, Status.FEASIBLE) and not found.has_classifier:
            continue
        assert status.name in tree_of(page.Item("x", found)).texts


def test_a_plain_sentence_and_held_out_data_come_before_the_proof() -> None:
    result = cases.closed()
    measured = {**score(result, cases.credit()), "source": "credit.csv"}
    text = page.html([page.Item("credit.json", result, measured)])
    size = len(result.selected)
    assert f"<h1>repaid: the best {size} of 12 features with income</h1>" in text
    assert "<h1>What we chose</h1>" in page.html([page.Item("credit.json", result)], title="What we chose")
    most = percent(result.gap).removeprefix("<")
    assert f"It is proven that no allowed choice of features is better by more than {most}." in text
    places = [text.index(f"<h2>{part}</h2>") for part in ("On held-out data", "Selected features", "The proof")]
    assert places == sorted(places)
    counts = measured["confusion"]
    right = counts["true_positive"] + counts["true_negative"]
    assert f"Right on {right} of 200 samples of credit.csv" in text
    assert "Not measured yet." in page.html([page.Item("credit.json", result)])
    by_them = dataclasses.replace(result, bound_source="solver")
    assert "It is proven" not in page.html([page.Item("x", by_them)])
    opened = page.html([page.Item("x", cases.long(200))])
    assert "not proven to be the best" in opened


def test_time_begins_at_zero_and_what_came_before_the_first_record_is_said() -> None:
    from mipfs.report.figure import figure

    result = cases.closed()
    records = [dataclasses.replace(one, seconds=1.0 + k) for k, one in enumerate(result.trace)]
    late = dataclasses.replace(result, seconds=records[-1].seconds, trace=mipfs.result.result.Trace(records))
    share = 1.0 / late.seconds
    text = figure(cases_chart(late))
    assert ('<path class="idle"' in text) == (share >= 0.04)
    few = dataclasses.replace(late, seconds=2.0, trace=mipfs.result.result.Trace(records[:2]))
    assert "before the first bound" in figure(cases_chart(few))
    assert ">0<" in figure(cases_chart(few))


def test_no_more_is_said_than_was_proven() -> None:
    result = cases.closed()
    held = {"kind": "tree", "bound": None, "gap": 0.1, "file": "r.cert.npz", "sha256": "0"}
    assert "proves no bound" in certificate_words(dataclasses.replace(result, certificate=held))
    empty = dataclasses.replace(cases.infeasible(), certificate=held)
    assert "proves that no selection is allowed" in certificate_words(empty)
    assert "not saved" in certificate_words(result)
    cut = dataclasses.replace(result, certificate={**held, "bound": result.bound - 1.0})
    assert "less than the run found" in certificate_words(cut)
    full = dataclasses.replace(result, certificate={**held, "bound": result.bound * (1 - 1e-11)})
    assert "less than" not in certificate_words(full)
    assert "none was saved" in certificate_words(dataclasses.replace(result, claim=None))
    theirs = dataclasses.replace(result, bound_source="solver", claim=None)
    assert "the word of the solver" in certificate_words(theirs)
    assert "by the word of the solver" in status_in_words(theirs)
    stopped = dataclasses.replace(result, status=Status.RELAXED, stop_reason=mipfs.StopReason.TIME_LIMIT)
    assert "not solved out: The time limit ended the run" in status_in_words(stopped)
    assert "no bound was proven" in status_in_words(dataclasses.replace(stopped, bound=-math.inf))


@pytest.mark.slow
def test_thousands_of_weights_and_rows_are_cut_and_say_so() -> None:
    names = [f"word {k}" for k in range(20_000)]
    weights = {name: math.sin(k + 1) for k, name in enumerate(names)}
    few = {name: weights[name] for name in names[:3]}
    rows = tuple(
        {"name": f"r{k}", "terms": few if k else weights, "lb": None, "ub": 1.0, "origin": ""} for k in range(300)
    )
    wide = dataclasses.replace(
        cases.closed(), selected=tuple(names), weights=weights, columns=dict.fromkeys(names, 0), rows=rows
    )
    said = " ".join(tree_of(page.Item("x", wide)).texts)
    for words in ("1000 of 20,000 weights", "The 60 largest of 20000", "(20000 terms) <= 1", "and 101 rows more"):
        assert words in said, words
    assert len(wide._repr_html_()) < 250_000
    assert "<script" not in wide._repr_html_()


def test_groups_are_named_beside_their_features() -> None:
    from mipfs.atoms.groups import Groups

    data = mipfs.read(cases.INSTANCES / "wdbc.svm", scale="standard")
    groups = {f"set {k}": list(data.feature_names[k : k + 4]) for k in range(0, 28, 4)}
    result = mipfs.solve(mipfs.Problem(data, atoms=Groups(data, groups), M=2, C=0.01))
    assert len(result.weights) == 8
    assert ", ".join(result.selected) in " ".join(tree_of(page.Item("g", result)).texts)


def test_which_rows_bind() -> None:
    result, data = cases.closed(), cases.credit()
    sigma = dict.fromkeys(result.selected, 1)
    found = {row.name: row for row in rows_in_words(result)}
    assert len(found) == len(data.rows) + 1
    for row in data.rows:
        total = sum(a * sigma.get(name, 0) for name, a in row.terms.items())
        assert found[row.name].activity == total
        assert found[row.name].binds == (total in (row.lb, row.ub))
    assert found["M"].binds == (len(result.selected) == 5)


def test_a_path() -> None:
    path = cases.path()
    scores = [{**score(point.result, cases.credit()), "source": "t"} for point in path.points]
    tree = tree_of(page.Item("p", path, scores))
    errors, held_out, value, gap, grid = charts(tree)
    assert value["x"] == [2.0, 3.0, 4.0, 5.0]
    assert value["curves"][0]["y"] == [point.objective for point in path.points]
    assert value["curves"][1]["y"] == [point.bound for point in path.points]
    assert value["curves"][2]["y"] == [point.gap for point in path.points]
    assert gap["curves"][0]["y"] == [max(1e-6, point.gap) for point in path.points]
    assert errors["curves"][0]["y"] == [point.error for point in path.points]
    assert held_out["curves"][0]["y"] == [one["accuracy"] for one in scores]
    for j, point in enumerate(path.points):
        assert {grid["rows"][i] for i in range(len(grid["rows"])) if grid["cells"][i][j]} == set(point.selected)
    assert path.best is not None
    assert f"Chosen: M = {path.best.value}" in " ".join(tree.texts)


@pytest.mark.slow
def test_a_path_over_two_axes_and_one_with_open_points() -> None:
    problem = mipfs.Problem(cases.credit())
    both = mipfs.path(problem, C=[0.1, 1.0], M=[2, 3])
    said = " ".join(tree_of(page.Item("p", both)).texts)
    assert "Objective and bound along M, C = 0.1" in said
    assert "Objective and bound along M, C = 1" in said
    folded = mipfs.path(problem, C=[0.1, 1.0], M=[2, 3], folds=2)
    errors = charts(tree_of(page.Item("p", folded)))[0]
    assert [curve["name"] for curve in errors["curves"]] == ["C = 0.1", "C = 1"]
    for curve, C in zip(errors["curves"], (0.1, 1.0), strict=True):
        assert curve["y"] == [point.error for point in folded.points if point.place["C"] == C]
    stopped = mipfs.path(problem, lam=[0.1, 1.0, 10.0], iteration_limit=1)
    said = " ".join(tree_of(page.Item("p", stopped)).texts)
    assert "along lambda" in said
    assert "these points are open" in said or "3 of 3 points are proven optimal" in said


def test_a_ladder() -> None:
    ladder = cases.ladder()
    tree = tree_of(page.Item("k", ladder))
    (bars,) = charts(tree)
    assert {bar["name"]: bar["value"] for bar in bars["bars"]} == {rung.name: rung.value for rung in ladder.ladder}
    said = " ".join(tree.texts)
    assert "3 of 3 rungs are solved" in said
    assert "solved without the rows and forced features" in said
    assert ", ".join(ladder.selected) in said
    none = dataclasses.replace(ladder, conflict=("a", "b"), incumbent=math.inf, selected=())
    assert "These contradict each other:" in " ".join(tree_of(page.Item("k", none)).texts)


def test_several_side_by_side() -> None:
    results = [cases.closed(), mipfs.solve(mipfs.Problem(cases.credit(), C=0.1)), cases.infeasible()]
    items = [page.Item(f"run {k}", one) for k, one in enumerate(results)]
    tree = tree_of(*items, page.Item("path", cases.path()))
    said = " ".join(tree.texts)
    assert "4 results" in said
    assert "asked gap" not in said
    looser = dataclasses.replace(results[0], params={**results[0].params, "gap": 0.02})
    said = " ".join(tree_of(page.Item("a", results[0]), page.Item("b", looser)).texts)
    assert "asked gap" in said
    assert "2%" in said
    assert "Side by side" in said
    gaps, features = charts(tree)[:2]
    assert [curve["name"] for curve in gaps["curves"]] == ["run 0", "run 1"]
    for curve, result in zip(gaps["curves"], results, strict=False):
        for record in result.trace:
            at = gaps["x"].index(record.seconds)
            assert curve["y"][at] == pytest.approx(max(1e-6, record.gap), rel=1e-5)
    for j, result in enumerate(results[:2]):
        column = {features["rows"][i] for i in range(len(features["rows"])) if features["cells"][i][j]}
        assert column == set(result.selected)


def test_names_cannot_break_out() -> None:
    result = cases.hostile()
    measured = {**score(cases.closed(), cases.credit()), "labels": result.labels, "source": cases.EVIL}
    other = dataclasses.replace(result, params={**result.params, "C": cases.EVIL})
    ladder = dataclasses.replace(cases.ladder(), selected=(cases.EVIL,), command=cases.EVIL)
    path = dataclasses.replace(
        cases.path(),
        points=tuple(dataclasses.replace(p, result=dataclasses.replace(result)) for p in cases.path().points),
    )
    tree = tree_of(
        page.Item(cases.EVIL, result, measured), page.Item("b", other), page.Item("k", ladder), page.Item("p", path)
    )
    assert tree.tags["img"] == 0
    assert cases.EVIL in tree.texts


@pytest.mark.slow
def test_a_long_run_is_a_small_page() -> None:
    result = cases.long(100_000)
    text = page.html([page.Item("long", result)])
    assert len(text.encode()) < 1_000_000
    assert "100,000 records, drawn from the" in text
    gap = charts(Tree(text))[1]
    exact = {record.seconds: record for record in result.trace}
    for k, second in enumerate(gap["x"]):
        assert gap["curves"][0]["y"][k] == exact[second].objective
        assert gap["curves"][1]["y"][k] == exact[second].bound
    assert gap["x"][0] == result.trace[0].seconds
    assert gap["x"][-1] == result.trace[-1].seconds
    some = cases.long(10_000)
    many = page.html([page.Item(f"run {k}", some) for k in range(7)])
    assert 500_000 < len(many.encode()) <= page.document.MOST_BYTES


def test_first_moments_do_not_squeeze_the_rest() -> None:
    result = cases.long(2000)
    records = [dataclasses.replace(result.trace[0], objective=1e9, bound=-1e9), *result.trace[1:]]
    chart = cases_chart(dataclasses.replace(result, trace=mipfs.result.result.Trace(records)))
    assert chart.limits[1] < 1000
    assert "stands in the table" in chart.note
    assert cases_chart(result).limits[0] < 21
    assert "stands in the table" not in cases_chart(result).note


def cases_chart(result: Result) -> Any:
    from mipfs.result.charts import gap_chart

    return gap_chart(result)


def test_the_policy_names_the_only_script() -> None:
    text = page.html([page.Item("x", cases.closed())])
    scripts = [content for kind, content in Tree(text).scripts if kind == "None"]
    digest = base64.b64encode(hashlib.sha256(scripts[0].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in text
    assert "default-src 'none'" in text
    assert not re.search(r"https?://", text)


def test_the_same_result_gives_the_same_bytes(tmp_path: Path) -> None:
    result = cases.closed()
    result.save(tmp_path / "r.json")
    size = page.write(tmp_path / "a.html", [page.Item("x", result)])
    page.write(tmp_path / "b.html", [page.Item("x", dataclasses.replace(Result.load(tmp_path / "r.json")))])
    first, second = (tmp_path / "a.html").read_bytes(), (tmp_path / "b.html").read_bytes()
    assert len(first) == size
    assert first == second


def test_anything_with_a_report_has_a_page() -> None:
    class Study(Reported):
        def blocks(self) -> list[ReportBlock]:
            return [Sentence("what was measured")]

    assert "what was measured" in tree_of(page.Item("bench", Study())).texts


def test_sentences_stand_below_what_they_are_about_and_commands_are_code() -> None:
    class Study(Reported):
        def blocks(self) -> list[ReportBlock]:
            table = Table(("a", "b"), [("1", "2")])
            return [table, Sentence(""), Sentence("about it"), Typed("mipfs x <y>", "\nto use it: "), table]

        def lead(self) -> str:
            return "One sentence & no more."

    text = page.html([page.Item("bench", Study())])
    assert text.count("<section") == 2
    assert "One sentence &amp; no more." in text
    assert "<p>to use it:</p><pre><code>mipfs x &lt;y&gt;</code></pre>" in text
    assert Study().summary().splitlines()[-4:-1] == ["", "to use it: mipfs x <y>", "  a  b"]


def test_what_cannot_be_shown_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="at least one result"):
        page.html([])
    with pytest.raises(UsageError, match="cannot be written"):
        page.write(tmp_path / "none" / "page.html", [page.Item("x", cases.closed())])
    wide = dataclasses.replace(cases.closed(), data_sha256="x" * 2_100_000)
    with pytest.raises(UsageError, match="larger than 2 MB; give fewer results"):
        page.html([page.Item("x", wide)])


@pytest.mark.parametrize(
    "stated",
    [
        {"M": 2, "forced_in": ("income",)},
        {"M": 2, "forced_in": ("income", "inquiries"), "forced_out": ("loan",)},
        {"M": 2, "class_weight": "balanced", "weight_bounds": {"income": (-0.3, None)}},
        {"M": 3, "weight_rows": [({"income": 1.0, "age": 1.0}, 0.0, 0.0)], "lam": 0.5, "loss": "logistic"},
    ],
    ids=["forced", "all-given", "weighted-bounded", "rows"],
)
def test_the_lines_of_python_state_the_whole_problem(stated: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    data = cases.credit()
    result = mipfs.solve(mipfs.Problem(data, C=2.0, **stated), gap=1e-3)
    monkeypatch.setattr(mipfs, "read", lambda *_, **__: data)
    names: dict[str, Any] = {}
    exec(reproduce.python(result), names)
    assert names["result"].params == result.params
    assert names["result"].selected == result.selected
    assert names["result"].objective == result.objective


def test_a_heading_does_not_call_the_best_what_was_given() -> None:
    data = cases.credit()
    one = mipfs.solve(mipfs.Problem(data, C=2.0, M=2, forced_in=("income",)), gap=1e-3)
    both = mipfs.solve(mipfs.Problem(data, C=2.0, M=2, forced_in=("income", "inquiries")), gap=1e-3)
    assert "best 2 of 12 features with income" in lead.heading(one, "")
    assert "best" not in lead.heading(both, "")
    assert "were given" in lead.plainly(both)
    assert "It is proven" in lead.plainly(one)
