"""Many dual vectors of an earlier tree on a problem, all at once: their scores, and where nodes begin from them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs.inner.boolean_node import BooleanRelaxation
from mipfs.inner.rows_node import RowsRelaxation
from mipfs.kernels.bound import radius_of, sum_error
from mipfs.plumbing.arrays import Array
from mipfs.proof.cuts import dual_value_below
from mipfs.proof.duals import DualStore
from mipfs.svm.solver import ColumnShift

TOGETHER = 1 << 21
"""Numbers of dual vectors that are looked at together."""


def scores_all(relaxation: RowsRelaxation, duals: DualStore) -> tuple[Array, Array, Array]:
    """Of every dual vector g rounded down (D,), s rounded up (D, k), and what a weight is where σ is 1 (D, k)."""
    kernel = relaxation.kernel
    if isinstance(kernel, BooleanRelaxation):
        return _of_columns(kernel, duals)
    each = [relaxation.scores(*duals.get(d)) for d in range(len(duals))]
    scores = np.array([s for _, s in each]).reshape(len(each), relaxation.alive.size)
    return np.array([g for g, _ in each]), scores, np.sqrt(np.maximum(scores, 0.0))


def _of_columns(kernel: BooleanRelaxation, duals: DualStore) -> tuple[Array, Array, Array]:
    """g, s and ω of dual vectors over single features, with the bounds on rounding errors of
    `BooleanRelaxation.scores`.
    """
    size, y, c = len(duals), kernel.problem.data.y, kernel.problem.c_i
    g, s, omega = np.empty(size), np.empty((size, kernel.alive.size)), np.empty((size, kernel.alive.size))
    X: Any = kernel._X
    for begin in range(0, size, _block_length(y.size)):
        own = slice(begin, min(size, begin + _block_length(y.size)))
        whole, q = duals.get_all(np.arange(own.start, own.stop))
        alpha = np.ldexp(whole.astype(float), -q[:, None])
        g[own] = [dual_value_below(kernel.loss, one, c) for one in alpha]
        v = alpha * y
        omega[own] = v @ X if isinstance(X, np.ndarray) else np.asarray(X.T @ v.T, dtype=float).T
        if kernel._is_centred:
            omega[own] -= v.sum(axis=1)[:, None] * kernel.center
        norm, absolute = np.linalg.norm(v, axis=1)[:, None], np.abs(v).sum(axis=1)[:, None]
        radius = radius_of(y.size, norm, absolute, kernel.norms, np.abs(kernel.center))
        squares = np.square(omega[own])
        s[own] = squares + sum_error(squares, radius, np.ones(1))
    return g, s, omega


def initial_intercepts(relaxation: RowsRelaxation, w: npt.NDArray[np.float32]) -> Array:
    """Where the intercept of nodes begins (m,) that begin with weights (m, k): in the kernel's columns."""
    kernel, problem = relaxation.kernel, relaxation.problem
    found = np.zeros(w.shape[0])
    if not (problem.bias and isinstance(kernel, BooleanRelaxation)):
        return found
    off, X = ColumnShift(problem.data, True)[kernel.alive], kernel._X
    step = _block_length(problem.data.n_samples)
    for begin in range(0, found.size, step):
        own = w[begin : begin + step].astype(float)
        values = np.asarray(X @ own.T, dtype=float).T - (own @ off)[:, None]
        found[begin : begin + step] = median_intercepts(values, problem.data.y, problem.c_i)
    return found


def median_intercepts(values: Array, y: Array, c: Array) -> Array:
    """An intercept (m,) of least hinge loss for values (m, n) without one: a weighted median of y_i − f_i."""
    bends = y - values
    order = np.argsort(bends, axis=1)
    at = np.count_nonzero(np.cumsum(c[order], axis=1) < float(c[y > 0].sum()), axis=1)
    return np.take_along_axis(bends, np.take_along_axis(order, at[:, None], axis=1), axis=1)[:, 0]


def _block_length(n: int) -> int:
    return max(1, TOGETHER // n)
