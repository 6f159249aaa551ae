"""``mipfs verify``, ``predict`` and ``evaluate`` of what ``mipfs solve`` wrote of more than two classes."""

from __future__ import annotations

import csv
import dataclasses
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mipfs.errors import LabelError, UsageError

if TYPE_CHECKING:
    from mipfs.cli.verify import Asked, Reading
    from mipfs.data.instance import Instance
    from mipfs.result.documents import SavedClasses


def verify_classes(asked: Asked, document: Mapping[str, Any]) -> int:
    """Check every proof of several classes against the raw data, or that of the class which is named."""
    from mipfs.check.classes import check_class, check_classes
    from mipfs.check.tree import Report
    from mipfs.cli.errors import complain
    from mipfs.cli.output import write_json
    from mipfs.cli.text import say
    from mipfs.cli.verify import REJECTED, show_report
    from mipfs.report.visible import finite_or_none
    from mipfs.result.documents import ONE_PROOF, classes_of
    from mipfs.result.verification import claim_of

    found = classes_of(asked.file, document)
    odd = {"--subject-to": asked.subject_to, "--model": asked.model, "--positive": asked.reading.positive}
    given = [name for name, value in odd.items() if value is not None]
    if given:
        raise UsageError(f"{given[0]} is for two classes; leave it out")
    names = ["all classes"] if found.together is not None else [str(label) for label in found.classes]
    results = found.proofs
    try:
        instances = _instances(found, asked.reading)
        if asked.name is None:
            reports = check_classes(found.document, [claim_of(one) for one in results], instances)
        else:
            k = found.number_of(asked.name)
            if found.together is not None:
                raise UsageError(ONE_PROOF.format(name=asked.name))
            names, results = [asked.name], (found.results[k],)
            reports = [check_class(found.document, claim_of(results[0]), instances, k)]
    except LabelError as error:
        reports = [Report(False, f"its labels are not those of the data: {error.message}")]
    plain = [{k: finite_or_none(v) for k, v in dataclasses.asdict(one).items()} for one in reports]
    write_json({"schema": 1, "accepted": all(one.accepted for one in reports), "reports": plain}, asked.json)
    bad = [(name, one) for name, one in zip(names, reports, strict=False) if not one.accepted]
    if bad:
        complain(f"{asked.result_file}: rejected: {bad[0][0]}: {bad[0][1].reason}")
        return REJECTED
    if asked.json != "-" and not asked.quiet:
        for name, one, result in zip(names, reports, results, strict=True):
            say(f"{name}:")
            show_report(one, result)
            say("")
    return 0


def _instances(found: SavedClasses, reading: Reading) -> list[Instance]:
    """The data of every class against the rest, read as the results say."""
    from pathlib import Path

    from mipfs.cli.verify import as_found
    from mipfs.readers import read_classes
    from mipfs.readers.files import format_of

    first = found.results[0]
    recipe, given = as_found(first, first.scaling["kind"], reading.scale, reading.words)
    label = reading.label
    if label is None and format_of(Path(reading.data_file)) != "svmlight":
        label = first.label_column
    if label is not None:
        given["label"] = label
    return read_classes(reading.data_file, recipe, **given)


def predict_classes(file: str, data_file: str, label: str | None, scores: bool, json: str | None, quiet: bool) -> int:
    """Print the class of every row; with scores a table of the values of all classes."""
    from mipfs.cli.output import write_json
    from mipfs.lab.classes import OneVsRest
    from mipfs.lab.classes.judged import new_rows

    found = OneVsRest.load(file)
    values = found.decision_function(new_rows(found, data_file, label))
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
    from mipfs.report.visible import in_cell, visible

    if not heads:
        print("\n".join(visible(str(one)) for one in labels))
        return
    write = csv.writer(sys.stdout, lineterminator="\n")
    write.writerow(["label", *map(visible, heads)])
    write.writerows([in_cell(str(one)), *rest] for one, *rest in zip(labels, *columns, strict=True))


def evaluate_classes(
    file: str, data_file: str, label: str | None, positive: str | None, json: str | None, quiet: bool
) -> int:
    """Print accuracy, balanced accuracy, the mean F1 of the classes, and the confusion."""
    from mipfs.cli.output import write_json
    from mipfs.cli.text import show_pairs, show_table
    from mipfs.lab.classes import OneVsRest
    from mipfs.lab.classes.judged import SHARES, score

    if positive is not None:
        raise UsageError("--positive is for two classes; leave it out")
    found = OneVsRest.load(file)
    document = score(found, data_file, label)
    write_json(document, json)
    if json != "-" and not quiet:
        told = [(words, "undefined" if document[n] is None else f"{document[n]:.4f}") for n, words in SHARES.items()]
        show_pairs([("samples", str(document["n_samples"])), *told])
        pairs = zip(found.classes, document["confusion"], strict=True)
        show_table(("", *(f"predicted {one}" for one in found.classes)), [(f"is {c}", *map(str, r)) for c, r in pairs])
    return 0
