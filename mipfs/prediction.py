"""From a result and new data to decision values: which columns the weights belong to, and on which scale."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from mipfs.errors import UsageError
from mipfs.instance import Instance

if TYPE_CHECKING:
    from mipfs.result import Result

Array = npt.NDArray[np.float64]


def decision_values(result: Result, X: Any) -> Array:
    """w'x + b of every row of `X`, shape (n,); see `Result.decision_function`."""
    names = list(result.weights)
    weights = np.array([result.weights[name] for name in names], dtype=float)
    if isinstance(X, Instance):
        return _of_instance(result, X, names, weights)
    if hasattr(X, "columns"):
        missing = [name for name in names if name not in X.columns]
        if missing:
            raise UsageError(f"the data frame has no column {missing[0]!r}, which the classifier uses")
        values = np.array([np.asarray(X[name], dtype=float) for name in names]).reshape(len(names), len(X))
        return np.asarray(weights @ values + result.intercept)
    matrix = X if sparse.issparse(X) else np.asarray(X, dtype=float)
    if matrix.ndim != 2 or matrix.shape[1] != result.n_features:
        raise UsageError(f"the array has shape {matrix.shape}; the classifier needs (n, {result.n_features})")
    ids = [result.columns[name] for name in names]
    return np.asarray(matrix[:, ids] @ weights + result.intercept)


def _of_instance(result: Result, data: Instance, names: list[str], weights: Array) -> Array:
    ids = [column_of(name, result.columns[name], result.n_features, data) for name in names]
    return scores_on(data, np.array(ids, dtype=np.int64), weights, result.intercept)


def scores_on(data: Instance, ids: npt.NDArray[np.int64], weights: Array, intercept: float) -> Array:
    """w'x + b on the columns `ids` of an instance, for weights on the user's scale, shape (n,).

    The instance may be scaled in its own way: that is undone in the weights, so that sparse data stays sparse.
    """
    slopes = weights * data.scale[ids]
    offset = weights @ (data.shift[ids] - data.center[ids] * data.scale[ids])
    return np.asarray(data.X[:, ids] @ slopes + offset + intercept)


def weights_by_name(data: Instance, ids: npt.NDArray[np.int64], weights: Array) -> dict[str, float]:
    """The non-zero weights by feature name; those of a column that stands twice are added up."""
    chosen = np.unique(ids)
    sums = np.zeros(chosen.size)
    np.add.at(sums, np.searchsorted(chosen, ids), weights)
    return {data.feature_names[j]: float(w) for j, w in zip(chosen, sums, strict=True) if w != 0.0}


def column_of(name: str, position: int, n_features: int, data: Instance) -> int:
    """The column of `data` that is the feature `name`, which stood at `position` of `n_features`.

    Where one side has no names of its own (they are x1, x2, ...) and both have as many features, the column in
    the same place.

    Raises
    ------
    UsageError
        There is no such column.
    """
    if name in data.index:
        return data.index[name]
    unnamed = f"x{position + 1}"
    if data.n_features == n_features and unnamed in (name, data.feature_names[position]):
        return position
    raise UsageError(
        f"{data.source or 'the data'} has no feature {name!r}, which the classifier uses; "
        "give data with the columns of the training data"
    )
