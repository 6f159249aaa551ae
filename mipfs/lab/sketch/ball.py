"""The radius of the smallest ball that encloses some points, between two earned bounds.

    R² = min over c of max over i ‖x_i − c‖² = max over β ≥ 0, Σβ = 1 of Σ β_i ‖x_i‖² − ‖Σ β_i x_i‖²

Any β earns a lower bound, its centre c = Σ β_i x_i an upper one. β is optimised on a core set of points (Bădoiu and
Clarkson 2003), a small program for Clarabel; the points farthest from its centre join until none is outside.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from mipfs.lab.sketch.ratio import Interval
from mipfs.plumbing.arrays import Array
from mipfs.solvers.cones import conic_solution
from mipfs.solvers.vectors import in_simplex

TOL = 1e-8
"""Relative distance of the two bounds on R² at which the search ends."""
MOST_CORE_SETS, LEAST_JOINING = 200, 8
"""Core sets at most; points that join at a time at least, as many as there are once they are more."""
NEGLIGIBLE_SHARE = 1e-10
"""Entries of β below this share of the largest are dropped."""


def enclosing_ball(X: Any) -> Interval:
    """R² of the rows of X, as an interval.

    Parameters
    ----------
    X : (n, p) ndarray or SciPy sparse matrix of finite values

    Returns
    -------
    Interval
        Of R², which holds up to the round-off of the distances.
    """
    top = float(abs(X).max())
    if top == 0.0:
        return Interval(0.0, 0.0)
    exponent = int(np.frexp(top)[1])  # a power of two: no square over- or underflows
    if sparse.issparse(X):
        points = sparse.csr_array(X)
        points = sparse.csr_array((np.ldexp(points.data, -exponent), points.indices, points.indptr), points.shape)
        squares = np.asarray(points.multiply(points).sum(axis=1)).ravel()
    else:
        points = np.ldexp(X, -exponent)
        points = points - points.mean(axis=0)  # near the centre the distances lose no digits
        squares = np.einsum("ij,ij->i", points, points)
    found = _enclosing_ball_interval(points, squares)
    return Interval(float(np.ldexp(found.low, 2 * exponent)), float(np.ldexp(found.high, 2 * exponent)))


def _enclosing_ball_interval(points: Any, squares: Array) -> Interval:
    core = np.array([int(squares.argmax())])
    beta = np.ones(1)
    low, high = 0.0, np.inf
    for _ in range(MOST_CORE_SETS):
        center = np.asarray(points[core].T @ beta).ravel()
        own = float(center @ center)
        away = squares - 2.0 * np.asarray(points @ center).ravel() + own
        low, high = max(low, float(beta @ squares[core]) - own), min(high, float(away.max()))
        if high - low <= TOL * high:
            break
        far = np.argsort(-away, kind="stable")[: max(LEAST_JOINING, core.size)]
        joining = np.setdiff1d(far[away[far] > low], core)
        if joining.size == 0:  # round-off: no point is left to tell the two apart
            break
        core = np.union1d(core[beta > 0.0], joining)
        solved = _core_set_weights(points, squares, core)
        if solved is None:
            break
        beta = solved
    return Interval(max(0.0, low), max(low, high, 0.0))


def _core_set_weights(points: Any, squares: Array, core: npt.NDArray[np.int64]) -> Array | None:
    """β of the core set's own ball; None where Clarabel does not find it."""
    part = points[core]
    gram = part @ part.T
    gram = gram.toarray() if sparse.issparse(gram) else np.asarray(gram)
    size = float(squares[core].max())
    m = core.size
    A = sparse.csc_matrix(np.vstack([np.ones((1, m)), -np.eye(m)]))
    cones = {"zero": 1, "nonneg": m, "soc": [], "psd": [], "exp": 0}
    P = sparse.csc_matrix(np.triu(2.0 * gram / size))
    answer = conic_solution(P, -squares[core] / size, A, np.concatenate([[1.0], np.zeros(m)]), cones)
    if answer is None:
        return None
    beta = np.maximum(answer[0], 0.0)
    return in_simplex(np.where(beta < NEGLIGIBLE_SHARE * beta.max(), 0.0, beta))
