"""Linear functions of rows by one order of additions: a value depends on its row alone.

BLAS adds up in an order that depends on how many rows there are and how they are stored; a value that is 0 in one call
is 1e-17 in another, and a label changes. Here every row is summed column by column, from the first to the last, each
product and each sum rounded once: one row or all, dense or sparse, give the same bits.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import sparse

from mipfs.data.matrix import scaled_user_values
from mipfs.plumbing.arrays import Array

NUMBERS_PER_BLOCK = 1 << 18
"""Numbers that are held at a time: they fit into the cache."""


def combine_columns(X: Any, weights: Array) -> Array:
    """Σ_j w_j x_ij of every row, (n,), in the order of the columns.

    Parameters
    ----------
    X : (n, k) ndarray or SciPy sparse matrix
    weights : (k,)
    """
    return scaled_sum(X, weights, np.zeros(len(weights)), np.ones(len(weights)))


def scaled_sum(X: Any, weights: Array, shift: Array, scale: Array) -> Array:
    """Σ_j w_j (x_ij − shift_j)/scale_j of every row, (n,), in the order of the columns.

    Parameters
    ----------
    X : (n, k) ndarray or SciPy sparse matrix, on the user's scale
    weights, shift, scale : (k,); weights of the scaled columns
    """
    n, k = X.shape
    if sparse.issparse(X) and not np.any(shift):
        columns = _canonical_csc(X)
        counts = np.diff(columns.indptr)
        products = scaled_user_values(columns.data, 0.0, np.repeat(scale, counts)) * np.repeat(weights, counts)
        return np.asarray(np.bincount(columns.indices, products, n), dtype=float)
    total = np.zeros(n)
    step = max(1, NUMBERS_PER_BLOCK // max(1, k))
    rows = sparse.csr_array(X) if sparse.issparse(X) else X
    for start in range(0, n, step) if k else ():
        part = rows[start : start + step]
        part = part.toarray() if sparse.issparse(part) else part
        products = scaled_user_values(np.ascontiguousarray(part.T, dtype=float), shift[:, None], scale[:, None])
        products *= weights[:, None]
        total[start : start + step] = np.add.accumulate(products, axis=0, out=products)[-1]
    return total


def decision(X: Any, weights: Array, intercept: float, shift: Array, scale: Array) -> Array:
    """w'x + b of every row, (n,), as the scaled data has it: Σ_j (w_j scale_j) (x_ij − shift_j)/scale_j + b + w'shift.

    Parameters
    ----------
    X : (n, k) ndarray or SciPy sparse matrix, on the user's scale
    weights : (k,) on the user's scale
    intercept : float, on the user's scale
    shift, scale : (k,) user's value = scaled value · scale + shift
    """
    return scaled_sum(X, weights * scale, shift, scale) + at_means(weights, intercept, shift)


def at_means(weights: Array, intercept: float, shift: Array) -> float:
    """The intercept on the scaled data, from weights and intercept on the user's scale."""
    return intercept + math.fsum((weights * shift).tolist())


def _canonical_csc(X: Any) -> sparse.csc_array:
    """The columns of a sparse matrix, each entry once; the user's own arrays stay as they are."""
    columns = sparse.csc_array(X, dtype=np.float64)
    if not columns.has_canonical_format:
        columns = columns.copy()
        columns.sum_duplicates()
    return columns
