"""Classifiers of more than two classes on a page."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from mipfs.check import phrases
from mipfs.lab.classes import OneVsRest
from mipfs.lab.classes.judged import SHARES
from mipfs.lab.classes.shown import bounds_of_classes, classes_table, weights_table
from mipfs.lab.page.parts import (
    PageCard,
    cards,
    chart_card,
    code,
    describe_unchecked,
    lines,
    mark_code,
    measured_card,
    not_measured,
    status_pill,
    tiles,
)
from mipfs.lab.page.reproduce import facts
from mipfs.proof.pair import sidecar_of
from mipfs.report.blocks import Detail, Table
from mipfs.report.numbers import number, percent, time_text
from mipfs.report.visible import escape_text
from mipfs.result.charts import weights_chart
from mipfs.result.result import Result, Status
from mipfs.result.words import certificate_words, problem_words, rows_in_words

MOST_CHARTS = 12
"""Classes whose weights are drawn; the table has all of them."""


def heading(found: OneVsRest) -> str:
    """The heading of a page about these that nobody gave a title."""
    of = found.classifiers[0].label_column
    count = f"{len(found.selected)} feature{'s' * (len(found.selected) != 1)}"
    how = (
        f"{count} for all {len(found.classes)} classes"
        if found.together
        else f"{count} in {len(found.classes)} classes"
    )
    return f"{of}: {how}" if of else how


def classes_html(found: OneVsRest, score: Mapping[str, Any] | None, detail: Detail, level: int) -> str:
    """What the page shows of classifiers of several classes, below its heading."""
    shown = [] if len(found.classes) > MOST_CHARTS else list(found.classifiers)
    said = f'<p class="verdict">{status_pill(found.status)}{escape_text(plainly(found))}</p>'
    return said + cards(
        [
            _held_out(found, score),
            *(_weights_card(one, detail) for one in shown),
            PageCard(
                "The weights of all classes", f'<div class="scroll">{weights_table(found).html()}</div>', is_wide=True
            ),
            _proof_card(found),
            _problem_card(found),
            PageCard("How to reproduce it", _reproduction_html(found), is_wide=True),
        ],
        level,
    )


def plainly(found: OneVsRest) -> str:
    """What was found, and how sure that is."""
    K = len(found.classes)
    rule = f"Each of the {K} classes has a classifier, and a row is of the class whose value is the largest."
    worst = max(one.gap for one in found.proofs)
    if not math.isfinite(worst):
        return f"{rule} What was found is not proven to be near the best."
    most = re.sub("^<", "", percent(worst))
    first = "" if found.status is Status.OPTIMAL else "This is the best that was found, and not proven to be the best. "
    if found.together is not None:
        return f"{first}{rule} It is proven that no allowed choice for all of them is better by more than {most}."
    return f"{first}{rule} It is proven of each that no allowed choice of features is better by more than {most}."


def _held_out(found: OneVsRest, score: Mapping[str, Any] | None) -> PageCard:
    """The confusion and shares on other data, or how to get them."""
    if score is None:
        return not_measured(found.file or "RESULT.json")
    confusion, n = score["confusion"], score["n_samples"]
    right = sum(row[k] for k, row in enumerate(confusion))
    where = f" of {score['source']}" if score.get("source") else ""
    share = f" ({100 * right / n:.1f}%)" if n else ""
    names = list(map(str, found.classes))
    cells = [(name, *map(str, row)) for name, row in zip(names, confusion, strict=True)]
    table = Table(("is / predicted", *names), cells, left=1)
    values = [(words, "undefined" if score[key] is None else f"{score[key]:.4f}") for key, words in SHARES.items()]
    parts = f'<div class="scroll">{table.html()}</div>{Table(("measure", "value"), values).html()}'
    said = f'<p class="first">{escape_text(f"Right on {right:,} of {n:,} samples{where}{share}.")}</p>'
    return measured_card([f'{said}<div class="beside">{parts}</div>'], bool(score.get("trained_on")))


def _weights_card(result: Result, detail: Detail) -> PageCard | None:
    """The weights of one class."""
    chart = weights_chart(result, detail.rows)
    title = f"{result.labels['positive']} against the rest"
    return None if chart is None else chart_card(title, replace(chart, title=""))


def _proof_card(found: OneVsRest) -> PageCard:
    """Figures, every class's own, and what stands behind them."""
    figures = [
        ("objective", number(found.objective), "the sum over the classes"),
        ("proven bound", number(found.bound), ""),
        ("gap", percent(found.gap), ""),
        ("time", time_text(sum(one.seconds for one in found.proofs)), f"driver {found.proofs[0].driver}"),
    ]
    first = found.proofs[0].certificate
    if found.together is None and first is not None:
        behind = f"one a class, in {escape_text(str(first['file']))}; <code>mipfs verify</code> checks them."
    elif first is None and found.file is not None:
        behind = f"in {escape_text(sidecar_of(Path(found.file)).name)}; <code>mipfs verify</code> checks it."
    else:
        behind = mark_code(certificate_words(found.proofs[0]))
    each = "" if found.together is not None else f'<div class="scroll">{classes_table(found).html()}</div>'
    said = f'<p class="certificate">Certificate: {behind}</p>{describe_unchecked("times, the driver and the command")}'
    return PageCard("The proof", f"{tiles(figures)}{each}{said}", is_wide=True)


def _problem_card(found: OneVsRest) -> PageCard:
    """The problem of every class in words; of a shared support that of all."""
    first = found.classifiers[0]
    free_of = replace(first, params={**first.params, "weight_bounds": None})
    told = problem_words(free_of)[:-1]  # the last one says which of two classes is positive
    if found.together is not None:
        M = found.together.params.get("M")
        free = None if M is None else M - found.bias
        told = [
            "One selection holds for all classes: the sum of their objectives is minimised.",
            phrases.as_sentence(phrases.selection(free, f"{first.n_features} features", (), ())),
            *(["Every class has an intercept, which is penalised as a weight of the scaled data is."] * found.bias),
        ]
        told += [f"Row {row.name}: {row.text}." for row in rows_in_words(found.together) if row.name != "M"]
    told += bounds_of_classes(found)
    if found.class_weight:
        told.append(phrases.as_sentence(f"class weights: {phrases.class_weights(found.class_weight.items())}"))
    return PageCard("The problem in words", lines(told), is_wide=True)


def _reproduction_html(found: OneVsRest) -> str:
    """Commands, data and versions."""
    parts = [] if found.command is None else [code(found.command)]
    if found.file is not None:
        one = f"{found.file}#{found.classes[0]}"
        checks = [f"mipfs verify {found.file} DATA", f"mipfs predict {found.file} NEW"]
        parts += [
            "<p>Its check, its use, and those of one class:</p>",
            code("\n".join([*checks, f"mipfs report '{one}'"])),
        ]
    return "".join([*parts, *facts(found.proofs[0])])
