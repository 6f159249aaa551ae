"""``mipfs evaluate``: how well the classifier of a result does on labelled data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mipfs.cli.options import DataFile, Json, Label, Positive, Quiet, ResultFile, Scale, Seed

if TYPE_CHECKING:
    from mipfs.data.instance import Instance
    from mipfs.result.result import Result


def evaluate(
    result_file: ResultFile,
    data_file: DataFile,
    scale: Scale = None,
    label: Label = None,
    positive: Positive = None,
    json: Json = None,
    quiet: Quiet = False,
    seed: Seed = 0,
) -> int:
    """Print accuracy, confusion, precision, recall, F1."""
    from mipfs.cli.output import check_target, write_json
    from mipfs.data.instance import Labels
    from mipfs.readers import read_new
    from mipfs.result.result import Result

    check_target(json, result_file, data_file)
    result = Result.load(result_file)
    # --scale and --positive change nothing here: the classifier is on the user's scale and knows its labels.
    names, labels = tuple(result.weights), Labels(**result.labels)
    data = read_new(
        data_file,
        names=names,
        n_features=result.n_features,
        labels=labels,
        label=label,
        remembered=result.label_column,
    )
    document = score(result, data)
    if json is not None:
        write_json(document, json)
    if json != "-" and not quiet:
        _show(document)
    return 0


def score(result: Result, data: Instance) -> dict[str, Any]:
    """Accuracy and its relatives of the classifier; a ratio whose denominator is zero is None.

    The positive class is the one that the result calls positive.
    """
    found = result.decision_function(data) > 0
    truth = data.y > 0
    tp, fn = int((found & truth).sum()), int((~found & truth).sum())
    fp, tn = int((found & ~truth).sum()), int((~found & ~truth).sum())
    recall, specificity = _ratio(tp, tp + fn), _ratio(tn, tn + fp)
    document: dict[str, Any] = {
        "schema": 1,
        "n_samples": len(truth),
        "labels": {"negative": result.labels["negative"], "positive": result.labels["positive"]},
        "accuracy": _ratio(tp + tn, len(truth)),
        "balanced_accuracy": None if recall is None or specificity is None else (recall + specificity) / 2,
        "precision": _ratio(tp, tp + fp),
        "recall": recall,
        "f1": _ratio(2 * tp, 2 * tp + fp + fn),
        "confusion": {"true_positive": tp, "false_negative": fn, "false_positive": fp, "true_negative": tn},
    }
    if result.params.get("measure") is not None:
        document["measure"] = _measure(result, data)
    return document


def _measure(result: Result, data: Instance) -> dict[str, Any]:
    """The measure that the features were selected for, on this data; None where it is not defined."""
    from mipfs.errors import DataError, UsageError
    from mipfs.measures import value

    name, given = result.params["measure"], {key: result.params.get(key) for key in ("beta", "k")}
    try:
        found: float | None = value(name, data.y, result.decision_function(data), **given)
    except (DataError, UsageError):
        found = None
    return {"name": name, "value": found}


def _show(document: dict[str, Any]) -> None:
    from mipfs.cli.text import show_pairs, show_table

    names = ("accuracy", "balanced_accuracy", "precision", "recall", "f1")
    values = [(name, "undefined" if document[name] is None else f"{document[name]:.4f}") for name in names]
    if "measure" in document:
        found = document["measure"]
        values += [(found["name"], "undefined" if found["value"] is None else f"{found['value']:.4f}")]
    values = list(dict(values).items())  # F1 once
    show_pairs([("samples", str(document["n_samples"])), *((n.replace("_", " "), v) for n, v in values)])
    negative, positive = (str(document["labels"][name]) for name in ("negative", "positive"))
    cells = {name: str(count) for name, count in document["confusion"].items()}
    show_table(
        ("", f"predicted {negative}", f"predicted {positive}"),
        [
            (f"is {negative}", cells["true_negative"], cells["false_positive"]),
            (f"is {positive}", cells["false_negative"], cells["true_positive"]),
        ],
    )


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None
