"""The page: one HTML file that needs nothing else, and that nothing in its data can make do anything.

Its policy lets one script run, the one that is in it, and nothing be fetched from anywhere.

Also here: a path, a ladder, and anything else that has a report, on a page.
"""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mipfs.errors import UsageError
from mipfs.lab.classes import OneVsRest
from mipfs.lab.page.lead import heading, of_path
from mipfs.lab.page.of_classes import classes_html
from mipfs.lab.page.of_result import Score, judged_html, result_html, ways
from mipfs.lab.page.parts import (
    PageCard,
    anchor,
    article,
    cards,
    chart_card,
    code,
    describe_unchecked,
    measured_card,
    pill,
    tiles,
    to_try,
)
from mipfs.lab.page.reproduce import NAMES, facts, problem_lines
from mipfs.lab.page.side_by_side import overview
from mipfs.lab.scorecard import Scorecard
from mipfs.lab.scorecard.judged import judged_table
from mipfs.lab.studies.bench import Bench
from mipfs.lab.studies.between import between_chart, between_table
from mipfs.lab.studies.charts import PLAIN, error_charts, ladder_chart, path_supports, value_charts
from mipfs.lab.studies.ladder import Comparison
from mipfs.lab.studies.path_report import BETWEEN, bought_table, error_of, folds_of
from mipfs.lab.studies.point_files import use_of
from mipfs.lab.studies.solution_path import PathPoint, SolutionPath
from mipfs.lab.studies.steps import place_text
from mipfs.plumbing import output_file
from mipfs.plumbing.declared import check_arguments, check_fields
from mipfs.report import figure
from mipfs.report.blocks import Chart, Curve, Detail, LineChart, Reported, Sentence, Table
from mipfs.report.numbers import list_names, number, percent, state_parameters, time_text
from mipfs.report.visible import escape_text
from mipfs.result.result import Result, Status

MOST_WEIGHTS = 200
"""Weights of the chosen point that are listed."""
NOTHING_PROVEN = "all of it, since nothing here carries a proof; solve the problem for a result that does"
OF_SEARCH = "that no other points are better, which is the word of the search, and its history; the rest is"
MOST_OPEN_POINTS = 8
"""Open points that are named."""


def _of_card(card: Scorecard) -> str:
    """What of a card the checkers do not prove."""
    return OF_SEARCH if card.joint is None else "the history of the search; the rest is"


def path_html(path: SolutionPath, scores: Sequence[Score] | None, detail: Detail, level: int) -> str:
    """What the page shows of a path, below its heading."""
    errors, charts = error_charts(path), value_charts(path)
    held_out = None if scores is None else _measures_chart(path, scores)
    seen = any(score.get("trained_on") for score in scores or ())
    best = path.best
    rows = None if best is None else _weights_table(best)
    choice = "" if best is None else f"Chosen: {place_text(best.place)}"
    return "".join(
        [
            _path_head(path),
            to_try(_path_ways(path)),
            cards(
                [
                    *(chart_card("", chart, is_wide=best is None) for chart in errors),
                    chart_card(f"Along the path, on {'the training' if seen else 'held-out'} data", held_out),
                    None if rows is None else PageCard(choice, f"{rows.html()}<p>To use it:</p>{code(use_of(path))}"),
                    *(chart_card("", chart) for chart in charts),
                    chart_card("", path_supports(path, detail), is_wide=True),
                    _bought_card(path),
                    _between_card(path),
                    PageCard("How to reproduce it", _path_again(path), is_wide=True),
                ],
                level,
            ),
        ]
    )


def _bought_card(path: SolutionPath) -> PageCard | None:
    """What a unit of a frontier's row bought."""
    table = None if path.row is None else bought_table(path)
    if path.row is None or table is None:
        return None
    said = "<p>On average, from one value to the next, at least and at most: proven, and no derivative.</p>"
    return PageCard(
        f"What a unit of {path.row.name} bought", f'{said}<div class="scroll">{table.html()}</div>', is_wide=True
    )


def _between_card(path: SolutionPath) -> PageCard | None:
    """How far from the best a set is between the points along C."""
    table, chart = between_table(path), between_chart(path)
    if table is None:
        return None
    shown = f'<div class="scroll">{table.html()}</div>' if chart is None else replace(chart, title="").html()
    return PageCard(
        "Between the points", f"<p>{escape_text(BETWEEN[0].upper() + BETWEEN[1:])}.</p>{shown}", is_wide=True
    )


