"""From the user's two labels to -1 and +1."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs.data.bounds import WeightBounds
from mipfs.data.instance import Labels
from mipfs.errors import DataError, LabelError, MoreClassesError
from mipfs.plumbing.arrays import Array
from mipfs.readers.cells import BOOLEANS
from mipfs.readers.columns import Table

WORDS = frozenset(
    {
        *("yes", "y", "true", "t", "positive", "pos", "present", "case", "event"),
        *("bad", "default", "defaulted", "fraud", "fraudulent", "spam", "churn", "churned", "attack"),
        *("malignant", "sick", "ill", "disease", "diseased", "abnormal", "dead", "died"),
        *("anomaly", "outlier", "defect", "defective", "failure", "failed", "fault"),
    }
)
"""Words for the class that one looks for, in any case: of two classes of words the one that is here is +1."""


@dataclass
class EveryClass:
    """Asks for the classes one against the rest, in place of which one is +1; `map_labels` says which there are.

    Attributes
    ----------
    classes : list of K labels, in sorted order
    codes : (n,) ndarray, the class of every sample
    bounds : bounds on the weights by the names of `mipfs.data.bounds.by_class`
    """

    classes: list[Any] = field(default_factory=list)
    codes: Any = None
    bounds: WeightBounds = field(default_factory=dict)

    def labels(self, k: int) -> Labels:
        """What the two classes of the k-th problem are called."""
        return Labels(f"not {self.classes[k]}", self.classes[k])

    def signs(self, k: int) -> Array:
        """y of the k-th problem."""
        return np.where(self.codes == k, 1.0, -1.0)


def map_labels(
    table: Table, positive: Any, path: Path, counts: npt.NDArray[np.int64] | None = None
) -> tuple[Array, Labels]:
    """Map two distinct labels: `positive` is +1; else the larger number, else a word of `WORDS`, else the rarer class.

    Of two words of `WORDS`, or none, in as many rows it is the last in sorted order.

    Parameters
    ----------
    table : Table with labels
    positive : str or number, optional
    counts : (n,) rows that every label of the table stands for, where it holds each label once

    Returns
    -------
    (n,) array of -1.0 and +1.0, and what the two classes are called

    Raises
    ------
    LabelError
        One class or more than two (with the line of the third), or `positive` is not one of the two.
    """
    assert table.labels is not None
    classes, first, codes = np.unique(table.labels, return_index=True, return_inverse=True)
    shown = [repr(_plain_label(value)) for value in classes[:5]]
    if len(classes) == 0:
        raise DataError("no samples", "give at least one sample of each class", path=path)
    if len(classes) == 1:
        raise LabelError(f"one class only: every label is {shown[0]}", "give samples of both classes", path=path)
    if isinstance(positive, EveryClass):
        if len(classes) > MOST_CLASSES:
            message = f"{len(classes)} different labels are hardly classes"
            raise LabelError(message, f"give {MOST_CLASSES} classes at most", path=path)
        positive.classes, positive.codes = [_plain_label(value) for value in classes], codes
        return positive.signs(0), positive.labels(0)
    if len(classes) > 2:
        third = int(np.sort(first)[2])
        message = f"{len(classes)} different labels ({', '.join(shown)}{', ...' if len(classes) > 5 else ''})"
        message += f"; the third is {_plain_label(table.labels[third])!r}{_row_in_words(table, third)}"
        raise MoreClassesError(message, "keep two classes", path=path, line=_line_number(table, third))
    chosen = _default_positive(classes, np.bincount(codes, weights=counts)) if positive is None else 1
    if positive is not None:
        matches = [k for k in range(2) if _same_label(classes[k], positive)]
        if not matches:
            raise LabelError(
                f"positive = {positive!r} is not one of the labels {shown[0]} and {shown[1]}",
                "name one of them",
                path=path,
            )
        chosen = matches[0]
    labels = Labels(negative=_plain_label(classes[1 - chosen]), positive=_plain_label(classes[chosen]))
    return np.where(table.labels == classes[chosen], 1.0, -1.0), labels


@dataclass
class KnownLabels:
    """Takes labels for those of a classifier of more than two classes; `read_new` says which each sample is of.

    Attributes
    ----------
    classes : tuple of K labels
    codes : (n,) ndarray of int, the place of every sample's label among them
    """

    classes: tuple[Any, ...]
    codes: Any = None

    def take(self, table: Table, path: Path) -> None:
        """Take the labels of a table, and leave none to be mapped to signs.

        Raises
        ------
        DataError
            A label that is none of the classes, with its line.
        """
        assert table.labels is not None
        found, codes = np.unique(table.labels, return_inverse=True)
        places = [next((k for k, one in enumerate(self.classes) if _same_label(value, one)), -1) for value in found]
        self.codes = np.array(places, dtype=np.int64)[codes]
        for i in np.flatnonzero(self.codes < 0)[:1]:
            raise DataError(
                f"the label {_plain_label(table.labels[i])!r}{_row_in_words(table, int(i))} is unknown to the "
                f"classifier",
                f"its labels are {', '.join(map(repr, self.classes))}",
                path=path,
                line=_line_number(table, int(i)),
            )


MOST_CLASSES = 100
"""More labels are numbers, or IDs."""


def _default_positive(classes: npt.NDArray[Any], rows: npt.NDArray[Any]) -> int:
    """Which of two classes is +1 where nobody says so."""
    try:
        numbers = [float(one) for one in classes]
        if numbers[0] != numbers[1]:
            return int(numbers[1] > numbers[0])  # NaN is no label
    except (TypeError, ValueError):
        pass
    known = [str(one).strip().casefold() in WORDS for one in classes]
    if known[0] != known[1]:
        return int(known[1])
    return int(rows[1] <= rows[0])


def apply_labels(table: Table, labels: Labels, path: Path) -> Array:
    """The signs under a mapping that is known; one class alone will do.

    Of one class of several against the rest, the others may have their own names: where that class is met and nothing
    is called ``not …``, they are the rest.

    Raises
    ------
    DataError
        With the line: a label that is neither of the two.
    """
    assert table.labels is not None
    classes, codes = np.unique(table.labels, return_inverse=True)
    signs = np.full(len(classes), np.nan)
    for k, value in enumerate(classes):
        if _same_label(value, labels.positive):
            signs[k] = 1.0
        elif _same_label(value, labels.negative):
            signs[k] = -1.0
    if labels.is_rest and np.any(signs == 1.0) and not np.any(signs == -1.0):
        signs[np.isnan(signs)] = -1.0
    y = signs[codes]
    for i in np.flatnonzero(np.isnan(y))[:1]:
        raise DataError(
            f"the label {_plain_label(table.labels[i])!r}{_row_in_words(table, i)} is unknown to the classifier",
            f"its labels are {labels.negative!r} and {labels.positive!r}",
            path=path,
            line=_line_number(table, i),
        )
    return y


def sign_labels(table: Table, positive: Any, path: Path) -> tuple[Array, Labels]:
    """The signs of a table that has them; the other way round where `positive` names the label that is -1.

    Raises
    ------
    LabelError
        `positive` is not one of the two.
    """
    assert table.signs is not None
    y, labels = table.signs
    if positive is None or same_label(labels.positive, positive):
        return y, labels
    if not same_label(labels.negative, positive):
        raise LabelError(
            f"positive = {positive!r} is not one of the labels {labels.negative!r} and {labels.positive!r}",
            "name one of them",
            path=path,
        )
    return -y, Labels(negative=labels.positive, positive=labels.negative)


def apply_known(table: Table, known: Labels, path: Path) -> Array:
    """The signs of a table that has them, under a mapping that is known.

    Raises
    ------
    DataError
        A label that is unknown to the classifier.
    """
    assert table.signs is not None
    y, labels = table.signs
    own = {}
    for sign, label in ((-1.0, labels.negative), (1.0, labels.positive)):
        matches = [s for s, one in ((1.0, known.positive), (-1.0, known.negative)) if same_label(label, one)]
        if not matches:
            raise DataError(
                f"the label {label!r} is unknown to the classifier",
                f"its labels are {known.negative!r} and {known.positive!r}",
                path=path,
            )
        own[sign] = matches[0]
    return y if own[1.0] == 1.0 and own[-1.0] == -1.0 else np.where(y > 0, own[1.0], own[-1.0])


def same_label(label: Any, asked: Any) -> bool:
    """Whether a label as JSON writes it is what was asked for, a number by its value and a word by its text."""
    number = isinstance(label, (int, float)) and not isinstance(label, bool)
    return _same_label(np.float64(label) if number else label, asked)


def _same_label(value: Any, asked: Any) -> bool:
    """Whether a label is what was asked for, which a command line gives as text."""
    if isinstance(value, (bool, np.bool_)) or isinstance(asked, (bool, np.bool_)):  # R writes TRUE, earlier rules 1
        return _said(value) == _said(asked)
    if isinstance(value, np.floating):
        try:
            return float(value) == float(asked)
        except (TypeError, ValueError, OverflowError):
            return False
    return str(value).strip() == str(asked).strip()


def _said(label: Any) -> float | str:
    """A label that may be True or False as the number of it, otherwise as its text."""
    text = str(label).strip().lower()
    try:
        return BOOLEANS[text] if text in BOOLEANS else float(text)
    except ValueError:
        return text


def _plain_label(value: Any) -> int | float | str:
    """The label as JSON writes it: 1, not 1.0, and true of its own kind."""
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, np.floating):
        return int(value) if value == np.trunc(value) and abs(value) < 2**53 else float(value)
    return str(value)


def _line_number(table: Table, i: int) -> int | None:
    return None if table.lines is None else int(table.lines[i])


def _row_in_words(table: Table, i: int) -> str:
    return f" in row {i + 1}" if table.lines is None else ""
