"""``mipfs verify``, ``predict`` and ``evaluate`` of what ``mipfs solve`` wrote of more than two classes."""

from __future__ import annotations

import csv
import dataclasses
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mipfs.errors import LabelError, UsageError

if TYPE_CHECKING:
    from mipfs.data.instance import Instance
    from mipfs.lab.classes import OneVsRest


def verify_classes(
    found: OneVsRest,
    result_file: str,
    data_file: str,
    odd: Mapping[str, Any],
    reading: tuple[Any, str | None, str | None],
    json: str | None,
    quiet: bool,
) -> int:
    """Check every proof against the raw data; `odd` are options for two classes, `reading` scale, label and words."""
    from mipfs.check.tree import Report
    from mipfs.cli.errors import complain
    from mipfs.cli.output import write_json
    from mipfs.cli.text import say
    from mipfs.cli.verify import REJECTED, show_report
    from mipfs.report.visible import finite_or_none

    given = [name for name, value in odd.items() if value is not None]
    if given:
        raise UsageError(f"{given[0]} is for two classes; leave it out")
    try:
        reports = found.verify(_instances(found, data_file, *reading))
    except LabelError as error:
        reports = [Report(False, f"its labels are not those of the data: {error.message}")]
    names = ["all classes"] if found.together is not None else [str(label) for label in found.classes]
    if json is not None:
        plain = [{k: finite_or_none(v) for k, v in dataclasses.asdict(one).items()} for one in reports]
        write_json({"schema": 1, "accepted": all(one.accepted for one in reports), "reports": plain}, json)
    bad = [(name, one) for name, one in zip(names, reports, strict=False) if not one.accepted]
    if bad:
        complain(f"{result_file}: rejected: {bad[0][0]}: {bad[0][1].reason}")
        return REJECTED
    if json != "-" and not quiet:
        for name, one in zip(names, reports, strict=True):
            say(f"{name}:")
            show_report(one)
            say("")
    return 0


def _instances(found: OneVsRest, data_file: str, scale: Any, label: str | None, words: str | None) -> list[Instance]:
    """The data of every class against the rest, read as the results say."""
    from pathlib import Path

    from mipfs.cli.options import recipe_options
    from mipfs.data.recipe import Recipe
    from mipfs.readers import read_classes
    from mipfs.readers.files import format_of

    first = found.classifiers[0]
    kind = first.scaling["kind"]
    if scale is not None and scale.value != kind:
        raise UsageError(f"--scale {scale.value}: the result is about data with scale {kind!r}; leave the option out")
    recipe = Recipe() if first.recipe is None else Recipe.of_document(first.recipe)
    given = {"scale": kind, **recipe_options(None, None, None, None, words)}
    named = first.label_column if label is None else label
    if named is not None and format_of(Path(data_file)) != "svmlight":
        given["label"] = named
    return read_classes(data_file, recipe, **given)


def _new(found: OneVsRest, data_file: str, label: str | None, every: Any = None) -> Instance:
    """New rows, with what any class looks at."""
    from mipfs.readers import read_new
    from mipfs.result.prediction import inputs

    looked = [inputs(one) for one in found.classifiers]
    names = tuple(dict.fromkeys(name for used, _ in looked for name in used))
    first = found.classifiers[0]
    return read_new(
        data_file, names=names, n_features=looked[0][1], labels=every, label=label, remembered=first.label_column,
        recipe=first.recipe,
    )  # fmt: skip


def predict_classes(
    found: OneVsRest, data_file: str, label: str | None, scores: bool, json: str | None, quiet: bool
) -> int:
    """Print the class of every row; with scores a table of the values of all classes."""
    from mipfs.cli.output import write_json
    from mipfs.report.visible import in_cell, visible

    values = found.decision_function(_new(found, data_file, label))
    labels = found.labels_of(values).tolist()
    if json is not None:
        named = [str(one) for one in found.classes]
        more = {"classes": named, "scores": values.tolist()} if scores else {}
        write_json({"schema": 1, "labels": labels, **more}, json)
    if json == "-" or quiet:
        return 0
    if not scores:
        print("\n".join(visible(str(one)) for one in labels))
        return 0
    write = csv.writer(sys.stdout, lineterminator="\n")
    write.writerow(["label", *(visible(f"score of {one}") for one in found.classes)])
    write.writerows([in_cell(str(one)), *rest] for one, rest in zip(labels, values.tolist(), strict=True))
    return 0


def evaluate_classes(
    found: OneVsRest, data_file: str, label: str | None, positive: str | None, json: str | None, quiet: bool
) -> int:
    """Print accuracy, balanced accuracy, the mean F1 of the classes, and the confusion."""
    import numpy as np

    from mipfs.cli.output import write_json
    from mipfs.cli.text import show_pairs, show_table
    from mipfs.readers.labels import Known

    if positive is not None:
        raise UsageError("--positive is for two classes; leave it out")
    known = Known(found.classes)
    data = _new(found, data_file, label, known)
    truth = known.codes
    guessed = found.decision_function(data).argmax(axis=1)
    K = len(found.classes)
    confusion = np.zeros((K, K), dtype=int)
    np.add.at(confusion, (truth, guessed), 1)
    hits, there, said = np.diag(confusion), confusion.sum(axis=1), confusion.sum(axis=0)
    met = there > 0
    f1 = 2.0 * hits / np.maximum(there + said, 1)
    shares = {
        "accuracy": float(hits.sum() / max(truth.size, 1)),
        "balanced_accuracy": float(np.mean(hits[met] / there[met])) if met.any() else None,
        "mean_f1": float(np.mean(f1[met])) if met.any() else None,
    }
    if json is not None:
        head = {"schema": 1, "n_samples": int(truth.size), "classes": list(found.classes)}
        write_json({**head, **shares, "confusion": confusion.tolist()}, json)
    if json != "-" and not quiet:
        told = [(name.replace("_", " "), "undefined" if v is None else f"{v:.4f}") for name, v in shares.items()]
        show_pairs([("samples", str(truth.size)), *told])
        rows = [(f"is {one}", *map(str, row)) for one, row in zip(found.classes, confusion.tolist(), strict=True)]
        show_table(("", *(f"predicted {one}" for one in found.classes)), rows)
    return 0
