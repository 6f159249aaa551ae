"""The picture of a classifier of two features: the samples, the line between the classes, and its margins."""

from __future__ import annotations

import numpy as np

from mipfs.data.instance import Instance
from mipfs.plumbing.arrays import Array
from mipfs.report.blocks import Marks, Scatter, Table
from mipfs.report.numbers import number
from mipfs.result.prediction import user_columns
from mipfs.result.result import Result

MOST_POINTS = 2000
"""Samples that are drawn."""
LINES = (("score 0", "third", 0.0), ("score -1", "fourth", -1.0), ("score 1", "fifth", 1.0))
"""Of the classifier: between the classes, and its margins."""


def weighs_two_features(result: Result) -> bool:
    """Whether the classifier is a line in the plane of two features."""
    return result.has_classifier and len(result.weights) == 2 and result.atoms is None


def pair_chart(result: Result, data: Instance) -> Scatter | None:
    """Labelled data in the plane of the two features that have weights; None where they are not two.

    Parameters
    ----------
    result : Result
    data : Instance
        Its data or others of the same columns. Of many samples every k-th is drawn.
    """
    if not weighs_two_features(result):
        return None
    columns = user_columns(result, data)
    names, weights = [*result.weights], np.array([*result.weights.values()])
    Z = np.column_stack([columns[name] for name in names])
    every = -(-len(Z) // MOST_POINTS)
    kinds = [("positive", 1.0, "first"), ("negative", -1.0, "second")]
    marks = []
    for label, sign, role in kinds:
        own = Z[data.y == sign][::every]
        marks.append(Marks(str(result.labels[label]), own[:, 0].tolist(), own[:, 1].tolist(), role))
    ends = np.array([Z.min(axis=0), Z.max(axis=0)])
    for name, role, level in LINES:
        line = _line_within(weights, result.intercept - level, ends)
        marks += [] if line is None else [Marks(name, line[:, 0].tolist(), line[:, 1].tolist(), role, is_line=True)]
    terms = "".join(f" {'-' if w < 0 else '+'} {number(abs(w))} {name}" for name, w in result.weights.items())
    note = f"score = {number(result.intercept)}{terms}; {result.labels['positive']} where it is above 0."
    if every > 1:
        note += f" One of {every} samples is drawn."
    is_right = (Z @ weights + result.intercept > 0) == (data.y > 0)
    rows = [
        (str(result.labels[label]), str(np.sum(data.y == sign)), str(np.sum(is_right[data.y == sign])))
        for label, sign, _ in kinds
    ]
    table = Table(("class", "samples", "on its side of the line"), rows)
    return Scatter("The two features", marks, x_label=names[0], y_label=names[1], note=note, table=table)


def _line_within(weights: Array, intercept: float, ends: Array) -> Array | None:
    """The points (2, 2) at which weights'x + intercept = 0 enters and leaves a box of low and high `ends` (2, 2)."""
    found = []
    for j in range(2):
        for end in ends[:, j]:
            with np.errstate(divide="ignore", invalid="ignore"):
                other = -(intercept + weights[j] * end) / weights[1 - j]
            if ends[0, 1 - j] <= other <= ends[1, 1 - j]:
                found.append([end, other] if j == 0 else [other, end])
    return np.array([min(found), max(found)]) if len(found) > 1 else None
