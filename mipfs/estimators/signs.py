"""Signs of the weights, as scikit-learn's users ask for them: ``monotonic_cst`` and ``positive=True``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs.data.bounds import WeightBounds, of_signs
from mipfs.data.instance import Instance
from mipfs.errors import UsageError
from mipfs.estimators.allowed import name_of

EACH = "give {class: signs}, of the classes that have any"
WRITE = "-1, 0 or 1 for each feature, or a mapping of name to one of these"


def signs(monotonic_cst: Any, positive: bool, data: Instance, classes: npt.NDArray[Any]) -> WeightBounds:
    """The bounds on the weights of the classifier that signs are.

    Parameters
    ----------
    monotonic_cst : (p,) array-like of -1, 0 and 1, mapping of name (or 0-based position) to these, or None
        1: more of the feature can only raise f, and with it speak for ``classes_[1]``; -1: only lower it. Of more than
        two classes a mapping of class to these: f is that of the class then.
    positive : bool
        Whether no weight is below 0.
    data : Instance, whose class +1 is the one that is asked about
    classes : (K,) labels

    Raises
    ------
    UsageError
        Other numbers, an unknown name or class, a sign against `positive`, or signs that do not say which of more than
        two classes they are of: each is +1 in a problem of its own.
    """
    given = _signs_of_features(_of_class(monotonic_cst, data, classes) if classes.size > 2 else monotonic_cst, data)
    names = data.feature_names
    rising, falling = ([names[j] for j, one in enumerate(given) if one == sign] for sign in (1, -1))
    if positive and falling:
        raise UsageError(
            f"monotonic_cst of {falling[0]!r} is -1, and positive=True says that no weight is below 0; leave one out, "
            f"or {falling[0]!r} out of X"
        )
    return of_signs(names if positive else rising, falling)


def _of_class(given: Any, data: Instance, classes: npt.NDArray[Any]) -> Any:
    """The signs of one of more than two classes; None where it has none."""
    values = given.values() if isinstance(given, Mapping) else [0]
    by_class = not any(isinstance(one, (int, float, np.number)) for one in values)
    if given is None or not by_class:
        if any(_signs_of_features(given, data)):
            raise UsageError(
                f"Only binary classification is supported with signs that name no class: of {classes.size} classes "
                f"each is +1 in a problem of its own; {EACH}"
            )
        return None
    known = classes.tolist()
    for one in given:
        if one not in known:
            raise UsageError(f"monotonic_cst: {one!r} is none of the classes {known!r:.200}; {EACH}")
    return next((signs for one, signs in given.items() if one == data.labels.positive), None)


def _signs_of_features(given: Any, data: Instance) -> list[int]:
    """-1, 0 or 1 of every feature, p of them."""
    names = data.feature_names
    found = [0] * len(names)
    if given is None:
        return found
    if isinstance(given, Mapping):
        known = {**data.groups, **data.index}
        for key, one in given.items():
            name = name_of(key, "monotonic_cst", names, known)
            for member in (name,) if name in data.index else data.groups[name]:
                found[data.index[member]] = _checked_sign(one, name)
        return found
    listed = np.asarray(given, dtype=object)
    if listed.shape != (len(names),):
        raise UsageError(f"monotonic_cst has shape {listed.shape} for {len(names)} features; give {WRITE}")
    return [_checked_sign(one, name) for one, name in zip(listed.tolist(), names, strict=True)]


def _checked_sign(one: Any, name: str) -> int:
    """-1, 0 or 1."""
    is_number = isinstance(one, (int, float, np.number)) and not isinstance(one, bool)
    if not is_number or one not in (-1, 0, 1):
        raise UsageError(f"monotonic_cst of {name!r} is {one!r}; give {WRITE}")
    return int(one)