def _path_head(path: SolutionPath) -> str:
    closed = sum(point.status is Status.OPTIMAL for point in path.points)
    empty = sum(point.status is Status.INFEASIBLE for point in path.points)
    n = len(path.points)
    said = f"{closed} of {n} points are proven optimal" + (
        f", {empty} {'has' if empty == 1 else 'have'} no selection that the rows allow" * bool(empty)
    )
    if path.interrupted:
        said += "; interrupted, these are the points that were reached"
    name = "s-good" if n and closed + empty == n and not path.interrupted else "s-open"
    word = "ALL CLOSED" if name == "s-good" else "OPEN"
    worst = max((point.gap for point in path.points if math.isfinite(point.gap)), default=math.inf)
    found = [
        ("points", str(n), f"along {', '.join(path.along)}"),
        ("proven optimal", str(closed), ""),
        *([("largest gap", percent(worst), "")] if math.isfinite(worst) else []),
    ]
    if path.best is not None:
        of = f"by {folds_of(path)}" + (", one standard error" if path.rule == "one-se" else "")
        found.append(("chosen", place_text(path.best.place), of))
        found.append(
            (
                f"validation {error_of(path)}",
                f"{path.best.error:.4f}",
                f"± {path.best.standard_error:.4f}, one standard error",
            )
        )
    found.append(("time", time_text(sum(point.seconds for point in path.points)), f"driver {path.driver}"))
    solved = (
        f'<p class="facts">Solved at every point: {escape_text(state_parameters(path.params, without=path.axes))}.</p>'
    )
    verdict = f'<p class="verdict">{pill(word, name)}{escape_text(of_path(path))}{escape_text(said)}.</p>'
    return f"{verdict}{tiles(found)}{solved}{describe_unchecked(_not_checked(path))}"


def _not_checked(path: SolutionPath) -> str:
    """What of a path stands beside what is proven and computed again."""
    history = "times, cuts, the seed and the command"
    if not any(point.errors for point in path.points):
        return history
    if all(point.fold_classifiers for point in path.points if point.errors) and path.fold is not None:
        return f"{history}; and that the folds' classifiers are the best of their folds, but with --recompute"
    return f"{history}; the validation errors and what they choose, but with --recompute"


def _path_ways(path: SolutionPath) -> str:
    """Which points are open, and what to try with the widest gap."""
    left = [point for point in path.points if point.status not in (Status.OPTIMAL, Status.RELAXED, Status.INFEASIBLE)]
    if not left:
        return ""
    names = "; ".join(f"{place_text(point.place)}, gap {percent(point.gap)}" for point in left[:MOST_OPEN_POINTS])
    more = f" and {len(left) - MOST_OPEN_POINTS} more" if len(left) > MOST_OPEN_POINTS else ""
    what = ways(max(left, key=lambda point: point.gap).result)
    return f"these points are open ({names}{more})" + (f"; {what}" if what else "")


def _weights_table(point: PathPoint) -> Table:
    rows = [(name, number(value)) for name, value in list(point.result.weights.items())[:MOST_WEIGHTS]]
    return Table(("feature", "weight"), [*rows, ("(intercept)", number(point.result.intercept))])


def _measures_chart(path: SolutionPath, scores: Sequence[Score]) -> LineChart | None:
    """Measures on held-out data for every point of a path over one axis; a table alone for two."""
    pairs = sorted(zip(path.points, scores, strict=True), key=lambda pair: tuple(pair[0].place.values()))
    pairs = [(point, score) for point, score in pairs if score]
    if not pairs:
        return None
    names = [("accuracy", "first"), ("f1", "second"), ("balanced_accuracy", "third")]
    one = len(path.axes) == 1
    x = [float(point.place[path.axis]) if one else float(k) for k, (point, _) in enumerate(pairs)]
    rows = [
        (place_text(p.place), *("-" if s[name] is None else f"{s[name]:.4f}" for name, _ in names)) for p, s in pairs
    ]
    return LineChart(
        "",
        x=x,
        curves=[Curve(name.replace("_", " "), [s[name] for _, s in pairs], role, percent=True) for name, role in names],
        x_label=path.axis if one else "points",
        before=f"{path.axis} = " if one else "point ",
        is_log=one and path.axis in ("C", "lambda") and min(x) > 0,
        note=f"{pairs[0][1]['n_samples']:,} samples of {pairs[0][1].get('source') or 'the test data'}.",
        table=Table(("point", *(name.replace("_", " ") for name, _ in names)), rows),
    )


def _path_again(path: SolutionPath) -> str:
    known = [] if path.command is None else [code(path.command)]
    if path.command is None:
        asked = [
            *(f"{NAMES.get(a, a)}={'...' if a == 'rows' else repr(path.params.get(a))}" for a in path.axes),
            *([f"folds={path.folds}"] if path.folds is not None else []),
            *([f"by={path.by!r}"] if path.by is not None else []),
            *(["one_se=True"] if path.rule == "one-se" else []),
        ]
        call = f"found = mipfs.path(problem, {', '.join(asked)}, driver={path.driver!r})"
        kind = path.points[0].result.scaling.get("kind") if path.points else "none"
        fixed = {name: value for name, value in path.params.items() if name not in path.axes}
        known = [code("\n".join([*problem_lines(fixed, kind), call]))]
    return "".join([*known, *(facts(path.points[0].result) if path.points else [])])


