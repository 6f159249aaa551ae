"""A matrix whose columns are made when they are asked for: to those who take columns of X it is data like any other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

BLOCK = 1 << 22
"""Numbers that are made at a time."""


class MadeMatrix:
    """An (n, p) matrix of float64 of which X[:, ids], X'v, Xw and column means can be asked.

    Parameters
    ----------
    shape : (n, p)
    make : callable, the columns `ids` (k,) as an (n, k) array of finite numbers; always the same
    """

    __array_ufunc__ = None  # an array times this is `__rmatmul__`
    ndim, dtype = 2, np.dtype(np.float64)

    def __init__(self, shape: tuple[int, int], make: Callable[[Integers], npt.ArrayLike]) -> None:
        self.shape, self._make = shape, make
        self._step = max(1, BLOCK // max(1, shape[0]))

    @property
    def size(self) -> int:
        """n·p."""
        return self.shape[0] * self.shape[1]

    def __getitem__(self, key: tuple[slice, Any]) -> Array:
        rows, columns = key
        assert rows == slice(None), "whole columns are made"
        ids = np.arange(*columns.indices(self.shape[1])) if isinstance(columns, slice) else np.asarray(columns)
        made = np.asarray(self._make(ids.astype(np.int64)), dtype=float, order="F")
        assert made.shape == (self.shape[0], ids.size), f"columns of shape {made.shape} were made"
        return made

    def _blocks(self) -> range:
        return range(0, self.shape[1], self._step)

    def __rmatmul__(self, v: Array) -> Array:
        return np.concatenate([v @ self[:, start : start + self._step] for start in self._blocks()], axis=-1)

    def __matmul__(self, w: Array) -> Array:
        used = np.flatnonzero(w)
        parts = (used[start : start + self._step] for start in range(0, used.size, self._step))
        return np.asarray(sum((self[:, ids] @ w[ids] for ids in parts), np.zeros(self.shape[0])))

    def mean(self, axis: int) -> Array:
        """Means of the columns."""
        assert axis == 0
        return np.concatenate([self[:, start : start + self._step].mean(axis=0) for start in self._blocks()])

    @property
    def T(self) -> _Transposed:
        """X', to be multiplied by vectors."""
        return _Transposed(self)


class _Transposed:
    """X' of a `MadeMatrix`."""

    __array_ufunc__ = None

    def __init__(self, X: MadeMatrix) -> None:
        self.X = X

    def __matmul__(self, v: Array) -> Array:
        return (v.T @ self.X).T
