"""The arrays that signatures name: their kind; docstrings say their shape. And what is often made or read of them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Arrays = dict[str, npt.NDArray[Any]]
Number = TypeVar("Number", bound=np.generic)


def scatter(shape: int | tuple[int, ...], ids: Any, values: Any) -> Array:
    """Zeros of a shape but for `values` at `ids`."""
    found = np.zeros(shape)
    found[ids] = values
    return found


def mask_of(size: int, ids: Any) -> Mask:
    """(size,) bool: true at `ids`."""
    found = np.zeros(size, dtype=bool)
    found[ids] = True
    return found


def replace_at(values: npt.NDArray[Number], ids: Any, new: Any) -> npt.NDArray[Number]:
    """A copy of `values` with `new` at `ids`."""
    found = values.copy()
    found[ids] = new
    return found


def check_positions(ids: npt.NDArray[Any], count: int) -> None:
    """Refuse positions (k,) that are not whole numbers from 0 to `count` − 1.

    Raises
    ------
    ValueError
    """
    if ids.ndim != 1 or ids.dtype.kind != "i" or not np.all((ids >= 0) & (ids < count)):
        raise ValueError(f"positions that are none of {count}")


def row_of(matrix: Any, r: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """The columns and values of what row r of a CSR matrix stores."""
    stored = slice(matrix.indptr[r], matrix.indptr[r + 1])
    return matrix.indices[stored], matrix.data[stored]


def terms_of(matrix: Any, r: int) -> Iterator[tuple[int, float]]:
    """The columns and values of what row r of a CSR matrix stores, one by one, in Python's numbers."""
    columns, values = row_of(matrix, r)
    return zip(columns.tolist(), values.tolist(), strict=True)


def sum_exactly(x: npt.NDArray[Any], a: Array) -> Fraction:
    """Σ a_j x_j without rounding."""
    pairs = zip(a.tolist(), np.asarray(x, dtype=float).tolist(), strict=True)
    return sum((Fraction(one) * Fraction(other) for one, other in pairs), Fraction(0))


def rounded_up(exact: Fraction) -> float:
    """The least double that is no less."""
    near = float(exact)
    return near if Fraction(near) >= exact else math.nextafter(near, math.inf)
