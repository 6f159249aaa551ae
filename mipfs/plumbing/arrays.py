"""The arrays that signatures name: their kind; docstrings say their shape. Arrays of zeros, but for some places."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Number = TypeVar("Number", bound=np.generic)


def scattered(shape: int | tuple[int, ...], ids: Any, values: Any) -> Array:
    """Zeros of a shape but for `values` at `ids`."""
    found = np.zeros(shape)
    found[ids] = values
    return found


def mask_of(size: int, ids: Any) -> Mask:
    """(size,) bool: true at `ids`."""
    found = np.zeros(size, dtype=bool)
    found[ids] = True
    return found


def changed(values: npt.NDArray[Number], ids: Any, new: Any) -> npt.NDArray[Number]:
    """A copy of `values` with `new` at `ids`."""
    found = values.copy()
    found[ids] = new
    return found
