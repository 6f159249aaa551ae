"""How well classifiers of more than two classes do on labelled data."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mipfs.data.against_rest import weigh_classes
from mipfs.data.instance import Instance, Labels
from mipfs.data.unknown_words import Unknown
from mipfs.lab.classes.one_vs_rest import OneVsRest
from mipfs.readers import read_new
from mipfs.readers.labels import KnownLabels
from mipfs.result.prediction import classifier_inputs, of_known_words

SHARES = {"accuracy": "accuracy", "balanced_accuracy": "balanced accuracy", "mean_f1": "mean f1"}
"""What is said of all classes, and in which words."""


def new_rows(
    found: OneVsRest, data_file: str, label: str | None, known: KnownLabels | None = None, unknown: Unknown = "refuse"
) -> Instance:
    """New rows with what the classifier of any class looks at; `known` takes their labels."""
    looked = [classifier_inputs(one) for one in found.classifiers]
    names = tuple(dict.fromkeys(name for used, _ in looked for name in used))
    first = found.classifiers[0]
    options: dict[str, Any] = {"label": label, "remembered": first.label_column, "recipe": first.recipe}
    rows = read_new(data_file, names=names, n_features=looked[0][1], labels=known, **options)
    for one in found.classifiers if unknown == "none" else ():
        rows = of_known_words(one, rows)
    return rows


def rows_of_class(
    found: OneVsRest, name: str, data_file: str, label: str | None, unknown: Unknown = "refuse"
) -> Instance:
    """Labelled rows for the classifier of one class against the rest."""
    known = KnownLabels(found.classes)
    data = new_rows(found, data_file, label, known, unknown)
    labels = Labels(**found.named(name).labels)
    place = [str(one) for one in found.classes].index(name)
    return replace(data, y=np.where(known.codes == place, 1.0, -1.0), labels=labels)


def score(found: OneVsRest, data_file: str, label: str | None, unknown: Unknown = "refuse") -> dict[str, Any]:
    """Accuracy, the mean of the classes' recall and of their F1 (of those that are met), and the confusion.

    Parameters
    ----------
    data_file : a file, or a data frame
    label : the column of labels; by default that of the training data
    unknown : what a word is that training did not see, as of `Result.decision_function`

    Returns
    -------
    dict
        ``confusion[i][j]``: samples of class i that are called j.
    """
    known = KnownLabels(found.classes)
    data = new_rows(found, data_file, label, known, unknown)
    truth = known.codes
    guessed = found.decision_function(data).argmax(axis=1)
    K = len(found.classes)
    confusion = np.zeros((K, K), dtype=int)
    np.add.at(confusion, (truth, guessed), 1)
    hits, there, said = np.diag(confusion), confusion.sum(axis=1), confusion.sum(axis=0)
    met = there > 0
    f1 = 2.0 * hits / np.maximum(there + said, 1)
    return {
        "schema": 1,
        "n_samples": int(truth.size),
        "classes": list(found.classes),
        "accuracy": float(hits.sum() / max(truth.size, 1)),
        "balanced_accuracy": float(np.mean(hits[met] / there[met])) if met.any() else None,
        "mean_f1": float(np.mean(f1[met])) if met.any() else None,
        "trained_on": _is_training(found, data, known),
        "confusion": confusion.tolist(),
    }


def _is_training(found: OneVsRest, data: Instance, known: KnownLabels) -> bool:
    """Whether these are the rows that the classifiers were found on."""
    signs = [np.where(known.codes == k, 1.0, -1.0) for k in range(len(found.classes))]
    each = [replace(data, y=y, labels=Labels("", one)) for y, one in zip(signs, found.classes, strict=True)]
    digest: str = found.classifiers[0].data_sha256
    return weigh_classes(each, found.class_weight)[0].sha256 == digest
