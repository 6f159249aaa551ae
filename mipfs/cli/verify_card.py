"""``mipfs verify`` of a scorecard: the result inside, and all that the card says beside it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mipfs.errors import LabelError, UsageError
from mipfs.report.numbers import family_words, with_asked

if TYPE_CHECKING:
    from mipfs.check.card import CardReport
    from mipfs.cli.checks import VerifyRequest
    from mipfs.result.result import Result


def verify_card(asked: VerifyRequest, document: Mapping[str, Any]) -> int:
    """Check a card against the data of its result, and print it with what is proven of it."""
    from mipfs.check.card import CardReport
    from mipfs.cli.checks import REJECTED
    from mipfs.cli.errors import complain
    from mipfs.cli.output import write_json
    from mipfs.result import saved_card

    if asked.name is not None:
        raise UsageError(f"{asked.file} holds a scorecard, which has no parts with names; leave #{asked.name} out")
    document, result = saved_card.load(asked.file)
    try:
        report = _check_card(asked, document, result)
    except LabelError as error:
        if asked.reading.label is not None or asked.reading.positive is not None:
            raise
        report = CardReport(False, f"its labels are not those of the data: {error.message}")
    write_json({"schema": 1} | _as_json_value(dataclasses.asdict(report)), asked.json)
    if not report.accepted:
        complain(f"{asked.file}: rejected: {report.reason}")
        return REJECTED
    if asked.json != "-" and not asked.quiet:
        _show(report, document, result)
    return 0


def _check_card(asked: VerifyRequest, document: Mapping[str, Any], result: Result) -> CardReport:
    from mipfs.cli.checks import data_of, other_recipe, rows_of
    from mipfs.cli.options import parse_params
    from mipfs.result import verification

    reading = asked.reading
    data = data_of(result, reading.data_file, reading.scale, reading.label, reading.positive, reading.words)
    rows = rows_of(result, data, asked.subject_to, asked.model, parse_params(asked.params))
    report = verification.verify_card(document, result, data, rows, verbose=not asked.quiet, jobs=asked.jobs)
    inside = report.result
    differs = (*inside.differs, *other_recipe(result, reading.data_file))
    return dataclasses.replace(report, result=dataclasses.replace(inside, differs=differs))


def _as_json_value(value: Any) -> Any:
    """What JSON has of a report."""
    from mipfs.report.visible import finite_or_none

    if isinstance(value, Mapping):
        return {name: _as_json_value(one) for name, one in value.items()}
    return [_as_json_value(one) for one in value] if isinstance(value, list | tuple) else finite_or_none(value)


def _subject_of_bound(report: CardReport) -> str:
    """What the bound is about."""
    if report.joint is None:
        return "the word of the search, not proven"
    return f"proven, for every card of {family_words(report.joint, report.within)}"


def _show_signed(points: int) -> str:
    return f"{points:+d}" if points else "0"


def _show(report: CardReport, document: Mapping[str, Any], result: Result) -> None:
    """Print the card, its totals, what is proven of its features, and what was recomputed of the card."""
    from mipfs.cli.checks import show_report
    from mipfs.cli.output import Alarm, number, percent, say, show_pairs, show_table
    from mipfs.result.saved_card import condition, exact

    lines = [
        (
            one["feature"],
            condition(one["kind"], one["origin"], one["unit"], one["threshold"]),
            _show_signed(one["points"]),
        )
        for one in document["card"]
    ]
    show_table(("feature", "condition", "points"), lines, title="Scorecard", left=2)
    positive, negative = result.labels["positive"], result.labels["negative"]
    say(f"\na total above {exact(report.threshold)} is {positive}, another {negative}")
    say("")
    ends = [(exact(row["from"]), exact(row["to"])) for row in report.totals]
    rates = [
        (low if low == high else f"{low} to {high}", str(row["decision"]), str(row["samples"]), str(row["positives"]))
        for (low, high), row in zip(ends, report.totals, strict=True)
    ]
    heads = ("total", "decision", "samples", f"labelled {positive}")
    show_table(heads, rates, title="Totals in the training data", left=2)
    say("\nthe features:")
    if report.version > 1:
        show_report(report.result, result)
    else:
        pairs = [*(("problem" if k == 0 else "", one) for k, one in enumerate(report.result.statement))]
        pairs += [("differs", Alarm(one)) for one in report.result.differs]
        pairs += [("certificate", Alarm("none: a card of the first version has none, so they are not proven"))]
        show_pairs([*pairs, ("objective", f"{number(report.result.objective)}  (recomputed)")])
    say("\nthe points:")
    always = [("constant", Alarm(f"every sample of these data is called {report.always}"))]
    show_pairs(
        [
            ("card", f"accepted, by rule {report.version} of scoring"),
            ("status", with_asked(report.status, report.status, report.asked)),
            ("objective", f"{number(report.objective)}  (recomputed)"),
            ("bound", f"{number(report.bound)}  ({_subject_of_bound(report)})"),
            ("gap", f"{percent(report.gap)}  (of that bound)"),
            ("error", f"{report.error:.2%} of these data  (recomputed)"),
            ("area under ROC", f"{report.roc_auc:.4f} on these data  (recomputed)"),
            *(always if report.always is not None else []),
            ("checked", f"{report.seconds:.2f} s"),
            *(("not checked", one) for one in report.unchecked),
        ]
    )