def comparison_html(comparison: Comparison, level: int) -> str:
    """What the page shows of a ladder, below its heading."""
    unfinished = [rung for rung in comparison.ladder if not rung.status.startswith(PLAIN)]
    finite = [rung for rung in comparison.ladder if math.isfinite(rung.value)]
    found = []
    if math.isfinite(comparison.incumbent):
        many = f"{len(comparison.selected)} features" if comparison.selected else ""
        found.append(("best classifier", number(comparison.incumbent), many))
    if finite:
        top = max(finite, key=lambda rung: rung.value)
        found += [("largest bound", number(top.value), top.name), ("gap", percent(top.gap), "")]
    found.append(("time", time_text(sum(rung.seconds for rung in comparison.ladder)), "all rungs"))
    if comparison.conflict:
        names = ", ".join(f"<strong>{escape_text(name)}</strong>" for name in comparison.conflict)
        said = f"{pill('INFEASIBLE', 's-bad')}No selection satisfies the rows. These contradict each other:"
        said = f'{said}</p><p class="conflict">{names}'
        ways_ = "drop or relax one of these rows"
    else:
        closed = not unfinished
        said = pill("ALL SOLVED" if closed else "OPEN", "s-good" if closed else "s-open")
        said += escape_text(f"{len(comparison.ladder) - len(unfinished)} of {len(comparison.ladder)} rungs are solved")
        if finite and math.isfinite(comparison.incumbent):
            most = percent(max(finite, key=lambda rung: rung.value).gap).removeprefix("<")
            said += escape_text(
                f"; together they prove that no choice is better than the one found by more than {most}"
            )
        said += "."
        limit = comparison.params.get("time_limit")
        names_ = ", ".join(f"{rung.name} ({rung.status})" for rung in unfinished)
        ways_ = (
            f"{names_}: more than {limit:g} s for each rung" if unfinished and isinstance(limit, (int, float)) else ""
        )
    features = list_names(comparison.selected) if comparison.selected else ""
    inner = [
        chart_card("", ladder_chart(comparison), is_wide=True),
        PageCard("Features of the best classifier", f"<p>{escape_text(features)}</p>", is_wide=True)
        if features
        else None,
        None if comparison.command is None else PageCard("How to reproduce it", code(comparison.command), is_wide=True),
    ]
    solved = f'<p class="facts">Solved: {escape_text(state_parameters(comparison.params))}.</p>'
    bare = describe_unchecked(NOTHING_PROVEN)
    return f'<p class="verdict">{said}</p>{tiles(found)}{solved}{bare}{to_try(ways_)}{cards(inner, level)}'


def reported_html(study: Reported, score: Score | None, level: int) -> str:
    """What the page shows of anything else that has a report, and of a card how it does on labelled data."""
    said = f'<p class="verdict">{escape_text(study.lead())}</p>' if study.lead() else ""
    parts: list[PageCard] = []
    for block in study.shown():
        if isinstance(block, Sentence) and not block.line.strip():
            continue
        inner = block.html()
        if isinstance(block, Sentence) and parts:  # a sentence is said of what stands above it
            parts[-1] = replace(parts[-1], html=parts[-1].html + inner)
        else:
            scrolled = inner if isinstance(block, Chart) else f'<div class="scroll">{inner}</div>'
            parts.append(PageCard("", scrolled, is_wide=True))
    judged = [] if score is None else [measured_card(_judged_parts(study, score), bool(score.get("trained_on")))]
    bare = describe_unchecked(_of_card(study) if isinstance(study, Scorecard) else NOTHING_PROVEN)
    return said + bare + cards([*parts[:2], *judged, *parts[2:]], level)


def _judged_parts(study: Reported, score: Score) -> list[str]:
    """How a card does on labelled data, and on others than those of training, whose totals it has, by total."""
    parts = [judged_html(score)]
    if isinstance(study, Scorecard) and "totals" in score and not score.get("trained_on"):
        parts.append(f'<div class="scroll">{judged_table(score["totals"], study.result.labels).html()}</div>')
    return parts


MOST_BYTES = 2_000_000
"""Bytes of a page."""
MOST_HALVINGS = 5
"""How often the detail may be halved until the page fits."""
KINDS = {
    Result: "Result",
    SolutionPath: "Path",
    Comparison: "Ladder of relaxations",
    OneVsRest: "Several classes",
    Bench: "Benchmark",
    Scorecard: "Scorecard",
}


