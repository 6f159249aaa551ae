"""A result on a page."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mipfs.lab.page.lead import of_score, plainly
from mipfs.lab.page.parts import (
    PageCard,
    cards,
    chart_card,
    describe_selected,
    lines,
    mark_code,
    measured_card,
    not_measured,
    size_words,
    status_pill,
    tiles,
    to_try,
)
from mipfs.lab.page.reproduce import reproduce
from mipfs.report.blocks import Alarm, Chart, Detail, Table
from mipfs.report.numbers import number, percent, time_text, with_asked
from mipfs.report.visible import escape_text
from mipfs.result.advice import advice_in_words, constant_words
from mipfs.result.charts import confusion_chart, gap_chart, presence_chart, supports_chart, weights_chart
from mipfs.result.decided import decided_blocks
from mipfs.result.result import Result, Status
from mipfs.result.score import SCORES
from mipfs.result.words import certificate_words, problem_words, rows_in_words, status_in_words

Score = Mapping[str, Any]
"""What `mipfs.result.score.score` says of a result on other data."""
MOST_ROWS = 200
"""Rows of the problem that are written out."""


def result_html(result: Result, score: Score | None, detail: Detail, level: int, picture: Chart | None = None) -> str:
    """What the page shows of a result, below its heading; `level` is that of the headings inside."""
    held_out = _held_out(result, score)
    return "".join(
        [
            head(result),
            to_try(ways(result)),
            cards(
                [
                    held_out or _missing_card(result),
                    chart_card("Selected features", _remove_title(weights_chart(result, detail.rows)), is_wide=True),
                    chart_card("The two features", _remove_title(picture), is_wide=True),
                    _proof_card(result, detail),
                    _decided_card(result),
                    chart_card("In all, in some, in none", presence_chart(result, detail.rows), is_wide=True),
                    chart_card("Near-optimal supports", supports_chart(result, detail), is_wide=True),
                    _problem_card(result),
                    PageCard("How to reproduce it", reproduce(result), is_wide=True),
                ],
                level,
            ),
        ]
    )


def head(result: Result) -> str:
    """Status, what it means, and what stands behind it."""
    conflict = ""
    if result.conflict:
        names = ", ".join(f"<strong>{escape_text(name)}</strong>" for name in result.conflict)
        conflict = f'<p class="conflict">{names}</p>'
    if words := constant_words(result):
        conflict += f'<p class="alarm">{escape_text(words)}</p>'
    return f'<p class="verdict">{status_pill(result.status)}{alarm(result)}{escape_text(plainly(result))}</p>{conflict}'


def alarm(result: Result) -> str:
    """A gap that was asked for and makes the status say little, beside it."""
    said = with_asked("", result.status.name, result.params.get("gap"))
    return f'<small class="alarm">{escape_text(said.removeprefix(", "))}.</small> ' if isinstance(said, Alarm) else ""


def _proof_card(result: Result, detail: Detail) -> PageCard:
    """The exact words, figures, what stands behind them, and how the run came there."""
    behind = mark_code(certificate_words(result))
    exact = status_in_words(result)
    said = "" if exact == plainly(result) else f"<p>{escape_text(exact)}</p>"
    chart = gap_chart(result, detail)
    drawn = "" if chart is None else replace(chart, title="Bound and incumbent against time").html()
    title = "The proof" if math.isfinite(result.bound) or result.status is Status.INFEASIBLE else "The run"
    certificate = f'<p class="certificate">Certificate: {behind}</p>'
    return PageCard(title, f"{said}{certificate}{_figure_tiles(result)}{drawn}", is_wide=True)


def _decided_card(result: Result) -> PageCard | None:
    """What the proof decides of single features."""
    known = decided_blocks(result)
    if not known:
        return None
    words = "Of all selections that are as good, or nearly: the features in every one, in none, and those left open."
    table = "".join(replace(block, title="").html() for block in known if isinstance(block, Table))
    return PageCard(
        "What the proof decides of the features", f'<p>{words}</p><div class="scroll">{table}</div>', is_wide=True
    )


def ways(result: Result) -> str:
    """What to try where the run did not come to its end."""
    if result.status is Status.INFEASIBLE:
        return "drop or relax one of these rows; without any one of them the others can be satisfied"
    if result.status is Status.NUMERICAL and not advice_in_words(result):
        return "scale standard, or a smaller C"
    return advice_in_words(result)


def _remove_title(chart: Any) -> Any:
    """A chart below a heading that says the same."""
    return None if chart is None else replace(chart, title="")


def _figure_tiles(result: Result) -> str:
    asked = result.params.get("gap")
    of = f"asked: {percent(asked)}" if isinstance(asked, (int, float)) else ""
    word = "" if result.bound_source == "dual" else "the solver's word"
    found = []
    if result.has_classifier:
        found.append(("objective", number(result.objective), ""))
    if math.isfinite(result.bound):
        found.append(("proven bound", number(result.bound), word))
    if math.isfinite(result.gap):
        found.append(("gap", percent(result.gap), of))
    if result.relaxed is not None and result.relaxed.get("upper") is not None:
        low, high = result.relaxed.get("lower"), result.relaxed["upper"]
        found.append(("relaxation", number(high), "" if low is None else f"at least {number(low)}"))
    if result.has_classifier:
        found.append(("selected", size_words(result), describe_selected(result)))
    found.append(("time", time_text(result.seconds), f"driver {result.driver}"))
    work = [(name, value) for name, value in result.counters.items() if value and name in ("nodes", "subproblems")]
    found += [(name, f"{value:,}", "") for name, value in work]
    return tiles(found)


def _held_out(result: Result, score: Score | None) -> PageCard | None:
    """Confusion and measures on data that was not trained on, and what validation said during the run.

    None where there is none.
    """
    parts = [] if score is None else [judged_html(score)]
    if result.validated is not None and isinstance(result.validated.get("error"), (int, float)):
        best = result.validated
        names_ = ", ".join(map(str, best.get("selected", ())))
        parts.append(
            f"<p>On the validation data the least error was {best['error']:.4f}, at iteration "
            f"{escape_text(str(best.get('iteration')))}, with {escape_text(names_)}.</p>"
        )
    return measured_card(parts, score is not None and bool(score.get("trained_on"))) if parts else None


def judged_html(score: Score) -> str:
    """Confusion and measures on labelled data, in a sentence, a chart and a table."""
    names = (str(score["labels"]["negative"]), str(score["labels"]["positive"]))
    values = [(words, score[name]) for name, words in SCORES.items() if name in score]
    if "measure" in score:
        values.insert(0, (f"{score['measure']['name']} (selected for)", score["measure"]["value"]))
    rows = [(name, "undefined" if value is None else f"{value:.4f}") for name, value in values]
    beside = confusion_chart(score, names).html() + Table(("measure", "value"), rows).html()
    return f'<p class="first">{escape_text(of_score(score))}</p><div class="beside">{beside}</div>'


def _missing_card(result: Result) -> PageCard | None:
    """How to get what a reader looks for first."""
    return not_measured("RESULT.json" if result.path is None else result.path.name) if result.has_classifier else None


def _problem_card(result: Result) -> PageCard:
    """The problem in words, and which rows bind."""
    rows = rows_in_words(result)
    table = ""
    if rows:
        has_sum = any(row.activity is not None for row in rows)
        names = ("row", "says", *(["at this selection"] if has_sum else []))
        body = []
        for row in rows[:MOST_ROWS]:
            origin = f' <small class="facts">({escape_text(row.origin)})</small>' if row.origin else ""
            said = '<span class="contradicts">contradicts the others</span>' if row.conflicts else ""
            cells = [
                f'<th scope="row">{escape_text(row.name)}</th>',
                f"<td>{escape_text(row.text)}{origin} {said}</td>",
            ]
            if has_sum:
                binds = ' <span class="binds">binds</span>' if row.binds else ""
                cells.append(f"<td>{'' if row.activity is None else f'{row.activity:g}'}{binds}</td>")
            body.append(f"<tr>{''.join(cells)}</tr>")
        head = "".join(f'<th scope="col">{name}</th>' for name in names)
        table = f'<div class="scroll"><table class="rows"><tr>{head}</tr>{"".join(body)}</table></div>'
        if len(rows) > MOST_ROWS:
            table += f'<p class="note">and {len(rows) - MOST_ROWS} rows more, all of them in the JSON</p>'
    extra = []
    for name, one in result.extra.items():
        value = one.get("value")
        known = isinstance(value, (int, float)) and not isinstance(value, bool)
        cost = f", which costs {one['cost']:g} each" if one.get("cost") else ""
        extra.append(f"extra variable {name}" + (f" = {value:g} at this selection" if known else "") + cost)
    if result.extra_cost is not None and result.has_classifier:
        extra.append(f"of the objective {result.extra_cost:.8g} is what the extra variables cost")
    return PageCard("The problem in words", lines([*problem_words(result), *extra]) + table, is_wide=True)
