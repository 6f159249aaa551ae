"""The rows of a selection in numbers that a solver carries: every row and extra variable times a power of two.

A solver forgives about 1e-9 on a row, drops coefficients below that and refuses those beyond 1e15; scaled, its
tolerance means something about the row. What is scaled is a relaxation of the rows as they stand: terms that even
then are negligible widen the row's bounds instead. Whether the rows hold is decided by `Rows.hold`, on the rows as
they stand.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from mipfs.plumbing.arrays import Array, Integers
from mipfs.selection.rows import Rows

NEGLIGIBLE_BITS = 58
"""A term of at most 2^-58 of the row's largest coefficient lies far below the row's allowance."""
SCALING_ROUNDS = 6
"""Rounds of geometric scaling of rows and columns."""
LEAST_COEFFICIENT, MOST_COEFFICIENT = 2.0**-38, 2.0**45
"""Scaled coefficients lie between these."""
MOST_BOUND = 1e15
"""Scaled bounds lie below this in size; those of variables are left out beyond it."""


@dataclass(frozen=True, eq=False)
class ScaledRows:
    """Rows ``lb <= matrix @ [sigma; extra / columns] <= ub``, implied by the rows that they were made of.

    Attributes
    ----------
    matrix : (r, p + e) csr_array
    lb, ub : (r,) ndarray
    units : (r,) powers of two, what a row was multiplied by
    columns : (e,) powers of two: an extra variable is this times the solver's
    low, high : (e,) bounds of the solver's extra variables
    """

    matrix: Any
    lb: Array
    ub: Array
    units: Array
    columns: Array
    low: Array
    high: Array


def scale_rows(rows: Rows, n_features: int) -> ScaledRows:
    """Scale rows over `n_features` features.

    Raises
    ------
    RowError
        A row whose coefficients, or a bound beside them, are too far apart; by name.
    """
    matrix = rows.matrix
    extra = rows.extra
    p = n_features
    if not len(rows) and not len(extra):  # of many features even their bounds take time
        none = np.empty(0)
        return ScaledRows(matrix, none, none, none, none, none, none)
    low, high = np.concatenate([np.zeros(p), extra.box[0]]), np.concatenate([np.ones(p), extra.box[1]])
    lb, ub = _within_reach(rows, low, high)
    row, column = np.repeat(np.arange(len(rows)), np.diff(matrix.indptr)), matrix.indices
    exponents = _scaling_exponents(np.log2(np.abs(matrix.data)), row, column, matrix.shape, extra.integer)
    reach = np.maximum(*(np.where(np.isfinite(end), np.abs(end), 0.0) for end in (low, high)))
    terms = np.abs(matrix.data) * np.maximum(np.ldexp(1.0, exponents[1]), reach)[column]
    largest = np.zeros(len(rows))
    np.maximum.at(largest, row, terms)
    light = terms < np.ldexp(largest[row], -NEGLIGIBLE_BITS)
    for i in np.flatnonzero(light):
        ends = matrix.data[i] * low[column[i]], matrix.data[i] * high[column[i]]
        if not np.all(np.isfinite(ends)):
            what = f"the coefficient {matrix.data[i]:g} of {extra.names[column[i] - p]!r}, which has no bounds,"
            rows.refuse(int(row[i]), f"{what} is lost beside {np.abs(matrix.data[row == row[i]]).max():g}")
        lb[row[i]] = np.nextafter(lb[row[i]] - max(ends), -np.inf)
        ub[row[i]] = np.nextafter(ub[row[i]] - min(ends), np.inf)
    row = row[~light]
    column = column[~light]
    data = matrix.data[~light]
    units, columns = _scaling_exponents(np.log2(np.abs(data)), row, column, matrix.shape, extra.integer)
    data = np.ldexp(data, units[row] + columns[column])
    for i in np.flatnonzero((np.abs(data) < LEAST_COEFFICIENT) | (np.abs(data) > MOST_COEFFICIENT))[:1]:
        rows.refuse(int(row[i]), "its coefficients are too far from each other and from those of other rows")
    lb, ub = np.ldexp(lb, units), np.ldexp(ub, units)
    for r in np.flatnonzero(
        (np.isfinite(lb) & (np.abs(lb) > MOST_BOUND)) | (np.isfinite(ub) & (np.abs(ub) > MOST_BOUND))
    )[:1]:
        rows.refuse(int(r), f"the bound {rows.ub[r] if np.isfinite(ub[r]) else rows.lb[r]:g} is too far from zero")
    sides = np.ldexp(extra.box[0], -columns[p:]), np.ldexp(extra.box[1], -columns[p:])
    return ScaledRows(
        sparse.csr_array((data, (row, column)), shape=matrix.shape),
        lb,
        np.maximum(lb, ub),
        np.ldexp(1.0, units),
        np.ldexp(1.0, columns[p:]),
        np.where(np.abs(sides[0]) > MOST_BOUND, -np.inf, sides[0]),
        np.where(np.abs(sides[1]) > MOST_BOUND, np.inf, sides[1]),
    )


def _within_reach(rows: Rows, low: Array, high: Array) -> tuple[Array, Array]:
    """Bounds (r,) of the rows: left out where every point of the box keeps them, moved near where none does."""
    least, most = rows.activities(low, high)
    past = np.asarray(rows.sizes.sum(axis=1), dtype=float)
    lb = np.where(rows.low <= least, -np.inf, np.minimum(rows.low, most + past + np.abs(most)))
    ub = np.where(rows.high >= most, np.inf, np.maximum(rows.high, least - past - np.abs(least)))
    return lb, ub


def _scaling_exponents(
    sizes: Array, row: Integers, column: Integers, shape: tuple[int, int], integer: npt.NDArray[np.bool_]
) -> tuple[Integers, Integers]:
    """Exponents of rows (r,) and columns (p + e,) that bring the sizes (log2 of the entries) around 1.

    Those of features and of integer variables are zero: they stay whole.
    """
    rows, columns = np.zeros(shape[0]), np.zeros(shape[1])
    free = np.zeros(shape[1], dtype=bool)
    free[shape[1] - integer.size :] = ~integer
    for sweep in range(SCALING_ROUNDS):
        rows = -_midrange_sizes(sizes + columns[column], row, shape[0])
        if not free.any() or sweep == SCALING_ROUNDS - 1:
            break
        columns = np.where(free, -_midrange_sizes(sizes + rows[row], column, shape[1]), 0.0)
    return np.rint(rows).astype(np.int64), np.rint(columns).astype(np.int64)


def _midrange_sizes(sizes: Array, place: Integers, count: int) -> Array:
    """Halfway between the least and the largest size of every place, 0 where there is none."""
    ends = np.full(count, np.inf), np.full(count, -np.inf)
    np.minimum.at(ends[0], place, sizes)
    np.maximum.at(ends[1], place, sizes)
    held = np.isfinite(ends[0])
    return np.where(held, 0.5 * (np.where(held, ends[0], 0.0) + np.where(held, ends[1], 0.0)), 0.0)
