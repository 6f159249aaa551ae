"""Problems of two classes, one beside the other, as one: their features become groups, so that each counts once.

    min over σ of Σ_k min ½ Σ_j (w_jk² + …)/σ_j + L_k(w_k)   is the problem over a block-diagonal matrix whose block k
    is the data of problem k, where the columns of a feature, one in each block, are a group.

An intercept cannot be free there (one would be common to all blocks): it is the weight of a constant column of each
block, penalised as every weight is, in a group of its own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from mipfs.data.bounds import WeightBounds, column_of, excluding_0
from mipfs.data.instance import Instance, Labels, SelectDefaults
from mipfs.data.over_groups import over_features
from mipfs.errors import UsageError
from mipfs.plumbing.arrays import Array

INTERCEPT = "(intercept)"
"""The group of the constant columns."""


def features_among(selected: Sequence[str]) -> tuple[str, ...]:
    """The features of a shared support, without the group of the intercepts."""
    return tuple(name for name in selected if name != INTERCEPT)


def stack_instances(instances: Sequence[Instance], intercept: bool = True) -> Instance:
    """The data of all problems as one.

    Parameters
    ----------
    instances : of the same samples and features, scaled alike; `labels.positive` is the class of each
    intercept : whether every block has a constant column

    Returns
    -------
    Instance (Kn, Kp'), whose groups are the features; rows and forced features of the data are about these

    Raises
    ------
    UsageError
        Data that is not in memory, or penalties.
    """
    first = instances[0]
    if not first.block().is_stored:
        raise UsageError("a shared support is for data in memory; give the file that the store was made of")
    told = {"[penalty]": any(first.penalty.values()), "[[weights.rows]]": bool(first.weight_rows)}
    given = [name for name, is_there in told.items() if is_there]
    if given:
        raise UsageError(f"a shared support takes no {given[0]} of the .toml beside the data; leave it out")
    held = [(one, name) for one in instances for name in excluding_0(one.weight_bounds)]
    if held:
        of, name = held[0]
        raise UsageError(
            f"weight_bounds of {column_of(name, of.labels.positive)!r} exclude 0, and a shared support selects a "
            "feature for all classes; let 0 be between them, or solve one classifier a class"
        )
    if INTERCEPT in first.index:
        raise UsageError(f"a feature is called {INTERCEPT!r}, as the shared intercept is; rename it")
    X = sparse.csc_array(first.stated(np.arange(first.n_features)) if np.any(first.center) else first.X)
    names = [*first.feature_names, *([INTERCEPT] if intercept else [])]
    if intercept:
        X = sparse.csc_array(sparse.hstack([X, sparse.csc_array(np.ones((X.shape[0], 1)))], format="csc"))
    classes = [one.labels.positive for one in instances]
    K, width = len(instances), len(names)
    whole = sparse.csc_array(sparse.block_diag([X] * K, format="csc"))
    order = np.arange(K * width).reshape(K, width).T.ravel()  # the columns of a feature stand together
    groups = {name: tuple(column_of(name, label) for label in classes) for name in names}
    found = Instance.from_arrays(
        sparse.csc_array(whole[:, order]),
        np.concatenate([one.y for one in instances]),
        feature_names=[column for members in groups.values() for column in members],
        sample_weight=np.concatenate([one.sample_weight for one in instances]),
        labels=Labels("the rest", "its class"),
        groups=groups,
        weight_bounds={name: ends for one in instances for name, ends in stacked_bounds(one).items()},
        source=first.source,
        rules=first.rules,
    )
    rows = tuple(over_features(first.rows, groups, first.groups).rows)
    return replace(found, rows=rows, select=_stack_select(first.select, intercept))


def stacked_bounds(one: Instance) -> WeightBounds:
    """The bounds of a class on the weights of its columns in the stack, which are those of the scaled features.

    An end times the scale is rounded so that, divided by it again, it is no farther from 0 than it was.
    """
    found = {}
    for name, ends in one.weight_bounds.items():
        scale = float(one.scale[one.index[name]])
        low, high = (_move_end(end, scale) for end in ends)
        found[column_of(name, one.labels.positive)] = low, high
    return found


def _move_end(end: float, scale: float) -> float:
    moved = end * scale
    while abs(moved / scale) > abs(end):
        moved = math.nextafter(moved, 0.0)
    return moved


def bounds_of(stack: Mapping[str, Any], one: Instance) -> dict[str, tuple[Any, Any]]:
    """The bounds of a class on the user's scale, of those of the stack, by column; None or infinite for no end."""
    found = {}
    for name, j in one.index.items():
        ends = stack.get(column_of(name, one.labels.positive))
        if ends is not None:
            low, high = (end if end is None else end / float(one.scale[j]) for end in ends)
            found[name] = low, high
    return found


def _stack_select(select: SelectDefaults, intercept: bool) -> SelectDefaults:
    """What the data asks of a selection, with the group of the intercepts, which is always in it and counts as one."""
    if not intercept:
        return select
    M = None if select.M is None else select.M + 1
    return replace(select, M=M, forced_in=(*select.forced_in, INTERCEPT))


def unstack_weights(
    instances: Sequence[Instance], weights: Mapping[str, float]
) -> list[tuple[dict[str, float], float]]:
    """For every class its weights by feature, and its intercept, on the user's scale, of the weights of the stack."""
    found = []
    for one in instances:
        label = one.labels.positive
        own: dict[str, float] = {}
        b = weights.get(column_of(INTERCEPT, label), 0.0)
        for name, j in one.index.items():
            w = weights.get(column_of(name, label), 0.0)
            if w:
                own[name] = w / float(one.scale[j])
                b -= own[name] * float(one.shift[j])
        found.append((own, float(b)))
    return found


def scatter_weights(weights: Mapping[str, float], instance: Instance) -> Array:
    """Weights by name as (p,)."""
    found = np.zeros(instance.n_features)
    for name, value in weights.items():
        found[instance.index[name]] = value
    return found