@dataclass(frozen=True, eq=False)
class Item:
    """One result, path, ladder, or anything else with a report.

    Attributes
    ----------
    name : str, its heading
    study : Result, SolutionPath, Comparison, or another `Reported`
    score : mapping, sequence of mappings, or None
        On held-out data (`mipfs.result.score.score`); of a path one for every point, {} where it has no classifier.
    picture : Chart or None
        Of a result of two features (`mipfs.result.pair.pair_chart`).
    """

    name: str
    study: Reported
    score: Any = None
    picture: Chart | None = None

    def __post_init__(self) -> None:
        check_fields(self, "name", "study")


def html(items: Sequence[Item], title: str = "") -> str:
    """The page of one or several items.

    Parameters
    ----------
    items : sequence of Item
    title : str, of the page; by default what the only item found, or how many there are

    Returns
    -------
    str
        An HTML document below `MOST_BYTES` bytes: long traces and long lists are shown in less detail until it is.

    Raises
    ------
    UsageError
        No items, or too many for one page.
    """
    if not items:
        raise UsageError("a page needs at least one result")
    detail = Detail()
    for _ in range(MOST_HALVINGS):
        text = _page_html(items, detail, title)
        if len(text.encode()) <= MOST_BYTES:
            return text
        detail = detail.halve()
    raise UsageError(f"the page would be larger than {MOST_BYTES / 1e6:g} MB; give fewer results")


@check_arguments
def write(path: str | Path, items: Sequence[Item], title: str = "") -> int:
    """Write the page of `html` to a file, and return its size in bytes.

    Raises
    ------
    UsageError
        As `html`, or the file cannot be written; what stood there before is as it was.
    """
    content = html(items, title).encode()
    output_file.save([(Path(path), content)])
    return len(content)


def _page_html(items: Sequence[Item], detail: Detail, title: str) -> str:
    one = len(items) == 1
    named = [(k, item.name, item.study) for k, item in enumerate(items) if isinstance(item.study, Result)]
    together = overview(named, detail) if len(named) > 1 else ""
    headings = [title or heading(item.study, item.name) if one else item.name for item in items]
    parts = [
        article(k, name, _article_html(item, detail, 2 if one else 3), 1 if one else 2)
        for k, (item, name) in enumerate(zip(items, headings, strict=True))
    ]
    made = f" · {escape_text(items[0].name)}" if one and headings[0] != items[0].name else ""
    title = title or (items[0].name if one else f"{len(items)} results")
    links = "".join(f'<li><a href="#{anchor(k)}">{escape_text(item.name)}</a></li>' for k, item in enumerate(items))
    charts = " Charts can be read with a pointer, and with the arrow keys once they have the focus."
    charts *= any("<figure" in part for part in (together, *parts))
    top = "" if one else f'<h1>{escape_text(title)}</h1><nav aria-label="Results"><ul>{links}</ul></nav>'
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n{_content_security_policy()}\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape_text(title)} – "
        f"mipfs</title>\n<style>{figure.figure_style()}{_read_asset('page.css')}</style>\n</head>\n"
        '<body class="mipfs">\n<a class="skip" href="#main">Skip to the content</a>\n'
        f'<header><p class="made">mipfs: features selected with a proof{_kinds_text(items)}{made}</p>{top}</header>\n'
        f'<main id="main">{together}{"".join(parts)}</main>\n'
        f"<footer>The JSON that this page was made from has its numbers in full precision.{charts}</footer>\n"
        f"<script>{_read_asset('page.js')}</script>\n</body>\n</html>\n"
    )


def _kinds_text(items: Sequence[Item]) -> str:
    kinds = dict.fromkeys(KINDS.get(type(item.study), "Report") for item in items)
    return f" · {escape_text(', '.join(kinds).lower())}"


def _article_html(item: Item, detail: Detail, level: int) -> str:
    if isinstance(item.study, Result):
        score: Mapping[str, Any] | None = item.score
        return result_html(item.study, score, detail, level, item.picture)
    if isinstance(item.study, SolutionPath):
        return path_html(item.study, item.score, detail, level)
    if isinstance(item.study, OneVsRest):
        return classes_html(item.study, item.score, detail, level)
    if isinstance(item.study, Comparison):
        return comparison_html(item.study, level)
    return reported_html(item.study, item.score, level)


def _content_security_policy() -> str:
    """Nothing is fetched, and no other script than ours runs."""
    digest = base64.b64encode(hashlib.sha256(_read_asset("page.js").encode()).digest()).decode()
    rules = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; base-uri 'none'"
    return f'<meta http-equiv="Content-Security-Policy" content="{rules}; form-action \'none\'">'


def _read_asset(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")
