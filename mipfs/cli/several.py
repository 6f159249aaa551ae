"""``mipfs verify``, ``predict`` and ``evaluate`` of paths and of more than two classes."""

from __future__ import annotations

import csv
import dataclasses
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from mipfs.check.several import DocumentReport, PartReport
from mipfs.check.tree import Report
from mipfs.data.unknown_words import Unknown
from mipfs.errors import DataError, LabelError, UsageError
from mipfs.report.visible import escape_invisible, finite_or_none, in_cell

if TYPE_CHECKING:
    from mipfs.cli.checks import ReadingOptions, VerifyRequest
    from mipfs.data.instance import Instance
    from mipfs.result.class_results import ClassResults

Read = TypeVar("Read")


def verify_path(asked: VerifyRequest, document: Mapping[str, Any]) -> int:
    """Check every point of a path against the raw data, or the one that is named, and what stands beside the proofs."""
    from mipfs.check.paths import check_path
    from mipfs.cli.checks import data_of, given_rows, other_recipe
    from mipfs.result import documents
    from mipfs.result.result import Result
    from mipfs.result.verification import at_work

    document, archive, content = documents.beside(asked.file, "certificate")
    saved = documents.path_of(asked.file, document)
    if asked.name is not None:
        saved.number_of(asked.name)
    elif "rows" in document["axis"] and (asked.subject_to or asked.model):
        raise UsageError(
            f"the points have different rows; name one, such as {asked.file}#{documents.name_of(saved.places[-1])}"
        )
    _require_archive(document, archive, content)
    if not saved.results:
        raise UsageError(f"{asked.file}: there is nothing to verify: the path has no points")
    first = Result.from_json(dumps(saved.results[0]), path=asked.file)
    data = _read_or_why(lambda: data_of(first, *dataclasses.astuple(asked.reading)), asked)
    if isinstance(data, str):
        return _show_found(asked, DocumentReport(False, data))
    given = given_rows(first, data, asked)
    with at_work(asked.jobs, not asked.quiet) as workers:
        found = check_path(document, archive, content, data, asked.name, given, workers)
    differs = tuple(("differs", line) for line in other_recipe(first, asked.reading.data_file))
    found = dataclasses.replace(found, said=(*found.said, *differs))
    if found.accepted and asked.recompute:
        from mipfs.lab.studies.point_files import fold_in
        from mipfs.lab.studies.recomputed import recompute_folds

        found = recompute_folds(found, document, data, fold_in(archive, content))
    return _show_found(asked, found)


def verify_classes(asked: VerifyRequest, document: Mapping[str, Any]) -> int:
    """Check every proof of several classes against the raw data, or that of the class which is named."""
    from mipfs.check.classes import check_classes
    from mipfs.result import documents
    from mipfs.result.verification import at_work

    odd = {"--subject-to": asked.subject_to, "--model": asked.model, "--positive": asked.reading.positive}
    given = [name for name, value in odd.items() if value is not None]
    if given:
        raise UsageError(f"{given[0]} is for two classes; leave it out")
    document, archive, content = documents.beside(asked.file, "archive")
    saved = documents.classes_of(asked.file, document)
    if asked.name is not None:
        saved.number_of(asked.name)
    _require_archive(document, archive, content)
    instances = _read_or_why(lambda: _read_instances(saved, asked.reading), asked)
    if isinstance(instances, str):
        return _show_found(asked, DocumentReport(False, instances))
    with at_work(asked.jobs, not asked.quiet) as workers:
        found = check_classes(document, archive, content, instances, asked.name, workers)
    return _show_found(asked, found)


def refuse_unproven(asked: VerifyRequest, document: Mapping[str, Any]) -> int:
    """Say of what carries no proof what can be verified in its place."""
    from mipfs.result import documents

    kind = documents.UNPROVEN[documents.kind_of(document)]
    raise UsageError(
        f"{asked.file}: nothing in {kind} carries a proof; solve the problem with "
        "`mipfs solve MODEL DATA --json r.json` and verify that"
    )


def _require_archive(document: Mapping[str, Any], archive: Path, content: bytes | None) -> None:
    """Say where the certificates are that a document needs."""
    from mipfs.result.verification import MISSING

    if document.get("certificate") is None:
        raise UsageError(MISSING)
    if content is None:
        raise DataError("the sidecar of the document is missing", "keep it beside the JSON", path=archive)


def _read_or_why(read: Callable[[], Read], asked: VerifyRequest) -> Read | str:
    """The data, or why its labels are not those of the document."""
    try:
        return read()
    except LabelError as error:
        if asked.reading.label is not None or asked.reading.positive is not None:
            raise
        return f"its labels are not those of the data: {error.message}"


def _show_found(asked: VerifyRequest, found: DocumentReport) -> int:
    """Write and show what was found; the exit code."""
    from mipfs.cli.checks import REJECTED
    from mipfs.cli.errors import complain
    from mipfs.cli.output import write_json

    write_json(_report_for_json(found), asked.json)
    if not found.accepted:
        complain(f"{asked.result_file}: rejected: {found.reason}")
        return REJECTED
    if asked.json != "-" and not asked.quiet:
        _show(found)
    return 0


def _report_for_json(found: DocumentReport) -> dict[str, Any]:
    """What was found, for --json; of one result alone its report."""
    plain = [
        {"name": one.name, **one.shown}
        | {k: finite_or_none(v) for k, v in dataclasses.asdict(one.report or Report(True, "")).items()}
        for one in found.parts
    ]
    head = {"schema": 1, "accepted": found.accepted, "reason": found.reason}
    alone = plain[0] if len(plain) == 1 else {}
    return alone | head | {"reports": plain, "said": [*map(list, found.said)], "unchecked": list(found.unchecked)}


