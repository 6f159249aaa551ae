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
    """The instance may be scaled in its own way: undo it in the weights, so that sparse data stays sparse."""
    ids = np.array([_column(result, data, name) for name in names], dtype=np.int64)
    slopes = weights * data.scale[ids]
    offset = weights @ (data.shift[ids] - data.center[ids] * data.scale[ids])
    return np.asarray(data.X[:, ids] @ slopes + offset + result.intercept)


def _column(result: Result, data: Instance, name: str) -> int:
    """The column called `name`.

    Where one side has no names of its own (they are x1, x2, ...) and both have as many features, the column in
    the same place.
    """
    if name in data.index:
        return data.index[name]
    column = result.columns[name]
    unnamed = f"x{column + 1}"
    if data.n_features == result.n_features and unnamed in (name, data.feature_names[column]):
        return column
    raise UsageError(
        f"{data.source or 'the data'} has no feature {name!r}, which the classifier uses; "
        "give data with the columns of the training data"
    )
