"""A last column that is constant: the intercept of a loss that has none of its own, as a weight that is penalised."""

from __future__ import annotations

from dataclasses import replace
from weakref import WeakKeyDictionary

import numpy as np
from scipy import sparse

from mipfs.data.instance import Instance
from mipfs.data.names import DefaultedValues
from mipfs.errors import UsageError

CONSTANT = "(intercept)"
"""The name of the column."""
_MADE: WeakKeyDictionary[Instance, dict[float, Instance]] = WeakKeyDictionary()
"""What was made of data that is still in use: the problems of a path share one matrix."""


def with_constant(data: Instance, value: float) -> Instance:
    """The data with a last column of `value`, on the same scale; all that was said of the features holds.

    Raises
    ------
    UsageError
        A feature has the name of that column, or the values do not lie in memory.
    """
    made = _MADE.setdefault(data, {})
    if value not in made:
        made[value] = _add_constant(data, value)
    return made[value]


def _add_constant(data: Instance, value: float) -> Instance:
    if CONSTANT in data.index:
        raise UsageError(f"a feature is called {CONSTANT!r}; give it another name")
    block = data.block()
    if not block.is_stored:
        raise UsageError(
            "columns that are not in memory take no constant column as an intercept; give bias=False (-p bias=false)"
        )
    column = np.full((data.n_samples, 1), value)
    joined = sparse.csc_array(sparse.hstack([block.values, column])) if block.is_sparse else None
    names = [*data.feature_names, CONSTANT]
    wide = replace(
        data,
        X=np.asfortranarray(np.hstack([block.values, column])) if joined is None else joined,
        unscaled=None if data.unscaled is None else sparse.csc_array(sparse.hstack([data.unscaled, column])),
        feature_names=names,
        center=np.append(data.center, 0.0),
        shift=np.append(data.shift, 0.0),
        scale=np.append(data.scale, 1.0),
        constant=value,
        bare_sha256=data.sha256,
    )
    return replace(wide, cost=DefaultedValues(wide.index, getattr(data.cost, "given", data.cost)))