def _show(found: DocumentReport) -> None:
    """Print every result that was checked, the points of a path in a table; then the document."""
    from mipfs.cli.checks import show_report
    from mipfs.cli.output import Alarm, say, show_pairs
    from mipfs.result.result import Result

    if len(found.parts) > 1 and found.parts[0].shown:
        _show_points(found.parts)
    else:
        for one in found.parts:
            say(f"{one.name}:")
            if one.report is not None:
                bare = dataclasses.replace(one.report, unchecked=(), differs=())
                show_report(bare, Result.from_json(dumps(one.result)))
            if one.shown:
                said = ", ".join(f"{what} {words}" for what, words in one.shown.items() if words)
                show_pairs([("on the path", said)])
            say("")
    reports = [one.report for one in found.parts if one.report is not None]
    differs = dict.fromkeys(line for report in reports for line in report.differs)
    pairs = [*found.said, *(("differs", line) for line in differs)]
    shown = [(name, Alarm(line) if name == "differs" else line) for name, line in pairs]
    show_pairs([("document", "accepted"), *shown, *(("not checked", line) for line in found.unchecked)])


def _show_points(parts: Sequence[PartReport]) -> None:
    """Print a line for every point of a path."""
    from mipfs.cli.checks import MOST_LINES
    from mipfs.cli.output import number, percent, show_pairs, show_table
    from mipfs.result.gap import relative_gap

    stated = next((one for one in parts if one.report is not None), None)
    if stated is not None and stated.report is not None:
        lines_of_it = stated.report.statement[:MOST_LINES]
        show_pairs([(f"problem, {stated.name}" if k == 0 else "", line) for k, line in enumerate(lines_of_it)])
    lines = []
    for one in parts:
        objective = math.inf if one.report is None else one.report.objective
        bound = float(one.shown["bound"] or "nan")
        proven = number(bound) if one.shown["bound"] else "-"
        gap = percent(relative_gap(objective, bound))
        lines.append((one.name, one.shown["status"].lower(), number(objective), proven, gap, one.shown["error"]))
    header = ("point", "status", "objective", "bound", "gap", "error")
    show_table(header, lines, title="The points: every objective recomputed, every bound proven", left=2)


def _read_instances(found: ClassResults, reading: ReadingOptions) -> list[Instance]:
    """The data of every class against the rest, read as the results say."""
    from mipfs.cli.checks import as_found
    from mipfs.readers import read_classes
    from mipfs.readers.files import format_of

    first = found.classifiers[0]
    recipe, given = as_found(first, first.scaling["kind"], reading.scale, reading.words)
    label = reading.label
    if label is None and format_of(Path(reading.data_file)) != "svmlight":
        label = first.label_column
    if label is not None:
        given["label"] = label
    return read_classes(reading.data_file, recipe, **given)


def predict_classes(
    file: str,
    data_file: str,
    label: str | None,
    scores: bool,
    json: str | None,
    quiet: bool,
    unknown: Unknown = "refuse",
) -> int:
    """Print the class of every row; with scores a table of the values of all classes."""
    from mipfs.cli.output import write_json
    from mipfs.lab.classes import OneVsRest
    from mipfs.lab.classes.judged import new_rows

    found = OneVsRest.load(file)
    values = found.decision_function(new_rows(found, data_file, label, unknown=unknown))
    labels = found.labels_of(values).tolist()
    named = [str(one) for one in found.classes]
    more = {"classes": named, "scores": values.tolist()} if scores else {}
    write_json({"schema": 1, "labels": labels, **more}, json)
    if json != "-" and not quiet:
        heads = [f"score of {one}" for one in found.classes] if scores else []
        print_labels(labels, heads, values.T.tolist())
    return 0


def print_labels(labels: Sequence[Any], heads: Sequence[str], columns: Sequence[Sequence[float]]) -> None:
    """Print labels, one a line, or a table of them and of further columns, as CSV."""
    if not heads:
        print("\n".join(escape_invisible(str(one)) for one in labels))
        return
    write = csv.writer(sys.stdout, lineterminator="\n")
    write.writerow(["label", *map(escape_invisible, heads)])
    write.writerows([in_cell(str(one)), *rest] for one, *rest in zip(labels, *columns, strict=True))


def evaluate_classes(
    file: str,
    data_file: str,
    label: str | None,
    positive: str | None,
    json: str | None,
    quiet: bool,
    unknown: Unknown = "refuse",
) -> int:
    """Print accuracy, balanced accuracy, the mean F1 of the classes, and the confusion."""
    from mipfs.cli.output import show_pairs, show_table, write_json
    from mipfs.lab.classes import OneVsRest
    from mipfs.lab.classes.judged import SHARES, score

    if positive is not None:
        raise UsageError("--positive is for two classes; leave it out")
    found = OneVsRest.load(file)
    document = score(found, data_file, label, unknown)
    write_json(document, json)
    if json != "-" and not quiet:
        told = [(words, "undefined" if document[n] is None else f"{document[n]:.4f}") for n, words in SHARES.items()]
        show_pairs([("samples", str(document["n_samples"])), *told])
        pairs = zip(found.classes, document["confusion"], strict=True)
        show_table(("", *(f"predicted {one}" for one in found.classes)), [(f"is {c}", *map(str, r)) for c, r in pairs])
    return 0
