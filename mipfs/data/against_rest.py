"""The data of every class against the rest: weights of the classes, and bounds on the weights of each classifier."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mipfs.data import bounds
from mipfs.data.classes import BALANCED, checked_weights, in_order
from mipfs.data.instance import Instance
from mipfs.report.numbers import first_of

MOST_NAMED = 5
"""Classes that a message names."""


def of_many(given: Any, instances: Sequence[Instance]) -> dict[str, float]:
    """The weights of more than two classes by the text of their labels; {} where there are none.

    "balanced" is Σ weights/(K · Σ weights of the class), as scikit-learn has it.

    Parameters
    ----------
    given : what was asked for, as in `Problem`
    instances : the data of every class against the rest

    Raises
    ------
    UsageError
        A label that is none of the classes, or one that is named twice.
    """
    given = checked_weights(given)
    if given is None:
        return {}
    labels = [one.labels.positive for one in instances]
    if given == BALANCED:
        weights = instances[0].sample_weight
        own = [float(weights[one.y > 0].sum()) for one in instances]
        return {str(label): float(weights.sum()) / (len(own) * part) for label, part in zip(labels, own, strict=True)}
    assert isinstance(given, Mapping)
    return dict(zip(map(str, labels), in_order(given, labels), strict=True))


def weigh_classes(instances: Sequence[Instance], weights: Mapping[str, float]) -> list[Instance]:
    """The data of every class against the rest, where a sample weighs in each what its own class does (`of_many`)."""
    if not weights:
        return [replace(one, class_weight=None) for one in instances]
    own = np.ones(instances[0].n_samples)
    for one in instances:
        own[one.y > 0] = weights[str(one.labels.positive)]
    return [replace(one, sample_weight=one.sample_weight * own, class_weight=None) for one in instances]


def with_bounds(instances: Sequence[Instance], given: Any, *more: Any, on_top: bool = False) -> list[Instance]:
    """The data of every class against the rest with bounds on its weights, on the user's scale.

    Parameters
    ----------
    instances : the data of every class against the rest
    given, *more : mappings of ``feature|class``, or of a feature, for every class, to (lower, upper); all of them hold
    on_top : whether the bounds that the data has hold, too

    Raises
    ------
    UsageError
        See `mipfs.data.bounds.settle_bounds`.
    """
    first = instances[0]
    labels = [one.labels.positive for one in instances]
    names = bounds.by_class(first.index, labels)

    def hint(name: str) -> str:
        feature, bar, label = name.rpartition("|")
        if bar and feature in first.index:
            return f"{feature!r} is one, and {label!r} is no class: these are {first_of(labels, MOST_NAMED, str)}"
        return first.like(name)

    checked = bounds.both(*(bounds.settle_bounds(one, names, hint, first.groups) for one in (given, *more)))
    own = [bounds.of_class(checked, first.index, label) for label in labels]
    kept = [one.weight_bounds if on_top else {} for one in instances]
    return [
        replace(one, weight_bounds=bounds.both(here, there))
        for one, here, there in zip(instances, kept, own, strict=True)
    ]
