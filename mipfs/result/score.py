"""How well the classifier of a result does on labelled data."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs.data.frames import as_rows, is_frame
from mipfs.data.instance import Instance
from mipfs.errors import DataError, UsageError
from mipfs.measures import value
from mipfs.plumbing.arrays import Array
from mipfs.readers.labels import same_label
from mipfs.result.probability import has_probabilities, probabilities
from mipfs.result.result import Result

SCORES = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "precision": "precision",
    "recall": "recall",
    "f1": "f1",
    "roc_auc": "area under ROC",
    "average_precision": "average precision",
    "brier": "Brier score",
}
"""What is said of a classifier, and in which words; the Brier score only where there are probabilities."""


def signs_of(result: Result, X: Any, y: Any = None) -> Array:
    """The labels of rows as signs, +1 for the class that the result calls positive, (n,).

    Raises
    ------
    UsageError
        There are no labels, others than the result's, or more or fewer than rows.
    """
    X = as_rows(X)
    if y is None and isinstance(X, Instance):
        y = X.labels.of(X.y)
    elif y is None and is_frame(X) and result.label_column in {str(name) for name in X.columns}:
        y = X.iloc[:, [str(name) for name in X.columns].index(str(result.label_column))]
    if y is None:
        raise UsageError("there are no labels to compare with; give y")
    given = np.asarray(y)
    n = X.n_samples if isinstance(X, Instance) else _count_rows(result, X)
    if given.shape != (n,):
        raise UsageError(f"y has shape {given.shape} for {n} rows; give one label for each")
    negative, positive = (result.labels[side] for side in ("negative", "positive"))
    known = {label: 1.0 if same_label(positive, label) else -1.0 for label in np.unique(given.astype(object)).tolist()}
    strange = [label for label, sign in known.items() if sign < 0 and not same_label(negative, label)]
    if strange:
        raise UsageError(f"y holds the label {strange[0]!r}; the classifier knows {negative!r} and {positive!r}")
    return np.array([known[label] for label in given.tolist()], dtype=float)


def _count_rows(result: Result, X: Any) -> int:
    """How many rows there are; what a classifier cannot be used on is refused by it."""
    shape = getattr(X, "shape", ())
    return int(shape[0]) if isinstance(shape, tuple) and len(shape) == 2 else result.decision_function(X).size


def score(
    result: Result,
    data: Any,
    positive: Any = None,
    y: Array | None = None,
    values: Array | None = None,
    chances: Array | None = None,
) -> dict[str, Any]:
    """Accuracy and its relatives of the classifier; a ratio whose denominator is zero is None.

    `values` are decision values in place of the result's own, such as those of a scorecard, and `chances` what these
    say of the probability of the result's positive class.

    The positive class is the one that the result calls positive, or `positive`, the other one. The measure that a
    result was selected for is about the result's own, and left out for the other.

    Raises
    ------
    UsageError
        `positive` is neither of the two classes.
    """
    others = values is not None
    values = result.decision_function(data) if values is None else values
    signs = data.y if y is None else y
    found = values > 0
    truth = signs > 0
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
    recall = _ratio_or_none(tp, tp + fn)
    specificity = _ratio_or_none(tn, tn + fp)
    document: dict[str, Any] = {
        "schema": 1,
        "n_samples": len(truth),
        "labels": {"negative": negative, "positive": own},
        "accuracy": _ratio_or_none(tp + tn, len(truth)),
        "balanced_accuracy": None if recall is None or specificity is None else (recall + specificity) / 2,
        "precision": _ratio_or_none(tp, tp + fp),
        "recall": recall,
        "f1": _ratio_or_none(2 * tp, 2 * tp + fp + fn),
        "confusion": {"true_positive": tp, "false_negative": fn, "false_positive": fp, "true_negative": tn},
    }
    document |= _of_scores(-values if is_other else values, truth)
    if has_probabilities(result) and not others:
        chances = probabilities(result, values)
    if chances is not None:  # the same of either class
        document["brier"] = float(np.mean((chances - (signs > 0)) ** 2)) if truth.size else None
    if result.params.get("measure") is not None and not is_other:
        document["measure"] = _measured_value(result, signs, values)
    return document


def _of_scores(scores: Array, truth: npt.NDArray[np.bool_]) -> dict[str, Any]:
    """What the order of the scores is worth, by scikit-learn; None where a class is missing."""
    from sklearn.metrics import average_precision_score, roc_auc_score

    both = bool(truth.any() and not truth.all())
    return {
        "roc_auc": float(roc_auc_score(truth, scores)) if both else None,
        "average_precision": float(average_precision_score(truth, scores)) if both else None,
    }


def _measured_value(result: Result, y: Array, scores: Array) -> dict[str, Any]:
    """The measure that the features were selected for, on this data; None where it is not defined."""
    name = result.params["measure"]
    given = {key: result.params.get(key) for key in ("beta", "k")}
    try:
        found: float | None = value(name, y, scores, **given)
    except (DataError, UsageError):
        found = None
    return {"name": name, "value": found}


def _ratio_or_none(part: int, whole: int) -> float | None:
    return part / whole if whole else None
