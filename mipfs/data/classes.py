"""Weights of the two classes: C_i = C · class weight · sample weight."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from mipfs.errors import UsageError
from mipfs.plumbing.arrays import Array
from mipfs.plumbing.declared import show_value

BALANCED = "balanced"
ClassWeight = Mapping[Any, float] | str


def checked_weights(given: Any) -> ClassWeight | None:
    """Class weights as they are given, after they were found to be of the right kind; None where there are none.

    Raises
    ------
    UsageError
        Neither "balanced" nor a table of labels and positive numbers.
    """
    if given is None or (isinstance(given, Mapping) and not given):
        return None
    if isinstance(given, str) and given == BALANCED:
        return BALANCED
    if not isinstance(given, Mapping):
        raise UsageError(
            f"class_weight = {show_value(given)}: give 'balanced', or weights of labels, such as {{'bad': 5}}"
        )
    for label, weight in given.items():
        number = isinstance(weight, (int, float, np.number)) and not isinstance(weight, bool)
        if not number or not 0 < weight <= sys.float_info.max:  # a whole number may be beyond
            raise UsageError(f"class_weight of {label!r} is {show_value(weight)}; it must be a finite number > 0")
    return {label: float(weight) for label, weight in given.items()}


class Labelled(Protocol):
    """What class weights are of: signs and weights (n,) of samples, and what the two classes are called."""

    @property
    def y(self) -> Array:
        """±1."""

    @property
    def sample_weight(self) -> Array:
        """The samples' own weights."""

    @property
    def labels(self) -> Any:
        """`mipfs.data.instance.Labels`."""


def of_classes(given: Any, data: Labelled) -> tuple[float, float] | None:
    """The weights of the classes -1 and +1; None where there are none.

    "balanced" is Σ weights/(2 · Σ weights of the class): scikit-learn's n/(K·n_k), samples counted by their weights.

    Raises
    ------
    UsageError
        A label that the data does not have.
    """
    given = checked_weights(given)
    if given is None:
        return None
    if given == BALANCED:
        weights = data.sample_weight
        total, positive = float(weights.sum()), float(weights[data.y > 0].sum())
        return total / (2.0 * (total - positive)), total / (2.0 * positive)
    assert isinstance(given, Mapping)
    negative, positive = in_order(given, (data.labels.negative, data.labels.positive))
    return negative, positive


def by_label(weights: tuple[float, float] | None, labels: Any) -> dict[str, float] | None:
    """The weights of the classes by the text of their labels, as the JSON of a result has them."""
    return None if weights is None else {str(labels.negative): weights[0], str(labels.positive): weights[1]}


def in_order(given: Mapping[Any, float], labels: Sequence[Any]) -> list[float]:
    """The weights of the labels, in their order; 1 of those that are not named."""
    found: dict[int, float] = {}
    for label, weight in given.items():
        place = next((k for k, own in enumerate(labels) if _same_label(own, label)), None)
        if place is None:
            known = " and ".join(filter(None, [", ".join(map(_show_label, labels[:-1])), _show_label(labels[-1])]))
            raise UsageError(f"class_weight names {label!r}, which is no label: these are {known}")
        if place in found:
            raise UsageError(f"class_weight names the label {_show_label(labels[place])} twice; give it one weight")
        found[place] = weight
    return [found.get(k, 1.0) for k in range(len(labels))]


class ClassWeighted:
    """What a problem has of class weights: it has `data`, and `class_weight` as it was given."""

    data: Any
    class_weight: Any

    def _take_class_weight(self, source: Any) -> None:
        """Settle them: the data's own where nobody says others, and an empty table for none."""
        given = source.class_weight if self.class_weight is None else self.class_weight
        object.__setattr__(self, "class_weight", checked_weights(given) or {})
        _ = self.class_weights

    @cached_property
    def class_weights(self) -> tuple[float, float] | None:
        """The weights of the classes -1 and +1; None where nobody asked for any."""
        return of_classes(self.class_weight, self.data)

    def class_weights_on(self, data: Any) -> dict[Any, float]:
        """Their numbers by the labels of other data, which may call the classes otherwise."""
        found = self.class_weights
        return {} if found is None else {data.labels.negative: found[0], data.labels.positive: found[1]}

    @property
    def sample_weight(self) -> Array:
        """Class weight times sample weight, (n,)."""
        own = self.data.sample_weight
        return own if self.class_weights is None else np.asarray(by_sample(self.class_weights, self.data.y) * own)


def by_sample(weights: tuple[float, float], y: Array) -> Array:
    """The weight of every sample's class, (n,)."""
    return np.where(y > 0, weights[1], weights[0])


def _same_label(own: Any, asked: Any) -> bool:
    """Whether a label is what was asked for: a number by its value, a word by its text."""
    try:
        return float(own) == float(asked)
    except (TypeError, ValueError, OverflowError):
        return str(own) == str(asked)


def _show_label(label: Any) -> str:
    return repr(label.item() if isinstance(label, np.generic) else label)
