"""Signs of the weights, as scikit-learn's users ask for them: ``monotonic_cst`` and ``positive=True``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mipfs.data.bounds import WeightBounds, of_signs
from mipfs.data.instance import Instance
from mipfs.errors import UsageError
from mipfs.estimators.allowed import name_of

WRITE = "-1, 0 or 1 for each feature, or a mapping of name to one of these"


def signs(monotonic_cst: Any, positive: bool, data: Instance, classes: int) -> WeightBounds:
    """The bounds on the weights of the classifier that signs are.

    Parameters
    ----------
    monotonic_cst : (p,) array-like of -1, 0 and 1, mapping of name (or 0-based position) to these, or None
        1: more of the feature can only raise f, and with it speak for ``classes_[1]``; -1: only lower it.
    positive : bool
        Whether no weight is below 0.
    data : Instance
    classes : int, the number of classes

    Raises
    ------
    UsageError
        Other numbers, an unknown name, a sign against `positive`, or more than two classes, of which each would be +1.
    """
    given = _numbers(monotonic_cst, data)
    names = data.feature_names
    rising, falling = ([names[j] for j, one in enumerate(given) if one == sign] for sign in (1, -1))
    if positive and falling:
        raise UsageError(
            f"monotonic_cst of {falling[0]!r} is -1, and positive=True says that no weight is below 0; leave one out, "
            f"or {falling[0]!r} out of X"
        )
    if not (positive or rising or falling):
        return {}
    if classes > 2:
        what = "positive=True" if positive else "monotonic_cst"
        raise UsageError(
            f"Only binary classification is supported with {what}: of {classes} classes each is +1 in a problem of its "
            "own; fit one against the rest by OneVsRestClassifier, or leave it out"
        )
    return of_signs(names if positive else rising, falling)


def _numbers(given: Any, data: Instance) -> list[int]:
    """-1, 0 or 1 of every feature, p of them."""
    names = data.feature_names
    found = [0] * len(names)
    if given is None:
        return found
    if isinstance(given, Mapping):
        for key, one in given.items():
            name = name_of(key, "monotonic_cst", names, data.index)
            found[data.index[name]] = _sign(one, name)
        return found
    listed = np.asarray(given, dtype=object)
    if listed.shape != (len(names),):
        raise UsageError(f"monotonic_cst has shape {listed.shape} for {len(names)} features; give {WRITE}")
    return [_sign(one, name) for one, name in zip(listed.tolist(), names, strict=True)]


def _sign(one: Any, name: str) -> int:
    """-1, 0 or 1."""
    is_number = isinstance(one, (int, float, np.number)) and not isinstance(one, bool)
    if not is_number or one not in (-1, 0, 1):
        raise UsageError(f"monotonic_cst of {name!r} is {one!r}; give {WRITE}")
    return int(one)
