"""How well the classifier of a result does on labelled data."""

from __future__ import annotations

from typing import Any

from mipfs.data.instance import Instance
from mipfs.errors import DataError, UsageError
from mipfs.measures import value
from mipfs.readers.labels import same_label
from mipfs.result.result import Result


def score(result: Result, data: Instance, positive: Any = None) -> dict[str, Any]:
    """Accuracy and its relatives of the classifier; a ratio whose denominator is zero is None.

    The positive class is the one that the result calls positive, or `positive`, the other one. The measure that a
    result was selected for is about the result's own, and left out for the other.

    Raises
    ------
    UsageError
        `positive` is neither of the two classes.
    """
    found = result.decision_function(data) > 0
    truth = data.y > 0
    negative, own = (result.labels[side] for side in ("negative", "positive"))
    is_other = positive is not None and not same_label(own, positive)
    if is_other:
        if not same_label(negative, positive):
            raise UsageError(f"positive = {positive!r} is not one of the labels {negative!r} and {own!r}; name one")
        found, truth, negative, own = ~found, ~truth, own, negative
    tp = int((found & truth).sum())
    fn = int((~found & truth).sum())
    fp = int((found & ~truth).sum())
    tn = int((~found & ~truth).sum())
    recall = _ratio(tp, tp + fn)
    specificity = _ratio(tn, tn + fp)
    document: dict[str, Any] = {
        "schema": 1,
        "n_samples": len(truth),
        "labels": {"negative": negative, "positive": own},
        "accuracy": _ratio(tp + tn, len(truth)),
        "balanced_accuracy": None if recall is None or specificity is None else (recall + specificity) / 2,
        "precision": _ratio(tp, tp + fp),
        "recall": recall,
        "f1": _ratio(2 * tp, 2 * tp + fp + fn),
        "confusion": {"true_positive": tp, "false_negative": fn, "false_positive": fp, "true_negative": tn},
    }
    if result.params.get("measure") is not None and not is_other:
        document["measure"] = _measure(result, data)
    return document


def _measure(result: Result, data: Instance) -> dict[str, Any]:
    """The measure that the features were selected for, on this data; None where it is not defined."""
    name = result.params["measure"]
    given = {key: result.params.get(key) for key in ("beta", "k")}
    try:
        found: float | None = value(name, data.y, result.decision_function(data), **given)
    except (DataError, UsageError):
        found = None
    return {"name": name, "value": found}


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None
